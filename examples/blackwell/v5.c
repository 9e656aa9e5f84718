/* SPDX-License-Identifier: MIT */
/*
 * v5: two CTAs of a cluster make one tile of 256 rows.  Each has 128 rows of A and of D, and half of B: the tensor cores of
 * both read B from both, so each loads half as much of it.  One thread of the first CTA starts the products.
 *
 * Barriers across the pair are new.  The copies of both CTAs count at the full barrier of the first (.cta_group::2
 * allows a barrier of the other CTA), which announces the bytes of both; the end of products is told to both by a multicast
 * commit.  Barriers of the cluster stand where those of the CTA stood: behind the setup, so that nobody signals an mbarrier
 * that is not there yet, and in front of the end, so that neither CTA leaves while the other still reads its shared memory.
 */
#include "ladder.h"

#include <cptx/cptx.h>

static void mainloop(gemm *g, const gemm_at *at)
{
	cptx_kernel *k = g->k;

	CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true) {
		cptx_pipe_at here = gemm_producer(g);
		gemm_load_all(g, at, &here);
	}
	CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true) {
		CPTX_IF(k, cptx_setp(k, g->rank, 0, .cmp = CPTX_EQ)) {
			cptx_pipe_at here = cptx_pipe_consumer(k, &g->stages), accs = cptx_pipe_producer(k, &g->accs);
			gemm_multiply_all(g, &here, &accs);
		}
	}
}

const ladder_rung rung_v5 = {
	.name = "v5",
	.about = "two CTAs make a tile together",
	.tile = { .m = 2 * ROWS, .n = 256, .k = 64, .stages = 6 },
	.swizzle = CPTX_SWIZZLE_128B,
	.pair = true,
	.staged = true,
	.mainloop = mainloop,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v5, argc, argv); }
#endif
