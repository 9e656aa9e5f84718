/* SPDX-License-Identifier: MIT */
/*
 * Which orders there are.  A node stands for the launch in front of an event: who could go on there, who has been tried, and
 * who is still to be tried.  Behind each execution its events are looked at: two that touch the same object in a way that
 * the other order would change, with nothing between them that keeps their order, let the later one be tried in the node of
 * the earlier one.  Who was tried in a node sleeps below it until something happens that its event depends on: what would
 * come of it is known.
 */
#include "emu/core/explore.h"
#include "emu/core/explorer.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"

#include <stdlib.h>

/* ---- what events touch ---- */

uint64_t emu_object(const emu_cluster *c, uint32_t rank, enum emu_object kind, uint64_t place)
{
	if (kind == OBJECT_GLOBAL)
		return (uint64_t)kind << 60 | (place & ~(UINT64_C(15) << 60));
	return (uint64_t)kind << 60 | (c->number & 0xfffff) << 40 | (uint64_t)(rank & 0xff) << 32 | (place & 0xffffffff);
}

/* What comes behind the first instruction of an event is not tried in front of what others do: it must not matter. */
static bool may_not_be_inside(const emu_cluster *c, const emu_touch *t)
{
	if (t->kind == TOUCH_COME)
		return t->count && t->count != TOUCH_EXITS;
	return t->kind != TOUCH_GO && (t->object >> 60 != OBJECT_LIFE || c->ncta > 1);
}

void emu_touch_note(emu_cluster *c, emu_touch t)
{
	emu_explorer *x = c->grid->explorer;
	explored_event *e = x->now;

	if (!e)
		return;
	x->missed |= x->inside && may_not_be_inside(c, &t);
	for (uint32_t i = 0; i < e->ntouch; i++) /* lanes touch the same, often */
		if (e->touch[i].object == t.object && e->touch[i].kind == t.kind && e->touch[i].phase == t.phase &&
		    e->touch[i].more == t.more && e->touch[i].count == t.count) {
			e->touch[i].completes |= t.completes;
			e->touch[i].last |= t.last;
			e->touch[i].seen = MAX(e->touch[i].seen, t.seen);
			return;
		}
	if (e->ntouch == e->cap) {
		uint32_t cap = e->cap ? e->cap * 2 : 4;
		emu_touch *grown = GROW_ARRAY(emu_touch, e->touch, cap);
		if (!grown) {
			x->no_memory = true;
			return;
		}
		e->touch = grown, e->cap = cap;
	}
	e->touch[e->ntouch++] = t;
}

/* Reductions of one kind on one word leave the same in any order, if nothing is rounded and nothing wraps at a bound. */
static bool commutes(const emu_op *op)
{
	switch (op->m.type) {
	case CPTX_U32:
	case CPTX_S32:
	case CPTX_B32:
	case CPTX_U64:
	case CPTX_S64:
	case CPTX_B64: break;
	default: return false;
	}
	switch (op->m.op) {
	case CPTX_ADD:
	case CPTX_AND:
	case CPTX_OR:
	case CPTX_XOR:
	case CPTX_MIN:
	case CPTX_MAX: return op->arg[0].kind == ARG_NONE; /* nothing is given back */
	default: return false;
	}
}

void emu_touch_reduction(emu_cluster *c, const emu_op *op)
{
	if (c->grid->explorer)
		c->grid->explorer->reduces |= !commutes(op);
}

void emu_touch_memory(emu_warp *w, const emu_op *op, const emu_place *p, uint32_t size, unsigned access)
{
	enum { GRAIN = 16 /* bytes: what is closer together counts as the same */ };
	const emu_cta *cta = p->cta;
	emu_touch t = { .kind = access & ACCESS_WRITE ? TOUCH_WRITE : TOUCH_READ };

	if (!(access & (ACCESS_ATOMIC | ACCESS_STRONG)) || access & ACCESS_ASYNC || !(p->alloc || cta))
		return;
	if (access & ACCESS_ATOMIC && commutes(op)) {
		t.kind = TOUCH_ADD;
		t.phase = (uint64_t)op->m.op << 16 | op->m.type;
	}
	uint64_t at = cta ? p->offset : p->alloc->at + p->offset;
	for (uint64_t i = at / GRAIN; i <= (at + size - 1) / GRAIN; i++) {
		t.object = cta ? emu_object(cta->cluster, cta->rank, OBJECT_SHARED, i) : emu_object(w->cluster, 0, OBJECT_GLOBAL, i);
		emu_touch_note(w->cluster, t);
	}
}

