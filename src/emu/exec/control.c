/* SPDX-License-Identifier: MIT */
/* Branches, calls, the end of threads. */
#include "emu/async/bulk.h"
#include "emu/core/finding.h"
#include "emu/core/undefined.h"
#include "emu/exec/exec.h"
#include "emu/exec/system.h"
#include "emu/memory/memory.h"

#include <stdlib.h>

/* ---- branches ---- */

/* The lanes of the mask go to `to`; the others of the group go on. */
static enum emu_step go(emu_warp *w, uint32_t mask, uint32_t to)
{
	emu_group *g = w->g;

	if (mask != g->mask) {
		emu_group *rest = emu_group_split(w, g->mask & ~mask);
		rest->pc++;
		g->pc = to;
		return STEP_JUMP;
	}
	g->pc = to - 1; /* the loop adds 1 */
	return STEP_NEXT;
}

static enum emu_step bra(emu_warp *w, const emu_op *op, uint32_t mask) { return go(w, mask, op->arg[1].slot); }

static enum emu_step parts(emu_warp *w, const emu_op *op, uint32_t mask)
{
	return emu_find(w, op, EMU_ALL, CPTX_FIND_DIVERGENT,
	                "of the lanes 0x%08x, which are here together, only 0x%08x go there; .uni says that all go the same way",
	                w->g->mask, mask);
}

static enum emu_step bra_uni(emu_warp *w, const emu_op *op, uint32_t mask)
{
	return mask == w->g->mask ? bra(w, op, mask) : parts(w, op, mask);
}

bool decode_bra(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_QUIET;
	op->fn = op->m.uni ? bra_uni : bra;
	return true;
}

static enum emu_step brx(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *t = &op->arg[2];

	if (!emu_need(w, op, op->arg[1].slot, mask, "the number of the branch target"))
		return STEP_FAULT;
	/* One target at a time: the lanes that want another stay here. */
	unsigned first = (unsigned)__builtin_ctz(mask);
	uint64_t i = emu_get(w, &op->arg[1], first);
	uint32_t same = 0;
	if (i >= t->count)
		return emu_find(w, op, (int)first, CPTX_FIND_OPERAND, "branch target %llu of %u", (unsigned long long)i, t->count);
	EACH_LANE(l, mask)
		same |= (uint32_t)(emu_get(w, &op->arg[1], l) == i) << l;
	if (op->m.uni && same != mask)
		return parts(w, op, same);
	if (same == w->g->mask) {
		w->g->pc = t->slots[i] - 1;
		return STEP_NEXT;
	}
	emu_group *gone = emu_group_split(w, same);
	gone->pc = t->slots[i];
	return STEP_JUMP;
}

bool decode_brx(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_SPLITS | OP_QUIET;
	op->fn = brx;
	return true;
}

/* ---- calls ---- */

/* A parameter in a lane. */
static emu_place passed_place(const emu_frame *f, const emu_passed *x, unsigned lane)
{
	return (emu_place){ .p = emu_param_of(f, lane) + x->offset,
		                .space = SPACE_PARAM,
		                .offset = x->offset,
		                .defined = emu_param_defined(f, lane) };
}

/* Copies between a register or parameter of one frame and one of another. */
static void pass(const emu_frame *from, const emu_passed *a, const emu_frame *to, const emu_passed *b, uint32_t mask)
{
	uint32_t size = MIN(a->size, b->size);

	EACH_LANE(l, mask) {
		emu_place src = passed_place(from, a, l), dst = passed_place(to, b, l);
		uint64_t v[2] = { 0 };
		emu_missing m;
		if (!a->slot && !b->slot) {
			emu_copy_bytes(&dst, &src, size);
			continue;
		}
		size = MIN(size, (uint32_t)sizeof v);
		if (a->slot) {
			emu_lane_get(from->r, a->slot, a->size * 8, l, v);
			m = emu_missing_of(from->r, a->slot, a->size * 8, l);
		} else {
			memcpy(v, src.p, size);
			m = emu_missing_bytes(&src, size, 0);
		}
		if (b->slot) {
			emu_lane_put(to->r, b->slot, b->size * 8, l, v);
			emu_miss(to->r, b->slot, b->size * 8, l, m);
		} else {
			memcpy(dst.p, v, size);
			emu_set_defined(&dst, size, true);
			emu_miss_bytes(&dst, size, m);
		}
	}
}

static enum emu_step enter(emu_warp *w, const emu_op *op, const emu_function *f, const emu_arg *args)
{
	emu_frame *old = w->g->frame;
	char shown[NAME_SHOWN + 1];

