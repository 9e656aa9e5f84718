/* SPDX-License-Identifier: MIT */
/* What the parts of the sm_120a GEMM share. */
#ifndef CPTX_GEMM_SM120_GEMM_H
#define CPTX_GEMM_SM120_GEMM_H

#include "gemm/tma/tma.h"

enum {
	SM120_SPAN = 128 /* bytes along K of a stage */,
	SM120_STEP = 32 /* bytes along K of an mma.sync */,
	SM120_STEPS = SM120_SPAN / SM120_STEP,
	SM120_WARP = 32,
	SM120_MOST_16 = 8 /* times 16 rows or columns of a warp */,
	BLOCK_ROWS = 128
};

/* Numbers that follow from the options. */
typedef struct gemm120_shape {
	uint32_t bk, vec, blocks; /* elements along K; of a factor; blocks of factors along K */
	uint32_t a_bytes, b_bytes, sf_bytes, stage;
	uint32_t wm, wn, warps, per_sm; /* warps: that compute */
} gemm120_shape;

/* Where ldmatrix finds A or B. */
typedef struct sm120_operand {
	cptx_lines lines; /* where K is contiguous, with */
	cptx_lane_lines lanes;
	cptx_val at[SM120_MOST_16]; /* where M or N is: this lane's 16 bytes of each 16 rows (columns) of the warp */
} sm120_operand;

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
	cptx_val warp_m, warp_n; /* where the warp's part begins in it */
	sm120_operand a, b;
	cptx_val row_a, row_b;        /* bytes of this lane's row in a block of factors */
	cptx_val frag_a, frag_b, acc; /* fragments: of one step; of the tile */
} gemm120;

gemm120_shape gemm_sm120_shape(const cptx_gemm_opt *opt);
/* What gemm_sm120 is made of. */
tma_gemm gemm_sm120_describe(const cptx_gemm_opt *opt);
cptx_kernel *gemm_sm120_build(cptx_module *m, const cptx_gemm_opt *opt);
void gemm_sm120_simplest(cptx_gemm_opt *o);
void gemm_sm120_search(gemm_pick *x, cptx_gemm_opt o);
/* Two elements of 4 bits lie in a byte of shared memory: kinds mxf4 and mxf4nvf4.  Else each has a byte. */
static inline bool gemm_sm120_packed(const cptx_gemm_opt *o) { return o->a == CPTX_E2M1 && o->b == CPTX_E2M1; }
/* An operand as it lies in shared memory: bytes. */
cptx_tile gemm_sm120_bytes(uint32_t rows, bool mn_major);
/* Of the sums of a warp. */
static inline uint32_t gemm_sm120_sum_bytes(const gemm120_shape *s) { return s->wm * s->wn * 4; }

void gemm_sm120_begin_operand(gemm120 *g, bool of_b);
/* The same operand `by` bytes further on. */
sm120_operand gemm_sm120_operand_moved(const gemm120 *g, bool of_b, cptx_val by);
/* Fetches 16 rows of A or columns of B of a step: 4 registers. */
void gemm_sm120_load_fragment(const gemm120 *g, bool of_b, sm120_operand *from, uint32_t row, uint32_t step, cptx_val to);

#endif
