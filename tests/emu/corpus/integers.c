/* SPDX-License-Identifier: MIT */
/* Integers, warps, calls, vectors, switches. */
#include "run.h"
#include "base/base.h"

#define UNUSED (void)got
__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

/* ---- divide, wide_int ---- */

#define DIVIDED(x, y) ((x) / (y) + (x) % (y)*2 + (x) / 7 + (x) % 10 + (x) / 16 + (x) % 8)
#define DIVIDE(name, S, U)                                                                                                  \
	static void name##_fill(void **b, void **got)                                                                           \
	{                                                                                                                       \
		S *y = b[1];                                                                                                        \
		U *v = b[4];                                                                                                        \
                                                                                                                            \
		UNUSED;                                                                                                             \
		for (int i = 0; i < 32; i++) {                                                                                      \
			y[i] = (S)(y[i] % (3 + i * 9));                                                                                 \
			y[i] = y[i] ? y[i] : -5;                                                                                        \
			v[i] = v[i] ? (U)(v[i] % (100 + i)) : 3;                                                                        \
			v[i] = v[i] ? v[i] : 3;                                                                                         \
		}                                                                                                                   \
	}                                                                                                                       \
	static void name(void **b, void **got)                                                                                  \
	{                                                                                                                       \
		const S *x = b[0], *y = b[1];                                                                                       \
		const U *u = b[3], *v = b[4];                                                                                       \
		S *out = b[2];                                                                                                      \
		U *uout = b[5];                                                                                                     \
                                                                                                                            \
		UNUSED;                                                                                                             \
		for (int i = 0; i < 32; i++) {                                                                                      \
			out[i] = (S)((u128)(DIVIDED((s128)x[i], y[i])));                                                                \
			uout[i] = (U)(DIVIDED((u128)u[i], v[i]));                                                                       \
		}                                                                                                                   \
	}
DIVIDE(divide32, int32_t, uint32_t)
DIVIDE(divide64, int64_t, uint64_t)
DIVIDE(divide16, int16_t, uint8_t)

static uint64_t brev(uint64_t v)
{
	uint64_t r = 0;

	for (int i = 0; i < 64; i++)
		r |= (v >> i & 1) << (63 - i);
	return r;
}

static void int64_mix(void **b, void **got)
{
	const int64_t *xs = b[0];
	const uint64_t *ys = b[1];
	uint64_t *out = b[2];

	UNUSED;
	for (unsigned i = 0; i < 32; i++) {
		int64_t x = xs[i];
		uint64_t y = ys[i], r = (uint64_t)((u128)y * 0x9e3779b97f4a7c15u >> 64) + (uint64_t)((s128)x * x >> 64);
		r ^= (y << i) | (y >> ((64 - i) & 63));
		r += (uint64_t)(__builtin_popcountll(y) + (x ? __builtin_clzll((uint64_t)x) : 64) + __builtin_ffsll(x)) + brev(y);
		r += x < 0 ? (uint64_t)-x : y;
		r += (uint64_t)(x < 0 ? -x : x) + (uint64_t)(x < 5 ? x : 5) + (y > 9 ? y : 9);
		out[i] = r * y - (uint64_t)(x >> 3);
	}
}

static void int128_mix(void **b, void **got)
{
	const s128 *xs = b[0];
	const u128 *ys = b[1];
	u128 *out = b[2];

	UNUSED;
	for (unsigned i = 0; i < 32; i++) {
		s128 x = xs[i];
		u128 y = ys[i];
		out[i] = (((u128)x + y) << i) ^ ((u128)x * y >> 17) ^ (u128)(x >> 5);
		if (x > (s128)y)
			out[i] -= y;
	}
}

static void int128_divide(void **b, void **got)
{
	const u128 *x = b[0];
	u128 *out = b[1];

	UNUSED;
	for (unsigned i = 0; i < 32; i++)
		out[i] = x[i] / 1000000007u + x[i + 1] % x[i];
}

