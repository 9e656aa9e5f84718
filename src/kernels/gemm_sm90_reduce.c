/*
 * Tiles of which several clusters have a part (stream_k).
 *
 * The cluster that begins a tile finishes it: the others leave their sums in the workspace and raise a flag, and it adds
 * them, in order, to its accumulators.  A cluster begins a tile at the end of its row of K tiles, and continues one at the
 * beginning, so the sums that it waits for are mostly there already.  Waiting cannot last: who leaves a sum has waited for
 * nobody before.  A cluster leaves at most one sum.  Behind the sums there is a flag for each, which who has read it clears.
 */
#include "kernels/gemm_sm90.h"

enum { FOUR = 16 /* bytes */ };

/* Of the sum that this CTA's part of a cluster and this warpgroup leave. */
static cptx_val sum_number(const gemm90 *g, cptx_val cluster)
{
	cptx_kernel *k = g->k;
	cptx_val number = g->s.cluster > 1 ? cptx_mad(k, cluster, g->s.cluster, g->rank, .mode = CPTX_LO) : cluster;

	return cptx_mad(k, number, g->s.consumers, g->wg, .mode = CPTX_LO);
}

/* Four accumulators of all threads of the warpgroup lie behind one another, then the next four. */
static cptx_val sum_at(const gemm90 *g, cptx_val number)
{
	cptx_kernel *k = g->k;
	cptx_val at = cptx_add(k, g->workspace, cptx_mul_wide(k, number, g->s.acc * WARPGROUP * 4));

	return cptx_add(k, at, cptx_mul_wide(k, g->lane, FOUR));
}

static cptx_val flag_at(const gemm90 *g, cptx_val number)
{
	cptx_kernel *k = g->k;
	cptx_val sums = cptx_mul_wide(k, g->clusters, g->s.cluster * g->s.consumers * g->s.acc * WARPGROUP * 4);

	return cptx_add(k, cptx_add(k, g->workspace, sums), cptx_mul_wide(k, number, 4));
}

static void leave_sum(const gemm90 *g, cptx_val first_thread)
{
	cptx_kernel *k = g->k;
	cptx_val number = sum_number(g, g->cluster), to = sum_at(g, number);

	for (uint32_t r = 0; r < g->s.acc; r += 4)
		cptx_st(k, cptx_offset(to, (int64_t)r / 4 * WARPGROUP * FOUR), cptx_slice(g->acc, r, 4), .space = CPTX_GLOBAL,
		        .vec = CPTX_V4, .type = CPTX_F32);
	cptx_bar_sync(k, g->barrier, .b = cptx_imm(WARPGROUP));
	cptx_st(k, flag_at(g, number), 1, .sem = CPTX_RELEASE, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_U32,
	        .when = first_thread);
}

static void add_sum(const gemm90 *g, cptx_val cluster, cptx_val first_thread)
{
	cptx_kernel *k = g->k;
	cptx_val number = sum_number(g, cluster), from = sum_at(g, number), flag = flag_at(g, number);

	CPTX_IF(k, first_thread) {
		CPTX_DO(k)
		{
			cptx_val raised =
				cptx_ld(k, flag, .sem = CPTX_ACQUIRE, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_U32);
			cptx_continue_when(k, cptx_setp(k, raised, 0, .cmp = CPTX_EQ));
		}
		cptx_st(k, flag, 0, .sem = CPTX_RELAXED, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_U32);
	}
	cptx_bar_sync(k, g->barrier, .b = cptx_imm(WARPGROUP));
	for (uint32_t r = 0; r < g->s.acc; r += 4) {
		cptx_val v = cptx_ld(k, cptx_offset(from, (int64_t)r / 4 * WARPGROUP * FOUR), .space = CPTX_GLOBAL, .vec = CPTX_V4,
		                     .type = CPTX_F32);
		for (uint32_t e = 0; e < 4; e++)
			cptx_add(k, cptx_elem(g->acc, r + e), cptx_elem(v, e), .into = cptx_elem(g->acc, r + e));
	}
}

/* The last of the clusters that have a part of g->tile. */
static cptx_val last_cluster(const gemm90 *g)
{
	cptx_kernel *k = g->k;
	cptx_val behind = cptx_sub(k, cptx_add(k, g->tile, 1), g->whole_tiles);
	cptx_val end = cptx_mul(k, behind, g->k_tiles, .mode = CPTX_LO);

	/* cluster c has K tiles from c * shared / clusters on, so x belongs to ((x + 1) * clusters - 1) / shared */
	return cptx_div(k, cptx_sub(k, cptx_mul(k, end, g->clusters, .mode = CPTX_LO), 1), g->shared);
}

cptx_val gemm_sm90_reduce(gemm90 *g)
{
	cptx_kernel *k = g->k;
	cptx_val begins = cptx_setp(k, g->k_first, 0, .cmp = CPTX_EQ), first_thread = cptx_setp(k, g->lane, 0, .cmp = CPTX_EQ);

	CPTX_IF(k, begins) {
		cptx_val i = cptx_var(k, CPTX_U32, cptx_add(k, g->cluster, 1)), end = cptx_add(k, last_cluster(g), 1);
		CPTX_FOR(k, i, end, 1)
			add_sum(g, i, first_thread);
	}
	CPTX_ELSE(k)
		leave_sum(g, first_thread);
	return begins;
}
