/* SPDX-License-Identifier: MIT */
/*
 * Attention forward: O = softmax(scale * Q * K^T) * V for each head of each batch.
 *
 *   Q: batch x heads x queries x dim         K, V: batch x kv_heads x keys x dim (of V dim_v)         O: as Q, but dim_v
 *   LSE: batch x heads x queries, f32: the natural logarithm of the sum of exp(score), of the scores that count
 *
 * Heads h / (heads / kv_heads) of K and V serve head h of Q (GQA; kv_heads = 1 is MQA).
 *
 *   mma                        targets      how                                                     Q, K, V
 *   CPTX_ATTENTION_SYNC        sm_80 on     cp.async or TMA (sm_90 on), mma.sync, P in registers    bf16 f16, sm_89 on e4m3
 *   CPTX_ATTENTION_WGMMA       sm_90a       TMA, wgmma, warp-specialized, P in registers            bf16 f16 e4m3
 *   CPTX_ATTENTION_TCGEN05     sm_100a      TMA, tcgen05, warp-specialized, P in tensor memory      bf16 f16 e4m3
 *
 * A kernel is made for types, a head size, what scores go through and a tile shape; it serves every batch, number of heads,
 * number of queries and keys, every stride and scale.  The usual way: cptx_attention_run does all in one call; or
 * cptx_attention_auto picks the shape, cptx_attention_build makes the kernel, cptx_attention_launch prepares a launch on a
 * device or the emulator.
 *
 * Which keys count for query i, of `queries` with `keys`:
 *   full       all keys
 *   .causal    j <= i + shift, where shift is keys - queries, so that the last query sees all keys (as in decoding), or with
 *              .top_left 0
 *   .window    i + shift - window_left <= j <= i + shift + window_right; with .causal window_right is 0
 * A query for which no key counts, and any query where keys is 0, gets zeros in O and minus infinity in LSE.  queries,
 * batch or heads of 0: nothing is written.
 *
 * Scores: s = scale * (q . k), in f32; with .softcap s = softcap * tanh(s / softcap), by tanh.approx.f32; with .score what
 * your function builds.  Probabilities, as parts of the row's largest or of its sink, are rounded to the type of V before
 * the second product (f16 keeps fewer bits of those below 2^-14); sums are f32.
 *
 * e4m3: O is bf16, f16 or f32.  Q, K and V are as they were quantized, with one scale each: .scale of the problem takes in
 * those of Q and K, .v_scale is that of V.  Probabilities are rounded to e4m3, 2^8 times as large so that those down to
 * 2^-14 keep three bits; sums are those of the hardware, which by wgmma keeps 13 bits behind the point whenever it adds 32
 * products. Where wgmma wants V's keys side by side, warps of the CTA turn V around in shared memory.  By mma.sync V becomes
 * f16 on its way to the second product, and probabilities are f16.
 *
 * A sink (.sinks) is a logit of a head that joins the sum of each of its rows: exp(sink) is added to the sum of exp(score),
 * and nothing to O; it counts in LSE, too.
 *
 * Packed sequences (.varlen): Q and O have the rows of all sequences behind one another, K and V too, and sums of lengths in
 * device memory say where each begins (cu_queries, cu_keys); batch is their number, queries and keys are those of the
 * longest, and strides of a batch are not read.  The kernel finds its tiles there, and nothing is read by the host.
 *
 * Pages (.page): K and V are `pages` matrices of page x kv_heads x dim elements, k_stride.batch and v_stride.batch from page
 * to page (all strides 0: densely, in the order page, head, key), and a table says which page has the keys of a batch from
 * page * i on.  By TMA rows of the last page behind the last key are read, though they do not count: V has finite numbers
 * there.  In packed sequences these are rows of the next sequence.
 *
 * Masks (.mask, .blocks): functions of yours build which scores count, and in which blocks any do; other blocks are neither
 * copied nor computed.
 *
 * Infinities and NaN: a NaN score makes the row's O and LSE NaN, as does plus infinity; of minus infinity the probability is
 * 0.  A V that is infinite or NaN makes its column of O that, or NaN, in all rows whose key blocks include it, also where
 * its probability is 0 (0 * infinity); but for packed sequences and pages keys from `keys` on are never read.
 */
