/* SPDX-License-Identifier: MIT */
/*
 * Arithmetic of the emulator: what an instruction makes of bit patterns.  Pure functions, no state.  The host's rounding is
 * never changed, and has to be the default one (to nearest, subnormals kept); its exception flags and errno mean nothing
 * here.
 *
 * Values are the low bits of a uint64_t: bits above the width of the type are ignored on the way in and zero on the way out
 * (but see num_cvt).  Packed types (f16x2, u8x4, f32x2, ...) go element by element.  Types are enum cptx_type, modifiers
 * enum cptx_mod: what the form of the instruction allows is given; other combinations give some value and do no harm.
 *
 * NaN: f32, f16 and bf16 give the canonical one (0x7fffffff, 0x7fff), f64 the first operand that is one, made quiet, else
 * 0xfff8000000000000.
 */
#ifndef CPTX_EMU_NUM_NUM_H
#define CPTX_EMU_NUM_NUM_H

#include <cptx/module.h>

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Modifiers; all zero: round to nearest even, nothing else. */
struct num_mode {
	uint16_t rnd; /* CPTX_RN RZ RM RP, RNA RS (num_cvt), RNI RZI RMI RPI (num_cvt), APPROX FULL; 0: CPTX_RN */
	bool ftz, sat, satfinite, relu;
	bool nan;          /* .NaN */
	bool abs, xorsign; /* .xorsign.abs sets both */
	bool oob;
	bool scaled;    /* .scaled::n2::ue8m0, with */
	uint16_t scale; /* two ue8m0 */
	uint32_t rbits; /* of .rs */
};

/* ---- Floating point of 16, 32 and 64 bits, packed too; integers where the instruction has them ---- */
/* Mixed precision (add.f32.f16): num_cvt(CPTX_F32, CPTX_F16, a, m) first. */
uint64_t num_add(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m);
uint64_t num_sub(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m);
uint64_t num_mul(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m);             /* integers: .lo */
uint64_t num_fma(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m); /* integers: mad.lo */
uint64_t num_div(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m);
uint64_t num_min(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m);
uint64_t num_max(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m);
uint64_t num_min3(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m);
uint64_t num_max3(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m);
uint64_t num_abs(unsigned type, uint64_t a, const struct num_mode *m);
uint64_t num_neg(unsigned type, uint64_t a, const struct num_mode *m);

/* f32 and f64, in the roundings and .approx */
uint64_t num_rcp(unsigned type, uint64_t a, const struct num_mode *m);
uint64_t num_sqrt(unsigned type, uint64_t a, const struct num_mode *m);
uint64_t num_copysign(unsigned type, uint64_t a, uint64_t b); /* b with the sign of a */
bool num_testp(unsigned type, unsigned op, uint64_t a);       /* op: CPTX_FINITE ... CPTX_SUBNORMAL */

/* .approx: within the manual's bounds, not the bits of any one GPU. */
uint64_t num_rsqrt(unsigned type, uint64_t a, const struct num_mode *m); /* f32 f64 */
uint64_t num_ex2(unsigned type, uint64_t a, const struct num_mode *m);   /* f32 f16 bf16, x2 */
uint64_t num_tanh(unsigned type, uint64_t a, const struct num_mode *m);  /* f32 f16 bf16, x2 */
uint64_t num_lg2(uint64_t a, const struct num_mode *m);                  /* f32, these three */
uint64_t num_sin(uint64_t a, const struct num_mode *m);
uint64_t num_cos(uint64_t a, const struct num_mode *m);

/* a cmp b of all types but packed ones; cmp: CPTX_EQ ... CPTX_ISNAN, and CPTX_LO LS HI HS. */
bool num_cmp(unsigned type, unsigned cmp, uint64_t a, uint64_t b, bool ftz);
/* What set writes into a dtype (not packed): all ones or 1.0, or zero. */
uint64_t num_truth(unsigned dtype, bool truth);

/* ---- Conversion ---- */
/*
 * cvt with one source, scalar or packed (f16x2 to e4m3x2 ...).  Signed integers narrower than 64 bits come sign-extended to
 * 64, as a wider destination register has them.
 */
