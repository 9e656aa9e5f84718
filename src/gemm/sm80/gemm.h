/* SPDX-License-Identifier: MIT */
/* What the parts of the GEMM by mma.sync share. */
#ifndef CPTX_GEMM_SM80_GEMM_H
#define CPTX_GEMM_SM80_GEMM_H

#include "gemm/tma/tma.h"

#include <cptx/mma.h>
#include <cptx/operand.h>
#include <cptx/roles.h>

enum { SM80_PRODUCER_REGS = 40, SM80_MMA = 16 /* rows and depth of an mma.sync */ };

/* Numbers that follow from the options. */
typedef struct gemm80_shape {
	uint32_t wm, wn, warps, threads;   /* of a warp; warps that compute; threads of the CTA */
	uint32_t producers, regs;          /* warps beside them; registers of a consumer by setmaxnreg, 0: none */
	uint32_t estimate;                 /* of registers */
	uint32_t in_bytes, a_bytes, stage; /* of an element of A and B; of A and of all in a stage */
	uint32_t out_bytes, slab_bytes;    /* of an element of D; of a slab of D in shared memory, a warp's; 0: there is none */
} gemm80_shape;

/* A kernel under way. */
typedef struct gemm80 {
	cptx_kernel *k;
	const cptx_gemm_opt *o;
	gemm80_shape s;
	tma_gemm t;
	tma_gemm_work w, ahead; /* what is computed; cp.async: what is copied */
	cptx_pipe pipe;
	cptx_timeline line;
	tma_gemm_producer producer;
	cptx_tiled_mma mma;
	cptx_acc acc;
	cptx_mma_frags frags;
	tma_gemm_sparse sparse; /* metadata of a sparse A; .meta: of the K tile at hand */
	cptx_val meta;
	cptx_roles roles;
	cptx_val ring, slabs; /* .u32 shared addresses: of the stages; of D */
	cptx_val offset;      /* from stage 0 to the one that is multiplied */
	cptx_val first_lane;
	cptx_pipe_left left; /* with TMA: the stage of the K tile before */
} gemm80;

gemm80_shape gemm_sm80_shape(const cptx_gemm_opt *o);
void gemm_sm80_build(cptx_kernel *k, const tma_gemm *t);

#endif
