/* SPDX-License-Identifier: MIT */
/* Graphs: the calls of the runtime and of the driver, most of which are the same under two names. */
#include "api.h"
#include "graph.h"

#include <stdlib.h>
#include <string.h>

static int graph_new(san_graph **out, unsigned flags)
{
	(void)flags;
	*out = san_graph_new();
	return *out ? SAN_OK : SAN_MEMORY;
}

/* A child graph is its node's, and one that a stream captures is the stream's. */
static int destroy(san_graph *g)
{
	const san_stream *s = san.streams;

	while (s && s->capture != g)
		s = s->next;
	if (s || g->owned)
		return SAN_VALUE;
	san_graph_free(g);
	return SAN_OK;
}

BOTH(cudaGraphCreate, cuGraphCreate, (san_graph * *out, unsigned flags), GIVEN(out, graph_new(out, flags)))
BOTH(cudaGraphDestroy, cuGraphDestroy, (san_graph * g), OF_GRAPH(g, destroy(g)))
BOTH(cudaGraphClone, cuGraphClone, (san_graph * *out, san_graph *g),
     OF_GRAPH(g, GIVEN(out, san_graph_clone(g, SAN_GRAPH, out))))

/* ---- nodes are added ---- */

bool san_graph_takes(san_node **out, const san_graph *g, san_node *const *after, size_t n)
{
	bool takes = out && san_handle_lives(g, SAN_GRAPH) && (after || !n);

	for (size_t i = 0; i < n && takes; i++)
		takes = san_handle_lives(after[i], SAN_NODE) && after[i]->graph == g;
	return takes;
}

/* Dependencies of a new node; one that cannot have them is none. */
int san_graph_add(san_node **out, san_node *const *after, size_t n, int e)
{
	if (e)
		return e;
	for (size_t i = 0; i < n && !e; i++)
		e = san_node_depends(*out, after[i]);
	if (e) {
		san_graph_drop(*out);
		*out = NULL;
	}
	return e;
}

/* The kernel that a node is to launch, and its arguments, to be freed. */
static int kernel_node(const rt_kernel_node *p, const void *kernel, san_kernel **k, san_shape *shape, void ***values)
{
	int e = p ? san_kernel_for(p->func ? p->func : kernel, k) : SAN_VALUE;

	*values = NULL;
	if (e || (e = san_unpack(*k, p->params, p->extra, values)))
		return e;
	*shape = (san_shape){ .grid = { p->grid.x, p->grid.y, p->grid.z },
		                  .block = { p->block.x, p->block.y, p->block.z },
		                  .smem = p->smem };
	return SAN_OK;
}

static int add_kernel(san_node **out, san_graph *g, const rt_kernel_node *p, const void *kernel)
{
	san_shape shape;
	san_kernel *k;
	void **values;
	int e = kernel_node(p, kernel, &k, &shape, &values);

	e = e ? e : san_graph_launch(g, k, &shape, values, out);
	free(values);
	return e;
}

/* A copy as one of the two APIs describes it, which is checked as one that is captured. */
static int rows_of(san_rows *rows, const rt_copy3d *c, const dr_copy3d *d)
{
	san_stream s = { .capture = san_graph_new() };
	int e = !s.capture ? SAN_MEMORY : c ? san_copy3d(c, &s) : san_driver_copy3d(d, &s);

	if (!e)
		*rows = s.capture->first->rows;
	san_graph_free(s.capture);
	return e;
}

static int add_copy(san_node **out, san_graph *g, const rt_copy3d *c, const dr_copy3d *d)
{
	san_rows rows;
	int e = rows_of(&rows, c, d);

	return e ? e : san_graph_copy(g, &rows, out);
}

static int add_host(san_node **out, san_graph *g, const rt_host_node *p)
{
	return GIVEN(p->fn, san_graph_host(g, p->fn, p->user, out));
}

static int add_any(san_node **out, san_graph *g, const rt_any_node *p, bool of_driver)
{
	switch (p->type) {
	case RT_NODE_KERNEL: return add_kernel(out, g, &p->of.kernel.as, of_driver ? p->of.kernel.kernel : NULL);
	case RT_NODE_COPY:
		return of_driver ? add_copy(out, g, NULL, &p->of.driver_copy.copy) : add_copy(out, g, &p->of.copy.copy, NULL);
	case RT_NODE_SET: return san_graph_set(g, &p->of.set, out);
	case RT_NODE_HOST: return add_host(out, g, &p->of.host);
	case RT_NODE_GRAPH: return OF_GRAPH(p->of.child, san_graph_child(g, p->of.child, out));
	case RT_NODE_EMPTY: return san_graph_child(g, NULL, out);
	default: san_say("nodes of type %d cannot be added to graphs", p->type); return SAN_NOT_SUPPORTED;
	}
}

