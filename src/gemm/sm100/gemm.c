/* SPDX-License-Identifier: MIT */
/*
 * GEMM for sm_100a: TMA -> shared memory -> tcgen05.mma -> tensor memory -> registers -> shared memory -> TMA.
 *
 * Six warps.  The producer warp (4), one thread of it, goes through the K tiles of all tiles of its CTA and fills a ring of
 * stages; the MMA warp (5), one thread too, multiplies them into one of two accumulators in tensor memory; the epilogue
 * warps (0 to 3) make D of the other one (gemm/sm100/epilogue.c).  A second ring, of accumulators, ties the last two
 * together as the first one ties loads and products, so that nothing waits but for data or room.  CTAs are persistent.
 *
 * A tile of 256 rows is made by a pair of CTAs: each has 128 rows of A and D and half of B, and the MMA warp of the first
 * one multiplies for both.  All copies of a pair count at the first one's full barrier.  In a cluster of several tiles each
 * CTA loads its part of the operand that the tiles share and multicasts it to those at the same place in their pairs; a
 * stage is free when all tiles of the cluster have used it, so each commits to all CTAs.
 *
 * Scale factors come by TMA too, a block of 128 rows by 4 factors as tensor cores want it; tcgen05.cp brings it to all four
 * quarters of tensor memory.  So may A (a_tmem), 32 bytes along K at a time.
 */
#include "gemm/sm100/gemm.h"

#include <cptx/cptx.h>

static cptx_val is(const gemm100 *g, cptx_val value, uint32_t n) { return cptx_setp(g->k, value, n, .cmp = CPTX_EQ); }

/* first + i * each */
static cptx_val at(const gemm100 *g, cptx_val i, uint32_t each, cptx_val first)
{
	return cptx_mad(g->k, i, each, first, .mode = CPTX_LO);
}

/* ---- set-up ---- */

static tma_gemm_ring ring(gemm100 *g, const char *name, uint32_t tiles, uint32_t bytes, uint32_t align)
{
	return (tma_gemm_ring){ cptx_mov(g->k, cptx_shared_dyn(g->k, tiles * bytes, align, name), .type = CPTX_U32), bytes, 0 };
}

static void lay_out(gemm100 *g)
{
	const cptx_gemm_opt *o = g->o;
	const gemm100_shape *s = &g->s;
	tma_gemm_producer *p = &g->producer;

	*p = (tma_gemm_producer){ .t = &g->t, .w = &g->w, .pipe = &g->stages, .line = &g->line, .clusters = true };
	p->ring[0] = ring(g, "a", o->stages, cptx_tile_bytes(&s->a), 1024);
	p->ring[1] = ring(g, "b", o->stages, cptx_tile_bytes(&s->b), 1024);
	g->smem_d = ring(g, "d", EPILOGUE_WARPS * STORE_STAGES, cptx_epilogue_ring_bytes(&s->d), 1024).smem;
	if (s->scales.vec) {
		p->scales[0] = ring(g, "scales_a", o->stages, tma_gemm_scale_bytes(&g->t.scales, false), 128);
		p->scales[1] = ring(g, "scales_b", o->stages, tma_gemm_scale_bytes(&g->t.scales, true), 128);
	}
	cptx_tiled_mma_new(g->k, &g->mma, .by = CPTX_BY_TCGEN05, .a = o->a, .b = o->b, .m = o->bm, .n = o->bn,
	                   .a_from = o->a_tmem ? CPTX_A_TMEM : CPTX_A_SHARED, .a_tile = s->a, .b_tile = s->b, .ctas = s->ctas,
	                   .scale = o->scale, .kind = o->kind, .thread = g->roles.tid, .a_ring = p->ring[0].smem,
	                   .b_ring = p->ring[1].smem, .warp = g->roles.warp, .scale_a_ring = p->scales[0].smem,
	                   .scale_b_ring = p->scales[1].smem);
}

static void setup(gemm100 *g)
{
	cptx_kernel *k = g->k;
	const gemm100_shape *s = &g->s;

	cptx_roles_begin(k, &g->roles, .threads = WARPS * CPTX_WARP);
	lay_out(g);
	g->elected = cptx_reg(k, CPTX_PRED);
	cptx_elect_sync(k, 0xffffffffu, .p = g->elected, .into = cptx_sink());
	cptx_val first = is(g, g->roles.tid, 0);
	cptx_pipe_new(k, &g->stages, .stages = g->o->stages, .consumers = s->tiles);
	cptx_pipe_new(k, &g->accs, .stages = s->accs, .consumers = EPILOGUE_WARPS, .multicast = s->ctas);
	cptx_pipe_prepare(k, &g->stages, first);
	cptx_pipe_prepare(k, &g->accs, first);
	tma_gemm_start(k, &g->t, &g->w, g->roles.tid, &g->line, WARPS);
}

