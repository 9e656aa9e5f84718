/* SPDX-License-Identifier: MIT */
/*
 * Graphs: nodes in an order of their dependencies, which is that in which they were added where none was added later.  A
 * node keeps the values of its arguments.
 */
#include "graph.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* ---- handles ---- */

static void *handles; /* a tree of those that live */

static int by_address(const void *a, const void *b) { return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b); }

bool san_handle_lives(const void *p, enum san_handle kind)
{
	const enum san_handle *const *found = p ? (const enum san_handle *const *)tfind(p, &handles, by_address) : NULL;

	return found && **found == kind;
}

/* A zeroed thing that has a handle; NULL: there is no memory. */
static void *handle_new(size_t size, enum san_handle kind)
{
	enum san_handle *p = (enum san_handle *)calloc(1, size);

	if (!p || !tsearch(p, &handles, by_address)) {
		free(p);
		return NULL;
	}
	*p = kind;
	return p;
}

static void handle_free(void *p)
{
	tdelete(p, &handles, by_address);
	free(p);
}

/* ---- nodes ---- */

static void node_free(san_node *n)
{
	if (n->work == SAN_WORK_ALLOC)
		san_graph_left(san_block_at((uintptr_t)n->memory));
	san_graph_free(n->child);
	free(n->after);
	free(n->values);
	handle_free(n);
}

static san_node *node_new(san_graph *g, enum san_work work)
{
	static uint64_t ids;
	san_node *n = (san_node *)handle_new(sizeof *n, SAN_NODE);

	if (!n)
		return NULL;
	n->id = ++ids;
	n->work = work;
	n->graph = g;
	n->number = ++g->numbers;
	*g->last = n;
	g->last = &n->next;
	g->count++;
	return n;
}

san_graph *san_graph_new(void)
{
	san_graph *g = (san_graph *)handle_new(sizeof *g, SAN_GRAPH);

	if (g)
		g->last = &g->first;
	return g;
}

void san_graph_free(san_graph *g)
{
	if (!g)
		return;
	while (g->first) {
		san_node *n = g->first;
		g->first = n->next;
		node_free(n);
	}
	handle_free(g);
}

/* Copies the values of a kernel's arguments into the node, and where they stand. */
int san_node_launch(san_node *n, san_kernel *k, const san_shape *shape, void **args)
{
	size_t count = k->info.nparams, bytes = (count + 1) * sizeof(void *);

	for (size_t i = 0; i < count; i++)
		bytes += (k->info.params[i].size + 15u) / 16 * 16;
	char *p = (char *)calloc(1, bytes);
	if (!p)
		return SAN_MEMORY;
	void **values = (void **)(void *)p;
	p += (count + 1) * sizeof(void *);
	for (size_t i = 0; i < count; i++) {
		values[i] = memcpy(p, args[i], k->info.params[i].size);
		p += (k->info.params[i].size + 15u) / 16 * 16;
	}
	free(n->values);
	n->values = values;
	n->kernel = k;
	n->shape = *shape;
	return SAN_OK;
}

int san_graph_copy(san_graph *g, const san_rows *rows, san_node **out)
{
	*out = node_new(g, SAN_WORK_COPY);
	if (!*out)
		return SAN_MEMORY;
	(*out)->rows = *rows;
	return SAN_OK;
}

int san_graph_set(san_graph *g, const rt_set_node *set, san_node **out)
{
	*out = node_new(g, SAN_WORK_SET);
	if (!*out)
		return SAN_MEMORY;
	(*out)->set = *set;
	return SAN_OK;
}

int san_graph_host(san_graph *g, void (*fn)(void *user), void *user, san_node **out)
{
	*out = node_new(g, SAN_WORK_HOST);
	if (!*out)
		return SAN_MEMORY;
	(*out)->fn = fn, (*out)->user = user;
	return SAN_OK;
}

int san_graph_launch(san_graph *g, san_kernel *k, const san_shape *shape, void **args, san_node **out)
{
	int e = san_kernel_ready(k);

	if (e || (k->info.nparams && !args))
		return e ? e : SAN_VALUE;
	san_node *n = node_new(g, SAN_WORK_NONE); /* which it stays where memory ends */
	if (!n || (e = san_node_launch(n, k, shape, args))) {
		if (n)
			san_graph_drop(n);
		return n ? e : SAN_MEMORY;
	}
	n->work = SAN_WORK_LAUNCH;
	*out = n;
	return SAN_OK;
}

