/* SPDX-License-Identifier: MIT */
/*
 * GEMM by mma.sync: a ring of stages in shared memory -> ldmatrix -> mma.sync -> D.
 *
 * What fills the ring: with .tma one thread of a warp of its own, which runs ahead across tile borders; else all threads by
 * cp.async, stages - 1 K tiles ahead, across tile borders too.  Both leave the same swizzled tiles there.
 *
 * Fragments are fetched a step ahead of mma.sync, also across the border of two stages and, with TMA, of two tiles: in the
 * last step of a K tile those of the next one are fetched, so that nobody waits for ldmatrix.  CTAs are persistent.
 */
#include "gemm/sm80/gemm.h"

#include <cptx/cptx.h>

/* ---- set-up ---- */

static void setup(gemm80 *g)
{
	cptx_kernel *k = g->k;
	const bool by_tma = g->o->tma;

	g->ring = cptx_mov(k, cptx_shared_dyn(k, g->o->stages * g->s.stage, 1024, "ring"), .type = CPTX_U32);
	if (g->s.slab_bytes)
		g->slabs = cptx_mov(k, cptx_shared_dyn(k, g->s.warps * g->s.slab_bytes, 1024, "slabs"), .type = CPTX_U32);
	cptx_roles_begin(k, &g->roles, .threads = g->s.threads, .keep_regs = !g->s.regs);
	g->first_lane = cptx_setp(k, g->roles.lane, 0, .cmp = CPTX_EQ);
	cptx_pipe_new(k, &g->pipe, .stages = g->o->stages, .consumers = by_tma ? g->s.warps : 0,
	              .by = by_tma ? CPTX_PIPE_MBARRIER : CPTX_PIPE_CP_ASYNC_GROUPS);
	cptx_pipe_init(k, &g->pipe, cptx_setp(k, g->roles.tid, 0, .cmp = CPTX_EQ));
	g->ahead = g->w;
	g->producer = tma_gemm_producer_of(&g->t, by_tma ? &g->w : &g->ahead, &g->pipe, &g->line,
	                                   (tma_gemm_ring){ g->ring, g->s.stage, 0 }, g->s.a_bytes);
	g->producer.threads = g->s.threads, g->producer.thread = g->roles.tid;
	const bool counts = by_tma && g->t.o->experts; /* which the launch before may write */
	if (!counts)
		tma_gemm_work_begin(k, &g->t, &g->w);
	if (by_tma) {
		tma_gemm_prefetch_maps(k, &g->t, &g->w, g->roles.tid);
		cptx_griddepcontrol(k, .op = CPTX_WAIT);
		cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
	}
	if (counts)
		tma_gemm_work_begin(k, &g->t, &g->w);
	tma_gemm_copy_unaligned(k, &g->t, &g->w, g->roles.tid);
	cptx_timeline_begin(k, &g->line, .buffer = g->w.p.timeline, .warps = g->s.threads / CPTX_WARP, .events = g->o->timeline);
}

/* ---- the mainloop ---- */

static void next_offset(const gemm80 *g) { tma_gemm_next_offset(g->k, g->offset, g->s.stage, g->o->stages); }

static void multiply(const gemm80 *g, uint32_t first, uint32_t steps)
{
	if (steps)
		cptx_mma_tile(g->k, &g->mma, &g->acc, g->offset, g->offset, .first = first, .steps = steps, .frags = &g->frags,
		              .meta = g->meta);
}

/* The last step, which fetches the first fragments of the stage that g->offset is at now, or none. */
static void multiply_last(const gemm80 *g, bool fetch)
{
	const cptx_val next = fetch ? g->offset : (cptx_val){ 0 };

	cptx_mma_tile(g->k, &g->mma, &g->acc, g->offset, g->offset, .first = g->mma.steps - 1, .steps = 1, .frags = &g->frags,
	              .next_a = next, .next_b = next, .meta = g->meta);
}

