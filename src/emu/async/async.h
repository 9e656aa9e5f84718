/* SPDX-License-Identifier: MIT */
/* Groups of asynchronous operations that threads start: of cp.async. */
#ifndef CPTX_EMU_ASYNC_ASYNC_H
#define CPTX_EMU_ASYNC_ASYNC_H

#include "emu/core/code.h"
#include "emu/race/race.h"

/* An instruction of some lanes that has started something, until it and all older ones are over. */
typedef struct async_member {
	struct async_member *next;
	uint64_t number; /* counts them in each warp */
	uint32_t busy;   /* lanes whose work is under way */
	uint32_t group[WARP];
	uint32_t late[WARP]; /* numbers in race.h */
} async_member;

typedef struct async_groups {
	async_member *first;   /* the oldest */
	async_member **end;    /* where the next one goes, unless there is none */
	uint64_t last;         /* number */
	uint64_t oldest[WARP]; /* of each lane the number of the oldest that is busy; 0: none is */
	uint32_t closed[WARP];
	uint32_t arrived[WARP]; /* how many times the lane has arrived at mbarriers by them */
	emu_clock track, arrivals;
	bool blocked; /* lanes wait */
} async_groups;

struct emu_async_state {
	async_groups copies;
	struct async_arrival *arrivals; /* of cp.async.mbarrier.arrive, that wait for copies; the oldest */
	struct async_arrival **end;     /* where the next one goes, unless there is none */
};

/* The state of a warp, made when first asked for; NULL and a finding when memory is short. */
struct emu_async_state *async_state(emu_warp *w);
/* Into the open groups of these lanes; NULL and a finding when memory is short.  Its `late` is for the caller to fill by
 * async_note. */
async_member *async_add(emu_warp *w, async_groups *g, uint32_t mask);
/* What a lane of it reads (ACCESS_READ) or writes, for races. */
void async_note(emu_warp *w, const emu_op *op, async_groups *g, async_member *m, unsigned lane, const emu_place *p,
                uint32_t size, unsigned access);
void async_over(emu_warp *w, async_groups *g, async_member *m, uint32_t mask); /* the work of these lanes is done */
void async_close(async_groups *g, uint32_t mask);                              /* commit_group */
/* STEP_NEXT: none of the lanes has more than `most` closed groups under way. */
enum emu_step async_wait(emu_warp *w, const emu_op *op, async_groups *g, uint32_t mask, uint32_t most, const char *what);
void emu_async_state_free(emu_warp *w);

#endif
