/* SPDX-License-Identifier: MIT */
/*
 * Graphs: nodes in an order of their dependencies, which is that in which they were added where none was added later.  A
 * node keeps the values of its arguments.
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

static san_graph *graphs; /* that live */

/* ---- nodes ---- */

static void node_free(san_node *n)
{
	if (n->work == SAN_WORK_ALLOC)
		san_graph_left(san_block_at((uintptr_t)n->memory));
	san_graph_free(n->child);
	free(n->after);
	free(n->values);
	free(n);
}

static san_node *node_new(san_graph *g, enum san_work work)
{
	san_node *n = (san_node *)calloc(1, sizeof *n);

	if (!n)
		return NULL;
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
	san_graph *g = (san_graph *)calloc(1, sizeof *g);

	if (g)
		g->last = &g->first, g->next = graphs, graphs = g;
	return g;
}

bool san_graph_lives(const san_graph *g)
{
	const san_graph *one = graphs;

	while (g && one && one != g)
		one = one->next;
	return g && one;
}

void san_graph_free(san_graph *g)
{
	san_graph **p = &graphs;

	while (*p && *p != g)
		p = &(*p)->next;
	if (!g || !*p)
		return;
	*p = g->next;
	while (g->first) {
		san_node *n = g->first;
		g->first = n->next;
		node_free(n);
	}
	free(g);
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
	*out = node_new(g, SAN_WORK_NONE); /* which it stays where memory ends */
	if (!*out || (e = san_node_launch(*out, k, shape, args)))
		return *out ? e : SAN_MEMORY;
	(*out)->work = SAN_WORK_LAUNCH;
	return SAN_OK;
}

int san_graph_child(san_graph *g, const san_graph *child, san_node **out)
{
	*out = node_new(g, SAN_WORK_NONE);
	int e = *out ? SAN_OK : SAN_MEMORY;

	if (!e && child && !(e = san_graph_clone(child, &(*out)->child)))
		(*out)->work = SAN_WORK_CHILD;
	return e;
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

static bool is_after(const san_node *n, const san_node *on)
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
	if (n == on || n->graph != on->graph)
		return SAN_VALUE;
	if (is_after(n, on))
		return SAN_OK;
	san_node **grown = (san_node **)realloc(n->after, (n->nafter + 1) * sizeof(san_node *));
	if (!grown)
		return SAN_MEMORY;
	n->after = grown;
	if (on->number > n->number && !move_behind(n, on))
		return SAN_VALUE;
	n->after[n->nafter++] = on;
	return SAN_OK;
}

void san_node_depends_no_more(san_node *n, const san_node *on)
{
	size_t kept = 0;

	for (size_t i = 0; i < n->nafter; i++)
		if (n->after[i] != on)
			n->after[kept++] = n->after[i];
	n->nafter = kept;
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

san_node *san_graph_made_of(const san_graph *g, const san_node *node)
{
	san_node *n = g->first;

	while (n && n->original != node)
		n = n->next;
	return node ? n : NULL;
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

/* Copies the nodes of a graph behind those of another; child graphs are laid out in it.  Each copy knows its original. */
static int copy_nodes(san_graph *to, const san_graph *from)
{
	int e = SAN_OK;

	for (san_node *n = from->first; n && !e; n = n->next) {
		if (n->work == SAN_WORK_CHILD) {
			e = copy_nodes(to, n->child);
			n->copy = san_graph_newest(to);
			continue;
		}
		san_node *c = node_new(to, n->work);
		if (!c)
			return SAN_MEMORY;
		san_node *next = c->next;
		*c = *n;
		c->next = next, c->graph = to, c->original = n, c->values = NULL, c->child = NULL;
		c->number = to->numbers, c->after = NULL, c->nafter = 0, n->copy = c;
		for (size_t i = 0; i < n->nafter && !e; i++)
			e = n->after[i]->copy ? san_node_depends(c, n->after[i]->copy) : SAN_OK;
		if (n->work == SAN_WORK_ALLOC)
			san_block_at((uintptr_t)n->memory)->graphs++;
		if (n->work == SAN_WORK_LAUNCH && !e)
			e = san_node_launch(c, n->kernel, &n->shape, n->values);
	}
	return e;
}

int san_graph_clone(const san_graph *from, san_graph **out)
{
	san_graph *g = san_graph_new();
	int e = g ? copy_nodes(g, from) : SAN_MEMORY;

	if (e)
		san_graph_free(g);
	else
		*out = g;
	return e;
}

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
	default: return SAN_OK;
	}
}

int san_graph_run(const san_graph *g, san_stream *s)
{
	int e = SAN_OK;

	if (san_captures(s)) {
		san_node *n = NULL, *before = san_graph_newest(s->capture);
		e = san_graph_child(s->capture, g, &n);
		return captured(n, before, e);
	}
	for (const san_node *n = g->first; n && !e; n = n->next)
		if (!n->left_out)
			e = run(n);
	return e;
}
