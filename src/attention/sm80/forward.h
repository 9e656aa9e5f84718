/* SPDX-License-Identifier: MIT */
/* What the files of the attention by mma.sync share. */
#ifndef CPTX_ATTENTION_SM80_FORWARD_H
#define CPTX_ATTENTION_SM80_FORWARD_H

#include "attention/attention.h"

enum { MMA_ROWS = 16 /* of a fragment: a warp has one or two */ };

/* What follows from the options. */
typedef struct shape80 {
	uint32_t dim, dim_v; /* rounded up to whole swizzle spans of 64 bytes */
	uint32_t rows;       /* queries of a warp */
	uint32_t threads;
	cptx_tile q, k, v; /* in shared memory */
	bool q_in_regs;    /* Q stays in registers */
	uint32_t regs;     /* an estimate */
	uint32_t smem, stage;
} shape80;

shape80 attention_sm80_shape(const cptx_attention_opt *o);
cptx_kernel *attention_sm80_build(cptx_module *m, const cptx_attention_opt *o);
/* O += P * V with V of e4m3: P of f16, as cptx_acc_as_a gives it; v: a stage's address.  A thread's columns of O are apart:
 * of each 16 the even ones are of one instruction, and the odd ones of the next. */
void attention_sm80_multiply_bytes(cptx_kernel *k, const shape80 *s, const cptx_acc *o, cptx_val p, cptx_val v,
                                   cptx_val lane);
/* Stores the rows of such an O that there are. */
void attention_sm80_store_bytes(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *o,
                                cptx_val lane);
size_t attention_sm80_shapes(const cptx_attention_opt *o, cptx_attention_opt *to, size_t room);
void attention_sm80_cycles(const cptx_attention_opt *o, double *mma, double *softmax);

#endif
