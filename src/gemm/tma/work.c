/* SPDX-License-Identifier: MIT */
/* Which tiles a CTA computes, and where its part of one is: by <cptx/scheduler.h>. */
#include "gemm/tma/tma.h"

#include <cptx/cptx.h>

static cptx_val ceil_div(cptx_kernel *k, cptx_val a, uint32_t b) { return cptx_div(k, cptx_add(k, a, b - 1), b); }

cptx_val tma_gemm_share_end(cptx_kernel *k, const tma_gemm_work *w) { return cptx_tiles_share_end(k, &w->sched, &w->here); }

tma_gemm gemm_describe(const gemm_generator *g, const cptx_gemm_opt *o)
{
	const uint32_t m = or_one(o->cluster_m), n = or_one(o->cluster_n),
				   scales = MAP(CPTX_GEMM_MAP_SCALE_A) | MAP(CPTX_GEMM_MAP_SCALE_B);
	tma_gemm t = g->describe(o);

	t.target = t.target ? t.target : g->target;
	t.o = o, t.in = tma_gemm_inner(o);
	/* those of the factors of weights, and in place of factors of A of their zero points */
	if (t.weight_rows)
		t.maps |= MAP(CPTX_GEMM_MAP_SCALE_B) | (o->zeros ? MAP(CPTX_GEMM_MAP_SCALE_A) : 0);
	t.maps |=
		MAP(CPTX_GEMM_MAP_A) | MAP(CPTX_GEMM_MAP_B) | MAP(CPTX_GEMM_MAP_D) | (t.scales.vec || t.row_scales ? scales : 0);
	t.cluster = m * n * (t.pair ? 2 : 1), t.per_sm = t.per_sm ? t.per_sm : or_one(o->per_sm);
	t.side_m = o->swap ? o->bn * n : o->bm * m, t.side_n = o->swap ? o->bm * m : o->bn * n;
	return t;
}

/* The widest swizzle that divides the contiguous rows, and whose spans the units divide or are made of; bytes. */
static enum cptx_swizzle swizzle_of(uint32_t along, uint32_t unit)
{
	for (uint32_t span = 128; span > 32; span /= 2)
		if (along % span == 0 && (unit % span == 0 || span % unit == 0))
			return span == 128 ? CPTX_SWIZZLE_128B : CPTX_SWIZZLE_64B;
	return CPTX_SWIZZLE_32B;
}

cptx_tile tma_gemm_tile(const cptx_gemm_opt *o, bool of_b, uint32_t bk, uint32_t unit)
{
	const bool bytes = !of_b && tma_gemm_has_weights(o);
	const uint32_t each = bytes ? 1 : tma_gemm_bits(of_b ? o->b : o->a) / 8, rows = of_b ? o->bn : o->bm;
	const uint32_t cols = of_b ? bk : (uint32_t)tma_gemm_along_a(o, bk);
	const bool mn_major = of_b ? o->b_n_major : o->a_m_major;

	return (cptx_tile){ .rows = rows,
		                .cols = cols,
		                .elem = { .bits = (uint8_t)(8 * each), .mn_major = mn_major },
		                .swizzle = each == 8  ? CPTX_SWIZZLE_64B
		                           : mn_major ? swizzle_of(rows * each, unit * each)
		                                      : swizzle_of(cols * each, cols * each) };
}

cptx_tile tma_gemm_part(const tma_gemm *t, bool of_b)
{
	const bool b = of_b != t->o->swap;
	cptx_tile part = b ? t->b : t->a;

	part.rows /= or_one(t->parts[b]);
	return part;
}

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

/* Fills in w->in, the parameters by the names of the product that is computed, from w->p, those by the names of the options:
 * .swap exchanges A and B. */
