/* Which tiles a CTA of the sm_90a GEMM computes; which part of K: gemm_tma_share.c. */
#include "kernels/gemm_sm90.h"
#include "kernels/walk.h"

static cptx_val times(cptx_kernel *k, cptx_val a, cptx_val b) { return cptx_mul(k, a, b, .mode = CPTX_LO); }

static cptx_val ceil_div(cptx_kernel *k, cptx_val a, uint32_t b) { return cptx_div(k, cptx_add(k, a, b - 1), b); }

static void count_tiles(gemm90 *g)
{
	cptx_kernel *k = g->k;

	g->tiles_m = ceil_div(k, g->M, g->o->bm * g->s.cluster_m);
	g->tiles_n = ceil_div(k, g->N, g->o->bn * g->s.cluster_n);
	g->w.k_tiles = ceil_div(k, g->K, g->s.bk);
}

void gemm_sm90_work_begin(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const gemm_shape *s = &g->s;
	cptx_val cta = cptx_ctaid_x(k), ctas = cptx_nctaid_x(k);

	g->w.cluster = s->cluster > 1 ? cptx_div(k, cta, s->cluster) : cta;
	g->w.clusters = s->cluster > 1 ? cptx_div(k, ctas, s->cluster) : ctas;
	g->rank = s->cluster > 1 ? cptx_cluster_ctarank(k) : (cptx_val){ 0 };
	if (g->o->grouped) {
		tma_gemm_group_begin(k, &g->t, &g->list, &g->p, &g->w);
		gemm_sm90_name_params(g);
		return;
	}
	count_tiles(g);
	g->tiles = times(k, g->tiles_m, g->tiles_n);
	tma_gemm_share_begin(k, &g->w, g->o->batched ? times(k, g->tiles, g->p.batch) : g->tiles, g->o->stream_k);
}

void gemm_sm90_locate(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const gemm_shape *s = &g->s;
	cptx_val row, column;

	if (g->o->grouped) {
		const uint32_t loaded = 3 | (g->t.edges ? 3u << g->t.edges : 0);
		tma_gemm_group_find(k, &g->t, &g->list, &g->p, g->w.at, g->loads ? loaded : ~loaded);
		gemm_sm90_name_params(g);
		count_tiles(g);
	}
	tma_gemm_share_locate(k, &g->w, g->o->stream_k);
	cptx_val id = g->o->grouped ? cptx_sub(k, g->w.at, g->list.first) : g->w.tile;
	if (g->o->batched) {
		g->z = cptx_as(cptx_div(k, id, g->tiles), CPTX_S32);
		id = cptx_rem(k, id, g->tiles);
	}
	walk_tile(k, id, g->tiles_m, g->tiles_n, g->o->group, &row, &column);
	g->m0 = cptx_as(cptx_mul(k, row, g->o->bm * s->cluster_m, .mode = CPTX_LO), CPTX_S32);
	g->n0 = cptx_as(cptx_mul(k, column, g->o->bn * s->cluster_n, .mode = CPTX_LO), CPTX_S32);
	if (s->cluster_m > 1)
		g->m0 = cptx_mad(k, cptx_as(g->rank, CPTX_S32), g->o->bm, g->m0, .mode = CPTX_LO);
	if (s->cluster_n > 1)
		g->n0 = cptx_mad(k, cptx_as(g->rank, CPTX_S32), g->o->bn, g->n0, .mode = CPTX_LO);
}
