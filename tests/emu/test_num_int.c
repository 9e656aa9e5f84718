/* SPDX-License-Identifier: MIT */
/* Integer arithmetic and bits of the emulator against the manual's definitions, bit by bit or in wider integers. */
#include "num_ref.h"

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;

static const uint8_t types[] = { CPTX_U16, CPTX_S16, CPTX_U32, CPTX_S32, CPTX_U64, CPTX_S64 };
static unsigned width_of(unsigned type) { return cptx_type_bits((enum cptx_type)type); }
static bool is_signed(unsigned type) { return type == CPTX_S8 || type == CPTX_S16 || type == CPTX_S32 || type == CPTX_S64; }
static uint64_t mask_of(unsigned type) { return UINT64_MAX >> (64 - width_of(type)); }
static wide value(unsigned type, uint64_t a)
{
	wide n = (wide)(a & mask_of(type));
	return is_signed(type) && a >> (width_of(type) - 1) & 1 ? n - ((wide)1 << width_of(type)) : n;
}
static uint64_t saturated(unsigned type, wide n)
{
	wide most = ((wide)1 << (width_of(type) - is_signed(type))) - 1, least = is_signed(type) ? -most - 1 : 0;
	return (uint64_t)(n < least ? least : n > most ? most : n) & mask_of(type);
}

/* Random numbers, of which many are small, near the ends, or a power of two. */
static uint64_t operand(uint64_t *state)
{
	uint64_t n = ref_random(state), kind = n >> 60, at = n >> 52 & 63;
	n = ref_random(state) >> (kind & 8 ? at : 0);
	return kind & 1 ? 0 - n : kind == 2 ? (uint64_t)1 << at : kind == 4 ? ((uint64_t)1 << at) - 1 : n;
}

