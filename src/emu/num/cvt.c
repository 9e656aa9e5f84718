/* SPDX-License-Identifier: MIT */
/* Conversion: every type to every other by way of struct num_real. */
#include "emu/num/real.h"

#include "base/base.h"

static const struct num_mode plain = { 0 };

/* ---- one element to and from f32 ---- */
/* Formats without anything special but what struct num_format says: the exponent is too low, and a multiplication mends it.
 */
static float small_to_f32(const struct num_format *f, uint64_t a)
{
	unsigned width = f->width - f->is_signed;
	uint32_t mag = (uint32_t)(a & num_mask(width)), sign = f->is_signed && a >> width & 1 ? 0x80000000 : 0;
	if (f->nan && mag > f->max)
		return f->inf && mag == f->inf ? num_f32(sign | 0x7f800000) : num_f32(0x7fffffff);
	return num_f32(num_bits32(num_f32(mag << (23 - f->man)) * num_f32((uint32_t)(254 - f->bias) << 23)) | sign);
}

float num_to_f32(unsigned type, uint64_t a)
{
	switch (type) {
	case CPTX_F32: return num_f32((uint32_t)a);
	case CPTX_TF32: return num_f32((uint32_t)a & ~(uint32_t)0x1fff);
	case CPTX_F16: return num_from_f16((uint32_t)a);
	case CPTX_BF16: return num_from_bf16((uint32_t)a);
	case CPTX_F64: return (float)num_f64(a);
	case CPTX_UE8M0: a &= 0xff; return num_f32(a == 0xff ? 0x7fffffff : a ? (uint32_t)a << 23 : 0x400000);
	default: return num_format(type) ? small_to_f32(num_format(type), a) : 0;
	}
}

double num_to_f64(unsigned type, uint64_t a) { return type == CPTX_F64 ? num_f64(a) : num_to_f32(type, a); }

static bool is_plain(const struct num_mode *m)
{
	return num_is_rn(m->rnd) && !m->sat && !m->satfinite && !m->relu && !m->ftz;
}

uint64_t num_from_f32(unsigned type, float f, const struct num_mode *m)
{
	m = m ? m : &plain;
	if (is_plain(m) && (type == CPTX_F16 || type == CPTX_BF16))
		return type == CPTX_F16 ? num_to_f16(f) : num_to_bf16(f);
	const struct num_format *to = num_format(type);
	return to ? num_encode(to, num_decode(num_format(CPTX_F32), num_bits32(f)), m) : 0;
}

/* ---- integers ---- */
/* s2f6 is a fixed point number: two's complement, in units of 1/64. */
static bool is_fixed(unsigned type) { return type == CPTX_S2F6X2; }

static struct num_real real_of_int(unsigned type, uint64_t a)
{
	a = num_extend(type, a);
	bool negative = num_is_signed(type) && (int64_t)a < 0;
	return num_real(negative, 63, negative ? 0 - a : a);
}

/* Saturated to width bits; `least` is the magnitude of the lowest number. */
static uint64_t int_of_real(struct num_real r, unsigned rnd, uint64_t least, uint64_t most)
{
	bool over;
	uint64_t n = r.kind == NUM_INF ? UINT64_MAX : num_real_integer(r, rnd, &over);
	return r.sign ? 0 - MIN(n, least) : MIN(n, most);
}

static uint64_t to_int(unsigned dtype, unsigned atype, struct num_real r, unsigned rnd)
{
	unsigned width = num_width(dtype);
	bool is_signed = num_is_signed(dtype);
	uint64_t top = (uint64_t)1 << (width - 1);
	if (r.kind == NUM_NAN)
		return atype != CPTX_F64 && width < 64 ? 0 : num_extend(dtype, top);
	return is_signed ? int_of_real(r, rnd, top, top - 1) : int_of_real(r, rnd, 0, num_mask(width));
}

