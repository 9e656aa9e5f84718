/* SPDX-License-Identifier: MIT */
/*
 * The kernel of v6 and v7: pairs of CTAs that compute one tile after the other.  Four warps store, one thread has TMA copy,
 * and one of the first CTA starts products; each runs the scheduler's loop on its own.
 */
#include "ladder.h"

#include <cptx/cptx.h>

static void produce(gemm *g)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at here = gemm_producer(g);
	cptx_val releases = CPTX_NONE_;
	cptx_tiles_at t;

	if (g->cancels) /* in the first CTA the MMA warp does */
		releases = cptx_setp(k, g->rank, 0, .cmp = CPTX_NE);
	CPTX_TILES(k, &g->tiles, &t, .asks = g->cancels, .release = releases)
	{
		gemm_at at = gemm_place(g, &t);
		gemm_load_all(g, &at, &here);
	}
}

static void multiply(gemm *g)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at here = cptx_pipe_consumer(k, &g->stages), accs = cptx_pipe_producer(k, &g->accs);
	cptx_tiles_at t;

	CPTX_TILES(k, &g->tiles, &t)
	{
		cptx_timeline_stamp(k, &g->line, CPTX_GEMM_WAIT_ROOM);
		cptx_pipe_wait_empty(k, &g->accs, &accs);
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		gemm_multiply_all(g, &here, &accs);
		cptx_timeline_stamp(k, &g->line, CPTX_TIMELINE_END);
	}
}

static void store(gemm *g)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at accs = cptx_pipe_consumer_of(k, &g->accs, cptx_imm(0));
	cptx_tiles_at t;

	CPTX_TILES(k, &g->tiles, &t, .warp = g->cancels, .release = g->cancels ? g->lane_0 : CPTX_NONE_)
	{
		gemm_at at = gemm_place(g, &t);
		gemm_store(g, &at, &accs);
	}
	cptx_timeline_stamp_when(k, &g->line, CPTX_TIMELINE_END, g->lane_0);
	if (g->rung->store_map)
		cptx_epilogue_ring_drain(k, &g->ring, &g->epilogue.acc);
}

void persistent_build(gemm *g)
{
	cptx_kernel *k = g->k;

	CPTX_ROLE(k, &g->roles, .warps = 4)
		store(g);
	CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true)
		produce(g);
	CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true)
		CPTX_IF(k, cptx_setp(k, g->rank, 0, .cmp = CPTX_EQ))
			multiply(g);
}