/* The sum of what CUDA's functions of words give, without those of their halves and bytes. */
static uint32_t of_words(uint32_t x, uint32_t y, int32_t p, int32_t q)
{
	const uint64_t both = (uint64_t)y << 32 | x;
	const uint32_t turn = MIN((uint32_t)q, 32), a = (uint32_t)p, b = (uint32_t)q;
	const int64_t apart = (int64_t)p - q, product = (int64_t)p * q;
	uint32_t r = (y >> 8 & 0xff) | (x & 0xff00) | (y >> 24) << 16 | (x >> 24) << 24; /* bytes 5, 1, 7 and 3 */

	r += y + (uint32_t)(both >> turn) + (uint32_t)__builtin_popcount(x) + (p ? (uint32_t)__builtin_clz(a) : 32);
	r += (uint32_t)((uint64_t)x * y >> 32) + (uint32_t)((uint64_t)product >> 32) + (x & 0xffffff) * (y & 0xffffff) +
	     (uint32_t)((int32_t)(a << 8) / 256) * (uint32_t)((int32_t)(b << 8) / 256) + (uint32_t)(apart < 0 ? -apart : apart) +
	     x + (x < y ? y - x : x - y) + r;
	for (unsigned i = 0; i < 32; i++)
		r += (x >> i & 1) << (31 - i);
	r += p ? (uint32_t)__builtin_ctz(a) + 1 : 0;
	r += (uint32_t)(((int64_t)p + q - ((p ^ q) & 1)) / 2) + (uint32_t)(((uint64_t)x + y + 1) / 2);
	r += (uint32_t)MAX((int32_t)(a + b), 3) + MIN(MIN(x, y), 12) + (uint32_t)MAX(p, q);
	return r + 3 + 5; /* what the dot products begin with */
}

static void bits32(void **b, void **got)
{
	const uint32_t *v = b[0], x = v[0], y = v[1];
	const int32_t *s = b[1];
	uint32_t r = of_words(x, y, s[0], s[1]);

	UNUSED;
	for (unsigned at = 0; at < 32; at += 16) {
		const uint16_t h = (uint16_t)(x >> at), i = (uint16_t)(y >> at);
		const int sum = (int16_t)h + (int16_t)i;
		r += (uint32_t)h * (y >> at / 2 & 0xff);
		r += ((uint32_t)(uint16_t)(h + i) + (h > i ? 0xffffu : 0) + (uint16_t)((sum + (sum < 0 ? -1 : 1)) / 2)) << at;
	}
	for (unsigned at = 0; at < 32; at += 8) {
		const uint8_t c = (uint8_t)(x >> at), d = (uint8_t)(y >> at);
		r += (uint32_t)((int8_t)((uint32_t)s[0] >> at) * (int8_t)((uint32_t)s[1] >> at));
		r += ((uint32_t)(c < d ? d - c : c - d) + (uint8_t)MAX((int8_t)c, (int8_t)d) + ((int8_t)c <= (int8_t)d)) << at;
	}
	*(uint32_t *)b[2] = r;
}

static void narrow_int(void **b, void **got)
{
	const int8_t *c = b[0];
	const uint16_t *h = b[1];
	int16_t *out = b[2];
	uint8_t *flag = b[3];
	int8_t x = (int8_t)(*c * 3 - (*h >> 4));

	UNUSED;
	flag[0] = x < 0 && (*h & 1) != flag[1];
	*out = (int16_t)(x + (flag[0] ? *h : -*h) + *h % 13);
}

static void flags_fill(void **b, void **got)
{
	uint8_t *flag = b[3];

	UNUSED;
	flag[0] = flag[1] = 1;
}

/* ---- warp ---- */

static void block_votes(void **b, void **got)
{
	int *out = b[1];

	UNUSED;
	for (int i = 0; i < 64; i++)
		out[i] = 63 + 2000;
}

/* ---- calls ---- */

typedef struct pair {
	float a;
	double b;
} pair;

static void pairs_fill(void **b, void **got)
{
	pair *p = b[2];

	UNUSED;
	for (int i = 0; i < 32; i++)
		p[i] = (pair){ .a = (float)i * 0.5f, .b = i * 1.25 };
}

static void call_plain(void **b, void **got)
{
	int *out = b[0];
	float *v = b[1];
	pair *p = b[2];
	const int *big = b[3];

	memcpy(b[2], got[2], 32 * sizeof(pair)); /* what fills up the structs */
	for (int i = 0; i < 32; i++) {
		const int *w = big + i * 13;
		out[i] =
			(int)(2u * (unsigned)i - 21u + (unsigned)w[i & 7] * 200u + (unsigned)(i > 3 ? (int8_t)(w[12] >> 8) : w[11]));
		for (int k = 0; k < 4; k++)
			v[i * 4 + k] = (float)(k ? k : i);
		p[i].a = (float)i * 1.25f;
		p[i].b = i * 0.5;
	}
}

static void call_recursive(void **b, void **got)
{
	static const int fibonacci[] = { 0, 1, 1, 2, 3, 5, 8, 13 };
	int *out = b[0];

	UNUSED;
	for (int i = 0; i < 32; i++)
		out[i] = fibonacci[i & 7] + !(i & 1);
}

static void call_indirect(void **b, void **got)
{
	int *out = b[0], v = 9 + 1;

	UNUSED;
	for (int i = 0; i < 9; i++)
		v = i % 3 == 0 ? v + i : i % 3 == 1 ? v - 3 * i : v ^ i << 3;
	for (int i = 0; i < 32; i++)
		out[i] = v;
}

/* ---- vectors ---- */

