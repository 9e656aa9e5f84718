/* SPDX-License-Identifier: MIT */
/* Clusters: their CTAs, barriers, and the queue of asynchronous operations (queue.c). */
#ifndef CPTX_EMU_CORE_CLUSTER_H
#define CPTX_EMU_CORE_CLUSTER_H

#include "emu/core/queue.h"
#include "emu/core/warp.h"
#include "emu/memory/view.h"

/* A barrier of a CTA (bar, barrier). */
typedef struct emu_barrier {
	uint32_t expected, arrived; /* threads; expected 0: nobody has come */
	uint32_t generation;
	uint32_t count, voted;   /* of bar.red: so far */
	uint32_t popc, all, any; /* of the last generation */
	emu_clock clock, passed;
	emu_clock over, all_over; /* of barrier.cluster: what those who came have done and know; of the last generation */
} emu_barrier;

struct emu_cta {
	emu_cluster *cluster;
	uint32_t rank;
	uint32_t id[3];
	unsigned char *shared;
	uint32_t shared_bytes;   /* without what comes before SHARED_FIRST, with what lies between variables */
	uint8_t *shared_defined; /* a bit per byte */
	struct emu_shadow *shadow;
	emu_warp *warp;
	uint32_t nwarp, nthread;
	emu_barrier barrier[16];
	struct emu_mbarrier *mbarriers; /* mbarrier.c */
	struct emu_tmem *tmem;          /* tcgen05 */
	uint32_t free_registers;        /* that setmaxnreg.dec has given up */
};

struct emu_async {
	emu_async *previous, *next; /* of the queue, in the order in which they were started */
	emu_async *behind;          /* the next one of its pipe */
	uint64_t number;            /* counts them */
	uint64_t due;
	uint32_t at, at_time; /* places in heaps of the queue; at: in `later` if it waits, else in `due` */
	bool waits;
	bool turn;     /* changes what orders clusters: only in the cluster's turn */
	uint32_t pipe; /* operations of the same pipe are done in the order they were started; 0: in any order */
	/* Does it, or a part of it.  True: done, and freed by the queue. */
	bool (*run)(emu_cluster *c, emu_async *a);
	void (*drop)(emu_async *a); /* frees what it has beside itself; may be NULL */
	emu_warp *w;                /* who started it */
	unsigned lane;
	const emu_op *op;
	uint32_t starter;             /* explore.h's */
	uint64_t begun, bytes, flops; /* trace.c's */
};

struct emu_cluster {
	emu_grid *grid;
	uint64_t number;
	uint32_t id[3];
	emu_cta *cta;
	uint32_t ncta, nwarp /* of all */, live /* warps */;
	uint64_t step, idle; /* time; how much of it was spent with nothing to do: the rest are instructions of warps, */
	uint64_t spent;      /* and these: long ones count as several */
	uint64_t work;       /* what the limit of the launch counts beside steps: emu_spend */
	uint64_t progress;   /* counts what may wake a waiter */
	uint64_t idle_seen;
	uint64_t changes,
		changes_seen;          /* counts changes of memory, barriers, queues; how many there were behind the last round */
	uint64_t random;           /* state of its own generator */
	bool parts;                /* lanes of a warp part at events */
	bool holds;                /* warp `held` goes last */
	uint32_t held, held_turns; /* held_turns: turns of other warps since `changes` was held_changes */
	uint64_t held_changes;
	emu_queue queue;
	bool turn;              /* may do what orders clusters */
	emu_warp *wants;        /* STOP_TURN: who, */
	emu_async *wants_async; /* or this first */
	emu_barrier barrier;    /* barrier.cluster */
	uint64_t *hits;         /* thread-instructions, by operation */
	struct emu_traffic *traffic;
	cptx_emu_counters counters;
	struct emu_races *races; /* NULL: none are looked for */
	emu_view view;
	struct emu_tensormaps *maps; /* tensormap.c: those that threads have changed; may be NULL */
	struct emu_found *found;     /* since the last round */
	size_t nfound[2];            /* by rank */
	bool failed, no_memory;
	bool fold;               /* its log of accesses is full, or its view: the round ends early */
	struct emu_trace *trace; /* NULL: nobody looks */
	buf printed;             /* by vprintf since the last round */
	bool print_lost;         /* more than the launch may print */
	bool none_left;          /* clusterlaunchcontrol: it has seen that no cluster can be cancelled any more */
};

/* False when memory is short; the cluster must be freed all the same. */
bool emu_cluster_init(emu_cluster *c, emu_grid *g, uint64_t number);
void emu_cluster_free(emu_cluster *c);
enum emu_stop emu_cluster_run(emu_cluster *c, uint32_t n);
void emu_block_id(const emu_grid *g, uint64_t cluster, uint32_t rank, uint32_t id[3]);
void emu_cluster_turn(emu_cluster *c); /* what it stopped for with STOP_TURN */
/* One instruction of a warp, one part of an operation: for the explorer, under which a cluster always has its turn. */
void emu_cluster_step(emu_cluster *c, emu_warp *w);
void emu_cluster_async(emu_cluster *c, emu_async *a);
uint32_t emu_random(emu_cluster *c, uint32_t below);
/* Puts an async operation into the queue; it was malloced, and is freed when done.  False: the run ends. */
bool emu_async_start(emu_cluster *c, emu_async *a);
/* An instruction that does so many bytes at once is as long as several, but takes a step as others do. */
static inline void emu_spend(emu_cluster *c, uint64_t bytes)
{
	enum { BYTES_OF_A_STEP = 1024 };

	c->work += bytes / BYTES_OF_A_STEP;
}
/* Executes one part of one pending operation that may happen now; false: there is none. */
bool emu_async_step(emu_cluster *c, bool force);

#endif
