/*
 * GEMM for sm_90a: D = alpha * A * B + beta * C + bias, by TMA, wgmma and warp specialization.
 *
 * A kernel is made for types, layouts and a tile shape; it serves every M, N and K whose rows are aligned to 16 bytes.  The
 * usual way: cptx_gemm_sm90_auto picks the shape for a problem, cptx_gemm_sm90_build makes the kernel, and
 * cptx_gemm_sm90_launch prepares a launch on a device or the emulator.
 */
#ifndef CPTX_GEMM_SM90_H
#define CPTX_GEMM_SM90_H

#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/gemm.h>
#include <cptx/tensor_map.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a kernel is made for, and its shape. */
typedef struct cptx_gemm_sm90_opt {
	uint32_t bm, bn;     /**< tile of a CTA in elements.  bm: 64, 128, 192 or 256; bn: 8 to 256 in steps of 8, from bm 192 on
	                          to 192 */
	uint32_t stages;     /**< tiles of A and B in shared memory, 2 to 16; a tile is 128 bytes along K */
	uint32_t cluster_m;  /**< CTAs of a cluster along M: they share B by multicast.  1, 2, 4 or 8; 0: 1 */
	uint32_t cluster_n;  /**< the same along N, sharing A; one of both must be 1 */
	uint32_t group;      /**< rows of cluster tiles that are walked together, for the L2 cache; 0: 16 */
	enum cptx_type a, b; /**< both CPTX_BF16, both CPTX_F16, or each CPTX_E4M3 or CPTX_E5M2 */
	enum cptx_type out;  /**< of C and D: CPTX_F32, CPTX_BF16 or CPTX_F16 */
	bool a_m_major;      /**< A is stored as K rows of M elements (16-bit types only); else M rows of K */
	bool b_n_major;      /**< B is stored as K rows of N elements (16-bit types only); else N rows of K */
	bool swap;           /**< bm and cluster_m lie along N, bn and cluster_n along M, whose tiles can be small so: wgmma
	                          computes the transpose of D */
	uint32_t per_sm;     /**< CTAs that fit on a multiprocessor, 1 or 2; 0: 1.  With 2 and .overlap a launch can begin beside
	                          the end of the one before, and has its first tiles brought into L2 meanwhile */
	bool stream_k;       /**< CTAs share tiles along K, so that all have the same work; needs a workspace */
	bool batched;        /**< the kernel takes a number of matrices */
	bool grouped;        /**< the kernel takes a list of problems; not with stream_k and batched */
	bool alpha;          /**< the kernel takes alpha, f32 */
	bool beta;           /**< the kernel takes beta, f32, and C */
	bool bias;           /**< the kernel takes a vector of N f32, added to each row */
	uint32_t timeline;   /**< the kernel takes a timeline with that many stamps for a warp; 0: none, at no cost */
	cptx_gemm_epilogue_fn epilogue; /**< NULL: none */
	void *user;                     /**< for it */
	const char *name;               /**< of the kernel; NULL: "gemm" */
	char z_;
} cptx_gemm_sm90_opt;

/** What a kernel needs. */
typedef struct cptx_gemm_sm90_plan {
	uint32_t threads;   /**< block.x */
	uint32_t smem;      /**< dynamic shared memory, bytes */
	uint32_t bk;        /**< elements along K of a stage */
	uint32_t maps;      /**< tensor maps */
	uint32_t grid;      /**< CTAs; needs a problem */
	uint64_t workspace; /**< bytes; needs a problem */
} cptx_gemm_sm90_plan;

/** Checks options; false: the rule that is broken and what would be right.  plan may be NULL. */
CPTX_API bool cptx_gemm_sm90_check(const cptx_gemm_sm90_opt *opt, cptx_gemm_sm90_plan *plan, cptx_error *err);
/** Checks the sizes of a problem too; sms: multiprocessors of the device, for the grid.  Addresses are not looked at. */
CPTX_API bool cptx_gemm_sm90_check_problem(const cptx_gemm_sm90_opt *opt, const cptx_gemm_problem *problem, uint32_t sms,
                                           cptx_gemm_sm90_plan *plan, cptx_error *err);

