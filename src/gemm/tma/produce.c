/* SPDX-License-Identifier: MIT */
/* The producer of the GEMMs by mma.sync that are fed by TMA: one thread, which runs ahead across tile borders. */
#include "gemm/tma/tma.h"

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

	cptx_operand_load(k, p->a, at->stage, w->m0, k0, .barrier = full, .z = z, .map = w->p.map[CPTX_GEMM_MAP_A]);
	cptx_operand_load(k, p->b, at->stage, w->n0, k0, .barrier = full, .z = z, .map = w->p.map[CPTX_GEMM_MAP_B]);
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
