/* SPDX-License-Identifier: MIT */
/* The producers of the GEMMs by mma.sync: one thread by TMA, or all threads by cp.async. */
#include "gemm/tma/tma.h"

void tma_gemm_producer_operands(cptx_kernel *k, tma_gemm_producer *p)
{
	const cptx_gemm_opt *o = p->t->o;
	const tma_gemm_params *in = &p->w->p;
	const bool by_tma = tma_gemm_is_map(p->t, CPTX_GEMM_MAP_A);

	for (int b = 0; b < 2; b++)
		cptx_operand_new(k, &p->operand[b], .by = by_tma ? CPTX_OPERAND_TMA : CPTX_OPERAND_CP_ASYNC,
		                 .type = given(p->t->packed) > 1 ? CPTX_U8
		                         : b                     ? o->b
		                                                 : o->a,
		                 .tile = b ? p->t->b : p->t->a, .stages = o->stages, .smem = cptx_offset(p->ring, b ? p->b_at : 0),
		                 .apart = p->stage, .batched = by_tma && o->batched, .alone = true,
		                 .address = by_tma ? (cptx_val){ 0 } : in->map[b], .rows = b ? in->N : in->M, .cols = in->K,
		                 .threads = p->threads, .thread = p->thread, .whole = !by_tma);
}

/* ---- by TMA ---- */

static void load_factors(cptx_kernel *k, const tma_gemm_producer *p, const cptx_pipe_at *at, cptx_val k0, uint32_t span)
{
	const tma_gemm_factors *f = &p->t->factors;
	cptx_val to = cptx_mad(k, at->stage, p->stage, p->ring, .mode = CPTX_LO);
	cptx_val block = cptx_div(k, k0, span / f->along_k);
	const tma_gemm_factors_load l = {
		.t = p->t, .work = p->w, .in = &p->w->p, .block = block, .mbar = cptx_pipe_full(at), .alone = true
	};

	tma_gemm_load_factors(k, &l, false, cptx_offset(to, p->factors));
	tma_gemm_load_factors(k, &l, true, cptx_offset(to, p->factors + p->factor_bytes));
}

static void load_stage(cptx_kernel *k, const tma_gemm_producer *p, const cptx_pipe_at *at, cptx_val k0, uint32_t span)
{
	const tma_gemm_work *w = p->w;
	const cptx_val z = p->t->o->batched ? w->z : (cptx_val){ 0 }, full = cptx_pipe_full(at);

	cptx_operand_load(k, &p->operand[0], at->stage, w->m0, k0, .barrier = full, .z = z, .map = w->p.map[CPTX_GEMM_MAP_A]);
	cptx_operand_load(k, &p->operand[1], at->stage, w->n0, k0, .barrier = full, .z = z, .map = w->p.map[CPTX_GEMM_MAP_B]);
	if (p->factors)
		load_factors(k, p, at, k0, span);
}

/* A place along K as tensor maps count it, where two packed elements are one. */
static cptx_val along_k(cptx_kernel *k, cptx_val k_tile, uint32_t span)
{
	return cptx_as(cptx_mul(k, k_tile, span, .mode = CPTX_LO), CPTX_S32);
}

void tma_gemm_produce(cptx_kernel *k, const tma_gemm_producer *p)
{
	const bool shared = p->t->o->stream_k;
	const uint32_t packed = given(p->t->packed), span = p->t->bk / packed;
	tma_gemm_work *w = p->w;
	cptx_pipe_at at = cptx_pipe_producer(k, p->pipe);
	cptx_val k0 = cptx_reg(k, CPTX_S32), end;

	CPTX_FOR(k, w->at, w->end, w->step) {
		tma_gemm_locate(k, p->t, w, ~MAPS_OF_D);
		cptx_mov(k, shared ? along_k(k, w->k_first, span) : cptx_imm(0), .into = k0);
		end = shared ? along_k(k, w->k_end, span) : cptx_as(packed > 1 ? cptx_shr(k, w->p.K, 1) : w->p.K, CPTX_S32);
		CPTX_FOR(k, k0, end, span) {
			cptx_timeline_stamp(k, p->line, CPTX_GEMM_WAIT_ROOM);
			cptx_pipe_wait_empty(k, p->pipe, &at);
			cptx_timeline_stamp(k, p->line, CPTX_GEMM_LOAD);
			cptx_pipe_expect(k, p->pipe, &at, p->stage);
			load_stage(k, p, &at, k0, span);
			cptx_pipe_next(k, p->pipe, &at);
		}
	}
	cptx_timeline_stamp(k, p->line, CPTX_TIMELINE_END);
}

/* ---- by cp.async ---- */

