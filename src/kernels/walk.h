/* The order in which persistent CTAs walk over the tiles of a matrix. */
#ifndef KERNELS_WALK_H
#define KERNELS_WALK_H

#include <cptx/cptx.h>

/* Row and column of tile `id` of tiles_m x tiles_n: groups of `rows` rows of tiles, walked column by column, so that CTAs at
 * work share operands in L2. */
void walk_tile(cptx_kernel *k, cptx_val id, cptx_val tiles_m, cptx_val tiles_n, uint32_t rows, cptx_val *row,
               cptx_val *column);

#endif
