/* SPDX-License-Identifier: MIT */
/* Stores and reductions of threads that are done later: st.async, red.async; st.bulk. */
#include "emu/async/mbarrier.h"
#include "emu/core/explore.h"
#include "emu/core/finding.h"
#include "emu/exec/atomic.h"
#include "emu/exec/exec.h"
#include "emu/memory/memory.h"

#include <stdlib.h>

/* ---- into shared memory of the cluster, counted by an mbarrier there ---- */

enum { ARG_A = 1, ARG_B, ARG_MBAR, MOST = 32 /* bytes of a lane */ };
/* imm[0]: bytes of an element; imm[1]: how many */

typedef struct late_store {
	emu_async a;
	uint32_t mask; /* lanes that are not done */
	struct {
		emu_cta *cta;
		uint32_t at, mbar; /* offsets there */
		uint32_t late;     /* number in race.h */
		unsigned char value[MOST];
	} lane[WARP];
} late_store;

static void do_lane(const emu_op *op, const unsigned char *value, emu_place p)
{
	uint32_t each = (uint32_t)op->imm[0], size = each * (uint32_t)op->imm[1];
	uint64_t old = 0, b = 0;

	if (op->opcode == CPTX_OP_RED_ASYNC) {
		memcpy(&old, p.p, each);
		memcpy(&b, value, each);
		old = emu_atomic(op->m.op, op->m.type, old, b, false);
		memcpy(p.p, &old, each);
		if (emu_all_undefined(&p, each))
			return;
	} else {
		memcpy(p.p, value, size);
	}
	emu_set_defined(&p, size, true);
}

/* One lane at a time. */
static bool run_store(emu_cluster *c, emu_async *a)
{
	late_store *x = (late_store *)a;
	unsigned skip = emu_random(c, (uint32_t)__builtin_popcount(x->mask)), lane = 0;
	uint32_t size = (uint32_t)(a->op->imm[0] * a->op->imm[1]);

	EACH_LANE(l, x->mask) {
		lane = l;
		if (!skip--)
			break;
	}
	emu_cta *cta = x->lane[lane].cta;
	emu_place p = { .p = cta->shared + x->lane[lane].at, .space = SPACE_CLUSTER, .cta = cta, .offset = x->lane[lane].at };
	do_lane(a->op, x->lane[lane].value, p);
	if (c->grid->explorer && a->op->opcode == CPTX_OP_RED_ASYNC)
		emu_touch_memory(a->w, a->op, &p, size, ACCESS_READ | ACCESS_WRITE | ACCESS_ATOMIC);
	mbarrier_by by = mbarrier_by_async(a, x->lane[lane].late);
	by.lane = lane;
	x->mask &= ~(UINT32_C(1) << lane);
	return !mbarrier_complete_tx(cta, x->lane[lane].mbar, size, by) || !x->mask;
}

static void gather(const emu_warp *w, const emu_op *op, unsigned lane, unsigned char *to)
{
	const emu_arg *b = &op->arg[ARG_B];
	size_t each = (size_t)op->imm[0];

	for (unsigned i = 0; i < op->imm[1]; i++) {
		uint32_t slot = b->kind == ARG_VEC ? b->slots[i] : b->slot;
		uint64_t v[2] = { b->bits >= 64 ? emu_r64(w, slot)[lane] : emu_r32(w, slot)[lane], 0 };
		if (each == 16)
			v[1] = emu_r64(w, slot)[lane + WARP];
		memcpy(to + i * each, v, each);
	}
}

