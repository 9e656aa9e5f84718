/* SPDX-License-Identifier: MIT */
/*
 * Natural loops.  Dominators are found by the iteration of Cooper, Harvey and Kennedy over blocks in reverse postorder; an
 * edge to a block that dominates its source closes a loop, whose blocks are those that reach the source without passing the
 * head.
 */
#include "inspect/flow.h"

typedef struct order {
	uint32_t *rank;  /* of each block its rank in reverse postorder; IR_NONE: not reached */
	uint32_t *block; /* the block of each rank */
	uint32_t *idom;  /* immediate dominator of each block */
	uint32_t n;
	uint32_t *pred, *pred_at; /* predecessors: those of block b are pred[pred_at[b] .. pred_at[b + 1]) */
	uint8_t *seen;
	uint32_t *stack, *turn;
} order;

static void count_edge(cptx_flow *f, uint32_t from, uint32_t to, void *user)
{
	(void)f, (void)from;
	((uint32_t *)user)[to + 1]++;
}

static void put_edge(cptx_flow *f, uint32_t from, uint32_t to, void *user)
{
	order *o = (order *)user;

	(void)f;
	o->pred[o->turn[to]++] = from;
}

static bool find_predecessors(cptx_flow *f, order *o)
{
	size_t n = f->nblock;

	o->pred_at = ARENA_ZEROED(&f->a, uint32_t, n + 2);
	o->turn = ARENA_ZEROED(&f->a, uint32_t, n + 2);
	if (!o->pred_at || !o->turn)
		return false;
	for (uint32_t b = 0; b < n; b++)
		flow_each_next(f, b, count_edge, o->pred_at);
	for (size_t b = 0; b < n; b++)
		o->pred_at[b + 1] += o->pred_at[b];
	memcpy(o->turn, o->pred_at, n * sizeof *o->turn);
	if (!(o->pred = ARENA_ARRAY(&f->a, uint32_t, (size_t)o->pred_at[n] + 1)))
		return false;
	for (uint32_t b = 0; b < n; b++)
		flow_each_next(f, b, put_edge, o);
	return true;
}

typedef struct choice {
	uint32_t skip, found;
} choice;

static void nth_edge(cptx_flow *f, uint32_t from, uint32_t to, void *user)
{
	choice *c = (choice *)user;

	(void)f, (void)from;
	if (c->skip-- == 0)
		c->found = to;
}

/* Ranks the blocks: depth first from the entry, without recursion. */
static bool find_order(cptx_flow *f, order *o)
{
	uint32_t n = (uint32_t)f->nblock, depth = 0, left = n;

	o->rank = ARENA_ARRAY(&f->a, uint32_t, n);
	o->block = ARENA_ARRAY(&f->a, uint32_t, n);
	o->idom = ARENA_ARRAY(&f->a, uint32_t, n);
	o->stack = ARENA_ARRAY(&f->a, uint32_t, (size_t)n + 1);
	o->seen = ARENA_ZEROED(&f->a, uint8_t, n + 1);
	if (!o->rank || !o->block || !o->idom || !o->stack || !o->seen)
		return false;
	memset(o->turn, 0, n * sizeof *o->turn);
	for (uint32_t b = 0; b < n; b++)
		o->rank[b] = o->idom[b] = IR_NONE;
	o->stack[depth++] = 0, o->seen[0] = 1;
	while (depth) {
		uint32_t b = o->stack[depth - 1];
		choice c = { o->turn[b]++, IR_NONE };
		flow_each_next(f, b, nth_edge, &c);
		if (c.found == IR_NONE)
			o->block[o->rank[b] = --left] = b, depth--;
		else if (!o->seen[c.found])
			o->seen[c.found] = 1, o->stack[depth++] = c.found;
	}
	o->n = left; /* ranks are in use from here on */
	return true;
}

static uint32_t meet(const order *o, uint32_t a, uint32_t b)
{
	while (a != b) {
		while (o->rank[a] > o->rank[b])
			a = o->idom[a];
		while (o->rank[b] > o->rank[a])
			b = o->idom[b];
	}
	return a;
}

