/* SPDX-License-Identifier: MIT */
/*
 * Pipelines: a ring of stages in shared memory that producers fill and consumers empty (sm_90; over cp.async sm_80).
 *
 * Each stage has two mbarriers: `full` completes a phase when its data is there, `empty` when all consumers have let it go.
 * Producers and consumers go from stage to stage with a cursor of their own, which keeps the parity of the phase to wait
 * for.
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
 * Over cp.async there are two more kinds, by the same calls:
 *
 * CPTX_PIPE_CP_ASYNC_GROUPS: all threads produce and consume, and there are no mbarriers.  cptx_pipe_filled closes a group
 * of cp.async (cp.async.commit_group), cptx_pipe_wait_full is cp.async.wait_group and a bar.sync, which also tells that
 * nobody reads the stage of the turn before any more: it is the one to fill next.  Release and wait_empty cost nothing.
 *
 *   cptx_pipe_new(k, &p, .stages = 4, .by = CPTX_PIPE_CP_ASYNC_GROUPS);
 *   cptx_pipe_at to = cptx_pipe_producer(k, &p), at = cptx_pipe_consumer(k, &p);
 *   for (uint32_t i = 0; i < 3; i++) {                      stages - 1 (.ahead) in front of the loop
 *       ... cp.async to stage to.stage, where there is a k-tile i ...
 *       cptx_pipe_filled(k, &p, &to);
 *       cptx_pipe_next(k, &p, &to);
 *   }
 *   CPTX_FOR (k, i, n, 1) {
 *       cptx_pipe_wait_full(k, &p, &at);
 *       CPTX_IF (k, there_is_a_tile_3_further) { ... cp.async to stage to.stage ... }
 *       cptx_pipe_filled(k, &p, &to);                       in each turn
 *       ... use stage at.stage ...
 *       cptx_pipe_next(k, &p, &to);
 *       cptx_pipe_next(k, &p, &at);
 *   }
 *   cptx_pipe_drain(k, &p, &to);                            before the stages are used for something else
 *
 * The tail rule: groups are counted, so cptx_pipe_filled is called in each turn by all threads, also when there is nothing
 * left to copy.  It closes an empty group then, and the last turns wait for the right ones.
 *
 * CPTX_PIPE_CP_ASYNC: mbarriers as above, but cptx_pipe_filled is cp.async.mbarrier.arrive.noinc: it arrives when the
 * thread's copies so far are there.  All threads that copy are producers.  Waits are loops of mbarrier.test_wait, which
 * sm_80 has; .sleeps takes try_wait, for sm_90 and later.
 *
 * cptx_pipe_expect does nothing over cp.async, where bytes are not counted, and cptx_pipe_copied nothing where they are: a
 * producer that calls the one in front of the copies and the other behind them suits all kinds.  Where wgmma or tcgen05
 * reads what cp.async wrote, fence.proxy.async must stand between.
 *
 * What calls emit, with mbarriers: producer and consumer four mov; next add, setp, mov, mad and xor, of one stage xor alone;
 * ahead three mov and a next, go three mov; a wait a loop of try_wait; expect, filled, release and is_full one instruction,
 * release to another CTA and full_of a mapa besides; prepare 2 * stages mbarrier.init, a fence and a branch; drain a wait
 * and a next for each stage.
 *
 * A release does not wait for what ldmatrix and ld of shared memory were asked for: ptxas 13.0 puts nothing in front of
 * mbarrier.arrive, and moves it in front of what takes their values; on an H200 TMA and bulk copies overwrote stages that
 * were still to be read.  Where these fill a stage anew, release it in the next turn of the loop (cptx_pipe_leave), behind
 * the instructions that took its values, or execute fence.proxy.async in front.  The emulator finds loads whose values
 * nobody has taken, in the order of the PTX; bench/sass_pending.py reads machine code.  wgmma and tcgen05 are waited for in
 * any case.
 *
 * Who waits is told by the place: a producer's for empty stages, a consumer's for full ones.  The places of one pipeline are
 * not those of another, also of as many stages.
 *
 * Nothing here does more than the calls of <cptx/insn.h>.  Errors are those of the kernel's module.
 */
#ifndef CPTX_PIPELINE_H
#define CPTX_PIPELINE_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How stages are filled. */
enum cptx_pipe_by {
	CPTX_PIPE_MBARRIER,        /**< by bytes that complete at mbarriers (TMA, bulk copies), or by stores; sm_90 */
	CPTX_PIPE_CP_ASYNC,        /**< by cp.async, which arrives at mbarriers; sm_80 */
	CPTX_PIPE_CP_ASYNC_GROUPS, /**< by groups of cp.async of all threads, without mbarriers; sm_80 */
};