static bool issue_lane(emu_warp *w, const emu_op *op, unsigned lane, late_store *x)
{
	const emu_arg *a = &op->arg[ARG_A], *mbar = &op->arg[ARG_MBAR];
	uint32_t size = (uint32_t)(op->imm[0] * op->imm[1]);
	emu_cta *cta;
	emu_place p;

	if (!emu_resolve(w, op, lane, a->space, emu_address(w, a, lane), size, size, &p))
		return false;
	const emu_mbarrier *b = mbarrier_at(w, op, lane, mbar->space, emu_address(w, mbar, lane), &cta);
	if (!b)
		return false;
	if (cta != p.cta) {
		emu_find(w, op, (int)lane, CPTX_FIND_MBARRIER,
		         "the mbarrier is in CTA %u of the cluster, but what is stored to is not; they must be in one", cta->rank);
		return false;
	}
	x->lane[lane].cta = cta;
	x->lane[lane].at = (uint32_t)p.offset;
	x->lane[lane].mbar = b->offset;
	x->lane[lane].late = race_async_begin(w, op, lane);
	race_async_touch(w, x->lane[lane].late, &p, size,
	                 op->opcode == CPTX_OP_RED_ASYNC ? ACCESS_READ | ACCESS_WRITE | ACCESS_ATOMIC : ACCESS_WRITE);
	gather(w, op, lane, x->lane[lane].value);
	return true;
}

static enum emu_step store_later(emu_warp *w, const emu_op *op, uint32_t mask)
{
	late_store *x = NEW(late_store);

	if (!x)
		return emu_find(w, op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for asynchronous work");
	for (unsigned i = ARG_A; i <= ARG_MBAR; i += ARG_MBAR - ARG_A)
		if (op->arg[i].base)
			emu_need(w, op, op->arg[i].slot, mask, "the address");
	x->mask = mask;
	x->a = (emu_async){ .run = run_store, .w = w, .lane = (unsigned)__builtin_ctz(mask), .op = op };
	EACH_LANE(l, mask)
		if (!issue_lane(w, op, l, x)) {
			free(x);
			return STEP_FAULT;
		}
	return emu_async_start(w->cluster, &x->a) ? STEP_NEXT : STEP_FAULT;
}

bool decode_st_async(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[0] = arch_types[op->m.type].bits / 8;
	op->imm[1] = op->arg[ARG_B].kind == ARG_VEC ? op->arg[ARG_B].count : 1;
	op->fn = store_later;
	return true;
}

/* ---- into global memory, released: done at once, which is one of the times that they may take ---- */

bool decode_st_async_release(emu_decoder *d, emu_op *op)
{
	op->m.sem = CPTX_RELEASE;
	return decode_st(d, op);
}

bool decode_red_async_release(emu_decoder *d, emu_op *op)
{
	op->m.sem = CPTX_RELEASE;
	return decode_atom(d, op);
}

/* ---- st.bulk ---- */

enum { BULK_MOST = 16777216 };

static bool bulk_lane(emu_warp *w, const emu_op *op, unsigned lane)
{
	const emu_arg *a = &op->arg[ARG_A];
	uint64_t size = emu_get(w, &op->arg[ARG_B], lane);
	emu_place p;

	if (size % 8 || size > BULK_MOST) {
		emu_find(w, op, (int)lane, CPTX_FIND_OPERAND, "%llu bytes; it must be a multiple of 8, up to %d",
		         (unsigned long long)size, BULK_MOST);
		return false;
	}
	if (!size)
		return true;
	if (!emu_resolve(w, op, lane, a->space, emu_address(w, a, lane), (uint32_t)size, 8, &p))
		return false;
	if (p.cta != w->cta) {
		emu_find(w, op, (int)lane, CPTX_FIND_OPERAND, "the address is not in shared memory of the thread's own CTA");
		return false;
	}
	race_access(w, op, lane, &p, (uint32_t)size, ACCESS_WRITE);
	memset(p.p, 0, size);
	emu_spend(w->cluster, size);
	emu_set_defined(&p, (uint32_t)size, true);
	return true;
}

static enum emu_step store_bulk(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_need(w, op, op->arg[ARG_A].slot, mask, "the address");
	emu_need(w, op, op->arg[ARG_B].slot, mask, "the size");
	EACH_LANE(l, mask)
		if (!bulk_lane(w, op, l))
			return STEP_FAULT;
	return STEP_NEXT;
}

bool decode_st_bulk(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->fn = store_bulk;
	return true;
}
