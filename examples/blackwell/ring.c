/* SPDX-License-Identifier: MIT */
/*
 * The kernel of the rungs v3 to v5.  All threads set up, some start copies and products, all wait for the end, and the four
 * warps bring the accumulator out.
 */
#include "ring.h"

void ring_build(cptx_module *m, const ladder_rung *rung, const ladder_opt *o, void (*work)(const gemm *g, const ring *r))
{
	gemm g = gemm_begin(m, rung, o, 128);
	cptx_kernel *k = g.k;
	cptx_val first = gemm_is(&g, g.tid, 0);
	cptx_tmem acc;
	cptx_val x = cptx_ctaid_x(k), y = cptx_ctaid_y(k);
	ring r = { .at = gemm_at_ctaid(&g, x, y), .done = cptx_shared(k, CPTX_B64, 1) };

	cptx_pipe_new(k, &r.pipe, .stages = o->stages);
	cptx_mbarrier_init(k, r.done, 1, .space = CPTX_SHARED, .when = first);
	cptx_pipe_prepare(k, &r.pipe, first);
	CPTX_TMEM(k, &acc, .columns = o->n, .ctas = rung->pair ? 2 : 1, .warp = gemm_is(&g, g.warp, 1)) {
		r.acc = acc.address;
		work(&g, &r);
		gemm_wait(&g, r.done, cptx_imm(0));
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		gemm_epilogue(&g, acc.address, &r.at, NULL);
	}
}
