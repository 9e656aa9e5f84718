/* SPDX-License-Identifier: MIT */
/*
 * GEMM for sm_90a: TMA -> shared memory -> wgmma -> shared memory -> TMA.
 *
 * A CTA has a producer warpgroup and one to three MMA warpgroups.  One thread of the producer goes over the K tiles of all
 * tiles of this CTA and fills a ring of stages (<cptx/pipeline.h>); with a cluster, each CTA loads its part of the operand
 * that the cluster shares and multicasts it.  An MMA warpgroup owns 64 (bm 256: 128) rows of the tile and all its columns;
 * it keeps one group of wgmma under way, and releases a stage when the products of the next one are started.  Registers move
 * from the producer to the MMA warpgroups by setmaxnreg.
 *
 * With scale factors each K tile makes sums of its own (gemm/tma/scaled.c), and with weights of few bits (weights.c).
 *
 * The first K tile of a tile stands in front of the mainloop: its first wgmma does not add to the accumulators, which thus
 * need no zeros, and the predicates of the mainloop are constants.
 *
 * Results go through shared memory (<cptx/epilogue.h>), and TMA stores them while the next tile is computed.  CTAs are
 * persistent, and the producer runs ahead across tile borders.  Rounding is not overlapped with products, and stmatrix only
 * where registers have room for a rounded tile beside the next one's sums (gemm_shape.deferred).
 */
#include "gemm/sm90/gemm.h"

#include <cptx/cptx.h>

/* Registers of a thread, by the number of MMA warpgroups; 0: as they come.  [1]: where the producer gathers rows of A, for
 * one or two of them, its threads have more. */
static const uint8_t regs_mma[][4] = { { 0, 0, 240, 160 }, { 0, 0, 224 } }, regs_producer[] = { 24, 56 };

/* Threads of which one gives a stage back: a warpgroup, whose wgmma have read it; where its threads read scale factors
 * themselves a warp, which synchronizes first. */
static uint32_t releasing(const gemm_shape *s) { return s->scale_bytes ? CPTX_WARP : WARPGROUP; }

static void setup(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const gemm_shape *s = &g->s;
	const uint32_t stage = s->a_bytes + s->b_bytes;

	tma_gemm_declare(k, &g->t, &g->w);
	const cptx_val ring = cptx_mov(k, cptx_shared_dyn(k, g->o->stages * stage, 1024, "ring"), .type = CPTX_U32);
	g->producer = tma_gemm_producer_of(&g->t, &g->w, &g->pipe, &g->line, (tma_gemm_ring){ ring, stage, 0 }, s->a_bytes);
	g->producer.clusters = true;
	g->producer.threads = WARPGROUP;
	if (s->scale_bytes) {
		const cptx_val scales = cptx_shared_dyn(k, g->o->stages * s->scale_bytes, 128, "scales");
		g->producer.scales[0] = (tma_gemm_ring){ cptx_mov(k, scales, .type = CPTX_U32), s->scale_bytes, 0 };
	}
	cptx_roles_begin(k, &g->roles, .threads = (s->consumers + 1) * WARPGROUP, .ctas = g->t.per_sm);
	g->producer.thread = g->roles.tid;
	cptx_pipe_new(
		k, &g->pipe, .stages = g->o->stages, .producers = g->o->gather ? tma_gemm_gather_arrivals(&g->producer) : 1,
		.consumers = s->units * WARPGROUP / releasing(s), .cta_release = g->t.cluster > 1, .multicast = g->t.cluster);
	cptx_pipe_init(k, &g->pipe, cptx_setp(k, g->roles.tid, 0, .cmp = CPTX_EQ));
	tma_gemm_start(k, &g->t, &g->w, g->roles.tid, &g->line, (s->consumers + 1) * WARPGROUP / CPTX_WARP);
}

static void load(gemm90 *g)
{
	cptx_pipe_at at = tma_gemm_produce(g->k, &g->producer);
	if (g->t.cluster > 1)
		cptx_pipe_drain(g->k, &g->pipe, &at);
}

/* ---- the MMA warpgroups ---- */

