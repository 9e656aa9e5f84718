/* SPDX-License-Identifier: MIT */
/*
 * Order and races: who has seen whose accesses.
 *
 * Agents are the warps of a cluster, and behind them what tells of the end of asynchronous work (an mbarrier, the groups of
 * a warp). Each counts epochs.  A clock says for every agent up to which epoch its accesses have been seen: those of all
 * lanes, and those of some lanes.  Lanes of a warp that learn different things each have a clock (emu_part).  Where clocks
 * are too coarse, they say too much: a race may be missed, but what is found is one, whatever the schedule.
 *
 * "Fenced" is the same for the async proxy: what a proxy fence stands behind, on the way from the access to who knows of it.
 *
 * Of shared memory every word remembers who wrote it last and who has read it since (race/cell.c); asynchronous operations
 * note their bytes when they start, and are unknown to everybody until somebody waits for them (race/async.c).  Global
 * memory: clusters know their own pages in the same manner, and what they touched is compared with that of other clusters
 * between rounds, one cluster after another (race/global.c), so that threads of the host change nothing.
 */
#ifndef CPTX_EMU_RACE_RACE_H
#define CPTX_EMU_RACE_RACE_H

#include "emu/memory/place.h"

typedef struct emu_seen {
	uint32_t all;         /* of all lanes: up to this epoch */
	uint32_t some, lanes; /* of these lanes: up to that one, if it is later */
} emu_seen;

typedef struct emu_clock {
	emu_seen *seen, *fenced; /* n each, by agent */
	uint32_t n;
	uint32_t agent; /* of asynchronous work that tells of its end through this clock; 0: none yet */
} emu_clock;

/* What some lanes know beside what all of their warp know. */
typedef struct emu_part {
	emu_clock clock;
	uint32_t lanes;
} emu_part;

/* What a warp knows. */
typedef struct emu_knowledge {
	emu_clock clock; /* all its lanes */
	emu_part *part;  /* npart of up to a warp's; no lane is in two */
	uint32_t npart;
	uint32_t epoch;     /* of what it does now */
	emu_clock at_fence; /* what it knew at its last fence: what relaxed writes behind that publish */
	emu_clock pending;  /* what relaxed reads have brought: a fence makes it known */
	emu_clock over;     /* what barrier.cluster says is over, also where an arrival was relaxed: no order of memory */
} emu_knowledge;

bool race_grid_init(emu_grid *g);
void race_grid_free(emu_grid *g);
void race_fold(emu_cluster *c);         /* compares what the cluster has touched of global memory with what others have */
bool race_cluster_init(emu_cluster *c); /* its table of locations ... */
void race_cluster_free(emu_cluster *c);
bool race_warp_init(emu_warp *w); /* its clock */
void race_warp_free(emu_warp *w);
void race_cta_free(emu_cta *cta);

/* ---- clocks: what barriers, mbarriers and groups keep ---- */

void clock_free(emu_clock *k);
void clock_move(emu_cluster *c, emu_clock *from, emu_clock *to); /* from knows nothing then; its agent stays */
void clock_join(emu_cluster *c, emu_clock *to, const emu_clock *from);
/* `to` learns what these lanes know and have done; the warp enters a new epoch. */
void clock_release_by(emu_warp *w, uint32_t mask, emu_clock *to);
void clock_known_by(emu_warp *w, uint32_t mask, emu_clock *to); /* what they know, but not what they have done */
void clock_acquire_by(emu_warp *w, uint32_t mask, const emu_clock *from);
void clock_fence_proxy_by(emu_warp *w, uint32_t mask); /* fence.proxy.async */
void clock_warp_sync_by(emu_warp *w, uint32_t mask);   /* these lanes have synchronized */
/* fence, membar: relaxed accesses in front of it acquire, those behind it release.  wide: beyond the cluster. */
void clock_fence_by(emu_warp *w, uint32_t mask, unsigned order, bool wide);
/* A relaxed access releases what a fence in front of it released, and acquires what a fence behind it will. */
void clock_over(emu_warp *w, const emu_clock *from); /* emu_knowledge.over learns it */
void clock_release_relaxed(emu_warp *w, emu_clock *to);
void clock_acquire_relaxed(emu_warp *w, const emu_clock *from);
/* Release, acquire and proxy fence of all lanes of the group that runs. */
void clock_release(emu_warp *w, emu_clock *to);
void clock_acquire(emu_warp *w, const emu_clock *from);
void clock_fence_proxy(emu_warp *w);
void clock_warp_sync(emu_warp *w);

