/* SPDX-License-Identifier: MIT */
/*
 * First rung: a tensor core GEMM for sm_80 without the usual losses.
 *
 * Its name says what it does against them:
 *
 * - bcf, bank conflict free: chunks of 16 bytes are permuted within 128-byte rows of shared memory (the swizzle that TMA has
 *   too, see cptx/layout.h), so eight rows of ldmatrix lie in different banks, and so do the copies.  B is K x N: its rows
 *   run along N, and ldmatrix.trans transposes them.
 * - dbf, double buffers, twice: cp.async fills one half of shared memory while the other is multiplied; and ldmatrix fetches
 *   the fragments of the next 16-deep step while mma.sync works on this one.  That goes on across the border of buffers: the
 *   only wait and barrier of a k-tile stand in front of its last step, whose fragments are there already.
 * - rw, whole rows are read and written: C goes through shared memory, so that a warp stores 128 bytes of a row at once.
 *
 * And the grid is swizzled: CTAs that run at the same time work on a block of C, whose rows of A and columns of B stay in
 * L2.
 */
#include "hgemm_parts.h"

static void k_tile(hgemm *h, cptx_pipe_at *at, cptx_pipe_at *to)
{
	hgemm_copy(h, to, 0, 1);
	hgemm_copied(h, to);
	hgemm_steps(h, 0, h->mma.steps - 1);
	cptx_pipe_wait_full(h->k, &h->pipe, at); /* the next buffer is full, and nobody reads this one any more */
	hgemm_next_offset(h);
	hgemm_last_step(h, true);
}

cptx_kernel *hgemm_bcf_dbf_rw(cptx_module *m, const hgemm_opt *o)
{
	return hgemm_by_threads(m, HGEMM_BCF_DBF_RW, o, k_tile);
}

#ifndef EXAMPLES_NO_MAIN
#include "hgemm_run.h"

int main(int argc, char **argv) { return hgemm_main(HGEMM_BCF_DBF_RW, argc, argv); }
#endif
