/* SPDX-License-Identifier: MIT */
/* Weights of few bits, by gemv and by wgmma: every element, on the emulator or on a GPU; by wgmma also with one fence, wait
 * or arrival missing, which the emulator notices. */
#include "../blackwell/mutant.h"
#include "gemm_draw.h"
#include "gemm_tests.h"

#include <cptx/cptx.h>

#include <stdio.h>
#include <stdlib.h>

static const char *const targets[2] = { "sm_80", "sm_90a" };

enum { M = 21, N = 40, K = 640, MOST = N * K };

typedef struct weights {
	cptx_gemm_opt o;
	uint32_t ctas; /* by wgmma; 0: as many as there are tiles */
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

/* Runs the kernel in a module, or without one what a runner takes; false: err tells.  *wrong: the first element that is, or
 * M * N. */
static bool run_module(weights *w, cptx_device *dev, cptx_module *m, unsigned *wrong, cptx_error *err)
{
	const cptx_gemm_opt *o = &w->o;
	const bool four = o->b == CPTX_U4 || o->b == CPTX_E2M1;
	static float d[M * N];

	draw(w);
	if (four)
		cptx_gemm_pack_weights(w->packed, w->code, N, K);
	const uint32_t groups = o->scale_k ? (K + o->scale_k - 1) / o->scale_k : 1;
	cptx_gemm_problem p = { .m = M, .n = N, .k = K, .ctas = o->stream_k ? 3 : o->mma == CPTX_GEMM_WGMMA ? w->ctas : 0 };
	p.a = upload_halves(dev, w, w->a, M * K), p.b = upload(dev, four ? w->packed : w->code, four ? N * K / 2 : N * K);
	p.scale_b = upload_halves(dev, w, w->scale, groups * N), p.zero_b = upload_halves(dev, w, w->zero, groups * N);
	p.d = cptx_mem_alloc(dev, sizeof d, err);
	cptx_mem_fill8(dev, p.d, 0xff, sizeof d, err);
	cptx_gemm_plan plan;
	if (m && cptx_gemm_check_problem(o, &p, 8, &plan, err) && plan.workspace) {
		p.workspace = cptx_mem_alloc(dev, plan.workspace, err);
		cptx_mem_fill8(dev, p.workspace, 0, plan.workspace, err);
	}
	const cptx_load_opt load = { .target = cptx_device_get_info(dev)->target };
	cptx_program *program = m ? cptx_device_load(dev, m, &load, err) : NULL;
	cptx_launch *l = program ? cptx_gemm_launch(program, dev, o, &p, err) : NULL;
	cptx_gemm_runner *r = m ? NULL : cptx_gemm_runner_new(dev, NULL, err);
	const bool ok = (l ? cptx_launch_run(l, NULL, err) : r && cptx_gemm_run(r, o, &p, NULL, err)) &&
	                cptx_device_synchronize(dev, err) && cptx_mem_read(dev, d, p.d, sizeof d, err);
	for (*wrong = 0; ok && *wrong < M * N && (double)d[*wrong] == expected(w, *wrong / N, *wrong % N);)
		++*wrong;
	cptx_gemm_runner_destroy(r);
	cptx_launch_destroy(l);
	cptx_program_destroy(program);
	uint64_t held[] = { p.a, p.b, p.d, p.scale_b, p.zero_b, p.workspace };
	for (unsigned i = 0; i < sizeof held / sizeof *held; i++)
		cptx_mem_free(dev, held[i]);
	return ok;
}

static void run_weights(weights *w, unsigned seed)
{
	const cptx_gemm_opt *o = &w->o;
	cptx_emu_opt opt = { .seed = seed, .threads = 1, .sms = 8 };
	cptx_device *dev = gemm_device(o, targets[o->mma == CPTX_GEMM_WGMMA || seed % 2], &opt);
	cptx_module *m = cptx_module_new(NULL);
	cptx_error err = { 0 };
	unsigned wrong;

	ck_assert_msg(cptx_gemm_build(m, o, &err), "%s", err.text);
	ck_assert_msg(run_module(w, dev, m, &wrong, &err), "%s", err.text);
	ck_assert_msg(wrong == M * N, "%s in %s: element %u is not %g", cptx_type_name(o->b), cptx_type_name(o->a), wrong,
	              expected(w, wrong / N, wrong % N));
	cptx_module_destroy(m);
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

	w.o = (cptx_gemm_opt){ .mma = CPTX_GEMM_GEMV, .out = CPTX_F32, .bm = 8, .warps_m = 2, .warps_n = 1 };
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
 * are fewer and more than those of a group; two and four warpgroups that take stages in turns, an odd number of K tiles;
 * clusters that share either operand; CTAs that share tiles along K.  Of M = 21 tiles of 8 rows are three (of clusters of
 * two along M two): with .ctas a CTA has several. */
static const struct case_of_wgmma {
	const char *name; /* of a case whose mutants are tried */
	enum cptx_type a, b;
	uint32_t scale_k, bm, bn, stages, cluster_m, cluster_n, per_sm;
	bool zeros, stream_k;
	uint32_t ctas; /* 0: as many as there are tiles; those of a cluster at least */
} by_wgmma[] = {
	{ "group", CPTX_BF16, CPTX_U4, 128, 128, 16, 2, 1, 1, 1, true, false, 0 },
	{ "slices", CPTX_BF16, CPTX_U4, 64, 64, 8, 8, 1, 1, 1, true, false, 0 },
	{ NULL, CPTX_F16, CPTX_U4, 128, 64, 40, 2, 1, 1, 1, true, false, 0 },
	{ NULL, CPTX_BF16, CPTX_U4, 192, 128, 16, 5, 1, 1, 2, false, false, 0 },
	{ NULL, CPTX_F16, CPTX_U4, 0, 192, 32, 3, 1, 1, 1, true, false, 0 },
	{ NULL, CPTX_BF16, CPTX_U4, 128, 256, 16, 4, 1, 1, 1, true, false, 0 },
	{ NULL, CPTX_BF16, CPTX_E2M1, 128, 64, 8, 4, 1, 1, 1, false, false, 0 },
	{ NULL, CPTX_BF16, CPTX_E4M3, 128, 64, 8, 4, 1, 1, 1, false, false, 0 },
	{ NULL, CPTX_F16, CPTX_E4M3, 64, 128, 24, 3, 1, 1, 1, false, true, 0 },
	{ NULL, CPTX_F16, CPTX_E5M2, 128, 192, 16, 3, 1, 1, 1, false, false, 0 },
	{ NULL, CPTX_BF16, CPTX_E5M2, 64, 64, 40, 2, 1, 2, 1, false, false, 0 },
	{ NULL, CPTX_BF16, CPTX_E4M3, 0, 256, 16, 2, 1, 1, 1, false, false, 0 },
	{ NULL, CPTX_F16, CPTX_E2M1, 320, 128, 64, 3, 1, 1, 1, false, false, 0 },
	{ NULL, CPTX_BF16, CPTX_U4, 128, 64, 8, 6, 1, 1, 1, false, false, 0 },
	{ NULL, CPTX_BF16, CPTX_U4, 128, 64, 8, 5, 1, 1, 1, false, false, 0 },
	{ NULL, CPTX_BF16, CPTX_U4, 128, 64, 8, 4, 2, 1, 1, true, false, 0 },
	{ NULL, CPTX_BF16, CPTX_E2M1, 64, 64, 8, 4, 1, 2, 1, false, false, 0 },
	{ NULL, CPTX_BF16, CPTX_U4, 256, 64, 8, 4, 1, 1, 1, true, true, 0 },
	{ NULL, CPTX_F16, CPTX_E2M1, 0, 128, 24, 3, 1, 1, 1, false, true, 0 },
	{ NULL, CPTX_BF16, CPTX_U4, 128, 64, 24, 4, 1, 1, 1, true, true, 0 },
	{ NULL, CPTX_BF16, CPTX_U4, 128, 64, 8, 4, 1, 1, 1, true, false, 1 },
	{ NULL, CPTX_BF16, CPTX_U4, 128, 64, 8, 6, 1, 1, 1, true, false, 1 },
	{ NULL, CPTX_F16, CPTX_E4M3, 64, 64, 8, 2, 1, 1, 1, false, false, 2 },
	{ NULL, CPTX_BF16, CPTX_E2M1, 0, 64, 8, 8, 1, 1, 1, false, false, 1 },
	{ NULL, CPTX_BF16, CPTX_U4, 256, 128, 8, 2, 1, 1, 1, true, false, 1 },
	{ NULL, CPTX_F16, CPTX_U4, 64, 128, 8, 3, 1, 1, 2, true, false, 1 },
	{ NULL, CPTX_BF16, CPTX_U4, 128, 64, 8, 4, 2, 1, 1, true, false, 2 },
	{ NULL, CPTX_BF16, CPTX_E2M1, 64, 64, 8, 6, 1, 2, 1, false, false, 2 },
	{ NULL, CPTX_BF16, CPTX_E4M3, 128, 128, 8, 2, 1, 2, 1, false, false, 2 },
};
enum { BY_WGMMA = sizeof by_wgmma / sizeof *by_wgmma };

static cptx_gemm_opt options_of(const struct case_of_wgmma *c)
{
	return (cptx_gemm_opt){ .size = CPTX_OPT_SIZE(cptx_gemm_opt),
		                    .mma = CPTX_GEMM_WGMMA,
		                    .a = c->a,
		                    .b = c->b,
		                    .out = CPTX_F32,
		                    .scale = c->a,
		                    .scale_k = c->scale_k,
		                    .zeros = c->zeros,
		                    .bm = c->bm,
		                    .bn = c->bn,
		                    .stages = c->stages,
		                    .cluster_m = c->cluster_m,
		                    .cluster_n = c->cluster_n,
		                    .per_sm = c->per_sm,
		                    .swap = true,
		                    .stream_k = c->stream_k };
}

START_TEST(weights_by_wgmma)
{
	static weights w;

	w.o = options_of(&by_wgmma[_i]), w.ctas = by_wgmma[_i].ctas;
	run_weights(&w, (unsigned)_i);
}
END_TEST

/* The runner picks a shape of either kernel, where only types are said; e5m2 without factors has gemv alone. */
START_TEST(the_runner_picks_a_shape)
{
	static const enum cptx_type types[] = { CPTX_U4, CPTX_E4M3, CPTX_E5M2 };
	static weights w;
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	unsigned wrong = 0;

	w.o = (cptx_gemm_opt){ .size = CPTX_OPT_SIZE(cptx_gemm_opt),
		                   .mma = CPTX_GEMM_WGMMA,
		                   .a = CPTX_BF16,
		                   .b = types[_i],
		                   .out = CPTX_F32,
		                   .scale = _i < 2 ? CPTX_BF16 : CPTX_TYPE_NONE,
		                   .scale_k = _i < 2 ? 128 : 0,
		                   .zeros = !_i };
	ck_assert_msg(run_module(&w, dev, NULL, &wrong, &err), "%s", err.text);
	ck_assert_uint_eq(wrong, M * N);
	ck_assert_ptr_null(cptx_emu_finding_at(dev, 0));
	cptx_device_close(dev);
}
END_TEST

/* ---- with one thing missing ---- */

static cptx_module *build(const void *user)
{
	cptx_module *m = cptx_module_new(NULL);
	const cptx_gemm_opt o = options_of(user);
	cptx_error err = { 0 };

	ck_assert_msg(cptx_gemm_build(m, &o, &err), "%s", err.text);
	return m;
}

/* One CTA makes all tiles, so that stages are used again. */
static const char *run(const void *user, const mutant *x, unsigned seed)
{
	static weights w;
	cptx_error err = { 0 };
	cptx_emu_opt opt = { .seed = seed,
		                 .schedule = (enum cptx_emu_schedule)(seed % 3),
		                 .threads = 1,
		                 .sms = 8,
		                 .step_limit = 3000000,
		                 .pedantic = true };
	cptx_device *dev = cptx_emu_open("sm_90a", &opt, &err);
	cptx_module *m = build(user);
	unsigned wrong = M * N;

	ck_assert(x->whole || mutant_make(m, x));
	w.o = options_of(user), w.ctas = 1;
	const bool ok = run_module(&w, dev, m, &wrong, &err);
	return mutant_verdict(dev, m, ok, wrong < M * N, &err);
}

static const spared spare[] = {
	{ "group slices", "griddepcontrol.wait", 0, "it orders a launch behind the one before, and a trial has one" },
};

START_TEST(nothing_may_be_missing)
{
	static unsigned of_kind[MUTANT_KINDS];
	const mutant_subject s = { .name = by_wgmma[_i].name,
		                       .build = build,
		                       .run = run,
		                       .user = &by_wgmma[_i],
		                       .spared = spare,
		                       .spares = sizeof spare / sizeof *spare,
		                       .seeds = 20,
		                       .sample = 0 };

	ck_assert_uint_eq(mutants_try(&s, of_kind), 0);
}
END_TEST

/* ---- stages that are given back ---- */

/* ptxas 13.0 moves mbarrier.arrive in front of what takes loads of shared memory, but not across a label: between the two
 * of each release and any load stands one. */
START_TEST(stages_are_given_back_behind_the_values)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = build(&by_wgmma[_i]);
	cptx_ptx *ptx = cptx_emit(m, "sm_90a", NULL, &err);
	unsigned loads = 0, arrivals = 0;
	bool loaded = false;

	ck_assert_msg(ptx != NULL, "%s", err.text);
	for (const char *line = cptx_ptx_text(ptx); line; line = strchr(line, '\n')) {
		const char *end = strchr(++line, '\n');
		const size_t length = end ? (size_t)(end - line) : strlen(line);
		char text[512];
		snprintf(text, sizeof text, "%.*s", (int)length, line);
		if (length && line[length - 1] == ':')
			loaded = false;
		else if (strstr(text, "ld.shared"))
			loaded = true, loads++;
		else if (strstr(text, "mbarrier.arrive") && !strstr(text, "expect_tx"))
			ck_assert_msg(!loaded, "behind a load: %s", text), arrivals++;
	}
	ck_assert_uint_gt(loads, 0);
	ck_assert_uint_gt(arrivals, 0);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}
END_TEST

/* ---- rules ---- */

START_TEST(says_which_rule_is_broken)
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

#define REFUSED(words, ...)                                                                                                 \
	do {                                                                                                                    \
		cptx_gemm_opt o = right;                                                                                            \
		ck_assert_msg(cptx_gemm_check(&o, NULL, NULL, FRESH(&err)), "%s", err.text);                                        \
		__VA_ARGS__;                                                                                                        \
		ck_assert(!cptx_gemm_check(&o, NULL, NULL, FRESH(&err)));                                                           \
		ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);                                                     \
	} while (0)
	REFUSED("weights of few bits are a B of u4, e2m1, e4m3 or e5m2", o.b = CPTX_S8);
	REFUSED("weights of few bits are a B of u4, e2m1, e4m3 or e5m2", o.b = CPTX_BF16, o.a = CPTX_U4);
	REFUSED("B of .u4 without swap", o.swap = false);
	REFUSED("scale factors of .f16; they are of the type of A, .bf16", o.scale = CPTX_F16);
	REFUSED("tile K = 96; with weights of few bits it is 64 or 128", o.bk = 96);
	REFUSED("scale_k = 64; it is 0 (one factor for all of K) or a multiple of 128, which tile K is; that may be 64, too",
	        o.bk = 128, o.scale_k = 64);
	REFUSED("scale_k = 96; it is 0 (one factor for all of K) or a multiple of 64", o.scale_k = 96);
	REFUSED("zero points are of u4, not of .e2m1", o.b = CPTX_E2M1, o.zeros = true);
	REFUSED("B stored as rows of N; weights of few bits", o.b_n_major = true);
	REFUSED("weights of few bits are one matrix", o.batched = true);
	REFUSED("A is unaligned, and beside weights of few bits its rows have whole 16 bytes; gemv reads others, where K is a "
	        "multiple of 32",
	        o.strided = true, o.unaligned = CPTX_GEMM_A);
	REFUSED("B of .e5m2 is unaligned; rows of weights of few bits have whole 16 bytes, so K is a multiple of 16",
	        o.b = CPTX_E5M2, o.strided = true, o.unaligned = CPTX_GEMM_B);
	REFUSED("B of .u4 without scale factors; by wgmma it has these", o.scale = CPTX_TYPE_NONE, o.scale_k = 0);
	REFUSED("scale_rows with B of .u4", o.scale_rows = true);
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

int main(void)
{
	Suite *s = suite_create("gemm weights");

	tcase_add_loop_test(test_case(s, "gemv"), weights_of_few_bits, 0, 18);
	tcase_add_loop_test(test_case(s, "wgmma"), weights_by_wgmma, 0, BY_WGMMA);
	tcase_add_loop_test(test_case(s, "runner"), the_runner_picks_a_shape, 0, 3);
	tcase_add_loop_test(test_case(s, "mutants"), nothing_may_be_missing, 0, 2);
	tcase_add_loop_test(test_case(s, "releases"), stages_are_given_back_behind_the_values, 0, BY_WGMMA);
	tcase_add_test(test_case(s, "rules"), says_which_rule_is_broken);
	return gemm_tests_main("gemm_weights", s);
}
