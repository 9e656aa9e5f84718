/* SPDX-License-Identifier: MIT */
/* Static variables of a space, apart from one another (variables.c). */
#ifndef CPTX_EMU_MEMORY_VARIABLES_H
#define CPTX_EMU_MEMORY_VARIABLES_H

#include "emu/core/types.h"

typedef struct emu_named_place {
	const char *name;
	uint64_t at, size;
} emu_named_place;

/* By address. */
typedef struct emu_variables {
	emu_named_place *var;
	size_t n, cap;
	uint32_t bytes, gaps; /* side by side; and what lies between them and behind the last */
	uint32_t *owner;      /* by EMU_GRAIN bytes: number of the variable there + 1; 0: none */
	uint32_t nowner;
} emu_variables;
enum { EMU_GRAIN = 16, EMU_NEAR = 192 };

uint32_t emu_aligned(uint32_t n, uint32_t align);
/* Whether there is room for it beside `used` bytes of its space; an error if not.  Sums of sizes are of 32 bits then. */
bool emu_variable_fits(const char *kernel, unsigned space, uint32_t used, const ir_sym *s, cptx_site at, cptx_error *err);
/* Gives the variable a place, `gap` bytes before the next one: a multiple of EMU_GRAIN.  Its offset; *ok false: memory. */
uint32_t emu_variable_add(emu_variables *v, arena *a, const ir_sym *s, uint32_t gap, bool *ok);
bool emu_variables_end(emu_variables *v, arena *a, uint32_t end); /* none comes any more; what is not theirs begins there */
const emu_named_place *emu_variable_at(const emu_variables *v, uint64_t offset); /* NULL: none */
/* Where the bytes lie that no variable holds: "1040 bytes behind the start of tile of 1024 bytes". */
const char *emu_near_shared(const emu_cta *cta, uint64_t addr, uint32_t size, char text[EMU_NEAR]);
const char *emu_near_local(const emu_warp *w, unsigned lane, uint64_t addr, uint32_t size, char text[EMU_NEAR]);
/* One variable holds the bytes, or they lie behind all of them. */
static inline bool emu_variable_holds(const emu_variables *v, uint64_t offset, uint32_t size)
{
	if (offset / EMU_GRAIN >= v->nowner)
		return true;
	uint32_t i = v->owner[offset / EMU_GRAIN];
	return i && offset - v->var[i - 1].at <= v->var[i - 1].size && size <= v->var[i - 1].size - (offset - v->var[i - 1].at);
}

#endif
