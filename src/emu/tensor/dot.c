/* SPDX-License-Identifier: MIT */
/* Sums of products as tensor cores make them. */
#include "emu/tensor/dot.h"
#include "emu/num/real.h"

#include "base/base.h"

/*
 * Of f16, f32; and of a zero, whose products count for none: lower than that of any product, so that a sum of the two still
 * does. No sum is aligned to less than LEAST_SUM (measured on an H200).
 */
enum { LEAST_F16 = -14, LEAST_F32 = -126, NO_EXPONENT = -8000, LEAST_SUM = -133 };
/* What the quick way can scale in f32: sums whose largest exponent is in this range. */
enum { QUICK_LEAST = -96, QUICK_MOST = 110 };
enum { MOST_TERMS = 256 };

/* ---- the rules ---- */

static bool is_8bit(unsigned type) { return type != CPTX_F16 && type != CPTX_BF16 && type != CPTX_TF32; }

struct dot_rule dot_rule(const cptx_target *t, enum dot_unit unit, unsigned atype, unsigned dtype)
{
	unsigned cc = t->compute_capability;
	unsigned ampere = cc < 90, bytes = atype == CPTX_TF32 ? 4 : is_8bit(atype) ? 1 : 2;
	struct dot_rule r = { .frac = 25, .out = dtype == CPTX_F16 ? DOT_F16 : DOT_F32 };

	if (cc < 90)
		r.frac = cc < 75 ? 23 : 24;
	r.step = (uint8_t)(ampere ? 16 / bytes : 32 / bytes);
	if (unit == DOT_WMMA && atype == CPTX_TF32)
		r.step = 4;
	if (bytes == 1 && (cc == 89 || unit == DOT_WGMMA)) {
		r.frac = 13;
		r.out = dtype == CPTX_F16 ? DOT_F16 : DOT_E8M13;
	}
	if (bytes == 1 && unit == DOT_MMA && cc >= 90 && cc < 120) {
		r.pairs = true;
		r.step = 16;
	}
	return r;
}

/* ---- operands ---- */

static int16_t least_exponent(unsigned type)
{
	const struct num_format *f = num_format(type);

	if (type == CPTX_UE8M0)
		return -127;
	return f ? (int16_t)(1 - f->bias) : LEAST_F32;
}

static inline int16_t exponent_of(float v, int16_t least)
{
	uint32_t mag = num_bits32(v) & 0x7fffffff;
	int16_t e = (int16_t)((int)(mag >> 23) - 127);

	if (e > 127)
		return DOT_SPECIAL;
	return !mag ? NO_EXPONENT : e > least ? e : least;
}

/* Of an accumulator, which has the type of the result. */
static inline int16_t accumulator_exponent(const struct dot_rule *r, float c)
{
	return exponent_of(c, r->out == DOT_F16 ? LEAST_F16 : LEAST_F32);
}

void dot_open(unsigned type, const uint32_t *raw, unsigned n, dot_operand o) { dot_open_as(type, type, raw, n, o); }

#define OPEN(expr)                                                                                                          \
	for (unsigned i = 0; i < n; i++) {                                                                                      \
		uint32_t x = raw[i];                                                                                                \
		o.v[i] = (expr);                                                                                                    \
		o.e[i] = exponent_of(o.v[i], least);                                                                                \
	}

void dot_open_as(unsigned type, unsigned as, const uint32_t *raw, unsigned n, dot_operand o)
{
	int16_t least = least_exponent(as);

	switch (type) {
	case CPTX_F16: OPEN(num_from_f16(x)) break;
	case CPTX_BF16: OPEN(num_from_bf16(x)) break;
	case CPTX_TF32: OPEN(num_f32(x & ~UINT32_C(0x1fff))) break;
	default: OPEN(num_to_f32(type, x)) break;
	}
}

/* ---- rounding ---- */

/* A finite number that is zero or in the range of normal f32. */
static inline float round_normal(unsigned out, double d)
{
	uint64_t bits = num_bits64(d), low = (UINT64_C(1) << 29) - 1;

	if (out == DOT_E8M13)
		low = (UINT64_C(1) << 39) - 1;
	if (out != DOT_F16)
		return (float)num_f64(bits & ~low);
	bool odd = (bits & low) != 0;
	float f = (float)num_f64((bits & ~low) | (uint64_t)odd << 29);
	return num_from_f16(num_to_f16(f)) + 0.0f; /* a sum has no negative zero */
}

