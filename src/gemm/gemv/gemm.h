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
	uint32_t turn_bytes;       /* of few bits: bytes of B that a turn of the CTA takes */
	uint32_t stages;           /* of few bits: turns that shared memory holds; 0: there is no ring */
} gemv_shape;

gemv_shape gemv_shape_of(const cptx_gemm_opt *o);
/* CTAs that a multiprocessor holds at once, by shared memory, and an estimate of the registers that sums and loads take. */
uint32_t gemv_resident(const cptx_gemm_opt *o, const gemv_shape *s);
/* Bytes of shared memory: of the sums, and of all. */
static inline uint32_t gemv_sum_bytes(const cptx_gemm_opt *o, const gemv_shape *s) { return s->along_k * o->bm * o->bn * 4; }
static inline uint32_t gemv_smem(const cptx_gemm_opt *o, const gemv_shape *s)
{
	return gemv_sum_bytes(o, s) + s->stages * s->turn_bytes;
}
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
/* The number that is taken off weights of .u4, from a zero point of the type of A, .b16; NONE: 8. */
cptx_val gemv_zero(cptx_kernel *k, const cptx_gemm_opt *o, cptx_val zero);

/* A kernel under way. */
typedef struct gemv {
	cptx_kernel *k;
	const cptx_gemm_opt *o;
	const tma_gemm *t;
	gemv_shape s;
	tma_gemm_work w;
	cptx_val tid, warp, lane, row, quad; /* row, quad: of the lane in fragments, lane / 4 and lane % 4 */
	cptx_val m0, n0;                     /* where the CTA's part of D begins */
	cptx_val b[16], a[8],
		scale[16];       /* .u64: the lane's rows of B (n_major: its chunk of two rows), of A; columns of factors */
	cptx_val first, end; /* .u32: where K begins and ends as the loop counts it; first NONE: at 0 */
	cptx_val k0;         /* where the warp's turn begins */
	cptx_val ring;       /* of few bits, .u32: the thread's part of stage 0 */
	cptx_val k_copy;     /* of few bits: where the turn begins whose copies are next */
	cptx_val to, from;   /* of few bits: offsets of the stages that are filled, and read, next */
	cptx_val acc, part;  /* sums; of a group of elements that share a factor, NONE: acc */
	cptx_val none;       /* four zeros, which the sums of a group begin with */
	cptx_val of_a, ones; /* of biased weights: the sums of A of a group, and the first operand that makes them */
	cptx_val all_rows;   /* predicate: all rows of the CTA's part of B are there */
} gemv;

/* The registers of a turn. */
typedef struct gemv_turn {
	cptx_val b[16][16][4]; /* by step, row, word; n_major: by row along K, half, word */
	/* of few bits: factors and zero points of groups and rows as they were loaded, .b16; as they are used */
	cptx_val raw_scale[16][16], raw_zero[16][16];
	cptx_val scale[16][16], zero[16][16];
} gemv_turn;

/* The first element of the lane's chunk of a step of the turn that begins at k0, as the loop counts. */
cptx_val gemv_place_in(const gemv *g, cptx_val k0, uint32_t step);
/* Whether all of n elements from `at` on are inside K. */
cptx_val gemv_is_whole(const gemv *g, cptx_val at, uint32_t n);
/* Multiplies a step of a turn, whose rows of B are in registers; inside: none of it sticks out of K. */
void gemv_multiply_rows(const gemv *g, const gemv_turn *x, uint32_t step, bool inside);
/* Goes on to the next turn: of A. */
void gemv_advance_a(const gemv *g);
/* All turns of weights of few bits; smem: .u32, where the ring of stages is. */
void gemv_take_few(gemv *g, cptx_val smem);

#endif
