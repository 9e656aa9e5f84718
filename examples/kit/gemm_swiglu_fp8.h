/* SPDX-License-Identifier: MIT */
#ifndef GEMM_SWIGLU_FP8_H
#define GEMM_SWIGLU_FP8_H

#include <cptx/device.h>

/* The kernel, with parameters (A, Wg, Wu, out: tensor maps; scale, amax: f32 *; M, N, K: u32). */
cptx_kernel *gemm_swiglu_fp8(cptx_module *m);
/* Runs it on random numbers and compares every element; -1 and an error, or how many are wrong, a wrong amax being one. */
int64_t gemm_swiglu_fp8_run(cptx_device *dev, uint32_t m, uint32_t n, uint32_t k, cptx_error *err);

#endif
