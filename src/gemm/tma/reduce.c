/* SPDX-License-Identifier: MIT */
/*
 * Tiles of which several clusters have a part (stream_k): their partial sums in the workspace.  <cptx/scheduler.h> says who
 * finishes a tile.
 *
 * A warp, or a warpgroup, stores and adds the partial sums of its part of the tile on its own.  Four sums of all its threads
 * lie behind one another, then the next four.  A flag for each tells that they are there.
 */
#include "gemm/tma/tma.h"

#include <cptx/cptx.h>

enum { FOUR = 16 /* bytes */, FLAG = 4 };

tma_gemm_sums tma_gemm_sums_of(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, uint32_t units, uint32_t threads,
                               cptx_val unit, cptx_val lane)
{
	tma_gemm_sums s = { .at = w->p.workspace, .clusters = w->clusters, .threads = threads, .mine = unit, .lane = lane };

	s.of_cluster = t->cluster * units, s.bytes = t->sums / units - FLAG;
	if (t->cluster > 1)
		s.mine = cptx_mad(k, w->rank, units, unit, .mode = CPTX_LO);
	return s;
}

/* The number of the partial sums that those at this one's place in another cluster store. */
static cptx_val number_of(cptx_kernel *k, const tma_gemm_sums *s, cptx_val cluster)
{
	return cptx_mad(k, cluster, s->of_cluster, s->mine, .mode = CPTX_LO);
}

/* Where this thread's sums begin, and how far behind that those from number i on are. */
static cptx_val sums_at(cptx_kernel *k, const tma_gemm_sums *s, cptx_val number)
{
	return cptx_add(k, cptx_add(k, s->at, cptx_mul_wide(k, number, s->bytes)), cptx_mul_wide(k, s->lane, FOUR));
}

static int64_t place_of(const tma_gemm_sums *s, uint32_t i) { return (int64_t)i / 4 * s->threads * FOUR; }

static cptx_val flag_at(cptx_kernel *k, const tma_gemm_sums *s, cptx_val number)
{
	cptx_val sums = cptx_mul_wide(k, s->clusters, s->of_cluster * s->bytes);

	return cptx_add(k, cptx_add(k, s->at, sums), cptx_mul_wide(k, number, FLAG));
}

/* The next launch finds the flag as this one did. */
static void wait_for_flag(cptx_kernel *k, cptx_val flag)
{
	CPTX_DO(k)
	{
		cptx_val set = cptx_ld(k, flag, .sem = CPTX_ACQUIRE, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_U32);
		cptx_continue_when(k, cptx_setp(k, set, 0, .cmp = CPTX_EQ));
	}
	cptx_st(k, flag, 0, .sem = CPTX_RELAXED, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_U32);
}

static void synchronize(cptx_kernel *k, const tma_gemm_sums *s)
{
	if (s->barrier.kind == CPTX_VAL_NONE)
		cptx_bar_warp_sync(k, 0xffffffffu);
	else
		cptx_bar_sync(k, s->barrier, .b = cptx_imm(s->threads));
}

static void store_to(cptx_kernel *k, const tma_gemm_sums *s, cptx_val to, uint32_t first, cptx_val acc)
{
	for (uint32_t i = 0; i < acc.count; i += 4)
		cptx_st(k, cptx_offset(to, place_of(s, first + i)), cptx_slice(acc, i, 4), .space = CPTX_GLOBAL, .vec = CPTX_V4,
		        .type = acc.type);
}

void tma_gemm_store_partials(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, uint32_t first, cptx_val acc)
{
	store_to(k, s, sums_at(k, s, number_of(k, s, w->cluster)), first, acc);
}

void tma_gemm_store_partials_tmem(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, const cptx_acc *acc,
                                  uint32_t columns)
{
	cptx_acc fenced = *acc, part;

	fenced.fenced = true;
	cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
	for (uint32_t col = 0; col < acc->n; col += columns) {
		cptx_acc_load(k, &fenced, col, columns, &part);
		tma_gemm_store_partials(k, w, s, col, part.regs);
	}
	cptx_tcgen05_fence(k, .op = CPTX_FENCE_BEFORE_THREAD_SYNC);
}

static void set_flag(cptx_kernel *k, const tma_gemm_sums *s, cptx_val number, cptx_val one)
{
	synchronize(k, s);
	cptx_st(k, flag_at(k, s, number), 1, .sem = CPTX_RELEASE, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_U32,
	        .when = one);
}

void tma_gemm_flag_partials(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val one)
{
	set_flag(k, s, number_of(k, s, w->cluster), one);
}

cptx_val tma_gemm_wait_for_partials(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val one)
{
	cptx_val first = cptx_add(k, w->cluster, 1), end = cptx_var(k, CPTX_U32, first), i = cptx_var(k, CPTX_U32, first);

	CPTX_IF(k, cptx_setp(k, w->step, w->k_tiles, .cmp = CPTX_NE)) {
		cptx_mov(k, tma_gemm_share_end(k, w), .into = end);
		CPTX_IF(k, one) {
			cptx_val flag = cptx_var(k, CPTX_U64, flag_at(k, s, number_of(k, s, first)));
			CPTX_FOR(k, i, end, 1) {
				wait_for_flag(k, flag);
				cptx_add(k, flag, s->of_cluster * FLAG, .into = flag);
			}
		}
	}
	synchronize(k, s);
	return end;
}

static void add_from(cptx_kernel *k, const tma_gemm_sums *s, cptx_val from, uint32_t first, cptx_val acc)
{
	for (uint32_t i = 0; i < acc.count; i += 4) {
		cptx_val v =
			cptx_ld(k, cptx_offset(from, place_of(s, first + i)), .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = acc.type);
		for (uint32_t e = 0; e < 4; e++)
			cptx_add(k, cptx_elem(acc, i + e), cptx_elem(v, e), .into = cptx_elem(acc, i + e));
	}
}

void tma_gemm_add_partials(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val end, uint32_t first,
                           cptx_val acc)
{
	cptx_val cluster = cptx_var(k, CPTX_U32, cptx_add(k, w->cluster, 1));

	CPTX_FOR(k, cluster, end, 1)
		add_from(k, s, sums_at(k, s, number_of(k, s, cluster)), first, acc);
}

void tma_gemm_fixup_store(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val acc, cptx_val first)
{
	cptx_val number = number_of(k, s, w->cluster), to = sums_at(k, s, number);

	store_to(k, s, to, 0, acc);
	set_flag(k, s, number, first);
}

void tma_gemm_fixup_reduce(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val acc, cptx_val first)
{
	cptx_val cluster = cptx_var(k, CPTX_U32, cptx_add(k, w->cluster, 1)), end = tma_gemm_share_end(k, w);

	CPTX_FOR(k, cluster, end, 1) {
		cptx_val number = number_of(k, s, cluster), from = sums_at(k, s, number), flag = flag_at(k, s, number);
		CPTX_IF(k, first)
			wait_for_flag(k, flag);
		synchronize(k, s);
		add_from(k, s, from, 0, acc);
	}
}

void tma_gemm_finish_sums(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val acc, cptx_val first,
                          void (*store)(cptx_kernel *k, void *user), void *user)
{
	CPTX_IF(k, cptx_tiles_finishes(k, &w->sched, &w->here)) {
		CPTX_IF(k, cptx_setp(k, w->step, w->k_tiles, .cmp = CPTX_NE))
			tma_gemm_fixup_reduce(k, w, s, acc, first);
		store(k, user);
	}
	CPTX_ELSE(k)
		tma_gemm_fixup_store(k, w, s, acc, first);
}
