/* SPDX-License-Identifier: MIT */
/* multimem: an address of a multicast object stands for memory of each of its devices.  Any other stands for itself. */
#include "emu/core/counters.h"
#include "emu/core/finding.h"
#include "emu/exec/atomic.h"
#include "emu/exec/multimem.h"
#include "emu/memory/memory.h"
#include "emu/num/num.h"

enum { MOST_ELEMENTS = 8 /* of a vector */ };

/* ---- members ---- */

/* What the address stands for: an allocation with members, or NULL for itself. */
static const emu_alloc *object_at(const emu_warp *w, uint64_t addr)
{
	const emu_alloc *a = emu_alloc_find(w->grid->machine, addr);

	return a && a->nmember ? a : NULL;
}

static uint32_t members_of(const emu_alloc *object) { return object ? object->nmember : 1; }

/* One of the accesses to the member; whose device it is does not matter. */
static bool access_member(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr, const emu_alloc *object,
                          uint32_t member, bool (*lane_access)(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr))
{
	w->everywhere = object != NULL;
	bool ok = lane_access(w, op, lane, object ? object->member[member] + (addr - object->at) : addr);
	w->everywhere = false;
	return ok;
}

/* ---- sums ---- */

/* Bits of a number within a register of a floating-point type of up to 16 bits, and its scalar type; 0: it is no such. */
static unsigned small_float(unsigned type, unsigned *scalar)
{
	*scalar = type;
	switch (type) {
	case CPTX_F16X2: *scalar = CPTX_F16; return 16;
	case CPTX_BF16X2: *scalar = CPTX_BF16; return 16;
	case CPTX_E4M3X2:
	case CPTX_E4M3X4: *scalar = CPTX_E4M3; return 8;
	case CPTX_E5M2X2:
	case CPTX_E5M2X4: *scalar = CPTX_E5M2; return 8;
	case CPTX_F16:
	case CPTX_BF16: return 16;
	case CPTX_E4M3:
	case CPTX_E5M2: return 8;
	default: return 0;
	}
}

/* The numbers of all members, of one element of the vector. */
typedef struct sum {
	uint64_t v;
	float part[4]; /* of narrow numbers, in their order within the element */
} sum;

static float combine(unsigned op, float a, float b)
{
	return op == CPTX_ADD ? a + b : op == CPTX_MIN ? fminf(a, b) : fmaxf(a, b);
}

/* Narrow numbers are added in f32, and rounded once behind the last (.acc::f32), or behind each. */
static void add_member(sum *s, const emu_op *op, uint64_t v, bool first)
{
	const struct num_mode mode = { .satfinite = false };
	unsigned scalar, bits = small_float(op->m.type, &scalar), each = (unsigned)op->imm[0] * 8;

	if (!bits) {
		s->v = first ? v : emu_atomic(op->m.op, op->m.type, s->v, v, false);
		return;
	}
	for (unsigned i = 0; i < each / bits; i++) {
		float x = num_to_f32(scalar, v >> i * bits & ((1u << bits) - 1));
		x = first ? x : combine(op->m.op, s->part[i], x);
		s->part[i] = op->m.acc == CPTX_ACC_F32 || bits == 8 ? x : num_to_f32(scalar, num_from_f32(scalar, x, &mode));
	}
}

static uint64_t total(const sum *s, const emu_op *op)
{
	const struct num_mode mode = { .satfinite = false };
	unsigned scalar, bits = small_float(op->m.type, &scalar), each = (unsigned)op->imm[0] * 8;
	uint64_t v = 0;

	for (unsigned i = 0; bits && i < each / bits; i++)
		v |= num_from_f32(scalar, s->part[i], &mode) << i * bits;
	return bits ? v : s->v;
}

static bool reduce_lane(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr)
{
	const emu_alloc *object = object_at(w, addr);
	const emu_arg *d = &op->arg[0];
	const unsigned n = d->kind == ARG_VEC ? d->count : 1;
	sum sums[MOST_ELEMENTS] = { { 0 } };

	for (uint32_t k = 0; k < members_of(object); k++) {
		if (!access_member(w, op, lane, addr, object, k, emu_load_lane))
			return false;
		for (unsigned i = 0; object && i < n; i++) {
			uint32_t slot = d->kind == ARG_VEC ? d->slots[i] : d->slot;
			if (!slot)
				continue;
			emu_need(w, op, slot, UINT32_C(1) << lane, "what it combines");
			add_member(&sums[i], op, d->bits >= 64 ? emu_r64(w, slot)[lane] : emu_r32(w, slot)[lane], !k);
		}
	}
	for (unsigned i = 0; object && i < n; i++) {
		uint32_t slot = d->kind == ARG_VEC ? d->slots[i] : d->slot;
		if (slot)
			emu_put(w, slot, d->bits, lane, total(&sums[i], op));
	}
	return true;
}

/* ---- instructions ---- */

/* One lane's access to every member of the object that the address lies in, or to the memory there. */
static bool access_all(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr,
                       bool (*lane_access)(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr))
{
	const emu_alloc *object = object_at(w, addr);

	for (uint32_t k = 0; k < members_of(object); k++)
		if (!access_member(w, op, lane, addr, object, k, lane_access))
			return false;
	return true;
}

static bool store_lane(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr)
{
	return access_all(w, op, lane, addr, emu_store_lane);
}

static bool red_lane(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr)
{
	return access_all(w, op, lane, addr, emu_atom_lane);
}

/* bytes: of a lane; access: how they count. */
static enum emu_step each_lane(emu_warp *w, const emu_op *op, uint32_t mask, uint64_t bytes, unsigned access,
                               bool (*lane_access)(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr))
{
	const emu_arg *a = &op->arg[1];

	if (a->base && !emu_need(w, op, a->slot, mask, "the address"))
		return STEP_FAULT;
	EACH_LANE(l, mask)
		if (op->imm[2] & ACCESS_STRONG && emu_orders_clusters(w, a, emu_address(w, a, l)))
			return STEP_TURN;
	EACH_LANE(l, mask)
		if (!lane_access(w, op, l, emu_address(w, a, l)))
			return STEP_FAULT;
	emu_traffic_count(w, op, mask, (uint32_t)bytes, access);
	return STEP_NEXT;
}

static enum emu_step ld_reduce(emu_warp *w, const emu_op *op, uint32_t mask)
{
	return each_lane(w, op, mask, emu_lane_bytes(op, &op->arg[0]), ACCESS_READ, reduce_lane);
}
static enum emu_step st(emu_warp *w, const emu_op *op, uint32_t mask)
{
	return each_lane(w, op, mask, emu_lane_bytes(op, &op->arg[2]), ACCESS_WRITE, store_lane);
}
static enum emu_step red(emu_warp *w, const emu_op *op, uint32_t mask)
{
	return each_lane(w, op, mask, op->imm[0] * op->imm[1], ACCESS_READ | ACCESS_WRITE, red_lane);
}

bool decode_multimem_ld_reduce(emu_decoder *d, emu_op *op)
{
	bool ok = decode_ld(d, op);

	op->fn = ld_reduce;
	return ok;
}

bool decode_multimem_st(emu_decoder *d, emu_op *op)
{
	bool ok = decode_st(d, op);

	op->fn = st;
	return ok;
}

bool decode_multimem_red(emu_decoder *d, emu_op *op)
{
	bool ok = decode_atom(d, op);

	op->imm[2] |= ACCESS_STRONG; /* reductions are relaxed at least */
	op->fn = red;
	return ok;
}
