/* SPDX-License-Identifier: MIT */
/* What a race is called: both sides, with instruction, line and thread, and the place in memory. */
#include "emu/core/cluster.h"
#include "emu/core/finding.h"
#include "emu/core/grid.h"
#include "emu/race/cell.h"

void race_put_place(buf *b, const emu_grid *g, const emu_place *p, uint64_t offset)
{
	const emu_alloc *a = p->alloc;
	char shown[NAME_SHOWN + 1];

	if (a) {
		buf_printf(b, "global memory, %llu bytes behind the start of %s%s (address 0x%llx)", (unsigned long long)offset,
		           a->name ? "variable " : "an allocation", a->name ? name_shown(a->name, shown) : "",
		           (unsigned long long)(a->at + offset));
		return;
	}
	buf_str(b, "shared memory");
	if (p->cta && p->cta->cluster->ncta > 1)
		buf_printf(b, " of CTA %u of the cluster", p->cta->rank);
	const emu_named_place *v = emu_variable_at(&g->image->shared, offset);
	if (v)
		buf_printf(b, ", %llu bytes behind the start of %s", (unsigned long long)(offset - v->at),
		           name_shown(v->name, shown));
	else if (g->dyn_smem && offset >= g->image->dyn_at)
		buf_printf(b, ", %llu bytes behind the start of dynamic shared memory",
		           (unsigned long long)(offset - g->image->dyn_at));
	buf_printf(b, " (address 0x%llx)", (unsigned long long)offset + SHARED_FIRST);
}

/* "thread (1, 0, 0) of block (0, 0, 0)" */
static void put_thread(buf *b, const emu_cluster *c, uint32_t agent, unsigned lane)
{
	const emu_cta *cta = &c->cta[agent / c->cta[0].nwarp];
	const emu_warp *w = &cta->warp[agent % c->cta[0].nwarp];
	uint32_t t[3];

	if (lane < WARP) {
		emu_thread_of(w, lane, t);
		buf_printf(b, "thread (%u, %u, %u)", t[0], t[1], t[2]);
	} else {
		buf_printf(b, "warp %u", w->number);
	}
	buf_printf(b, " of block (%u, %u, %u)", cta->id[0], cta->id[1], cta->id[2]);
}

static const char *verb(unsigned access)
{
	return access & ACCESS_ATOMIC ? "updates" : access & ACCESS_WRITE ? "writes" : "reads";
}

static enum cptx_finding_code code_of(const touch *t, const cell *x, bool unfenced)
{
	return unfenced ? CPTX_FIND_PROXY : (x->bits & CELL_LATE || t->late) ? CPTX_FIND_ASYNC_WAIT : CPTX_FIND_RACE;
}

static void put_other(buf *b, const touch *t, const cell *x, bool writes)
{
	const emu_cluster *c = t->w->cluster;
	const emu_grid *g = t->w->grid;
	const late_op *late = x->bits & CELL_LATE ? race_late(c, x->epoch) : NULL;

	buf_printf(b, ", which %s ", writes ? "was written by" : "was read by");
	emu_put_op(b, g, g->image->ops[x->op]);
	buf_str(b, " of ");
	put_thread(b, c, late ? late->warp : x->agent, late ? late->lane : x->lane);
}

/* x: the access that t's collides with; advice: what would order the two. */
static void tell(const touch *t, const cell *x, bool writes, uint32_t byte, enum cptx_finding_code code, const char *advice)
{
	buf b;

	if (emu_found_before(t->w, t->op, code))
		return;
	buf_init(&b, NULL);
	buf_printf(&b, "it %s %u bytes of ", verb(t->access), t->size);
	race_put_place(&b, t->w->grid, t->place, t->place->offset);
	if (byte)
		buf_printf(&b, ", byte %u of them", byte);
	put_other(&b, t, x, writes);
	buf_str(&b, advice);
	buf_put(&b, "", 1);
	emu_find(t->w, t->op, (int)t->lane, code, "%s", b.failed ? "a race" : b.p);
	buf_free(&b);
}

void race_found_early(const touch *t, const cell *x, uint32_t byte)
{
	tell(t, x, false, byte, CPTX_FIND_PROXY,
	     "; mbarrier.arrive, which gave that back, does not wait for the registers of ldmatrix and ld.shared: an "
	     "instruction that takes one of them, or fence.proxy.async, must stand in front of it");
}

void race_found(const touch *t, const cell *x, bool writes, uint32_t byte, bool unfenced)
{
	const enum cptx_finding_code code = code_of(t, x, unfenced);

	tell(
		t, x, writes, byte, code,
		code == CPTX_FIND_PROXY && t->access & ACCESS_TENSORMAP
			? "; it is read as a tensor map: fence.proxy.tensormap::generic.release must stand behind that, and .acquire in "
			  "front of this"
		: code == CPTX_FIND_PROXY ? "; fence.proxy.async must stand behind that, before a barrier or this instruction makes "
									"it visible to the async proxy"
		: code == CPTX_FIND_ASYNC_WAIT
			? "; the asynchronous operation must have been waited for (its mbarrier or group), by this thread or before a "
			  "barrier"
			: "; nothing orders the two: a barrier, or a release and an acquire, must stand between");
}
