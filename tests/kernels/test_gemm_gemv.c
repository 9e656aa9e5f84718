/* SPDX-License-Identifier: MIT */
/* The GEMM for few rows: rows and columns of B of any length; on the emulator, or on a GPU.  test_gemm_weights.c has weights
 * of few bits. */
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

static uint64_t upload(cptx_device *dev, const void *from, size_t size)
{
	cptx_error err = { 0 };
	uint64_t to = cptx_mem_alloc(dev, size, &err);

	ck_assert_msg(to && cptx_mem_write(dev, to, from, size, &err), "%s", err.text);
	return to;
}

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
	tcase_add_test(test_case(s, "rules"), says_which_rule_is_broken);
	tcase_add_test(test_case(s, "runner"), the_runner_takes_it_for_few_rows);
	return gemm_tests_main("gemm_gemv", s);
}
