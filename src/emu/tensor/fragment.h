/* SPDX-License-Identifier: MIT */
/* Matrix operands in registers: fragments as the emulator reads and writes them. */
#ifndef CPTX_EMU_TENSOR_FRAGMENT_H
#define CPTX_EMU_TENSOR_FRAGMENT_H

#include "emu/exec/exec.h"
#include "emu/tensor/dot.h"

#include <cptx/layout.h>

/* The order of the elements of a matrix in an array. */
enum frag_order { FRAG_ROWS /* row after row */, FRAG_COLS, FRAG_PANELS /* as dot.h has B */ };

/*
 * A fragment: the element in a slot of a register of a lane has number lane[] + reg[] + slot[] in the array.  Registers of
 * 64 bits have one slot.
 */
typedef struct frag {
	uint16_t lane[128], reg[128], slot[32];
	uint16_t nreg, mask, value; /* lanes with (lane & mask) == value hold elements */
	uint8_t nslot, first, bits;
} frag;

bool frag_make(frag *f, const cptx_frag *what, enum frag_order order);
/* The same, for as long as the program; NULL with an error. */
const frag *frag_new(emu_decoder *d, const emu_op *op, const cptx_frag *what, enum frag_order order);

/* The n-th register of an operand. */
static inline uint32_t arg_slot(const emu_arg *a, unsigned n) { return a->kind == ARG_VEC ? a->slots[n] : a->slot; }
static inline unsigned arg_count(const emu_arg *a) { return a->kind == ARG_VEC ? a->count : 1; }

/* All 32 lanes execute it; else a finding: with a lane that has exited, or never was, matrix instructions are undefined. */
bool frag_whole(emu_warp *w, const emu_op *op, uint32_t mask);

/* Elements of the lanes of a warp, which are lanes first ... first + 31 of the fragment; of those of `mask`. */
void frag_get(const uint32_t *r, const emu_arg *a, const frag *f, unsigned first, uint32_t *to);
void frag_put(uint32_t *r, const emu_arg *a, const frag *f, unsigned first, uint32_t mask, const uint32_t *from);
void frag_get64(const uint32_t *r, const emu_arg *a, const frag *f, uint64_t *to);
void frag_put64(uint32_t *r, const emu_arg *a, const frag *f, uint32_t mask, const uint64_t *from);

/* Whether all registers of an operand are defined in all these lanes. */
bool frag_defined(const uint32_t *r, const emu_arg *a, uint32_t mask);
/* Sets bad[number of an element] for those that are not. */
void frag_undefined(const uint32_t *r, const emu_arg *a, const frag *f, unsigned first, uint32_t mask, uint8_t *bad);
/* Defines registers, but for the elements that are bad; bad NULL: all. */
void frag_define(uint32_t *r, const emu_arg *a, const frag *f, unsigned first, uint32_t mask, const uint8_t *bad);

/*
 * Sparse A: from the codes of metadata (a row of `rows` after the other), which row of B each stored element meets; at[] as
 * dot_shape has it.  bits: of an element; `ordered`: codes of a group must ascend.  False with a finding: a code has no
 * meaning.
 */
bool frag_places(emu_warp *w, const emu_op *op, const dot_shape *s, unsigned rows, unsigned bits, bool ordered,
                 const uint32_t *code, uint16_t *at);

/* Whether rows of k elements of a K-major operand in shared memory lie within what the swizzle covers; else a finding. */
bool frag_in_span(emu_warp *w, const emu_op *op, const char *what, const cptx_smem_desc *d, cptx_smem_elem e, unsigned k);

/* The shape in a modifier, "m16n8k16"; false if it is none. */
typedef struct mnk {
	unsigned m, n, k;
} mnk;
bool mnk_of(const char *name, mnk *shape);

#endif
