/* SPDX-License-Identifier: MIT */
/* What the files of the sm_100a attention share. */
#ifndef CPTX_ATTENTION_SM100_FORWARD_H
#define CPTX_ATTENTION_SM100_FORWARD_H

#include "attention/attention.h"

enum {
	TILE_ROWS = 128, /* queries of a CTA: a thread of the softmax warps for each */
	CHUNK = 32       /* columns of O that come to registers at once */
};

/* What follows from the options. */
typedef struct shape100 {
	uint32_t dim, dim_v; /* rounded up to whole swizzle spans of 64 bytes */
	uint32_t threads;    /* four warps of the softmax, one that copies, one that multiplies */
	uint32_t ctas;       /* of a multiprocessor */
	cptx_tile q, k, v;   /* in shared memory */
	uint32_t s, p, o;    /* columns of tensor memory where these begin */
	uint32_t columns;    /* of tensor memory in all */
	uint32_t smem;
} shape100;

shape100 attention_sm100_shape(const cptx_attention_opt *o);
cptx_kernel *attention_sm100_build(cptx_module *m, const cptx_attention_opt *o);

#endif
