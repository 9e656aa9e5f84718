/* SPDX-License-Identifier: MIT */
/* The kernels of the examples, so that tests and benchmarks can use them.  These compile the examples with
 * -DEXAMPLES_NO_MAIN. */
#ifndef EXAMPLES_H
#define EXAMPLES_H

#include <cptx/cptx.h>

/*
 * Row kernels: grid { rows }, block { threads }; n floats in a row, a multiple of 4; threads a multiple of 32 up to 1024.
 * Buffers are aligned to 16 bytes.
 */
cptx_kernel *rms_norm(cptx_module *m, uint32_t n, uint32_t threads); /* parameters (x, w, y, float eps) */
cptx_kernel *softmax(cptx_module *m, uint32_t n, uint32_t threads);  /* parameters (x, y) */
/* Layer norm's rows are bf16, n is a multiple of 8; parameters (x, w, b, y, float eps). */
cptx_kernel *layer_norm(cptx_module *m, uint32_t n, uint32_t threads);
/* Element-wise: grid { ceil(n / (4 * threads * unroll)) }; parameters (a, b, y, u32 n / 4). */
cptx_kernel *swiglu(cptx_module *m, uint32_t threads, uint32_t unroll);

cptx_kernel *saxpy(cptx_module *m); /* y = a * x + y: parameters (x, y, float a, u32 n); block 256 */

/* Puts a time stamp on both sides of every wait of a kernel, see stamp.c.  Returns how many waits it has. */
size_t stamp_waits(cptx_kernel *k);

#endif
