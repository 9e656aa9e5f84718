/*
 * Picks the shape of the sm_120a GEMM for a problem, by public figures of the GeForce RTX 5090; none has been measured.
 *
 * All shapes that the rules allow are tried.  A K tile takes the longest of its products, reading their operands from shared
 * memory, which each warp does for its part, its bytes from L2, and what of the time until a copy comes the other stages do
 * not cover; two CTAs of a multiprocessor share all of these but the last.  A part for each tile and one for the launch are
 * added.  All together take at least as long as global memory needs.
 */
#include "kernels/gemm_sm120.h"

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
	gemm120_shape s = gemm_sm120_shape(o);
	double at_once = c->ctas ? c->ctas : tma_gemm_resident(sms, 1, s.per_sm), k_tiles = (double)up(p->k, s.bk);
	double tiles = (double)(up(p->m, o->bm) * up(p->n, o->bn) * given(p->batch)), rounds = ceil(tiles / at_once);
	double steps = o->stream_k ? ceil(tiles * k_tiles / at_once) : rounds * k_tiles, clock = 1e-3 / GHZ; /* of a CTA */
	double run = MIN(at_once, o->stream_k ? tiles * k_tiles : tiles);
	double together = MIN((double)s.per_sm, ceil(run / sms)); /* CTAs of one multiprocessor */
	double busy = MIN(s.warps * together, PARTS) / PARTS;
	double mma = together * o->bm * o->bn * s.bk / (gemm_sm120_packed(o) ? PRODUCTS_4 : PRODUCTS_8) / busy;
	double read = together * s.warps * (s.wm + s.wn) * SM120_SPAN / SHARED_BYTES;
	double l2 = together * s.stage / L2_BYTES * (o->stream_k ? APART : 1);
	double out = together * o->bm * o->bn * cptx_type_bits(o->out) / 8 / OUT_BYTES;

	c->mma_us = steps * MAX(mma, read) * clock;
	c->load_us = steps * MAX(l2, LATENCY / o->stages) * clock;
	c->memory_us = all_bytes(o, &s, p) / (1e3 * MEMORY_GBS);
	c->tail = 1 - tiles * k_tiles / (steps * at_once) * MIN(1.0, at_once / (sms * together));
	/* what one CTA does at the ends of a tile, the other one's products overlap */
	double ends = rounds * (TILE_CLOCKS + out) / together + (o->stream_k ? reduce_clocks(o, tiles, at_once) : 0);
	c->us = LAUNCH_US + gemm_longer(MAX(c->mma_us, c->load_us) + ends * clock, c->memory_us, HINDRANCE);
}

/* The most stages that fit. */
static void offer(gemm_pick *x, cptx_gemm_choice c)
{
	cptx_gemm_problem p = *x->p;

	p.ctas = c.ctas;
	for (c.opt.stages = 16; c.opt.stages > 2 && !cptx_gemm_check(&c.opt, NULL, NULL, NULL);)
		c.opt.stages--;
	if (!cptx_gemm_check_problem(&c.opt, &p, x->sms, NULL, NULL))
		return;
	predict(&c, x->p, x->sms);
	gemm_offer(x, &c);
}

/* As it is, and with tiles shared: by all CTAs, or if there are few tiles by some for each. */
static void offer_all(gemm_pick *x, const cptx_gemm_opt *o)
{
	cptx_gemm_choice c = { .opt = *o };
	double rows = sqrt((double)x->sms * o->bn / o->bm); /* the tiles of a round, as a square of elements */
	uint64_t tiles = up(x->p->m, o->bm) * up(x->p->n, o->bn) * given(x->p->batch);
	uint64_t k_tiles = up(x->p->k, gemm_sm120_shape(o).bk), most = tma_gemm_resident(x->sms, 1, given(o->per_sm));

	c.opt.group = o->group ? o->group : rows < 1 ? 1 : (uint32_t)(rows + 0.5);
	offer(x, c);
	c.opt.stream_k = true;
	offer(x, c);
	for (uint64_t parts = 2; parts <= 8 && parts * 4 <= k_tiles && tiles * parts <= most; parts++) {
		c.ctas = (uint32_t)(tiles * parts);
		offer(x, c);
	}
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
