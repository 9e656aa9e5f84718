/* SPDX-License-Identifier: MIT */
/*
 * v5: two CTAs of a cluster make one tile of 256 rows.  Each has 128 rows of A and of D, and half of B: the tensor cores of
 * both read B from both, so each loads half as much of it.  One thread of the first CTA starts the products.
 *
 * What is new are barriers across the pair.  The copies of both CTAs count at the full barrier of the first (.cta_group::2
 * allows a barrier of the other CTA), which announces the bytes of both; the end of products is told to both by a multicast
 * commit.  Barriers of the cluster stand where those of the CTA stood: behind the setup, so that nobody signals an mbarrier
 * that is not there yet, and in front of the end, so that neither CTA leaves while the other still reads its shared memory.
 */
#include "ring.h"

static void work(const gemm *g, const ring *r)
{
	cptx_kernel *k = g->k;

	CPTX_IF(k, gemm_is(g, g->warp, 0)) {
		CPTX_IF(k, gemm_elect(g)) {
			cptx_pipe_at here = cptx_pipe_producer_of(k, &r->pipe, cptx_imm(0));
			gemm_load_all(g, &r->at, &r->pipe, &here);
		}
	}
	/* warp 1 of the first CTA */
	CPTX_IF(k, gemm_is(g, cptx_mad(k, g->rank, 4, g->warp, .mode = CPTX_LO), 1)) {
		CPTX_IF(k, gemm_elect(g)) {
			cptx_pipe_at here = cptx_pipe_consumer(k, &r->pipe);
			gemm_mma_all(g, r->acc, &r->pipe, &here);
			gemm_commit(g, r->done);
		}
	}
}

static void build(cptx_module *m, const ladder_rung *rung, const ladder_opt *o) { ring_build(m, rung, o, work); }

const ladder_rung rung_v5 = {
	.name = "v5",
	.about = "two CTAs make a tile together",
	.tile = { .m = 2 * ROWS, .n = 256, .k = 64, .stages = 6 },
	.swizzle = CPTX_SWIZZLE_128B,
	.pair = true,
	.staged = true,
	.build = build,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v5, argc, argv); }
#endif