CALL(cudaGraphAddKernelNode, (NODE, const rt_kernel_node *p), ADD(p, add_kernel(out, g, p, NULL)))
DRIVER(cuGraphAddKernelNode, (NODE, const rt_kernel_node *p), ADD(p, add_kernel(out, g, p, NULL)))
DRIVER(cuGraphAddKernelNode_v2, (NODE, const dr_kernel_node *p), ADD(p, add_kernel(out, g, &p->as, p->kernel)))
CALL(cudaGraphAddMemsetNode, (NODE, const rt_set_node *p), ADD(p, san_graph_set(g, p, out)))
DRIVER(cuGraphAddMemsetNode, (NODE, const rt_set_node *p, void *context), ((void)context, ADD(p, san_graph_set(g, p, out))))
CALL(cudaGraphAddMemcpyNode, (NODE, const rt_copy3d *p), ADD(p, add_copy(out, g, p, NULL)))
DRIVER(cuGraphAddMemcpyNode, (NODE, const dr_copy3d *p, void *context), ((void)context, ADD(p, add_copy(out, g, NULL, p))))
#define FLAT                                                                                                                \
	((san_rows){ .dst = dst, .src = src, .dst_pitch = size, .src_pitch = size, .width = size, .height = 1, .kind = kind })
CALL(cudaGraphAddMemcpyNode1D, (NODE, void *dst, const void *src, size_t size, int kind),
     ADD(true, san_graph_copy(g, &FLAT, out)))
BOTH(cudaGraphAddHostNode, cuGraphAddHostNode, (NODE, const rt_host_node *p), ADD(p, add_host(out, g, p)))
BOTH(cudaGraphAddEmptyNode, cuGraphAddEmptyNode, (NODE), ADD(true, san_graph_child(g, NULL, out)))
BOTH(cudaGraphAddChildGraphNode, cuGraphAddChildGraphNode, (NODE, san_graph *child),
     ADD(true, OF_GRAPH(child, san_graph_child(g, child, out))))
#define EDGES san_node **out, san_graph *g, san_node *const *after, const void *edges, size_t n
CALL(cudaGraphAddNode, (EDGES, const rt_any_node *p), ((void)edges, ADD(p, add_any(out, g, p, false))))
DRIVER(cuGraphAddNode_v2, (EDGES, const rt_any_node *p), ((void)edges, ADD(p, add_any(out, g, p, true))))
DRIVER(cuGraphAddNode, (NODE, const rt_any_node *p), ADD(p, add_any(out, g, p, true))) /* until CUDA 12.2 */
BOTH(cudaGraphDestroyNode, cuGraphDestroyNode, (san_node * n), OF_NODE(n, (san_graph_drop(n), SAN_OK)))

/* ---- dependencies ---- */

static int depend(const san_graph *g, san_node *const *from, san_node *const *to, size_t n, bool wanted)
{
	int e = n && (!from || !to) ? SAN_VALUE : SAN_OK;

	for (size_t i = 0; i < n && !e; i++)
		if (!san_handle_lives(from[i], SAN_NODE) || !san_handle_lives(to[i], SAN_NODE) || from[i]->graph != g ||
		    to[i]->graph != g)
			e = SAN_VALUE;
		else
			e = wanted ? san_node_depends(to[i], from[i]) : san_node_depends_no_more(to[i], from[i]);
	return e;
}

/* Puts as many into the two arrays as fit; *n is how many fit, and becomes how many there are. */
typedef struct list {
	san_node **a, **b;
	size_t room, n;
} list;

static void put(list *l, san_node *a, san_node *b)
{
	if (l->n < l->room && l->a)
		l->a[l->n] = a;
	if (l->n < l->room && l->b)
		l->b[l->n] = b;
	l->n++;
}

static int put_all(list l, size_t *n)
{
	*n = l.a ? (l.n < l.room ? l.n : l.room) : l.n;
	return SAN_OK;
}