#ifndef CPTX_ATTENTION_H
#define CPTX_ATTENTION_H

#include <cptx/module.h>
#include <cptx/device.h>
#include <cptx/tune.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The instructions that multiply. */
enum cptx_attention_mma {
	CPTX_ATTENTION_SYNC,    /**< mma.sync, sm_80 and later */
	CPTX_ATTENTION_WGMMA,   /**< wgmma.mma_async, sm_90a */
	CPTX_ATTENTION_TCGEN05, /**< tcgen05.mma, sm_100a, sm_103a and their like */
	CPTX_ATTENTION_MMAS     /**< number of instructions */
};
/** The best instruction of a target: tcgen05, else wgmma, else mma.sync.  NULL: mma.sync. */
CPTX_API enum cptx_attention_mma cptx_attention_mma_of(const cptx_target *target);
/** The name of an instruction: "mma.sync", "wgmma", "tcgen05"; out of range: "?". */
CPTX_API const char *cptx_attention_mma_name(enum cptx_attention_mma mma);
/** Whether a target computes exponentials of 2 twice as fast as sm_100a, as sm_103a does: for cptx_attention_opt.fast_ex2.
 */
CPTX_API bool cptx_attention_has_fast_ex2(const cptx_target *target);

/** Where a score stands. */
typedef struct cptx_attention_score {
	cptx_val value;      /**< .f32, scale * (q . k), behind .softcap; for a mask NONE */
	cptx_val batch;      /**< .u32 */
	cptx_val head;       /**< .u32, of Q */
	cptx_val query, key; /**< .u32; they may lie behind the last (then the result does not count, so guard loads) */
} cptx_attention_score;
/**
 * Builds a function of a score: ALiBi, a bias that is loaded, a mask (give minus infinity).  Returns an .f32.  It is called
 * for each score that a thread has, in several places of the kernel, so code that it builds for one score is not run for
 * another.
 */
typedef cptx_val (*cptx_attention_score_fn)(cptx_kernel *k, void *user, const cptx_attention_score *score);

/** A block of scores. */
typedef struct cptx_attention_block {
	cptx_val batch, head;   /**< .u32 */
	cptx_val query, key;    /**< .u32, the first of each */
	uint32_t queries, keys; /**< how many; the last ones may lie behind the end */
} cptx_attention_block;
/** Builds a mask: a predicate that holds where a score counts.  s->value is not there.  Called as cptx_attention_score_fn.
 */
typedef cptx_val (*cptx_attention_mask_fn)(cptx_kernel *k, void *user, const cptx_attention_score *s);
/** Builds a predicate that is false where no score of a block counts by the mask: such blocks are skipped.  It is the same
 * in all threads, so it is built of the block and of memory. */
typedef cptx_val (*cptx_attention_block_fn)(cptx_kernel *k, void *user, const cptx_attention_block *block);

