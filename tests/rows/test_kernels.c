/* SPDX-License-Identifier: MIT */
/* Each row kernel on the emulator, every element against f64, with all findings; and ptxas takes what is chosen for a GPU.
 */
#include "../ask.h"
#include "../test.h"
#include "../verify/assemble.h"
#include "../whole.h"
#include "reference/number.h"
#include "reference/rows_check.h"

#include <cptx/cptx.h>
#include <cptx/emu.h>

#include <math.h>

static const char *const targets[] = { "sm_80", "sm_90a", "sm_100a", "sm_120a" };
static const enum cptx_type types[] = { CPTX_BF16, CPTX_F32, CPTX_F16 };

/* All operands that the kernel may have, as the library does not refuse them. */
static uint32_t all_of(enum cptx_rows_kernel kernel)
{
	uint32_t with = 0;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		cptx_rows_opt o = { .kernel = kernel, .in = CPTX_F32, .n = 1, .with = 1u << i };
		cptx_error err = { .code = CPTX_OK };
		with |= cptx_rows_check(&o, NULL, 1, 0, NULL, &err) ? 1u << i : 0;
	}
	return with;
}

static bool on_target(const cptx_rows_opt *o, const char *target)
{
	return o->kernel != CPTX_ROWS_QUANTIZE || o->out == CPTX_E2M1 || strcmp(target, "sm_80") != 0;
}

static void try_one(const char *target, const cptx_rows_opt *o, const rows_case *c)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_emu_opt emu = { .seed = c->seed, .threads = 1, .pedantic = true };
	cptx_device *dev = cptx_emu_open(target, &emu, &err);
	rows_report r;
	char text[300];

	SURE(dev != NULL, "%s", err.text);
	SURE(rows_check(dev, o, c, &r, &err), "%s: %s, .%s, %u x %u: %s", target, cptx_rows_kernel_name(o->kernel),
	     cptx_type_name(o->in), c->rows, o->n, err.text);
	rows_report_text(&r, text, sizeof text);
	SURE(!r.wrong && (r.elements || !c->rows),
	     "%s: %s, .%s, %u x %u, place %d, %u threads, %u a row, split %u, seed %llu: %s", target,
	     cptx_rows_kernel_name(o->kernel), cptx_type_name(o->in), c->rows, o->n, (int)r.plan.place, r.plan.threads,
	     r.plan.per_row, r.plan.split, (unsigned long long)c->seed, text);
	cptx_device_close(dev);
}

/* Options that the kernel takes, asked for by the seed's bits. */
static cptx_rows_opt options_of(enum cptx_rows_kernel kernel, uint64_t bits)
{
	cptx_rows_opt o = { .kernel = kernel, .in = types[bits % 3], .weight = bits & 4 ? CPTX_F32 : (enum cptx_type)0 };
	const bool loss = kernel == CPTX_ROWS_CROSS_ENTROPY || kernel == CPTX_ROWS_CROSS_ENTROPY_BACKWARD;
	const bool gelu = kernel == CPTX_ROWS_GELU || kernel == CPTX_ROWS_GEGLU || kernel == CPTX_ROWS_GELU_BACKWARD ||
	                  kernel == CPTX_ROWS_GEGLU_BACKWARD;

	o.with = all_of(kernel) & (bits & 8 ? ~0u : (uint32_t)(bits >> 8));
	if (kernel != CPTX_ROWS_QUANTIZE && kernel != CPTX_ROWS_TRANSPOSE && bits & 16)
		o.out = types[bits >> 5 & 1];
	o.index = bits & 64 ? CPTX_S32 : CPTX_S64;
	if (loss && bits & 128)
		o.smoothing = 0.1f, o.z_loss = 1e-3f, o.ignore = true, o.ignored_label = -100;
	o.tanh = gelu && bits & 128;
	if (kernel == CPTX_ROWS_ROTARY || kernel == CPTX_ROWS_ROTARY_PAIRS)
		o.heads = bits & 128 ? 3 : 1;
	if (kernel == CPTX_ROWS_TOP_K)
		o.k = bits & 128 ? 1 + (uint32_t)(bits >> 53) % 64 : 1;
	return o;
}

/* Rows of about n elements, as many as the kernel takes. */
static void set_length(cptx_rows_opt *o, uint32_t n)
{
	o->n = o->kernel == CPTX_ROWS_ROTARY_PAIRS ? (n + 1) / 2 * 2 : n;
	o->k = o->k < o->n ? o->k : o->n;
}

START_TEST(each_kernel)
{
	static const uint32_t sizes[][2] = { { 5, 264 }, { 37, 33 }, { 2, 2056 } };

	for (int kernel = CPTX_ROWS_OWN + 1; kernel < CPTX_ROWS_KERNELS; kernel++)
		for (unsigned t = 0; t < sizeof targets / sizeof *targets; t++) {
			const unsigned i = ((unsigned)kernel + t) % 3;
			cptx_rows_opt o = options_of((enum cptx_rows_kernel)kernel, 8 | (t & 1 ? 128 : 0) | i);
			o.in = types[i], set_length(&o, sizes[i][1]);
			if (on_target(&o, targets[t]))
				try_one(targets[t], &o, &(rows_case){ .rows = sizes[i][0], .seed = (uint64_t)kernel * 4 + t + 1 });
		}
}
END_TEST

