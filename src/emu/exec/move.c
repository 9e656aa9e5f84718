/* SPDX-License-Identifier: MIT */
/* Moves, loads and stores of threads, addresses. */
#include "emu/core/counters.h"
#include "emu/core/finding.h"
#include "emu/core/stall.h"
#include "emu/core/undefined.h"
#include "emu/exec/multimem.h"
#include "emu/exec/row.h"
#include "emu/memory/memory.h"

/* ---- mov ---- */

static enum emu_step mov32(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t *d = emu_reg32(w, op, 0);
	const uint32_t *a = emu_reg32(w, op, 1);

	LANES(l, mask, d[l] = a[l]);
	return STEP_NEXT;
}

static enum emu_step mov16(emu_warp *w, const emu_op *op, uint32_t mask)
{
	LANES(l, mask, emu_put(w, op->arg[0].slot, 16, l, emu_get(w, &op->arg[1], l)));
	return STEP_NEXT;
}

static enum emu_step mov64(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint64_t *d = emu_reg64(w, op, 0);
	const uint64_t *a = emu_reg64(w, op, 1);

	LANES(l, mask, d[l] = a[l]);
	return STEP_NEXT;
}

static enum emu_step mov_wide(emu_warp *w, const emu_op *op, uint32_t mask) /* registers of different widths: addresses */
{
	LANES(l, mask, emu_put(w, op->arg[0].slot, op->arg[0].bits, l, emu_get(w, &op->arg[1], l)));
	return STEP_NEXT;
}

static enum emu_step mov_pred(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_set_pred(w, op->arg[0].slot, mask, emu_pred(w, &op->arg[1]));
	return STEP_NEXT;
}

static enum emu_step mov128(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint64_t *d = emu_reg64(w, op, 0);
	const uint64_t *a = emu_reg64(w, op, 1);

	LANES(l, mask, d[l] = a[l]; d[l + WARP] = a[l + WARP]);
	return STEP_NEXT;
}

/* The elements of a vector or register, low bits first, as up to 16 bytes. */
static void gather(const emu_warp *w, const emu_arg *a, unsigned each, unsigned lane, uint64_t out[2])
{
	out[0] = out[1] = 0;
	if (a->kind != ARG_VEC) {
		out[0] = emu_get(w, a, lane);
		if (a->bits == 128)
			out[0] = emu_r64(w, a->slot)[lane], out[1] = emu_r64(w, a->slot)[lane + WARP];
		return;
	}
	for (unsigned i = 0; i < a->count; i++) {
		uint64_t v = !a->slots[i] ? 0 : each == 64 ? emu_r64(w, a->slots[i])[lane] : emu_r32(w, a->slots[i])[lane];
		if (each < 64)
			v &= (UINT64_C(1) << each) - 1;
		out[i * each / 64] |= v << i * each % 64;
	}
}

static void scatter(const emu_warp *w, const emu_arg *a, unsigned each, unsigned lane, const uint64_t in[2])
{
	if (a->kind != ARG_VEC) {
		emu_put(w, a->slot, a->bits == 128 ? 64 : a->bits, lane, in[0]);
		if (a->bits == 128)
			emu_r64(w, a->slot)[lane + WARP] = in[1];
		return;
	}
	for (unsigned i = 0; i < a->count; i++) {
		uint64_t v = in[i * each / 64] >> i * each % 64;
		if (a->slots[i])
			emu_put(w, a->slots[i], each == 64 ? 64 : 32, lane, each < 64 ? v & ((UINT64_C(1) << each) - 1) : v);
	}
}

/* Packs or unpacks: imm[0] bits to an element of the vector there is. */
static enum emu_step mov_vector(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *d = &op->arg[0], *a = &op->arg[1];
	uint64_t v[2];

	EACH_LANE(l, mask) {
		gather(w, a, (unsigned)op->imm[0], l, v);
		scatter(w, d, (unsigned)op->imm[0], l, v);
	}
	return STEP_NEXT;
}

static enum emu_step mov_elements(emu_warp *w, const emu_op *op, uint32_t mask) /* mov.v4 */
{
	const emu_arg *d = &op->arg[0], *a = &op->arg[1];

