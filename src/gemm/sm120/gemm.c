/* SPDX-License-Identifier: MIT */
/*
 * Block-scaled GEMM for sm_120: TMA -> shared memory -> ldmatrix -> mma.sync with scale factors -> D.
 *
 * One thread of the last warp fills a ring of stages; the others compute (cptx_mma_tile, <cptx/mma.h>).  CTAs are
 * persistent, and the loader runs ahead across tile borders.  D is written from registers.
 */
#include "gemm/sm120/gemm.h"
#include "gemm/walk.h"

static cptx_val times(cptx_kernel *k, cptx_val a, uint32_t b) { return cptx_mul(k, a, b, .mode = CPTX_LO); }

/* ---- set-up ---- */

static void declare(gemm120 *g, cptx_module *m)
{
	g->k = cptx_kernel_begin(m, g->o->name, .block = { (g->s.warps + 1) * SM120_WARP }, .min_ctas = g->s.per_sm);
	tma_gemm_declare(g->k, &g->t, &g->w);
}

static void make_operand(gemm120 *g, bool of_b)
{
	cptx_kernel *k = g->k;
	const cptx_gemm_opt *o = g->o;

	cptx_operand_new(k, of_b ? &g->b : &g->a,
	                 .type = gemm_sm120_packed(o) ? CPTX_U8
	                         : of_b               ? o->b
	                                              : o->a,
	                 .tile = of_b ? g->t.b : g->t.a, .stages = o->stages,
	                 .smem = of_b ? cptx_offset(g->ring, g->s.a_bytes) : g->ring, .apart = g->s.stage, .batched = o->batched,
	                 .alone = true);
}

static void setup(gemm120 *g)
{
	cptx_kernel *k = g->k;

	g->ring = cptx_mov(k, cptx_shared_dyn(k, g->o->stages * g->s.stage, 1024, "ring"), .type = CPTX_U32);
	g->tid = cptx_tid_x(k), g->lane = cptx_and(k, g->tid, SM120_WARP - 1);
	g->warp = cptx_shfl_sync(k, cptx_shr(k, g->tid, 5), 0, 31, -1, .mode = CPTX_IDX);
	cptx_pipe_new(k, &g->pipe, .stages = g->o->stages, .consumers = g->s.warps);
	cptx_pipe_init(k, &g->pipe, cptx_setp(k, g->tid, 0, .cmp = CPTX_EQ));
	tma_gemm_work_begin(k, &g->t, &g->w);
	make_operand(g, false);
	make_operand(g, true);
	cptx_griddepcontrol(k, .op = CPTX_WAIT);
	cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
	cptx_timeline_begin(k, &g->line, .buffer = g->w.p.timeline, .warps = g->s.warps + 1, .events = g->o->timeline);
}

/* ---- the loader ---- */

static void load_stage(const gemm120 *g, const cptx_pipe_at *at, cptx_val k0)
{
	cptx_kernel *k = g->k;
	const gemm120_shape *s = &g->s;
	cptx_val to = cptx_mad(k, at->stage, s->stage, g->ring, .mode = CPTX_LO), full = cptx_pipe_full(at);
	cptx_val block = cptx_div(k, k0, SM120_SPAN / s->blocks);
	tma_gemm_factors_load f = { .t = &g->t, .work = &g->w, .in = &g->w.p, .block = block, .mbar = full, .alone = true };

	cptx_operand_load(k, &g->a, at->stage, g->w.m0, k0, .barrier = full, .z = g->w.z, .map = g->w.p.map[CPTX_GEMM_MAP_A]);
	cptx_operand_load(k, &g->b, at->stage, g->w.n0, k0, .barrier = full, .z = g->w.z, .map = g->w.p.map[CPTX_GEMM_MAP_B]);
	tma_gemm_load_factors(k, &f, false, cptx_offset(to, s->a_bytes + s->b_bytes));
	tma_gemm_load_factors(k, &f, true, cptx_offset(to, s->a_bytes + s->b_bytes + s->sf_bytes));
}

/* Bytes along K of what is done now. */
static cptx_val end_of_load(const gemm120 *g)
{
	cptx_kernel *k = g->k;

	return cptx_as(g->o->stream_k            ? times(k, g->w.k_end, SM120_SPAN)
	               : gemm_sm120_packed(g->o) ? cptx_shr(k, g->w.p.K, 1)
	                                         : g->w.p.K,
	               CPTX_S32);
}

