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

static cptx_val is(const gemm100 *g, cptx_val value, uint32_t n) { return cptx_setp(g->k, value, n, .cmp = CPTX_EQ); }

/* first + i * each */
static cptx_val at(const gemm100 *g, cptx_val i, uint32_t each, cptx_val first)
{
	return cptx_mad(g->k, i, each, first, .mode = CPTX_LO);
}

/* ---- set-up ---- */

static cptx_val shared(gemm100 *g, uint32_t bytes, uint32_t align, const char *name)
{
	return cptx_mov(g->k, cptx_shared_dyn(g->k, bytes, align, name), .type = CPTX_U32);
}

/* Parts of A and B are what a CTA of a cluster loads, and multicasts. */
static void lay_out(gemm100 *g)
{
	const cptx_gemm_opt *o = g->o;
	const gemm100_shape *s = &g->s;
	const bool scaled = gemm_sm100_scaled(o);

	cptx_operand_new(g->k, &g->a, .type = o->a, .tile = s->a, .stages = o->stages, .batched = o->batched,
	                 .parts = s->cluster_n);
	cptx_operand_new(g->k, &g->b, .type = o->b, .tile = s->b, .stages = o->stages, .batched = o->batched,
	                 .parts = s->cluster_m);
	g->smem_d = shared(g, EPILOGUE_WARPS * STORE_STAGES * cptx_tile_bytes(&s->d), 1024, "d");
	if (scaled) {
		g->scales_a = shared(g, o->stages * s->sa_bytes, 128, "scales_a");
		g->scales_b = shared(g, o->stages * s->sb_bytes, 128, "scales_b");
	}
	cptx_tiled_mma_new(g->k, &g->mma, .by = CPTX_BY_TCGEN05, .a = o->a, .b = o->b, .m = o->bm, .n = o->bn,
	                   .a_from = o->a_tmem ? CPTX_A_TMEM : CPTX_A_SHARED, .a_tile = s->a, .b_tile = s->b, .ctas = s->ctas,
	                   .scale = o->scale, .kind = o->kind, .thread = g->roles.tid, .a_ring = g->a.smem, .b_ring = g->b.smem,
	                   .warp = g->roles.warp, .scale_a_ring = g->scales_a, .scale_b_ring = g->scales_b);
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
	tma_gemm_prefetch_maps(k, &g->t, &g->w, g->roles.tid);
	tma_gemm_work_begin(k, &g->t, &g->w);
	if (s->ctas > 1)
		g->leader = cptx_and(k, g->w.rank, ~1u);
	/* what stands in front of this may overlap with the launch before, cptx_launch_opt.overlap */
	cptx_griddepcontrol(k, .op = CPTX_WAIT);
	cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
	cptx_timeline_begin(k, &g->line, .buffer = g->w.p.timeline, .warps = WARPS, .events = g->o->timeline);
}

cptx_acc gemm_sm100_accumulator(const gemm100 *g, const cptx_pipe_at *here)
{
	cptx_acc acc;

	cptx_acc_in_tmem(g->k, &g->mma, &acc, at(g, here->stage, g->o->bn, g->tmem.address));
	return acc;
}

/* ---- the producer warp ---- */

/* A mask of the CTAs of the cluster whose bits are 1 for CTA 0, from CTA `first` on. */
static cptx_val mask_of(const gemm100 *g, uint32_t bits, cptx_val first)
{
	cptx_kernel *k = g->k;

	return cptx_cvt(k, cptx_shl(k, cptx_mov(k, bits, .type = CPTX_U32), first), .dtype = CPTX_U16);
}

/* The CTAs that get what this one loads of an operand that tiles share: those at its place in all tiles of the cluster. */
static cptx_val sharers(const gemm100 *g)
{
	const uint32_t all = (1u << g->s.cluster) - 1;

	return g->s.ctas == 1 ? cptx_imm(all) : mask_of(g, all & 0x5555, g->w.in_pair);
}

/* Copies a stage: A, B, scale factors.  mask: as sharers gives it. */
static void load_stage(const gemm100 *g, const cptx_pipe_at *here, cptx_val k0, cptx_val mask)
{
	cptx_kernel *k = g->k;
	const gemm100_shape *s = &g->s;
	const cptx_val full = cptx_pipe_full_of(k, here), none = { 0 }, *map = g->w.in.map;
	const bool share_a = s->cluster_n > 1, share_b = s->cluster_m > 1;
	cptx_val row_b = g->w.n0;

	cptx_operand_load(k, &g->a, here->stage, g->w.m0, k0, .barrier = full, .z = g->w.z,
	                  .part = share_a ? g->w.tile_rank : none, .mask = share_a ? mask : none, .map = map[CPTX_GEMM_MAP_A],
	                  .ctas = s->ctas);
	if (s->ctas > 1)
		row_b = at(g, cptx_as(g->w.in_pair, CPTX_S32), s->b.rows, g->w.n0);
	cptx_operand_load(k, &g->b, here->stage, row_b, k0, .barrier = full, .z = g->w.z,
	                  .part = share_b ? g->w.tile_rank : none, .mask = share_b ? mask : none, .map = map[CPTX_GEMM_MAP_B],
	                  .ctas = s->ctas);
	if (!gemm_sm100_scaled(g->o))
		return;
	tma_gemm_factors_load scales = { &g->t, &g->w, &g->w.in, none, full, s->ctas > 1, false };
	scales.block = cptx_div(k, k0, s->vec * CPTX_SCALE_FACTORS);
	tma_gemm_load_factors(k, &scales, false, at(g, here->stage, s->sa_bytes, g->scales_a));
	tma_gemm_load_factors(k, &scales, true, at(g, here->stage, s->sb_bytes, g->scales_b));
}

