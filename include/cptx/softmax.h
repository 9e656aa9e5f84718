/* SPDX-License-Identifier: MIT */
/*
 * Online softmax over the rows of accumulators, tile of columns after tile, as attention does it.
 *
 *   cptx_softmax soft;
 *   cptx_softmax_new(k, &soft, s.rows, scale_log2);                    in front of the loop over the keys
 *   CPTX_FOR (k, key, keys, 64) {
 *       ... s = Q * K^T ...
 *       cptx_softmax_mask(k, &s, .row0 = query, .col0 = key, .cols = keys, .causal = true);
 *       cptx_val correct = cptx_softmax_step(k, &soft, &s);            s now holds probabilities
 *       cptx_acc_scale_rows(k, &o, correct);
 *       ... o += s * V ...
 *   }
 *   cptx_acc_scale_rows(k, &o, cptx_softmax_end(k, &soft, &s));        divides by the sums
 *
 * The scores of a row are multiplied by `scale` and exponentiated by ex2.approx, so scale is log2(e) times the factor of the
 * formula, 1 / sqrt(d).  A row in which nothing counts (all scores minus infinity) becomes zeros.
 *
 * What a step costs, for a thread with n elements in r rows: n max, n fma, n ex2 and n add, and for each row two shuffles by
 * mma.sync and wgmma (none by tcgen05) and seven instructions.
 *
 * Nothing here does more than the calls of <cptx/insn.h>.  Errors are those of the kernel's module.
 */
#ifndef CPTX_SOFTMAX_H
#define CPTX_SOFTMAX_H

#include <cptx/mma.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The state of all rows that a thread has elements of.  Plain data. */
typedef struct cptx_softmax {
	cptx_made made; /**< by which call, in which kernel */
	cptx_val max;   /**< row vector: the largest score so far, not scaled; the same in all lanes of a row */
	cptx_val sum;   /**< row vector: the sum of the thread's own probabilities, relative to max */
	cptx_val scale; /**< .f32 register or constant, above 0 */
	double raise;   /**< probabilities and their sum are multiplied by 2 to the power of this, for types of few bits: set
	                     behind cptx_softmax_new, which makes it 0, where such a sum is not to overflow */
	uint64_t reserved_[1]; /**< for fields of later versions */
} cptx_softmax;

CPTX_API void cptx_softmax_new_(cptx_kernel *k, cptx_site at, cptx_softmax *soft, uint32_t rows, cptx_val scale);
/** Starts a softmax that has seen no columns yet; rows: acc.rows of the score accumulators (1 for tcgen05).  Two mov a row.
 */
#define cptx_softmax_new(k, soft, rows, scale) cptx_softmax_new_((k), CPTX_HERE, (soft), (rows), CPTX_V(scale))

/** Which scores count. */
typedef struct cptx_softmax_mask_opt {
	uint32_t size;       /**< CPTX_OPT fills it in */
	cptx_val row0, col0; /**< row and column of the whole matrix where the CTA's tile of scores begins, .u32; NONE: 0 */
	cptx_val cols;       /**< .u32: columns behind the last of so many do not count; NONE: all do */
	bool causal;         /**< columns above the row plus `shift` do not count */
	cptx_val shift;      /**< causal: .u32, keys less queries where the last query sees all keys; NONE: 0 */
	char z_;
} cptx_softmax_mask_opt;
CPTX_API void cptx_softmax_mask_(cptx_kernel *k, cptx_site at, const cptx_acc *scores, const cptx_softmax_mask_opt *opt);
/** Sets what does not count to minus infinity: an add, a setp and a mov for each element.  Only tiles at the border need it.
 */
#define cptx_softmax_mask(...) cptx_softmax_mask_x_(__VA_ARGS__, .z_ = 0)
#define cptx_softmax_mask_x_(k, scores, ...)                                                                                \
	cptx_softmax_mask_((k), CPTX_HERE, (scores), CPTX_OPT(cptx_softmax_mask_opt, __VA_ARGS__))

CPTX_API cptx_val cptx_softmax_step_(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores);
/** Turns a tile of scores into probabilities relative to the new maximum, and adds them to the sum.  Gives the row vector
 * that what was summed with the old maximum is to be multiplied by. */
#define cptx_softmax_step(k, soft, scores) cptx_softmax_step_((k), CPTX_HERE, (soft), (scores))

CPTX_API cptx_val cptx_softmax_max_(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores);
/**
 * cptx_softmax_step in two parts, for rows whose columns are shared among warpgroups: this is the row vector of the maxima
 * with those of these scores, in registers of its own, and cptx_softmax_step_to is the rest.  Both cost what
 * cptx_softmax_step costs, and a mov for each row.
 */
#define cptx_softmax_max(k, soft, scores) cptx_softmax_max_((k), CPTX_HERE, (soft), (scores))
CPTX_API cptx_val cptx_softmax_step_to_(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores,
                                        cptx_val top);
/** The step to `top`, maxima that are at least those of cptx_softmax_max, such as the largest of all that share the row. */
#define cptx_softmax_step_to(k, soft, scores, top) cptx_softmax_step_to_((k), CPTX_HERE, (soft), (scores), (top))

CPTX_API void cptx_softmax_step_lazily_(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores,
                                        const cptx_acc *acc, double slack);
/**
 * cptx_softmax_step and cptx_acc_scale_rows of acc, which has the same rows, in one; but as long as no maximum of the warp's
 * rows has grown by more than `slack`, counted in powers of 2, the old maxima stay and acc is not touched: after the first
 * tiles that is nearly always so.  Probabilities are up to 2^slack then: 0 to 14, so that .f16 holds them.  By mma.sync; all
 * lanes of the warp.  A step costs three instructions more for each row, a vote and a branch, and nothing for acc.
 */
#define cptx_softmax_step_lazily(k, soft, scores, acc, slack)                                                               \
	cptx_softmax_step_lazily_((k), CPTX_HERE, (soft), (scores), (acc), (slack))

CPTX_API cptx_val cptx_softmax_end_(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores);
/** Sums over the lanes of a row, behind the last step.  Gives the row vector 1 / sum, 0 where nothing counted.  Three
 * instructions a row behind its two shuffles and adds (none by tcgen05). */
#define cptx_softmax_end(k, soft, scores) cptx_softmax_end_((k), CPTX_HERE, (soft), (scores))
CPTX_API cptx_val cptx_softmax_lse_(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores);
/** Behind cptx_softmax_end: the row vector of the natural logarithm of the sum of exp(score * scale / log2(e)), minus
 * infinity where nothing counted.  Five instructions a row. */
#define cptx_softmax_lse(k, soft, scores) cptx_softmax_lse_((k), CPTX_HERE, (soft), (scores))

#ifdef __cplusplus
}
#endif
#endif
