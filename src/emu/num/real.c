/* SPDX-License-Identifier: MIT */
/* Numbers taken apart: formats, rounding, and exact arithmetic for the directed roundings of f64. */
#include "emu/num/real.h"

#include "base/base.h"

_Static_assert(CPTX_PRED == 2, "the first of types.def");
const uint8_t num_widths[NUM_TYPES] = {
	0,
	0,
#define TYPE(name, ptx, bits, class) bits,
#include "arch/types.def"
#undef TYPE
};

const struct num_format num_formats[NUM_FORMATS] = {
	{ 0 },
#define FORMAT(name, ...) { __VA_ARGS__ },
#define PACKING(name, ...)
#include "emu/num/types.def"
#undef FORMAT
#undef PACKING
};

const struct num_packing num_packings[NUM_PACKINGS] = {
	{ 0 },
#define FORMAT(name, ...)
#define PACKING(name, of, count, bits) { CPTX_##of, count, bits },
#include "emu/num/types.def"
#undef FORMAT
#undef PACKING
};

struct num_packing num_packing(unsigned type)
{
	struct num_packing p = *num_packed(type);
	return p.count ? p : (struct num_packing){ (uint8_t)type, 1, (uint8_t)num_width(type) };
}

struct num_real num_real(bool sign, int exp, uint64_t frac)
{
	if (!frac)
		return (struct num_real){ NUM_ZERO, sign, 0, 0 };
	int shift = __builtin_clzll(frac);
	return (struct num_real){ NUM_FINITE, sign, exp - shift, frac << shift };
}

struct num_real num_decode(const struct num_format *f, uint64_t bits)
{
	unsigned width = f->width - f->is_signed;
	bits >>= f->shift;
	bool sign = f->is_signed && bits >> width & 1;
	uint64_t mag = bits & num_mask(width);
	if (f->inf && mag == f->inf)
		return (struct num_real){ NUM_INF, sign, 0, 0 };
	if (f->nan && mag > f->max)
		return (struct num_real){ NUM_NAN, sign, 0, 0 };
	if (!f->man) /* ue8m0 has neither zero nor subnormals */
		return num_real(sign, (int)mag - f->bias, (uint64_t)1 << 63);
	int exp = (int)(mag >> f->man);
	uint64_t frac = mag & num_mask(f->man);
	if (exp)
		frac |= (uint64_t)1 << f->man;
	return num_real(sign, MAX(exp, 1) - f->bias, frac << (63 - f->man));
}

/* Whether a magnitude with that low bit grows by one; rest is what is cut off, as a fraction of 2^64. */
static bool rounds_up(unsigned rnd, bool sign, bool odd, uint64_t rest, uint32_t rbits)
{
	uint64_t half = (uint64_t)1 << 63;
	switch (rnd) {
	case CPTX_RZ:
	case CPTX_RZI: return false;
	case CPTX_RM:
	case CPTX_RMI: return rest && sign;
	case CPTX_RP:
	case CPTX_RPI: return rest && !sign;
	case CPTX_RNA: return rest >= half;
	case CPTX_RS: return rest + ((uint64_t)rbits << 32) < rest; /* the carry */
	default: return rest > half || (rest == half && odd);
	}
}

static uint64_t overflow(const struct num_format *f, bool sign, const struct num_mode *m)
{
	bool inwards = m->rnd == CPTX_RZ || (m->rnd == CPTX_RM && !sign) || (m->rnd == CPTX_RP && sign);
	return m->satfinite || !f->nan || (f->inf && inwards) ? f->max : f->inf ? f->inf : f->nan;
}

/* The magnitude of a finite number. */
static uint64_t round_finite(const struct num_format *f, struct num_real r, const struct num_mode *m)
{
	int exp = r.exp + f->bias, drop = 63 - f->man + (exp < 1 ? 1 - exp : 0);
	uint64_t mag = drop < 64 ? r.frac >> drop : 0, rest = r.frac;
	if (!f->man) { /* ue8m0: 0 is 2^-127, and all below */
		mag = (uint64_t)MAX(exp, 0);
		rest = exp < 0 ? 0 : r.frac << 1;
	} else if (drop < 64)
		rest <<= 64 - drop;
	else if (drop > 64)
		rest = drop < 128 ? r.frac >> (drop - 64) | 1 : 1;
	if (f->man && exp > 1)
		mag += (uint64_t)(exp - 1) << f->man;
	mag += rounds_up(m->rnd, r.sign, mag & 1, rest, m->rbits);
	return mag > f->max ? overflow(f, r.sign, m) : mag;
}

/* Below the normal numbers, but for rounding as if there were such exponents: the test that .ftz makes. */
static bool almost_normal(const struct num_format *f, struct num_real r, const struct num_mode *m)
{
	unsigned below = 63 - f->man;
	return r.exp + f->bias == 0 && r.frac >> below == ((uint64_t)2 << f->man) - 1 &&
	       rounds_up(m->rnd, r.sign, true, r.frac << (64 - below), m->rbits);
}

uint64_t num_encode(const struct num_format *f, struct num_real r, const struct num_mode *m)
{
	uint64_t mag = 0, one = (uint64_t)f->bias << f->man;
	if (r.kind == NUM_NAN) /* where there is no NaN it becomes the positive maximum */
		return m->sat ? 0 : (f->nan ? f->nan : f->max) << f->shift;
	r.sign = r.sign && f->is_signed;
	if (r.sign && (m->sat || m->relu))
		return 0;
	if (r.kind == NUM_INF)
		mag = m->satfinite || !f->nan ? f->max : f->inf ? f->inf : f->nan;
	else if (r.kind == NUM_FINITE)
		mag = round_finite(f, r, m);
	if (m->sat && mag > one)
		mag = one;
	if (m->ftz && r.kind == NUM_FINITE && r.exp + f->bias < 1)
		mag = almost_normal(f, r, m) ? (uint64_t)1 << f->man : 0;
	return (mag | (uint64_t)r.sign << (f->width - 1)) << f->shift;
}