static void name_params(const tma_gemm *t, tma_gemm_work *w)
{
	w->in = w->p;
	if (!t->o->swap)
		return;
	w->in.M = w->p.N, w->in.N = w->p.M;
	exchange(&w->in.map[CPTX_GEMM_MAP_A], &w->in.map[CPTX_GEMM_MAP_B]);
	exchange(&w->in.map[CPTX_GEMM_MAP_SCALE_A], &w->in.map[CPTX_GEMM_MAP_SCALE_B]);
	exchange(&w->in.map[CPTX_GEMM_MAP_LAST_A], &w->in.map[CPTX_GEMM_MAP_LAST_B]);
	w->in.of[0] = w->p.of[1], w->in.of[1] = w->p.of[0];
}

/* Counts the tiles of the problem at hand. */
static void count_tiles(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	w->tiles_m = ceil_div(k, w->in.M, t->o->bm * or_one(t->o->cluster_m));
	w->tiles_n = ceil_div(k, w->in.N, t->o->bn * or_one(t->o->cluster_n));
	if (t->counts_k_tiles || t->o->stream_k)
		w->k_tiles = ceil_div(k, w->in.K, t->bk);
}

/* Begins the loop over tiles: over `all` tiles of a list, or, with NONE, over those of the matrices. */
static void schedule(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, cptx_val all)
{
	cptx_tiles_new(k, &w->sched, .schedule = t->o->stream_k ? CPTX_TILES_STREAM_K : CPTX_TILES_PERSISTENT,
	               .tiles_m = w->tiles_m, .tiles_n = w->tiles_n, .batches = t->o->batched ? w->p.batch : (cptx_val){ 0 },
	               .all = all, .k_tiles = w->k_tiles, .cluster = t->cluster, .number = w->cluster, .clusters = w->clusters);
	cptx_tiles_first(k, &w->sched, &w->here);
	w->at = w->here.at, w->end = w->here.end, w->step = w->here.step;
}

/* Readies the tiles of experts, whose counts are read here: the launch before, which may write them, has ended. */
static void begin_experts(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	const cptx_val none = { 0 };

	name_params(t, w);
	count_tiles(k, t, w);
	if (t->o->experts == CPTX_GEMM_EXPERTS_K)
		cptx_tile_groups_new(k, &w->experts, .counts = w->p.counts, .groups = w->p.batch, .rows = w->p.K, .columns = none,
		                     .tiles = cptx_mul(k, w->tiles_m, w->tiles_n, .mode = CPTX_LO));
	else
		cptx_tile_groups_new(k, &w->experts, .counts = w->p.counts, .groups = w->p.batch, .rows = w->p.M,
		                     .apart = t->o->experts == CPTX_GEMM_EXPERTS_MASKED, .side = t->side_m,
		                     .columns = t->o->swap ? w->tiles_m : w->tiles_n);
	schedule(k, t, w, w->experts.all);
	cptx_tile_groups_first(k, &w->experts, &w->expert);
}

