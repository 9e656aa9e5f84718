/* SPDX-License-Identifier: MIT */
/* Watchers check the registers of an instruction before it is executed: any number of them in front of one function. */
#include "emu/tensor/tcgen05.h"
#include "emu/tensor/wgmma.h"

static enum emu_step watched(emu_warp *w, const emu_op *op, uint32_t mask)
{
	enum emu_step s = STEP_NEXT;

	if (op->watchers & WATCH_WGMMA)
		emu_wgmma_watch(w, op);
	if (op->watchers & WATCH_TCGEN05)
		s = emu_tcgen05_watch(w, op);
	return s == STEP_NEXT ? op->plain(w, op, mask) : s;
}

void emu_watch(emu_image *im)
{
	for (size_t i = 0; im->watchers && i < im->nfunction; i++) {
		emu_function *f = im->function[i];
		for (size_t j = 0; f && f->decoded && j < f->ncode; j++) {
			emu_op *op = &f->code[j];
			op->watchers = (uint8_t)(im->watchers & ~(emu_is_wgmma(op) ? WATCH_WGMMA : 0));
			if (!op->watchers || !(op->ndef + op->nuse))
				continue;
			op->plain = op->fn;
			op->fn = watched;
		}
	}
}