/* Each way of holding a row, with lengths that fill it and lengths that do not. */
START_TEST(shapes)
{
	static const struct {
		enum cptx_rows_place place;
		uint32_t threads, per_row, split, n, rows, stages;
	} all[] = {
		{ CPTX_ROWS_REGISTERS, 64, 1, 1, 8, 70, 0 },
		{ CPTX_ROWS_REGISTERS, 32, 4, 1, 61, 9, 0 },
		{ CPTX_ROWS_REGISTERS, 64, 32, 1, 256, 3, 0 },
		{ CPTX_ROWS_REGISTERS, 32, 32, 1, 511, 3, 0 },
		{ CPTX_ROWS_REGISTERS, 96, 96, 1, 1000, 2, 0 },
		{ CPTX_ROWS_REGISTERS, 64, 64, 2, 1024, 3, 0 },
		{ CPTX_ROWS_REGISTERS, 32, 32, 16, 2051, 2, 0 },
		{ CPTX_ROWS_REGISTERS, 64, 64, 8, 1600, 2, 0 },
		{ CPTX_ROWS_MEMORY, 64, 64, 1, 3000, 2, 0 },
		{ CPTX_ROWS_MEMORY, 32, 32, 4, 4097, 2, 0 },
		/* several rows of a CTA, rows that end within a turn, a last CTA with fewer columns; more rows than CTAs */
		{ CPTX_ROWS_SHARED, 64, 8, 1, 136, 70, 2 },
		{ CPTX_ROWS_SHARED, 64, 64, 1, 1544, 136, 3 },
		{ CPTX_ROWS_SHARED, 32, 32, 4, 1032, 34, 1 },
	};
	static const enum cptx_rows_kernel kernels[] = {
		CPTX_ROWS_LAYER_NORM,        CPTX_ROWS_SOFTMAX, CPTX_ROWS_CROSS_ENTROPY,
		CPTX_ROWS_RMS_NORM_BACKWARD, CPTX_ROWS_SWIGLU,  CPTX_ROWS_ADD_RMS_NORM
	};

	for (unsigned k = 0; k < sizeof kernels / sizeof *kernels; k++)
		for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
			cptx_rows_opt o = options_of(kernels[k], 8 | 128 | (k + i) % 3);
			o.n = all[i].n, o.place = all[i].place, o.threads = all[i].threads, o.per_row = all[i].per_row,
			o.split = all[i].split, o.stages = all[i].stages;
			o.rows_each = o.stages == 1 ? 8 : o.stages ? 64 : 0;
			const bool dense = o.place == CPTX_ROWS_SHARED;
			if (dense)
				o.out = o.in;
			try_one(i % 2 ? "sm_90a" : "sm_100a", &o,
			        &(rows_case){ .rows = all[i].rows, .seed = i + 1, .pad = dense ? 8 : i % 3, .off = dense ? 0 : i % 2 });
		}
}
END_TEST

/* Shared memory with chunks of rows: as many as a row has, more, those of several rows; rows of one chunk, and more rows
 * than CTAs; a last chunk with fewer columns. */
START_TEST(chunks)
{
	static const struct {
		uint32_t threads, split, n, chunks;
	} all[] = { { 32, 1, 1544, 4 }, { 64, 2, 5136, 5 }, { 32, 4, 1056, 3 }, { 64, 1, 4096, 2 } };
	static const enum cptx_rows_kernel kernels[] = { CPTX_ROWS_LAYER_NORM,       CPTX_ROWS_SOFTMAX, CPTX_ROWS_CROSS_ENTROPY,
		                                             CPTX_ROWS_SOFTMAX_BACKWARD, CPTX_ROWS_SWIGLU,  CPTX_ROWS_ADD_RMS_NORM };

	for (unsigned i = 0; i < sizeof kernels / sizeof *kernels * 2; i++) {
		const unsigned s = i % (sizeof all / sizeof *all);
		cptx_rows_opt o = options_of(kernels[i / 2], 8 | 128 | i % 2);
		o.out = (enum cptx_type)0, o.place = CPTX_ROWS_SHARED, o.stages = 1, o.rows_each = 64, o.n = all[s].n;
		o.threads = o.per_row = all[s].threads, o.split = all[s].split, o.chunks = all[s].chunks;
		o.rows_each = s == 3 ? 1 : 64;
		while (!cptx_rows_check(&o, NULL, 5, 0, NULL, NULL)) /* f32 has more chunks of fewer elements */
			SURE(o.chunks++ < 16, "%s: no number of chunks", cptx_rows_kernel_name(o.kernel));
		try_one(i % 2 ? "sm_100a" : "sm_90a", &o,
		        &(rows_case){ .rows = i % 3 ? 5 : 136, .seed = i + 1, .pad = 8, .in_place = i % 2, .special = i == 3 });
	}
}
END_TEST