/* Where what is computed now begins and ends along K, .s32. */
static cptx_val first_k(const gemm100 *g)
{
	return g->o->stream_k ? cptx_as(cptx_mul(g->k, g->w.k_first, g->s.bk, .mode = CPTX_LO), CPTX_S32) : cptx_imm(0);
}

static cptx_val end_k(const gemm100 *g)
{
	return cptx_as(g->o->stream_k ? cptx_mul(g->k, g->w.k_end, g->s.bk, .mode = CPTX_LO) : g->w.in.K, CPTX_S32);
}

/* One thread. */
static void produce(gemm100 *g)
{
	cptx_kernel *k = g->k;
	const gemm100_shape *s = &g->s;
	uint32_t bytes = s->ctas * (g->a.bytes + g->b.bytes + s->sa_bytes + s->sb_bytes);
	cptx_pipe_at here = s->ctas > 1 ? cptx_pipe_producer_of(k, &g->stages, g->leader) : cptx_pipe_producer(k, &g->stages);
	cptx_val k0 = cptx_reg(k, CPTX_S32), mask = { 0 };

	if (s->tiles > 1)
		mask = sharers(g);
	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, ~MAPS_OF_D);
		cptx_mov(k, first_k(g), .into = k0);
		CPTX_FOR(k, k0, end_k(g), s->bk) {
			cptx_timeline_stamp(k, &g->line, CPTX_GEMM_WAIT_ROOM);
			cptx_pipe_wait_empty(k, &g->stages, &here);
			cptx_timeline_stamp(k, &g->line, CPTX_GEMM_LOAD);
			if (s->ctas > 1)
				CPTX_IF(k, is(g, g->w.in_pair, 0))
					cptx_pipe_expect(k, &g->stages, &here, bytes);
			else
				cptx_pipe_expect(k, &g->stages, &here, bytes);
			load_stage(g, &here, k0, mask);
			cptx_pipe_next(k, &g->stages, &here);
		}
	}
	cptx_timeline_stamp(k, &g->line, CPTX_TIMELINE_END);
}

/* ---- the MMA warp ---- */

/* The products of a tile.  What they read of tensor memory beside D is behind the accumulators. */
static void multiply_tile(const gemm100 *g, cptx_pipe_at *here, const cptx_acc *acc, cptx_val k0, cptx_val everyone)
{
	cptx_kernel *k = g->k;
	const gemm100_shape *s = &g->s;
	cptx_val first = first_k(g), slots = { 0 }, slot = { 0 }, in_block = { 0 };

	if (s->slot)
		slot = slots = cptx_add(k, g->tmem.address, s->accs * g->o->bn);
	if (s->vec && g->o->bn % ROWS) /* a tile may begin in the middle of a block of 128 columns */
		in_block = cptx_shr(k, cptx_and(k, cptx_as(g->w.n0, CPTX_U32), ROWS - 1), 5);
	cptx_mov(k, first, .into = k0);
	CPTX_FOR(k, k0, end_k(g), s->bk) {
		cptx_timeline_stamp(k, &g->line, CPTX_GEMM_WAIT_DATA);
		cptx_pipe_wait_full(k, &g->stages, here);
		cptx_timeline_stamp(k, &g->line, CPTX_GEMM_MULTIPLY);
		if (s->slot && s->slots > 1)
			slot = at(g, here->stage, s->slot, slots);
		cptx_val fresh = cptx_negated(cptx_setp(k, k0, first, .cmp = CPTX_NE));
		cptx_mma_stage(k, &g->mma, acc, here->stage, .fresh_when = fresh, .fenced = true, .tmem = slot,
		               .scale_b_from = in_block);
		cptx_mma_commit_to(k, &g->mma, cptx_pipe_empty(here), everyone);
		cptx_pipe_next(k, &g->stages, here);
	}
}

/* One thread, of a pair that of the first CTA. */
static void multiply(gemm100 *g)
{
	cptx_kernel *k = g->k;
	const gemm100_shape *s = &g->s;
	cptx_pipe_at here = cptx_pipe_consumer(k, &g->stages), acc_at = cptx_pipe_producer(k, &g->accs);
	cptx_val k0 = cptx_reg(k, CPTX_S32), everyone = { 0 }, pair = { 0 };

	if (s->cluster > 1)
		everyone = cptx_mov(k, (1u << s->cluster) - 1, .type = CPTX_U16);
	if (s->ctas > 1)
		pair = mask_of(g, 3, g->leader);
	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		if (s->b_blocks && g->o->bn % ROWS)
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
	          .cluster = g->s.cluster > 1) {
		CPTX_ROLE(k, &g->roles, .warps = EPILOGUE_WARPS)
			gemm_sm100_epilogue(g);
		CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true)
			produce(g);
		CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true) {
			if (g->s.ctas > 1)
				CPTX_IF(k, is(g, g->w.in_pair, 0))
					multiply(g);
			else
				multiply(g);
		}
	}
}

cptx_kernel *gemm_sm100_build(cptx_module *m, const cptx_gemm_opt *opt)
{
	cptx_gemm_opt o = tma_gemm_inner(opt);
	gemm100 g = { .o = &o, .s = gemm_sm100_shape(opt), .t = gemm_sm100_describe(opt) };
	const uint32_t cluster = g.s.cluster > 1 ? g.s.cluster : 0;

	g.k = cptx_kernel_begin(m, o.name, .block = { WARPS * CPTX_WARP }, .min_ctas = g.s.per_sm,
	                        .cluster = { cluster, cluster > 1, cluster > 1 });
	tma_gemm_declare(g.k, &g.t, &g.w);
	setup(&g);
	roles(&g);
	return g.k;
}