static void fetch_first(const gemm80 *g, const cptx_pipe_at *at)
{
	cptx_pipe_wait_full(g->k, &g->pipe, at);
	cptx_mma_fetch(g->k, &g->mma, &g->frags, g->offset, g->offset);
}

static void stamp(const gemm80 *g, uint32_t phase) { cptx_timeline_stamp_when(g->k, &g->line, phase, g->first_lane); }

/* mbarrier.arrive does not wait for ldmatrix: ptxas 13.0 puts nothing in front of it, and on an H200 TMA overwrote stages
 * that had still to be read, in a fifth of the runs of sparse and a twentieth of dense products.  So a stage is given back
 * in the next turn of the loop, behind all of its products, in front of which their fragments were waited for.
 *
 * bar.warp.sync stands at the end of the turn, in front of a branch: ptxas moves no ldmatrix across it, and in front of the
 * arrival the fragments of a step came late.
 *
 * Whether the next K tile is there is asked a step before it is needed, so that the answer is not waited for.  another: has
 * the CTA another tile behind this one, whose K tile it is then? */
static void k_tile_of_tma(gemm80 *g, cptx_pipe_at *at, bool last, cptx_val another)
{
	cptx_kernel *k = g->k;
	const uint32_t steps = g->mma.steps;
	cptx_val there = { 0 };

	cptx_pipe_release(k, &g->pipe, &g->left.at, g->left.when);
	g->meta = tma_gemm_sparse_next(k, &g->sparse, 0);
	for (uint32_t step = 0; step + 2 < steps; step++)
		multiply(g, step, 1);
	cptx_pipe_at ahead = cptx_pipe_ahead(k, &g->pipe, at);
	if (!last)
		there = cptx_pipe_is_full(k, &ahead);
	multiply(g, steps - 2, 1);
	cptx_bar_warp_sync(k, -1);
	cptx_pipe_leave(k, &g->pipe, &g->left, at, g->first_lane);
	cptx_pipe_go(k, at, &ahead);
	next_offset(g);
	stamp(g, CPTX_GEMM_WAIT_DATA);
	if (!last)
		CPTX_IF(k, cptx_negated(there))
			cptx_pipe_wait_full(k, &g->pipe, at);
	else
		CPTX_IF(k, another)
			fetch_first(g, at);
	stamp(g, CPTX_GEMM_MULTIPLY);
	multiply_last(g, !last);
}

static void k_tile_of_cp_async(gemm80 *g, cptx_pipe_at *at)
{
	cptx_kernel *k = g->k;

	g->meta = tma_gemm_sparse_next(k, &g->sparse, 0);
	for (uint32_t step = 0; step + 1 < g->mma.steps; step++) {
		tma_gemm_copy(k, &g->producer, step, g->mma.steps - 1);
		multiply(g, step, 1);
	}
	tma_gemm_copied(k, &g->producer);
	stamp(g, CPTX_GEMM_WAIT_DATA);
	cptx_pipe_wait_full(k, &g->pipe, at);
	stamp(g, CPTX_GEMM_MULTIPLY);
	next_offset(g);
	multiply_last(g, true);
	tma_gemm_copies_advance(k, &g->producer);
}

/* The sums of a tile.  Where the MMA warps have no register left, K tiles are counted in elements, up to the parameter K,
 * which takes none; elsewhere ptxas 13.0 would load it in each turn.  An expert along K has a part of these.  Stages of 128
 * bytes have turns enough to spare: there the count of tiles was 0.5 % faster on an H200. */
