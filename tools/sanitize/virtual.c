/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory management of the driver, and multicast objects.  Reserved addresses are numbers: they lie where the
 * emulator places nothing by itself.  What is created has memory that no kernel reaches; mapping it gives its bytes another
 * address, which the devices reach that cuMemSetAccess names.  A multicast object has no bytes: multimem instructions at
 * its addresses do their work in the memory that is bound to it.
 */
#include "api.h"
#include "context.h"
#include "shared.h"

#include <stdlib.h>
#include <string.h>

enum { GRANULARITY = 2 << 20 /* bytes, as on GPUs */ };
#define FIRST_ADDRESS (UINT64_C(0x6000) << 32)
#define LAST_ADDRESS (UINT64_C(0x7000) << 32)

/* CUmemAllocationProp and CUmemAccessDesc. */
typedef struct properties {
	int type, handles; /* handles: 1: POSIX file descriptors */
	rt_location where;
	void *windows;
	unsigned char flags[8];
} properties;
typedef struct access {
	rt_location where;
	int flags; /* 0 none, 1 to read, 3 to read and write */
} access;
enum { ON_DEVICE = 1 /* rt_location */ };

/* CUmulticastObjectProp. */
typedef struct multicast_properties {
	unsigned devices;
	size_t size;
	unsigned long long handles, flags;
} multicast_properties;

/* What cuMemCreate and cuMulticastCreate give: a CUmemGenericAllocationHandle. */
typedef struct physical {
	struct physical *next;
	size_t size;
	unsigned uses;                       /* the handle, and where it is mapped or bound */
	unsigned maps;                       /* where it is mapped */
	bool released;                       /* the handle is none any more */
	uint64_t at;                         /* its memory */
	int device;                          /* whose it is */
	san_shared *shared;                  /* with other processes; NULL: it is not */
	unsigned devices;                    /* of a multicast object; 0: it is memory */
	uint64_t added;                      /* devices that were added: a bit for each */
	uint64_t member[SAN_DEVICES];        /* addresses of what is bound; 0: nothing */
	struct physical *bound[SAN_DEVICES]; /* by cuMulticastBindMem */
} physical;

/* Mapped addresses, within a range that is reserved. */
typedef struct mapping {
	struct mapping *next;
	uint64_t at;
	size_t size;
	physical *of;
	uint64_t reach; /* devices that have access */
} mapping;

typedef struct range {
	struct range *next;
	uint64_t at;
	size_t size;
} range;

static range *ranges;
static mapping *mappings;
static physical *physicals;

/* ---- addresses ---- */

static int reserve(uint64_t *at, size_t size, size_t align)
{
	static uint64_t next = FIRST_ADDRESS;
	size_t unit = align > GRANULARITY ? align : GRANULARITY;

	if (!at || !size || size % GRANULARITY || unit & (unit - 1) || size > SIZE_MAX - unit)
		return SAN_VALUE;
	const uint64_t first = (next + unit - 1) / unit * unit;
	range *r = first < LAST_ADDRESS && size <= LAST_ADDRESS - first ? (range *)calloc(1, sizeof *r) : NULL;
	if (!r)
		return SAN_MEMORY;
	*r = (range){ .next = ranges, .at = first, .size = size };
	ranges = r;
	next = first + size + GRANULARITY; /* who runs over the end is found */
	*at = first;
	return SAN_OK;
}

static int unreserve(uint64_t at, size_t size)
{
	range **p = &ranges;

	while (*p && ((*p)->at != at || (*p)->size != size))
		p = &(*p)->next;
	for (const mapping *m = mappings; *p && m; m = m->next)
		if (m->at - at < size)
			return SAN_VALUE;
	if (!*p)
		return SAN_VALUE;
	range *r = *p;
	*p = r->next;
	free(r);
	return SAN_OK;
}

static bool is_reserved(uint64_t at, size_t size)
{
	for (const range *r = ranges; r; r = r->next)
		if (at - r->at < r->size && size <= r->size - (at - r->at))
			return true;
	return false;
}

/* ---- what is created ---- */

static void leave(physical *p)
{
	physical **at = &physicals;

	if (--p->uses)
		return;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	for (int d = 0; d < SAN_DEVICES; d++)
		if (p->bound[d])
			leave(p->bound[d]);
	if (p->at)
		cptx_mem_free(san.dev, p->at);
	san_shared_free(p->shared);
	free(p);
}

