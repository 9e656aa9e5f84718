/* SPDX-License-Identifier: MIT */
/* Tiles: addresses, and everything that must agree with them: descriptors, boxes of tensor maps, lines, bank conflicts. */
#include "../test.h"

#include <cptx/layout.h>

#define TILE(...) TILE_(__VA_ARGS__, .z_ = 0)
#define TILE_(r, c, b, ...) ((cptx_tile){ .rows = (r), .cols = (c), .elem.bits = (b), __VA_ARGS__ })
#define MN .elem.mn_major = true

static const enum cptx_swizzle modes[] = { CPTX_SWIZZLE_NONE, CPTX_SWIZZLE_32B, CPTX_SWIZZLE_64B, CPTX_SWIZZLE_128B };

static void right(cptx_tile t)
{
	cptx_error err = { 0 };
	SURE(cptx_tile_check(&t, &err), "%s", err.text);
}

static void wrong(cptx_tile t, const char *words)
{
	cptx_error err = { 0 };
	ck_assert(!cptx_tile_check(&t, &err));
	SURE(strstr(err.text, words) != NULL, "'%s' is not in: %s", words, err.text);
	ck_assert_uint_eq(cptx_tile_bytes(&t), UINT32_MAX);
	ck_assert_uint_eq(cptx_tile_align(&t), UINT32_MAX);
	ck_assert_uint_eq(cptx_tile_at(&t, 0, 0).byte, UINT32_MAX);
	ck_assert_uint_eq(cptx_tile_word_step(&t, 0, 0), UINT32_MAX);
}

/* Every element has bits of its own, inside the tile. */
static void disjoint(cptx_tile t)
{
	uint32_t bytes = cptx_tile_bytes(&t);
	uint8_t *used = calloc(bytes, 8);

	right(t);
	for (uint32_t row = 0; row < t.rows; row++)
		for (uint32_t col = 0; col < t.cols; col++) {
			cptx_smem_place p = cptx_tile_at(&t, row, col);
			for (uint32_t bit = 0; bit < t.elem.bits; bit++) {
				uint32_t at = p.byte * 8 + p.bit + bit;
				SURE((at) < (bytes * 8), "%llu, not %llu", (unsigned long long)(at), (unsigned long long)(bytes * 8));
				SURE(!used[at], "row %u column %u lies over another", row, col);
				used[at] = 1;
			}
		}
	free(used);
}

START_TEST(disjoint_elements)
{
	static const uint8_t bits[] = { 4, 8, 16, 32, 64 };

	for (int mn = 0; mn < 2; mn++)
		for (size_t b = 0; b < 5; b++) {
			uint32_t n = 2048u / bits[b]; /* 256 bytes */
			for (int s = 0; s < CPTX_SWIZZLE_COUNT - 1; s++)
				disjoint(mn ? TILE(n, 16, bits[b], .swizzle = (enum cptx_swizzle)s, MN)
				            : TILE(16, n, bits[b], .swizzle = (enum cptx_swizzle)s));
			disjoint(mn ? TILE(n, 8, bits[b], .pitch = 272, MN) : TILE(8, n, bits[b], .pitch = 272));
		}
	/* a pitch that no span divides, and a last span that is not filled */
	for (int s = 0; s < CPTX_SWIZZLE_COUNT - 1; s++)
		for (uint32_t rows = 1; rows < 20; rows++)
			for (uint32_t pitch = 16; pitch <= 144; pitch += 16)
				disjoint(TILE(rows, 8, 16, .pitch = pitch, .swizzle = (enum cptx_swizzle)s));
	ck_assert_uint_eq(cptx_tile_bytes(&TILE(9, 8, 16, .pitch = 16, .swizzle = CPTX_SWIZZLE_32B)), 160);
	disjoint(TILE(16, 128, 6, .elem.padded = true, .swizzle = CPTX_SWIZZLE_128B));
	disjoint(TILE(16, 128, 4, .elem.padded = true, .swizzle = CPTX_SWIZZLE_128B));
	ck_assert_uint_eq(cptx_tile_bytes(&TILE(16, 128, 6, .elem.padded = true)), 16 * 128);
	ck_assert_uint_eq(cptx_tile_bytes(&TILE(128, 64, 16, .swizzle = CPTX_SWIZZLE_128B)), 16384);
	ck_assert_uint_eq(cptx_tile_align(&TILE(128, 64, 16, .swizzle = CPTX_SWIZZLE_128B)), 1024);
	ck_assert_uint_eq(cptx_tile_align(&TILE(128, 64, 16)), 128);
}
END_TEST

