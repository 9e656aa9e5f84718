/* SPDX-License-Identifier: MIT */
/* What the parts of the sm_90a GEMM share: shapes derived from its options, and the state of a kernel while it is built. */
#ifndef CPTX_GEMM_SM90_GEMM_H
#define CPTX_GEMM_SM90_GEMM_H

#include "gemm/tma/tma.h"

#include <cptx/operand.h>
#include <cptx/roles.h>

enum { WARPGROUP = 128, BLOCK_M = 64, SPAN = 128 /* bytes along K of a stage */ };

/* Numbers that follow from the options. */
typedef struct gemm_shape {
	uint32_t in_bytes, out_bytes, bk;
	uint32_t consumers; /* warpgroups: 1 to 3 */
	uint32_t blocks;    /* of 64 rows, a warpgroup */
	uint32_t cluster, cluster_m, cluster_n, per_sm;
	uint32_t a_bytes, b_bytes; /* of a stage */
	uint32_t acc;              /* accumulators of a thread */
	uint32_t a_parts, b_parts; /* that the CTAs of a cluster load; 1: if they share it, whole tiles by turns */
	bool by_threads;           /* they store D element by element */
	bool by_rows;              /* they store rows of D, which begin anywhere, from shared memory; else TMA stores it */
	bool deferred;             /* a tile is rounded, and stored while the next one is multiplied */
	cptx_tile a, b;            /* of a stage */
	tma_gemm_subtiles out;     /* how a warpgroup stores D */
	uint32_t scale_bytes;      /* with scale factors: those of A in a stage */
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
	cptx_pipe_left left;        /* with factors of columns: the stage before */
	cptx_val releases, stamps;  /* predicates: this thread releases stages, writes stamps (NONE: none does) */
	cptx_val wg, lane, barrier; /* wg: 0 to consumers - 1; lane: in the warpgroup; barrier: its own, a named one */
	cptx_epilogue_ring ring;
	cptx_val d;                    /* with .by_rows: .u64, the matrix of the tile at hand */
	cptx_epilogue_deferred before; /* with .deferred: the tile before, rounded */
	tma_gemm_scaled scaled;        /* with scale factors */
	tma_gemm_sparse sparse;        /* with a sparse A */
} gemm90;

#endif
