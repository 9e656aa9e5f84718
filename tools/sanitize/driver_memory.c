/* SPDX-License-Identifier: MIT */
/* The CUDA Driver API: what a pointer is, rows of memory that are set, hints. */
#include "api.h"

#include <string.h>

/* ---- attributes of pointers ---- */

enum pointer_attribute {
	POINTER_TYPE = 2,
	POINTER_DEVICE,
	POINTER_HOST,
	POINTER_NUMBER = 7,
	POINTER_IS_MANAGED,
	POINTER_ORDINAL,
	POINTER_START = 11,
	POINTER_SIZE,
	POINTER_MAPPED
};

/* NOT_SUPPORTED: an attribute of none of these. */
static int pointer_attribute(void *out, int attribute, uint64_t p)
{
	const san_block *b = san_block_at(p);
	const uint64_t in = !b ? 0 : p - b->at < b->size ? p - b->at : p - (uintptr_t)b->host;
	const unsigned type = b && b->type == RT_HOST ? DR_HOST : DR_DEVICE;

	if (!b || (attribute == POINTER_HOST && !b->host))
		return SAN_VALUE;
	switch (attribute) {
	case POINTER_TYPE: *(unsigned *)out = type; return SAN_OK;
	case POINTER_DEVICE: *(uint64_t *)out = b->at + in; return SAN_OK;
	case POINTER_HOST: *(void **)out = (char *)b->host + in; return SAN_OK;
	case POINTER_NUMBER: *(uint64_t *)out = b->at; return SAN_OK; /* no two have one */
	case POINTER_IS_MANAGED: *(unsigned *)out = b->type == RT_MANAGED; return SAN_OK;
	case POINTER_ORDINAL: *(int *)out = b->device; return SAN_OK;
	case POINTER_START: *(uint64_t *)out = b->at; return SAN_OK;
	case POINTER_SIZE: *(size_t *)out = b->size; return SAN_OK;
	case POINTER_MAPPED: *(int *)out = 1; return SAN_OK;
	default: san_say("attribute %d of pointers is not there", attribute); return SAN_NOT_SUPPORTED;
	}
}

/* Of a pointer that is none of the driver's all are 0, and the ordinal is that of no device. */
static int pointer_attributes(unsigned n, const int *attribute, void **out, uint64_t p)
{
	int e = SAN_OK;

	for (unsigned i = 0; i < n && !e; i++) {
		e = pointer_attribute(out[i], attribute[i], p);
		if (e != SAN_VALUE)
			continue;
		const bool narrow =
			attribute[i] == POINTER_TYPE || attribute[i] == POINTER_IS_MANAGED || attribute[i] == POINTER_MAPPED;
		if (attribute[i] == POINTER_ORDINAL)
			*(int *)out[i] = -2;
		else
			memset(out[i], 0, narrow ? 4 : 8);
		e = SAN_OK;
	}
	return e;
}

DRIVER(cuPointerGetAttribute, (void *out, int attribute, uint64_t p), pointer_attribute(out, attribute, p))
DRIVER(cuPointerGetAttributes, (unsigned n, const int *attribute, void **out, uint64_t p),
       pointer_attributes(n, attribute, out, p))

/* ---- rows ---- */

static int set_rows(uint64_t at, size_t pitch, unsigned value, unsigned element, size_t width, size_t height, san_stream *s)
{
	return san_set_rows(&(rt_set_node){ (void *)(uintptr_t)at, pitch, value, element, width, height }, s);
}

#define ROWS(bits, type)                                                                                                    \
	DRIVER(cuMemsetD2D##bits##_v2, (uint64_t at, size_t pitch, type v, size_t width, size_t height),                        \
	       set_rows(at, pitch, v, bits / 8, width, height, NULL))                                                           \
	DRIVER(cuMemsetD2D##bits##Async, (uint64_t at, size_t pitch, type v, size_t width, size_t height, san_stream * s),      \
	       set_rows(at, pitch, v, bits / 8, width, height, san_stream_of(s)))
ROWS(8, unsigned char)
ROWS(16, unsigned short)
ROWS(32, unsigned)
DRIVER(cuMemsetD16Async, (uint64_t at, unsigned short v, size_t n, san_stream *s), san_set(at, v, 2, n, san_stream_of(s)))

/* ---- hints, which change nothing here ---- */

#define HINT uint64_t at, size_t size
DRIVER(cuMemPrefetchAsync, (HINT, int device, san_stream *s), ((void)at, (void)size, (void)device, (void)s, SAN_OK))
DRIVER(cuMemPrefetchAsync_v2, (HINT, rt_location where, unsigned flags, san_stream *s),
       ((void)at, (void)size, (void)where, (void)flags, (void)s, SAN_OK))
DRIVER(cuMemAdvise, (HINT, int advice, int device), ((void)at, (void)size, (void)advice, (void)device, SAN_OK))
DRIVER(cuMemAdvise_v2, (HINT, int advice, rt_location where), ((void)at, (void)size, (void)advice, (void)where, SAN_OK))