static int nodes(const san_graph *g, san_node **out, size_t *n, bool only_roots)
{
	list l = { .a = out, .room = *n };

	for (san_node *node = g->first; node; node = node->next)
		if (!only_roots || !node->nafter)
			put(&l, node, NULL);
	return put_all(l, n);
}

static int edges_of(const san_graph *g, san_node **from, san_node **to, void *data, size_t *n)
{
	list l = { .a = from, .b = to, .room = *n };

	for (san_node *node = g->first; node; node = node->next)
		for (size_t i = 0; i < node->nafter; i++)
			put(&l, node->after[i], node);
	if (data && from)
		memset(data, 0, 8 * (l.n < l.room ? l.n : l.room)); /* CUgraphEdgeData: full dependencies */
	return put_all(l, n);
}

/* What a node depends on, or what depends on it. */
static int neighbours(const san_node *of, san_node **out, void *data, size_t *n, bool in_front)
{
	list l = { .a = out, .room = *n };

	for (san_node *node = of->graph->first; node; node = node->next)
		for (size_t i = 0; i < node->nafter; i++)
			if ((in_front ? node : node->after[i]) == of)
				put(&l, in_front ? node->after[i] : node, NULL);
	if (data && out)
		memset(data, 0, 8 * (l.n < l.room ? l.n : l.room));
	return put_all(l, n);
}

#define PAIRS san_graph *g, san_node *const *from, san_node *const *to, const void *edges, size_t n
BOTH(cudaGraphAddDependencies, cuGraphAddDependencies_v2, (PAIRS), ((void)edges, OF_GRAPH(g, depend(g, from, to, n, true))))
BOTH(cudaGraphRemoveDependencies, cuGraphRemoveDependencies_v2, (PAIRS),
     ((void)edges, OF_GRAPH(g, depend(g, from, to, n, false))))
BOTH(cudaGraphGetNodes, cuGraphGetNodes, (san_graph * g, san_node **out, size_t *n),
     OF_GRAPH(g, GIVEN(n, nodes(g, out, n, false))))
BOTH(cudaGraphGetRootNodes, cuGraphGetRootNodes, (san_graph * g, san_node **out, size_t *n),
     OF_GRAPH(g, GIVEN(n, nodes(g, out, n, true))))
BOTH(cudaGraphGetEdges, cuGraphGetEdges_v2, (san_graph * g, san_node **from, san_node **to, void *data, size_t *n),
     OF_GRAPH(g, GIVEN(n, edges_of(g, from, to, data, n))))
BOTH(cudaGraphNodeGetDependencies, cuGraphNodeGetDependencies_v2, (san_node * of, san_node **out, void *data, size_t *n),
     OF_NODE(of, GIVEN(n, neighbours(of, out, data, n, true))))
BOTH(cudaGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes_v2, (san_node * of, san_node **out, void *data, size_t *n),
     OF_NODE(of, GIVEN(n, neighbours(of, out, data, n, false))))

/* Until CUDA 12.2 edges had no data. */
#define PLAIN_PAIRS san_graph *g, san_node *const *from, san_node *const *to, size_t n
DRIVER(cuGraphAddDependencies, (PLAIN_PAIRS), OF_GRAPH(g, depend(g, from, to, n, true)))
DRIVER(cuGraphRemoveDependencies, (PLAIN_PAIRS), OF_GRAPH(g, depend(g, from, to, n, false)))
DRIVER(cuGraphGetEdges, (san_graph * g, san_node **from, san_node **to, size_t *n),
       OF_GRAPH(g, GIVEN(n, edges_of(g, from, to, NULL, n))))
DRIVER(cuGraphNodeGetDependencies, (san_node * of, san_node **out, size_t *n),
       OF_NODE(of, GIVEN(n, neighbours(of, out, NULL, n, true))))
DRIVER(cuGraphNodeGetDependentNodes, (san_node * of, san_node **out, size_t *n),
       OF_NODE(of, GIVEN(n, neighbours(of, out, NULL, n, false))))

/* ---- what nodes do ---- */