int san_graph_child(san_graph *g, const san_graph *child, san_node **out)
{
	san_graph *copy = NULL;
	/* before the graph has the node: it may be its own child */
	int e = child ? san_graph_clone(child, SAN_GRAPH, &copy) : SAN_OK;
	san_node *n = e ? NULL : node_new(g, child ? SAN_WORK_CHILD : SAN_WORK_NONE);

	if (!n) {
		san_graph_free(copy);
		return e ? e : SAN_MEMORY;
	}
	if (copy)
		n->child = copy, copy->owned = true;
	*out = n;
	return SAN_OK;
}

/* ---- dependencies ---- */

san_node *san_graph_newest(const san_graph *g)
{
	return g->first ? (san_node *)(void *)((char *)g->last - offsetof(san_node, next)) : NULL;
}

static void number(san_graph *g)
{
	g->numbers = 0;
	for (san_node *n = g->first; n; n = n->next)
		n->number = ++g->numbers;
}

bool san_node_is_after(const san_node *n, const san_node *on)
{
	size_t i = 0;

	while (i < n->nafter && n->after[i] != on)
		i++;
	return i < n->nafter;
}

/* Moves a node, and what depends on it, behind a later one; false: that one depends on it. */
static bool move_behind(san_node *n, san_node *last)
{
	san_graph *g = n->graph;
	san_node *moved = NULL, **to = &moved, **p = &g->first;

	for (san_node *x = n; x != last->next; x = x->next) {
		x->moves = x == n;
		for (size_t i = 0; i < x->nafter && !x->moves; i++)
			x->moves = x->after[i]->number >= n->number && x->after[i]->moves;
	}
	if (last->moves)
		return false;
	while (*p != n)
		p = &(*p)->next;
	while (*p != last) {
		san_node *x = *p;
		if (!x->moves) {
			p = &x->next;
			continue;
		}
		*p = x->next;
		*to = x, to = &x->next;
	}
	*to = last->next, last->next = moved;
	if (!*to)
		g->last = to;
	number(g);
	return true;
}

int san_node_depends(san_node *n, san_node *on)
{
	if (n == on || n->graph != on->graph || san_node_is_after(n, on))
		return SAN_VALUE;
	san_node **grown = (san_node **)realloc(n->after, (n->nafter + 1) * sizeof(san_node *));
	if (!grown)
		return SAN_MEMORY;
	n->after = grown;
	if (on->number > n->number && !move_behind(n, on))
		return SAN_VALUE;
	n->after[n->nafter++] = on;
	return SAN_OK;
}

int san_node_depends_no_more(san_node *n, const san_node *on)
{
	const size_t had = n->nafter;
	size_t kept = 0;

	for (size_t i = 0; i < n->nafter; i++)
		if (n->after[i] != on)
			n->after[kept++] = n->after[i];
	n->nafter = kept;
	return kept < had ? SAN_OK : SAN_VALUE;
}

void san_graph_drop(san_node *n)
{
	san_graph *g = n->graph;
	san_node **p = &g->first;

	for (san_node *x = n->next; x; x = x->next)
		san_node_depends_no_more(x, n);
	while (*p != n)
		p = &(*p)->next;
	*p = n->next;
	if (!*p)
		g->last = p;
	g->count--;
	node_free(n);
}

san_node *san_graph_made_of(const san_graph *g, const san_node *node, bool within)
{
	for (san_node *n = g->first; n; n = n->next) {
		san_node *found = n->original == node->id ? n
		                  : within && n->child    ? san_graph_made_of(n->child, node, within)
		                                          : NULL;
		if (found)
			return found;
	}
	return NULL;
}

/* ---- what streams capture ---- */

/* Streams do their work one after the other: what is captured depends on what was captured before. */
static int captured(san_node *n, san_node *before, int e) { return e || !before ? e : san_node_depends(n, before); }

bool san_captures(const san_stream *s) { return s && s->capture; }

int san_keep_copy(san_stream *s, const san_rows *rows)
{
	san_node *n = NULL, *before = san_graph_newest(s->capture);
	int e = san_graph_copy(s->capture, rows, &n);

	return captured(n, before, e);
}