/** What a pipeline is made of. */
typedef struct cptx_pipe_opt {
	uint32_t size;      /**< CPTX_OPT fills it in */
	uint32_t stages;    /**< 1 to 64 */
	uint32_t producers; /**< arrivals on `full` in a phase, beside the bytes: threads that call cptx_pipe_expect or
	                         cptx_pipe_filled; 0: 1.  Not of GROUPS */
	uint32_t consumers; /**< arrivals on `empty` in a phase from one CTA: threads that release; 0: 1.  Not of GROUPS */
	bool cta_release; /**< with multicast: consumers release, and the producer acquires, at the scope of the CTA, as CUTLASS
	                       does.  Enough where they read stages by wgmma or tcgen05 alone and have waited for these; it
	                       spares a fence of the whole GPU in each release (MEMBAR.ALL.GPU in SASS) */
	uint32_t multicast; /**< CTAs whose consumers read what this CTA's producer writes, itself among them; 0: 1.  All of them
	                         release to it */
	enum cptx_pipe_by by; /**< how stages are filled */
	uint32_t ahead;       /**< GROUPS: stages that are filled when the first is waited for, 1 to stages - 1; 0: stages - 1 */
	uint32_t threads;     /**< GROUPS: threads that share the pipeline, a multiple of 32; 0: all of the CTA.  32: those of a
	                           warp, which meet by bar.warp.sync and need no numbered barrier */
	uint32_t named;       /**< GROUPS: the numbered barrier that they meet at, 0 to 15 */
	bool sleeps;          /**< CP_ASYNC: waits by mbarrier.try_wait, sm_90 and later */
	char z_;
} cptx_pipe_opt;

/** A pipeline of a kernel.  Plain data. */
typedef struct cptx_pipe {
	cptx_made made; /**< by which call, in which kernel */
	union {
		cptx_pipe_opt opt;          /**< as given, with what 0 stands for */
		uint64_t reserved_opt_[12]; /**< for options of later versions */
	};
	cptx_val barriers;     /**< address of full[0]; empty[0] is 8 * stages bytes behind it; GROUPS: a constant that
	                            tells it from those of other lines, threads and named barriers */
	uint64_t reserved_[2]; /**< for fields of later versions */
} cptx_pipe;

CPTX_API void cptx_pipe_new_(cptx_kernel *k, cptx_site at, cptx_pipe *p, const cptx_pipe_opt *opt);
/** Declares the barriers, 16 bytes a stage of static shared memory (GROUPS: none): cptx_pipe_new(k, &pipe, .stages = 4). */
#define cptx_pipe_new(...) cptx_pipe_new_x_(__VA_ARGS__, .z_ = 0)
#define cptx_pipe_new_x_(k, p, ...) cptx_pipe_new_((k), CPTX_HERE, (p), CPTX_OPT(cptx_pipe_opt, __VA_ARGS__))

CPTX_API void cptx_pipe_prepare_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_val first);
/** Initializes the barriers in the thread where the predicate holds.  A barrier of the CTA (multicast, pair: of the cluster)
 * must follow, which what is set up besides, such as tensor memory, may need as well. */
#define cptx_pipe_prepare(k, p, first) cptx_pipe_prepare_((k), CPTX_HERE, (p), (first))
CPTX_API void cptx_pipe_init_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_val first);
/** cptx_pipe_prepare with that barrier.  All threads of the CTA (the cluster) pass here.  GROUPS: nothing. */
#define cptx_pipe_init(k, p, first) cptx_pipe_init_((k), CPTX_HERE, (p), (first))

/** Where a producer or consumer stands. */
typedef struct cptx_pipe_at {
	cptx_made made;        /**< by which call, in which kernel */
	cptx_val stage;        /**< .u32, 0 to stages - 1: the stage's data is stage * bytes behind the first's */
	cptx_val parity;       /**< .u32, of the phase to wait for next */
	cptx_val barrier;      /**< .u32 address of the stage's full barrier */
	cptx_val first;        /**< .u32 address of that of stage 0 */
	cptx_val cta;          /**< of those with an `_of`: the other CTA's rank; else NONE */
	uint32_t stages;       /**< of the pipeline */
	cptx_val of;           /**< of the pipeline: its .barriers */
	bool producer;         /**< who waits for empty stages, else for full ones */
	enum cptx_pipe_by by;  /**< of the pipeline.  GROUPS: barrier, first and parity are NONE */
	uint64_t reserved_[2]; /**< for fields of later versions */
} cptx_pipe_at;

CPTX_API cptx_pipe_at cptx_pipe_begin_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, bool producer, cptx_val cta);
/** A producer at stage 0, whose first turn does not wait. */
#define cptx_pipe_producer(k, p) cptx_pipe_begin_((k), CPTX_HERE, (p), true, CPTX_NONE_)
/** A consumer at stage 0, whose first turn waits for data. */
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
CPTX_API void cptx_pipe_skip_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_pipe_at *here, uint32_t n);
/** To the stage n further on, for n groups of consumers that take stages in turns, of which each gives back its own
 * (.consumers: those of a group).  n divides the number of stages: else a group could take a stage for full that another one
 * has yet to read.  Not of groups of cp.async. */