	for (unsigned i = 0; i < d->count; i++)
		if (d->slots[i])
			LANES(l, mask,
			      emu_put(w, d->slots[i], d->bits, l,
			              d->bits == 64 ? emu_r64(w, a->slots[i])[l] : emu_r32(w, a->slots[i])[l]));
	return STEP_NEXT;
}

static uint64_t clock_value(const emu_warp *w, int64_t sreg)
{
	uint64_t t = w->cluster->step;

	switch (sreg) {
	case CPTX_SREG_CLOCK_HI:
	case CPTX_SREG_GLOBALTIMER_HI: return t >> 32;
	default: return t;
	}
}

static enum emu_step mov_clock(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint64_t t = clock_value(w, op->imm[0]);

	emu_warp_changed(w);
	LANES(l, mask, emu_put(w, op->arg[0].slot, op->arg[0].bits, l, t));
	return STEP_NEXT;
}

static bool is_clock(const emu_op *op, int64_t *sreg)
{
	cptx_val v = ir_operand(op->f->k, op->item, 1);

	*sreg = v.id;
	return v.kind == CPTX_VAL_SREG &&
	       (v.id == CPTX_SREG_CLOCK || v.id == CPTX_SREG_CLOCK64 || v.id == CPTX_SREG_CLOCK_HI ||
	        v.id == CPTX_SREG_GLOBALTIMER || v.id == CPTX_SREG_GLOBALTIMER_LO || v.id == CPTX_SREG_GLOBALTIMER_HI);
}

bool decode_mov(emu_decoder *d, emu_op *op)
{
	const emu_arg *to = &op->arg[0], *from = &op->arg[1];
	unsigned bits = arch_types[op->m.type].bits;

	(void)d;
	op->flags = OP_PURE;
	if (is_clock(op, &op->imm[0]))
		op->fn = mov_clock;
	else if (to->kind == ARG_SINK)
		op->fn = exec_nothing;
	else if (op->m.vec)
		op->fn = mov_elements;
	else if (to->kind == ARG_VEC || from->kind == ARG_VEC) {
		op->imm[0] = bits / (to->kind == ARG_VEC ? to->count : from->count);
		op->fn = mov_vector;
	} else if (bits == 1)
		op->fn = mov_pred;
	else if (bits == 128)
		op->fn = mov128;
	else
		op->fn = to->bits != from->bits ? mov_wide : bits == 16 ? mov16 : bits == 32 ? mov32 : mov64;
	return true;
}

/* ---- what changes nothing here ---- */

enum emu_step exec_nothing(emu_warp *w, const emu_op *op, uint32_t mask)
{
	(void)w, (void)op, (void)mask;
	return STEP_NEXT;
}

bool decode_nothing(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->fn = exec_nothing;
	return true;
}

/* discard.L2: the bytes of memory are undefined then, as if undefined values had been written. */
static enum emu_step discard(emu_warp *w, const emu_op *op, uint32_t mask)
{
	enum { DISCARDED = 128 };
	const emu_arg *a = &op->arg[1];
	emu_place p;

	if (a->base && !emu_need(w, op, a->slot, mask, "the address"))
		return STEP_FAULT;
	EACH_LANE(l, mask) {
		if (!emu_resolve(w, op, l, a->space, emu_address(w, a, l), DISCARDED, DISCARDED, &p))
			return STEP_FAULT;
		emu_writable(w->cluster, &p, DISCARDED);
		race_access(w, op, l, &p, DISCARDED, ACCESS_WRITE);
		emu_set_defined(&p, DISCARDED, false);
	}
	return STEP_NEXT;
}

bool decode_discard(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->fn = discard;
	return true;
}

static enum emu_step policy(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint64_t *d = emu_reg64(w, op, 0);

	LANES(l, mask, d[l] = 0);
	emu_define(w, op->arg[0].slot, mask, ALL_LANES);
	return STEP_NEXT;
}

bool decode_policy(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->fn = policy;
	return true;
}

/* ---- ld and st ---- */

/* imm[0]: bytes of an element; imm[1]: sign bit to extend from, or 0; imm[2]: enum emu_access. */

