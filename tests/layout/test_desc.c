/* SPDX-License-Identifier: MIT */
/* Swizzles and descriptors: forth and back, against layouts that the manual and CUTLASS print in numbers. */
#include "../test.h"

#include <cptx/layout.h>

/* ---- swizzles ---- */

START_TEST(swizzles)
{
	for (int s = 0; s < CPTX_SWIZZLE_COUNT; s++) {
		const cptx_swizzle_info *w = cptx_swizzle_get((enum cptx_swizzle)s);
		ck_assert_int_eq(cptx_swizzle_find(w->name), s);
		for (uint32_t a = 0; a < 4096; a++) {
			uint32_t b = cptx_swizzle_address((enum cptx_swizzle)s, a);
			SURE((cptx_swizzle_address((enum cptx_swizzle)s, b)) == (a), "%llu, not %llu",
			     (unsigned long long)(cptx_swizzle_address((enum cptx_swizzle)s, b)), (unsigned long long)(a));
			SURE((b / 128) == (a / 128), "%llu, not %llu", (unsigned long long)(b / 128), (unsigned long long)(a / 128));
			if (s != CPTX_SWIZZLE_128B_ATOM_32B_FLIP_8B)
				SURE((b % (1u << (w->to ? w->to : 4))) == (a % (1u << (w->to ? w->to : 4))), "%llu, not %llu",
				     (unsigned long long)(b % (1u << (w->to ? w->to : 4))),
				     (unsigned long long)(a % (1u << (w->to ? w->to : 4))));
			if (w->repeat)
				SURE((cptx_swizzle_address((enum cptx_swizzle)s, a + w->repeat)) == (b + w->repeat), "%llu, not %llu",
				     (unsigned long long)(cptx_swizzle_address((enum cptx_swizzle)s, a + w->repeat)),
				     (unsigned long long)(b + w->repeat));
		}
	}
	ck_assert_uint_eq(cptx_swizzle_address(CPTX_SWIZZLE_128B, 5 * 128 + 3 * 16 + 7), 5 * 128 + (3 ^ 5) * 16 + 7);
	ck_assert_uint_eq(cptx_swizzle_address(CPTX_SWIZZLE_64B, 3 * 128 + 1 * 16), 3 * 128 + (1 ^ 3) * 16);
	ck_assert_uint_eq(cptx_swizzle_address(CPTX_SWIZZLE_32B, 128 + 16), 128);
	ck_assert_uint_eq(cptx_swizzle_address(CPTX_SWIZZLE_128B_ATOM_32B, 3 * 128 + 33), 3 * 128 + 2 * 32 + 1);
	ck_assert_uint_eq(cptx_swizzle_address(CPTX_SWIZZLE_128B_ATOM_64B, 128), 128 + 64);
	ck_assert_uint_eq(cptx_swizzle_address(CPTX_SWIZZLE_128B_ATOM_32B_FLIP_8B, 128), 128 + 32 + 8);
	ck_assert_int_eq(cptx_swizzle_find("256B"), CPTX_SWIZZLE_COUNT);
	ck_assert_int_eq(cptx_swizzle_find(NULL), CPTX_SWIZZLE_COUNT);
	ck_assert_ptr_null(cptx_swizzle_get(CPTX_SWIZZLE_COUNT));
}
END_TEST

/* ---- shared memory descriptors ---- */

static void same_word(cptx_smem_desc d, uint64_t want)
{
	uint64_t word;
	cptx_smem_desc back;
	cptx_error err = { 0 };

	SURE(cptx_smem_desc_encode(&d, &word, &err), "%s", err.text);
	SURE(word == want, "%016llx, not %016llx", (unsigned long long)word, (unsigned long long)want);
	SURE(cptx_smem_desc_decode(d.arch, word, &back, &err), "%s", err.text);
	ck_assert(back.start == d.start && back.lbo == d.lbo && back.sbo == d.sbo && back.swizzle == d.swizzle &&
	          back.base_offset == d.base_offset && back.lbo_is_address == d.lbo_is_address);
}

