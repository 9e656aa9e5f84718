/* SPDX-License-Identifier: MIT */
/* The CUDA Driver API, as far as programs use it that load PTX themselves. */
#include "api.h"
#include "forms.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

static int named(int error, const char *name, const char **out)
{
	*out = san_error_of(error)->number == error ? name : NULL;
	return *out ? SAN_OK : SAN_VALUE;
}
/* Also of a device that a finding has ended. */
PLAIN(int, cuGetErrorName, (int error, const char **name), return named(error, san_error_of(error)->driver, name);)
PLAIN(int, cuGetErrorString, (int error, const char **name), return named(error, san_error_of(error)->text, name);)

/* ---- modules ---- */

void san_empty_logs(unsigned n, const int *options, void **values)
{
	enum { INFO_SIZE = 4, ERROR_SIZE = 6 };

	for (unsigned i = 0; i < n; i++) {
		if (options[i] != INFO_SIZE && options[i] != ERROR_SIZE)
			continue;
		for (unsigned j = 0; j < n; j++)
			if (options[j] == options[i] - 1 && values[j] && values[i])
				*(char *)values[j] = 0;
		values[i] = NULL;
	}
}

static int load(san_module **out, const void *image, unsigned n, const int *options, void **values)
{
	san_empty_logs(n, options, values);
	return san_module_load(image, out);
}

int san_read_file(const char *path, char **out, size_t *size)
{
	enum { BEHIND = 16 }; /* zeros: those who look at the first bytes find some */
	FILE *f = path ? fopen(path, "rb") : NULL;
	char *p = NULL;
	size_t n = 0, cap = 0;
	int e = f ? SAN_OK : path ? SAN_FILE_ : SAN_VALUE;

	while (f && !e && !feof(f)) {
		char *grown = n + BEHIND < cap ? p : (char *)realloc(p, cap = cap ? cap * 2 : 65536);
		if (grown)
			p = grown, n += fread(p + n, 1, cap - n - BEHIND, f);
		e = !grown ? SAN_MEMORY : ferror(f) ? SAN_FILE_ : SAN_OK;
	}
	if (f)
		fclose(f);
	if (e) {
		free(p);
		p = NULL;
	} else {
		memset(p + n, 0, BEHIND);
	}
	*out = p, *size = n;
	return e;
}

static int load_file(san_module **out, const char *path)
{
	char *p;
	size_t n;
	int e = san_read_file(path, &p, &n);

	if (!e)
		e = san_module_load(p, out);
	if (e || !san_is_fatbin(p)) /* a fat binary stays in use */
		free(p);
	return e;
}

static int global(uint64_t *at, size_t *size, const san_module *m, const char *name)
{
	uint64_t found;
	int e = m ? san_global(m, name, &found, size) : SAN_HANDLE;

	if (!e && at)
		*at = found;
	return e;
}

DRIVER(cuModuleLoadData, (san_module * *out, const void *image), san_module_load(image, out))
DRIVER(cuModuleLoadFatBinary, (san_module * *out, const void *image), san_module_load(image, out))
DRIVER(cuModuleLoadDataEx, (san_module * *out, const void *image, unsigned n, int *options, void **values),
       load(out, image, n, options, values))
DRIVER(cuModuleLoad, (san_module * *out, const char *path), load_file(out, path))
DRIVER(cuModuleUnload, (san_module * m), (san_module_unload(m), SAN_OK))
DRIVER(cuModuleGetFunction, (san_kernel * *out, san_module *m, const char *name),
       m ? san_kernel_named(m, name, out) : SAN_HANDLE)
DRIVER(cuModuleGetGlobal_v2, (uint64_t * at, size_t *size, san_module *m, const char *name), global(at, size, m, name))
DRIVER(cuModuleGetLoadingMode, (int *mode), (*mode = 1, SAN_OK))
DRIVER(cuLibraryLoadData,
       (san_module * *out, const void *image, int *jit, void **jit_values, unsigned njit, int *options, void **values,
        unsigned n),
       ((void)options, (void)values, (void)n, load(out, image, njit, jit, jit_values)))
DRIVER(cuLibraryUnload, (san_module * m), (san_module_unload(m), SAN_OK))
DRIVER(cuLibraryGetKernel, (san_kernel * *out, san_module *m, const char *name),
       m ? san_kernel_named(m, name, out) : SAN_HANDLE)
DRIVER(cuLibraryGetModule, (san_module * *out, san_module *m), (*out = m, SAN_OK))
DRIVER(cuLibraryGetGlobal, (uint64_t * at, size_t *size, san_module *m, const char *name), global(at, size, m, name))
DRIVER(cuKernelGetFunction, (san_kernel * *out, san_kernel *k), (*out = k, SAN_OK))

