/* SPDX-License-Identifier: MIT */
/* The CUDA Runtime API: kernels, launches and graphs, and what nvcc's host code calls to register a program's images. */
#include "api.h"
#include "graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- registration: the host code of nvcc calls it before main ---- */

typedef struct wrapper {
	int magic, version;
	const void *image;
	void *more; /* version 2: const void *[], the fat binaries that were linked */
} wrapper;

/* Registration cannot fail: what is wrong shows when a kernel is wanted. */
#define REGISTER(type, name, parameters, ...)                                                                               \
	SAN_API type name parameters;                                                                                           \
	SAN_API type name parameters                                                                                            \
	{                                                                                                                       \
		san_enter();                                                                                                        \
		__VA_ARGS__                                                                                                         \
		san_leave();                                                                                                        \
	}

SAN_API void **__cudaRegisterFatBinary(void *fatbin);
SAN_API void **__cudaRegisterFatBinary(void *fatbin)
{
	const wrapper *w = (const wrapper *)fatbin;

	san_enter();
	san_module *m = san_register(w->image, w->version == 2 ? (const void *const *)w->more : NULL);
	san_leave();
	return (void **)(void *)m;
}

static san_module *module_of(void **handle) { return (san_module *)(void *)handle; }

REGISTER(void, __cudaRegisterFatBinaryEnd, (void **handle), (void)handle;)
REGISTER(void, __cudaUnregisterFatBinary, (void **handle), if (handle) san_module_unload(module_of(handle));)
REGISTER(void, __cudaRegisterFunction,
         (void **handle, const char *host, char *device_function, const char *name, int limit, void *tid, void *bid,
          rt_dim3 *block, rt_dim3 *grid, int *warp),
         (void)device_function, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
         if (!handle || !san_register_kernel(module_of(handle), host, name)) san_say("no memory for kernel %s", name);)
REGISTER(void, __cudaRegisterVar,
         (void **handle, char *host, char *address, const char *name, int ext, size_t size, int constant, int global),
         (void)address, (void)ext, (void)constant, (void)global;
         if (!handle || !san_register_var(module_of(handle), host, name, size, NULL))
             san_say("no memory for variable %s", name);)
REGISTER(void, __cudaRegisterManagedVar,
         (void **handle, void **host, char *address, const char *name, int ext, size_t size, int constant, int global),
         (void)address, (void)ext, (void)constant, (void)global;
         if (!handle || !san_register_var(module_of(handle), host, name, size, host))
             san_say("no memory for variable %s", name);)

/* Called before the host uses a managed variable. */
SAN_API char __cudaInitModule(void **handle);
SAN_API char __cudaInitModule(void **handle)
{
	int e = san_enter();

	if (!e && handle)
		e = san_module_ready(module_of(handle));
	san_leave();
	return e == SAN_OK;
}

/* ---- <<<...>>> ---- */

typedef struct call_shape {
	rt_dim3 grid, block;
	size_t smem;
	san_stream *stream;
} call_shape;
/* Arguments of a kernel may launch others before it begins itself. */
static _Thread_local call_shape pushed[16];
static _Thread_local unsigned npushed;

SAN_API unsigned __cudaPushCallConfiguration(rt_dim3 grid, rt_dim3 block, size_t smem, san_stream *s);
SAN_API unsigned __cudaPushCallConfiguration(rt_dim3 grid, rt_dim3 block, size_t smem, san_stream *s)
{
	if (npushed == sizeof pushed / sizeof *pushed)
		return 1;
	pushed[npushed++] = (call_shape){ grid, block, smem, s };
	return 0;
}

SAN_API int __cudaPopCallConfiguration(rt_dim3 *grid, rt_dim3 *block, size_t *smem, san_stream **s);
SAN_API int __cudaPopCallConfiguration(rt_dim3 *grid, rt_dim3 *block, size_t *smem, san_stream **s)
{
	if (!npushed)
		return SAN_CONFIGURATION;
	const call_shape *c = &pushed[--npushed];
	*grid = c->grid, *block = c->block, *smem = c->smem, *s = c->stream;
	return SAN_OK;
}

