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

/* ---- set-up ---- */

static void begin_operands(gemm80 *g)
{
	const tma_gemm_params *p = g->o->tma ? &g->w.p : &g->ahead.p;
	const bool by_tma = g->o->tma;

	/* of a list, a load names the map: the first here only stands for it */
	for (int b = 0; b < 2; b++)
		cptx_operand_new(g->k, &g->operand[b], .by = by_tma ? CPTX_OPERAND_TMA : CPTX_OPERAND_CP_ASYNC, .type = g->o->a,
		                 .tile = b ? g->t.b : g->t.a, .stages = g->o->stages,
		                 .smem = cptx_offset(g->ring, b ? g->s.a_bytes : 0), .apart = g->s.stage,
		                 .map = g->o->grouped ? g->w.list.records : p->map[b], .batched = by_tma && g->o->batched,
		                 .alone = true, .address = p->map[b], .rows = b ? p->N : p->M, .cols = p->K, .threads = g->s.threads,
		                 .thread = g->roles.tid, .whole = !by_tma);
}

static void setup(gemm80 *g)
{
	cptx_kernel *k = g->k;
	const bool by_tma = g->o->tma;

	g->ring = cptx_mov(k, cptx_shared_dyn(k, g->o->stages * g->s.stage, 1024, "ring"), .type = CPTX_U32);
	if (by_tma)
		g->slabs = cptx_mov(k, cptx_shared_dyn(k, g->s.warps * g->s.slab_bytes, 1024, "slabs"), .type = CPTX_U32);
	cptx_roles_begin(k, &g->roles, .threads = g->s.threads, .keep_regs = !g->s.regs);
	g->first_lane = cptx_setp(k, g->roles.lane, 0, .cmp = CPTX_EQ);
	cptx_pipe_new(k, &g->pipe, .stages = g->o->stages, .consumers = g->s.warps,
	              .by = by_tma ? CPTX_PIPE_MBARRIER : CPTX_PIPE_CP_ASYNC_GROUPS);
	cptx_pipe_init(k, &g->pipe, cptx_setp(k, g->roles.tid, 0, .cmp = CPTX_EQ));
	g->ahead = g->w;
	tma_gemm_work_begin(k, &g->t, &g->w);
	if (by_tma) {
		tma_gemm_prefetch_maps(k, &g->t, &g->w, g->roles.tid);
		cptx_griddepcontrol(k, .op = CPTX_WAIT);
		cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
	}
	cptx_timeline_begin(k, &g->line, .buffer = g->w.p.timeline, .warps = g->s.threads / CPTX_WARP, .events = g->o->timeline);
}

/* ---- cp.async: all threads, ahead of what they multiply ---- */

/* A and B of the problem, or of the matrix of a batch, that tile g->ahead is of. */
static void find_matrix(gemm80 *g, int b)
{
	cptx_kernel *k = g->k;
	const tma_gemm_work *w = &g->ahead;
	cptx_val at = w->p.map[b];

	if (g->o->batched) {
		cptx_val each = cptx_mul_wide(k, b ? w->p.N : w->p.M, w->p.K);
		cptx_val z = cptx_cvt(k, cptx_as(w->z, CPTX_U32), .dtype = CPTX_U64);
		at = cptx_mad(k, cptx_shl(k, each, 1), z, at, .mode = CPTX_LO);
	}
	if (g->o->batched || g->o->grouped)
		cptx_operand_rebase(k, &g->operand[b], at);
}

static void seek_tile(gemm80 *g)
{
	cptx_kernel *k = g->k;
	tma_gemm_work *w = &g->ahead;

	tma_gemm_locate(k, &g->t, w, 0);
	for (int b = 0; b < 2; b++)
		find_matrix(g, b);
	cptx_val k0 = g->o->stream_k ? cptx_mul(k, w->k_first, g->o->bk, .mode = CPTX_LO) : cptx_imm(0);
	for (int b = 0; b < 2; b++)
		cptx_operand_seek(k, &g->operand[b], &g->from[b], b ? w->n0 : w->m0, k0);
	cptx_mov(k, g->o->stream_k ? cptx_sub(k, w->k_end, w->k_first) : w->k_end, .into = g->left);
}