static double power_of_two(int e) { return num_f64((uint64_t)(1023 + e) << 52); }

static float round_any(unsigned out, double d)
{
	double mag = d < 0 ? -d : d, least = power_of_two(-126);

	if (mag >= power_of_two(128))
		return num_f32(d < 0 ? 0xff800000 : 0x7f800000);
	if (mag >= least || mag == 0)
		return round_normal(out, d);
	if (out == DOT_F16)
		return 0;
	double ulp = power_of_two(out == DOT_E8M13 ? -139 : -149);
	return (float)((double)(int64_t)(d / ulp) * ulp);
}

/* ---- one sum ---- */

/* What one row of A has for a sum: values, exponents, and where in a panel of B the row that each meets begins. */
typedef struct terms {
	unsigned n;
	float v[MOST_TERMS];
	int16_t e[MOST_TERMS];
	uint32_t at[MOST_TERMS];
} terms;

static float special_sum(const terms *t, const float *b, float c, bool nan)
{
	double s = c;

	for (unsigned i = 0; i < t->n; i++)
		s += (double)t->v[i] * b[t->at[i]];
	return s != s || nan ? num_f32(0x7fffffff) : (float)s;
}

/* Any numbers; b, be: the column. */
static float sum_any(const struct dot_rule *r, const terms *t, const float *b, const int16_t *be, int sa, int sb, float c)
{
	int e = accumulator_exponent(r, c), scale = sa + sb;
	bool special = e == DOT_SPECIAL, nan = sa == DOT_SPECIAL || sb == DOT_SPECIAL;

	for (unsigned i = 0; i < t->n; i++) {
		int x = t->e[i] + be[t->at[i]];
		special |= t->e[i] == DOT_SPECIAL || be[t->at[i]] == DOT_SPECIAL;
		e = MAX(e, x + scale);
	}
	if (special || nan)
		return special_sum(t, b, c, nan);
	e = MAX(e, LEAST_SUM);
	double unit = power_of_two(r->frac - e), scaled = power_of_two(scale), sum = (double)(int64_t)(c * unit);
	for (unsigned i = 0; i < t->n; i++)
		sum += (double)(int64_t)((double)t->v[i] * b[t->at[i]] * scaled * unit);
	return round_any(r->out, sum * power_of_two(e - r->frac));
}

/* Vectors of 16 bytes: a panel is one of exponents, two of values.  Compilers make of plain loops over panels what is
 * slower. */
typedef int16_t v_i16 __attribute__((vector_size(16)));
typedef int32_t v_i32 __attribute__((vector_size(16)));
typedef float v_f32 __attribute__((vector_size(16)));

static inline v_f32 load_f32(const float *p)
{
	v_f32 v;
	memcpy(&v, p, sizeof v);
	return v;
}

/* The largest exponent of each column. */
static inline v_i16 panel_exponents(const struct dot_rule *r, const terms *t, const int16_t *be, const float *c)
{
	v_i16 e, x;

	for (unsigned q = 0; q < DOT_PANEL; q++)
		e[q] = accumulator_exponent(r, c[q]);
	for (unsigned i = 0; i < t->n; i++) {
		memcpy(&x, be + t->at[i], sizeof x);
		x += t->e[i];
		v_i16 larger = x > e;
		e = (x & larger) | (e & ~larger);
	}
	return e;
}

static inline void add_parts(double sum[DOT_PANEL], v_i32 lo, v_i32 hi)
{
	for (unsigned q = 0; q < 4; q++)
		sum[q] += lo[q], sum[q + 4] += hi[q];
}

