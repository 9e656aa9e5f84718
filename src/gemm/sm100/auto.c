/* SPDX-License-Identifier: MIT */
/*
 * The sm_100a GEMM's candidates, and what they cost by public figures of the B200.  No B200 has been measured.
 *
 * The way of a K tile into shared memory is the longest of: its bytes there and out again, its bytes from L2, which
 * multicast lowers, and its requests by TMA.  What brings a tile out is seen where nothing overlaps it.
 */
#include "gemm/auto.h"
#include "gemm/sm100/gemm.h"

/* Tensor cores make 128 rows x 1 column x 128 bytes along K in 2 clocks, whatever the kind: 2.25 PFLOP/s of dense bf16. */
#define COLUMN_CLOCKS 2.0

#define TILE_CLOCKS 400.0 /* the first load of a tile, and the first product's start */
#define OUT_CLOCKS 4.0    /* of a column of the tile */

/* Clocks until a K tile of one CTA is in shared memory and has been read. */
static double load_clocks(const cptx_gemm_opt *o, const gemm100_shape *s, const cptx_gemm_problem *in)
{
	const double rows = ROWS + (double)o->bn / s->ctas;
	/* rows that are not there are not fetched */
	const double a = SPAN_BYTES * (double)MIN(ROWS, in->m), b = SPAN_BYTES * (double)MIN(o->bn / s->ctas, in->n);
	const double bytes = a / s->cluster_n + b / s->cluster_m + tma_gemm_all_scale_bytes(&s->scales);

	return MAX(MAX(gemm_l2_clocks(o, bytes), rows), gemm_shared_clocks(2 * rows * SPAN_BYTES));
}

static void predict(cptx_gemm_choice *c, const gemm_pick *x, const tma_gemm *t)
{
	const cptx_gemm_opt *o = &c->opt;
	const cptx_gemm_problem in = tma_gemm_inner_problem(o, x->p);
	const gemm100_shape s = gemm_sm100_shape(o);
	const gemm_rounds r = gemm_rounds_of(t, c, x);
	const double out = OUT_CLOCKS * o->bn * r.together;
	const gemm_clocks clocks = { .mma = r.together * COLUMN_CLOCKS * o->bn,
		                         .load = r.together * load_clocks(o, &s, &in),
		                         .tile = TILE_CLOCKS + (s.accs == 1 ? out : 0),
		                         .out = out,
		                         .sums = EPILOGUE_WARPS * s.sum_bytes };

	gemm_roofline(c, x, &r, &clocks);
}

/* At most so many stages that each has a place of its own in tensor memory, if these are four. */
static bool suits(const cptx_gemm_opt *o, const cptx_target *target)
{
	const gemm100_shape s = gemm_sm100_shape(o);

	(void)target;
	return o->stages >= 4 && (!s.slot || s.slots > 1);
}

static const uint8_t clusters[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 4, 1 }, { 1, 4 } };

const gemm_model gemm_sm100_model = { .by = GEMM_BY_TCGEN05,
	                                  .clusters = clusters,
	                                  .cluster_count = ARRAY_LEN(clusters),
	                                  .axes = { GEMM_AXIS(bm, ROWS, ROWS, 2 * ROWS, ROWS), GEMM_AXIS(bn, 128, 256, 16, -16),
	                                            GEMM_AXIS(per_sm, 1, 1, 2, 1), GEMM_AXIS(swap, false, false, true, 1) },
	                                  .suits = suits,
	                                  .predict = predict };
