/* SPDX-License-Identifier: MIT */
/* The memories: what an address leads to, and the bytes there. */
#include "emu/core/explore.h"
#include "emu/memory/memory.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/core/undefined.h"

/* ---- definedness ---- */

/* The map that tells which bytes are defined, and the first bit of the place in it; NULL: all are. */
static uint8_t *defined_bits(const emu_place *p, uint64_t *first)
{
	*first = p->offset;
	if (p->defined)
		return p->defined;
	if (p->space == SPACE_SHARED || p->space == SPACE_CLUSTER)
		return p->cta->shared_defined;
	if (!p->alloc || !p->alloc->defined || !p->view)
		return p->alloc ? p->alloc->defined : NULL;
	*first = (p->alloc->at + p->offset) % VIEW_PAGE;
	return p->view->defined;
}

void emu_set_defined(const emu_place *p, uint32_t size, bool defined)
{
	uint64_t i, end;
	uint8_t *bits = defined_bits(p, &i);

	for (end = i + size; bits && i < end;) {
		unsigned first = i % 8, n = (unsigned)MIN(end - i, UINT64_C(8) - first), mask = ((1u << n) - 1) << first;
		bits[i / 8] = (uint8_t)(defined ? bits[i / 8] | mask : bits[i / 8] & ~mask);
		i += n;
	}
}

bool emu_all_undefined(const emu_place *p, uint32_t size)
{
	uint64_t i, end;
	const uint8_t *bits = defined_bits(p, &i);

	for (end = i + size; bits && i < end;) {
		unsigned first = i % 8, n = (unsigned)MIN(end - i, UINT64_C(8) - first);
		if (bits[i / 8] >> first & ((1u << n) - 1))
			return false;
		i += n;
	}
	return bits != NULL;
}

bool emu_all_defined(const emu_place *p, uint32_t size)
{
	uint64_t i;
	const uint8_t *bits = defined_bits(p, &i);
	uint64_t end = i + size;

	while (bits && i < end) {
		bool whole = i % 8 == 0 && end - i >= 8;
		if (whole ? bits[i / 8] != 0xff : !(bits[i / 8] >> i % 8 & 1))
			return false;
		i += whole ? 8 : 1;
	}
	return true;
}

void emu_copy_defined(const emu_place *to, const emu_place *from, uint32_t size)
{
	emu_place t = *to, f = *from;
	bool all = emu_all_defined(from, size);

	if (all || emu_all_undefined(from, size)) {
		emu_set_defined(to, size, all);
		return;
	}
	for (uint32_t i = 0; i < size; i++, t.offset++, f.offset++)
		emu_set_defined(&t, 1, !emu_all_undefined(&f, 1));
}

void emu_copy_bytes(const emu_place *to, const emu_place *from, uint32_t size)
{
	memcpy(to->p, from->p, size);
	emu_copy_defined(to, from, size);
}

/* ---- addresses ---- */

static unsigned space_of_generic(uint64_t *addr)
{
	uint64_t a = *addr;

	if (a < WINDOW_SHARED || a >= FUNC_FIRST)
		return SPACE_GLOBAL;
	*addr = (uint32_t)a;
	return a < WINDOW_LOCAL ? SPACE_CLUSTER : a < WINDOW_PARAM ? SPACE_LOCAL : SPACE_PARAM;
}

static bool locate_shared(emu_cluster *c, const emu_cta *own, uint64_t addr, uint32_t size, emu_place *p)
{
	uint64_t rank = addr >> SHARED_RANK, offset = addr & SHARED_MASK;

	if (addr >> 32 || rank >= c->ncta || (p->space == SPACE_SHARED && own && rank != own->rank))
		return false;
	emu_cta *cta = &c->cta[rank];
	if (offset < SHARED_FIRST || offset - SHARED_FIRST > cta->shared_bytes ||
	    size > cta->shared_bytes - (offset - SHARED_FIRST) ||
	    !emu_variable_holds(&c->grid->image->shared, offset - SHARED_FIRST, size))
		return false;
	p->cta = cta;
	p->offset = offset - SHARED_FIRST;
	p->p = cta->shared + p->offset;
	return true;
}

