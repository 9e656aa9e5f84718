/*
 * Which tiles a CTA of the sm_90a GEMM computes, and which part of K.
 *
 * Clusters walk over the tiles in steps of the number of clusters.  With stream_k they do so as long as there are more than
 * two tiles for each; the tiles that are left (one to two for each cluster, or all if there are fewer) are laid behind one
 * another as one row of K tiles, of which each cluster takes the same part: it may begin in the midst of a tile and end in
 * the midst of another; see gemm_sm90_reduce.c.
 */
#include "kernels/gemm_sm90.h"
#include "kernels/walk.h"

static cptx_val times(cptx_kernel *k, cptx_val a, cptx_val b) { return cptx_mul(k, a, b, .mode = CPTX_LO); }

static cptx_val ceil_div(cptx_kernel *k, cptx_val a, uint32_t b) { return cptx_div(k, cptx_add(k, a, b - 1), b); }

static void count_tiles(gemm90 *g)
{
	cptx_kernel *k = g->k;

	g->tiles_m = ceil_div(k, g->M, g->o->bm * g->s.cluster_m);
	g->tiles_n = ceil_div(k, g->N, g->o->bn * g->s.cluster_n);
	g->k_tiles = ceil_div(k, g->K, g->s.bk);
}

void gemm_sm90_work_begin(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const gemm_shape *s = &g->s;
	cptx_val cta = cptx_ctaid_x(k), ctas = cptx_nctaid_x(k);

	g->cluster = s->cluster > 1 ? cptx_div(k, cta, s->cluster) : cta;
	g->clusters = s->cluster > 1 ? cptx_div(k, ctas, s->cluster) : ctas;
	g->rank = s->cluster > 1 ? cptx_cluster_ctarank(k) : (cptx_val){ 0 };
	if (g->o->grouped) {
		gemm_sm90_group_begin(g);
		return;
	}
	count_tiles(g);
	g->tiles = times(k, g->tiles_m, g->tiles_n);
	cptx_val all = g->o->batched ? times(k, g->tiles, g->p.batch) : g->tiles;
	if (!g->o->stream_k) {
		g->at = cptx_var(k, CPTX_U32, g->cluster);
		g->end = all, g->step = g->clusters;
		return;
	}
	/* whole rounds but for the last one */
	cptx_val rounds = cptx_div(k, all, g->clusters);
	rounds = cptx_sub(k, cptx_max(k, rounds, 1), 1);
	g->whole_tiles = times(k, rounds, g->clusters);
	g->own = times(k, rounds, g->k_tiles);
	g->shared = times(k, cptx_sub(k, all, g->whole_tiles), g->k_tiles);
	cptx_val first = times(k, g->shared, g->cluster);
	g->shared_first = cptx_div(k, first, g->clusters);
	g->shared_end = cptx_div(k, cptx_add(k, first, g->shared), g->clusters);
	g->at = cptx_var(k, CPTX_U32, 0);
	g->end = cptx_add(k, g->own, cptx_sub(k, g->shared_end, g->shared_first));
	g->step = cptx_reg(k, CPTX_U32);
}

/* g->at counts K tiles: of `own` whole tiles, then of the shared row. */
static void locate_part(gemm90 *g)
{
	cptx_kernel *k = g->k;
	cptx_val whole = cptx_setp(k, g->at, g->own, .cmp = CPTX_LT);
	cptx_val x = cptx_add(k, g->shared_first, cptx_sub(k, g->at, g->own));
	cptx_val q = cptx_div(k, cptx_selp(k, g->at, x, whole, .type = CPTX_U32), g->k_tiles);
	cptx_val shared_k = cptx_sub(k, x, times(k, q, g->k_tiles));

	g->tile = cptx_selp(k, cptx_add(k, times(k, q, g->clusters), g->cluster), cptx_add(k, q, g->whole_tiles), whole,
	                    .type = CPTX_U32);
	g->k_first = cptx_selp(k, 0, shared_k, whole, .type = CPTX_U32);
	cptx_val left = cptx_sub(k, g->shared_end, x), shared_end = cptx_min(k, g->k_tiles, cptx_add(k, shared_k, left));
	g->k_end = cptx_selp(k, g->k_tiles, shared_end, whole, .type = CPTX_U32);
	cptx_sub(k, g->k_end, g->k_first, .into = g->step);
}

void gemm_sm90_locate(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const gemm_shape *s = &g->s;
	cptx_val row, column;

	if (g->o->grouped) {
		gemm_sm90_group_find(g);
		count_tiles(g);
	}
	g->tile = g->at, g->k_first = cptx_imm(0), g->k_end = g->k_tiles;
	if (g->o->stream_k)
		locate_part(g);
	cptx_val id = g->o->grouped ? cptx_sub(k, g->at, g->group_first) : g->tile;
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
