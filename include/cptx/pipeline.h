/* SPDX-License-Identifier: MIT */
/*
 * Pipelines: a ring of stages in shared memory that producers fill and consumers empty (sm_90 and later).
 *
 * Each stage has two mbarriers: `full` completes a phase when its data is there, `empty` when all consumers have let it go.
 * Producers and consumers walk over the stages with a cursor of their own, which keeps the parity of the phase to wait for.
 *
 *   cptx_pipe p;
 *   cptx_pipe_new(k, &p, .stages = 4, .consumers = 2);      in front of the roles, by all threads
 *   cptx_pipe_init(k, &p, is_first_thread);                 by all threads: barriers are ready behind it
 *   CPTX_IF (k, is_producer) {                              one thread
 *       cptx_pipe_at at = cptx_pipe_producer(k, &p);
 *       CPTX_FOR (k, i, n, 1) {
 *           cptx_pipe_wait_empty(k, &p, &at);
 *           cptx_pipe_expect(k, &p, &at, bytes);
 *           ... cp.async.bulk.tensor to stage at.stage, with cptx_pipe_full(&at) ...
 *           cptx_pipe_next(k, &p, &at);
 *       }
 *       cptx_pipe_drain(k, &p, &at);
 *   }
 *   CPTX_ELSE (k) {                                         two warps, say
 *       cptx_pipe_at at = cptx_pipe_consumer(k, &p);
 *       CPTX_FOR (k, i, n, 1) {
 *           cptx_pipe_wait_full(k, &p, &at);
 *           ... use stage at.stage ...
 *           cptx_pipe_release(k, &p, &at, is_lane_0);
 *           cptx_pipe_next(k, &p, &at);
 *       }
 *   }
 *
 * Nothing here does more than the calls of <cptx/insn.h>.  Errors are those of the kernel's module.
 */
#ifndef CPTX_PIPELINE_H
#define CPTX_PIPELINE_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a pipeline is made of. */
typedef struct cptx_pipe_opt {
	uint32_t stages;    /**< 1 to 64 */
	uint32_t producers; /**< arrivals on `full` in a phase, beside the bytes: threads that call cptx_pipe_expect or
	                         cptx_pipe_filled; 0: 1 */
	uint32_t consumers; /**< arrivals on `empty` in a phase from one CTA: threads that release; 0: 1 */
	bool cta_release; /**< with multicast: consumers release, and the producer acquires, at the scope of the CTA, as CUTLASS
	                       does.  Enough where they read stages by wgmma or tcgen05 alone and have waited for these; it
	                       spares a fence of the whole GPU in each release (MEMBAR.ALL.GPU in SASS) */
	uint32_t multicast; /**< CTAs whose consumers read what this CTA's producer writes, itself among them; 0: 1.  All of them
	                         release to it */
	char z_;
} cptx_pipe_opt;

/** A pipeline of a kernel.  Plain data. */
typedef struct cptx_pipe {
	cptx_pipe_opt opt; /**< as given, with what 0 stands for */
	cptx_val barriers; /**< address of full[0]; empty[0] is 8 * stages bytes behind it */
} cptx_pipe;

CPTX_API void cptx_pipe_new_(cptx_kernel *k, cptx_site at, cptx_pipe *p, const cptx_pipe_opt *opt);
/** Declares the barriers, 16 bytes a stage of static shared memory: cptx_pipe_new(k, &pipe, .stages = 4). */
#define cptx_pipe_new(...) cptx_pipe_new_x_(__VA_ARGS__, .z_ = 0)
#define cptx_pipe_new_x_(k, p, ...) cptx_pipe_new_((k), CPTX_HERE, (p), CPTX_OPT_(cptx_pipe_opt, __VA_ARGS__))

CPTX_API void cptx_pipe_prepare_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_val first);
/** Initializes the barriers in the thread where the predicate holds.  A barrier of the CTA (multicast, pair: of the cluster)
 * must follow, which what is set up besides, such as tensor memory, may need as well. */
#define cptx_pipe_prepare(k, p, first) cptx_pipe_prepare_((k), CPTX_HERE, (p), (first))
CPTX_API void cptx_pipe_init_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_val first);
/** The same with that barrier.  All threads of the CTA (the cluster) pass here. */
#define cptx_pipe_init(k, p, first) cptx_pipe_init_((k), CPTX_HERE, (p), (first))

/** Where a producer or consumer stands. */
typedef struct cptx_pipe_at {
	cptx_val stage;   /**< .u32, 0 to stages - 1: the stage's data is stage * bytes behind the first's */
	cptx_val parity;  /**< .u32, of the phase to wait for next */
	cptx_val barrier; /**< .u32 address of the stage's full barrier */
	cptx_val first;   /**< .u32 address of that of stage 0 */
	cptx_val cta;     /**< of those with an `_of`: the other CTA's rank; else NONE */
	uint32_t stages;  /**< of the pipeline */
} cptx_pipe_at;

