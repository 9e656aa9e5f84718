/* Tiles of which several clusters have a part (stream_k): gemm_tma_share.c says how they are put together. */
#include "kernels/gemm_sm90.h"

enum { FOUR = 16 /* bytes */ };

static tma_gemm_sums sums(const gemm90 *g)
{
	return (tma_gemm_sums){ .at = g->w.p.workspace,
		                    .clusters = g->w.clusters,
		                    .of_cluster = g->s.cluster * g->s.consumers,
		                    .bytes = g->s.acc * WARPGROUP * 4 };
}

/* Of the sum that this CTA's part of a cluster and this warpgroup leave. */
static cptx_val sum_number(const gemm90 *g, cptx_val cluster)
{
	cptx_kernel *k = g->k;
	cptx_val number = g->s.cluster > 1 ? cptx_mad(k, cluster, g->s.cluster, g->w.rank, .mode = CPTX_LO) : cluster;

	return cptx_mad(k, number, g->s.consumers, g->wg, .mode = CPTX_LO);
}

/* Four accumulators of all threads of the warpgroup lie behind one another, then the next four. */
static cptx_val sum_at(const gemm90 *g, cptx_val number)
{
	cptx_kernel *k = g->k;
	tma_gemm_sums s = sums(g);
	cptx_val at = tma_gemm_sum_at(k, &s, number);

	return cptx_add(k, at, cptx_mul_wide(k, g->lane, FOUR));
}

static cptx_val flag_at(const gemm90 *g, cptx_val number)
{
	tma_gemm_sums s = sums(g);

	return tma_gemm_flag_at(g->k, &s, number);
}

static void leave_sum(const gemm90 *g, cptx_val first_thread)
{
	cptx_kernel *k = g->k;
	cptx_val number = sum_number(g, g->w.cluster), to = sum_at(g, number);

	for (uint32_t r = 0; r < g->s.acc; r += 4)
		cptx_st(k, cptx_offset(to, (int64_t)r / 4 * WARPGROUP * FOUR), cptx_slice(g->acc, r, 4), .space = CPTX_GLOBAL,
		        .vec = CPTX_V4, .type = CPTX_F32);
	cptx_bar_sync(k, g->barrier, .b = cptx_imm(WARPGROUP));
	tma_gemm_raise(k, flag_at(g, number), first_thread);
}

static void add_sum(const gemm90 *g, cptx_val cluster, cptx_val first_thread)
{
	cptx_kernel *k = g->k;
	cptx_val number = sum_number(g, cluster), from = sum_at(g, number), flag = flag_at(g, number);

	CPTX_IF(k, first_thread)
		tma_gemm_await(k, flag);
	cptx_bar_sync(k, g->barrier, .b = cptx_imm(WARPGROUP));
	for (uint32_t r = 0; r < g->s.acc; r += 4) {
		cptx_val v = cptx_ld(k, cptx_offset(from, (int64_t)r / 4 * WARPGROUP * FOUR), .space = CPTX_GLOBAL, .vec = CPTX_V4,
		                     .type = CPTX_F32);
		for (uint32_t e = 0; e < 4; e++)
			cptx_add(k, cptx_elem(g->acc, r + e), cptx_elem(v, e), .into = cptx_elem(g->acc, r + e));
	}
}

cptx_val gemm_sm90_reduce(gemm90 *g)
{
	cptx_kernel *k = g->k;
	cptx_val begins = cptx_setp(k, g->w.k_first, 0, .cmp = CPTX_EQ), first_thread = cptx_setp(k, g->lane, 0, .cmp = CPTX_EQ);

	CPTX_IF(k, begins) {
		cptx_val i = cptx_var(k, CPTX_U32, cptx_add(k, g->w.cluster, 1)), end = tma_gemm_share_end(k, &g->w);
		CPTX_FOR(k, i, end, 1)
			add_sum(g, i, first_thread);
	}
	CPTX_ELSE(k)
		leave_sum(g, first_thread);
	return begins;
}
