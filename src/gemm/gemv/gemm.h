/* SPDX-License-Identifier: MIT */
/* What the parts of the GEMM for few rows share. */
#ifndef CPTX_GEMM_GEMV_GEMM_H
#define CPTX_GEMM_GEMV_GEMM_H

#include "gemm/tma/tma.h"

enum {
	GEMV_ROWS = 16,  /* of B, of one mma.sync: its first operand */
	GEMV_COLS = 8,   /* rows of A, of one mma.sync */
	GEMV_LANES = 4,  /* that share a row of B */
	GEMV_CHUNK = 16, /* bytes that a lane loads at once */
	GEMV_SIDE = 32   /* elements along K of 16 bits that the lanes of a row load at once */
};

/* Numbers that follow from the options. */
typedef struct gemv_shape {
	uint32_t atoms_n, atoms_m; /* mma.sync of a warp across rows of B, and of A */
	uint32_t warps, along_k;   /* of the CTA; that share rows of B */
	uint32_t bits, each;       /* of an element of B; elements of a lane's chunk along K (n_major: rows of K) */
	uint32_t depth, steps;     /* elements along K of a step of a warp; steps of a turn, whose loads are under way at once */
	uint32_t vec;              /* n_major: neighbours of a row of B that a lane loads at once */
	uint32_t group, groups;    /* elements along K that share a scale factor, 0: all; groups in a turn */
	uint32_t apart;            /* rows of B from one of a warp to the next */
} gemv_shape;

gemv_shape gemv_shape_of(const cptx_gemm_opt *o);
/* CTAs that a multiprocessor holds at once, by an estimate of the registers that sums and loads take. */
uint32_t gemv_resident(const gemv_shape *s);
void gemv_build(cptx_kernel *k, const tma_gemm *t);
/* B is of fewer bits than A. */
static inline bool gemv_is_quantized(const cptx_gemm_opt *o) { return o->a != o->b; }

/* u4 with scale factors for groups, in bf16: pairs are 128 + u4, as the sums of a group are corrected by those of A.  Of
 * more than 16 rows of A these take longer to make than the subtractions that they spare. */
static inline bool gemv_is_biased(const cptx_gemm_opt *o)
{
	return o->a == CPTX_BF16 && o->b == CPTX_U4 && o->scale_k && o->bm <= 16;
}
enum { GEMV_BIAS = 128 };

/* What a weight of few bits is multiplied by at the end, beside its scale factor. */
float gemv_weight_factor(const cptx_gemm_opt *o);
/* From words with 8 weights, one of 4 bits or two of 8, pairs of neighbours of the type of A; zero: a register with the
 * number to be taken off, as gemv_zero makes it; not read where they are biased. */
void gemv_unpack(cptx_kernel *k, const cptx_gemm_opt *o, const cptx_val *word, cptx_val zero, cptx_val pair[4]);
/* One of the four pairs of 8 weights, a word of 4 bits each or two of 8, by the place that pair number i (a register) has.
 */
cptx_val gemv_pair_place(cptx_kernel *k, const cptx_gemm_opt *o, cptx_val i);
cptx_val gemv_unpack_pair(cptx_kernel *k, const cptx_gemm_opt *o, const cptx_val *word, cptx_val place, cptx_val zero);
/* The number that is taken off weights of .u4, from a zero point of the type of A, .b16; NONE: 8. */
cptx_val gemv_zero(cptx_kernel *k, const cptx_gemm_opt *o, cptx_val zero);

#endif