START_TEST(encoded)
{
	same_word(
		(cptx_smem_desc){ .arch = CPTX_DESC_WGMMA, .swizzle = CPTX_SWIZZLE_128B, .start = 0x400, .lbo = 16, .sbo = 1024 },
		0x4000004000010040);
	same_word(
		(cptx_smem_desc){
			.arch = CPTX_DESC_WGMMA, .swizzle = CPTX_SWIZZLE_64B, .start = 0x3fff0, .lbo = 0, .sbo = 512, .base_offset = 3 },
		0x8006002000003fff);
	same_word((cptx_smem_desc){ .arch = CPTX_DESC_WGMMA, .swizzle = CPTX_SWIZZLE_32B, .start = 0, .lbo = 32, .sbo = 256 },
	          0xc000001000020000);
	same_word((cptx_smem_desc){ .arch = CPTX_DESC_WGMMA, .swizzle = CPTX_SWIZZLE_NONE, .start = 16, .lbo = 128, .sbo = 64 },
	          0x0000000400080001);
	same_word(
		(cptx_smem_desc){ .arch = CPTX_DESC_TCGEN05, .swizzle = CPTX_SWIZZLE_128B, .start = 0x400, .lbo = 16, .sbo = 1024 },
		0x4000404000010040);
	same_word((cptx_smem_desc){ .arch = CPTX_DESC_TCGEN05, .swizzle = CPTX_SWIZZLE_64B, .start = 0, .lbo = 0, .sbo = 512 },
	          0x8000402000000000);
	same_word((cptx_smem_desc){ .arch = CPTX_DESC_TCGEN05, .swizzle = CPTX_SWIZZLE_32B, .start = 0, .lbo = 0, .sbo = 256 },
	          0xc000401000000000);
	same_word(
		(cptx_smem_desc){
			.arch = CPTX_DESC_TCGEN05, .swizzle = CPTX_SWIZZLE_128B_ATOM_32B, .start = 0, .lbo = 0, .sbo = 512 },
		0x2000402000000000);
	same_word((cptx_smem_desc){ .arch = CPTX_DESC_TCGEN05,
	                            .swizzle = CPTX_SWIZZLE_128B,
	                            .start = 0,
	                            .lbo = 4096,
	                            .sbo = 1024,
	                            .lbo_is_address = true },
	          0x4010404001000000);
}
END_TEST

static void bad_word(enum cptx_desc_arch arch, uint64_t word, const char *words)
{
	cptx_smem_desc d;
	cptx_error err = { 0 };

	ck_assert(!cptx_smem_desc_decode(arch, word, &d, &err));
	SURE(strstr(err.text, words) != NULL, "'%s' is not in: %s", words, err.text);
}

static void bad_desc(cptx_smem_desc d, const char *words)
{
	uint64_t word;
	cptx_error err = { 0 };

	ck_assert(!cptx_smem_desc_encode(&d, &word, &err));
	SURE(strstr(err.text, words) != NULL, "'%s' is not in: %s", words, err.text);
}

