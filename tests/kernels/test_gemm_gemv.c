/* SPDX-License-Identifier: MIT */
/* The GEMM for few rows: rows and columns of B of any length, weights of few bits, by wgmma too; on the emulator, or on a
 * GPU. */
#include "gemm_draw.h"
#include "gemm_tests.h"

#include <cptx/cptx.h>

#include <stdlib.h>

static const char *const targets[2] = { "sm_80", "sm_90a" };

static cptx_gemm_opt kernel(void)
{
	return (cptx_gemm_opt){ .mma = CPTX_GEMM_GEMV,
		                    .a = CPTX_BF16,
		                    .b = CPTX_BF16,
		                    .out = CPTX_F32,
		                    .bm = 8,
		                    .bn = 16,
		                    .bk = 64,
		                    .warps_m = 2,
		                    .warps_n = 1 };
}

/* ---- B of the type of A ---- */

START_TEST(gives_the_exact_sums)
{
	gemm_trial t = { .m = 1, .n = 50, .k = 264, .opt = kernel(), .seed = (uint64_t)_i };
	cptx_gemm_opt *o = &t.opt;

	switch (_i) {
	case 0: break;
	case 1: t.m = 13, o->bm = 8, o->alpha = o->beta = o->bias = true, o->out = CPTX_BF16; break;
	case 2: t.m = 17, o->bm = 32, o->bn = 64, o->warps_n = 2, o->a = o->b = o->out = CPTX_F16; break;
	case 3: t.m = 7, t.k = 8, o->epilogue = gemm_trial_epilogue; break;
	case 4: t.m = 5, t.batch = 3, o->batched = true, o->beta = true; break;
	/* rows of any length: of A, of B, of both; fewer rows than eight */
	case 5: t.m = 3, t.k = 261, o->unaligned = 7; break;
	case 6: t.m = 9, t.n = 3, t.k = 77, o->unaligned = 3, o->bm = 16; break;
	case 7: t.m = 2, t.n = 141, t.k = 1, o->unaligned = 3; break;
	case 8:
		t.m = 4, t.k = 133, t.batch = 2, o->batched = true, o->unaligned = 7, o->strided = true;
		for (unsigned w = 0; w < 4; w++)
			t.place[w] = (gemm_trial_place){ .off = 3 - w, .pad = w, .gap = 7 };
		t.place[1].shared = true;
		break;
	case 9: t.m = 3, t.k = 256, o->unaligned = CPTX_GEMM_A, o->strided = true, t.place[0].pad = 1; break;
	/* B stored as rows of N */
	case 10: t.m = 2, t.n = 136, o->b_n_major = true, o->bn = 64; break;
	case 11:
		t.m = 10, t.n = 72, t.k = 96, o->b_n_major = true, o->bn = 256, o->warps_n = 2, o->bm = 16, o->a = o->b = CPTX_F16;
		break;
	case 12: t.m = 1, t.n = 64, t.k = 45, o->b_n_major = true, o->bn = 64, o->unaligned = CPTX_GEMM_A; break;
	default: t.m = 64, t.n = 40, t.k = 96, o->bm = 64, o->bn = 32, o->bk = 32; break;
	}
	gemm_right(&t, targets, (unsigned)_i);
}
END_TEST

/* Thousands of matrices in one launch. */
START_TEST(tiny_matrices)
{
	gemm_trial t = { .m = 3, .n = 5, .k = 7, .batch = 300, .opt = kernel() };

	t.opt.batched = true, t.opt.unaligned = 7, t.opt.warps_m = 1, t.opt.bk = 32;
	gemm_right(&t, targets, 0);
}
END_TEST

/* ---- weights of few bits ---- */

enum { M = 21, N = 40, K = 640, MOST = N * K };

typedef struct weights {
	cptx_gemm_opt o;
	uint8_t code[MOST], packed[MOST];
	double value[MOST], scale[MOST], zero[MOST], a[M * K];
	uint16_t half[MOST];
} weights;

static double value_of(enum cptx_type type, uint8_t code)
{
	static const double e2m1[] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };

	if (type == CPTX_E2M1)
		return code & 8 ? -e2m1[code & 7] : e2m1[code & 7];
	return type == CPTX_U4 ? code : number_value(type, code);
}

static uint64_t upload(cptx_device *dev, const void *from, size_t size)
{
	cptx_error err = { 0 };
	uint64_t to = cptx_mem_alloc(dev, size, &err);

	ck_assert_msg(to && cptx_mem_write(dev, to, from, size, &err), "%s", err.text);
	return to;
}