/* Whether a handle is one that was not released; else it is said. */
static bool is_handle(const physical *handle)
{
	const physical *p = physicals;

	while (p && p != handle)
		p = p->next;
	if (p && !p->released)
		return true;
	san_say("%p is no handle of cuMemCreate or cuMulticastCreate, or one that was released", (const void *)handle);
	return false;
}

static int release(physical *p)
{
	if (!is_handle(p))
		return SAN_VALUE;
	p->released = true;
	leave(p);
	return SAN_OK;
}

/* Takes `shared` over; NULL: memory of this process alone. */
static int add(physical **out, size_t size, int device, san_shared *shared)
{
	physical *p = (physical *)calloc(1, sizeof *p);
	cptx_error err = { .code = CPTX_OK };

	if (!p) {
		san_shared_free(shared);
		return SAN_MEMORY;
	}
	*p = (physical){ .size = size, .uses = 1, .device = device, .shared = shared };
	p->at = shared ? cptx_emu_map(san.dev, san_shared_bytes(shared), size, &err) : cptx_mem_alloc(san.dev, size, &err);
	if (!p->at || !cptx_emu_reach(san.dev, p->at, 0, &err)) {
		san_shared_free(shared);
		free(p);
		return san_failed("cuMemCreate", &err);
	}
	p->next = physicals;
	physicals = p;
	*out = p;
	return SAN_OK;
}

static int create(physical **out, size_t size, const properties *p)
{
	enum { FILE_DESCRIPTOR = 1 };
	const int device = p && p->where.type == ON_DEVICE ? p->where.id : san.device;
	san_shared *shared = NULL;

	if (!out || !size || size % GRANULARITY || !san_is_device(device))
		return SAN_VALUE;
	if (p && p->handles & ~FILE_DESCRIPTOR)
		return san_missing("cuMemCreate of memory that is shared by another handle than a file descriptor");
	if (p && p->handles && !(shared = san_shared_new(size)))
		return SAN_MEMORY;
	return add(out, size, device, shared);
}

static int export_fd(int *fd, const physical *p, int type)
{
	enum { FILE_DESCRIPTOR = 1 };

	if (!fd || !is_handle(p))
		return SAN_VALUE;
	if (type != FILE_DESCRIPTOR)
		return san_missing("cuMemExportToShareableHandle of another type than a file descriptor");
	if (!p->shared) {
		san_say("this memory cannot be exported: it was created without requestedHandleTypes, or is a multicast object");
		return p->devices ? SAN_NOT_SUPPORTED : SAN_VALUE;
	}
	*fd = san_shared_fd(p->shared);
	return *fd < 0 ? SAN_MEMORY : SAN_OK;
}

static int import_fd(physical **out, void *handle, int type)
{
	enum { FILE_DESCRIPTOR = 1 };
	san_shared *shared;

	if (!out || type != FILE_DESCRIPTOR)
		return out ? san_missing("cuMemImportFromShareableHandle of another type than a file descriptor") : SAN_VALUE;
	shared = san_shared_open((int)(uintptr_t)handle);
	return shared ? add(out, san_shared_size(shared), san.device, shared) : SAN_VALUE;
}

/* ---- mappings ---- */

static const physical *twice(void)
{
	const physical *p = physicals;

	while (p && p->maps < 2 && !p->devices)
		p = p->next;
	return p;
}

/* The members of a multicast object, where it is mapped.  Nobody reaches the addresses of one that has none. */
static bool tell_members(const mapping *m)
{
	uint64_t member[SAN_DEVICES];
	cptx_error err = { .code = CPTX_OK };
	size_t n = 0;

	for (int d = 0; d < SAN_DEVICES; d++)
		if (m->of->member[d])
			member[n++] = m->of->member[d];
	if (n)
		return cptx_emu_multicast(san.dev, m->at, member, n, &err) && cptx_emu_reach(san.dev, m->at, m->reach, &err);
	/* made anew, without those that it had */
	cptx_mem_free(san.dev, m->at);
	return cptx_emu_alloc_at(san.dev, m->at, m->size, true, &err) && cptx_emu_reach(san.dev, m->at, 0, &err);
}

