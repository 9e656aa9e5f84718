/* SPDX-License-Identifier: MIT */
/* What works on each element alone (activations, gates, rotations), and rows that become smaller: quantized, their maximum.
 */
#include "rows/rows.h"

#include <cptx/cptx.h>

#include <math.h>

#define V(operand) e.v[CPTX_ROWS_##operand]

static const float log2e = 1.44269504f;

void rows_swiglu(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	const bool exact = rows_exact(cptx_rows_options(row));
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_X2, .writes = R_Y)
	{
		V(Y) = cptx_mul(k, rows_gate_of(k, V(X), exact, false).gated, V(X2));
	}
}

/* With s the sigmoid: d(x s) = s + x s (1 - s). */
void rows_swiglu_backward(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	const bool exact = rows_exact(cptx_rows_options(row));
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_X2 | R_DY, .writes = R_DX | R_DX2)
	{
		const rows_gate g = rows_gate_of(k, V(X), exact, true);
		cptx_val rest = cptx_sub(k, 1.0f, g.sigmoid), slope = cptx_fma(k, g.gated, rest, g.sigmoid, .rnd = CPTX_RN);
		V(DX2) = cptx_mul(k, V(DY), g.gated);
		V(DX) = cptx_mul(k, cptx_mul(k, V(DY), V(X2)), slope);
	}
}

/* ---- GELU ---- */

/* The gate g of x * g and, where it is asked for, the slope of x * g. */
typedef struct gelu {
	cptx_val gate, slope;
} gelu;

/* The coefficients of a polynomial, the highest first. */
static cptx_val polynomial(cptx_kernel *k, cptx_val x, const float *a, size_t n)
{
	cptx_val sum = cptx_var(k, CPTX_F32, a[0]);

	for (size_t i = 1; i < n; i++)
		cptx_fma(k, sum, x, a[i], .rnd = CPTX_RN, .into = sum);
	return sum;
}

/*
 * g = erfc(-x / sqrt(2)) / 2.  The smaller of g(x) and g(-x) is e^(-x^2 / 2) * t * polynomial(t), t = 1 / (1 + p |x|), so
 * that nothing cancels.  Where results are rounded to 16 bits anyway it is Hastings' approximation 26 (Abramowitz and Stegun
 * 7.1.26, scaled), whose absolute error is 7.5e-8.  For .f32, one of degree 6 for |x| >= 1.5, relative error 1.2e-7; nearer
 * to 0 it is 1/2 + x * polynomial(x^2), relative error 5e-8; so is the slope there, whose error is 5e-10 and the rounding's.
 * All interpolate at Chebyshev's points.
 */
static gelu gelu_erf(cptx_kernel *k, cptx_val x, bool slope, bool exact)
{
	static const float hastings[] = { 0.5307027145f, -0.7265760135f, 0.7107068705f, -0.142248368f, 0.127414796f };
	static const float far[] = { -0.0456898399f, 0.0610538386f, 0.0483501256f, 0.0869611874f,
		                         0.109739572f,   0.119510919f,  0.119694218f };
	static const float near[] = { 4.12977727e-07f, -8.72800865e-06f, 0.000114381291f, -0.001186518f,
		                          0.00997325685f,  -0.0664903373f,   0.398942292f };
	static const float near_slope[] = { -3.80777608e-07f, 8.40100604e-06f, -0.000111663753f, 0.00115263192f,
		                                -0.00949765995f,  0.0598410732f,   -0.265961492f,    0.79788456f };
	gelu g = { .gate = { 0 } };
	cptx_val size = cptx_abs(k, x), square = cptx_mul(k, x, x),
			 bell = cptx_ex2(k, cptx_mul(k, square, -log2e / 2), .ftz = true);
	cptx_val t =
		cptx_rcp(k, cptx_fma(k, size, exact ? 0.3f : 0.231641888f, 1.0f, .rnd = CPTX_RN), .rnd = CPTX_APPROX, .ftz = true);
	cptx_val sum = exact ? polynomial(k, t, far, 7) : polynomial(k, t, hastings, 5);
	cptx_val small = cptx_mul(k, cptx_mul(k, sum, t), bell);

	cptx_val is_right = cptx_setp(k, x, 0.0f, .cmp = CPTX_GE), is_near = cptx_setp(k, size, 1.5f, .cmp = CPTX_LT);

	g.gate = cptx_selp(k, cptx_sub(k, 1.0f, small), small, is_right, .type = CPTX_F32);
	if (exact) {
		cptx_val by_x = cptx_fma(k, x, polynomial(k, square, near, 7), 0.5f, .rnd = CPTX_RN);
		g.gate = cptx_selp(k, by_x, g.gate, is_near, .type = CPTX_F32);
	}
	if (!slope)
		return g;
	cptx_val rest = cptx_mul(k, cptx_mul(k, x, 0.39894228f), bell); /* x / sqrt(2 pi) * e^(-x^2 / 2) */
	if (exact) {                                                    /* 1 is added last, to what is small beside it */
		cptx_val right = cptx_add(k, cptx_sub(k, rest, small), 1.0f), left = cptx_add(k, small, rest);
		cptx_val by_x = cptx_fma(k, x, polynomial(k, square, near_slope, 8), 0.5f, .rnd = CPTX_RN);
		g.slope = cptx_selp(k, by_x, cptx_selp(k, right, left, is_right, .type = CPTX_F32), is_near, .type = CPTX_F32);
	} else {
		g.slope = cptx_add(k, g.gate, rest);
	}
	return g;
}