static uint64_t upload_halves(cptx_device *dev, weights *w, const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		w->half[i] = (uint16_t)number_bits(w->o.a, v[i]);
	return upload(dev, w->half, 2 * n);
}

/* All weights that the type has, but infinities and NaN, and subnormal ones of e5m2, which no sum of f32 holds beside
 * others. */
static void draw(weights *w)
{
	uint64_t s = 7;

	for (unsigned i = 0; i < N * K; i++) {
		uint8_t c = (uint8_t)(number_random(&s) >> 40);
		if (w->o.b == CPTX_U4 || w->o.b == CPTX_E2M1)
			c &= 15;
		else if (w->o.b == CPTX_E4M3)
			c = (c & 0x7f) == 0x7f ? 0 : (uint8_t)(c & 0x87) | (uint8_t)((4 + c / 8 % 8) << 3);
		else
			c = (uint8_t)(c & 0x83) | (uint8_t)((12 + c / 4 % 8) << 2);
		w->code[i] = c, w->value[i] = value_of(w->o.b, c);
		w->scale[i] = 1 << (number_random(&s) >> 40) % 3, w->zero[i] = (double)((number_random(&s) >> 40) % 16);
	}
	for (unsigned i = 0; i < M * K; i++)
		w->a[i] = (double)((int)((number_random(&s) >> 40) % 5) - 2);
}

static double expected(const weights *w, unsigned m, unsigned n)
{
	double sum = 0;

	for (unsigned k = 0; k < K; k++) {
		unsigned at = (w->o.scale_k ? k / w->o.scale_k : 0) * N + n;
		double v = w->value[n * K + k];
		if (w->o.b == CPTX_U4)
			v -= w->o.zeros ? w->zero[at] : 8;
		sum += w->a[m * K + k] * v * (w->o.scale == CPTX_TYPE_NONE ? 1 : w->scale[at]);
	}
	return sum;
}

static void run_weights(weights *w, unsigned seed)
{
	const cptx_gemm_opt *o = &w->o;
	const bool four = o->b == CPTX_U4 || o->b == CPTX_E2M1;
	cptx_emu_opt opt = { .seed = seed, .threads = 1, .sms = 8 };
	cptx_device *dev = gemm_device(o, targets[o->mma == CPTX_GEMM_WGMMA || seed % 2], &opt);
	cptx_module *m = cptx_module_new(NULL);
	cptx_error err = { 0 };
	static float d[M * N];

	draw(w);
	if (four)
		cptx_gemm_pack_weights(w->packed, w->code, N, K);
	const uint32_t groups = o->scale_k ? (K + o->scale_k - 1) / o->scale_k : 1;
	cptx_gemm_problem p = { .m = M, .n = N, .k = K };
	p.a = upload_halves(dev, w, w->a, M * K), p.b = upload(dev, four ? w->packed : w->code, four ? N * K / 2 : N * K);
	p.scale_b = upload_halves(dev, w, w->scale, groups * N), p.zero_b = upload_halves(dev, w, w->zero, groups * N);
	p.d = cptx_mem_alloc(dev, sizeof d, &err);
	if (o->stream_k) {
		cptx_gemm_plan plan;
		p.ctas = 3;
		ck_assert_msg(cptx_gemm_check_problem(o, &p, 8, &plan, &err), "%s", err.text);
		p.workspace = cptx_mem_alloc(dev, plan.workspace, &err);
		cptx_mem_fill8(dev, p.workspace, 0, plan.workspace, &err);
	}
	ck_assert_msg(cptx_gemm_build(m, o, &err), "%s", err.text);
	cptx_program *program = cptx_device_load(dev, m, &(cptx_load_opt){ .target = cptx_device_get_info(dev)->target }, &err);
	cptx_launch *l = program ? cptx_gemm_launch(program, dev, o, &p, &err) : NULL;
	ck_assert_msg(l && cptx_launch_run(l, NULL, &err) && cptx_device_synchronize(dev, &err) &&
	                  cptx_mem_read(dev, d, p.d, sizeof d, &err),
	              "%s", err.text);
	for (unsigned i = 0; i < M * N; i++)
		ck_assert_msg((double)d[i] == expected(w, i / N, i % N), "%s in %s: element %u is %g, not %g", cptx_type_name(o->b),
		              cptx_type_name(o->a), i, (double)d[i], expected(w, i / N, i % N));
	cptx_launch_destroy(l);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	uint64_t held[] = { p.a, p.b, p.d, p.scale_b, p.zero_b, p.workspace };
	for (unsigned i = 0; i < sizeof held / sizeof *held; i++)
		cptx_mem_free(dev, held[i]);
	gemm_device_done(dev, "weights");
}

