/* SPDX-License-Identifier: MIT */
/* Access to memory by threads and by what works for them (memory.c). */
#ifndef CPTX_EMU_MEMORY_MEMORY_H
#define CPTX_EMU_MEMORY_MEMORY_H

#include "emu/core/cluster.h"
#include "emu/core/grid.h"
#include "emu/core/registers.h"

/* The address of an ARG_ADDR in a lane; its space as an access to it says. */
static inline uint64_t emu_address(const emu_warp *w, const emu_arg *a, unsigned lane)
{
	if (!a->base)
		return (uint64_t)a->offset;
	uint64_t base = a->bits == 64 ? emu_r64(w, a->slot)[lane] : emu_r32(w, a->slot)[lane];
	return a->bits == 64 ? base + (uint64_t)a->offset : (uint32_t)(base + (uint64_t)a->offset);
}
/* 1, 2, 4 or 8 bytes of memory as a number. */
static inline uint64_t emu_bytes(const unsigned char *p, uint32_t size)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	switch (size) {
	case 1: return *p;
	case 2: memcpy(&v2, p, 2); return v2;
	case 4: memcpy(&v4, p, 4); return v4;
	default: memcpy(&v8, p, 8); return v8;
	}
}

/* Where `size` bytes at the address lie; a finding and false if they do not, or are not aligned to `align`. */
bool emu_resolve(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, uint32_t size, uint32_t align,
                 emu_place *place);
/* As emu_resolve, but the place may be in a CTA that has ended: for mbarriers, which tell that themselves. */
bool emu_resolve_any(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, uint32_t size,
                     uint32_t align, emu_place *place);
bool emu_has_ended(const emu_cta *cta); /* all its threads have */
/* As emu_resolve_any, without a finding or a thread: for async operations.  False if the bytes are not there. */
bool emu_locate(emu_cluster *c, emu_cta *cta, unsigned space, uint64_t addr, uint32_t size, emu_place *place);
/* Resolve, notice who touches it, and read or write. */
bool emu_read(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, void *to, uint32_t size,
              unsigned access);
bool emu_write(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, const void *from, uint32_t size,
               unsigned access);
unsigned emu_order_of(const emu_op *op); /* enum emu_access: what .sem and .scope say; 0: weak */

void emu_set_defined(const emu_place *place, uint32_t size, bool defined);
bool emu_all_undefined(const emu_place *place, uint32_t size);
bool emu_all_defined(const emu_place *place, uint32_t size);
void emu_copy_defined(const emu_place *to, const emu_place *from, uint32_t size); /* which bytes are */
void emu_copy_bytes(const emu_place *to, const emu_place *from, uint32_t size);   /* the same, with their values */

/* ---- the view of global memory (view.h) ---- */

/* A place in global memory as the cluster sees it now. */
static inline void emu_see(const emu_cluster *c, emu_place *p)
{
	uint64_t at;

	if (!c->view.n || p->space != SPACE_GLOBAL)
		return;
	at = p->alloc->at + p->offset;
	p->view = emu_view_find(&c->view, p->alloc, at / VIEW_PAGE);
	if (p->view)
		p->p = p->view->bytes + at % VIEW_PAGE;
}
/* `size` bytes of the place, which lie in one page, may be written. */
static inline void emu_writable(emu_cluster *c, emu_place *p, uint32_t size)
{
	if (p->space == SPACE_GLOBAL && !c->turn && c->grid->nclusters > 1)
		emu_view_own(c, p, size);
}
/* The place behind it, as the cluster sees it. */
emu_place emu_part_of(const emu_cluster *c, const emu_place *p, uint32_t from);

#endif
