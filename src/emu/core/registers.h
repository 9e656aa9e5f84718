/* SPDX-License-Identifier: MIT */
/* Access to registers. */
#ifndef CPTX_EMU_CORE_REGISTERS_H
#define CPTX_EMU_CORE_REGISTERS_H

#include "emu/core/warp.h"

static inline uint32_t *emu_r32(const emu_warp *w, uint32_t slot) { return w->r + slot; }
static inline uint64_t *emu_r64(const emu_warp *w, uint32_t slot) { return (uint64_t *)(void *)(w->r + slot); }
static inline uint32_t *emu_defined(const emu_warp *w, uint32_t slot) { return w->r + slot - 2; }
static inline uint32_t *emu_reg32(const emu_warp *w, const emu_op *op, unsigned arg)
{
	return emu_r32(w, op->arg[arg].slot);
}
static inline uint64_t *emu_reg64(const emu_warp *w, const emu_op *op, unsigned arg)
{
	return emu_r64(w, op->arg[arg].slot);
}
/* The register is undefined as a whole in these lanes. */
void emu_forget_parts(const uint32_t *r, uint32_t slot, uint32_t lanes);
/* A predicate, complemented if it is negated. */
static inline uint32_t emu_pred(const emu_warp *w, const emu_arg *a) { return a->negated ? ~w->r[a->slot] : w->r[a->slot]; }
static inline void emu_set_pred(const emu_warp *w, uint32_t slot, uint32_t mask, uint32_t value)
{
	if (slot)
		w->r[slot] = (w->r[slot] & ~mask) | (value & mask);
}
static inline void emu_define(const emu_warp *w, uint32_t slot, uint32_t mask, uint32_t defined)
{
	if (!slot)
		return;
	*emu_defined(w, slot) = (*emu_defined(w, slot) & ~mask) | (defined & mask);
	if (mask & ~defined && w->r[slot - 1])
		emu_forget_parts(w->r, slot, mask & ~defined);
}
/* A lane of a register of up to 64 bits, with zeros above. */
static inline uint64_t emu_get(const emu_warp *w, const emu_arg *a, unsigned lane)
{
	return a->bits == 64  ? emu_r64(w, a->slot)[lane]
	       : a->bits == 1 ? (emu_pred(w, a) >> lane & 1)
	                      : emu_r32(w, a->slot)[lane];
}
static inline void emu_put(const emu_warp *w, uint32_t slot, unsigned bits, unsigned lane, uint64_t v)
{
	if (bits == 64)
		emu_r64(w, slot)[lane] = v;
	else
		emu_r32(w, slot)[lane] = bits == 16 ? (uint16_t)v : (uint32_t)v;
}

#endif
