/* SPDX-License-Identifier: MIT */
/*
 * First kernel of the ladder: a tensor core GEMM for sm_80 without the usual losses.
 *
 * Its name lists the measures:
 *
 * - bcf, bank conflict free: chunks of 16 bytes are permuted within 128-byte rows of shared memory (the swizzle that TMA has
 *   too, see cptx/layout.h), so eight rows of ldmatrix lie in different banks, and so do the copies.  B is K x N: its rows
 *   run along N, and ldmatrix.trans transposes them.
 * - dbf, double buffers, twice: cp.async fills one half of shared memory while the other is multiplied; and ldmatrix fetches
 *   the fragments of the next 16-deep step while mma.sync works on this one.  That goes on across the border of buffers: the
 *   only wait and barrier of a k-tile stand in front of its last step, whose fragments are there already.
 * - rw, whole rows are read and written: C goes through shared memory, so that a warp stores 128 bytes of a row at once.
 *
 * The grid is also swizzled: CTAs that run at the same time work on a block of C, whose rows of A and columns of B stay in
 * L2.
 */
#include "hgemm_parts.h"

/* Switches between buffers 0 and 1: the offset alternates between 0 and stage_bytes. */
static void flip(const hgemm *h, cptx_val buffer) { cptx_sub(h->k, h->t.stage_bytes, buffer, .into = buffer); }

static void k_tile(const hgemm *h, hgemm_copies *c, cptx_val buffer)
{
	cptx_kernel *k = h->k;
	const cptx_val none = { 0 }, here = cptx_mov(k, buffer);

	flip(h, buffer);
	hgemm_copy(h, c, buffer, 0, c->na + c->nb);
	cptx_cp_async_commit_group(k);
	hgemm_copies_next(h, c);
	for (uint32_t step = 0; step + 1 < h->steps; step++)
		hgemm_step(h, step, here, none);
	cptx_cp_async_wait_group(k, 0);
	cptx_bar_sync(k, 0); /* the next buffer is full, and nobody reads this one any more */
	hgemm_step(h, h->steps - 1, here, buffer);
}

cptx_kernel *hgemm_bcf_dbf_rw(cptx_module *m, const hgemm_opt *o)
{
	hgemm h;
	hgemm_copies c;
	cptx_val to = hgemm_begin_copies(&h, &c, m, HGEMM_BCF_DBF_RW, o);
	cptx_kernel *k = h.k;

	cptx_val buffer = cptx_var(k, CPTX_U32, 0), i = cptx_var(k, CPTX_U32, 0), tiles = hgemm_k_tiles(&h);
	hgemm_copy(&h, &c, buffer, 0, c.na + c.nb);
	hgemm_copies_next(&h, &c);
	cptx_cp_async_wait_all(k);
	cptx_bar_sync(k, 0);
	hgemm_load(&h, buffer);
	CPTX_FOR(k, i, tiles, 1)
		k_tile(&h, &c, buffer);
	hgemm_finish(&h, to);
	return k;
}

#ifndef EXAMPLES_NO_MAIN
#include "hgemm_run.h"

int main(int argc, char **argv) { return hgemm_main(HGEMM_BCF_DBF_RW, argc, argv); }
#endif