START_TEST(wrong_words)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		char text[40];
		bool in_wgmma =
			(bit >= 14 && bit < 16) || (bit >= 30 && bit < 32) || (bit >= 46 && bit < 49) || (bit >= 52 && bit < 62);
		bool in_tcgen05 =
			(bit >= 14 && bit < 16) || (bit >= 30 && bit < 32) || (bit >= 46 && bit < 49) || (bit >= 53 && bit < 61);
		snprintf(text, sizeof text, "bit %u is %d; it must be %d", bit, bit != 46, bit == 46);
		if (in_tcgen05)
			bad_word(CPTX_DESC_TCGEN05, ((uint64_t)1 << 46) ^ ((uint64_t)1 << bit), text);
		snprintf(text, sizeof text, "bit %u is 1; it must be 0", bit);
		if (in_wgmma)
			bad_word(CPTX_DESC_WGMMA, (uint64_t)1 << bit, text);
	}
	for (uint64_t code = 3; code < 8; code += 2)
		bad_word(CPTX_DESC_TCGEN05, (uint64_t)1 << 46 | code << 61, "bits 61 to 63");
	bad_word(CPTX_DESC_WGMMA, (uint64_t)1 << 49, "base offset 1 without a swizzle");
	bad_word(CPTX_DESC_TCGEN05, (uint64_t)1 << 46 | (uint64_t)1 << 52, "that needs 128B");
	bad_desc((cptx_smem_desc){ .arch = CPTX_DESC_WGMMA, .start = 24 },
	         "start = 24 is not a multiple of 16 bytes (nearest: 16)");
	bad_desc((cptx_smem_desc){ .arch = CPTX_DESC_WGMMA, .sbo = 1 << 18 }, "sbo = 262144; it is below 262144");
	bad_desc((cptx_smem_desc){ .arch = CPTX_DESC_WGMMA, .swizzle = CPTX_SWIZZLE_128B_ATOM_32B },
	         "swizzle 128B_ATOM_32B is not possible");
	bad_desc((cptx_smem_desc){ .arch = CPTX_DESC_WGMMA, .swizzle = CPTX_SWIZZLE_128B, .base_offset = 8 }, "base offset 8");
	bad_desc((cptx_smem_desc){ .arch = CPTX_DESC_WGMMA, .swizzle = CPTX_SWIZZLE_128B, .lbo_is_address = true },
	         "cannot be an address");
	bad_desc((cptx_smem_desc){ .arch = (enum cptx_desc_arch)7 }, "no kind 7");
}
END_TEST

/*
 * The canonical layouts as CuTe shapes and strides, in elements: MN ((T,c,m),(8,k)) : ((1,T,x),(cT,y)), K ((8,m),(T,2k)) :
 * ((cT,SBO),(1,z)); the swizzle is applied to the sum.
 */
START_TEST(canonical_layouts)
{
	static const enum cptx_swizzle modes[] = { CPTX_SWIZZLE_NONE, CPTX_SWIZZLE_32B, CPTX_SWIZZLE_64B, CPTX_SWIZZLE_128B };
	static const uint8_t bits[] = { 8, 16, 32 };

	for (size_t s = 0; s < 4; s++)
		for (size_t b = 0; b < 3; b++) {
			uint32_t T = 128u / bits[b], c = 1u << s, lbo = 4096, sbo = 2048, bytes = bits[b] / 8u;
			cptx_smem_desc d = { .arch = CPTX_DESC_TCGEN05, .swizzle = modes[s], .start = 8192, .lbo = lbo, .sbo = sbo };
			for (uint32_t row = 0; row < 64; row++)
				for (uint32_t k = 0; k < (s ? c * T : 4 * T); k++) {
					uint32_t km = row % 8 * c * T * bytes + row / 8 * sbo + k % T * bytes + k / T * (s ? 16 : lbo);
					cptx_smem_place p = cptx_smem_desc_at(&d, (cptx_smem_elem){ bits[b], false, false }, row, k);
					SURE((p.byte) == (cptx_swizzle_address(modes[s], 8192 + km)), "%llu, not %llu",
					     (unsigned long long)(p.byte), (unsigned long long)(cptx_swizzle_address(modes[s], 8192 + km)));
					SURE((p.bit) == (0), "%llu, not %llu", (unsigned long long)(p.bit), (unsigned long long)(0));
					uint32_t x = s ? lbo : sbo, y = s ? sbo : lbo;
					uint32_t mn = row % T * bytes + row / T % c * 16 + row / T / c * x + k % 8 * c * 16 + k / 8 * y;
					p = cptx_smem_desc_at(&d, (cptx_smem_elem){ bits[b], true, false }, row, k);
					SURE((p.byte) == (cptx_swizzle_address(modes[s], 8192 + mn)), "%llu, not %llu",
					     (unsigned long long)(p.byte), (unsigned long long)(cptx_swizzle_address(modes[s], 8192 + mn)));
				}
		}
}
END_TEST