/* Whether the device that runs now may use it. */
static bool reaches(const emu_machine *m, const emu_alloc *a) { return a->reach >> m->number & 1 && !a->nmember; }

/* The place is in the allocation that has the bytes.  *found: who has the address, an alias perhaps. */
static bool locate_global(const emu_machine *m, emu_alloc *last, bool everywhere, uint64_t addr, uint32_t size, emu_place *p,
                          emu_alloc **found)
{
	emu_alloc *a = last && addr - last->at < last->size ? last : emu_alloc_find(m, addr);

	if (!a || size > a->size - (addr - a->at) || (a != last && !everywhere && !reaches(m, a)))
		return false;
	*found = a;
	p->alloc = a;
	p->offset = addr - a->at;
	p->p = a->p + p->offset;
	if (a->of) {
		p->alloc = a->of;
		p->offset += (uint64_t)(a->p - a->of->p);
	}
	return true;
}

bool emu_locate(emu_cluster *c, emu_cta *cta, unsigned space, uint64_t addr, uint32_t size, emu_place *p)
{
	emu_alloc *found;

	*p = (emu_place){ .space = (uint8_t)(space == SPACE_GENERIC ? space_of_generic(&addr) : space) };
	switch (p->space) {
	case SPACE_GLOBAL:
	case SPACE_CONST:
		if (!locate_global(c->grid->machine, NULL, false, addr, size, p, &found))
			return false;
		emu_see(c, p);
		return true;
	case SPACE_SHARED:
	case SPACE_CLUSTER: return locate_shared(c, cta, addr, size, p);
	case SPACE_PARAM:
		p->p = (unsigned char *)(uintptr_t)c->grid->params + addr;
		p->offset = addr;
		return addr <= c->grid->param_bytes && size <= c->grid->param_bytes - addr;
	default: return false;
	}
}

static bool locate_param(const emu_warp *w, unsigned lane, uint64_t addr, uint32_t size, emu_place *p)
{
	const emu_frame *f = w->g->frame;
	const emu_function *fn = f->f;

	p->offset = addr;
	if (addr < fn->formals) {
		p->p = (unsigned char *)(uintptr_t)w->grid->params + addr;
		return size <= fn->formals - addr;
	}
	if (addr > fn->param_bytes || size > fn->param_bytes - addr)
		return false;
	p->p = emu_param_of(f, lane) + addr;
	p->defined = emu_param_defined(f, lane);
	return true;
}

static bool in_frame(const emu_warp *w, unsigned lane, uint64_t addr, uint32_t size)
{
	const emu_frame *f = emu_frame_of(w, lane, addr);

	return emu_variable_holds(&f->f->local, addr - f->local[lane], size);
}

static bool locate(emu_warp *w, unsigned lane, uint64_t addr, uint32_t size, emu_place *p)
{
	emu_alloc *found;

	switch (p->space) {
	case SPACE_GLOBAL:
	case SPACE_CONST:
		if (!locate_global(w->grid->machine, w->last, w->everywhere, addr, size, p, &found))
			return false;
		w->last = w->everywhere ? w->last : found;
		emu_see(w->cluster, p);
		return true;
	case SPACE_SHARED:
	case SPACE_CLUSTER: return locate_shared(w->cluster, w->cta, addr, size, p);
	case SPACE_LOCAL:
		p->offset = addr;
		if (addr > w->sp[lane] || size > w->sp[lane] - addr || !in_frame(w, lane, addr, size))
			return false;
		p->p = w->local + (size_t)lane * w->local_cap + addr;
		p->defined = w->local_defined + (size_t)lane * (w->local_cap / 8);
		return true;
	default: return locate_param(w, lane, addr, size, p);
	}
}

