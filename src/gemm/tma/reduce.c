/* SPDX-License-Identifier: MIT */
/*
 * Tiles of which several clusters have a part (stream_k): their sums in the workspace.  <cptx/scheduler.h> says how they are
 * put together.
 *
 * A warp, or a warpgroup, leaves and adds the sums of its part of the tile on its own.  Four sums of all its threads lie
 * behind one another, then the next four.
 */
#include "gemm/tma/tma.h"

enum { FOUR = 16 /* bytes */ };

cptx_val tma_gemm_sum_number(cptx_kernel *k, const tma_gemm_sums *s, cptx_val cluster)
{
	return cptx_mad(k, cluster, s->of_cluster, s->mine, .mode = CPTX_LO);
}

cptx_val tma_gemm_sum_at(cptx_kernel *k, const tma_gemm_sums *s, cptx_val number)
{
	return cptx_add(k, cptx_add(k, s->at, cptx_mul_wide(k, number, s->bytes)), cptx_mul_wide(k, s->lane, FOUR));
}

int64_t tma_gemm_sum_place(const tma_gemm_sums *s, uint32_t i) { return (int64_t)i / 4 * s->threads * FOUR; }

cptx_val tma_gemm_flag_at(cptx_kernel *k, const tma_gemm_sums *s, cptx_val number)
{
	cptx_val sums = cptx_mul_wide(k, s->clusters, s->of_cluster * s->bytes);

	return cptx_add(k, cptx_add(k, s->at, sums), cptx_mul_wide(k, number, 4));
}

void tma_gemm_raise(cptx_kernel *k, cptx_val flag, cptx_val when)
{
	cptx_st(k, flag, 1, .sem = CPTX_RELEASE, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_U32, .when = when);
}

void tma_gemm_await(cptx_kernel *k, cptx_val flag)
{
	CPTX_DO(k)
	{
		cptx_val raised = cptx_ld(k, flag, .sem = CPTX_ACQUIRE, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_U32);
		cptx_continue_when(k, cptx_setp(k, raised, 0, .cmp = CPTX_EQ));
	}
	cptx_st(k, flag, 0, .sem = CPTX_RELAXED, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_U32);
}

static void meet(cptx_kernel *k, const tma_gemm_sums *s)
{
	if (s->barrier.kind == CPTX_VAL_NONE)
		cptx_bar_warp_sync(k, 0xffffffffu);
	else
		cptx_bar_sync(k, s->barrier, .b = cptx_imm(s->threads));
}

void tma_gemm_leave(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val acc, cptx_val first)
{
	cptx_val number = tma_gemm_sum_number(k, s, w->cluster), to = tma_gemm_sum_at(k, s, number);

	for (uint32_t i = 0; i < acc.count; i += 4)
		cptx_st(k, cptx_offset(to, tma_gemm_sum_place(s, i)), cptx_slice(acc, i, 4), .space = CPTX_GLOBAL, .vec = CPTX_V4,
		        .type = CPTX_F32);
	meet(k, s);
	tma_gemm_raise(k, tma_gemm_flag_at(k, s, number), first);
}

static void add_one(cptx_kernel *k, const tma_gemm_sums *s, cptx_val cluster, cptx_val acc, cptx_val first)
{
	cptx_val number = tma_gemm_sum_number(k, s, cluster), from = tma_gemm_sum_at(k, s, number);
	cptx_val flag = tma_gemm_flag_at(k, s, number);

	CPTX_IF(k, first)
		tma_gemm_await(k, flag);
	meet(k, s);
	for (uint32_t i = 0; i < acc.count; i += 4) {
		cptx_val v =
			cptx_ld(k, cptx_offset(from, tma_gemm_sum_place(s, i)), .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = CPTX_F32);
		for (uint32_t e = 0; e < 4; e++)
			cptx_add(k, cptx_elem(acc, i + e), cptx_elem(v, e), .into = cptx_elem(acc, i + e));
	}
}

void tma_gemm_add_others(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val acc, cptx_val first)
{
	cptx_val cluster = cptx_var(k, CPTX_U32, cptx_add(k, w->cluster, 1)), end = tma_gemm_share_end(k, w);

	CPTX_FOR(k, cluster, end, 1)
		add_one(k, s, cluster, acc, first);
}