/* Strong accesses of what other clusters see. */
static bool needs_turn(const emu_warp *w, const emu_op *op, const emu_arg *a, uint64_t addr)
{
	return op->imm[2] & ACCESS_STRONG && emu_orders_clusters(w, a, addr);
}

/* What the register of an element misses. */
static emu_missing loaded(const emu_op *op, const emu_arg *d, const emu_place *p)
{
	uint32_t each = (uint32_t)op->imm[0];

	if (emu_all_defined(p, each))
		return (emu_missing){ .copied = true };
	emu_missing m = emu_missing_bytes(p, each, (uint32_t)op->imm[1]);
	m.copied = each * 8 >= d->bits;
	return m;
}

bool emu_load_lane(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr)
{
	const emu_arg *d = &op->arg[0], *a = &op->arg[1];
	unsigned each = (unsigned)op->imm[0], n = d->kind == ARG_VEC ? d->count : 1;
	unsigned char bytes[32];
	emu_place p;

	if (!emu_resolve(w, op, lane, a->space, addr, each * n, each * n, &p))
		return false;
	if (p.space < SPACE_LOCAL)
		race_access(w, op, lane, &p, each * n, ACCESS_READ | (unsigned)op->imm[2]);
	memcpy(bytes, p.p, each * n);
	for (unsigned i = 0; i < n; i++) {
		uint32_t slot = d->kind == ARG_VEC ? d->slots[i] : d->slot;
		uint64_t v[2] = { 0 };
		emu_place q = p;
		if (!slot)
			continue;
		memcpy(v, bytes + i * each, each);
		q.offset += i * each;
		emu_miss(w->r, slot, d->bits, lane, loaded(op, d, &q));
		emu_put_extended(w, slot, each == 16 ? 64 : d->bits, lane, v[0], op->imm[1]);
		if (each == 16)
			emu_r64(w, slot)[lane + WARP] = v[1];
	}
	return true;
}

static enum emu_step load(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *a = &op->arg[1];

	if (a->base && !emu_need(w, op, a->slot, mask, "the address"))
		return STEP_FAULT;
	if (mask == ALL_LANES && !op->imm[2] && op->arg[0].kind == ARG_VEC && row_load_vector(w, op))
		return STEP_NEXT;
	EACH_LANE(l, mask) {
		uint64_t addr = emu_address(w, a, l);
		if (needs_turn(w, op, a, addr))
			return STEP_TURN;
		if (!emu_load_lane(w, op, l, addr))
			return STEP_FAULT;
	}
	emu_traffic_count(w, op, mask, emu_lane_bytes(op, &op->arg[0]), ACCESS_READ);
	return STEP_NEXT;
}

/* One register of up to 64 bits. */
static enum emu_step load_one(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *d = &op->arg[0], *a = &op->arg[1];
	uint32_t each = (uint32_t)op->imm[0];

	if (a->base && !emu_need(w, op, a->slot, mask, "the address"))
		return STEP_FAULT;
	if (!op->imm[2] && row_load(w, op, mask))
		return STEP_NEXT;
	EACH_LANE(l, mask) {
		uint64_t addr = emu_address(w, a, l);
		emu_place p;
		if (op->imm[2] && needs_turn(w, op, a, addr))
			return STEP_TURN;
		if (!emu_resolve(w, op, l, a->space, addr, each, each, &p))
			return STEP_FAULT;
		if (p.space < SPACE_LOCAL)
			race_access(w, op, l, &p, each, ACCESS_READ | (unsigned)op->imm[2]);
		emu_miss(w->r, d->slot, d->bits, l, loaded(op, d, &p));
		emu_put_extended(w, d->slot, d->bits, l, emu_bytes(p.p, each), op->imm[1]);
	}
	emu_traffic_count(w, op, mask, each, ACCESS_READ);
	return STEP_NEXT;
}

/* Bytes that have got what is undefined are so. */
static bool miss_stored(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr)
{
	const emu_arg *a = &op->arg[1], *b = &op->arg[2];
	uint32_t each = (uint32_t)op->imm[0];
	emu_place p;

	for (unsigned i = 0; i < (b->kind == ARG_VEC ? b->count : 1u); i++) {
		uint32_t slot = b->kind == ARG_VEC ? b->slots[i] : b->slot;
		if (*emu_defined(w, slot) >> lane & 1)
			continue;
		if (!emu_resolve(w, op, lane, a->space, addr + i * each, each, 1, &p))
			return false;
		emu_miss_bytes(&p, each, emu_missing_of(w->r, slot, b->bits, lane));
	}
	return true;
}