/* One thread.  Along K it counts bytes. */
static void load(gemm120 *g)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at at = cptx_pipe_producer(k, &g->pipe);
	cptx_val k0 = cptx_reg(k, CPTX_S32);

	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, ~MAPS_OF_D);
		cptx_mov(k, g->o->stream_k ? cptx_as(times(k, g->w.k_first, SM120_SPAN), CPTX_S32) : cptx_imm(0), .into = k0);
		cptx_val end = end_of_load(g);
		CPTX_FOR(k, k0, end, SM120_SPAN) {
			cptx_timeline_stamp(k, &g->line, CPTX_GEMM_WAIT_ROOM);
			cptx_pipe_wait_empty(k, &g->pipe, &at);
			cptx_timeline_stamp(k, &g->line, CPTX_GEMM_LOAD);
			cptx_pipe_expect(k, &g->pipe, &at, g->s.stage);
			load_stage(g, &at, k0);
			cptx_pipe_next(k, &g->pipe, &at);
		}
	}
	cptx_timeline_stamp(k, &g->line, CPTX_TIMELINE_END);
}

/* ---- the computing warps ---- */

/* As elements, which two by two are a byte for TMA. */
static cptx_tile tile_of(const gemm120 *g, bool of_b)
{
	cptx_tile t = of_b ? g->t.b : g->t.a;

	if (gemm_sm120_packed(g->o))
		t.cols *= 2, t.elem.bits = 4;
	return t;
}

static void make_mma(gemm120 *g)
{
	cptx_kernel *k = g->k;
	const cptx_gemm_opt *o = g->o;

	cptx_tiled_mma_new(k, &g->mma, .a = o->a, .b = o->b, .m = g->s.wm, .n = g->s.wn, .units_m = o->warps_m,
	                   .units_n = o->warps_n, .a_tile = tile_of(g, false), .b_tile = tile_of(g, true), .scale = o->scale,
	                   .unit = g->warp, .thread = g->lane);
	cptx_acc_new(k, &g->mma, &g->acc);
}

/* Bytes from the start of a block of factors to those of a tile that may begin in its middle; NONE: it does not. */
static cptx_val place_in_block(const gemm120 *g, uint32_t rows, cptx_val row)
{
	cptx_kernel *k = g->k;

	if (rows % CPTX_SCALE_ROWS == 0)
		return (cptx_val){ 0 };
	return cptx_shl(k, cptx_shr(k, cptx_and(k, cptx_as(row, CPTX_U32), CPTX_SCALE_ROWS - 1), 5), 2);
}

static cptx_val moved(cptx_kernel *k, cptx_val at, cptx_val by)
{
	return by.kind == CPTX_VAL_NONE ? at : cptx_add(k, at, by);
}

/* ---- D ---- */

static void put_two(const gemm120 *g, cptx_val at, cptx_val row, cptx_val col, cptx_val v[2], cptx_val inside)
{
	cptx_kernel *k = g->k;
	const tma_gemm *t = &g->t;
	cptx_val c[2] = { { 0 } }, bias[2] = { { 0 } }, e[2];

	if (t->o->beta)
		tma_gemm_load_row(k, tma_gemm_c_at(k, t, &g->w.p, row, col, g->w.z), t->o->out, 2, inside, c);
	if (t->o->bias)
		tma_gemm_load_row(k, cptx_add(k, g->w.p.bias, cptx_mul_wide(k, col, 4)), CPTX_F32, 2, inside, bias);
	for (uint32_t i = 0; i < 2; i++)
		e[i] = tma_gemm_value(k, t, &g->w.p, v[i], c[i], bias[i], row, i && t->o->epilogue ? cptx_add(k, col, 1) : col);
	if (t->o->out == CPTX_F32)
		cptx_st(k, at, cptx_pack(k, 2, e), .space = CPTX_GLOBAL, .vec = CPTX_V2, .type = CPTX_F32, .when = inside);
	else
		cptx_st(k, at, tma_gemm_narrow(k, t->o->out, e[0], e[1], (cptx_val){ 0 }), .space = CPTX_GLOBAL, .type = CPTX_B32,
		        .when = inside);
}

