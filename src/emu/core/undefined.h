/* SPDX-License-Identifier: MIT */
/*
 * What of registers is undefined.  The mask in front of a register tells the lanes in which it is defined as a whole; where
 * it is not, all bits are undefined, or those of the hole that the word behind the mask names.  Nothing is lost by that:
 * almost all registers have none.
 */
#ifndef CPTX_EMU_CORE_UNDEFINED_H
#define CPTX_EMU_CORE_UNDEFINED_H

#include "emu/core/warp.h"

struct emu_hole {
	uint32_t copied;        /* lanes in which the bits came with others, as padding does; nothing was calculated */
	uint64_t bits[2][WARP]; /* that are undefined */
};

typedef struct emu_missing {
	uint64_t bits[2]; /* lower and upper half */
	bool copied;
} emu_missing;

/* The bytes of a frame's parameters in a lane, and which are defined. */
static inline unsigned char *emu_param_of(const emu_frame *f, unsigned lane)
{
	return f->param + (size_t)lane * f->f->param_bytes;
}
static inline uint8_t *emu_param_defined(const emu_frame *f, unsigned lane)
{
	return f->param_defined + (size_t)lane * ((f->f->param_bytes + 7) / 8);
}

void emu_holes_free(emu_frame *f);
/* A lane of a register of so many bits: v[1] is above 64. */
void emu_lane_get(const uint32_t *r, uint32_t slot, unsigned bits, unsigned lane, uint64_t v[2]);
void emu_lane_put(uint32_t *r, uint32_t slot, unsigned bits, unsigned lane, const uint64_t v[2]);
/* Which bits of a register, of so many bits from `slot` on, are undefined in a lane; emu_miss sets them. */
emu_missing emu_missing_of(const uint32_t *r, uint32_t slot, unsigned bits, unsigned lane);
void emu_miss(uint32_t *r, uint32_t slot, unsigned bits, unsigned lane, emu_missing m);
/* Of bytes of memory, up to 16, extended from a sign bit (0: with zeros); and the other way. */
emu_missing emu_missing_bytes(const emu_place *p, uint32_t size, uint32_t sign);
void emu_miss_bytes(const emu_place *p, uint32_t size, emu_missing m);
/* None of these bytes is undefined, or it is what compilers copy with padding: some only, and nothing was calculated. */
bool emu_is_padding(emu_missing m, uint32_t size);

void emu_flow(emu_op *op); /* of a decoded instruction: how its results follow */
/* Its results in lanes in which an operand is not defined, before it is executed. */
void emu_trace_undefined(emu_warp *w, const emu_op *op, uint32_t lanes);

#endif
