/* SPDX-License-Identifier: MIT */
/* What the rungs of the ladder are built of; see hgemm.h.  Calls that build code append it to h->k. */
#ifndef EXAMPLES_HGEMM_PARTS_H
#define EXAMPLES_HGEMM_PARTS_H

#include "hgemm.h"

#include <cptx/mma.h>
#include <cptx/pipeline.h>
#include <cptx/tensor_map.h>

enum { HGEMM_PRODUCER_REGS = 40 };
enum { HGEMM_SPAN = 64 /* elements of a swizzled row of 128 bytes */, HGEMM_MMA = 16 /* rows and depth of an mma */ };

/* Tiles in shared memory: A and B of a stage, C of a warp. */
typedef struct hgemm_tiles {
	cptx_tile a, b, c;
	uint32_t a_bytes, stage_bytes, c_bytes, warps;
} hgemm_tiles;
hgemm_tiles hgemm_tiles_of(const hgemm_opt *o);
/* CTAs take tile after tile, and C has shared memory of its own. */
bool hgemm_stays(enum hgemm_rung rung, const hgemm_opt *o);
/* Of the ring of stages; where CTAs do not stay it serves for C too. */
uint32_t hgemm_ring_bytes(enum hgemm_rung rung, const hgemm_opt *o);

/* A kernel under construction. */
typedef struct hgemm {
	cptx_kernel *k;
	const hgemm_opt *o;
	hgemm_tiles t;
	uint32_t steps, mi, nj; /* mma depths in a stage; 16 x 16 pieces of the warp's tile along M and N */
	cptx_lines lines_c;
	cptx_val M, N, K;
	cptx_val tid, lane, warp;
	cptx_val warp_m, warp_n; /* first row and column of the warp's part of the tile */
	cptx_val m0, n0;         /* first row and column of the CTA's tile */
	cptx_val offset;         /* TMA: from stage 0 to the one that is computed on */
	cptx_val ring;           /* address of stage 0 */
	cptx_tiled_mma mma;
	cptx_acc acc;
	cptx_mma_frags frags;
} hgemm;

/* Opens the kernel for the warps that compute and `more`. */
void hgemm_begin(hgemm *h, cptx_module *m, enum hgemm_rung rung, const hgemm_opt *o, uint32_t more);
/* Behind the rung's own parameters: M, N, K, the ring, numbers of threads. */
void hgemm_sizes(hgemm *h, enum hgemm_rung rung);
cptx_val hgemm_k_tiles(const hgemm *h);
/* Grid swizzle: sets m0 and n0 for tile number `id`.  Neighbours in time share rows of A and columns of B in L2. */
void hgemm_tile(hgemm *h, cptx_val id);
/* Tile after tile of a CTA that stays: `id` is %ctaid.x at first. */
cptx_val hgemm_has_tile(const hgemm *h, cptx_val id);
void hgemm_next_tile(const hgemm *h, cptx_val id);
/* Number of tiles. */
cptx_val hgemm_tiles_all(const hgemm *h);

/* Sets warp_m and warp_n: where in the tile computing warp number `warp` has its part. */
void hgemm_warp_part(hgemm *h, cptx_val warp);
/* Registers and addresses of the warps that compute. */
void hgemm_fragments(hgemm *h);
/* ldmatrix: the fragments of the first step of the stage that is so many bytes behind the first. */
void hgemm_load(const hgemm *h, cptx_val stage);
/* mma.sync: a step of the warp's tile; beside it, ldmatrix of the step behind it, the stage's next or the first of the stage
 * `next` (NONE: there is none). */
void hgemm_step(const hgemm *h, uint32_t step, cptx_val stage, cptx_val next);

/* ---- cp.async: 16 bytes a thread, straight to their swizzled place ---- */

typedef struct hgemm_copies {
	cptx_val pa, pb;       /* the first elements of the k-tile */
	cptx_val off_a, off_b; /* from there to what this thread copies in each pass, bytes */
	cptx_val to, to_b;     /* where in a stage it copies to */
	cptx_val k_left;       /* of K from the k-tile on */
	cptx_val k_a, k_b;     /* its place along K in A and, in the first pass, B */
	cptx_val step_b;       /* bytes from one k-tile of B to the next */
	uint32_t na, nb;       /* passes */
} hgemm_copies;
/* Opens a kernel with the parameters A, B, C, M, N, K, all set up for the CTA's tile; gives C. */
cptx_val hgemm_begin_copies(hgemm *h, hgemm_copies *c, cptx_module *m, enum hgemm_rung rung, const hgemm_opt *o);
/* Copies pieces [from, to) of the na + nb of the next k-tile to the stage at that offset.  Behind K: zeros. */
void hgemm_copy(const hgemm *h, const hgemm_copies *c, cptx_val stage, uint32_t from, uint32_t to);
void hgemm_copies_next(const hgemm *h, hgemm_copies *c);

/* ---- TMA: one thread of a warp of its own has whole tiles copied ---- */

/* The address of a tensor map that is a parameter; thread 0 has it fetched. */
cptx_val hgemm_map(const hgemm *h, const char *name);
/* Warps beside those that compute. */
uint32_t hgemm_producers(const hgemm_opt *o);
cptx_val hgemm_is_producer(const hgemm *h);
/* With opt.consumer_regs: setmaxnreg, by all warps of a role. */
void hgemm_take_registers(const hgemm *h, bool producer);
/* In one thread of the warp, always the same; elect.sync tells the compiler so, who has not to look for others then. */
cptx_val hgemm_elected(const hgemm *h);
/* In the one thread that commands TMA to read. */
cptx_val hgemm_produces(const hgemm *h);
/* Has all k-tiles of the tile at (m0, n0) copied. */
void hgemm_produce(const hgemm *h, const cptx_pipe *p, cptx_pipe_at *at, cptx_val map_a, cptx_val map_b);
/* In front of the first tile: waits for it, and fetches the first fragments. */
void hgemm_consume_first(const hgemm *h, const cptx_pipe *p, const cptx_pipe_at *at);
/* The sums of a tile.  `releases`: in the lanes that release a stage.  `another`: does the CTA have another tile behind it?
 * Its first fragments are fetched then.  NONE: it has not. */
void hgemm_consume(const hgemm *h, const cptx_pipe *p, cptx_pipe_at *at, cptx_val releases, cptx_val another);

/* Of all tiles of a CTA that stays. */
void hgemm_produce_all(hgemm *h, const cptx_pipe *p, cptx_val map_a, cptx_val map_b);

/* ---- C ---- */

/* C of a CTA that stays in shared memory of its own: one part after another. */
cptx_val hgemm_own_c(const hgemm *h);
/* The part of computing warp number `warp`. */
cptx_val hgemm_part_of(const hgemm *h, cptx_val own_c, cptx_val warp);
/* Rounds the sums into the warp's part of shared memory (cptx_tile t.c at `to`), in the order that TMA wants too. */
void hgemm_round(const hgemm *h, cptx_val to);
/* From there to C, in whole rows of 128 bytes; behind a barrier of the warp. */
void hgemm_write(const hgemm *h, cptx_val from, cptx_val c);
/* When all warps have done with the ring: through it to C, in whole rows of 128 bytes. */
void hgemm_finish(const hgemm *h, cptx_val c);

#endif
