/* SPDX-License-Identifier: MIT */
/* clang-format off: tables */
/*
 * Attention for decoding: few queries of each head against long caches of keys and values, O = softmax(scale * Q * K^T) * V.
 *
 *   Q: batch x heads x queries x dim         O: as Q, but dim_v
 *   K, V: batch x kv_heads x keys x dim (of V dim_v); with .paged: pages x kv_heads x page x dim
 *   LSE: batch x heads x queries, f32: natural logarithms
 *
 * Heads h / (heads / kv_heads) of K and V serve head h of Q.  The queries of all heads that share a head of K and V are the
 * rows of one product, query by query: heads / kv_heads * queries of them, in tiles of .rows.  Such a tile reads the cache
 * once; a second tile reads it again, as a rule from L2.
 *
 * It is bound by memory, so that all multiprocessors should read all the time: the keys of a sequence are split into chunks,
 * each for a CTA, and each warp of a CTA has blocks of keys of its own, which cp.async brings to its own ring of stages.
 * Where there are several chunks, their results go to the workspace, and a second launch, of NAME_combine, puts them
 * together.  Products are by mma.sync: sm_80 and later.
 *
 * Multi-head latent attention (.mla): V is the first dim_v columns of K, and there is no V of its own; the queries are those
 * of all heads, already multiplied into the latent space, K usually one head of 576 columns, of which 512 are V's.  By TMA
 * and wgmma, sm_90a: tiles of 64 rows, blocks of 64 keys that serve both products.
 *
 * How many keys a sequence has may be known to the device alone (.lengths of the problem); what is chosen on the host
 * follows from .keys, the most that there are, and .total_keys.  Which keys count for query i of `queries`, of a sequence
 * with n keys:
 *   full       all n
 *   .causal    j <= n - queries + i: the last query sees all keys
 *   .window    with .causal: of these the last window_left + 1
 * A query for which no key counts gets zeros in O and minus infinity in LSE.
 *
 * Scores, probabilities, infinities and NaN: as of <cptx/attention.h>.  Keys behind the last of a sequence, and what a page
 * has behind them, are never read (with .mla, never used).
 */
/* clang-format on */
#ifndef CPTX_ATTENTION_DECODE_H
#define CPTX_ATTENTION_DECODE_H

#include <cptx/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The types, head size and shape of a kernel. */
typedef struct cptx_attention_decode_opt {
	uint32_t size;      /**< CPTX_OPT fills it in */
	enum cptx_type in;  /**< of Q, K and V: CPTX_BF16 or CPTX_F16 */
	enum cptx_type out; /**< of O: as in, or CPTX_F32; 0: as in */
	uint32_t dim;       /**< head size of Q and K: 8 to 256, a multiple of 8.  It costs as the next multiple of 32.  With
	                         .mla a multiple of 64, to 576 */
	uint32_t dim_v;     /**< head size of V and O, as dim; 0: dim.  With .mla a multiple of 128, to 512, at most dim */
	bool causal;        /**< no key behind the query, of which the last stands at the last key */
	bool window;        /**< a sliding window, of the size of the problem; with causal */
	bool softcap;       /**< softcap * tanh(s / softcap), softcap of the problem */
	bool paged;         /**< K and V lie in pages, found by the problem's table */
	bool lse;           /**< writes LSE */

	/* the shape: cptx_attention_decode_auto picks it where it is 0 */
	uint32_t rows;   /**< of a tile: 16 or 32; with .mla 64 */
	uint32_t bk;     /**< keys of a block, which one warp multiplies: 16, 32 or 64; with .mla 64 */
	uint32_t warps;  /**< of a CTA: 1, 2, 4 or 8; with .mla 0: there are two warpgroups, and a warp that loads */
	uint32_t stages; /**< blocks of a warp in shared memory, 2 to 8; with .mla of the CTA, and even */
	bool overlap;    /**< programmatic dependent launch, of the combining kernel too; sm_90 and later */

	const char *name; /**< name of the kernel; NULL: "attention_decode".  The second is NAME_combine */
	bool mla;         /**< multi-head latent attention: V is the first dim_v columns of K; sm_90a */
	char z_;
} cptx_attention_decode_opt;

