/* SPDX-License-Identifier: MIT */
/* Floating point: half, bf16, single, double, and formats of 4 to 8 bits. */
#include "reference/number.h"
#include "run.h"

#include "../matrix_forms.h"

#include <fenv.h>

#define UNUSED (void)got

static double rounded_to(enum cptx_type t, double v) { return number_value(t, number_bits(t, v)); }
static double h(double v) { return rounded_to(CPTX_F16, v); }
static double bf(double v) { return rounded_to(CPTX_BF16, v); }
static double f16(const void *p, size_t i) { return number_value(CPTX_F16, ((const uint16_t *)p)[i]); }
static double bf16(const void *p, size_t i) { return number_value(CPTX_BF16, ((const uint16_t *)p)[i]); }
static void put(enum cptx_type t, void *p, size_t i, double v) { ((uint16_t *)p)[i] = (uint16_t)number_bits(t, v); }

/* Numbers from 0.1 to 1.1. */
static void positive_f64(void **b, void **got)
{
	double *x = b[0];

	UNUSED;
	for (int i = 0; i < 32; i++)
		x[i] = fabs(x[i]) + 0.1;
}

static void positive_f32(void **b, void **got)
{
	float *x = b[0];

	UNUSED;
	for (int i = 0; i < 32; i++)
		x[i] = fabsf(x[i]) + 0.1f;
}

/* ---- bf16_math ---- */

static void bf16_norm(void **b, void **got)
{
	double sum = 0;

	UNUSED;
	for (size_t i = 0; i < 100; i++)
		sum += bf16(b[0], i) * bf16(b[0], i);
	for (size_t i = 0; i < 100; i++)
		put(CPTX_BF16, b[2], i, bf16(b[0], i) / sqrt(sum / 100 + 1e-5) * bf16(b[1], i));
}

static void bf16_packed(void **b, void **got)
{
	int *k = b[3];
	const int *seen = got[3];
	double r[2];

	for (size_t i = 0; i < 32; i++) {
		for (size_t j = 0; j < 2; j++) {
			double x = bf16(b[0], 2 * i + j), y = bf16(b[1], 2 * i + j);
			r[j] = bf(x * y + bf(x - y));
			r[j] = bf((r[j] > x ? r[j] : x) - fabs(y));
		}
		bool both = bf16(b[0], 2 * i) >= bf16(b[1], 2 * i) && bf16(b[0], 2 * i + 1) >= bf16(b[1], 2 * i + 1);
		for (size_t j = 0; j < 2; j++)
			put(CPTX_BF16, b[2], 2 * i + j, both ? r[j] * 0.5 : r[j]);
		double y = bf16(b[1], 2 * i);
		k[i] = (int)nearbyint(bf16(b[0], 2 * i)) + (int)(y > 0 ? y : 0) +
		       (int16_t)number_bits(CPTX_BF16, exp2(bf16(b[2], 2 * i + 1)));
		if (abs(k[i] - seen[i]) <= 1) /* the last bit of hexp2 */
			k[i] = seen[i];
	}
}

/* ---- half_math, debug_calls ---- */

static void half_basic(void **b, void **got)
{
	UNUSED;
	for (size_t i = 0; i < 40; i++) {
		double x = f16(b[0], i), y = f16(b[1], i), r = h(x * y + h(x - y)), p = h(x * y);
		r = x > y ? -r : fabs(r);
		r = h(r + (p < 0 ? 0 : p > 1 ? 1 : p));
		put(CPTX_F16, b[2], i, r / h(x + y));
	}
}

static double pack_lane(double x, double y, double z)
{
	double r = h(h(x * y + h(x + y)) * (x > y));

	r = h(r * x + z);
	return r < 0 ? 0 : r > 1 ? 1 : r;
}

static void half_packed(void **b, void **got)
{
	UNUSED;
	for (size_t i = 0; i < 32; i++) {
		double x[2] = { f16(b[0], 2 * i), f16(b[0], 2 * i + 1) }, y[2] = { f16(b[1], 2 * i), f16(b[1], 2 * i + 1) };
		double r[2] = { pack_lane(x[0], y[0], x[1]), pack_lane(x[1], y[1], y[1]) };
		bool differ = x[0] != y[0] && x[1] != y[1];
		for (size_t j = 0; j < 2; j++) {
			double v = r[differ ? 1 - j : j] * fmin(x[j], y[j]) + fmax(x[j], y[j]);
			put(CPTX_F16, b[2], 2 * i + j, v < 0 ? 0 : v);
		}
	}
}

static void positive_f16(void **b, void **got)
{
	UNUSED;
	for (size_t i = 0; i < 32; i++)
		put(CPTX_F16, b[0], i, fabs(f16(b[0], i)) + 0.1);
}