/** A shape and what a model of the H200 says of it. */
typedef struct cptx_gemm_sm90_choice {
	cptx_gemm_sm90_opt opt;            /**< all options, with the shape filled in */
	uint32_t ctas;                     /**< for cptx_gemm_problem */
	double us;                         /**< predicted time */
	double mma_us, load_us, memory_us; /**< of the tensor cores, of filling shared memory, of global memory */
	double measured_us;                /**< by cptx_gemm_sm90_tune, else 0 */
	double tail;                       /**< share of the multiprocessors' time that the last wave leaves idle */
} cptx_gemm_sm90_choice;
/**
 * Picks bm, bn, stages, cluster, swap, per_sm, stream_k and group for a problem, and CTAs to launch; types, layouts and
 * epilogue are those of `opt`.  Writes the best `room` choices, best first, and gives their number; 0: no kernel can do the
 * problem, and err says why.
 */
CPTX_API size_t cptx_gemm_sm90_auto(const cptx_gemm_sm90_opt *opt, const cptx_gemm_problem *problem, uint32_t sms,
                                    cptx_gemm_sm90_choice *choices, size_t room, cptx_error *err);

/**
 * Times choices on a device, and sorts them by that: in bursts of launches, with copies of A and B (some 256 MB of the
 * device's memory) that take turns, so that these come from global memory.  problem: with addresses; D is written, the
 * workspace is tune's own.  False: one could not be run; the order is as it was.
 */
CPTX_API bool cptx_gemm_sm90_tune(cptx_device *dev, const cptx_gemm_problem *problem, cptx_gemm_sm90_choice *choices,
                                  size_t n, cptx_error *err);

/** Adds the kernel to a module.  NULL on error: err says why. */
CPTX_API cptx_kernel *cptx_gemm_sm90_build(cptx_module *m, const cptx_gemm_sm90_opt *opt, cptx_error *err);

enum { CPTX_GEMM_SM90_MAPS = 4 /**< at most */ };
/**
 * The descriptions of the tensor maps that the kernel takes: of A, B and D, and one more of D where plan.maps is 4, with
 * boxes for the end of a tile.  Parameters of the kernel, in order: these maps (128 bytes each), M, N, K (u32), and where
 * the options say so batch (u32), alpha (f32), beta (f32), C, bias, the timeline and the workspace
 * (pointers).
 */
CPTX_API bool cptx_gemm_sm90_maps(const cptx_gemm_sm90_opt *opt, const cptx_gemm_problem *problem,
                                  cptx_tensor_map_opt map[CPTX_GEMM_SM90_MAPS], cptx_error *err);
/** Prepares a launch of the kernel of `program` (named as opt says) for a problem. */
CPTX_API cptx_launch *cptx_gemm_sm90_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm90_opt *opt,
                                            const cptx_gemm_problem *problem, cptx_error *err);

enum { CPTX_GEMM_SM90_GROUP_BYTES = 640 /**< of each problem of a list */ };
/**
 * Prepares a launch of a kernel that was made with .grouped, for n problems: each with its own sizes, A, B, D, and where
 * the options say so C and bias.  ctas, alpha and beta are those of the first.  Problems without rows or columns are passed
 * over.  The tiles of all are walked over as those of one, so order long ones first.
 *
 * table: device address, a multiple of 128, of n * CPTX_GEMM_SM90_GROUP_BYTES bytes.  They are written here, before the
 * call returns, and must stay as long as the launch is used; one table serves one launch.  What shape is good:
 * cptx_gemm_sm90_auto for one large problem of as many rows as all have.
 *
 * Parameters of the kernel: the table (pointer), cluster tiles of all problems (u32), alpha and beta where the options say
 * so.
 */
CPTX_API cptx_launch *cptx_gemm_sm90_launch_grouped(const cptx_program *program, cptx_device *dev,
                                                    const cptx_gemm_sm90_opt *opt, const cptx_gemm_problem *problems,
                                                    size_t n, uint64_t table, cptx_error *err);

#ifdef __cplusplus
}
#endif
#endif
