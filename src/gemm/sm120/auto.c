/* SPDX-License-Identifier: MIT */
/*
 * Picks the shape of the sm_120a GEMM for a problem, by public figures of the GeForce RTX 5090; none has been measured.
 *
 * All shapes that the rules allow are tried.  A K tile takes the longest of its products, reading their operands from shared
 * memory, which each warp does for its part, its bytes from L2, and what of the time until a copy comes the other stages do
 * not cover; two CTAs of a multiprocessor share all of these but the last.  A part for each tile and one for the launch are
 * added.  All together take at least as long as global memory needs.
 */
#include "gemm/sm120/gemm.h"

#include <math.h>

/* The data sheet: 170 multiprocessors at 2.407 GHz, 1792 GB/s, dense 419 TFLOP/s of fp8 with f32 sums, 1676 of fp4. */
#define GHZ 2.407
#define MEMORY_GBS 1792.0
#define PRODUCTS_8 512.0 /* a clock, of one multiprocessor */
#define PRODUCTS_4 2048.0
#define PARTS 4u /* of a multiprocessor, each with tensor cores; a warp is in one */
/* As published or measured of Hopper, where nothing is for this one. */
#define SHARED_BYTES 128.0 /* a clock */
#define L2_BYTES 64.0
#define APART 1.48        /* with stream_k loads of the same lines come at different times */
#define LATENCY 1500.0    /* clocks from asking for a stage to having it */
#define TILE_CLOCKS 800.0 /* the ends of a tile that nothing overlaps */
#define OUT_BYTES 32.0    /* of D, a clock */
#define LAUNCH_US 2.5
#define HINDRANCE 6.0 /* gemm_longer() */

static double all_bytes(const cptx_gemm_opt *o, const gemm120_shape *s, const cptx_gemm_problem *p)
{
	double m = (double)p->m, n = (double)p->n, k = (double)p->k;
	double in = m * k * tma_gemm_bits(o->a) / 8 + n * k * tma_gemm_bits(o->b) / 8 + (m + n) * k / s->vec;

	return given(p->batch) * (in + m * n * cptx_type_bits(o->out) / 8 * (o->beta ? 2 : 1));
}

/* Leaving the sums of a tile and fetching those of others, one after the other, with stream_k. */
static double reduce_clocks(const cptx_gemm_opt *o, double tiles, double at_once)
{
	double sharers = tiles < at_once ? at_once / tiles : 2;

	return 2 * LATENCY + sharers * o->bm * o->bn * 4 / L2_BYTES;
}

static void predict(cptx_gemm_choice *c, const cptx_gemm_problem *p, uint32_t sms)
{
	const cptx_gemm_opt *o = &c->opt;
	const gemm120_shape s = gemm_sm120_shape(o);
	const tma_gemm t = gemm_sm120_describe(o);
	const gemm_rounds r = gemm_rounds_of(&t, c, p, sms);
	const double clock = 1e-3 / GHZ, busy = MIN(s.warps * r.together, PARTS) / PARTS;
	double mma = r.together * o->bm * o->bn * s.bk / (gemm_sm120_packed(o) ? PRODUCTS_4 : PRODUCTS_8) / busy;
	double read = r.together * s.warps * (s.wm + s.wn) * SM120_SPAN / SHARED_BYTES;
	double l2 = r.together * s.stage / L2_BYTES * (o->stream_k ? APART : 1);
	double out = r.together * o->bm * o->bn * cptx_type_bits(o->out) / 8 / OUT_BYTES;

	c->tail = r.idle;
	c->mma_us = r.steps * MAX(mma, read) * clock;
	c->load_us = r.steps * MAX(l2, LATENCY / o->stages) * clock;
	c->memory_us = all_bytes(o, &s, p) / (1e3 * MEMORY_GBS);
	/* what one CTA does at the ends of a tile, the other one's products overlap */
	double ends = r.rounds * (TILE_CLOCKS + out) / r.together + (o->stream_k ? reduce_clocks(o, r.tiles, r.at_once) : 0);
	c->us = LAUNCH_US + gemm_longer(MAX(c->mma_us, c->load_us) + ends * clock, c->memory_us, HINDRANCE);
}

/* With the most stages that fit. */
static void offer_all(gemm_pick *x, const cptx_gemm_opt *o)
{
	const double rows = sqrt((double)x->sms * o->bn / o->bm); /* the tiles of a round, as a square of elements */
	cptx_gemm_choice c = { .opt = *o };

	c.opt.group = o->group ? o->group : rows < 1 ? 1 : (uint32_t)(rows + 0.5);
	for (c.opt.stages = 16; c.opt.stages > 2 && !cptx_gemm_check(&c.opt, NULL, NULL, NULL);)
		c.opt.stages--;
	const tma_gemm t = gemm_sm120_describe(&c.opt);
	gemm_offer(x, c, predict);
	gemm_offer_shared(x, &t, c, predict);
}

void gemm_sm120_simplest(cptx_gemm_opt *o)
{
	o->bm = o->bn = 128, o->warps_m = 4, o->warps_n = 2, o->stages = 2, o->per_sm = 1, o->stream_k = false;
}

void gemm_sm120_search(gemm_pick *x, cptx_gemm_opt o)
{
	for (o.bm = 128; o.bm >= 64; o.bm /= 2)
		for (o.bn = 128; o.bn >= 64; o.bn /= 2)
			for (o.warps_m = 1; o.warps_m <= o.bm / 32; o.warps_m *= 2)
				for (o.warps_n = 1; o.warps_n <= o.bn / 32; o.warps_n *= 2)
					for (o.per_sm = 1; o.per_sm <= 2; o.per_sm++)
						offer_all(x, &o);
}