bool emu_store_lane(emu_warp *w, const emu_op *op, unsigned lane, uint64_t addr)
{
	const emu_arg *a = &op->arg[1], *b = &op->arg[2];
	unsigned each = (unsigned)op->imm[0], n = b->kind == ARG_VEC ? b->count : 1;
	unsigned char bytes[32];

	if (b->kind != ARG_VEC && each <= 8) {
		uint64_t v = emu_get(w, b, lane);
		return emu_write(w, op, lane, a->space, addr, &v, each, (unsigned)op->imm[2]) && miss_stored(w, op, lane, addr);
	}
	for (unsigned i = 0; i < n; i++) {
		uint32_t slot = b->kind == ARG_VEC ? b->slots[i] : b->slot;
		uint64_t v[2] = { b->bits >= 64 ? emu_r64(w, slot)[lane] : emu_r32(w, slot)[lane], 0 };
		if (each == 16)
			v[1] = emu_r64(w, slot)[lane + WARP];
		memcpy(bytes + i * each, v, each);
	}
	return emu_write(w, op, lane, a->space, addr, bytes, each * n, (unsigned)op->imm[2]) && miss_stored(w, op, lane, addr);
}

/* What leaves the block must be defined: a finding for the lanes that store undefined values to global memory. */
static void need_stored(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *a = &op->arg[1], *b = &op->arg[2];

	if (a->space != SPACE_GLOBAL && a->space != SPACE_GENERIC)
		return;
	for (unsigned i = 0; i < (b->kind == ARG_VEC ? b->count : 1u); i++) {
		uint32_t slot = b->kind == ARG_VEC ? b->slots[i] : b->slot, missing = mask & ~*emu_defined(w, slot);
		EACH_LANE(l, a->space == SPACE_GENERIC ? missing : 0) {
			uint64_t at = emu_address(w, a, l);
			missing &= ~((uint32_t)(at >= WINDOW_SHARED && at < FUNC_FIRST) << l);
		}
		EACH_LANE(l, missing)
			if (emu_is_padding(emu_missing_of(w->r, slot, b->bits, l), (uint32_t)op->imm[0]))
				missing &= ~(UINT32_C(1) << l);
		if (missing)
			emu_need(w, op, slot, missing, "what is stored");
	}
}

static enum emu_step store(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *a = &op->arg[1];

	if (a->base && !emu_need(w, op, a->slot, mask, "the address"))
		return STEP_FAULT;
	need_stored(w, op, mask);
	if (!op->imm[2] && op->arg[2].kind == ARG_REG && row_store(w, op, mask))
		return STEP_NEXT;
	if (mask == ALL_LANES && !op->imm[2] && op->arg[2].kind == ARG_VEC && row_store_vector(w, op))
		return STEP_NEXT;
	EACH_LANE(l, mask) {
		uint64_t addr = emu_address(w, a, l);
		if (needs_turn(w, op, a, addr))
			return STEP_TURN;
		if (!emu_store_lane(w, op, l, addr))
			return STEP_FAULT;
	}
	emu_traffic_count(w, op, mask, emu_lane_bytes(op, &op->arg[2]), ACCESS_WRITE);
	return STEP_NEXT;
}

unsigned emu_order_of(const emu_op *op)
{
	unsigned scope = op->m.scope == CPTX_CTA || op->m.scope == CPTX_CLUSTER ? ACCESS_NARROW : 0;

	switch (op->m.sem) {
	case 0: return scope; /* of atomic operations: relaxed */
	case CPTX_WEAK: return 0;
	case CPTX_ACQUIRE: return ACCESS_STRONG | ACCESS_ACQUIRE | scope;
	case CPTX_RELEASE: return ACCESS_STRONG | ACCESS_RELEASE | scope;
	case CPTX_ACQ_REL: return ACCESS_STRONG | ACCESS_ACQUIRE | ACCESS_RELEASE | scope;
	default: return ACCESS_STRONG | scope;
	}
}