START_TEST(test_arithmetic)
{
	uint64_t state = 1;
	const struct num_mode sat = { .sat = true };
	for (unsigned i = 0; i < 50000; i++) {
		uint64_t a = operand(&state), b = operand(&state), c = operand(&state);
		for (unsigned k = 0; k < sizeof types; k++) {
			unsigned t = types[k], w = width_of(t);
			wide x = value(t, a), y = value(t, b), z = value(t, c), less = x < y ? x : y, more = x < y ? y : x;
			uint64_t mask = mask_of(t);
			want(num_add(t, a, b, &nothing) == ((uint64_t)(x + y) & mask) && num_add(t, a, b, &sat) == saturated(t, x + y));
			want(num_sub(t, a, b, &nothing) == ((uint64_t)(x - y) & mask) && num_sub(t, a, b, &sat) == saturated(t, x - y));
			want(num_mul(t, a, b, &nothing) == ((uint64_t)a * b & mask));
			want(num_fma(t, a, b, c, &nothing) == ((uint64_t)(a * b + c) & mask));
			want(num_min(t, a, b, &nothing) == ((uint64_t)less & mask) &&
			     num_max(t, a, b, &nothing) == ((uint64_t)more & mask));
			want(num_sad(t, a, b, c) == ((uint64_t)(z + more - less) & mask));
			want(num_mul_hi(t, a, b) == ((uint64_t)((uwide)x * (uwide)y >> w) & mask));
			if (w < 64)
				want(num_mul_wide(t, a, b) == ((uint64_t)(x * y) & UINT64_MAX >> (64 - 2 * w)));
			if (y) {
				want(num_div(t, a, b, &nothing) == ((uint64_t)(x / y) & mask));
				want(num_rem(t, a, b) == ((uint64_t)(x % y) & mask));
			}
			want(num_cmp(t, CPTX_LT, a, b, false) == (x < y) && num_cmp(t, CPTX_LE, a, b, false) == (x <= y));
			want(num_cmp(t, CPTX_GT, a, b, false) == (x > y) && num_cmp(t, CPTX_GE, a, b, false) == (x >= y));
			want(num_cmp(t, CPTX_EQ, a, b, false) == (x == y) && num_cmp(t, CPTX_NE, a, b, false) == (x != y));
			if (is_signed(t))
				want(num_abs(t, a, &nothing) == ((uint64_t)(x < 0 ? -x : x) & mask) &&
				     num_neg(t, a, &nothing) == ((uint64_t)-x & mask));
			if (w >= 32) {
				bool carry = c & 1, borrow = carry;
				wide u = (wide)(a & mask), v = (wide)(b & mask), sum = u + v + carry, diff = u - v - borrow;
				want(num_add_carry(t, a, b, &carry) == ((uint64_t)sum & mask) && carry == (sum >> w != 0));
				want(num_sub_borrow(t, a, b, &borrow) == ((uint64_t)diff & mask) && borrow == (diff < 0));
			}
		}
		wide h = value(CPTX_S32, a) * value(CPTX_S32, b) >> 32;
		want(num_mad_hi_sat((uint32_t)a, (uint32_t)b, (uint32_t)c) == saturated(CPTX_S32, h + value(CPTX_S32, c)));
		int64_t sa = (int32_t)(a << 8) >> 8, sb = (int32_t)(b << 8) >> 8;
		uint64_t ua = a & 0xffffff, ub = b & 0xffffff;
		want(num_mul24(CPTX_U32, false, (uint32_t)a, (uint32_t)b) == (uint32_t)(ua * ub));
		want(num_mul24(CPTX_U32, true, (uint32_t)a, (uint32_t)b) == (uint32_t)(ua * ub >> 16));
		want(num_mul24(CPTX_S32, true, (uint32_t)a, (uint32_t)b) == (uint32_t)(sa * sb >> 16));
		want(num_mad24_hi_sat((uint32_t)a, (uint32_t)b, (uint32_t)c) ==
		     saturated(CPTX_S32, (wide)(sa * sb >> 16) + value(CPTX_S32, c)));
		uint64_t hi = 0, lo = 0;
		for (unsigned k = 0; k < 64; k++)
			if (b >> k & 1) {
				lo ^= a << k;
				hi ^= k ? a >> (64 - k) : 0;
			}
		want(num_clmad(false, a, b, c) == (lo ^ c) && num_clmad(true, a, b, c) == (hi ^ c));
	}
	for (unsigned k = 0; k < sizeof types; k++)
		want(num_div(types[k], 5, 0, &nothing) == mask_of(types[k]));
	want(num_div(CPTX_S32, 0x80000000, UINT32_MAX, &nothing) == 0x80000000 &&
	     num_rem(CPTX_S32, 0x80000000, UINT32_MAX) == 0);
	want(num_div(CPTX_S64, (uint64_t)1 << 63, UINT64_MAX, &nothing) == (uint64_t)1 << 63);
	want(num_cmp(CPTX_U32, CPTX_LO, 1, 2, false) && num_cmp(CPTX_U32, CPTX_LS, 2, 2, false));
	want(num_cmp(CPTX_U32, CPTX_HI, UINT32_MAX, 2, false) && num_cmp(CPTX_U32, CPTX_HS, 2, 2, false));
	want(num_truth(CPTX_U32, true) == UINT32_MAX && num_truth(CPTX_S16, true) == 0xffff && num_truth(CPTX_U32, false) == 0);
	want(num_truth(CPTX_F32, true) == num_bits32(1) && num_truth(CPTX_F16, true) == 0x3c00 &&
	     num_truth(CPTX_BF16, true) == 0x3f80);
}
END_TEST

