/*
 * Tiles of which several CTAs have a part (stream_k): gemm_tma_share.c says how they are put together.
 *
 * Each warp leaves and adds the sums of its part of the tile on its own.  Four sums of all its lanes lie behind one another,
 * then the next four.
 */
#include "kernels/gemm_sm120.h"

enum { FOUR = 16 /* bytes */ };

static tma_gemm_sums sums_of(const gemm120 *g)
{
	return (tma_gemm_sums){
		.at = g->w.p.workspace, .clusters = g->w.clusters, .of_cluster = g->s.warps, .bytes = gemm_sm120_sum_bytes(&g->s)
	};
}

/* Of the sums that this warp of a CTA leaves. */
static cptx_val number_of(const gemm120 *g, cptx_val cta)
{
	return cptx_mad(g->k, cta, g->s.warps, g->warp, .mode = CPTX_LO);
}

static cptx_val sums_at(const gemm120 *g, cptx_val number)
{
	tma_gemm_sums s = sums_of(g);

	return cptx_add(g->k, tma_gemm_sum_at(g->k, &s, number), cptx_mul_wide(g->k, g->lane, FOUR));
}

static int64_t place_of(uint32_t sum) { return (int64_t)sum / 4 * SM120_WARP * FOUR; }

void gemm_sm120_leave(const gemm120 *g, cptx_val first_lane)
{
	cptx_kernel *k = g->k;
	cptx_val number = number_of(g, g->w.cluster), to = sums_at(g, number);
	tma_gemm_sums s = sums_of(g);

	for (uint32_t i = 0; i < g->acc.count; i += 4)
		cptx_st(k, cptx_offset(to, place_of(i)), cptx_slice(g->acc, i, 4), .space = CPTX_GLOBAL, .vec = CPTX_V4,
		        .type = CPTX_F32);
	cptx_bar_warp_sync(k, 0xffffffffu);
	tma_gemm_raise(k, tma_gemm_flag_at(k, &s, number), first_lane);
}

static void add_one(const gemm120 *g, cptx_val cta, cptx_val first_lane)
{
	cptx_kernel *k = g->k;
	tma_gemm_sums s = sums_of(g);
	cptx_val number = number_of(g, cta), from = sums_at(g, number);

	CPTX_IF(k, first_lane)
		tma_gemm_await(k, tma_gemm_flag_at(k, &s, number));
	cptx_bar_warp_sync(k, 0xffffffffu);
	for (uint32_t i = 0; i < g->acc.count; i += 4) {
		cptx_val v = cptx_ld(k, cptx_offset(from, place_of(i)), .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = CPTX_F32);
		for (uint32_t e = 0; e < 4; e++)
			cptx_add(k, cptx_elem(g->acc, i + e), cptx_elem(v, e), .into = cptx_elem(g->acc, i + e));
	}
}

void gemm_sm120_add_others(const gemm120 *g, cptx_val first_lane)
{
	cptx_kernel *k = g->k;
	cptx_val cta = cptx_var(k, CPTX_U32, cptx_add(k, g->w.cluster, 1));

	CPTX_IF(k, cptx_setp(k, g->w.step, g->w.k_tiles, .cmp = CPTX_NE)) {
		cptx_val end = tma_gemm_share_end(k, &g->w);
		CPTX_FOR(k, cta, end, 1)
			add_one(g, cta, first_lane);
	}
}
