/*
 * GEMM for sm_100a and sm_103a: D = alpha * A * B + beta * C + bias, by TMA, tcgen05.mma and tensor memory.
 *
 * A kernel is made for a kind of tcgen05.mma, types, layouts and a tile shape; it serves every M, N and K whose rows are
 * aligned to 16 bytes.  cptx_gemm_sm100_build makes it, cptx_gemm_sm100_launch prepares a launch on a device or the
 * emulator; cptx_gemm_sm100_auto picks a shape.  No GPU has run these kernels yet.
 *
 *   kind        A and B, each                            along K in a stage   accumulators
 *   F16         both f16, or both bf16                    64                  f32
 *   TF32        f32, of which tensor cores take the
 *               upper 19 bits (TMA rounds)                32                  f32
 *   F8F6F4      e4m3 e5m2 e2m3 e3m2 e2m1                 128                  f32
 *   I8          s8 u8; sm_100a only                      128                  s32
 *   MXF8F6F4    as F8F6F4; a ue8m0 for 32 elements       128                  f32
 *   MXF4        e2m1; a ue8m0 for 32 elements            256                  f32
 *   MXF4NVF4    e2m1; a ue4m3 for 16 elements, or
 *               a ue8m0 for 32                           256                  f32
 *
 * Elements of 4 and 6 bits lie packed in global memory, the first in the lowest bits.  In shared memory F8F6F4 and MXF8F6F4
 * have them padded to bytes, which tensor maps do for rows of whole 128 elements.  Scale factors: <cptx/gemm.h>.
 */
#ifndef CPTX_GEMM_SM100_H
#define CPTX_GEMM_SM100_H

#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/gemm.h>
#include <cptx/layout.h>
#include <cptx/tensor_map.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a kernel is made for, and its shape. */
typedef struct cptx_gemm_sm100_opt {
	enum cptx_tcgen05_kind kind; /**< of tcgen05.mma */
	uint32_t bm;                 /**< rows of a tile: 128, made by one CTA, or 256, made by a pair (cta_group::2) */
	uint32_t bn;                 /**< columns: 16 to 256, a multiple of 16, of a pair 32; block-scaled: of 64 */
	uint32_t stages;             /**< tiles of A and B in shared memory, 2 to 16; a tile is 128 bytes along K */
	uint32_t cluster_m;          /**< tiles of a cluster along M: they share B by multicast.  1, 2, 4 or, of one
	                                  CTA each, 8; 0: 1 */
	uint32_t cluster_n;          /**< the same along N, sharing A; one of both must be 1 */
	uint32_t group;              /**< rows of cluster tiles that are walked together, for the L2 cache; 0: 16 */
	enum cptx_type a, b;         /**< see above; tf32: CPTX_TF32 */
	enum cptx_type scale;        /**< of block-scaled kinds: CPTX_UE8M0 or CPTX_UE4M3; else CPTX_TYPE_NONE */
	enum cptx_type out; /**< of C and D: CPTX_F32, CPTX_BF16 or CPTX_F16; kind I8 without anything behind the sums: or
	                         CPTX_S32 */
	bool a_m_major;     /**< A is stored as K rows of M elements; not of 4 and 6 bits */
	bool b_n_major;     /**< B is stored as K rows of N elements; not of 4 and 6 bits */
	bool a_tmem;        /**< tcgen05.mma takes A from tensor memory, where tcgen05.cp brings it; not with a_m_major */
	bool stream_k;      /**< CTAs share tiles along K, so that all have the same work; needs a workspace */
	bool batched;       /**< the kernel takes a number of matrices */
	bool grouped;       /**< the kernel takes a list of problems; not with stream_k and batched */
	bool alpha;         /**< the kernel takes alpha, f32 */
	bool beta;          /**< the kernel takes beta, f32, and C */
	bool bias;          /**< the kernel takes a vector of N f32, added to each row */
	uint32_t timeline;  /**< the kernel takes a timeline with that many stamps for a warp; 0: none, at no cost */
	cptx_gemm_epilogue_fn epilogue; /**< NULL: none */
	void *user;                     /**< for it */
	const char *name;               /**< of the kernel; NULL: "gemm" */
	char z_;
} cptx_gemm_sm100_opt;

