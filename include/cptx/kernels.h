/*
 * Ready kernel generators, written with the public builder only.  Each checks its options first and names the rule that is
 * broken; each adds one kernel to a module.
 */
#ifndef CPTX_KERNELS_H
#define CPTX_KERNELS_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * D[M][N] = A[M][K] * B[N][K]^T, row-major, accumulated in f32: cp.async ring, ldmatrix, mma.sync (sm_80 and later).
 *
 * Kernel parameters: A, B, D (pointers; A and B aligned to 16 bytes, D to 16), M, N, K (u32).  One kernel serves every size:
 * any M and N from 1 on, K a multiple of 8.  Launch: block as in cptx_gemm_plan, grid and shared memory from there too.
 */
typedef struct cptx_gemm_opt {
	uint32_t bm, bn, bk;       /**< tile of a CTA, elements.  bk: 32, 64 or 128 */
	uint32_t warps_m, warps_n; /**< warps along M and N; each computes (bm / warps_m) x (bn / warps_n), multiples of 16 */
	uint32_t stages;           /**< tiles of A and B in shared memory, 2 to 16 */
	enum cptx_type in;         /**< CPTX_BF16 or CPTX_F16 */
	enum cptx_type out;        /**< CPTX_F32, CPTX_BF16 or CPTX_F16 */
	uint32_t group;            /**< rows of tiles that share the L2 cache; 0: 16 */
	const char *name;          /**< of the kernel; NULL: "gemm" */
} cptx_gemm_opt;

/** The tuned shape: 128 x 256 x 64, 2 x 4 warps, 4 stages, bf16 in, f32 out; shrunk where `target` has less shared memory.
 */
CPTX_API cptx_gemm_opt cptx_gemm_default(const cptx_target *target);

/** What a shape needs. */
typedef struct cptx_gemm_plan {
	uint32_t threads; /**< block.x */
	uint32_t smem;    /**< dynamic shared memory, bytes */
	uint32_t regs;    /**< estimate of registers per thread; ptxas 13.0 took up to 23 more, for sm_12x up to 66 */
} cptx_gemm_plan;

/** Checks a shape; target may be NULL (its shared memory is then not checked).  plan may be NULL. */
CPTX_API bool cptx_gemm_check(const cptx_gemm_opt *opt, const cptx_target *target, cptx_gemm_plan *plan, cptx_error *err);
/** Checks a problem: sizes from 1 on, K a multiple of 8, offsets within 32 bits where the kernel uses them. */
CPTX_API bool cptx_gemm_check_problem(const cptx_gemm_opt *opt, uint64_t m, uint64_t n, uint64_t k, cptx_error *err);
/** CTAs to launch: as many as the device holds at once (multiprocessors x occupancy), or one per tile if those are fewer. */
CPTX_API uint32_t cptx_gemm_grid(const cptx_gemm_opt *opt, uint64_t m, uint64_t n, uint32_t resident);
/** Adds the kernel.  NULL on error: err says why (and the module holds it if building failed). */
CPTX_API cptx_kernel *cptx_gemm_build(cptx_module *m, const cptx_gemm_opt *opt, cptx_error *err);

#ifdef __cplusplus
}
#endif
#endif
