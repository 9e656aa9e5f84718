/* SPDX-License-Identifier: MIT */
/* What the kernels of the GEMMs that are fed by TMA have in common: prefetches of tensor maps, loads of scale factors. */
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
