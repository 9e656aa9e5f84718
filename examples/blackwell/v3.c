/* SPDX-License-Identifier: MIT */
/*
 * v3: copies run ahead of products.  Shared memory is a ring of stages; the thread that starts everything keeps all but one
 * of them filled, and refills a stage once the products that read it have ended.  That is the stage before the one that it
 * has just started products on, so the tensor cores always have work while it waits.
 */
#include "ladder.h"

#include <cptx/cptx.h>

/* Starts the copies to the next stage, if there is anything left along K. */
static void fill(const gemm *g, const gemm_at *at, cptx_val at_k, cptx_pipe_at *to)
{
	cptx_kernel *k = g->k;

	CPTX_IF(k, cptx_setp(k, at_k, g->K, .cmp = CPTX_LT)) {
		gemm_load(g, at, at_k, to);
		cptx_add(k, at_k, g->o->k, .into = at_k);
	}
}

static void mainloop(gemm *g, const gemm_at *at)
{
	cptx_kernel *k = g->k;

	CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true) {
		cptx_pipe_at to = gemm_producer(g), from = cptx_pipe_consumer(k, &g->stages), accs = cptx_pipe_producer(k, &g->accs);
		cptx_val load_k = cptx_var(k, CPTX_U32, 0), at_k = cptx_var(k, CPTX_U32, 0);
		cptx_acc acc = gemm_acc(g, &accs);
		for (uint32_t i = 1; i < g->o->stages; i++)
			fill(g, at, load_k, &to);
		CPTX_FOR(k, at_k, g->K, g->o->k) {
			gemm_multiply(g, &acc, at_k, &from);
			fill(g, at, load_k, &to);
		}
		gemm_commit(g, &accs);
	}
}

const ladder_rung rung_v3 = {
	.name = "v3",
	.about = "a ring of stages",
	.tile = { .m = ROWS, .n = 128, .k = 64, .stages = 4 },
	.swizzle = CPTX_SWIZZLE_128B,
	.staged = true,
	.mainloop = mainloop,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v3, argc, argv); }
#endif
