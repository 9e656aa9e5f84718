/* SPDX-License-Identifier: MIT */
/* Access of one lane to memory at an address, by ld, st and atom: which multimem does for each device. */
#ifndef CPTX_EMU_EXEC_MULTIMEM_H
#define CPTX_EMU_EXEC_MULTIMEM_H

#include "emu/exec/exec.h"

/* Bytes that a lane's ld or st moves. */
static inline uint32_t emu_lane_bytes(const emu_op *op, const emu_arg *value)
{
	return (uint32_t)op->imm[0] * (value->kind == ARG_VEC ? value->count : 1);
}
bool emu_load_lane(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr);  /* move.c */
bool emu_store_lane(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr); /* move.c */
bool emu_atom_lane(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr);  /* atom.c */

#endif