START_TEST(rules)
{
	wrong(TILE(8, 8, 3), "elements of 3 bits");
	wrong(TILE(8, 16, 6), "stored padded");
	wrong(TILE(8, 16, 8, .elem.padded = true), "padded elements of 8 bits");
	wrong(TILE(8, 24, 16, .swizzle = CPTX_SWIZZLE_128B),
	      "rows of 48 bytes are not made of spans of 128 bytes (swizzle 128B): take a multiple, or swizzle none");
	wrong(TILE(8, 32, 16, .swizzle = CPTX_SWIZZLE_128B), "or swizzle 64B");
	wrong(TILE(8, 60, 16, .swizzle = CPTX_SWIZZLE_NONE),
	      "spans of 16 bytes (swizzle none): take a multiple, or swizzle none and a pitch");
	wrong(TILE(8, 8, 16, .swizzle = CPTX_SWIZZLE_96B), "swizzle 96B");
	wrong(TILE(8, 8, 16, .swizzle = (enum cptx_swizzle)99), "swizzle ?");
	wrong(TILE(0, 8, 16), "0x8 elements");
	wrong(TILE(8, 64, 16, .pitch = 100), "pitch 100 is less than the 128 bytes");
	wrong(TILE(8, 64, 16, .pitch = 132, .swizzle = CPTX_SWIZZLE_128B), "(nearest: 144)");
	wrong(TILE(1024, 1024, 16), "2097152 bytes");
	wrong(TILE(4, 3, 4), "no whole bytes");
}
END_TEST

/* ---- descriptors: the operand of an instruction, read through its descriptor, is the tile's ---- */

static void described(cptx_tile t, enum cptx_desc_arch arch, uint32_t m, uint32_t kbytes)
{
	uint32_t k = kbytes * 8 / t.elem.bits, start = 3 * cptx_tile_align(&t);

	for (uint32_t row = 0; row + m <= t.rows; row += m)
		for (uint32_t col = 0; col + k <= t.cols; col += k) {
			cptx_smem_desc d;
			cptx_error err = { 0 };
			SURE(cptx_tile_desc(&t, arch, start, row, col, &d, &err), "%s", err.text);
			for (uint32_t r = 0; r < m; r++)
				for (uint32_t c = 0; c < k; c++) {
					cptx_smem_place p = cptx_smem_desc_at(&d, t.elem, r, c), q = cptx_tile_at(&t, row + r, col + c);
					SURE(p.byte == start + q.byte && p.bit == q.bit, "swizzle %d %s row %u+%u col %u+%u: %u, not %u",
					     t.swizzle, t.elem.mn_major ? "MN" : "K", row, r, col, c, p.byte, start + q.byte);
				}
		}
}

START_TEST(descriptors)
{
	static const uint8_t bits[] = { 4, 8, 16, 32 };

	for (size_t s = 0; s < 4; s++)
		for (size_t b = 0; b < 4; b++) {
			described(TILE(64, 2048u / bits[b], bits[b], .swizzle = modes[s]), CPTX_DESC_WGMMA, 64, 32);
			described(TILE(128, 2048u / bits[b], bits[b], .swizzle = modes[s]), CPTX_DESC_TCGEN05, 64, 32);
			if (bits[b] >= 8)
				described(TILE(128, 64, bits[b], .swizzle = modes[s], MN), CPTX_DESC_TCGEN05, 128, bits[b] == 8 ? 16 : 32);
		}
	described(TILE(64, 16, 32, .swizzle = CPTX_SWIZZLE_128B_ATOM_32B, MN), CPTX_DESC_TCGEN05, 64, 32);
	described(TILE(64, 64, 16, .swizzle = CPTX_SWIZZLE_128B, .pitch = 128), CPTX_DESC_WGMMA, 64, 32);
	described(TILE(128, 128, 6, .elem.padded = true, .swizzle = CPTX_SWIZZLE_128B), CPTX_DESC_TCGEN05, 128, 24);
}
END_TEST