CPTX_API cptx_pipe_at cptx_pipe_begin_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, bool producer, cptx_val cta);
/** At stage 0.  The first turn of a producer does not wait. */
#define cptx_pipe_producer(k, p) cptx_pipe_begin_((k), CPTX_HERE, (p), true, CPTX_NONE_)
/** The same of a consumer, whose first turn waits for data. */
#define cptx_pipe_consumer(k, p) cptx_pipe_begin_((k), CPTX_HERE, (p), false, CPTX_NONE_)
/** With multicast: this thread releases to the CTA of that rank in the cluster.  For each consumer, one thread for each CTA
 * of opt.multicast releases: lanes 0 to multicast - 1 of a warp, say, each with a rank of its own. */
#define cptx_pipe_consumer_of(k, p, cta) cptx_pipe_begin_((k), CPTX_HERE, (p), false, (cta))

/** Of a pair of CTAs that tcgen05.mma reads together: this thread's copies count at the full barrier of the CTA of that
 * rank, which announces the bytes of both; it waits for empty barriers of its own CTA, by multicast commits. */
#define cptx_pipe_producer_of(k, p, cta) cptx_pipe_begin_((k), CPTX_HERE, (p), true, (cta))

CPTX_API void cptx_pipe_next_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_pipe_at *here);
/** To the next stage. */
#define cptx_pipe_next(k, p, here) cptx_pipe_next_((k), CPTX_HERE, (p), (here))

CPTX_API cptx_pipe_at cptx_pipe_ahead_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, const cptx_pipe_at *here);
/** The next stage, in registers of its own: to ask for it (cptx_pipe_is_full) before this one is released. */
#define cptx_pipe_ahead(k, p, here) cptx_pipe_ahead_((k), CPTX_HERE, (p), (here))
CPTX_API void cptx_pipe_go_(cptx_kernel *k, cptx_site at, cptx_pipe_at *here, const cptx_pipe_at *ahead);
/** To the stage that cptx_pipe_ahead gave. */
#define cptx_pipe_go(k, here, ahead) cptx_pipe_go_((k), CPTX_HERE, (here), (ahead))

/** The full barrier of the stage, for copies.  It costs no instruction, nor does that of tcgen05.commit, cptx_pipe_empty. */
static inline cptx_val cptx_pipe_full(const cptx_pipe_at *here) { return here->barrier; }
/** The empty barrier of the stage. */
static inline cptx_val cptx_pipe_empty(const cptx_pipe_at *here)
{
	return cptx_offset(here->barrier, 8 * (int64_t)here->stages);
}

CPTX_API cptx_val cptx_pipe_full_of_(cptx_kernel *k, cptx_site at, const cptx_pipe_at *here);
/** The full barrier where the copies of a cptx_pipe_producer_of count. */
#define cptx_pipe_full_of(k, here) cptx_pipe_full_of_((k), CPTX_HERE, (here))

CPTX_API void cptx_pipe_wait_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, const cptx_pipe_at *here, bool full);
/** Waits until the stage's data is there. */
#define cptx_pipe_wait_full(k, p, here) cptx_pipe_wait_((k), CPTX_HERE, (p), (here), true)
/** Waits until all consumers let the stage go. */
#define cptx_pipe_wait_empty(k, p, here) cptx_pipe_wait_((k), CPTX_HERE, (p), (here), false)

CPTX_API cptx_val cptx_pipe_is_full_(cptx_kernel *k, cptx_site at, const cptx_pipe_at *here);
/** Whether the stage's data is there already: a predicate, without waiting. */
#define cptx_pipe_is_full(k, here) cptx_pipe_is_full_((k), CPTX_HERE, (here))

CPTX_API void cptx_pipe_filled_(cptx_kernel *k, cptx_site at, const cptx_pipe_at *here, cptx_val bytes);
/** A producer's arrival, announcing bytes that copies will bring (with multicast, all that come to this CTA). */
#define cptx_pipe_expect(k, p, here, bytes) ((void)(p), cptx_pipe_filled_((k), CPTX_HERE, (here), CPTX_V(bytes)))
/** A producer's arrival where it wrote the data by itself. */
#define cptx_pipe_filled(k, p, here) ((void)(p), cptx_pipe_filled_((k), CPTX_HERE, (here), CPTX_NONE_))

CPTX_API void cptx_pipe_release_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, const cptx_pipe_at *here, cptx_val when);
/** A consumer's arrival, in the threads where the predicate holds (NONE: in all). */
#define cptx_pipe_release(k, p, here, when) cptx_pipe_release_((k), CPTX_HERE, (p), (here), (when))

CPTX_API void cptx_pipe_drain_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_pipe_at *here);
/** A producer waits until all stages are empty.  With multicast it must not end before: others release to its barriers. */
#define cptx_pipe_drain(k, p, here) cptx_pipe_drain_((k), CPTX_HERE, (p), (here))

#ifdef __cplusplus
}
#endif
#endif
