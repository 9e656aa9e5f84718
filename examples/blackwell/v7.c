/* SPDX-License-Identifier: MIT */
/*
 * v7: tiles are handed out while the kernel runs.  There are as many pairs as tiles, but a pair that runs asks the hardware
 * to cancel a pair that has not begun, and makes its tile instead (clusterlaunchcontrol.try_cancel): SMs that other work
 * holds, or that are slower, get fewer tiles, and the kernel still sets up once for each SM.
 *
 * The thread that loads asks for the next tile before it loads this one.  The answer, 16 bytes, comes to both CTAs by the
 * async proxy; a third pipeline hands it to all warps, whose last reader in either CTA makes room for the next question.
 *
 * D leaves by the way that A and B came: warps write rows of 128 bytes to shared memory, in the 128-byte swizzle so that
 * banks do not collide, and a tensor map stores 32 of them at once, in whole lines and cut off at the edges of D.
 */
#include "persistent.h"

enum { ANSWER = 16 /* bytes */ };

/* ---- who makes what ---- */

/* Asks for a tile.  Each CTA waits for its own copy of the answer; the first asks for both. */
static void ask(const persistent *p, cptx_pipe_at *here)
{
	const gemm *g = &p->g;
	cptx_kernel *k = g->k;
	cptx_val first = gemm_is(g, g->rank, 0), at = cptx_mad(k, here->stage, ANSWER, p->answer, .mode = CPTX_LO);

	CPTX_IF(k, first)
		cptx_pipe_wait_empty(k, &p->answers, here);
	cptx_pipe_expect(k, &p->answers, here, ANSWER);
	cptx_clusterlaunchcontrol_try_cancel(k, at, cptx_pipe_full(here), .space = CPTX_SHARED_CTA,
	                                     .multicast = CPTX_MULTICAST_CLUSTER_ALL, .when = first);
	cptx_pipe_next(k, &p->answers, here);
}

/* The next tile; the predicate: there is one.  `last`: the thread that lets the answer go for its warp. */
static cptx_val next_tile(const persistent *p, cptx_pipe_at *here, cptx_val tile, cptx_val last, bool whole_warp)
{
	cptx_kernel *k = p->g.k;

	cptx_pipe_wait_full(k, &p->answers, here);
	cptx_val at = cptx_mad(k, here->stage, ANSWER, p->answer, .mode = CPTX_LO);
	cptx_val answer = cptx_ld(k, at, .space = CPTX_SHARED, .type = CPTX_B128);
	cptx_val more = cptx_clusterlaunchcontrol_query_cancel_is_canceled(k, answer);
	cptx_val x = cptx_reg(k, CPTX_U32);
	cptx_clusterlaunchcontrol_query_cancel_get_first_ctaid_dim(k, answer, .dim = CPTX_GET_FIRST_CTAID_X, .into = x,
	                                                           .when = more);
	cptx_shr(k, x, 1, .into = tile, .when = more);                      /* two CTAs in a cluster */
	cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA); /* the next answer comes by the async proxy */
	if (whole_warp)
		cptx_bar_warp_sync(k, 0xffffffffu);
	cptx_pipe_release(k, &p->answers, here, last);
	cptx_pipe_next(k, &p->answers, here);
	return more;
}

static cptx_pipe_at answers_from_first(const persistent *p)
{
	return cptx_pipe_consumer_of(p->g.k, &p->answers, cptx_imm(0));
}

static void load(const persistent *p)
{
	const gemm *g = &p->g;
	cptx_kernel *k = g->k;
	cptx_pipe_at here = cptx_pipe_producer_of(k, &p->stages, cptx_imm(0));
	cptx_pipe_at question = cptx_pipe_producer(k, &p->answers), answer = answers_from_first(p);
	cptx_val tile = first_tile(p), tells = cptx_setp(k, g->rank, 0, .cmp = CPTX_NE); /* the first CTA's asks itself */

	CPTX_DO(k)
	{
		gemm_at at = gemm_at_tile(g, tile);
		ask(p, &question);
		gemm_load_all(g, &at, &p->stages, &here);
		cptx_continue_when(k, next_tile(p, &answer, tile, tells, false));
	}
}

static void multiply(const persistent *p)
{
	cptx_kernel *k = p->g.k;
	cptx_pipe_at here = cptx_pipe_consumer(k, &p->stages), acc = cptx_pipe_producer(k, &p->accs);
	cptx_pipe_at answer = answers_from_first(p);
	cptx_val tile = first_tile(p);

	CPTX_DO(k)
	{
		multiply_tile(p, &here, &acc);
		cptx_continue_when(k, next_tile(p, &answer, tile, (cptx_val){ 0 }, false));
	}
}

/* ---- the way out ---- */

/* A warp's two pieces of shared memory, in turn, and where a thread writes 16 bytes of its row. */
typedef struct outgoing {
	cptx_tile tile;
	cptx_val piece, other; /* the piece whose turn it is; exclusive-ored: the other */
	cptx_val line[8];      /* from the start of a piece */
	cptx_val lane;         /* predicate: the thread that stores */
} outgoing;

