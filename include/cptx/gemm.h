/*
 * What the GEMM generators that are fed by TMA have in common: <cptx/gemm_sm90.h>, <cptx/gemm_sm100.h>.
 */
#ifndef CPTX_GEMM_H
#define CPTX_GEMM_H

#include <cptx/cptx.h>
#include <cptx/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * An epilogue: builds code that computes an element of D from the accumulator, after alpha, beta and bias, before it is
 * rounded to the type of D.  value: .f32; row, col: .u32, may lie outside of D (then the result is dropped, so guard loads).
 * Gives an .f32.
 */
typedef cptx_val (*cptx_gemm_epilogue_fn)(cptx_kernel *k, void *user, cptx_val value, cptx_val row, cptx_val col);

/** Sizes, and what the operands are. */
typedef struct cptx_gemm_problem {
	uint64_t m, n, k;          /**< rows of A and D, columns of B and D, columns of A */
	uint32_t batch;            /**< matrices behind one another; 0: 1 */
	uint64_t a, b, d;          /**< device addresses, aligned to 16 (4 and 6 bits in kinds that pad them: 32); dense rows */
	uint64_t c;                /**< with beta; aligned to 16; may be d */
	uint64_t bias;             /**< with bias; aligned to 16 */
	uint64_t workspace;        /**< with stream_k: bytes as the plan (.workspace) says, aligned to 16, zero before the
	                              first launch; each launch leaves its counters so.  Launches at the same time need their own */
	uint64_t scale_a, scale_b; /**< of block-scaled kinds: cptx_gemm_scales_bytes each (times batch), aligned to 16 */
	uint64_t timeline; /**< with timeline: cptx_timeline_bytes(cptx_gemm_timeline()), aligned to 16, zeros at first */
	uint32_t ctas;     /**< most CTAs to launch; 0: per_sm for each multiprocessor.  With stream_k more than there are
	                        tiles cut these along K */
	float alpha, beta; /**< with alpha, with beta */
} cptx_gemm_problem;

/**
 * Scale factors of an operand with `rows` rows (of A, or columns of the product) and k elements in each, one factor, a byte,
 * for `vec` elements.  In global memory they lie as tensor cores take them: blocks of 128 rows by 4 factors, 512 bytes each,
 * all blocks of 128 rows behind one another, then those of the next 128.  In a block, factor f of row r is byte
 * r % 32 * 16 + r / 32 * 4 + f.  What fills up the last blocks may be anything but NaN: it scales zeros.
 * UINT64_MAX: the bytes are more than 64 bits count.
 */
CPTX_API uint64_t cptx_gemm_scales_bytes(uint64_t rows, uint64_t k, uint32_t vec);
/** Packs plain factors, rows x ceil(k / vec), row-major; fills up with zeros.  Does nothing where cptx_gemm_scales_bytes
 * gives UINT64_MAX. */
CPTX_API void cptx_gemm_scales_pack(uint8_t *to, const uint8_t *from, uint64_t rows, uint64_t k, uint32_t vec);

/** Phases of a GEMM's timeline. */
enum cptx_gemm_phase {
	CPTX_GEMM_WAIT_ROOM, /**< for a stage, or an accumulator, to be free */
	CPTX_GEMM_LOAD,      /**< copies are started */
	CPTX_GEMM_WAIT_DATA, /**< for a stage to be full */
	CPTX_GEMM_MULTIPLY,  /**< matrix instructions */
	CPTX_GEMM_WAIT_SUMS, /**< for an accumulator to be complete */
	CPTX_GEMM_BRING_OUT  /**< the epilogue */
};
/** Of a kernel with that many stamps for a warp, and the grid and threads of its plan: how the timeline lies in memory. */
CPTX_API cptx_timeline_layout cptx_gemm_timeline(uint32_t grid, uint32_t threads, uint32_t stamps);

#ifdef __cplusplus
}
#endif
#endif
