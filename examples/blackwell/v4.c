/*
 * v4: one warp loads, another multiplies.  Each runs its own short loop, and only the two mbarriers of a stage tie them
 * together: nobody waits for products to end but the warp that needs the room, and no test stands in the way of the next
 * tcgen05.mma.  One thread of a warp is enough for either; elect.sync tells the compiler that it is one.
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
	CPTX_TMEM(k, &acc, .columns = o->n, .warp = gemm_is(&g, g.warp, 1))
	{
		CPTX_IF(k, gemm_is(&g, g.warp, 0)) {
			CPTX_IF(k, gemm_elect(&g)) {
				cptx_pipe_at here = cptx_pipe_producer(k, &pipe);
				gemm_load_all(&g, &at, &pipe, &here);
			}
		}
		CPTX_IF(k, gemm_is(&g, g.warp, 1)) {
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
