/* SPDX-License-Identifier: MIT */
/*
 * From accumulators in tensor memory to D, by the chain and the ring of <cptx/epilogue.h>.
 *
 * An epilogue warp has 32 rows of the tile, each thread one.  It loads up to 32 columns at once, and TMA stores its results
 * from a ring of the warp's own.  The accumulator is released as soon as its last columns have been loaded.
 *
 * With stream_k a cluster that does not begin a tile stores its accumulator as partial sums in place of D, and the one that
 * does adds those of the others to its columns (gemm/tma/reduce.c).
 */
#include "gemm/sm100/gemm.h"

/* What the steps of an epilogue warp share. */
typedef struct tile_out {
	const gemm100 *g;
	cptx_pipe_at at; /* of the accumulators */
	cptx_acc acc;
	cptx_epilogue_ring ring;
	tma_gemm_sums sums;
	cptx_val sums_end; /* as tma_gemm_wait_for_partials gives it */
} tile_out;

/* Releases the accumulator behind the load of its last columns. */
static void release(const tile_out *x, uint32_t end)
{
	const gemm100 *g = x->g;

	if (end == g->o->bn)
		cptx_pipe_release(g->k, &g->accs, &x->at, g->elected);
}

/* Columns that come from tensor memory on their way to D. */
static void loaded(cptx_kernel *k, void *user, uint32_t first, const cptx_acc *part)
{
	const tile_out *x = (const tile_out *)user;

	release(x, first + part->n);
	if (x->g->o->stream_k)
		tma_gemm_add_partials(k, &x->g->w, &x->sums, x->sums_end, first, part->regs);
}

/* Columns that tensor memory gives at once. */
static uint32_t columns_at_once(const gemm100 *g) { return g->o->bn % 32 ? 16 : 32; }

static void store_tile(tile_out *x)
{
	const gemm100 *g = x->g;

	if (!tma_gemm_is_map(&g->t, CPTX_GEMM_MAP_D)) {
		tma_gemm_store_tmem(g->k, &g->t, &g->w, &x->acc, columns_at_once(g), loaded, x);
		return;
	}
	cptx_epilogue e = tma_gemm_chain(g->k, &g->t, &g->w, &x->acc);

	cptx_epilogue_dst to = tma_gemm_dst(&g->t, &g->w);
	to.loaded = loaded, to.user = x;
	cptx_epilogue_store_tma_(g->k, CPTX_HERE, &e, &x->ring, &to);
}

static void store_partials(tile_out *x)
{
	const gemm100 *g = x->g;

	tma_gemm_store_partials_tmem(g->k, &g->w, &x->sums, &x->acc, columns_at_once(g));
	release(x, g->o->bn);
	tma_gemm_flag_partials(g->k, &g->w, &x->sums, g->elected);
}

static void finish_or_store_partials(tile_out *x)
{
	const gemm100 *g = x->g;
	cptx_kernel *k = g->k;

	x->sums = tma_gemm_sums_of(k, &g->t, &g->w, EPILOGUE_WARPS, CPTX_WARP, g->roles.warp, g->roles.lane);
	CPTX_IF(k, cptx_tiles_finishes(k, &g->w.sched, &g->w.here)) {
		x->sums_end = tma_gemm_wait_for_partials(k, &g->w, &x->sums, g->elected);
		store_tile(x);
	}
	CPTX_ELSE(k)
		store_partials(x);
}

void gemm_sm100_epilogue(gemm100 *g)
{
	cptx_kernel *k = g->k;
	tile_out x = { .g = g };

	x.at = g->s.ctas > 1 ? cptx_pipe_consumer_of(k, &g->accs, g->w.leader) : cptx_pipe_consumer(k, &g->accs);
	cptx_acc_in_tmem(k, &g->mma, &x.acc, g->tmem.address);
	const bool by_tma = tma_gemm_is_map(&g->t, CPTX_GEMM_MAP_D);
	if (by_tma)
		cptx_epilogue_ring_new(k, &x.ring, .type = g->o->out, .tile = g->s.d, .stages = STORE_STAGES,
		                       .units = EPILOGUE_WARPS, .unit = g->roles.warp, .smem = g->smem_d, .acc = &x.acc);
	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, MAPS_OF_D);
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_WAIT_SUMS, g->elected);
		cptx_pipe_wait_full(k, &g->accs, &x.at);
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_EPILOGUE, g->elected);
		x.acc = gemm_sm100_accumulator(g, &x.at);
		if (g->o->stream_k)
			finish_or_store_partials(&x);
		else
			store_tile(&x);
		cptx_pipe_next(k, &g->accs, &x.at);
	}
	cptx_timeline_stamp_when(k, &g->line, CPTX_TIMELINE_END, g->elected);
	if (by_tma)
		cptx_epilogue_ring_drain(k, &x.ring, &x.acc); /* shared memory ends with the CTA */
}