/* Behind the last tile, copies are of no rows: zeros. */
static void seek_next(gemm80 *g)
{
	cptx_kernel *k = g->k;

	for (int b = 0; b < 2; b++)
		cptx_mov(k, 0, .into = g->from[b].rows), cptx_mov(k, 0, .into = g->from[b].bytes);
	CPTX_IF(k, cptx_setp(k, g->ahead.at, g->ahead.end, .cmp = CPTX_LT))
		seek_tile(g);
}

/* Part number `part` of `parts` of a K tile's copies; those of B follow those of A. */
static void copy(const gemm80 *g, const cptx_pipe_at *to, uint32_t part, uint32_t parts)
{
	const uint32_t all = g->operand[0].copies + g->operand[1].copies;
	uint32_t from = all * part / parts, end = all * (part + 1) / parts;

	for (int b = 0; b < 2; b++) {
		const uint32_t n = g->operand[b].copies, last = MIN(end, n);
		if (from < last)
			cptx_operand_load_from(g->k, &g->operand[b], to->stage, &g->from[b], .first = from, .copies = last - from);
		from = MAX(from, n) - n, end = MAX(end, n) - n;
	}
}

static void copied(gemm80 *g, cptx_pipe_at *to)
{
	cptx_pipe_filled(g->k, &g->pipe, to);
	cptx_pipe_next(g->k, &g->pipe, to);
}

/* The end of a K tile: its branch would otherwise split the block that ptxas schedules. */
static void advance_copies(gemm80 *g)
{
	cptx_kernel *k = g->k;

	for (int b = 0; b < 2; b++)
		cptx_operand_advance(k, &g->operand[b], &g->from[b], 0, g->o->bk);
	cptx_sub(k, g->left, 1, .into = g->left);
	CPTX_IF(k, cptx_setp(k, g->left, 0, .cmp = CPTX_EQ)) {
		cptx_add(k, g->ahead.at, g->ahead.step, .into = g->ahead.at);
		seek_next(g);
	}
}

/* Copies of the first stages are on their way behind it. */
static cptx_pipe_at begin_copies(gemm80 *g)
{
	cptx_kernel *k = g->k;
	tma_gemm_params *p = &g->ahead.p;
	cptx_val *const unknown[] = { &p->M, &p->N, &p->K, &p->map[CPTX_GEMM_MAP_A], &p->map[CPTX_GEMM_MAP_B] };

	tma_gemm_work_begin(k, &g->t, &g->ahead);
	for (size_t i = 0; g->o->grouped && i < ARRAY_LEN(unknown); i++) /* until the first problem is found */
		cptx_mov(k, 0, .into = *unknown[i]);
	begin_operands(g);
	for (int b = 0; b < 2; b++)
		g->from[b] = cptx_operand_source(k, &g->operand[b], 0, 0);
	g->left = cptx_var(k, CPTX_U32, 0);
	seek_next(g);
	cptx_pipe_at to = cptx_pipe_producer(k, &g->pipe);
	for (uint32_t s = 0; s + 1 < g->o->stages; s++) {
		copy(g, &to, 0, 1);
		copied(g, &to);
		advance_copies(g);
	}
	return to;
}

/* ---- the mainloop ---- */

/* Counted along, not stage * bytes: ptxas then keeps it in a uniform register, which ldmatrix adds for nothing. */
static void next_offset(const gemm80 *g)
{
	cptx_val next = cptx_add(g->k, g->offset, g->s.stage);
	uint32_t end = g->o->stages * g->s.stage;

	cptx_selp(g->k, 0, next, cptx_setp(g->k, next, end, .cmp = CPTX_EQ), .type = CPTX_U32, .into = g->offset);
}

static void multiply(const gemm80 *g, uint32_t first, uint32_t steps)
{
	if (steps)
		cptx_mma_tile(g->k, &g->mma, &g->acc, g->offset, g->offset, .first = first, .steps = steps, .frags = &g->frags);
}

