/* SPDX-License-Identifier: MIT */
/*
 * The mainloop of the rungs v1a to v2b, which differ in how tiles lie in shared memory and how they get there.
 *
 * One thread starts the copies of a tile of A and of B, waits for their bytes, starts the products, and waits for those
 * before it copies over what they read.  Then four warps, 32 lanes of tensor memory each, store the accumulator.
 */
#include "ladder.h"

void serial_mainloop(gemm *g, const gemm_at *at)
{
	cptx_kernel *k = g->k;

	CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true) {
		cptx_pipe_at to = gemm_producer(g), from = cptx_pipe_consumer(k, &g->stages), accs = cptx_pipe_producer(k, &g->accs);
		cptx_val at_k = cptx_var(k, CPTX_U32, 0);
		cptx_acc acc = gemm_acc(g, &accs);
		CPTX_FOR(k, at_k, g->K, g->o->k) {
			gemm_load(g, at, at_k, &to);
			gemm_multiply(g, &acc, at_k, &from);
		}
		gemm_commit(g, &accs);
	}
}