static int kernel_of(const void *function, san_kernel **out)
{
	*out = san_kernel_of(function);
	return *out ? san_kernel_ready(*out) : SAN_FUNCTION;
}

void san_shape_attribute(san_shape *shape, const rt_launch_attr *a)
{
	switch (a->id) {
	case RT_ATTR_COOPERATIVE: shape->cooperative = a->value.cooperative != 0; break;
	case RT_ATTR_OVERLAP: shape->overlap = a->value.overlap != 0; break;
	case RT_ATTR_CLUSTER:
		shape->cluster[0] = a->value.cluster.x;
		shape->cluster[1] = a->value.cluster.y;
		shape->cluster[2] = a->value.cluster.z;
		break;
	default: break;
	}
}

static san_shape shape_of(rt_dim3 grid, rt_dim3 block, size_t smem)
{
	return (san_shape){ .grid = { grid.x, grid.y, grid.z },
		                .block = { block.x, block.y, block.z },
		                .smem = smem > UINT32_MAX ? UINT32_MAX : (uint32_t)smem };
}

static int launch(const void *function, const san_shape *shape, void **args, san_stream *s)
{
	san_kernel *k = san_kernel_of(function);

	return k ? san_launch(k, shape, args, san_stream_of(s)) : san_not_launched(NULL, SAN_FUNCTION);
}

static int launch_plain(const void *function, rt_dim3 grid, rt_dim3 block, void **args, size_t smem, san_stream *s,
                        bool cooperative)
{
	san_shape shape = shape_of(grid, block, smem);

	shape.cooperative = cooperative;
	return launch(function, &shape, args, s);
}

static san_shape shape_of_config(const rt_launch_config *c)
{
	san_shape shape = shape_of(c->grid, c->block, c->smem);

	for (unsigned i = 0; i < c->nattrs; i++)
		san_shape_attribute(&shape, &c->attrs[i]);
	return shape;
}

static int launch_ex(const rt_launch_config *c, const void *function, void **args)
{
	san_shape shape = shape_of_config(c);

	return launch(function, &shape, args, c->stream);
}

CALL(cudaLaunchKernel, (const void *f, rt_dim3 grid, rt_dim3 block, void **args, size_t smem, san_stream *s),
     launch_plain(f, grid, block, args, smem, s, false))
CALL(__cudaLaunchKernel, (const void *f, rt_dim3 grid, rt_dim3 block, void **args, size_t smem, san_stream *s),
     launch_plain(f, grid, block, args, smem, s, false))
CALL(cudaLaunchCooperativeKernel, (const void *f, rt_dim3 grid, rt_dim3 block, void **args, size_t smem, san_stream *s),
     launch_plain(f, grid, block, args, smem, s, true))
CALL(cudaLaunchKernelExC, (const rt_launch_config *c, const void *f, void **args), launch_ex(c, f, args))

/* ---- functions ---- */

static int handle_of(san_kernel **out, const void *function)
{
	*out = san_kernel_of(function);
	return *out ? SAN_OK : SAN_FUNCTION;
}
CALL(__cudaGetKernel, (san_kernel * *out, const void *function), handle_of(out, function))
CALL(cudaGetKernel, (san_kernel * *out, const void *function), handle_of(out, function))
CALL(cudaGetFuncBySymbol, (san_kernel * *out, const void *function), handle_of(out, function))

static int function_attributes(rt_func_attributes *a, const void *function)
{
	cptx_resources r;
	san_kernel *k;
	int e = kernel_of(function, &k);

	if (e || (e = san_resources(k, 0, 0, &r)))
		return e;
	*a = (rt_func_attributes){ .shared_bytes = r.static_smem,
		                       .const_bytes = r.const_bytes,
		                       .local_bytes = r.local_bytes,
		                       .max_threads = (int)r.max_threads,
		                       .regs = (int)r.regs,
		                       .ptx_version = (int)r.binary_version,
		                       .binary_version = (int)r.binary_version,
		                       .max_dyn_smem = (int)(san.info->smem_per_cta - r.static_smem) };
	for (int i = 0; i < 3; i++)
		a->cluster[i] = (int)k->info.bounds.cluster[i];
	a->cluster_must_be_set = a->cluster[0] != 0;
	return SAN_OK;
}
CALL(cudaFuncGetAttributes, (rt_func_attributes * a, const void *f), function_attributes(a, f))

