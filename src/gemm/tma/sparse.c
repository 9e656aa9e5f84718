/* SPDX-License-Identifier: MIT */
/*
 * A sparse A: which two of four neighbours its elements are stands in metadata, a word for 16 rows and 64 elements along K
 * in each lane of a warp (cptx_gemm_sparse_pack).
 *
 * Each lane loads its words itself, so many K tiles before they are needed that nobody waits for global memory, and keeps
 * them in registers: an eighth of the bytes of A, which warps beside one another find in the L1 cache.
 */
#include "gemm/tma/tma.h"

#include <cptx/cptx.h>

enum { ROWS = 16 /* of a word */, BLOCK = CPTX_WARP * 4 /* bytes of the words of a warp */, SPAN = 128 };

#define RULE(ok, ...) TMA_RULE(ok, "%s: " __VA_ARGS__)

bool tma_gemm_sparse_check(const char *target, const cptx_gemm_opt *o, uint32_t bk, cptx_error *err)
{
	if (!o->sparse)
		return true;
	RULE(tma_gemm_bits(o->a) <= 16, "a sparse A of .%s; its elements have 8 or 16 bits", target, cptx_type_name(o->a));
	RULE(!o->a_m_major && !o->swap && !o->scale, "a sparse A %s", target,
	     o->a_m_major ? "stored as K rows of M; it is compressed along K"
	     : o->swap    ? "of a tile whose sides are swapped; tensor cores take the first operand sparse"
	                  : "with scale factors");
	RULE(!o->experts && !o->grouped,
	     "a sparse A %s; its rows, weights as a rule, are known when it is compressed, so there is one, or a batch", target,
	     o->experts ? "of experts" : "of a list of problems");
	RULE(!(o->unaligned & CPTX_GEMM_A), "a sparse A that is unaligned; cptx_gemm_sparse_pack makes rows of whole 16 bytes",
	     target);
	const uint32_t each = 8 * SPAN / tma_gemm_bits(o->a);
	RULE(bk % each == 0, "tile K = %u with a sparse A of .%s; it is a multiple of %u, 128 bytes of B", target, bk,
	     cptx_type_name(o->a), each);
	return true;
}

bool tma_gemm_sparse_check_rows(const tma_gemm *t, const cptx_gemm_problem *p, cptx_error *err)
{
	RULE(!t->o->sparse || divide_up(p->m, ROWS) * BLOCK <= UINT32_MAX,
	     "M = %llu with a sparse A; it has less than 2^29 - 15 rows, since the metadata of 64 elements along K of all rows "
	     "have less than 4 GiB",
	     t->target, (unsigned long long)p->m);
	return true;
}

cptx_val tma_gemm_cols_of_a(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w)
{
	if (!t->o->sparse)
		return w->in.K;
	const cptx_val steps = cptx_shr(k, cptx_add(k, w->in.K, GEMM_SPARSE_K - 1), 6);

	return cptx_shl(k, steps, 5);
}

void tma_gemm_sparse_new(cptx_kernel *k, tma_gemm_sparse *x, const cptx_tiled_mma *mma, cptx_val thread, uint32_t ahead)
{
	const uint32_t words = cptx_tiled_mma_meta(mma); /* 0: A is dense */
	const bool wgmma = mma->opt.by == CPTX_BY_WGMMA;

	if (!words)
		return;
	x->steps = or_one(x->t->bk / GEMM_SPARSE_K), x->blocks = words / x->steps, x->apart = wgmma ? 4 : 1;
	x->ahead = MIN(ahead, (uint32_t)GEMM_SPARSE_AHEAD);
	for (uint32_t i = 0; i < 2; i++)
		x->now[i] = i && !wgmma ? x->now[0] : cptx_regs(k, CPTX_B32, words);
	for (uint32_t i = 1; i <= x->ahead; i++)
		x->words[i] = cptx_regs(k, CPTX_B32, words);
	for (uint32_t i = 0; i < words; i++) /* what is beyond the last row is valid, too: elements 0 and 1 of each four */
		for (uint32_t j = 1; j <= x->ahead; j++)
			cptx_mov(k, 0x44444444, .into = cptx_elem(x->words[j], i));
	const cptx_val lane = cptx_and(k, thread, CPTX_WARP - 1);
	x->lane = cptx_shl(k, lane, 2);
	x->first = cptx_shr(k, mma->row.kind == CPTX_VAL_INT ? cptx_mov(k, mma->row, .type = CPTX_U32) : mma->row, 4);
	if (wgmma)
		x->first = cptx_add(k, x->first, cptx_shr(k, thread, 5));
	x->from = cptx_reg(k, CPTX_U32);
}

