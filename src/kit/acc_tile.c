/* SPDX-License-Identifier: MIT */
/* Accumulators in registers, rounded into tiles of shared memory. */
#include "kit/mma.h"
#include "kit/store.h"
#include "kit/value.h"

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
	else if (t->elem.bits != 16 || t->elem.mn_major || t->pitch || t->rows != acc->m * acc->units_m || t->cols != acc->n ||
	         acc->units_n != 1)
		cptx_fail_(k, at,
		           "an accumulator of %u x %u in a tile of %u x %u; it has as many, of 16 bits, contiguous rows without "
		           ".pitch, and no units beside one another",
		           acc->m * acc->units_m, acc->n * acc->units_n, t->rows, t->cols);
	else
		return true;
	return false;
}

/* Where the thread's first element is: in a swizzle's period places are exclusive ors of what thread and register add, and
 * periods are sums. */
static cptx_val first_of(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_tile *t, cptx_val address)
{
	const uint32_t row_bytes = cptx_tile_at(t, 8, 0).byte / 8;
	uint32_t within[LANE_BITS], periods[LANE_BITS], bits = 0;
	cptx_val base = kit_plain(k, at, address);

	for (; 1u << bits < acc->map.lanes; bits++) {
		const uint32_t byte = cptx_tile_at(t, acc->map.lane[bits].row, acc->map.lane[bits].col).byte;
		within[bits] = byte % PERIOD, periods[bits] = byte - within[bits];
	}
	if (acc->unit_row.kind == CPTX_VAL_REG)
		base = CALL(mad, .a = acc->unit_row, .b = cptx_imm(row_bytes), .c = base, .mode = CPTX_LO);
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
