/* SPDX-License-Identifier: MIT */
/*
 * Reductions and scans over lanes, a warp, a CTA, a cluster and the grid.
 *
 *   cptx_reduce r;
 *   cptx_reduce_new(k, &r, .threads = 256);
 *   cptx_val sum = cptx_regs(k, CPTX_F32, 1);          each thread's part
 *   cptx_reduce_cta(k, &r, sum, CPTX_REDUCE_SUM);      now the sum of all parts, in every thread
 *
 * A value is one or more 32-bit registers (cptx_regs), changed in place; what they mean is said with the operation.  Where
 * there are more registers than an operation has parts, that many reductions are done together, part next to part, with the
 * same barriers.  Types are .f32, .s32 and .u32.  Results are in all threads that take part and are the same bits in each,
 * but for the grid's, which are in the CTA that comes last.
 *
 * All threads of the lanes, CTA, cluster or grid must come to a call; calls may follow one another in any order, in loops
 * and in uniform branches: the shared memory of one call is not that of the next.
 *
 *   what       emits, for a part of a sum                                                         targets
 *   lanes      a shuffle and an operation for each doubling; integers over 32 lanes: one redux    all, redux sm_80
 *   cta        that, a store, bar.sync, a load, and the same over the warps                       all
 *   cluster    that, an st.async to each CTA (every eighth time an arrival), a wait, and the same over the CTAs   sm_90
 *   grid       cta, a store, an atomic; in the last CTA a loop over the others' results           all
 *
 * Nothing here does more than the calls of <cptx/insn.h>.  Errors are those of the kernel's module.
 */
#ifndef CPTX_REDUCE_H
#define CPTX_REDUCE_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Operations, with the parts of a value. */
enum cptx_reduce_op {
	CPTX_REDUCE_SUM,      /**< one part */
	CPTX_REDUCE_MAX,      /**< one part; of .f32, a NaN counts as nothing */
	CPTX_REDUCE_MIN,      /**< likewise */
	CPTX_REDUCE_ARG_MAX,  /**< value, index (.u32 bits): the largest value, the lowest index among equals; no NaN */
	CPTX_REDUCE_ARG_MIN,  /**< likewise, the smallest */
	CPTX_REDUCE_SOFTMAX,  /**< .f32: maximum m, sum of e^(x - m).  Nothing yet: m is -1e38, as cptx_reduce_clear sets; of
	                           values below that the sum is 0 */
	CPTX_REDUCE_SOFTMAX2, /**< .f32: maximum m, sum of 2^(x - m) */
	CPTX_REDUCE_WELFORD   /**< .f32: mean, sum of squared deviations from it, count: the variance is the second over the
	                           third */
};

/** Parts of a value: 1 to 3; 0: no such operation. */
CPTX_API uint32_t cptx_reduce_parts(enum cptx_reduce_op op);
CPTX_API void cptx_reduce_clear_(cptx_kernel *k, cptx_site at, cptx_val v, enum cptx_reduce_op op);
/** Sets v to what changes nothing when it is reduced with others: 0, the lowest number, ... */
#define cptx_reduce_clear(k, v, op) cptx_reduce_clear_((k), CPTX_HERE, (v), (op))
CPTX_API void cptx_reduce_with_(cptx_kernel *k, cptx_site at, cptx_val v, cptx_val other, enum cptx_reduce_op op);
/** v becomes the reduction of v and another value of as many parts: a thread's own elements. */
#define cptx_reduce_with(k, v, other, op) cptx_reduce_with_((k), CPTX_HERE, (v), (other), (op))

CPTX_API void cptx_reduce_lanes_(cptx_kernel *k, cptx_site at, cptx_val v, enum cptx_reduce_op op, uint32_t lanes);
/** Over each `lanes` neighbouring lanes, 1 to 32, a power of two; the whole warp comes here. */
#define cptx_reduce_lanes(k, v, op, lanes) cptx_reduce_lanes_((k), CPTX_HERE, (v), (op), (lanes))
/** Over a warp. */
#define cptx_reduce_warp(k, v, op) cptx_reduce_lanes_((k), CPTX_HERE, (v), (op), 32)

/** Who reduces. */
typedef struct cptx_reduce_opt {
	uint32_t size;    /**< CPTX_OPT fills it in */
	uint32_t threads; /**< of the CTA, or of the group of warps that reduces: a multiple of 32 up to 1024 */
	cptx_val thread;  /**< .u32 number of the thread among them; NONE: tid.x, and the group is the whole CTA, .block of the
	                       kernel */
	uint32_t barrier; /**< named barrier of the group, 0 to 15; not 0 where .thread is given, unless nothing else uses 0 */
	uint32_t cluster; /**< for cptx_reduce_cluster: CTAs of the cluster, 2 to 16, each with one such group; 0: none */
	uint32_t words;   /**< most registers of a value, 1 to 16; 0: 4 */
	char z_;
} cptx_reduce_opt;