/** The types, head size and shape of a kernel.  Options that a kernel does not have must be 0: all checks refuse others. */
typedef struct cptx_attention_opt {
	uint32_t size;               /**< CPTX_OPT fills it in */
	enum cptx_attention_mma mma; /**< instruction that multiplies */
	enum cptx_type in;           /**< of Q, K and V: CPTX_BF16, CPTX_F16, or from sm_89 on CPTX_E4M3 */
	enum cptx_type out;          /**< of O: as in, or CPTX_F32; 0: as in.  Of e4m3 CPTX_BF16, which 0 is, F16 or F32 */
	/** Head size of Q and K: 8 to 256, a multiple of 8.  It costs as the next multiple of 32, of e4m3 of 64, and dense rows
	 * of e4m3 have multiples of 16. */
	uint32_t dim;
	uint32_t dim_v; /**< head size of V and O, as dim; 0: dim */

	/* which keys count, and what is done to scores */
	bool causal;   /**< no key behind the query */
	bool top_left; /**< with causal or window: query 0 stands at key 0; else the last query at the last key */
	bool window;   /**< a sliding window, of the sizes of the problem */
	bool softcap;  /**< softcap * tanh(s / softcap), softcap of the problem */
	cptx_attention_score_fn score; /**< builds what is done to a score; NULL: nothing */
	void *user;                    /**< second argument of score, mask and blocks */
	bool lse;                      /**< writes LSE */

	/* the shape; 0: the usual one for the head size, and cptx_attention_auto picks one for a problem */
	/** Queries of a CTA.  wgmma: 64 for each MMA warpgroup: 64, 128, 192; mma.sync: 16 or 32 for each warp; tcgen05: 128, or
	 * 256: two tiles whose products and softmax run beside one another, where blocks of 64 or 128 keys fit. */
	uint32_t bq;
	uint32_t bk;     /**< keys of a block: 16 to 256, a multiple of 16; of e4m3 of 32 */
	uint32_t stages; /**< of K and of V in shared memory, 2 to 8 */

	const char *name; /**< name of the kernel; NULL: "attention" */

	uint32_t warps;                 /**< shape, mma.sync: warps of a CTA, 1 to 16; 0: as the shape */
	bool tma;                       /**< mma.sync: TMA copies Q, K and V, sm_90 and later; else cp.async */
	cptx_attention_mask_fn mask;    /**< builds which scores count besides; NULL: all */
	cptx_attention_block_fn blocks; /**< with mask: builds which blocks have any that count; NULL: all do */
	bool sinks;                     /**< a logit of each head joins the sums: .sinks of the problem */
	bool varlen;                    /**< sequences of many lengths are packed, as sums of lengths in device memory say */
	uint32_t page; /**< K and V lie in pages of so many keys, 8 to 4096, a power of two: a multiple of .bk, or (by TMA) a
	                    divisor of it; 0: they do not */
	/** wgmma: heads of Q that share a tile, and with it what is read of K and V: a power of two that divides heads /
	 * kv_heads.  A tile has bq / pack queries of each, 8 or more and a power of two.  0: one, or in cptx_attention_auto and
	 * cptx_attention_run as many as pay where there are fewer queries than a tile has; 1: one.  A block is skipped where
	 * .blocks is false for all of them. */
	uint32_t pack;
	/** tcgen05: ex2 keeps up with the products, as on sm_103a.  Else with two tiles of queries a fifth of the exponentials
	 * is computed by a polynomial, which is wrong by up to plan.ex2_error of them, and LSE by as much.
	 * cptx_attention_run sets it where the target says so. */
	bool fast_ex2;
	char z_;
} cptx_attention_opt;

/** Sets the fields of *opt that a text names, as records of the tuning database do: "mma=wgmma in=bf16 dim=128 causal=1".
 * Others stay.  Errors: ARG, the text has a word that is none, which is named. */
CPTX_API bool cptx_attention_options_read(const char *text, cptx_attention_opt *opt, cptx_error *err);

/** How a tensor lies in memory; elements of a row are contiguous.  All 0: densely, in the order batch, head, row. */
typedef struct cptx_attention_stride {
	uint64_t batch; /**< elements from one batch to the next; multiples of 16 bytes.  Of what there is one of, not read */
	uint64_t head;  /**< from one head to the next */
	uint64_t row;   /**< from one row to the next */
} cptx_attention_stride;

