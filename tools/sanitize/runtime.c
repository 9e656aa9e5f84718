/* SPDX-License-Identifier: MIT */
/* The CUDA Runtime API: errors, devices, memory, symbols. */
#include "api.h"
#include "forms.h"
#include "context.h"
#include "graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

static _Thread_local int last;
_Thread_local bool san_used_runtime;

int san_last(int error)
{
	san_used_runtime = true;
	if (error && error != SAN_NOT_READY)
		last = error;
	return error;
}

/* A finding that ended a launch is told by every later call, and does not go away. */
static int take_last(bool forget)
{
	int e = san_enter(), was = e ? e : last;

	san_leave();
	if (forget)
		last = SAN_OK;
	return was;
}
PLAIN(int, cudaGetLastError, (void), return take_last(true);)
PLAIN(int, cudaPeekAtLastError, (void), return take_last(false);)
PLAIN(const char *, cudaGetErrorName, (int e), return san_error_of(e)->runtime;)
PLAIN(const char *, cudaGetErrorString, (int e), return san_error_of(e)->text;)

/* ---- devices ---- */

CALL(cudaSetDeviceFlags, (unsigned flags), ((void)flags, SAN_OK))
CALL(cudaGetDeviceFlags, (unsigned *flags), (*flags = 0, SAN_OK))
CALL(cudaDeviceSynchronize, (void), SAN_OK)
CALL(cudaDeviceReset, (void), SAN_OK)
CALL(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
     (least ? (void)(*least = 0) : (void)0, greatest ? (void)(*greatest = -5) : (void)0, SAN_OK))
CALL(cudaDeviceSetCacheConfig, (int config), ((void)config, SAN_OK))
CALL(cudaDeviceGetCacheConfig, (int *config), (*config = 0, SAN_OK))
CALL(cudaDeviceSetLimit, (int limit, size_t value), ((void)limit, (void)value, SAN_OK))
CALL(cudaDeviceGetLimit, (size_t * value, int limit), (*value = limit == 0 ? 1024 : 8 << 20, SAN_OK))
CALL(cudaCtxResetPersistingL2Cache, (void), SAN_OK)
CALL(cudaDriverGetVersion, (int *version), (*version = CUDA_VERSION, SAN_OK))
CALL(cudaRuntimeGetVersion, (int *version), (*version = CUDA_VERSION, SAN_OK))
BOTH(cudaProfilerStart, cuProfilerStart, (void), SAN_OK)
BOTH(cudaProfilerStop, cuProfilerStop, (void), SAN_OK)

/* ---- memory ---- */

static int alloc(void **p, size_t size, enum san_memory kind)
{
	uint64_t at = 0;
	int e = !p ? SAN_VALUE : san_forbidden() ? SAN_CAPTURE : size ? san_alloc(kind, size, &at) : SAN_OK;

	if (p)
		*p = (void *)(uintptr_t)at;
	return e;
}

static int free_in(void *p, san_stream *s)
{
	san_node *n;

	return san_captures(s) ? san_graph_free_memory(s->capture, p, &n) : san_free((uintptr_t)p, false);
}

enum { PITCH = 512 /* bytes: a row begins at a multiple of this */ };

static int alloc_rows(rt_pitched *p, size_t width, size_t rows)
{
	p->pitch = (width + PITCH - 1) / PITCH * PITCH;
	return rows && p->pitch > SIZE_MAX / rows ? SAN_MEMORY : alloc(&p->ptr, p->pitch * rows, SAN_DEVICE_MEMORY);
}

static int alloc_pitch(void **p, size_t *pitch, size_t width, size_t height)
{
	rt_pitched made = { .ptr = NULL };
	int e = alloc_rows(&made, width, height);

	*p = made.ptr, *pitch = made.pitch;
	return e;
}

static int alloc3d(rt_pitched *p, rt_extent x)
{
	p->xsize = x.width, p->ysize = x.height;
	return x.height && x.depth > SIZE_MAX / x.height ? SAN_MEMORY : alloc_rows(p, x.width, x.height * x.depth);
}

