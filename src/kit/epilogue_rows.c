/* SPDX-License-Identifier: MIT */
/* A tile of rounded results, from shared memory to a matrix in whole rows. */
#include "kit/epilogue.h"
#include "base/options.h"

#include <cptx/cptx.h>

enum {
	CHUNK = 16 /* bytes of a lane */,
	LINE = 128 /* bytes of a row that 8 lanes have */,
	AT_ONCE = 4 /* rows of a warp */
};

static bool check(cptx_kernel *k, cptx_site at, const cptx_epilogue_rows *o)
{
	const cptx_tile *t = &o->tile;
	cptx_error err = { .code = CPTX_OK };

	if (!cptx_tile_check(t, &err)) {
		cptx_fail_(k, at, "a tile to be stored in whole rows that is wrong: %s", err.text);
		return false;
	}
	if (t->elem.mn_major || t->pitch || t->elem.bits < 8 || t->rows % AT_ONCE || t->cols * t->elem.bits % (LINE * 8)) {
		cptx_fail_(
			k, at,
			"a tile of %u x %u elements of %u bits to be stored in whole rows; it has a multiple of four rows, which are "
			"contiguous and multiples of 128 bytes, without .pitch",
			t->rows, t->cols, t->elem.bits);
		return false;
	}
	return KIT_OPTION("cptx_epilogue_store_rows", o, smem, KIT_U32) &&
	       KIT_OPTION("cptx_epilogue_store_rows", o, lane, KIT_U32) &&
	       KIT_OPTION("cptx_epilogue_store_rows", o, address, KIT_U64) &&
	       KIT_OPTION("cptx_epilogue_store_rows", o, pitch, KIT_U32 | KIT_COUNT) &&
	       KIT_OPTION("cptx_epilogue_store_rows", o, row, KIT_U32 | KIT_WHOLE) &&
	       KIT_OPTION("cptx_epilogue_store_rows", o, col, KIT_U32 | KIT_WHOLE) &&
	       KIT_OPTION("cptx_epilogue_store_rows", o, rows, KIT_U32 | KIT_COUNT) &&
	       KIT_OPTION("cptx_epilogue_store_rows", o, cols, KIT_U32 | KIT_COUNT);
}

/* The address of the lane's first chunk: the lower three bits of the lane number count chunks of a row, the others rows. */
static cptx_val lane_place(cptx_kernel *k, cptx_site at, const cptx_epilogue_rows *o, uint32_t chunk)
{
	uint32_t value[5];

	for (uint32_t i = 0; i < 5; i++)
		value[i] = cptx_tile_at(&o->tile, i < 3 ? 0 : 1u << (i - 3), i < 3 ? chunk << i : 0).byte;
	return cptx_lane_bits_(k, at, o->lane, 5, value, false, kit_plain(k, at, o->smem));
}

/* The address `row` rows and `col` columns further on: that of the lane's first chunk with bits of the swizzle flipped, and
 * a constant offset. */
static cptx_val place_at(cptx_kernel *k, cptx_site at, const cptx_tile *t, cptx_val lane, uint32_t row, uint32_t col)
{
	const uint32_t offset = cptx_tile_at(t, row, col).byte, flip = offset % LINE;

	return cptx_offset(flip ? CALL(xor, .a = lane, .b = cptx_imm(flip), .type = CPTX_B32) : lane, offset - flip);
}

void cptx_epilogue_store_rows_(cptx_kernel *k, cptx_site at, const cptx_epilogue_rows *opt)
{
	cptx_epilogue_rows given, *o = &given;

	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_epilogue_rows, o, opt, at, k) || !check(k, at, o))
		return;
	const uint32_t size = o->tile.elem.bits / 8, chunk = CHUNK / size, line = LINE / size;
	const cptx_val all_rows = epi_in_register(k, at, o->rows), all_cols = epi_in_register(k, at, o->cols);
	const cptx_val down = CALL(shr, .a = o->lane, .b = cptx_imm(3)), across = CALL(and, .a = o->lane, .b = cptx_imm(7));
	const cptx_val first = CALL(add, .a = epi_in_register(k, at, o->row), .b = down);
	const cptx_val col = CALL(mad, .a = across, .b = cptx_imm(chunk), .c = epi_in_register(k, at, o->col), .mode = CPTX_LO);
	const cptx_val from = lane_place(k, at, o, chunk);
	const cptx_val rows = CALL(sub, .a = cptx_as(all_rows, CPTX_S32), .b = cptx_as(first, CPTX_S32));
	const cptx_val pitch = CALL(mul_wide, .a = epi_in_register(k, at, o->pitch), .b = cptx_imm(size));
	const cptx_val to = CALL(mad_wide, .a = col, .b = cptx_imm(size), .c = o->address);

	CALL(mad, .a = CALL(cvt, .a = first, .dtype = CPTX_U64), .b = pitch, .c = to, .mode = CPTX_LO, .into = to);
	CALL(shl, .a = pitch, .b = cptx_imm(2), .into = pitch);
	for (uint32_t i = 0; i < o->tile.rows; i += AT_ONCE) {
		for (uint32_t j = 0; j < o->tile.cols; j += line) {
			const cptx_val inside = epi_is_below(k, at, j ? CALL(add, .a = col, .b = cptx_imm(j)) : col, all_cols);
			const cptx_val left = CALL(selp, .a = rows, .b = cptx_imm(0), .c = inside);
			const cptx_val v =
				CALL(ld, .a = place_at(k, at, &o->tile, from, i, j), .space = CPTX_SHARED, .type = CPTX_B32, .vec = CPTX_V4);
			CALL(st, .a = cptx_offset(to, (int64_t)j * size), .b = v, .space = CPTX_GLOBAL, .type = CPTX_B32,
			     .when = CALL(setp, .a = left, .b = cptx_imm(i), .cmp = CPTX_GT));
		}
		CALL(add, .a = to, .b = pitch, .into = to);
	}
}
