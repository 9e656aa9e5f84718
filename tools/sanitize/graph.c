/* SPDX-License-Identifier: MIT */
/*
 * Graphs: nodes in the order in which they were added, which is an order of their dependencies, as a node can only depend on
 * nodes that are there.  A node keeps the values of its arguments.
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

static san_graph *graphs; /* that live */

/* ---- nodes ---- */

static void node_free(san_node *n)
{
	if (n->work == SAN_WORK_ALLOC)
		san_graph_left(san_block_at((uintptr_t)n->dst));
	san_graph_free(n->child);
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

int san_graph_copy(san_graph *g, void *dst, const void *src, size_t size, int kind, san_node **out)
{
	*out = node_new(g, SAN_WORK_COPY);
	if (!*out)
		return SAN_MEMORY;
	(*out)->dst = dst, (*out)->src = src, (*out)->size = size, (*out)->kind = kind;
	return SAN_OK;
}

int san_graph_set(san_graph *g, uint64_t dst, unsigned value, unsigned element, size_t count, san_node **out)
{
	*out = node_new(g, SAN_WORK_SET);
	if (!*out)
		return SAN_MEMORY;
	(*out)->dst = (void *)(uintptr_t)dst, (*out)->value = value, (*out)->element = element, (*out)->size = count;
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

/* ---- what streams capture ---- */

bool san_captures(const san_stream *s) { return s && s->capture; }

int san_keep_copy(san_stream *s, void *dst, const void *src, size_t size, int kind)
{
	san_node *n;

	return san_graph_copy(s->capture, dst, src, size, kind, &n);
}

int san_keep_set(san_stream *s, uint64_t dst, unsigned value, unsigned element, size_t count)
{
	san_node *n;

	return san_graph_set(s->capture, dst, value, element, count, &n);
}

int san_keep_launch(san_stream *s, san_kernel *k, const san_shape *shape, void **args)
{
	san_node *n;

	return san_graph_launch(s->capture, k, shape, args, &n);
}

int san_host_call(void (*fn)(void *user), void *user, san_stream *s)
{
	san_node *n;

	if (san_captures(s))
		return san_graph_host(s->capture, fn, user, &n);
	fn(user);
	return SAN_OK;
}

/* ---- graphs that run ---- */

/* Copies the nodes of a graph behind those of another; child graphs are laid out in it.  Each copy knows its original. */
static int copy_nodes(san_graph *to, const san_graph *from)
{
	int e = SAN_OK;

	for (san_node *n = from->first; n && !e; n = n->next) {
		if (n->work == SAN_WORK_CHILD) {
			e = copy_nodes(to, n->child);
			continue;
		}
		san_node *c = node_new(to, n->work);
		if (!c)
			return SAN_MEMORY;
		san_node *next = c->next;
		*c = *n;
		c->next = next, c->graph = to, c->original = n, c->values = NULL, c->child = NULL;
		if (n->work == SAN_WORK_ALLOC)
			san_block_at((uintptr_t)n->dst)->graphs++;
		if (n->work == SAN_WORK_LAUNCH)
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
	case SAN_WORK_COPY: return san_copy(n->dst, n->src, n->size, n->kind, NULL);
	case SAN_WORK_SET: return san_set((uintptr_t)n->dst, n->value, n->element, n->size, NULL);
	case SAN_WORK_ALLOC: san_block_at((uintptr_t)n->dst)->freed = false; return SAN_OK;
	case SAN_WORK_FREE: return san_free((uintptr_t)n->dst, false);
	case SAN_WORK_HOST: return san_host_call(n->fn, n->user, NULL);
	default: return SAN_OK;
	}
}

int san_graph_run(const san_graph *g, san_stream *s)
{
	san_node *n;
	int e = SAN_OK;

	if (san_captures(s))
		return san_graph_child(s->capture, g, &n);
	for (n = g->first; n && !e; n = n->next)
		e = run(n);
	return e;
}