static int type_of(const san_node *n)
{
	switch (n->work) {
	case SAN_WORK_LAUNCH: return RT_NODE_KERNEL;
	case SAN_WORK_COPY: return RT_NODE_COPY;
	case SAN_WORK_SET: return RT_NODE_SET;
	case SAN_WORK_HOST: return RT_NODE_HOST;
	case SAN_WORK_CHILD: return RT_NODE_GRAPH;
	case SAN_WORK_ALLOC: return RT_NODE_ALLOC;
	case SAN_WORK_FREE: return RT_NODE_FREE;
	default: return RT_NODE_EMPTY;
	}
}

/* A node of the kind that a call is for, which cannot do without what is `given`. */
#define OF_KIND(n, kind, given, call) OF_NODE(n, (n)->work == SAN_WORK_##kind && (given) ? (call) : SAN_VALUE)

static rt_dim3 dim3_of(const uint32_t *x) { return (rt_dim3){ x[0], x[1], x[2] }; }

static int get_kernel(const san_node *n, rt_kernel_node *p, bool of_driver)
{
	const san_kernel *k = n->kernel;

	*p = (rt_kernel_node){ .func = (void *)(uintptr_t)(k->host && !of_driver ? k->host : k),
		                   .grid = dim3_of(n->shape.grid),
		                   .block = dim3_of(n->shape.block),
		                   .smem = n->shape.smem,
		                   .params = n->values };
	return SAN_OK;
}

static int get_driver_kernel(const san_node *n, dr_kernel_node *p)
{
	*p = (dr_kernel_node){ .kernel = NULL };
	return get_kernel(n, &p->as, true);
}

static size_t rows_of_slice(size_t slice, size_t pitch, size_t height) { return slice && pitch ? slice / pitch : height; }

static int get_copy(const san_node *n, rt_copy3d *p)
{
	const san_rows *r = &n->rows;
	const size_t from = rows_of_slice(r->src_slice, r->src_pitch, r->height);
	const size_t to = rows_of_slice(r->dst_slice, r->dst_pitch, r->height);

	*p = (rt_copy3d){ .src = { (void *)(uintptr_t)r->src, r->src_pitch, r->width, from },
		              .dst = { r->dst, r->dst_pitch, r->width, to },
		              .extent = { r->width, r->height, r->more + 1 },
		              .kind = r->kind };
	return SAN_OK;
}

static int get_driver_copy(const san_node *n, dr_copy3d *p)
{
	rt_copy3d c;

	get_copy(n, &c);
	*p = (dr_copy3d){
		.src = { .type = DR_UNIFIED, .device = (uintptr_t)c.src.ptr, .pitch = c.src.pitch, .height = c.src.ysize },
		.dst = { .type = DR_UNIFIED, .device = (uintptr_t)c.dst.ptr, .pitch = c.dst.pitch, .height = c.dst.ysize },
		.width = c.extent.width,
		.height = c.extent.height,
		.depth = c.extent.depth
	};
	return SAN_OK;
}

static int get_alloc(const san_node *n, rt_alloc_node *p)
{
	const san_block *b = san_block_at((uintptr_t)n->memory);

	memset(p, 0, sizeof *p);
	p->size = b ? b->size : 0, p->at = n->memory;
	return SAN_OK;
}

BOTH(cudaGraphNodeGetType, cuGraphNodeGetType, (san_node * n, int *type),
     OF_NODE(n, GIVEN(type, (*type = type_of(n), SAN_OK))))
BOTH(cudaGraphNodeFindInClone, cuGraphNodeFindInClone, (san_node * *out, san_node *n, san_graph *clone),
     OF_GRAPH(clone, OF_NODE(n, GIVEN(out, (*out = san_graph_made_of(clone, n, false)) ? SAN_OK : SAN_VALUE))))
CALL(cudaGraphKernelNodeGetParams, (san_node * n, rt_kernel_node *p), OF_KIND(n, LAUNCH, p, get_kernel(n, p, false)))
DRIVER(cuGraphKernelNodeGetParams, (san_node * n, rt_kernel_node *p), OF_KIND(n, LAUNCH, p, get_kernel(n, p, true)))
DRIVER(cuGraphKernelNodeGetParams_v2, (san_node * n, dr_kernel_node *p), OF_KIND(n, LAUNCH, p, get_driver_kernel(n, p)))
CALL(cudaGraphMemcpyNodeGetParams, (san_node * n, rt_copy3d *p), OF_KIND(n, COPY, p, get_copy(n, p)))
DRIVER(cuGraphMemcpyNodeGetParams, (san_node * n, dr_copy3d *p), OF_KIND(n, COPY, p, get_driver_copy(n, p)))
BOTH(cudaGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams, (san_node * n, rt_set_node *p),
     OF_KIND(n, SET, p, (*p = n->set, SAN_OK)))
