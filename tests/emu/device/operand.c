/* SPDX-License-Identifier: MIT */
#include "operand.h"

#include "arch/arch.h"
#include "emu/num/num.h"

uint64_t draw(source *s)
{
	uint64_t z = s->state += 0x9e3779b97f4a7c15; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

unsigned draw_below(source *s, unsigned n) { return (unsigned)((draw(s) >> 32) * n >> 32); }

/* Where things change: for all widths, cut to them. */
static const uint64_t integers[] = { 0,
	                                 1,
	                                 2,
	                                 3,
	                                 4,
	                                 5,
	                                 7,
	                                 8,
	                                 9,
	                                 10,
	                                 15,
	                                 16,
	                                 17,
	                                 23,
	                                 24,
	                                 31,
	                                 32,
	                                 33,
	                                 47,
	                                 48,
	                                 63,
	                                 64,
	                                 65,
	                                 100,
	                                 127,
	                                 128,
	                                 129,
	                                 255,
	                                 256,
	                                 257,
	                                 0x7fff,
	                                 0x8000,
	                                 0x8001,
	                                 0xffff,
	                                 0x10000,
	                                 0x10001,
	                                 0x7fffff,
	                                 0x800000,
	                                 0xffffff,
	                                 0x1000000,
	                                 0x7fffffff,
	                                 0x80000000,
	                                 0x80000001,
	                                 0xffffffff,
	                                 0x100000000,
	                                 0x7fffffffffffffff,
	                                 0x8000000000000000,
	                                 0x8000000000000001,
	                                 0x5555555555555555,
	                                 0xaaaaaaaaaaaaaaaa,
	                                 0x0123456789abcdef,
	                                 0xfedcba9876543210,
	                                 UINT64_MAX,
	                                 UINT64_MAX - 1,
	                                 UINT64_MAX - 31,
	                                 UINT64_MAX - 127,
	                                 UINT64_MAX - 255 };

/* Numbers that conversions and roundings turn on. */
static const double numbers[] = { 0,
	                              1,
	                              2,
	                              3,
	                              4,
	                              5,
	                              6,
	                              7,
	                              0.5,
	                              0.25,
	                              1.5,
	                              2.5,
	                              3.5,
	                              0.75,
	                              10,
	                              100,
	                              126.5,
	                              127,
	                              127.5,
	                              128,
	                              128.5,
	                              254.5,
	                              255,
	                              255.5,
	                              256,
	                              448,
	                              464,
	                              480,
	                              32766.5,
	                              32767,
	                              32767.5,
	                              32768,
	                              57344,
	                              61440,
	                              65503,
	                              65504,
	                              65519,
	                              65520,
	                              65535,
	                              65535.5,
	                              65536,
	                              0x1p23,
	                              0x1p24,
	                              0x1p31,
	                              0x1p32,
	                              0x1p31 - 0.5,
	                              0x1p32 - 0.5,
	                              0x1p31 - 128,
	                              0x1p32 - 256,
	                              0x1p52,
	                              0x1p53,
	                              0x1p63,
	                              0x1p64,
	                              0x1p63 - 1024,
	                              0x1p64 - 2048,
	                              0x1p126,
	                              0x1p127,
	                              0x1p-1,
	                              0x1p-6,
	                              0x1p-9,
	                              0x1p-10,
	                              0x1p-14,
	                              0x1p-16,
	                              0x1p-24,
	                              0x1p-25,
	                              0x1.8p-25,
	                              0x1p-126,
	                              0x1p-127,
	                              0x1p-133,
	                              0x1p-134,
	                              0x1p-149,
	                              0x1p-150,
	                              0x1p-151,
	                              0x1p-1022,
	                              0x1p-1074,
	                              0x1p1023,
	                              0x1.fffffep127,
	                              0x1.ffffffp127,
	                              0x1.fffffefp127,
	                              3.14159265358979,
	                              6.28318530717959,
	                              0.333333333333333,
	                              0x1.002p0,
	                              0x1.003p0,
	                              0x1.001p0,
	                              0x1.01p0,
	                              0x1.03p0,
	                              0x1.000001p0,
	                              0x1.000003p0 };

static uint64_t low_bits(uint64_t a, unsigned bits) { return bits >= 64 ? a : a & ((UINT64_C(1) << bits) - 1); }

static uint64_t integer(unsigned bits, source *random)
{
	uint64_t u = draw(random);

	switch (draw_below(random, 6)) {
	case 0:
	case 1: return low_bits(integers[u % ARRAY_LEN(integers)], bits);
	case 2: return low_bits(u >> draw_below(random, bits), bits);                      /* of any length, */
	case 3: return low_bits((uint64_t)((int64_t)u >> draw_below(random, bits)), bits); /* with either sign */
	case 4: return u % 70;
	default: return low_bits(u, bits);
	}
}

/* Widths of exponent and mantissa of what arithmetic is done with. */
static unsigned mantissa(unsigned type)
{
	switch (type) {
	case CPTX_F64: return 52;
	case CPTX_F32:
	case CPTX_TF32: return 23;
	case CPTX_F16: return 10;
	case CPTX_BF16: return 7;
	default: return 0;
	}
}

static uint64_t number_bits(unsigned type, double d)
{
	static const struct num_mode plain;

	return num_cvt(type, CPTX_F64, num_bits64(d), &plain);
}

static uint64_t floating(unsigned type, unsigned bits, const uint64_t *near, source *random)
{
	unsigned man = mantissa(type), exp = bits - 1 - man;
	uint64_t u = draw(random), inf = ((UINT64_C(1) << exp) - 1) << man, one = ((UINT64_C(1) << (exp - 1)) - 1) << man;
	uint64_t sign = u >> 63 << (bits - 1), frac = low_bits(draw(random), man);
	const uint64_t special[] = { 0,
		                         1,
		                         (UINT64_C(1) << man) - 1,
		                         UINT64_C(1) << man,
		                         inf - 1,
		                         inf,
		                         inf | 1,
		                         inf | UINT64_C(1) << (man - 1),
		                         inf | frac,
		                         one,
		                         one + 1,
		                         one - 1,
		                         one | frac,
		                         frac,
		                         low_bits(UINT64_MAX, bits - 1) };
	double small;

	switch (draw_below(random, near ? 9 : 7)) {
	case 0:
	case 1: return special[u % ARRAY_LEN(special)] | sign;
	case 2: return low_bits(draw(random), bits);
	case 3: return (one - (UINT64_C(4) << man) + (u % 9 << man)) | frac | sign;
	case 4: return number_bits(type, numbers[u % ARRAY_LEN(numbers)]) | sign;
	case 5: small = (double)(u % 2000) / 2; return number_bits(type, small) | sign;
	case 6: small = (double)(u >> 32) / 4294967296.0 * 314; return number_bits(type, small) | sign;
	case 7: return low_bits(*near + (u % 9) - 4, bits);
	default: return low_bits((*near ^ UINT64_C(1) << (bits - 1)) + (u % 9) - 4, bits);
	}
}

void operand_fill(unsigned char to[SLOT], unsigned type, const unsigned char *near, source *random)
{
	struct num_packing pack = num_packing(type);
	uint64_t words[2] = { 0 }, old[2] = { 0 };
	unsigned bits = arch_types[type].bits;

	if (near)
		memcpy(old, near, sizeof old);
	if (type == CPTX_PRED) {
		words[0] = draw(random) & 1;
	} else if (bits == 128) {
		words[0] = draw(random);
		words[1] = draw(random);
	} else if (arch_types[type].cls != 'F' && !mantissa(pack.type) && pack.count == 1) {
		words[0] = integer(bits, random);
		words[0] |= bits < 64 ? draw(random) << bits : 0; /* what a wider register has above */
	} else {
		for (unsigned i = 0; i < pack.count; i++) {
			uint64_t before = low_bits(old[0] >> i * pack.bits, pack.bits);
			uint64_t one = mantissa(pack.type) ? floating(pack.type, pack.bits, near ? &before : NULL, random)
			                                   : integer(pack.bits, random);
			words[0] |= one << i * pack.bits;
		}
	}
	memcpy(to, words, SLOT);
}