static void undescribed(cptx_tile t, uint32_t start, uint32_t row, uint32_t col, const char *words)
{
	cptx_smem_desc d;
	cptx_error err = { 0 };
	ck_assert(!cptx_tile_desc(&t, CPTX_DESC_WGMMA, start, row, col, &d, &err));
	SURE(strstr(err.text, words) != NULL, "'%s' is not in: %s", words, err.text);
}

START_TEST(no_descriptor)
{
	cptx_tile t = TILE(64, 64, 16, .swizzle = CPTX_SWIZZLE_128B);
	undescribed(t, 512, 0, 0, "address 512 is not aligned to 1024 bytes");
	undescribed(t, 0, 4, 0, "cannot begin at row 4");
	undescribed(t, 0, 0, 4, "cannot begin 8 bytes into a row");
	undescribed(t, 0, 64, 0, "row 64, column 0 are outside of 64x64");
	undescribed(TILE(60, 64, 16, .swizzle = CPTX_SWIZZLE_128B), 0, 0, 0, "60 rows");
	undescribed(TILE(64, 64, 16, .pitch = 144), 0, 0, 0, "pitch 144");
	undescribed(TILE(64, 64, 32, .swizzle = CPTX_SWIZZLE_128B_ATOM_32B), 0, 0, 0, "128B_ATOM_32B is not possible");
	undescribed(TILE(64, 64, 32, .swizzle = CPTX_SWIZZLE_128B, MN), 0, 0, 0, "elements of 32 bits, MN-major; wgmma reads");
	undescribed(TILE(64, 64, 64, .swizzle = CPTX_SWIZZLE_128B), 0, 0, 0, "elements of 64 bits");
	undescribed(t, 0x3fc00, 0, 0, "8192 bytes from address 261120 on; shared memory addresses end at 262144");
	undescribed(t, 0xfffffc00, 8, 0, "shared memory addresses end at 262144");
	undescribed(TILE(128, 64, 16, .swizzle = CPTX_SWIZZLE_128B, MN), 0, 32, 0, "cannot begin 64 bytes into a column");
	t.elem.bits = 3;
	undescribed(t, 0, 0, 0, "3 bits");
}
END_TEST

/* ---- boxes: what a tensor map writes, box by box, is the tile ---- */

static void boxed(cptx_tile t, uint32_t boxes)
{
	cptx_tile_boxes b;
	cptx_error err = { 0 };
	SURE(cptx_tile_get_boxes(&t, &b, &err), "%s", err.text);
	ck_assert_uint_eq(b.count[0] * b.count[1], boxes);
	ck_assert_uint_eq(b.bytes * boxes, cptx_tile_bytes(&t));
	uint32_t pitch = b.bytes / b.box[1];
	for (uint32_t y = 0; y < b.count[1]; y++)
		for (uint32_t x = 0; x < b.count[0]; x++)
			for (uint32_t other = 0; other < b.box[1]; other++)
				for (uint32_t i = 0; i < b.box[0]; i++) {
					uint32_t at = (y * b.count[0] + x) * b.bytes + other * pitch + i * t.elem.bits / 8;
					uint32_t row = y * b.box[1] + other, col = x * b.box[0] + i;
					cptx_smem_place p = t.elem.mn_major ? cptx_tile_at(&t, col, row) : cptx_tile_at(&t, row, col);
					SURE((cptx_swizzle_address(t.swizzle, at)) == (p.byte), "%llu, not %llu",
					     (unsigned long long)(cptx_swizzle_address(t.swizzle, at)), (unsigned long long)(p.byte));
				}
}

static void unboxed(cptx_tile t, const char *words)
{
	cptx_tile_boxes b;
	cptx_error err = { 0 };
	ck_assert(!cptx_tile_get_boxes(&t, &b, &err));
	SURE(strstr(err.text, words) != NULL, "'%s' is not in: %s", words, err.text);
}