/* Rows in parts: what is found of each is put together by a second launch. */
START_TEST(parts)
{
	static const struct {
		enum cptx_rows_place place;
		uint32_t threads, split, n, rows, stages;
	} all[] = {
		{ CPTX_ROWS_REGISTERS, 64, 2, 1024, 3, 0 },
		{ CPTX_ROWS_REGISTERS, 32, 32, 8003, 5, 0 },
		{ CPTX_ROWS_MEMORY, 32, 4, 4097, 2, 0 },
		{ CPTX_ROWS_SHARED, 32, 8, 1032, 34, 2 },
	};

	for (unsigned i = 0; i < 2 * sizeof all / sizeof *all; i++) {
		const unsigned j = i / 2;
		cptx_rows_opt o = { .kernel = i % 2 ? CPTX_ROWS_ARGMAX : CPTX_ROWS_CROSS_ENTROPY,
			                .in = types[i % 3],
			                .n = all[j].n };
		o.with = i % 2 ? 0 : CPTX_ROWS_BIT(CPTX_ROWS_LSE), o.smoothing = i % 2 ? 0 : 0.1f;
		o.place = all[j].place, o.threads = o.per_row = all[j].threads, o.split = all[j].split, o.stages = all[j].stages,
		o.rows_each = o.stages ? 8 : 0;
		try_one(i < 4 ? "sm_80" : "sm_90a", &o, &(rows_case){ .rows = all[j].rows, .seed = i + 1, .special = i % 4 == 0 });
	}
}
END_TEST

/* Each way in which threads find the largest elements, with rows of equal ones, of NaN and of infinities. */
START_TEST(largest)
{
	static const struct {
		enum cptx_rows_place place;
		uint32_t threads, per_row, split, n, k, rows, stages;
	} all[] = {
		{ CPTX_ROWS_REGISTERS, 64, 1, 1, 8, 3, 70, 0 },
		{ CPTX_ROWS_REGISTERS, 32, 4, 1, 61, 9, 9, 0 },
		{ CPTX_ROWS_REGISTERS, 64, 16, 1, 256, 8, 17, 0 },
		{ CPTX_ROWS_REGISTERS, 64, 32, 1, 511, 33, 17, 0 },
		{ CPTX_ROWS_REGISTERS, 128, 128, 1, 2000, 64, 8, 0 },
		{ CPTX_ROWS_REGISTERS, 64, 64, 2, 1024, 64, 8, 0 },
		{ CPTX_ROWS_REGISTERS, 32, 32, 32, 4003, 7, 8, 0 },
		{ CPTX_ROWS_MEMORY, 64, 64, 1, 2100, 16, 8, 0 },
		{ CPTX_ROWS_MEMORY, 32, 32, 4, 2049, 20, 8, 0 },
		{ CPTX_ROWS_SHARED, 64, 8, 1, 136, 2, 70, 2 },
		{ CPTX_ROWS_SHARED, 64, 64, 1, 1544, 11, 40, 2 },
		{ CPTX_ROWS_SHARED, 32, 32, 8, 2064, 40, 16, 1 },
		/* a warp sorts, by keys of 32 bits and of 64 */
		{ CPTX_ROWS_REGISTERS, 256, 256, 1, 9000, 64, 8, 0 },
		{ CPTX_ROWS_REGISTERS, 64, 32, 1, 300, 64, 16, 0 },
		{ CPTX_ROWS_REGISTERS, 32, 32, 1, 17, 17, 10, 0 },
		{ CPTX_ROWS_REGISTERS, 256, 256, 1, 9000, 30, 8, 0 },
		{ CPTX_ROWS_MEMORY, 64, 64, 1, 2100, 30, 8, 0 },
	};

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		cptx_rows_opt o = { .kernel = CPTX_ROWS_TOP_K, .in = types[i % 3], .n = all[i].n, .k = all[i].k };
		o.place = all[i].place, o.threads = all[i].threads, o.per_row = all[i].per_row, o.split = all[i].split,
		o.stages = all[i].stages, o.rows_each = o.stages ? 8 : 0, o.index = i % 2 ? CPTX_S32 : CPTX_S64;
		try_one(o.stages || i % 2 ? "sm_90a" : "sm_80", &o,
		        &(rows_case){ .rows = all[i].rows, .seed = i + 1, .special = true });
	}
}
END_TEST