static void copy_f4(void **b, void **got)
{
	const float(*in)[4] = b[0];
	float(*out)[4] = b[1];

	UNUSED;
	for (int i = 0; i < 50; i++) {
		float *to = out[49 - i];
		to[0] = in[i][3];
		to[1] = in[i][2] * 2;
		to[2] = in[i][1] - in[i][0];
		to[3] = in[i][0];
	}
}

static void copy_small(void **b, void **got)
{
	const int8_t(*a)[4] = b[0];
	const uint8_t(*u)[2] = b[1];
	const int16_t(*d)[2] = b[2];
	const uint16_t(*e)[4] = b[3];
	int(*out)[4] = b[4];

	UNUSED;
	for (int i = 0; i < 32; i++) {
		out[i][0] = a[i][0] + u[i][1];
		out[i][1] = a[i][1] - d[i][0];
		out[i][2] = a[i][2] * e[i][3];
		out[i][3] = a[i][3] + u[i][0] + d[i][1] + e[i][0] + e[i][1] + e[i][2];
	}
}

static void copy_wide(void **b, void **got)
{
	const double(*a)[2] = b[0];
	const uint64_t *bits = b[0], (*l)[2] = b[1];
	uint64_t(*out)[2] = b[2];
	int *odd = b[3];

	UNUSED;
	for (int i = 0; i < 32; i++) {
		int o[3] = { odd[i * 3 + 2], odd[i * 3], odd[i * 3 + 1] };
		out[i][0] = bits[i * 2] ^ l[i][1];
		out[i][1] = (a[i][1] > 0 ? (uint64_t)a[i][1] : 0) + l[i][0];
		memcpy(odd + i * 3, o, sizeof o);
	}
}

static void copy_256(void **b, void **got)
{
	const double(*in)[4] = b[0];
	double(*out)[4] = b[1];
	const int64_t(*more)[4] = b[2];

	UNUSED;
	for (int i = 0; i < 32; i++) {
		memcpy(out[i], in[i], sizeof in[i]);
		out[i][0] += (double)more[i][3];
		out[i][3] *= 3;
	}
}

typedef struct pixel {
	uint8_t r, g, b, a;
	float depth;
	int16_t motion[2];
	uint8_t rest[4];
} pixel;

static void pixels_fill(void **b, void **got)
{
	uint8_t *mask = b[1];

	UNUSED;
	for (int i = 0; i < 32; i++)
		mask[i] &= 1;
}

static void pixels(void **b, void **got)
{
	pixel *p = b[0], row[32];
	const pixel *left = got[0];
	const uint8_t *mask = b[1];

	memcpy(row, p, sizeof row);
	for (int i = 0; i < 32; i++) {
		pixel q = row[31 - i];
		q.r = (uint8_t)(q.g + q.b < 255 ? q.g + q.b : 255);
		q.depth = mask[i] ? q.depth : -q.depth;
		q.motion[1] = 77;
		memcpy(q.rest, left[i].rest, sizeof q.rest); /* nobody's */
		p[i] = q;
	}
}

/* ---- switches, switch_table ---- */

static void sparse_fill(void **b, void **got)
{
	static const uint32_t key[] = { 1, 5000, 0x80000000, 0xfffffffe, 7, 99, 101 };
	uint32_t *k = b[0];

	UNUSED;
	for (int i = 0; i < 32; i++)
		k[i] = key[i % 7];
}

static void sparse(void **b, void **got)
{
	static const int value[] = { 17, -1, 99, 3, 0, 0, 0 };
	int *out = b[1];

	UNUSED;
	for (int i = 0; i < 32; i++)
		out[i] = value[i % 7];
}

static void interpret_fill(void **b, void **got)
{
	/* 7, push, 6, times, push, shifted by 3, minus what was pushed, complemented, the end */
	static const uint8_t code[] = { 5, 7, 0, 5, 6, 4, 0, 9, 3, 3, 8, 10 };

	UNUSED;
	memcpy(b[0], code, sizeof code);
}

static void interpret(void **b, void **got)
{
	int64_t *stack = b[1];

	UNUSED;
	stack[0] = stack[1] = ~((INT64_C(42) << 3) - 42);
}

static void dense_fill(void **b, void **got)
{
	static const int op[] = { 0, 2, 4, 5, 12, -1 };
	int *o = b[0];
	float *v = b[1];

	UNUSED;
	for (int i = 0; i < 32; i++) {
		o[i] = op[i % 6];
		v[i] = (float)(i + 1) * 0.75f;
	}
}

static void dense(void **b, void **got)
{
	float *v = b[1];

	UNUSED;
	for (int i = 0; i < 32; i++)
		switch (i % 6) {
		case 0: v[i] += 1; break;
		case 1: v[i] = sqrtf(v[i]); break;
		case 2: v[i] /= 3; break;
		case 3: v[i] = fabsf(v[i]) - 2; break;
		default: v[i] = -v[i];
		}
}

