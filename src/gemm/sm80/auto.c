/* SPDX-License-Identifier: MIT */
/*
 * The candidates of the GEMM by mma.sync, and what they cost on the chip of the target.
 *
 * The products of a K tile take as long as the tensor cores need, of which a warp keeps a quarter of a multiprocessor busy,
 * and as shared memory needs to be written by TMA or cp.async and read by each warp for its part; both hinder each other.
 * cp.async takes issue slots of the warps that multiply besides.  As many CTAs are on a multiprocessor as a launch will find
 * to fit.
 */
#include "gemm/auto.h"
#include "gemm/sm80/gemm.h"

#include <cptx/inspect.h>

enum { STAGES = 8 /* most that are tried */ };

/* Fitted to 26 measured times of 10 shapes on an H200 (bench/RESULTS.md), of which they are 2.6 % off in the mean square; of
 * other chips nothing is measured, and these count for them too. */
#define K_TILE_CLOCKS 40.0 /* of a K tile that nothing overlaps: its barrier */
#define COPY_CLOCKS 1.25   /* of a warp's cp.async of 16 bytes a thread */
#define TILE_CLOCKS 1400.0 /* the ends of a tile that nothing overlaps */
#define OUT_BYTES 32.0     /* of D, a clock */
#define HINDRANCE 7.0      /* gemm_longer() */
#define SHARING 5.0        /* times the accumulators of a shared tile: 4096 cubed lost 2.5 % by stream-K */

/* CTAs of a multiprocessor, by the estimate of registers, which setmaxnreg lets one CTA have in any case; 0: not one fits.
 */
static uint32_t resident(const cptx_gemm_opt *o, const cptx_target *t)
{
	cptx_gemm_plan plan;
	cptx_occupancy fits = { 0 };

	if (!cptx_gemm_check(o, t, &plan, NULL))
		return 0;
	cptx_occupancy_of(t, MIN(plan.regs, (uint32_t)CPTX_REGS_PER_THREAD), plan.smem, plan.threads, &fits);
	return MAX(fits.ctas, 1u);
}

/* With another stage fewer CTAs would fit.  Stages of 256 bytes along K are not tried. */
static bool suits(const cptx_gemm_opt *o, const cptx_target *target)
{
	cptx_gemm_opt more = *o;

	more.stages++;
	return o->bk * gemm_sm80_shape(o).in_bytes <= 128 &&
	       (o->stages == STAGES || resident(&more, target) < resident(o, target));
}

static void predict(cptx_gemm_choice *c, const gemm_pick *x, const tma_gemm *t)
{
	const cptx_gemm_opt *o = &c->opt;
	const gemm80_shape s = gemm_sm80_shape(o);
	tma_gemm of = *t;

	of.per_sm = o->stream_k || o->timeline ? 1 : resident(o, x->target);
	const gemm_rounds r = gemm_rounds_of(&of, c, x);
	const double warps = s.warps * r.together, tile = (double)o->bm * o->bn * r.together, stage = s.stage * r.together;
	const double along_k = (double)tma_gemm_along_a(o, o->bk); /* of A, which a product takes the time of */
	const double busy = warps / (divide_up((uint64_t)warps, CPTX_SM_PARTS) * CPTX_SM_PARTS);
	const double mma = o->a == CPTX_F64 ? tile * along_k / x->chip.doubles / busy
	                                    : tile * along_k * s.in_bytes / 2 / x->products / busy; /* of 16 bits */
	const double shared = gemm_shared_clocks(stage + warps * (s.wm * along_k + (double)s.wn * o->bk) * s.in_bytes);
	const double copies = o->tma ? 0 : stage / 16 / CPTX_WARP * COPY_CLOCKS;
	const gemm_clocks clocks = { .mma = gemm_longer(mma, shared, HINDRANCE) + copies + K_TILE_CLOCKS,
		                         .load = gemm_l2_clocks(o, stage),
		                         .tile = TILE_CLOCKS + tile * s.out_bytes / OUT_BYTES,
		                         .sums = SHARING * o->bm * o->bn * 4 };

	gemm_roofline(c, x, &r, &clocks);
}

const gemm_model gemm_sm80_model = { .by = GEMM_BY_SYNC,
	                                 .axes = { GEMM_AXIS(tma, GEMM_AS_GIVEN, true, false, -1), GEMM_AXIS(bm, 64, 16, 256, 0),
	                                           GEMM_AXIS(bn, 64, 32, 256, 0), GEMM_AXIS(bk, 64, 16, 128, 0),
	                                           GEMM_AXIS(warps_m, 2, 1, 4, 0), GEMM_AXIS(warps_n, 2, 1, 4, 0),
	                                           GEMM_AXIS(stages, 2, 2, STAGES, 1) },
	                                 .stages_are_an_axis = true,
	                                 .suits = suits,
	                                 .predict = predict };