/* Both zeros are equal, and come back as +0: from the list, and where one is looked for after another. */
START_TEST(largest_zeros)
{
	enum { N = 4096, K = 4 };
	static float x[N];
	float top[K];
	int32_t at[K];
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
	cptx_rows_opt o = { .kernel = CPTX_ROWS_TOP_K, .in = CPTX_F32, .n = N, .index = CPTX_S32, .k = K };
	cptx_rows_problem p = { .rows = 1 };

	o.place = CPTX_ROWS_MEMORY, o.threads = o.per_row = 64, o.split = 1;
	p.at[CPTX_ROWS_X].address = cptx_mem_alloc(dev, sizeof x, &err);
	p.at[CPTX_ROWS_TOP].address = cptx_mem_alloc(dev, sizeof top, &err);
	p.at[CPTX_ROWS_AT].address = cptx_mem_alloc(dev, sizeof at, &err);
	for (int few = 0; few < 2; few++) {
		for (int i = 0; i < N; i++)
			x[i] = few && i >= K ? -1 : i % 2 ? 0.0f : -0.0f;
		cptx_mem_write(dev, p.at[CPTX_ROWS_X].address, x, sizeof x, &err);
		ck_assert_msg(cptx_rows_run(r, &o, &p, NULL, &err), "%s", err.text);
		cptx_mem_read(dev, top, p.at[CPTX_ROWS_TOP].address, sizeof top, &err);
		cptx_mem_read(dev, at, p.at[CPTX_ROWS_AT].address, sizeof at, &err);
		for (int i = 0; i < K; i++)
			SURE(!(top[i] < 0) && !(top[i] > 0) && !signbit(top[i]) && at[i] == i, "number %d: %g at %d", i, (double)top[i],
			     (int)at[i]);
	}
	cptx_rows_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

/* Sums of columns over thousands of rows err no more than those of blocks do: of terms of one sign, half of a plain sum's
 * error. */
START_TEST(long_sums)
{
	enum { ROWS = 20000, N = 8 };
	static float x[ROWS][N], dw[N];
	double sum[N] = { 0 }, worst = 0;
	uint64_t seed = 88172645463325252u;
	cptx_error err = { .code = CPTX_OK };
	cptx_emu_opt emu = { .sms = 1 };
	cptx_device *dev = cptx_emu_open("sm_90a", &emu, &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
	cptx_rows_opt o = {
		.kernel = CPTX_ROWS_COLUMN_SUM, .in = CPTX_F32, .n = N, .place = CPTX_ROWS_REGISTERS, .threads = 32
	};
	cptx_rows_problem p = { .rows = ROWS };

	o.per_row = 32, o.split = 1;
	for (int i = 0; i < ROWS * N; i++) {
		x[i / N][i % N] = (float)(number_random(&seed) >> 40) * 0x1p-24f;
		sum[i % N] += (double)x[i / N][i % N];
	}
	p.at[CPTX_ROWS_X].address = cptx_mem_alloc(dev, sizeof x, &err);
	p.at[CPTX_ROWS_DW].address = cptx_mem_alloc(dev, sizeof dw, &err);
	p.workspace = cptx_mem_alloc(dev, cptx_rows_workspace(r, &o, ROWS, &err), &err);
	cptx_mem_write(dev, p.at[CPTX_ROWS_X].address, x, sizeof x, &err);
	ck_assert_msg(cptx_rows_run(r, &o, &p, NULL, &err), "%s", err.text);
	cptx_mem_read(dev, dw, p.at[CPTX_ROWS_DW].address, sizeof dw, &err);
	for (int i = 0; i < N; i++)
		worst = fmax(worst, fabs((double)dw[i] - sum[i]) / sum[i]);
	SURE(worst < 7e-8, "the largest relative error is %g", worst);
	x[7][1] = INFINITY;
	cptx_mem_write(dev, p.at[CPTX_ROWS_X].address, x, sizeof x, &err);
	ck_assert_msg(cptx_rows_run(r, &o, &p, NULL, &err), "%s", err.text);
	cptx_mem_read(dev, dw, p.at[CPTX_ROWS_DW].address, sizeof dw, &err);
	SURE(isinf(dw[1]) && fabs((double)dw[0] - sum[0]) < 7e-8 * sum[0], "%g, %g", (double)dw[0], (double)dw[1]);
	cptx_rows_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

/* The slope of GELU in f32 errs no more than PyTorch's, 1.31e-7 of the largest, by 1/2 (1 + erf) + x * bell. */
START_TEST(gelu_slope)
{
	enum { N = 24000 };
	static float x[N], dx[N], ones[N];
	double worst = 0;
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
	cptx_rows_opt o = { .kernel = CPTX_ROWS_GELU_BACKWARD, .in = CPTX_F32, .n = N };
	cptx_rows_problem p = { .rows = 1 };

	for (int i = 0; i < N; i++)
		x[i] = (float)(i - N / 2) * (6.0f / (N / 2)), ones[i] = 1;
	p.at[CPTX_ROWS_X].address = cptx_mem_alloc(dev, sizeof x, &err);
	p.at[CPTX_ROWS_DY].address = cptx_mem_alloc(dev, sizeof x, &err);
	p.at[CPTX_ROWS_DX].address = cptx_mem_alloc(dev, sizeof x, &err);
	cptx_mem_write(dev, p.at[CPTX_ROWS_X].address, x, sizeof x, &err);
	cptx_mem_write(dev, p.at[CPTX_ROWS_DY].address, ones, sizeof x, &err);
	ck_assert_msg(cptx_rows_run(r, &o, &p, NULL, &err), "%s", err.text);
	cptx_mem_read(dev, dx, p.at[CPTX_ROWS_DX].address, sizeof x, &err);
	for (int i = 0; i < N; i++) {
		const double at = (double)x[i], bell = exp(-at * at / 2) / sqrt(8 * atan(1.0));
		worst = fmax(worst, fabs((double)dx[i] - (0.5 * erfc(-at / sqrt(2.0)) + at * bell)));
	}
	SURE(worst / 1.1289 < 1.31e-7, "the largest error is %g of the largest slope", worst / 1.1289);
	cptx_rows_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

/* Moments of one pass err little where threads begin with elements far from the mean (by differences from these: 3.5e-6). */
START_TEST(moments_of_one_pass)
{
	enum { ROWS = 8, N = 1024, EACH = 4 };
	static float x[ROWS][N], y[ROWS][N];
	uint64_t seed = 88172645463325252u;
	double worst = 0, most = 0;
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
	cptx_rows_opt o = { .kernel = CPTX_ROWS_LAYER_NORM, .in = CPTX_F32, .n = N, .place = CPTX_ROWS_SHARED, .threads = 128 };
	cptx_rows_problem p = { .rows = ROWS };

	o.per_row = 16, o.split = 1, o.stages = 3, o.rows_each = 1;
	for (int i = 0; i < ROWS * N; i++)
		x[i / N][i % N] = (float)(number_random(&seed) >> 40) * 0x1p-24f + (i % EACH || i % N >= 16 * EACH ? 0 : 8);
	p.at[CPTX_ROWS_X].address = cptx_mem_alloc(dev, sizeof x, &err);
	p.at[CPTX_ROWS_Y].address = cptx_mem_alloc(dev, sizeof y, &err);
	cptx_mem_write(dev, p.at[CPTX_ROWS_X].address, x, sizeof x, &err);
	ck_assert_msg(cptx_rows_run(r, &o, &p, NULL, &err), "%s", err.text);
	cptx_mem_read(dev, y, p.at[CPTX_ROWS_Y].address, sizeof y, &err);
	for (int row = 0; row < ROWS; row++) {
		double mean = 0, squares = 0;
		for (int c = 0; c < N; c++)
			mean += (double)x[row][c] / N;
		for (int c = 0; c < N; c++)
			squares += ((double)x[row][c] - mean) * ((double)x[row][c] - mean) / N;
		for (int c = 0; c < N; c++) {
			const double want = ((double)x[row][c] - mean) / sqrt(squares + (double)1e-5f);
			worst = fmax(worst, fabs((double)y[row][c] - want)), most = fmax(most, fabs(want));
		}
	}
	SURE(worst / most < 4e-7, "the largest error is %g of the largest element", worst / most);
	cptx_rows_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

/* A row of equal elements is zeros, also where the sum of a vector's elements would be infinite. */
START_TEST(moments_of_large_elements)
{
	enum { N = 1024 };
	static const uint32_t sizes[] = { 4, 2 };
	static uint8_t x[N * 4], y[N * 4];
	const float large = 3e38f;
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
	cptx_rows_problem p = { .rows = 1 };

	p.at[CPTX_ROWS_X].address = cptx_mem_alloc(dev, sizeof x, &err);
	p.at[CPTX_ROWS_Y].address = cptx_mem_alloc(dev, sizeof y, &err);
	for (int i = 0; i < 2; i++) {
		const uint32_t size = sizes[i], behind = sizeof large - size; /* a bf16 is the upper half of an f32 */
		cptx_rows_opt o = {
			.kernel = CPTX_ROWS_LAYER_NORM, .in = i ? CPTX_BF16 : CPTX_F32, .n = N, .place = CPTX_ROWS_SHARED
		};
		o.threads = 128, o.per_row = 16, o.split = 1, o.stages = 3, o.rows_each = 1;
		for (uint32_t c = 0; c < N; c++)
			memcpy(x + c * size, (const uint8_t *)&large + behind, size);
		memset(y, 0xff, sizeof y); /* NaN */
		cptx_mem_write(dev, p.at[CPTX_ROWS_X].address, x, sizeof x, &err);
		cptx_mem_write(dev, p.at[CPTX_ROWS_Y].address, y, sizeof y, &err);
		ck_assert_msg(cptx_rows_run(r, &o, &p, NULL, &err), "%s", err.text);
		cptx_mem_read(dev, y, p.at[CPTX_ROWS_Y].address, sizeof y, &err);
		for (uint32_t at = 0; at < N * size; at++)
			SURE(!y[at], "byte %u of elements of %u bytes is %u", at, size, y[at]);
	}
	cptx_rows_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

/* Two elements in a byte: of blocks, of longer rows, of the numbers that lie between two others. */
START_TEST(packed)
{
	static const uint32_t sizes[][2] = { { 70, 16 }, { 33, 32 }, { 3, 4104 }, { 1, 8 } };

	for (unsigned i = 0; i < 12; i++) {
		cptx_rows_opt o = { .kernel = CPTX_ROWS_QUANTIZE, .in = types[i % 3], .out = CPTX_E2M1, .n = sizes[i / 3][1] };
		try_one(targets[i % 4], &o, &(rows_case){ .rows = sizes[i / 3][0], .seed = i + 1 });
	}
}
END_TEST

/* Numbers whose scale is 0 in f32 have scale 1, as zeros. */
START_TEST(quantizes_what_has_no_scale)
{
	enum { N = 8 };
	float x[N], scale = -1;
	uint8_t y[N];
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
	cptx_rows_problem p = { .rows = 1 };

	for (int i = 0; i < N; i++)
		x[i] = i % 2 ? -0x1p-149f : 0x1p-148f;
	p.at[CPTX_ROWS_X].address = cptx_mem_alloc(dev, sizeof x, &err);
	p.at[CPTX_ROWS_Y].address = cptx_mem_alloc(dev, sizeof y, &err);
	p.at[CPTX_ROWS_SCALE].address = cptx_mem_alloc(dev, sizeof scale, &err);
	cptx_mem_write(dev, p.at[CPTX_ROWS_X].address, x, sizeof x, &err);
	for (int fp4 = 0; fp4 < 2; fp4++) {
		cptx_rows_opt o = { .kernel = CPTX_ROWS_QUANTIZE, .in = CPTX_F32, .out = fp4 ? CPTX_E2M1 : CPTX_E4M3, .n = N };
		memset(y, 0x55, sizeof y);
		cptx_mem_write(dev, p.at[CPTX_ROWS_Y].address, y, sizeof y, &err);
		ck_assert_msg(cptx_rows_run(r, &o, &p, NULL, &err), "%s", err.text);
		cptx_mem_read(dev, &scale, p.at[CPTX_ROWS_SCALE].address, sizeof scale, &err);
		cptx_mem_read(dev, y, p.at[CPTX_ROWS_Y].address, sizeof y, &err);
		SURE(scale == 1, "scale %g", (double)scale);
		for (int i = 0; i < (fp4 ? N / 2 : N); i++)
			SURE(y[i] == (fp4 ? 0x80 : i % 2 ? 0x80 : 0), "byte %d: 0x%02x", i, y[i]);
	}
	cptx_rows_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

START_TEST(special_numbers)
{
	static const enum cptx_rows_kernel kernels[] = { CPTX_ROWS_RMS_NORM,    CPTX_ROWS_LAYER_NORM,    CPTX_ROWS_SOFTMAX,
		                                             CPTX_ROWS_LOG_SOFTMAX, CPTX_ROWS_CROSS_ENTROPY, CPTX_ROWS_ARGMAX,
		                                             CPTX_ROWS_TOP_K };

	for (unsigned k = 0; k < sizeof kernels / sizeof *kernels; k++)
		for (uint32_t n = 1; n < 2000; n = n * 5 + 3) {
			cptx_rows_opt o = { .kernel = kernels[k], .in = types[n % 3], .n = n };
			o.k = kernels[k] == CPTX_ROWS_TOP_K ? (n < 5 ? n : 5) : 0;
			try_one("sm_90a", &o, &(rows_case){ .rows = 16, .seed = n, .special = true });
		}
}
END_TEST

START_TEST(in_place_and_no_rows)
{
	static const enum cptx_rows_kernel kernels[] = {
		CPTX_ROWS_RMS_NORM, CPTX_ROWS_SOFTMAX,          CPTX_ROWS_CROSS_ENTROPY,
		CPTX_ROWS_SWIGLU,   CPTX_ROWS_SOFTMAX_BACKWARD, CPTX_ROWS_ADD_RMS_NORM
	};

	for (unsigned k = 0; k < sizeof kernels / sizeof *kernels; k++)
		for (uint32_t n = 40; n < 5000; n *= 10) {
			cptx_rows_opt o = options_of(kernels[k], 8 | k % 2);
			o.n = n, o.place = CPTX_ROWS_REGISTERS, o.weight = (enum cptx_type)0;
			try_one("sm_90a", &o, &(rows_case){ .rows = 9, .seed = n, .in_place = true });
		}
	cptx_rows_opt o = { .kernel = CPTX_ROWS_COLUMN_SUM, .in = CPTX_F32, .n = 100 };
	try_one("sm_80", &o, &(rows_case){ .rows = 0, .seed = 1 });
}
END_TEST

START_TEST(random_problems)
{
	const char *given = getenv("CPTX_ROWS_TRIALS");
	const unsigned trials = given ? (unsigned)strtoul(given, NULL, 10) : 60;
	uint64_t seed = 88172645463325252u;

	for (unsigned i = 0; i < trials; i++) {
		const uint64_t bits = number_random(&seed) >> 8;
		const unsigned kernel = 1 + (unsigned)(number_random(&seed) >> 20) % (CPTX_ROWS_KERNELS - 1);
		const char *target = targets[number_random(&seed) >> 30 & 3];
		cptx_rows_opt o = options_of((enum cptx_rows_kernel)kernel, bits);
		set_length(&o, 1 + (uint32_t)(number_random(&seed) >> 20) % (i % 5 ? 700 : 6000));
		rows_case c = { .rows = 1 + (uint32_t)(number_random(&seed) >> 20) % 20, .seed = i + 1 };
		if (bits >> 40 & 1)
			c.pad = (uint32_t)(bits >> 41) % 9, c.off = (uint32_t)(bits >> 45) % 5;
		if (bits >> 50 & 1 && o.n > 64 && kernel != CPTX_ROWS_TRANSPOSE)
			o.place = CPTX_ROWS_MEMORY, o.threads = 64;
		if (bits >> 51 & 1 && strcmp(target, "sm_80") != 0) { /* rows in shared memory, by the model's choice for them */
			cptx_rows_opt ring = o;
			cptx_rows_choice choice;
			ring.n = (ring.n + 7) / 8 * 8, ring.out = (enum cptx_type)0, ring.place = CPTX_ROWS_SHARED, ring.threads = 0;
			if (kernel != CPTX_ROWS_ROTARY && kernel != CPTX_ROWS_ROTARY_PAIRS &&
			    cptx_rows_auto(&ring, cptx_target_find(target), c.rows, 0, &choice, 1, NULL))
				o = ring, c.pad = c.off = 0, c.rows += bits >> 52 & 1 && o.n < 500 ? 300 : 0;
		}
		if (on_target(&o, target) && is_my_share(i))
			try_one(target, &o, &c);
	}
}
END_TEST

/* y = x - the mean of |x|, with w added. */
static void own_body(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_val sum = cptx_var(k, CPTX_F32, 0.0f);
	cptx_rows_at e;

	++*(int *)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = CPTX_ROWS_BIT(CPTX_ROWS_X))
	{
		cptx_add(k, sum, cptx_abs(k, e.v[CPTX_ROWS_X]), .into = sum);
	}
	cptx_rows_reduce(k, row, sum, CPTX_REDUCE_SUM);
	cptx_mul(k, sum, 1.0f / (float)cptx_rows_options(row)->n, .into = sum);
	CPTX_ROWS_EACH(k, row, &e, .reads = CPTX_ROWS_BIT(CPTX_ROWS_X) | CPTX_ROWS_BIT(CPTX_ROWS_W),
	               .writes = CPTX_ROWS_BIT(CPTX_ROWS_Y))
	{
		cptx_val less = cptx_sub(k, e.v[CPTX_ROWS_X], sum);
		e.v[CPTX_ROWS_Y] = cptx_add(k, less, e.v[CPTX_ROWS_W]);
	}
}

START_TEST(own_kernel_by_the_runner)
{
	enum { ROWS = 6, N = 96 };
	int built = 0;
	cptx_rows_opt o = { .kernel = CPTX_ROWS_OWN,
		                .in = CPTX_F32,
		                .n = N,
		                .body = own_body,
		                .user = &built,
		                .name = "own",
		                .reads = CPTX_ROWS_BIT(CPTX_ROWS_X) | CPTX_ROWS_BIT(CPTX_ROWS_W),
		                .writes = CPTX_ROWS_BIT(CPTX_ROWS_Y) };
	float x[ROWS][N], w[N], y[ROWS][N];
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
	cptx_rows_problem p = { .rows = ROWS };

	for (int i = 0; i < ROWS * N; i++)
		x[i / N][i % N] = (float)(i % 7 - 3), w[i % N] = (float)(i % N);
	p.at[CPTX_ROWS_X].address = cptx_mem_alloc(dev, sizeof x, &err);
	p.at[CPTX_ROWS_W].address = cptx_mem_alloc(dev, sizeof w, &err);
	p.at[CPTX_ROWS_Y].address = cptx_mem_alloc(dev, sizeof y, &err);
	cptx_mem_write(dev, p.at[CPTX_ROWS_X].address, x, sizeof x, &err);
	cptx_mem_write(dev, p.at[CPTX_ROWS_W].address, w, sizeof w, &err);
	for (int i = 0; i < 3; i++)
		ck_assert_msg(cptx_rows_run(r, &o, &p, NULL, &err), "%s", err.text);
	ck_assert_int_eq(built, 1); /* the program is found again */
	cptx_mem_read(dev, y, p.at[CPTX_ROWS_Y].address, sizeof y, &err);
	for (int row = 0; row < ROWS; row++) {
		float mean = 0;
		for (int i = 0; i < N; i++)
			mean += (x[row][i] < 0 ? -x[row][i] : x[row][i]) / N;
		for (int i = 0; i < N; i++) {
			const float off = y[row][i] - (x[row][i] - mean + w[i]);
			SURE(off < 1e-4f && off > -1e-4f, "row %d, column %d: %g", row, i, (double)y[row][i]);
		}
	}
	/* sums of columns by the runner, with the workspace that it says */
	cptx_rows_opt sum = { .kernel = CPTX_ROWS_COLUMN_SUM, .in = CPTX_F32, .n = N };
	cptx_rows_problem q = { .rows = ROWS, .at = { [CPTX_ROWS_X] = p.at[CPTX_ROWS_X], [CPTX_ROWS_DW] = p.at[CPTX_ROWS_W] } };
	q.workspace = cptx_mem_alloc(dev, cptx_rows_workspace(r, &sum, ROWS, &err), &err);
	ck_assert_msg(cptx_rows_run(r, &sum, &q, NULL, &err), "%s", err.text);
	cptx_mem_read(dev, w, p.at[CPTX_ROWS_W].address, sizeof w, &err);
	for (int i = 0; i < N; i++) {
		float all = 0;
		for (int row = 0; row < ROWS; row++)
			all += x[row][i];
		SURE(w[i] == all, "column %d: %g, not %g", i, (double)w[i], (double)all);
	}
	cptx_rows_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

/* Pairs of 16-bit elements, of which the last row of x leaves half a pair in each row of y; what is behind it stays. */
START_TEST(transposes_half_pairs)
{
	enum { ROWS = 65, N = 70, PITCH = 66 };
	static uint16_t x[ROWS][N], y[N][PITCH];
	cptx_rows_opt o = { .kernel = CPTX_ROWS_TRANSPOSE, .in = CPTX_BF16, .n = N };
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
	cptx_rows_problem p = { .rows = ROWS };

	for (int i = 0; i < ROWS * N; i++)
		x[i / N][i % N] = (uint16_t)i;
	memset(y, 0xff, sizeof y);
	p.at[CPTX_ROWS_X].address = cptx_mem_alloc(dev, sizeof x, &err);
	p.at[CPTX_ROWS_Y] = (cptx_rows_matrix){ cptx_mem_alloc(dev, sizeof y, &err), PITCH };
	cptx_mem_write(dev, p.at[CPTX_ROWS_X].address, x, sizeof x, &err);
	cptx_mem_write(dev, p.at[CPTX_ROWS_Y].address, y, sizeof y, &err);
	ck_assert_msg(cptx_rows_run(r, &o, &p, NULL, &err), "%s", err.text);
	cptx_mem_read(dev, y, p.at[CPTX_ROWS_Y].address, sizeof y, &err);
	for (int c = 0; c < N; c++)
		for (int row = 0; row < PITCH; row++) {
			const uint16_t want = row < ROWS ? x[row][c] : 0xffff;
			SURE(y[c][row] == want, "row %d of y, column %d: %u, not %u", c, row, y[c][row], want);
		}
	cptx_rows_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

/* ptxas takes the shapes that are chosen for large matrices, and spills nothing of rows shorter than 64 K. */
START_TEST(assembles)
{
	if (!test_ptxas()) {
		skip("no ptxas");
		return;
	}
	for (unsigned i = 0; i < 12; i++) {
		static const enum cptx_rows_kernel kernels[] = { CPTX_ROWS_RMS_NORM, CPTX_ROWS_CROSS_ENTROPY, CPTX_ROWS_SWIGLU,
			                                             CPTX_ROWS_ARGMAX };
		static const uint32_t lengths[] = { 128, 4096, 50000 };
		cptx_rows_opt o = options_of(kernels[i % 4], 8 | i % 3);
		cptx_rows_choice c;
		cptx_error err = { .code = CPTX_OK };
		const char *target = targets[i / 3];
		unsigned n = 0;
		o.n = lengths[i % 3];
		SURE(cptx_rows_auto(&o, cptx_target_find(target), 1 << 14, 0, &c, 1, &err), "%s", err.text);
		cptx_module *m = cptx_module_new(NULL);
		SURE(cptx_rows_build(m, &c.opt, &err) != NULL, "%s", err.text);
		cptx_ptx *ptx = cptx_emit(m, target, NULL, &err);
		SURE(ptx != NULL, "%s", err.text);
		assembly job = { .target = target, .ptx = cptx_ptx_text(ptx) };
		assemble(&job, 1);
		SURE(job.status == 0, "%s: %s", target, job.said);
		SURE(assembly_spills(job.said, &n) == 0, "%s %s, %u elements: %s", target, cptx_rows_kernel_name(o.kernel), o.n,
		     job.said);
		assemble_free(&job, 1);
		cptx_ptx_destroy(ptx);
		cptx_module_destroy(m);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rows");

	tcase_add_test(test_case(s, "kernels"), each_kernel);
	tcase_add_test(test_case(s, "shapes"), shapes);
	tcase_add_test(test_case(s, "chunks"), chunks);
	tcase_add_test(test_case(s, "parts"), parts);
	tcase_add_test(test_case(s, "largest"), largest);
	tcase_add_test(test_case(s, "largest_zeros"), largest_zeros);
	tcase_add_test(test_case(s, "long_sums"), long_sums);
	tcase_add_test(test_case(s, "gelu_slope"), gelu_slope);
	tcase_add_test(test_case(s, "moments"), moments_of_one_pass);
	tcase_add_test(test_case(s, "moments_of_large_elements"), moments_of_large_elements);
	tcase_add_test(test_case(s, "packed"), packed);
	tcase_add_test(test_case(s, "no_scale"), quantizes_what_has_no_scale);
	tcase_add_test(test_case(s, "special"), special_numbers);
	tcase_add_test(test_case(s, "in_place"), in_place_and_no_rows);
	tcase_add_test(test_case(s, "random"), random_problems);
	tcase_add_test(test_case(s, "own"), own_kernel_by_the_runner);
	tcase_add_test(test_case(s, "transpose"), transposes_half_pairs);
	tcase_add_test(test_case(s, "ptxas"), assembles);
	return test_main("rows", s);
}