/* Each type, for bf16 and f16; without factors, one for a row, one for a group of a turn or of several; zero points.  Then
 * warps beside one another along N, which share rows of A. */
START_TEST(weights_of_few_bits)
{
	static const enum cptx_type types[] = { CPTX_U4, CPTX_E2M1, CPTX_E4M3, CPTX_E5M2 };
	static weights w;
	const bool beside = _i >= 16;
	const unsigned type = beside ? 0 : (unsigned)_i / 4, how = beside ? 2 : (unsigned)_i % 4;

	w.o = kernel();
	w.o.a = _i % 2 ? CPTX_F16 : CPTX_BF16, w.o.b = types[type], w.o.bk = 256, w.o.bn = type % 2 ? 32 : 16;
	w.o.scale = how ? w.o.a : CPTX_TYPE_NONE;
	w.o.scale_k = how == 2 ? 128 : how == 3 ? 512 : 0;
	w.o.zeros = w.o.b == CPTX_U4 && how > 0;
	if (beside)
		w.o.bm = _i == 16 ? 16 : 64, w.o.bn = _i == 16 ? 64 : 128, w.o.warps_m = 1, w.o.warps_n = 4;
	run_weights(&w, (unsigned)_i);
}
END_TEST

/* As the first operand of wgmma: groups of one stage, of several, of all; tiles that stick out on both sides; stages that
 * are fewer and more than those of a group; warpgroups that take stages in turns, of one tile and of several; clusters that
 * share either operand; CTAs that share tiles along K. */
START_TEST(weights_by_wgmma)
{
	static weights w;
	static const struct {
		enum cptx_type a, b;
		uint32_t scale_k, bm, bn, stages, cluster_m, cluster_n, per_sm;
		bool zeros, stream_k;
	} all[] = {
		{ CPTX_BF16, CPTX_U4, 64, 64, 8, 8, 1, 1, 1, true, false },
		{ CPTX_F16, CPTX_U4, 128, 64, 40, 2, 1, 1, 1, true, false },
		{ CPTX_BF16, CPTX_U4, 192, 128, 16, 5, 1, 1, 2, false, false },
		{ CPTX_F16, CPTX_U4, 0, 192, 32, 3, 1, 1, 1, true, false },
		{ CPTX_BF16, CPTX_U4, 128, 256, 16, 4, 1, 1, 1, true, false },
		{ CPTX_BF16, CPTX_E2M1, 128, 64, 8, 4, 1, 1, 1, false, false },
		{ CPTX_F16, CPTX_E2M1, 320, 128, 64, 3, 1, 1, 1, false, false },
		{ CPTX_BF16, CPTX_U4, 128, 64, 8, 6, 1, 1, 1, false, false },
		{ CPTX_BF16, CPTX_U4, 128, 64, 8, 5, 1, 1, 1, false, false },
		{ CPTX_BF16, CPTX_U4, 128, 64, 8, 4, 2, 1, 1, true, false },
		{ CPTX_BF16, CPTX_E2M1, 64, 64, 8, 4, 1, 2, 1, false, false },
		{ CPTX_BF16, CPTX_U4, 256, 64, 8, 4, 1, 1, 1, true, true },
		{ CPTX_F16, CPTX_E2M1, 0, 128, 24, 3, 1, 1, 1, false, true },
		{ CPTX_BF16, CPTX_U4, 128, 64, 24, 4, 1, 1, 1, true, true },
	};
	w.o = (cptx_gemm_opt){ .size = CPTX_OPT_SIZE(cptx_gemm_opt),
		                   .mma = CPTX_GEMM_WGMMA,
		                   .a = all[_i].a,
		                   .b = all[_i].b,
		                   .out = CPTX_F32,
		                   .scale = all[_i].a,
		                   .scale_k = all[_i].scale_k,
		                   .zeros = all[_i].zeros,
		                   .bm = all[_i].bm,
		                   .bn = all[_i].bn,
		                   .stages = all[_i].stages,
		                   .cluster_m = all[_i].cluster_m,
		                   .cluster_n = all[_i].cluster_n,
		                   .per_sm = all[_i].per_sm,
		                   .swap = true,
		                   .stream_k = all[_i].stream_k };
	run_weights(&w, (unsigned)_i);
}
END_TEST

/* ---- rules ---- */