int san_keep_set(san_stream *s, const rt_set_node *set)
{
	san_node *n = NULL, *before = san_graph_newest(s->capture);
	int e = san_graph_set(s->capture, set, &n);

	return captured(n, before, e);
}

int san_keep_launch(san_stream *s, san_kernel *k, const san_shape *shape, void **args)
{
	san_node *n = NULL, *before = san_graph_newest(s->capture);
	int e = san_graph_launch(s->capture, k, shape, args, &n);

	return captured(n, before, e);
}

int san_host_call(void (*fn)(void *user), void *user, san_stream *s)
{
	if (!san_captures(s)) {
		fn(user);
		return SAN_OK;
	}
	san_node *n = NULL, *before = san_graph_newest(s->capture);
	int e = san_graph_host(s->capture, fn, user, &n);
	return captured(n, before, e);
}

/* ---- graphs that run ---- */

/* Makes a node, which is new, one like another of another graph, whose nodes in front of that are copied. */
static int become(san_node *c, san_node *n)
{
	const san_node fresh = *c;
	int e = SAN_OK;

	*c = *n;
	c->next = fresh.next, c->graph = fresh.graph, c->id = fresh.id, c->number = fresh.number;
	c->original = n->id, c->values = NULL, c->child = NULL, c->after = NULL, c->nafter = 0;
	n->copy = c;
	if (n->work == SAN_WORK_ALLOC)
		san_block_at((uintptr_t)n->memory)->graphs++;
	for (size_t i = 0; i < n->nafter && !e; i++)
		e = san_node_depends(c, n->after[i]->copy);
	if (n->work == SAN_WORK_LAUNCH && !e)
		e = san_node_launch(c, n->kernel, &n->shape, n->values);
	if (n->child && !e && !(e = san_graph_clone(n->child, SAN_GRAPH, &c->child)))
		c->child->owned = true;
	return e;
}

int san_graph_clone(const san_graph *from, enum san_handle as, san_graph **out)
{
	san_graph *g = san_graph_new();
	int e = g ? SAN_OK : SAN_MEMORY;

	for (san_node *n = from->first; n && !e; n = n->next) {
		san_node *c = node_new(g, SAN_WORK_NONE);
		e = c ? become(c, n) : SAN_MEMORY;
	}
	if (e) {
		san_graph_free(g);
		return e;
	}
	g->handle = as;
	*out = g;
	return SAN_OK;
}

static void take(san_graph *g, const san_graph *from)
{
	g->first = from->first, g->count = from->count, g->numbers = from->numbers;
	g->last = g->first ? from->last : &g->first;
	for (san_node *n = g->first; n; n = n->next)
		n->graph = g;
}

void san_graph_swap(san_graph *a, san_graph *b)
{
	const san_graph was = *a;

	take(a, b);
	take(b, &was);
}

static int run_all(const san_graph *g);

static int run(const san_node *n)
{
	switch (n->work) {
	case SAN_WORK_LAUNCH:
		return !san_kernel_lives(n->kernel) ? SAN_HANDLE : san_launch(n->kernel, &n->shape, n->values, NULL);
	case SAN_WORK_COPY: return san_copy_rows(&n->rows, NULL);
	case SAN_WORK_SET: return san_set_rows(&n->set, NULL);
	case SAN_WORK_ALLOC: san_block_at((uintptr_t)n->memory)->freed = false; return SAN_OK;
	case SAN_WORK_FREE: return san_free((uintptr_t)n->memory, false);
	case SAN_WORK_HOST: return san_host_call(n->fn, n->user, NULL);
	case SAN_WORK_CHILD: return run_all(n->child);
	default: return SAN_OK;
	}
}

/* A child graph runs where its node stands: behind all that the node depends on, in front of all that depends on it. */
static int run_all(const san_graph *g)
{
	int e = SAN_OK;

	for (const san_node *n = g->first; n && !e; n = n->next)
		if (!n->left_out)
			e = run(n);
	return e;
}

int san_graph_run(const san_graph *g, san_stream *s)
{
	if (!san_captures(s))
		return run_all(g);
	san_node *n = NULL, *before = san_graph_newest(s->capture);
	int e = san_graph_child(s->capture, g, &n);
	return captured(n, before, e);
}
