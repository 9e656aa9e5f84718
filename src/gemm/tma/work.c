/* SPDX-License-Identifier: MIT */
/* Which tiles a CTA computes, and where its part of one is; which part of K: gemm/tma/share.c. */
#include "gemm/tma/tma.h"
#include "gemm/walk.h"

static cptx_val times(cptx_kernel *k, cptx_val a, cptx_val b) { return cptx_mul(k, a, b, .mode = CPTX_LO); }

static cptx_val ceil_div(cptx_kernel *k, cptx_val a, uint32_t b) { return cptx_div(k, cptx_add(k, a, b - 1), b); }

cptx_gemm_opt tma_gemm_inner(const cptx_gemm_opt *o)
{
	cptx_gemm_opt in = *o;

	if (o->swap) {
		in.a = o->b, in.b = o->a;
		in.a_m_major = o->b_n_major, in.b_n_major = o->a_m_major;
	}
	return in;
}

cptx_gemm_problem tma_gemm_inner_problem(const cptx_gemm_opt *o, const cptx_gemm_problem *p)
{
	cptx_gemm_problem in = *p;

	if (o->swap) {
		in.m = p->n, in.n = p->m;
		in.a = p->b, in.b = p->a;
		in.scale_a = p->scale_b, in.scale_b = p->scale_a;
	}
	return in;
}

static void exchange(cptx_val *a, cptx_val *b)
{
	cptx_val first = *a;

	*a = *b, *b = first;
}

/* w->in, of w->p. */
static void name_params(const tma_gemm *t, tma_gemm_work *w)
{
	w->in = w->p;
	if (!t->o->swap)
		return;
	w->in.M = w->p.N, w->in.N = w->p.M;
	exchange(&w->in.map[CPTX_GEMM_MAP_A], &w->in.map[CPTX_GEMM_MAP_B]);
	exchange(&w->in.map[CPTX_GEMM_MAP_SCALE_A], &w->in.map[CPTX_GEMM_MAP_SCALE_B]);
	exchange(&w->in.map[CPTX_GEMM_MAP_LAST_A], &w->in.map[CPTX_GEMM_MAP_LAST_B]);
}

/* Of the problem at hand. */
static void count_tiles(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	w->tiles_m = ceil_div(k, w->in.M, t->o->bm * given(t->o->cluster_m));
	w->tiles_n = ceil_div(k, w->in.N, t->o->bn * given(t->o->cluster_n));
	if (t->counts_k_tiles || t->o->stream_k)
		w->k_tiles = ceil_div(k, w->in.K, t->bk);
}

void tma_gemm_work_begin(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	cptx_val cta = cptx_ctaid_x(k), ctas = cptx_nctaid_x(k);

	w->cluster = t->cluster > 1 ? cptx_div(k, cta, t->cluster) : cta;
	w->clusters = t->cluster > 1 ? cptx_div(k, ctas, t->cluster) : ctas;
	if (t->cluster > 1) {
		w->rank = cptx_cluster_ctarank(k);
		w->in_pair = t->pair ? cptx_and(k, w->rank, 1) : cptx_imm(0);
		w->tile_rank = t->pair ? cptx_shr(k, w->rank, 1) : w->rank;
	}
	if (t->o->grouped) {
		tma_gemm_group_begin(k, t, w);
		name_params(t, w);
		return;
	}
	name_params(t, w);
	count_tiles(k, t, w);
	w->tiles = times(k, w->tiles_m, w->tiles_n);
	tma_gemm_share_begin(k, w, t->o->batched ? times(k, w->tiles, w->p.batch) : w->tiles, t->o->stream_k);
}

static void find_problem(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t maps)
{
	if (!t->o->grouped)
		return;
	tma_gemm_group_find(k, t, w, maps);
	name_params(t, w);
}

void tma_gemm_find(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t maps)
{
	find_problem(k, t, w, maps);
	tma_gemm_share_locate(k, w, t->o->stream_k);
}

void tma_gemm_locate(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t maps)
{
	const cptx_gemm_opt *o = t->o;
	uint32_t side_m = o->bm * given(o->cluster_m), side_n = o->bn * given(o->cluster_n);
	cptx_val row, column;

	find_problem(k, t, w, maps);
	if (o->grouped)
		count_tiles(k, t, w);
	tma_gemm_share_locate(k, w, o->stream_k);
	cptx_val id = o->grouped ? cptx_sub(k, w->tile, w->list.first) : w->tile;
	if (o->batched) {
		w->z = cptx_as(cptx_div(k, id, w->tiles), CPTX_S32);
		id = cptx_rem(k, id, w->tiles);
	}
	cptx_val rows = o->group ? cptx_imm(o->group) : gemm_order_rows_of(k, &t->order, w->tiles_m, w->tiles_n, w->clusters);
	walk_tile(k, id, w->tiles_m, w->tiles_n, rows, &row, &column);
	w->m0 = cptx_as(cptx_mul(k, row, side_m, .mode = CPTX_LO), CPTX_S32);
	w->n0 = cptx_as(cptx_mul(k, column, side_n, .mode = CPTX_LO), CPTX_S32);
	if (side_m > o->bm)
		w->m0 = cptx_mad(k, cptx_as(w->tile_rank, CPTX_S32), o->bm, w->m0, .mode = CPTX_LO);
	if (side_n > o->bn)
		w->n0 = cptx_mad(k, cptx_as(w->tile_rank, CPTX_S32), o->bn, w->n0, .mode = CPTX_LO);
	if (t->pair)
		w->m0 = cptx_mad(k, cptx_as(w->in_pair, CPTX_S32), t->pair, w->m0, .mode = CPTX_LO);
}