static void half_functions(void **b, void **got)
{
	float *f = b[1];
	int *k = b[2];

	UNUSED;
	for (size_t i = 0; i < 32; i++) {
		double x = f16(b[0], i);
		double v = exp(x) + log2(x) + sqrt(x) + 1 / sqrt(x) + 1 / x + sin(x) + tanh(x) + floor(x);
		k[i] = (int)x + (int)nearbyint(x) + (int)ceil(x) + (int)floor(x);
		f[i] = (float)(v + 2 * (double)i + h(v) + f16(b[0], i ^ 1));
	}
}

static void mix_all(void **b, void **got)
{
	UNUSED;
	for (size_t i = 0; i < 32; i++) {
		double x = f16(b[0], i), once = h(h(x * x) + 0.5);
		put(CPTX_F16, b[1], i, h(x * once) + 0.5);
	}
}

/* ---- float_math, fast_flags ---- */

static void accurate(void **b, void **got)
{
	const float *a = b[0];
	float *out = b[1];

	UNUSED;
	for (int i = 0; i < 32; i++) {
		double x = a[i];
		out[i] =
			(float)(sin(x) + cos(x) * exp(x) + log(x) + pow(x, 2.5) + tanh(x) + sqrt(x) / x + atan2(x, 2) + fmod(x, 0.3f));
	}
}

static void fast(void **b, void **got)
{
	const float *a = b[0];
	float *out = b[1];

	UNUSED;
	for (int i = 0; i < 32; i++) {
		double x = a[i];
		out[i] = (float)(sin(x) + cos(x) * exp(x) + log(x) + pow(x, 2.5) + sin(x) / cos(x) + tan(x) + pow(10, x) +
		                 (x > 1 ? 1 : x) + 2 / sqrt(x) + exp2(x) + log2(x));
	}
}

static float toward(int mode, double (*f)(float, float), float x, float y)
{
	volatile float r;

	fesetround(mode);
	volatile double v = f(x, y);
	r = (float)v;
	fesetround(FE_TONEAREST);
	return r;
}
static double plus(float x, float y) { return (double)x + y; }
static double minus(float x, float y) { return (double)x - y; }
static double times(float x, float y) { return (double)x * y; }
static double over(float x, float y) { return (double)x / y; }

static void rounded(void **b, void **got)
{
	const float *a = b[0];
	float *out = b[1];
	int *k = b[2], e, bits;

	UNUSED;
	for (int i = 0; i < 32; i++) {
		float x = a[i], y = a[i + 1];
		double r = (double)toward(FE_TONEAREST, plus, x, y) +
		           (double)toward(FE_UPWARD, minus, x, y) * toward(FE_DOWNWARD, times, x, y);
		r += x * (double)y + 0.1 + toward(FE_UPWARD, over, x, y) + sqrt(x) + toward(FE_DOWNWARD, over, 1, y);
		r += fmin(x, y) + fmax(x, y) + fabs(x) + floor(x) + rint(y) + trunc(x) + round(y) + copysign(x, y);
		memcpy(&bits, &y, sizeof bits);
		k[i] = (int)((unsigned)(2 * (int)lrint(x) + (int)y) + (unsigned)bits + (signbit(y) ? 2u : 3u));
		out[i] = (float)(r + frexp(x, &e));
		frexp(x, &e);
		out[i] += ldexpf(y, e);
	}
}

static void rounded_fill(void **b, void **got)
{
	float *x = b[0];

	UNUSED;
	positive_f32(b, got);
	x[32] = 0.75f;
}

static void flagged(void **b, void **got)
{
	const float *a = b[0];
	const double *d = b[1];
	float *out = b[2];

	UNUSED;
	for (int i = 0; i < 32; i++) {
		double x = a[i];
		out[i] = (float)(sin(x) + exp(x) / log(x) + pow(x, 0.3) + sqrt(x) * x + 1 / x + d[i] * d[i] + 3 + tan(x));
	}
}

/* Away from 1, where the logarithm below the line is 0. */
static void flagged_fill(void **b, void **got)
{
	float *x = b[0];

	UNUSED;
	for (int i = 0; i < 32; i++)
		x[i] = fabsf(x[i]) * 0.5f + 0.2f;
}

/* ---- double_math ---- */

static void double_basic(void **b, void **got)
{
	const double *a = b[0], *c = b[1];
	double *out = b[2];

	UNUSED;
	for (int i = 0; i < 32; i++) {
		double x = a[i], y = c[i], r = x + y + (x - y) * (x * y) + (x * y + 1.5);
		r += x / y + sqrt(x) + 1 / y + 1 / sqrt(x) + fmin(x, y) + fmax(x, 2) + fabs(y);
		r += floor(x) + ceil(y) + trunc(x) + rint(y) + copysign(x, y);
		out[i] = x > y ? r : -r;
	}
}

