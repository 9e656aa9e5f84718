/* SPDX-License-Identifier: MIT */
/*
 * v4: a producer warp copies, an MMA warp multiplies.  Each runs its own short loop, and only the two mbarriers of a stage
 * tie them together: nobody waits for products to end but the warp that needs the room, and no test stands in the way of the
 * next tcgen05.mma.  One thread of a warp is enough for either; elect.sync tells the compiler that it is one.
 */
#include "ladder.h"

static void mainloop(gemm *g, const gemm_at *at)
{
	cptx_kernel *k = g->k;

	CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true) {
		cptx_pipe_at here = gemm_producer(g);
		gemm_load_all(g, at, &here);
	}
	CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true) {
		cptx_pipe_at here = cptx_pipe_consumer(k, &g->stages), accs = cptx_pipe_producer(k, &g->accs);
		gemm_multiply_all(g, &here, &accs);
	}
}

const ladder_rung rung_v4 = {
	.name = "v4",
	.about = "warps with roles",
	.tile = { .m = ROWS, .n = 128, .k = 64, .stages = 5 },
	.swizzle = CPTX_SWIZZLE_128B,
	.staged = true,
	.mainloop = mainloop,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v4, argc, argv); }
#endif