uint64_t num_cvt(unsigned dtype, unsigned atype, uint64_t a, const struct num_mode *m);
/* cvt from 2 or 4 f32 to a packed type of so many elements: src[0] is a and becomes the highest element. */
uint64_t num_cvt_pack(unsigned dtype, const uint32_t *src, const struct num_mode *m);
/* cvt.pack.sat: clamped a above b above the bits of c that have room (u16, s16: none). */
uint32_t num_cvt_pack_sat(unsigned dtype, uint32_t a, uint32_t b, uint32_t c);

/*
 * One element of any floating point type (f64: rounded to nearest): f16 bf16 tf32 f32 e4m3 e5m2 e3m2 e2m3 e2m1 ue8m0 ue4m3.
 * num_from_f32 takes rnd (RN RZ RM RP RNA RS, whose random bits are rbits from the highest on), sat, satfinite, relu of m,
 * which may be NULL: to nearest even.
 */
float num_to_f32(unsigned type, uint64_t a);
uint64_t num_from_f32(unsigned type, float f, const struct num_mode *m);
double num_to_f64(unsigned type, uint64_t a);
/* The type of one element and their number: CPTX_F16X2 gives CPTX_F16 and 2; a scalar type itself and 1.  Bits of an element
 * in the packed form: 4 for e2m1 in e2m1x2, else its width. */
struct num_packing {
	uint8_t type, count, bits;
};
struct num_packing num_packing(unsigned type);

/* ---- Integers ---- */
uint64_t num_mul_hi(unsigned type, uint64_t a, uint64_t b);
uint64_t num_mul_wide(unsigned type, uint64_t a, uint64_t b); /* type: that of a and b, 16 or 32 bits */
uint32_t num_mad_hi_sat(uint32_t a, uint32_t b, uint32_t c);  /* s32 */
uint32_t num_mul24(unsigned type, bool hi, uint32_t a, uint32_t b);
uint32_t num_mad24_hi_sat(uint32_t a, uint32_t b, uint32_t c); /* s32 */
uint64_t num_rem(unsigned type, uint64_t a, uint64_t b);
uint64_t num_sad(unsigned type, uint64_t a, uint64_t b, uint64_t c);
uint64_t num_clmad(bool hi, uint64_t a, uint64_t b, uint64_t c);
uint32_t num_dp4a(unsigned atype, unsigned btype, uint32_t a, uint32_t b, uint32_t c);
uint32_t num_dp2a(bool hi, unsigned atype, unsigned btype, uint32_t a, uint32_t b, uint32_t c);
/* add.cc, addc and sub.cc, subc: cf is added or taken off, and becomes the carry or borrow out.  32 and 64 bits. */
uint64_t num_add_carry(unsigned type, uint64_t a, uint64_t b, bool *cf);
uint64_t num_sub_borrow(unsigned type, uint64_t a, uint64_t b, bool *cf);

/* ---- Bits; type: any of 32 or 64 bits ---- */
uint32_t num_popc(unsigned type, uint64_t a);
uint32_t num_clz(unsigned type, uint64_t a);
uint64_t num_brev(unsigned type, uint64_t a);
uint32_t num_bfind(unsigned type, uint64_t a, bool shiftamt);
uint32_t num_fns(uint32_t a, uint32_t b, int32_t n);
uint64_t num_bfe(unsigned type, uint64_t a, uint32_t b, uint32_t c);
uint64_t num_bfi(unsigned type, uint64_t a, uint64_t b, uint32_t c, uint32_t n);
uint32_t num_szext(unsigned type, unsigned mode, uint32_t a, uint32_t b); /* mode: CPTX_CLAMP CPTX_WRAP */
uint32_t num_bmsk(unsigned mode, uint32_t a, uint32_t b);
uint32_t num_prmt(unsigned mode, uint32_t a, uint32_t b, uint32_t c); /* CPTX_F4E ... CPTX_RC16, 0: by the digits of c */
uint32_t num_shf(unsigned dir, unsigned mode, uint32_t a, uint32_t b, uint32_t c); /* dir: CPTX_L CPTX_R */
uint64_t num_shl(unsigned type, uint64_t a, uint32_t b);                           /* these two: 16 bits too */
uint64_t num_shr(unsigned type, uint64_t a, uint32_t b);

