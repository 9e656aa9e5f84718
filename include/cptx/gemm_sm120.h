/*
 * Block-scaled GEMM for sm_120 and sm_121: D = alpha * A * B + beta * C + bias, by TMA and mma.sync with scale factors.
 *
 * The sibling of <cptx/gemm_sm100.h> for GPUs without tensor memory: accumulators are in registers.  A is M rows of K, B is
 * N rows of K; scale factors lie as <cptx/gemm.h> says, so that both take the same operands.
 *
 *   A and B, each                  scale factors                   kind of mma.sync   along K in a stage
 *   e4m3 e5m2 e2m3 e3m2, or
 *   one of both e2m1               ue8m0 for 32 elements           mxf8f6f4           128
 *   both e2m1                      ue8m0 for 32                    mxf4               256
 *   both e2m1                      ue4m3 for 16                    mxf4nvf4           256
 *
 * Elements of 4 and 6 bits lie packed in global memory, the first in the lowest bits.  Of mxf8f6f4 they are padded to bytes
 * in shared memory, which tensor maps do for rows of whole 128 elements.
 *
 * No GPU has run these kernels yet.
 */
#ifndef CPTX_GEMM_SM120_H
#define CPTX_GEMM_SM120_H

#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/gemm.h>
#include <cptx/tensor_map.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a kernel is made for, and its shape. */
typedef struct cptx_gemm_sm120_opt {
	uint32_t bm, bn;                /**< tile of a CTA: 64 or 128 each */
	uint32_t warps_m, warps_n;      /**< warps along M and N; each computes bm / warps_m x bn / warps_n, multiples of 32:
	                                     at most 64x64, 128x32 and, of packed e2m1, 32x128 */
	uint32_t stages;                /**< tiles of A and B in shared memory, 2 to 16; a tile is 128 bytes along K */
	uint32_t group;                 /**< rows of tiles that are walked together, for the L2 cache; 0: 16 */
	enum cptx_type a, b;            /**< see above */
	enum cptx_type scale;           /**< CPTX_UE8M0 or CPTX_UE4M3 */
	enum cptx_type out;             /**< of C and D: CPTX_F32, CPTX_BF16 or CPTX_F16 */
	bool batched;                   /**< the kernel takes a number of matrices */
	bool alpha;                     /**< the kernel takes alpha, f32 */
	bool beta;                      /**< the kernel takes beta, f32, and C */
	bool bias;                      /**< the kernel takes a vector of N f32, added to each row */
	cptx_gemm_epilogue_fn epilogue; /**< NULL: none */
	void *user;                     /**< for it */
	const char *name;               /**< of the kernel; NULL: "gemm" */
	char z_;
} cptx_gemm_sm120_opt;

/** What a kernel needs. */
typedef struct cptx_gemm_sm120_plan {
	uint32_t threads; /**< block.x */
	uint32_t smem;    /**< dynamic shared memory, bytes */
	uint32_t bk;      /**< elements along K of a stage */
	uint32_t vec;     /**< elements that share a scale factor */
	uint32_t grid;    /**< CTAs; needs a problem */
} cptx_gemm_sm120_plan;

/** Checks options; false: the rule that is broken and what would be right.  target, plan: may be NULL. */
CPTX_API bool cptx_gemm_sm120_check(const cptx_gemm_sm120_opt *opt, const cptx_target *target, cptx_gemm_sm120_plan *plan,
                                    cptx_error *err);
/** Checks the sizes of a problem too; sms: multiprocessors of the device, for the grid. */
CPTX_API bool cptx_gemm_sm120_check_problem(const cptx_gemm_sm120_opt *opt, const cptx_gemm_problem *problem, uint32_t sms,
                                            cptx_gemm_sm120_plan *plan, cptx_error *err);
/** A shape and what a model of the GeForce RTX 5090 says of it; it is made of public figures, and none has been measured. */
typedef struct cptx_gemm_sm120_choice {
	cptx_gemm_sm120_opt opt;           /**< the shape, and what was asked for */
	double us;                         /**< predicted time */
	double mma_us, load_us, memory_us; /**< of the tensor cores, of filling shared memory, of global memory */
	double tail;                       /**< share of the multiprocessors' time that the last wave leaves idle */
} cptx_gemm_sm120_choice;
/**
 * Picks bm, bn, warps, stages and, where it is 0, group for a problem; types and epilogue are those of `opt`.  Writes the
 * best `room` choices, best first, and gives their number; 0: no kernel can do the problem, and err says why.
 */
CPTX_API size_t cptx_gemm_sm120_auto(const cptx_gemm_sm120_opt *opt, const cptx_gemm_problem *problem, uint32_t sms,
                                     cptx_gemm_sm120_choice *choices, size_t room, cptx_error *err);
/** Adds the kernel to a module.  NULL on error: err says why. */
CPTX_API cptx_kernel *cptx_gemm_sm120_build(cptx_module *m, const cptx_gemm_sm120_opt *opt, cptx_error *err);
/**
 * Prepares a launch of the kernel of `program` (named as opt says).  Parameters of the kernel, in order: tensor maps of A
 * and B (of packed e2m1 as rows of bytes), D (pointer), tensor maps of the factors of A and B, M, N, K (u32), and where the
 * options say so batch (u32), alpha, beta (f32), C and bias (pointers).
 */
CPTX_API cptx_launch *cptx_gemm_sm120_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm120_opt *opt,
                                             const cptx_gemm_problem *problem, cptx_error *err);

#ifdef __cplusplus
}
#endif
#endif
