/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory management of the driver.  A range of addresses that is reserved has its memory at once, which costs
 * nothing until it is touched; what is created and mapped into it is bookkeeping.  So an allocation can be mapped at one
 * place only, and a kernel that uses a reserved address that nothing is mapped to is not told.
 */
#include "api.h"

#include <stdlib.h>

enum { GRANULARITY = 2 << 20 /* bytes, as on GPUs */ };

/* What cuMemCreate gives: a CUmemGenericAllocationHandle. */
typedef struct physical {
	struct physical *next;
	size_t size;
	unsigned uses;         /* the handle, and where it is mapped */
	bool mapped, released; /* released: the handle is none any more */
} physical;

/* Mapped addresses, within a range that is reserved. */
typedef struct mapping {
	struct mapping *next;
	uint64_t at;
	size_t size;
	physical *of;
} mapping;

typedef struct range {
	struct range *next;
	uint64_t at, memory; /* memory: what was allocated for it */
	size_t size;
} range;

static range *ranges;
static mapping *mappings;
static physical *physicals;

static int reserve(uint64_t *at, size_t size, size_t align)
{
	range *r = (range *)calloc(1, sizeof *r);
	size_t unit = align > GRANULARITY ? align : GRANULARITY;
	int e = !r                                                                                  ? SAN_MEMORY
	        : !at || !size || size % GRANULARITY || unit & (unit - 1) || size > SIZE_MAX - unit ? SAN_VALUE
	                                                                                            : SAN_OK;

	if (!e)
		e = san_alloc(SAN_DEVICE_MEMORY, size + unit, &r->memory);
	if (e) {
		free(r);
		return e;
	}
	r->at = (r->memory + unit - 1) / unit * unit;
	r->size = size;
	r->next = ranges;
	ranges = r;
	*at = r->at;
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
	int e = san_free(r->memory, false);
	free(r);
	return e;
}

static bool is_reserved(uint64_t at, size_t size)
{
	for (const range *r = ranges; r; r = r->next)
		if (at - r->at < r->size && size <= r->size - (at - r->at))
			return true;
	return false;
}

static void leave(physical *p)
{
	physical **at = &physicals;

	if (--p->uses)
		return;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
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
	san_say("%p is no handle of cuMemCreate, or one that was released", (const void *)handle);
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

static int create(physical **out, size_t size)
{
	if (!out || !size || size % GRANULARITY)
		return SAN_VALUE;
	*out = (physical *)calloc(1, sizeof **out);
	if (!*out)
		return SAN_MEMORY;
	(*out)->size = size, (*out)->uses = 1, (*out)->next = physicals;
	physicals = *out;
	return SAN_OK;
}

static int map(uint64_t at, size_t size, size_t offset, physical *of)
{
	if (!is_handle(of) || offset || size != of->size || at % GRANULARITY || !is_reserved(at, size))
		return SAN_VALUE;
	for (const mapping *m = mappings; m; m = m->next)
		if (m->at < at + size && at < m->at + m->size)
			return SAN_VALUE;
	if (of->mapped)
		return san_missing("cuMemMap of one allocation at two addresses");
	mapping *m = (mapping *)calloc(1, sizeof *m);
	if (!m)
		return SAN_MEMORY;
	*m = (mapping){ .next = mappings, .at = at, .size = size, .of = of };
	mappings = m;
	of->mapped = true;
	of->uses++;
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
		m->of->mapped = false;
		leave(m->of);
		free(m);
		any = true;
	}
	return any ? SAN_OK : SAN_VALUE;
}

/* All of the addresses are mapped. */
static int access_to(uint64_t at, size_t size)
{
	size_t mapped = 0;

	for (const mapping *m = mappings; m && size <= UINT64_MAX - at; m = m->next) {
		uint64_t from = m->at > at ? m->at : at, to = m->at + m->size < at + size ? m->at + m->size : at + size;
		mapped += from < to ? to - from : 0;
	}
	return size && mapped == size ? SAN_OK : SAN_VALUE;
}

DRIVER(cuMemGetAllocationGranularity, (size_t * bytes, const void *properties, int option),
       ((void)properties, (void)option, *bytes = GRANULARITY, SAN_OK))
DRIVER(cuMemCreate, (physical * *out, size_t size, const void *properties, unsigned long long flags),
       ((void)properties, (void)flags, create(out, size)))
DRIVER(cuMemRelease, (physical * p), release(p))
DRIVER(cuMemAddressReserve, (uint64_t * at, size_t size, size_t align, uint64_t wish, unsigned long long flags),
       ((void)wish, (void)flags, reserve(at, size, align)))
DRIVER(cuMemAddressFree, (uint64_t at, size_t size), unreserve(at, size))
DRIVER(cuMemMap, (uint64_t at, size_t size, size_t offset, physical *of, unsigned long long flags),
       ((void)flags, map(at, size, offset, of)))
DRIVER(cuMemUnmap, (uint64_t at, size_t size), unmap(at, size))
DRIVER(cuMemSetAccess, (uint64_t at, size_t size, const void *access, size_t n),
       ((void)access, (void)n, access_to(at, size)))
DRIVER(cuMemGetAccess, (unsigned long long *flags, const void *location, uint64_t at),
       ((void)location, *flags = access_to(at, 1) ? 0 : 3, SAN_OK))
