/* SPDX-License-Identifier: MIT */
/* Slow references for the emulator's arithmetic: formats by their definition, rounding by looking for neighbours. */
#ifndef NUM_REF_H
#define NUM_REF_H

#include "emu/num/num.h"
#include "../test.h"

#include <fenv.h>

/* ck_assert writes to a file each time, which is too slow for millions of them. */
#define want(condition)                                                                                                     \
	do {                                                                                                                    \
		if (!(condition))                                                                                                   \
			ck_abort_msg("%s", #condition);                                                                                 \
	} while (0)
#define want_msg(condition, ...)                                                                                            \
	do {                                                                                                                    \
		if (!(condition))                                                                                                   \
			ck_abort_msg(__VA_ARGS__);                                                                                      \
	} while (0)

static const struct num_mode nothing = { 0 };
static const uint16_t roundings[] = { CPTX_RN, CPTX_RZ, CPTX_RM, CPTX_RP };
static const int host_roundings[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };

/* xorshift64*, the same numbers in each run */
static inline uint64_t ref_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1d;
}

/* Random bits; often with an exponent near the middle, near that of `like`, or of the subnormals, or few bits of mantissa.
 */
static inline uint64_t ref_operand(uint64_t *state, unsigned exp, unsigned man, uint64_t like)
{
	uint64_t n = ref_random(state), kind = ref_random(state) >> 58, field = ((uint64_t)1 << exp) - 1,
			 near = like >> man & field;
	uint64_t e = n >> man & field, m = n & (((uint64_t)1 << man) - 1), sign = n >> 63;
	if (kind < 24)
		e = near + (n >> 56 & 15) - 8;
	else if (kind < 32)
		e = field / 2 + (n >> 56 & 15) - 8;
	else if (kind < 36)
		e = 0;
	if (kind & 1)
		m &= m << 9 & m << 5;
	if (kind == 40)
		e = field, m = kind & n;
	if (kind == 42 || kind == 43)
		m = 0 - (kind & 1);
	if (kind == 44)
		e = m = 0;
	return sign << (exp + man) | (e & field) << man | (m & (((uint64_t)1 << man) - 1));
}

struct ref_format {
	uint8_t type, exp, man, sign;
	int16_t bias;
	uint16_t max; /* code of the largest finite number */
	bool inf, nan;
	uint16_t canonical;
};
static const struct ref_format ref_formats[] = {
	{ CPTX_F16, 5, 10, 1, 15, 0x7bff, true, true, 0x7fff }, { CPTX_BF16, 8, 7, 1, 127, 0x7f7f, true, true, 0x7fff },
	{ CPTX_E5M2, 5, 2, 1, 15, 0x7b, true, true, 0x7f },     { CPTX_E4M3, 4, 3, 1, 7, 0x7e, false, true, 0x7f },
	{ CPTX_UE4M3, 4, 3, 0, 7, 0x7e, false, true, 0x7f },    { CPTX_E3M2, 3, 2, 1, 3, 0x1f, false, false, 0x1f },
	{ CPTX_E2M3, 2, 3, 1, 1, 0x1f, false, false, 0x1f },    { CPTX_E2M1, 2, 1, 1, 1, 0x7, false, false, 0x7 },
};
enum { REF_FORMATS = sizeof ref_formats / sizeof ref_formats[0] };

/* The number of a code without sign, by the definition; codes above the largest finite number go on as if they were finite.
 */
static inline double ref_value(const struct ref_format *f, unsigned code)
{
	unsigned e = code >> f->man, m = code & ((1u << f->man) - 1);
	return e ? ldexp(1 + ldexp(m, -f->man), (int)e - f->bias) : ldexp(ldexp(m, -f->man), 1 - f->bias);
}

/* What x, exactly given, becomes. */
static inline unsigned ref_encode(const struct ref_format *f, double x, unsigned rnd, bool satfinite)
{
	unsigned low = 0, high = f->max + 1u, sign = signbit(x) ? (unsigned)f->sign << (f->exp + f->man) : 0, inf = f->max + 1u;
	if (x != x)
		return f->canonical;
	if (isinf(x))
		return satfinite || !f->nan ? sign | f->max : f->inf ? sign | inf : sign | f->canonical;
	x = fabs(x);
	if (x >= ref_value(f, high))
		low = high;
	while (high - low > 1) {
		unsigned mid = (low + high) / 2;
		if (ref_value(f, mid) <= x)
			low = mid;
		else
			high = mid;
	}
	bool exact = ref_value(f, low) == x && low <= f->max;
	double middle = (ref_value(f, low) + ref_value(f, low + 1)) / 2;
	bool up = rnd == CPTX_RN    ? x > middle || (x == middle && low & 1)
	          : rnd == CPTX_RNA ? x >= middle
	          : rnd == CPTX_RP  ? !sign
	          : rnd == CPTX_RM  ? sign
	                            : false;
	unsigned code = exact ? low : low + up;
	if (code <= f->max)
		return sign | code;
	bool inwards = rnd == CPTX_RZ || (rnd == CPTX_RP && sign) || (rnd == CPTX_RM && !sign);
	return sign | (satfinite || !f->nan || (f->inf && inwards) ? f->max : f->inf ? inf : f->canonical);
}

#endif
