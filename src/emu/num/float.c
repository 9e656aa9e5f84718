/* SPDX-License-Identifier: MIT */
/*
 * Arithmetic of f16, bf16, f32 and f64.  All but f64 is done in double, where products of two are exact, sums are rounded to
 * odd, and quotients and roots of 24-bit numbers are never as near to the middle or the end of an interval as to be mistaken
 * for it; num_float_round then rounds once.  f64 itself is the host's where it is rounded to nearest.
 */
#include "emu/num/real.h"

static double widen(unsigned type, uint64_t a, bool ftz)
{
	switch (type) {
	case CPTX_F16: return num_from_f16((uint32_t)(ftz ? num_flush(num_format(type), a & 0xffff) : a));
	case CPTX_BF16: return num_from_bf16((uint32_t)(ftz ? num_flush(num_format(type), a & 0xffff) : a));
	default: return num_f32(ftz ? num_f32_ftz((uint32_t)a) : (uint32_t)a);
	}
}

/* To f32, rounded to odd. */
static float narrow_odd(double d)
{
	float f = (float)d;
	if (f == d || f != f)
		return f;
	return num_f32((num_bits32(f) - (fabs((double)f) > fabs(d))) | 1);
}

uint64_t num_float_round(unsigned type, double d, const struct num_mode *m)
{
	const struct num_format *f = num_format(type);
	if (!num_is_rn(m->rnd) || (m->ftz && fabs(d) < ldexp(1, 1 - f->bias)))
		return num_encode(f, num_decode(num_format(CPTX_F64), num_bits64(d)), m);
	if (m->sat && !(d > 0 && d < 1))
		return d > 0 ? num_truth(type, true) : 0;
	if (m->relu && d <= 0)
		return 0;
	uint32_t r = type == CPTX_F32   ? num_f32_bits((float)d)
	             : type == CPTX_F16 ? num_to_f16(narrow_odd(d))
	                                : num_to_bf16(narrow_odd(d));
	return r;
}

/* a + b, with the sign that RM gives a sum of nothing. */
static double sum(double a, double b, unsigned rnd)
{
	double d = num_add_odd(a, b);
	return rnd == CPTX_RM && d == 0 && !signbit(a) != !signbit(b) ? -0.0 : d;
}

/* ---- f64 ---- */
/* The manual promises payloads of NaN, but not whose: on sm_90 the second operand's, then the third's, then the first's. */
static bool nan64(const uint64_t *operand, int n, uint64_t *d)
{
	for (int i = 1; i <= n; i++)
		if (num_f64(operand[i % n]) != num_f64(operand[i % n])) {
			*d = operand[i % n] | (uint64_t)1 << 51;
			return true;
		}
	return false;
}

static uint64_t bits64(double d) { return d != d ? num_format(CPTX_F64)->nan : num_bits64(d); }

static uint64_t fma64(uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	const struct num_format *f = num_format(CPTX_F64);
	uint64_t d, in[] = { a, b, c };
	if (nan64(in, 3, &d))
		return d;
	if (num_is_rn(m->rnd))
		return bits64(fma(num_f64(a), num_f64(b), num_f64(c)));
	return num_encode(f, num_real_fma(num_decode(f, a), num_decode(f, b), num_decode(f, c), m->rnd), m);
}

static uint64_t add64(uint64_t a, uint64_t b, const struct num_mode *m)
{
	uint64_t d, in[] = { a, b };
	if (nan64(in, 2, &d))
		return d;
	return num_is_rn(m->rnd) ? bits64(num_f64(a) + num_f64(b)) : fma64(a, num_bits64(1), b, m);
}

static uint64_t mul64(uint64_t a, uint64_t b, const struct num_mode *m)
{
	const struct num_format *f = num_format(CPTX_F64);
	uint64_t d, in[] = { a, b };
	if (nan64(in, 2, &d))
		return d;
	if (num_is_rn(m->rnd))
		return bits64(num_f64(a) * num_f64(b));
	return num_encode(f, num_real_mul(num_decode(f, a), num_decode(f, b)), m);
}

