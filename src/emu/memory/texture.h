/* SPDX-License-Identifier: MIT */
/* Textures and surfaces of a machine: texels in global memory, which handles name (texture.c). */
#ifndef CPTX_EMU_MEMORY_TEXTURE_H
#define CPTX_EMU_MEMORY_TEXTURE_H

#include "emu/core/types.h"

typedef struct emu_texture {
	cptx_emu_texture_opt o;
	uint32_t texel;         /* bytes */
	uint32_t layers, faces; /* at least 1 */
	unsigned dims;          /* of a layer or face */
} emu_texture;

/* A mipmap level; what it has no dimension of is 1. */
typedef struct emu_level {
	uint64_t at, pitch;
	uint32_t size[3];
} emu_level;

/* The handle; 0 with an error. */
uint64_t emu_texture_new(emu_machine *m, const cptx_emu_texture_opt *o, cptx_error *err);
bool emu_texture_free(emu_machine *m, uint64_t handle);
const emu_texture *emu_texture_find(const emu_machine *m, uint64_t handle); /* NULL: none */
uint32_t emu_channel_bytes(enum cptx_emu_channel c);
void emu_textures_free(emu_machine *m);
emu_level emu_level_of(const emu_texture *t, uint32_t level);
/* `slice` counts faces of layers, or depth. */
static inline uint64_t emu_texel_at(const emu_texture *t, const emu_level *l, uint64_t x, uint64_t y, uint64_t slice)
{
	return l->at + (slice * l->size[1] + y) * l->pitch + x * t->texel;
}

#endif
