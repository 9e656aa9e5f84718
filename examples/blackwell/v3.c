/* SPDX-License-Identifier: MIT */
/*
 * v3: copies run ahead of products.  Shared memory is a ring of stages; the thread that starts everything keeps all but one
 * of them filled, and refills a stage once the products that read it have ended.  That is the stage before the one that it
 * has just started products on, so the tensor cores always have work while it waits.
 */
#include "ring.h"

/* Starts the copies to the next stage, if there is anything left along K.  fresh: nothing has been there. */
static void fill(const gemm *g, const ring *r, cptx_pipe_at *here, cptx_val at_k, bool fresh)
{
	cptx_kernel *k = g->k;

	CPTX_IF(k, cptx_setp(k, at_k, g->K, .cmp = CPTX_LT)) {
		if (!fresh)
			cptx_pipe_wait_empty(k, &r->pipe, here);
		cptx_pipe_expect(k, &r->pipe, here, g->stage_bytes);
		gemm_load(g, &r->at, at_k, here->stage, cptx_pipe_full(here));
		cptx_pipe_next(k, &r->pipe, here);
		cptx_add(k, at_k, g->o->k, .into = at_k);
	}
}

static void work(const gemm *g, const ring *r)
{
	cptx_kernel *k = g->k;

	CPTX_IF(k, gemm_is(g, g->tid, 0)) {
		cptx_pipe_at load = cptx_pipe_producer(k, &r->pipe), use = cptx_pipe_consumer(k, &r->pipe);
		cptx_val load_k = cptx_var(k, CPTX_U32, 0), at_k = cptx_var(k, CPTX_U32, 0);
		for (uint32_t i = 1; i < g->o->stages; i++)
			fill(g, r, &load, load_k, true);
		CPTX_FOR(k, at_k, g->K, g->o->k) {
			cptx_pipe_wait_full(k, &r->pipe, &use);
			gemm_mma(g, r->acc, use.stage, cptx_setp(k, at_k, 0, .cmp = CPTX_NE));
			gemm_commit(g, cptx_pipe_empty(&use));
			cptx_pipe_next(k, &r->pipe, &use);
			fill(g, r, &load, load_k, false);
		}
		gemm_commit(g, r->done);
	}
}

static void build(cptx_module *m, const ladder_rung *rung, const ladder_opt *o) { ring_build(m, rung, o, work); }

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