/* What a tensor map stores: dense rows of 128 bytes from a shared memory address on, swizzled by address. */
START_TEST(as_tensor_maps_store)
{
	cptx_smem_desc d = { .arch = CPTX_DESC_WGMMA, .swizzle = CPTX_SWIZZLE_128B, .start = 0x2000, .lbo = 16, .sbo = 1024 };

	for (uint32_t step = 0; step < 4; step++) { /* along k: 32 bytes more of the start address */
		d.start = 0x2000 + 32 * step;
		for (uint32_t row = 0; row < 64; row++)
			for (uint32_t k = 0; k < 16; k++) {
				uint32_t stored = cptx_swizzle_address(CPTX_SWIZZLE_128B, 0x2000 + row * 128 + step * 32 + k * 2);
				SURE((cptx_smem_desc_at(&d, (cptx_smem_elem){ 16, false, false }, row, k).byte) == (stored),
				     "%llu, not %llu",
				     (unsigned long long)(cptx_smem_desc_at(&d, (cptx_smem_elem){ 16, false, false }, row, k).byte),
				     (unsigned long long)(stored));
			}
	}
	/* a pattern that begins 2 rows off its repeat */
	d.start = 0x2100, d.base_offset = 2;
	for (uint32_t row = 0; row < 8; row++)
		ck_assert_uint_eq(cptx_smem_desc_at(&d, (cptx_smem_elem){ 16, false, false }, row, 0).byte,
		                  0x2100 + row * 128 + row * 16);
	/* tf32, MN-major, chunks of 32 bytes: four rows of k in an atom */
	d = (cptx_smem_desc){
		.arch = CPTX_DESC_TCGEN05, .swizzle = CPTX_SWIZZLE_128B_ATOM_32B, .start = 0, .lbo = 8192, .sbo = 512
	};
	for (uint32_t mn = 0; mn < 64; mn++)
		for (uint32_t k = 0; k < 8; k++)
			ck_assert_uint_eq(
				cptx_smem_desc_at(&d, (cptx_smem_elem){ 32, true, false }, mn, k).byte,
				cptx_swizzle_address(CPTX_SWIZZLE_128B_ATOM_32B, mn / 32 * 8192 + mn % 32 * 4 + k % 4 * 128 + k / 4 * 512));
}
END_TEST

START_TEST(parts_of_bytes)
{
	cptx_smem_desc d = { .arch = CPTX_DESC_TCGEN05, .swizzle = CPTX_SWIZZLE_128B, .start = 0, .lbo = 0, .sbo = 1024 };
	cptx_smem_place p = cptx_smem_desc_at(&d, (cptx_smem_elem){ 4, false, false }, 1, 35);
	ck_assert(p.byte == 128 + (1 ^ 1) * 16 + 1 && p.bit == 4);
	p = cptx_smem_desc_at(&d, (cptx_smem_elem){ 4, false, true }, 1, 35);
	ck_assert(p.byte == 128 + (2 ^ 1) * 16 + 1 && p.bit == 4);
	p = cptx_smem_desc_at(&d, (cptx_smem_elem){ 6, false, true }, 0, 15);
	ck_assert(p.byte == 11 && p.bit == 2);
	/* 96 elements of 4 bits from 96 bytes into a row on: what is over 128 bytes comes from lbo */
	d.start = 96, d.lbo = 0x8000, d.lbo_is_address = true;
	ck_assert_uint_eq(cptx_smem_desc_at(&d, (cptx_smem_elem){ 4, false, false }, 0, 63).byte, 127);
	ck_assert_uint_eq(cptx_smem_desc_at(&d, (cptx_smem_elem){ 4, false, false }, 0, 64).byte, 0x8000);
	ck_assert_uint_eq(cptx_smem_desc_at(&d, (cptx_smem_elem){ 4, false, false }, 9, 64).byte, 0x8000 + 1024 + 128 + 16);
}
END_TEST

/* ---- instruction descriptors ---- */

static void same_insn(cptx_insn_desc d, uint32_t want)
{
	uint32_t word;
	cptx_insn_desc back;
	cptx_error err = { 0 };

	SURE(cptx_insn_desc_encode(&d, &word, &err), "%s", err.text);
	SURE(word == want, "%08x, not %08x", word, want);
	SURE(cptx_insn_desc_decode(d.kind, d.ctas, d.ws, word, &back, &err), "%s", err.text);
	ck_assert(back.m == d.m && back.n == d.n && back.a == d.a && back.b == d.b && back.d == d.d && back.scale == d.scale);
	ck_assert(back.a_mn_major == d.a_mn_major && back.b_mn_major == d.b_mn_major && back.a_negated == d.a_negated);
	ck_assert(back.b_negated == d.b_negated && back.sparse == d.sparse && back.selector == d.selector);
	ck_assert(back.saturate == d.saturate && back.a_scale_id == d.a_scale_id && back.b_scale_id == d.b_scale_id);
	ck_assert(back.k96 == d.k96 && back.reuse_shift == d.reuse_shift);
}