/* All pairs of bytes, and of 16-bit numbers with some, in each place of the packed types. */
START_TEST(test_packed)
{
	static const uint8_t packed[][2] = {
		{ CPTX_U8X4, CPTX_U8 }, { CPTX_S8X4, CPTX_S8 }, { CPTX_U16X2, CPTX_U16 }, { CPTX_S16X2, CPTX_S16 }
	};
	const struct num_mode sat = { .sat = true }, relu = { .relu = true };
	for (unsigned k = 0; k < 4; k++) {
		unsigned t = packed[k][0], one = packed[k][1], w = width_of(one), n = 32 / w;
		for (unsigned i = 0; i < 65536; i++) {
			uint64_t x = w == 8 ? i >> 8 : i, y = w == 8 ? i & 0xff : i * 40503 >> 3 & 0xffff;
			unsigned at = i % n * w;
			uint64_t mask = mask_of(one), others = ~(mask << at) & UINT32_MAX;
			uint64_t a = x << at | (0x5ac396f0 & others), b = y << at | (0x9357d1ec & others);
			wide u = value(one, x), v = value(one, y), less = u < v ? u : v, more = u < v ? v : u;
			want((num_add(t, a, b, &nothing) >> at & mask) == ((uint64_t)(u + v) & mask));
			want((num_sub(t, a, b, &nothing) >> at & mask) == ((uint64_t)(u - v) & mask));
			want((num_add(t, a, b, &sat) >> at & mask) == saturated(one, u + v));
			want((num_sub(t, a, b, &sat) >> at & mask) == saturated(one, u - v));
			want((num_min(t, a, b, &nothing) >> at & mask) == ((uint64_t)less & mask));
			want((num_max(t, a, b, &nothing) >> at & mask) == ((uint64_t)more & mask));
			if (is_signed(one)) {
				want((num_min(t, a, b, &relu) >> at & mask) == (less < 0 ? 0 : (uint64_t)less));
				want((num_max(t, a, b, &relu) >> at & mask) == (more < 0 ? 0 : (uint64_t)more));
				want((num_neg(t, a, &nothing) >> at & mask) == ((uint64_t)-u & mask));
			}
		}
	}
	want(num_add(CPTX_U8X4, 0xff01ff01, 0x01010101, &nothing) == 0x00020002); /* no carry to the neighbour */
	want(num_add(CPTX_S16X2, 0x7fff8000, 0x0001ffff, &sat) == 0x7fff8000);
	want(num_max(CPTX_S32, UINT32_MAX, 0x80000000, &relu) == 0);
}
END_TEST

START_TEST(test_bits)
{
	static const uint8_t sizes[] = { CPTX_U32, CPTX_S32, CPTX_U64, CPTX_S64 };
	uint64_t state = 2;
	for (unsigned i = 0; i < 30000; i++) {
		uint64_t a = operand(&state), b = operand(&state);
		uint32_t at = (uint32_t)(ref_random(&state) % 80), n = (uint32_t)(ref_random(&state) % 80);
		for (unsigned k = 0; k < 4; k++) {
			unsigned t = sizes[k], w = width_of(t), ones = 0, zeros = 0;
			uint64_t mask = mask_of(t), reversed = 0, field = 0, put = b & mask;
			uint64_t sign = is_signed(t) && n ? a >> (at + n - 1 < w ? at + n - 1 : w - 1) & 1 : 0;
			for (unsigned j = 0; j < w; j++) {
				ones += a >> j & 1;
				zeros = a >> j & 1 ? 0 : zeros + 1;
				reversed |= (a >> j & 1) << (w - 1 - j);
				field |= (j < n && at + j < w ? a >> (at + j) & 1 : sign) << j;
				if (j < n && at + j < w)
					put = (put & ~((uint64_t)1 << (at + j))) | (a >> j & 1) << (at + j);
			}
			want(num_popc(t, a) == ones && num_clz(t, a) == zeros && num_brev(t, a) == reversed);
			want(num_bfe(t, a, at, n) == field && num_bfi(t, a, b, at, n) == put);
			/* As an H200 has it: 32-bit numbers take the low 8 bits of position and length, 64-bit ones all. */
			uint64_t beyond = is_signed(t) && n && a >> 63 ? UINT64_MAX : 0;
			want(num_bfe(t, a, at + 256, n) == (w == 32 ? field : beyond));
			want(num_bfe(t, a, at, n + 512) == (w == 32 ? field : num_bfe(t, a, at, 64)));
			want(num_bfi(t, a, b, at + 256, n) == (w == 32 ? put : b));
			want(num_bfi(t, a, b, at, n + 512) == (w == 32 ? put : num_bfi(t, a, b, at, 64)));
			uint64_t seen = is_signed(t) && a >> (w - 1) & 1 ? ~a & mask : a & mask;
			uint32_t top = seen ? 63 - (uint32_t)__builtin_clzll(seen) : UINT32_MAX;
			want(num_bfind(t, a, false) == top && num_bfind(t, a, true) == (seen ? w - 1 - top : UINT32_MAX));
		}
		uint32_t lo = (uint32_t)a, hi = (uint32_t)b, shift = at < 32 ? at : 32, turn = at & 31;
		uint64_t pair = (uint64_t)hi << 32 | lo;
		want(num_shf(CPTX_L, CPTX_CLAMP, lo, hi, at) == (uint32_t)(pair << shift >> 32));
		want(num_shf(CPTX_R, CPTX_CLAMP, lo, hi, at) == (uint32_t)(pair >> shift));
		want(num_shf(CPTX_L, CPTX_WRAP, lo, hi, at) == (turn ? hi << turn | lo >> (32 - turn) : hi));
		want(num_shf(CPTX_R, CPTX_WRAP, lo, hi, at) == (turn ? hi << (32 - turn) | lo >> turn : lo));
		want(num_shl(CPTX_B32, lo, at) == (at < 32 ? lo << at : 0) && num_shl(CPTX_B64, a, at) == (at < 64 ? a << at : 0));
		want(num_shl(CPTX_B16, a, at) == (at < 16 ? a << at & 0xffff : 0) &&
		     num_shr(CPTX_U16, a, at) == (at < 16 ? (a & 0xffff) >> at : 0));
		want(num_shr(CPTX_S16, a, at) == ((uint64_t)(value(CPTX_S16, a) >> at) & 0xffff));
		want(num_shr(CPTX_S32, a, at) == ((uint64_t)(value(CPTX_S32, a) >> at) & UINT32_MAX));
		want(num_shr(CPTX_S64, a, at) == (uint64_t)(value(CPTX_S64, a) >> at));
		want(num_shr(CPTX_B64, a, at) == (at < 64 ? a >> at : 0));
		unsigned lut = (unsigned)(b >> 32) & 0xff;
		uint32_t c = (uint32_t)(a >> 32), logic = num_lop3(lo, hi, c, lut);
		for (unsigned j = 0; j < 32; j++)
			want((logic >> j & 1) == (lut >> ((lo >> j & 1) << 2 | (hi >> j & 1) << 1 | (c >> j & 1)) & 1));
	}
	want(num_shf(CPTX_L, CPTX_CLAMP, 0x12345678, 0x9abcdef0, 0) == 0x9abcdef0);
	want(num_shf(CPTX_L, CPTX_CLAMP, 0x12345678, 0x9abcdef0, 100) == 0x12345678);
	want(num_shf(CPTX_R, CPTX_CLAMP, 0x12345678, 0x9abcdef0, 100) == 0x9abcdef0);
}
END_TEST