static void find_dominators(const cptx_flow *f, order *o)
{
	bool again = true;

	o->idom[0] = 0;
	while (again) {
		again = false;
		for (uint32_t r = o->n + 1; r < f->nblock; r++) {
			uint32_t b = o->block[r], dom = IR_NONE;
			for (uint32_t i = o->pred_at[b]; i < o->pred_at[b + 1]; i++)
				if (o->idom[o->pred[i]] != IR_NONE)
					dom = dom == IR_NONE ? o->pred[i] : meet(o, dom, o->pred[i]);
			again |= dom != o->idom[b];
			o->idom[b] = dom;
		}
	}
}

static bool dominates(const order *o, uint32_t head, uint32_t b)
{
	while (o->rank[b] > o->rank[head])
		b = o->idom[b];
	return b == head;
}

typedef struct found {
	uint32_t head;
	uint32_t size;
	uint8_t *in; /* of each block: it is in the loop */
} found;

/* Collects all blocks of the loops with that head; false when memory is short or the block heads no loop. */
static bool collect(cptx_flow *f, order *o, found *l)
{
	uint32_t depth = 0;

	memset(l->in, 0, f->nblock);
	l->in[l->head] = 1, l->size = 1;
	for (uint32_t i = o->pred_at[l->head]; i < o->pred_at[l->head + 1]; i++) {
		uint32_t b = o->pred[i];
		if (o->rank[b] == IR_NONE || !dominates(o, l->head, b))
			continue;
		l->size += l->in[b] == 0 || b == l->head;
		if (!l->in[b])
			l->in[b] = 1, o->stack[depth++] = b;
		else if (b == l->head)
			l->size = MAX(l->size, 2u);
		while (depth) {
			uint32_t inner = o->stack[--depth];
			for (uint32_t j = o->pred_at[inner]; j < o->pred_at[inner + 1]; j++)
				if (!l->in[o->pred[j]] && o->rank[o->pred[j]] != IR_NONE)
					l->in[o->pred[j]] = 1, l->size++, o->stack[depth++] = o->pred[j];
		}
	}
	return l->size > 1;
}

static bool add_loop(cptx_flow *f, const found *l)
{
	cptx_loop loop = { .first = UINT32_MAX, .outer = UINT32_MAX };
	uint32_t number = (uint32_t)f->nloop;

	if (!arena_push(&f->a, &f->loop, f->nloop, &f->cap_loop, sizeof *f->loop))
		return false;
	for (uint32_t b = 0; b < f->nblock; b++) {
		if (!l->in[b])
			continue;
		for (uint32_t i = f->block[b].first; i < f->block[b].end; i++) {
			cptx_point *p = &f->point[i];
			if (loop.first == UINT32_MAX)
				loop.first = i;
			loop.last = i;
			loop.outer = b == l->head ? p->loop : loop.outer;
			p->loop = number;
			p->depth += p->depth < UINT8_MAX;
			loop.depth = b == l->head ? p->depth : loop.depth;
		}
	}
	if (loop.first != UINT32_MAX)
		f->loop[f->nloop++] = loop;
	return true;
}

/* Heads are visited in reverse postorder, so that an outer loop comes before those in it. */
bool flow_loops(cptx_flow *f)
{
	order o = { 0 };
	found l = { 0 };

	if (!f->npoint)
		return true;
	if (!find_predecessors(f, &o) || !find_order(f, &o) || !(l.in = ARENA_ARRAY(&f->a, uint8_t, f->nblock)))
		return false;
	find_dominators(f, &o);
	uint32_t heads = 0;
	for (uint32_t r = o.n; r < f->nblock; r++) {
		l.head = o.block[r];
		bool is_head = false;
		for (uint32_t i = o.pred_at[l.head]; i < o.pred_at[l.head + 1] && !is_head; i++)
			is_head = o.rank[o.pred[i]] != IR_NONE && dominates(&o, l.head, o.pred[i]);
		heads += is_head;
		if ((f->too_large = (uint64_t)heads * f->nblock > FLOW_MOST_STEPS))
			return false;
		if (is_head && collect(f, &o, &l) && !add_loop(f, &l))
			return false;
	}
	return true;
}
