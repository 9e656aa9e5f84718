/* SPDX-License-Identifier: MIT */
/* What the parts of the sm_90a GEMM share: shapes derived from its options, and the state of a kernel while it is built. */
#ifndef CPTX_GEMM_SM90_GEMM_H
#define CPTX_GEMM_SM90_GEMM_H

#include "gemm/tma/tma.h"

#include <cptx/mma.h>
#include <cptx/operand.h>
#include <cptx/roles.h>

enum {
	WARPGROUP = 128,
	BLOCK_M = 64,
	SPAN = 128 /* bytes along K of a stage */
};

/* Numbers that follow from the options. */
typedef struct gemm_shape {
	uint32_t in_bytes, out_bytes, bk;
	uint32_t consumers; /* warpgroups: 1 to 3 */
	uint32_t blocks;    /* of 64 rows, a warpgroup */
	uint32_t cluster, cluster_m, cluster_n, per_sm;
	uint32_t a_bytes, b_bytes; /* of a stage */
	uint32_t acc;              /* accumulators of a thread */
	uint32_t a_parts, b_parts; /* that the CTAs of a cluster load; 1: if they share it, whole tiles by turns */
	uint32_t out_cols;         /* columns that one store writes, for 64 rows */
	uint32_t rest_cols;        /* that the last one writes, if these are fewer, else 0 */
	uint32_t store_buffers;    /* such pieces in shared memory, a warpgroup */
	bool later;                /* a tile is rounded, and stored while the next one is multiplied */
	cptx_tile a, b, d, rest;
} gemm_shape;

gemm_shape gemm_sm90_shape(const cptx_gemm_opt *opt);
/* What gemm_sm90 is made of; what is described has the names of the options. */
tma_gemm gemm_sm90_describe(const cptx_gemm_opt *opt);
cptx_kernel *gemm_sm90_build(cptx_module *m, const cptx_gemm_opt *opt);

/* Where this CTA's part of a tile of D is; maps of whole pieces and of the last ones. */
typedef struct gemm90_place {
	cptx_val m0, n0, z, map[2];
} gemm90_place;

typedef struct gemm90 {
	cptx_kernel *k;
	const cptx_gemm_opt *o; /* of the product that is computed: tma_gemm_inner; those of the caller are t.o */
	gemm_shape s;           /* the same product */
	tma_gemm t;
	bool loads; /* what is built is for the loader */
	cptx_pipe pipe;
	cptx_timeline line;
	cptx_val ring, stores; /* addresses in shared memory */
	cptx_roles roles;
	cptx_operand a, b; /* side by side in each stage */
	tma_gemm_work w;
	/* consumers */
	cptx_tiled_mma mma;
	cptx_acc sums;
	cptx_val wg /* 0 to consumers - 1 */, lane /* in the warpgroup */, acc, barrier;
	cptx_val first;    /* its first thread, which has TMA store */
	cptx_val words;    /* with `later`: the tile before, rounded, two elements each */
	gemm90_place kept; /* where that is */
	cptx_val stored;   /* parts of it that are stored */
	/* where a thread stores results: of f32 an address, else lines of stmatrix */
	cptx_val store_at[2][2][2]; /* f32 with swap: whole pieces and the last, row + 8, column + 1; else [0][0][0] */
	cptx_lines lines[2];        /* of whole pieces, of the last one */
	cptx_lane_lines lane_lines[2];
} gemm90;

/* From the accumulators to D; all threads of a warpgroup. */
void gemm_sm90_epilogue_begin(gemm90 *g);
void gemm_sm90_epilogue(gemm90 *g);
/* With `later`, where another tile follows: rounds the accumulators; behind the wgmma of each stage of that: stores a part
 * of what was rounded, if one is left; behind the last stage: all that is left. */
void gemm_sm90_round(gemm90 *g);
void gemm_sm90_store_some(gemm90 *g, bool first);
void gemm_sm90_store_rest(gemm90 *g);

#endif
