/* SPDX-License-Identifier: MIT */
/* Sums and maxima over a warp and over a CTA, shared by the row kernels. */
#ifndef EXAMPLES_REDUCE_H
#define EXAMPLES_REDUCE_H

#include <cptx/cptx.h>

enum reduction { REDUCE_SUM, REDUCE_MAX };

static inline void combine(cptx_kernel *k, enum reduction op, cptx_val into, cptx_val v)
{
	if (op == REDUCE_SUM)
		cptx_add(k, into, v, .into = into);
	else
		cptx_max(k, into, v, .into = into);
}

/* v, f32, becomes the reduction over `lanes` neighbouring lanes (a power of two). */
static inline void reduce_lanes(cptx_kernel *k, enum reduction op, cptx_val v, int lanes)
{
	for (int mask = lanes / 2; mask; mask /= 2)
		combine(k, op, v, cptx_shfl_sync(k, v, mask, 31, -1, .mode = CPTX_BFLY));
}

/*
 * v becomes the reduction over the CTA, in every thread.  `scratch` holds one f32 per warp and serves one reduction only;
 * `warps` is a power of two up to 32.
 */
static inline void reduce_cta(cptx_kernel *k, enum reduction op, cptx_val v, cptx_val scratch, int warps)
{
	cptx_val tid = cptx_tid_x(k), lane = cptx_and(k, tid, 31), base = cptx_mov(k, scratch);

	reduce_lanes(k, op, v, 32);
	if (warps == 1)
		return;
	cptx_st(k, cptx_mad(k, cptx_shr(k, tid, 5), 4, base, .mode = CPTX_LO), v, .space = CPTX_SHARED,
	        .when = cptx_setp(k, lane, 0, .cmp = CPTX_EQ));
	cptx_bar_sync(k, 0);
	cptx_val mine = cptx_mad(k, cptx_and(k, lane, warps - 1), 4, base, .mode = CPTX_LO);
	cptx_ld(k, mine, .space = CPTX_SHARED, .type = CPTX_F32, .into = v);
	reduce_lanes(k, op, v, warps);
}

#endif
