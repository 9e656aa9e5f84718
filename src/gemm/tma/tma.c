/* SPDX-License-Identifier: MIT */
/* What the kernels of the GEMMs that are fed by TMA have in common: loads, and what comes behind the sums. */
#include "gemm/tma/tma.h"
#include "gemm/walk.h"
#include "kit/epilogue.h"

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

void tma_gemm_load_tile(cptx_kernel *k, const tma_gemm_load *l)
{
	cptx_operand op;
	cptx_val start = l->to;

	start.offset = 0;
	cptx_operand_new(k, &op, .type = l->type, .tile = *l->tile, .smem = start, .map = l->map, .batched = l->t->o->batched,
	                 .alone = l->alone);
	op.smem = l->to;
	cptx_operand_load(k, &op, 0, l->row, l->k0, .barrier = l->mbar, .z = l->z, .mask = l->mask, .ctas = l->pair ? 2 : 0);
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

void tma_gemm_load_row(cptx_kernel *k, cptx_val at, enum cptx_type type, uint32_t n, cptx_val inside, cptx_val *to)
{
	const cptx_val v = epi_load(k, CPTX_HERE, at, type, n, inside);

	for (uint32_t i = 0; i < n; i++)
		to[i] = cptx_elem(v, i);
}

cptx_val tma_gemm_load_one(cptx_kernel *k, cptx_val at, enum cptx_type type, cptx_val inside)
{
	return cptx_elem(epi_load(k, CPTX_HERE, at, type, 1, inside), 0);
}

cptx_val tma_gemm_value(cptx_kernel *k, const tma_gemm *t, const tma_gemm_params *p, cptx_val sum, cptx_val c, cptx_val bias,
                        cptx_val row, cptx_val col)
{
	cptx_val v = t->o->alpha ? cptx_mul(k, sum, p->alpha) : sum;

	if (t->o->beta)
		v = cptx_fma(k, p->beta, c, v, .rnd = CPTX_RN);
	if (t->o->bias)
		v = cptx_add(k, v, bias);
	return t->o->epilogue ? t->o->epilogue(k, t->o->user, v, row, col) : v;
}

cptx_val tma_gemm_c_at(cptx_kernel *k, const tma_gemm *t, const tma_gemm_params *p, cptx_val row, cptx_val col, cptx_val z)
{
	walk_matrices of = { .at = p->C, .M = p->M, .N = p->N, .bytes = cptx_type_bits(t->o->out) / 8 };

	return walk_element(k, &of, t->o->batched ? cptx_as(z, CPTX_U32) : (cptx_val){ 0 }, row, col);
}

cptx_val tma_gemm_narrow(cptx_kernel *k, enum cptx_type out, cptx_val low, cptx_val high, cptx_val into)
{
	return epi_round_pair(k, CPTX_HERE, out, low, high, into);
}
