/* SPDX-License-Identifier: MIT */
/*
 * The asynchronous operations of a cluster that are not done yet.  Operations of a pipe are done in the order in which they
 * were started: one may be done when it is at the front of its pipe and due.  Each step costs a logarithm of how many there
 * are.
 */
#ifndef CPTX_EMU_CORE_QUEUE_H
#define CPTX_EMU_CORE_QUEUE_H

#include "emu/core/types.h"

enum { QUEUE_CHOICES = 32 /* of the oldest that may be done, one is drawn */ };

/* The least one first; by_due: by the step at which it is due, else by number. */
typedef struct emu_heap {
	emu_async **at;
	uint32_t n;
	bool by_due;
} emu_heap;

typedef struct emu_pipe {
	uint32_t id;
	emu_async *first, *last; /* NULL: it is empty */
} emu_pipe;

typedef struct emu_queue {
	emu_async *first, *last; /* all, in the order in which they were started */
	uint64_t started;
	uint32_t n, cap;
	emu_heap due, later; /* those at the front of their pipes, oldest first */
	emu_heap time;       /* those of `later` whose step will come */
	emu_pipe *pipe;
	uint32_t npipe;
	size_t cap_pipe;
} emu_queue;

/* Puts an operation behind the others; false: memory is short, and it is never done. */
bool emu_queue_add(emu_queue *q, emu_async *a, uint64_t step);
/* Takes one away: it is done. */
void emu_queue_remove(emu_queue *q, emu_async *a, uint64_t step);
bool emu_queue_is_front(const emu_queue *q, const emu_async *a); /* of its pipe */
/* How many may be drawn, up to QUEUE_CHOICES; `early`: those too that are not due yet. */
uint32_t emu_queue_choices(emu_queue *q, uint64_t step, bool early);
/* The kth oldest of them, from 0. */
emu_async *emu_queue_choice(const emu_queue *q, uint32_t k, bool early);
void emu_queue_free(emu_queue *q); /* the arrays; operations are the caller's */

#endif
