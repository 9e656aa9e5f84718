/* SPDX-License-Identifier: MIT */
/*
 * GEMM for sm_100a: TMA -> shared memory -> tcgen05.mma -> tensor memory -> registers -> shared memory -> TMA.
 *
 * Six warps.  One thread of warp 4 walks over the K tiles of all tiles of its CTA and fills a ring of stages; one of warp 5
 * multiplies them into one of two accumulators in tensor memory; warps 0 to 3 bring the other one out
 * (gemm/sm100/epilogue.c). A second ring, of accumulators, ties the last two together as the first one ties loads and
 * products, so that nothing waits but for data or room.  CTAs are persistent.
 *
 * A tile of 256 rows is made by a pair of CTAs: each has 128 rows of A and D and half of B, and a thread of the first one
 * multiplies for both.  All copies of a pair count at the first one's full barrier.  In a cluster of several tiles each CTA
 * loads its part of the operand that the tiles share and multicasts it to those at the same place in their pairs; a stage is
 * free when all tiles of the cluster have used it, so each commits to all CTAs.
 *
 * Scale factors come by TMA too, a block of 128 rows by 4 factors as tensor cores want it; tcgen05.cp brings it to all four
 * quarters of tensor memory.  So may A (a_tmem), 32 bytes along K at a time.
 */
#include "gemm/sm100/gemm.h"
#include "gemm/walk.h"

/* ---- set-up ---- */

static cptx_val shared(gemm100 *g, uint32_t bytes, uint32_t align, const char *name)
{
	return cptx_mov(g->k, cptx_shared_dyn(g->k, bytes, align, name), .type = CPTX_U32);
}

static void declare(gemm100 *g, cptx_module *m)
{
	const gemm100_shape *s = &g->s;

	g->k = cptx_kernel_begin(m, g->o->name, .block = { WARPS * 32 }, .min_ctas = s->per_sm,
	                         .cluster = { s->cluster > 1 ? s->cluster : 0, s->cluster > 1, s->cluster > 1 });
	tma_gemm_declare(g->k, &g->t, &g->w);
}

/* Parts: what a CTA of a cluster loads, and multicasts. */
static void make_operands(gemm100 *g)
{
	const cptx_gemm_opt *o = g->o;

	cptx_operand_new(g->k, &g->a, .type = o->a, .tile = g->s.a, .stages = o->stages, .smem = g->smem_a,
	                 .batched = o->batched, .parts = g->s.cluster_n);
	cptx_operand_new(g->k, &g->b, .type = o->b, .tile = g->s.b, .stages = o->stages, .smem = g->smem_b,
	                 .batched = o->batched, .parts = g->s.cluster_m);
}

static void lay_out(gemm100 *g)
{
	cptx_kernel *k = g->k;
	const gemm100_shape *s = &g->s;
	uint32_t stages = g->o->stages;
	cptx_tile factors = cptx_scale_tile();

	g->smem_a = shared(g, stages * s->a_bytes, 1024, "ring_a");
	g->smem_b = shared(g, stages * s->b_bytes, 1024, "ring_b");
	g->pieces = shared(g, READERS * PIECES * cptx_tile_bytes(&s->d), 1024, "pieces");
	make_operands(g);
	g->word_a = cptx_tile_word(k, &s->a, CPTX_DESC_TCGEN05, g->smem_a);
	g->word_b = cptx_tile_word(k, &s->b, CPTX_DESC_TCGEN05, g->smem_b);
	if (gemm_sm100_scaled(g->o)) {
		g->smem_sa = shared(g, stages * s->sa_bytes, 128, "ring_scale_a");
		g->smem_sb = shared(g, stages * s->sb_bytes, 128, "ring_scale_b");
		g->word_sa = cptx_tile_word(k, &factors, CPTX_DESC_TCGEN05, g->smem_sa);
		g->word_sb = cptx_tile_word(k, &factors, CPTX_DESC_TCGEN05, g->smem_sb);
	}
}

static void make_mma(gemm100 *g)
{
	const cptx_gemm_opt *o = g->o;

	cptx_tiled_mma_new(g->k, &g->mma, .by = CPTX_BY_TCGEN05, .a = o->a, .b = o->b, .m = o->bm, .n = o->bn,
	                   .a_from = o->a_tmem ? CPTX_A_TMEM : CPTX_A_SHARED, .a_tile = g->s.a, .b_tile = g->s.b,
	                   .ctas = g->s.ctas, .scale = o->scale, .kind = o->kind, .thread = g->roles.tid);
}