static void double_convert(void **b, void **got)
{
	const double *a = b[0];
	float *f = b[1];
	int64_t *l = b[2], bits;
	uint32_t *u = b[3];

	UNUSED;
	for (int i = 0; i < 32; i++) {
		double x = a[i];
		fesetround(FE_DOWNWARD);
		volatile float down = (float)*(const volatile double *)&a[i];
		fesetround(FE_TONEAREST);
		volatile float sum = down + (float)u[i];
		sum += (float)l[i];
		sum += (float)(u[i] & 0xff);
		memcpy(&bits, &x, sizeof bits);
		l[i] = (int64_t)nearbyint(x) + (int64_t)x + (int64_t)floorf(sum) + bits;
		u[i] = (uint32_t)x + (uint32_t)ceilf(sum) + (uint8_t)x + (uint32_t)((uint64_t)bits >> 32);
		uint64_t high = (uint64_t)(uint32_t)i << 32 | 5;
		double tiny;
		memcpy(&tiny, &high, sizeof tiny);
		f[i] = sum + (float)(tiny + i + u[i]);
	}
}

static void double_functions(void **b, void **got)
{
	const double *a = b[0];
	double *out = b[1];

	UNUSED;
	for (int i = 0; i < 32; i++) {
		double x = a[i];
		out[i] = exp(x) + log(x) + cbrt(x) + fmod(x, 3) + ldexp(x, 3) + hypot(x, 2) + atan(x) + erf(x);
	}
}

static void double_trig(void **b, void **got)
{
	const double *a = b[0];
	double *out = b[1];

	UNUSED;
	for (int i = 0; i < 32; i++)
		out[i] = sin(a[i]) * cos(a[i]);
}

/* ---- fp8, fp6_fp4 ---- */

/* The nearest number of 4 to 8 bits, of two the one with an even pattern. */
static uint32_t narrow(enum cptx_type t, double v)
{
	uint32_t best = 0, n = t == CPTX_E2M1 ? 16 : t == CPTX_E4M3 || t == CPTX_E5M2 ? 256 : 64;

	for (uint32_t i = 0; i < n; i++) {
		double x = form_value(t, i), d = fabs(x - v), least = fabs(form_value(t, best) - v);
		if (isfinite(x) && signbit(x) == signbit(v) &&
		    (d < least || signbit(v) != signbit(form_value(t, best)) || (d == least && !(i & 1))))
			best = i;
	}
	return best;
}

static void to_fp8(void **b, void **got)
{
	const float *f = b[0];
	uint32_t *out = b[2];

	UNUSED;
	for (size_t i = 0; i < 32; i++) {
		out[i] = narrow(CPTX_E4M3, f[i]) | narrow(CPTX_E5M2, f[i + 1]) << 8 | narrow(CPTX_E4M3, f16(b[1], 2 * i)) << 16 |
		         narrow(CPTX_E4M3, f16(b[1], 2 * i + 1)) << 24;
		out[i + 32] = 0;
		for (size_t j = 0; j < 4; j++)
			out[i + 32] |= narrow(CPTX_E5M2, f[i + j]) << 8 * j;
	}
}

static void from_fp8(void **b, void **got)
{
	const uint8_t *a = b[0], *two = b[1], *four = b[2];
	float *out = b[3];

	UNUSED;
	for (size_t i = 0; i < 32; i++) {
		double q[4];
		for (size_t j = 0; j < 4; j++)
			q[j] = form_value(CPTX_E4M3, four[4 * i + j]);
		out[i] =
			(float)(form_value(CPTX_E4M3, a[i]) + form_value(CPTX_E5M2, two[2 * i]) * form_value(CPTX_E5M2, two[2 * i + 1]) +
		            q[0] + q[1] + q[2] * q[3]);
	}
}

static void from_fp8_fill(void **b, void **got)
{
	UNUSED;
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < 32 << k; i++)
			((uint8_t *)b[k])[i] &= 0xbf; /* below 2 */
}

static void to_narrow(void **b, void **got)
{
	const float *f = b[0];
	uint32_t *out = b[1];

	UNUSED;
	for (size_t i = 0; i < 32; i++) {
		const float *v = f + 2 * i;
		int e[2];
		for (int j = 0; j < 2; j++) /* rounded up */
			e[j] = frexp(v[j], &e[j]) == 0.5 ? e[j] - 1 : e[j];
		out[2 * i] = narrow(CPTX_E2M3, v[0]) | narrow(CPTX_E2M3, v[1]) << 8 | narrow(CPTX_E3M2, v[0]) << 16 |
		             narrow(CPTX_E3M2, v[1]) << 24;
		out[2 * i + 1] = narrow(CPTX_E2M1, v[0]) | narrow(CPTX_E2M1, v[1]) << 4 | (uint32_t)(127 + e[0]) << 16 |
		                 (uint32_t)(127 + e[1]) << 24;
	}
}

