/* SPDX-License-Identifier: MIT */
/* What row kernels compute of a row, in f64. */
#include "reference/rows_check.h"

#include <math.h>

#define IN(id, i) (l->v[CPTX_ROWS_##id][i])
#define HAS(id) ((l->reads | l->writes) >> CPTX_ROWS_##id & 1)
#define FOR_ALL for (uint32_t i = 0; i < l->o->n; i++)

/* A result, and the size of the terms that it is made of. */
static void set(const rows_line *l, enum cptx_rows_operand operand, uint32_t i, double v, double mag)
{
	if (l->writes >> operand & 1)
		l->v[operand][i] = v, l->mag[operand][i] = mag;
}
#define SET(id, i, v, mag) set(l, CPTX_ROWS_##id, (i), (v), (mag))

static double weight(const rows_line *l, uint32_t i) { return HAS(W) ? IN(W, i) : 1; }
static double eps_of(const rows_line *l) { return l->o->eps > 0 ? (double)l->o->eps : 1e-5f; }

static void norm(const rows_line *l, bool layer, bool adds)
{
	const double n = l->o->n;
	double mean = 0, squares = 0;

	FOR_ALL mean += layer ? IN(X, i) / n : 0;
	FOR_ALL
	{
		const double d = IN(X, i) + (adds ? IN(X2, i) : 0) - mean;
		squares += d * d / n;
	}
	const double rstd = 1 / sqrt(squares + eps_of(l));
	FOR_ALL
	{
		const double x = IN(X, i) + (adds ? IN(X2, i) : 0), w = weight(l, i), b = HAS(B) ? IN(B, i) : 0;
		SET(Y2, i, x, fabs(x));
		SET(Y, i, (x - mean) * rstd * w + b, (fabs(x) + fabs(mean)) * rstd * fabs(w) + fabs(b));
	}
	SET(RSTD, 0, rstd, rstd);
	SET(MEAN, 0, mean, fabs(mean) + sqrt(squares));
}

static void norm_backward(const rows_line *l, bool layer)
{
	const double n = l->o->n;
	double rstd = 0, mean = layer ? IN(MEAN, 0) : 0, dot = 0, all = 0, dot_mag = 0, all_mag = 0;

	if (HAS(RSTD)) {
		rstd = IN(RSTD, 0);
	} else {
		FOR_ALL rstd += IN(X, i) * IN(X, i) / n;
		rstd = 1 / sqrt(rstd + eps_of(l));
	}
	FOR_ALL
	{
		const double g = IN(DY, i) * weight(l, i), h = (IN(X, i) - mean) * rstd;
		dot += g * h / n, dot_mag += fabs(g * h) / n;
		all += layer ? g / n : 0, all_mag += layer ? fabs(g) / n : 0;
	}
	FOR_ALL
	{
		const double g = IN(DY, i) * weight(l, i), h = (IN(X, i) - mean) * rstd;
		const double h_mag = (fabs(IN(X, i)) + fabs(mean)) * rstd;
		SET(DX, i, rstd * (g - all - h * dot), rstd * (fabs(g) + all_mag + h_mag * dot_mag));
		SET(DW, i, IN(DY, i) * h, fabs(IN(DY, i)) * h_mag);
		SET(DB, i, IN(DY, i), fabs(IN(DY, i)));
	}
}

/* The largest element of a row; NaN counts as nothing. */
static double top_of(const rows_line *l, double *lse)
{
	double top = -INFINITY, sum = 0;

	FOR_ALL top = fmax(top, IN(X, i));
	FOR_ALL sum += top > -INFINITY ? exp(IN(X, i) - top) : isnan(IN(X, i)) ? NAN : 0;
	*lse = top + log(sum);
	return top;
}

static void softmax(const rows_line *l, bool logarithm)
{
	double lse, top = top_of(l, &lse);

	FOR_ALL
	{
		const double d = IN(X, i) - top, p = exp(d - (lse - top));
		if (logarithm)
			SET(Y, i, IN(X, i) - lse, fabs(d) + fabs(lse - top));
		else
			SET(Y, i, p, p > 0 ? p * (1 + fabs(d) / 4) : p);
	}
	SET(LSE, 0, lse, fabs(top) + fabs(lse - top) + 1);
}

