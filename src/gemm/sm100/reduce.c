/* SPDX-License-Identifier: MIT */
/*
 * Tiles of which several clusters have a part (stream_k): <cptx/scheduler.h> says how they are put together.
 *
 * Each of the warps that read leaves and adds its 32 rows on its own.  Four columns of its threads lie behind one another,
 * then the next four.
 */
#include "gemm/sm100/gemm.h"

enum { CHUNK = 32 /* columns read at once */ };

static tma_gemm_sums sums_of(const gemm100 *g)
{
	cptx_kernel *k = g->k;

	return (tma_gemm_sums){ .at = g->w.p.workspace,
		                    .clusters = g->w.clusters,
		                    .of_cluster = g->s.cluster * READERS,
		                    .bytes = g->s.sum_bytes,
		                    .threads = 32,
		                    .mine = g->s.cluster > 1 ? cptx_mad(k, g->w.rank, READERS, g->roles.warp, .mode = CPTX_LO)
		                                             : g->roles.warp,
		                    .lane = cptx_and(k, g->roles.tid, 31) };
}

void gemm_sm100_leave(const gemm100 *g, cptx_val acc, const cptx_pipe_at *at)
{
	cptx_kernel *k = g->k;
	const tma_gemm_sums s = sums_of(g);
	cptx_val number = tma_gemm_sum_number(k, &s, g->w.cluster), to = tma_gemm_sum_at(k, &s, number);
	uint32_t num = g->o->bn % CHUNK ? CHUNK / 2 : CHUNK;

	for (uint32_t col = 0; col < g->o->bn; col += num) {
		cptx_val v = cptx_tmem_load(k, cptx_offset(acc, col), .shape = CPTX_SHAPE_32X32B, .num = num);
		cptx_tcgen05_wait(k, .op = CPTX_WAIT_LD);
		for (uint32_t i = 0; i < num; i += 4)
			cptx_st(k, cptx_offset(to, tma_gemm_sum_place(&s, col + i)), cptx_slice(v, i, 4), .space = CPTX_GLOBAL,
			        .vec = CPTX_V4, .type = CPTX_B32);
	}
	cptx_tcgen05_fence(k, .op = CPTX_FENCE_BEFORE_THREAD_SYNC);
	cptx_bar_warp_sync(k, 0xffffffffu);
	cptx_pipe_release(k, &g->accs, at, g->elected);
	tma_gemm_raise(k, tma_gemm_flag_at(k, &s, number), g->elected);
}

cptx_val gemm_sm100_wait_for_others(const gemm100 *g)
{
	cptx_kernel *k = g->k;
	tma_gemm_sums s = sums_of(g);
	cptx_val first = cptx_add(k, g->w.cluster, 1), end = cptx_var(k, CPTX_U32, first), i = cptx_var(k, CPTX_U32, first);

	CPTX_IF(k, cptx_setp(k, g->w.step, g->w.k_tiles, .cmp = CPTX_NE)) {
		cptx_mov(k, tma_gemm_share_end(k, &g->w), .into = end);
		CPTX_IF(k, g->elected)
			CPTX_FOR(k, i, end, 1)
				tma_gemm_await(k, tma_gemm_flag_at(k, &s, tma_gemm_sum_number(k, &s, i)));
	}
	return end;
}

void gemm_sm100_add_others(const gemm100 *g, cptx_val end, uint32_t col, uint32_t num, cptx_val sums)
{
	cptx_kernel *k = g->k;
	const tma_gemm_sums s = sums_of(g);
	enum cptx_type type = g->o->kind == CPTX_TCGEN05_I8 ? CPTX_S32 : CPTX_F32;
	cptx_val cluster = cptx_var(k, CPTX_U32, cptx_add(k, g->w.cluster, 1));

	CPTX_FOR(k, cluster, end, 1) {
		cptx_val from = tma_gemm_sum_at(k, &s, tma_gemm_sum_number(k, &s, cluster));
		for (uint32_t i = 0; i < num; i += 4) {
			cptx_val v = cptx_ld(k, cptx_offset(from, tma_gemm_sum_place(&s, col + i)), .space = CPTX_GLOBAL, .vec = CPTX_V4,
			                     .type = type);
			for (uint32_t e = 0; e < 4; e++) {
				cptx_val sum = cptx_as(cptx_elem(sums, i + e), type);
				cptx_add(k, sum, cptx_elem(v, e), .into = sum);
			}
		}
	}
}
