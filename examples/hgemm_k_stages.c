/* SPDX-License-Identifier: MIT */
/*
 * Second rung: a ring of stages in place of two buffers.
 *
 * With two buffers a copy has one k-tile's time to arrive; with n stages it has n - 1 of them, which hides the latency of a
 * miss in L2.  The copies of a k-tile are also spread over its steps, between the mma.sync, where slots for issuing are
 * free. Groups of cp.async complete in order, so "at most n - 2 groups are on their way" says that the next k-tile is there;
 * one is committed for each K tile, also behind the end of K, where they copy nothing.
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

cptx_kernel *hgemm_k_stages(cptx_module *m, const hgemm_opt *o) { return hgemm_by_threads(m, HGEMM_K_STAGES, o, k_tile); }

#ifndef EXAMPLES_NO_MAIN
#include "hgemm_run.h"

int main(int argc, char **argv) { return hgemm_main(HGEMM_K_STAGES, argc, argv); }
#endif
