/*
 * v3: copies run ahead of products.  Shared memory is a ring of stages; the thread that starts everything keeps all but one
 * of them filled, and refills a stage once the products that read it have ended.  That is the stage before the one that it
 * has just started products on, so the tensor cores always have work while it waits.
 */
#include "ladder.h"

/* Starts the copies to the next stage, if there is anything left along K.  fresh: nothing has been there. */
static void fill(const gemm *g, const cptx_pipe *pipe, cptx_pipe_at *here, const gemm_at *at, cptx_val at_k, bool fresh)
{
	cptx_kernel *k = g->k;

	CPTX_IF(k, cptx_setp(k, at_k, g->K, .cmp = CPTX_LT)) {
		if (!fresh)
			cptx_pipe_wait_empty(k, pipe, here);
		cptx_pipe_expect(k, pipe, here, g->stage_bytes);
		gemm_load(g, at, at_k, here->stage, cptx_pipe_full(here));
		cptx_pipe_next(k, pipe, here);
		cptx_add(k, at_k, g->o->k, .into = at_k);
	}
}

static void pipelined(const gemm *g, const cptx_pipe *pipe, const gemm_at *at, cptx_val acc)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at load = cptx_pipe_producer(k, pipe), use = cptx_pipe_consumer(k, pipe);
	cptx_val load_k = cptx_var(k, CPTX_U32, 0), at_k = cptx_var(k, CPTX_U32, 0);

	for (uint32_t i = 1; i < g->o->stages; i++)
		fill(g, pipe, &load, at, load_k, true);
	CPTX_FOR(k, at_k, g->K, g->o->k) {
		cptx_pipe_wait_full(k, pipe, &use);
		gemm_mma(g, acc, use.stage, cptx_setp(k, at_k, 0, .cmp = CPTX_NE));
		gemm_commit(g, cptx_pipe_empty(&use));
		cptx_pipe_next(k, pipe, &use);
		fill(g, pipe, &load, at, load_k, false);
	}
}

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
		CPTX_IF(k, first) {
			pipelined(&g, &pipe, &at, acc.address);
			gemm_commit(&g, done);
		}
		gemm_wait(&g, done, cptx_imm(0));
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		gemm_epilogue(&g, acc.address, &at, NULL);
	}
}

const ladder_rung rung_v3 = {
	.name = "v3",
	.about = "a ring of stages",
	.tile = { .m = ROWS, .n = 128, .k = 64, .stages = 4 },
	.swizzle = CPTX_SWIZZLE_128B,
	.staged = true,
	.build = build,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v3, argc, argv); }
#endif
