/* SPDX-License-Identifier: MIT */
/*
 * Third rung: the tensor memory accelerator reads A and B.
 *
 * One thread of a warp of its own names a box of the matrix, and TMA copies the whole tile, swizzled as ldmatrix wants it,
 * with zeros for what lies outside of the matrix.  The computing warps need no addresses, no registers that hold them
 * and no instructions that copy.  TMA writes rows of at most 128 bytes with its swizzle, so B, whose rows run along N,
 * comes in boxes of 64 columns; a tile in cptx/layout.h without a pitch lies so by itself.
 *
 * Nor is there a barrier of the CTA in the loop: each stage has an mbarrier that counts the bytes that arrived and one that
 * counts the warps that release it (cptx/pipeline.h), so warps may be a whole ring apart.
 *
 * Where shared memory has room for C beside the ring (opt.stay), CTAs are worth keeping: each takes tile after tile, and the
 * producer fills the ring with the next one early.  With setmaxnreg the producer is one of four warps, and the other three
 * are free: they store a tile, which a pipeline of one stage passes to them, while the next is computed.  The last tile is
 * stored by those who computed it, who are more and have nothing else to do.
 */
#include "hgemm_parts.h"

typedef struct output {
	cptx_pipe pipe; /* of C, from the warps that compute to those that store */
	cptx_val c;     /* C in shared memory */
} output;

static uint32_t storing_warps(const hgemm *h) { return h->o->stay ? hgemm_producers(h->o) - 1 : 0; }

static output output_new(const hgemm *h)
{
	cptx_kernel *k = h->k;
	output out = { .c = CPTX_NONE_ };

	if (h->o->stay)
		out.c = cptx_mov(k, cptx_shared_dyn(k, h->t.warps * h->t.c_bytes, 1024, "c"), .type = CPTX_U32);
	if (storing_warps(h)) {
		cptx_pipe_new(k, &out.pipe, .stages = 1, .producers = h->t.warps, .consumers = storing_warps(h));
		cptx_pipe_init(k, &out.pipe, cptx_setp(k, h->roles.tid, 0, .cmp = CPTX_EQ));
	}
	return out;
}

/* Tiles are stored by other warps; the last one here. */
static void consume_for_others(hgemm *h, const output *out, cptx_pipe_at *at)
{
	cptx_kernel *k = h->k;
	cptx_val part = hgemm_part(h, out->c, h->roles.warp);
	cptx_pipe_at c = cptx_pipe_producer(k, &out->pipe);
	cptx_tiles_at t;

	cptx_tiles_first(k, &h->tiles, &t);
	CPTX_FOR(k, t.at, t.end, t.step) {
		hgemm_consume(h, at, hgemm_has_another(h, &t));
		cptx_pipe_wait_empty(k, &out->pipe, &c);
		hgemm_round(h, part);
		cptx_bar_warp_sync(k, -1);
		CPTX_IF(k, h->lane_0)
			cptx_pipe_filled(k, &out->pipe, &c);
		cptx_pipe_next(k, &out->pipe, &c);
	}
	cptx_sub(k, t.at, t.step, .into = t.at);
	cptx_tiles_take(k, &h->tiles, &t);
	cptx_tiles_locate(k, &h->tiles, &t);
	hgemm_write(h, part, h->roles.warp, &t);
}

/* Tile after tile, or the one of this CTA. */
static void consume(hgemm *h, const output *out)
{
	cptx_kernel *k = h->k;
	cptx_pipe_at at = hgemm_consumer(h);
	cptx_tiles_at t;

	hgemm_schedule(h);
	hgemm_fragments(h);
	hgemm_consume_first(h, &at);
	if (storing_warps(h)) {
		consume_for_others(h, out, &at);
		return;
	}
	CPTX_TILES(k, &h->tiles, &t)
	{
		hgemm_consume(h, &at, h->o->stay ? hgemm_has_another(h, &t) : CPTX_NONE_);
		if (h->o->stay) {
			cptx_val part = hgemm_part(h, out->c, h->roles.warp);
			cptx_bar_warp_sync(k, -1); /* all have read the tile before */
			hgemm_round(h, part);
			cptx_bar_warp_sync(k, -1);
			hgemm_write(h, part, h->roles.warp, &t);
		} else {
			hgemm_finish(h, &t);
		}
	}
}

/* All tiles but the last of this CTA: each of these warps some parts of each. */
static void store(hgemm *h, const output *out, cptx_val warp)
{
	cptx_kernel *k = h->k;
	cptx_val part = cptx_reg(k, CPTX_U32);
	cptx_pipe_at c = cptx_pipe_consumer(k, &out->pipe);
	cptx_tiles_at t;

	hgemm_schedule(h);
	CPTX_TILES(k, &h->tiles, &t)
	{
		CPTX_IF(k, hgemm_has_another(h, &t)) {
			cptx_pipe_wait_full(k, &out->pipe, &c);
			cptx_mov(k, warp, .into = part);
			CPTX_FOR(k, part, h->t.warps, storing_warps(h))
				hgemm_write(h, hgemm_part(h, out->c, part), part, &t);
			cptx_bar_warp_sync(k, -1);
			cptx_pipe_release(k, &out->pipe, &c, h->lane_0);
			cptx_pipe_next(k, &out->pipe, &c);
		}
	}
}

cptx_kernel *hgemm_tma_r_k_stages(cptx_module *m, const hgemm_opt *o)
{
	hgemm h;

	hgemm_begin(&h, m, HGEMM_TMA_R, o);
	cptx_kernel *k = h.k;
	output out = output_new(&h);
	CPTX_ROLE(k, &h.roles, .warps = h.t.warps, .regs = o->consumer_regs)
		consume(&h, &out);
	CPTX_ROLE(k, &h.roles, .warps = hgemm_producers(o), .regs = o->consumer_regs ? HGEMM_PRODUCER_REGS : 0) {
		cptx_val warp = cptx_role_warp(k, &h.roles), elected = cptx_reg(k, CPTX_PRED);
		CPTX_IF(k, cptx_setp(k, warp, 0, .cmp = CPTX_EQ)) {
			cptx_elect_sync(k, -1, .p = elected, .into = cptx_sink());
			CPTX_IF(k, elected)
				hgemm_produce(&h);
		}
		if (storing_warps(&h))
			CPTX_ELSE(k)
				store(&h, &out, cptx_sub(k, warp, 1));
	}
	return k;
}

#ifndef EXAMPLES_NO_MAIN
#include "hgemm_run.h"

int main(int argc, char **argv) { return hgemm_main(HGEMM_TMA_R, argc, argv); }
#endif
