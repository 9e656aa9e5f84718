/* SPDX-License-Identifier: MIT */
/*
 * Pools of memory.  A pool is its device: memory comes from the device itself, and all pools of one are alike.  Other
 * devices reach what comes of a pool where cudaMemPoolSetAccess says so, and not because they are peers.
 */
#include "api.h"
#include "context.h"

#include <string.h>
#include "graph.h"

static char pools[SAN_DEVICES];     /* whose addresses are the handles */
static uint64_t reach[SAN_DEVICES]; /* other devices that have access */
enum { ON_DEVICE = 1 /* rt_location */ };

typedef struct pool_properties {
	int type, handles;
	rt_location where;
} pool_properties;
typedef struct pool_access {
	rt_location where;
	int flags; /* 0 none, 3 to read and write */
} pool_access;

/* The device of a pool; -1: it is none. */
static int device_of(const void *pool)
{
	const int d = (int)((uintptr_t)pool - (uintptr_t)pools);

	return (uintptr_t)pool >= (uintptr_t)pools && san_is_device(d) ? d : -1;
}

static int pool_of(void **out, int number)
{
	if (!out || !san_is_device(number))
		return out ? SAN_DEVICE : SAN_VALUE;
	*out = &pools[number];
	return SAN_OK;
}

static int pool_new(void **out, const pool_properties *p)
{
	if (p && p->handles)
		return san_missing("cudaMemPoolCreate of memory that is shared with other processes");
	return pool_of(out, p && p->where.type == ON_DEVICE ? p->where.id : san.device);
}

static uint64_t reached_by(int device) { return reach[device] | UINT64_C(1) << device; }

static int set_access(const void *pool, const pool_access *list, size_t n)
{
	const int device = device_of(pool);

	if (device < 0 || (n && !list))
		return SAN_VALUE;
	for (size_t i = 0; i < n; i++) {
		if (list[i].where.type != ON_DEVICE || !san_is_device(list[i].where.id))
			return SAN_DEVICE;
		const uint64_t bit = UINT64_C(1) << list[i].where.id;
		reach[device] = list[i].flags ? reach[device] | bit : reach[device] & ~bit;
	}
	for (const san_block *b = san.blocks; b; b = b->next)
		if (b->pooled && b->device == device)
			cptx_emu_reach(san.dev, b->at, reached_by(device), NULL);
	return SAN_OK;
}

static int get_access(int *flags, const void *pool, const rt_location *where)
{
	const int device = device_of(pool);

	if (!flags || device < 0 || !where || where->type != ON_DEVICE || !san_is_device(where->id))
		return SAN_VALUE;
	*flags = reached_by(device) >> where->id & 1 ? 3 : 0;
	return SAN_OK;
}

/* The first attributes, whether memory is reused and how, are ints, and all others have 64 bits. */
static int get_attribute(const void *pool, int attribute, void *value)
{
	enum { REUSE_FIRST = 1, REUSE_LAST = 3 };

	if (!value || device_of(pool) < 0)
		return SAN_VALUE;
	memset(value, 0, attribute >= REUSE_FIRST && attribute <= REUSE_LAST ? sizeof(int) : sizeof(uint64_t));
	return SAN_OK;
}

/* Of a pool, or the current device's where it is NULL; in a stream that is captured: of the graph. */
static int alloc(void **p, size_t size, const void *pool, san_stream *s)
{
	const int device = pool ? device_of(pool) : san.device, current = san.device;
	uint64_t at = 0;
	san_node *n;

	if (!p || device < 0)
		return SAN_VALUE;
	if (san_captures(s))
		return san_graph_alloc(s->capture, p, size, &n);
	san.device = device;
	int e = san_forbidden() ? SAN_CAPTURE : size ? san_alloc(SAN_DEVICE_MEMORY, size, &at) : SAN_OK;
	san.device = current;
	*p = (void *)(uintptr_t)at;
	if (!e && at) {
		san_block_at(at)->pooled = true;
		if (san.ndevice > 1)
			cptx_emu_reach(san.dev, at, reached_by(device), NULL);
	}
	return e;
}

BOTH(cudaMallocAsync, cuMemAllocAsync, (void **p, size_t size, san_stream *s), alloc(p, size, NULL, san_stream_of(s)))
BOTH(cudaMallocFromPoolAsync, cuMemAllocFromPoolAsync, (void **p, size_t size, void *pool, san_stream *s),
     alloc(p, size, pool, san_stream_of(s)))
BOTH(cudaDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, (void **out, int number), pool_of(out, number))
BOTH(cudaDeviceGetMemPool, cuDeviceGetMemPool, (void **out, int number), pool_of(out, number))
BOTH(cudaDeviceSetMemPool, cuDeviceSetMemPool, (int number, void *p),
     !san_is_device(number) ? SAN_DEVICE
     : device_of(p) < 0     ? SAN_VALUE
                            : SAN_OK)
BOTH(cudaMemPoolCreate, cuMemPoolCreate, (void **out, const pool_properties *p), pool_new(out, p))
BOTH(cudaMemPoolDestroy, cuMemPoolDestroy, (void *p), device_of(p) < 0 ? SAN_VALUE : SAN_OK)
BOTH(cudaMemPoolSetAttribute, cuMemPoolSetAttribute, (void *p, int attribute, void *value),
     ((void)p, (void)attribute, (void)value, SAN_OK))
BOTH(cudaMemPoolGetAttribute, cuMemPoolGetAttribute, (void *p, int attribute, void *value),
     get_attribute(p, attribute, value))
BOTH(cudaMemPoolSetAccess, cuMemPoolSetAccess, (void *p, const pool_access *list, size_t n), set_access(p, list, n))
BOTH(cudaMemPoolGetAccess, cuMemPoolGetAccess, (int *flags, void *p, const rt_location *where), get_access(flags, p, where))
BOTH(cudaMemPoolTrimTo, cuMemPoolTrimTo, (void *p, size_t keep), ((void)p, (void)keep, SAN_OK))
