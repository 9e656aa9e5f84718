/* SPDX-License-Identifier: MIT */
/*
 * Bulk copies: what cp.async.bulk, its forms for tensors and its reductions have in common.
 *
 * An instruction makes a bulk_copy of spans: runs of bytes that are contiguous outside (in global memory, or in the shared
 * memory that is the source) and that lie in shared memory one behind the other before the swizzle.  It is done late and in
 * parts, some spans at a time, in an order that the seed picks.  Copies to shared memory complete their bytes at an mbarrier
 * as the parts do; those from shared memory belong to the thread's open bulk group: first a part is read, later it is
 * written.
 */
#ifndef CPTX_EMU_ASYNC_BULK_H
#define CPTX_EMU_ASYNC_BULK_H

#include "emu/async/mbarrier.h"

#include <cptx/layout.h>

typedef struct bulk_span {
	emu_alloc *alloc; /* NULL: bulk_copy.from, or nothing: it is filled */
	uint64_t offset;  /* there */
	uint32_t s, n;    /* bytes in shared memory, from the start of the copy on; how many */
	bool fill;
} bulk_span;

typedef struct bulk_dest {
	emu_cta *cta, *mbar_cta;
	uint32_t at, mbar; /* offsets in their shared memory */
	uint32_t late;     /* for race.h */
	uint32_t left;     /* bytes */
} bulk_dest;

typedef struct bulk_link {
	struct bulk_copy *previous, *next;
} bulk_link;

typedef struct bulk_copy {
	emu_async a;
	bool store;     /* from shared memory */
	bool read;      /* a store: all is read */
	uint32_t group; /* of the lane's bulk groups, from 1 on */
	uint16_t op;    /* of a reduction; 0: a copy */
	uint16_t type;
	bool ftz;               /* a reduction takes subnormal numbers for zeros */
	uint16_t mask;          /* which bytes of 16 are written; 0: all */
	uint16_t skip[2];       /* so many bytes at the start and end are not copied */
	uint8_t swizzle;        /* enum cptx_swizzle */
	uint8_t gather, spread; /* bytes outside, and in shared memory, of a padded unit; 0: none */
	bool to_tf32;           /* elements of 32 bits are rounded on the way to shared memory */
	uint8_t fill[8];        /* what is outside of a tensor, repeated */
	emu_place from;         /* shared memory that is copied */
	emu_place map;          /* the tensor map in global memory; p NULL: none */
	bulk_span *span;
	uint32_t nspan;
	size_t cap_span;
	uint32_t bytes;  /* of shared memory from the start on, what is not copied too */
	uint32_t moved;  /* bytes that are copied or filled: what mbarriers count */
	bulk_dest *dest; /* copies to shared memory */
	uint32_t ndest, nchunk;
	uint64_t todo;        /* parts: a bit for each chunk of each destination; of a store, reads, then writes */
	unsigned char *stage; /* what a store has read */
	uint32_t late_read, late_write;
	bulk_link link[BULK_LISTS]; /* of a store: its neighbours in the lists of emu_bulk */
} bulk_copy;

/* NULL with a finding when memory is short.  It is freed by bulk_free until bulk_start takes it over. */
bulk_copy *bulk_new(emu_warp *w, const emu_op *op, unsigned lane);
void bulk_free(bulk_copy *b);
/* Bytes from the place on, NULL: filled; they follow the span before.  n: in shared memory. */
bool bulk_add(bulk_copy *b, const emu_place *outside, uint32_t n);
void bulk_skip(bulk_copy *b, uint32_t n); /* bytes in shared memory that are not copied */
/*
 * Where a copy to shared memory ends: the place and the mbarrier of the operand are checked.  ctas: the operand that names
 * the CTAs of a multicast; NULL: only the one of the place.  pair: .cta_group::2.
 */
bool bulk_send(bulk_copy *b, const emu_place *dst, const emu_arg *mbar, const emu_arg *ctas, bool pair);
/* Notes its memory, and puts it into the queue or the thread's open bulk group. */
bool bulk_start(bulk_copy *b);

void emu_bulk_exit(emu_warp *w, const emu_op *op, uint32_t mask); /* these lanes end */
void emu_bulk_free(emu_warp *w);

#endif
