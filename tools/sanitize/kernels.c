/* SPDX-License-Identifier: MIT */
/* The CUDA Runtime API: kernels, launches, and what nvcc's host code calls to register a program's images. */
#include "api.h"

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

int san_kernel_for(const void *handle, san_kernel **out)
{
	*out = san_kernel_of(handle);
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
	int e = san_kernel_for(function, &k);

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
	int e = san_kernel_for(function, &k);

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
	int e = san_kernel_for(function, &k);

	*name = e ? NULL : k->name;
	return e;
}
CALL(cudaFuncGetName, (const char **name, const void *f), name_of(name, f))

static int occupancy(int *blocks, const void *function, int threads, size_t smem)
{
	san_kernel *k;
	int e = san_kernel_for(function, &k);

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
	int e = san_kernel_for(function, &k);

	return e ? e : san_active_clusters(clusters, k, &shape);
}
CALL(cudaOccupancyMaxActiveClusters, (int *clusters, const void *f, const rt_launch_config *c),
     active_clusters(clusters, f, c))
