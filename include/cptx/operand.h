/* SPDX-License-Identifier: MIT */
/* Operands: tiles of a matrix in global memory that are copied to stages of shared memory. */
#ifndef CPTX_OPERAND_H
#define CPTX_OPERAND_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