START_TEST(says_which_rule_is_broken)
{
	cptx_error err = { .code = CPTX_OK };

#define REFUSED(words, ...)                                                                                                 \
	do {                                                                                                                    \
		cptx_gemm_opt o = kernel();                                                                                         \
		__VA_ARGS__;                                                                                                        \
		ck_assert(!cptx_gemm_check(&o, NULL, NULL, FRESH(&err)));                                                           \
		ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);                                                     \
	} while (0)
	REFUSED("tile M = 24; 8, 16, 32 and 64", o.bm = 24);
	REFUSED("tile N = 24 of 1 warps; each has 16 to 128 rows of B", o.bn = 24);
	REFUSED("tile N = 32 of 1 warps; each has 64 or 128 rows of B", o.bn = 32, o.b_n_major = true);
	REFUSED("tile K = 48; multiples of 32 to 512", o.bk = 48);
	REFUSED("4x8 warps; a CTA has 1 to 16", o.warps_m = 4, o.warps_n = 8);
	REFUSED("B of .s8; it is as A, .bf16, or u4, e2m1, e4m3 or e5m2", o.b = CPTX_S8);
	REFUSED("A is stored as rows of M", o.a_m_major = true);
	REFUSED("B is stored as rows of N and unaligned", o.b_n_major = true, o.bn = 64, o.unaligned = CPTX_GEMM_B);
	REFUSED("B of .u4 is unaligned", o.b = CPTX_U4, o.bk = 128, o.unaligned = CPTX_GEMM_B);
	REFUSED("scale factors of .f16; those of weights of few bits are of the type of A", o.b = CPTX_U4, o.scale = CPTX_F16);
	REFUSED("scale_k = 128 without scale factors", o.b = CPTX_U4, o.bk = 128, o.scale_k = 128);
	REFUSED("scale_k = 64; it is 0", o.b = CPTX_U4, o.bk = 128, o.scale = CPTX_BF16, o.scale_k = 64);
	REFUSED("zero points are of u4 with scale factors, not of .e2m1", o.b = CPTX_E2M1, o.bk = 128, o.scale = CPTX_BF16,
	        o.zeros = true);
	REFUSED("B is unaligned, and 2 warps along N", o.warps_n = 2, o.bn = 32, o.unaligned = CPTX_GEMM_B);
	REFUSED("takes about", o.bm = 64, o.bn = 128, o.bk = 128);
	REFUSED(".stages is an option of mma.sync, of mma.sync with scale factors, of wgmma, of tcgen05; this kernel is by gemv",
	        o.stages = 2);
	cptx_gemm_opt o = kernel();
	o.b = CPTX_E2M1, o.bk = 128;
	ck_assert(!cptx_gemm_check_problem(&o, &(cptx_gemm_problem){ .m = 1, .n = 1, .k = 72 }, 8, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "K = 72; with B of .e2m1 it is a multiple of 32") != NULL, "%s", err.text);
	ck_assert(!cptx_gemm_check(&o, cptx_target_find("sm_75"), NULL, FRESH(&err)));
}
END_TEST

START_TEST(says_which_rule_of_wgmma_is_broken)
{
	cptx_error err = { .code = CPTX_OK };
	const cptx_gemm_opt right = { .size = CPTX_OPT_SIZE(cptx_gemm_opt),
		                          .mma = CPTX_GEMM_WGMMA,
		                          .a = CPTX_BF16,
		                          .b = CPTX_U4,
		                          .out = CPTX_F32,
		                          .scale = CPTX_BF16,
		                          .scale_k = 128,
		                          .bm = 64,
		                          .bn = 16,
		                          .stages = 4,
		                          .swap = true };

#undef REFUSED
#define REFUSED(words, ...)                                                                                                 \
	do {                                                                                                                    \
		cptx_gemm_opt o = right;                                                                                            \
		ck_assert_msg(cptx_gemm_check(&o, NULL, NULL, FRESH(&err)), "%s", err.text);                                        \
		__VA_ARGS__;                                                                                                        \
		ck_assert(!cptx_gemm_check(&o, NULL, NULL, FRESH(&err)));                                                           \
		ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);                                                     \
	} while (0)
	REFUSED("weights of few bits are a B of u4 or e2m1", o.b = CPTX_E4M3);
	REFUSED("weights of few bits are a B of u4 or e2m1", o.b = CPTX_BF16, o.a = CPTX_U4);
	REFUSED("B of .u4 without swap", o.swap = false);
	REFUSED("scale factors of .f16; they are of the type of A, .bf16", o.scale = CPTX_F16);
	REFUSED("scale_k = 96; it is 0 (one factor for all of K) or a multiple of 64", o.scale_k = 96);
	REFUSED("zero points are of u4, not of .e2m1", o.b = CPTX_E2M1, o.zeros = true);
	REFUSED("B stored as rows of N; weights of few bits", o.b_n_major = true);
	REFUSED("weights of few bits are one matrix", o.batched = true);
	REFUSED("A or B is unaligned; with weights", o.strided = true, o.unaligned = CPTX_GEMM_A);
	REFUSED("with 64 of their rows 128 of A have room in registers", o.bn = 136);
	REFUSED("with 192 of their rows 96 of A have room in registers", o.bm = 192, o.bn = 104);
	REFUSED("with 256 of their rows 64 of A have room in registers", o.bm = 256, o.bn = 72);
	REFUSED("two CTAs on a multiprocessor have registers for 128", o.bm = 192, o.per_sm = 2);
	REFUSED("scale_k or zeros with A of .bf16 and B of .bf16", o.b = CPTX_BF16, o.scale = CPTX_TYPE_NONE);
	ck_assert(!cptx_gemm_check_problem(&right, &(cptx_gemm_problem){ .m = 1, .n = 12, .k = 64 }, 8, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "N = 12; with weights of few bits") != NULL, "%s", err.text);
	ck_assert(!cptx_gemm_check_problem(&right, &(cptx_gemm_problem){ .m = 1, .n = 8, .k = 72 }, 8, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "K = 72; with B of .u4 it is a multiple of 32") != NULL, "%s", err.text);
}
END_TEST