START_TEST(boxes)
{
	boxed(TILE(128, 64, 16, .swizzle = CPTX_SWIZZLE_128B), 1);
	boxed(TILE(128, 128, 16, .swizzle = CPTX_SWIZZLE_128B), 2);
	boxed(TILE(128, 64, 16, .swizzle = CPTX_SWIZZLE_32B), 4);
	boxed(TILE(128, 64, 16, .swizzle = CPTX_SWIZZLE_128B, MN), 2);
	boxed(TILE(512, 64, 16, .swizzle = CPTX_SWIZZLE_128B), 2);
	boxed(TILE(320, 64, 16, .swizzle = CPTX_SWIZZLE_128B), 2);
	boxed(TILE(64, 128, 16, .pitch = 256), 1);
	boxed(TILE(64, 32, 16, .swizzle = CPTX_SWIZZLE_128B, .pitch = 128), 1);
	boxed(TILE(64, 8, 16, .swizzle = CPTX_SWIZZLE_64B, .pitch = 64), 1);
	unboxed(TILE(64, 32, 16, .swizzle = CPTX_SWIZZLE_128B, .pitch = 64), "pitch 64; a tensor map writes these rows 128");
	unboxed(TILE(64, 128, 16, .pitch = 272), "pitch 272; a tensor map writes these rows 256 bytes apart");
	unboxed(TILE(64, 128, 16, .pitch = 256, .swizzle = CPTX_SWIZZLE_128B), "writes at most 128");
	unboxed(TILE(16, 512, 8, .pitch = 512), "rows of 512 elements");
	unboxed(TILE(320, 128, 16, .swizzle = CPTX_SWIZZLE_128B), "320 across");
	unboxed(TILE(64, 64, 4, .elem.padded = true), "16 padded elements");
	unboxed(TILE(64, 3, 16, .pitch = 6), "multiple of 16");
	unboxed(TILE(64, 3, 3), "3 bits");
}
END_TEST

/* ---- lines: ldmatrix as the fragment LDMATRIX describes it, from the addresses given, makes the fragment ---- */

static cptx_lines lines_of(cptx_tile t, cptx_frag f, uint32_t row, uint32_t col)
{
	cptx_lines l;
	cptx_error err = { 0 };
	SURE(cptx_tile_lines(&t, &f, row, col, &l, &err), "%s", err.text);
	return l;
}

static void loads(cptx_tile t, cptx_frag f, uint32_t row, uint32_t col, bool trans)
{
	cptx_lines l = lines_of(t, f, row, col);
	cptx_frag_map halves; /* of the registers that ldmatrix gives */
	cptx_frag ld = { .kind = CPTX_FRAG_LDMATRIX, .m = 8, .n = 8, .bits = 16, .num = l.num, .trans = l.trans };

	ck_assert(cptx_frag_resolve(&ld, &halves, NULL));
	ck_assert_int_eq(l.trans, trans);
	ck_assert_uint_eq(l.num * l.count, l.map.regs);
	for (uint32_t i = 0; i < l.count; i++)
		for (uint32_t lane = 0; lane < l.map.lanes; lane++)
			for (uint32_t reg = 0; reg < l.num; reg++)
				for (uint32_t byte = 0; byte < 4; byte++) {
					cptx_cell half, want;
					cptx_place p = { (uint16_t)(lane % 32), (uint16_t)reg, (uint16_t)(byte / 2) };
					uint32_t slot = byte * 8 / l.map.bits;
					if (byte * 8 % l.map.bits)
						continue;
					SURE(cptx_frag_cell(&halves, p, &half), "not so");
					uint32_t from = cptx_lines_offset(&l, i, lane / 32 * 32 + half.row) + half.col * 2u + byte % 2;
					p = (cptx_place){ (uint16_t)lane, (uint16_t)(i * l.num + reg), (uint16_t)slot };
					SURE(cptx_frag_cell(&l.map, p, &want), "not so");
					cptx_smem_place at = f.kind == CPTX_FRAG_MMA_B ? cptx_tile_at(&t, row + want.col, col + want.row)
					                                               : cptx_tile_at(&t, row + want.row, col + want.col);
					SURE(at.byte == from, "instruction %u lane %u register %u byte %u: from %u, not %u", i, lane, reg, byte,
					     from, at.byte);
				}
}

#define FRAG(kind_, m_, n_, k_, b) ((cptx_frag){ .kind = CPTX_FRAG_##kind_, .m = (m_), .n = (n_), .k = (k_), .bits = (b) })

