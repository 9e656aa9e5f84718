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
size_t attention_sm80_shapes(const cptx_attention_opt *o, cptx_attention_opt *to, size_t room);
void attention_sm80_cycles(const cptx_attention_opt *o, double *mma, double *softmax);

#endif