/* A or B of the problem, or of the matrix of a batch, that the copies are of. */
static void find_matrix(cptx_kernel *k, tma_gemm_producer *p, int b)
{
	const cptx_gemm_opt *o = p->t->o;
	const tma_gemm_work *w = p->w;
	cptx_val at = w->p.map[b];

	if (o->batched) {
		cptx_val each = cptx_mul_wide(k, b ? w->p.N : w->p.M, w->p.K);
		cptx_val z = cptx_cvt(k, cptx_as(w->z, CPTX_U32), .dtype = CPTX_U64);
		at = cptx_mad(k, cptx_shl(k, each, 1), z, at, .mode = CPTX_LO);
	}
	if (o->batched || o->grouped)
		cptx_operand_rebase(k, &p->operand[b], at);
}

static void seek_tile(cptx_kernel *k, tma_gemm_producer *p)
{
	const bool shared = p->t->o->stream_k;
	tma_gemm_work *w = p->w;

	tma_gemm_locate(k, p->t, w, 0);
	for (int b = 0; b < 2; b++)
		find_matrix(k, p, b);
	cptx_val k0 = shared ? cptx_mul(k, w->k_first, p->t->bk, .mode = CPTX_LO) : cptx_imm(0);
	for (int b = 0; b < 2; b++)
		cptx_operand_seek(k, &p->operand[b], &p->from[b], b ? w->n0 : w->m0, k0);
	cptx_mov(k, shared ? cptx_sub(k, w->k_end, w->k_first) : w->k_end, .into = p->left);
}

/* Behind the last tile, copies are of no rows: zeros. */
static void seek_next(cptx_kernel *k, tma_gemm_producer *p)
{
	for (int b = 0; b < 2; b++)
		cptx_mov(k, 0, .into = p->from[b].rows), cptx_mov(k, 0, .into = p->from[b].bytes);
	CPTX_IF(k, cptx_setp(k, p->w->at, p->w->end, .cmp = CPTX_LT))
		seek_tile(k, p);
}

/* Copies of B follow those of A. */
void tma_gemm_copy(cptx_kernel *k, const tma_gemm_producer *p, uint32_t part, uint32_t parts)
{
	const uint32_t all = p->operand[0].copies + p->operand[1].copies;
	uint32_t from = all * part / parts, end = all * (part + 1) / parts;

	for (int b = 0; b < 2; b++) {
		const uint32_t n = p->operand[b].copies, last = MIN(end, n);
		if (from < last)
			cptx_operand_load_from(k, &p->operand[b], p->to.stage, &p->from[b], .first = from, .copies = last - from);
		from = MAX(from, n) - n, end = MAX(end, n) - n;
	}
}

void tma_gemm_copied(cptx_kernel *k, tma_gemm_producer *p)
{
	cptx_pipe_filled(k, p->pipe, &p->to);
	cptx_pipe_next(k, p->pipe, &p->to);
}

/* Its branch stands at the end of a K tile: it would otherwise split the block that ptxas schedules. */
void tma_gemm_copies_advance(cptx_kernel *k, tma_gemm_producer *p)
{
	for (int b = 0; b < 2; b++)
		cptx_operand_advance(k, &p->operand[b], &p->from[b], 0, p->t->bk);
	cptx_sub(k, p->left, 1, .into = p->left);
	CPTX_IF(k, cptx_setp(k, p->left, 0, .cmp = CPTX_EQ)) {
		cptx_add(k, p->w->at, p->w->step, .into = p->w->at);
		seek_next(k, p);
	}
}

void tma_gemm_copies_begin(cptx_kernel *k, tma_gemm_producer *p)
{
	tma_gemm_params *in = &p->w->p;
	cptx_val *const unknown[] = { &in->M, &in->N, &in->K, &in->map[CPTX_GEMM_MAP_A], &in->map[CPTX_GEMM_MAP_B] };

	tma_gemm_work_begin(k, p->t, p->w);
	for (size_t i = 0; p->t->o->grouped && i < ARRAY_LEN(unknown); i++) /* until the first problem is found */
		cptx_mov(k, 0, .into = *unknown[i]);
	tma_gemm_producer_operands(k, p);
	for (int b = 0; b < 2; b++)
		p->from[b] = cptx_operand_source(k, &p->operand[b], 0, 0);
	p->left = cptx_var(k, CPTX_U32, 0);
	seek_next(k, p);
	p->to = cptx_pipe_producer(k, p->pipe);
	for (uint32_t s = 0; s + 1 < p->t->o->stages; s++) {
		tma_gemm_copy(k, p, 0, 1);
		tma_gemm_copied(k, p);
		tma_gemm_copies_advance(k, p);
	}
}
