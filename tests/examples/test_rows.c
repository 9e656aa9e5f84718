/* SPDX-License-Identifier: MIT */
/* The row kernels on the emulator: rows shorter than the CTA, rows that fill no turn of it, numbers of warps of all kinds.
 */
#include "../test.h"
#include "row_run.h"

static const row_case rows[] = {
	{ ROW_RMS_NORM, 3, 4, 32, 1, 0 },      { ROW_SOFTMAX, 3, 4, 32, 1, 0 },     { ROW_SWIGLU, 3, 4, 32, 1, 0 },
	{ ROW_RMS_NORM, 2, 1000, 128, 1, 0 },  { ROW_SOFTMAX, 2, 1000, 128, 1, 0 }, { ROW_SWIGLU, 2, 1000, 128, 2, 0 },
	{ ROW_LAYER_NORM, 2, 1000, 96, 1, 0 }, { ROW_LAYER_NORM, 3, 8, 32, 1, 0 },  { ROW_SOFTMAX, 2, 4100, 1024, 1, 0 },
};

START_TEST(rows_are_right)
{
	cptx_error err = { 0 };
	cptx_device *dev = cptx_device_open("emu:sm_80", &err);
	row_report r;

	ck_assert_msg(dev != NULL, "%s", err.text);
	ck_assert_msg(row_check(dev, &rows[_i], &r, &err), "%s", err.text);
	ck_assert_msg(r.wrong == 0, "%s %ux%u: %llu wrong", row_name(rows[_i].kernel), rows[_i].rows, rows[_i].n,
	              (unsigned long long)r.wrong);
	cptx_device_close(dev);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rows");
	TCase *t = test_case(s, "rows");

	tcase_add_loop_test(t, rows_are_right, 0, sizeof rows / sizeof *rows);
	return test_main("rows", s);
}
