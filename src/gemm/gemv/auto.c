/* SPDX-License-Identifier: MIT */
/*
 * The candidates of the GEMM for few rows, and what they cost on the chip of the target.
 *
 * The time is that of reading B, once for each tile of A, where enough loads are under way.  Among shapes that have these a
 * few percent differ; what was fastest on an H200 (bench/RESULTS.md) counts as a little faster: eight warps along K, of
 * many rows of A four, which take few rows and little of K at once.
 *
 * Weights of few bits are unpacked, and each step of them is multiplied by eight rows of A at a time: both take clocks of a
 * multiprocessor that do not depend on the shape, and from 16 rows on more than the bytes of B do.
 */
#include "gemm/auto.h"
#include "gemm/gemv/gemm.h"

#include <math.h>

/* Measured on an H200, for bf16 and for weights of few bits; nothing is measured on other chips. */
#define LATENCY_US 0.7
#define LAUNCH_US 3.5   /* with sums through shared memory, and the first loads */
#define SM_TIMES 2.5    /* what one multiprocessor can take, by its share of the memory's rate */
#define PRODUCTS 1024.0 /* a clock, where the chip does not say */
/* Clocks of a multiprocessor for 1000 weights: to unpack them, and for each eight rows of A of a tile. */
#define UNPACK_4 14.0
#define ROWS_4 26.5
#define UNPACK_8 58.0
#define ROWS_8 20.0
#define UNLIKE 0.02 /* of the time, for each power of two that a shape is away from the best one */

static double away(double value, double best) { return fabs(log2(value / best)); }

/* How unlike the fastest shape it is. */
static double unlike(const cptx_gemm_opt *o, const gemv_shape *s)
{
	const bool few = o->bm <= 2 * GEMV_COLS;
	const double rows = s->vec ? 4 : (s->bits == 16 ? 1 : 2) * (o->bm > GEMV_COLS && few ? 2 : 1);

	return away(s->along_k, few ? 8 : 4) + away(s->atoms_n, rows) +
	       away(o->bk, s->bits == 4   ? 128
	                   : s->bits == 8 ? 128
	                                  : 64) /
	           4;
}

/* Clocks in which a multiprocessor multiplies 1000 elements of B by all rows of a tile. */
static double clocks_of_1000(const cptx_gemm_opt *o, const gemv_shape *s, const gemm_pick *x)
{
	if (!gemv_is_quantized(o))
		return 1e3 * o->bm / (x->products > 0 ? x->products : PRODUCTS);
	return s->bits == 8 ? UNPACK_8 + ROWS_8 * s->atoms_m : UNPACK_4 + ROWS_4 * s->atoms_m;
}

static void predict(cptx_gemm_choice *c, const gemm_pick *x, const tma_gemm *t)
{
	const cptx_gemm_opt *o = &c->opt;
	const gemv_shape s = gemv_shape_of(o);
	const double m = (double)x->p->m, n = (double)x->p->n, k = (double)x->p->k, batch = or_one(x->p->batch), sms = x->sms;
	const double tiles = (double)(tma_gemm_tiles(t, x->p) * or_one(x->p->batch)), rate = 1e3 * x->chip.memory_gbs;
	const double of_sm = MIN(gemv_resident(&s), ceil(tiles / sms)), busy = MIN(tiles, sms) / sms;
	const double chunk = s.vec ? s.each * 4.0 * s.vec : s.steps * 2.0 * s.atoms_n * GEMV_CHUNK;
	const double under_way = of_sm * s.warps * CPTX_WARP * chunk / (LATENCY_US * rate / sms);
	const double tiles_m = (double)divide_up(x->p->m, o->bm), b_bytes = n * k * s.bits / 8 * tiles_m;
	const double at_work = gemv_is_quantized(o) ? busy : 1;

	c->memory_us = batch * (b_bytes + m * k * 2 + m * n * cptx_type_bits(o->out) / 8) / rate;
	c->load_us = c->memory_us / MIN(1.0, busy * MIN(SM_TIMES, under_way));
	c->mma_us = batch * tiles_m * n * k * clocks_of_1000(o, &s, x) / (at_work * sms * x->chip.ghz * 1e6);
	c->tail = 1 - busy;
	c->us = LAUNCH_US + MAX(c->load_us, c->mma_us) * (1 + UNLIKE * unlike(o, &s));
}

const gemm_model gemm_gemv_model = { .by = GEMM_BY_SYNC,
	                                 .axes = { GEMM_AXIS(bm, 8, 8, 64, 0), GEMM_AXIS(warps_n, 1, 1, 1, 0),
	                                           GEMM_AXIS(bn, 64, 16, 128, 0), GEMM_AXIS(warps_m, 8, 1, 16, 0),
	                                           GEMM_AXIS(bk, 128, 32, 1024, 0) },
	                                 .no_ring = true,
	                                 .predict = predict };
