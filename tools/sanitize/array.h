/* SPDX-License-Identifier: MIT */
/* Arrays: texels in memory of the device, row by row. */
#ifndef CPTX_SANITIZE_ARRAY_H
#define CPTX_SANITIZE_ARRAY_H

#include "san.h"

/* Texels, of an array or of memory that a texture is made of. */
typedef struct san_texels {
	uint64_t at;
	rt_format format;
	size_t width, height, depth; /* 0: no such dimension; depth counts layers and faces, too */
	unsigned flags;              /* RT_ARRAY_LAYERED ... */
	size_t pitch;                /* bytes from row to row */
	unsigned levels;             /* of mipmaps */
} san_texels;

typedef struct san_array {
	struct san_array *next; /* in san.arrays */
	san_texels t;
	struct san_array *level; /* of a mipmapped array: an array for each level, in its memory */
} san_array;

/* The kind of the channels and how many there are; false, and said: not one that textures have. */
bool san_format(const rt_format *f, enum cptx_emu_channel *channel, unsigned *channels);
size_t san_texel(const rt_format *f); /* bytes */
bool san_driver_format(int format, unsigned channels, rt_format *out);
bool san_array_lives(const san_array *a); /* else it is said */

#endif
