/* SPDX-License-Identifier: MIT */
/*
 * Second kernel of the ladder: a ring of stages in place of two buffers.
 *
 * With two buffers a copy has one k-tile's time to arrive; with n stages it has n - 1 of them, which hides the latency of a
 * miss in L2.  The copies of a k-tile are also spread over its steps, between the mma.sync, where issue slots are free.
 * Groups of cp.async complete in order, so once at most n - 2 groups are pending, the next k-tile is there; each iteration
 * commits one group, behind the end of K an empty one.
 */
#include "hgemm_parts.h"

/* Advances to the next stage, from the last to the first. */
static void advance(const hgemm *h, cptx_val stage)
{
	cptx_kernel *k = h->k;

	cptx_add(k, stage, h->t.stage_bytes, .into = stage);
	cptx_mov(k, 0, .into = stage, .when = cptx_setp(k, stage, h->t.stage_bytes * h->o->stages, .cmp = CPTX_EQ));
}

static void wait_for_next(const hgemm *h)
{
	cptx_cp_async_wait_group(h->k, h->o->stages - 2);
	cptx_bar_sync(h->k, 0); /* also ensures that nobody reads the stage any more that the next copies go to */
}

static void k_tile(const hgemm *h, hgemm_copies *c, cptx_val read, cptx_val write)
{
	cptx_kernel *k = h->k;
	const cptx_val none = { 0 };
	uint32_t pieces = c->na + c->nb, last = h->steps - 1;

	for (uint32_t step = 0; step < last; step++) {
		hgemm_copy(h, c, write, pieces * step / last, pieces * (step + 1) / last);
		hgemm_step(h, step, read, none);
	}
	cptx_cp_async_commit_group(k);
	hgemm_copies_next(h, c);
	wait_for_next(h);
	advance(h, read), advance(h, write);
	hgemm_step(h, last, read, read);
}

cptx_kernel *hgemm_k_stages(cptx_module *m, const hgemm_opt *o)
{
	hgemm h;
	hgemm_copies c;
	cptx_val to = hgemm_begin_copies(&h, &c, m, HGEMM_K_STAGES, o);
	cptx_kernel *k = h.k;

	cptx_val read = cptx_var(k, CPTX_U32, 0), write = cptx_var(k, CPTX_U32, 0), i = cptx_var(k, CPTX_U32, 0),
			 tiles = hgemm_k_tiles(&h);
	for (uint32_t s = 0; s + 1 < o->stages; s++) {
		hgemm_copy(&h, &c, write, 0, c.na + c.nb);
		cptx_cp_async_commit_group(k);
		hgemm_copies_next(&h, &c);
		advance(&h, write);
	}
	wait_for_next(&h);
	hgemm_load(&h, read);
	CPTX_FOR(k, i, tiles, 1)
		k_tile(&h, &c, read, write);
	cptx_cp_async_wait_all(k);
	hgemm_finish(&h, to);
	return k;
}

#ifndef EXAMPLES_NO_MAIN
#include "hgemm_run.h"

int main(int argc, char **argv) { return hgemm_main(HGEMM_K_STAGES, argc, argv); }
#endif
