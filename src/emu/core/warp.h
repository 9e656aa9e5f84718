/* SPDX-License-Identifier: MIT */
/* Warps: groups of lanes that are at the same place, and the frames of their calls (warp.c). */
#ifndef CPTX_EMU_CORE_WARP_H
#define CPTX_EMU_CORE_WARP_H

#include "emu/core/code.h"
#include "emu/race/race.h"

enum emu_group_state { GROUP_RUN, GROUP_CONVERGE /* waits for other lanes of the warp */, GROUP_WAIT /* for an event */ };

/* What a group waits for, for the report of a deadlock; written by whoever blocks it. */
typedef struct emu_waiting {
	const emu_op *op;
	const char *what; /* "barrier", "mbarrier", ... */
	uint32_t where;   /* its number or address */
	uint32_t phase;
} emu_waiting;

typedef struct emu_frame emu_frame;
typedef struct emu_hole emu_hole;
struct emu_frame {
	emu_warp *w;
	emu_frame *caller;
	const emu_function *f;
	const emu_op *call; /* of the caller */
	uint32_t back;      /* place in the caller's code */
	uint32_t depth, refs;
	uint32_t *r;          /* f->words; the pointer in front of it leads here */
	unsigned char *param; /* 32 * f->param_bytes */
	uint8_t *param_defined;
	emu_hole **hole; /* of registers that are undefined in part: undefined.h */
	uint32_t nhole;
	size_t cap_hole;
	uint32_t local[WARP]; /* where its locals begin in each lane's local memory */
	uint32_t gaps;        /* bytes between variables, which the limit does not count: its own and its callers' */
};

typedef struct emu_group {
	uint32_t mask, pc;
	uint32_t need; /* GROUP_CONVERGE: these lanes, as far as they live */
	emu_frame *frame;
	uint8_t state;
	uint8_t polled; /* its last poll failed, at this `progress` of the cluster */
	uint64_t progress;
	uint64_t order;  /* who yields goes behind the others */
	uint8_t arrived; /* at the barrier that it waits at, in this generation of it */
	uint32_t generation;
	emu_waiting waiting;
} emu_group;

typedef struct bulk_first { /* sum: a hash of what is copied where; late: its number in race.h */
	const emu_op *op;
	uint64_t step, sum, late;
} bulk_first;

/* Bulk copies from shared memory (bulk.c), by lane: groups are counted from 1 on. */
/* Stores of a lane that are not yet read; that are not yet done.  The oldest comes first. */
enum { BULK_UNREAD, BULK_UNDONE, BULK_LISTS };
typedef struct bulk_list {
	struct bulk_copy *first, *last;
} bulk_list;

typedef struct emu_bulk {
	uint32_t committed[WARP], last[WARP] /* group with a copy */, waited[WARP] /* for reads at least */;
	const emu_op *store[WARP]; /* the latest, of group `last` */
	emu_clock read, done;
	bulk_list list[WARP][BULK_LISTS];
	bulk_first first; /* the last store that was the first of its instruction */
} emu_bulk;

/* What stall.c has seen of a warp while nothing changed. */
typedef struct emu_rounds {
	uint64_t since;             /* emu_warp.chosen, when the last change was */
	uint64_t state[16], at[16]; /* states, and emu_warp.chosen then */
	unsigned next;
	bool loops;
} emu_rounds;

struct emu_warp {
	uint32_t *r;  /* registers of the group that runs */
	emu_group *g; /* the same */
	emu_cta *cta;
	emu_cluster *cluster;
	emu_grid *grid;
	uint32_t number; /* in the CTA */
	uint32_t agent;  /* in the cluster */
	uint32_t lanes, exited;
	emu_group group[WARP];
	unsigned ngroup;
	uint64_t order;  /* of groups */
	uint64_t chosen; /* counts choices of groups */
	emu_rounds seen;
	uint32_t streak;                               /* choices since the last change of it */
	uint32_t carry;                                /* the flag of add.cc; of sub.cc: its complement is borrowed */
	uint32_t at_cluster, cluster_generation[WARP]; /* lanes that have arrived at barrier.cluster, and when */
	uint32_t sp[WARP];                             /* of local memory */
	unsigned char *local;                          /* 32 * local_cap, lane by lane */
	uint8_t *local_defined;                        /* a bit for each of its bytes */
	uint32_t local_cap;                            /* a multiple of 8 */
	emu_knowledge know;
	uint64_t at[WARP]; /* what addresses that lanes gave last lead to: an address, or CTA and offset of shared memory */
	uint8_t at_space[WARP];
	emu_alloc *last; /* of global memory, used most recently */
	bool everywhere; /* it may use memory of any device now: multimem */
	/* Of emu/exec, zero at first: */
	emu_bulk bulk;
	struct emu_wgmma *wgmma;
	struct emu_tcgen05 *tcgen05;
	struct emu_fetches *fetches;   /* of race/fetched.c */
	struct emu_async_state *async; /* open groups of cp.async, bulk copies, wgmma ... */
	uint32_t nreg;                 /* that setmaxnreg has left a thread; 0: those of the launch */
};

enum emu_stop { STOP_QUANTUM, STOP_TURN, STOP_DONE, STOP_STUCK, STOP_FAULT };
void emu_warp_start(emu_warp *w);
/* Runs up to `n` instructions. */
enum emu_stop emu_warp_run(emu_warp *w, uint32_t n);
bool emu_warp_can_run(const emu_warp *w);
/* The instruction that emu_warp_run would execute next; NULL: none. */
const emu_op *emu_warp_next(emu_warp *w);
/* The group that ran last polls in a loop: it goes on when something has happened. */
void emu_warp_poll(emu_warp *w);
emu_group *emu_group_split(emu_warp *w,
                           uint32_t mask); /* a new group of these lanes of the running one, at the same place */
/* The running group executes the instruction again once these lanes have joined it, or exited. */
enum emu_step emu_group_converge(emu_warp *w, const emu_op *op, uint32_t need);
void emu_group_end(emu_warp *w); /* all lanes of the running group exit */
enum emu_step emu_group_block(emu_warp *w, const emu_op *op, const char *what, uint32_t where, uint32_t phase);
void emu_wake(emu_cluster *c); /* something happened that blocked groups may wait for: all try again */
/* Whether another call is within the limits of calls in one another and of local memory. */
bool emu_frame_fits(const emu_warp *w, const emu_function *f, const emu_frame *caller, uint32_t mask);
emu_frame *emu_frame_new(emu_warp *w, const emu_function *f, emu_frame *caller, uint32_t mask); /* NULL: not, or no memory */
void emu_frame_drop(emu_warp *w, emu_frame *f);
/* Whether `size` bytes at `at` of local memory are within its limit, in a call. */
bool emu_local_fits(const emu_frame *f, uint64_t at, uint64_t size);
/* Makes room for them in each lane's local memory; false: too much of it, or out of memory. */
bool emu_reserve_local(emu_warp *w, const emu_frame *f, uint64_t at, uint64_t size);
/* Nobody has written there yet. */
void emu_fresh_local(emu_warp *w, unsigned lane, uint64_t at, uint64_t size);
/* The call whose part of local memory the address lies in. */
static inline const emu_frame *emu_frame_of(const emu_warp *w, unsigned lane, uint64_t addr)
{
	const emu_frame *f = w->g->frame;

	while (addr < f->local[lane] && f->caller)
		f = f->caller;
	return f;
}
static inline uint32_t emu_live(const emu_warp *w) { return w->lanes & ~w->exited; }

#endif
