/* SPDX-License-Identifier: MIT */
/* Arithmetic by type: packed types element by element, then floating point or integers. */
#include "emu/num/real.h"

typedef uint64_t op_fn(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m);

static inline uint64_t each(op_fn *op, unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	struct num_packing p = *num_packed(type);
	uint64_t mask = num_mask(p.count ? p.bits : num_width(type)), d = 0;
	if (!p.count)
		return op(type, a & mask, b & mask, c & mask, m) & mask;
	for (unsigned i = 0; i < p.count; i++) {
		unsigned at = i * p.bits;
		d |= (op(p.type, a >> at & mask, b >> at & mask, c >> at & mask, m) & mask) << at;
	}
	return d;
}

static uint64_t add(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	(void)c;
	return num_format(type) ? num_float_add(type, a, b, m) : num_int_add(type, a, b, m->sat);
}
uint64_t num_add(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m) { return each(add, type, a, b, 0, m); }

/* The other sign, except of a NaN: f64 keeps the sign of those. */
static uint64_t minus(unsigned type, uint64_t a)
{
	const struct num_format *f = num_format(type);
	uint64_t sign = (uint64_t)1 << (f->width - 1);
	return (a & (sign - 1)) > f->inf ? a : a ^ sign;
}

static uint64_t sub(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	(void)c;
	return num_format(type) ? num_float_add(type, a, minus(type, b), m) : num_int_sub(type, a, b, m->sat);
}
uint64_t num_sub(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m) { return each(sub, type, a, b, 0, m); }

static uint64_t mul(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	(void)c;
	return num_format(type) ? num_float_mul(type, a, b, m) : a * b;
}
uint64_t num_mul(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m) { return each(mul, type, a, b, 0, m); }

static uint64_t fma1(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	return num_format(type) ? num_float_fma(type, a, b, c, m) : a * b + c;
}
uint64_t num_fma(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	return each(fma1, type, a, b, c, m);
}

uint64_t num_div(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m)
{
	return num_format(type) ? num_float_div(type, a, b, m) : num_int_div(type, a, b);
}

/* ---- min and max; of three as of two of them and the third, since a NaN is left out, or stays ---- */
static uint64_t extreme(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m, bool min)
{
	if (num_format(type))
		return num_float_max(type, a, b, m, min);
	uint64_t d = num_int_max(type, a, b, min);
	return m->relu && num_sext(num_width(type), d) < 0 ? 0 : d;
}
static uint64_t min2(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	(void)c;
	return extreme(type, a, b, m, true);
}
static uint64_t max2(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	(void)c;
	return extreme(type, a, b, m, false);
}
uint64_t num_min(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m) { return each(min2, type, a, b, 0, m); }
uint64_t num_max(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m) { return each(max2, type, a, b, 0, m); }
uint64_t num_min3(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	return num_min(type, num_min(type, a, b, m), c, m);
}
uint64_t num_max3(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	return num_max(type, num_max(type, a, b, m), c, m);
}

/* ---- abs and neg: of a NaN the manual says only that it stays one.  On sm_90 it becomes the canonical one, in f64 quiet
 * ---- */
static bool is_nan(const struct num_format *f, uint64_t a) { return (a & num_mask(f->width - 1)) > f->inf; }
static uint64_t nan_of(const struct num_format *f, uint64_t a) { return f->width == 64 ? a | (uint64_t)1 << 51 : f->nan; }

static uint64_t abs1(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	const struct num_format *f = num_format(type);
	(void)b, (void)c;
	if (!f)
		return num_sext(num_width(type), a) < 0 ? 0 - a : a;
	return is_nan(f, a) ? nan_of(f, a) : (m->ftz ? num_flush(f, a) : a) & num_mask(f->width - 1);
}
uint64_t num_abs(unsigned type, uint64_t a, const struct num_mode *m) { return each(abs1, type, a, 0, 0, m); }

static uint64_t neg1(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	const struct num_format *f = num_format(type);
	(void)b, (void)c;
	if (!f)
		return 0 - a;
	return is_nan(f, a) ? nan_of(f, a) : (m->ftz ? num_flush(f, a) : a) ^ (uint64_t)1 << (f->width - 1);
}
uint64_t num_neg(unsigned type, uint64_t a, const struct num_mode *m) { return each(neg1, type, a, 0, 0, m); }

/* ---- functions that the manual gives a bound for: rounded from double, which is well within it ---- */
static uint64_t ex2(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	(void)b, (void)c;
	return num_float_round(type, exp2(num_to_f32(type, m->ftz ? num_flush(num_format(type), a) : a)), m);
}
uint64_t num_ex2(unsigned type, uint64_t a, const struct num_mode *m) { return each(ex2, type, a, 0, 0, m); }

static uint64_t tanh1(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m)
{
	(void)b, (void)c;
	return num_float_round(type, tanh(num_to_f32(type, a)), m);
}
uint64_t num_tanh(unsigned type, uint64_t a, const struct num_mode *m) { return each(tanh1, type, a, 0, 0, m); }

static double operand32(uint64_t a, const struct num_mode *m)
{
	return num_f32(m->ftz ? num_f32_ftz((uint32_t)a) : (uint32_t)a);
}
uint64_t num_lg2(uint64_t a, const struct num_mode *m) { return num_float_round(CPTX_F32, log2(operand32(a, m)), m); }
uint64_t num_sin(uint64_t a, const struct num_mode *m) { return num_float_round(CPTX_F32, sin(operand32(a, m)), m); }
uint64_t num_cos(uint64_t a, const struct num_mode *m) { return num_float_round(CPTX_F32, cos(operand32(a, m)), m); }

/* ---- comparison ---- */
bool num_cmp(unsigned type, unsigned cmp, uint64_t a, uint64_t b, bool ftz)
{
	if (num_format(type))
		return num_float_cmp(type, cmp, a, b, ftz);
	uint64_t x = num_extend(type, a), y = num_extend(type, b);
	if (num_is_signed(type)) { /* as unsigned numbers in the same order */
		x ^= (uint64_t)1 << 63;
		y ^= (uint64_t)1 << 63;
	}
	switch (cmp) {
	case CPTX_EQ: return x == y;
	case CPTX_NE: return x != y;
	case CPTX_LT:
	case CPTX_LO: return x < y;
	case CPTX_LE:
	case CPTX_LS: return x <= y;
	case CPTX_GT:
	case CPTX_HI: return x > y;
	default: return x >= y;
	}
}

uint64_t num_truth(unsigned dtype, bool truth)
{
	const struct num_format *f = num_format(dtype);
	return !truth ? 0 : f ? (uint64_t)f->bias << f->man : num_mask(num_width(dtype));
}