static void put(const gemm120 *g)
{
	cptx_kernel *k = g->k;
	uint32_t size = cptx_type_bits(g->o->out) / 8;
	walk_matrices d = { .at = g->w.p.map[CPTX_GEMM_MAP_D], .M = g->w.p.M, .N = g->w.p.N, .bytes = size };
	/* computed here, as registers are scarce in the mainloop */
	cptx_val row = cptx_add(k, cptx_add(k, cptx_as(g->w.m0, CPTX_U32), g->mma.row), cptx_shr(k, g->lane, 2));
	cptx_val col = cptx_add(k, cptx_add(k, cptx_as(g->w.n0, CPTX_U32), g->mma.col), cptx_shl(k, cptx_and(k, g->lane, 3), 1));

	for (uint32_t i = 0; i < g->acc.rows; i++) {
		cptx_val r = i ? cptx_add(k, row, i * 8) : row, there = cptx_setp(k, r, g->w.p.M, .cmp = CPTX_LT);
		cptx_val line = walk_element(k, &d, g->o->batched ? cptx_as(g->w.z, CPTX_U32) : (cptx_val){ 0 }, r, col);
		for (uint32_t j = 0; j < g->acc.atoms_n; j++) {
			cptx_val c = j ? cptx_add(k, col, j * 8) : col;
			uint32_t first = (i / 2 * g->acc.atoms_n + j) * 4 + i % 2 * 2;
			cptx_val v[2] = { cptx_elem(g->acc.regs, first), cptx_elem(g->acc.regs, first + 1) };
			/* N is even, as rows are aligned: both are inside or none */
			put_two(g, cptx_offset(line, j * 8 * size), r, c, v,
			        cptx_and(k, there, cptx_setp(k, c, g->w.p.N, .cmp = CPTX_LT)));
		}
	}
}

/* The products of this warp and tile. */
static void multiply(const gemm120 *g, cptx_pipe_at *at, cptx_val first_lane)
{
	cptx_kernel *k = g->k;
	const gemm120_shape *s = &g->s;
	cptx_val fa = place_in_block(g, g->o->bm, g->w.m0), fb = place_in_block(g, g->o->bn, g->w.n0);
	cptx_val k0 = cptx_var(k, CPTX_U32, g->o->stream_k ? times(k, g->w.k_first, s->bk) : cptx_imm(0));
	cptx_val end = g->o->stream_k ? times(k, g->w.k_end, s->bk) : g->w.p.K;

	cptx_acc_clear(k, &g->acc);
	CPTX_FOR(k, k0, end, s->bk) {
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_WAIT_DATA, first_lane);
		cptx_pipe_wait_full(k, &g->pipe, at);
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_MULTIPLY, first_lane);
		cptx_val a = cptx_mad(k, at->stage, s->stage, g->ring, .mode = CPTX_LO), sa = moved(k, a, fa), sb = moved(k, a, fb);
		cptx_mma_tile(k, &g->mma, &g->acc, a, cptx_offset(a, s->a_bytes),
		              .scale_a = cptx_offset(sa, s->a_bytes + s->b_bytes),
		              .scale_b = cptx_offset(sb, s->a_bytes + s->b_bytes + s->sf_bytes));
		cptx_bar_warp_sync(k, -1);
		cptx_pipe_release(k, &g->pipe, at, first_lane);
		cptx_pipe_next(k, &g->pipe, at);
	}
}

static void compute(gemm120 *g)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at at = cptx_pipe_consumer(k, &g->pipe);
	cptx_val first_lane = cptx_setp(k, g->lane, 0, .cmp = CPTX_EQ);
	const tma_gemm_sums sums = { .at = g->w.p.workspace,
		                         .clusters = g->w.clusters,
		                         .of_cluster = g->s.warps,
		                         .bytes = gemm_sm120_sum_bytes(&g->s),
		                         .threads = SM120_WARP,
		                         .mine = g->warp,
		                         .lane = g->lane };

	make_mma(g);
	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, 0);
		multiply(g, &at, first_lane);
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_BRING_OUT, first_lane);
		if (g->o->stream_k) {
			cptx_val begins = cptx_setp(k, g->w.k_first, 0, .cmp = CPTX_EQ);
			CPTX_IF(k, begins) {
				CPTX_IF(k, cptx_setp(k, g->w.step, g->w.k_tiles, .cmp = CPTX_NE))
					tma_gemm_add_others(k, &g->w, &sums, g->acc.regs, first_lane);
				put(g);
			}
			CPTX_ELSE(k)
				tma_gemm_leave(k, &g->w, &sums, g->acc.regs, first_lane);
		} else {
			put(g);
		}
	}
	cptx_timeline_stamp_when(k, &g->line, CPTX_TIMELINE_END, first_lane);
}

cptx_kernel *gemm_sm120_build(cptx_module *m, const cptx_gemm_opt *o)
{
	gemm120 g = { .o = o, .s = gemm_sm120_shape(o), .t = gemm_sm120_describe(o) };

	declare(&g, m);
	cptx_kernel *k = g.k;
	setup(&g);
	CPTX_IF(k, cptx_setp(k, g.warp, g.s.warps, .cmp = CPTX_EQ)) {
		CPTX_IF(k, cptx_setp(k, g.lane, 0, .cmp = CPTX_EQ))
			load(&g);
	}
	CPTX_ELSE(k)
		compute(&g);
	return k;
}
