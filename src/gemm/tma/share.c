/* SPDX-License-Identifier: MIT */
/*
 * Which tiles a cluster computes, and which part of K.
 *
 * Clusters walk over the tiles in steps of the number of clusters.  With stream_k they do so as long as there are more than
 * two tiles for each; the tiles that are left (one to two for each cluster, or all if there are fewer) are laid behind one
 * another as one row of K tiles, of which each cluster takes the same part: it may begin in the midst of a tile and end in
 * the midst of another.
 *
 * The cluster that begins a tile finishes it: the others leave their sums in the workspace and raise a flag, and it adds
 * them, in order, to its own.  A cluster begins a tile at the end of its row of K tiles, and continues one at the beginning,
 * so the sums that it waits for are mostly there already.  Waiting cannot last: who leaves a sum has waited for nobody
 * before.  A cluster leaves at most one sum.  Behind the sums there is a flag for each, which who has read it clears.
 */
#include "gemm/tma/tma.h"

static cptx_val times(cptx_kernel *k, cptx_val a, cptx_val b) { return cptx_mul(k, a, b, .mode = CPTX_LO); }

void tma_gemm_share_begin(cptx_kernel *k, tma_gemm_work *w, cptx_val all, bool stream_k)
{
	if (!stream_k) {
		w->at = cptx_var(k, CPTX_U32, w->cluster);
		w->end = all, w->step = w->clusters;
		return;
	}
	/* whole rounds but for the last one */
	cptx_val rounds = cptx_div(k, all, w->clusters);
	rounds = cptx_sub(k, cptx_max(k, rounds, 1), 1);
	w->whole_tiles = times(k, rounds, w->clusters);
	w->own = times(k, rounds, w->k_tiles);
	w->shared = times(k, cptx_sub(k, all, w->whole_tiles), w->k_tiles);
	cptx_val first = times(k, w->shared, w->cluster);
	w->shared_first = cptx_div(k, first, w->clusters);
	w->shared_end = cptx_div(k, cptx_add(k, first, w->shared), w->clusters);
	w->at = cptx_var(k, CPTX_U32, 0);
	w->end = cptx_add(k, w->own, cptx_sub(k, w->shared_end, w->shared_first));
	w->step = cptx_reg(k, CPTX_U32);
}

/* w->at counts K tiles: of `own` whole tiles, then of the shared row. */
void tma_gemm_share_locate(cptx_kernel *k, tma_gemm_work *w, bool stream_k)
{
	w->tile = w->at, w->k_first = cptx_imm(0), w->k_end = w->k_tiles;
	if (!stream_k)
		return;
	cptx_val whole = cptx_setp(k, w->at, w->own, .cmp = CPTX_LT);
	cptx_val x = cptx_add(k, w->shared_first, cptx_sub(k, w->at, w->own));
	cptx_val q = cptx_div(k, cptx_selp(k, w->at, x, whole, .type = CPTX_U32), w->k_tiles);
	cptx_val shared_k = cptx_sub(k, x, times(k, q, w->k_tiles));

	w->tile = cptx_selp(k, cptx_add(k, times(k, q, w->clusters), w->cluster), cptx_add(k, q, w->whole_tiles), whole,
	                    .type = CPTX_U32);
	w->k_first = cptx_selp(k, 0, shared_k, whole, .type = CPTX_U32);
	cptx_val left = cptx_sub(k, w->shared_end, x), shared_end = cptx_min(k, w->k_tiles, cptx_add(k, shared_k, left));
	w->k_end = cptx_selp(k, w->k_tiles, shared_end, whole, .type = CPTX_U32);
	cptx_sub(k, w->k_end, w->k_first, .into = w->step);
}

cptx_val tma_gemm_share_end(cptx_kernel *k, const tma_gemm_work *w)
{
	cptx_val behind = cptx_sub(k, cptx_add(k, w->tile, 1), w->whole_tiles), end = times(k, behind, w->k_tiles);

	/* cluster c has K tiles from c * shared / clusters on, so x belongs to ((x + 1) * clusters - 1) / shared */
	return cptx_add(k, cptx_div(k, cptx_sub(k, times(k, end, w->clusters), 1), w->shared), 1);
}