cptx_acc gemm_sm100_accumulator(const gemm100 *g, const cptx_pipe_at *here)
{
	cptx_acc acc;

	cptx_acc_in_tmem(g->k, &g->mma, &acc, at(g, here->stage, g->o->bn, g->tmem.address));
	return acc;
}

/* ---- the MMA warp ---- */

/* The products of a tile.  What they read of tensor memory beside D is behind the accumulators. */
static void multiply_tile(const gemm100 *g, cptx_pipe_at *here, const cptx_acc *acc, cptx_val k0, cptx_val everyone)
{
	cptx_kernel *k = g->k;
	const gemm100_shape *s = &g->s;
	cptx_val first = tma_gemm_k_first(k, &g->t, &g->w), slots = { 0 }, slot = { 0 }, in_block = { 0 };

	if (s->slot)
		slot = slots = cptx_add(k, g->tmem.address, s->accs * g->o->bn);
	if (s->scales.vec && g->o->bn % ROWS) /* a tile may begin in the middle of a block of 128 columns */
		in_block = cptx_shr(k, cptx_and(k, cptx_as(g->w.n0, CPTX_U32), ROWS - 1), 5);
	cptx_mov(k, first, .into = k0);
	CPTX_FOR(k, k0, tma_gemm_k_end(k, &g->t, &g->w), s->bk) {
		tma_gemm_wait_for_stage(k, &g->stages, here, &g->line, (cptx_val){ 0 });
		if (s->slot && s->slots > 1)
			slot = at(g, here->stage, s->slot, slots);
		cptx_val fresh = cptx_negated(cptx_setp(k, k0, first, .cmp = CPTX_NE));
		cptx_mma_stage(k, &g->mma, acc, here->stage, .fresh_when = fresh, .fenced = true, .tmem = slot,
		               .scale_b_from = in_block);
		cptx_mma_commit_to(k, &g->mma, cptx_pipe_empty(here), everyone);
		cptx_pipe_next(k, &g->stages, here);
	}
}

/* The MMA warp's one thread; of a pair of CTAs that of the first one. */
static void multiply(gemm100 *g)
{
	cptx_kernel *k = g->k;
	const gemm100_shape *s = &g->s;
	cptx_pipe_at here = cptx_pipe_consumer(k, &g->stages), acc_at = cptx_pipe_producer(k, &g->accs);
	cptx_val k0 = cptx_reg(k, CPTX_S32), everyone = { 0 }, pair = { 0 };

	if (g->t.cluster > 1)
		everyone = cptx_mov(k, (1u << g->t.cluster) - 1, .type = CPTX_U16);
	if (s->ctas > 1)
		pair = cptx_cvt(k, cptx_shl(k, cptx_mov(k, 3, .type = CPTX_U32), g->w.leader), .dtype = CPTX_U16);
	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		if (s->scales.vec && g->o->bn % ROWS)
			tma_gemm_locate(k, &g->t, &g->w, 0);
		else
			tma_gemm_find(k, &g->t, &g->w, 0);
		cptx_timeline_stamp(k, &g->line, CPTX_GEMM_WAIT_ROOM);
		cptx_pipe_wait_empty(k, &g->accs, &acc_at);
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		const cptx_acc acc = gemm_sm100_accumulator(g, &acc_at);
		multiply_tile(g, &here, &acc, k0, everyone);
		cptx_mma_commit_to(k, &g->mma, cptx_pipe_full(&acc_at), pair);
		cptx_pipe_next(k, &g->accs, &acc_at);
	}
	cptx_timeline_stamp(k, &g->line, CPTX_TIMELINE_END);
}

/* ---- roles ---- */

static void roles(gemm100 *g)
{
	cptx_kernel *k = g->k;

	/* the cluster begins together, for nobody signals an mbarrier that is not there yet, nor one of a CTA that has ended */
	CPTX_TMEM(k, &g->tmem, .columns = g->s.columns, .ctas = g->s.ctas, .warp = is(g, g->roles.warp, MMA_WARP),
	          .cluster = g->t.cluster > 1) {
		CPTX_ROLE(k, &g->roles, .warps = EPILOGUE_WARPS)
			gemm_sm100_epilogue(g);
		CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true)
			tma_gemm_produce(k, &g->producer);
		CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true) {
			if (g->s.ctas > 1)
				CPTX_IF(k, is(g, g->w.in_pair, 0))
					multiply(g);
			else
				multiply(g);
		}
	}
}

void gemm_sm100_build(cptx_kernel *k, const tma_gemm *t)
{
	gemm100 g = { .k = k, .o = &t->in, .s = gemm_sm100_shape(t->o), .t = *t };

	tma_gemm_declare(k, &g.t, &g.w);
	setup(&g);
	roles(&g);
}
