/* SPDX-License-Identifier: MIT */
/*
 * All orders of a launch that can matter (schedule CPTX_EMU_ALL).
 *
 * A launch is executed again and again from the same memory, one event at a time: a warp goes on up to the next instruction
 * that others may notice (OP_EVENT), or an asynchronous operation does its next part.  What an event touches that orders
 * threads (mbarriers, atomic and strong accesses, barriers) is noted, and from that follows which events could have come in
 * the other order: only there another order is tried (dynamic partial-order reduction with sleep sets).  Weak accesses are
 * no events, because races are found by who has seen what, in every order.
 */
#ifndef CPTX_EMU_CORE_EXPLORE_H
#define CPTX_EMU_CORE_EXPLORE_H

#include "emu/core/grid.h"
#include "emu/memory/place.h"

enum emu_touch_kind {
	TOUCH_READ,   /* memory */
	TOUCH_WRITE,  /* memory, or the beginning and the end of an mbarrier */
	TOUCH_ADD,    /* memory: a reduction of integers, which commutes with those of its kind and gives nothing back */
	TOUCH_COME,   /* to a barrier, or the end of what is waited for in groups */
	TOUCH_GO,     /* on behind a barrier or the wait for groups: all who came in that phase come first */
	TOUCH_ARRIVE, /* an mbarrier: an arrival, or bytes */
	TOUCH_PASS,   /* an mbarrier: a wait that has succeeded */
	TOUCH_FAIL    /* the same, in vain */
};
enum emu_object {
	OBJECT_MBARRIER = 1,
	OBJECT_BARRIER,
	OBJECT_CLUSTER,
	OBJECT_GROUPS,
	OBJECT_SHARED,
	OBJECT_GLOBAL,
	OBJECT_LIFE /* of a CTA, for others of its cluster */
};

typedef struct emu_touch {
	uint64_t object;
	uint8_t kind;
	uint64_t phase; /* of an mbarrier, in front of the event; generation of a barrier; TOUCH_ADD: operation and type */
	bool completes; /* TOUCH_ARRIVE, TOUCH_COME: the phase */
	bool once;      /* TOUCH_PASS, TOUCH_FAIL: test_wait, which need not be tried again */
	bool last;      /* TOUCH_ARRIVE: behind it no arrivals are pending */
	uint8_t more;   /* TOUCH_ARRIVE, enum emu_more: what the phase waits for in addition from now on */
	uint32_t count; /* TOUCH_COME: threads that the instruction names, 0 if all are meant; or TOUCH_EXITS */
	uint64_t seen;  /* TOUCH_GO: the last generation that was over by then */
} emu_touch;
enum emu_more { MORE_BYTES = 1, MORE_ARRIVALS };
#define TOUCH_EXITS UINT32_MAX /* a warp that has ended: it comes to all barriers that name no number */

typedef struct emu_explorer emu_explorer;

/* The name of an object: place is a number in the CTA, an offset or an address. */
uint64_t emu_object(const emu_cluster *c, uint32_t rank, enum emu_object kind, uint64_t place);
/* Notes what the event that is executed now touches; does nothing where orders are not explored. */
void emu_touch_note(emu_cluster *c, emu_touch t);
static inline void emu_touched(emu_cluster *c, const emu_grid *g, emu_touch t)
{
	if (g->explorer)
		emu_touch_note(c, t);
}
/* Notes each grain of memory that an access of `size` bytes touches; does nothing where orders are not explored. */
void emu_touch_memory(emu_warp *w, const emu_op *op, const emu_place *p, uint32_t size, unsigned access);
/* An asynchronous operation has combined what it copies with what was there: no event of its own. */
void emu_touch_reduction(emu_cluster *c, const emu_op *op);
/* An operation was started by the event that is executed now. */
void emu_explore_started(emu_cluster *c, emu_async *a);

/* Runs the clusters of the grid in the order that the explorer wants; false: memory is short. */
bool emu_explore_grid(emu_grid *g);
typedef bool emu_once_fn(emu_image *image, const launch_shape *s, const void *params, uint32_t size, cptx_site at,
                         emu_explorer *x, cptx_error *err);
/* Runs a launch in all orders, by `once`, and leaves what the first one left, or the first in which something is wrong. */
bool emu_explore(emu_once_fn *once, emu_image *image, const launch_shape *s, const void *params, uint32_t size, cptx_site at,
                 cptx_error *err);

#endif