BOTH(cudaGraphHostNodeGetParams, cuGraphHostNodeGetParams, (san_node * n, rt_host_node *p),
     OF_KIND(n, HOST, p, (*p = (rt_host_node){ n->fn, n->user }, SAN_OK)))
BOTH(cudaGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph, (san_node * n, san_graph **out),
     OF_KIND(n, CHILD, out, (*out = n->child, SAN_OK)))
BOTH(cudaGraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams, (san_node * n, rt_alloc_node *p),
     OF_KIND(n, ALLOC, p, get_alloc(n, p)))
BOTH(cudaGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams, (san_node * n, void **at),
     OF_KIND(n, FREE, at, (*at = n->memory, SAN_OK)))

/* ---- and are to do ---- */

static int set_kernel(san_node *n, const rt_kernel_node *p, const void *kernel)
{
	san_shape shape;
	san_kernel *k;
	void **values;
	int e = kernel_node(p, kernel, &k, &shape, &values);

	if (!e) { /* attributes stay */
		memcpy(shape.cluster, n->shape.cluster, sizeof shape.cluster);
		shape.cooperative = n->shape.cooperative, shape.overlap = n->shape.overlap;
		e = san_node_launch(n, k, &shape, values);
	}
	free(values);
	return e;
}

static int set_copy(san_node *n, const rt_copy3d *c, const dr_copy3d *d) { return rows_of(&n->rows, c, d); }

static int set_host(san_node *n, const rt_host_node *p)
{
	n->fn = p->fn, n->user = p->user;
	return SAN_OK;
}

static int set_attribute(san_node *n, unsigned id, const void *value)
{
	rt_launch_attr a = { .id = id };

	memcpy(&a.value, value, sizeof a.value);
	san_shape_attribute(&n->shape, &a);
	return SAN_OK;
}

static int get_attribute(const san_node *n, unsigned id, void *value)
{
	rt_launch_attr a = { .id = id };

	if (id == RT_ATTR_CLUSTER)
		a.value.cluster = dim3_of(n->shape.cluster);
	else if (id == RT_ATTR_COOPERATIVE)
		a.value.cooperative = n->shape.cooperative;
	else if (id == RT_ATTR_OVERLAP)
		a.value.overlap = n->shape.overlap;
	memcpy(value, &a.value, sizeof a.value);
	return SAN_OK;
}

static int copy_attributes(san_node *to, const san_node *from)
{
	const san_shape was = to->shape;

	to->shape = from->shape;
	memcpy(to->shape.grid, was.grid, sizeof was.grid);
	memcpy(to->shape.block, was.block, sizeof was.block);
	to->shape.smem = was.smem;
	return SAN_OK;
}

CALL(cudaGraphKernelNodeSetParams, (san_node * n, const rt_kernel_node *p), OF_KIND(n, LAUNCH, p, set_kernel(n, p, NULL)))
DRIVER(cuGraphKernelNodeSetParams, (san_node * n, const rt_kernel_node *p), OF_KIND(n, LAUNCH, p, set_kernel(n, p, NULL)))
DRIVER(cuGraphKernelNodeSetParams_v2, (san_node * n, const dr_kernel_node *p),
       OF_KIND(n, LAUNCH, p, set_kernel(n, &p->as, p->kernel)))
CALL(cudaGraphMemcpyNodeSetParams, (san_node * n, const rt_copy3d *p), OF_KIND(n, COPY, p, set_copy(n, p, NULL)))
CALL(cudaGraphMemcpyNodeSetParams1D, (san_node * n, void *dst, const void *src, size_t size, int kind),
     OF_KIND(n, COPY, true, (n->rows = FLAT, SAN_OK)))
DRIVER(cuGraphMemcpyNodeSetParams, (san_node * n, const dr_copy3d *p), OF_KIND(n, COPY, p, set_copy(n, NULL, p)))
BOTH(cudaGraphMemsetNodeSetParams, cuGraphMemsetNodeSetParams, (san_node * n, const rt_set_node *p),
     OF_KIND(n, SET, p, (n->set = *p, SAN_OK)))
