/* SPDX-License-Identifier: MIT */
/*
 * Attention backward: the gradients of Q, K and V of O = softmax(scale * Q * K^T) * V, from that of O.
 *
 *   Q, O, dO, dQ: batch x heads x queries x dim        K, V, dK, dV: batch x kv_heads x keys x dim
 *   LSE: batch x heads x queries (.varlen: heads x total_queries), f32, as the forward kernels write it with .lse
 *
 *   P = exp(scale * Q * K^T - LSE)     dV = P^T * dO     dS = P * (dO * V^T - delta)     delta = sum of dO * O of each row
 *   dQ = scale * dS * K                dK = scale * dS^T * Q
 *
 * Sinks (<cptx/attention.h>) are in LSE, and change nothing else here; the gradient of a head's is minus the sum over its
 * rows of exp(sink - LSE) * delta.
 *
 * With .softcap P = exp(softcap * t - LSE), t = tanh(scale * Q * K^T / softcap) by tanh.approx.f32, and dS has (1 - t^2) for
 * a further factor.  With .score the forward's function f of these scores s, P = exp(f(s) - LSE), and dS has f'(s), which
 * .score_grad builds, for a factor.  What f reads besides (a bias that is loaded) gets no gradient here.  .mask and .blocks
 * are as of the forward; a score that a mask leaves out has a P and a dS of 0, whatever f makes of it.
 *
 * Packed sequences (.varlen) lie as <cptx/attention.h> says, gradients as what they are of.  By wgmma up to 127 rows of the
 * next sequence are read, though they do not count: infinities and NaN there make gradients of both sequences NaN.
 *
 * Heads h / (heads / kv_heads) of K and V serve head h of Q, and their gradients are sums over these.  Which keys count for
 * a query is as <cptx/attention.h> says; a query for which none does (LSE minus infinity) has gradients of 0.  P and dS are
 * rounded to the type of the operands before they are multiplied; sums are f32.
 *
 *   mma                      targets            how                                                               head sizes
 *   CPTX_ATTENTION_SYNC      sm_80 and later    cp.async, mma.sync                                                to 128
 *   CPTX_ATTENTION_WGMMA     sm_90a             TMA, wgmma, warp-specialized; dQ by bulk copies that add          to 128
 *
 * A run is three launches: NAME_prepare computes delta; NAME goes over the queries for each block of keys, computes S and P
 * again and keeps sums of dK and dV in registers.  Sums of dQ are added to the workspace in f32 by atomics, in any order,
 * and NAME_dq rounds them; or with .deterministic NAME_dq goes over the keys for each block of queries, so that the same
 * operands give the same bits.
 */
#ifndef CPTX_ATTENTION_BACKWARD_H
#define CPTX_ATTENTION_BACKWARD_H

#include <cptx/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	CPTX_ATTENTION_BACKWARD_LAUNCHES = 3 /**< launches of a run */
};

/** The types, head size and shape of the kernels. */
typedef struct cptx_attention_backward_opt {
	uint32_t size;               /**< CPTX_OPT fills it in */
	enum cptx_attention_mma mma; /**< instruction that multiplies */
	enum cptx_type in;           /**< of all operands and gradients: CPTX_BF16 or CPTX_F16 */
	uint32_t dim;       /**< head size: 8 to 128, a multiple of 8.  It costs as the next multiple of 32, by wgmma of 64 */
	bool causal;        /**< no key behind the query */
	bool top_left;      /**< with causal or window: query 0 stands at key 0; else the last query at the last key */
	bool window;        /**< a sliding window, of the sizes of the problem */
	bool deterministic; /**< the same operands give the same bits of dQ, too */

	/* the shape: 0: the usual one for the head size */
	uint32_t bq;     /**< queries of a block: 32 or 64; by wgmma 64 */
	uint32_t bk;     /**< keys of a CTA: 64 or 128, 16 for each warp; by wgmma 128, 64 for each warpgroup */
	uint32_t stages; /**< blocks of Q and dO in shared memory, 2 to 4 */
	bool sm90;       /**< may use what sm_90 and later have: programmatic dependent launch, and red of two f32 */

	const char *name;              /**< name of the second kernel; NULL: "attention_backward" */
	bool softcap;                  /**< scores of the forward were softcap * tanh(s / softcap), softcap of the problem */
	bool varlen;                   /**< sequences of many lengths are packed, as sums of lengths in device memory say */
	cptx_attention_score_fn score; /**< the forward's function of a score; NULL: none */
	/** With .score: builds its derivative at s->value, the number that .score is given.  Of one that adds something to the
	 * score cptx_attention_grad_one. */
	cptx_attention_score_fn score_grad;
	void *user;                     /**< second argument of score, score_grad, mask and blocks */
	cptx_attention_mask_fn mask;    /**< builds which scores count besides; NULL: all */
	cptx_attention_block_fn blocks; /**< with mask: builds which blocks have any that count; NULL: all do.  Blocks of the
	                                     second kernel have bq queries and bk keys, of the third, with .deterministic, 64 of
	                                     both: read the sizes there */
	char z_;
} cptx_attention_backward_opt;

/** The derivative of a function that adds to a score what does not depend on it (ALiBi, a bias): 1.  Scores need not be kept
 * for it, which saves registers.  In all builds. */
CPTX_API cptx_val cptx_attention_grad_one(cptx_kernel *k, void *user, const cptx_attention_score *score);

