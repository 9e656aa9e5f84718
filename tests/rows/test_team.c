/* SPDX-License-Identifier: MIT */
/* Row kernels whose CTAs meet in global memory, and errors of f32, on the emulator. */
#include "../ask.h"
#include "../test.h"
#include "reference/number.h"
#include "reference/rows_check.h"

#include <cptx/cptx.h>
#include <cptx/emu.h>

#include <float.h>
#include <math.h>

static void try_one(const char *target, uint32_t sms, const cptx_rows_opt *o, const rows_case *c)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_emu_opt emu = { .seed = c->seed, .threads = 1, .pedantic = true, .sms = sms };
	cptx_device *dev = cptx_emu_open(target, &emu, &err);
	rows_report r;
	char text[300];

	SURE(dev != NULL, "%s", err.text);
	SURE(rows_check(dev, o, c, &r, &err), "%s: %s, .%s, %u x %u: %s", target, cptx_rows_kernel_name(o->kernel),
	     cptx_type_name(o->in), c->rows, o->n, err.text);
	rows_report_text(&r, text, sizeof text);
	SURE(!r.wrong && r.elements, "%s: %s, .%s, %u x %u, %u threads, split %u, seed %llu: %s", target,
	     cptx_rows_kernel_name(o->kernel), cptx_type_name(o->in), c->rows, o->n, r.plan.threads, r.plan.split,
	     (unsigned long long)c->seed, text);
	cptx_device_close(dev);
}

/* As a team of CTAs, which need be no power of two, nor have as many columns each. */
static cptx_rows_opt team_of(enum cptx_rows_kernel kernel, enum cptx_type in, uint32_t n, uint32_t threads, uint32_t split,
                             uint32_t stages)
{
	cptx_rows_opt o = { .kernel = kernel, .in = in, .n = n, .place = CPTX_ROWS_SHARED, .threads = threads };

	o.per_row = threads, o.split = split, o.stages = stages, o.rows_each = 1, o.cooperative = true, o.min_ctas = 2;
	return o;
}

static const struct {
	uint32_t threads, split, n, stages;
} shapes[] = { { 32, 3, 1032, 2 }, { 64, 4, 1536, 1 }, { 96, 2, 2000, 3 }, { 32, 11, 1544, 2 } };

/* All kernels that reduce and write rows; more rows than there are CTAs, fewer, special numbers, results in place. */
START_TEST(teams)
{
	static const struct {
		enum cptx_rows_kernel kernel;
		uint32_t with;
	} all[] = {
		{ CPTX_ROWS_RMS_NORM, CPTX_ROWS_BIT(CPTX_ROWS_W) | CPTX_ROWS_BIT(CPTX_ROWS_RSTD) },
		{ CPTX_ROWS_LAYER_NORM, CPTX_ROWS_BIT(CPTX_ROWS_W) | CPTX_ROWS_BIT(CPTX_ROWS_B) | CPTX_ROWS_BIT(CPTX_ROWS_MEAN) },
		{ CPTX_ROWS_SOFTMAX, CPTX_ROWS_BIT(CPTX_ROWS_LSE) },
		{ CPTX_ROWS_LOG_SOFTMAX, 0 },
		{ CPTX_ROWS_CROSS_ENTROPY, CPTX_ROWS_BIT(CPTX_ROWS_DX) },
		{ CPTX_ROWS_ADD_RMS_NORM, 0 },
		{ CPTX_ROWS_SOFTMAX_BACKWARD, 0 },
		{ CPTX_ROWS_RMS_NORM_BACKWARD, CPTX_ROWS_BIT(CPTX_ROWS_DW) | CPTX_ROWS_BIT(CPTX_ROWS_W) },
		{ CPTX_ROWS_LAYER_NORM_BACKWARD, CPTX_ROWS_BIT(CPTX_ROWS_DW) | CPTX_ROWS_BIT(CPTX_ROWS_DB) },
	};

	for (unsigned k = 0; k < sizeof all / sizeof *all; k++)
		for (unsigned i = 0; i < 2; i++) {
			const unsigned s = (k + i * 2) % (sizeof shapes / sizeof *shapes);
			const bool is_loss = all[k].kernel == CPTX_ROWS_CROSS_ENTROPY;
			cptx_rows_opt o = team_of(all[k].kernel, (k + i) % 2 ? CPTX_F32 : CPTX_BF16, shapes[s].n, shapes[s].threads,
			                          shapes[s].split, shapes[s].stages);
			o.with = all[k].with, o.smoothing = is_loss && i ? 0.1f : 0;
			const bool backward = all[k].kernel >= CPTX_ROWS_RMS_NORM_BACKWARD;
			try_one(i ? "sm_100a" : "sm_90a", 8, &o,
			        &(rows_case){ .rows = i ? 3 : 40,
			                      .seed = k * 2 + i + 1,
			                      .pad = 8,
			                      .in_place = i,
			                      .special = !i && !backward && !is_loss });
		}
}
END_TEST

