/* SPDX-License-Identifier: MIT */
/* Where in memory the elements of matrices are. */
#ifndef CPTX_GEMM_WALK_H
#define CPTX_GEMM_WALK_H

#include <cptx/cptx.h>

/* Matrices of M rows of N elements behind one another, from an address on; elements of so many bytes.  .u32 but `at`. */
typedef struct walk_matrices {
	cptx_val at, M, N;
	uint32_t bytes;
} walk_matrices;
/* The address of an element of matrix z; NONE: there is one.  All rows of them may be more than 32 bits count. */
cptx_val walk_element(cptx_kernel *k, const walk_matrices *of, cptx_val z, cptx_val row, cptx_val column);

#endif
