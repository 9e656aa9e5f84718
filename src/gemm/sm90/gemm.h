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
	uint32_t in_bytes, out_bytes, bk; /* in_bytes: of an element that is multiplied */
	uint32_t consumers;               /* warpgroups: 1 to 4 */
	uint32_t slices, units;           /* of these share rows, and take K tiles in turns; consumers / slices */
	uint32_t blocks;                  /* of 64 rows, a warpgroup */
	uint32_t cluster, cluster_m, cluster_n, per_sm;
	uint32_t a_bytes, b_bytes; /* of a stage */
	uint32_t acc;              /* accumulators of a thread */
	uint32_t a_parts, b_parts; /* that the CTAs of a cluster load; 1: if they share it, whole tiles by turns */
	bool weights;              /* A is of few bits, and comes to wgmma from registers (weights.c) */
	bool by_threads;           /* they store D element by element */
	bool by_rows;              /* they store rows of D, which begin anywhere, from shared memory; else TMA stores it */
	bool deferred;             /* a tile is rounded, and stored while the next one is multiplied */
	cptx_tile a, b;            /* of a stage */
	tma_gemm_subtiles out;     /* how a warpgroup stores D */
	uint32_t scale_bytes;      /* with scale factors: those of A in a stage */
} gemm_shape;

gemm_shape gemm_sm90_shape(const cptx_gemm_opt *opt);
void gemm_sm90_build(cptx_kernel *k, const tma_gemm *t);

/* What a thread needs to make an A of 16 bits from weights. */
typedef struct gemm_weights {
	uint32_t rows, per_group; /* of the thread; stages that share a factor, 0: all */
	uint32_t chunks;          /* 16 bytes of a row, 2, 4 or 8 */
	cptx_val chunk;           /* .u32: the first one of its first row in stage 0; exclusive or 16 i: the i-th */
	cptx_val scale;           /* .u32: the factor of that row */
	cptx_val place;           /* .u32: of its pair in 8 weights */
	cptx_val a;               /* .b32, the fragments of a stage */
	cptx_val factor;          /* .f32: those of the rows, of the group at hand */
	cptx_val left;            /* .u32: stages left of the group at hand */
	cptx_val turn, sums;      /* .u32, with slices: the K tile that is this one's first; where their sums meet */
	cptx_acc part;            /* its sums */
} gemm_weights;

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
	cptx_pipe_left left;        /* with factors of columns, or weights: the stage before */
	cptx_val releases, stamps;  /* predicates: this thread releases stages, writes stamps (NONE: none does) */
	cptx_val unit;              /* 0 to units - 1 */
	cptx_val wg, lane, barrier; /* wg: 0 to consumers - 1; lane: in the warpgroup; barrier: its own, a named one */
	cptx_epilogue_ring ring;
	cptx_val d;                    /* with .by_rows: .u64, the matrix of the tile at hand */
	cptx_epilogue_deferred before; /* with .deferred: the tile before, rounded */
	tma_gemm_scaled scaled;        /* with scale factors */
	tma_gemm_sparse sparse;        /* with a sparse A */
	gemm_weights weights;          /* with weights of few bits */
} gemm90;

/* ---- weights of few bits: gemm/sm90/weights.c ---- */

/* Elements along K of a stage: 128, which take fewer instructions than twice 64, where groups are not of 64. */
uint32_t gemm_sm90_weights_bk(const cptx_gemm_opt *o);
bool gemm_sm90_weights_check(const cptx_gemm_opt *o, cptx_error *err);
/* In front of all tiles; in front of each; for each K tile: waits for its stage and multiplies it,
 * first: that of the tile; behind the last one: the sums are complete.  The first two do nothing without weights. */
void gemm_sm90_weights_new(gemm90 *g);
void gemm_sm90_weights_begin(gemm90 *g);
void gemm_sm90_weights_stage(gemm90 *g, bool first);
void gemm_sm90_weights_end(gemm90 *g);
/* With slices, in place of the two before: all K tiles of this one; the sums are complete in the first one. */
void gemm_sm90_weights_slice(gemm90 *g);
/* Warpgroups that share 64 rows, so that while some wait others unpack: four where their registers have room, else two. Each
 * has stages of its own, lest it take a stage for full that another one has yet to read: so it depends on their number. */
uint32_t gemm_sm90_slices(uint32_t bn, uint32_t stages);
/* Bytes of shared memory where the sums of slices meet. */
uint32_t gemm_sm90_slices_bytes(const gemm_shape *s, uint32_t bn);

#endif
