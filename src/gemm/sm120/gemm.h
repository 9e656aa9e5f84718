/* SPDX-License-Identifier: MIT */
/* What the parts of the sm_120a GEMM share. */
#ifndef CPTX_GEMM_SM120_GEMM_H
#define CPTX_GEMM_SM120_GEMM_H

#include <cptx/operand.h>

#include "gemm/tma/tma.h"

enum { SM120_SPAN = 128 /* bytes along K of a stage */, SM120_WARP = 32 };

/* Numbers that follow from the options. */
typedef struct gemm120_shape {
	uint32_t bk;            /* elements along K */
	tma_gemm_scales scales; /* of a stage */
	uint32_t a_bytes, b_bytes, sf_bytes, stage;
	uint32_t wm, wn, warps, per_sm; /* warps: that compute */
} gemm120_shape;

/* A kernel under way. */
typedef struct gemm120 {
	cptx_kernel *k;
	const cptx_gemm_opt *o;
	gemm120_shape s;
	tma_gemm t;
	tma_gemm_work w;
	cptx_pipe pipe;
	cptx_timeline line;
	cptx_val ring, tid, warp, lane;
	tma_gemm_producer producer;
	cptx_tiled_mma mma;
	cptx_acc acc; /* of the warp */
} gemm120;

gemm120_shape gemm_sm120_shape(const cptx_gemm_opt *opt);
void gemm_sm120_build(cptx_kernel *k, const tma_gemm *t);
/* Two elements of 4 bits lie in a byte of shared memory: kinds mxf4 and mxf4nvf4.  Else each has a byte. */
static inline bool gemm_sm120_packed(const cptx_gemm_opt *o) { return o->a == CPTX_E2M1 && o->b == CPTX_E2M1; }
/* Bytes of the accumulators of a warp. */
static inline uint32_t gemm_sm120_sum_bytes(const gemm120_shape *s) { return s->wm * s->wn * 4; }

#endif
