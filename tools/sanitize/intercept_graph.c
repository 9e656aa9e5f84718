/* SPDX-License-Identifier: MIT */
/*
 * Launches of graphs, for the recorder.  Of each executable graph a copy of the graph it was made of is kept; a launch does
 * the copy's nodes one after the other, each as a graph of one node, so that memory can be read in front of each kernel and
 * behind it.  A graph with a node that cannot be done so is launched as it is, and left out.
 */
#include "intercept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the driver's calls ---- */

/* FROM(name, its version in the library, parameters) */
#define CALLS                                                                                                               \
	FROM(cuGraphCreate, "", (void **g, unsigned flags))                                                                     \
	FROM(cuGraphDestroy, "", (void *g))                                                                                     \
	FROM(cuGraphClone, "", (void **to, void *from))                                                                         \
	FROM(cuGraphGetNodes, "", (void *g, void **nodes, size_t *n))                                                           \
	FROM(cuGraphGetEdges, "_v2", (void *g, void **from, void **to, void *data, size_t *n))                                  \
	FROM(cuGraphNodeGetType, "", (void *node, int *type))                                                                   \
	FROM(cuGraphNodeFindInClone, "", (void **found, void *node, void *clone))                                               \
	FROM(cuGraphKernelNodeGetParams, "_v2", (void *node, dr_kernel_node *p))                                                \
	FROM(cuGraphKernelNodeGetAttribute, "", (void *node, unsigned id, void *value))                                         \
	FROM(cuGraphKernelNodeCopyAttributes, "", (void *to, void *from))                                                       \
	FROM(cuGraphMemcpyNodeGetParams, "", (void *node, dr_copy3d *p))                                                        \
	FROM(cuGraphMemsetNodeGetParams, "", (void *node, rt_set_node *p))                                                      \
	FROM(cuGraphHostNodeGetParams, "", (void *node, rt_host_node *p))                                                       \
	FROM(cuGraphAddKernelNode, "_v2", (void **node, void *g, void **after, size_t n, const dr_kernel_node *p))              \
	FROM(cuGraphAddMemcpyNode, "", (void **node, void *g, void **after, size_t n, const dr_copy3d *p, void *context))       \
	FROM(cuGraphAddMemsetNode, "", (void **node, void *g, void **after, size_t n, const rt_set_node *p, void *context))     \
	FROM(cuGraphAddHostNode, "", (void **node, void *g, void **after, size_t n, const rt_host_node *p))                     \
	FROM(cuGraphInstantiateWithFlags, "", (void **exec, void *g, unsigned long long flags))                                 \
	FROM(cuGraphExecDestroy, "", (void *exec))                                                                              \
	FROM(cuCtxGetCurrent, "", (void **context))
#define FROM(name, version, parameters) static int(*name) parameters;
CALLS
#undef FROM

