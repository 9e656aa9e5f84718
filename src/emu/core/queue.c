/* SPDX-License-Identifier: MIT */
#include "emu/core/queue.h"
#include "emu/core/cluster.h"

#include <stdlib.h>

/* ---- heaps ---- */

static bool before(const emu_heap *h, const emu_async *a, const emu_async *b)
{
	return h->by_due ? a->due < b->due : a->number < b->number;
}

static void set(const emu_heap *h, uint32_t i, emu_async *a)
{
	h->at[i] = a;
	if (h->by_due)
		a->at_time = i;
	else
		a->at = i;
}

static void rise(const emu_heap *h, uint32_t i, emu_async *a)
{
	for (uint32_t up; i && before(h, a, h->at[up = (i - 1) / 2]); i = up)
		set(h, i, h->at[up]);
	set(h, i, a);
}

static void push(emu_heap *h, emu_async *a) { rise(h, h->n++, a); }

static void take(emu_heap *h, uint32_t i)
{
	emu_async *last = h->at[--h->n];

	if (i == h->n)
		return;
	for (uint32_t down; (down = 2 * i + 1) < h->n; i = down) {
		down += down + 1 < h->n && before(h, h->at[down + 1], h->at[down]);
		if (!before(h, h->at[down], last))
			break;
		set(h, i, h->at[down]);
	}
	rise(h, i, last);
}

static bool grow(emu_heap *h, uint32_t cap, bool by_due)
{
	emu_async **at = GROW_ARRAY(emu_async *, h->at, cap);

	h->by_due = by_due;
	if (at)
		h->at = at;
	return at;
}

static bool room(emu_queue *q)
{
	if (q->n < q->cap)
		return true;
	uint32_t cap = q->cap ? q->cap * 2 : 16;
	if (!grow(&q->due, cap, false) || !grow(&q->later, cap, false) || !grow(&q->time, cap, true))
		return false;
	q->cap = cap;
	return true;
}

/* ---- pipes ---- */

static emu_pipe *pipe_of(const emu_queue *q, uint32_t id)
{
	for (uint32_t i = 0; i < q->npipe; i++)
		if (q->pipe[i].id == id)
			return &q->pipe[i];
	return NULL;
}

static emu_pipe *make_pipe(emu_queue *q, uint32_t id)
{
	emu_pipe *p = pipe_of(q, id);

	if (!p && !array_room(&q->pipe, q->npipe, &q->cap_pipe, sizeof *q->pipe, 8))
		return NULL;
	if (!p)
		*(p = &q->pipe[q->npipe++]) = (emu_pipe){ .id = id };
	return p;
}

bool emu_queue_is_front(const emu_queue *q, const emu_async *a) { return !a->pipe || pipe_of(q, a->pipe)->first == a; }

/* ---- operations ---- */

static void is_front(emu_queue *q, emu_async *a, uint64_t step)
{
	a->waits = a->due > step;
	push(a->waits ? &q->later : &q->due, a);
	if (a->waits && a->due != UINT64_MAX)
		push(&q->time, a);
}

bool emu_queue_add(emu_queue *q, emu_async *a, uint64_t step)
{
	emu_pipe *p = a->pipe ? make_pipe(q, a->pipe) : NULL;

	a->next = NULL;
	a->previous = q->last;
	*(q->last ? &q->last->next : &q->first) = a;
	q->last = a;
	if (!room(q) || (a->pipe && !p))
		return false;
	q->n++;
	a->number = ++q->started;
	a->behind = NULL;
	if (p && p->first) {
		p->last = p->last->behind = a;
		return true;
	}
	if (p)
		p->first = p->last = a;
	is_front(q, a, step);
	return true;
}

void emu_queue_remove(emu_queue *q, emu_async *a, uint64_t step)
{
	*(a->previous ? &a->previous->next : &q->first) = a->next;
	*(a->next ? &a->next->previous : &q->last) = a->previous;
	q->n--;
	take(a->waits ? &q->later : &q->due, a->at);
	if (a->waits && a->due != UINT64_MAX)
		take(&q->time, a->at_time);
	if (!a->pipe)
		return;
	emu_pipe *p = pipe_of(q, a->pipe);
	if ((p->first = a->behind))
		is_front(q, p->first, step);
}

uint32_t emu_queue_choices(emu_queue *q, uint64_t step, bool early)
{
	while (q->time.n && q->time.at[0]->due <= step) {
		emu_async *a = q->time.at[0];
		take(&q->time, 0);
		take(&q->later, a->at);
		a->waits = false;
		push(&q->due, a);
	}
	return MIN(q->due.n + (early ? q->later.n : 0), (uint32_t)QUEUE_CHOICES);
}

/* Takes the least of those whose parents in the heap have been taken, k times. */
emu_async *emu_queue_choice(const emu_queue *q, uint32_t k, bool early)
{
	emu_async *open[QUEUE_CHOICES + 2];
	uint32_t n = 0;

	if (q->due.n)
		open[n++] = q->due.at[0];
	if (early && q->later.n)
		open[n++] = q->later.at[0];
	for (;; k--) {
		uint32_t least = 0;
		for (uint32_t i = 1; i < n; i++)
			if (open[i]->number < open[least]->number)
				least = i;
		emu_async *a = open[least];
		if (!k)
			return a;
		const emu_heap *h = a->waits ? &q->later : &q->due;
		open[least] = open[--n];
		for (uint32_t i = 2 * a->at + 1; i <= 2 * a->at + 2 && i < h->n; i++)
			open[n++] = h->at[i];
	}
}

void emu_queue_free(emu_queue *q)
{
	free(q->due.at);
	free(q->later.at);
	free(q->time.at);
	free(q->pipe);
}