/** A group of threads with its shared memory.  Plain data. */
typedef struct cptx_reduce {
	cptx_made made; /**< by which call, in which kernel */
	union {
		cptx_reduce_opt opt;        /**< as given, with what 0 stands for */
		uint64_t reserved_opt_[10]; /**< for options of later versions */
	};
	cptx_val thread, lane, warp; /**< of the group */
	cptx_val at;                 /**< .u32 shared address of the half that is written next; ^ half: the other */
	uint32_t slot, half;      /**< slot: bytes that one warp's partial result takes; half: bytes of all warps' slots (there
	                               are two halves, used in turn) */
	cptx_val rank, calls;     /**< of the CTA in its cluster; reductions over it so far */
	cptx_val slots, barriers; /**< .u32 shared addresses: values of CTAs; mbarriers of the last calls, and two empty ones */
	uint64_t reserved_[4];    /**< for fields of later versions */
} cptx_reduce;

CPTX_API void cptx_reduce_new_(cptx_kernel *k, cptx_site at, cptx_reduce *r, const cptx_reduce_opt *opt);
/**
 * Declares the static shared memory: twice 4 * words bytes (rounded up to a power of two) for each warp, and 16 times for
 * each CTA of a cluster.  All threads of the group pass here; with .cluster a barrier of the cluster is emitted, and all of
 * its do.
 */
#define cptx_reduce_new(...) cptx_reduce_new_x_(__VA_ARGS__, .z_ = 0)
#define cptx_reduce_new_x_(k, r, ...) cptx_reduce_new_((k), CPTX_HERE, (r), CPTX_OPT(cptx_reduce_opt, __VA_ARGS__))

CPTX_API void cptx_reduce_cta_(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val v, enum cptx_reduce_op op);
/** Over the CTA (the group). */
#define cptx_reduce_cta(k, r, v, op) cptx_reduce_cta_((k), CPTX_HERE, (r), (v), (op))
CPTX_API void cptx_reduce_cluster_(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val v, enum cptx_reduce_op op);
/** Over the groups of all CTAs of the cluster: sm_90 and later.  Behind the last call a barrier of the cluster must follow
 * before a CTA ends: others tell it what they have read. */
#define cptx_reduce_cluster(k, r, v, op) cptx_reduce_cluster_((k), CPTX_HERE, (r), (v), (op))
CPTX_API cptx_val cptx_reduce_grid_(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val v, enum cptx_reduce_op op,
                                    cptx_val workspace);
/**
 * Over all CTAs of a grid of one dimension, in the order of their numbers whatever the order in which they end.  Gives a
 * predicate: this is the CTA that came last, in which v is the result; in others v is their own part.  workspace: global
 * address, aligned to 16 bytes, of 16 + gridDim.x * 4 * words (rounded up to a power of two) bytes, the first four of which
 * are 0 before the launch and behind it; a launch uses it once.
 */
#define cptx_reduce_grid(k, r, v, op, workspace) cptx_reduce_grid_((k), CPTX_HERE, (r), (v), (op), (workspace))

CPTX_API cptx_val cptx_exp_(cptx_kernel *k, cptx_site at, cptx_val x);
/** e^x of an .f32, a register with any number in it, as exact as CUDA's expf, by 9 instructions.  (ex2.approx of x * log2(e)
 * errs by the rounding of the product, and more than that below 0.) */
#define cptx_exp(k, x) cptx_exp_((k), CPTX_HERE, (x))

/* ---- scans: SUM, MAX and MIN of one part each ---- */

CPTX_API void cptx_scan_warp_(cptx_kernel *k, cptx_site at, cptx_val v, enum cptx_reduce_op op, bool exclusive);
/** v of a lane becomes the reduction of the lanes in front of it and its own; exclusive: without its own. */
#define cptx_scan_warp(k, v, op, exclusive) cptx_scan_warp_((k), CPTX_HERE, (v), (op), (exclusive))
CPTX_API cptx_val cptx_scan_cta_(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val v, enum cptx_reduce_op op,
                                 bool exclusive);
/** The same over the CTA (the group), in the order of thread numbers; gives the reduction of all, in every thread. */
#define cptx_scan_cta(k, r, v, op, exclusive) cptx_scan_cta_((k), CPTX_HERE, (r), (v), (op), (exclusive))

#ifdef __cplusplus
}
#endif
#endif