static void setup(gemm100 *g)
{
	cptx_kernel *k = g->k;
	const gemm100_shape *s = &g->s;

	cptx_roles_begin(k, &g->roles, .threads = WARPS * 32);
	lay_out(g);
	make_mma(g);
	g->elected = cptx_reg(k, CPTX_PRED);
	cptx_elect_sync(k, 0xffffffffu, .p = g->elected, .into = cptx_sink());
	cptx_val first = cptx_setp(k, g->roles.tid, 0, .cmp = CPTX_EQ);
	cptx_pipe_new(k, &g->stages, .stages = g->o->stages, .consumers = s->tiles);
	cptx_pipe_new(k, &g->accs, .stages = s->accs, .consumers = READERS, .multicast = s->ctas);
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

/* ---- tiles ---- */

static cptx_val times(cptx_kernel *k, cptx_val a, cptx_val b) { return cptx_mul(k, a, b, .mode = CPTX_LO); }

cptx_val gemm_sm100_accumulator(const gemm100 *g, const cptx_pipe_at *acc)
{
	return cptx_mad(g->k, acc->stage, g->o->bn, g->tmem.address, .mode = CPTX_LO);
}

/* ---- the loader ---- */

/* The CTAs that get what this one loads of an operand that tiles share: those at its place in all tiles of the cluster. */
static cptx_val sharers(const gemm100 *g)
{
	cptx_kernel *k = g->k;
	uint32_t mask = 0;

	for (uint32_t i = 0; i < g->s.tiles; i++)
		mask |= 1u << i * g->s.ctas;
	return g->s.ctas == 1 ? cptx_imm(mask)
	                      : cptx_cvt(k, cptx_shl(k, cptx_mov(k, mask, .type = CPTX_U32), g->w.in_pair), .dtype = CPTX_U16);
}

static void load_operand(const gemm100 *g, const cptx_operand *op, cptx_val stage, cptx_val row, cptx_val k0, cptx_val full,
                         cptx_val mask)
{
	const cptx_val none = { 0 };
	const bool shares = op->opt.parts > 1;

	cptx_operand_load(g->k, op, stage, row, k0, .barrier = full, .z = g->w.z, .part = shares ? g->w.tile_rank : none,
	                  .mask = shares ? mask : none, .map = g->w.in.map[op == &g->a ? CPTX_GEMM_MAP_A : CPTX_GEMM_MAP_B],
	                  .ctas = g->s.ctas);
}

static void load_stage(const gemm100 *g, const cptx_pipe_at *at, cptx_val k0, cptx_val mask)
{
	cptx_kernel *k = g->k;
	const gemm100_shape *s = &g->s;
	cptx_val full = cptx_pipe_full_of(k, at), row_b = g->w.n0;

	load_operand(g, &g->a, at->stage, g->w.m0, k0, full, mask);
	if (s->ctas > 1)
		row_b = cptx_mad(k, cptx_as(g->w.in_pair, CPTX_S32), s->b.rows, g->w.n0, .mode = CPTX_LO);
	load_operand(g, &g->b, at->stage, row_b, k0, full, mask);
	if (gemm_sm100_scaled(g->o)) {
		cptx_val block = cptx_div(k, k0, s->vec * CPTX_SCALE_FACTORS);
		tma_gemm_factors_load f = {
			.t = &g->t, .work = &g->w, .in = &g->w.in, .block = block, .mbar = full, .pair = s->ctas > 1
		};
		tma_gemm_load_factors(k, &f, false, cptx_mad(k, at->stage, s->sa_bytes, g->smem_sa, .mode = CPTX_LO));
		tma_gemm_load_factors(k, &f, true, cptx_mad(k, at->stage, s->sb_bytes, g->smem_sb, .mode = CPTX_LO));
	}
}

/* Of what is done now, .s32. */
static cptx_val first_k(const gemm100 *g)
{
	return g->o->stream_k ? cptx_as(times(g->k, g->w.k_first, cptx_imm(g->s.bk)), CPTX_S32) : cptx_imm(0);
}

static cptx_val end_k(const gemm100 *g)
{
	return cptx_as(g->o->stream_k ? times(g->k, g->w.k_end, cptx_imm(g->s.bk)) : g->w.in.K, CPTX_S32);
}

/* One thread. */
static void load(gemm100 *g)
{
	cptx_kernel *k = g->k;
	const gemm100_shape *s = &g->s;
	uint32_t bytes = s->ctas * (s->a_bytes + s->b_bytes + s->sa_bytes + s->sb_bytes);
	cptx_pipe_at at = s->ctas > 1 ? cptx_pipe_producer_of(k, &g->stages, g->leader) : cptx_pipe_producer(k, &g->stages);
	cptx_val k0 = cptx_reg(k, CPTX_S32), mask = { 0 };

	if (s->tiles > 1)
		mask = sharers(g);
	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, ~MAPS_OF_D);
		cptx_mov(k, first_k(g), .into = k0);
		CPTX_FOR(k, k0, end_k(g), s->bk) {
			cptx_timeline_stamp(k, &g->line, CPTX_GEMM_WAIT_ROOM);
			cptx_pipe_wait_empty(k, &g->stages, &at);
			cptx_timeline_stamp(k, &g->line, CPTX_GEMM_LOAD);
			if (s->ctas > 1)
				CPTX_IF(k, cptx_setp(k, g->w.in_pair, 0, .cmp = CPTX_EQ))
					cptx_pipe_expect(k, &g->stages, &at, bytes);
			else
				cptx_pipe_expect(k, &g->stages, &at, bytes);
			load_stage(g, &at, k0, mask);
			cptx_pipe_next(k, &g->stages, &at);
		}
	}
	cptx_timeline_stamp(k, &g->line, CPTX_TIMELINE_END);
}

