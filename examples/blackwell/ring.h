/* SPDX-License-Identifier: MIT */
/* The kernel of the rungs v3 to v5: a CTA, or a pair, makes one tile by a ring of stages. */
#ifndef BLACKWELL_RING_H
#define BLACKWELL_RING_H

#include "ladder.h"

typedef struct ring {
	cptx_pipe pipe;
	gemm_at at;
	cptx_val acc;  /* address of the accumulator */
	cptx_val done; /* mbarrier that completes when all products have ended */
} ring;

/* work: what starts all copies and products, and commits to `done`; its threads are the rung's choice. */
void ring_build(cptx_module *m, const ladder_rung *rung, const ladder_opt *o, void (*work)(const gemm *g, const ring *r));

#endif
