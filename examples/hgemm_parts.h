/* SPDX-License-Identifier: MIT */
/* The parts that the ladder's kernels share; see hgemm.h.  Calls that build code append it to h->k. */
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
/* Whether CTAs are persistent, with shared memory of their own for C. */
bool hgemm_stays(enum hgemm_rung rung, const hgemm_opt *o);
/* Bytes of the ring of stages; where CTAs are not persistent C uses it too. */
uint32_t hgemm_ring_bytes(enum hgemm_rung rung, const hgemm_opt *o);

/* A kernel under construction. */
typedef struct hgemm {
	cptx_kernel *k;
	const hgemm_opt *o;
	hgemm_tiles t;
	uint32_t steps, mi, nj; /* steps: mma depths in a stage; mi, nj: 16 x 16 blocks of the warp's tile along M and N */
	cptx_lines lines_c;
	cptx_val M, N, K;
	cptx_val tid, lane, warp;
	cptx_val warp_m, warp_n; /* first row and column of the warp's part of the tile */
	cptx_val m0, n0;         /* first row and column of the CTA's tile */
	cptx_val offset;         /* TMA: bytes from stage 0 to the current stage */
	cptx_val ring;           /* address of stage 0 */
	cptx_tiled_mma mma;
	cptx_acc acc;
	cptx_mma_frags frags;
} hgemm;

/* Opens the kernel for the MMA warps and `more` warps. */
void hgemm_begin(hgemm *h, cptx_module *m, enum hgemm_rung rung, const hgemm_opt *o, uint32_t more);
/* Declares M, N and K behind the kernel's own parameters, and sets up the ring and the numbers of threads. */
void hgemm_sizes(hgemm *h, enum hgemm_rung rung);
cptx_val hgemm_k_tiles(const hgemm *h);
/* Rasterization: sets m0 and n0 for tile number `id`.  CTAs that run at the same time share rows of A and columns of B in
 * L2. */
void hgemm_tile(hgemm *h, cptx_val id);
/* A predicate: tile number `id` exists.  A persistent CTA takes tiles %ctaid.x, then every %nctaid.x-th. */
cptx_val hgemm_has_tile(const hgemm *h, cptx_val id);
void hgemm_next_tile(const hgemm *h, cptx_val id);
/* The number of tiles. */
cptx_val hgemm_tiles_all(const hgemm *h);

/* Sets warp_m and warp_n: the place in the tile of the part of MMA warp number `warp`. */
void hgemm_warp_part(hgemm *h, cptx_val warp);
/* Makes registers and addresses of the MMA warps. */
void hgemm_fragments(hgemm *h);
/* ldmatrix: loads the fragments of the first step of the stage that lies `stage` bytes behind the first. */
void hgemm_load(const hgemm *h, cptx_val stage);
/* mma.sync: multiplies one step of the warp's tile; beside it, ldmatrix loads the next step, of this stage or the first of
 * the stage `next` (NONE: there is none). */
void hgemm_step(const hgemm *h, uint32_t step, cptx_val stage, cptx_val next);

/* ---- cp.async: 16 bytes a thread, straight to their swizzled place ---- */

typedef struct hgemm_copies {
	cptx_val pa, pb;       /* addresses of the first elements of the k-tile */
	cptx_val off_a, off_b; /* bytes from there to what this thread copies in each pass */
	cptx_val to, to_b;     /* where in a stage this thread copies to */
	cptx_val k_left;       /* elements of K from the k-tile on */
	cptx_val k_a, k_b;     /* this thread's place along K in A and, in the first pass, in B */
	cptx_val step_b;       /* bytes from one k-tile of B to the next */
	uint32_t na, nb;       /* number of passes */
} hgemm_copies;
/* Opens a kernel with the parameters A, B, C, M, N, K, all set up for the CTA's tile; returns C. */
cptx_val hgemm_begin_copies(hgemm *h, hgemm_copies *c, cptx_module *m, enum hgemm_rung rung, const hgemm_opt *o);
/* Copies passes [from, to) of the na + nb of the next k-tile to the stage at that offset; behind K it writes zeros. */
void hgemm_copy(const hgemm *h, const hgemm_copies *c, cptx_val stage, uint32_t from, uint32_t to);
void hgemm_copies_next(const hgemm *h, hgemm_copies *c);

/* ---- TMA: one thread of a warp of its own has whole tiles copied ---- */

/* Declares a parameter that is a tensor map, and prefetches it by thread 0; returns its address. */
cptx_val hgemm_map(const hgemm *h, const char *name);
/* The number of warps beside the MMA warps. */
uint32_t hgemm_producers(const hgemm_opt *o);
cptx_val hgemm_is_producer(const hgemm *h);
/* With opt.consumer_regs: setmaxnreg, for all warps of a role. */
void hgemm_take_registers(const hgemm *h, bool producer);
/* A predicate that holds in one thread of the warp, always the same; elect.sync lets the compiler know that it is one. */
cptx_val hgemm_elected(const hgemm *h);
/* A predicate that holds in the one thread that issues TMA loads. */
cptx_val hgemm_produces(const hgemm *h);
/* Loads all k-tiles of the tile at (m0, n0). */
void hgemm_produce(const hgemm *h, const cptx_pipe *p, cptx_pipe_at *at, cptx_val map_a, cptx_val map_b);
/* Waits for the first k-tile, and fetches its first fragments. */
void hgemm_consume_first(const hgemm *h, const cptx_pipe *p, const cptx_pipe_at *at);
/* Computes a tile.  `releases`: holds in the lanes that release a stage.  `another`: the CTA has another tile behind it,
 * whose first fragments are fetched then.  NONE: it has not. */
void hgemm_consume(const hgemm *h, const cptx_pipe *p, cptx_pipe_at *at, cptx_val releases, cptx_val another);

/* Loads all tiles of a persistent CTA. */
void hgemm_produce_all(hgemm *h, const cptx_pipe *p, cptx_val map_a, cptx_val map_b);

/* ---- C ---- */

/* The address of a persistent CTA's own shared memory for C: one part behind another. */
cptx_val hgemm_own_c(const hgemm *h);
/* The address of the part of MMA warp number `warp`. */
cptx_val hgemm_part_of(const hgemm *h, cptx_val own_c, cptx_val warp);
/* Rounds the accumulator into the warp's part of shared memory (cptx_tile t.c at `to`), in the layout that TMA needs. */
void hgemm_round(const hgemm *h, cptx_val to);
/* Writes a part from shared memory to C, in whole rows of 128 bytes, behind a barrier of the warp. */
void hgemm_write(const hgemm *h, cptx_val from, cptx_val c);
/* Writes the tile to C through the ring, once all warps have done with it, in whole rows of 128 bytes. */
void hgemm_finish(const hgemm *h, cptx_val c);

#endif
