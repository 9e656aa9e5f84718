/* SPDX-License-Identifier: MIT */
/*
 * The sm_120a GEMM's candidates, and what they cost by public figures (gemm/chips.c); none has been measured.
 *
 * The products of a K tile take as long as the tensor cores need, or as each warp needs to read its operands from shared
 * memory.
 */
#include "gemm/auto.h"
#include "gemm/sm120/gemm.h"

#define TILE_CLOCKS 800.0 /* the ends of a tile that nothing overlaps */
#define OUT_BYTES 32.0    /* of D, a clock */

static void predict(cptx_gemm_choice *c, const gemm_pick *x, const tma_gemm *t)
{
	const cptx_gemm_opt *o = &c->opt;
	const gemm120_shape s = gemm_sm120_shape(o);
	const gemm_rounds r = gemm_rounds_of(t, c, x);
	const double busy = MIN(s.warps * r.together, CPTX_SM_PARTS) / CPTX_SM_PARTS;
	const double rate = x->products * (gemm_sm120_packed(o) ? 4 : 1) * busy, tile = (double)o->bm * o->bn;
	const gemm_clocks clocks = { .mma = MAX(r.together * tile * s.bk / rate,
		                                    gemm_shared_clocks(r.together * s.warps * (s.wm + s.wn) * SM120_SPAN)),
		                         .load = gemm_l2_clocks(o, r.together * s.stage),
		                         .tile = TILE_CLOCKS + r.together * tile * cptx_type_bits(o->out) / 8 / OUT_BYTES,
		                         .sums = tile * 4 };

	gemm_roofline(c, x, &r, &clocks);
}

const gemm_model gemm_sm120_model = { .by = GEMM_BY_SCALED,
	                                  .axes = { GEMM_AXIS(bm, 128, 128, 64, -64), GEMM_AXIS(bn, 128, 128, 64, -64),
	                                            GEMM_AXIS(warps_m, 4, 1, 4, 0), GEMM_AXIS(warps_n, 2, 1, 4, 0),
	                                            GEMM_AXIS(per_sm, 1, 1, 2, 1) },
	                                  .predict = predict };
