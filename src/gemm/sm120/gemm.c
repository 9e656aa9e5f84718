/* SPDX-License-Identifier: MIT */
/*
 * Block-scaled GEMM for sm_120: TMA -> shared memory -> ldmatrix -> mma.sync with scale factors -> D.
 *
 * The producer is one thread of the last warp; the others multiply (cptx_mma_tile, <cptx/mma.h>).  CTAs are persistent, and
 * the producer runs ahead across tile borders.  D is stored from registers.
 */
#include "gemm/sm120/gemm.h"

#include <cptx/cptx.h>

static cptx_val times(cptx_kernel *k, cptx_val a, uint32_t b) { return cptx_mul(k, a, b, .mode = CPTX_LO); }

/* ---- set-up ---- */

static void setup(gemm120 *g)
{
	cptx_kernel *k = g->k;
	const uint32_t scales = g->s.a_bytes + g->s.b_bytes; /* where they begin in a stage */

	g->ring = cptx_mov(k, cptx_shared_dyn(k, g->o->stages * g->s.stage, 1024, "ring"), .type = CPTX_U32);
	g->tid = cptx_tid_x(k), g->lane = cptx_and(k, g->tid, SM120_WARP - 1);
	g->warp = cptx_shfl_sync(k, cptx_shr(k, g->tid, 5), 0, 31, -1, .mode = CPTX_IDX);
	cptx_pipe_new(k, &g->pipe, .stages = g->o->stages, .consumers = g->s.warps);
	g->producer =
		tma_gemm_producer_of(&g->t, &g->w, &g->pipe, &g->line, (tma_gemm_ring){ g->ring, g->s.stage, 0 }, g->s.a_bytes);
	for (uint32_t b = 0; b < 2; b++)
		g->producer.scales[b] = (tma_gemm_ring){ g->ring, g->s.stage, scales + b * g->s.sf_bytes };
	cptx_pipe_init(k, &g->pipe, cptx_setp(k, g->tid, 0, .cmp = CPTX_EQ));
	tma_gemm_work_begin(k, &g->t, &g->w);
	tma_gemm_producer_operands(k, &g->producer);
	cptx_griddepcontrol(k, .op = CPTX_WAIT);
	cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
	tma_gemm_copy_unaligned(k, &g->t, &g->w, g->tid);
	cptx_timeline_begin(k, &g->line, .buffer = g->w.p.timeline, .warps = g->s.warps + 1, .events = g->o->timeline);
}

/* ---- the warps that multiply ---- */

/* A or B of a stage in elements, where TMA counts bytes of two e2m1. */
static cptx_tile tile_of(const gemm120 *g, bool of_b)
{
	cptx_tile t = of_b ? g->t.b : g->t.a;

	if (gemm_sm120_packed(g->o))
		t.cols *= 2, t.elem.bits = 4;
	return t;
}

/* A lane's addresses in a stage are sums of a register, made in front of the loop, and of the stage's offset from the ring;
 * or of what the lane adds and of the stage's address.  ptxas 13.0 makes the shorter loop of the first where a CTA has parts
 * of tiles or ldmatrix transposes B, else of the second (40 random option sets). */
static bool counts_from_ring(const cptx_gemm_opt *o) { return o->stream_k || o->b_n_major; }

static void make_mma(gemm120 *g)
{
	cptx_kernel *k = g->k;
	const cptx_gemm_opt *o = g->o;

	const cptx_val base = counts_from_ring(o) ? g->ring : (cptx_val){ 0 };
	cptx_tiled_mma_new(k, &g->mma, .a = o->a, .b = o->b, .m = g->s.wm, .n = g->s.wn, .units_m = o->warps_m,
	                   .units_n = o->warps_n, .a_tile = tile_of(g, false), .b_tile = tile_of(g, true), .scale = o->scale,
	                   .unit = g->warp, .thread = g->lane, .a_base = base, .b_base = base, .few_regs = o->stream_k);
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

/* The products of a tile of the warp. */
static void multiply(const gemm120 *g, cptx_pipe_at *at, cptx_pipe_left *left, cptx_val first_lane)
{
	cptx_kernel *k = g->k;
	const gemm120_shape *s = &g->s;
	cptx_val fa = place_in_block(g, g->o->bm, g->w.m0), fb = place_in_block(g, g->o->bn, g->w.n0);
	cptx_val k0 = cptx_var(k, CPTX_U32, g->o->stream_k ? times(k, g->w.k_first, s->bk) : cptx_imm(0));
	const bool from_ring = counts_from_ring(g->o);
	cptx_tiled_mma mma = g->mma;
	cptx_val end = g->o->stream_k ? times(k, g->w.k_end, s->bk) : g->w.p.K;

	if (from_ring) { /* where a lane finds its factors in a stage, once for the tile and not in each turn */
		mma.scale_a_first = moved(k, mma.scale_a_first, fa), mma.scale_b_first = moved(k, mma.scale_b_first, fb);
		fa = fb = (cptx_val){ 0 };
	}
	cptx_acc_clear(k, &g->acc);
	CPTX_FOR(k, k0, end, s->bk) {
		cptx_pipe_release(k, &g->pipe, &left->at, left->when);
		tma_gemm_wait_for_stage(k, &g->pipe, at, &g->line, first_lane);
		cptx_val a = from_ring ? times(k, at->stage, s->stage) : cptx_mad(k, at->stage, s->stage, g->ring, .mode = CPTX_LO);
		cptx_val sa = moved(k, a, fa), sb = moved(k, a, fb);
		cptx_mma_tile(k, &mma, &g->acc, a, cptx_offset(a, s->a_bytes), .scale_a = cptx_offset(sa, s->a_bytes + s->b_bytes),
		              .scale_b = cptx_offset(sb, s->a_bytes + s->b_bytes + s->sf_bytes));
		cptx_bar_warp_sync(k, -1); /* not at the head of the turn: that took up to 11 registers more */
		cptx_pipe_leave(k, &g->pipe, left, at, first_lane);
		cptx_pipe_next(k, &g->pipe, at);
	}
}

static void consume(gemm120 *g)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at at = cptx_pipe_consumer(k, &g->pipe);
	cptx_pipe_left left = cptx_pipe_left_none(k, &g->pipe, &at);
	cptx_val first_lane = cptx_setp(k, g->lane, 0, .cmp = CPTX_EQ);
	const tma_gemm_consumer warp = { .t = &g->t,
		                             .w = &g->w,
		                             .mma = &g->mma,
		                             .acc = &g->acc,
		                             .warps = g->s.warps,
		                             .warp = g->warp,
		                             .first_lane = first_lane,
		                             .lane = g->lane };

	make_mma(g);
	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, 0);
		multiply(g, &at, &left, first_lane);
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_EPILOGUE, first_lane);
		tma_gemm_finish(k, &warp);
	}
	cptx_timeline_stamp_when(k, &g->line, CPTX_TIMELINE_END, first_lane);
}

void gemm_sm120_build(cptx_kernel *k, const tma_gemm *t)
{
	gemm120 g = { .k = k, .o = t->o, .s = gemm_sm120_shape(t->o), .t = *t };

	tma_gemm_declare(k, &g.t, &g.w);
	setup(&g);
	CPTX_IF(k, cptx_setp(k, g.warp, g.s.warps, .cmp = CPTX_EQ)) {
		CPTX_IF(k, cptx_setp(k, g.lane, 0, .cmp = CPTX_EQ))
			tma_gemm_produce(k, &g.producer);
	}
	CPTX_ELSE(k)
		consume(&g);
}
