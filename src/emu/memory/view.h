/* SPDX-License-Identifier: MIT */
/*
 * Global memory as a cluster sees it.  In a round no cluster writes global memory: what it stores goes to pages of its own,
 * and behind the round these go to memory, one cluster after another.  So what anybody reads, in a race too, follows from
 * the seed and not from the threads of the host.  In its turn a cluster is alone and writes at once, as it does where it is
 * the only one.
 *
 * emu_resolve and emu_locate give places to read from; who writes asks emu_writable first.  Pieces of memory that may cross
 * from one page to the next are moved by emu_fetch and emu_deliver, or part by part.
 */
#ifndef CPTX_EMU_MEMORY_VIEW_H
#define CPTX_EMU_MEMORY_VIEW_H

#include "emu/memory/place.h"

enum { VIEW_PAGE = 1024 /* bytes */ };

typedef struct emu_page {
	uint64_t number;  /* address / VIEW_PAGE */
	emu_alloc *alloc; /* whose bytes it has; those of its neighbours in the same page are in pages of their own */
	uint64_t dirty[VIEW_PAGE / 64]; /* a bit per byte that goes to memory */
	uint8_t defined[VIEW_PAGE / 8]; /* where the allocation has that */
	unsigned char bytes[VIEW_PAGE];
} emu_page;

typedef struct emu_view {
	emu_page **page; /* the first n are in use */
	uint32_t n, made, cap;
	uint32_t most;         /* pages in use, before the round ends */
	uint32_t *slot, nslot; /* a hash table of numbers of pages + 1 */
} emu_view;

void emu_view_commit(emu_cluster *c);
void emu_view_free(emu_view *v);
/* The page of the allocation with that number; NULL: the cluster has not written there. */
emu_page *emu_view_find(const emu_view *v, const emu_alloc *a, uint64_t number);
void emu_view_own(emu_cluster *c, emu_place *p, uint32_t size);

/* Bytes from the place to the end of its page, of `most`. */
static inline uint32_t emu_page_left(const emu_place *p, uint32_t most)
{
	uint64_t at = p->space == SPACE_GLOBAL ? p->alloc->at + p->offset : 0;

	return MIN(most, (uint32_t)(VIEW_PAGE - at % VIEW_PAGE));
}

void emu_fetch(const emu_cluster *c, const emu_place *from, void *to, uint32_t n);
void emu_deliver(emu_cluster *c, const emu_place *to, const void *from, uint32_t n);

#endif