START_TEST(lines)
{
	for (size_t s = 0; s < 4; s++) {
		cptx_tile k = TILE(64, 64, 16, .swizzle = modes[s]), mn = TILE(64, 64, 16, .swizzle = modes[s], MN);
		loads(k, FRAG(MMA_A, 16, 8, 16, 16), 32, 16, false);
		loads(k, FRAG(MMA_B, 16, 8, 16, 16), 8, 48, false);
		loads(mn, FRAG(MMA_A, 16, 8, 16, 16), 32, 16, true);
		loads(mn, FRAG(MMA_B, 16, 8, 16, 16), 8, 48, true);
		loads(k, FRAG(MMA_A, 16, 8, 8, 16), 32, 16, false);
		loads(k, FRAG(MMA_C, 16, 8, 16, 16), 16, 8, false);
		loads(k, FRAG(WGMMA_A, 64, 8, 16, 16), 0, 16, false);
		loads(k, FRAG(WGMMA_D, 64, 24, 16, 16), 0, 8, false);
		loads(TILE(64, 128, 8, .swizzle = modes[s]), FRAG(MMA_A, 16, 8, 32, 8), 16, 96, false);
		loads(TILE(64, 32, 32, .swizzle = modes[s]), FRAG(MMA_B, 16, 8, 8, 32), 16, 24, false);
		loads(TILE(64, 256, 4, .swizzle = modes[s]), FRAG(MMA_A, 16, 8, 64, 4), 16, 64, false);
	}
	loads(TILE(64, 64, 16, .pitch = 144), FRAG(MMA_A, 16, 8, 16, 16), 48, 48, false);
}
END_TEST

static void no_lines(cptx_tile t, cptx_frag f, uint32_t row, uint32_t col, const char *words)
{
	cptx_lines l;
	cptx_error err = { 0 };
	ck_assert(!cptx_tile_lines(&t, &f, row, col, &l, &err));
	SURE(strstr(err.text, words) != NULL, "'%s' is not in: %s", words, err.text);
}

START_TEST(no_such_lines)
{
	cptx_tile t = TILE(64, 64, 16, .swizzle = CPTX_SWIZZLE_128B);
	no_lines(t, FRAG(MMA_A, 16, 8, 32, 8), 0, 0, "elements of 16 bits in the tile, of 8 in the fragment");
	no_lines(t, FRAG(MMA_A, 16, 8, 16, 16), 56, 0, "exceed the tile of 64x64");
	no_lines(t, FRAG(MMA_A, 16, 8, 16, 16), UINT32_MAX - 15, 0, "exceed the tile of 64x64"); /* row + 16 is 0 */
	no_lines(t, FRAG(MMA_A, 16, 8, 16, 16), 0, UINT32_MAX - 15, "exceed the tile of 64x64");
	no_lines(t, FRAG(MMA_A, 16, 8, 16, 16), 0, 4, "begins 64 bits into a row");
	no_lines(t, FRAG(MMA_META, 16, 8, 16, 16), 0, 0, "do not move fragments of mma metadata");
	no_lines(t, FRAG(MMA_A, 8, 8, 4, 16), 0, 0, "m8n8k4");
	no_lines(t, FRAG(MMA_A, 16, 8, 24, 16), 0, 0, "no m16n8k24");
	no_lines(TILE(64, 64, 32), FRAG(MMA_C, 16, 8, 16, 32), 0, 0, "no row of the fragment");
	no_lines(TILE(64, 64, 8, MN), FRAG(MMA_A, 16, 8, 32, 8), 0, 0, ".trans moves elements of 16 bits");
	no_lines(TILE(64, 64, 64), FRAG(MMA_A, 16, 8, 4, 64), 0, 0, "elements of 64 bits");
	no_lines(TILE(64, 64, 16, .pitch = 130), FRAG(MMA_A, 16, 8, 16, 16), 0, 0, "pitch 130");
}
END_TEST

/* ---- bank conflicts ---- */

static cptx_banks ldmatrix_of(cptx_tile t, cptx_frag f)
{
	cptx_lines l = lines_of(t, f, 0, 0);
	return cptx_lines_banks(&l, 0);
}

