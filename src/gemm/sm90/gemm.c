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
 * The first K tile of a tile stands in front of the mainloop: its first wgmma does not add to the accumulators, which thus
 * need no zeros, and the predicates of the mainloop are constants.
 *
 * Results go through shared memory (<cptx/epilogue.h>), and TMA stores them while the next tile is computed.  CTAs are
 * persistent, and the producer runs ahead across tile borders.  Rounding is not overlapped with products, and stmatrix only
 * where registers have room for a rounded tile beside the next one's sums (gemm_shape.later).
 */
#include "gemm/sm90/gemm.h"

/* Registers of a thread, by the number of MMA warpgroups; 0: as they come. */
enum { REGS_PRODUCER = 24 };
static const uint8_t regs_mma[] = { 0, 0, 240, 160 };

static void setup(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const gemm_shape *s = &g->s;

	tma_gemm_declare(k, &g->t, &g->w);
	const cptx_val ring =
		cptx_mov(k, cptx_shared_dyn(k, g->o->stages * (s->a_bytes + s->b_bytes), 1024, "ring"), .type = CPTX_U32);
	cptx_operand_new(k, &g->a, .type = g->o->a, .tile = s->a, .stages = g->o->stages, .smem = ring,
	                 .apart = s->a_bytes + s->b_bytes, .batched = g->o->batched, .parts = s->a_parts);
	cptx_operand_new(k, &g->b, .type = g->o->b, .tile = s->b, .stages = g->o->stages, .smem = cptx_offset(ring, s->a_bytes),
	                 .apart = s->a_bytes + s->b_bytes, .batched = g->o->batched, .parts = s->b_parts);
	cptx_roles_begin(k, &g->roles, .threads = (s->consumers + 1) * WARPGROUP, .ctas = s->per_sm);
	cptx_pipe_new(k, &g->pipe, .stages = g->o->stages, .consumers = s->consumers, .cta_release = true,
	              .multicast = s->cluster);
	cptx_pipe_init(k, &g->pipe, cptx_setp(k, g->roles.tid, 0, .cmp = CPTX_EQ));
	tma_gemm_prefetch_maps(k, &g->t, &g->w, g->roles.tid);
	tma_gemm_work_begin(k, &g->t, &g->w);
	/* what stands in front of this may overlap with the launch before, cptx_launch_opt.overlap */
	cptx_griddepcontrol(k, .op = CPTX_WAIT);
	cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
	cptx_timeline_begin(k, &g->line, .buffer = g->w.p.timeline, .warps = (s->consumers + 1) * WARPGROUP / 32,
	                    .events = g->o->timeline);
}

/* ---- the producer ---- */

/* What this CTA loads of an operand of a tile into each stage. */
typedef struct source {
	const cptx_operand *op;
	cptx_val map, row; /* row: of the tile */
	cptx_val when;     /* NONE: always */
	cptx_val bytes;    /* that come, from all CTAs that load parts */
	uint32_t sharers;  /* CTAs; with op->opt.parts 1 these load whole tiles by turns */
} source;

/*
 * Rows beyond the end are not asked for: TMA took up to three times as long for one as for a row that is there, on an H200.
 * So the residue rows have a map of their own, and what the stage has behind them stays as it was: it makes sums that are
 * not stored.
 */
static source source_of(const gemm90 *g, bool b)
{
	cptx_kernel *k = g->k;
	const tma_gemm_params *in = &g->w.in;
	const cptx_operand *op = b ? &g->b : &g->a;
	const uint32_t tile = op->opt.tile.rows, rows = tile / op->opt.parts;
	source x = { .op = op,
		         .map = in->map[b ? CPTX_GEMM_MAP_B : CPTX_GEMM_MAP_A],
		         .row = b ? g->w.n0 : g->w.m0,
		         .bytes = cptx_imm(op->bytes),
		         .sharers = b ? g->s.cluster_m : g->s.cluster_n };

	if (!(g->t.maps & MAP(CPTX_GEMM_MAP_LAST_A)))
		return x;
	cptx_val all = cptx_sub(k, cptx_as(b ? in->N : in->M, CPTX_S32), x.row), left = all;
	if (rows < tile)
		left = cptx_sub(k, all, cptx_mul(k, cptx_as(g->w.rank, CPTX_S32), rows, .mode = CPTX_LO));
	x.when = cptx_setp(k, left, 0, .cmp = CPTX_GT);
	x.map = cptx_selp(k, x.map, in->map[b ? CPTX_GEMM_MAP_LAST_B : CPTX_GEMM_MAP_LAST_A],
	                  cptx_setp(k, left, rows, .cmp = CPTX_GE), .type = CPTX_U64);
	all = cptx_max(k, cptx_min(k, all, tile), 0);
	cptx_val even = cptx_and(k, cptx_add(k, cptx_as(all, CPTX_U32), 1), ~1);
	x.bytes = cptx_mul(k, even, SPAN, .mode = CPTX_LO);
	return x;
}

