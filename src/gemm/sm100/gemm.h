/* SPDX-License-Identifier: MIT */
/* What the parts of the sm_100a GEMM share: shapes derived from its options, and the state of a kernel while it is built. */
#ifndef CPTX_GEMM_SM100_GEMM_H
#define CPTX_GEMM_SM100_GEMM_H

#include <cptx/operand.h>
#include <cptx/roles.h>
#include <cptx/tmem.h>

#include "gemm/tma/tma.h"

enum {
	ROWS = 128 /* of a CTA: the lanes of tensor memory */,
	SPAN_BYTES = 128 /* bytes along K of a stage */,
	EPILOGUE_WARPS = 4,
	MMA_WARP = EPILOGUE_WARPS + 1,
	WARPS,
	STORE_STAGES = 2 /* tiles of D in shared memory, of an epilogue warp */,
};

/* Numbers that follow from the options, with the names of the product that is computed (tma_gemm_inner). */
typedef struct gemm100_shape {
	uint32_t ctas;                        /* that make a tile: 1 or 2 */
	uint32_t tiles, cluster_m, cluster_n; /* of a cluster */
	uint32_t per_sm;                      /* CTAs of a multiprocessor */
	uint32_t bk;                          /* elements along K of a stage */
	tma_gemm_scales scales;               /* of a stage, of a CTA; .vec is 0: there are none */
	uint32_t accs, slots;                 /* accumulators; stages' A and scale factors in tensor memory */
	uint32_t slot, columns;               /* columns of tensor memory: of a slot; of all */
	uint32_t sum_bytes;                   /* with stream_k: of the partial sums of an epilogue warp */
	cptx_tile a, b, d;                    /* a, b: of a stage; d: what an epilogue warp stores at once */
} gemm100_shape;

gemm100_shape gemm_sm100_shape(const cptx_gemm_opt *opt);
void gemm_sm100_build(cptx_kernel *k, const tma_gemm *t);
static inline bool gemm_sm100_scaled(const cptx_gemm_opt *o) { return o->kind >= CPTX_TCGEN05_MXF8F6F4; }

typedef struct gemm100 {
	cptx_kernel *k;
	const cptx_gemm_opt *o;
	gemm100_shape s;
	tma_gemm t;
	cptx_pipe stages, accs;
	cptx_tmem tmem;
	tma_gemm_producer producer;
	cptx_tiled_mma mma;
	cptx_timeline line;
	cptx_val smem_d; /* address of the rings of D */
	cptx_roles roles;
	cptx_val elected; /* one lane of the warp */
	tma_gemm_work w;
} gemm100;

/* The epilogue warps' part. */
void gemm_sm100_epilogue(gemm100 *g);
/* The accumulator of a stage of g->accs. */
cptx_acc gemm_sm100_accumulator(const gemm100 *g, const cptx_pipe_at *at);

#endif