CALL(cudaMalloc, (void **p, size_t size), alloc(p, size, SAN_DEVICE_MEMORY))
CALL(cudaMallocManaged, (void **p, size_t size, unsigned flags), ((void)flags, alloc(p, size, SAN_MANAGED_MEMORY)))
CALL(cudaMallocHost, (void **p, size_t size), alloc(p, size, SAN_HOST_MEMORY))
CALL(cudaHostAlloc, (void **p, size_t size, unsigned flags), ((void)flags, alloc(p, size, SAN_HOST_MEMORY)))
CALL(cudaMallocPitch, (void **p, size_t *pitch, size_t width, size_t height), alloc_pitch(p, pitch, width, height))
CALL(cudaMalloc3D, (rt_pitched * p, rt_extent extent), alloc3d(p, extent))
CALL(cudaFree, (void *p), san_free((uintptr_t)p, false))
CALL(cudaFreeAsync, (void *p, san_stream *s), free_in(p, san_stream_of(s)))
CALL(cudaFreeHost, (void *p), san_free((uintptr_t)p, true))
BOTH(cudaHostRegister, cuMemHostRegister_v2, (void *p, size_t size, unsigned flags), ((void)flags, san_map(p, size)))
BOTH(cudaHostUnregister, cuMemHostUnregister, (void *p), san_unmap(p))

static int device_pointer(void **out, void *host)
{
	const san_block *b = san_block_at((uintptr_t)host);

	if (!b || !b->host)
		return SAN_VALUE;
	*out = (void *)(uintptr_t)(b->at + ((uintptr_t)host - (uintptr_t)b->host));
	return SAN_OK;
}
BOTH(cudaHostGetDevicePointer, cuMemHostGetDevicePointer_v2, (void **out, void *host, unsigned flags),
     ((void)flags, device_pointer(out, host)))
CALL(cudaHostGetFlags, (unsigned *flags, void *host), ((void)host, *flags = 0, SAN_OK))

static int attributes(rt_pointer_attributes *a, const void *p)
{
	const san_block *b = san_block_at((uintptr_t)p);

	*a = (rt_pointer_attributes){ .type = b ? b->type : RT_UNREGISTERED, .device = b ? b->device : 0 };
	if (!b) {
		a->host_pointer = (void *)(uintptr_t)p;
		a->device = -2; /* cudaInvalidDeviceId */
		return SAN_OK;
	}
	uint64_t in = (uintptr_t)p - b->at < b->size ? (uintptr_t)p - b->at : (uintptr_t)p - (uintptr_t)b->host;
	a->device_pointer = (void *)(uintptr_t)(b->at + in);
	a->host_pointer = b->host ? (char *)b->host + in : NULL;
	return SAN_OK;
}
CALL(cudaPointerGetAttributes, (rt_pointer_attributes * a, const void *p), attributes(a, p))

static int room(size_t *unused, size_t *total)
{
	size_t used = 0;

	for (const san_block *b = san.blocks; b; b = b->next)
		used += b->type == RT_HOST || b->device != san.device ? 0 : b->size;
	*total = (size_t)san.info->global_memory;
	*unused = *total > used ? *total - used : 0;
	return SAN_OK;
}
CALL(cudaMemGetInfo, (size_t * unused, size_t *total), room(unused, total))
CALL(cudaMemPrefetchAsync, (const void *p, size_t size, rt_location where, unsigned flags, san_stream *s),
     ((void)p, (void)size, (void)where, (void)flags, (void)s, SAN_OK))
CALL(cudaMemAdvise, (const void *p, size_t size, int advice, rt_location where),
     ((void)p, (void)size, (void)advice, (void)where, SAN_OK))

/* ---- copies ---- */

CALL(cudaMemcpy, (void *dst, const void *src, size_t size, int kind), san_copy(dst, src, size, kind, NULL))
CALL(cudaMemcpyAsync, (void *dst, const void *src, size_t size, int kind, san_stream *s),
     san_copy(dst, src, size, kind, san_stream_of(s)))