/** The sizes and operands of a problem. */
typedef struct cptx_attention_backward_problem {
	uint32_t size;                 /**< CPTX_OPT fills it in */
	uint32_t batch;                /**< batches */
	uint32_t heads;                /**< heads of Q and O */
	uint32_t kv_heads;             /**< heads of K and V, which divide those of Q; 0: heads */
	uint32_t queries, keys;        /**< rows of a head of Q, and of K and V; below 2^29 */
	uint64_t q, k, v, o, d_o, lse; /**< device addresses, aligned to 16; lse is dense */
	uint64_t dq, dk, dv;           /**< of the gradients, all of which are written */
	cptx_attention_stride q_stride, k_stride, v_stride, o_stride, do_stride; /**< how they lie */
	cptx_attention_stride dq_stride, dk_stride, dv_stride;                   /**< and the gradients */
	float scale;                                                             /**< of the scores, above 0; 0: 1 / sqrt(dim) */
	uint32_t window_left;               /**< with .window: keys in front of the query's place that count; UINT32_MAX: all */
	uint32_t window_right;              /**< with .window: keys behind it; UINT32_MAX: all */
	uint64_t workspace;                 /**< plan.workspace bytes, aligned to 16 */
	float softcap;                      /**< with .softcap: above 0 */
	uint64_t cu_queries, cu_keys;       /**< with .varlen: of batch + 1 u32 each, aligned to 4: sequence b has rows cu[b] to
	                                         cu[b + 1] - 1.  queries and keys are those of the longest, strides of a batch are not
	                                         read */
	uint32_t total_queries, total_keys; /**< with .varlen: rows of Q, and of K, of all sequences */
	char z_;
} cptx_attention_backward_problem;

/** Resources of the second kernel, and of a problem's launches. */
typedef struct cptx_attention_backward_plan {
	uint32_t threads;   /**< threads of a CTA, along x */
	uint32_t smem;      /**< dynamic shared memory, bytes */
	uint32_t dim;       /**< head size that is computed: that of the options, rounded up */
	uint32_t grid;      /**< CTAs of the second launch; only with a problem, as all below */
	uint64_t workspace; /**< bytes */
	double flop;        /**< 10 * dim for each score that counts */
} cptx_attention_backward_plan;

CPTX_API bool cptx_attention_backward_check_(const cptx_attention_backward_opt *opt, const cptx_target *target,
                                             cptx_attention_backward_plan *plan, size_t size, cptx_error *err);
/** Checks options; false: err names the rule that is broken and what would be right.  target (NULL: any), plan: may be
 * NULL. */
static inline bool cptx_attention_backward_check(const cptx_attention_backward_opt *opt, const cptx_target *target,
                                                 cptx_attention_backward_plan *plan, cptx_error *err)
{
	return cptx_attention_backward_check_(opt, target, plan, sizeof *plan, err);
}
CPTX_API bool cptx_attention_backward_check_problem_(const cptx_attention_backward_opt *opt,
                                                     const cptx_attention_backward_problem *problem,
                                                     cptx_attention_backward_plan *plan, size_t size, cptx_error *err);
/** Checks options and a problem.  Addresses are not checked. */
static inline bool cptx_attention_backward_check_problem(const cptx_attention_backward_opt *opt,
                                                         const cptx_attention_backward_problem *problem,
                                                         cptx_attention_backward_plan *plan, cptx_error *err)
{
	return cptx_attention_backward_check_problem_(opt, problem, plan, sizeof *plan, err);
}
/** Adds the three kernels to a module.  Gives the second; NULL on error: err says why (and the module holds it if building
 * failed). */
CPTX_API cptx_kernel *cptx_attention_backward_build(cptx_module *m, const cptx_attention_backward_opt *opt, cptx_error *err);
/** Prepares launch `number`, 0 to CPTX_ATTENTION_BACKWARD_LAUNCHES - 1, of the kernels in `program` for a problem.  They run
 * in this order.  opt: the options that they were built with. */
CPTX_API cptx_launch *cptx_attention_backward_launch(const cptx_program *program, cptx_device *dev,
                                                     const cptx_attention_backward_opt *opt,
                                                     const cptx_attention_backward_problem *problem, uint32_t number,
                                                     cptx_error *err);

/** Runs the backward in one call each: builds, compiles (or finds in the cache), loads, launches, and keeps programs.  All
 * calls but destroy may be made by many threads at once. */
typedef struct cptx_attention_backward_runner cptx_attention_backward_runner;
/** Makes a runner for a device, which must stay open.  cache: for machine code, may be NULL; it stays the caller's and must
 * stay open.  NULL on error. */
CPTX_API cptx_attention_backward_runner *cptx_attention_backward_runner_new(cptx_device *dev, cptx_cache *cache,
                                                                            cptx_error *err);
/** Frees a runner and its programs; the work that it started must have ended.  NULL is allowed. */
CPTX_API void cptx_attention_backward_runner_destroy(cptx_attention_backward_runner *runner);
/** Starts the backward as work of a stream (NULL: the default one); does not wait.  .sm90 is set where the device has it.
 * Errors: those of cptx_attention_backward_check_problem, cptx_device_load and cptx_launch_new. */
CPTX_API bool cptx_attention_backward_run(cptx_attention_backward_runner *runner, const cptx_attention_backward_opt *opt,
                                          const cptx_attention_backward_problem *problem, cptx_stream *stream,
                                          cptx_error *err);

#ifdef __cplusplus
}
#endif
#endif