static void softmax_backward(const rows_line *l, bool logarithm)
{
	double sum = 0, mag = 0;

	FOR_ALL
	{
		const double t = logarithm ? IN(DY, i) : IN(Y, i) * IN(DY, i);
		sum += t, mag += fabs(t);
	}
	FOR_ALL
	{
		const double p = logarithm ? exp(IN(Y, i)) : IN(Y, i);
		const double v = logarithm ? IN(DY, i) - p * sum : p * (IN(DY, i) - sum);
		SET(DX, i, v, logarithm ? fabs(IN(DY, i)) + p * mag * (1 + fabs(IN(Y, i)) / 4) : fabs(p) * (fabs(IN(DY, i)) + mag));
	}
}

static void cross_entropy(const rows_line *l, bool backward)
{
	const double n = l->o->n, s = (double)l->o->smoothing, z = (double)l->o->z_loss, target = IN(TARGET, 0);
	const bool ignored = l->o->ignore && target == (double)l->o->ignored_label, is_column = target >= 0 && target < n;
	const double scale = ignored ? 0 : HAS(DLOSS) ? IN(DLOSS, 0) : 1;
	double lse, all = 0, mag = 0;

	if (backward)
		lse = IN(LSE, 0);
	else
		top_of(l, &lse);
	FOR_ALL all += IN(X, i) / n, mag += fabs(IN(X, i)) / n;
	const double x = is_column ? IN(X, (uint32_t)target) : NAN;
	const double loss = (1 - s) * (lse - x) + (s > 0 ? s * (lse - all) : 0) + z * lse * lse;
	SET(LSE, 0, lse, fabs(lse) + 1);
	SET(LOSS, 0, ignored ? 0 : loss,
	    ignored ? 0 : fabs(lse) + fabs(x) + (s > 0 ? s * mag : 0) + 2 * fabs(z) * lse * lse + 1);
	FOR_ALL
	{
		const double d = IN(X, i) - lse, p = exp(d), one = is_column && i == (uint32_t)target ? 1 - s : 0;
		const double v = scale * (p * (1 + 2 * z * lse) - s / n - one);
		SET(DX, i, ignored ? 0 : v,
		    ignored ? 0 : fabs(scale) * (p * (1 + fabs(d) / 2) * (1 + 2 * fabs(z * lse)) + s / n + one));
	}
}

/* The gate of x * gate, and its slope, of SwiGLU or GELU. */
static double gate(const rows_line *l, bool gelu, double x, double *slope)
{
	const double pi = 3.14159265358979323846, c = sqrt(2 / pi);

	if (gelu && !l->o->tanh) {
		*slope = exp(-x * x / 2) / sqrt(2 * pi);
		return 0.5 * erfc(-x / sqrt(2));
	}
	const double u = gelu ? 2 * c * (x + 0.044715 * x * x * x) : x, g = 1 / (1 + exp(-u));
	*slope = g * (1 - g) * (gelu ? 2 * c * (1 + 3 * 0.044715 * x * x) : 1);
	return g;
}

/* Hastings' polynomial errs by 1.5e-7 of the gate's range. */
static double gate_mag(const rows_line *l, bool gelu, double g) { return g + (gelu && !l->o->tanh ? 0.03 : 0); }

static void gated(const rows_line *l, bool gelu, bool two)
{
	double slope;

	FOR_ALL
	{
		const double x = IN(X, i), g = gate(l, gelu, x, &slope), f = two ? IN(X2, i) : 1;
		SET(Y, i, x * g * f, fabs(x * f) * gate_mag(l, gelu, g) * (1 + fabs(x) / 4 + (gelu ? x * x / 4 : 0)));
	}
}

static void gated_backward(const rows_line *l, bool gelu, bool two)
{
	FOR_ALL
	{
		double slope;
		const double x = IN(X, i), g = gate(l, gelu, x, &slope), f = two ? IN(X2, i) : 1, dy = IN(DY, i);
		const double mag = gate_mag(l, gelu, g), more = 1 + fabs(x) / 4 + (gelu ? x * x / 4 : 0);
		SET(DX, i, dy * f * (g + x * slope), fabs(dy * f) * (mag + fabs(x * slope)) * more);
		SET(DX2, i, dy * x * g, fabs(dy * x) * mag * more);
	}
}

