/* SPDX-License-Identifier: MIT */
/*
 * Tensor memory: the accumulators of tcgen05.mma, 512 columns of 128 lanes of 32 bits for each SM (sm_100, 103 and 110).
 *
 *   CPTX_TMEM (k, &acc, .columns = 256, .warp = is_warp_0) {     allocates; all threads of the CTA come here
 *       ... tcgen05.mma to acc.address, a commit, a wait, cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC) ...
 *       cptx_val v = cptx_tmem_load(k, lanes, .shape = CPTX_SHAPE_32X32B, .num = 32);
 *       cptx_tcgen05_wait(k, .op = CPTX_WAIT_LD);
 *   }                                                            frees
 *
 * The block has a barrier at its start, which makes known what was written in front of it (initialized mbarriers, say), and
 * one at its end: bar.sync 0, for a pair of CTAs and with .cluster barrier.cluster. It must be left at its end: a ret, an
 * exit or a branch out of it is an error, for the columns would never be freed. So is a break, goto or return of the C code
 * between the braces: it is told when the kernel is complete.
 *
 * Nothing here does more than the calls of <cptx/insn.h>.  Errors are those of the kernel's module.
 */
#ifndef CPTX_TMEM_H
#define CPTX_TMEM_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	CPTX_TMEM_COLUMNS = 512, /**< columns of the tensor memory of a multiprocessor */
	CPTX_TMEM_LANES = 128    /**< lanes of the tensor memory of a multiprocessor */
};

/** Options of an allocation. */
typedef struct cptx_tmem_opt {
	uint32_t size;    /**< CPTX_OPT fills it in */
	uint32_t columns; /**< 1 to 512, for all blocks that are open together; rounded up to 32, 64, 128, 256 or 512 */
	uint32_t ctas;    /**< 2: a pair of CTAs allocates (cta_group::2), the same in both; 0: 1 */
	cptx_val warp;    /**< a predicate that is true in the warp that allocates and frees, one whole warp of each CTA */
	bool more;        /**< other code allocates later: tcgen05.relinquish_alloc_permit is left out */
	bool cluster;     /**< both barriers are of the cluster: its CTAs signal mbarriers of one another in the block */
	char z_;
} cptx_tmem_opt;

/** An allocation.  Plain data. */
typedef struct cptx_tmem {
	cptx_made made; /**< by which call, in which kernel */
	union {
		cptx_tmem_opt opt;          /**< the options, with columns rounded up */
		uint64_t reserved_opt_[10]; /**< for options of later versions */
	};
	cptx_val address;      /**< .u32: lane in the upper half, column in the lower; add l << 16 | c for lane l, column c */
	cptx_val slot;         /**< shared memory that tcgen05.alloc writes the address to */
	cptx_item *before;     /**< the last item in front of the block; NULL: none */
	uint64_t reserved_[2]; /**< for fields of later versions */
} cptx_tmem;

CPTX_API int cptx_tmem_begin_(cptx_kernel *k, cptx_site at, cptx_tmem *t, const cptx_tmem_opt *opt);
CPTX_API int cptx_tmem_end_(cptx_kernel *k, cptx_site at, cptx_tmem *t);
/** A block with an allocation of its own: CPTX_TMEM (k, &t, .columns = 128, .warp = p) { ... } */
#define CPTX_TMEM(...) CPTX_TMEM_X_(__VA_ARGS__, .z_ = 0)
#define CPTX_TMEM_X_(k, t, ...)                                                                                             \
	for (int CPTX_NAME_(cptx_b_, __LINE__) = cptx_tmem_begin_((k), CPTX_HERE, (t), CPTX_OPT(cptx_tmem_opt, __VA_ARGS__));   \
	     CPTX_NAME_(cptx_b_, __LINE__); CPTX_NAME_(cptx_b_, __LINE__) = cptx_tmem_end_((k), CPTX_HERE, (t)))

/** A load or store of tensor memory by a warp. */
typedef struct cptx_tmem_move {
	uint32_t size;       /**< CPTX_OPT fills it in */
	enum cptx_mod shape; /**< CPTX_SHAPE_32X32B, 16X64B, 16X128B, 16X256B, 16X32BX2; 0: 32X32B */
	uint32_t num;        /**< repetitions of the shape: 1 to 128, a power of two; 16X128B up to 64, 16X256B up to 32 */
	uint32_t split;      /**< 16X32BX2: the column of the second half */
	bool halves;         /**< .pack::16b, .unpack::16b: two columns of 16 bits in a register */
	char z_;
} cptx_tmem_move;

CPTX_API cptx_val cptx_tmem_load_(cptx_kernel *k, cptx_site at, cptx_val address, const cptx_tmem_move *move);
/** Emits tcgen05.ld, which starts the load; returns its registers (.b32): num of them, for 16X128B 2 * num, for 16X256B 4 *
 * num.  Read them behind cptx_tcgen05_wait. */
#define cptx_tmem_load(...) cptx_tmem_load_x_(__VA_ARGS__, .z_ = 0)
#define cptx_tmem_load_x_(k, address, ...) cptx_tmem_load_((k), CPTX_HERE, (address), CPTX_OPT(cptx_tmem_move, __VA_ARGS__))
CPTX_API void cptx_tmem_store_(cptx_kernel *k, cptx_site at, cptx_val address, cptx_val regs, const cptx_tmem_move *move);
/** Emits tcgen05.st of the registers; num 0: as many as the registers fill. */
#define cptx_tmem_store(...) cptx_tmem_store_x_(__VA_ARGS__, .z_ = 0)
#define cptx_tmem_store_x_(k, address, regs, ...)                                                                           \
	cptx_tmem_store_((k), CPTX_HERE, (address), (regs), CPTX_OPT(cptx_tmem_move, __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