/** The sizes and operands of a problem. */
typedef struct cptx_attention_decode_problem {
	uint32_t size;       /**< CPTX_OPT fills it in */
	uint32_t batch;      /**< sequences */
	uint32_t heads;      /**< heads of Q and O */
	uint32_t kv_heads;   /**< heads of K and V, which divide those of Q; 0: heads */
	uint32_t queries;    /**< of each head, 1 to 16 */
	uint32_t keys;       /**< the most keys that a sequence has; below 2^29 */
	uint64_t total_keys; /**< of all sequences together, about, for the number of splits; 0: batch * keys */
	uint64_t q, k, v, o; /**< device addresses, aligned to 16; with .mla v is 0 */
	uint64_t lse;        /**< with .lse: of batch x heads x queries f32, dense, aligned to 4 */
	uint64_t lengths; /**< of batch u32: the keys of each sequence; more than `keys` count as `keys`; 0: all have `keys` */
	cptx_attention_stride q_stride, k_stride, v_stride, o_stride; /**< how they lie.  With .paged .batch of K and V is from
	                                                                   page to page */
	uint64_t pages;       /**< with .paged: of batch x page_pitch u32: number of the page with keys i * page and following */
	uint32_t page;        /**< with .paged: keys of a page, a multiple of .bk */
	uint32_t page_pitch;  /**< with .paged: numbers of a sequence in the table; 0: as many as `keys` need */
	float scale;          /**< of the scores, above 0; 0: 1 / sqrt(dim) */
	float softcap;        /**< with .softcap: above 0 */
	uint32_t window_left; /**< with .window: keys in front of the query's place that count */
	uint32_t splits;      /**< chunks that the keys of a sequence are split into, at most 256; 0: chosen by a model */
	uint64_t workspace;   /**< plan.workspace bytes, aligned to 16, for the results of chunks */
	char z_;
} cptx_attention_decode_problem;

/** Resources of a kernel, and of a problem's launches. */
typedef struct cptx_attention_decode_plan {
	uint32_t threads;    /**< threads of a CTA, along x */
	uint32_t smem;       /**< dynamic shared memory, bytes */
	uint32_t dim, dim_v; /**< head sizes that are computed: those of the options, rounded up */
	uint32_t tiles;      /**< tiles of rows of a head of K and V; only with a problem, as all below */
	uint32_t splits;     /**< chunks of a sequence with `keys` keys */
	uint32_t chunk;      /**< keys of a chunk */
	uint32_t launches;   /**< 1, or 2 where chunks are put together */
	uint32_t grid;       /**< CTAs of the first launch */
	uint64_t workspace;  /**< bytes; 0: none */
	uint64_t bytes;      /**< of K and V that are read at least, each once; with .mla of K */
} cptx_attention_decode_plan;

CPTX_API bool cptx_attention_decode_check_(const cptx_attention_decode_opt *opt, const cptx_target *target,
                                           cptx_attention_decode_plan *plan, size_t size, cptx_error *err);
/** Checks options; false: err names the rule that is broken and what would be right.  target (NULL: sm_90a), plan: may be
 * NULL. */
static inline bool cptx_attention_decode_check(const cptx_attention_decode_opt *opt, const cptx_target *target,
                                               cptx_attention_decode_plan *plan, cptx_error *err)
{
	return cptx_attention_decode_check_(opt, target, plan, sizeof *plan, err);
}
CPTX_API bool cptx_attention_decode_check_problem_(const cptx_attention_decode_opt *opt,
                                                   const cptx_attention_decode_problem *problem, const cptx_target *target,
                                                   uint32_t sms, cptx_attention_decode_plan *plan, size_t size,
                                                   cptx_error *err);
/** Checks options and a problem for a device with `sms` multiprocessors of a target (NULL: sm_90a).  Addresses are not
 * checked. */
static inline bool cptx_attention_decode_check_problem(const cptx_attention_decode_opt *opt,
                                                       const cptx_attention_decode_problem *problem,
                                                       const cptx_target *target, uint32_t sms,
                                                       cptx_attention_decode_plan *plan, cptx_error *err)
{
	return cptx_attention_decode_check_problem_(opt, problem, target, sms, plan, sizeof *plan, err);
}