#define ROWS                                                                                                                \
	((san_rows){ .dst = dst,                                                                                                \
	             .src = src,                                                                                                \
	             .dst_pitch = dst_pitch,                                                                                    \
	             .src_pitch = src_pitch,                                                                                    \
	             .width = width,                                                                                            \
	             .height = height,                                                                                          \
	             .kind = kind })
CALL(cudaMemcpy2D, (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height, int kind),
     san_copy_rows(&ROWS, NULL))
CALL(cudaMemcpy2DAsync,
     (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height, int kind, san_stream *s),
     san_copy_rows(&ROWS, san_stream_of(s)))
CALL(cudaMemcpy3D, (const rt_copy3d *c), san_copy3d(c, NULL))
CALL(cudaMemcpy3DAsync, (const rt_copy3d *c, san_stream *s), san_copy3d(c, san_stream_of(s)))
CALL(cudaMemset, (void *p, int value, size_t size), san_set((uintptr_t)p, (unsigned)value & 255, 1, size, NULL))
CALL(cudaMemsetAsync, (void *p, int value, size_t size, san_stream *s),
     san_set((uintptr_t)p, (unsigned)value & 255, 1, size, san_stream_of(s)))

static int set_rows(void *p, size_t pitch, int value, size_t width, size_t height, san_stream *s)
{
	return san_set_rows(&(rt_set_node){ p, pitch, (unsigned)value & 255, 1, width, height }, s);
}
CALL(cudaMemset2D, (void *p, size_t pitch, int value, size_t width, size_t height),
     set_rows(p, pitch, value, width, height, NULL))
CALL(cudaMemset2DAsync, (void *p, size_t pitch, int value, size_t width, size_t height, san_stream *s),
     set_rows(p, pitch, value, width, height, san_stream_of(s)))
CALL(cudaMemset3D, (rt_pitched p, int value, rt_extent x), set_rows(p.ptr, p.pitch, value, x.width, x.height *x.depth, NULL))

/* ---- symbols ---- */

static int symbol_copy(const void *symbol, void *host, const void *from, size_t size, size_t offset, int kind, san_stream *s)
{
	san_var *v;
	int e = san_var_at(symbol, &v);

	if (e)
		return e;
	if (offset > v->size || size > v->size - offset)
		return SAN_VALUE;
	void *at = (void *)(uintptr_t)(v->at[san.device] + offset);
	return from ? san_copy(at, from, size, kind, s) : san_copy(host, at, size, kind, s);
}

CALL(cudaMemcpyToSymbol, (const void *symbol, const void *src, size_t size, size_t offset, int kind),
     symbol_copy(symbol, NULL, src, size, offset, kind, NULL))
CALL(cudaMemcpyFromSymbol, (void *dst, const void *symbol, size_t size, size_t offset, int kind),
     symbol_copy(symbol, dst, NULL, size, offset, kind, NULL))
CALL(cudaMemcpyToSymbolAsync, (const void *symbol, const void *src, size_t size, size_t offset, int kind, san_stream *s),
     symbol_copy(symbol, NULL, src, size, offset, kind, san_stream_of(s)))
CALL(cudaMemcpyFromSymbolAsync, (void *dst, const void *symbol, size_t size, size_t offset, int kind, san_stream *s),
     symbol_copy(symbol, dst, NULL, size, offset, kind, san_stream_of(s)))

static int symbol(const void *host, void **at, size_t *size)
{
	san_var *v;
	int e = san_var_at(host, &v);

	if (!e && at)
		*at = (void *)(uintptr_t)v->at[san.device];
	if (!e && size)
		*size = v->size;
	return e;
}
CALL(cudaGetSymbolAddress, (void **at, const void *host), symbol(host, at, NULL))
CALL(cudaGetSymbolSize, (size_t * size, const void *host), symbol(host, NULL, size))
