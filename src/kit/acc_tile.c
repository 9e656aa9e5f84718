/* SPDX-License-Identifier: MIT */
/* Accumulators in registers, rounded into tiles of shared memory. */
#include "kit/mma.h"
#include "kit/store.h"
#include "kit/value.h"

#include <cptx/cptx.h>

enum { PERIOD = 1024 /* bytes after which every swizzle repeats */, LANE_BITS = 7 /* of a warpgroup */ };

static bool check_tile(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_type type, const cptx_tile *t)
{
	const bool half = type == CPTX_BF16 || type == CPTX_F16;
	cptx_error err = { .code = CPTX_OK };

	if (!half || acc->type != CPTX_F32)
		cptx_fail_(k, at, "an accumulator of .%s in a tile of .%s; one of .f32 is rounded to CPTX_BF16 or CPTX_F16",
		           cptx_type_name(acc->type), cptx_type_name(type));
	else if (!cptx_tile_check(t, &err))
		cptx_fail_(k, at, "a tile that is wrong: %s", err.text);
	else if (t->elem.bits != 16 || t->elem.mn_major || t->pitch || t->cols != acc->n ||
	         (t->rows != acc->m && (t->rows != acc->m * acc->units_m || acc->units_n != 1)))
		cptx_fail_(
			k, at,
			"an accumulator of %u x %u in a tile of %u x %u; it has as many rows and columns as the unit's, or as all "
			"units' where none lie beside one another, of 16 bits, contiguous and without .pitch",
			acc->m * acc->units_m, acc->n * acc->units_n, t->rows, t->cols);
	else
		return true;
	return false;
}

/* Where the unit's rows begin: a tile may be the unit's alone. */
static cptx_val start_of(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_tile *t, cptx_val address)
{
	const cptx_val base = kit_plain(k, at, address);

	if (acc->unit_row.kind != CPTX_VAL_REG || t->rows == acc->m)
		return base;
	return CALL(mad, .a = acc->unit_row, .b = cptx_imm(cptx_tile_at(t, 8, 0).byte / 8), .c = base, .mode = CPTX_LO);
}

/* Where the thread's first element is: in a swizzle's period places are exclusive ors of what thread and register add, and
 * periods are sums. */
static cptx_val first_of(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_tile *t, cptx_val address)
{
	uint32_t within[LANE_BITS], periods[LANE_BITS], bits = 0;
	cptx_val base = start_of(k, at, acc, t, address);

	for (; 1u << bits < acc->map.lanes; bits++) {
		const uint32_t byte = cptx_tile_at(t, acc->map.lane[bits].row, acc->map.lane[bits].col).byte;
		within[bits] = byte % PERIOD, periods[bits] = byte - within[bits];
	}
	base = cptx_lane_bits_(k, at, acc->thread, bits, periods, true, base);
	return cptx_lane_bits_(k, at, acc->thread, bits, within, false, base);
}

void cptx_acc_put_tile_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_type type, const cptx_tile *tile,
                        cptx_val address)
{
	cptx_val low[PERIOD / 4];

	if (!kit_acc_has_registers(k, at, acc) || !IS_GIVEN_TO(k, at, tile, "tile") || !check_tile(k, at, acc, type, tile) ||
	    !kit_value(k, at, "cptx_acc_put_tile", "the address", address, KIT_U32))
		return;
	const cptx_val first = first_of(k, at, acc, tile, address);
	for (uint32_t i = 0; i < PERIOD / 4; i++)
		low[i] = CPTX_NONE_;
	for (uint32_t i = 0; i + 1 < acc->count; i += 2) {
		const cptx_acc_elem e = cptx_acc_at(acc, i);
		const cptx_val pair[2] = { e.value, cptx_elem(acc->regs, i + 1) };
		const uint32_t byte = cptx_tile_at(tile, e.row, e.col).byte, flip = byte % PERIOD;
		if (low[flip / 4].kind == CPTX_VAL_NONE)
			low[flip / 4] = flip ? CALL(xor, .a = first, .b = cptx_imm(flip), .type = CPTX_B32) : first;
		kit_store(k, at, type, pair, 2, cptx_offset(low[flip / 4], byte - flip), CPTX_SHARED, CPTX_NONE_);
	}
}

/* Fragments of 16 x 16, which are four registers beside one another. */
void cptx_acc_put_tile_matrix_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_type type, const cptx_tile *tile,
                               cptx_val address)
{
	enum { FRAG = 16, WORDS = 4 };
	const cptx_frag c = { .kind = CPTX_FRAG_MMA_C, .m = FRAG, .n = FRAG / 2, .k = FRAG, .bits = 16, .beside = 2 };
	cptx_error err = { .code = CPTX_OK };
	cptx_lines lines;
	cptx_lane_lines lane;

	if (!kit_acc_has_registers(k, at, acc) || !IS_GIVEN_TO(k, at, tile, "tile") || !check_tile(k, at, acc, type, tile) ||
	    !kit_value(k, at, "cptx_acc_put_tile_matrix", "the address", address, KIT_U32))
		return;
	if (acc->map.lanes != CPTX_WARP || acc->n % FRAG || !cptx_tile_lines(tile, &c, 0, 0, &lines, &err)) {
		cptx_fail_(k, at,
		           "an accumulator of %u x %u by stmatrix; that is for those of mma.sync with a multiple of 16 columns%s%s",
		           acc->m, acc->n, err.code ? ": " : "", err.text);
		return;
	}
	const cptx_val words = cptx_acc_narrow_(k, at, acc, type);
	if (!cptx_lane_lines_begin_(k, at, &lane, &lines, acc->thread, start_of(k, at, acc, tile, address)))
		return;
	for (uint32_t row = 0, i = 0; row < acc->m; row += FRAG)
		for (uint32_t col = 0; col < acc->n; col += FRAG, i += WORDS)
			cptx_lines_move_(k, at, &lines, 0, cptx_lane_lines_at_(k, at, &lane, 0, row, col), cptx_slice(words, i, WORDS),
			                 true);
}