	if (args->count != f->narg)
		return emu_find(w, op, EMU_ALL, CPTX_FIND_CALL, "function %s takes %u arguments, but %u are passed",
		                name_shown(f->k->name, shown), (unsigned)f->narg, args->count);
	emu_frame *n = emu_frame_new(w, f, old, w->g->mask);
	if (!n && emu_frame_fits(w, f, old, w->g->mask))
		return emu_find(w, op, EMU_ALL, CPTX_FIND_MEMORY, "no memory of the host for the call");
	if (!n)
		return emu_find(w, op, EMU_ALL, CPTX_FIND_STACK, "calls in one another take too much local memory, or are too many");
	n->call = op;
	n->back = w->g->pc + 1;
	for (unsigned i = 0; i < f->narg; i++)
		pass(old, &args->passed[i], n, &f->arg[i], w->g->mask);
	old->refs--; /* the group's now holds it by way of the new one */
	w->g->frame = n;
	w->g->pc = 0;
	return STEP_JUMP;
}

static enum emu_step call(emu_warp *w, const emu_op *op, uint32_t mask)
{
	(void)mask;
	return enter(w, op, (const emu_function *)op->extra, emu_named(op, "a"));
}

/* One function at a time: the lanes that want another stay here. */
static enum emu_step call_pointer(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *f = &op->arg[1];
	unsigned first = (unsigned)__builtin_ctz(mask);

	if (!emu_need(w, op, f->slot, mask, "the address of the function"))
		return STEP_FAULT;
	uint64_t at = emu_get(w, f, first);
	const emu_function *called =
		at % 16 || at <= FUNC_FIRST ? NULL : emu_image_function(w->grid->image, (at - FUNC_FIRST) / 16);
	if (!called)
		return emu_find(w, op, (int)first, CPTX_FIND_CALL, "0x%llx is not the address of a function",
		                (unsigned long long)at);
	uint32_t others = 0;
	EACH_LANE(l, mask)
		others |= (uint32_t)(emu_get(w, f, l) != at) << l;
	if (others)
		emu_group_split(w, others);
	return enter(w, op, called, emu_named(op, "a"));
}

static enum emu_step back(emu_warp *w)
{
	emu_frame *f = w->g->frame, *to = f->caller;
	const emu_arg *results = emu_named(f->call, "r");

	for (unsigned i = 0; i < results->count && i < f->f->nresult; i++)
		pass(f, &f->f->result[i], to, &results->passed[i], w->g->mask);
	EACH_LANE(l, w->g->mask)
		w->sp[l] = f->local[l]; /* the caller may have allocated on top of its own */
	w->g->pc = f->back;
	to->refs++;
	w->g->frame = to;
	emu_frame_drop(w, f);
	return STEP_JUMP;
}

static enum emu_step ret(emu_warp *w, const emu_op *op, uint32_t mask)
{
	(void)mask;
	if (w->g->frame->caller)
		return back(w);
	emu_bulk_exit(w, op, w->g->mask);
	emu_group_end(w);
	return STEP_JUMP;
}

static enum emu_step exit_threads(emu_warp *w, const emu_op *op, uint32_t mask)
{
	(void)mask;
	emu_bulk_exit(w, op, w->g->mask);
	emu_group_end(w);
	return STEP_JUMP;
}

bool decode_call(emu_decoder *d, emu_op *op)
{
	char shown[NAME_SHOWN + 1];

	op->flags = OP_SPLITS | OP_QUIET;
	if (op->opcode == CPTX_OP_CALL_PTR) {
		op->fn = call_pointer;
		return true;
	}
	const emu_function *f = emu_decoder_function(d, op->arg[1].slot);
	op->extra = f;
	op->fn = f->k->has_body ? call : emu_builtin(f->k->name);
	return op->fn || emu_refuse(d, op, "function %s is only declared; link what defines it, or leave the call out",
	                            name_shown(f->k->name, shown));
}

bool decode_ret(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_SPLITS | OP_QUIET;
	op->fn = ret;
	return true;
}

bool decode_exit(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_SPLITS | OP_QUIET;
	op->fn = exit_threads;
	return true;
}

static enum emu_step trap(emu_warp *w, const emu_op *op, uint32_t mask)
{
	return emu_find(w, op, __builtin_ctz(mask), CPTX_FIND_TRAP, "the thread executed it");
}

bool decode_trap(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->fn = trap;
	return true;
}