static void rotary(const rows_line *l)
{
	FOR_ALL
	{
		const double x = IN(X, i), y = IN(X2, i), c = IN(COS, i), s = IN(SIN, i);
		SET(Y, i, x * c - y * s, fabs(x * c) + fabs(y * s));
		SET(Y2, i, y * c + x * s, fabs(y * c) + fabs(x * s));
	}
}

static void quantize(const rows_line *l)
{
	double top = 0;

	FOR_ALL top = isnan(IN(X, i)) || isnan(top) ? NAN : fmax(top, fabs(IN(X, i)));
	const double quotient = top / (l->o->out == CPTX_E2M1 ? 6 : 448), scale = (float)quotient == 0 ? 1 : quotient;
	SET(SCALE, 0, scale, scale);
	FOR_ALL SET(Y, i, IN(X, i) / scale, fabs(IN(X, i) / scale));
}

static void rotary_pairs(const rows_line *l)
{
	FOR_ALL
	{
		const double x = IN(X, i), y = IN(X, i ^ 1), c = IN(COS, i), s = i % 2 ? IN(SIN, i) : -IN(SIN, i);
		SET(Y, i, x * c + y * s, fabs(x * c) + fabs(y * s));
	}
}

/* Whether element i comes in front of j. */
static bool larger(const rows_line *l, uint32_t i, uint32_t j)
{
	return IN(X, i) > IN(X, j) || (IN(X, i) == IN(X, j) && i < j);
}

static void top_k(const rows_line *l)
{
	const uint32_t n = l->o->n;
	uint32_t last = n;

	for (uint32_t j = 0, best = 0; j < l->o->k; j++, last = best) {
		if (j == 0 || best != n) { /* else there is no number left */
			best = n;
			FOR_ALL if (!isnan(IN(X, i)) && (last == n || larger(l, last, i)) && (best == n || larger(l, i, best))) best = i;
		}
		SET(TOP, j, best == n ? -(double)INFINITY : IN(X, best), 0);
		SET(AT, j, best == n ? -1.0 : (double)best, 0);
	}
}

static void argmax(const rows_line *l)
{
	uint32_t best = 0;
	double top = -INFINITY;

	FOR_ALL if (IN(X, i) > top) top = IN(X, i), best = i;
	SET(AT, 0, best, 0);
}

void rows_reference(const rows_line *l)
{
	switch (l->o->kernel) {
	case CPTX_ROWS_RMS_NORM: norm(l, false, false); break;
	case CPTX_ROWS_ADD_RMS_NORM: norm(l, false, true); break;
	case CPTX_ROWS_LAYER_NORM: norm(l, true, false); break;
	case CPTX_ROWS_RMS_NORM_BACKWARD: norm_backward(l, false); break;
	case CPTX_ROWS_LAYER_NORM_BACKWARD: norm_backward(l, true); break;
	case CPTX_ROWS_SOFTMAX: softmax(l, false); break;
	case CPTX_ROWS_LOG_SOFTMAX: softmax(l, true); break;
	case CPTX_ROWS_SOFTMAX_BACKWARD: softmax_backward(l, false); break;
	case CPTX_ROWS_LOG_SOFTMAX_BACKWARD: softmax_backward(l, true); break;
	case CPTX_ROWS_CROSS_ENTROPY: cross_entropy(l, false); break;
	case CPTX_ROWS_CROSS_ENTROPY_BACKWARD: cross_entropy(l, true); break;
	case CPTX_ROWS_SWIGLU: gated(l, false, true); break;
	case CPTX_ROWS_GEGLU: gated(l, true, true); break;
	case CPTX_ROWS_GELU: gated(l, true, false); break;
	case CPTX_ROWS_SWIGLU_BACKWARD: gated_backward(l, false, true); break;
	case CPTX_ROWS_GEGLU_BACKWARD: gated_backward(l, true, true); break;
	case CPTX_ROWS_GELU_BACKWARD: gated_backward(l, true, false); break;
	case CPTX_ROWS_ROTARY: rotary(l); break;
	case CPTX_ROWS_ROTARY_PAIRS: rotary_pairs(l); break;
	case CPTX_ROWS_TOP_K: top_k(l); break;
	case CPTX_ROWS_QUANTIZE: quantize(l); break;
	case CPTX_ROWS_ARGMAX: argmax(l); break;
	case CPTX_ROWS_COLUMN_SUM: FOR_ALL SET(DW, i, IN(X, i), fabs(IN(X, i))); break;
	default: break;
	}
}