uint64_t num_real_integer(struct num_real r, unsigned rnd, bool *over)
{
	uint64_t n = r.exp >= 0 && r.exp < 64 ? r.frac >> (63 - r.exp) : 0;
	uint64_t rest = r.exp >= 63 ? 0 : r.exp >= 0 ? r.frac << (r.exp + 1) : r.exp == -1 ? r.frac : 1;
	bool carry = r.kind == NUM_FINITE && rounds_up(rnd, r.sign, n & 1, rest, 0);
	*over = r.kind == NUM_FINITE && (r.exp > 63 || (carry && n == UINT64_MAX));
	return *over ? UINT64_MAX : r.kind == NUM_FINITE ? n + carry : 0;
}

/* ---- exact sums and products, before they are rounded ---- */
/* frac * 2^(exp - 126), bit 126 of frac set: bit 127 takes the carry. */
struct wide {
	bool sign;
	int exp;
	num_u128 frac;
};

static struct num_real narrow(bool sign, int exp, num_u128 frac)
{
	while (frac >> 64 == 0) {
		frac <<= 64;
		exp -= 64;
	}
	int shift = __builtin_clzll((uint64_t)(frac >> 64));
	frac <<= shift;
	return (struct num_real){ NUM_FINITE, sign, exp + 1 - shift, (uint64_t)(frac >> 64) | ((uint64_t)frac != 0) };
}

static struct num_real add_wide(struct wide a, struct wide b, unsigned rnd)
{
	if (a.exp < b.exp) {
		struct wide t = a;
		a = b;
		b = t;
	}
	int down = a.exp - b.exp;
	if (down > 127)
		b.frac = 1;
	else if (down)
		b.frac = b.frac >> down | (b.frac << (128 - down) != 0);
	if (a.sign == b.sign)
		return narrow(a.sign, a.exp, a.frac + b.frac);
	if (a.frac == b.frac)
		return (struct num_real){ NUM_ZERO, rnd == CPTX_RM, 0, 0 };
	if (a.frac < b.frac)
		return narrow(b.sign, a.exp, b.frac - a.frac);
	return narrow(a.sign, a.exp, a.frac - b.frac);
}

struct num_real num_real_fma(struct num_real a, struct num_real b, struct num_real c, unsigned rnd)
{
	bool sign = a.sign != b.sign;
	bool product_inf = a.kind == NUM_INF || b.kind == NUM_INF, product_zero = a.kind == NUM_ZERO || b.kind == NUM_ZERO;
	if (a.kind == NUM_NAN || b.kind == NUM_NAN || c.kind == NUM_NAN || (product_inf && product_zero) ||
	    (product_inf && c.kind == NUM_INF && sign != c.sign))
		return (struct num_real){ NUM_NAN, false, 0, 0 };
	if (product_inf)
		return (struct num_real){ NUM_INF, sign, 0, 0 };
	if (c.kind == NUM_INF)
		return c;
	if (product_zero) {
		if (c.kind == NUM_ZERO && c.sign != sign)
			c.sign = rnd == CPTX_RM;
		return c;
	}
	struct wide p = { sign, a.exp + b.exp, (num_u128)a.frac * b.frac };
	if (p.frac >> 127) { /* the factors have zeros there, so nothing is lost */
		p.frac >>= 1;
		p.exp++;
	}
	if (c.kind == NUM_ZERO)
		return narrow(p.sign, p.exp, p.frac);
	return add_wide(p, (struct wide){ c.sign, c.exp, (num_u128)c.frac << 63 }, rnd);
}

struct num_real num_real_mul(struct num_real a, struct num_real b)
{
	return num_real_fma(a, b, (struct num_real){ NUM_ZERO, a.sign != b.sign, 0, 0 }, CPTX_RN);
}

struct num_real num_real_div(struct num_real a, struct num_real b)
{
	bool sign = a.sign != b.sign;
	if (a.kind == NUM_NAN || b.kind == NUM_NAN || (a.kind == b.kind && a.kind != NUM_FINITE))
		return (struct num_real){ NUM_NAN, false, 0, 0 };
	if (a.kind == NUM_INF || b.kind == NUM_ZERO)
		return (struct num_real){ NUM_INF, sign, 0, 0 };
	if (a.kind == NUM_ZERO || b.kind == NUM_INF)
		return (struct num_real){ NUM_ZERO, sign, 0, 0 };
	num_u128 n = (num_u128)a.frac << 63;
	return num_real(sign, a.exp - b.exp, (uint64_t)(n / b.frac) | (n % b.frac != 0));
}

struct num_real num_real_sqrt(struct num_real a)
{
	if (a.kind == NUM_NAN || (a.sign && a.kind != NUM_ZERO))
		return (struct num_real){ NUM_NAN, false, 0, 0 };
	if (a.kind != NUM_FINITE)
		return a;
	bool odd = a.exp & 1;
	num_u128 n = (num_u128)a.frac << (63 + odd);
	uint64_t root = 0;
	for (uint64_t bit = (uint64_t)1 << 63; bit; bit >>= 1)
		if ((num_u128)(root | bit) * (root | bit) <= n)
			root |= bit;
	return num_real(false, (a.exp - odd) / 2, root | ((num_u128)root * root != n));
}