static cptx_banks each(uint32_t stride, uint32_t active, uint32_t bytes)
{
	uint32_t offset[32];
	for (uint32_t i = 0; i < 32; i++)
		offset[i] = i * stride;
	return cptx_bank_conflicts(offset, active, bytes);
}

START_TEST(conflicts)
{
	static const struct {
		uint32_t stride, active, bytes, phases, turns, worst;
	} t[] = {
		{ 4, ~0u, 4, 1, 1, 1 },    { 0, ~0u, 4, 1, 1, 1 },     { 8, ~0u, 4, 1, 2, 2 },    { 128, ~0u, 4, 1, 32, 32 },
		{ 132, ~0u, 4, 1, 1, 1 },  { 1, ~0u, 1, 1, 1, 1 },     { 2, ~0u, 2, 1, 1, 1 },    { 128, 1, 4, 1, 1, 1 },
		{ 128, 0xff, 4, 1, 8, 8 }, { 8, ~0u, 8, 2, 2, 1 },     { 16, ~0u, 8, 2, 4, 2 },   { 128, ~0u, 8, 2, 32, 16 },
		{ 16, ~0u, 16, 4, 4, 1 },  { 128, ~0u, 16, 4, 32, 8 }, { 144, ~0u, 16, 4, 4, 1 }, { 32, ~0u, 16, 4, 8, 2 },
		{ 16, 0xff, 16, 1, 1, 1 }, { 16, 0, 16, 0, 0, 0 },     { 12, ~0u, 4, 1, 1, 1 },   { 4, ~0u, 3, 0, 0, 0 },
		{ 4, ~0u, 32, 0, 0, 0 },   { 4, ~0u, 0, 0, 0, 0 },
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		cptx_banks b = each(t[i].stride, t[i].active, t[i].bytes);
		SURE(b.phases == t[i].phases && b.turns == t[i].turns && b.worst == t[i].worst &&
		         b.conflicts == t[i].turns - t[i].phases,
		     "stride %u, %u bytes: %u turns in %u phases, worst %u", t[i].stride, t[i].bytes, b.turns, b.phases, b.worst);
	}
}
END_TEST

START_TEST(conflicts_of_ldmatrix)
{
	cptx_frag a = FRAG(MMA_A, 16, 8, 16, 16), b = FRAG(MMA_B, 16, 8, 16, 16), w = FRAG(WGMMA_D, 64, 64, 16, 16);

	/* rows of 128 bytes: eight of them in the same banks, unless swizzled or padded */
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 64, 16, .pitch = 128), a).turns, 32);
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 64, 16, .pitch = 128), a).worst, 8);
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 64, 16, .pitch = 144), a).conflicts, 0);
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 64, 16, .swizzle = CPTX_SWIZZLE_128B), a).conflicts, 0);
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 64, 16, .swizzle = CPTX_SWIZZLE_128B), b).turns, 2);
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 64, 16, .swizzle = CPTX_SWIZZLE_64B), a).conflicts, 0);
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 64, 16, .swizzle = CPTX_SWIZZLE_32B), a).conflicts, 0);
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 64, 16), a).conflicts, 0);
	/* a pattern of fewer chunks than rows of the same banks */
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 64, 16, .pitch = 128, .swizzle = CPTX_SWIZZLE_64B), a).worst, 2);
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 64, 16, .pitch = 128, .swizzle = CPTX_SWIZZLE_32B), a).worst, 4);
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 32, 16, .pitch = 64), a).worst, 4);
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 32, 16, .pitch = 80), a).worst, 1);
	/* four warps */
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 64, 16, .swizzle = CPTX_SWIZZLE_128B), w).phases, 16);
	ck_assert_uint_eq(ldmatrix_of(TILE(64, 64, 16, .swizzle = CPTX_SWIZZLE_128B), w).conflicts, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tile");
	TCase *t = tcase_create("tile");

	tcase_add_test(t, disjoint_elements);
	tcase_add_test(t, rules);
	tcase_add_test(t, descriptors);
	tcase_add_test(t, no_descriptor);
	tcase_add_test(t, boxes);
	tcase_add_test(t, lines);
	tcase_add_test(t, no_such_lines);
	tcase_add_test(t, conflicts);
	tcase_add_test(t, conflicts_of_ldmatrix);
	suite_add_tcase(s, t);
	return test_main("layout_tile", s);
}