BOTH(cudaGraphHostNodeSetParams, cuGraphHostNodeSetParams, (san_node * n, const rt_host_node *p),
     OF_KIND(n, HOST, p, set_host(n, p)))
BOTH(cudaGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute, (san_node * n, unsigned id, const void *value),
     OF_KIND(n, LAUNCH, value, set_attribute(n, id, value)))
BOTH(cudaGraphKernelNodeGetAttribute, cuGraphKernelNodeGetAttribute, (san_node * n, unsigned id, void *value),
     OF_KIND(n, LAUNCH, value, get_attribute(n, id, value)))
BOTH(cudaGraphKernelNodeCopyAttributes, cuGraphKernelNodeCopyAttributes, (san_node * to, san_node *from),
     OF_KIND(to, LAUNCH, true, OF_KIND(from, LAUNCH, true, copy_attributes(to, from))))

/* ---- graphs that run ---- */

typedef struct update_info {
	int result;
	san_node *node, *from; /* of the graph that it was to become */
} update_info;

/* Why an instantiated graph cannot become another graph: nodes are pairs in their order, and those they depend on too. */
static update_info difference(san_graph *exec, const san_graph *with)
{
	san_node *a = exec->first, *b = with->first;

	if (exec->count != with->count)
		return (update_info){ .result = RT_UPDATE_TOPOLOGY };
	for (; a; a = a->next, b = b->next) {
		a->copy = b;
		if (a->nafter != b->nafter)
			return (update_info){ .result = RT_UPDATE_TOPOLOGY, .node = b };
		for (size_t i = 0; i < a->nafter; i++)
			if (!san_node_is_after(b, a->after[i]->copy))
				return (update_info){ .result = RT_UPDATE_TOPOLOGY, .node = b, .from = b->after[i] };
		if (a->work != b->work)
			return (update_info){ .result = RT_UPDATE_TYPE, .node = b };
		const update_info inner = a->child ? difference(a->child, b->child) : (update_info){ .result = 0 };
		if (inner.result)
			return inner;
	}
	return (update_info){ .result = 0 };
}

/* Nodes of an instantiated graph keep the names under which the program knows them, and whether they are disabled. */
static void stand_in(san_graph *now, const san_graph *was)
{
	const san_node *a = was->first;

	for (san_node *b = now->first; b; a = a->next, b = b->next) {
		b->original = a->original, b->left_out = a->left_out;
		if (b->child)
			stand_in(b->child, a->child);
	}
}

/* The work of an instantiated graph becomes that of another graph of the same shape. */
static int update(san_graph *exec, const san_graph *with, update_info *info)
{
	const update_info found = difference(exec, with);
	san_graph *g = NULL;
	int e = found.result ? SAN_UPDATE : san_graph_clone(with, SAN_EXEC, &g);

	if (info)
		*info = found;
	if (e)
		return e;
	stand_in(g, exec);
	san_graph_swap(exec, g);
	san_graph_free(g);
	return SAN_OK;
}

static int update_child(san_node *n, const san_graph *with)
{
	int e = update(n->child, with, NULL);

	return e == SAN_UPDATE ? SAN_VALUE : e;
}

static int instantiate(san_graph **out, const san_graph *g)
{
	return OF_GRAPH(g, GIVEN(out, san_graph_clone(g, SAN_EXEC, out)));
}

static int instantiate_v2(san_graph **out, const san_graph *g, san_node **node, char *log, size_t size)
{
	if (node)
		*node = NULL;
	if (log && size)
		*log = 0;
	return instantiate(out, g);
}

static int instantiate_with(san_graph **out, const san_graph *g, rt_instantiate *p)
{
	p->failed_at = NULL, p->result = 0;
	return instantiate(out, g);
}

static int update_v1(san_graph *exec, const san_graph *with, san_node **node, int *result)
{
	update_info info;
	int e = update(exec, with, &info);

	if (node)
		*node = info.node;
	if (result)
		*result = info.result;
	return e;
}

static int exec_free(san_graph *exec)
{
	san_graph_free(exec);
	return SAN_OK;
}

/* A call for an instantiated graph, and one for a node of it, which `n` becomes. */
#define RUNS(call) (san_handle_lives(exec, SAN_EXEC) ? (call) : SAN_VALUE)
#define OF_ANY(call) RUNS(OF_NODE(n, (n = san_graph_made_of(exec, n, true)) ? (call) : SAN_VALUE))
#define OF_EXEC(kind, given, call) OF_ANY(OF_KIND(n, kind, given, call))