/* ---- the multiplier ---- */

/* Where a stage's A and scale factors are in tensor memory. */
static cptx_val slot_of(const gemm100 *g, cptx_val stage)
{
	cptx_kernel *k = g->k;
	cptx_val first = cptx_add(k, g->tmem.address, g->s.accs * g->o->bn);

	return g->s.slots > 1 ? cptx_mad(k, stage, g->s.slot, first, .mode = CPTX_LO) : first;
}

/* What a stage brings to tensor memory beside D, and where it is then. */
typedef struct in_tmem {
	cptx_val a, sa, sb;
} in_tmem;

static in_tmem bring_in(const gemm100 *g, cptx_val stage, cptx_val a)
{
	cptx_kernel *k = g->k;
	const gemm100_shape *s = &g->s;
	in_tmem t = { { 0 }, { 0 }, { 0 } };

	if (!s->slot)
		return t;
	cptx_val slot = slot_of(g, stage);
	t.a = cptx_offset(slot, s->at_a);
	if (g->o->a_tmem)
		cptx_mma_copy_a(k, &g->mma, t.a, a);
	if (!gemm_sm100_scaled(g->o))
		return t;
	t.sa = cptx_offset(slot, s->at_sa), t.sb = cptx_offset(slot, s->at_sb);
	cptx_mma_copy_scale_a(k, &g->mma, t.sa, cptx_mad_wide(k, stage, cptx_tile_word_bytes(s->sa_bytes), g->word_sa));
	cptx_mma_copy_scale_b(k, &g->mma, t.sb, cptx_mad_wide(k, stage, cptx_tile_word_bytes(s->sb_bytes), g->word_sb));
	if (g->o->bn % ROWS) /* a tile may begin in the middle of a block of 128 columns */
		t.sb = cptx_offset(cptx_add(k, slot, cptx_shr(k, cptx_and(k, cptx_as(g->w.n0, CPTX_U32), ROWS - 1), 5)), s->at_sb);
	return t;
}

static void multiply_stage(const gemm100 *g, const cptx_acc *acc, cptx_val stage, cptx_val adds)
{
	cptx_kernel *k = g->k;
	cptx_val a = cptx_mad_wide(k, stage, cptx_tile_word_bytes(g->s.a_bytes), g->word_a);
	cptx_val b = cptx_mad_wide(k, stage, cptx_tile_word_bytes(g->s.b_bytes), g->word_b);
	in_tmem t = bring_in(g, stage, a);

	cptx_mma_tile(k, &g->mma, acc, g->o->a_tmem ? t.a : a, b, .fresh_when = cptx_negated(adds), .scale_a = t.sa,
	              .scale_b = t.sb, .fenced = true);
}