static int map(uint64_t at, size_t size, size_t offset, physical *of)
{
	cptx_error err = { .code = CPTX_OK };

	if (!is_handle(of) || offset || size != of->size || at % GRANULARITY || !is_reserved(at, size))
		return SAN_VALUE;
	for (const mapping *m = mappings; m; m = m->next)
		if (m->at < at + size && at < m->at + m->size)
			return SAN_VALUE;
	mapping *m = (mapping *)calloc(1, sizeof *m);
	if (!m)
		return SAN_MEMORY;
	*m = (mapping){ .at = at, .size = size, .of = of };
	bool ok = of->devices ? cptx_emu_alloc_at(san.dev, at, size, true, &err) && tell_members(m)
	                      : cptx_emu_alias(san.dev, at, of->at, size, &err);
	int e = ok                                   ? cptx_emu_reach(san.dev, at, 0, &err),
		san_block_add(at, NULL, size, RT_DEVICE) : san_failed("cuMemMap", &err);
	if (e) {
		cptx_mem_free(san.dev, at);
		free(m);
		return e;
	}
	san_block *b = san_block_at(at);
	b->mapped = true, b->device = of->device;
	cptx_emu_reach(san.dev, at, 0, &err);
	m->next = mappings;
	mappings = m;
	of->uses++, of->maps++;
	san.several = twice() != NULL;
	return SAN_OK;
}

/* Ends all mappings within the addresses. */
static int unmap(uint64_t at, size_t size)
{
	mapping **p = &mappings;
	bool any = false;

	while (*p) {
		mapping *m = *p;
		if (m->at - at >= size || m->size > size - (m->at - at)) {
			p = &m->next;
			continue;
		}
		*p = m->next;
		san_block_drop(m->at);
		cptx_mem_free(san.dev, m->at);
		m->of->maps--;
		leave(m->of);
		free(m);
		any = true;
	}
	san.several = twice() != NULL;
	return any ? SAN_OK : SAN_VALUE;
}

/* All of the addresses are mapped. */
static bool all_mapped(uint64_t at, size_t size)
{
	size_t mapped = 0;

	for (const mapping *m = mappings; m && size <= UINT64_MAX - at; m = m->next) {
		uint64_t from = m->at > at ? m->at : at, to = m->at + m->size < at + size ? m->at + m->size : at + size;
		mapped += from < to ? to - from : 0;
	}
	return size && mapped == size;
}

/* Says who reaches whole mappings; no list: the current device. */
static int set_access(uint64_t at, size_t size, const access *list, size_t n)
{
	const access mine = { .where = { ON_DEVICE, san.device }, .flags = 3 };

	if (!all_mapped(at, size))
		return SAN_VALUE;
	if (!list)
		list = &mine, n = 1;
	for (size_t i = 0; i < n; i++)
		if (list[i].where.type == ON_DEVICE && !san_is_device(list[i].where.id))
			return SAN_DEVICE;
	for (mapping *m = mappings; m; m = m->next) {
		if (m->at - at >= size)
			continue;
		for (size_t i = 0; i < n; i++)
			if (list[i].where.type == ON_DEVICE)
				m->reach = list[i].flags ? m->reach | UINT64_C(1) << list[i].where.id
				                         : m->reach & ~(UINT64_C(1) << list[i].where.id);
		if (m->of->devices)
			tell_members(m);
		else
			cptx_emu_reach(san.dev, m->at, m->reach, NULL);
	}
	return SAN_OK;
}

static unsigned long long access_of(uint64_t at, const rt_location *where)
{
	for (const mapping *m = mappings; m; m = m->next)
		if (at - m->at < m->size)
			return m->reach >> (where && where->type == ON_DEVICE && san_is_device(where->id) ? where->id : san.device) & 1
			           ? 3
			           : 0;
	return 0;
}

/* ---- multicast objects ---- */

static int multicast_new(physical **out, const multicast_properties *p)
{
	if (!out || !p || !p->size || p->size % GRANULARITY || !p->devices || p->devices > (unsigned)san.ndevice)
		return SAN_VALUE;
	if (p->handles)
		return san_missing("cuMulticastCreate of an object that is shared with other processes");
	*out = (physical *)calloc(1, sizeof **out);
	if (!*out)
		return SAN_MEMORY;
	**out = (physical){ .next = physicals, .size = p->size, .uses = 1, .devices = p->devices };
	physicals = *out;
	return SAN_OK;
}

static int multicast_add(physical *m, int device)
{
	if (!is_handle(m) || !m->devices || !san_is_device(device) || m->added >> device & 1 ||
	    (unsigned)__builtin_popcountll(m->added) == m->devices)
		return SAN_VALUE;
	m->added |= UINT64_C(1) << device;
	return SAN_OK;
}

