/* SPDX-License-Identifier: MIT */
/* Which tiles a CTA computes, and where its part of one is: by <cptx/scheduler.h>. */
#include "gemm/tma/tma.h"

static cptx_val ceil_div(cptx_kernel *k, cptx_val a, uint32_t b) { return cptx_div(k, cptx_add(k, a, b - 1), b); }

cptx_val tma_gemm_share_end(cptx_kernel *k, const tma_gemm_work *w) { return cptx_tiles_share_end(k, &w->sched, &w->here); }

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

/* The loop over `all` tiles of a list (NONE: of the matrices). */
static void schedule(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, cptx_val all)
{
	cptx_tiles_new(k, &w->sched, .schedule = t->o->stream_k ? CPTX_TILES_STREAM_K : CPTX_TILES_PERSISTENT,
	               .tiles_m = w->tiles_m, .tiles_n = w->tiles_n, .batches = t->o->batched ? w->p.batch : (cptx_val){ 0 },
	               .all = all, .k_tiles = w->k_tiles, .cluster = t->cluster, .number = w->cluster, .clusters = w->clusters);
	cptx_tiles_first(k, &w->sched, &w->here);
	w->at = w->here.at, w->end = w->here.end, w->step = w->here.step;
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
		schedule(k, t, w, w->list.tiles);
		name_params(t, w);
		return;
	}
	name_params(t, w);
	count_tiles(k, t, w);
	schedule(k, t, w, (cptx_val){ 0 });
}

static void find_problem(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t maps)
{
	if (!t->o->grouped)
		return;
	tma_gemm_group_find(k, t, w, maps);
	name_params(t, w);
}

/* What w->at says, of a list behind finding the problem. */
static void take(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	cptx_tiles_take(k, &w->sched, &w->here);
	w->tile = w->here.id, w->k_first = w->here.k_first, w->k_end = t->o->grouped ? w->k_tiles : w->here.k_end;
}

void tma_gemm_find(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t maps)
{
	find_problem(k, t, w, maps);
	take(k, t, w);
}

void tma_gemm_locate(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t maps)
{
	const cptx_gemm_opt *o = t->o;
	uint32_t side_m = o->bm * given(o->cluster_m), side_n = o->bn * given(o->cluster_n);
	cptx_val row, column;

	find_problem(k, t, w, maps);
	if (o->grouped)
		count_tiles(k, t, w);
	take(k, t, w);
	cptx_val id = o->grouped ? cptx_sub(k, w->tile, w->list.first) : cptx_tiles_matrix(k, &w->sched, &w->here);
	if (o->batched)
		w->z = cptx_as(w->here.z, CPTX_S32);
	cptx_val rows = o->group ? cptx_imm(o->group) : gemm_order_rows_of(k, &t->order, w->tiles_m, w->tiles_n, w->clusters);
	cptx_tiles_raster(k, id, w->tiles_m, w->tiles_n, rows, &row, &column);
	w->m0 = cptx_as(cptx_mul(k, row, side_m, .mode = CPTX_LO), CPTX_S32);
	w->n0 = cptx_as(cptx_mul(k, column, side_n, .mode = CPTX_LO), CPTX_S32);
	if (side_m > o->bm)
		w->m0 = cptx_mad(k, cptx_as(w->tile_rank, CPTX_S32), o->bm, w->m0, .mode = CPTX_LO);
	if (side_n > o->bn)
		w->n0 = cptx_mad(k, cptx_as(w->tile_rank, CPTX_S32), o->bn, w->n0, .mode = CPTX_LO);
	if (t->pair)
		w->m0 = cptx_mad(k, cptx_as(w->in_pair, CPTX_S32), t->pair, w->m0, .mode = CPTX_LO);
}