#define INSN(k, ...) ((cptx_insn_desc){ .kind = CPTX_TCGEN05_##k, __VA_ARGS__ })
#define F16(...) INSN(F16, .a = CPTX_BF16, .b = CPTX_BF16, .d = CPTX_F32, __VA_ARGS__)
#define NVF4(...) INSN(MXF4NVF4, .a = CPTX_E2M1, .b = CPTX_E2M1, .d = CPTX_F32, .scale = CPTX_UE4M3, __VA_ARGS__)
#define MX8(...) INSN(MXF8F6F4, .a = CPTX_E5M2, .b = CPTX_E2M1, .d = CPTX_F32, .scale = CPTX_UE8M0, __VA_ARGS__)
#define I8(...) INSN(I8, .a = CPTX_S8, .b = CPTX_U8, .d = CPTX_S32, __VA_ARGS__)

START_TEST(insn_words)
{
	same_insn(F16(.m = 128, .n = 256), 8u << 24 | 32u << 17 | 1 << 10 | 1 << 7 | 1 << 4);
	same_insn(F16(.m = 256, .n = 16, .ctas = 2, .a_mn_major = true, .b_negated = true, .sparse = true, .selector = 3),
	          16u << 24 | 2 << 17 | 1 << 15 | 1 << 14 | 1 << 10 | 1 << 7 | 1 << 4 | 1 << 2 | 3);
	same_insn(F16(.m = 32, .n = 64, .ws = true, .reuse_shift = 16),
	          2u << 30 | 2u << 24 | 8 << 17 | 1 << 10 | 1 << 7 | 1 << 4);
	same_insn(F16(.m = 32, .n = 64, .ws = true, .reuse_shift = 32),
	          3u << 30 | 2u << 24 | 8 << 17 | 1 << 10 | 1 << 7 | 1 << 4);
	same_insn(INSN(TF32, .m = 64, .n = 8, .a = CPTX_TF32, .b = CPTX_TF32, .d = CPTX_F32),
	          4u << 24 | 1 << 17 | 2 << 10 | 2 << 7 | 1 << 4);
	same_insn(INSN(F8F6F4, .m = 64, .n = 40, .a = CPTX_E3M2, .b = CPTX_E2M3, .d = CPTX_F16),
	          4u << 24 | 5 << 17 | 3 << 10 | 4 << 7);
	same_insn(I8(.m = 128, .n = 48, .saturate = true), 8u << 24 | 6 << 17 | 0 << 10 | 1 << 7 | 2 << 4 | 1 << 3);
	same_insn(MX8(.m = 128, .n = 8, .a_scale_id = 3, .b_scale_id = 1),
	          3u << 29 | 1 << 27 | 1 << 23 | 1 << 17 | 5 << 10 | 1 << 7 | 1 << 4);
	same_insn(NVF4(.m = 256, .n = 256, .ctas = 2, .a_scale_id = 2, .k96 = true),
	          1u << 31 | 2u << 29 | 2 << 27 | 32 << 17 | 1 << 10 | 1 << 7);
	ck_assert_uint_eq(cptx_insn_desc_k(&F16(.sparse = true)), 32);
	ck_assert_uint_eq(cptx_insn_desc_k(&NVF4(.k96 = true)), 96);
	ck_assert_uint_eq(cptx_insn_desc_k(&NVF4(.sparse = true)), 128);
	ck_assert_str_eq(cptx_tcgen05_kind_name(CPTX_TCGEN05_MXF4NVF4), "mxf4nvf4");
	ck_assert_str_eq(cptx_tcgen05_kind_name(CPTX_TCGEN05_KINDS), "?");
}
END_TEST

