/* SPDX-License-Identifier: MIT */
/* The order in which persistent CTAs walk over the tiles of a matrix, and where in memory its elements are. */
#ifndef CPTX_GEMM_WALK_H
#define CPTX_GEMM_WALK_H

#include <cptx/cptx.h>

/* Row and column of tile `id` of tiles_m x tiles_n, fewer than 2^32: groups of `rows` rows of tiles, walked column by
 * column, so that CTAs at work share operands in L2. */
void walk_tile(cptx_kernel *k, cptx_val id, cptx_val tiles_m, cptx_val tiles_n, cptx_val rows, cptx_val *row,
               cptx_val *column);

/* Matrices of M rows of N elements behind one another, from an address on; elements of so many bytes.  .u32 but `at`. */
typedef struct walk_matrices {
	cptx_val at, M, N;
	uint32_t bytes;
} walk_matrices;
/* The address of an element of matrix z; NONE: there is one.  All rows of them may be more than 32 bits count. */
cptx_val walk_element(cptx_kernel *k, const walk_matrices *of, cptx_val z, cptx_val row, cptx_val column);

#endif