/* Eight columns at once, if their exponents allow it. */
static bool sum_panel(const struct dot_rule *r, const terms *t, const float *b, const int16_t *be, float *c)
{
	enum { AT_ONCE = 8 /* sums of so many products and the accumulator fit into 32 bits */ };
	v_i16 e = panel_exponents(r, t, be, c);
	v_i16 some = e > NO_EXPONENT / 2; /* columns of zeros are as good as any */
	e &= some;
	uint32_t bits[DOT_PANEL];
	float unit[DOT_PANEL];
	double sum[DOT_PANEL] = { 0 };
	int lo = e[0], hi = e[0];

	for (unsigned q = 1; q < DOT_PANEL; q++)
		lo = MIN(lo, e[q]), hi = MAX(hi, e[q]);
	if (lo < QUICK_LEAST || hi > QUICK_MOST)
		return false;
	for (unsigned q = 0; q < DOT_PANEL; q++)
		bits[q] = (uint32_t)(127 + r->frac - e[q]) << 23;
	memcpy(unit, bits, sizeof unit);
	v_f32 unit0 = load_f32(unit), unit1 = load_f32(unit + 4);
	v_i32 part0 = __builtin_convertvector(load_f32(c) * unit0, v_i32),
		  part1 = __builtin_convertvector(load_f32(c + 4) * unit1, v_i32);
	for (unsigned i = 0; i < t->n;) {
		for (unsigned end = MIN(i + AT_ONCE, t->n); i < end; i++) {
			const float *x = b + t->at[i];
			part0 += __builtin_convertvector(load_f32(x) * t->v[i] * unit0, v_i32);
			part1 += __builtin_convertvector(load_f32(x + 4) * t->v[i] * unit1, v_i32);
		}
		add_parts(sum, part0, part1);
		part0 = part1 = (v_i32){ 0 };
	}
	for (unsigned q = 0; q < DOT_PANEL; q++)
		c[q] = round_normal(r->out, sum[q] * power_of_two(e[q] - r->frac));
	return true;
}

/* A row of D: all panels. */
static void sum_row(const struct dot_rule *r, const dot_shape *s, const terms *t, dot_operand b, int sa, const int16_t *sb,
                    float *d)
{
	if (!t->n) /* a half of a sparse A that stores none of its elements */
		return;
	for (unsigned n = 0; n < s->n; n += DOT_PANEL) {
		const float *v = b.v + n * s->k;
		const int16_t *e = b.e + n * s->k;
		if (!sb && sum_panel(r, t, v, e, d + n))
			continue;
		for (unsigned q = 0; q < DOT_PANEL; q++)
			d[n + q] = sum_any(r, t, v + q, e + q, sa, sb ? sb[n + q] : 0, d[n + q]);
	}
}

static unsigned row_of_b(const dot_shape *s, unsigned row, unsigned j) { return s->at ? s->at[row * s->ka + j] : j; }

static void add_term(terms *t, const dot_shape *s, dot_operand a, unsigned row, unsigned j)
{
	t->v[t->n] = a.v[row * s->ka + j];
	t->e[t->n] = a.e[row * s->ka + j];
	t->at[t->n++] = row_of_b(s, row, j) * DOT_PANEL;
}

/* Half of the elements of each four at a time, from zero; then the accumulator. */
static void row_in_pairs(const struct dot_rule *r, const dot_shape *s, dot_operand a, dot_operand b, unsigned row, float *d)
{
	float part[MOST_TERMS] = { 0 };
	terms t;

	for (unsigned half = 0; half < 2; half++) {
		t.n = 0;
		for (unsigned j = 0; j < s->ka; j++)
			if ((row_of_b(s, row, j) >> 1 & 1) == half)
				add_term(&t, s, a, row, j);
		sum_row(r, s, &t, b, 0, NULL, part);
	}
	for (unsigned n = 0; n < s->n; n++)
		if (r->out == DOT_F16)
			d[n] = num_from_f16(
				(uint32_t)num_add(CPTX_F16, num_to_f16(d[n]), num_to_f16(part[n]), CPTX_OPT_(struct num_mode, 0)));
		else
			d[n] = num_f32(num_f32_add(num_bits32(d[n]), num_bits32(part[n])));
}

void dot_float(const struct dot_rule *r, const dot_shape *s, dot_operand a, dot_operand b, const int16_t *sa,
               const int16_t *sb, float *d)
{
	terms t;

	for (unsigned row = 0; row < s->m; row++) {
		if (r->pairs) {
			row_in_pairs(r, s, a, b, row, d + row * s->n);
			continue;
		}
		for (unsigned j = 0; j < s->ka;) {
			t.n = 0;
			for (unsigned end = MIN(j + r->step, s->ka); j < end; j++)
				add_term(&t, s, a, row, j);
			sum_row(r, s, &t, b, sa ? sa[row] : 0, sb, d + row * s->n);
		}
	}
}

/* ---- four-bit floats with scales: exact sums of 16, scaled, then added as above ---- */

