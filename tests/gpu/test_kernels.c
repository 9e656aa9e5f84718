/* SPDX-License-Identifier: MIT */
/* The generators on a GPU: every element of every case against a reference.  Outputs are poisoned, inputs random. */
#include "hgemm_run.h"
#include "row_run.h"
#include "reference/gemm_check.h"
#include "../test.h"

static cptx_device *dev;

static bool have_gpu(const char *test)
{
	static cptx_error err;

	if (!dev && err.code == CPTX_OK)
		dev = cptx_device_open("cuda", &err);
	if (!dev)
		printf("SKIP %s: no GPU: %s\n", test, err.text), test_skips++;
	return dev != NULL;
}

static const struct {
	uint32_t bm, bn, bk, warps_m, warps_n, stages;
	enum cptx_type in, out;
	uint64_t m, n, k;
} gemms[] = {
/* the small ones first */
#define TUNED 128, 256, 64, 2, 4, 4
	{ TUNED, CPTX_BF16, CPTX_F32, 1, 1, 8 },
	{ TUNED, CPTX_BF16, CPTX_F32, 37, 24, 8 },
	{ TUNED, CPTX_BF16, CPTX_F32, 128, 256, 64 },
	{ TUNED, CPTX_BF16, CPTX_F32, 129, 257, 72 },
	{ TUNED, CPTX_BF16, CPTX_F32, 127, 255, 56 },
	{ TUNED, CPTX_BF16, CPTX_F32, 300, 521, 200 },
	{ TUNED, CPTX_BF16, CPTX_BF16, 77, 1023, 1024 },
	{ TUNED, CPTX_BF16, CPTX_F16, 333, 444, 552 },
	{ TUNED, CPTX_F16, CPTX_F32, 513, 776, 264 },
	{ TUNED, CPTX_F16, CPTX_F16, 640, 1000, 1000 },
	{ TUNED, CPTX_F16, CPTX_BF16, 65, 66, 16 },
	{ 128, 128, 32, 2, 2, 4, CPTX_BF16, CPTX_F32, 513, 1025, 40 },
	{ 128, 128, 32, 2, 2, 5, CPTX_BF16, CPTX_BF16, 1, 2, 24 },
	{ 128, 128, 32, 2, 4, 6, CPTX_F16, CPTX_F16, 300, 301, 304 },
	{ 128, 128, 128, 4, 4, 2, CPTX_BF16, CPTX_F32, 515, 259, 136 },
	{ 64, 64, 32, 2, 2, 4, CPTX_BF16, CPTX_F32, 200, 203, 96 },
	{ 64, 64, 32, 2, 2, 16, CPTX_F16, CPTX_F16, 63, 65, 8 },
	{ 64, 64, 32, 1, 2, 3, CPTX_BF16, CPTX_F32, 70, 71, 4096 },
	{ 96, 128, 32, 2, 2, 4, CPTX_BF16, CPTX_F32, 500, 600, 696 },
	{ 32, 64, 32, 1, 2, 4, CPTX_F16, CPTX_F32, 31, 33, 1024 },
	/* from here on too much for compute-sanitizer */
	{ TUNED, CPTX_BF16, CPTX_F32, 1, 4096, 16384 },
	{ TUNED, CPTX_BF16, CPTX_F32, 4100, 4104, 4104 },
	{ TUNED, CPTX_BF16, CPTX_F32, 5000, 33, 16384 },
	{ TUNED, CPTX_BF16, CPTX_F32, 4096, 4096, 4096 },
	{ TUNED, CPTX_BF16, CPTX_BF16, 1000, 1032, 520 },
	{ TUNED, CPTX_BF16, CPTX_BF16, 2048, 2048, 8192 },
	{ TUNED, CPTX_F16, CPTX_F16, 1999, 2001, 2000 },
	{ 256, 128, 64, 4, 2, 4, CPTX_BF16, CPTX_F32, 1025, 1027, 1032 },
	{ 256, 128, 64, 4, 2, 3, CPTX_BF16, CPTX_BF16, 255, 129, 4096 },
	{ 128, 128, 64, 2, 2, 3, CPTX_BF16, CPTX_F32, 777, 888, 1000 },
	{ 128, 128, 64, 2, 2, 2, CPTX_F16, CPTX_F32, 129, 127, 16384 },
	{ 128, 128, 128, 4, 4, 3, CPTX_F16, CPTX_BF16, 130, 4000, 648 },
	{ 128, 256, 32, 2, 4, 4, CPTX_BF16, CPTX_F32, 999, 1001, 1000 },
	{ 128, 256, 32, 2, 4, 8, CPTX_BF16, CPTX_BF16, 64, 8192, 512 },
	{ 64, 128, 64, 2, 2, 4, CPTX_BF16, CPTX_F32, 17, 4096, 4096 },
	{ 64, 256, 64, 1, 4, 4, CPTX_BF16, CPTX_BF16, 33, 1000, 2048 },
	{ 128, 192, 32, 2, 4, 4, CPTX_BF16, CPTX_F32, 1000, 1000, 1000 },
};

