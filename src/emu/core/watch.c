/* SPDX-License-Identifier: MIT */
/* Watchers check the registers of an instruction before it is executed: any number of them in front of one function. */
#include "emu/memory/memory.h"
#include "emu/tensor/tcgen05.h"
#include "emu/tensor/wgmma.h"

/* Whether an instruction may read shared memory into registers. */
static bool is_fetch(const emu_op *op)
{
	if (op->opcode != CPTX_OP_LD) /* others may have no second operand */
		return op->opcode == CPTX_OP_LDMATRIX;
	const unsigned space = op->arg[1].space;

	return space == SPACE_SHARED || space == SPACE_CLUSTER || space == SPACE_GENERIC;
}

/* Whether a load is about to read shared memory; asked in front of the load, which may overwrite its own address. */
static bool fetches(const emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *a = &op->arg[1];

	if (!is_fetch(op) || a->space != SPACE_GENERIC || op->opcode == CPTX_OP_LDMATRIX)
		return is_fetch(op);
	EACH_LANE(l, mask)
		if (emu_address(w, a, l) >> 32 == WINDOW_SHARED >> 32)
			return true;
	return false;
}

static enum emu_step watched(emu_warp *w, const emu_op *op, uint32_t mask)
{
	enum emu_step s = STEP_NEXT;
	bool fetched = false;

	if (op->watchers & WATCH_WGMMA)
		emu_wgmma_watch(w, op);
	if (op->watchers & WATCH_FETCHED) {
		fetched = fetches(w, op, mask);
		race_take(w, op);
	}
	if (op->watchers & WATCH_TCGEN05)
		s = emu_tcgen05_watch(w, op);
	if (s == STEP_NEXT)
		s = op->plain(w, op, mask);
	if (s == STEP_NEXT && fetched)
		race_fetch(w, op);
	return s;
}

static bool any(const emu_image *im, bool (*is)(const emu_op *op))
{
	for (size_t i = 0; i < im->nfunction; i++)
		for (size_t j = 0; im->function[i]->decoded && j < im->function[i]->ncode; j++)
			if (is(&im->function[i]->code[j]))
				return true;
	return false;
}

/* Whether TMA or a bulk copy may overwrite what threads read. */
static bool copies_in_bulk(const emu_op *op)
{
	return op->opcode == CPTX_OP_CP_ASYNC_BULK_TENSOR_LOAD || op->opcode == CPTX_OP_CP_ASYNC_BULK_LOAD;
}

void emu_watch(emu_image *im)
{
	if (any(im, is_fetch) && any(im, copies_in_bulk))
		im->watchers |= WATCH_FETCHED;
	for (size_t i = 0; im->watchers && i < im->nfunction; i++) {
		emu_function *f = im->function[i];
		for (size_t j = 0; f->decoded && j < f->ncode; j++) {
			emu_op *op = &f->code[j];
			op->watchers = (uint8_t)(im->watchers & ~(emu_is_wgmma(op) ? WATCH_WGMMA : 0));
			if (!op->watchers || !(op->ndef + op->nuse))
				continue;
			op->plain = op->fn;
			op->fn = watched;
		}
	}
}
