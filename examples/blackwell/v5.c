/*
 * v5: two CTAs of a cluster make one tile of 256 rows.  Each has 128 rows of A and of D, and half of B: the tensor cores of
 * both read B from both, so each loads half as much of it.  One thread of the first CTA starts the products.
 *
 * What is new are barriers across the pair.  The copies of both CTAs count at the full barrier of the first (.cta_group::2
 * allows a barrier of the other CTA), which announces the bytes of both; the end of products is told to both by a multicast
 * commit.  Barriers of the cluster stand where those of the CTA stood: behind the setup, so that nobody signals an mbarrier
 * that is not there yet, and in front of the end, so that neither CTA leaves while the other still reads its shared memory.
 */
#include "ladder.h"

static void build(cptx_module *m, const ladder_rung *rung, const ladder_opt *o)
{
	gemm g = gemm_begin(m, rung, o, 128);
	cptx_kernel *k = g.k;
	cptx_val done = cptx_shared(k, CPTX_B64, 1), first = gemm_is(&g, g.tid, 0);
	gemm_at at = gemm_at_ctaid(&g, cptx_ctaid_x(k), cptx_ctaid_y(k));
	cptx_pipe pipe;
	cptx_tmem acc;

	cptx_pipe_new(k, &pipe, .stages = o->stages);
	cptx_mbarrier_init(k, done, 1, .space = CPTX_SHARED, .when = first);
	cptx_pipe_prepare(k, &pipe, first);
	CPTX_TMEM(k, &acc, .columns = o->n, .ctas = 2, .warp = gemm_is(&g, g.warp, 1))
	{
		CPTX_IF(k, gemm_is(&g, g.warp, 0)) {
			CPTX_IF(k, gemm_elect(&g)) {
				cptx_pipe_at here = cptx_pipe_producer_of(k, &pipe, cptx_imm(0));
				gemm_load_all(&g, &at, &pipe, &here);
			}
		}
		/* warp 1 of the first CTA */
		CPTX_IF(k, gemm_is(&g, cptx_mad(k, g.rank, 4, g.warp, .mode = CPTX_LO), 1)) {
			CPTX_IF(k, gemm_elect(&g)) {
				cptx_pipe_at here = cptx_pipe_consumer(k, &pipe);
				gemm_mma_all(&g, acc.address, &pipe, &here);
				gemm_commit(&g, done);
			}
		}
		gemm_wait(&g, done, cptx_imm(0));
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		gemm_epilogue(&g, acc.address, &at, NULL);
	}
}

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