/* Binds memory of a device, all of the object's size, for which the object does the work of multimem. */
static int bind(physical *m, size_t offset, uint64_t at, size_t size, int device, physical *of)
{
	if (!is_handle(m) || !m->devices || !(m->added >> device & 1) || m->member[device])
		return SAN_VALUE;
	if ((unsigned)__builtin_popcountll(m->added) != m->devices) {
		san_say("memory is bound to a multicast object when all of its %u devices were added", m->devices);
		return SAN_VALUE;
	}
	if (offset || size != m->size)
		return san_missing("binding memory to a part of a multicast object");
	m->member[device] = at;
	m->bound[device] = of;
	if (of)
		of->uses++;
	for (const mapping *x = mappings; x; x = x->next)
		if (x->of == m && !tell_members(x))
			return SAN_MEMORY;
	return SAN_OK;
}

static int bind_memory(physical *m, size_t offset, physical *of, size_t from, size_t size)
{
	if (!is_handle(of) || of->devices || from > of->size || size > of->size - from)
		return SAN_VALUE;
	return bind(m, offset, of->at + from, size, of->device, of);
}

static int bind_address(physical *m, size_t offset, uint64_t at, size_t size)
{
	const san_block *b = san_block_at(at);

	if (!b || b->type != RT_DEVICE || size > b->size - (at - b->at))
		return SAN_VALUE;
	return bind(m, offset, at, size, b->device, NULL);
}

static int unbind(physical *m, int device)
{
	if (!is_handle(m) || !m->devices || !san_is_device(device) || !m->member[device])
		return SAN_VALUE;
	m->member[device] = 0;
	if (m->bound[device])
		leave(m->bound[device]);
	m->bound[device] = NULL;
	for (const mapping *x = mappings; x; x = x->next)
		if (x->of == m && !tell_members(x))
			return SAN_MEMORY;
	return SAN_OK;
}

/* ---- the calls ---- */

DRIVER(cuMemGetAllocationGranularity, (size_t * bytes, const properties *p, int option),
       ((void)p, (void)option, *bytes = GRANULARITY, SAN_OK))
DRIVER(cuMemCreate, (physical * *out, size_t size, const properties *p, unsigned long long flags),
       ((void)flags, create(out, size, p)))
DRIVER(cuMemRelease, (physical * p), release(p))
DRIVER(cuMemAddressReserve, (uint64_t * at, size_t size, size_t align, uint64_t wish, unsigned long long flags),
       ((void)wish, (void)flags, reserve(at, size, align)))
DRIVER(cuMemAddressFree, (uint64_t at, size_t size), unreserve(at, size))
DRIVER(cuMemMap, (uint64_t at, size_t size, size_t offset, physical *of, unsigned long long flags),
       ((void)flags, map(at, size, offset, of)))
DRIVER(cuMemUnmap, (uint64_t at, size_t size), unmap(at, size))
DRIVER(cuMemSetAccess, (uint64_t at, size_t size, const access *list, size_t n), set_access(at, size, list, n))
DRIVER(cuMemGetAccess, (unsigned long long *flags, const rt_location *location, uint64_t at),
       (*flags = access_of(at, location), SAN_OK))
DRIVER(cuMemExportToShareableHandle, (int *fd, physical *p, int type, unsigned long long flags),
       ((void)flags, export_fd(fd, p, type)))
DRIVER(cuMemImportFromShareableHandle, (physical * *out, void *handle, int type), import_fd(out, handle, type))
DRIVER(cuMulticastCreate, (physical * *out, const multicast_properties *p), multicast_new(out, p))
DRIVER(cuMulticastAddDevice, (physical * m, int device), multicast_add(m, device))
DRIVER(cuMulticastBindMem, (physical * m, size_t offset, physical *of, size_t from, size_t size, unsigned long long flags),
       ((void)flags, bind_memory(m, offset, of, from, size)))
DRIVER(cuMulticastBindAddr, (physical * m, size_t offset, uint64_t at, size_t size, unsigned long long flags),
       ((void)flags, bind_address(m, offset, at, size)))
DRIVER(cuMulticastUnbind, (physical * m, int device, size_t offset, size_t size),
       ((void)offset, (void)size, unbind(m, device)))
DRIVER(cuMulticastGetGranularity, (size_t * bytes, const multicast_properties *p, int option),
       ((void)p, (void)option, *bytes = GRANULARITY, SAN_OK))