/* Loads the words of K tile x->from, beyond the last one those of that, and goes on to the next. */
static void load(cptx_kernel *k, const tma_gemm_sparse *x, cptx_val to)
{
	for (uint32_t s = 0; s < x->steps; s++) {
		const cptx_val step = cptx_min(k, s ? cptx_add(k, x->from, s) : x->from, x->last);
		const cptx_val at = cptx_mad_wide(k, step, x->pitch, x->base);
		for (uint32_t i = 0; i < x->blocks; i++)
			cptx_ld(k, cptx_offset(at, i * x->apart * BLOCK), .space = CPTX_GLOBAL, .nc = CPTX_NC, .type = CPTX_B32,
			        .into = cptx_elem(to, s * x->blocks + i), .when = x->there[i]);
	}
	cptx_add(k, x->from, x->steps, .into = x->from);
}

void tma_gemm_sparse_begin(cptx_kernel *k, tma_gemm_sparse *x)
{
	const tma_gemm_work *w = x->w;

	if (!x->t->o->sparse)
		return;
	const cptx_val rows = cptx_shr(k, cptx_add(k, w->in.M, ROWS - 1), 4);
	const cptx_val steps = cptx_shr(k, cptx_add(k, w->in.K, GEMM_SPARSE_K - 1), 6);
	const cptx_val first = cptx_add(k, cptx_shr(k, cptx_as(w->m0, CPTX_U32), 4), x->first);

	x->pitch = cptx_mul(k, rows, BLOCK, .mode = CPTX_LO), x->last = cptx_sub(k, steps, 1);
	x->base = cptx_mad_wide(k, first, BLOCK, cptx_add(k, w->p.meta, cptx_cvt(k, x->lane, .dtype = CPTX_U64)));
	if (x->t->o->batched) {
		const cptx_val z = cptx_as(tma_gemm_z_of(k, x->t, w, &w->in.of[0]), CPTX_U32);
		const cptx_val all = cptx_mul_wide(k, steps, x->pitch);
		x->base = cptx_mad(k, all, cptx_cvt(k, z, .dtype = CPTX_U64), x->base, .mode = CPTX_LO);
	}
	for (uint32_t i = 0; i < x->blocks; i++)
		x->there[i] = cptx_setp(k, i ? cptx_add(k, first, i * x->apart) : first, rows, .cmp = CPTX_LT);
	if (x->t->o->stream_k)
		cptx_mul(k, w->k_first, x->steps, .mode = CPTX_LO, .into = x->from);
	else
		cptx_mov(k, 0, .into = x->from);
	for (uint32_t i = 1; i <= x->ahead; i++)
		load(k, x, x->words[i]);
}

cptx_val tma_gemm_sparse_next(cptx_kernel *k, const tma_gemm_sparse *x, uint32_t turn)
{
	const cptx_val now = x->now[turn % 2];

	if (!x->t->o->sparse)
		return (cptx_val){ 0 };
	for (uint32_t i = 0; i < x->ahead; i++)
		for (uint32_t j = 0; j < now.count; j++)
			cptx_mov(k, cptx_elem(x->words[i + 1], j), .into = cptx_elem(i ? x->words[i] : now, j));
	load(k, x, x->words[x->ahead]);
	return now;
}
