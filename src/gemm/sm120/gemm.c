/* SPDX-License-Identifier: MIT */
/*
 * Block-scaled GEMM for sm_120: TMA -> shared memory -> ldmatrix -> mma.sync with scale factors -> D.
 *
 * One thread of the last warp fills a ring of stages; the others compute.  Elements of 8 and of 4 bits lie alike, 128 bytes
 * along K in a stage: an mma.sync takes 32 of them, of 16 rows of A and 8 of B (gemm/sm120/operand.c).  The factors come in
 * blocks of 128 rows by 4; those of a row are a word, which a lane reads at once, and the mma.sync picks bytes of it: lanes
 * 4i and 4i + 1 have rows i and i + 8 of A, lane 4i column i of B.
 *
 * CTAs are persistent, and the loader runs ahead across tile borders.  D is written from registers.
 */
#include "gemm/sm120/gemm.h"
#include "gemm/walk.h"

static uint32_t rows16(const gemm120 *g) { return g->s.wm / 16; }
static uint32_t cols8(const gemm120 *g) { return g->s.wn / 8; }

static cptx_val times(cptx_kernel *k, cptx_val a, uint32_t b) { return cptx_mul(k, a, b, .mode = CPTX_LO); }

/* ---- set-up ---- */

static void declare(gemm120 *g, cptx_module *m)
{
	g->k = cptx_kernel_begin(m, g->o->name, .block = { (g->s.warps + 1) * SM120_WARP }, .min_ctas = g->s.per_sm);
	tma_gemm_declare(g->k, &g->t, &g->w);
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
	cptx_griddepcontrol(k, .op = CPTX_WAIT);
	cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
	cptx_timeline_begin(k, &g->line, .buffer = g->w.p.timeline, .warps = g->s.warps + 1, .events = g->o->timeline);
}

/* ---- the loader ---- */

static void load_factors(const gemm120 *g, bool of_b, cptx_val to, cptx_val block, const cptx_pipe_at *at)
{
	cptx_kernel *k = g->k;
	cptx_val c[4] = { cptx_mov(k, 0, .type = CPTX_S32), block, cptx_shr(k, of_b ? g->w.n0 : g->w.m0, 7), g->w.z };

	cptx_cp_async_bulk_tensor_load(k, to, g->w.p.map[of_b ? CPTX_GEMM_MAP_SCALE_B : CPTX_GEMM_MAP_SCALE_A],
	                               cptx_pack(k, g->o->batched ? 4 : 3, c), cptx_pipe_full(at),
	                               .dim = g->o->batched ? CPTX_DIM_4D : CPTX_DIM_3D, .dst = CPTX_SHARED_CTA);
}

