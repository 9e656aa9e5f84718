/* SPDX-License-Identifier: MIT */
/* cp.async.bulk without a tensor: loads, stores, copies in the cluster, reductions. */
#include "emu/async/bulk.h"
#include "emu/core/finding.h"
#include "emu/exec/exec.h"
#include "emu/memory/memory.h"

enum { UNIT = 16 /* bytes that sizes and addresses are multiples of */ };

/* The operands that a form has; kind ARG_NONE: it has not. */
typedef struct bulk_form {
	const emu_arg *global, *shared, *to, *mbar, *size, *mask, *left, *right;
	bool multicast, cp_mask;
} bulk_form;

static bool wrong_size(emu_warp *w, const emu_op *op, unsigned lane, uint32_t size)
{
	if (size % UNIT == 0)
		return false;
	emu_find(w, op, (int)lane, CPTX_FIND_OPERAND, "%u bytes; they must be a multiple of %d", size, UNIT);
	return true;
}

static bool shared_place(emu_warp *w, const emu_op *op, unsigned lane, const emu_arg *a, uint32_t size, emu_place *p)
{
	return emu_resolve(w, op, lane, a->space, emu_address(w, a, lane), size, UNIT, p);
}

/* Places without the bytes that may lie outside of the allocation. */
static bool global_place(emu_warp *w, const emu_op *op, unsigned lane, uint32_t size, const uint16_t skip[2], emu_place *p)
{
	const bulk_form *f = (const bulk_form *)op->extra;
	uint64_t addr = emu_address(w, f->global, lane);

	if (!skip[0] && !skip[1])
		return emu_resolve(w, op, lane, SPACE_GLOBAL, addr, size, UNIT, p);
	if (addr % UNIT) {
		emu_find(w, op, (int)lane, CPTX_FIND_MISALIGNED, "address 0x%llx must be a multiple of %d", (unsigned long long)addr,
		         UNIT);
		return false;
	}
	if (!emu_resolve(w, op, lane, SPACE_GLOBAL, addr + skip[0], size - skip[0] - skip[1], 1, p))
		return false;
	p->offset -= skip[0]; /* never read there */
	return true;
}

/* The whole as a few spans, which parts are made of. */
static bool add_all(bulk_copy *b, const emu_place *outside, uint32_t size)
{
	enum { SPANS = 4 };
	emu_place p = *outside;

	for (uint32_t i = 0, end, k = 1; i < size; i = end, k++) {
		end = (uint32_t)((uint64_t)(size / UNIT) * k / SPANS) * UNIT;
		p.offset = outside->offset + i;
		if (end > i && !bulk_add(b, &p, end - i))
			return false;
	}
	return true;
}

static bool skipped(emu_warp *w, const emu_op *op, unsigned lane, uint32_t size, uint16_t skip[2])
{
	const bulk_form *f = (const bulk_form *)op->extra;

	if (f->left->kind == ARG_NONE)
		return true;
	uint32_t left = (uint32_t)emu_get(w, f->left, lane), right = (uint32_t)emu_get(w, f->right, lane);
	if (left >= UNIT || right >= UNIT || left + right > size) {
		emu_find(w, op, (int)lane, CPTX_FIND_OPERAND, "%u bytes on the left and %u on the right of %u; each is 0 to %d",
		         left, right, size, UNIT - 1);
		return false;
	}
	skip[0] = (uint16_t)left;
	skip[1] = (uint16_t)right;
	return true;
}

/* What remains of a copy to shared memory: where it ends. */
static bool send(emu_warp *w, const emu_op *op, unsigned lane, bulk_copy *b, uint32_t size)
{
	const bulk_form *f = (const bulk_form *)op->extra;
	emu_place dst;

	return shared_place(w, op, lane, f->to, size, &dst) && bulk_send(b, &dst, f->mbar, f->multicast ? f->mask : NULL, false);
}

static bool fill_load(emu_warp *w, const emu_op *op, unsigned lane, bulk_copy *b, uint32_t size)
{
	emu_place src;

	return skipped(w, op, lane, size, b->skip) && global_place(w, op, lane, size, b->skip, &src) && add_all(b, &src, size) &&
	       send(w, op, lane, b, size);
}

static bool fill_cluster(emu_warp *w, const emu_op *op, unsigned lane, bulk_copy *b, uint32_t size)
{
	const bulk_form *f = (const bulk_form *)op->extra;

	return shared_place(w, op, lane, f->shared, size, &b->from) && add_all(b, &b->from, size) && send(w, op, lane, b, size);
}

