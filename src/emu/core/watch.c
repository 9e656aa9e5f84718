/* SPDX-License-Identifier: MIT */
/* Watchers check the registers of an instruction before it is executed: any number of them in front of one function. */
#include "emu/tensor/tcgen05.h"
#include "emu/tensor/wgmma.h"

static enum emu_step watched(emu_warp *w, const emu_op *op, uint32_t mask)
{
	enum emu_step s = STEP_NEXT;

	if (op->watchers & WATCH_WGMMA)
		emu_wgmma_watch(w, op);
	if (op->watchers & WATCH_FETCHED)
		race_take(w, op);
	if (op->watchers & WATCH_TCGEN05)
		s = emu_tcgen05_watch(w, op);
	return s == STEP_NEXT ? op->plain(w, op, mask) : s;
}

/* Whether TMA or a bulk copy may overwrite what ldmatrix reads. */
static bool copies_in_bulk(const emu_image *im)
{
	for (size_t i = 0; i < im->nfunction; i++)
		for (size_t j = 0; im->function[i]->decoded && j < im->function[i]->ncode; j++) {
			const uint16_t op = im->function[i]->code[j].opcode;
			if (op == CPTX_OP_CP_ASYNC_BULK_TENSOR_LOAD || op == CPTX_OP_CP_ASYNC_BULK_LOAD)
				return true;
		}
	return false;
}

void emu_watch(emu_image *im)
{
	if (im->watchers & WATCH_FETCHED && !copies_in_bulk(im))
		im->watchers &= (uint8_t)~WATCH_FETCHED;
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
