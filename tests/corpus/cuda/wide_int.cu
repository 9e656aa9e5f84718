/* SPDX-License-Identifier: MIT */
// Integers of 8 to 128 bits: carries, products, shifts, bit tricks, byte permutes, dot products and video operations.
// archs: 75 80 90a 100a 120a

extern "C" __global__ void int64_mix(const long long *a, const unsigned long long *b, unsigned long long *out)
{
	int i = threadIdx.x;
	long long x = a[i];
	unsigned long long y = b[i];
	unsigned long long r = __umul64hi(y, 0x9e3779b97f4a7c15ull) + static_cast<unsigned long long>(__mul64hi(x, x));
	r ^= (y << (i & 63)) | (y >> (64 - (i & 63)));
	r += __popcll(y) + __clzll(x) + __ffsll(x) + __brevll(y);
	r += x < 0 ? static_cast<unsigned long long>(-x) : y;
	r += static_cast<unsigned long long>(llabs(x)) + min(x, 5ll) + max(y, 9ull);
	out[i] = r * y - (x >> 3);
}

extern "C" __global__ void int128_mix(const __int128 *a, const unsigned __int128 *b, unsigned __int128 *out)
{
	int i = threadIdx.x;
	__int128 x = a[i];
	unsigned __int128 y = b[i];
	unsigned __int128 sum = static_cast<unsigned __int128>(x) + y;
	unsigned __int128 product = static_cast<unsigned __int128>(x) * y;
	out[i] = (sum << (i & 127)) ^ (product >> 17) ^ static_cast<unsigned __int128>(x >> 5);
	if (x > static_cast<__int128>(y))
		out[i] -= y;
}

extern "C" __global__ void int128_divide(const unsigned __int128 *b, unsigned __int128 *out)
{
	out[threadIdx.x] = b[threadIdx.x] / 1000000007u + b[threadIdx.x + 1] % b[threadIdx.x];
}

extern "C" __global__ void bits32(const unsigned *a, const int *s, unsigned *out)
{
	int i = threadIdx.x;
	unsigned x = a[i], y = a[i + 1];
	int p = s[i], q = s[i + 1];
	unsigned r = __byte_perm(x, y, 0x3715) + __funnelshift_l(x, y, i) + __funnelshift_rc(x, y, q) + __popc(x) + __clz(p);
	r += __umulhi(x, y) + __mulhi(p, q) + __umul24(x, y) + __mul24(p, q) + __sad(p, q, x) + __usad(x, y, r);
	r += __brev(x) + __ffs(p) + __hadd(p, q) + __urhadd(x, y) + __dp4a(p, q, 3) + __dp2a_lo(x, y, 5u);
	r += __vadd2(x, y) + __vabsdiffu4(x, y) + __vmaxs4(x, y) + __vcmpgtu2(x, y) + __vsetles4(x, y) + __vavgs2(x, y);
	r += __viaddmax_s32(p, q, 3) + __vimin3_u32(x, y, 12) + __vibmax_s32(p, q, nullptr ? nullptr : reinterpret_cast<bool *>(out));
	out[i] = r;
}

extern "C" __global__ void narrow_int(const signed char *c, const unsigned short *h, short *out, bool *b)
{
	int i = threadIdx.x;
	signed char x = c[i];
	unsigned short y = h[i];
	x = static_cast<signed char>(x * 3 - (y >> 4));
	b[i] = x < 0 && (y & 1) != b[i + 1];
	out[i] = static_cast<short>(x + (b[i] ? y : -y) + static_cast<short>(y % 13));
}