/** The sizes and operands of a problem. */
typedef struct cptx_attention_problem {
	uint32_t size;          /**< CPTX_OPT fills it in */
	uint32_t batch;         /**< batches */
	uint32_t heads;         /**< heads of Q and O */
	uint32_t kv_heads;      /**< heads of K and V, which divide those of Q; 0: heads */
	uint32_t queries, keys; /**< rows of a head of Q, and of K and V; below 2^29.  .varlen: of the longest sequence */
	uint64_t q, k, v, o;    /**< device addresses, aligned to 16 */
	uint64_t lse;           /**< with .lse: of batch x heads x queries f32 (.varlen: heads x total_queries), dense, aligned
	                             to 4 */
	cptx_attention_stride q_stride, k_stride, v_stride, o_stride; /**< how they lie */
	float scale;                                                  /**< of the scores, above 0; 0: 1 / sqrt(dim) */
	float softcap;                                                /**< with .softcap: above 0 */
	uint32_t window_left;         /**< with .window: keys in front of the query's place that count; UINT32_MAX: all */
	uint32_t window_right;        /**< with .window: keys behind it; UINT32_MAX: all */
	uint32_t ctas;                /**< wgmma: most CTAs to launch; 0: one for each multiprocessor */
	uint64_t sinks;               /**< with .sinks: of heads f32, natural logarithms, aligned to 4; minus infinity: none */
	uint64_t cu_queries, cu_keys; /**< with .varlen: of batch + 1 u32 each, aligned to 4: sequence b has rows cu[b] to
	                                   cu[b + 1] - 1.  With .page of cu_keys the differences alone count */
	uint32_t total_queries, total_keys; /**< with .varlen: rows of Q and O, and (but with .page) of K and V, in all */
	uint64_t page_table;  /**< with .page: of batch x table_pitch u32, aligned to 4: the pages of each batch, in order */
	uint32_t table_pitch; /**< with .page: entries from batch to batch */
	uint32_t pages;       /**< with .page: pages that K and V have */
	float v_scale;        /**< e4m3: what V is to be multiplied by, above 0; 0: 1 */
	char z_;
} cptx_attention_problem;

/** Resources of a kernel. */
typedef struct cptx_attention_plan {
	uint32_t threads;    /**< threads of a CTA, along x */
	uint32_t smem;       /**< dynamic shared memory, bytes */
	uint32_t dim, dim_v; /**< head sizes that are computed: those of the options, rounded up */
	uint32_t groups;     /**< MMA warpgroups; of mma.sync: warps; of tcgen05: tiles of 128 queries */
	uint32_t regs[2];    /**< registers of a producer's thread and of an MMA warpgroup's; of mma.sync: 0, and an estimate */
	uint64_t tiles;      /**< tiles of queries; only with a problem */
	uint32_t grid;       /**< CTAs of a launch; only with a problem */
	double flop;      /**< 2 * (dim + dim_v) for each score that counts, whatever masks say and as if all sequences were as
	                       long as the longest; only with a problem */
	double ex2_error; /**< what an exponential may be wrong by as a part of it, beside what ex2.approx is: 0 but for tcgen05,
	                       where .fast_ex2 says when */
} cptx_attention_plan;

CPTX_API bool cptx_attention_check_(const cptx_attention_opt *opt, const cptx_target *target, cptx_attention_plan *plan,
                                    size_t size, cptx_error *err);
/** Checks options; false: err names the rule that is broken and what would be right.  target, plan: may be NULL. */
static inline bool cptx_attention_check(const cptx_attention_opt *opt, const cptx_target *target, cptx_attention_plan *plan,
                                        cptx_error *err)
{
	return cptx_attention_check_(opt, target, plan, sizeof *plan, err);
}
CPTX_API bool cptx_attention_check_problem_(const cptx_attention_opt *opt, const cptx_attention_problem *problem,
                                            uint32_t sms, cptx_attention_plan *plan, size_t size, cptx_error *err);
/** Checks options and a problem.  sms: multiprocessors of the device, for the grid.  Addresses are not checked. */
static inline bool cptx_attention_check_problem(const cptx_attention_opt *opt, const cptx_attention_problem *problem,
                                                uint32_t sms, cptx_attention_plan *plan, cptx_error *err)
{
	return cptx_attention_check_problem_(opt, problem, sms, plan, sizeof *plan, err);
}

/** A shape and why it was chosen. */
typedef struct cptx_attention_choice {
	double us;                 /**< time that a model of the H200 predicts */
	double mma_us, softmax_us; /**< of the tensor cores, and of the exponentials and the rest of the softmax */
	double waste;              /**< share of the scores in computed blocks that do not count */
	double tail;               /**< share of the multiprocessors' time that is idle at the end */
	cptx_attention_opt opt;    /**< all options, with the shape filled in; last, since options grow */
} cptx_attention_choice;
CPTX_API size_t cptx_attention_auto_(const cptx_attention_opt *opt, const cptx_attention_problem *problem, uint32_t sms,
                                     cptx_attention_choice *choices, size_t size, size_t room, cptx_error *err);
