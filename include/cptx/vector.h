/* SPDX-License-Identifier: MIT */
/* Rows of global memory: vectorized accesses of any alignment. */
#ifndef CPTX_VECTOR_H
#define CPTX_VECTOR_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