/* What lies nearest, for who is off by one. */
static void out_of_bounds(emu_warp *w, const emu_op *op, unsigned lane, const emu_place *p, uint64_t addr, uint32_t size)
{
	const emu_machine *m = w->grid->machine;
	const emu_alloc *next, *a = emu_alloc_near(m, addr, &next);
	const emu_freed *freed = emu_freed_at(m, addr);
	const emu_alloc *within = emu_alloc_find(m, addr);
	uint64_t rank = addr >> SHARED_RANK;
	bool shared = p->space == SPACE_SHARED || p->space == SPACE_CLUSTER;
	char near[EMU_NEAR], shown[NAME_SHOWN + 1];

	if (next && next->at - addr < EMU_ALLOC_GAP / 2 && (!a || addr - a->at >= a->size))
		a = next;
	if (shared && rank >= w->cluster->ncta)
		emu_find(w, op, (int)lane, CPTX_FIND_BOUNDS,
		         "%u bytes at shared address 0x%llx (CTA %llu of the cluster), but the cluster has %u CTA%s", size,
		         (unsigned long long)addr, (unsigned long long)rank, w->cluster->ncta, w->cluster->ncta == 1 ? "" : "s");
	else if (shared)
		emu_find(w, op, (int)lane, CPTX_FIND_BOUNDS, "%u bytes at shared address 0x%llx (CTA %u of the cluster), %s", size,
		         (unsigned long long)addr, (unsigned)rank,
		         p->space == SPACE_SHARED && rank != w->cta->rank
		             ? "which is another's: its state space must be .shared::cluster"
		             : emu_near_shared(&w->cluster->cta[rank], addr, size, near));
	else if (p->space == SPACE_LOCAL)
		emu_find(w, op, (int)lane, CPTX_FIND_BOUNDS, "%u bytes at local address 0x%llx, %s", size, (unsigned long long)addr,
		         emu_near_local(w, lane, addr, size, near));
	else if (p->space == SPACE_PARAM)
		emu_find(w, op, (int)lane, CPTX_FIND_BOUNDS, "%u bytes at parameter address 0x%llx, where there is nothing", size,
		         (unsigned long long)addr);
	else if (within && !reaches(m, within))
		emu_find(w, op, (int)lane, CPTX_FIND_BOUNDS,
		         within->nmember
		             ? "%u bytes at address 0x%llx, in a multicast object, which only multimem instructions may use"
		             : "%u bytes at address 0x%llx, in memory of another device, which device %u has no access to: "
		               "cuCtxEnablePeerAccess or cuMemSetAccess gives it",
		         size, (unsigned long long)addr, m->number);
	else if (freed)
		emu_find(w, op, (int)lane, CPTX_FIND_USE_AFTER_FREE,
		         "%u bytes at address 0x%llx, %llu bytes behind the start of an allocation of %llu bytes that was freed",
		         size, (unsigned long long)addr, (unsigned long long)(addr - freed->at), (unsigned long long)freed->size);
	else if (a)
		emu_find(w, op, (int)lane, CPTX_FIND_BOUNDS, "%u bytes at address 0x%llx, %llu bytes %s of %s%s of %llu bytes", size,
		         (unsigned long long)addr, (unsigned long long)(a == next ? a->at - addr : addr - a->at),
		         a == next ? "in front" : "behind the start", a->name ? "variable " : "an allocation",
		         a->name ? name_shown(a->name, shown) : "", (unsigned long long)a->size);
	else
		emu_find(w, op, (int)lane, CPTX_FIND_BOUNDS, "%u bytes at address 0x%llx, where nothing is allocated", size,
		         (unsigned long long)addr);
}

bool emu_resolve_any(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, uint32_t size,
                     uint32_t align, emu_place *p)
{
	*p = (emu_place){ .space = (uint8_t)(space == SPACE_GENERIC ? space_of_generic(&addr) : space) };
	if (addr & (align - 1)) {
		emu_find(w, op, (int)lane, CPTX_FIND_MISALIGNED, "address 0x%llx must be a multiple of %u", (unsigned long long)addr,
		         align);
		return false;
	}
	if (locate(w, lane, addr, size, p)) {
		w->at[lane] = p->space == SPACE_SHARED || p->space == SPACE_CLUSTER ? addr
		              : p->space == SPACE_GLOBAL                            ? p->alloc->at + p->offset
		                                                                    : 0;
		w->at_space[lane] = p->space;
		return true;
	}
	out_of_bounds(w, op, lane, p, addr, size);
	return false;
}