static inline uint32_t num_lop3(uint32_t a, uint32_t b, uint32_t c, unsigned lut)
{
	uint32_t d = 0;
	for (unsigned i = 0; i < 8; i++)
		d |= (lut >> i & 1 ? ~0u : 0u) & (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
	return d;
}

/* ---- f32 to nearest, without modifiers, for loops over lanes; ftz of operands and result, and sat, are apart ---- */
static inline float num_f32(uint32_t bits)
{
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}
static inline uint32_t num_bits32(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	return bits;
}
static inline double num_f64(uint64_t bits)
{
	double f;
	memcpy(&f, &bits, sizeof f);
	return f;
}
static inline uint64_t num_bits64(double f)
{
	uint64_t bits;
	memcpy(&bits, &f, sizeof bits);
	return bits;
}
static inline uint32_t num_f32_bits(float f) { return f != f ? 0x7fffffff : num_bits32(f); } /* canonical NaN */
static inline uint32_t num_f32_ftz(uint32_t a) { return a & 0x7f800000 ? a : a & 0x80000000; }
static inline uint32_t num_f32_sat(uint32_t a)
{
	float f = num_f32(a);
	return f > 0 ? num_bits32(f < 1 ? f : 1) : 0; /* NaN and -0 too give 0 */
}
static inline uint32_t num_f32_add(uint32_t a, uint32_t b) { return num_f32_bits(num_f32(a) + num_f32(b)); }
static inline uint32_t num_f32_sub(uint32_t a, uint32_t b) { return num_f32_bits(num_f32(a) - num_f32(b)); }
static inline uint32_t num_f32_mul(uint32_t a, uint32_t b) { return num_f32_bits(num_f32(a) * num_f32(b)); }

/*
 * a + b rounded to odd: if it is not exact, the neighbour with a low bit of one.  Rounded once more to at least two bits
 * less, in any direction, it gives what the exact sum would give.
 */
static inline double num_add_odd(double a, double b)
{
	double s = a + b, t = s - a, rest = (a - (s - t)) + (b - t);
	uint64_t bits = num_bits64(s), odd = bits & 1;
	/* Of infinities and NaN the rest is NaN. */
	bool above = rest > 0, below = rest < 0;
	if (!odd && (above || below))
		bits += above == (s > 0) ? 1 : (uint64_t)-1;
	return num_f64(bits);
}
static inline float num_fmaf(float a, float b, float c)
{
#ifdef FP_FAST_FMAF
	return fmaf(a, b, c);
#else
	return (float)num_add_odd((double)a * b, c);
#endif
}
static inline uint32_t num_f32_fma(uint32_t a, uint32_t b, uint32_t c)
{
	return num_f32_bits(num_fmaf(num_f32(a), num_f32(b), num_f32(c)));
}

/* ---- 16 bits to f32 and back to nearest, likewise ---- */
static inline float num_from_bf16(uint32_t a) { return num_f32(a << 16); }
static inline uint32_t num_to_bf16(float f)
{
	uint32_t a = num_bits32(f);
	return f != f ? 0x7fff : (a + 0x7fff + (a >> 16 & 1)) >> 16;
}
static inline float num_from_f16(uint32_t a)
{
	/* Without a subnormal f32, which the host is slow with.  Infinity and NaN get the highest exponent, too. */
	int32_t mag = (int32_t)(a & 0x7fff), normal = mag * 0x2000 + 0x38000000;
	uint32_t small = num_bits32((float)mag * 0x1p-24f);
	uint32_t d = mag < 0x400 ? small : (uint32_t)normal + (mag < 0x7c00 ? 0 : 0x38000000);
	return num_f32(d | (a & 0x8000) << 16);
}
static inline uint32_t num_to_f16(float f)
{
	uint32_t a = num_bits32(f), sign = a >> 16 & 0x8000, mag = a & 0x7fffffff;
	uint32_t small = num_bits32(num_f32(mag) + 0.5f) - 0x3f000000; /* the lowest bit of 0.5f is worth the lowest of f16 */
	uint32_t normal = (mag + 0xfff + (mag >> 13 & 1) - 0x38000000) >> 13;
	uint32_t d = mag < 0x38800000 ? small : mag < 0x47800000 ? normal : 0x7c00;
	return mag > 0x7f800000 ? 0x7fff : sign | d;
}

#endif