static const corpus_case rows[] = {
	ROW("divide", "divide32", "1/32",
	    "buf:s32[32]=rand:1 buf:s32[32]=rand:2 buf:s32[32] buf:u32[32]=rand:3 buf:u32[32]=rand:4 buf:u32[32]",
	    .prepare = divide32_fill, .expect = divide32),
	ROW("divide", "divide64", "1/32",
	    "buf:s64[32]=rand:1 buf:s64[32]=rand:2 buf:s64[32] buf:u64[32]=rand:3 buf:u64[32]=rand:4 buf:u64[32]",
	    .prepare = divide64_fill, .expect = divide64),
	ROW("divide", "divide16", "1/32",
	    "buf:s16[32]=rand:1 buf:s16[32]=rand:2 buf:s16[32] buf:u8[32]=rand:3 buf:u8[32]=rand:4 buf:u8[32]",
	    .prepare = divide16_fill, .expect = divide16),
	ROW("wide_int", "int64_mix", "1/32", "buf:s64[32]=rand:1 buf:u64[32]=rand:2 buf:u64[32]", .expect = int64_mix),
	ROW("wide_int", "int128_mix", "1/32", "buf:u64[64]=rand:1 buf:u64[64]=rand:2 buf:u64[64]", .expect = int128_mix),
	ROW("wide_int", "int128_divide", "1/32", "buf:u64[66]=rand:1 buf:u64[64]", .expect = int128_divide),
	ROW("wide_int", "bits32", "1/1", "buf:u32[2]=rand:1 buf:s32[2]=rand:2 buf:u32[1]", .expect = bits32),
	ROW("wide_int", "narrow_int", "1/1", "buf:s8[1]=rand:1 buf:u16[1]=rand:2 buf:s16[1] buf:u8[2]", .prepare = flags_fill,
	    .expect = narrow_int),
	ROW("wide_int", "narrow_int", "1/32", "buf:s8[32]=rand:1 buf:u16[32]=rand:2 buf:s16[32] buf:u8[33]",
	    .finds = CPTX_FIND_RACE, .why = "b[i + 1] is read while its thread writes it"),
	ROW("warp", "shuffles", "1/32", "buf:s32[32]=rand:1 buf:f64[32]=rand:2 buf:s32[32] buf:f64[32]",
	    .finds = CPTX_FIND_MEMBERMASK, .why = "lanes 16 to 31 shuffle with a mask of the others"),
	ROW("warp", "votes", "1/32", "buf:u32[32]=iota buf:u32[32]", .finds = CPTX_FIND_MEMBERMASK,
	    .why = "__reduce_and_sync by all lanes with a mask of eight"),
	ROW("warp", "block_votes", "1/64", "buf:s32[64]=iota buf:s32[64]", .expect = block_votes),
	ROW("calls", "call_plain", "1/32", "buf:s32[32] buf:f32[128] buf:u64[64] buf:s32[416]=rand:1", .prepare = pairs_fill,
	    .expect = call_plain),
	ROW("calls", "call_recursive", "1/32", "buf:s32[32]", .expect = call_recursive),
	ROW("calls", "call_indirect", "1/32", "buf:s32[32] u64:0 s32:9", .expect = call_indirect),
	ROW("vectors", "copy_f4", "2/32", "buf:f32[200]=rand:1 buf:f32[200] s32:50", .expect = copy_f4),
	ROW("vectors", "copy_small", "1/32",
	    "buf:s8[128]=rand:1 buf:u8[64]=rand:2 buf:s16[64]=rand:3 buf:u16[128]=rand:4 buf:s32[128]", .expect = copy_small),
	ROW("vectors", "copy_wide", "1/32", "buf:f64[64]=iota buf:s64[64]=rand:2 buf:u64[64] buf:s32[96]=rand:3",
	    .expect = copy_wide),
	ROW("vectors", "copy_256", "1/32", "buf:f64[128]=rand:1 buf:f64[128] buf:s64[128]=iota", .expect = copy_256),
	ROW("vectors", "pixels", "1/32", "buf:b8[512]=rand:1 buf:u8[32]=rand:2 s32:77", .prepare = pixels_fill,
	    .expect = pixels),
	ROW("switches", "sparse", "1/32", "buf:u32[32] buf:s32[32]", .prepare = sparse_fill, .expect = sparse),
	ROW("switches", "interpret", "1/1", "buf:u8[12] buf:s64[8] s32:12", .prepare = interpret_fill, .expect = interpret),
	ROW("switch_table", "dense", "1/32", "buf:s32[32] buf:f32[32]", .prepare = dense_fill, .expect = dense,
	    .tolerance = 1e-6),
};
const corpus_table corpus_integers = CORPUS_TABLE(rows);
