/* SPDX-License-Identifier: MIT */
/* Kernels that do more than one thing with tcgen05. */
#ifndef CPTX_TEST_TCGEN05_GEMM_H
#define CPTX_TEST_TCGEN05_GEMM_H

#include "matrix_forms.h"
#include "trial.h"

void tcgen05_gemm(uint64_t seed);
void tcgen05_copies(void);
void tcgen05_shift(void);
void tcgen05_reductions(void);

#endif
