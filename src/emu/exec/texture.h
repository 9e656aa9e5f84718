/* SPDX-License-Identifier: MIT */
/* What instructions of textures and of surfaces share (texture.c). */
#ifndef CPTX_EMU_EXEC_TEXTURE_H
#define CPTX_EMU_EXEC_TEXTURE_H

#include "emu/exec/exec.h"
#include "emu/memory/memory.h"
#include "emu/memory/texture.h"

/* What an instruction says the texture is. */
typedef struct emu_dims {
	unsigned n; /* dimensions of a layer or face; 0: several samples */
	bool layers, cube;
} emu_dims;
enum { EMU_DIMS = 64 };
emu_dims emu_dims_of(unsigned geom);
/* The texture or surface that a lane names; NULL with a finding. */
const emu_texture *emu_texture_of(emu_warp *w, const emu_op *op, const emu_arg *a, unsigned lane, bool surface);
/* Whether it is what the instruction says; else a finding. */
bool emu_dims_fit(emu_warp *w, const emu_op *op, unsigned lane, const emu_texture *t, emu_dims d);
/* Decodes what is not there: who executes it gets a finding with the reason.  True. */
bool emu_is_not_there(emu_op *op, const char *why);
/* Whether the texture is a variable of the module, and why that is not there. */
bool emu_by_name(const emu_op *op, const char **why);

#endif