/* The last step, which fetches the first fragments of the stage that g->offset is at now, or none. */
static void multiply_last(const gemm80 *g, bool fetch)
{
	const cptx_val next = fetch ? g->offset : (cptx_val){ 0 };

	cptx_mma_tile(g->k, &g->mma, &g->acc, g->offset, g->offset, .first = g->mma.steps - 1, .steps = 1, .frags = &g->frags,
	              .next_a = next, .next_b = next);
}

static void fetch_first(const gemm80 *g, const cptx_pipe_at *at)
{
	cptx_pipe_wait_full(g->k, &g->pipe, at);
	cptx_mma_fetch(g->k, &g->mma, &g->frags, g->offset, g->offset);
}

static void stamp(const gemm80 *g, uint32_t phase) { cptx_timeline_stamp_when(g->k, &g->line, phase, g->first_lane); }

/* Whether the next K tile is there is asked a step before it is needed, so that the answer is not waited for.  another: has
 * the CTA another tile behind this one, whose K tile it is then? */
static void k_tile_of_tma(const gemm80 *g, cptx_pipe_at *at, bool last, cptx_val another)
{
	cptx_kernel *k = g->k;
	cptx_val there = { 0 };

	multiply(g, 0, g->mma.steps - 2);
	cptx_pipe_at ahead = cptx_pipe_ahead(k, &g->pipe, at);
	if (!last)
		there = cptx_pipe_is_full(k, &ahead);
	multiply(g, g->mma.steps - 2, 1);
	cptx_bar_warp_sync(k, -1);
	cptx_pipe_release(k, &g->pipe, at, g->first_lane);
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

static void k_tile_of_cp_async(gemm80 *g, cptx_pipe_at *at, cptx_pipe_at *to)
{
	cptx_kernel *k = g->k;

	for (uint32_t step = 0; step + 1 < g->mma.steps; step++) {
		copy(g, to, step, g->mma.steps - 1);
		multiply(g, step, 1);
	}
	copied(g, to);
	stamp(g, CPTX_GEMM_WAIT_DATA);
	cptx_pipe_wait_full(k, &g->pipe, at);
	stamp(g, CPTX_GEMM_MULTIPLY);
	next_offset(g);
	multiply_last(g, true);
	advance_copies(g);
}

/* The sums of a tile. */
static void mainloop(gemm80 *g, cptx_pipe_at *at, cptx_pipe_at *to)
{
	cptx_kernel *k = g->k;
	cptx_val i = cptx_var(k, CPTX_U32, g->o->tma ? 1 : 0), another = { 0 };
	cptx_val n = g->o->stream_k ? cptx_sub(k, g->w.k_end, g->w.k_first) : g->w.k_end;

	cptx_acc_clear(k, &g->acc);
	if (!g->o->tma) {
		CPTX_FOR(k, i, n, 1)
			k_tile_of_cp_async(g, at, to);
		return;
	}
	another = cptx_setp(k, cptx_add(k, g->w.at, g->w.step), g->w.end, .cmp = CPTX_LT);
	CPTX_FOR(k, i, n, 1)
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
	                   .b_base = cptx_offset(g->ring, g->s.a_bytes));
	cptx_acc_new(k, &g->mma, &g->acc);
	cptx_mma_frags_new(k, &g->mma, &g->frags, false);
	g->offset = cptx_var(k, CPTX_U32, 0);
}

/* ---- D ---- */

/* By TMA a warp rounds a slab of its part into shared memory of its own: no barrier of the CTA, no masks at the edges, and
 * the stores of one tile run beside the mma.sync of the next. */
static void store_by_tma(gemm80 *g, cptx_epilogue *e)
{
	cptx_epilogue_ring ring;

	cptx_epilogue_ring_new(g->k, &ring, .type = g->o->out, .tile = g->t.d, .stages = 1, .units = g->s.warps,
	                       .unit = g->roles.warp, .smem = g->slabs);
	cptx_epilogue_store_tma(g->k, e, &ring, .z = g->o->batched ? g->w.z : (cptx_val){ 0 },
	                        .map = g->w.p.map[CPTX_GEMM_MAP_D]);
}

