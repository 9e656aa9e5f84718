/* SPDX-License-Identifier: MIT */
/* Trials whose D has gated columns or factors: within what the approximations of silu and the rounding to 8 bits explain. */
#include "gemm_trial_own.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FACTOR_COLUMNS = 128 };

/* Rows that the factors of D are for side by side. */
static uint64_t factor_rows(const trial_data *x)
{
	return x->o->experts && x->o->experts != CPTX_GEMM_EXPERTS_K ? x->rows : x->t->m;
}

static uint64_t factor_at(const trial_data *x, uint64_t row, uint64_t col)
{
	const uint64_t rows = factor_rows(x), blocks = gemm_trial_columns(x) / FACTOR_COLUMNS;

	return (row / rows * blocks + col / FACTOR_COLUMNS) * cptx_gemm_scale_pitch(rows) + row % rows;
}

bool gemm_trial_make_factors(cptx_device *dev, trial_data *x, cptx_error *err)
{
	if (!x->o->scale_out)
		return true;
	x->sd_bytes = (factor_at(x, x->rows - 1, gemm_trial_columns(x) - 1) + 1) * sizeof *x->sd;
	x->sd = malloc(x->sd_bytes);
	return x->sd && (x->dev_sd = cptx_mem_alloc(dev, x->sd_bytes, err));
}

/* An element of D before it is quantized. */
static double column_of(const trial_data *x, uint64_t row, uint64_t col)
{
	const uint64_t first = row * x->t->n;

	if (!x->o->swiglu)
		return gemm_trial_expected(x, first + col);
	const double gate = gemm_trial_expected(x, first + col / 8 * 16 + col % 8),
				 up = gemm_trial_expected(x, first + col / 8 * 16 + col % 8 + 8);
	return gate / (1 + exp(-gate)) * up;
}

static double largest(enum cptx_type type) { return type == CPTX_E4M3 ? 448 : type == CPTX_E5M2 ? 57344 : INFINITY; }

/* Half of what the last bit of a value is, and of the least one that the type has; of f32 and bf16 what the reciprocal of
 * silu may flush: subnormal numbers. */
static double rounding(enum cptx_type type, double v)
{
	const int bits = type == CPTX_E4M3 ? 3 : type == CPTX_E5M2 ? 2 : type == CPTX_BF16 ? 7 : type == CPTX_F16 ? 10 : 23;
	const double least = type == CPTX_E4M3 ? 0x1p-10 : type == CPTX_E5M2 ? 0x1p-17 : type == CPTX_F16 ? 0x1p-25 : 0;

	return ldexp(fabs(v), -bits - 1) + least;
}

/* The factor of a row's 128 columns is that of the largest magnitude; false: it is not. */
static bool right_factor(const trial_data *x, uint64_t row, uint64_t col)
{
	double amax = 0x1p-100;

	for (uint64_t i = 0; i < FACTOR_COLUMNS; i++)
		amax = fmax(amax, fabs(column_of(x, row, col + i)));
	const double got = (double)x->sd[factor_at(x, row, col)] * largest(x->o->out);
	if (fabs(got - amax) <= 4e-6 * amax)
		return true;
	snprintf(x->said, TRIAL_SAID, "the factor of row %llu, column %llu is of %g, not %g", (unsigned long long)row,
	         (unsigned long long)col, got, amax);
	return false;
}

bool gemm_trial_compare_columns(const trial_data *x)
{
	const uint32_t size = cptx_type_bits(x->o->out) / 8;
	const trial_stored s = gemm_trial_stored(x, 3);
	const uint64_t n = gemm_trial_columns(x);
	/* a sigmoid below 2^-126 is 0; the numbers that it gates are below 2^13 each */
	const double flushed = x->o->swiglu ? 0x1p-100 : 0;

	for (uint64_t i = 0; i < x->rows * n; i++) {
		const uint64_t row = i / n, col = i % n, at = s.off + row / x->t->m * s.stride + row % x->t->m * s.ld + col;
		uint64_t bits = 0;
		if (x->matrix[row] == (uint32_t)TRIAL_NOBODYS)
			continue;
		if (x->o->scale_out && col % FACTOR_COLUMNS == 0 && !right_factor(x, row, col))
			return false;
		memcpy(&bits, x->bytes + at * size, size);
		memset(x->bytes + at * size, TRIAL_POISON, size);
		const double factor = x->o->scale_out ? (double)x->sd[factor_at(x, row, col)] : 1, v = column_of(x, row, col);
		const double want = x->o->scale_out ? v : number_saturated(x->o->out, v),
					 got = number_value(x->o->out, bits) * factor;
		if (fabs(got - want) <= rounding(x->o->out, want / factor) * factor * 1.001 + 4e-6 * fabs(want) + flushed)
			continue;
		snprintf(x->said, TRIAL_SAID, "element (%llu, %llu) is %g, not %g", (unsigned long long)row, (unsigned long long)col,
		         got, want);
		return false;
	}
	return true;
}
