/* SPDX-License-Identifier: MIT */
/* Miscellaneous: the stack of local memory, sleeping, what is for tools. */
#include "emu/core/finding.h"
#include "emu/core/registers.h"
#include "emu/exec/exec.h"

/* ---- the stack grows upward; a frame's own variables lie at its bottom, a return takes all of it away ---- */

static enum emu_step stacksave(emu_warp *w, const emu_op *op, uint32_t mask)
{
	LANES(l, mask, emu_put(w, op->arg[0].slot, op->arg[0].bits, l, w->sp[l]));
	return STEP_NEXT;
}

static enum emu_step stackrestore(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_frame *f = w->g->frame;

	if (!emu_need(w, op, op->arg[1].slot, mask, "the stack pointer"))
		return STEP_FAULT;
	EACH_LANE(l, mask) {
		uint64_t sp = emu_get(w, &op->arg[1], l);
		if (sp > w->sp[l] || sp < f->local[l] + f->f->local_bytes)
			return emu_find(w, op, (int)l, CPTX_FIND_OPERAND,
			                "stack pointer 0x%llx; it must be what stacksave gave in this call, at most 0x%x now",
			                (unsigned long long)sp, w->sp[l]);
		w->sp[l] = (uint32_t)sp;
	}
	return STEP_NEXT;
}

static enum emu_step alloca_local(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint64_t align = (uint64_t)op->imm[0];

	if (!emu_need(w, op, op->arg[1].slot, mask, "the size"))
		return STEP_FAULT;
	EACH_LANE(l, mask) {
		uint64_t size = emu_get(w, &op->arg[1], l), at = (w->sp[l] + align - 1) & ~(align - 1);
		bool fits = emu_local_fits(w->g->frame, at, size);
		if (fits && !emu_reserve_local(w, w->g->frame, at, size))
			return emu_find(w, op, (int)l, CPTX_FIND_MEMORY, "no memory of the host for the local memory of a warp");
		if (!fits)
			return emu_find(w, op, (int)l, CPTX_FIND_STACK,
			                "%llu bytes on top of the %llu that are taken do not fit into local memory",
			                (unsigned long long)size, (unsigned long long)at);
		w->sp[l] = (uint32_t)(at + size);
		emu_fresh_local(w, l, at, size);
		emu_put(w, op->arg[0].slot, op->arg[0].bits, l, at);
	}
	return STEP_NEXT;
}

bool decode_stacksave(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_PURE;
	op->fn = stacksave;
	return true;
}

bool decode_stackrestore(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->fn = stackrestore;
	return true;
}

bool decode_alloca(emu_decoder *d, emu_op *op)
{
	const emu_arg *n = emu_named(op, "n");

	(void)d;
	op->imm[0] = n->kind == ARG_NONE ? 8 : n->offset;
	op->flags = OP_PURE;
	op->fn = alloca_local;
	return true;
}

/* ---- others first ---- */

static enum emu_step nanosleep_thread(emu_warp *w, const emu_op *op, uint32_t mask)
{
	(void)op, (void)mask;
	return w->grid->explorer ? STEP_NEXT : STEP_YIELD;
}

bool decode_nanosleep(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_QUIET;
	op->fn = nanosleep_thread;
	return true;
}
