/* SPDX-License-Identifier: MIT */
/*
 * v7: tiles are handed out while the kernel runs.  There are as many pairs as tiles, but a pair that runs asks the hardware
 * to cancel a pair that has not begun, and makes its tile instead (clusterlaunchcontrol.try_cancel): SMs that other work
 * holds, or that are slower, get fewer tiles, and the kernel still sets up once for each SM.
 *
 * The thread that loads asks for the next tile before it loads this one, as <cptx/scheduler.h> does with CPTX_TILES_CANCEL:
 * the answer comes to both CTAs, and the last of their warps to read it makes room for the next question.
 *
 * D leaves by the way that A and B came: warps write rows of 128 bytes to shared memory, in the 128-byte swizzle so that
 * banks do not collide, and a tensor map stores 32 of them at once, in whole lines and cut off at the edges of D.
 */
#include "persistent.h"

/* ---- who makes what ---- */

static void load(const persistent *p)
{
	const gemm *g = &p->g;
	cptx_kernel *k = g->k;
	cptx_pipe_at here = cptx_pipe_producer_of(k, &p->stages, cptx_imm(0));
	cptx_val tells = cptx_setp(k, g->rank, 0, .cmp = CPTX_NE); /* in the first CTA who multiplies does */
	cptx_tiles_at t;

	CPTX_TILES(k, &p->tiles, &t, .asks = true, .release = tells)
	{
		gemm_at at = gemm_at_tile(g, t.id);
		gemm_load_all(g, &at, &p->stages, &here);
	}
}

static void multiply(const persistent *p)
{
	cptx_kernel *k = p->g.k;
	cptx_pipe_at here = cptx_pipe_consumer(k, &p->stages), acc = cptx_pipe_producer(k, &p->accs);
	cptx_tiles_at t;

	CPTX_TILES(k, &p->tiles, &t)
	multiply_tile(p, &here, &acc);
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
	cptx_pipe_at acc = cptx_pipe_consumer_of(k, &p->accs, cptx_imm(0));
	cptx_val elected = gemm_elect(g);
	cptx_tiles_at t;
	gemm_reader reader = { &p->accs, &acc, elected };
	outgoing out = outgoing_begin(p, elected);

	CPTX_TILES(k, &p->tiles, &t, .warp = true, .release = elected)
	{
		gemm_at at = gemm_at_tile(g, t.id);
		cptx_val row = cptx_mad(k, g->warp, WARP_THREADS, at.row, .mode = CPTX_LO);
		cptx_val from = cptx_mad(k, g->warp, WARP_THREADS << 16, take_accumulator(p, &acc, elected), .mode = CPTX_LO);
		for (uint32_t c = 0; c < g->o->n; c += out.tile.cols)
			send_piece(g, &out, from, row, at.col, c, &reader);
		cptx_pipe_next(k, &p->accs, &acc);
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
	/* who gives an answer back: 4 warps in each CTA, what multiplies in the first, what loads in the other */
	cptx_tiles_new(k, &p.tiles, .schedule = CPTX_TILES_CANCEL, .all = gemm_tiles(&p.g), .cluster = 2, .readers = READERS + 1,
	               .stages = BUFFERS);
	cptx_tiles_prepare(k, &p.tiles, p.first);
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