static uint64_t div64(uint64_t a, uint64_t b, const struct num_mode *m)
{
	const struct num_format *f = num_format(CPTX_F64);
	uint64_t d, in[] = { b, a }; /* here the dividend's NaN first */
	if (nan64(in, 2, &d))
		return d;
	if (num_is_rn(m->rnd))
		return bits64(num_f64(a) / num_f64(b));
	return num_encode(f, num_real_div(num_decode(f, a), num_decode(f, b)), m);
}

static uint64_t sqrt64(uint64_t a, const struct num_mode *m)
{
	const struct num_format *f = num_format(CPTX_F64);
	uint64_t d;
	if (nan64(&a, 1, &d))
		return d;
	return num_is_rn(m->rnd) ? bits64(sqrt(num_f64(a))) : num_encode(f, num_real_sqrt(num_decode(f, a)), m);
}

/*
 * The .approx.ftz of f64 reads and writes upper halves only.  The manual gives no bound for a result whose 20 bits of
 * mantissa are rounded to nearest, as here.
 */
static uint64_t upper(double d)
{
	const struct num_format *f = num_format(CPTX_F64);
	uint64_t bits = num_bits64(d);
	if (d != d)
		return 0x7fffffff00000000;
	if (bits << 1 < (uint64_t)f->inf << 1)
		bits += 0x7fffffff + (bits >> 32 & 1);
	return num_flush(f, bits) & 0xffffffff00000000;
}
static double lower_cut(uint64_t a) { return num_f64(num_flush(num_format(CPTX_F64), a & 0xffffffff00000000)); }

/* ---- one element ---- */
uint64_t num_float_add(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m)
{
	if (type == CPTX_F64)
		return add64(a, b, m);
	return num_float_round(type, sum(widen(type, a, m->ftz), widen(type, b, m->ftz), m->rnd), m);
}

uint64_t num_float_mul(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m)
{
	if (type == CPTX_F64)
		return mul64(a, b, m);
	return num_float_round(type, widen(type, a, m->ftz) * widen(type, b, m->ftz), m);
}

/*
 * What a tensor map fills with where it is asked for NaN; the manual has a name for it only.  As a factor, with either
 * sign, it makes the result 0; as the addend it is a NaN like any other (measured on an H200).
 */
static bool is_oob(uint64_t a) { return (a & 0x7fff) == 0x7ff7; }

uint64_t num_float_fma(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	if (type == CPTX_F64)
		return fma64(a, b, c, m);
	if (m->oob && (is_oob(a) || is_oob(b)))
		return 0;
	return num_float_round(type, sum(widen(type, a, m->ftz) * widen(type, b, m->ftz), widen(type, c, m->ftz), m->rnd), m);
}

uint64_t num_float_div(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m)
{
	if (type == CPTX_F64)
		return div64(a, b, m);
	double x = widen(type, a, m->ftz), y = widen(type, b, m->ftz), d = x / y;
	/* a * (1 / b), whose second factor is flushed */
	if (m->rnd == CPTX_APPROX && fabs(y) > 0x1p126 && !isinf(y) && d == d)
		d = isinf(x) ? NAN : copysign(0.0, d);
	return num_float_round(type, d, m);
}

uint64_t num_rcp(unsigned type, uint64_t a, const struct num_mode *m)
{
	if (type == CPTX_F64)
		return m->rnd == CPTX_APPROX ? upper(1 / lower_cut(a)) : div64(num_bits64(1), a, m);
	return num_float_round(type, 1 / widen(type, a, m->ftz), m);
}

uint64_t num_sqrt(unsigned type, uint64_t a, const struct num_mode *m)
{
	if (type == CPTX_F64)
		return sqrt64(a, m);
	return num_float_round(type, sqrt(widen(type, a, m->ftz)), m);
}