/* ---- functions ---- */

static int function_attribute(int *v, int attribute, san_kernel *k)
{
	cptx_resources r;
	int e = san_kernel_lives(k) ? san_resources(k, 0, 0, &r) : SAN_HANDLE;

	if (e)
		return e;
	const int values[] = { (int)r.max_threads,
		                   (int)r.static_smem,
		                   (int)r.const_bytes,
		                   (int)r.local_bytes,
		                   (int)r.regs,
		                   0,
		                   (int)r.binary_version,
		                   0,
		                   (int)(san.info->smem_per_cta - r.static_smem) };
	*v = attribute >= 0 && attribute < (int)(sizeof values / sizeof *values) ? values[attribute] : 0;
	return SAN_OK;
}

/* Offsets of parameters as C lays out a struct of them. */
static int parameter(san_kernel *k, size_t index, size_t *offset, size_t *size)
{
	size_t at = 0;
	int e = san_kernel_lives(k) ? san_kernel_ready(k) : SAN_HANDLE;

	if (e || index >= k->info.nparams)
		return e ? e : SAN_VALUE;
	for (size_t i = 0; i <= index; i++) {
		const cptx_param_info *p = &k->info.params[i];
		size_t align = p->align ? p->align : 1;
		at = (at + align - 1) / align * align;
		*offset = at, at += p->size;
		if (size)
			*size = p->size;
	}
	return SAN_OK;
}

static int occupancy(int *blocks, san_kernel *k, int threads, size_t smem)
{
	return san_kernel_lives(k) ? san_occupancy(blocks, k, threads, smem) : SAN_HANDLE;
}

/* The largest block of whole warps that runs, and as many as fit at once of it; smem_of: dynamic shared memory of a block.
 */
static int potential(int *grid, int *block, san_kernel *k, size_t (*smem_of)(int block), size_t smem, int most)
{
	int e = SAN_OK, blocks = 0, threads = most > 0 && most < 1024 ? most : 1024;

	for (; threads > 0 && !e && !blocks; threads -= 32)
		if (!(e = occupancy(&blocks, k, threads, smem_of ? smem_of(threads) : smem)) && blocks)
			*block = threads, *grid = blocks * (int)san.info->sms;
	return e ? e : blocks ? SAN_OK : SAN_VALUE;
}

DRIVER(cuOccupancyMaxPotentialBlockSize,
       (int *grid, int *block, san_kernel *k, size_t (*smem_of)(int block), size_t smem, int most),
       potential(grid, block, k, smem_of, smem, most))
DRIVER(cuOccupancyMaxPotentialBlockSizeWithFlags,
       (int *grid, int *block, san_kernel *k, size_t (*smem_of)(int block), size_t smem, int most, unsigned flags),
       ((void)flags, potential(grid, block, k, smem_of, smem, most)))
DRIVER(cuFuncGetAttribute, (int *v, int attribute, san_kernel *k), function_attribute(v, attribute, k))
static int set_function_attribute(san_kernel *k, int attribute, int value)
{
	const bool too_large = attribute == RT_FUNC_MAX_DYN_SMEM && (value < 0 || (unsigned)value > san.info->smem_per_cta);

	return !san_kernel_lives(k) ? SAN_HANDLE : too_large ? SAN_VALUE : SAN_OK;
}
DRIVER(cuFuncSetAttribute, (san_kernel * k, int attribute, int value), set_function_attribute(k, attribute, value))
DRIVER(cuKernelSetAttribute, (int attribute, int value, san_kernel *k, int device),
       ((void)device, set_function_attribute(k, attribute, value)))
DRIVER(cuKernelGetAttribute, (int *v, int attribute, san_kernel *k, int device),
       ((void)device, function_attribute(v, attribute, k)))
DRIVER(cuFuncGetModule, (san_module * *m, san_kernel *k), san_kernel_lives(k) ? (*m = k->module, SAN_OK) : SAN_HANDLE)
DRIVER(cuFuncIsLoaded, (int *loaded, san_kernel *k), san_kernel_lives(k) ? (*loaded = 1, SAN_OK) : SAN_HANDLE)
DRIVER(cuFuncSetCacheConfig, (san_kernel * k, int config), ((void)k, (void)config, SAN_OK))
DRIVER(cuFuncGetParamInfo, (san_kernel * k, size_t index, size_t *offset, size_t *size), parameter(k, index, offset, size))
DRIVER(cuFuncGetName, (const char **name, san_kernel *k), san_kernel_lives(k) ? (*name = k->name, SAN_OK) : SAN_HANDLE)
DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, san_kernel *k, int threads, size_t smem),
       occupancy(blocks, k, threads, smem))
DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
       (int *blocks, san_kernel *k, int threads, size_t smem, unsigned flags),
       ((void)flags, occupancy(blocks, k, threads, smem)))