static void bad_insn(cptx_insn_desc d, const char *words)
{
	uint32_t word;
	cptx_error err = { 0 };

	SURE(!cptx_insn_desc_encode(&d, &word, &err), "accepted: %s", words);
	SURE(strstr(err.text, words) != NULL, "'%s' is not in: %s", words, err.text);
}

START_TEST(insn_rules)
{
	bad_insn(F16(.m = 96, .n = 64), "kind f16: M = 96; with cta_group::1 it is 64 or 128");
	bad_insn(F16(.m = 64, .n = 64, .ctas = 2), "M = 64; with cta_group::2 it is 128 or 256");
	bad_insn(F16(.m = 128, .n = 12), "N = 12; with cta_group::1 it is 8 to 256 in steps of 8");
	bad_insn(F16(.m = 128, .n = 24, .ctas = 2), "in steps of 16");
	bad_insn(F16(.m = 128, .n = 264), "N = 264");
	bad_insn(F16(.m = 128, .n = 64, .ctas = 3), "cta_group::3");
	bad_insn(F16(.m = 128, .n = 96, .ws = true), "N = 96; with .ws it is 64, 128 or 256");
	bad_insn(F16(.m = 128, .n = 256, .ws = true, .sparse = true), "64, 128");
	bad_insn(F16(.m = 128, .n = 64, .ws = true, .reuse_shift = 4), "largest shift 4");
	bad_insn(F16(.m = 128, .n = 64, .reuse_shift = 8), "without .ws");
	bad_insn(F16(.m = 128, .n = 64, .selector = 1), "sparsity selector 1; it is 0");
	bad_insn((cptx_insn_desc){ .kind = CPTX_TCGEN05_I8,
	                           .a = CPTX_S8,
	                           .b = CPTX_S8,
	                           .d = CPTX_S32,
	                           .m = 128,
	                           .n = 64,
	                           .sparse = true,
	                           .selector = 1 },
	         "sparsity selector 1; it is 0");
	bad_insn(F16(.m = 128, .n = 64, .saturate = true), "kind i8 only");
	bad_insn(F16(.m = 128, .n = 64, .k96 = true), "96 elements");
	bad_insn(F16(.m = 128, .n = 64, .a_scale_id = 1), "kind that has none");
	bad_insn(INSN(F16, .m = 128, .n = 64, .a = CPTX_E4M3, .b = CPTX_F16, .d = CPTX_F32),
	         "type of A is e4m3; possible: f16 bf16");
	bad_insn(INSN(F16, .m = 128, .n = 64, .a = CPTX_BF16, .b = CPTX_BF16, .d = CPTX_F16), "D of f16 with bf16");
	bad_insn(I8(.m = 128, .n = 40), "in steps of 16 (of 8 up to 32)");
	bad_insn(I8(.m = 128, .n = 64, .a_negated = true), "cannot be negated");
	bad_insn(I8(.m = 128, .n = 24, .b_mn_major = true), "16 to 256 in steps of 16");
	bad_insn(I8(.m = 128, .n = 48, .ctas = 2), "in steps of 32");
	bad_insn(MX8(.m = 64, .n = 64), "M = 64; with cta_group::1 it is 128");
	bad_insn(MX8(.m = 128, .n = 64, .ctas = 2, .sparse = true), "sparse with cta_group::2 it is 256");
	bad_insn(MX8(.m = 128, .n = 64, .ws = true), "block-scaled");
	bad_insn(NVF4(.m = 128, .n = 64, .a_scale_id = 1), "they are 0 or 2");
	bad_insn(NVF4(.m = 128, .n = 64, .a_mn_major = true), "K-major only");
	bad_insn(INSN(MXF4, .m = 128, .n = 64, .a = CPTX_E2M1, .b = CPTX_E2M1, .d = CPTX_F32, .scale = CPTX_UE4M3),
	         "type of the scale factors is ue4m3; possible: ue8m0");
	bad_insn(INSN(KINDS, .m = 128), "no kind 7");
}
END_TEST

