/* SPDX-License-Identifier: MIT */
/* What the parts of the sm_100a GEMM share: shapes derived from its options, and the state of a kernel while it is built. */
#ifndef CPTX_GEMM_SM100_GEMM_H
#define CPTX_GEMM_SM100_GEMM_H

#include <cptx/mma.h>
#include <cptx/operand.h>
#include <cptx/roles.h>
#include <cptx/tmem.h>

#include "gemm/tma/tma.h"

enum {
	ROWS = 128 /* of a CTA: the lanes of tensor memory */,
	SPAN_BYTES = 128 /* bytes along K of a stage */,
	READERS = 4 /* warps that bring tiles out */,
	MULTIPLIER = READERS + 1,
	WARPS,
	PIECES = 2 /* of D under way, of a warp */
};

/* Numbers that follow from the options, with the names of the product that is computed (tma_gemm_inner). */
typedef struct gemm100_shape {
	uint32_t ctas;                              /* that make a tile: 1 or 2 */
	uint32_t tiles, cluster_m, cluster_n;       /* of a cluster */
	uint32_t cluster, per_sm;                   /* CTAs; those of a multiprocessor */
	uint32_t bk;                                /* elements along K of a stage */
	uint32_t vec, blocks;                       /* elements of a scale factor; blocks of factors along K of a stage */
	uint32_t b_blocks;                          /* blocks of 128 columns that a tile's factors of B are in */
	uint32_t a_bytes, b_bytes;                  /* of a stage, of a CTA */
	uint32_t sa_bytes, sb_bytes;                /* the same of scale factors */
	uint32_t out_bytes, out_cols;               /* out_cols: of D that one store writes, for 32 rows */
	uint32_t accs, slots;                       /* accumulators; stages' A and factors in tensor memory */
	uint32_t at_a, at_sa, at_sb, slot, columns; /* in tensor memory: within a slot; columns of a slot; of all */
	uint32_t sum_bytes;                         /* of what a warp that reads leaves with stream_k */
	cptx_tile a, b, d, part_a, part_b;          /* parts: what a CTA of a cluster loads */
} gemm100_shape;

gemm100_shape gemm_sm100_shape(const cptx_gemm_opt *opt);
/* What gemm_sm100 is made of. */
tma_gemm gemm_sm100_describe(const cptx_gemm_opt *opt);
cptx_kernel *gemm_sm100_build(cptx_module *m, const cptx_gemm_opt *opt);
static inline bool gemm_sm100_scaled(const cptx_gemm_opt *o) { return o->kind >= CPTX_TCGEN05_MXF8F6F4; }

typedef struct gemm100 {
	cptx_kernel *k;
	const cptx_gemm_opt *o;
	gemm100_shape s;
	tma_gemm t;
	cptx_pipe stages, accs;
	cptx_tmem tmem;
	cptx_operand a, b;
	cptx_tiled_mma mma;
	cptx_timeline line;
	cptx_val smem_a, smem_b, smem_sa, smem_sb, pieces; /* addresses in shared memory */
	cptx_val word_a, word_b, word_sa, word_sb;         /* descriptors of stage 0 */
	cptx_roles roles;
	cptx_val elected; /* one lane of the warp */
	cptx_val leader;  /* rank of the CTA of the pair that multiplies */
	tma_gemm_work w;
} gemm100;

/* From an accumulator to D, for all tiles; by the four warps that read. */
void gemm_sm100_bring_out(gemm100 *g);
/* With stream_k: leaves the sums of a part of a tile in the workspace; one lane waits for those that others have left of
 * g->w.tile, which are those of the clusters from the next one up to the end that it gives; adds these, behind a barrier of
 * the warp, to `num` sums from column `col` on. */
void gemm_sm100_leave(const gemm100 *g, cptx_val acc, const cptx_pipe_at *at);
cptx_val gemm_sm100_wait_for_others(const gemm100 *g);
void gemm_sm100_add_others(const gemm100 *g, cptx_val end, uint32_t col, uint32_t num, cptx_val sums);
/* The address of the accumulator of a stage of g->accs. */
cptx_val gemm_sm100_accumulator(const gemm100 *g, const cptx_pipe_at *acc);

#endif