bool emu_has_ended(const emu_cta *cta)
{
	for (uint32_t i = 0; i < cta->nwarp; i++)
		if (emu_live(&cta->warp[i]))
			return false;
	return true;
}

bool emu_resolve(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, uint32_t size, uint32_t align,
                 emu_place *p)
{
	if (!emu_resolve_any(w, op, lane, space, addr, size, align, p))
		return false;
	if (p->cta && p->cta != w->cta)
		emu_touched(w->cluster, w->grid,
		            (emu_touch){ .object = emu_object(w->cluster, p->cta->rank, OBJECT_LIFE, 0), .kind = TOUCH_READ });
	if (!p->cta || p->cta == w->cta || !emu_has_ended(p->cta))
		return true;
	emu_find(
		w, op, (int)lane, CPTX_FIND_BOUNDS,
		"%u bytes at offset %llu of the shared memory of CTA %u of the cluster, which has ended; barrier.cluster must keep "
		"it until all others are done with it",
		size, (unsigned long long)p->offset, p->cta->rank);
	return false;
}

/* ---- access ---- */

/* Of a size that is mostly 4 or 8: no calls of the C library for those. */
static inline bool same_bytes(const void *a, const void *b, uint32_t size)
{
	return size == 4 ? !memcmp(a, b, 4) : size == 8 ? !memcmp(a, b, 8) : !memcmp(a, b, size);
}
static inline void copy_bytes(void *to, const void *from, uint32_t size)
{
	if (size == 4)
		memcpy(to, from, 4);
	else if (size == 8)
		memcpy(to, from, 8);
	else
		memcpy(to, from, size);
}

bool emu_read(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, void *to, uint32_t size,
              unsigned access)
{
	emu_place p;

	if (!emu_resolve(w, op, lane, space, addr, size, size, &p))
		return false;
	if (p.space < SPACE_LOCAL)
		race_access(w, op, lane, &p, size, ACCESS_READ | access);
	if (emu_all_undefined(&p, size) && !w->grid->machine->opt.no_undefined)
		emu_find(w, op, (int)lane, CPTX_FIND_UNDEFINED, "it reads %u bytes that nobody has written", size);
	memcpy(to, p.p, size);
	return true;
}

/* A weak store that changes nothing is no race. */
static bool is_there(const emu_place *p, const void *bytes, uint32_t size)
{
	uint64_t i, end;
	const uint8_t *bits = defined_bits(p, &i);

	if (!same_bytes(p->p, bytes, size))
		return false;
	for (end = i + size; bits && i < end;) {
		unsigned first = i % 8, n = (unsigned)MIN(end - i, UINT64_C(8) - first), mask = ((1u << n) - 1) << first;
		if ((bits[i / 8] & mask) != mask)
			return false;
		i += n;
	}
	return true;
}

bool emu_write(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, const void *from, uint32_t size,
               unsigned access)
{
	emu_place p;

	if (!emu_resolve(w, op, lane, space, addr, size, size, &p))
		return false;
	if (p.space == SPACE_CONST || (p.alloc && p.alloc->is_const)) {
		emu_find(w, op, (int)lane, CPTX_FIND_BOUNDS, "a write to constant memory");
		return false;
	}
	emu_writable(w->cluster, &p, size);
	bool silent = p.space < SPACE_LOCAL && !(access & (ACCESS_STRONG | ACCESS_ATOMIC)) && is_there(&p, from, size);
	copy_bytes(p.p, from, size);
	if (p.space < SPACE_LOCAL)
		race_access(w, op, lane, &p, size, ACCESS_WRITE | ACCESS_VALUE | (silent ? ACCESS_SILENT : 0) | access);
	emu_set_defined(&p, size, true);
	return true;
}
