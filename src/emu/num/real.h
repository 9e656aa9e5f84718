/* SPDX-License-Identifier: MIT */
/* Numbers taken apart, for what the host's floating point does not do: other formats and other roundings. */
#ifndef CPTX_EMU_NUM_REAL_H
#define CPTX_EMU_NUM_REAL_H

#include "emu/num/num.h"

/* A floating point format of one element. */
struct num_format {
	uint8_t width, man; /* bits of all, and of the mantissa */
	uint8_t shift;      /* tf32: zeros below the mantissa, not in width, max, inf */
	bool is_signed;
	int16_t bias;
	uint64_t max; /* the largest finite number */
	uint64_t inf; /* 0: there is none, overflow gives NaN */
	uint64_t nan; /* the canonical NaN; 0: there is none, NaN and overflow give max */
};
enum { NUM_TYPES = 64 };
extern const uint8_t num_widths[NUM_TYPES]; /* by enum cptx_type */

/* The number formats of num/types.def, in its order. */
enum {
	NUM_NO_FORMAT,
#define FORMAT(name, ...) NUM_FORMAT_##name,
#define PACKING(name, ...)
#include "emu/num/types.def"
#undef FORMAT
#undef PACKING
	NUM_FORMATS,
	NUM_NO_PACKING = 0,
#define FORMAT(name, ...)
#define PACKING(name, ...) NUM_PACKING_##name,
#include "emu/num/types.def"
#undef FORMAT
#undef PACKING
	NUM_PACKINGS
};
extern const struct num_format num_formats[NUM_FORMATS];
extern const struct num_packing num_packings[NUM_PACKINGS];

/* NULL if type is no floating point type of one element. */
static inline const struct num_format *num_format(unsigned type)
{
	unsigned at = NUM_NO_FORMAT;

	switch (type) {
#define FORMAT(name, ...)                                                                                                   \
	case CPTX_##name:                                                                                                       \
		at = NUM_FORMAT_##name;                                                                                             \
		break;
#define PACKING(name, ...)
#include "emu/num/types.def"
#undef FORMAT
#undef PACKING
	default: break;
	}
	return at ? &num_formats[at] : NULL;
}
/* Its count is 0 if type has one element. */
static inline const struct num_packing *num_packed(unsigned type)
{
	unsigned at = NUM_NO_PACKING;

	switch (type) {
#define FORMAT(name, ...)
#define PACKING(name, ...)                                                                                                  \
	case CPTX_##name:                                                                                                       \
		at = NUM_PACKING_##name;                                                                                            \
		break;
#include "emu/num/types.def"
#undef FORMAT
#undef PACKING
	default: break;
	}
	return &num_packings[at];
}

enum num_class { NUM_ZERO, NUM_FINITE, NUM_INF, NUM_NAN };
struct num_real {
	uint8_t kind; /* enum num_class */
	bool sign;
	int exp;       /* of the highest bit of frac */
	uint64_t frac; /* highest bit set; the lowest is set if anything below it is not zero */
};
struct num_real num_decode(const struct num_format *f, uint64_t bits);
/* Takes rnd (RNI ... as RN ...), ftz (flushes the result), sat, satfinite and relu of m; rbits as num_from_f32. */
uint64_t num_encode(const struct num_format *f, struct num_real r, const struct num_mode *m);

/* frac * 2^(exp - 63); frac need not be normalized, and 0 gives a zero. */
struct num_real num_real(bool sign, int exp, uint64_t frac);
/* The magnitude of a finite number rounded to an integer; *over: it is too large, and the result UINT64_MAX. */
uint64_t num_real_integer(struct num_real r, unsigned rnd, bool *over);
struct num_real num_real_fma(struct num_real a, struct num_real b, struct num_real c, unsigned rnd);
struct num_real num_real_mul(struct num_real a, struct num_real b);
struct num_real num_real_div(struct num_real a, struct num_real b);
struct num_real num_real_sqrt(struct num_real a);

/* ---- one element of f16, bf16, f32, f64; what num.h says of the function without _float ---- */
uint64_t num_float_add(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m);
uint64_t num_float_mul(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m);
uint64_t num_float_fma(unsigned type, uint64_t a, uint64_t b, uint64_t c, const struct num_mode *m);
uint64_t num_float_div(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m);
uint64_t num_float_max(unsigned type, uint64_t a, uint64_t b, const struct num_mode *m, bool min);
bool num_float_cmp(unsigned type, unsigned cmp, uint64_t a, uint64_t b, bool ftz);
/* A result that is exact, or rounded to odd or from numbers of 24 bits, rounded to its type.  Takes ftz, sat, relu of m. */
uint64_t num_float_round(unsigned type, double d, const struct num_mode *m);

/* ---- one element of integers ---- */
uint64_t num_int_add(unsigned type, uint64_t a, uint64_t b, bool sat);
uint64_t num_int_sub(unsigned type, uint64_t a, uint64_t b, bool sat);
uint64_t num_int_div(unsigned type, uint64_t a, uint64_t b);
uint64_t num_int_max(unsigned type, uint64_t a, uint64_t b, bool min);

/* 1 to 64 */
static inline unsigned num_width(unsigned type)
{
	unsigned bits = num_widths[type % NUM_TYPES];
	return bits && bits < 64 ? bits : 64;
}
static inline bool num_is_signed(unsigned type) /* an integer type with sign */
{
	const uint64_t is_signed = (uint64_t)1 << CPTX_S2 | (uint64_t)1 << CPTX_S4 | (uint64_t)1 << CPTX_S8 |
	                           (uint64_t)1 << CPTX_S16 | (uint64_t)1 << CPTX_S32 | (uint64_t)1 << CPTX_S64;
	return is_signed >> type % NUM_TYPES & 1;
}
static inline uint64_t num_mask(unsigned width) { return UINT64_MAX >> (64 - width); }
static inline int64_t num_sext(unsigned width, uint64_t a)
{
	unsigned k = 64 - width;
	return (int64_t)(a << k) >> k;
}
/* The number that an integer's bits are, to 64 bits: two's complement. */
static inline uint64_t num_extend(unsigned type, uint64_t a)
{
	unsigned width = num_width(type);
	return num_is_signed(type) ? (uint64_t)num_sext(width, a) : a & num_mask(width);
}

static inline bool num_is_rn(unsigned rnd)
{
	return rnd != CPTX_RZ && rnd != CPTX_RM && rnd != CPTX_RP && rnd != CPTX_RNA && rnd != CPTX_RS;
}

/* f32, f16 and f64: a subnormal number becomes a zero. */
static inline uint64_t num_flush(const struct num_format *f, uint64_t a)
{
	uint64_t sign = (uint64_t)1 << (f->width - 1), least = (uint64_t)1 << f->man;
	return (a & (sign - 1)) < least ? a & sign : a;
}

__extension__ typedef unsigned __int128 num_u128;

#endif