static void load_operand(const gemm90 *g, const cptx_pipe_at *at, const source *x, cptx_val k0)
{
	cptx_kernel *k = g->k;
	cptx_val when = x->when;

	if (x->sharers != x->op->opt.parts) {
		cptx_val turn = cptx_and(k, cptx_div(k, cptx_as(k0, CPTX_U32), g->s.bk), x->sharers - 1);
		cptx_val mine = cptx_setp(k, turn, g->w.rank, .cmp = CPTX_EQ);
		when = when.kind == CPTX_VAL_NONE ? mine : cptx_and(k, when, mine, .type = CPTX_PRED);
	}
	cptx_operand_load(k, x->op, at->stage, x->row, k0, .barrier = cptx_pipe_full(at), .z = g->w.z,
	                  .part = x->op->opt.parts > 1 ? g->w.rank : (cptx_val){ 0 },
	                  .mask = x->sharers > 1 ? cptx_imm((1 << x->sharers) - 1) : (cptx_val){ 0 }, .map = x->map,
	                  .when = when);
}

/* By one thread. */
static void load(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const bool b_first = g->s.cluster_m > 1; /* what the cluster shares goes first: others wait for it, too */
	cptx_pipe_at at = cptx_pipe_producer(k, &g->pipe);
	cptx_val k0 = cptx_reg(k, CPTX_S32), end = cptx_reg(k, CPTX_S32);

	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, ~MAPS_OF_D);
		cptx_mov(k, g->o->stream_k ? cptx_mul(k, cptx_as(g->w.k_first, CPTX_S32), g->s.bk, .mode = CPTX_LO) : cptx_imm(0),
		         .into = k0);
		cptx_mul(k, cptx_as(g->w.k_end, CPTX_S32), g->s.bk, .mode = CPTX_LO, .into = end);
		const source a = source_of(g, false), b = source_of(g, true);
		const bool constant = a.bytes.kind == CPTX_VAL_INT;
		cptx_val bytes = constant ? cptx_imm(a.bytes.i + b.bytes.i) : cptx_add(k, a.bytes, b.bytes);
		CPTX_FOR(k, k0, end, g->s.bk) {
			cptx_timeline_stamp(k, &g->line, CPTX_GEMM_WAIT_ROOM);
			cptx_pipe_wait_empty(k, &g->pipe, &at);
			cptx_timeline_stamp(k, &g->line, CPTX_GEMM_LOAD);
			cptx_pipe_expect(k, &g->pipe, &at, bytes);
			load_operand(g, &at, b_first ? &b : &a, k0);
			load_operand(g, &at, b_first ? &a : &b, k0);
			cptx_pipe_next(k, &g->pipe, &at);
		}
	}
	cptx_timeline_stamp(k, &g->line, CPTX_TIMELINE_END);
	if (g->s.cluster > 1)
		cptx_pipe_drain(k, &g->pipe, &at);
}

/* ---- the MMA warpgroups ---- */

static void multiply_stage(gemm90 *g, bool fresh)
{
	cptx_kernel *k = g->k;

	cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_WAIT_DATA, g->stamps);
	cptx_pipe_wait_full(k, &g->pipe, &g->at);
	cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_MULTIPLY, g->stamps);
	cptx_mma_stage(k, &g->mma, &g->acc, g->at.stage, .fresh = fresh);
	if (g->s.later)
		cptx_epilogue_deferred_store(k, &g->before, fresh ? 0 : 1, fresh ? 1 : g->before.parts);
	if (!fresh) {
		cptx_mma_wait(k, &g->mma, 1);
		cptx_pipe_release(k, &g->pipe, &g->old, g->releases);
	}
	cptx_mov(k, g->at.barrier, .into = g->old.barrier);
	cptx_pipe_next(k, &g->pipe, &g->at);
}

/* With stream_k, and a part of a tile in the accumulators: the predicate holds if these have the sum of all parts behind it.
 */
static cptx_val fix_up(gemm90 *g)
{
	cptx_kernel *k = g->k;
	cptx_val begins = cptx_setp(k, g->w.k_first, 0, .cmp = CPTX_EQ), first = cptx_setp(k, g->lane, 0, .cmp = CPTX_EQ);
	tma_gemm_sums sums = tma_gemm_sums_of(k, &g->t, &g->w, g->s.consumers, WARPGROUP, g->wg, g->lane);

	sums.barrier = g->barrier;
	CPTX_IF(k, begins)
		tma_gemm_add_others(k, &g->w, &sums, g->acc.regs, first);
	CPTX_ELSE(k)
		tma_gemm_leave(k, &g->w, &sums, g->acc.regs, first);
	return begins;
}

/* Stores the results, or rounds them where another tile follows. */
static void store(gemm90 *g, bool defer)
{
	cptx_kernel *k = g->k;
	const cptx_val *map = g->w.in.map;
	const cptx_epilogue_dst to = { .z = g->w.z, .map = map[CPTX_GEMM_MAP_D], .last_map = map[CPTX_GEMM_MAP_END_D] };
	cptx_epilogue e = tma_gemm_chain(k, &g->t, &g->w, &g->acc);

	if (defer)
		cptx_epilogue_defer_(k, CPTX_HERE, &e, &g->before, &to);
	else
		cptx_epilogue_store_tma_(k, CPTX_HERE, &e, &g->ring, &to);
}

