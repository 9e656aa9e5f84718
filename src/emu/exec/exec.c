/* SPDX-License-Identifier: MIT */
/* Which function decodes an instruction, or why none does: exec.def as tables; and which are too new. */
#include "emu/exec/exec.h"

emu_decode_fn emu_decode_of(unsigned opcode)
{
	switch (opcode) {
#define LEFT_OUT(op, why)
#define NO_EFFECT(field, why)
#define EXEC(op, decoder, reads, idle)                                                                                      \
	case CPTX_OP_##op:                                                                                                      \
		return decoder;
#include "emu/exec/exec.def"
#undef EXEC
#undef LEFT_OUT
#undef NO_EFFECT
	default: return NULL;
	}
}

const char *emu_left_out(unsigned opcode)
{
	switch (opcode) {
#define EXEC(op, decoder, reads, idle)
#define NO_EFFECT(field, why)
#define LEFT_OUT(op, why)                                                                                                   \
	case CPTX_OP_##op:                                                                                                      \
		return why;
#include "emu/exec/exec.def"
#undef EXEC
#undef LEFT_OUT
#undef NO_EFFECT
	default: return NULL;
	}
}

/* Does the instruction, as its modifiers are, need a newer PTX than the emulator was written for? */
bool emu_is_newer(const ir_item *it)
{
	const arch_form *f = &arch_forms[it->form];
	unsigned avail[ARCH_GROUPS + 1] = { f->avail }, n = 1, lowest;

	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		for (unsigned a = 0; g->has_avail && a < g->nalt; a++)
			if (arch_alts[g->alt + a].mod == ir_mods(it)[i])
				avail[n++] = arch_alts[g->alt + a].avail;
	}
	for (unsigned i = 0; i < n; i++) {
		lowest = avail[i] ? UINT8_MAX : 0;
		for (unsigned t = 0; avail[i] && t < arch_ntarget; t++)
			lowest = arch_avails[avail[i]][t] ? MIN(lowest, arch_avails[avail[i]][t]) : lowest;
		if (lowest > EMU_WRITTEN_FOR)
			return true;
	}
	return false;
}