/* ---- launches ---- */

/* Arguments by their addresses, or packed in one buffer, which `extra` names: their addresses, to be freed. */
int san_unpack(san_kernel *k, void **args, void **extra, void ***out)
{
	enum { POINTER = 1, SIZE = 2 };
	char *buffer = NULL;
	const size_t n = k->info.nparams;
	int e = SAN_OK;

	*out = NULL;
	for (size_t i = 0; !args && extra && extra[i]; i += 2)
		if ((uintptr_t)extra[i] == POINTER)
			buffer = (char *)extra[i + 1];
	if (n && !args && !buffer)
		return SAN_VALUE;
	void **values = (void **)calloc(n + 1, sizeof *values);
	for (size_t i = 0, offset; values && i < n && !e; i++)
		if (args)
			values[i] = args[i];
		else if (!(e = parameter(k, i, &offset, NULL)))
			values[i] = buffer + offset;
	*out = values;
	return values ? e : SAN_MEMORY;
}

static int launch(san_kernel *k, const san_shape *shape, san_stream *s, void **args, void **extra)
{
	void **values = NULL;

	if (!san_kernel_lives(k))
		return san_not_launched(NULL, SAN_HANDLE);
	if (!extra || args)
		return san_launch(k, shape, args, san_stream_of(s));
	int e = san_kernel_ready(k);
	e = e ? e : san_unpack(k, args, extra, &values);
	e = e ? san_not_launched(k->name, e) : san_launch(k, shape, values, san_stream_of(s));
	free(values);
	return e;
}

static int launch_plain(san_kernel *k, const unsigned *d, unsigned smem, san_stream *s, void **args, void **extra, bool all)
{
	san_shape shape = { .grid = { d[0], d[1], d[2] }, .block = { d[3], d[4], d[5] }, .smem = smem, .cooperative = all };

	return launch(k, &shape, s, args, extra);
}

san_shape san_shape_of(const dr_launch_config *c)
{
	san_shape shape = { .smem = c->smem };

	memcpy(shape.grid, c->grid, sizeof shape.grid);
	memcpy(shape.block, c->block, sizeof shape.block);
	for (unsigned i = 0; i < c->nattrs; i++)
		san_shape_attribute(&shape, &c->attrs[i]);
	return shape;
}

static int launch_ex(const dr_launch_config *c, san_kernel *k, void **args, void **extra)
{
	san_shape shape = san_shape_of(c);

	return launch(k, &shape, c->stream, args, extra);
}

static int active_clusters(int *clusters, san_kernel *k, const dr_launch_config *c)
{
	san_shape shape = san_shape_of(c);

	return san_kernel_lives(k) ? san_active_clusters(clusters, k, &shape) : SAN_HANDLE;
}

#define DIMENSIONS unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz
DRIVER(cuLaunchKernel, (san_kernel * k, DIMENSIONS, unsigned smem, san_stream *s, void **args, void **extra),
       launch_plain(k, (const unsigned[]){ gx, gy, gz, bx, by, bz }, smem, s, args, extra, false))
DRIVER(cuLaunchCooperativeKernel, (san_kernel * k, DIMENSIONS, unsigned smem, san_stream *s, void **args),
       launch_plain(k, (const unsigned[]){ gx, gy, gz, bx, by, bz }, smem, s, args, NULL, true))
DRIVER(cuOccupancyMaxActiveClusters, (int *clusters, san_kernel *k, const dr_launch_config *c),
       active_clusters(clusters, k, c))
DRIVER(cuLaunchKernelEx, (const dr_launch_config *c, san_kernel *k, void **args, void **extra), launch_ex(c, k, args, extra))

/* ---- memory: what the runtime has under other names ---- */

static int alloc(uint64_t *at, size_t size, enum san_memory kind)
{
	*at = 0;
	return size ? san_alloc(kind, size, at) : SAN_VALUE;
}
static void *host(uint64_t at) { return (void *)(uintptr_t)at; }

