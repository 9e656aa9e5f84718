/* SPDX-License-Identifier: MIT */
/* Atomic operations of threads on memory; fences. */
#include "emu/async/mbarrier.h"
#include "emu/core/counters.h"
#include "emu/core/finding.h"
#include "emu/exec/atomic.h"
#include "emu/exec/multimem.h"
#include "emu/memory/memory.h"
#include "emu/num/num.h"

/* ---- one element ---- */

static uint64_t inc(uint32_t old, uint32_t b) { return old >= b ? 0 : old + 1; }
static uint64_t dec(uint32_t old, uint32_t b) { return !old || old > b ? b : old - 1; }

uint64_t emu_atomic(unsigned op, unsigned type, uint64_t old, uint64_t b, bool ftz)
{
	struct num_mode m = { .ftz = ftz };

	switch (op) {
	case CPTX_ADD: return num_add(type, old, b, &m);
	case CPTX_MIN: return num_min(type, old, b, &m);
	case CPTX_MAX: return num_max(type, old, b, &m);
	case CPTX_AND: return old & b;
	case CPTX_OR: return old | b;
	case CPTX_XOR: return old ^ b;
	case CPTX_INC: return inc((uint32_t)old, (uint32_t)b);
	case CPTX_DEC: return dec((uint32_t)old, (uint32_t)b);
	default: return b; /* .exch */
	}
}

/* ---- atom, red ---- */

enum { ARG_A = 1, ARG_B, ARG_C };
/* imm[0]: bytes of an element; imm[1]: how many; imm[2]: order */

static void take(const emu_warp *w, const emu_arg *a, unsigned i, unsigned lane, uint64_t v[2])
{
	uint32_t slot = emu_slot_of(a, i);

	v[0] = a->bits >= 64 ? emu_r64(w, slot)[lane] : emu_r32(w, slot)[lane];
	v[1] = a->bits == 128 ? emu_r64(w, slot)[lane + WARP] : 0;
}

static void give(const emu_warp *w, const emu_arg *d, unsigned i, unsigned lane, const uint64_t v[2], bool defined)
{
	uint32_t slot = d->kind == ARG_VEC || d->kind == ARG_REG ? emu_slot_of(d, i) : NO_SLOT;

	if (!slot)
		return;
	emu_put(w, slot, d->bits == 128 ? 64 : d->bits, lane, v[0]);
	if (d->bits == 128)
		emu_r64(w, slot)[lane + WARP] = v[1];
	emu_define(w, slot, UINT32_C(1) << lane, defined ? ALL_LANES : 0);
}

/* The new value of the i-th element; false: it stays. */
static bool changed(const emu_warp *w, const emu_op *op, unsigned i, unsigned lane, const emu_place *p,
                    const uint64_t old[2], uint64_t v[2])
{
	take(w, &op->arg[ARG_B], i, lane, v);
	if (op->opcode == CPTX_OP_ATOM_CAS) {
		uint64_t mask = op->imm[0] < 8 ? (UINT64_C(1) << op->imm[0] * 8) - 1 : ~UINT64_C(0);
		bool same = !((v[0] ^ old[0]) & mask) && v[1] == old[1];
		take(w, &op->arg[ARG_C], i, lane, v);
		return same;
	}
	if (op->imm[0] < 16) /* sums of f32 in global memory flush subnormals, those in shared memory do not */
		v[0] = emu_atomic(op->m.op, op->m.type, old[0], v[0], op->m.type == CPTX_F32 && p->space == SPACE_GLOBAL);
	return true;
}

static void element(emu_warp *w, const emu_op *op, unsigned i, unsigned lane, emu_place p)
{
	uint32_t each = (uint32_t)op->imm[0];
	uint64_t old[2] = { 0 }, v[2];

	p.p += i * each;
	p.offset += i * each;
	memcpy(old, p.p, each);
	bool known = !emu_all_undefined(&p, each), whole = op->opcode == CPTX_OP_ATOM_CAS || op->m.op == CPTX_EXCH;
	if (changed(w, op, i, lane, &p, old, v)) {
		w->cluster->changes += memcmp(p.p, v, each) != 0;
		memcpy(p.p, v, each);
	}
	if (known || whole) /* a sum of what is undefined is so too */
		emu_set_defined(&p, each, true);
	give(w, &op->arg[0], i, lane, old, known);
}

