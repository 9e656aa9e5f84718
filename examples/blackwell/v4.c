/* SPDX-License-Identifier: MIT */
/*
 * v4: one warp loads, another multiplies.  Each runs its own short loop, and only the two mbarriers of a stage tie them
 * together: nobody waits for products to end but the warp that needs the room, and no test stands in the way of the next
 * tcgen05.mma.  One thread of a warp is enough for either; elect.sync tells the compiler that it is one.
 */
#include "ring.h"

static void work(const gemm *g, const ring *r)
{
	cptx_kernel *k = g->k;

	CPTX_IF(k, gemm_is(g, g->warp, 0)) {
		CPTX_IF(k, gemm_elect(g)) {
			cptx_pipe_at here = cptx_pipe_producer(k, &r->pipe);
			gemm_load_all(g, &r->at, &r->pipe, &here);
		}
	}
	CPTX_IF(k, gemm_is(g, g->warp, 1)) {
		CPTX_IF(k, gemm_elect(g)) {
			cptx_pipe_at here = cptx_pipe_consumer(k, &r->pipe);
			gemm_mma_all(g, r->acc, &r->pipe, &here);
			gemm_commit(g, r->done);
		}
	}
}

static void build(cptx_module *m, const ladder_rung *rung, const ladder_opt *o) { ring_build(m, rung, o, work); }

const ladder_rung rung_v4 = {
	.name = "v4",
	.about = "warps with roles",
	.tile = { .m = ROWS, .n = 128, .k = 64, .stages = 5 },
	.swizzle = CPTX_SWIZZLE_128B,
	.staged = true,
	.build = build,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v4, argc, argv); }
#endif