static outgoing outgoing_begin(const persistent *p, cptx_val lane)
{
	const gemm *g = &p->g;
	cptx_kernel *k = g->k;
	outgoing out = { .tile = ladder_staged(g->o), .lane = lane };
	uint32_t bytes = cptx_tile_bytes(&out.tile), value[5], each = out.tile.cols / 8;

	for (uint32_t b = 0; b < 5; b++)
		value[b] = cptx_tile_at(&out.tile, 1u << b, 0).byte;
	cptx_val first = cptx_lane_bits(k, cptx_and(k, g->tid, WARP_THREADS - 1), 5, value, false, (cptx_val){ 0 });
	for (uint32_t i = 0; i < 8; i++)
		out.line[i] = i ? cptx_xor(k, first, cptx_tile_at(&out.tile, 0, i * each).byte) : first;
	out.piece = cptx_mad(k, g->warp, 2 * bytes, p->pieces, .mode = CPTX_LO);
	out.other = cptx_xor(k, out.piece, cptx_add(k, out.piece, bytes));
	return out;
}

static void send_piece(const gemm *g, outgoing *out, cptx_val acc, cptx_val row, cptx_val col, uint32_t c,
                       const gemm_reader *reader)
{
	cptx_kernel *k = g->k;
	uint32_t cols = out->tile.cols;

	cptx_cp_async_bulk_wait_group(k, 1, .read = 1, .when = out->lane); /* the piece has left */
	cptx_bar_warp_sync(k, 0xffffffffu);
	cptx_val v = gemm_read(g, acc, c, cols, reader);
	for (uint32_t i = 0; i < 8; i++)
		cptx_st(k, cptx_add(k, out->piece, out->line[i]), gemm_packed(g, v, i * cols / 8), .space = CPTX_SHARED,
		        .type = CPTX_B32);
	cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_warp_sync(k, 0xffffffffu);
	cptx_cp_async_bulk_tensor_store(k, g->map_d, cptx_vec(k, cptx_add(k, col, c), row), out->piece, .dim = CPTX_DIM_2D,
	                                .when = out->lane);
	cptx_cp_async_bulk_commit_group(k, .when = out->lane);
	cptx_xor(k, out->piece, out->other, .into = out->piece);
}

static void bring_out(const persistent *p)
{
	const gemm *g = &p->g;
	cptx_kernel *k = g->k;
	cptx_pipe_at acc = cptx_pipe_consumer_of(k, &p->accs, cptx_imm(0)), answer = answers_from_first(p);
	cptx_val elected = gemm_elect(g), tile = first_tile(p);
	gemm_reader reader = { &p->accs, &acc, elected };
	outgoing out = outgoing_begin(p, elected);

	CPTX_DO(k)
	{
		gemm_at at = gemm_at_tile(g, tile);
		cptx_val row = cptx_mad(k, g->warp, WARP_THREADS, at.row, .mode = CPTX_LO);
		cptx_val from = cptx_mad(k, g->warp, WARP_THREADS << 16, take_accumulator(p, &acc, elected), .mode = CPTX_LO);
		for (uint32_t c = 0; c < g->o->n; c += out.tile.cols)
			send_piece(g, &out, from, row, at.col, c, &reader);
		cptx_pipe_next(k, &p->accs, &acc);
		cptx_continue_when(k, next_tile(p, &answer, tile, elected, true));
	}
	cptx_timeline_stamp_when(k, &g->line, CPTX_TIMELINE_END, elected);
	cptx_cp_async_bulk_wait_group(k, 0, .read = 1, .when = elected); /* shared memory ends with the CTA */
}

static void build(cptx_module *m, const ladder_rung *rung, const ladder_opt *o)
{
	persistent p = persistent_begin(m, rung, o);
	cptx_kernel *k = p.g.k;
	cptx_tile piece = ladder_staged(o);

	p.pieces = cptx_mov(k, cptx_shared_dyn(k, STAGED * cptx_tile_bytes(&piece), 1024, "pieces"), .type = CPTX_U32);
	p.answer = cptx_mov(k, cptx_shared_named(k, CPTX_B8, BUFFERS * ANSWER, 16, "answers"), .type = CPTX_U32);
	/* who lets an answer go: 4 warps in each CTA, what multiplies in the first, what loads in the other */
	cptx_pipe_new(k, &p.answers, .stages = BUFFERS, .consumers = READERS + 1, .multicast = 2);
	cptx_pipe_prepare(k, &p.answers, p.first);
	persistent_run(&p, &(roles){ load, multiply, bring_out });
}

const ladder_rung rung_v7 = {
	.name = "v7",
	.about = "tiles handed out by the hardware, D stored by a tensor map",
	.tile = { .m = 2 * ROWS, .n = 256, .k = 64, .stages = 6 },
	.swizzle = CPTX_SWIZZLE_128B,
	.pair = true,
	.persistent = true,
	.dynamic = true,
	.store_map = true,
	.staged = true,
	.build = build,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v7, argc, argv); }
#endif