bool emu_atom_lane(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr)
{
	uint32_t size = (uint32_t)(op->imm[0] * op->imm[1]);
	emu_place p;

	if (!emu_resolve(w, op, lane, op->arg[ARG_A].space, addr, size, size, &p))
		return false;
	if (p.space == SPACE_LOCAL || p.space == SPACE_PARAM || p.space == SPACE_CONST || (p.alloc && p.alloc->is_const)) {
		emu_find(w, op, (int)lane, CPTX_FIND_OPERAND,
		         "atomic operations are for global and shared memory; 0x%llx is elsewhere", (unsigned long long)addr);
		return false;
	}
	emu_writable(w->cluster, &p, size);
	race_access(w, op, lane, &p, size, ACCESS_READ | ACCESS_WRITE | ACCESS_ATOMIC | ACCESS_STRONG | (unsigned)op->imm[2]);
	for (unsigned i = 0; i < op->imm[1]; i++)
		element(w, op, i, lane, p);
	return true;
}

static void need_operands(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *a = &op->arg[ARG_A], *b = &op->arg[ARG_B];

	emu_need_arg(w, op, a, mask, "the address");
	for (unsigned i = 0; a->space == SPACE_GLOBAL && i < op->imm[1]; i++)
		emu_need(w, op, emu_slot_of(b, i), mask, "what memory is combined with");
}

static enum emu_step atom(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *a = &op->arg[ARG_A];
	bool wide = op->m.scope != CPTX_CTA && op->m.scope != CPTX_CLUSTER;

	EACH_LANE(l, mask)
		if (wide && emu_orders_clusters(w, a, emu_address(w, a, l)))
			return STEP_TURN;
	need_operands(w, op, mask);
	EACH_LANE(l, mask)
		if (!emu_atom_lane(w, op, l, emu_address(w, a, l)))
			return STEP_FAULT;
	emu_traffic_count(w, op, mask, (uint32_t)(op->imm[0] * op->imm[1]), ACCESS_READ | ACCESS_WRITE);
	return STEP_NEXT;
}

bool decode_atom(emu_decoder *d, emu_op *op)
{
	const emu_arg *b = &op->arg[ARG_B];

	(void)d;
	op->imm[0] = arch_types[op->m.type].bits / 8;
	op->imm[1] = b->kind == ARG_VEC ? b->count : 1;
	if (!op->m.sem)
		op->m.sem = CPTX_RELAXED;
	op->imm[2] = emu_order_of(op);
	op->flags = OP_QUIET | OP_EVENT;
	op->fn = atom;
	return true;
}

/* ---- fences ---- */

enum {
	WIDE = 1 /* imm[0]: beyond the cluster */,
	ORDER = ACCESS_ACQUIRE | ACCESS_RELEASE /* of what the thread accesses */,
	PROXY = 4 /* async */,
	INIT = 8 /* of mbarriers */
};

static enum emu_step fence(emu_warp *w, const emu_op *op, uint32_t mask)
{
	if (op->imm[0] & WIDE && emu_wants_turn(w))
		return STEP_TURN;
	if (op->imm[0] & ORDER)
		clock_fence_by(w, mask, (unsigned)(op->imm[0] & ORDER), op->imm[0] & WIDE);
	if (op->imm[0] & PROXY)
		clock_fence_proxy_by(w, mask);
	if (op->imm[0] & INIT)
		mbarrier_fence_init(w, mask);
	return STEP_NEXT;
}

/* Aliases are one here: only what the async proxy sees is apart. */
bool decode_fence(emu_decoder *d, emu_op *op)
{
	(void)d;
	unsigned scope = op->opcode == CPTX_OP_MEMBAR ? op->m.level : op->m.scope;
	bool wide = scope && scope != CPTX_CTA && scope != CPTX_CLUSTER;
	unsigned order = op->m.sem == CPTX_ACQUIRE ? ACCESS_ACQUIRE : op->m.sem == CPTX_RELEASE ? ACCESS_RELEASE : ORDER;

	op->fn = fence;
	op->flags = OP_QUIET;
	switch (op->opcode) {
	case CPTX_OP_FENCE_PROXY: op->imm[0] = op->m.proxy == CPTX_ASYNC ? PROXY : 0; break;
	case CPTX_OP_FENCE_PROXY_ASYNC_GENERIC: op->imm[0] = order | PROXY; break;
	case CPTX_OP_FENCE_MBARRIER_INIT: op->imm[0] = ORDER | INIT; break;
	default: op->imm[0] = order | (wide ? WIDE : 0); break;
	}
	return true;
}