START_TEST(insn_reserved_bits)
{
	static const struct {
		enum cptx_tcgen05_kind kind;
		uint32_t word, zero;
	} t[] = {
		{ CPTX_TCGEN05_F16, 8u << 24 | 32u << 17 | 1 << 10 | 1 << 7 | 1 << 4, 1 << 6 | 1 << 23 | 1 << 29 },
		{ CPTX_TCGEN05_I8, 8u << 24 | 32u << 17 | 2 << 4, 1 << 6 | 1 << 23 | 1 << 29 | 3 << 13 },
		{ CPTX_TCGEN05_MXF8F6F4, 1u << 27 | 32u << 17 | 1 << 23, 3u | 1u << 3 | 1u << 6 | 7u << 24 | 1u << 31 },
		{ CPTX_TCGEN05_MXF4, 1u << 27 | 32u << 17 | 1 << 23 | 1 << 10 | 1 << 7,
		  3u | 1u << 3 | 1u << 6 | 7u << 24 | 1u << 12 | 3u << 15 },
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		cptx_insn_desc d;
		cptx_error fine = { 0 };
		SURE(cptx_insn_desc_decode(t[i].kind, 1, false, t[i].word, &d, &fine), "%s", fine.text);
		for (unsigned bit = 0; bit < 32; bit++) {
			char text[40];
			cptx_error err = { 0 };
			if (!(t[i].zero >> bit & 1))
				continue;
			snprintf(text, sizeof text, "bit %u is 1; it must be 0", bit);
			SURE(!cptx_insn_desc_decode(t[i].kind, 1, false, t[i].word | 1u << bit, &d, &err), "not so");
			SURE(strstr(err.text, text) != NULL, "%s", err.text);
		}
	}
	cptx_insn_desc d;
	cptx_error err = { 0 };
	ck_assert(!cptx_insn_desc_decode(CPTX_TCGEN05_F16, 1, false, 8u << 24 | 32u << 17 | 5 << 7 | 1 << 4, &d, &err));
	SURE(strstr(err.text, "bits 7 to 9 are 5; no type of A has that number") != NULL, "%s", err.text);
}
END_TEST

/* No word makes decoding fail otherwise than with a message, and what it accepts is encoded to the same word. */
START_TEST(any_word)
{
	uint64_t seed = 1;

	for (int i = 0; i < 200000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		uint64_t word = seed ^ seed >> 29, again;
		uint32_t again32;
		cptx_error err = { 0 };
		cptx_smem_desc d;
		cptx_insn_desc n;
		enum cptx_tcgen05_kind kind = (enum cptx_tcgen05_kind)(i % CPTX_TCGEN05_KINDS);
		if (i % 2) /* thin out the bits that must be zero */
			word &= 0xe00e3fff3fff3fff;
		if (cptx_smem_desc_decode(CPTX_DESC_WGMMA, word, &d, &err)) {
			SURE(cptx_smem_desc_encode(&d, &again, NULL), "not so");
			SURE((word) == (again), "%llu, not %llu", (unsigned long long)(word), (unsigned long long)(again));
		} else
			ck_assert_int_eq(err.code, CPTX_E_ARG);
		err = (cptx_error){ 0 };
		if (cptx_insn_desc_decode(kind, (uint8_t)(i % 3), i % 5 == 0, (uint32_t)word, &n, &err)) {
			SURE(cptx_insn_desc_encode(&n, &again32, NULL), "not so");
			SURE(((uint32_t)word) == (again32), "%llu, not %llu", (unsigned long long)((uint32_t)word),
			     (unsigned long long)(again32));
		} else
			ck_assert_int_eq(err.code, CPTX_E_ARG);
	}
}
END_TEST

/* ---- fields by name ---- */