static void load_stage(const gemm120 *g, const cptx_pipe_at *at, cptx_val k0)
{
	cptx_kernel *k = g->k;
	const gemm120_shape *s = &g->s;
	cptx_val to = cptx_mad(k, at->stage, s->stage, g->ring, .mode = CPTX_LO),
			 block = cptx_div(k, k0, SM120_SPAN / s->blocks);
	tma_gemm_load l = { .t = &g->t, .k0 = k0, .z = g->w.z, .mbar = cptx_pipe_full(at), .alone = true };

	l.tile = &g->t.a, l.map = g->w.p.map[CPTX_GEMM_MAP_A], l.row = g->w.m0, l.to = to;
	tma_gemm_load_tile(k, &l);
	l.tile = &g->t.b, l.map = g->w.p.map[CPTX_GEMM_MAP_B], l.row = g->w.n0, l.to = cptx_offset(to, s->a_bytes);
	tma_gemm_load_tile(k, &l);
	load_factors(g, false, cptx_offset(to, s->a_bytes + s->b_bytes), block, at);
	load_factors(g, true, cptx_offset(to, s->a_bytes + s->b_bytes + s->sf_bytes), block, at);
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

static void begin_fragments(gemm120 *g)
{
	cptx_kernel *k = g->k;
	cptx_val quad = cptx_shr(k, g->lane, 2);

	g->warp_m = times(k, g->o->warps_n > 1 ? cptx_div(k, g->warp, g->o->warps_n) : g->warp, g->s.wm);
	g->warp_n = g->o->warps_n > 1 ? times(k, cptx_rem(k, g->warp, g->o->warps_n), g->s.wn) : cptx_imm(0);
	if (g->o->warps_n == 1)
		g->warp_n = cptx_mov(k, 0, .type = CPTX_U32);
	gemm_sm120_begin_operand(g, false);
	gemm_sm120_begin_operand(g, true);
	g->row_a = cptx_shl(k, cptx_mad(k, cptx_and(k, g->lane, 1), 8, quad, .mode = CPTX_LO), 4);
	g->row_b = cptx_shl(k, quad, 4);
	g->frag_a = cptx_regs(k, CPTX_B32, rows16(g) * 4), g->frag_b = cptx_regs(k, CPTX_B32, cols8(g) * 2);
	g->acc = cptx_regs(k, CPTX_F32, rows16(g) * cols8(g) * 4);
}

/* Factors of block `block` along K for 16 rows (8 columns) in each register; 32 rows are 4 bytes apart in a block. */
static cptx_val factors(const gemm120 *g, bool of_b, cptx_val base, uint32_t block)
{
	cptx_kernel *k = g->k;
	uint32_t each = of_b ? 8 : 16, n = of_b ? cols8(g) : rows16(g);
	cptx_val v = cptx_regs(k, CPTX_B32, n);

	for (uint32_t i = 0; i < n; i++)
		cptx_ld(k, cptx_offset(base, block * CPTX_SCALE_BYTES + i * each % 32 * 16 + i * each / 32 * 4),
		        .space = CPTX_SHARED, .type = CPTX_B32, .into = cptx_elem(v, i));
	return v;
}

static uint16_t kind_of(const cptx_gemm_opt *o)
{
	return !gemm_sm120_packed(o) ? CPTX_KIND_MXF8F6F4 : o->scale == CPTX_UE4M3 ? CPTX_KIND_MXF4NVF4 : CPTX_KIND_MXF4;
}

static void multiply_one(const gemm120 *g, uint32_t i, uint32_t j, cptx_val sa, cptx_val sb, uint32_t byte)
{
	static const uint16_t vec[] = { 0, CPTX_SCALE_VEC_1X, CPTX_SCALE_VEC_2X, 0, CPTX_SCALE_VEC_4X };
	cptx_kernel *k = g->k;
	cptx_val d = cptx_slice(g->acc, (i * cols8(g) + j) * 4, 4), id = cptx_vec(k, cptx_imm(byte), cptx_imm(0));

	cptx_mma_block_scale(k, cptx_slice(g->frag_a, i * 4, 4), cptx_slice(g->frag_b, j * 2, 2), d, cptx_elem(sa, i), id,
	                     cptx_elem(sb, j), id, .shape = gemm_sm120_packed(g->o) ? CPTX_M16N8K64 : CPTX_M16N8K32,
	                     .kind = kind_of(g->o), .scale_vec = vec[g->s.blocks], .atype = g->o->a, .btype = g->o->b,
	                     .stype = g->o->scale, .into = d);
}

static void multiply_stage(const gemm120 *g, sm120_operand *a, sm120_operand *b, cptx_val fa, cptx_val fb)
{
	cptx_val sa = { 0 }, sb = { 0 };

	for (uint32_t step = 0; step < SM120_STEPS; step++) {
		uint32_t first = step * g->s.blocks; /* of the factors of a row in the stage */
		if (first % CPTX_SCALE_FACTORS == 0)
			sa = factors(g, false, fa, first / CPTX_SCALE_FACTORS), sb = factors(g, true, fb, first / CPTX_SCALE_FACTORS);
		for (uint32_t i = 0; i < rows16(g); i++)
			gemm_sm120_load_fragment(g, false, a, i * 16, step, cptx_slice(g->frag_a, i * 4, 4));
		for (uint32_t j = 0; j < cols8(g); j += 2)
			gemm_sm120_load_fragment(g, true, b, j * 8, step, cptx_slice(g->frag_b, j * 2, 4));
		for (uint32_t i = 0; i < rows16(g); i++)
			for (uint32_t j = 0; j < cols8(g); j++)
				multiply_one(g, i, j, sa, sb, first % CPTX_SCALE_FACTORS);
	}
}

/* Bytes in front of the warp's factors in a block; the tile may begin in its middle. */
static cptx_val factor_place(const gemm120 *g, cptx_val first, cptx_val in_tile, cptx_val row)
{
	cptx_kernel *k = g->k;
	cptx_val in_block = cptx_add(k, cptx_and(k, cptx_as(first, CPTX_U32), BLOCK_ROWS - 1), in_tile);

	return cptx_add(k, cptx_shl(k, cptx_shr(k, in_block, 5), 2), row);
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
	walk_matrices d = { .at = g->w.p.D, .M = g->w.p.M, .N = g->w.p.N, .bytes = size };
	cptx_val row = cptx_add(k, cptx_add(k, cptx_as(g->w.m0, CPTX_U32), g->warp_m), cptx_shr(k, g->lane, 2));
	cptx_val col = cptx_add(k, cptx_add(k, cptx_as(g->w.n0, CPTX_U32), g->warp_n), cptx_shl(k, cptx_and(k, g->lane, 3), 1));

	for (uint32_t i = 0; i < rows16(g) * 2; i++) {
		cptx_val r = i ? cptx_add(k, row, i * 8) : row, there = cptx_setp(k, r, g->w.p.M, .cmp = CPTX_LT);
		cptx_val line = walk_element(k, &d, g->o->batched ? cptx_as(g->w.z, CPTX_U32) : (cptx_val){ 0 }, r, col);
		for (uint32_t j = 0; j < cols8(g); j++) {
			cptx_val c = j ? cptx_add(k, col, j * 8) : col;
			uint32_t first = (i / 2 * cols8(g) + j) * 4 + i % 2 * 2;
			cptx_val v[2] = { cptx_elem(g->acc, first), cptx_elem(g->acc, first + 1) };
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
	cptx_val factors_at = cptx_add(k, g->ring, s->a_bytes + s->b_bytes);
	cptx_val fa = cptx_add(k, factors_at, factor_place(g, g->w.m0, g->warp_m, g->row_a));
	cptx_val fb = cptx_add(k, factors_at, factor_place(g, g->w.n0, g->warp_n, g->row_b));
	cptx_val k0 = cptx_var(k, CPTX_U32, g->o->stream_k ? times(k, g->w.k_first, s->bk) : cptx_imm(0));
	cptx_val end = g->o->stream_k ? times(k, g->w.k_end, s->bk) : g->w.p.K;

	for (uint32_t i = 0; i < g->acc.count; i++)
		cptx_mov(k, 0.0f, .into = cptx_elem(g->acc, i));
	CPTX_FOR(k, k0, end, s->bk) {
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_WAIT_DATA, first_lane);
		cptx_pipe_wait_full(k, &g->pipe, at);
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_MULTIPLY, first_lane);
		cptx_val stage = times(k, at->stage, s->stage);
		sm120_operand a = gemm_sm120_operand_moved(g, false, stage), b = gemm_sm120_operand_moved(g, true, stage);
		cptx_val sfa = cptx_add(k, fa, stage), sfb = cptx_offset(cptx_add(k, fb, stage), s->sf_bytes);
		multiply_stage(g, &a, &b, sfa, sfb);
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

	begin_fragments(g);
	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, 0);
		multiply(g, &at, first_lane);
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_BRING_OUT, first_lane);
		if (g->o->stream_k) {
			cptx_val begins = cptx_setp(k, g->w.k_first, 0, .cmp = CPTX_EQ);
			CPTX_IF(k, begins) {
				CPTX_IF(k, cptx_setp(k, g->w.step, g->w.k_tiles, .cmp = CPTX_NE))
					tma_gemm_add_others(k, &g->w, &sums, g->acc, first_lane);
				put(g);
			}
			CPTX_ELSE(k)
				tma_gemm_leave(k, &g->w, &sums, g->acc, first_lane);
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
