/* SPDX-License-Identifier: MIT */
/* From the sums of a tile to elements of D, by <cptx/epilogue.h>. */
#include "gemm/tma/tma.h"

/* The options' epilogue. */
static cptx_val call(cptx_kernel *k, void *user, const cptx_visit *x, cptx_val v)
{
	const cptx_gemm_opt *o = (const cptx_gemm_opt *)user;

	return o->epilogue(k, o->user, v, x->row, x->col);
}

/* The options' visitors.  D has a tensor map or a pitch of its own, so it cannot get fewer columns here. */
static void add_visitors(cptx_kernel *k, const cptx_gemm_opt *o, const tma_gemm_work *w, cptx_epilogue *e)
{
	const cptx_gemm_operands x = {
		.params = &w->table, .m = w->p.M, .n = w->p.N, .k = w->p.K, .z = o->batched ? w->z : (cptx_val){ 0 }
	};
	const uint32_t first = e->count;

	o->visitors(k, o->user, e, &x);
	for (uint32_t i = first; i < e->count; i++)
		if (e->kind[i] == CPTX_VISIT_GATE_PAIRS)
			cptx_fail_(k, e->at[i],
			           "CPTX_VISIT_GATE_PAIRS in a GEMM of <cptx/gemm.h>, whose D has as many columns as B; "
			           "examples/kit/gemm_swiglu_fp8.c has a kernel of its own for gated pairs");
}

void tma_gemm_chain_new(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, cptx_epilogue *e)
{
	const cptx_gemm_opt *o = t->o;
	const tma_gemm_params *p = &w->p;

	/* rows of D are of whole 16 bytes, where it has a tensor map */
	cptx_epilogue_new(k, e, .rows = p->M, .cols = p->N, .vec = t->any_row_of_d ? 1 : 128 / cptx_type_bits(o->out),
	                  .transposed = o->swap, .integers = o->out == CPTX_S32);
	if (o->alpha)
		cptx_epilogue_add(k, e, CPTX_VISIT_SCALE, .value = p->alpha);
	if (o->beta)
		cptx_epilogue_add(k, e, CPTX_VISIT_MATRIX, .value = p->beta, .address = p->C, .type = o->out, .pitch = p->N,
		                  .z = w->z);
	if (o->bias)
		cptx_epilogue_add(k, e, CPTX_VISIT_BIAS_COL, .address = p->bias);
	if (o->epilogue)
		cptx_epilogue_add(k, e, CPTX_VISIT_CALL, .fn = call, .user = (void *)(uintptr_t)o);
	if (o->visitors)
		add_visitors(k, o, w, e);
}

cptx_epilogue tma_gemm_chain(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, const cptx_acc *acc)
{
	const bool swap = t->o->swap;
	cptx_epilogue e;

	tma_gemm_chain_new(k, t, w, &e);
	cptx_epilogue_run(k, &e, acc, .row = swap ? w->n0 : w->m0, .col = swap ? w->m0 : w->n0, .at_store = true);
	return e;
}
