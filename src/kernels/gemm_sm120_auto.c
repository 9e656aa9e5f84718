/*
 * Picks the shape of the sm_120a GEMM for a problem, by public figures of the GeForce RTX 5090; none has been measured.
 *
 * All shapes that the rules allow are tried.  A K tile takes the longest of its products, reading their operands from shared
 * memory, which each warp does for its part, its bytes from L2, and what of the time until a copy comes the other stages do
 * not cover; a part for each tile and one for the launch are added.  All together take at least as long as global memory
 * needs.
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
#define LATENCY 1500.0    /* clocks from asking for a stage to having it */
#define TILE_CLOCKS 800.0 /* the ends of a tile that nothing overlaps */
#define OUT_BYTES 32.0    /* of D, a clock */
#define LAUNCH_US 2.5

static double all_bytes(const cptx_gemm_opt *o, const gemm120_shape *s, const cptx_gemm_problem *p)
{
	double m = (double)p->m, n = (double)p->n, k = (double)p->k;
	double in = m * k * tma_gemm_bits(o->a) / 8 + n * k * tma_gemm_bits(o->b) / 8 + (m + n) * k / s->vec;

	return given(p->batch) * (in + m * n * cptx_type_bits(o->out) / 8 * (o->beta ? 2 : 1));
}

static void predict(cptx_gemm_choice *c, const cptx_gemm_problem *p, uint32_t sms)
{
	const cptx_gemm_opt *o = &c->opt;
	gemm120_shape s = gemm_sm120_shape(o);
	double tiles = (double)(up(p->m, o->bm) * up(p->n, o->bn) * given(p->batch)), rounds = ceil(tiles / sms);
	double steps = rounds * (double)up(p->k, s.bk), clock = 1e-3 / GHZ;
	double busy = MIN(s.warps, PARTS) / (double)PARTS;
	double mma = (double)o->bm * o->bn * s.bk / (gemm_sm120_packed(o) ? PRODUCTS_4 : PRODUCTS_8) / busy;
	double read = (double)s.warps * (s.wm + s.wn) * SM120_SPAN / SHARED_BYTES;
	double out = (double)o->bm * o->bn * cptx_type_bits(o->out) / 8 / OUT_BYTES;

	c->mma_us = steps * MAX(mma, read) * clock;
	c->load_us = steps * MAX(s.stage / L2_BYTES, LATENCY / o->stages) * clock;
	c->memory_us = all_bytes(o, &s, p) / (1e3 * MEMORY_GBS);
	c->tail = 1 - tiles / (rounds * sms);
	c->us = LAUNCH_US + MAX(MAX(c->mma_us, c->load_us) + rounds * (TILE_CLOCKS + out) * clock, c->memory_us);
}

static void offer(gemm_pick *x, const cptx_gemm_opt *opt)
{
	cptx_gemm_choice c = { .opt = *opt };
	double rows = sqrt((double)x->sms * opt->bn / opt->bm); /* the tiles of a round, as a square of elements */

	c.opt.stages = 16;
	while (c.opt.stages > 2 && !cptx_gemm_check(&c.opt, NULL, NULL, NULL))
		c.opt.stages--;
	c.opt.group = opt->group ? opt->group : rows < 1 ? 1 : (uint32_t)(rows + 0.5);
	if (!cptx_gemm_check_problem(&c.opt, x->p, x->sms, NULL, NULL))
		return;
	predict(&c, x->p, x->sms);
	gemm_offer(x, &c);
}

void gemm_sm120_simplest(cptx_gemm_opt *o) { o->bm = o->bn = 128, o->warps_m = 4, o->warps_n = 2, o->stages = 2; }

void gemm_sm120_search(gemm_pick *x, cptx_gemm_opt o)
{
	for (o.bm = 128; o.bm >= 64; o.bm /= 2)
		for (o.bn = 128; o.bn >= 64; o.bn /= 2)
			for (o.warps_m = 1; o.warps_m <= o.bm / 32; o.warps_m *= 2)
				for (o.warps_n = 1; o.warps_n <= o.bn / 32; o.warps_n *= 2)
					offer(x, &o);
}
