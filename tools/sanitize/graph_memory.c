/* SPDX-License-Identifier: MIT */
/*
 * Memory of graphs: allocated when its node is made, at the address that every launch of the graph uses, and kept, so that
 * what is freed by a graph or behind it is there again in its next launch.
 */
#include "api.h"
#include "graph.h"

int san_graph_alloc(san_graph *g, void **at, size_t size, san_node **out)
{
	uint64_t p = 0;
	int e = size ? san_alloc(SAN_DEVICE_MEMORY, size, &p) : SAN_VALUE;

	if (e)
		return e;
	if ((e = san_graph_child(g, NULL, out))) {
		san_free(p, false);
		return e;
	}
	san_block *b = san_block_at(p);
	b->of_graph = b->freed = true, b->graphs = 1;
	*at = (void *)(uintptr_t)p;
	(*out)->work = SAN_WORK_ALLOC, (*out)->memory = *at;
	return SAN_OK;
}

int san_graph_free_memory(san_graph *g, const void *at, san_node **out)
{
	const san_block *b = san_block_at((uintptr_t)at);

	int e = b && b->at == (uintptr_t)at ? san_graph_child(g, NULL, out) : SAN_VALUE;

	if (!e && b->of_graph)
		(*out)->work = SAN_WORK_FREE, (*out)->memory = (void *)(uintptr_t)at;
	return e;
}

static int attribute(int number, uint64_t *value)
{
	*value = 0;
	for (const san_block *b = san.blocks; b; b = b->next)
		*value += b->of_graph ? b->size : 0;
	return number ? SAN_DEVICE : SAN_OK;
}

BOTH(cudaGraphAddMemAllocNode, cuGraphAddMemAllocNode, (NODE, rt_alloc_node *p),
     ADD(p, san_graph_alloc(g, &p->at, p->size, out)))
BOTH(cudaGraphAddMemFreeNode, cuGraphAddMemFreeNode, (NODE, void *at), ADD(true, san_graph_free_memory(g, at, out)))
CALL(cudaDeviceGetGraphMemAttribute, (int number, int which, void *value),
     ((void)which, attribute(number, (uint64_t *)value)))
CALL(cudaDeviceSetGraphMemAttribute, (int number, int which, void *value),
     ((void)which, (void)value, number ? SAN_DEVICE : SAN_OK))
CALL(cudaDeviceGraphMemTrim, (int number), number ? SAN_DEVICE : SAN_OK)