static void decode_access(emu_op *op)
{
	arch_type t = arch_types[op->m.type];
	op->imm[0] = t.bits / 8;
	op->imm[1] = t.cls == 'S' ? t.bits : 0;
	op->imm[2] = emu_order_of(op);
}

bool decode_ld(emu_decoder *d, emu_op *op)
{
	(void)d;
	decode_access(op);
	op->flags = OP_QUIET | (op->imm[2] & ACCESS_STRONG ? OP_EVENT : 0);
	op->fn = op->arg[0].kind == ARG_REG && op->imm[0] <= 8 ? load_one : load;
	return true;
}

bool decode_st(emu_decoder *d, emu_op *op)
{
	(void)d;
	decode_access(op);
	op->flags = op->imm[2] & ACCESS_STRONG ? OP_EVENT : 0;
	op->fn = store;
	return true;
}

/* ---- addresses ---- */

static uint64_t window(unsigned space)
{
	switch (space) {
	case SPACE_SHARED:
	case SPACE_CLUSTER: return WINDOW_SHARED;
	case SPACE_LOCAL: return WINDOW_LOCAL;
	case SPACE_PARAM: return WINDOW_PARAM;
	default: return 0;
	}
}

static enum emu_step cvta(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint64_t *d = emu_reg64(w, op, 0), base = window((unsigned)op->imm[0]);

	LANES(l, mask,
	      d[l] = op->m.to ? (base ? (uint32_t)emu_get(w, &op->arg[1], l) : emu_get(w, &op->arg[1], l))
	                      : emu_get(w, &op->arg[1], l) + base);
	return STEP_NEXT;
}

bool decode_cvta(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[0] = emu_space_of(op->m.space);
	op->flags = OP_PURE;
	op->fn = cvta;
	return true;
}

static bool lies_in(const emu_warp *w, uint64_t a, unsigned space)
{
	bool shared = a >= WINDOW_SHARED && a < WINDOW_LOCAL;

	switch (space) {
	case SPACE_CLUSTER: return shared;
	case SPACE_SHARED: return shared && (uint32_t)a >> SHARED_RANK == w->cta->rank;
	case SPACE_LOCAL: return a >= WINDOW_LOCAL && a < WINDOW_PARAM;
	case SPACE_PARAM: return a >= WINDOW_PARAM && a < FUNC_FIRST;
	case SPACE_CONST: {
		const emu_alloc *x = emu_alloc_find(w->grid->machine, a);
		return x && x->is_const;
	}
	default: return a < WINDOW_SHARED || a >= FUNC_FIRST;
	}
}

static enum emu_step isspacep(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t p = 0;

	EACH_LANE(l, mask)
		p |= (uint32_t)lies_in(w, emu_get(w, &op->arg[1], l), (unsigned)op->imm[0]) << l;
	emu_set_pred(w, op->arg[0].slot, mask, p);
	return STEP_NEXT;
}

bool decode_isspacep(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[0] = emu_space_of(op->m.space);
	op->flags = OP_PURE;
	op->fn = isspacep;
	return true;
}

static enum emu_step mapa(emu_warp *w, const emu_op *op, uint32_t mask)
{
	EACH_LANE(l, mask) {
		/* of a CTA that is not there the address is none, which whoever uses it hears: programs map ahead, and use by a
		 * predicate */
		uint64_t a = emu_get(w, &op->arg[1], l), rank = MIN(emu_get(w, &op->arg[2], l), 0xffu);
		a = (a & ~(UINT64_C(0xff) << SHARED_RANK)) | rank << SHARED_RANK;
		emu_put(w, op->arg[0].slot, op->arg[0].bits, l, a);
	}
	return STEP_NEXT;
}

bool decode_mapa(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_PURE;
	op->fn = mapa;
	return true;
}

static enum emu_step getctarank(emu_warp *w, const emu_op *op, uint32_t mask)
{
	LANES(l, mask, emu_put(w, op->arg[0].slot, 32, l, (uint32_t)emu_get(w, &op->arg[1], l) >> SHARED_RANK));
	return STEP_NEXT;
}

bool decode_getctarank(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_PURE;
	op->fn = getctarank;
	return true;
}
