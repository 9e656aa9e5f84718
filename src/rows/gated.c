/* SPDX-License-Identifier: MIT */
/* What works on each element alone (activations, gates, rotations), and rows that become smaller: quantized, their maximum.
 */
#include "rows/rows.h"

#include <math.h>

#define V(operand) e.v[CPTX_ROWS_##operand]

static const float log2e = 1.44269504f;

/* 1 / (1 + e^-x) */
static cptx_val sigmoid(cptx_kernel *k, cptx_val x)
{
	return cptx_rcp(k, cptx_add(k, cptx_ex2(k, cptx_mul(k, x, -log2e)), 1.0f), .rnd = CPTX_APPROX);
}

void rows_swiglu(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_X2, .writes = R_Y)
	{
		cptx_val gate = cptx_mul(k, V(X), sigmoid(k, V(X)));
		V(Y) = cptx_mul(k, gate, V(X2));
	}
}

/* With s the sigmoid: d(x s) = s + x s (1 - s). */
void rows_swiglu_backward(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_X2 | R_DY, .writes = R_DX | R_DX2)
	{
		cptx_val s = sigmoid(k, V(X)), gate = cptx_mul(k, V(X), s), rest = cptx_sub(k, 1.0f, s);
		cptx_val slope = cptx_fma(k, gate, rest, s, .rnd = CPTX_RN);
		V(DX2) = cptx_mul(k, V(DY), gate);
		V(DX) = cptx_mul(k, cptx_mul(k, V(DY), V(X2)), slope);
	}
}

/* ---- GELU ---- */

/* The gate g of x * g and, where it is asked for, its slope times x. */
typedef struct gelu {
	cptx_val gate, rest;
} gelu;

/*
 * g = erfc(-x / sqrt(2)) / 2, by the polynomial in 1 / (1 + p z) of Hastings' approximation 26 (Abramowitz and
 * Stegun 7.1.26), whose absolute error is 1.5e-7; the smaller of g(x) and g(-x) is computed, so that nothing cancels.
 */
static gelu gelu_erf(cptx_kernel *k, cptx_val x, bool slope)
{
	static const float a[] = { 1.061405429f, -1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f };
	gelu g = { .gate = { 0 } };
	cptx_val z = cptx_mul(k, cptx_abs(k, x), 0.70710678f);
	cptx_val t = cptx_rcp(k, cptx_fma(k, z, 0.3275911f, 1.0f, .rnd = CPTX_RN), .rnd = CPTX_APPROX),
			 sum = cptx_var(k, CPTX_F32, a[0]);
	cptx_val square = cptx_mul(k, z, z), bell = cptx_ex2(k, cptx_mul(k, square, -log2e));

	for (int i = 1; i < 5; i++)
		sum = cptx_fma(k, sum, t, a[i], .rnd = CPTX_RN);
	cptx_val small = cptx_mul(k, cptx_mul(k, cptx_mul(k, sum, t), bell), 0.5f);
	g.gate = cptx_selp(k, cptx_sub(k, 1.0f, small), small, cptx_setp(k, x, 0.0f, .cmp = CPTX_GE), .type = CPTX_F32);
	if (slope) /* x / sqrt(2 pi) * e^(-x^2 / 2) */
		g.rest = cptx_mul(k, cptx_mul(k, x, 0.39894228f), bell);
	return g;
}

/* g = sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3) */
static gelu gelu_tanh(cptx_kernel *k, cptx_val x, bool slope)
{
	gelu g = { .gate = { 0 } };
	cptx_val square = cptx_mul(k, x, x), inner = cptx_fma(k, square, 0.07135481628f, 1.5957691216f, .rnd = CPTX_RN);
	cptx_val u = cptx_mul(k, x, inner), decay = cptx_ex2(k, cptx_mul(k, u, -log2e));

	g.gate = cptx_rcp(k, cptx_add(k, decay, 1.0f), .rnd = CPTX_APPROX);
	if (slope) {
		/* 1 - g is exact where g is small, and e^-2u * g where it is not */
		cptx_val du = cptx_fma(k, square, 3 * 0.07135481628f, 1.5957691216f, .rnd = CPTX_RN);
		cptx_val less = cptx_sub(k, 1.0f, g.gate), more = cptx_mul(k, decay, g.gate);
		cptx_val rest = cptx_selp(k, more, less, cptx_setp(k, u, 0.0f, .cmp = CPTX_GE), .type = CPTX_F32);
		cptx_val both = cptx_mul(k, g.gate, rest);
		g.rest = cptx_mul(k, cptx_mul(k, both, x), du);
	}
	return g;
}