/* ---- how two touches of one object are related ---- */

enum relation { APART, ORDERED, RACING };

static bool on_mbarrier(const emu_touch *t) { return t->kind >= TOUCH_ARRIVE; }

/* Of an arrival and a wait behind it. */
static enum relation wait_behind(const emu_touch *arrival, const emu_touch *wait)
{
	bool last = arrival->completes && arrival->phase + 1 == wait->phase;

	if (wait->kind == TOUCH_FAIL)
		return last ? RACING : APART; /* in front of it the phase before was over */
	return last && wait->once ? RACING : arrival->phase < wait->phase ? ORDERED : APART;
}

/* Of a wait and an arrival behind it: one that fails is tried again, unless it is test_wait. */
static enum relation wait_in_front(const emu_touch *wait, const emu_touch *arrival)
{
	return arrival->completes && (wait->kind == TOUCH_PASS || wait->once) ? RACING : APART;
}

/* Of two arrivals at an mbarrier: one may end the phase before the other says what more it must wait for. */
static enum relation both_arrive(const emu_touch *a, const emu_touch *b)
{
	if (a->phase != b->phase || (a->more == MORE_ARRIVALS) != (b->more == MORE_ARRIVALS))
		return RACING;
	return (a->more == MORE_BYTES && b->last) || (b->more == MORE_BYTES && a->last) ? RACING : APART;
}

/* At barriers of a CTA or cluster.  Who makes up a phase can differ only where a number of threads is named. */
static enum relation at_barrier(const emu_touch *a, const emu_touch *b)
{
	if (a->kind == TOUCH_COME && b->kind == TOUCH_GO)
		return a->phase == b->phase ? ORDERED : a->phase > b->phase && a->phase <= b->seen ? RACING : APART;
	if (a->kind == TOUCH_GO || b->kind == TOUCH_GO || a->count == TOUCH_EXITS || b->count == TOUCH_EXITS)
		return APART;
	return (a->count || b->count) && (a->phase != b->phase || a->count != b->count) ? RACING : APART;
}

static enum relation relation_of(const emu_touch *a, const emu_touch *b)
{
	if (a->object != b->object)
		return APART;
	if (a->kind == TOUCH_COME || a->kind == TOUCH_GO)
		return at_barrier(a, b);
	if (on_mbarrier(a) && on_mbarrier(b)) {
		bool arrives = a->kind == TOUCH_ARRIVE, arrives_too = b->kind == TOUCH_ARRIVE;
		if (arrives && arrives_too)
			return both_arrive(a, b);
		return arrives ? wait_behind(a, b) : arrives_too ? wait_in_front(a, b) : APART;
	}
	if ((a->kind == TOUCH_READ && b->kind == TOUCH_READ) ||
	    (a->kind == TOUCH_ADD && b->kind == TOUCH_ADD && a->phase == b->phase))
		return APART;
	return RACING;
}

/*
 * Whether what is known of a touch that was put off, as it was in that place, may no longer hold behind another: that ends
 * the phase that it would have come in, or makes the phase wait for more.
 */
static bool outdates(const emu_touch *done, const emu_touch *off)
{
	if (done->object != off->object)
		return false;
	if (done->kind == TOUCH_ARRIVE && off->kind == TOUCH_ARRIVE)
		return done->completes || done->more;
	return done->kind == TOUCH_COME && done->completes && (off->kind == TOUCH_COME || off->kind == TOUCH_GO);
}

/* Whether who was put off must be looked at again behind what was done. */
static bool wakes(const emu_touch *done, uint32_t ndone, const emu_touch *off, uint32_t noff)
{
	for (uint32_t i = 0; i < ndone; i++)
		for (uint32_t j = 0; j < noff; j++)
			if (relation_of(&done[i], &off[j]) != APART || relation_of(&off[j], &done[i]) != APART ||
			    outdates(&done[i], &off[j]))
				return true;
	return false;
}

/* ---- nodes ---- */

static bool is_in(const uint64_t *list, uint32_t n, uint64_t who)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i] == who)
			return true;
	return false;
}

static void free_node(explored_node *n)
{
	for (uint32_t i = 0; i < n->nsleep; i++)
		free(n->sleep[i].touch);
	free(n->sleep);
	free(n->can);
	free(n->todo);
	*n = (explored_node){ 0 };
}

