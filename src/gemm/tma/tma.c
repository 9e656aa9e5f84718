/* SPDX-License-Identifier: MIT */
/* What the kernels of the GEMMs that are fed by TMA have in common: loads, and what comes behind the sums. */
#include "gemm/tma/tma.h"
#include "gemm/walk.h"

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
	cptx_tile_boxes boxes = { 0 };
	cptx_error err;
	uint16_t dst = l->alone ? CPTX_SHARED_CTA : CPTX_SHARED_CLUSTER;
	uint16_t dim = l->t->o->batched ? CPTX_DIM_3D : CPTX_DIM_2D, group = l->pair ? CPTX_CTA_GROUP_2 : 0;
	bool mn_major = l->tile->elem.mn_major;

	if (!cptx_tile_get_boxes(l->tile, &boxes, &err)) {
		cptx_fail(k, "%s", err.text);
		return;
	}
	for (uint32_t i = 0; i < boxes.count[0]; i++) {
		cptx_val along = mn_major ? l->row : l->k0, c[3] = { { 0 }, mn_major ? l->k0 : l->row, l->z };
		c[0] = i ? cptx_add(k, along, i * boxes.box[0]) : along;
		cptx_val coord = cptx_pack(k, l->t->o->batched ? 3 : 2, c), there = cptx_offset(l->to, i * boxes.bytes);
		if (l->mask.kind != CPTX_VAL_NONE)
			cptx_cp_async_bulk_tensor_load(k, there, l->map, coord, l->mbar, .dim = dim, .dst = CPTX_SHARED_CLUSTER,
			                               .multicast = CPTX_MULTICAST_CLUSTER, .mask = l->mask, .cta_group = group,
			                               .when = l->when);
		else
			cptx_cp_async_bulk_tensor_load(k, there, l->map, coord, l->mbar, .dim = dim, .dst = dst, .cta_group = group,
			                               .when = l->when);
	}
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
	static const uint16_t vec[] = { 0, 0, CPTX_V2, 0, CPTX_V4 };
	uint32_t words = n * cptx_type_bits(type) / 32, each = words < 4 ? words : 4;

	for (uint32_t w = 0; w < words; w += each) {
		cptx_val v = cptx_regs(k, CPTX_B32, each);
		for (uint32_t i = 0; i < each; i++)
			cptx_mov(k, 0, .into = cptx_elem(v, i));
		cptx_ld(k, cptx_offset(at, 4 * (int64_t)w), .space = CPTX_GLOBAL, .vec = vec[each], .type = CPTX_B32,
		        .into = each == 1 ? cptx_elem(v, 0) : v, .when = inside);
		for (uint32_t i = 0; i < each; i++) {
			if (type == CPTX_F32) {
				*to++ = cptx_as(cptx_elem(v, i), CPTX_F32);
				continue;
			}
			cptx_val halves = cptx_regs(k, CPTX_B16, 2);
			cptx_mov(k, cptx_elem(v, i), .into = halves);
			for (uint32_t h = 0; h < 2; h++)
				*to++ = cptx_cvt(k, cptx_as(cptx_elem(halves, h), type), .dtype = CPTX_F32);
		}
	}
}

cptx_val tma_gemm_load_one(cptx_kernel *k, cptx_val at, enum cptx_type type, cptx_val inside)
{
	cptx_val v = type == CPTX_F32 ? cptx_var(k, CPTX_F32, 0.0f) : cptx_var(k, CPTX_B16, 0);

	cptx_ld(k, at, .space = CPTX_GLOBAL, .type = type == CPTX_F32 ? CPTX_F32 : CPTX_B16, .into = v, .when = inside);
	return type == CPTX_F32 ? v : cptx_cvt(k, cptx_as(v, type), .dtype = CPTX_F32);
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
	enum cptx_type pair = out == CPTX_BF16 ? CPTX_BF16X2 : CPTX_F16X2;
	cptx_val to = into.kind == CPTX_VAL_NONE ? cptx_reg(k, CPTX_B32) : into;

	cptx_cvt(k, high, .rnd = CPTX_RN, .dtype = pair, .b = low, .into = cptx_as(to, pair));
	return to;
}