uint64_t num_rsqrt(unsigned type, uint64_t a, const struct num_mode *m)
{
	if (type == CPTX_F64 && m->ftz)
		return upper(1 / sqrt(lower_cut(a)));
	if (type == CPTX_F64) {
		uint64_t d;
		return nan64(&a, 1, &d) ? d : bits64(1 / sqrt(num_f64(a)));
	}
	return num_float_round(type, 1 / sqrt(widen(type, a, m->ftz)), m);
}

/* ---- one place where a number is only looked at ---- */
uint64_t num_copysign(unsigned type, uint64_t a, uint64_t b)
{
	uint64_t sign = (uint64_t)1 << (num_width(type) - 1);
	return (a & sign) | (b & (sign - 1));
}

bool num_testp(unsigned type, unsigned op, uint64_t a)
{
	const struct num_format *f = num_format(type);
	struct num_real r = num_decode(f, a);
	bool subnormal = r.kind == NUM_FINITE && r.exp < 1 - f->bias, finite = r.kind == NUM_FINITE || r.kind == NUM_ZERO;
	switch (op) {
	case CPTX_FINITE: return finite;
	case CPTX_INFINITE: return r.kind == NUM_INF;
	case CPTX_NUMBER: return r.kind != NUM_NAN;
	case CPTX_NOTANUMBER: return r.kind == NUM_NAN;
	case CPTX_NORMAL: return finite && !subnormal;
	default: return subnormal;
	}
}

/* Infinities and NaN too: exact for every type. */
static double value(unsigned type, uint64_t a, bool ftz) { return type == CPTX_F64 ? num_f64(a) : widen(type, a, ftz); }

bool num_float_cmp(unsigned type, unsigned cmp, uint64_t a, uint64_t b, bool ftz)
{
	double x = value(type, a, ftz), y = value(type, b, ftz);
	bool nan = isunordered(x, y);
	switch (cmp) {
	case CPTX_EQ: return x == y;
	case CPTX_NE: return !nan && x != y;
	case CPTX_LT: return isless(x, y);
	case CPTX_LE: return islessequal(x, y);
	case CPTX_GT: return isgreater(x, y);
	case CPTX_GE: return isgreaterequal(x, y);
	case CPTX_EQU: return nan || x == y;
	case CPTX_NEU: return x != y;
	case CPTX_LTU: return !isgreaterequal(x, y);
	case CPTX_LEU: return !isgreater(x, y);
	case CPTX_GTU: return !islessequal(x, y);
	case CPTX_GEU: return !isless(x, y);
	case CPTX_NUM: return !nan;
	default: return nan;
	}
}

uint64_t num_float_max(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m, bool min)
{
	const struct num_format *f = num_format(type);
	uint64_t mask = num_mask(f->width), sign = (uint64_t)1 << (f->width - 1), xorsign = m->xorsign ? (a ^ b) & sign : 0;
	a = m->ftz ? num_flush(f, a & mask) : a & mask;
	b = m->ftz ? num_flush(f, b & mask) : b & mask;
	if (m->abs || m->xorsign) {
		a &= ~sign;
		b &= ~sign;
	}
	bool nan_a = (a & (sign - 1)) > f->inf, nan_b = (b & (sign - 1)) > f->inf;
	if (nan_a && nan_b && type == CPTX_F64)
		return b | (uint64_t)1 << 51;
	if ((nan_a && nan_b) || (m->nan && (nan_a || nan_b)))
		return f->nan;
	if (nan_a || nan_b)
		return (nan_a ? b : a) | xorsign;
	/* As integers that rise with the number: -0 is below +0. */
	uint64_t x = a & sign ? ~a : a | sign, y = b & sign ? ~b : b | sign;
	return (((x & mask) < (y & mask)) == min ? a : b) | xorsign;
}