static uint64_t int_to_int(unsigned dtype, unsigned atype, uint64_t a, bool sat)
{
	uint64_t least = num_is_signed(dtype) ? (uint64_t)1 << (num_width(dtype) - 1) : 0;
	if (!sat)
		return num_extend(dtype, num_extend(atype, a));
	return int_of_real(real_of_int(atype, a), CPTX_RZ, least, least ? least - 1 : num_mask(num_width(dtype)));
}

/* Where a number below -2 goes the manual leaves open; -2 is the lowest that there is. */
static uint64_t to_fixed(struct num_real r, const struct num_mode *m)
{
	if (r.kind == NUM_NAN)
		return 0x7f;
	if (r.sign && m->relu)
		return 0;
	r.exp += 6;
	return int_of_real(r, m->rnd, 0x80, 0x7f) & 0xff;
}

/* ---- one element of a type to one of another ---- */
static struct num_real real_of(unsigned type, uint64_t a)
{
	if (is_fixed(type)) {
		int64_t n = num_sext(8, a);
		return num_real(n < 0, 63 - 6, (uint64_t)(n < 0 ? -n : n));
	}
	return num_format(type) ? num_decode(num_format(type), a) : real_of_int(type, a);
}

/* r times 2 to the power of a ue8m0, or divided by it. */
static struct num_real scaled(struct num_real r, unsigned scale, bool divide)
{
	int exp = (int)scale - num_format(CPTX_UE8M0)->bias;
	if (scale > num_format(CPTX_UE8M0)->max)
		r.kind = NUM_NAN;
	r.exp += divide ? -exp : exp;
	return r;
}

static bool is_integer_rounding(unsigned rnd)
{
	return rnd == CPTX_RNI || rnd == CPTX_RZI || rnd == CPTX_RMI || rnd == CPTX_RPI;
}

/* f64 keeps payloads of NaN; an f32 has its own in the upper bits of one. */
static uint64_t nan_to_f64(unsigned atype, uint64_t a, bool ftz)
{
	uint64_t quiet = (uint64_t)1 << 51;
	if (ftz) /* by way of the canonical f32 */
		return UINT64_C(0x7fffffffe0000000);
	if (atype == CPTX_F64)
		return a | quiet;
	uint64_t f32 = num_bits32(num_to_f32(atype, a));
	return (f32 >> 31) << 63 | (uint64_t)0x7ff << 52 | (f32 & 0x7fffff) << 29 | quiet;
}

/* From f64, from bf16 to f32, and to the same type NaN keep sign and payload on sm_90; .ftz of others makes them canonical.
 */
static bool nan_kept(unsigned dtype, unsigned atype, uint64_t a, const struct num_mode *m, uint64_t *d)
{
	if (m->sat || m->relu || (m->ftz && atype != CPTX_F64))
		return false;
	if (atype == dtype && (dtype == CPTX_F32 || dtype == CPTX_F64) && !m->rnd) {
		*d = a;
	} else if (atype == CPTX_BF16 && dtype == CPTX_F32) {
		*d = a << 16 & UINT32_MAX;
	} else if (atype == CPTX_F64 && num_format(dtype) && num_format(dtype)->width <= 32 && num_format(dtype)->nan &&
	           dtype != CPTX_TF32) {
		const struct num_format *f = num_format(dtype);
		uint64_t quiet = (uint64_t)1 << (f->man - 1);
		*d = a >> 63 << (f->width - 1) | f->inf | quiet | (a >> (52 - f->man) & (quiet - 1));
	} else {
		return false;
	}
	return true;
}

/* What the code gives that ptxas makes of .rna on sm_90: it rounds as integers do. */
static uint64_t nan_to_tf32(uint64_t a, const struct num_mode *m)
{
	return (a & ~(uint64_t)0x1fff) - (m->satfinite ? 0x2000 : 0);
}