CALL(cudaGraphInstantiate, (san_graph * *out, san_graph *g, unsigned long long flags), ((void)flags, instantiate(out, g)))
BOTH(cudaGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, (san_graph * *out, san_graph *g, unsigned long long flags),
     ((void)flags, instantiate(out, g)))
DRIVER(cuGraphInstantiate_v2, (san_graph * *out, san_graph *g, san_node **node, char *log, size_t size),
       instantiate_v2(out, g, node, log, size))
BOTH(cudaGraphInstantiateWithParams, cuGraphInstantiateWithParams, (san_graph * *out, san_graph *g, rt_instantiate *p),
     GIVEN(p, instantiate_with(out, g, p)))
BOTH(cudaGraphLaunch, cuGraphLaunch, (san_graph * exec, san_stream *s), RUNS(san_graph_run(exec, san_stream_of(s))))
BOTH(cudaGraphExecDestroy, cuGraphExecDestroy, (san_graph * exec), RUNS(exec_free(exec)))
BOTH(cudaGraphUpload, cuGraphUpload, (san_graph * exec, san_stream *s), ((void)s, RUNS(SAN_OK)))
BOTH(cudaGraphExecUpdate, cuGraphExecUpdate_v2, (san_graph * exec, san_graph *g, update_info *info),
     OF_GRAPH(g, RUNS(update(exec, g, info))))
DRIVER(cuGraphExecUpdate, (san_graph * exec, san_graph *g, san_node **node, int *result),
       OF_GRAPH(g, RUNS(update_v1(exec, g, node, result))))
BOTH(cudaGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams, (san_graph * exec, san_node *n, san_graph *g),
     OF_GRAPH(g, OF_EXEC(CHILD, true, update_child(n, g))))
BOTH(cudaGraphNodeSetEnabled, cuGraphNodeSetEnabled, (san_graph * exec, san_node *n, unsigned on),
     OF_ANY((n->left_out = !on, SAN_OK)))
BOTH(cudaGraphNodeGetEnabled, cuGraphNodeGetEnabled, (san_graph * exec, san_node *n, unsigned *on),
     OF_ANY(GIVEN(on, (*on = !n->left_out, SAN_OK))))
CALL(cudaGraphExecKernelNodeSetParams, (san_graph * exec, san_node *n, const rt_kernel_node *p),
     OF_EXEC(LAUNCH, p, set_kernel(n, p, NULL)))
DRIVER(cuGraphExecKernelNodeSetParams, (san_graph * exec, san_node *n, const rt_kernel_node *p),
       OF_EXEC(LAUNCH, p, set_kernel(n, p, NULL)))
DRIVER(cuGraphExecKernelNodeSetParams_v2, (san_graph * exec, san_node *n, const dr_kernel_node *p),
       OF_EXEC(LAUNCH, p, set_kernel(n, &p->as, p->kernel)))
CALL(cudaGraphExecMemcpyNodeSetParams, (san_graph * exec, san_node *n, const rt_copy3d *p),
     OF_EXEC(COPY, p, set_copy(n, p, NULL)))
CALL(cudaGraphExecMemcpyNodeSetParams1D, (san_graph * exec, san_node *n, void *dst, const void *src, size_t size, int kind),
     OF_EXEC(COPY, true, (n->rows = FLAT, SAN_OK)))
DRIVER(cuGraphExecMemcpyNodeSetParams, (san_graph * exec, san_node *n, const dr_copy3d *p, void *context),
       ((void)context, OF_EXEC(COPY, p, set_copy(n, NULL, p))))
CALL(cudaGraphExecMemsetNodeSetParams, (san_graph * exec, san_node *n, const rt_set_node *p),
     OF_EXEC(SET, p, (n->set = *p, SAN_OK)))
DRIVER(cuGraphExecMemsetNodeSetParams, (san_graph * exec, san_node *n, const rt_set_node *p, void *context),
       ((void)context, OF_EXEC(SET, p, (n->set = *p, SAN_OK))))
BOTH(cudaGraphExecHostNodeSetParams, cuGraphExecHostNodeSetParams, (san_graph * exec, san_node *n, const rt_host_node *p),
     OF_EXEC(HOST, p, set_host(n, p)))
