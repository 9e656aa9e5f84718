/* SPDX-License-Identifier: MIT */
/* The GEMM and the tuning database. */
#ifndef CPTX_GEMM_TUNED_H
#define CPTX_GEMM_TUNED_H

#include "kit/runner.h"

#include <cptx/gemm.h>

/* The best shape that was measured for a problem or near it, without stream_k; false: none is known that fits. */
bool gemm_tuned_choose(kit_runner *r, cptx_gemm_opt *o, const cptx_gemm_problem *p, uint32_t *ctas);
/* The version of records that count, see src/tune/README.md. */
uint32_t gemm_tuned_version(void);

#endif