static uint64_t convert(unsigned dtype, unsigned atype, uint64_t a, unsigned scale, const struct num_mode *m)
{
	const struct num_format *to = num_format(dtype);
	bool from_int = !num_format(atype) && !is_fixed(atype);
	if (!to && !is_fixed(dtype) && from_int)
		return int_to_int(dtype, atype, a, m->sat);
	uint64_t kept;
	if (m->ftz && atype == CPTX_F32 &&
	    dtype != CPTX_F16) /* no f32 that small is an f16 but for directed roundings: these see it */
		a = num_f32_ftz((uint32_t)a);
	struct num_real r = real_of(atype, a);
	if (r.kind == NUM_NAN && nan_kept(dtype, atype, a, m, &kept))
		return kept;
	if (r.kind == NUM_NAN && dtype == CPTX_TF32 && m->rnd == CPTX_RNA)
		return nan_to_tf32(a, m);
	if (m->scaled)
		r = scaled(r, scale, is_fixed(dtype));
	if (is_fixed(dtype))
		return to_fixed(r, m);
	if (!to)
		return to_int(dtype, atype, r, m->rnd);
	if (dtype == CPTX_F64 && r.kind == NUM_NAN && !m->sat)
		return nan_to_f64(atype, a, m->ftz);
	if (is_integer_rounding(m->rnd) && r.kind == NUM_FINITE && r.exp < 63) {
		bool over;
		r = num_real(r.sign, 63, num_real_integer(r, m->rnd, &over));
	}
	struct num_mode rounding = *m;
	rounding.ftz = m->ftz && dtype == CPTX_F32; /* only f32 is flushed */
	return num_encode(to, r, &rounding);
}

uint64_t num_cvt(unsigned dtype, unsigned atype, uint64_t a, const struct num_mode *m)
{
	if (atype == CPTX_F32 && is_plain(m) && (dtype == CPTX_F16 || dtype == CPTX_BF16))
		return num_from_f32(dtype, num_f32((uint32_t)a), m);
	struct num_packing to = num_packing(dtype), from = num_packing(atype);
	if (to.count == 1)
		return convert(to.type, from.type, a, 0, m);
	uint64_t d = 0;
	for (unsigned i = 0; i < to.count; i++)
		d |= convert(to.type, from.type, a >> i * from.bits & num_mask(from.bits), m->scale >> 8 * i & 0xff, m)
		     << i * to.bits;
	return d;
}

/*
 * The random bits of source i, as the manual's figures lay them out, at the top of 32.  For f16x2 and bf16x2 each half of
 * rbits has a source (f16 takes 13 bits), for x4 each half has two, e2m1x4 excepted, where the upper bytes of the halves go
 * to the first two sources.  That those are one number of 16 bits is a guess.
 */
static uint32_t random_bits(unsigned dtype, unsigned i, uint32_t rbits)
{
	uint32_t upper = rbits >> 16, lower = rbits & 0xffff;
	switch (dtype) {
	case CPTX_F16X2: return (i ? lower : upper) << 19;
	case CPTX_E2M1X4: return i < 2 ? (upper >> 8) << 24 | (lower >> 8) << 16 : (upper & 0xff) << 24 | (lower & 0xff) << 16;
	case CPTX_BF16X2: return (i ? lower : upper) << 16;
	default: return (i < 2 ? upper : lower) << 16;
	}
}

uint64_t num_cvt_pack(unsigned dtype, const uint32_t *src, const struct num_mode *m)
{
	struct num_packing to = num_packing(dtype);
	struct num_mode one = *m;
	uint64_t d = 0;
	for (unsigned i = 0; i < to.count; i++) {
		unsigned place = to.count - 1 - i;
		one.rbits = random_bits(dtype, i, m->rbits);
		d |= convert(to.type, CPTX_F32, src[i], m->scale >> 8 * place & 0xff, &one) << place * to.bits;
	}
	return d;
}

uint32_t num_cvt_pack_sat(unsigned dtype, uint32_t a, uint32_t b, uint32_t c)
{
	unsigned width = num_width(dtype);
	uint64_t upper = int_to_int(dtype, CPTX_S32, a, true) & num_mask(width);
	uint64_t lower = int_to_int(dtype, CPTX_S32, b, true) & num_mask(width);
	return (uint32_t)((uint64_t)c << 2 * width | upper << width | lower);
}