/* Behind the mainloop: all or a part of a tile is complete in the accumulators. */
static void finish_tile(gemm90 *g)
{
	cptx_kernel *k = g->k;

	if (g->o->stream_k) {
		cptx_val done = cptx_var(k, CPTX_PRED, cptx_setp(k, g->w.step, g->w.k_tiles, .cmp = CPTX_EQ));
		CPTX_IF(k, cptx_negated(done))
			cptx_mov(k, fix_up(g), .into = done);
		CPTX_IF(k, done)
			store(g, false);
	} else if (g->s.later) {
		cptx_epilogue_deferred_rest(k, &g->before, 1); /* each tile has a stage, so part 0 is stored */
		CPTX_IF(k, cptx_setp(k, cptx_add(k, g->w.at, g->w.step), g->w.end, .cmp = CPTX_LT))
			store(g, true);
		CPTX_ELSE(k)
			store(g, false);
	} else {
		store(g, false);
	}
}

static void multiply_tiles(gemm90 *g)
{
	cptx_kernel *k = g->k;
	cptx_val i = cptx_reg(k, CPTX_U32);

	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, MAPS_OF_D);
		multiply_stage(g, true);
		cptx_add(k, g->w.k_first, 1, .type = CPTX_U32, .into = i);
		CPTX_FOR(k, i, g->w.k_end, 1)
			multiply_stage(g, false);
		cptx_mma_wait(k, &g->mma, 0);
		cptx_pipe_release(k, &g->pipe, &g->old, g->releases);
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_BRING_OUT, g->stamps);
		finish_tile(g);
	}
	cptx_timeline_stamp_when(k, &g->line, CPTX_TIMELINE_END, g->stamps);
	cptx_epilogue_ring_drain(k, &g->ring, &g->acc);
}

static void multiply(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const uint32_t cluster = g->s.cluster;

	g->barrier = cptx_shr(k, g->roles.warp, 2);
	g->wg = cptx_sub(k, g->barrier, 1);
	g->lane = cptx_and(k, g->roles.tid, WARPGROUP - 1);
	g->releases = cptx_setp(k, g->lane, cluster, .cmp = CPTX_LT);
	g->at = cluster > 1 ? cptx_pipe_consumer_of(k, &g->pipe, cptx_and(k, g->lane, cluster - 1))
	                    : cptx_pipe_consumer(k, &g->pipe);
	g->old = g->at;
	g->old.barrier = cptx_reg(k, CPTX_U32);
	if (g->o->timeline)
		g->stamps = cptx_setp(k, cptx_and(k, g->lane, 31), 0, .cmp = CPTX_EQ);
	cptx_tiled_mma_new(k, &g->mma, .by = CPTX_BY_WGMMA, .a = g->o->a, .b = g->o->b, .m = g->s.blocks * BLOCK_M,
	                   .n = g->o->bn, .units_m = g->s.consumers, .a_tile = g->s.a, .b_tile = g->s.b, .unit = g->wg,
	                   .thread = g->lane, .a_ring = g->a.smem, .b_ring = cptx_offset(g->a.smem, g->s.a_bytes),
	                   .apart = g->a.apart);
	cptx_acc_new(k, &g->mma, &g->acc);
	cptx_epilogue_ring_new(k, &g->ring, .type = g->o->out, .tile = g->s.d, .map = g->w.in.map[CPTX_GEMM_MAP_D],
	                       .stages = g->s.store_buffers, .units = g->s.consumers, .unit = g->wg, .barrier = g->barrier,
	                       .last = g->s.rest, .last_map = g->w.in.map[CPTX_GEMM_MAP_END_D], .acc = &g->acc);
	if (g->s.later)
		cptx_epilogue_deferred_new(k, &g->before, .ring = &g->ring, .batched = g->o->batched, .maps = g->o->grouped);
	multiply_tiles(g);
}

cptx_kernel *gemm_sm90_build(cptx_module *m, const cptx_gemm_opt *opt)
{
	cptx_gemm_opt o = tma_gemm_inner(opt);
	gemm90 g = { .o = &o, .s = gemm_sm90_shape(opt), .t = gemm_sm90_describe(opt) };
	const uint32_t regs = g.s.per_sm > 1 ? 0 : regs_mma[g.s.consumers];

	g.k = cptx_kernel_begin(m, o.name, .block = { (g.s.consumers + 1) * WARPGROUP }, .min_ctas = g.s.per_sm,
	                        .cluster = { g.s.cluster > 1 ? g.s.cluster : 0 });
	setup(&g);
	CPTX_ROLE(g.k, &g.roles, .warps = 4, .regs = regs ? REGS_PRODUCER : 0, .elect = true, .exits = true)
		load(&g);
	CPTX_ROLE(g.k, &g.roles, .warps = 4 * g.s.consumers, .regs = regs)
		multiply(&g);
	return g.k;
}
