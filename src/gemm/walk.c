/* SPDX-License-Identifier: MIT */
#include "gemm/walk.h"

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