/* NULL: the driver has all of them; else what it lacks. */
static const char *lacks(void)
{
	static char what[96];
	static bool tried;
	void *p;

	if (!tried) {
#define FROM(name, version, parameters)                                                                                     \
	p = rec_symbol(#name version);                                                                                          \
	memcpy(&name, &p, sizeof name);                                                                                         \
	if (!p && !*what)                                                                                                       \
		snprintf(what, sizeof what, "the driver has no " #name version);
		CALLS
#undef FROM
	}
	tried = true;
	return *what ? what : NULL;
}

/* ---- graphs that can run ---- */

/* A copy of a graph, in use by its executable graph and by launches of other threads. */
typedef struct copied {
	void *graph;
	unsigned uses;
} copied;

/* A node of the graph that an executable graph was made of, and what it became in the copy. */
typedef struct disabled {
	void *node, *copy;
} disabled;

typedef struct executable {
	struct executable *next;
	void *exec;
	const void *source; /* the graph it was made of, whose nodes name its own; NULL: it was destroyed */
	copied *copy;
	const char *why; /* it is left out; NULL: it is not, and there is a copy */
	disabled *off;
	size_t noff;
	bool forgot; /* which nodes are disabled */
} executable;
static executable *executables;

static executable *executable_of(const void *exec)
{
	executable *x = executables;

	while (x && x->exec != exec)
		x = x->next;
	return x;
}

static bool can_be_done(void *graph);

/* Under the helper's lock, as all uses of it. */
static void copy_unused(copied *c)
{
	if (!c || --c->uses)
		return;
	rec_inside++;
	cuGraphDestroy(c->graph);
	rec_inside--;
	free(c);
}

static const char *make_copy(executable *x, void *graph)
{
	copied *c = (copied *)calloc(1, sizeof *c);

	if (!c)
		return "memory is short";
	if (cuGraphClone(&c->graph, graph)) {
		free(c);
		return "its graph cannot be copied, as one that allocates memory";
	}
	c->uses = 1, x->copy = c;
	return NULL;
}

/* The node in the copy of the graph that a node of the graph became; NULL: it is not known. */
static void *copy_of(const executable *x, void *node)
{
	void *copy = NULL;

	return !x || !x->copy || cuGraphNodeFindInClone(&copy, node, x->copy->graph) ? NULL : copy;
}

/* What was disabled stays so when the graph is given other work, which tells no node of another graph. */
static const char *keep_disabled(executable *x, const void *graph)
{
	for (size_t i = 0; i < x->noff; i++)
		if (graph != x->source || !(x->off[i].copy = copy_of(x, x->off[i].node)))
			return "a node of it is disabled, and which one of the graph that it was updated with is not known";
	return x->forgot ? "memory is short" : NULL;
}

static void copy_graph(executable *x, void *graph)
{
	copy_unused(x->copy);
	x->copy = NULL;
	x->why = lacks();
	if (!x->why && !can_be_done(graph))
		x->why = "it has nodes other than kernels, copies, sets and host functions";
	if (!x->why)
		x->why = make_copy(x, graph);
	if (!x->why)
		x->why = keep_disabled(x, graph);
}

void rec_graph_made(void *exec, void *graph)
{
	executable *x = (executable *)calloc(1, sizeof *x);

	rec_graph_gone(exec);
	if (!x)
		return;
	x->exec = exec, x->source = graph, x->next = executables, executables = x;
	rec_inside++;
	copy_graph(x, graph);
	rec_inside--;
}

void rec_graph_updated(void *exec, void *graph)
{
	executable *x = executable_of(exec);

	rec_inside++;
	if (x)
		copy_graph(x, graph);
	rec_inside--;
}

void rec_graph_gone(void *exec)
{
	executable **p = &executables, *x;

	while (*p && (*p)->exec != exec)
		p = &(*p)->next;
	if (!(x = *p))
		return;
	*p = x->next;
	copy_unused(x->copy);
	free(x->off);
	free(x);
}

void rec_graph_destroyed(void *graph)
{
	for (executable *x = executables; x; x = x->next)
		if (x->source == graph)
			x->source = NULL;
}

void rec_graph_unseen(void *exec, const char *why)
{
	executable *x = executable_of(exec);

	if (x && !x->why)
		x->why = why;
}

void rec_graph_alike(void *exec, void *node, const char *call, const void *parameters)
{
	int (*set)(void *, const void *);
	void *p = rec_symbol(call);

	memcpy(&set, &p, sizeof set);
	rec_inside++;
	void *copy = copy_of(executable_of(exec), node);
	if (!copy || !set || set(copy, parameters))
		rec_graph_unseen(exec, "a node of it was changed in a way that is not known");
	rec_inside--;
}

void rec_graph_enabled(void *exec, void *node, bool on)
{
	executable *x = executable_of(exec);
	size_t kept = 0;

	if (!x)
		return;
	for (size_t i = 0; i < x->noff; i++)
		if (x->off[i].node != node)
			x->off[kept++] = x->off[i];
	x->noff = kept;
	if (on)
		return;
	disabled *grown = (disabled *)realloc(x->off, (kept + 1) * sizeof *grown);
	if (!grown) {
		x->forgot = true;
		rec_graph_unseen(exec, "memory is short");
		return;
	}
	rec_inside++;
	grown[kept] = (disabled){ node, copy_of(x, node) };
	rec_inside--;
	if (!grown[kept].copy)
		rec_graph_unseen(exec, "a node of it was disabled that is not known");
	x->off = grown, x->noff = kept + 1;
}

static bool is_off(const executable *x, const void *node)
{
	size_t i = 0;

	while (i < x->noff && x->off[i].copy != node)
		i++;
	return i < x->noff;
}

/* ---- what is in a graph ---- */

typedef struct graph_nodes {
	void **node, **from, **to;
	size_t n, edges;
} graph_nodes;

static void nodes_free(graph_nodes *g)
{
	free(g->node);
	free(g->from);
	free(g->to);
	*g = (graph_nodes){ .node = NULL };
}

/* Puts the nodes in an order in which each stands behind those that it depends on. */
static bool sort(graph_nodes *g)
{
	for (size_t done = 0; done < g->n; done++) {
		size_t i = done;
		for (bool ready = false; i < g->n && !ready; i += !ready) {
			ready = true;
			for (size_t e = 0; e < g->edges && ready; e++)
				for (size_t k = done; g->to[e] == g->node[i] && k < g->n && ready; k++)
					ready = g->node[k] != g->from[e];
		}
		if (i == g->n)
			return false;
		void *next = g->node[i];
		memmove(&g->node[done + 1], &g->node[done], (i - done) * sizeof(void *));
		g->node[done] = next;
	}
	return true;
}

/* False: there is no memory, or the driver does not tell; as with an edge that tells more than that a node comes later. */
static bool nodes_of(void *graph, graph_nodes *g)
{
	*g = (graph_nodes){ .node = NULL };
	if (cuGraphGetNodes(graph, NULL, &g->n) || cuGraphGetEdges(graph, NULL, NULL, NULL, &g->edges))
		return false;
	g->node = (void **)calloc(g->n + 1, sizeof(void *));
	g->from = (void **)calloc(g->edges + 1, sizeof(void *));
	g->to = (void **)calloc(g->edges + 1, sizeof(void *));
	char *data = (char *)calloc(g->edges + 1, 8); /* CUgraphEdgeData */
	bool ok = g->node && g->from && g->to && data && (!g->n || !cuGraphGetNodes(graph, g->node, &g->n)) &&
	          (!g->edges || !cuGraphGetEdges(graph, g->from, g->to, data, &g->edges)) && sort(g);
	free(data);
	if (!ok)
		nodes_free(g);
	return ok;
}

/* Whether all of its nodes can be done one by one.  Graphs in it cannot: a program that has one ended on an H200. */
static bool can_be_done(void *graph)
{
	graph_nodes g;
	bool ok = nodes_of(graph, &g);

	for (size_t i = 0; ok && i < g.n; i++) {
		int type = -1;
		ok = !cuGraphNodeGetType(g.node[i], &type) && type >= RT_NODE_KERNEL && type <= RT_NODE_EMPTY &&
		     type != RT_NODE_GRAPH;
	}
	nodes_free(&g);
	return ok;
}

/* ---- launches ---- */

typedef struct run {
	void *stream;
	int (*launch)(void *exec, void *stream);
} run;

/* Adds a copy of a node to a graph. */
static int add_alike(void *graph, void *node, int type)
{
	dr_kernel_node kernel;
	dr_copy3d copy;
	rt_set_node set;
	rt_host_node host;
	void *made = NULL, *context = NULL;
	int e;

	cuCtxGetCurrent(&context);
	switch (type) {
	case RT_NODE_KERNEL:
		e = cuGraphKernelNodeGetParams(node, &kernel);
		e = e ? e : cuGraphAddKernelNode(&made, graph, NULL, 0, &kernel);
		return e ? e : cuGraphKernelNodeCopyAttributes(made, node);
	case RT_NODE_COPY:
		e = cuGraphMemcpyNodeGetParams(node, &copy);
		return e ? e : cuGraphAddMemcpyNode(&made, graph, NULL, 0, &copy, context);
	case RT_NODE_SET:
		e = cuGraphMemsetNodeGetParams(node, &set);
		return e ? e : cuGraphAddMemsetNode(&made, graph, NULL, 0, &set, context);
	default: e = cuGraphHostNodeGetParams(node, &host); return e ? e : cuGraphAddHostNode(&made, graph, NULL, 0, &host);
	}
}

static int do_node(const run *r, void *node, int type)
{
	void *graph = NULL, *exec = NULL;
	int e = cuGraphCreate(&graph, 0);

	e = e ? e : add_alike(graph, node, type);
	e = e ? e : cuGraphInstantiateWithFlags(&exec, graph, 0);
	e = e ? e : r->launch(exec, r->stream);
	if (exec)
		cuGraphExecDestroy(exec); /* when it has run */
	if (graph)
		cuGraphDestroy(graph);
	return e;
}

static san_shape shape_of(void *node, const rt_kernel_node *p)
{
	san_shape shape = { .grid = { p->grid.x, p->grid.y, p->grid.z },
		                .block = { p->block.x, p->block.y, p->block.z },
		                .smem = p->smem };
	rt_launch_attr a = { .id = 0 };

	if (!cuGraphKernelNodeGetAttribute(node, RT_ATTR_CLUSTER, &a.value))
		memcpy(shape.cluster, &a.value.cluster, sizeof shape.cluster);
	memset(&a.value, 0, sizeof a.value);
	if (!cuGraphKernelNodeGetAttribute(node, RT_ATTR_COOPERATIVE, &a.value))
		shape.cooperative = a.value.cooperative != 0;
	return shape;
}

static int do_kernel(const run *r, void *node)
{
	dr_kernel_node p;
	int e = cuGraphKernelNodeGetParams(node, &p);

	if (e)
		return e;
	const san_shape shape = shape_of(node, &p.as);
	rec_inside--;
	const bool recorded = rec_launches(p.as.func ? p.as.func : p.kernel, r->stream, &shape, p.as.params, p.as.extra);
	rec_inside++;
	e = do_node(r, node, RT_NODE_KERNEL);
	rec_inside--;
	e = rec_launched(recorded, e);
	rec_inside++;
	return e;
}

static int do_nodes(const run *r, const graph_nodes *g)
{
	int e = 0;

	for (size_t i = 0; !e && i < g->n; i++) {
		int type = RT_NODE_EMPTY;
		e = cuGraphNodeGetType(g->node[i], &type);
		if (!e && type != RT_NODE_EMPTY)
			e = type == RT_NODE_KERNEL ? do_kernel(r, g->node[i]) : do_node(r, g->node[i], type);
	}
	return e;
}

/* The nodes that a launch does now. */
static const char *to_do(const executable *x, graph_nodes *g)
{
	size_t kept = 0;

	if (!nodes_of(x->copy->graph, g))
		return "the driver does not tell its nodes, or memory is short";
	for (size_t i = 0; i < g->n; i++)
		if (!is_off(x, g->node[i]))
			g->node[kept++] = g->node[i];
	g->n = kept;
	return NULL;
}

int rec_graph_launch(void *exec, void *stream, int (*launch)(void *exec, void *stream))
{
	if (rec_inside || rec_is_captured(stream) || !rec_enter())
		return launch(exec, stream); /* of a capture it becomes a node */
	const run r = { stream, launch };
	graph_nodes g = { .node = NULL };
	rec_inside++;
	const executable *x = executable_of(exec);
	const char *why = !x ? "where it was made is not seen" : x->why ? x->why : rec_captures() ? REC_CAPTURES : to_do(x, &g);
	copied *c = why ? NULL : x->copy;
	if (c)
		c->uses++; /* another thread may end or update the graph meanwhile */
	rec_inside--;
	rec_leave();

	rec_inside++;
	int e = why ? launch(exec, stream) : do_nodes(&r, &g);
	rec_inside--;
	nodes_free(&g);
	if (why)
		rec_left("(a graph)", why);
	else if (rec_enter()) {
		copy_unused(c);
		rec_leave();
	}
	return e;
}
