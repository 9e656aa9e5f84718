/* SPDX-License-Identifier: MIT */
/* What the rungs of the ladder share, made of the kernel kit; see hgemm.h.  Calls that build code append it to h->k. */
#ifndef EXAMPLES_HGEMM_PARTS_H
#define EXAMPLES_HGEMM_PARTS_H

#include "hgemm.h"

#include <cptx/epilogue.h>
#include <cptx/operand.h>
#include <cptx/params.h>
#include <cptx/pipeline.h>
#include <cptx/roles.h>
#include <cptx/scheduler.h>

enum { HGEMM_PRODUCER_REGS = 40 };
enum { HGEMM_SPAN = 64 /* elements of a swizzled row of 128 bytes */, HGEMM_MMA = 16 /* rows and depth of an mma */ };

/* ---- what host and kernel agree on ---- */

/* Tiles in shared memory: A and B of a stage, C of a warp. */
typedef struct hgemm_tiles {
	cptx_tile a, b, c;
	uint32_t a_bytes, stage_bytes, c_bytes, warps;
} hgemm_tiles;
hgemm_tiles hgemm_tiles_of(const hgemm_opt *o);
/* Whether the rung reads by TMA. */
bool hgemm_reads_by_tma(enum hgemm_rung rung);
/* CTAs take tile after tile, and C has shared memory of its own. */
bool hgemm_stays(enum hgemm_rung rung, const hgemm_opt *o);
/* Bytes of the ring of stages; where CTAs do not stay it serves for C too. */
uint32_t hgemm_ring_bytes(enum hgemm_rung rung, const hgemm_opt *o);
/* Warps beside those that compute: of rungs that read by TMA. */
uint32_t hgemm_producers(const hgemm_opt *o);

/* What a launch fills the parameters from. */
typedef struct hgemm_args {
	cptx_tensor_map_opt map_a, map_b, map_c;
	uint64_t A, B, C;
	uint32_t M, N, K;
} hgemm_args;
enum { HGEMM_PARTS = 3 };
/* The tables of a rung's parameters, for that struct (NULL: to declare them). */
void hgemm_params(enum hgemm_rung rung, const hgemm_args *args, cptx_params_part part[HGEMM_PARTS]);

/* ---- kernels ---- */

/* A kernel under construction. */
typedef struct hgemm {
	cptx_kernel *k;
	const hgemm_opt *o;
	hgemm_tiles t;
	bool stays; /* see hgemm_stays */
	cptx_params params;
	cptx_roles roles;
	cptx_tiles tiles;
	cptx_pipe pipe;
	cptx_operand a, b;
	cptx_tiled_mma mma;
	cptx_acc acc;
	cptx_mma_frags frags;
	cptx_operand_src from_a, from_b; /* cp.async: the K tile to copy next */
	cptx_val M, N, K;
	cptx_val lane_0;     /* predicate */
	cptx_val ring;       /* address of stage 0 */
	cptx_val offset;     /* from there to the stage that is computed on */
	cptx_pipe_left left; /* TMA: the stage before */
} hgemm;

/* Opens the kernel: parameters, roles, operands, pipeline. */
void hgemm_begin(hgemm *h, cptx_module *m, enum hgemm_rung rung, const hgemm_opt *o);
/* The tile scheduler of a role.  CTAs that run together work on a block of C, whose rows of A and columns of B stay in L2.
 */
void hgemm_schedule(hgemm *h);
/* Registers and addresses of the warps that compute. */
void hgemm_fragments(hgemm *h);
/* Steps `first` to `end` - 1 of a K tile; beside each, ldmatrix of the next one, but behind the K tile's last. */
void hgemm_steps(const hgemm *h, uint32_t first, uint32_t end);
/* The last step of a K tile, when h->offset is at the next stage already; fetch: beside ldmatrix of that one's first. */
void hgemm_last_step(const hgemm *h, bool fetch);
/* h->offset to the next stage. */
void hgemm_next_offset(const hgemm *h);
/* K tiles of a tile; its first row and column. */
cptx_val hgemm_k_tiles(const hgemm *h);
cptx_val hgemm_row(const hgemm *h, const cptx_tiles_at *t);
cptx_val hgemm_col(const hgemm *h, const cptx_tiles_at *t);
/* A predicate: the CTA, which stays, has another tile behind this one. */
cptx_val hgemm_has_another(const hgemm *h, const cptx_tiles_at *t);

/* ---- cp.async: all threads copy what they will compute on ---- */

/* The kernel of a rung whose threads copy.  body, of the loop over K tiles: computes on the stage at h->offset and goes on
 * to `at`, the next one, beside copies to stage `to`. */
cptx_kernel *hgemm_by_threads(cptx_module *m, enum hgemm_rung rung, const hgemm_opt *o,
                              void (*body)(hgemm *h, cptx_pipe_at *at, cptx_pipe_at *to));
/* Part `part` of `parts` of the copies of the next K tile, to that stage.  Behind K: zeros. */
void hgemm_copy(const hgemm *h, const cptx_pipe_at *to, uint32_t part, uint32_t parts);
/* Closes the stage, and goes on to the next stage and K tile. */
void hgemm_copied(hgemm *h, cptx_pipe_at *to);

/* ---- TMA: one thread has whole tiles copied ---- */

/* The producer's loop over all tiles of the CTA. */
void hgemm_produce(hgemm *h);
/* In front of the first tile: waits for its first K tile, and fetches the first fragments. */
/* With TMA: a place at stage 0. */
cptx_pipe_at hgemm_consumer(hgemm *h);
void hgemm_consume_first(const hgemm *h, const cptx_pipe_at *at);
/* The sums of a tile.  `another`: does the CTA have another tile behind it?  Its first fragments are fetched then.  NONE: it
 * has not. */
void hgemm_consume(hgemm *h, cptx_pipe_at *at, cptx_val another);

/* ---- C in whole rows: through shared memory ---- */

/* C of computing warp number `warp` in shared memory, from `c` on. */
cptx_val hgemm_part(const hgemm *h, cptx_val c, cptx_val warp);
/* Rounds the sums to the warp's part. */
void hgemm_round(const hgemm *h, cptx_val part);
/* Stores the part of computing warp number `warp` to C, in rows of 128 bytes; behind a barrier of the warp. */
void hgemm_write(const hgemm *h, cptx_val part, cptx_val warp, const cptx_tiles_at *t);
/* Stores the sums to C through the ring, when all warps have done with that. */
void hgemm_finish(const hgemm *h, const cptx_tiles_at *t);

#endif