static bool add_todo(explored_node *n, uint64_t who)
{
	if (is_in(n->todo, n->ntodo, who))
		return true;
	uint64_t *grown = GROW_ARRAY(uint64_t, n->todo, n->ntodo + 1u);
	if (!grown)
		return false;
	n->todo = grown;
	n->todo[n->ntodo++] = who;
	return true;
}

static bool sleeps(const explored_node *n, uint64_t who)
{
	for (uint32_t i = 0; i < n->nsleep; i++)
		if (n->sleep[i].who == who)
			return true;
	return false;
}

static bool add_sleep(explored_node *n, uint64_t who, const emu_touch *touch, uint32_t ntouch)
{
	explored_sleep *grown = GROW_ARRAY(explored_sleep, n->sleep, n->nsleep + 1u);

	if (!grown)
		return false;
	n->sleep = grown;
	emu_touch *copy = NEW_ARRAY(emu_touch, ntouch + 1u);
	if (!copy)
		return false;
	if (ntouch)
		memcpy(copy, touch, ntouch * sizeof *copy);
	n->sleep[n->nsleep++] = (explored_sleep){ who, copy, ntouch };
	return true;
}

/* Who goes on where nothing else is asked for: the same as before, else the next warp, else the oldest operation. */
uint64_t explorer_default(const emu_explorer *x, const uint64_t *can, uint32_t n, const explored_node *node)
{
	uint64_t best = EXPLORED_NOBODY;

	for (uint32_t i = 0; i < n; i++) {
		if (node && sleeps(node, can[i]))
			continue;
		if (can[i] == x->last && !(can[i] & EXPLORED_ASYNC))
			return can[i];
		bool async = can[i] & EXPLORED_ASYNC, was = best & EXPLORED_ASYNC;
		bool behind = can[i] > x->last, best_behind = best > x->last;
		if (best == EXPLORED_NOBODY || (async != was ? !async : behind != best_behind ? behind : can[i] < best))
			best = can[i];
	}
	return best;
}

/* A new node at the end of the path, which inherits who sleeps. */
static bool new_node(emu_explorer *x, const uint64_t *can, uint32_t n)
{
	if (x->depth == x->cap_node) {
		uint32_t cap = x->cap_node ? x->cap_node * 2 : 64;
		explored_node *grown = GROW_ARRAY(explored_node, x->node, cap);
		if (!grown)
			return false;
		x->node = grown, x->cap_node = cap;
	}
	explored_node *node = &x->node[x->depth];
	*node = (explored_node){ 0 };
	x->nnode = x->depth + 1;
	node->can = NEW_ARRAY(uint64_t, n + 1u);
	if (!node->can)
		return false;
	memcpy(node->can, can, n * sizeof *can);
	node->ncan = n;
	if (!x->depth)
		return true;
	const explored_node *up = node - 1;
	const explored_event *e = &x->event[x->depth - 1];
	for (uint32_t i = 0; i < up->nsleep; i++) {
		const explored_sleep *s = &up->sleep[i];
		if (s->who != e->who && !wakes(e->touch, e->ntouch, s->touch, s->ntouch) &&
		    !add_sleep(node, s->who, s->touch, s->ntouch))
			return false;
	}
	return true;
}

uint64_t explorer_choose(emu_explorer *x, const uint64_t *can, uint32_t n)
{
	if (x->replay) { /* a path that is known, with some of its choices left out */
		uint64_t who = x->depth < x->nreplay ? x->replay[x->depth] : EXPLORED_NOBODY;
		x->too_long |= x->depth >= EXPLORED_EVENTS;
		if (x->too_long)
			return EXPLORED_NOBODY;
		return who != EXPLORED_NOBODY && is_in(can, n, who) ? who : explorer_default(x, can, n, NULL);
	}
	if (x->depth < x->nnode)
		return x->node[x->depth].chosen;
	if (x->depth >= EXPLORED_EVENTS) {
		x->too_long = true;
		return EXPLORED_NOBODY;
	}
	if (!new_node(x, can, n)) {
		x->no_memory = true;
		return EXPLORED_NOBODY;
	}
	explored_node *node = &x->node[x->depth];
	node->chosen = explorer_default(x, can, n, node);
	x->no_memory |= node->chosen != EXPLORED_NOBODY && !add_todo(node, node->chosen);
	return node->chosen;
}