/* A warpgroup waits for its wgmma before it scales their sums; with two of them the tensor cores have the products of the
 * other one meanwhile.  Factors are read in front of the products: behind the first of them it is 4 % slower on an H200.
 *
 * mbarrier.arrive does not wait for ld of shared memory, and ptxas 13.0 puts it in front of what takes the factors of
 * columns: with these a stage is given back in the next turn, which costs 1 % without them (there the factors of A are taken
 * while the products are under way). */
static void multiply_scaled_stage(gemm90 *g, cptx_val k_tile, bool fresh)
{
	cptx_kernel *k = g->k;

	if (g->o->scale_rows)
		cptx_pipe_release(k, &g->pipe, &g->left.at, g->left.when);
	tma_gemm_wait_for_stage(k, &g->pipe, &g->at, &g->line, g->stamps);
	const cptx_val of_a = tma_gemm_scaled_load(k, &g->scaled, g->at.stage);
	cptx_mma_stage(k, &g->mma, &g->scaled.part, g->at.stage, .fresh = true);
	const cptx_val factors = tma_gemm_scaled_factors(k, &g->scaled, of_a, k_tile);
	cptx_mma_wait(k, &g->mma, 0);
	if (g->o->scale_rows)
		tma_gemm_scaled_add(k, &g->scaled, g->at.stage, factors, fresh);
	cptx_bar_warp_sync(k, 0xffffffffu); /* all lanes have read their factors */
	if (g->o->scale_rows) {
		cptx_pipe_leave(k, &g->pipe, &g->left, &g->at, g->releases);
	} else {
		cptx_pipe_release(k, &g->pipe, &g->at, g->releases);
		tma_gemm_scaled_add(k, &g->scaled, g->at.stage, factors, fresh);
	}
	cptx_pipe_next(k, &g->pipe, &g->at);
}

/* turn: of a sparse A, whose metadata stays in its registers while its wgmma are under way. */
static void multiply_stage(gemm90 *g, cptx_val k_tile, bool fresh, uint32_t turn)
{
	cptx_kernel *k = g->k;

	if (g->s.scale_bytes && !g->s.weights) {
		multiply_scaled_stage(g, k_tile, fresh);
		return;
	}
	if (g->s.weights) {
		gemm_sm90_weights_stage(g, fresh);
		return;
	}
	tma_gemm_wait_for_stage(k, &g->pipe, &g->at, &g->line, g->stamps);
	const cptx_val meta = tma_gemm_sparse_next(k, &g->sparse, turn);
	cptx_mma_stage(k, &g->mma, &g->acc, g->at.stage, .fresh = fresh, .meta = meta);
	if (g->s.deferred)
		cptx_epilogue_deferred_store(k, &g->before, fresh ? 0 : 1, fresh ? 1 : g->before.parts);
	if (!fresh) {
		cptx_mma_wait(k, &g->mma, 1);
		cptx_pipe_release(k, &g->pipe, &g->old, g->releases);
	}
	cptx_mov(k, g->at.barrier, .into = g->old.barrier);
	cptx_pipe_next(k, &g->pipe, &g->at);
}

/* Stores the results, or rounds them where another tile follows. */
static void store(gemm90 *g, bool defer)
{
	cptx_kernel *k = g->k;
	const cptx_epilogue_dst to = tma_gemm_dst(&g->t, &g->w);
	cptx_epilogue e = tma_gemm_chain(k, &g->t, &g->w, &g->acc);

	if (g->s.by_rows)
		cptx_mov(k, tma_gemm_matrix(k, &g->t, &g->w, CPTX_GEMM_MAP_D), .into = g->d);
	/* a cvt of a sum that ptxas 13.0 moves in front of the wait has it serialize all wgmma (C7514); it moves none across a
	 * fence */
	if (g->s.by_threads)
		cptx_fence(k, .sem = CPTX_ACQ_REL, .scope = CPTX_CTA);
	if (g->s.by_threads)
		tma_gemm_store(k, &g->t, &g->w, &e, tma_gemm_matrix(k, &g->t, &g->w, CPTX_GEMM_MAP_D));
	else if (defer)
		cptx_epilogue_defer_(k, CPTX_HERE, &e, &g->before, &to);
	else
		cptx_epilogue_store_tma_(k, CPTX_HERE, &e, &g->ring, &to);
}