/* The mainloop leaves no registers for what follows from the number of the lane, so it is computed here. */
static void store_tile(gemm80 *g, cptx_val lane)
{
	cptx_kernel *k = g->k;
	cptx_epilogue e;
	cptx_acc acc = g->acc;

	acc.thread = lane;
	acc.row = cptx_add(k, cptx_as(cptx_frag_lane_row(k, &acc.map, lane), CPTX_U32), g->mma.row);
	acc.col = cptx_add(k, cptx_as(cptx_frag_lane_col(k, &acc.map, lane), CPTX_U32), g->mma.col);
	tma_gemm_chain(k, &g->t, &g->w, &e);
	if (g->o->tma) {
		cptx_epilogue_run(k, &e, &acc, .row = g->w.m0, .col = g->w.n0, .at_store = true);
		store_by_tma(g, &e);
		return;
	}
	/* two neighbours at once where rows are so aligned */
	cptx_val even = cptx_setp(k, cptx_and(k, g->w.p.N, 1), 0, .cmp = CPTX_EQ);
	for (e.opt.vec = 2; e.opt.vec; e.opt.vec--) {
		CPTX_IF(k, e.opt.vec == 2 ? even : cptx_negated(even)) {
			cptx_epilogue_run(k, &e, &acc, .row = g->w.m0, .col = g->w.n0, .at_store = true);
			tma_gemm_store(k, &g->t, &g->w, &e);
		}
	}
}

static void finish(gemm80 *g)
{
	cptx_kernel *k = g->k;
	const cptx_val lane = cptx_laneid(k);
	const tma_gemm_sums sums = tma_gemm_sums_of_warps(&g->w, g->s.warps, g->s.wm * g->s.wn * 4, g->roles.warp, lane);

	stamp(g, CPTX_GEMM_BRING_OUT);
	if (!g->o->stream_k) {
		store_tile(g, lane);
		return;
	}
	CPTX_IF(k, cptx_tiles_finishes(k, &g->w.sched, &g->w.here)) {
		tma_gemm_reduce(k, &g->w, &sums, g->acc.regs, g->first_lane);
		store_tile(g, lane);
	}
	CPTX_ELSE(k)
		tma_gemm_leave(k, &g->w, &sums, g->acc.regs, g->first_lane);
}

static void consume(gemm80 *g)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at at = cptx_pipe_consumer(k, &g->pipe), to = { 0 };

	begin_products(g);
	if (!g->o->tma)
		to = begin_copies(g);
	CPTX_IF(k, cptx_setp(k, g->w.at, g->w.end, .cmp = CPTX_LT))
		fetch_first(g, &at);
	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, MAPS_OF_D);
		mainloop(g, &at, &to);
		finish(g);
	}
	if (g->o->tma)
		CPTX_IF(k, g->first_lane)
			cptx_cp_async_bulk_wait_group(k, 0);
	else
		cptx_cp_async_wait_all(k);
	stamp(g, CPTX_TIMELINE_END);
}

cptx_kernel *gemm_sm80_build(cptx_module *m, const cptx_gemm_opt *o)
{
	gemm80 g = { .o = o, .s = gemm_sm80_shape(o), .t = gemm_sm80_describe(o) };
	cptx_kernel *k = g.k = cptx_kernel_begin(m, o->name, .block = { g.s.threads }, .min_ctas = 1);

	tma_gemm_declare(k, &g.t, &g.w);
	setup(&g);
	if (!o->tma) {
		consume(&g);
		return k;
	}
	begin_operands(&g);
	CPTX_ROLE(k, &g.roles, .warps = g.s.warps, .regs = g.s.regs) {
		consume(&g);
	}
	CPTX_ROLE(k, &g.roles, .warps = g.s.producers, .regs = g.s.regs ? SM80_PRODUCER_REGS : 0, .elect = true) {
		tma_gemm_produce(k, &(tma_gemm_producer){ .t = &g.t,
		                                          .w = &g.w,
		                                          .pipe = &g.pipe,
		                                          .line = &g.line,
		                                          .a = &g.operand[0],
		                                          .b = &g.operand[1],
		                                          .stage = g.s.stage });
	}
	return k;
}
