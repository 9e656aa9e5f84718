/* SPDX-License-Identifier: MIT */
/*
 * The candidates of the GEMM for few rows, and what they cost on the chip of the target.
 *
 * The time is that of reading B, and A once for each CTA from L2, as long as enough loads are under way: a multiprocessor
 * needs those of LATENCY_US at its share of the memory's rate.  CTAs beyond what is resident at once come in a further
 * round.
 */
#include "gemm/auto.h"
#include "gemm/gemv/gemm.h"

#include <math.h>

/* Not fitted: of an H200's latency under load, and of launches there. */
#define LATENCY_US 1.0
#define LAUNCH_US 2.5
#define END_US 1.0      /* sums through shared memory, and the first loads */
#define L2_TIMES 2.5    /* what L2 gives, by the memory's rate */
#define PRODUCTS 1024.0 /* a clock, where the chip does not say */

/* CTAs that a multiprocessor holds at once, by registers that the sums and loads take. */
static double resident(const gemv_shape *s)
{
	const uint32_t sums = s->atoms_n * s->atoms_m * (s->group ? 8 : 4),
				   loads = s->steps * (s->vec ? 8 * s->vec : 8 * s->atoms_n);
	const uint32_t regs = MIN(40 + sums + loads, (uint32_t)CPTX_REGS_PER_THREAD), threads = s->warps * CPTX_WARP;

	return MAX(MIN(CPTX_REGS_PER_SM / (regs * threads), 2048 / threads), 1u);
}

static void predict(cptx_gemm_choice *c, const gemm_pick *x, const tma_gemm *t)
{
	const cptx_gemm_opt *o = &c->opt;
	const gemv_shape s = gemv_shape_of(o);
	const double m = (double)x->p->m, n = (double)x->p->n, k = (double)x->p->k, batch = given(x->p->batch);
	const double tiles = (double)(tma_gemm_tiles(t, x->p) * given(x->p->batch)), sms = x->sms,
				 rate = 1e3 * x->chip->memory_gbs;
	const double slots = sms * resident(&s), rounds = tiles > slots ? tiles / slots : 1;
	const double of_sm = MIN(resident(&s), ceil(tiles / sms)), busy = MIN(tiles, sms) / sms;
	const double under_way =
		of_sm * s.warps * CPTX_WARP * s.steps * GEMV_CHUNK * (s.vec ? s.each * 2.0 * s.vec / 8 : 2.0 * s.atoms_n);
	const double filled = MIN(1.0, busy * under_way / (LATENCY_US * rate / sms));
	const double bytes = batch * ((n * k * s.bits + m * k * 16) / 8 + m * n * cptx_type_bits(o->out) / 8);
	const double clocks = given((uint32_t)x->chip->products) > 1 ? x->chip->products : PRODUCTS;

	c->memory_us = bytes / rate;
	c->load_us = tiles * o->bm * k * 2 / (L2_TIMES * rate);
	c->mma_us = batch * (double)up(x->p->m, GEMV_COLS) * GEMV_COLS * n * k / (clocks * sms * x->chip->ghz * 1e3);
	c->tail = 1 - rounds / ceil(rounds) * busy;
	c->us = LAUNCH_US + END_US + gemm_longer(MAX(c->memory_us / filled * ceil(rounds) / rounds, c->mma_us), c->load_us, 4);
}

const gemm_model gemm_gemv_model = { .chips = gemm_sync_chips,
	                                 .chip_count = GEMM_SYNC_CHIPS,
	                                 .axes = { GEMM_AXIS(bm, 8, 8, 64, 0), GEMM_AXIS(warps_n, 1, 1, 2, 0),
	                                           GEMM_AXIS(bn, 64, 16, 128, 0), GEMM_AXIS(warps_m, 8, 2, 16, 0),
	                                           GEMM_AXIS(bk, 128, 32, 512, 0) },
	                                 .no_ring = true,
	                                 .predict = predict };