/** A shape with a number of splits, and why it was chosen. */
typedef struct cptx_attention_decode_choice {
	uint32_t splits, chunk;        /**< chunks of the longest sequence, and keys of each */
	uint32_t grid;                 /**< CTAs */
	uint32_t ctas_per_sm;          /**< CTAs that a multiprocessor holds */
	double us;                     /**< time that a model of the H200 predicts */
	double combine_us;             /**< of it for the second launch */
	double waves;                  /**< CTAs over those that the device holds at once */
	double in_flight;              /**< bytes that a multiprocessor's CTAs ask for at once */
	cptx_attention_decode_opt opt; /**< all options, with the shape filled in; last, since options grow */
} cptx_attention_decode_choice;
CPTX_API size_t cptx_attention_decode_auto_(const cptx_attention_decode_opt *opt,
                                            const cptx_attention_decode_problem *problem, const cptx_target *target,
                                            uint32_t sms, cptx_attention_decode_choice *choices, size_t size, size_t room,
                                            cptx_error *err);
/**
 * Picks rows, bk, warps, stages and splits where they are 0.  Writes the best `room` choices, best first, and returns their
 * number; 0: no kernel can do the problem, and err says why.
 */
static inline size_t cptx_attention_decode_auto(const cptx_attention_decode_opt *opt,
                                                const cptx_attention_decode_problem *problem, const cptx_target *target,
                                                uint32_t sms, cptx_attention_decode_choice *choices, size_t room,
                                                cptx_error *err)
{
	return cptx_attention_decode_auto_(opt, problem, target, sms, choices, sizeof *choices, room, err);
}

/**
 * Adds the kernel and the one that combines to a module.  A shape of 0: the usual one for the head size.  Gives the first;
 * NULL on error: err says why (and the module holds it if building failed).
 */
CPTX_API cptx_kernel *cptx_attention_decode_build(cptx_module *m, const cptx_attention_decode_opt *opt, cptx_error *err);
/** Prepares launch `number` (0, or 1 of two: plan.launches) of the kernels in `program` for a problem.  opt: the options
 * that they were built with. */
CPTX_API cptx_launch *cptx_attention_decode_launch(const cptx_program *program, cptx_device *dev,
                                                   const cptx_attention_decode_opt *opt,
                                                   const cptx_attention_decode_problem *problem, uint32_t number,
                                                   cptx_error *err);

/** Runs decoding in one call each: builds, compiles (or finds in the cache), loads, launches, and keeps programs.  All calls
 * but destroy may be made by many threads at once. */
typedef struct cptx_attention_decode_runner cptx_attention_decode_runner;
/** Makes a runner for a device, which must stay open.  cache: for machine code, may be NULL; it stays the caller's and must
 * stay open.  NULL on error. */
CPTX_API cptx_attention_decode_runner *cptx_attention_decode_runner_new(cptx_device *dev, cptx_cache *cache,
                                                                        cptx_error *err);
/** Frees a runner and its programs; the work that it started must have ended.  NULL is allowed. */
CPTX_API void cptx_attention_decode_runner_destroy(cptx_attention_decode_runner *runner);
/** Starts decoding as work of a stream (NULL: the default one); does not wait.  .overlap is set where the device has it.
 * Errors: those of cptx_attention_decode_check_problem, cptx_device_load and cptx_launch_new. */
CPTX_API bool cptx_attention_decode_run(cptx_attention_decode_runner *runner, const cptx_attention_decode_opt *opt,
                                        const cptx_attention_decode_problem *problem, cptx_stream *stream, cptx_error *err);
/** Bytes of the workspace that a run needs; 0: none, or an error, of which err tells. */
CPTX_API uint64_t cptx_attention_decode_workspace(cptx_attention_decode_runner *runner, const cptx_attention_decode_opt *opt,
                                                  const cptx_attention_decode_problem *problem, cptx_error *err);

#ifdef __cplusplus
}
#endif
#endif
