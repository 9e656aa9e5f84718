/* SPDX-License-Identifier: MIT */
#include "gemm/walk.h"

void walk_tile(cptx_kernel *k, cptx_val id, cptx_val tiles_m, cptx_val tiles_n, cptx_val rows, cptx_val *row,
               cptx_val *column)
{
	cptx_val most = cptx_min(k, tiles_m, rows); /* a group has no more tiles than the matrix, so 32 bits hold them */
	cptx_val per_group = cptx_mul(k, tiles_n, most, .mode = CPTX_LO);
	cptx_val group = cptx_div(k, id, per_group), first = cptx_mul(k, group, most, .mode = CPTX_LO);
	cptx_val height = cptx_min(k, cptx_sub(k, tiles_m, first), most);
	cptx_val within = cptx_sub(k, id, cptx_mul(k, group, per_group, .mode = CPTX_LO));

	*column = cptx_div(k, within, height);
	*row = cptx_add(k, first, cptx_sub(k, within, cptx_mul(k, *column, height, .mode = CPTX_LO)));
}

cptx_val walk_element(cptx_kernel *k, const walk_matrices *of, cptx_val z, cptx_val row, cptx_val column)
{
	cptx_val wide = cptx_cvt(k, column, .dtype = CPTX_U64), element;

	if (z.kind == CPTX_VAL_NONE) {
		element = cptx_mad_wide(k, row, of->N, wide);
	} else {
		cptx_val line = cptx_mad_wide(k, z, of->M, cptx_cvt(k, row, .dtype = CPTX_U64));
		element = cptx_mad(k, line, cptx_cvt(k, of->N, .dtype = CPTX_U64), wide, .mode = CPTX_LO);
	}
	return cptx_mad(k, element, of->bytes, of->at, .mode = CPTX_LO);
}
