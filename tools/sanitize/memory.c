/* SPDX-License-Identifier: MIT */
/* Memory of the device and the host, and copies between them. */
#include "context.h"
#include "shared.h"

#include <stdlib.h>
#include <string.h>

/* ---- who has an address ---- */

san_block *san_block_at(uint64_t at)
{
	for (san_block *b = san.blocks; b; b = b->next)
		if (at - b->at < b->size || (b->host && at - (uintptr_t)b->host < b->size))
			return b;
	return NULL;
}

/* Whether only the device's calls reach the address. */
bool san_on_device(const void *p)
{
	const san_block *b = san_block_at((uintptr_t)p);
	cptx_error err = { .code = CPTX_OK };
	unsigned char byte;

	if (b)
		return (!b->host || (uintptr_t)b->host != b->at) && (uintptr_t)p - b->at < b->size;
	return cptx_mem_read(san.dev, &byte, (uintptr_t)p, 1, &err); /* a variable, or memory of malloc in a kernel */
}

int san_block_add(uint64_t at, void *host, size_t size, int type)
{
	san_block *b = (san_block *)calloc(1, sizeof *b);

	if (!b)
		return SAN_MEMORY;
	*b = (san_block){ .next = san.blocks, .at = at, .host = host, .size = size, .type = type, .device = san.device };
	san.blocks = b;
	if (san.ndevice > 1 && type == RT_DEVICE)
		cptx_emu_reach(san.dev, at, san_reached_by(san.device), NULL);
	return SAN_OK;
}

static san_block *take(san_block **p)
{
	san_block *b = *p;

	if (b)
		*p = b->next;
	return b;
}

static san_block **find(uint64_t at)
{
	san_block **p = &san.blocks;

	while (*p && (*p)->at != at && (uintptr_t)(*p)->host != at)
		p = &(*p)->next;
	return p;
}

/* ---- allocations ---- */

int san_alloc(enum san_memory kind, size_t size, uint64_t *at)
{
	static const int types[] = { RT_DEVICE, RT_HOST, RT_MANAGED };
	cptx_error err = { .code = CPTX_OK };

	*at = kind == SAN_DEVICE_MEMORY ? cptx_mem_alloc(san.dev, size, &err) : cptx_emu_unified(san.dev, size, &err);
	if (!*at)
		return san_failed("an allocation", &err);
	int e = san_block_add(*at, kind == SAN_DEVICE_MEMORY ? NULL : (void *)(uintptr_t)*at, size, types[kind]);
	if (e)
		cptx_mem_free(san.dev, *at);
	return e;
}

/* Ends a block, which *p is. */
static void end(san_block **p)
{
	cptx_mem_free(san.dev, (*p)->at);
	san_shared_free((*p)->shared);
	free(take(p));
}

void san_graph_left(san_block *b)
{
	if (!--b->graphs && b->freed)
		end(find(b->at));
}

static int free_of_graph(san_block *b)
{
	if (b->freed) {
		san_say("0x%llx is memory of a graph that was freed already, or that the graph has not allocated yet",
		        (unsigned long long)b->at);
		return SAN_VALUE;
	}
	b->freed = true;
	if (!b->graphs)
		end(find(b->at));
	return SAN_OK;
}

int san_free(uint64_t at, bool host)
{
	san_block **p = find(at), *b = *p;

	if (!at)
		return SAN_OK;
	if (b && b->of_graph && !host)
		return free_of_graph(b);
	if (b && b->at == at && host == (b->type == RT_HOST)) {
		end(p);
		return SAN_OK;
	}
	if (b)
		san_say("0x%llx is %s; free it by %s", (unsigned long long)at,
		        b->type == RT_HOST ? "pinned or registered memory of the host" : "memory of the device",
		        b->type == RT_HOST ? "cudaFreeHost or cudaHostUnregister" : "cudaFree");
	else if (!host)
		cptx_mem_free(san.dev, at); /* makes a finding of it */
	san_report();
	return SAN_VALUE;
}

void san_block_drop(uint64_t at)
{
	san_block **p = find(at);

	if (*p)
		free(take(p));
}

int san_map(void *host, size_t size)
{
	cptx_error err = { .code = CPTX_OK };

	if (!host || !size)
		return SAN_VALUE;
	if (san_block_at((uintptr_t)host))
		return SAN_REGISTERED;
	uint64_t at = cptx_emu_map(san.dev, host, size, &err);
	return at ? san_block_add(at, host, size, RT_HOST) : san_failed("cudaHostRegister", &err);
}

int san_unmap(void *host)
{
	san_block **p = find((uintptr_t)host), *b = *p;

	if (!host)
		return SAN_VALUE;
	if (!b || b->host != host || b->at == (uintptr_t)host)
		return SAN_NOT_REGISTERED;
	end(p);
	return SAN_OK;
}

/* ---- copies ---- */

