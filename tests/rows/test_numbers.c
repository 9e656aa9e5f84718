/* SPDX-License-Identifier: MIT */
/* Numbers of row kernels in f32 on the emulator: large ones, and how much powers err. */
#include "../test.h"
#include "reference/number.h"

#include <cptx/cptx.h>
#include <cptx/emu.h>
#include <cptx/rows.h>

#include <math.h>

/* A row of large elements that are all the same is zeros in each way of holding it: no sum of theirs is infinite. */
START_TEST(means_of_large_elements)
{
	enum { N = 1024 };
	static float x[N], y[N];
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
	cptx_rows_opt all[] = { { .place = CPTX_ROWS_REGISTERS, .threads = 64, .split = 1 },
		                    { .place = CPTX_ROWS_REGISTERS, .threads = 64, .split = 2 },
		                    { .place = CPTX_ROWS_MEMORY, .threads = 64, .split = 1 } };
	cptx_rows_problem p = { .rows = 1 };

	for (int i = 0; i < N; i++)
		x[i] = 3e38f;
	p.at[CPTX_ROWS_X].address = cptx_mem_alloc(dev, sizeof x, &err);
	p.at[CPTX_ROWS_Y].address = cptx_mem_alloc(dev, sizeof y, &err);
	cptx_mem_write(dev, p.at[CPTX_ROWS_X].address, x, sizeof x, &err);
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		all[i].kernel = CPTX_ROWS_LAYER_NORM, all[i].in = CPTX_F32, all[i].n = N, all[i].per_row = all[i].threads;
		memset(y, 0xff, sizeof y);
		cptx_mem_write(dev, p.at[CPTX_ROWS_Y].address, y, sizeof y, &err);
		ck_assert_msg(cptx_rows_run(r, &all[i], &p, NULL, &err), "%s", err.text);
		cptx_mem_read(dev, y, p.at[CPTX_ROWS_Y].address, sizeof y, &err);
		for (int c = 0; c < N; c++)
			SURE(!(y[c] < 0) && !(y[c] > 0), "shape %u: element %d is %g", i, c, (double)y[c]);
	}
	cptx_rows_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

/* Small probabilities err by little more than their last bit, though their exponents are rounded (else by 2e-6). */
START_TEST(powers_of_f32)
{
	enum { N = 4096 };
	static float x[N], y[N];
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
	const cptx_rows_opt o = { .kernel = CPTX_ROWS_SOFTMAX, .in = CPTX_F32, .n = N };
	cptx_rows_problem p = { .rows = 1 };
	uint64_t seed = 88172645463325252u;
	double sum = 0, worst = 0;

	for (int i = 0; i < N; i++)
		x[i] = (float)(number_random(&seed) >> 46) * 0x1p-12f - 32; /* all differences are exact */
	p.at[CPTX_ROWS_X].address = cptx_mem_alloc(dev, sizeof x, &err);
	p.at[CPTX_ROWS_Y].address = cptx_mem_alloc(dev, sizeof y, &err);
	cptx_mem_write(dev, p.at[CPTX_ROWS_X].address, x, sizeof x, &err);
	ck_assert_msg(cptx_rows_run(r, &o, &p, NULL, &err), "%s", err.text);
	cptx_mem_read(dev, y, p.at[CPTX_ROWS_Y].address, sizeof y, &err);
	for (int i = 0; i < N; i++)
		sum += exp((double)x[i]);
	for (int i = 0; i < N; i++)
		worst = fmax(worst, fabs((double)y[i] / (exp((double)x[i]) / sum) - 1));
	SURE(worst < 4e-7, "the largest relative error is %g", worst);
	cptx_rows_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rows_numbers");

	tcase_add_test(test_case(s, "means"), means_of_large_elements);
	tcase_add_test(test_case(s, "powers"), powers_of_f32);
	return test_main("rows_numbers", s);
}
