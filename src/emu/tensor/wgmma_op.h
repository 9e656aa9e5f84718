/* SPDX-License-Identifier: MIT */
/* One operation of wgmma: its operands and arithmetic. */
#ifndef CPTX_EMU_TENSOR_WGMMA_OP_H
#define CPTX_EMU_TENSOR_WGMMA_OP_H

#include "emu/tensor/fragment.h"

enum { WGMMA_A = 128, WGMMA_B = 1024 /* most pieces of 16 bytes of an operand in shared memory */ };

typedef struct wgmma_op {
	emu_async a;
	struct wgmma_op *next; /* while warps are missing */
	const emu_op *op;
	uint64_t number; /* of the warpgroup's */
	uint32_t first;  /* warp of the group */
	uint32_t joined; /* bits of warps that have come */
	uint32_t mask[4];
	emu_frame *frame[4]; /* whose registers it uses */
	uint64_t a_desc, b_desc;
	bool keep; /* scale_d: D is added to */
	uint32_t race;
	uint32_t at_a[WGMMA_A], at_b[WGMMA_B]; /* offsets in shared memory of pieces, in the order that pieces have */
} wgmma_op;

wgmma_op *wgmma_op_new(emu_warp *w, const emu_op *op); /* NULL: memory */
/* A warp has come: descriptors and scale_d must be the same in all threads.  False with a finding. */
bool wgmma_op_join(wgmma_op *x, emu_warp *w, uint32_t mask);
/* All have come, and `race` is there: decodes the descriptors.  False with a finding. */
bool wgmma_op_open(wgmma_op *x, emu_warp *w);
void wgmma_op_drop(emu_async *a); /* not itself */
void wgmma_op_done(wgmma_op *x);  /* its results are there (wgmma.c) */
bool wgmma_op_decode(emu_decoder *d, emu_op *op);
enum emu_step wgmma_mma(emu_warp *w, const emu_op *op, uint32_t mask);

#endif