/* The manual's programs, word for word in effect. */
START_TEST(test_extracts)
{
	uint64_t state = 3;
	for (unsigned i = 0; i < 100000; i++) {
		uint32_t a = (uint32_t)operand(&state), b = (uint32_t)(ref_random(&state) % 70),
				 at = (uint32_t)(ref_random(&state) % 40);
		int32_t n = (int32_t)(ref_random(&state) % 50) - 25;
		uint32_t due = UINT32_MAX;
		if (n == 0) {
			if (at < 32 && a >> at & 1)
				due = at;
		} else
			for (int pos = (int)at, left = abs(n) - 1; pos >= 0 && pos<32; pos += n> 0 ? 1 : -1)
				if (a >> pos & 1 && left-- == 0) {
					due = (uint32_t)pos;
					break;
				}
		want(num_fns(a, at, n) == due);
		for (unsigned clamp = 0; clamp < 2; clamp++)
			for (unsigned s = 0; s < 2; s++) {
				unsigned b1 = b & 31;
				bool large = b >= 32 && clamp;
				uint32_t mask = large ? 0 : UINT32_MAX << b1, sign = b1 == 0 || large || !s ? 0 : a >> ((b1 - 1) & 31) & 1;
				want(num_szext(s ? CPTX_S32 : CPTX_U32, clamp ? CPTX_CLAMP : CPTX_WRAP, a, b) ==
				     ((a & ~mask) | (sign ? mask : 0)));
				unsigned a1 = at & 31, sum = a1 + b1;
				uint32_t mask0 = clamp && at >= 32 ? 0 : UINT32_MAX << a1, mask1 = sum < 32 ? UINT32_MAX << sum : 0;
				if (sum >= 32 || (clamp && (at >= 32 || b >= 32)))
					mask1 = 0;
				else if (b1 == 0)
					mask1 = UINT32_MAX;
				want(num_bmsk(clamp ? CPTX_CLAMP : CPTX_WRAP, at, b) == (mask0 & ~mask1));
			}
	}
	want(num_fns(0xaaaaaaaa, 3, 1) == 3 && num_fns(0xaaaaaaaa, 3, -1) == 3 && num_fns(0xaaaaaaaa, 2, 1) == 3);
	want(num_fns(0xaaaaaaaa, 2, -1) == 1);
	want(num_fns(1, 0, INT32_MIN) == 0 && num_fns(1, 0, INT32_MIN + 1) == UINT32_MAX); /* as an H200 has it */
}
END_TEST