/* Whether bytes at the address reach beyond the block that holds it; said, as a device says it of its own memory. */
static bool leaves(const void *p, size_t size)
{
	const san_block *b = san_block_at((uintptr_t)p);
	size_t in = b && (uintptr_t)p - b->at < b->size ? (uintptr_t)p - b->at : b ? (uintptr_t)p - (uintptr_t)b->host : 0;

	if (!b || size <= b->size - in)
		return false;
	san_say("%zu bytes at %p reach beyond their allocation of %zu bytes", size, p, b->size);
	return true;
}

static int copy_now(void *dst, const void *src, size_t size, int kind)
{
	cptx_error err = { .code = CPTX_OK };
	bool to = san_on_device(dst), from = san_on_device(src), ok = true;

	if (!size)
		return SAN_OK;
	if (kind < RT_HOST_TO_HOST || kind > RT_DEFAULT)
		return SAN_DIRECTION;
	if (leaves(dst, size) || leaves(src, size))
		return SAN_VALUE;
	/* Memory that both reach counts as either. */
	if ((kind == RT_DEVICE_TO_HOST || kind == RT_HOST_TO_HOST) && to)
		return SAN_VALUE;
	if ((kind == RT_HOST_TO_DEVICE || kind == RT_HOST_TO_HOST) && from)
		return SAN_VALUE;
	if ((kind == RT_HOST_TO_DEVICE || kind == RT_DEVICE_TO_DEVICE) && !to && !san_block_at((uintptr_t)dst))
		return SAN_VALUE;
	if ((kind == RT_DEVICE_TO_HOST || kind == RT_DEVICE_TO_DEVICE) && !from && !san_block_at((uintptr_t)src))
		return SAN_VALUE;
	if (to && from)
		ok = cptx_mem_copy(san.dev, (uintptr_t)dst, (uintptr_t)src, size, &err);
	else if (to)
		ok = cptx_mem_write(san.dev, (uintptr_t)dst, src, size, &err);
	else if (from)
		ok = cptx_mem_read(san.dev, dst, (uintptr_t)src, size, &err);
	else
		memmove(dst, src, size);
	return ok ? SAN_OK : san_failed("a copy", &err);
}

int san_copy(void *dst, const void *src, size_t size, int kind, san_stream *s)
{
	if (san_captures(s))
		return san_keep_copy(s, &(san_rows){ .dst = dst, .src = src, .width = size, .height = 1, .kind = kind });
	return copy_now(dst, src, size, kind);
}

int san_copy_rows(const san_rows *r, san_stream *s)
{
	int e = SAN_OK;

	if (r->height > 1 && (r->width > r->dst_pitch || r->width > r->src_pitch))
		return SAN_VALUE;
	if (san_captures(s))
		return san_keep_copy(s, r);
	for (size_t z = 0; z <= r->more && !e; z++)
		for (size_t y = 0; y < r->height && !e; y++)
			e = copy_now((char *)r->dst + z * r->dst_slice + y * r->dst_pitch,
			             (const char *)r->src + z * r->src_slice + y * r->src_pitch, r->width, r->kind);
	return e;
}

static int set_now(uint64_t dst, unsigned value, unsigned element, size_t count)
{
	cptx_error err = { .code = CPTX_OK };
	bool ok = true;

	if (count > SIZE_MAX / element || leaves((void *)(uintptr_t)dst, count * element))
		return SAN_VALUE;
	if (!san_on_device((void *)(uintptr_t)dst)) {
		if (!san_block_at(dst))
			return SAN_VALUE;
		for (size_t i = 0; i < count; i++)
			memcpy((char *)(uintptr_t)dst + i * element, &value, element);
	} else if (element == 1) {
		ok = cptx_mem_fill8(san.dev, dst, (uint8_t)value, count, &err);
	} else if (element == 4) {
		ok = cptx_mem_fill32(san.dev, dst, value, count, &err);
	} else {
		for (size_t i = 0; i < count && ok; i++)
			ok = cptx_mem_write(san.dev, dst + i * element, &value, element, &err);
	}
	return ok ? SAN_OK : san_failed("a memset", &err);
}

int san_set_rows(const rt_set_node *set, san_stream *s)
{
	int e = SAN_OK;

	if (set->element != 1 && set->element != 2 && set->element != 4)
		return SAN_VALUE;
	if (!set->width || !set->height)
		return SAN_OK;
	if (san_captures(s))
		return san_keep_set(s, set);
	for (size_t y = 0; y < set->height && !e; y++)
		e = set_now((uintptr_t)set->dst + y * set->pitch, set->value, set->element, set->width);
	return e;
}

int san_set(uint64_t dst, unsigned value, unsigned element, size_t count, san_stream *s)
{
	return san_set_rows(
		&(rt_set_node){
			.dst = (void *)(uintptr_t)dst, .value = value, .element = element, .width = count, .height = 1, .pitch = count },
		s);
}