/**
 * Picks bq, bk, stages, (mma.sync) warps and (wgmma) pack where they are 0 for a problem; all else is taken from opt.
 * Writes the best `room` choices, best first, and returns their number; 0: no kernel can do the problem, and err says why.
 * A choice with a .pack of 0 has one head in a tile.
 */
static inline size_t cptx_attention_auto(const cptx_attention_opt *opt, const cptx_attention_problem *problem, uint32_t sms,
                                         cptx_attention_choice *choices, size_t room, cptx_error *err)
{
	return cptx_attention_auto_(opt, problem, sms, choices, sizeof *choices, room, err);
}

/**
 * Adds the kernel to a module.  A shape of 0: the usual ones for the head size.  NULL on error: err says why (and
 * the module holds it if building failed).  Parameters: those that cptx_attention_launch fills.
 */
CPTX_API cptx_kernel *cptx_attention_build(cptx_module *m, const cptx_attention_opt *opt, cptx_error *err);
/** Prepares a launch of the kernel in `program` (named as opt says) for a problem.  opt: the options that it was built with;
 * others are not always noticed, and then results are wrong, or the kernel waits for ever. */
CPTX_API cptx_launch *cptx_attention_launch(const cptx_program *program, cptx_device *dev, const cptx_attention_opt *opt,
                                            const cptx_attention_problem *problem, cptx_error *err);

/**
 * Runs attention in one call each: it chooses a shape where none is given, or the rest of one with what is given where the
 * usual rest does not fit, builds, compiles (or finds in the cache), loads and launches, and keeps the programs for later
 * calls.
 *
 *   cptx_attention_runner *r = cptx_attention_runner_new(dev, NULL, &err);
 *   cptx_attention_opt opt = { .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16, .dim = 128, .causal = true };
 *   cptx_attention_problem p = { .batch = 1, .heads = 64, .kv_heads = 8, .queries = n, .keys = n, .q = q, .k = k, .v = v,
 *                                .o = o };
 *   cptx_attention_run(r, &opt, &p, stream, &err);
 *
 * Threads: all calls but destroy may be made by many threads at once.
 */
typedef struct cptx_attention_runner cptx_attention_runner;
/** Makes a runner for a device, which must stay open.  cache: for machine code, may be NULL; it stays the caller's and must
 * stay open.  NULL on error. */
CPTX_API cptx_attention_runner *cptx_attention_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err);
/** Frees a runner and its programs; the work that it started must have ended.  NULL is allowed. */
CPTX_API void cptx_attention_runner_destroy(cptx_attention_runner *runner);
/** Starts attention as work of a stream (NULL: the default one); does not wait.  Errors: those of
 * cptx_attention_check_problem, cptx_device_load and cptx_launch_new. */
CPTX_API bool cptx_attention_run(cptx_attention_runner *runner, const cptx_attention_opt *opt,
                                 const cptx_attention_problem *problem, cptx_stream *stream, cptx_error *err);

/** Sets the tuning database that a runner looks into for a shape that is left open, and when it measures: see
 * cptx_gemm_runner_set_tune. */
CPTX_API bool cptx_attention_runner_set_tune(cptx_attention_runner *runner, const cptx_tune_use *use, cptx_error *err);
/** Measures the shapes that the model likes best for the sizes of a problem, and records each in the database: see
 * cptx_tune_measure.  Operands are made here, dense, so the problem needs no addresses.  done: may be NULL. */
CPTX_API bool cptx_attention_measure(cptx_tune *db, cptx_device *dev, const cptx_attention_opt *opt,
                                     const cptx_attention_problem *problem, const cptx_tune_use *use, cptx_tune_done *done,
                                     cptx_error *err);

#ifdef __cplusplus
}
#endif
#endif
