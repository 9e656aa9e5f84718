/* SPDX-License-Identifier: MIT */
/*
 * Fourth rung: TMA writes C too, and the pipeline never drains.
 *
 * Each warp rounds its part of C into shared memory of its own and has TMA store it as one box a 64 columns: no barrier of
 * the CTA, no addresses, no masks at the edges, and the stores of one tile run beside the mma of the next.  Its CTAs always
 * stay.
 *
 * Ordinary stores to shared memory go by the generic proxy, TMA reads by the asynchronous one: a fence stands between.  The
 * buffer may be written again when the bulk group has been read, not when it has been written.
 */
#include "hgemm_parts.h"

static void consume(hgemm *h, cptx_epilogue_ring *ring)
{
	cptx_kernel *k = h->k;
	cptx_pipe_at at = hgemm_consumer(h);
	cptx_tiles_at t;
	cptx_epilogue e;

	hgemm_schedule(h);
	hgemm_fragments(h);
	cptx_epilogue_new(k, &e, .vec = 2);
	hgemm_consume_first(h, &at);
	CPTX_TILES(k, &h->tiles, &t)
	{
		hgemm_consume(h, &at, hgemm_has_another(h, &t));
		cptx_epilogue_run(k, &e, &h->acc, .row = hgemm_row(h, &t), .col = hgemm_col(h, &t));
		cptx_epilogue_store_tma(k, &e, ring, CPTX_NONE_);
	}
	cptx_epilogue_ring_drain(k, ring, &h->acc);
}

cptx_kernel *hgemm_tma_rw_k_stages(cptx_module *m, const hgemm_opt *o)
{
	hgemm h;
	cptx_epilogue_ring ring;

	hgemm_begin(&h, m, HGEMM_TMA_RW, o);
	cptx_kernel *k = h.k;
	cptx_tile c = cptx_epilogue_tile(o->type, h.t.c.rows, h.t.c.cols);
	cptx_epilogue_ring_new(k, &ring, .type = o->type, .tile = c, .map = cptx_params_get(k, &h.params, "map_c"),
	                       .stages = h.t.c.cols / c.cols, .units = h.t.warps, .unit = h.roles.warp);
	CPTX_ROLE(k, &h.roles, .warps = h.t.warps, .regs = o->consumer_regs)
		consume(&h, &ring);
	CPTX_ROLE(k, &h.roles, .warps = hgemm_producers(o), .regs = o->consumer_regs ? HGEMM_PRODUCER_REGS : 0, .elect = true)
		hgemm_produce(&h);
	return k;
}

#ifndef EXAMPLES_NO_MAIN
#include "hgemm_run.h"

int main(int argc, char **argv) { return hgemm_main(HGEMM_TMA_RW, argc, argv); }
#endif
