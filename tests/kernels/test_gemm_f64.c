/* SPDX-License-Identifier: MIT */
/* A GEMM of f64 by mma.sync: m8n8k4 of sm_80, m16n8k8 of sm_90. */
#include "gemm_tests.h"

#define F64(m, n, k, wm, wn)                                                                                                \
	.a = CPTX_F64, .b = CPTX_F64, .out = CPTX_F64, .bm = (m), .bn = (n), .bk = (k), .warps_m = (wm), .warps_n = (wn),       \
	.stages = 3

static const gemm_trial trials[] = {
	{ { F64(64, 64, 16, 2, 2) }, 100, 72, 34, .seed = 1 },
	{ { F64(32, 48, 32, 2, 1), .alpha = true, .beta = true }, 65, 50, 70, .seed = 2 },
	{ { F64(64, 32, 16, 2, 2), .batched = true, .beta = true }, 33, 30, 18, .batch = 3, .in_place = true, .seed = 3 },
	{ { F64(64, 64, 16, 2, 2), .strided = true, .unaligned = 7, .beta = true },
	  67,
	  33,
	  17,
	  { { 1, 2, 0, false }, { 3, 0, 0, false }, { 1, 1, 0, false }, { 5, 3, 0, false } },
	  .seed = 4 },
	{ { F64(64, 64, 16, 2, 2), .tma = true }, 100, 72, 34, .seed = 5 },
	{ { F64(32, 64, 32, 1, 2), .tma = true, .batched = true, .alpha = true, .beta = true },
	  47,
	  40,
	  66,
	  .batch = 2,
	  .seed = 6 },
	{ { F64(64, 32, 16, 2, 1), .tma = true, .strided = true, .unaligned = CPTX_GEMM_A | CPTX_GEMM_D, .batched = true },
	  66,
	  41,
	  35,
	  { { 0, 1, 1, false }, { 0, 1, 0, false }, { 0, 0, 0, false }, { 1, 1, 1, false } },
	  .batch = 2,
	  .seed = 7 },
};

START_TEST(gives_the_exact_result)
{
	static const char *const sync[] = { "sm_80", "sm_120" }, *const tma[] = { "sm_90", "sm_120" };

	for (unsigned seed = 0; seed < gemm_seeds(1); seed++)
		gemm_right(&trials[_i], trials[_i].opt.tma ? tma : sync, seed + (unsigned)_i);
}
END_TEST

/* Sums that f32 does not hold. */
START_TEST(sums_have_the_bits_of_f64)
{
	enum { N = 16 };
	const cptx_gemm_opt o = { .size = CPTX_OPT_SIZE(cptx_gemm_opt), F64(16, 16, 16, 1, 1) };
	cptx_error err = { 0 };
	cptx_device *dev = gemm_device(&o, "sm_80", NULL);
	cptx_module *m = cptx_module_new(NULL);
	double a[N][N] = { { 0 } }, b[N][N] = { { 0 } }, d[N][N];
	cptx_gemm_problem p = { .size = CPTX_OPT_SIZE(cptx_gemm_problem), .m = N, .n = N, .k = N };

	for (unsigned i = 0; i < N; i++) {
		a[i][0] = 0x1p40, b[i][0] = 0x1p12, a[i][i] += i + 1;
		for (unsigned j = 1; j < N; j++)
			b[i][j] = i * N + j + 0x1p-20;
	}
	ck_assert(cptx_gemm_build(m, &o, &err) != NULL);
	cptx_program *program = cptx_device_load(dev, m, &(cptx_load_opt){ .target = cptx_device_get_info(dev)->target }, &err);
	p.a = cptx_mem_alloc(dev, sizeof a, &err), p.b = cptx_mem_alloc(dev, sizeof b, &err);
	p.d = cptx_mem_alloc(dev, sizeof d, &err);
	ck_assert(cptx_mem_write(dev, p.a, a, sizeof a, &err) && cptx_mem_write(dev, p.b, b, sizeof b, &err));
	cptx_launch *l = program ? cptx_gemm_launch(program, dev, &o, &p, &err) : NULL;
	ck_assert_msg(l && cptx_launch_run(l, NULL, &err) && cptx_mem_read(dev, d, p.d, sizeof d, &err), "%s", err.text);
	for (unsigned i = 0; i < N; i++)
		for (unsigned j = 0; j < N; j++) {
			double want = 0;
			for (unsigned k = 0; k < N; k++)
				want += a[i][k] * b[j][k];
			ck_assert_double_eq(d[i][j], want);
		}
	cptx_launch_destroy(l);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	cptx_mem_free(dev, p.a), cptx_mem_free(dev, p.b), cptx_mem_free(dev, p.d);
	gemm_device_done(dev, "f64");
}
END_TEST

START_TEST(what_it_cannot_be_is_named)
{
	static const struct {
		cptx_gemm_opt o;
		const char *said;
	} all[] = {
		{ { F64(64, 64, 8, 2, 2) }, "tile K = 8 of .f64; it is 16 or 32" },
		{ { F64(64, 64, 16, 2, 2), .bias = true }, "A and B of .f64 with a bias, which are of f32" },
		{ { F64(64, 64, 16, 2, 2), .stream_k = true }, "A and B of .f64 shared along K (stream_k)" },
		{ { F64(64, 64, 16, 2, 2), .grouped = true }, "A and B of .f64 of a list of problems (grouped)" },
		{ { F64(64, 64, 16, 2, 2), .b_n_major = true }, "elements of .f64 are multiplied along K only" },
		{ { .a = CPTX_F64,
		    .b = CPTX_F64,
		    .out = CPTX_F32,
		    .bm = 64,
		    .bn = 64,
		    .bk = 16,
		    .warps_m = 2,
		    .warps_n = 2,
		    .stages = 2 },
		  "output type .f32 of A and B of .f64; it is f64" },
		{ { .a = CPTX_BF16,
		    .b = CPTX_BF16,
		    .out = CPTX_F64,
		    .bm = 64,
		    .bn = 64,
		    .bk = 64,
		    .warps_m = 2,
		    .warps_n = 2,
		    .stages = 2 },
		  "output type .f64 of A of .bf16" },
		{ { .a = CPTX_F64,
		    .b = CPTX_F64,
		    .out = CPTX_S32,
		    .bm = 64,
		    .bn = 64,
		    .bk = 16,
		    .warps_m = 2,
		    .warps_n = 2,
		    .stages = 2 },
		  "output type .s32 of A and B of .f64; it is f64" },
		{ { .mma = CPTX_GEMM_WGMMA, .a = CPTX_F64, .b = CPTX_F64, .out = CPTX_F64, .bm = 64, .bn = 64, .stages = 2 },
		  "A is .f64 and B .f64; both must be bf16, both f16, both tf32, or" },
	};
	cptx_error err = { 0 };

	ck_assert(!cptx_gemm_check(&all[_i].o, NULL, NULL, &err));
	ck_assert_msg(strstr(err.text, all[_i].said), "%s", err.text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_f64");
	TCase *c = tcase_create("f64");

	tcase_set_timeout(c, 120);
	tcase_add_loop_test(c, what_it_cannot_be_is_named, 0, 9);
	tcase_add_test(c, sums_have_the_bits_of_f64);
	tcase_add_loop_test(c, gives_the_exact_result, 0, (int)(sizeof trials / sizeof *trials));
	suite_add_tcase(s, c);
	return gemm_tests_main("gemm_f64", s);
}