/** What a kernel needs. */
typedef struct cptx_gemm_sm100_plan {
	uint32_t threads;      /**< block.x */
	uint32_t smem;         /**< dynamic shared memory, bytes */
	uint32_t bk;           /**< elements along K of a stage */
	uint32_t vec;          /**< elements that share a scale factor; 0: none */
	uint32_t accumulators; /**< in tensor memory: 2, or 1 where there is no room; then nothing overlaps the epilogue */
	uint32_t columns;      /**< of tensor memory */
	uint32_t grid;         /**< CTAs; needs a problem */
	uint64_t workspace;    /**< bytes; needs a problem */
} cptx_gemm_sm100_plan;

/** Checks options; false: the rule that is broken and what would be right.  target, plan: may be NULL. */
CPTX_API bool cptx_gemm_sm100_check(const cptx_gemm_sm100_opt *opt, const cptx_target *target, cptx_gemm_sm100_plan *plan,
                                    cptx_error *err);
/** Checks the sizes of a problem too; sms: multiprocessors of the device, for the grid.  Addresses are not looked at. */
CPTX_API bool cptx_gemm_sm100_check_problem(const cptx_gemm_sm100_opt *opt, const cptx_gemm_problem *problem, uint32_t sms,
                                            cptx_gemm_sm100_plan *plan, cptx_error *err);

/** A shape and what a model of the B200 says of it; it is made of public figures, and no B200 has been measured. */
typedef struct cptx_gemm_sm100_choice {
	cptx_gemm_sm100_opt opt;           /**< the shape, and what was asked for */
	uint32_t ctas;                     /**< for cptx_gemm_problem */
	double us;                         /**< predicted time */
	double mma_us, load_us, memory_us; /**< of the tensor cores, of filling shared memory, of global memory */
	double measured_us;                /**< by cptx_gemm_sm100_tune, else 0 */
	double tail;                       /**< share of the multiprocessors' time that the last wave leaves idle */
} cptx_gemm_sm100_choice;
/**
 * Picks bm, bn, stages, cluster, stream_k and, where it is 0, group for a problem, and CTAs to launch; kind, types, layouts
 * and epilogue are those of `opt`.  Writes the best `room` choices, best first, and gives their number; 0: no kernel can do
 * the problem, and err says why.
 */
CPTX_API size_t cptx_gemm_sm100_auto(const cptx_gemm_sm100_opt *opt, const cptx_gemm_problem *problem, uint32_t sms,
                                     cptx_gemm_sm100_choice *choices, size_t room, cptx_error *err);

/**
 * Times choices on a device, and sorts them by that, as cptx_gemm_sm90_tune does.  problem: with addresses; D is written,
 * the workspace is tune's own.  False: one could not be run; the order is as it was.
 */
CPTX_API bool cptx_gemm_sm100_tune(cptx_device *dev, const cptx_gemm_problem *problem, cptx_gemm_sm100_choice *choices,
                                   size_t n, cptx_error *err);

/** Adds the kernel to a module.  NULL on error: err says why. */
CPTX_API cptx_kernel *cptx_gemm_sm100_build(cptx_module *m, const cptx_gemm_sm100_opt *opt, cptx_error *err);

/**
 * The descriptions of the tensor maps that the kernel takes: of A, B, D, and block-scaled of the factors of A and B.
 * Parameters of the kernel, in order: these 3 or 5 maps (128 bytes each), M, N, K (u32), and where the options say so batch
 * (u32), alpha (f32), beta (f32), C, bias, the timeline and the workspace (pointers).
 */
CPTX_API bool cptx_gemm_sm100_maps(const cptx_gemm_sm100_opt *opt, const cptx_gemm_problem *problem,
                                   cptx_tensor_map_opt map[5], cptx_error *err);
/** Prepares a launch of the kernel of `program` (named as opt says) for a problem. */
CPTX_API cptx_launch *cptx_gemm_sm100_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm100_opt *opt,
                                             const cptx_gemm_problem *problem, cptx_error *err);

/** Bytes that each problem of a list takes in its table. */
enum { CPTX_GEMM_SM100_GROUP_BYTES = 768 /**< of each problem */ };
/**
 * Prepares a launch of a kernel that was made with .grouped, for n problems, as cptx_gemm_sm90_launch_grouped does; each has
 * its own scale factors too.  table: n * CPTX_GEMM_SM100_GROUP_BYTES bytes.
 */
CPTX_API cptx_launch *cptx_gemm_sm100_launch_grouped(const cptx_program *program, cptx_device *dev,
                                                     const cptx_gemm_sm100_opt *opt, const cptx_gemm_problem *problems,
                                                     size_t n, uint64_t table, cptx_error *err);

#ifdef __cplusplus
}
#endif
#endif
