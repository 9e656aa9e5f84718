/* SPDX-License-Identifier: MIT */
/* From the accumulators of a warpgroup to D, by <cptx/epilogue.h>: what is computed of a sum, and how it is stored. */
#include "gemm/sm90/gemm.h"

/* The options' epilogue. */
static cptx_val call(cptx_kernel *k, void *user, const cptx_visit *x, cptx_val v)
{
	const cptx_gemm_opt *o = user;

	return o->epilogue(k, o->user, v, x->row, x->col);
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
		cptx_epilogue_add(k, &e, CPTX_VISIT_MATRIX, .value = p->beta, .type = o->out, .pitch = p->N, .address = p->C,
		                  .z = g->w.z);
	if (o->bias)
		cptx_epilogue_add(k, &e, CPTX_VISIT_BIAS_COL, .address = p->bias);
	if (o->epilogue)
		cptx_epilogue_add(k, &e, CPTX_VISIT_CALL, .fn = call, .user = (void *)(uintptr_t)o);
	cptx_epilogue_run(k, &e, &g->acc, .row = o->swap ? g->w.n0 : g->w.m0, .col = o->swap ? g->w.m0 : g->w.n0,
	                  .at_store = true);
	return e;
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
