/* SPDX-License-Identifier: MIT */
/* From the accumulators of a warpgroup to D, by <cptx/epilogue.h>: what is computed of a sum, and how it is stored. */
#include "gemm/sm90/gemm.h"

/* The options' epilogue. */
static cptx_val call(cptx_kernel *k, void *user, const cptx_visit *x, cptx_val v)
{
	const cptx_gemm_opt *o = user;

	return o->epilogue(k, o->user, v, x->row, x->col);
}

/* The address of C of the tile's matrix. */
static cptx_val address_of_c(const gemm90 *g)
{
	cptx_kernel *k = g->k;
	const tma_gemm_params *p = &g->w.p;

	if (!g->o->batched)
		return p->C;
	cptx_val z = cptx_cvt(k, cptx_as(g->w.z, CPTX_U32), .dtype = CPTX_U64), elements = cptx_mul_wide(k, p->M, p->N);
	return cptx_mad(k, cptx_mul(k, elements, z, .mode = CPTX_LO), g->s.out_bytes, p->C, .mode = CPTX_LO);
}

/* The chain from a sum of the tile at hand to an element of D.  N is even, as rows of D are aligned. */
static cptx_epilogue chain(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const cptx_gemm_opt *o = g->o;
	const tma_gemm_params *p = &g->w.p;
	cptx_epilogue e;

	cptx_epilogue_new(k, &e, .rows = p->M, .cols = p->N, .transposed = o->swap);
	if (o->alpha)
		cptx_epilogue_add(k, &e, CPTX_VISIT_SCALE, .value = p->alpha);
	if (o->beta)
		cptx_epilogue_add(k, &e, CPTX_VISIT_MATRIX, .value = p->beta, .type = o->out, .pitch = p->N,
		                  .address = address_of_c(g));
	if (o->bias)
		cptx_epilogue_add(k, &e, CPTX_VISIT_BIAS_COL, .address = p->bias);
	if (o->epilogue)
		cptx_epilogue_add(k, &e, CPTX_VISIT_CALL, .fn = call, .user = (void *)(uintptr_t)o);
	cptx_epilogue_run(k, &e, &g->acc, .row = o->swap ? g->w.n0 : g->w.m0, .col = o->swap ? g->w.m0 : g->w.n0,
	                  .at_store = true);
	return e;
}

void gemm_sm90_epilogue_begin(gemm90 *g)
{
	const gemm_shape *s = &g->s;

	cptx_epilogue_ring_new(g->k, &g->ring, .type = g->o->out, .tile = s->d, .last = s->rest, .stages = s->store_buffers,
	                       .units = s->consumers, .unit = g->wg, .barrier = g->barrier, .smem = g->stores, .acc = &g->acc,
	                       .map = g->w.in.map[CPTX_GEMM_MAP_D], .last_map = g->w.in.map[CPTX_GEMM_MAP_END_D]);
	if (s->later)
		cptx_epilogue_deferred_new(g->k, &g->before, .ring = &g->ring, .batched = g->o->batched, .maps = g->o->grouped);
}

void gemm_sm90_epilogue(gemm90 *g, bool defer)
{
	cptx_kernel *k = g->k;
	const cptx_val *map = g->w.in.map;
	cptx_epilogue e = chain(g);

	if (defer)
		cptx_epilogue_defer(k, &e, &g->before, .z = g->w.z, .map = map[CPTX_GEMM_MAP_D],
		                    .last_map = map[CPTX_GEMM_MAP_END_D]);
	else
		cptx_epilogue_store_tma(k, &e, &g->ring, .z = g->w.z, .map = map[CPTX_GEMM_MAP_D],
		                        .last_map = map[CPTX_GEMM_MAP_END_D]);
}
