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

BOTH(cudaGraphCreate, cuGraphCreate, (san_graph * *out, unsigned flags), graph_new(out, flags))
BOTH(cudaGraphDestroy, cuGraphDestroy, (san_graph * g), OF_GRAPH(g, (san_graph_free(g), SAN_OK)))
BOTH(cudaGraphClone, cuGraphClone, (san_graph * *out, san_graph *g), OF_GRAPH(g, san_graph_clone(g, out)))

/* ---- nodes are added ---- */

/* Dependencies of a new node; one that cannot have them is none. */
int san_graph_add(san_node **out, san_graph *g, san_node *const *after, size_t n, int e)
{
	if (e)
		return e;
	for (size_t i = 0; i < n && !e; i++)
		e = after && after[i] ? san_node_depends(*out, after[i]) : SAN_VALUE;
	if (e)
		san_graph_drop(*out);
	(void)g;
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

/* A copy as one of the two APIs describes it. */
static int copy_nodes(san_graph *g, const rt_copy3d *c, const dr_copy3d *d)
{
	san_stream s = { .capture = g };

	return c ? san_copy3d(c, &s) : d ? san_driver_copy3d(d, &s) : SAN_VALUE;
}

/* A copy of several slices is a child graph. */
static int add_copy(san_node **out, san_graph *g, const rt_copy3d *c, const dr_copy3d *d)
{
	san_graph *made = san_graph_new();
	int e = made ? copy_nodes(made, c, d) : SAN_MEMORY;

	if (!e)
		e = made->count == 1 ? san_graph_copy(g, &made->first->rows, out) : san_graph_child(g, made, out);
	san_graph_free(made);
	return e;
}

static int add_any(san_node **out, san_graph *g, const rt_any_node *p, bool of_driver)
{
	if (!p)
		return SAN_VALUE;
	switch (p->type) {
	case RT_NODE_KERNEL: return add_kernel(out, g, &p->of.kernel.as, of_driver ? p->of.kernel.kernel : NULL);
	case RT_NODE_COPY:
		return of_driver ? add_copy(out, g, NULL, &p->of.driver_copy.copy) : add_copy(out, g, &p->of.copy.copy, NULL);
	case RT_NODE_SET: return san_graph_set(g, &p->of.set, out);
	case RT_NODE_HOST: return san_graph_host(g, p->of.host.fn, p->of.host.user, out);
	case RT_NODE_GRAPH: return san_graph_lives(p->of.child) ? san_graph_child(g, p->of.child, out) : SAN_VALUE;
	case RT_NODE_EMPTY: return san_graph_child(g, NULL, out);
	default: san_say("nodes of type %d cannot be added to graphs", p->type); return SAN_NOT_SUPPORTED;
	}
}

CALL(cudaGraphAddKernelNode, (NODE, const rt_kernel_node *p), ADD(add_kernel(out, g, p, NULL)))
DRIVER(cuGraphAddKernelNode, (NODE, const rt_kernel_node *p), ADD(add_kernel(out, g, p, NULL)))
DRIVER(cuGraphAddKernelNode_v2, (NODE, const dr_kernel_node *p), ADD(p ? add_kernel(out, g, &p->as, p->kernel) : SAN_VALUE))
CALL(cudaGraphAddMemsetNode, (NODE, const rt_set_node *p), ADD(p ? san_graph_set(g, p, out) : SAN_VALUE))
DRIVER(cuGraphAddMemsetNode, (NODE, const rt_set_node *p, void *context),
       ((void)context, ADD(p ? san_graph_set(g, p, out) : SAN_VALUE)))
CALL(cudaGraphAddMemcpyNode, (NODE, const rt_copy3d *p), ADD(add_copy(out, g, p, NULL)))
DRIVER(cuGraphAddMemcpyNode, (NODE, const dr_copy3d *p, void *context), ((void)context, ADD(add_copy(out, g, NULL, p))))
#define FLAT ((san_rows){ dst, src, size, size, size, 1, kind })
CALL(cudaGraphAddMemcpyNode1D, (NODE, void *dst, const void *src, size_t size, int kind), ADD(san_graph_copy(g, &FLAT, out)))
BOTH(cudaGraphAddHostNode, cuGraphAddHostNode, (NODE, const rt_host_node *p),
     ADD(p ? san_graph_host(g, p->fn, p->user, out) : SAN_VALUE))
BOTH(cudaGraphAddEmptyNode, cuGraphAddEmptyNode, (NODE), ADD(san_graph_child(g, NULL, out)))
BOTH(cudaGraphAddChildGraphNode, cuGraphAddChildGraphNode, (NODE, san_graph *child),
     ADD(san_graph_lives(child) ? san_graph_child(g, child, out) : SAN_VALUE))
#define EDGES san_node **out, san_graph *g, san_node *const *after, const void *edges, size_t n
CALL(cudaGraphAddNode, (EDGES, const rt_any_node *p), ((void)edges, ADD(add_any(out, g, p, false))))
DRIVER(cuGraphAddNode_v2, (EDGES, const rt_any_node *p), ((void)edges, ADD(add_any(out, g, p, true))))
DRIVER(cuGraphAddNode, (NODE, const rt_any_node *p), ADD(add_any(out, g, p, true))) /* until CUDA 12.2 */
BOTH(cudaGraphDestroyNode, cuGraphDestroyNode, (san_node * n), n ? (san_graph_drop(n), SAN_OK) : SAN_VALUE)

/* ---- dependencies ---- */

static int depend(san_node *const *from, san_node *const *to, size_t n, bool wanted)
{
	int e = n && (!from || !to) ? SAN_VALUE : SAN_OK;

	for (size_t i = 0; i < n && !e; i++)
		if (!from[i] || !to[i])
			e = SAN_VALUE;
		else if (wanted)
			e = san_node_depends(to[i], from[i]);
		else
			san_node_depends_no_more(to[i], from[i]);
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
	if (!n)
		return SAN_VALUE;
	list l = { .a = out, .room = *n };
	for (san_node *node = g->first; node; node = node->next)
		if (!only_roots || !node->nafter)
			put(&l, node, NULL);
	return put_all(l, n);
}

static int edges_of(const san_graph *g, san_node **from, san_node **to, void *data, size_t *n)
{
	if (!n)
		return SAN_VALUE;
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
	if (!of || !n)
		return SAN_VALUE;
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
BOTH(cudaGraphAddDependencies, cuGraphAddDependencies_v2, (PAIRS), ((void)edges, OF_GRAPH(g, depend(from, to, n, true))))
BOTH(cudaGraphRemoveDependencies, cuGraphRemoveDependencies_v2, (PAIRS),
     ((void)edges, OF_GRAPH(g, depend(from, to, n, false))))
BOTH(cudaGraphGetNodes, cuGraphGetNodes, (san_graph * g, san_node **out, size_t *n), OF_GRAPH(g, nodes(g, out, n, false)))
BOTH(cudaGraphGetRootNodes, cuGraphGetRootNodes, (san_graph * g, san_node **out, size_t *n),
     OF_GRAPH(g, nodes(g, out, n, true)))
BOTH(cudaGraphGetEdges, cuGraphGetEdges_v2, (san_graph * g, san_node **from, san_node **to, void *data, size_t *n),
     OF_GRAPH(g, edges_of(g, from, to, data, n)))
BOTH(cudaGraphNodeGetDependencies, cuGraphNodeGetDependencies_v2, (san_node * of, san_node **out, void *data, size_t *n),
     neighbours(of, out, data, n, true))
BOTH(cudaGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes_v2, (san_node * of, san_node **out, void *data, size_t *n),
     neighbours(of, out, data, n, false))

/* Until CUDA 12.2 edges had no data. */
#define PLAIN_PAIRS san_graph *g, san_node *const *from, san_node *const *to, size_t n
DRIVER(cuGraphAddDependencies, (PLAIN_PAIRS), OF_GRAPH(g, depend(from, to, n, true)))
DRIVER(cuGraphRemoveDependencies, (PLAIN_PAIRS), OF_GRAPH(g, depend(from, to, n, false)))
DRIVER(cuGraphGetEdges, (san_graph * g, san_node **from, san_node **to, size_t *n),
       OF_GRAPH(g, edges_of(g, from, to, NULL, n)))
DRIVER(cuGraphNodeGetDependencies, (san_node * of, san_node **out, size_t *n), neighbours(of, out, NULL, n, true))
DRIVER(cuGraphNodeGetDependentNodes, (san_node * of, san_node **out, size_t *n), neighbours(of, out, NULL, n, false))

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

/* A node of the kind that a call is for; parameters that were given. */
#define OF_KIND(n, kind, call) ((n) && (n)->work == SAN_WORK_##kind ? (call) : SAN_VALUE)
#define GIVEN(p, call) ((p) ? (call) : SAN_VALUE)

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

static int get_copy(const san_node *n, rt_copy3d *p)
{
	const san_rows *r = &n->rows;

	*p = (rt_copy3d){ .src = { (void *)(uintptr_t)r->src, r->src_pitch, r->width, r->height },
		              .dst = { r->dst, r->dst_pitch, r->width, r->height },
		              .extent = { r->width, r->height, 1 },
		              .kind = r->kind };
	return SAN_OK;
}

static int get_driver_copy(const san_node *n, dr_copy3d *p)
{
	const san_rows *r = &n->rows;

	*p = (dr_copy3d){ .src = { .type = DR_UNIFIED, .device = (uintptr_t)r->src, .pitch = r->src_pitch, .height = r->height },
		              .dst = { .type = DR_UNIFIED, .device = (uintptr_t)r->dst, .pitch = r->dst_pitch, .height = r->height },
		              .width = r->width,
		              .height = r->height,
		              .depth = 1 };
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
     GIVEN(n, GIVEN(type, (*type = type_of(n), SAN_OK))))
BOTH(cudaGraphNodeFindInClone, cuGraphNodeFindInClone, (san_node * *out, san_node *n, san_graph *clone),
     OF_GRAPH(clone, (*out = san_graph_made_of(clone, n)) ? SAN_OK : SAN_VALUE))
CALL(cudaGraphKernelNodeGetParams, (san_node * n, rt_kernel_node *p), OF_KIND(n, LAUNCH, GIVEN(p, get_kernel(n, p, false))))
DRIVER(cuGraphKernelNodeGetParams, (san_node * n, rt_kernel_node *p), OF_KIND(n, LAUNCH, GIVEN(p, get_kernel(n, p, true))))
DRIVER(cuGraphKernelNodeGetParams_v2, (san_node * n, dr_kernel_node *p),
       OF_KIND(n, LAUNCH, GIVEN(p, get_driver_kernel(n, p))))
CALL(cudaGraphMemcpyNodeGetParams, (san_node * n, rt_copy3d *p), OF_KIND(n, COPY, GIVEN(p, get_copy(n, p))))
DRIVER(cuGraphMemcpyNodeGetParams, (san_node * n, dr_copy3d *p), OF_KIND(n, COPY, GIVEN(p, get_driver_copy(n, p))))
BOTH(cudaGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams, (san_node * n, rt_set_node *p),
     OF_KIND(n, SET, GIVEN(p, (*p = n->set, SAN_OK))))
BOTH(cudaGraphHostNodeGetParams, cuGraphHostNodeGetParams, (san_node * n, rt_host_node *p),
     OF_KIND(n, HOST, GIVEN(p, (*p = (rt_host_node){ n->fn, n->user }, SAN_OK))))
BOTH(cudaGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph, (san_node * n, san_graph **out),
     OF_KIND(n, CHILD, (*out = n->child, SAN_OK)))
BOTH(cudaGraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams, (san_node * n, rt_alloc_node *p),
     OF_KIND(n, ALLOC, GIVEN(p, get_alloc(n, p))))
BOTH(cudaGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams, (san_node * n, void **at),
     OF_KIND(n, FREE, (*at = n->memory, SAN_OK)))

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

static int set_copy(san_node *n, const rt_copy3d *c, const dr_copy3d *d)
{
	san_graph *made = san_graph_new();
	int e = made ? copy_nodes(made, c, d) : SAN_MEMORY;

	if (!e && made->count != 1)
		e = SAN_NOT_SUPPORTED; /* several slices */
	if (!e)
		n->rows = made->first->rows;
	san_graph_free(made);
	return e;
}

static int set_host(san_node *n, const rt_host_node *p)
{
	if (!p)
		return SAN_VALUE;
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

CALL(cudaGraphKernelNodeSetParams, (san_node * n, const rt_kernel_node *p), OF_KIND(n, LAUNCH, set_kernel(n, p, NULL)))
DRIVER(cuGraphKernelNodeSetParams_v2, (san_node * n, const dr_kernel_node *p),
       OF_KIND(n, LAUNCH, GIVEN(p, set_kernel(n, &p->as, p->kernel))))
CALL(cudaGraphMemcpyNodeSetParams, (san_node * n, const rt_copy3d *p), OF_KIND(n, COPY, set_copy(n, p, NULL)))
CALL(cudaGraphMemcpyNodeSetParams1D, (san_node * n, void *dst, const void *src, size_t size, int kind),
     OF_KIND(n, COPY, (n->rows = FLAT, SAN_OK)))
DRIVER(cuGraphKernelNodeSetParams, (san_node * n, const rt_kernel_node *p), OF_KIND(n, LAUNCH, set_kernel(n, p, NULL)))
DRIVER(cuGraphMemcpyNodeSetParams, (san_node * n, const dr_copy3d *p), OF_KIND(n, COPY, set_copy(n, NULL, p)))
BOTH(cudaGraphMemsetNodeSetParams, cuGraphMemsetNodeSetParams, (san_node * n, const rt_set_node *p),
     OF_KIND(n, SET, GIVEN(p, (n->set = *p, SAN_OK))))
BOTH(cudaGraphHostNodeSetParams, cuGraphHostNodeSetParams, (san_node * n, const rt_host_node *p),
     OF_KIND(n, HOST, set_host(n, p)))
BOTH(cudaGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute, (san_node * n, unsigned id, const void *value),
     OF_KIND(n, LAUNCH, set_attribute(n, id, value)))
BOTH(cudaGraphKernelNodeGetAttribute, cuGraphKernelNodeGetAttribute, (san_node * n, unsigned id, void *value),
     OF_KIND(n, LAUNCH, get_attribute(n, id, value)))
BOTH(cudaGraphKernelNodeCopyAttributes, cuGraphKernelNodeCopyAttributes, (san_node * to, san_node *from),
     OF_KIND(to, LAUNCH, OF_KIND(from, LAUNCH, copy_attributes(to, from))))

/* ---- graphs that run ---- */

/* The work of an instantiated graph becomes that of another graph of the same shape. */
static int update(san_graph *exec, const san_graph *with)
{
	san_graph *g;
	san_node *a, *b;
	int e = san_graph_clone(with, &g);

	if (e)
		return e;
	for (a = exec->first, b = g->first; a && b && a->work == b->work; a = a->next, b = b->next)
		b->original = a->original, b->left_out = a->left_out;
	if (a || b) {
		san_graph_free(g);
		return SAN_UPDATE;
	}
	/* as many as before: .count stays, and .last of both is read no more */
	a = exec->first, exec->first = g->first, g->first = a;
	san_graph_free(g);
	return SAN_OK;
}

typedef struct update_info {
	int failed;
	san_node *node, *from;
} update_info;

static int update_and_tell(san_graph *exec, const san_graph *with, update_info *info)
{
	int e = update(exec, with);

	if (info)
		*info = (update_info){ .failed = e != SAN_OK };
	return e;
}

/* A call for a node of an instantiated graph, which `n` becomes. */
#define OF_EXEC(kind, call) OF_GRAPH(exec, (n = san_graph_made_of(exec, n), OF_KIND(n, kind, call)))
#define OF_ANY(call) OF_GRAPH(exec, (n = san_graph_made_of(exec, n)) ? (call) : SAN_VALUE)

CALL(cudaGraphInstantiate, (san_graph * *out, san_graph *g, unsigned long long flags),
     ((void)flags, OF_GRAPH(g, san_graph_clone(g, out))))
BOTH(cudaGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, (san_graph * *out, san_graph *g, unsigned long long flags),
     ((void)flags, OF_GRAPH(g, san_graph_clone(g, out))))
static int instantiate_v2(san_graph **out, const san_graph *g, san_node **node, char *log, size_t size)
{
	if (node)
		*node = NULL;
	if (log && size)
		*log = 0;
	return san_graph_clone(g, out);
}
DRIVER(cuGraphInstantiate_v2, (san_graph * *out, san_graph *g, san_node **node, char *log, size_t size),
       OF_GRAPH(g, instantiate_v2(out, g, node, log, size)))
BOTH(cudaGraphInstantiateWithParams, cuGraphInstantiateWithParams, (san_graph * *out, san_graph *g, rt_instantiate *p),
     (p->failed_at = NULL, p->result = 0, OF_GRAPH(g, san_graph_clone(g, out))))
BOTH(cudaGraphLaunch, cuGraphLaunch, (san_graph * exec, san_stream *s),
     OF_GRAPH(exec, san_graph_run(exec, san_stream_of(s))))
BOTH(cudaGraphExecDestroy, cuGraphExecDestroy, (san_graph * exec), OF_GRAPH(exec, (san_graph_free(exec), SAN_OK)))
BOTH(cudaGraphUpload, cuGraphUpload, (san_graph * exec, san_stream *s), ((void)s, OF_GRAPH(exec, SAN_OK)))
BOTH(cudaGraphExecUpdate, cuGraphExecUpdate_v2, (san_graph * exec, san_graph *g, update_info *info),
     san_graph_lives(g) ? OF_GRAPH(exec, update_and_tell(exec, g, info)) : SAN_VALUE)
static int update_v1(san_graph *exec, const san_graph *with, san_node **node, int *result)
{
	update_info info;
	int e = update_and_tell(exec, with, &info);

	if (node)
		*node = NULL;
	if (result)
		*result = info.failed;
	return e;
}
DRIVER(cuGraphExecUpdate, (san_graph * exec, san_graph *g, san_node **node, int *result),
       san_graph_lives(g) ? OF_GRAPH(exec, update_v1(exec, g, node, result)) : SAN_VALUE)
BOTH(cudaGraphNodeSetEnabled, cuGraphNodeSetEnabled, (san_graph * exec, san_node *n, unsigned on),
     OF_ANY((n->left_out = !on, SAN_OK)))
BOTH(cudaGraphNodeGetEnabled, cuGraphNodeGetEnabled, (san_graph * exec, san_node *n, unsigned *on),
     OF_ANY((*on = !n->left_out, SAN_OK)))
CALL(cudaGraphExecKernelNodeSetParams, (san_graph * exec, san_node *n, const rt_kernel_node *p),
     OF_EXEC(LAUNCH, set_kernel(n, p, NULL)))
DRIVER(cuGraphExecKernelNodeSetParams, (san_graph * exec, san_node *n, const rt_kernel_node *p),
       OF_EXEC(LAUNCH, set_kernel(n, p, NULL)))
DRIVER(cuGraphExecKernelNodeSetParams_v2, (san_graph * exec, san_node *n, const dr_kernel_node *p),
       OF_EXEC(LAUNCH, GIVEN(p, set_kernel(n, &p->as, p->kernel))))
CALL(cudaGraphExecMemcpyNodeSetParams, (san_graph * exec, san_node *n, const rt_copy3d *p),
     OF_EXEC(COPY, set_copy(n, p, NULL)))
CALL(cudaGraphExecMemcpyNodeSetParams1D, (san_graph * exec, san_node *n, void *dst, const void *src, size_t size, int kind),
     OF_EXEC(COPY, (n->rows = FLAT, SAN_OK)))
DRIVER(cuGraphExecMemcpyNodeSetParams, (san_graph * exec, san_node *n, const dr_copy3d *p, void *context),
       ((void)context, OF_EXEC(COPY, set_copy(n, NULL, p))))
CALL(cudaGraphExecMemsetNodeSetParams, (san_graph * exec, san_node *n, const rt_set_node *p),
     OF_EXEC(SET, GIVEN(p, (n->set = *p, SAN_OK))))
DRIVER(cuGraphExecMemsetNodeSetParams, (san_graph * exec, san_node *n, const rt_set_node *p, void *context),
       ((void)context, OF_EXEC(SET, GIVEN(p, (n->set = *p, SAN_OK)))))
BOTH(cudaGraphExecHostNodeSetParams, cuGraphExecHostNodeSetParams, (san_graph * exec, san_node *n, const rt_host_node *p),
     OF_EXEC(HOST, set_host(n, p)))
