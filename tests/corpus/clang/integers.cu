/* SPDX-License-Identifier: MIT */
// Integers of every width, 128 bits included: products, shifts, divisions, bit counts, conversions, vectors.
// archs: 70 75
#include "device.h"

typedef int int4 __attribute__((ext_vector_type(4)));
typedef unsigned char uchar4 __attribute__((ext_vector_type(4)));

extern "C" __global__ void integers(const long long *a, const unsigned *b, const signed char *c, unsigned long long *out)
{
	long long x = a[tid_x];
	unsigned y = b[tid_x];
	signed char z = c[tid_x];
	unsigned long long r = x / (y | 1) + y % 10 + (z >> 1) + (static_cast<unsigned short>(x) << 3);
	r += __builtin_popcountll(x) + __builtin_clz(y | 1) + __builtin_ctz(y | 2) + __builtin_bswap32(y) + __builtin_bitreverse32(y);
	r += (y << 7 | y >> 25) + static_cast<unsigned long long>(y) * y + (x < 0 ? -x : x);
	out[tid_x] = r;
}

extern "C" __global__ void wide(const __int128 *a, __int128 *out)
{
	__int128 x = a[tid_x];
	out[tid_x] = (x * x + 5) >> (x & 63) ^ (x << 9);
}

extern "C" __global__ void vectors(const int4 *a, const uchar4 *b, int4 *out)
{
	int4 v = a[tid_x];
	uchar4 w = b[tid_x];
	out[tid_x] = v.wzyx * 3 + __builtin_convertvector(w, int4);
}
