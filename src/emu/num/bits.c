/* SPDX-License-Identifier: MIT */
/* Bits: counting, moving and choosing them. */
#include "emu/num/real.h"

#include "base/base.h"

uint32_t num_popc(unsigned type, uint64_t a) { return (uint32_t)__builtin_popcountll(a & num_mask(num_width(type))); }

uint32_t num_clz(unsigned type, uint64_t a)
{
	unsigned width = num_width(type);
	a &= num_mask(width);
	return a ? (uint32_t)__builtin_clzll(a) - (64 - width) : width;
}

uint64_t num_brev(unsigned type, uint64_t a)
{
	unsigned width = num_width(type);
	uint64_t d = 0;
	for (unsigned i = 0; i < width; i++)
		d |= (a >> i & 1) << (width - 1 - i);
	return d;
}

uint32_t num_bfind(unsigned type, uint64_t a, bool shiftamt)
{
	a = num_extend(type, a);
	if (num_is_signed(type) && (int64_t)a < 0)
		a = ~a;
	if (!a)
		return UINT32_MAX;
	unsigned at = 63 - (unsigned)__builtin_clzll(a);
	return shiftamt ? num_width(type) - 1 - at : at;
}

uint32_t num_fns(uint32_t a, uint32_t b, int32_t n)
{
	if (n == INT32_MIN) /* what sm_90 gives */
		return 0;
	if (n == 0)
		return b < 32 && a >> b & 1 ? b : UINT32_MAX;
	int64_t left = n < 0 ? -(int64_t)n : n;
	for (int64_t at = b; at >= 0 && at < 32; at += n < 0 ? -1 : 1)
		if (a >> at & 1 && --left == 0)
			return (uint32_t)at;
	return UINT32_MAX;
}

uint64_t num_bfe(unsigned type, uint64_t a, uint32_t b, uint32_t c)
{
	/* The manual takes the low 8 bits of b and c; sm_90 does so for 32-bit numbers only. */
	unsigned width = num_width(type), low = width == 64 ? UINT32_MAX : 0xff, at = b & low, n = c & low;
	a = num_extend(type, a); /* above the width: zeros, or the sign, which is what bfe wants there */
	if (!n)
		return 0;
	a = at > 63               ? (num_is_signed(type) && (int64_t)a < 0 ? UINT64_MAX : 0)
	    : num_is_signed(type) ? (uint64_t)((int64_t)a >> at)
	                          : a >> at;
	n = MIN(n, width);
	return (num_is_signed(type) ? (uint64_t)num_sext(n, a) : a & num_mask(n)) & num_mask(width);
}

uint64_t num_bfi(unsigned type, uint64_t a, uint64_t b, uint32_t c, uint32_t n)
{
	unsigned width = num_width(type), low = width == 64 ? UINT32_MAX : 0xff, at = c & low; /* as in bfe */
	n &= low;
	uint64_t mask = !n || at >= width ? 0 : num_mask(MIN(n, 64)) << at;
	return ((b & ~mask) | (mask ? a << at & mask : 0)) & num_mask(width);
}

uint32_t num_szext(unsigned type, unsigned mode, uint32_t a, uint32_t b)
{
	if (mode == CPTX_CLAMP && b >= 32)
		return a;
	unsigned n = b & 31;
	if (!n)
		return 0;
	return (uint32_t)(num_is_signed(type) ? (uint64_t)num_sext(n, a) : a & num_mask(n));
}

uint32_t num_bmsk(unsigned mode, uint32_t a, uint32_t b)
{
	if (mode == CPTX_CLAMP && a >= 32)
		return 0;
	bool all = mode == CPTX_CLAMP && b >= 32;
	uint64_t ones = all ? UINT32_MAX : ((uint64_t)1 << (b & 31)) - 1;
	return (uint32_t)(ones << (a & 31));
}

/* The byte of {b, a} that goes to byte k of d. */
static unsigned source_byte(unsigned mode, unsigned c, unsigned k)
{
	switch (mode) {
	case CPTX_F4E: return c + k;
	case CPTX_B4E: return (c - k) & 7;
	case CPTX_RC8: return c;
	case CPTX_ECL: return MAX(c, k);
	case CPTX_ECR: return MIN(c, k);
	default: return (c & 1) * 2 + (k & 1); /* rc16 */
	}
}

uint32_t num_prmt(unsigned mode, uint32_t a, uint32_t b, uint32_t c)
{
	uint64_t source = (uint64_t)b << 32 | a;
	uint32_t d = 0;
	for (unsigned k = 0; k < 4; k++) {
		unsigned digit = c >> 4 * k & 15, from = mode ? source_byte(mode, c & 3, k) : digit & 7;
		uint32_t byte = source >> 8 * from & 0xff;
		if (!mode && digit & 8)
			byte = byte & 0x80 ? 0xff : 0; /* its sign, eight times */
		d |= byte << 8 * k;
	}
	return d;
}

uint32_t num_shf(unsigned dir, unsigned mode, uint32_t a, uint32_t b, uint32_t c)
{
	unsigned n = mode == CPTX_CLAMP ? MIN(c, 32) : c & 31;
	uint64_t pair = (uint64_t)b << 32 | a;
	return (uint32_t)(dir == CPTX_L ? pair >> (32 - n) : pair >> n);
}

uint64_t num_shl(unsigned type, uint64_t a, uint32_t b)
{
	unsigned width = num_width(type);
	return b < width ? a << b & num_mask(width) : 0;
}

uint64_t num_shr(unsigned type, uint64_t a, uint32_t b)
{
	unsigned width = num_width(type);
	a = num_extend(type, a);
	if (num_is_signed(type))
		return (uint64_t)((int64_t)a >> MIN(b, 63)) & num_mask(width);
	return b < width ? a >> b : 0;
}