/* One thread, of a pair that of the first CTA. */
static void multiply(gemm100 *g)
{
	cptx_kernel *k = g->k;
	const gemm100_shape *s = &g->s;
	cptx_pipe_at at = cptx_pipe_consumer(k, &g->stages), acc = cptx_pipe_producer(k, &g->accs);
	cptx_val k0 = cptx_reg(k, CPTX_S32), whole = { 0 }, pair = { 0 };

	if (s->cluster > 1)
		whole = cptx_mov(k, (1u << s->cluster) - 1, .type = CPTX_U16);
	if (s->ctas > 1)
		pair = cptx_cvt(k, cptx_shl(k, cptx_mov(k, 3, .type = CPTX_U32), g->leader), .dtype = CPTX_U16);
	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		if (s->b_blocks && g->o->bn % ROWS)
			tma_gemm_locate(k, &g->t, &g->w, 0);
		else
			tma_gemm_find(k, &g->t, &g->w, 0);
		cptx_timeline_stamp(k, &g->line, CPTX_GEMM_WAIT_ROOM);
		cptx_pipe_wait_empty(k, &g->accs, &acc);
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		cptx_acc d;
		cptx_acc_in_tmem(k, &g->mma, &d, gemm_sm100_accumulator(g, &acc));
		cptx_val first = first_k(g);
		cptx_mov(k, first, .into = k0);
		CPTX_FOR(k, k0, end_k(g), s->bk) {
			cptx_timeline_stamp(k, &g->line, CPTX_GEMM_WAIT_DATA);
			cptx_pipe_wait_full(k, &g->stages, &at);
			cptx_timeline_stamp(k, &g->line, CPTX_GEMM_MULTIPLY);
			multiply_stage(g, &d, at.stage, cptx_setp(k, k0, first, .cmp = CPTX_NE));
			cptx_mma_commit_to(k, &g->mma, cptx_pipe_empty(&at), whole);
			cptx_pipe_next(k, &g->stages, &at);
		}
		cptx_mma_commit_to(k, &g->mma, cptx_pipe_full(&acc), pair);
		cptx_pipe_next(k, &g->accs, &acc);
	}
	cptx_timeline_stamp(k, &g->line, CPTX_TIMELINE_END);
}

/* ---- roles ---- */

static cptx_val is(const gemm100 *g, cptx_val value, uint32_t n) { return cptx_setp(g->k, value, n, .cmp = CPTX_EQ); }

static void cluster_barrier(const gemm100 *g)
{
	cptx_barrier_cluster_arrive(g->k, .aligned = true);
	cptx_barrier_cluster_wait(g->k, .aligned = true);
}

static void roles(gemm100 *g)
{
	cptx_kernel *k = g->k;
	bool alone = g->s.cluster > 1 && g->s.ctas == 1; /* the barriers of tensor memory are those of the CTA */

	if (alone)
		cluster_barrier(g); /* nobody signals an mbarrier that is not there yet */
	CPTX_TMEM(k, &g->tmem, .columns = g->s.columns, .ctas = g->s.ctas, .warp = is(g, g->roles.warp, MULTIPLIER)) {
		CPTX_ROLE(k, &g->roles, .warps = READERS)
			gemm_sm100_bring_out(g);
		CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true)
			load(g);
		CPTX_ROLE(k, &g->roles, .warps = 1, .elect = true) {
			if (g->s.ctas > 1)
				CPTX_IF(k, is(g, g->w.in_pair, 0))
					multiply(g);
			else
				multiply(g);
		}
		if (alone)
			cluster_barrier(g); /* nor one of a CTA that has ended */
	}
}

cptx_kernel *gemm_sm100_build(cptx_module *m, const cptx_gemm_opt *opt)
{
	cptx_gemm_opt o = tma_gemm_inner(opt);
	gemm100 g = { .o = &o, .s = gemm_sm100_shape(opt), .t = gemm_sm100_describe(opt) };

	declare(&g, m);
	setup(&g);
	roles(&g);
	return g.k;
}