static gelu gelu_of(cptx_kernel *k, const cptx_rows_row *row, cptx_val x, bool slope)
{
	return cptx_rows_options(row)->tanh ? gelu_tanh(k, x, slope) : gelu_erf(k, x, slope);
}

void rows_gelu(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .writes = R_Y) { V(Y) = cptx_mul(k, V(X), gelu_of(k, row, V(X), false).gate); }
}

void rows_geglu(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_X2, .writes = R_Y)
	{
		cptx_val gate = gelu_of(k, row, V(X), false).gate;
		V(Y) = cptx_mul(k, cptx_mul(k, V(X), gate), V(X2));
	}
}

void rows_gelu_backward(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_DY, .writes = R_DX)
	{
		gelu g = gelu_of(k, row, V(X), true);
		V(DX) = cptx_mul(k, V(DY), cptx_add(k, g.gate, g.rest));
	}
}

void rows_geglu_backward(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_X2 | R_DY, .writes = R_DX | R_DX2)
	{
		gelu g = gelu_of(k, row, V(X), true);
		cptx_val both = cptx_mul(k, V(DY), V(X2)), slope = cptx_add(k, g.gate, g.rest);
		V(DX2) = cptx_mul(k, V(DY), cptx_mul(k, V(X), g.gate));
		V(DX) = cptx_mul(k, both, slope);
	}
}

void rows_rotary(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_X2 | R_COS | R_SIN, .writes = R_Y | R_Y2)
	{
		cptx_val less = cptx_mul(k, V(X2), V(SIN)), more = cptx_mul(k, V(X), V(SIN));
		V(Y) = cptx_sub(k, cptx_mul(k, V(X), V(COS)), less);
		V(Y2) = cptx_fma(k, V(X2), V(COS), more, .rnd = CPTX_RN);
	}
}

/* ---- smaller rows ---- */

void rows_quantize(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	const float largest = 448; /* of e4m3 */
	cptx_val top = cptx_var(k, CPTX_F32, 0.0f);
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X) { cptx_max(k, top, cptx_abs(k, V(X)), .NaN = true, .into = top); }
	/* as numbers without a sign, a NaN is the largest */
	cptx_val bits = cptx_var(k, CPTX_U32, 0);
	cptx_mov(k, cptx_as(top, CPTX_B32), .into = cptx_as(bits, CPTX_B32));
	cptx_rows_reduce(k, row, bits, CPTX_REDUCE_MAX);
	cptx_mov(k, cptx_as(bits, CPTX_B32), .into = cptx_as(top, CPTX_B32));
	cptx_val scale = cptx_div(k, top, largest, .rnd = CPTX_RN), is_zero = cptx_setp(k, top, 0.0f, .cmp = CPTX_EQ);
	cptx_selp(k, 1.0f, scale, is_zero, .type = CPTX_F32, .into = scale);
	cptx_rows_put(k, row, CPTX_ROWS_SCALE, scale);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .writes = R_Y) { V(Y) = cptx_div(k, V(X), scale, .rnd = CPTX_RN); }
}

void rows_argmax(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_val best = cptx_regs(k, CPTX_F32, 2), value = cptx_elem(best, 0), column = cptx_as(cptx_elem(best, 1), CPTX_U32);
	cptx_rows_at e;

	(void)user;
	cptx_reduce_clear(k, best, CPTX_REDUCE_ARG_MAX);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .fill = -INFINITY)
	{
		cptx_val better = cptx_setp(k, V(X), value, .cmp = CPTX_GT);
		cptx_mov(k, V(X), .into = value, .when = better);
		cptx_mov(k, cptx_rows_column(k, row, &e), .into = column, .when = better);
	}
	cptx_rows_reduce(k, row, best, CPTX_REDUCE_ARG_MAX);
	/* nothing is greater than -infinity */
	cptx_val none = cptx_setp(k, column, cptx_imm(UINT32_MAX), .cmp = CPTX_EQ);
	cptx_rows_put(k, row, CPTX_ROWS_AT, cptx_selp(k, 0, column, none, .type = CPTX_U32));
}
