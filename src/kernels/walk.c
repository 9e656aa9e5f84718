#include "kernels/walk.h"

void walk_tile(cptx_kernel *k, cptx_val id, cptx_val tiles_m, cptx_val tiles_n, uint32_t rows, cptx_val *row,
               cptx_val *column)
{
	cptx_val per_group = cptx_mul(k, tiles_n, rows, .mode = CPTX_LO);
	cptx_val group = cptx_div(k, id, per_group), first = cptx_mul(k, group, rows, .mode = CPTX_LO);
	cptx_val height = cptx_min(k, cptx_sub(k, tiles_m, first), rows);
	cptx_val within = cptx_sub(k, id, cptx_mul(k, group, per_group, .mode = CPTX_LO));

	*column = cptx_div(k, within, height);
	*row = cptx_add(k, first, cptx_sub(k, within, cptx_mul(k, *column, height, .mode = CPTX_LO)));
}