START_TEST(test_permute)
{
	/* The manual's table: digits of the bytes of d, from the highest, for c = 0 to 3. */
	static const struct {
		uint16_t mode, digits[4];
	} row[] = { { CPTX_F4E, { 0x3210, 0x4321, 0x5432, 0x6543 } }, { CPTX_B4E, { 0x5670, 0x6701, 0x7012, 0x0123 } },
		        { CPTX_RC8, { 0x0000, 0x1111, 0x2222, 0x3333 } }, { CPTX_ECL, { 0x3210, 0x3211, 0x3222, 0x3333 } },
		        { CPTX_ECR, { 0x0000, 0x1110, 0x2210, 0x3210 } }, { CPTX_RC16, { 0x1010, 0x3232, 0x1010, 0x3232 } } };
	const uint32_t a = 0x33221100, b = 0x77665544;
	for (unsigned r = 0; r < sizeof row / sizeof row[0]; r++)
		for (unsigned c = 0; c < 4; c++) {
			uint32_t due = 0;
			for (unsigned k = 0; k < 4; k++)
				due |= (row[r].digits[c] >> 4 * k & 7) * 0x11u << 8 * k;
			want_msg(num_prmt(row[r].mode, a, b, c | 0xfffc) == due, "row %u, %u: %x", r, c, num_prmt(row[r].mode, a, b, c));
			want(num_prmt(0, a, b, row[r].digits[c]) == due);
		}
	want(num_prmt(0, 0x00008000, 0x80, 0x9c10) == 0xffff8000 && num_prmt(0, 0x7f00, 0, 0x9999) == 0);
}
END_TEST

START_TEST(test_dot)
{
	uint64_t state = 4;
	for (unsigned i = 0; i < 50000; i++) {
		uint32_t a = (uint32_t)operand(&state), b = (uint32_t)operand(&state), c = (uint32_t)operand(&state);
		for (unsigned k = 0; k < 4; k++) {
			bool sa = k & 1, sb = k & 2;
			unsigned ta = sa ? CPTX_S32 : CPTX_U32, tb = sb ? CPTX_S32 : CPTX_U32;
			int64_t four = c, lo = c, hi = c;
			for (unsigned j = 0; j < 4; j++) {
				int64_t y = sb ? (int8_t)(b >> 8 * j) : (uint8_t)(b >> 8 * j);
				int64_t x = sa ? (int16_t)(a >> 16 * (j & 1)) : (uint16_t)(a >> 16 * (j & 1));
				four += y * (sa ? (int8_t)(a >> 8 * j) : (uint8_t)(a >> 8 * j));
				*(j < 2 ? &lo : &hi) += x * y;
			}
			want(num_dp4a(ta, tb, a, b, c) == (uint32_t)four);
			want(num_dp2a(false, ta, tb, a, b, c) == (uint32_t)lo && num_dp2a(true, ta, tb, a, b, c) == (uint32_t)hi);
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("num_int");
	TCase *t = tcase_create("int");
	tcase_set_timeout(t, 300);
	tcase_add_test(t, test_arithmetic);
	tcase_add_test(t, test_packed);
	tcase_add_test(t, test_bits);
	tcase_add_test(t, test_extracts);
	tcase_add_test(t, test_permute);
	tcase_add_test(t, test_dot);
	suite_add_tcase(s, t);
	return test_main("num_int", s);
}