static bool fill_store(emu_warp *w, const emu_op *op, unsigned lane, bulk_copy *b, uint32_t size)
{
	static const uint16_t none[2] = { 0 };
	const bulk_form *f = (const bulk_form *)op->extra;
	emu_place dst;

	b->store = true;
	if (f->cp_mask)
		b->mask = (uint16_t)emu_get(w, f->mask, lane);
	if (f->cp_mask && !b->mask)
		size = 0;
	if (!shared_place(w, op, lane, f->shared, size, &b->from) || !global_place(w, op, lane, size, none, &dst))
		return false;
	if (dst.alloc->is_const) {
		emu_find(w, op, (int)lane, CPTX_FIND_BOUNDS, "a write to constant memory");
		return false;
	}
	return add_all(b, &dst, size);
}

static bool one_lane(emu_warp *w, const emu_op *op, unsigned lane)
{
	const bulk_form *f = (const bulk_form *)op->extra;
	uint32_t size = (uint32_t)emu_get(w, f->size, lane);
	bulk_copy *b = wrong_size(w, op, lane, size) ? NULL : bulk_new(w, op, lane);

	if (!b)
		return false;
	b->op = op->m.op;
	b->type = op->m.type;
	b->ftz = op->m.type == CPTX_F32; /* as red in global memory */
	bool ok = f->to->kind == ARG_NONE       ? fill_store(w, op, lane, b, size)
	          : f->shared->kind == ARG_NONE ? fill_load(w, op, lane, b, size)
	                                        : fill_cluster(w, op, lane, b, size);
	if (ok)
		return bulk_start(b);
	bulk_free(b);
	return false;
}

static void need_operands(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const bulk_form *f = (const bulk_form *)op->extra;

	emu_need_arg(w, op, f->global, mask, "the global address");
	emu_need_arg(w, op, f->shared, mask, "the shared address");
	emu_need_arg(w, op, f->to, mask, "the destination's address");
	emu_need_arg(w, op, f->mbar, mask, "the mbarrier's address");
	emu_need_arg(w, op, f->size, mask, "the number of bytes");
	emu_need_arg(w, op, f->mask, mask, "the mask");
}

static enum emu_step copy(emu_warp *w, const emu_op *op, uint32_t mask)
{
	need_operands(w, op, mask);
	EACH_LANE(l, mask)
		if (!one_lane(w, op, l))
			return STEP_FAULT;
	return STEP_NEXT;
}

bool decode_bulk(emu_decoder *d, emu_op *op)
{
	bool load = op->opcode == CPTX_OP_CP_ASYNC_BULK_LOAD;
	bool cluster = op->opcode == CPTX_OP_CP_ASYNC_BULK_CLUSTER || op->opcode == CPTX_OP_CP_REDUCE_ASYNC_BULK_CLUSTER;
	bulk_form *f = DECODER_NEW(d, bulk_form);

	if (!f)
		return false;
	*f = (bulk_form){ .global = emu_named(op, "a"),
		              .shared = emu_named(op, load ? "" : "s"),
		              .to = emu_named(op, load      ? "s"
		                                  : cluster ? "to"
		                                            : ""),
		              .mbar = emu_named(op, "mbar"),
		              .size = emu_named(op, "size"),
		              .mask = emu_named(op, "mask"),
		              .left = emu_named(op, "left"),
		              .right = emu_named(op, "right") };
	f->multicast = emu_modifier(op, "multicast") != 0;
	f->cp_mask = emu_modifier(op, "cp_mask") != 0;
	op->extra = f;
	op->fn = copy;
	return true;
}

/* ---- prefetch: only the range is looked at ---- */

static enum emu_step prefetch(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const bulk_form *f = (const bulk_form *)op->extra;
	emu_place p;

	need_operands(w, op, mask);
	EACH_LANE(l, mask) {
		uint32_t size = (uint32_t)emu_get(w, f->size, l);
		if (wrong_size(w, op, l, size) || !emu_resolve(w, op, l, SPACE_GLOBAL, emu_address(w, f->global, l), size, UNIT, &p))
			return STEP_FAULT;
	}
	return STEP_NEXT;
}

bool decode_bulk_prefetch(emu_decoder *d, emu_op *op)
{
	bool ok = decode_bulk(d, op);

	op->fn = prefetch;
	return ok;
}
