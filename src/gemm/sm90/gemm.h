/* SPDX-License-Identifier: MIT */
/* What the parts of the sm_90a GEMM share: shapes derived from its options, and the state of a kernel while it is built. */
#ifndef CPTX_GEMM_SM90_GEMM_H
#define CPTX_GEMM_SM90_GEMM_H

#include "gemm/tma/tma.h"

#include <cptx/operand.h>
#include <cptx/roles.h>

enum {
	WARPGROUP = 128,
	BLOCK_M = 64,
	SPAN = 128, /* bytes along K of a stage */
	GEMM_SCALE_PARTS = 4
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
	uint32_t out_bn;           /* columns of D of a tile */
	uint32_t out_cols;         /* columns of a subtile of D, 64 rows high */
	uint32_t store_buffers;    /* subtiles in shared memory, of a warpgroup */
	bool by_threads;           /* they store D element by element; else TMA */
	bool deferred;             /* a tile is rounded, and stored while the next one is multiplied */
	cptx_tile a, b, d, rest;   /* rest: the last subtile, if it has fewer columns, else .cols is 0 */
	/* with scale factors: bytes of those of A in a stage; the columns of a tile as so many parts of equal width, none of
	 * which has columns of two blocks of B */
	uint32_t scale_bytes, scale_parts;
} gemm_shape;

gemm_shape gemm_sm90_shape(const cptx_gemm_opt *opt);
void gemm_sm90_build(cptx_kernel *k, const tma_gemm *t);

typedef struct gemm90 {
	cptx_kernel *k;
	const cptx_gemm_opt *o; /* of the product that is computed: tma_gemm_inner; those of the caller are t.o */
	gemm_shape s;           /* the same product */
	tma_gemm t;
	cptx_pipe pipe;
	cptx_timeline line;
	cptx_roles roles;
	tma_gemm_producer producer; /* A and B lie side by side in each stage */
	tma_gemm_work w;
	/* consumers */
	cptx_tiled_mma mma;
	cptx_acc acc;
	cptx_pipe_at at, old;       /* this stage; the one whose wgmma may still be under way */
	cptx_val releases, stamps;  /* predicates: this thread releases stages, writes stamps (NONE: none does) */
	cptx_val wg, lane, barrier; /* wg: 0 to consumers - 1; lane: in the warpgroup; barrier: its own, a named one */
	cptx_epilogue_ring ring;
	cptx_epilogue_deferred before; /* with .deferred: the tile before, rounded */
	/* with scale factors: sums of one K tile, those of all of it are in acc; of the K tile that comes next the factors of B,
	 * one for each part of the columns, and their addresses; where the factors of the thread's first row are in stage 0 */
	cptx_acc part;
	cptx_val of_b, of_b_at[GEMM_SCALE_PARTS], of_a_at;
} gemm90;

/* With scale factors (sm90/scaled.c): readies what the tiles share; then a tile; then each stage of it, which it gives back.
 */
void gemm_sm90_scales_new(gemm90 *g);
void gemm_sm90_scales_begin(gemm90 *g);
void gemm_sm90_scaled_stage(gemm90 *g, cptx_val k_tile, bool fresh);

#endif
