/* SPDX-License-Identifier: MIT */
/* The inside of the exploration of orders: explore.c, explore_run.c. */
#ifndef CPTX_EMU_CORE_EXPLORER_H
#define CPTX_EMU_CORE_EXPLORER_H

#include "emu/core/cluster.h"
#include "emu/core/explore.h"

enum { EXPLORED_EVENTS = 4096 /* most of one execution */ };
/* Who does something: a warp, by its cluster and its number there; or an operation, by the number that its cluster gave it.
 */
#define EXPLORED_ASYNC (UINT64_C(1) << 62)
#define EXPLORED_NOBODY UINT64_MAX
enum { EXPLORED_CLUSTER = 32 /* bits of numbers */ };

typedef struct explored_event {
	uint64_t who;
	emu_touch *touch;
	uint32_t ntouch, cap;
	uint32_t starter; /* of an operation: number of the event that started it + 1 */
	uint64_t state;   /* of the warp in front of it: emu_warp_state */
	bool quiet;       /* of a warp: it has changed nothing but its registers */
	uint64_t *after;  /* a bit for each event in front that must stay there */
	const emu_op *op; /* its first instruction */
	uint32_t warp, rank;
} explored_event;

/* Who was tried, and what its event touched. */
typedef struct explored_sleep {
	uint64_t who;
	emu_touch *touch;
	uint32_t ntouch;
} explored_sleep;

typedef struct explored_node {
	uint64_t *can, *todo, chosen;
	uint32_t ncan, ntodo, nsleep;
	explored_sleep *sleep;
} explored_node;

struct emu_explorer {
	explored_node *node; /* those of the path that is executed, and of what is left of the one before */
	uint32_t nnode, cap_node;
	explored_event *event;
	uint32_t nevent, depth /* events executed so far */;
	explored_event *now;
	uint64_t last;          /* who went on last */
	const uint64_t *replay; /* who goes on, event by event; EXPLORED_NOBODY: as usual.  NULL: the nodes tell */
	uint32_t nreplay;
	uint64_t work; /* of all executions, in comparisons of events */
	bool no_memory, too_long;
	bool trial;   /* the execution is forgotten */
	bool inside;  /* of an event: its first instruction is over */
	bool reduces; /* asynchronously, in a way that depends on the order */
	bool missed;  /* an instruction that others may notice was not the first of its event */
	bool pruned;  /* the execution was ended: what would come of it is known */
};

/* Who goes on, of those who can; EXPLORED_NOBODY: the execution need not go on. */
uint64_t explorer_choose(emu_explorer *x, const uint64_t *can, uint32_t n);
uint64_t explorer_default(const emu_explorer *x, const uint64_t *can, uint32_t n, const explored_node *node);
bool explorer_look(emu_explorer *x);           /* at an execution: what else is to be tried.  False: memory is short */
bool explorer_next(emu_explorer *x);           /* the next path; false: there is none */
uint64_t explorer_left(const emu_explorer *x); /* paths that are known and were not tried */
void explorer_forget_events(emu_explorer *x);
void explorer_free(emu_explorer *x);

#endif