static void store_whole(cptx_kernel *k, void *user)
{
	(void)k;
	store((gemm90 *)user, false);
}

/* Behind the mainloop: all or a part of a tile is complete in the accumulators. */
static void finish_tile(gemm90 *g)
{
	cptx_kernel *k = g->k;

	if (g->o->stream_k) {
		const cptx_val first = cptx_setp(k, g->lane, 0, .cmp = CPTX_EQ);
		tma_gemm_sums sums = tma_gemm_sums_of(k, &g->t, &g->w, g->s.units, WARPGROUP, g->unit, g->lane);
		sums.barrier = g->barrier;
		tma_gemm_finish_sums(k, &g->w, &sums, g->acc.regs, first, store_whole, g);
	} else if (g->s.deferred) {
		cptx_epilogue_deferred_rest(k, &g->before, 1); /* each tile has a stage, so part 0 is stored */
		CPTX_IF(k, cptx_setp(k, cptx_add(k, g->w.at, g->w.step), g->w.end, .cmp = CPTX_LT))
			store(g, true);
		CPTX_ELSE(k)
			store(g, false);
	} else {
		store(g, false);
	}
}

/* All K tiles of a tile; i: a register. */
static void multiply_stages(gemm90 *g, cptx_val i)
{
	cptx_kernel *k = g->k;

	if (g->s.slices > 1) {
		gemm_sm90_weights_slice(g);
		return;
	}
	tma_gemm_sparse_begin(k, &g->sparse);
	tma_gemm_scaled_begin(k, &g->scaled);
	gemm_sm90_weights_begin(g);
	multiply_stage(g, g->w.k_first, true, 0);
	cptx_add(k, g->w.k_first, 1, .type = CPTX_U32, .into = i);
	CPTX_FOR(k, i, g->w.k_end, g->o->sparse ? 2 : 1) {
		multiply_stage(g, i, false, 1);
		if (g->o->sparse)
			CPTX_IF(k, cptx_setp(k, cptx_add(k, i, 1), g->w.k_end, .cmp = CPTX_LT))
				multiply_stage(g, i, false, 0);
	}
	if (g->s.weights)
		gemm_sm90_weights_end(g);
	if (g->s.scale_bytes)
		return;
	cptx_mma_wait(k, &g->mma, 0);
	cptx_pipe_release(k, &g->pipe, &g->old, g->releases);
}

static void multiply_tiles(gemm90 *g)
{
	cptx_kernel *k = g->k;
	cptx_val i = cptx_reg(k, CPTX_U32);

	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, MAPS_OF_D);
		multiply_stages(g, i);
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_EPILOGUE, g->stamps);
		if (g->s.slices > 1)
			CPTX_IF(k, cptx_setp(k, g->wg, 0, .cmp = CPTX_EQ))
				finish_tile(g);
		else
			finish_tile(g);
	}
	cptx_timeline_stamp_when(k, &g->line, CPTX_TIMELINE_END, g->stamps);
	if (g->o->scale_rows) /* for producers of a cluster, which wait for it */
		cptx_pipe_release(k, &g->pipe, &g->left.at, g->left.when);
	if (!g->s.by_threads)
		cptx_epilogue_ring_drain(k, &g->ring, &g->acc);
}