/* ---- behind an execution: what else is to be tried ---- */

static bool before(const explored_event *j, uint32_t i) { return j->after[i / 64] >> (i % 64) & 1; }

static void is_after(explored_event *j, const explored_event *i, uint32_t number)
{
	for (uint32_t k = 0; k <= number / 64; k++)
		j->after[k] |= i->after[k];
	j->after[number / 64] |= UINT64_C(1) << (number % 64);
}

/* The event j is to be tried in the node of the event i; or one that must come in front of it. */
static bool turn_around(emu_explorer *x, uint32_t i, uint32_t j)
{
	explored_node *n = &x->node[i];
	uint64_t who = is_in(n->can, n->ncan, x->event[j].who) ? x->event[j].who : EXPLORED_NOBODY;

	for (uint32_t k = i + 1; k < j; k++) {
		const explored_event *e = &x->event[k];
		if (!before(&x->event[j], k) || !is_in(n->can, n->ncan, e->who))
			continue;
		if (is_in(n->todo, n->ntodo, e->who))
			return true;
		who = who == EXPLORED_NOBODY ? e->who : who;
	}
	if (who != EXPLORED_NOBODY)
		return add_todo(n, who);
	bool ok = true;
	for (uint32_t k = 0; k < n->ncan; k++)
		ok &= add_todo(n, n->can[k]);
	return ok;
}

static enum relation relation_of_events(const explored_event *a, const explored_event *b)
{
	enum relation most = APART;

	for (uint32_t i = 0; i < a->ntouch; i++)
		for (uint32_t j = 0; j < b->ntouch; j++)
			most = MAX(most, relation_of(&a->touch[i], &b->touch[j]));
	return most;
}

static bool look_at(emu_explorer *x, uint32_t j)
{
	explored_event *e = &x->event[j];
	bool ok = true, own = false;

	e->after = NEW_ARRAY(uint64_t, j / 64 + 1);
	if (!e->after)
		return false;
	for (uint32_t i = j; i-- > 0;) {
		explored_event *f = &x->event[i];
		bool mine = f->who == e->who && !own;
		if (mine || (e->starter && e->starter == i + 1)) {
			own |= mine;
			is_after(e, f, i);
			continue;
		}
		if (before(e, i) || f->who == e->who)
			continue;
		enum relation r = e->ntouch && f->ntouch ? relation_of_events(f, e) : APART;
		if (r == RACING)
			ok &= x->replay || turn_around(x, i, j);
		if (r != APART)
			is_after(e, f, i);
	}
	return ok;
}

bool explorer_look(emu_explorer *x)
{
	bool ok = true;

	for (uint32_t j = 0; j < x->depth && ok; j++)
		ok = look_at(x, j);
	x->work += (uint64_t)x->depth * x->depth / 2;
	return ok;
}

bool explorer_next(emu_explorer *x)
{
	for (; x->nnode; x->nnode--) {
		explored_node *n = &x->node[x->nnode - 1];
		if (n->chosen != EXPLORED_NOBODY && x->nnode <= x->depth) {
			const explored_event *e = &x->event[x->nnode - 1];
			if (!sleeps(n, n->chosen) && !add_sleep(n, n->chosen, e->touch, e->ntouch))
				x->no_memory = true;
		}
		for (uint32_t i = 0; i < n->ntodo; i++)
			if (!sleeps(n, n->todo[i])) {
				n->chosen = n->todo[i];
				return !x->no_memory;
			}
		free_node(n);
		x->depth = MIN(x->depth, x->nnode - 1);
	}
	return false;
}

uint64_t explorer_left(const emu_explorer *x)
{
	uint64_t left = 0;

	for (uint32_t i = 0; i < x->nnode; i++)
		for (uint32_t k = 0; k < x->node[i].ntodo; k++)
			left += x->node[i].todo[k] != x->node[i].chosen && !sleeps(&x->node[i], x->node[i].todo[k]);
	return left;
}

void explorer_forget_events(emu_explorer *x)
{
	for (uint32_t i = 0; i < x->nevent; i++) {
		free(x->event[i].touch);
		free(x->event[i].after);
	}
	x->nevent = 0;
}

void explorer_free(emu_explorer *x)
{
	explorer_forget_events(x);
	for (uint32_t i = 0; i < x->nnode; i++)
		free_node(&x->node[i]);
	free(x->event);
	free(x->node);
}
