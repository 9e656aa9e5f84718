/*
 * Tiles of which several clusters have a part (stream_k).
 *
 * The workspace has room for two parts of each cluster: one of the tile that its row of K tiles begins in the midst of, and
 * one of the tile that it begins.  Behind them there is a counter for each warpgroup of each shared tile.  Who comes last
 * sums the parts in the order of clusters, so the result does not depend on who that is, and clears the counter.
 */
#include "kernels/gemm_sm90.h"

enum { FOUR = 16 /* bytes */ };

/* Four accumulators of all threads of the warpgroup lie behind one another, then the next four. */
static uint32_t part_bytes(const gemm_shape *s) { return s->acc * WARPGROUP * 4; }

/* Where this thread's first four accumulators are of the part of a cluster; `begins`: it begins the tile. */
static cptx_val part_at(const gemm90 *g, cptx_val cluster, cptx_val begins)
{
	cptx_kernel *k = g->k;
	const gemm_shape *s = &g->s;
	cptx_val number = cptx_add(k, cptx_shl(k, cluster, 1), begins);

	if (s->cluster > 1)
		number = cptx_mad(k, number, s->cluster, g->rank, .mode = CPTX_LO);
	number = cptx_mad(k, number, s->consumers, g->wg, .mode = CPTX_LO);
	return cptx_add(k, cptx_add(k, g->workspace, cptx_mul_wide(k, number, part_bytes(s))), cptx_mul_wide(k, g->lane, FOUR));
}

static cptx_val counter_at(const gemm90 *g)
{
	cptx_kernel *k = g->k;
	const gemm_shape *s = &g->s;
	cptx_val number = cptx_sub(k, g->tile, g->whole_tiles);

	if (s->cluster > 1)
		number = cptx_mad(k, number, s->cluster, g->rank, .mode = CPTX_LO);
	number = cptx_mad(k, number, s->consumers, g->wg, .mode = CPTX_LO);
	cptx_val parts = cptx_mul_wide(k, g->clusters, 2 * s->cluster * s->consumers * part_bytes(s));
	return cptx_add(k, cptx_add(k, g->workspace, parts), cptx_mul_wide(k, number, 4));
}

static void store_part(const gemm90 *g, cptx_val to)
{
	for (uint32_t r = 0; r < g->s.acc; r += 4)
		cptx_st(g->k, cptx_offset(to, (int64_t)r / 4 * WARPGROUP * FOUR), cptx_slice(g->acc, r, 4), .space = CPTX_GLOBAL,
		        .vec = CPTX_V4, .type = CPTX_F32);
}

static void add_part(const gemm90 *g, cptx_val from)
{
	cptx_kernel *k = g->k;

	for (uint32_t r = 0; r < g->s.acc; r += 4) {
		cptx_val v = cptx_ld(k, cptx_offset(from, (int64_t)r / 4 * WARPGROUP * FOUR), .space = CPTX_GLOBAL, .vec = CPTX_V4,
		                     .type = CPTX_F32);
		for (uint32_t e = 0; e < 4; e++)
			cptx_add(k, cptx_elem(g->acc, r + e), cptx_elem(v, e), .into = cptx_elem(g->acc, r + e));
	}
}

/* How many had come before this warpgroup, in all its threads. */
static cptx_val count(const gemm90 *g, cptx_val counter, cptx_val first_thread)
{
	cptx_kernel *k = g->k;
	cptx_val flag = cptx_mad(k, g->wg, 4, cptx_mov(k, g->flags, .type = CPTX_U32), .mode = CPTX_LO);

	cptx_fence(k, .sem = CPTX_ACQ_REL, .scope = CPTX_GPU);
	cptx_bar_sync(k, g->barrier, .b = cptx_imm(WARPGROUP));
	CPTX_IF(k, first_thread) {
		cptx_val old = cptx_atom(k, counter, 1, .sem = CPTX_ACQ_REL, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .op = CPTX_ADD,
		                         .type = CPTX_U32);
		cptx_st(k, flag, old, .space = CPTX_SHARED);
	}
	cptx_bar_sync(k, g->barrier, .b = cptx_imm(WARPGROUP));
	return cptx_ld(k, flag, .space = CPTX_SHARED, .type = CPTX_U32);
}

cptx_val gemm_sm90_reduce(gemm90 *g)
{
	cptx_kernel *k = g->k;
	cptx_val first, last, counter = counter_at(g), first_thread = cptx_setp(k, g->lane, 0, .cmp = CPTX_EQ);
	cptx_val begins = cptx_selp(k, 1, 0, cptx_setp(k, g->k_first, 0, .cmp = CPTX_EQ), .type = CPTX_U32);

	gemm_sm90_sharers(g, &first, &last);
	store_part(g, part_at(g, g->cluster, begins));
	cptx_val is_last = cptx_setp(k, count(g, counter, first_thread), cptx_sub(k, last, first), .cmp = CPTX_EQ);
	CPTX_IF(k, is_last) {
		cptx_fence(k, .sem = CPTX_ACQ_REL, .scope = CPTX_GPU);
		CPTX_IF(k, first_thread)
			cptx_st(k, counter, 0, .sem = CPTX_RELAXED, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_U32);
		for (uint32_t r = 0; r < g->s.acc; r++)
			cptx_mov(k, 0.0f, .into = cptx_elem(g->acc, r));
		add_part(g, part_at(g, first, cptx_imm(1)));
		cptx_val i = cptx_var(k, CPTX_U32, cptx_add(k, first, 1)), end = cptx_add(k, last, 1);
		CPTX_FOR(k, i, end, 1)
			add_part(g, part_at(g, i, cptx_imm(0)));
	}
	return is_last;
}