static void mainloop(gemm80 *g, cptx_pipe_at *at)
{
	cptx_kernel *k = g->k;
	const bool by_k = g->s.regs && g->t.bk * g->s.in_bytes < 128 && !g->o->stream_k && !g->o->grouped &&
	                  g->o->experts != CPTX_GEMM_EXPERTS_K;
	const uint32_t each = by_k ? g->t.bk : 1;
	cptx_val i = cptx_var(k, CPTX_U32, g->o->tma ? each : 0), another = { 0 };
	cptx_val n = g->o->stream_k ? cptx_sub(k, g->w.k_end, g->w.k_first) : by_k ? g->w.p.K : g->w.k_end;

	cptx_acc_clear(k, &g->acc);
	tma_gemm_sparse_begin(k, &g->sparse);
	if (!g->o->tma) {
		CPTX_FOR(k, i, n, 1)
			k_tile_of_cp_async(g, at);
		return;
	}
	another = cptx_setp(k, cptx_add(k, g->w.at, g->w.step), g->w.end, .cmp = CPTX_LT);
	CPTX_FOR(k, i, n, each)
		k_tile_of_tma(g, at, false, another);
	k_tile_of_tma(g, at, true, another);
}

/* ---- the warps that compute ---- */

static void begin_products(gemm80 *g)
{
	cptx_kernel *k = g->k;
	const cptx_gemm_opt *o = g->o;

	cptx_tiled_mma_new(k, &g->mma, .by = CPTX_BY_MMA_SYNC, .a = o->a, .b = o->b, .m = g->s.wm, .n = g->s.wn,
	                   .units_m = o->warps_m, .units_n = o->warps_n, .a_tile = g->t.a, .b_tile = g->t.b,
	                   .unit = g->roles.warp, .thread = g->roles.lane, .a_base = g->ring,
	                   .b_base = cptx_offset(g->ring, g->s.a_bytes), .sparse = o->sparse,
	                   .tall = o->tma && o->a == CPTX_F64);
	cptx_acc_new(k, &g->mma, &g->acc);
	cptx_mma_frags_new(k, &g->mma, &g->frags, false);
	g->offset = cptx_var(k, CPTX_U32, 0);
	g->sparse = (tma_gemm_sparse){ .t = &g->t, .w = &g->w };
	tma_gemm_sparse_new(k, &g->sparse, &g->mma, g->roles.lane, 1);
}

static void consume(gemm80 *g)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at at = cptx_pipe_consumer(k, &g->pipe);
	const tma_gemm_consumer warp = { .t = &g->t,
		                             .w = &g->w,
		                             .mma = &g->mma,
		                             .acc = &g->acc,
		                             .warps = g->s.warps,
		                             .warp = g->roles.warp,
		                             .first_lane = g->first_lane,
		                             .slabs = g->slabs };

	g->left = cptx_pipe_left_none(k, &g->pipe, &at);
	begin_products(g);
	if (!g->o->tma)
		tma_gemm_copies_begin(k, &g->producer);
	CPTX_IF(k, cptx_setp(k, g->w.at, g->w.end, .cmp = CPTX_LT))
		fetch_first(g, &at);
	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, MAPS_OF_D);
		mainloop(g, &at);
		stamp(g, CPTX_GEMM_EPILOGUE);
		tma_gemm_finish(k, &warp);
	}
	if (g->o->tma)
		CPTX_IF(k, g->first_lane)
			cptx_cp_async_bulk_wait_group(k, 0);
	else
		cptx_cp_async_wait_all(k);
	stamp(g, CPTX_TIMELINE_END);
}

void gemm_sm80_build(cptx_kernel *k, const tma_gemm *t)
{
	const cptx_gemm_opt *o = t->o;
	gemm80 g = { .k = k, .o = o, .s = gemm_sm80_shape(o), .t = *t };

	tma_gemm_declare(k, &g.t, &g.w);
	setup(&g);
	if (!o->tma) {
		consume(&g);
		return;
	}
	tma_gemm_producer_operands(k, &g.producer);
	CPTX_ROLE(k, &g.roles, .warps = g.s.warps, .regs = g.s.regs) {
		consume(&g);
	}
	CPTX_ROLE(k, &g.roles, .warps = g.s.producers, .regs = g.s.regs ? SM80_PRODUCER_REGS : 0, .elect = true) {
		tma_gemm_produce(k, &g.producer);
	}
}