/* Shared memory is checked at the launch; the other attributes are hints. */
static int set_attribute(const void *function, int attribute_number, int value)
{
	san_kernel *k;
	int e = kernel_of(function, &k);

	if (!e && attribute_number == RT_FUNC_MAX_DYN_SMEM && (value < 0 || (unsigned)value > san.info->smem_per_cta))
		e = SAN_VALUE;
	return e;
}
CALL(cudaFuncSetAttribute, (const void *f, int number, int value), set_attribute(f, number, value))
CALL(cudaFuncSetCacheConfig, (const void *f, int config), ((void)f, (void)config, SAN_OK))
CALL(cudaFuncSetSharedMemConfig, (const void *f, int config), ((void)f, (void)config, SAN_OK))

static int name_of(const char **name, const void *function)
{
	san_kernel *k;
	int e = kernel_of(function, &k);

	*name = e ? NULL : k->name;
	return e;
}
CALL(cudaFuncGetName, (const char **name, const void *f), name_of(name, f))

static int occupancy(int *blocks, const void *function, int threads, size_t smem)
{
	san_kernel *k;
	int e = kernel_of(function, &k);

	return e ? e : san_occupancy(blocks, k, threads, smem);
}
CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, const void *f, int threads, size_t smem),
     occupancy(blocks, f, threads, smem))
CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
     (int *blocks, const void *f, int threads, size_t smem, unsigned flags),
     ((void)flags, occupancy(blocks, f, threads, smem)))

static int active_clusters(int *clusters, const void *function, const rt_launch_config *c)
{
	san_shape shape = shape_of_config(c);
	san_kernel *k;
	int e = kernel_of(function, &k);

	return e ? e : san_active_clusters(clusters, k, &shape);
}
CALL(cudaOccupancyMaxActiveClusters, (int *clusters, const void *f, const rt_launch_config *c),
     active_clusters(clusters, f, c))

/* ---- graphs ---- */

static int graph_new(san_graph **out, unsigned flags)
{
	(void)flags;
	*out = san_graph_new();
	return *out ? SAN_OK : SAN_MEMORY;
}

static int add_kernel(san_node **out, san_graph *g, const rt_kernel_node *n)
{
	san_shape shape = shape_of(n->grid, n->block, n->smem);
	san_kernel *k;
	int e = kernel_of(n->func, &k);

	return e ? e : n->params ? san_graph_launch(g, k, &shape, n->params, out) : SAN_NOT_SUPPORTED;
}

static int add_set(san_node **out, san_graph *g, const rt_set_node *n)
{
	int e = SAN_OK;

	for (size_t y = 0; y < n->height && !e; y++)
		e = san_graph_set(g, (uintptr_t)n->dst + y * n->pitch, n->value, n->element, n->width, out);
	return e;
}

static int add_copy3d(san_node **out, san_graph *g, const rt_copy3d *c)
{
	san_stream s = { .capture = g };
	int e = san_copy3d(c, &s);

	for (san_node *n = g->first; n; n = n->next)
		*out = n;
	return e;
}

/* A node of a graph that was instantiated, by the node of the graph it came from. */
static san_node *made_of(const san_graph *exec, const san_node *node)
{
	san_node *n = exec->first;

	while (n && n->original != node)
		n = n->next;
	return n;
}

static int set_kernel(san_node *n, const rt_kernel_node *p)
{
	san_shape shape = shape_of(p->grid, p->block, p->smem);
	san_kernel *k;
	int e = kernel_of(p->func, &k);

	if (!e && (!n || n->work != SAN_WORK_LAUNCH || !p->params))
		e = SAN_VALUE;
	return e ? e : san_node_launch(n, k, &shape, p->params);
}

static int nodes(const san_graph *g, san_node **out, size_t *n)
{
	size_t i = 0;

	for (san_node *node = g->first; out && node && i < *n; node = node->next)
		out[i++] = node;
	*n = g->count;
	return SAN_OK;
}