#define cptx_pipe_skip(k, p, here, n) cptx_pipe_skip_((k), CPTX_HERE, (p), (here), (n))

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
/**
 * Waits until all consumers let the stage go.  One thread waits alone only where the others of its warp have nothing to do
 * until they end.  In a warp that goes on all threads wait, known to be one warp by a shuffle as in <cptx/roles.h>, and
 * behind the wait one of them copies.  Else ptxas 13.0 lets the others run on meanwhile, and they overwrite uniform
 * registers that the copies read: addresses are wrong, and a stage is never full.
 */
#define cptx_pipe_wait_empty(k, p, here) cptx_pipe_wait_((k), CPTX_HERE, (p), (here), false)

CPTX_API cptx_val cptx_pipe_is_full_(cptx_kernel *k, cptx_site at, const cptx_pipe_at *here);
/** Whether the stage's data is there already: a predicate, without waiting. */
#define cptx_pipe_is_full(k, here) cptx_pipe_is_full_((k), CPTX_HERE, (here))

CPTX_API void cptx_pipe_filled_(cptx_kernel *k, cptx_site at, const cptx_pipe_at *here, cptx_val bytes);
/** A producer's arrival, announcing bytes that copies will bring (with multicast, all that come to this CTA). */
#define cptx_pipe_expect(k, p, here, bytes) ((void)(p), cptx_pipe_filled_((k), CPTX_HERE, (here), CPTX_V(bytes)))
/** A producer's arrival where it wrote the data by itself.  CP_ASYNC: when its copies so far are there.  GROUPS: closes the
 * group of its copies, also of none. */
#define cptx_pipe_filled(k, p, here) ((void)(p), cptx_pipe_filled_((k), CPTX_HERE, (here), CPTX_NONE_))

/** Behind the copies to a stage, whatever kind: cptx_pipe_filled over cp.async; nothing where cptx_pipe_expect did it. */
#define cptx_pipe_copied(k, p, here) ((void)(p), cptx_pipe_copied_((k), CPTX_HERE, (here)))
CPTX_API void cptx_pipe_copied_(cptx_kernel *k, cptx_site at, const cptx_pipe_at *here);

CPTX_API void cptx_pipe_release_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, const cptx_pipe_at *here, cptx_val when);
/** A consumer's arrival, in the threads where the predicate holds (NONE: in all). */
#define cptx_pipe_release(k, p, here, when) cptx_pipe_release_((k), CPTX_HERE, (p), (here), (when))

/** The stage that a consumer has left and releases in its next turn.  Plain data. */
typedef struct cptx_pipe_left {
	cptx_pipe_at at; /**< the stage: its barrier alone is kept, the other fields are those of the consumer */
	cptx_val when;   /**< .pred of the threads that release it; false in all until there is one */
} cptx_pipe_left;

CPTX_API cptx_pipe_left cptx_pipe_left_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, const cptx_pipe_at *here);
/**
 * Of a consumer at that place, which has left no stage yet: two mov.  In each turn, in front of a wait for the stage behind
 * this one if the pipeline has two stages (in front of any wait if it has one):
 *
 *   cptx_pipe_release(k, &p, &left.at, left.when);
 *   ... wait, use stage at.stage; bar.warp.sync, if a lane releases for its warp: here it delays no ldmatrix ...
 *   cptx_pipe_leave(k, &p, &left, &at, is_lane_0);
 *   cptx_pipe_next(k, &p, &at);
 *
 * The last stage is released by one more cptx_pipe_release where somebody waits for that, such as cptx_pipe_drain.
 */
#define cptx_pipe_left_none(k, p, here) cptx_pipe_left_((k), CPTX_HERE, (p), (here))
CPTX_API void cptx_pipe_leave_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_pipe_left *left,
                               const cptx_pipe_at *here, cptx_val when);
/** The consumer leaves its stage, which the threads where the predicate holds release in the next turn: two mov.  GROUPS:
 * nothing. */
#define cptx_pipe_leave(k, p, left, here, when) cptx_pipe_leave_((k), CPTX_HERE, (p), (left), (here), (when))

CPTX_API void cptx_pipe_drain_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_pipe_at *here);
/** A producer waits until all stages are empty.  With multicast it must not end before: others release to its barriers.
 * GROUPS: all threads wait for all copies and for one another. */
#define cptx_pipe_drain(k, p, here) cptx_pipe_drain_((k), CPTX_HERE, (p), (here))

#ifdef __cplusplus
}
#endif
#endif
