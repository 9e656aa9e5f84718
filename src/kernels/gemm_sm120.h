/* What the parts of the sm_120a GEMM share. */
#ifndef KERNELS_GEMM_SM120_H
#define KERNELS_GEMM_SM120_H

#include "kernels/gemm_tma.h"

enum {
	SM120_SPAN = 128 /* bytes along K of a stage */,
	SM120_STEPS = 4 /* mma.sync along K in it */,
	SM120_WARP = 32,
	BLOCK_ROWS = 128
};

/* Numbers that follow from the options. */
typedef struct gemm120_shape {
	uint32_t bk, vec, blocks; /* elements along K; of a factor; blocks of factors along K */
	uint32_t a_bytes, b_bytes, sf_bytes, stage;
	uint32_t wm, wn, warps;
} gemm120_shape;

gemm120_shape gemm_sm120_shape(const cptx_gemm_opt *opt);
/* What gemm_sm120 is made of. */
tma_gemm gemm_sm120_describe(const cptx_gemm_opt *opt);
cptx_kernel *gemm_sm120_build(cptx_module *m, const cptx_gemm_opt *opt);
void gemm_sm120_simplest(cptx_gemm_opt *o);
void gemm_sm120_search(gemm_pick *x, cptx_gemm_opt o);
/* Two elements of 4 bits lie in a byte of shared memory: kinds mxf4 and mxf4nvf4.  Else each has a byte. */
static inline bool gemm_sm120_packed(const cptx_gemm_opt *o) { return o->a == CPTX_E2M1 && o->b == CPTX_E2M1; }
/* Rows as TMA brings them: bytes. */
cptx_tile gemm_sm120_bytes(uint32_t rows);

#endif