static void twice(cptx_kernel *k, void *user, cptx_epilogue *e, const cptx_gemm_operands *x)
{
	(void)user, (void)x;
	cptx_epilogue_add(k, e, CPTX_VISIT_SCALE, .value = cptx_mov(k, 2.0f, .type = CPTX_F32));
}

/* cptx_gemm_run takes it for few rows, whatever is said to multiply, but not with visitors; what it gives is right. */
START_TEST(the_runner_takes_it_for_few_rows)
{
	enum { ROWS = 17, SIDE = 64 };
	static const uint64_t ms[] = { 1, 16, 17, 1 };
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_gemm_runner *r = cptx_gemm_runner_new(dev, NULL, &err);
	static uint16_t a[ROWS * SIDE], b[SIDE * SIDE];
	static float d[ROWS * SIDE];

	ck_assert_msg(r != NULL, "%s", err.text);
	for (unsigned i = 0; i < ROWS * SIDE; i++)
		a[i] = (uint16_t)number_bits(CPTX_BF16, (int)(i * 7 % 5) - 2);
	for (unsigned i = 0; i < SIDE * SIDE; i++)
		b[i] = (uint16_t)number_bits(CPTX_BF16, (int)(i * 11 % 7) - 3);
	cptx_gemm_problem p = { .n = SIDE, .k = SIDE - 1, .a = upload(dev, a, sizeof a), .b = upload(dev, b, sizeof b) };
	p.d = cptx_mem_alloc(dev, sizeof d, &err);
	for (unsigned i = 0; i < 4; i++) {
		const cptx_gemm_opt o = {
			.mma = CPTX_GEMM_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32, .visitors = i == 3 ? twice : NULL
		};
		p.m = ms[i];
		ck_assert_msg(cptx_gemm_run(r, &o, &p, NULL, &err) && cptx_device_synchronize(dev, &err) &&
		                  cptx_mem_read(dev, d, p.d, sizeof d, &err),
		              "%s", err.text);
		for (unsigned at = 0; at < p.m * SIDE; at++) {
			double sum = 0;
			for (unsigned k = 0; k < p.k; k++)
				sum += (o.visitors ? 2 : 1) * number_value(CPTX_BF16, a[at / SIDE * p.k + k]) *
				       number_value(CPTX_BF16, b[at % SIDE * p.k + k]);
			ck_assert_msg((double)d[at] == sum, "M = %u: element %u is %g, not %g", (unsigned)p.m, at, (double)d[at], sum);
		}
	}
	cptx_gemm_runner_destroy(r);
	gemm_device_done(dev, "runner");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm gemv");

	tcase_add_loop_test(test_case(s, "sums"), gives_the_exact_sums, 0, 14);
	tcase_add_test(test_case(s, "tiny"), tiny_matrices);
	tcase_add_loop_test(test_case(s, "weights"), weights_of_few_bits, 0, 18);
	tcase_add_loop_test(test_case(s, "wgmma"), weights_by_wgmma, 0, 14);
	tcase_add_test(test_case(s, "rules"), says_which_rule_is_broken);
	tcase_add_test(test_case(s, "rules"), says_which_rule_of_wgmma_is_broken);
	tcase_add_test(test_case(s, "runner"), the_runner_takes_it_for_few_rows);
	return gemm_tests_main("gemm_gemv", s);
}
