/* SPDX-License-Identifier: MIT */
/*
 * Tiled products of f64 by mma.sync, whose fragments ldmatrix does not move.
 *
 * Four lanes read eight elements along K of a row, each its 16 bytes at once, so that lane t has elements 2t and 2t + 1.
 * Instructions want elements t and t + 4, or, of the four along K of sm_80, t alone; but a sum has no order, so 2t stands
 * for t and 2t + 1 for t + 4, or for t of a second instruction, in A and in B alike.
 *
 * Eight lanes read two rows of 64 bytes, which the 64-byte swizzle keeps in 128 bytes: no bank conflict.
 */
#include "kit/mma.h"

#include <cptx/cptx.h>

enum { ROW = 64 /* bytes of a swizzled row */, CHUNK_SHIFT = 4, LANES = 4 /* of a row */ };

/* What the lane reads of the first eight rows of a unit: row lane / 4, chunk lane % 4. */
static cptx_val lane_place(cptx_kernel *k, cptx_site at, cptx_val lane)
{
	const cptx_val row = CALL(shr, .a = lane, .b = cptx_imm(2)), chunk = CALL(and, .a = lane, .b = cptx_imm(LANES - 1));
	const cptx_val pair = CALL(shr, .a = row, .b = cptx_imm(1)), low = CALL(and, .a = pair, .b = cptx_imm(LANES - 1));
	const cptx_val swizzled = CALL(xor, .a = chunk, .b = low, .type = CPTX_B32);

	return CALL(mad, .a = row, .b = cptx_imm(ROW),
	            .c = CALL(shl, .a = cptx_as(swizzled, CPTX_U32), .b = cptx_imm(CHUNK_SHIFT)), .mode = CPTX_LO);
}

void kit_f64_begin(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma, cptx_val a_first, cptx_val b_first)
{
	const cptx_val lane = CALL(and, .a = mma->opt.thread, .b = cptx_imm(CPTX_WARP - 1));
	const cptx_val place = lane_place(k, at, cptx_as(lane, CPTX_U32));

	mma->a_first = a_first.kind == CPTX_VAL_REG ? CALL(add, .a = a_first, .b = place) : place;
	mma->b_first = b_first.kind == CPTX_VAL_REG ? CALL(add, .a = b_first, .b = place) : place;
}

void kit_f64_load(cptx_kernel *k, cptx_site at, const cptx_tile *tile, cptx_val from, uint32_t i, uint32_t step, cptx_val to)
{
	const uint32_t offset = step * tile->rows * ROW + i * KIT_F64_ROWS * ROW;

	CALL(ld, .a = cptx_offset(from, offset), .space = CPTX_SHARED, .vec = CPTX_V2, .type = CPTX_F64,
	     .into = cptx_slice(to, i * KIT_F64_REGS, KIT_F64_REGS));
}

void kit_f64_multiply(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_val a, cptx_val b, uint32_t i,
                      uint32_t j, cptx_val d)
{
	if (mma->opt.tall) { /* its registers: rows 0 and 8 of elements t, then of t + 4 */
		const cptx_val v[] = { cptx_elem(a, 4 * i), cptx_elem(a, 4 * i + 2), cptx_elem(a, 4 * i + 1),
			                   cptx_elem(a, 4 * i + 3) };
		CALL(mma, .a = cptx_pack_(k, at, v, 4), .b = cptx_slice(b, 2 * j, 2), .c = d, .into = d,
		     .shape = (uint16_t)mma->shape, .dtype = CPTX_F64, .atype = CPTX_F64);
		return;
	}
	for (uint32_t s = 0; s < KIT_F64_REGS; s++)
		CALL(mma, .a = cptx_elem(a, 2 * i + s), .b = cptx_elem(b, 2 * j + s), .c = d, .into = d,
		     .shape = (uint16_t)mma->shape, .dtype = CPTX_F64, .atype = CPTX_F64);
}
