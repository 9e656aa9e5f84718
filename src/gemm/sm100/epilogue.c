/* SPDX-License-Identifier: MIT */
/*
 * From accumulators in tensor memory to D, by the chain and the ring of <cptx/epilogue.h>.
 *
 * An epilogue warp has 32 rows of the tile, each thread one.  It loads a subtile of columns at once, and TMA stores its
 * results from a ring of the warp's own.  The accumulator is released as soon as its last subtile has been loaded.
 *
 * With stream_k a cluster that does not begin a tile stores its accumulator as partial sums in place of D, and the one that
 * does adds those of the others to each subtile (gemm/tma/reduce.c).
 */
#include "gemm/sm100/gemm.h"

enum { SUBTILE = 32 /* columns at most: with more ptxas runs short of registers beside one another */ };

/* What the subtiles of a tile share. */
typedef struct tile_out {
	cptx_pipe_at at; /* of the accumulators */
	cptx_acc acc;
	cptx_epilogue chain;
	cptx_epilogue_ring ring;
	tma_gemm_sums sums;
	cptx_val sums_end; /* as tma_gemm_wait_for_partials gives it */
} tile_out;

/* All subtiles of the CTA's tile: to D, or as partial sums to the workspace. */
static void store_tile(const gemm100 *g, tile_out *x, bool partial)
{
	cptx_kernel *k = g->k;
	const bool swap = g->o->swap;
	const uint32_t n = MIN(SUBTILE, g->s.d.cols);

	for (uint32_t col = 0; col < g->o->bn; col += n) {
		cptx_acc part;
		cptx_acc_load(k, &x->acc, col, n, &part);
		if (col + n == g->o->bn) {
			cptx_tcgen05_fence(k, .op = CPTX_FENCE_BEFORE_THREAD_SYNC);
			cptx_pipe_release(k, &g->accs, &x->at, g->elected);
		}
		if (partial) {
			tma_gemm_store_partials(k, &g->w, &x->sums, col, part.regs);
			continue;
		}
		if (g->o->stream_k)
			tma_gemm_add_partials(k, &g->w, &x->sums, x->sums_end, col, part.regs);
		cptx_epilogue_run(k, &x->chain, &part, .row = swap ? g->w.n0 : g->w.m0, .col = swap ? g->w.m0 : g->w.n0,
		                  .at_store = true);
		cptx_epilogue_store_tma(k, &x->chain, &x->ring, .z = g->w.z, .map = g->w.p.map[CPTX_GEMM_MAP_D]);
	}
	if (partial)
		tma_gemm_flag_partials(k, &g->w, &x->sums, g->elected);
}

static void finish_or_store_partials(const gemm100 *g, tile_out *x)
{
	cptx_kernel *k = g->k;

	x->sums = tma_gemm_sums_of(k, &g->t, &g->w, EPILOGUE_WARPS, CPTX_WARP, g->roles.warp, g->roles.lane);
	CPTX_IF(k, cptx_tiles_finishes(k, &g->w.sched, &g->w.here)) {
		x->sums_end = tma_gemm_wait_for_partials(k, &g->w, &x->sums, g->elected);
		store_tile(g, x, false);
	}
	CPTX_ELSE(k)
		store_tile(g, x, true);
}

void gemm_sm100_epilogue(gemm100 *g)
{
	cptx_kernel *k = g->k;
	tile_out x = { .at = g->s.ctas > 1 ? cptx_pipe_consumer_of(k, &g->accs, g->leader) : cptx_pipe_consumer(k, &g->accs) };

	cptx_acc_in_tmem(k, &g->mma, &x.acc, g->tmem.address);
	cptx_epilogue_ring_new(k, &x.ring, .type = g->o->out, .tile = g->s.d, .stages = STORE_STAGES, .units = EPILOGUE_WARPS,
	                       .unit = g->roles.warp, .smem = g->smem_d, .acc = &x.acc);
	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, MAPS_OF_D);
		tma_gemm_chain(k, &g->t, &g->w, &x.chain);
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_WAIT_SUMS, g->elected);
		cptx_pipe_wait_full(k, &g->accs, &x.at);
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_BRING_OUT, g->elected);
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		x.acc = gemm_sm100_accumulator(g, &x.at), x.acc.fenced = true;
		if (g->o->stream_k)
			finish_or_store_partials(g, &x);
		else
			store_tile(g, &x, false);
		cptx_pipe_next(k, &g->accs, &x.at);
	}
	cptx_timeline_stamp_when(k, &g->line, CPTX_TIMELINE_END, g->elected);
	cptx_epilogue_ring_drain(k, &x.ring, &x.chain.acc); /* shared memory ends with the CTA */
}