/* ---- accesses ---- */

/*
 * Notes an access by a thread, and makes a finding of a race.  Never ends the run.  With ACCESS_ACQUIRE or ACCESS_RELEASE,
 * and for all that is strong or atomic, it also does what such an access does to clocks.
 */
void race_access(emu_warp *w, const emu_op *op, unsigned lane, const emu_place *place, uint32_t size, unsigned access);

/*
 * Does what race_access does for these lanes, one behind the other, at weak accesses of `each` bytes, `stride` bytes apart
 * (each, or 0 for reads of one element).  The place is that of the first.  Those in `silent` write what is there already.
 */
void race_row(emu_warp *w, const emu_op *op, const emu_place *place, uint32_t each, uint32_t stride, uint32_t lanes,
              uint32_t silent, unsigned access);

/* These bytes of global memory, as far as the lane knows who wrote them, are visible to the async proxy: those of a tensor
 * map that it acquires. */
void race_fence_bytes(emu_warp *w, unsigned lane, const emu_place *place, uint32_t size);

/* ---- asynchronous operations ---- */

/*
 * begin when one is issued; touch for each piece of memory that it will read or write, at once, not when it happens
 * (ACCESS_ASYNC: by the async proxy; cp.async does without).  Until somebody waits for it, all others that touch these bytes
 * race with it. done: whoever acquires `to` from now on has seen it; may be said of several clocks.  grouped: it is of the
 * group that the lane will have waited for when it says race_async_waited(track, group): one track for a warp and kind of
 * groups, groups from 1 on.  arriving: it is known by that number of another track, too.  told: whoever acquires `to` from
 * now on has seen those lanes' operations of the track up to that number.
 */
uint32_t race_async_begin(emu_warp *w, const emu_op *op, unsigned lane); /* a number; 0: nothing is noted */
void race_async_touch(emu_warp *w, uint32_t id, const emu_place *place, uint32_t size, unsigned access);
/* An operation has written there, in global memory: only now other clusters can tell what.  Not for what is atomic. */
void race_async_wrote(emu_warp *w, uint32_t id, const emu_place *place, uint32_t size);
/* The operation writes the same bytes to the same places as another: no race of the two. */
void race_async_same(emu_cluster *c, uint32_t id, uint32_t other);
void race_async_done(emu_cluster *c, uint32_t id, emu_clock *to);
void race_async_grouped(emu_cluster *c, uint32_t id, emu_clock *track, uint32_t group);
void race_async_arriving(emu_cluster *c, uint32_t id, emu_clock *track, uint32_t number);
void race_async_waited(emu_warp *w, uint32_t mask, emu_clock *track, uint32_t group);
void race_async_told(emu_cluster *c, emu_clock *to, const emu_clock *track, uint32_t group, uint32_t lanes);

/* ---- values of ldmatrix and ld.shared that nobody has taken yet ---- */

void race_fetch(emu_warp *w, const emu_op *op); /* it has read them */
void race_take(emu_warp *w, const emu_op *op);  /* an instruction takes registers */
void race_fetched(emu_warp *w);                 /* fence.proxy.async: all are there */
void race_give_back(emu_warp *w);               /* mbarrier.arrive, in front of its release */

/* ---- what was set up by threads for the async proxy: mbarriers ---- */

typedef struct emu_stamp { /* a moment of a lane */
	uint32_t agent, epoch, lane;
} emu_stamp;
emu_stamp race_stamp(const emu_warp *w, unsigned lane);
bool race_saw(const emu_warp *w, unsigned lane, emu_stamp s);    /* it is ordered before what the lane does now */
bool race_fenced(const emu_warp *w, unsigned lane, emu_stamp s); /* and has a proxy fence on the way */
bool race_over(const emu_warp *w, emu_stamp s); /* barrier.cluster says that it is over: no order of memory */

#endif