START_TEST(test_gemm)
{
	const cptx_gemm_opt o = { .a = gemms[_i].in,
		                      .b = gemms[_i].in,
		                      .out = gemms[_i].out,
		                      .bm = gemms[_i].bm,
		                      .bn = gemms[_i].bn,
		                      .bk = gemms[_i].bk,
		                      .stages = gemms[_i].stages,
		                      .warps_m = gemms[_i].warps_m,
		                      .warps_n = gemms[_i].warps_n };
	gemm_problem p = { .m = gemms[_i].m, .n = gemms[_i].n, .k = gemms[_i].k, .seed = (uint64_t)_i + 1 };
	gemm_report r;
	cptx_error err = { 0 };

	if (!have_gpu(__func__))
		return;
	cptx_module *m = cptx_module_new(NULL);
	ck_assert_msg(cptx_gemm_build(m, &o, &err) != NULL, "%s", err.text);
	ck_assert_msg(gemm_check(dev, m, &o, &p, &r, &err), "%s", err.text);
	ck_assert_msg(r.wrong == 0, "case %d: %llu of %llu wrong, first at (%llu, %llu): %g, not %g", _i,
	              (unsigned long long)r.wrong, (unsigned long long)r.elements, (unsigned long long)r.wrong_row,
	              (unsigned long long)r.wrong_column, r.wrong_value, r.wrong_reference);
	ck_assert_uint_eq(r.resources.local_bytes, 0);
	cptx_module_destroy(m);
}
END_TEST

static const row_case rows[] = {
	{ ROW_RMS_NORM, 2048, 8192, 512, 1, 0 },   { ROW_SOFTMAX, 2048, 8192, 512, 1, 0 }, { ROW_SWIGLU, 2048, 8192, 256, 4, 0 },
	{ ROW_RMS_NORM, 3, 4, 32, 1, 0 },          { ROW_SOFTMAX, 3, 4, 32, 1, 0 },        { ROW_SWIGLU, 3, 4, 32, 1, 0 },
	{ ROW_RMS_NORM, 7, 1000, 128, 1, 0 },      { ROW_SOFTMAX, 7, 1000, 128, 1, 0 },    { ROW_SWIGLU, 7, 1000, 128, 2, 0 },
	{ ROW_RMS_NORM, 5, 4100, 1024, 1, 0 },     { ROW_SOFTMAX, 5, 4100, 1024, 1, 0 },   { ROW_SWIGLU, 5, 4100, 1024, 8, 0 },
	{ ROW_LAYER_NORM, 2048, 8192, 512, 1, 0 }, { ROW_LAYER_NORM, 7, 1000, 96, 1, 0 },  { ROW_LAYER_NORM, 3, 8, 32, 1, 0 },
	{ ROW_RMS_NORM, 1, 32768, 1024, 1, 0 },    { ROW_SOFTMAX, 1, 32768, 1024, 1, 0 },  { ROW_SWIGLU, 1, 32768, 64, 16, 0 },
};

START_TEST(test_rows)
{
	row_report r;
	cptx_error err = { 0 };

	if (!have_gpu(__func__))
		return;
	ck_assert_msg(row_check(dev, &rows[_i], &r, &err), "%s", err.text);
	ck_assert_msg(r.wrong == 0, "%s %ux%u: %llu wrong", row_name(rows[_i].kernel), rows[_i].rows, rows[_i].n,
	              (unsigned long long)r.wrong);
}
END_TEST

/* The ladder of the examples: each rung with tile K 32 and 64, in turn f16 and bf16. */
static const struct {
	uint64_t m, n, k;
} ladder[] = { { 1, 8, 8 }, { 257, 520, 200 }, { 1000, 1096, 584 }, { 129, 4104, 72 }, { 4100, 2056, 1032 } };
enum { LADDER = sizeof ladder / sizeof *ladder };

START_TEST(test_ladder)
{
	cptx_error err = { 0 };
	gemm_report r;

	if (!have_gpu(__func__))
		return;
	const cptx_target *target = cptx_target_find(cptx_device_get_info(dev)->target);
	gemm_problem p = { .m = ladder[_i].m, .n = ladder[_i].n, .k = ladder[_i].k, .seed = (uint64_t)_i + 1 };
	for (int rung = target->number < 90 ? HGEMM_K_STAGES : HGEMM_TMA_RW; rung >= 0; rung--)
		for (uint32_t bk = 32; bk <= 64; bk *= 2) {
			hgemm_case c = { .rung = (enum hgemm_rung)rung };
			c.o = hgemm_default(c.rung, bk, (_i + rung) % 2 ? CPTX_F16 : CPTX_BF16, target);
			ck_assert_msg(hgemm_run(dev, &c, &p, &r, &err), "%s", err.text);
			ck_assert_msg(r.wrong == 0, "%s, tile K %u, size %d: %llu of %llu wrong, first at (%llu, %llu): %g, not %g",
			              hgemm_name(c.rung), bk, _i, (unsigned long long)r.wrong, (unsigned long long)r.elements,
			              (unsigned long long)r.wrong_row, (unsigned long long)r.wrong_column, r.wrong_value,
			              r.wrong_reference);
			ck_assert_uint_eq(r.resources.local_bytes, 0);
		}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kernels");
	TCase *small = tcase_create("small"), *large = tcase_create("large"); /* CK_RUN_CASE=small under compute-sanitizer */
	const int all = (int)(sizeof gemms / sizeof *gemms), few = all - 17;

	tcase_set_timeout(small, 0);
	tcase_set_timeout(large, 0);
	tcase_add_loop_test(small, test_gemm, 0, few);
	tcase_add_loop_test(small, test_rows, 3, (int)(sizeof rows / sizeof *rows));
	tcase_add_loop_test(small, test_ladder, 0, LADDER - 1);
	tcase_add_loop_test(large, test_ladder, LADDER - 1, LADDER);
	tcase_add_loop_test(large, test_gemm, few, all);
	tcase_add_loop_test(large, test_rows, 0, 3);
	suite_add_tcase(s, small);
	suite_add_tcase(s, large);
	int failed = test_main("kernels", s);
	cptx_device_close(dev);
	return failed;
}