static void multiply(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const tma_gemm_ring *ring = &g->producer.ring[0];

	g->barrier = cptx_shr(k, g->roles.warp, 2);
	g->wg = cptx_sub(k, g->barrier, 1);
	g->unit = g->s.slices > 1 ? cptx_mov(k, 0, .type = CPTX_U32) : g->wg;
	g->lane = cptx_and(k, g->roles.tid, WARPGROUP - 1);
	const cptx_val place = g->s.scale_bytes ? cptx_and(k, g->lane, CPTX_WARP - 1) : g->lane;
	g->releases = cptx_setp(k, place, g->t.cluster, .cmp = CPTX_LT);
	g->at = g->t.cluster > 1 ? cptx_pipe_consumer_of(k, &g->pipe, cptx_and(k, place, g->t.cluster - 1))
	                         : cptx_pipe_consumer(k, &g->pipe);
	g->old = g->at;
	g->old.barrier = cptx_reg(k, CPTX_U32);
	if (g->o->scale_rows)
		g->left = cptx_pipe_left_none(k, &g->pipe, &g->at);
	if (g->o->timeline)
		g->stamps = cptx_setp(k, cptx_and(k, g->lane, 31), 0, .cmp = CPTX_EQ);
	cptx_tiled_mma_new(
		k, &g->mma, .by = CPTX_BY_WGMMA, .a = g->s.weights ? g->o->b : g->o->a, .b = g->o->b, .m = g->s.blocks * BLOCK_M,
		.n = g->o->bn, .units_m = g->s.units, .a_from = g->s.weights ? CPTX_A_REGS : CPTX_A_SHARED, .a_tile = g->s.a,
		.b_tile = g->s.b, .unit = g->unit, .thread = g->lane, .a_ring = g->s.weights ? (cptx_val){ 0 } : ring->smem,
		.b_ring = g->s.weights ? (cptx_val){ 0 } : cptx_offset(ring->smem, g->s.a_bytes), .apart = ring->apart,
		.sparse = g->o->sparse, .desc32 = (g->o->grouped || g->o->experts) && !g->s.weights);
	cptx_acc_new(k, &g->mma, &g->acc);
	g->scaled = (tma_gemm_scaled){ .t = &g->t, .w = &g->w, .acc = &g->acc, .of_a = &g->producer.scales[0] };
	tma_gemm_scaled_new(k, &g->scaled, &g->mma);
	gemm_sm90_weights_new(g);
	g->sparse = (tma_gemm_sparse){ .t = &g->t, .w = &g->w };
	tma_gemm_sparse_new(k, &g->sparse, &g->mma, g->lane, GEMM_SPARSE_AHEAD);
	if (g->s.by_rows)
		g->d = cptx_reg(k, CPTX_U64);
	if (!g->s.by_threads)
		cptx_epilogue_ring_new(k, &g->ring, .type = g->o->out, .tile = g->s.out.tile,
		                       .map = g->s.by_rows ? (cptx_val){ 0 } : g->w.in.map[CPTX_GEMM_MAP_D],
		                       .stages = g->s.out.buffers, .units = g->s.units, .unit = g->unit, .barrier = g->barrier,
		                       .last = g->s.out.rest, .last_map = g->w.in.map[CPTX_GEMM_MAP_END_D],
		                       .acc = g->o->swiglu ? NULL : &g->acc, .address = g->d,
		                       .pitch = g->s.by_rows ? tma_gemm_ld(k, &g->t, &g->w, GEMM_D) : (cptx_val){ 0 });
	if (g->s.deferred)
		cptx_epilogue_deferred_new(k, &g->before, .ring = &g->ring, .batched = tma_gemm_has_matrices(&g->t, CPTX_GEMM_MAP_D),
		                           .maps = g->o->grouped, .cut = tma_gemm_is_cut(&g->t, CPTX_GEMM_MAP_D));
	multiply_tiles(g);
}

void gemm_sm90_build(cptx_kernel *k, const tma_gemm *t)
{
	gemm90 g = { .k = k, .o = &t->in, .s = gemm_sm90_shape(t->o), .t = *t };
	const bool gather = t->o->gather;
	const uint32_t regs = t->per_sm > 1 || g.s.consumers > 3 ? 0 : regs_mma[gather][g.s.consumers];

	setup(&g);
	CPTX_ROLE(k, &g.roles, .warps = 4, .regs = regs ? regs_producer[gather] : 0, .elect = !gather, .exits = true)
		load(&g);
	CPTX_ROLE(k, &g.roles, .warps = 4 * g.s.consumers, .regs = regs)
		multiply(&g);
}
