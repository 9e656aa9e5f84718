/* SPDX-License-Identifier: MIT */
/* Loads and stores of one register, or a vector, that a whole warp does at once: exec/row.c. */
#ifndef CPTX_EMU_EXEC_ROW_H
#define CPTX_EMU_EXEC_ROW_H

#include "emu/core/registers.h"
#include "emu/exec/exec.h"

/* Loads and stores of the lanes of `mask`, or of all 32 for vectors, row by row of memory.  Their addresses are defined, the
 * accesses order nothing, and imm[0] and imm[1] are as ld and st have them.  False: nothing is done. */
bool row_load(emu_warp *w, const emu_op *op, uint32_t mask);
bool row_store(emu_warp *w, const emu_op *op, uint32_t mask);
bool row_load_vector(emu_warp *w, const emu_op *op);
bool row_store_vector(emu_warp *w, const emu_op *op);

static inline void emu_put_extended(const emu_warp *w, uint32_t slot, unsigned bits, unsigned lane, uint64_t v, int64_t sign)
{
	if (sign && v >> (sign - 1) & 1)
		v |= ~UINT64_C(0) << (sign - 1);
	emu_put(w, slot, bits, lane, v);
}

#endif
