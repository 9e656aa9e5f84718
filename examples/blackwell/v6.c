/*
 * v6: as many pairs of CTAs as the GPU has room for, and each makes one tile after the other.  Setting up is paid for once.
 * Tensor memory holds two accumulators, so the products of the next tile run while four warps of their own bring this one
 * out; a second pipeline, of accumulators, ties the two together as the first ties copies and products.
 *
 * Accumulators are handed over by the commit, to both CTAs, and handed back by the 8 warps that read them, 4 in each CTA, to
 * the first.  Which tiles a pair makes is fixed: its own number, and on by the number of pairs.
 */
#include "ladder.h"

enum { READERS = 4 /* warps */, LOADER = READERS, MULTIPLIER, WARPS, BUFFERS = 2 };

typedef struct shared_parts {
	cptx_pipe stages, accs;
	cptx_tmem tmem;
} shared_parts;

static cptx_val first_tile(const gemm *g) { return cptx_var(g->k, CPTX_U32, cptx_clusterid_x(g->k)); }

static cptx_val accumulator(const gemm *g, const shared_parts *s, const cptx_pipe_at *here)
{
	return cptx_mad(g->k, here->stage, g->o->n, s->tmem.address, .mode = CPTX_LO);
}

static void load(const gemm *g, const shared_parts *s)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at here = cptx_pipe_producer_of(k, &s->stages, cptx_imm(0));
	cptx_val tile = first_tile(g);

	CPTX_FOR(k, tile, gemm_tiles(g), cptx_nclusterid_x(k)) {
		gemm_at at = gemm_at_tile(g, tile);
		gemm_load_all(g, &at, &s->stages, &here);
	}
}

static void multiply(const gemm *g, const shared_parts *s)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at here = cptx_pipe_consumer(k, &s->stages), acc = cptx_pipe_producer(k, &s->accs);
	cptx_val tile = first_tile(g);

	CPTX_FOR(k, tile, gemm_tiles(g), cptx_nclusterid_x(k)) {
		cptx_pipe_wait_empty(k, &s->accs, &acc);
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		gemm_mma_all(g, accumulator(g, s, &acc), &s->stages, &here);
		gemm_commit(g, cptx_pipe_full(&acc));
		cptx_pipe_next(k, &s->accs, &acc);
	}
}

static void bring_out(const gemm *g, const shared_parts *s)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at acc = cptx_pipe_consumer_of(k, &s->accs, cptx_imm(0));
	gemm_reader reader = { &s->accs, &acc, gemm_elect(g) };
	cptx_val tile = first_tile(g);

	CPTX_FOR(k, tile, gemm_tiles(g), cptx_nclusterid_x(k)) {
		gemm_at at = gemm_at_tile(g, tile);
		cptx_pipe_wait_full(k, &s->accs, &acc);
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		gemm_epilogue(g, accumulator(g, s, &acc), &at, &reader);
		cptx_pipe_next(k, &s->accs, &acc);
	}
}

static void build(cptx_module *m, const ladder_rung *rung, const ladder_opt *o)
{
	gemm g = gemm_begin(m, rung, o, WARPS * WARP_THREADS);
	cptx_kernel *k = g.k;
	cptx_val first = gemm_is(&g, g.tid, 0);
	shared_parts s;

	cptx_pipe_new(k, &s.stages, .stages = o->stages);
	cptx_pipe_new(k, &s.accs, .stages = BUFFERS, .consumers = READERS, .multicast = 2);
	cptx_pipe_prepare(k, &s.stages, first);
	cptx_pipe_prepare(k, &s.accs, first);
	CPTX_TMEM(k, &s.tmem, .columns = BUFFERS * o->n, .ctas = 2, .warp = gemm_is(&g, g.warp, MULTIPLIER))
	{
		CPTX_IF(k, gemm_is(&g, g.warp, LOADER))
			CPTX_IF(k, gemm_elect(&g))
				load(&g, &s);
		CPTX_IF(k, gemm_is(&g, cptx_mad(k, g.rank, WARPS, g.warp, .mode = CPTX_LO), MULTIPLIER))
			CPTX_IF(k, gemm_elect(&g))
				multiply(&g, &s);
		CPTX_IF(k, cptx_setp(k, g.warp, READERS, .cmp = CPTX_LT))
			bring_out(&g, &s);
	}
}

const ladder_rung rung_v6 = {
	.name = "v6",
	.about = "persistent, two accumulators",
	.tile = { .m = 2 * ROWS, .n = 256, .k = 64, .stages = 6 },
	.swizzle = CPTX_SWIZZLE_128B,
	.pair = true,
	.persistent = true,
	.staged = true,
	.build = build,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v6, argc, argv); }
#endif
