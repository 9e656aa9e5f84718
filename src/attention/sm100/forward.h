/* SPDX-License-Identifier: MIT */
/* What the files of the sm_100a attention share. */
#ifndef CPTX_ATTENTION_SM100_FORWARD_H
#define CPTX_ATTENTION_SM100_FORWARD_H

#include "attention/attention.h"

#include <cptx/epilogue.h>
#include <cptx/pipeline.h>
#include <cptx/roles.h>
#include <cptx/tmem.h>

enum {
	TILE_ROWS = 128, /* queries of a tile: a thread of its softmax warps for each */
	CHUNK = 32,      /* columns of O that come to registers at once */
	RING_STAGES = 2  /* subtiles of O in shared memory of each warp that stores */
};

/* What follows from the options. */
typedef struct shape100 {
	uint32_t dim, dim_v; /* rounded up to whole swizzle spans of 64 bytes */
	uint32_t tiles;      /* of a CTA: 1, or 2 beside one another */
	uint32_t threads;
	uint32_t ctas;                                  /* of a multiprocessor */
	uint32_t softmax_regs, correct_regs, rest_regs; /* with two tiles: of a thread of the roles */
	cptx_tile q, k, v, out;                         /* in shared memory; q: of one tile; out: of O, of a warp */
	uint32_t s, p, o;                               /* columns of tensor memory where those of the first tile begin */
	uint32_t s_apart, o_apart;                      /* columns from tile to tile, of S and P, and of O */
	uint32_t columns;                               /* of tensor memory in all */
	uint32_t smem;
} shape100;

/* A kernel that is being built: what both shapes have. */
typedef struct forward100 {
	cptx_kernel *k;
	const cptx_attention_opt *o;
	shape100 s;
	attention_in in;
	attention_tile tile;
	attention_kv q;
	attention_kv key, v;
	cptx_pipe q_pipe, k_pipe, v_pipe, s_pipe, p_pipe;
	cptx_tiled_mma qk, pv;
	cptx_acc sums, results; /* S, O, in tensor memory */
	cptx_val p;             /* P, an address of tensor memory */

	/* of a role */
	cptx_pipe_at q_at, k_at, v_at, s_at, p_at;
	cptx_val block, key0; /* .s32: the number of the step; the first key of its block */
	cptx_acc part;        /* what was loaded of S, or of O */
	cptx_softmax soft;
} forward100;

shape100 attention_sm100_shape(const cptx_attention_opt *o);
cptx_kernel *attention_sm100_build(cptx_module *m, const cptx_attention_opt *o);
/* From the last block down, as each role goes: `step` for each; with .blocks those that do not count are left out.  mask:
 * blocks that need the mask have loops of their own. */
void attention_sm100_each_block(forward100 *f, void (*step)(forward100 *f, bool masked), bool mask);
/* Copies all blocks of K and V. */
void attention_sm100_load_blocks(forward100 *f);
/* The CTA's two tiles: pair.c. */
void attention_sm100_run_pair(forward100 *f, cptx_roles *roles);

/* ---- the softmax of rows that threads have whole, two elements at a time: softmax.c ---- */

typedef struct softmax100 {
	enum cptx_type in;    /* what probabilities are rounded to */
	bool polynomial;      /* a share of the exponentials is computed by one */
	cptx_softmax soft;    /* max, and sum, of the row */
	cptx_val scale, less; /* .f32x2, two equal ones: x * scale + less is exponentiated */
	cptx_val up, by[4];   /* .f32x2: to round by, and the coefficients */
} softmax100;

enum { SOFTMAX_SLACK = 8 /* powers of 2 that a maximum may grow by before it counts */ };

/* Whether a share of the exponentials is computed by a polynomial: of options with a shape. */
bool attention_sm100_by_polynomial(const cptx_attention_opt *o);
/* What an exponential may be wrong by then, as a part of it; else 0. */
double attention_sm100_ex2_error(const cptx_attention_opt *o);
/* In front of the blocks; what .soft begins with is set. */
void attention_sm100_softmax_begin(cptx_kernel *k, softmax100 *x, const attention_in *in);
/* The maximum of the row with these scores.  Gives the factor, .f32, of all that was summed with the old one: 1 as long as
 * it has not grown by more than the slack, for then the old one stays. */
cptx_val attention_sm100_softmax_max(cptx_kernel *k, softmax100 *x, const cptx_acc *scores);
/* Makes probabilities of the scores from `first` on, rounds them, and gives them in n / 2 .b32 registers, of
 * e4m3 in n / 4; last: of the row's
 * last part, in which none is computed by the polynomial, for others wait for it. */
cptx_val attention_sm100_softmax_exp(cptx_kernel *k, const softmax100 *x, const cptx_acc *scores, uint32_t first, uint32_t n,
                                     bool last);
/* Adds them all to the sum. */
void attention_sm100_softmax_sum(cptx_kernel *k, softmax100 *x, const cptx_acc *scores);

#endif
