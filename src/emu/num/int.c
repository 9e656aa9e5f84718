/* SPDX-License-Identifier: MIT */
/* Integers: what is not one expression of C. */
#include "emu/num/real.h"

static uint64_t clamp(unsigned type, num_u128 magnitude, bool negative)
{
	unsigned width = num_width(type), sign = num_is_signed(type);
	num_u128 most = (num_u128)num_mask(width - sign) + (negative && sign);
	if (negative && !sign)
		return 0;
	uint64_t d = (uint64_t)(magnitude < most ? magnitude : most);
	return (negative ? 0 - d : d) & num_mask(width);
}

/* a + b, or a - b, without bounds, as a magnitude and a sign. */
static uint64_t sum_sat(unsigned type, uint64_t a, uint64_t b, bool minus)
{
	bool is_signed = num_is_signed(type);
	a = num_extend(type, a);
	b = num_extend(type, b);
	bool less_a = is_signed && (int64_t)a < 0, less_b = (is_signed && (int64_t)b < 0) != minus;
	uint64_t mag_a = less_a ? 0 - a : a, mag_b = is_signed && (int64_t)b < 0 ? 0 - b : b;
	if (less_a == less_b)
		return clamp(type, (num_u128)mag_a + mag_b, less_a);
	return mag_a >= mag_b ? clamp(type, mag_a - mag_b, less_a) : clamp(type, mag_b - mag_a, less_b);
}

uint64_t num_int_add(unsigned type, uint64_t a, uint64_t b, bool sat)
{
	return sat ? sum_sat(type, a, b, false) : (a + b) & num_mask(num_width(type));
}

uint64_t num_int_sub(unsigned type, uint64_t a, uint64_t b, bool sat)
{
	return sat ? sum_sat(type, a, b, true) : (a - b) & num_mask(num_width(type));
}

uint64_t num_int_max(unsigned type, uint64_t a, uint64_t b, bool min)
{
	return num_cmp(type, CPTX_LT, a, b, false) == min ? a : b;
}

/* Division by zero gives ones, as the code that ptxas makes for 32 bits; the manual leaves it to the machine. */
uint64_t num_int_div(unsigned type, uint64_t a, uint64_t b)
{
	uint64_t mask = num_mask(num_width(type)), x = num_extend(type, a), y = num_extend(type, b);
	if (!y)
		return mask;
	if (!num_is_signed(type))
		return x / y;
	return (y == UINT64_MAX ? 0 - x : (uint64_t)((int64_t)x / (int64_t)y)) & mask; /* the lowest number / -1 wraps */
}

uint64_t num_rem(unsigned type, uint64_t a, uint64_t b)
{
	uint64_t mask = num_mask(num_width(type)), x = num_extend(type, a), y = num_extend(type, b);
	if (!y)
		return mask;
	if (!num_is_signed(type))
		return x % y;
	return (y == UINT64_MAX ? 0 : (uint64_t)((int64_t)x % (int64_t)y)) & mask;
}

/* ---- products ---- */
/* All 128 bits, of which those above the double width of the type are copies of the sign. */
static num_u128 product(unsigned type, uint64_t a, uint64_t b)
{
	uint64_t x = num_extend(type, a), y = num_extend(type, b);
	num_u128 p = (num_u128)x * y;
	if (num_is_signed(type)) {
		p -= (int64_t)x < 0 ? (num_u128)y << 64 : 0;
		p -= (int64_t)y < 0 ? (num_u128)x << 64 : 0;
	}
	return p;
}

uint64_t num_mul_hi(unsigned type, uint64_t a, uint64_t b)
{
	unsigned width = num_width(type);
	return (uint64_t)(product(type, a, b) >> width) & num_mask(width);
}

uint64_t num_mul_wide(unsigned type, uint64_t a, uint64_t b)
{
	unsigned width = 2 * num_width(type);
	return (uint64_t)product(type, a, b) & num_mask(width < 64 ? width : 64);
}

uint32_t num_mad_hi_sat(uint32_t a, uint32_t b, uint32_t c)
{
	return (uint32_t)sum_sat(CPTX_S32, num_mul_hi(CPTX_S32, a, b), c, false);
}

uint32_t num_mul24(unsigned type, bool hi, uint32_t a, uint32_t b)
{
	uint64_t x = a & 0xffffff, y = b & 0xffffff;
	if (num_is_signed(type)) {
		x = (uint64_t)num_sext(24, x);
		y = (uint64_t)num_sext(24, y);
	}
	return (uint32_t)(x * y >> (hi ? 16 : 0));
}

uint32_t num_mad24_hi_sat(uint32_t a, uint32_t b, uint32_t c)
{
	return (uint32_t)sum_sat(CPTX_S32, num_mul24(CPTX_S32, true, a, b), c, false);
}

uint64_t num_clmad(bool hi, uint64_t a, uint64_t b, uint64_t c)
{
	num_u128 p = 0;
	for (unsigned i = 0; i < 64; i++)
		p ^= b >> i & 1 ? (num_u128)a << i : 0;
	return (uint64_t)(hi ? p >> 64 : p) ^ c;
}

/* The sum of n products of elements of a (from `width_a` bits) and of b (bytes, from byte `from` on), and c. */
static uint32_t dot(unsigned atype, unsigned btype, uint32_t a, unsigned width_a, uint32_t b, unsigned from, uint32_t c)
{
	for (unsigned i = 0; i < 32 / width_a; i++) {
		uint64_t x = a >> i * width_a & num_mask(width_a), y = b >> (from + i) * 8 & 0xff;
		x = num_is_signed(atype) ? (uint64_t)num_sext(width_a, x) : x;
		y = num_is_signed(btype) ? (uint64_t)num_sext(8, y) : y;
		c += (uint32_t)(x * y);
	}
	return c;
}

uint32_t num_dp4a(unsigned atype, unsigned btype, uint32_t a, uint32_t b, uint32_t c)
{
	return dot(atype, btype, a, 8, b, 0, c);
}

uint32_t num_dp2a(bool hi, unsigned atype, unsigned btype, uint32_t a, uint32_t b, uint32_t c)
{
	return dot(atype, btype, a, 16, b, hi ? 2 : 0, c);
}

/* ---- sums ---- */
uint64_t num_sad(unsigned type, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t d = num_cmp(type, CPTX_LT, a, b, false) ? b - a : a - b;
	return (c + d) & num_mask(num_width(type));
}

uint64_t num_add_carry(unsigned type, uint64_t a, uint64_t b, bool *cf)
{
	unsigned width = num_width(type);
	num_u128 d = (num_u128)(a & num_mask(width)) + (b & num_mask(width)) + *cf;
	*cf = d >> width & 1;
	return (uint64_t)d & num_mask(width);
}

uint64_t num_sub_borrow(unsigned type, uint64_t a, uint64_t b, bool *cf)
{
	unsigned width = num_width(type);
	num_u128 d = (num_u128)(a & num_mask(width)) - (b & num_mask(width)) - *cf;
	*cf = d >> width & 1;
	return (uint64_t)d & num_mask(width);
}