static void begin(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	cptx_val cta = cptx_ctaid_x(k), ctas = cptx_nctaid_x(k);

	w->cluster = t->cluster > 1 ? cptx_div(k, cta, t->cluster) : cta;
	w->clusters = t->cluster > 1 ? cptx_div(k, ctas, t->cluster) : ctas;
	if (t->cluster > 1) {
		w->rank = cptx_cluster_ctarank(k);
		w->in_pair = t->pair ? cptx_and(k, w->rank, 1) : cptx_imm(0);
		w->tile_rank = t->pair ? cptx_shr(k, w->rank, 1) : w->rank;
	}
	if (t->o->experts) {
		begin_experts(k, t, w);
		return;
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

void tma_gemm_work_begin(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	begin(k, t, w);
	if (t->pair)
		w->leader = cptx_and(k, w->rank, ~1u);
}

void tma_gemm_start(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, cptx_val tid, cptx_timeline *line, uint32_t warps)
{
	tma_gemm_prefetch_maps(k, t, w, tid);
	if (!t->o->experts)
		tma_gemm_work_begin(k, t, w);
	cptx_griddepcontrol(k, .op = CPTX_WAIT);
	cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
	if (t->o->experts)
		tma_gemm_work_begin(k, t, w);
	tma_gemm_copy_unaligned(k, t, w, tid);
	cptx_timeline_begin(k, line, .buffer = w->p.timeline, .warps = warps, .events = t->o->timeline);
}

/* Finds the expert that tile w->at belongs to; tiles are then counted in its own rows. */
static void find_expert(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	cptx_tile_groups_find(k, &w->experts, &w->expert, w->at);
	w->z = cptx_as(w->expert.group, CPTX_S32);
	if (t->o->experts == CPTX_GEMM_EXPERTS_K) { /* without rows one K tile of zeros, which D is then */
		const cptx_val rows = cptx_sub(k, w->expert.row_end, w->expert.row);
		w->k_tiles = cptx_max(k, ceil_div(k, rows, t->bk), 1);
		return;
	}
	*(t->o->swap ? &w->tiles_n : &w->tiles_m) = w->expert.tiles_m;
}

static void find_problem(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t maps)
{
	if (t->o->experts)
		find_expert(k, t, w);
	if (!t->o->grouped)
		return;
	tma_gemm_group_find(k, t, w, maps);
	name_params(t, w);
}

/* Takes the tile w->at and its K tiles from the scheduler; of a list its problem is found before. */
static void take(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	cptx_tiles_take(k, &w->sched, &w->here);
	w->tile = w->here.id, w->k_first = w->here.k_first, w->k_end = w->here.k_end;
	if (t->o->grouped || t->o->experts == CPTX_GEMM_EXPERTS_K)
		w->k_end = w->k_tiles;
}

cptx_val tma_gemm_z_of(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, const tma_gemm_distances *d)
{
	return tma_gemm_has_steps(t) ? cptx_min(k, w->z, cptx_as(d->last, CPTX_S32)) : w->z;
}

cptx_val tma_gemm_ld(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, enum gemm_which which)
{
	if (tma_gemm_is_strided(t))
		return which == GEMM_C ? w->p.ldc : w->p.ldd;
	return t->o->swiglu ? cptx_shr(k, w->p.N, 1) : w->p.N;
}

/* The address of the matrix at hand of a batch whose distances from matrix to matrix the problem gives. */
static cptx_val strided_matrix(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, enum cptx_gemm_map which)
{
	const bool of_b = which == CPTX_GEMM_MAP_B;
	const cptx_val z = cptx_cvt(k, cptx_as(w->z, CPTX_U32), .dtype = CPTX_U64);
	const tma_gemm_distances *d = &w->p.of[of_b];

	if (which == CPTX_GEMM_MAP_D)
		return cptx_mad(k, cptx_mul(k, z, w->p.step_d, .mode = CPTX_LO), cptx_type_bits(t->o->out) / 8, w->p.map[which],
		                .mode = CPTX_LO);
	const cptx_val mine = cptx_cvt(k, cptx_as(tma_gemm_z_of(k, t, w, d), CPTX_U32), .dtype = CPTX_U64);
	if (!tma_gemm_is_copied(t, of_b ? GEMM_B : GEMM_A))
		return cptx_mad(k, mine, d->step, w->p.map[which], .mode = CPTX_LO);
	const cptx_val each = cptx_mul_wide(k, tma_gemm_stored_rows(t, w, of_b), tma_gemm_copy_pitch(k, t, w, of_b));
	return cptx_mad(k, mine, each, w->p.map[which], .mode = CPTX_LO);
}

cptx_val tma_gemm_matrix(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, enum cptx_gemm_map which)
{
	const bool of_d = which == CPTX_GEMM_MAP_D;
	const cptx_val rows = which == CPTX_GEMM_MAP_B ? w->p.N : w->p.M;

	if (!tma_gemm_has_matrices(t, which))
		return w->p.map[which];
	if (tma_gemm_is_strided(t))
		return strided_matrix(k, t, w, which);
	const cptx_val cols = of_d                       ? tma_gemm_ld(k, t, w, GEMM_D)
	                      : which == CPTX_GEMM_MAP_B ? w->p.K
	                                                 : tma_gemm_cols_of_a(k, t, w);
	const cptx_val each = cptx_mul_wide(k, rows, cols), z = cptx_cvt(k, cptx_as(w->z, CPTX_U32), .dtype = CPTX_U64);
	if (of_d) /* in the other order ptxas 13.0 takes 2 to 6 instructions more for each tile, of A and B the reverse */
		return cptx_mad(k, cptx_mul(k, each, z, .mode = CPTX_LO), cptx_type_bits(t->o->out) / 8, w->p.map[which],
		                .mode = CPTX_LO);
	const uint32_t bytes = tma_gemm_bits(which == CPTX_GEMM_MAP_B ? t->o->b : t->o->a) / 8; /* 1, 2, 4 or 8 */
	const uint32_t shift = bytes == 8 ? 3 : bytes / 2;
	return cptx_mad(k, shift ? cptx_shl(k, each, shift) : each, z, w->p.map[which], .mode = CPTX_LO);
}

static cptx_val along_k(cptx_kernel *k, const tma_gemm *t, cptx_val k_tile)
{
	return cptx_as(cptx_mul(k, k_tile, t->bk / or_one(t->packed), .mode = CPTX_LO), CPTX_S32);
}

cptx_val tma_gemm_k_first(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w)
{
	if (t->o->experts == CPTX_GEMM_EXPERTS_K)
		return cptx_as(w->expert.row, CPTX_S32);
	return t->o->stream_k ? along_k(k, t, w->k_first) : cptx_imm(0);
}

cptx_val tma_gemm_k_end(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w)
{
	if (t->o->experts == CPTX_GEMM_EXPERTS_K)
		return cptx_add(k, along_k(k, t, w->k_end), cptx_as(w->expert.row, CPTX_S32));
	if (t->o->stream_k || t->whole_k_tiles)
		return along_k(k, t, w->k_end);
	return cptx_as(or_one(t->packed) > 1 ? cptx_shr(k, w->in.K, 1) : w->in.K, CPTX_S32);
}

void tma_gemm_find(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t maps)
{
	find_problem(k, t, w, maps);
	take(k, t, w);
}

void tma_gemm_locate(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t maps)
{
	const cptx_gemm_opt *o = t->o;
	uint32_t side_m = o->bm * or_one(o->cluster_m), side_n = o->bn * or_one(o->cluster_n);
	cptx_val row, column;

	find_problem(k, t, w, maps);
	if (o->grouped)
		count_tiles(k, t, w);
	take(k, t, w);
	cptx_val id = o->grouped   ? cptx_sub(k, w->tile, w->list.first)
	              : o->experts ? cptx_sub(k, w->tile, w->expert.first)
	                           : cptx_tiles_matrix(k, &w->sched, &w->here);
	if (o->batched)
		w->z = cptx_as(w->here.z, CPTX_S32);
	cptx_val rows = o->group ? cptx_imm(o->group) : gemm_order_rows_of(k, &t->order, w->tiles_m, w->tiles_n, w->clusters);
	cptx_tiles_raster(k, id, w->tiles_m, w->tiles_n, rows, &row, &column);
	w->m0 = cptx_as(cptx_mul(k, row, side_m, .mode = CPTX_LO), CPTX_S32);
	w->n0 = cptx_as(cptx_mul(k, column, side_n, .mode = CPTX_LO), CPTX_S32);
	if (o->experts && o->experts != CPTX_GEMM_EXPERTS_K) {
		cptx_val *first = o->swap ? &w->n0 : &w->m0;
		*first = cptx_add(k, *first, cptx_as(w->expert.row, CPTX_S32));
	}
	if (side_m > o->bm)
		w->m0 = cptx_mad(k, cptx_as(w->tile_rank, CPTX_S32), o->bm, w->m0, .mode = CPTX_LO);
	if (side_n > o->bn)
		w->n0 = cptx_mad(k, cptx_as(w->tile_rank, CPTX_S32), o->bn, w->n0, .mode = CPTX_LO);
	if (t->pair)
		w->m0 = cptx_mad(k, cptx_as(w->in_pair, CPTX_S32), t->pair, w->m0, .mode = CPTX_LO);
}
