/* SPDX-License-Identifier: MIT */
/*
 * Second rung: a ring of stages in place of two buffers.
 *
 * With two buffers a copy has one k-tile's time to arrive; with n stages it has n - 1 of them, which hides the latency of a
 * miss in L2.  The copies of a k-tile are also spread over its steps, between the mma.sync, where slots for issuing are
 * free. Groups of cp.async complete in order, so "at most n - 2 groups are on their way" says that the next k-tile is there;
 * one is committed in each turn, also behind the end of K, where they copy nothing.
 */
#include "hgemm_parts.h"

static void k_tile(hgemm *h, cptx_pipe_at *at, cptx_pipe_at *to)
{
	const uint32_t last = h->mma.steps - 1;

	for (uint32_t step = 0; step < last; step++) {
		hgemm_copy(h, to, step, last);
		hgemm_steps(h, step, step + 1);
	}
	hgemm_copied(h, to);
	cptx_pipe_wait_full(h->k, &h->pipe, at); /* also: nobody reads the stage any more that the next copies go to */
	hgemm_next_offset(h);
	hgemm_last_step(h, true);
}

cptx_kernel *hgemm_k_stages(cptx_module *m, const hgemm_opt *o)
{
	hgemm h;
	cptx_tiles_at t;

	hgemm_begin(&h, m, HGEMM_K_STAGES, o);
	cptx_kernel *k = h.k;
	hgemm_schedule(&h);
	CPTX_TILES(k, &h.tiles, &t)
	{
		cptx_pipe_at to = cptx_pipe_producer(k, &h.pipe), at = cptx_pipe_consumer(k, &h.pipe);
		cptx_val i = cptx_var(k, CPTX_U32, 0), k_tiles = hgemm_k_tiles(&h);
		hgemm_fragments(&h);
		cptx_acc_clear(k, &h.acc);
		hgemm_seek(&h, &t);
		for (uint32_t s = 0; s + 1 < o->stages; s++) {
			hgemm_copy(&h, &to, 0, 1);
			hgemm_copied(&h, &to);
		}
		hgemm_consume_first(&h, &at);
		CPTX_FOR(k, i, k_tiles, 1)
			k_tile(&h, &at, &to);
		cptx_cp_async_wait_all(k);
		hgemm_finish(&h, &t);
	}
	return k;
}

#ifndef EXAMPLES_NO_MAIN
#include "hgemm_run.h"

int main(int argc, char **argv) { return hgemm_main(HGEMM_K_STAGES, argc, argv); }
#endif