static float scaled_sum(const struct dot_rule *r, const dot_shape *s, const float *a, const float *b, dot_operand sa,
                        dot_operand sb, unsigned vec, unsigned row, unsigned col, float c)
{
	enum { BLOCK = 16 };
	double part[MOST_TERMS / BLOCK] = { 0 };
	int at[MOST_TERMS / BLOCK], e = exponent_of(c, LEAST_F32);
	bool nan = c != c;

	for (unsigned j = 0; j < s->ka; j++) {
		unsigned k = row_of_b(s, row, j);
		part[j / BLOCK] += (double)a[row * s->ka + j] * b[DOT_B(s->k, k, col)];
	}
	for (unsigned i = 0; i < s->ka / BLOCK; i++) {
		unsigned v = i * BLOCK * vec / s->ka;
		nan |= sa.e[row * vec + v] == DOT_SPECIAL || sb.e[col * vec + v] == DOT_SPECIAL;
		at[i] = sa.e[row * vec + v] + sb.e[col * vec + v];
		part[i] *= (double)sa.v[row * vec + v] * sb.v[col * vec + v];
		e = MAX(e, at[i]);
	}
	if (nan)
		return num_f32(0x7fffffff);
	if (exponent_of(c, LEAST_F32) == DOT_SPECIAL)
		return c;
	e = MAX(e, LEAST_SUM);
	double unit = power_of_two(r->frac - e), sum = (double)(int64_t)(c * unit);
	for (unsigned i = 0; i < s->ka / BLOCK; i++)
		sum += (double)(int64_t)(part[i] * unit);
	return round_any(r->out, sum * power_of_two(e - r->frac));
}

void dot_scaled(const struct dot_rule *r, const dot_shape *s, const float *a, const float *b, dot_operand sa, dot_operand sb,
                unsigned vec, float *d)
{
	for (unsigned row = 0; row < s->m; row++)
		for (unsigned col = 0; col < s->n; col++)
			d[row * s->n + col] = scaled_sum(r, s, a, b, sa, sb, vec, row, col, d[row * s->n + col]);
}

/* ---- integers, bits, f64 ---- */

void dot_open_int(unsigned type, const uint32_t *raw, unsigned n, int16_t *to)
{
	unsigned shift = 32 - num_width(type);

	for (unsigned i = 0; i < n; i++)
		to[i] = (int16_t)(num_is_signed(type) ? (int32_t)(raw[i] << shift) >> shift : (int32_t)raw[i]);
}

void dot_int(const dot_shape *s, const int16_t *a, const int16_t *b, bool saturate, uint32_t *d)
{
	for (unsigned row = 0; row < s->m; row++)
		for (unsigned n = 0; n < s->n; n += DOT_PANEL) {
			int32_t sum[DOT_PANEL] = { 0 };
			for (unsigned j = 0; j < s->ka; j++) {
				const int16_t *x = b + DOT_B(s->k, row_of_b(s, row, j), n);
				int16_t y = a[row * s->ka + j];
				for (unsigned q = 0; q < DOT_PANEL; q++)
					sum[q] += x[q] * y;
			}
			for (unsigned q = 0; q < DOT_PANEL; q++) {
				uint32_t *to = d + row * s->n + n + q;
				int64_t all = (int64_t)(int32_t)*to + sum[q];
				*to = (uint32_t)(saturate ? MIN(MAX(all, INT32_MIN), INT32_MAX) : all);
			}
		}
}

void dot_bits(const dot_shape *s, const uint32_t *a, const uint32_t *b, bool by_and, uint32_t *d)
{
	unsigned words = s->k / 32;

	for (unsigned row = 0; row < s->m; row++)
		for (unsigned col = 0; col < s->n; col++)
			for (unsigned i = 0; i < words; i++) {
				uint32_t x = a[row * words + i], y = b[col * words + i];
				d[row * s->n + col] += (unsigned)__builtin_popcount(by_and ? x & y : x ^ y);
			}
}

void dot_f64(const dot_shape *s, const uint64_t *a, const uint64_t *b, unsigned rnd, uint64_t *d)
{
	struct num_mode mode = { .rnd = (uint16_t)rnd };

	for (unsigned row = 0; row < s->m; row++)
		for (unsigned col = 0; col < s->n; col++)
			for (unsigned k = 0; k < s->k; k++)
				d[row * s->n + col] = num_fma(CPTX_F64, a[row * s->k + k], b[col * s->k + k], d[row * s->n + col], &mode);
}