static void to_narrow_fill(void **b, void **got)
{
	float *f = b[0];

	UNUSED;
	for (int i = 0; i < 64; i++)
		f[i] = fabsf(f[i]) * 8;
}

static void from_narrow(void **b, void **got)
{
	const uint8_t *six = b[0], *four = b[1];

	UNUSED;
	for (size_t i = 0; i < 64; i++) {
		double a = form_value(CPTX_E2M3, six[i]), c = form_value(CPTX_E3M2, six[i]);
		put(CPTX_F16, b[2], i, a * c + form_value(CPTX_E2M1, four[i / 2] >> (i & 1) * 4 & 15));
	}
}

static void from_narrow_fill(void **b, void **got)
{
	UNUSED;
	for (int i = 0; i < 64; i++)
		((uint8_t *)b[0])[i] &= 0x3f;
}

static const corpus_case rows[] = {
	ROW("bf16_math", "bf16_norm", "1/32", "buf:bf16[100]=rand:1 buf:bf16[100]=rand:2 buf:bf16[100] s32:100",
	    .expect = bf16_norm, .tolerance = 8e-3),
	ROW("bf16_math", "bf16_packed", "1/32", "buf:bf16[64]=rand:1 buf:bf16[64]=rand:2 buf:bf16[64] buf:s32[32]",
	    .expect = bf16_packed, .tolerance = 1e-9),
	ROW("half_math", "half_basic", "2/32", "buf:f16[40]=rand:1 buf:f16[40]=rand:2 buf:f16[40] s32:40", .expect = half_basic,
	    .tolerance = 1e-3),
	ROW("half_math", "half_packed", "1/32", "buf:f16[64]=rand:1 buf:f16[64]=rand:2 buf:f16[64]", .expect = half_packed,
	    .tolerance = 1e-9),
	ROW("half_math", "half_functions", "1/32", "buf:f16[32]=rand:1 buf:f32[32] buf:s32[32]", .prepare = positive_f16,
	    .expect = half_functions, .tolerance = 4e-3),
	ROW("debug_calls", "mix_all", "1/32", "buf:f16[32]=rand:1 buf:f16[32]", .expect = mix_all, .tolerance = 1e-9),
	ROW("float_math", "accurate", "1/32", "buf:f32[32]=rand:1 buf:f32[32]", .prepare = positive_f32, .expect = accurate,
	    .tolerance = 2e-6),
	ROW("float_math", "fast", "1/32", "buf:f32[32]=rand:1 buf:f32[32]", .prepare = positive_f32, .expect = fast,
	    .tolerance = 1e-5),
	ROW("float_math", "rounded", "1/32", "buf:f32[33]=rand:1 buf:f32[32] buf:s32[32]", .prepare = rounded_fill,
	    .expect = rounded, .tolerance = 1e-6),
	ROW("fast_flags", "flagged", "1/32", "buf:f32[32]=rand:1 buf:f64[32]=rand:2 buf:f32[32]", .prepare = flagged_fill,
	    .expect = flagged, .tolerance = 2e-5),
	ROW("double_math", "double_basic", "1/32", "buf:f64[32]=rand:1 buf:f64[32]=rand:2 buf:f64[32]", .prepare = positive_f64,
	    .expect = double_basic, .tolerance = 1e-14),
	ROW("double_math", "double_convert", "1/32", "buf:f64[32]=rand:1 buf:f32[32] buf:s64[32]=iota buf:u32[32]=iota",
	    .prepare = positive_f64, .expect = double_convert),
	ROW("double_math", "double_functions", "1/32", "buf:f64[32]=rand:1 buf:f64[32]", .prepare = positive_f64,
	    .expect = double_functions, .tolerance = 1e-14),
	ROW("double_math", "double_trig", "1/32", "buf:f64[32]=iota buf:f64[32]", .expect = double_trig, .tolerance = 1e-14),
	ROW("fp8", "to_fp8", "1/32", "buf:f32[35]=rand:1 buf:f16[64]=rand:2 buf:u32[64]", .expect = to_fp8),
	ROW("fp8", "from_fp8", "1/32", "buf:u8[32]=rand:1 buf:u8[64]=rand:2 buf:u8[128]=rand:3 buf:f32[32]",
	    .prepare = from_fp8_fill, .expect = from_fp8, .tolerance = 1e-6),
	ROW("fp6_fp4", "to_narrow", "1/32", "buf:f32[64]=rand:1 buf:u32[64]", .prepare = to_narrow_fill, .expect = to_narrow),
	ROW("fp6_fp4", "from_narrow", "1/32", "buf:u8[64]=rand:1 buf:u8[32]=rand:2 buf:f16[64]", .prepare = from_narrow_fill,
	    .expect = from_narrow),
};
const corpus_table corpus_floats = CORPUS_TABLE(rows);
