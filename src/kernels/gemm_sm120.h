/* What the parts of the sm_120a GEMM share. */
#ifndef KERNELS_GEMM_SM120_H
#define KERNELS_GEMM_SM120_H

#include <cptx/gemm_sm120.h>

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

gemm120_shape gemm_sm120_shape(const cptx_gemm_sm120_opt *opt);
/* The options, and tiles as TMA sees them. */
tma_gemm gemm_sm120_common(const cptx_gemm_sm120_opt *opt);
/* Two elements of 4 bits lie in a byte of shared memory: kinds mxf4 and mxf4nvf4.  Else each has a byte. */
static inline bool gemm_sm120_packed(const cptx_gemm_sm120_opt *o) { return o->a == CPTX_E2M1 && o->b == CPTX_E2M1; }
/* Rows as TMA brings them: bytes. */
cptx_tile gemm_sm120_bytes(uint32_t rows);

#endif