DRIVER(cuMemAlloc_v2, (uint64_t * at, size_t size), alloc(at, size, SAN_DEVICE_MEMORY))
DRIVER(cuMemAllocManaged, (uint64_t * at, size_t size, unsigned flags), ((void)flags, alloc(at, size, SAN_MANAGED_MEMORY)))
DRIVER(cuMemAllocHost_v2, (uint64_t * at, size_t size), alloc(at, size, SAN_HOST_MEMORY))
DRIVER(cuMemHostAlloc, (uint64_t * at, size_t size, unsigned flags), ((void)flags, alloc(at, size, SAN_HOST_MEMORY)))
DRIVER(cuMemFree_v2, (uint64_t at), san_free(at, false))
DRIVER(cuMemFreeAsync, (uint64_t at, san_stream *s), ((void)s, san_free(at, false)))
DRIVER(cuMemFreeHost, (void *p), san_free((uintptr_t)p, true))
DRIVER(cuMemGetInfo_v2, (size_t * unused, size_t *total), (*unused = *total = (size_t)san.info->global_memory, SAN_OK))
/* The allocation or variable that holds the address. */
static int range(uint64_t *first, size_t *size, uint64_t at)
{
	const san_block *b = san_block_at(at);
	cptx_emu_variable_info v;
	bool found = b && at - b->at < b->size;

	if (found)
		v.at = b->at, v.bytes = b->size;
	for (const san_module *m = san.modules; m && !found; m = m->next)
		for (size_t i = 0; !found && m->program[san.device] && cptx_emu_variable(m->program[san.device], i, &v); i++)
			found = at - v.at < v.bytes;
	if (found && first)
		*first = v.at;
	if (found && size)
		*size = (size_t)v.bytes;
	return found ? SAN_OK : SAN_NOT_FOUND;
}
DRIVER(cuMemGetAddressRange_v2, (uint64_t * first, size_t *size, uint64_t at), range(first, size, at))
DRIVER(cuMemcpyHtoD_v2, (uint64_t dst, const void *src, size_t size),
       san_copy(host(dst), src, size, RT_HOST_TO_DEVICE, NULL))
DRIVER(cuMemcpyDtoH_v2, (void *dst, uint64_t src, size_t size), san_copy(dst, host(src), size, RT_DEVICE_TO_HOST, NULL))
DRIVER(cuMemcpyDtoD_v2, (uint64_t dst, uint64_t src, size_t size),
       san_copy(host(dst), host(src), size, RT_DEVICE_TO_DEVICE, NULL))
DRIVER(cuMemcpy, (uint64_t dst, uint64_t src, size_t size), san_copy(host(dst), host(src), size, RT_DEFAULT, NULL))
DRIVER(cuMemcpyHtoDAsync_v2, (uint64_t dst, const void *src, size_t size, san_stream *s),
       san_copy(host(dst), src, size, RT_HOST_TO_DEVICE, san_stream_of(s)))
DRIVER(cuMemcpyDtoHAsync_v2, (void *dst, uint64_t src, size_t size, san_stream *s),
       san_copy(dst, host(src), size, RT_DEVICE_TO_HOST, san_stream_of(s)))
DRIVER(cuMemcpyDtoDAsync_v2, (uint64_t dst, uint64_t src, size_t size, san_stream *s),
       san_copy(host(dst), host(src), size, RT_DEVICE_TO_DEVICE, san_stream_of(s)))
DRIVER(cuMemcpyAsync, (uint64_t dst, uint64_t src, size_t size, san_stream *s),
       san_copy(host(dst), host(src), size, RT_DEFAULT, san_stream_of(s)))
DRIVER(cuMemsetD8_v2, (uint64_t dst, unsigned char v, size_t n), san_set(dst, v, 1, n, NULL))
DRIVER(cuMemsetD16_v2, (uint64_t dst, unsigned short v, size_t n), san_set(dst, v, 2, n, NULL))
DRIVER(cuMemsetD32_v2, (uint64_t dst, unsigned v, size_t n), san_set(dst, v, 4, n, NULL))
DRIVER(cuMemsetD8Async, (uint64_t dst, unsigned char v, size_t n, san_stream *s), san_set(dst, v, 1, n, san_stream_of(s)))
DRIVER(cuMemsetD32Async, (uint64_t dst, unsigned v, size_t n, san_stream *s), san_set(dst, v, 4, n, san_stream_of(s)))

/* ---- entry points by name ---- */

/* The function of that version (forms.def), though it may only say that it is not there.  *status: 0 found, 1 not found. */
static int entry(const char *name, void **out, unsigned version, int *status)
{
	*out = san_symbol(san_form(name, version));
	if (status)
		*status = *out ? 0 : 1;
	return *out ? SAN_OK : SAN_NOT_FOUND;
}
DRIVER(cuGetProcAddress_v2, (const char *name, void **out, int version, uint64_t flags, int *status),
       ((void)flags, entry(name, out, (unsigned)version, status)))
DRIVER(cuGetProcAddress, (const char *name, void **out, int version, uint64_t flags),
       ((void)flags, entry(name, out, (unsigned)version, NULL)))
CALL(cudaGetDriverEntryPoint, (const char *name, void **out, unsigned long long flags, int *status),
     ((void)flags, entry(name, out, CUDA_VERSION, status)))
CALL(cudaGetDriverEntryPointByVersion,
     (const char *name, void **out, unsigned version, unsigned long long flags, int *status),
     ((void)flags, entry(name, out, version, status)))