/* The work of an instantiated graph becomes that of another graph of the same shape. */
static int update(san_graph *exec, const san_graph *with)
{
	san_graph *g;
	san_node *a, *b;
	int e = san_graph_clone(with, &g);

	if (e)
		return e;
	for (a = exec->first, b = g->first; a && b && a->work == b->work; a = a->next, b = b->next)
		b->original = a->original;
	if (a || b) {
		san_graph_free(g);
		return SAN_UPDATE;
	}
	/* as many as before: .count stays, and .last of both is read no more */
	a = exec->first, exec->first = g->first, g->first = a;
	san_graph_free(g);
	return SAN_OK;
}

#define AFTER const san_node *const *after, size_t n
BOTH(cudaGraphCreate, cuGraphCreate, (san_graph * *out, unsigned flags), graph_new(out, flags))
BOTH(cudaGraphDestroy, cuGraphDestroy, (san_graph * g), OF_GRAPH(g, (san_graph_free(g), SAN_OK)))
CALL(cudaGraphAddKernelNode, (san_node * *out, san_graph *g, AFTER, const rt_kernel_node *p),
     ((void)after, (void)n, OF_GRAPH(g, add_kernel(out, g, p))))
CALL(cudaGraphAddMemsetNode, (san_node * *out, san_graph *g, AFTER, const rt_set_node *p),
     ((void)after, (void)n, OF_GRAPH(g, add_set(out, g, p))))
CALL(cudaGraphAddMemcpyNode, (san_node * *out, san_graph *g, AFTER, const rt_copy3d *p),
     ((void)after, (void)n, OF_GRAPH(g, add_copy3d(out, g, p))))
CALL(cudaGraphAddMemcpyNode1D, (san_node * *out, san_graph *g, AFTER, void *dst, const void *src, size_t size, int kind),
     ((void)after, (void)n, OF_GRAPH(g, san_graph_copy(g, dst, src, size, kind, out))))
CALL(cudaGraphAddHostNode, (san_node * *out, san_graph *g, AFTER, const rt_host_node *p),
     ((void)after, (void)n, OF_GRAPH(g, san_graph_host(g, p->fn, p->user, out))))
CALL(cudaGraphAddEmptyNode, (san_node * *out, san_graph *g, AFTER),
     ((void)after, (void)n, OF_GRAPH(g, san_graph_child(g, NULL, out))))
CALL(cudaGraphAddChildGraphNode, (san_node * *out, san_graph *g, AFTER, san_graph *child),
     ((void)after, (void)n, san_graph_lives(child) ? OF_GRAPH(g, san_graph_child(g, child, out)) : SAN_VALUE))
CALL(cudaGraphGetNodes, (san_graph * g, san_node **out, size_t *n), OF_GRAPH(g, nodes(g, out, n)))
CALL(cudaGraphClone, (san_graph * *out, san_graph *g), OF_GRAPH(g, san_graph_clone(g, out)))
CALL(cudaGraphInstantiate, (san_graph * *out, san_graph *g, unsigned long long flags),
     ((void)flags, OF_GRAPH(g, san_graph_clone(g, out))))
BOTH(cudaGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, (san_graph * *out, san_graph *g, unsigned long long flags),
     ((void)flags, OF_GRAPH(g, san_graph_clone(g, out))))
BOTH(cudaGraphLaunch, cuGraphLaunch, (san_graph * exec, san_stream *s),
     OF_GRAPH(exec, san_graph_run(exec, san_stream_of(s))))
BOTH(cudaGraphExecDestroy, cuGraphExecDestroy, (san_graph * exec), OF_GRAPH(exec, (san_graph_free(exec), SAN_OK)))
CALL(cudaGraphUpload, (san_graph * exec, san_stream *s), ((void)s, OF_GRAPH(exec, SAN_OK)))
CALL(cudaGraphExecUpdate, (san_graph * exec, san_graph *g, void *info),
     ((void)info, san_graph_lives(g) ? OF_GRAPH(exec, update(exec, g)) : SAN_VALUE))
CALL(cudaGraphKernelNodeSetParams, (san_node * n, const rt_kernel_node *p), set_kernel(n, p))
CALL(cudaGraphExecKernelNodeSetParams, (san_graph * exec, san_node *n, const rt_kernel_node *p),
     OF_GRAPH(exec, set_kernel(made_of(exec, n), p)))
