/* SPDX-License-Identifier: MIT */
/* What a coordinate of a texture reads (sample.c): free of instructions and registers. */
#ifndef CPTX_EMU_EXEC_SAMPLE_H
#define CPTX_EMU_EXEC_SAMPLE_H

#include "emu/memory/texture.h"

/* Texels along one dimension, and what each counts.  OUTSIDE: none, but the border. */
typedef struct sample_axis {
	int64_t at[2];
	double weight[2];
	unsigned n;
} sample_axis;
#define SAMPLE_OUTSIDE INT64_C(-1)

/* A texel as results have it: bits of f32 or integers; absent channels are 0. */
typedef struct sample_texel {
	uint32_t bits[4];
} sample_texel;

/* Along dimension d of `size` texels: the nearest, or two with weights; `offset` texels further on. */
sample_axis sample_at(const cptx_emu_texture_opt *o, unsigned d, uint32_t size, double x, int32_t offset, bool two);
/* The texel of that number, wherever it is. */
sample_axis sample_texel_at(const cptx_emu_texture_opt *o, unsigned d, uint32_t size, int64_t i);
/* The face of a cube that a direction meets, and where, from 0 to 1. */
unsigned sample_face(const double v[3], double at[2]);
bool sample_is_number(const cptx_emu_texture_opt *o); /* read as f32; else as integers */
sample_texel sample_decode(const cptx_emu_texture_opt *o, const unsigned char *bytes);
sample_texel sample_border(const cptx_emu_texture_opt *o);

#endif
