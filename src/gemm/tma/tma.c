/* SPDX-License-Identifier: MIT */
/* What the kernels of the GEMMs that are fed by TMA have in common: loads, and what comes behind the sums. */
#include "gemm/tma/tma.h"

#include <cptx/operand.h>

void tma_gemm_prefetch_maps(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, cptx_val tid)
{
	const uint32_t all = t->maps & ~(MAP(CPTX_GEMM_MAP_LAST_A) | MAP(CPTX_GEMM_MAP_LAST_B));
	uint32_t warp = 0;

	for (uint32_t i = 0; i < CPTX_GEMM_MAP_KINDS && !t->o->grouped; i++)
		if (all & MAP(i))
			cptx_prefetch(k, w->p.map[i], .tensormap = CPTX_TENSORMAP,
			              .when = cptx_setp(k, tid, 32 * warp++, .cmp = CPTX_EQ));
}

void tma_gemm_load_factors(cptx_kernel *k, const tma_gemm_factors_load *l, bool of_b, cptx_val to)
{
	const bool batched = l->t->o->batched;
	cptx_val c[4] = { cptx_mov(k, 0, .type = CPTX_S32), l->block, cptx_shr(k, of_b ? l->work->n0 : l->work->m0, 7),
		              l->work->z };

	cptx_cp_async_bulk_tensor_load(k, to, l->in->map[of_b ? CPTX_GEMM_MAP_SCALE_B : CPTX_GEMM_MAP_SCALE_A],
	                               cptx_pack(k, batched ? 4 : 3, c), l->mbar, .dim = batched ? CPTX_DIM_4D : CPTX_DIM_3D,
	                               .dst = l->alone ? CPTX_SHARED_CTA : CPTX_SHARED_CLUSTER,
	                               .cta_group = l->pair ? CPTX_CTA_GROUP_2 : 0);
}

static cptx_val call_epilogue(cptx_kernel *k, void *user, const cptx_visit *x, cptx_val value)
{
	const cptx_gemm_opt *o = (const cptx_gemm_opt *)user;

	return o->epilogue(k, o->user, value, x->row, x->col);
}

cptx_val tma_gemm_matrix_at(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, cptx_val first)
{
	if (!t->o->batched)
		return first;
	cptx_val each = cptx_mul_wide(k, w->p.M, w->p.N), z = cptx_cvt(k, cptx_as(w->z, CPTX_U32), .dtype = CPTX_U64);

	return cptx_mad(k, cptx_mul(k, each, z, .mode = CPTX_LO), cptx_type_bits(t->o->out) / 8, first, .mode = CPTX_LO);
}

void tma_gemm_chain(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, cptx_epilogue *e)
{
	const cptx_gemm_opt *o = t->o;
	const tma_gemm_params *p = &w->p;

	cptx_epilogue_new(k, e, .rows = p->M, .cols = p->N, .vec = t->any_row_of_d ? 1 : 128 / cptx_type_bits(o->out),
	                  .transposed = o->swap, .integers = o->out == CPTX_S32);
	if (o->alpha)
		cptx_epilogue_add(k, e, CPTX_VISIT_SCALE, .value = p->alpha);
	if (o->beta) {
		cptx_val c = tma_gemm_matrix_at(k, t, w, p->C);
		cptx_epilogue_add(k, e, CPTX_VISIT_MATRIX, .value = p->beta, .address = c, .type = o->out, .pitch = p->N);
	}
	if (o->bias)
		cptx_epilogue_add(k, e, CPTX_VISIT_BIAS_COL, .address = p->bias);
	if (o->epilogue)
		cptx_epilogue_add(k, e, CPTX_VISIT_CALL, .fn = call_epilogue, .user = (void *)o);
}