START_TEST(fields)
{
	cptx_desc_field f;
	cptx_error err = { 0 };
	cptx_smem_desc d = { .arch = CPTX_DESC_TCGEN05 };
	cptx_insn_desc n = { .kind = CPTX_TCGEN05_MXF8F6F4 };
	uint64_t word, used = 0;
	uint32_t half;

	for (size_t i = 0; cptx_smem_desc_field(CPTX_DESC_TCGEN05, i, &f); i++) {
		uint64_t mask = (((uint64_t)1 << (f.high - f.low + 1)) - 1) << f.low;
		ck_assert(f.high >= f.low && !(used & mask));
		used |= mask;
	}
	ck_assert_uint_eq(used, 0xe01fffff3fff3fff);
	for (int kind = 0; kind < CPTX_TCGEN05_KINDS; kind++) {
		used = 0;
		for (size_t i = 0; cptx_insn_desc_field((enum cptx_tcgen05_kind)kind, i, &f); i++) {
			uint64_t mask = (((uint64_t)1 << (f.high - f.low + 1)) - 1) << f.low;
			SURE(f.high >= f.low && f.high < 32 && !(used & mask), "not so");
			used |= mask;
		}
	}
	ck_assert(!cptx_insn_desc_field(CPTX_TCGEN05_KINDS, 0, &f));
	ck_assert(!cptx_smem_desc_field((enum cptx_desc_arch)2, 0, &f));

	ck_assert(cptx_smem_desc_set(&d, "start", "0x400", &err) && cptx_smem_desc_set(&d, "lbo", "4096", &err));
	ck_assert(cptx_smem_desc_set(&d, "sbo", "1024", &err) && cptx_smem_desc_set(&d, "swizzle", "128B", &err));
	ck_assert(cptx_smem_desc_set(&d, "lbo_is_address", "yes", &err) && cptx_smem_desc_set(&d, "base_offset", "0", &err));
	ck_assert(cptx_smem_desc_encode(&d, &word, &err));
	ck_assert_uint_eq(word, 0x4010404001000040);
	ck_assert(!cptx_smem_desc_set(&d, "version", "1", &err));
	ck_assert_ptr_nonnull(strstr(err.text, "there is no field 'version'"));
	d.arch = (enum cptx_desc_arch)7;
	ck_assert(!cptx_smem_desc_set(&d, "", "1", &err));
	d.arch = CPTX_DESC_TCGEN05;

	static const char *const set[][2] = { { "a", "e4m3" },       { "b", "e2m1" },       { "scale", "ue8m0" },
		                                  { "m", "256" },        { "n", "128" },        { "ctas", "2" },
		                                  { "a_scale_id", "3" }, { "b_scale_id", "1" }, { "a_negated", "yes" },
		                                  { "b_mn_major", "1" }, { "sparse", "no" },    { "ws", "no" } };
	err = (cptx_error){ 0 };
	n.d = CPTX_F32;
	for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
		SURE(cptx_insn_desc_set(&n, set[i][0], set[i][1], &err), "%s", err.text);
	SURE(cptx_insn_desc_encode(&n, &half, &err), "%s", err.text);
	ck_assert_uint_eq(half, 3u << 29 | 2u << 27 | 1 << 23 | 16 << 17 | 1 << 16 | 1 << 13 | 5 << 10 | 1 << 4);
	ck_assert(!cptx_insn_desc_set(&n, "sparse", "maybe", &err));
	ck_assert_ptr_nonnull(strstr(err.text, "sparse=maybe: yes or no is needed"));
	err = (cptx_error){ 0 };
	ck_assert(!cptx_insn_desc_set(&n, "selector", "1", &err));
	ck_assert_ptr_nonnull(strstr(err.text, "there is no field 'selector'"));
	err = (cptx_error){ 0 };
	ck_assert(!cptx_insn_desc_set(&n, "m", "1e", &err));
	ck_assert_ptr_nonnull(strstr(err.text, "m=1e: a number from 0 to 256"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("desc");
	TCase *t = tcase_create("desc");

	tcase_add_test(t, swizzles);
	tcase_add_test(t, encoded);
	tcase_add_test(t, wrong_words);
	tcase_add_test(t, canonical_layouts);
	tcase_add_test(t, as_tensor_maps_store);
	tcase_add_test(t, parts_of_bytes);
	tcase_add_test(t, insn_words);
	tcase_add_test(t, insn_rules);
	tcase_add_test(t, insn_reserved_bits);
	tcase_add_test(t, any_word);
	tcase_add_test(t, fields);
	suite_add_tcase(s, t);
	return test_main("layout_desc", s);
}