/* g = sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3) */
static gelu gelu_tanh(cptx_kernel *k, cptx_val x, bool slope, bool exact)
{
	gelu g = { .gate = { 0 } };
	cptx_val square = cptx_mul(k, x, x), inner = cptx_fma(k, square, 0.07135481628f, 1.5957691216f, .rnd = CPTX_RN);
	cptx_val u = cptx_mul(k, x, inner), decay = rows_decay(k, u, exact);

	g.gate = rows_sigmoid_of(k, decay, exact);
	if (slope) {
		/* 1 - g is exact where g is small, and e^-2u * g where it is not */
		cptx_val du = cptx_fma(k, square, 3 * 0.07135481628f, 1.5957691216f, .rnd = CPTX_RN);
		cptx_val less = cptx_sub(k, 1.0f, g.gate), more = cptx_mul(k, decay, g.gate);
		cptx_val rest = cptx_selp(k, more, less, cptx_setp(k, u, 0.0f, .cmp = CPTX_GE), .type = CPTX_F32);
		cptx_val both = cptx_mul(k, g.gate, rest);
		g.slope = cptx_fma(k, cptx_mul(k, both, x), du, g.gate, .rnd = CPTX_RN);
		/* where x^2 is infinite, 0 * du is no number */
		cptx_selp(k, g.slope, g.gate, cptx_setp(k, g.slope, g.slope, .cmp = CPTX_EQ), .type = CPTX_F32, .into = g.slope);
	}
	return g;
}

static gelu gelu_of(cptx_kernel *k, const cptx_rows_row *row, cptx_val x, bool slope)
{
	const cptx_rows_opt *o = cptx_rows_options(row);

	return o->tanh ? gelu_tanh(k, x, slope, rows_exact(o)) : gelu_erf(k, x, slope, rows_exact(o));
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
		V(DX) = cptx_mul(k, V(DY), g.slope);
	}
}

void rows_geglu_backward(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_X2 | R_DY, .writes = R_DX | R_DX2)
	{
		gelu g = gelu_of(k, row, V(X), true);
		V(DX2) = cptx_mul(k, V(DY), cptx_mul(k, V(X), g.gate));
		V(DX) = cptx_mul(k, cptx_mul(k, V(DY), V(X2)), g.slope);
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

void rows_rotary_pairs(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	bool second = false;
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_COS | R_SIN, .writes = R_Y)
	{
		cptx_val turned = cptx_mul(k, rows_other_of_pair(row, CPTX_ROWS_X), V(SIN)), kept = cptx_mul(k, V(X), V(COS));
		V(Y) = second ? cptx_add(k, kept, turned) : cptx_sub(k, kept, turned);
		second = !second;
	}
}

/* ---- smaller rows ---- */

void rows_quantize(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	const float largest = cptx_rows_options(row)->out == CPTX_E2M1 ? 6 : 448;
	cptx_val top = cptx_var(k, CPTX_F32, 0.0f);
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X) { cptx_max(k, top, cptx_abs(k, V(X)), .NaN = true, .into = top); }
	/* as numbers without a sign, a NaN is the largest */
	cptx_val bits = cptx_var(k, CPTX_U32, 0);
	cptx_mov(k, cptx_as(top, CPTX_B32), .into = cptx_as(bits, CPTX_B32));
	cptx_rows_reduce(k, row, bits, CPTX_REDUCE_MAX);
	cptx_mov(k, cptx_as(bits, CPTX_B32), .into = cptx_as(top, CPTX_B32));
	cptx_val scale = cptx_div(k, top, largest, .rnd = CPTX_RN); /* 0 also of what is too small for the quotient */
	cptx_val is_zero = cptx_setp(k, scale, 0.0f, .cmp = CPTX_EQ);
	cptx_selp(k, 1.0f, scale, is_zero, .type = CPTX_F32, .into = scale);
	cptx_rows_put(k, row, CPTX_ROWS_SCALE, scale);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .writes = R_Y) { V(Y) = cptx_div(k, V(X), scale, .rnd = CPTX_RN); }
}