/* One call does all, with the workspace that it asks for, also where there are no rows. */
START_TEST(by_the_runner)
{
	enum { ROWS = 5, N = 1032 };
	static float x[ROWS][N], y[ROWS][N], dw[N];
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
	cptx_rows_opt o = team_of(CPTX_ROWS_SOFTMAX, CPTX_F32, N, 32, 3, 2);
	cptx_rows_problem p = { .rows = ROWS };

	for (int i = 0; i < ROWS * N; i++)
		x[i / N][i % N] = (float)(i % 7);
	p.at[CPTX_ROWS_X].address = cptx_mem_alloc(dev, sizeof x, &err);
	p.at[CPTX_ROWS_Y].address = cptx_mem_alloc(dev, sizeof y, &err);
	cptx_mem_write(dev, p.at[CPTX_ROWS_X].address, x, sizeof x, &err);
	ck_assert(!cptx_rows_run(r, &o, &p, NULL, &err));
	SURE(strstr(err.text, "the problem has no workspace; CTAs that meet there need"), "%s", err.text);
	err = (cptx_error){ .code = CPTX_OK };
	const uint64_t bytes = cptx_rows_workspace(r, &o, ROWS, &err);
	ck_assert_msg(bytes > 0, "%s", err.text);
	p.workspace = cptx_mem_alloc(dev, bytes, &err);
	for (int again = 0; again < 2; again++) { /* the second time the workspace has what the first one left, of other rows */
		for (int i = 0; i < ROWS * N; i++)
			x[i / N][i % N] = (float)(i % 7) * (again ? -1 : 1);
		cptx_mem_write(dev, p.at[CPTX_ROWS_X].address, x, sizeof x, &err);
		ck_assert_msg(cptx_rows_run(r, &o, &p, NULL, &err), "%s", err.text);
		cptx_mem_read(dev, y, p.at[CPTX_ROWS_Y].address, sizeof y, &err);
		for (int row = 0; row < ROWS; row++) {
			double sum = 0;
			for (int c = 0; c < N; c++)
				sum += (double)y[row][c];
			SURE(fabs(sum - 1) < 1e-6, "row %d has the sum %g", row, sum);
		}
	}
	cptx_rows_opt open = {
		.kernel = CPTX_ROWS_SOFTMAX, .in = CPTX_F32, .n = N, .place = CPTX_ROWS_SHARED
	}; /* a team or not */
	p.workspace = 0;
	ck_assert_msg(cptx_rows_run(r, &open, &p, NULL, &err), "%s", err.text);
	cptx_rows_opt back = team_of(CPTX_ROWS_RMS_NORM_BACKWARD, CPTX_F32, N, 32, 3, 2);
	cptx_rows_problem none = { .rows = 0 };
	back.with = CPTX_ROWS_BIT(CPTX_ROWS_DW);
	none.at[CPTX_ROWS_DW].address = cptx_mem_alloc(dev, sizeof dw, &err);
	memset(dw, 0xff, sizeof dw);
	cptx_mem_write(dev, none.at[CPTX_ROWS_DW].address, dw, sizeof dw, &err);
	none.workspace = cptx_mem_alloc(dev, cptx_rows_workspace(r, &back, 0, &err), &err);
	ck_assert_msg(cptx_rows_run(r, &back, &none, NULL, &err), "%s", err.text);
	cptx_mem_read(dev, dw, none.at[CPTX_ROWS_DW].address, sizeof dw, &err);
	for (int i = 0; i < N; i++)
		SURE(!(dw[i] < 0) && !(dw[i] > 0), "dw[%d] of no rows is %g", i, (double)dw[i]);
	cptx_rows_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

static void refuses(cptx_rows_opt o, const char *says)
{
	cptx_error err = { .code = CPTX_OK };

	ck_assert_msg(!cptx_rows_check(&o, cptx_target_find("sm_90a"), 4, 0, NULL, &err) && strstr(err.text, says),
	              "%s\nnot: %s", err.text, says);
}

START_TEST(rules)
{
	cptx_rows_opt o = team_of(CPTX_ROWS_SOFTMAX, CPTX_BF16, 4096, 64, 3, 2);

	ck_assert(cptx_rows_check(&o, cptx_target_find("sm_90a"), 4, 0, NULL, NULL));
	o.split = 1;
	refuses(o, "1 CTAs for a row, .cooperative; that is of 2 CTAs and more");
	o.split = 33;
	refuses(o, "rows of 33 CTAs; .split is a number up to 32");
	o.split = 2, o.stages = 1, o.chunks = 4;
	refuses(o, "CTAs of rows in shared, in chunks, .cooperative; that is of whole rows in shared memory");
	o.chunks = 0, o.place = CPTX_ROWS_REGISTERS;
	refuses(o, "CTAs of rows in registers, .cooperative");
	o.place = CPTX_ROWS_SHARED, o.split = 3, o.cooperative = false;
	refuses(o, "rows of 3 CTAs; .split is a power of two up to 16");
}
END_TEST

/* The kernel may begin before the launch in front of it ends, and waits for that before it counts, or meets. */
START_TEST(waits_for_the_clearing)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_rows_opt o = team_of(CPTX_ROWS_SOFTMAX, CPTX_BF16, 4096, 64, 3, 2);
	cptx_module *m = cptx_module_new(NULL);

	ck_assert_msg(cptx_rows_build(m, &o, &err) != NULL, "%s", err.text);
	cptx_ptx *ptx = cptx_emit(m, "sm_90a", NULL, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	const char *text = cptx_ptx_text(ptx), *counts = strstr(text, "atom."), *meets = strstr(text, "st.relaxed.gpu.global");
	const char *by_one = strstr(text, "griddepcontrol.wait"),
			   *by_all = by_one ? strstr(by_one + 1, "griddepcontrol.wait") : NULL;
	ck_assert(counts && meets && by_one && by_all && by_one < counts && by_all < meets);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}
END_TEST

/* A row of large elements that are all the same is zeros in each way of holding it: no sum of theirs is infinite. */
START_TEST(means_of_large_elements)
{
	enum { N = 1024 };
	static float x[N], y[N];
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
	cptx_rows_opt all[] = { team_of(CPTX_ROWS_LAYER_NORM, CPTX_F32, N, 32, 4, 1),
		                    { .place = CPTX_ROWS_REGISTERS, .threads = 64, .split = 1 },
		                    { .place = CPTX_ROWS_REGISTERS, .threads = 64, .split = 2 },
		                    { .place = CPTX_ROWS_MEMORY, .threads = 64, .split = 1 } };
	cptx_rows_problem p = { .rows = 1 };

	for (int i = 0; i < N; i++)
		x[i] = 3e38f;
	p.at[CPTX_ROWS_X].address = cptx_mem_alloc(dev, sizeof x, &err);
	p.at[CPTX_ROWS_Y].address = cptx_mem_alloc(dev, sizeof y, &err);
	p.workspace = cptx_mem_alloc(dev, 4096, &err);
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
	Suite *s = suite_create("rows_team");

	tcase_add_test(test_case(s, "teams"), teams);
	tcase_add_test(test_case(s, "runner"), by_the_runner);
	tcase_add_test(test_case(s, "rules"), rules);
	tcase_add_test(test_case(s, "waits"), waits_for_the_clearing);
	tcase_add_test(test_case(s, "means"), means_of_large_elements);
	tcase_add_test(test_case(s, "powers"), powers_of_f32);
	return test_main("rows_team", s);
}
