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

/* What a kernel of one row with these operands writes to `out`, of x; what it reads besides is 1. */
static void run_row(cptx_rows_opt o, uint32_t operands, enum cptx_rows_operand out, const float *x, float *y)
{
	static const float ones[] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
	cptx_rows_problem p = { .rows = 1 };

	o.in = CPTX_F32, o.n = sizeof ones / sizeof *ones;
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		if (!(operands & CPTX_ROWS_BIT(i)))
			continue;
		p.at[i].address = cptx_mem_alloc(dev, sizeof ones, &err);
		cptx_mem_write(dev, p.at[i].address, i == CPTX_ROWS_X ? x : ones, sizeof ones, &err);
	}
	ck_assert_msg(cptx_rows_run(r, &o, &p, NULL, &err), "%s", err.text);
	cptx_mem_read(dev, y, p.at[out].address, sizeof ones, &err);
	cptx_rows_runner_destroy(r);
	cptx_device_close(dev);
}

/* Gates far from 0: normal numbers are no zeros, and slopes are numbers. */
START_TEST(gates_far_out)
{
	static const float x[8] = { -88.5f, -86.99f, -87.01f, -87.5f, -90, -91.5f, -1e30f, 100 };
	static const float large[8] = { 5e19f, -5e19f, 1e30f, -1e30f, 3e38f, -3e38f, 1e19f, -1e19f };
	const uint32_t in = CPTX_ROWS_BIT(CPTX_ROWS_X), x2 = CPTX_ROWS_BIT(CPTX_ROWS_X2), out = CPTX_ROWS_BIT(CPTX_ROWS_Y);
	const uint32_t slope = in | CPTX_ROWS_BIT(CPTX_ROWS_DY) | CPTX_ROWS_BIT(CPTX_ROWS_DX);
	float y[8];

	run_row((cptx_rows_opt){ .kernel = CPTX_ROWS_SWIGLU }, in | x2 | out, CPTX_ROWS_Y, x, y);
	for (int i = 0; i < 8; i++) {
		const double right = (double)x[i] / (1 + exp(-(double)x[i]));
		SURE(fabs((double)y[i] - right) <= 3e-7 * fabs(right), "swiglu of %g is %g", (double)x[i], (double)y[i]);
	}
	run_row((cptx_rows_opt){ .kernel = CPTX_ROWS_SWIGLU_BACKWARD }, slope | x2 | CPTX_ROWS_BIT(CPTX_ROWS_DX2), CPTX_ROWS_DX,
	        x, y);
	for (int i = 0; i < 8; i++) {
		const double s = 1 / (1 + exp(-(double)x[i])), right = s * (1 + (double)x[i] * (1 - s));
		SURE(fabs((double)y[i] - right) <= 3e-7 * fabs(right), "the slope at %g is %g", (double)x[i], (double)y[i]);
	}
	run_row((cptx_rows_opt){ .kernel = CPTX_ROWS_GELU_BACKWARD, .tanh = true }, slope, CPTX_ROWS_DX, large, y);
	for (int i = 0; i < 8; i++)
		SURE(y[i] == (large[i] > 0 ? 1.0f : 0.0f), "the slope at %g is %g", (double)large[i], (double)y[i]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rows_numbers");

	tcase_add_test(test_case(s, "means"), means_of_large_elements);
	tcase_add_test(test_case(s, "powers"), powers_of_f32);
	tcase_add_test(test_case(s, "gates"), gates_far_out);
	return test_main("rows_numbers", s);
}
