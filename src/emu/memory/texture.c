/* SPDX-License-Identifier: MIT */
/* Textures and surfaces: what a handle names, its rules, where its texels lie. */
#include "emu/memory/texture.h"
#include "emu/core/machine.h"

#include <math.h>
#include <stdlib.h>

/* Handles are no addresses, which have nothing in their upper 16 bits.  A number is given once, so a handle that was freed
 * stays so; the upper bits are the machine's, so that another device's handles name nothing here. */
static uint64_t first_handle(const emu_machine *m)
{
	const uint64_t own = (uint64_t)(uintptr_t)m * UINT64_C(0x9e3779b97f4a7c15) >> 48;

	return MAX(own, UINT64_C(1)) << 48 | UINT64_C(0x7c00) << 32;
}
enum { HANDLE_STEP = 64 /* bytes, that handles are apart */, MOST_WIDTH = 1 << 30, MOST_SIZE = 1 << 20 };
#define MOST_PITCH (UINT64_C(1) << 34)

uint32_t emu_channel_bytes(enum cptx_emu_channel c)
{
	static const uint8_t bytes[CPTX_EMU_CHANNELS] = { 1, 1, 2, 2, 4, 4, 2, 4 };

	return (unsigned)c < CPTX_EMU_CHANNELS ? bytes[c] : 1;
}

emu_level emu_level_of(const emu_texture *t, uint32_t level)
{
	emu_level l = { .at = t->o.at, .size = { t->o.width, MAX(t->o.height, 1u), MAX(t->o.depth, 1u) } };

	l.pitch = t->o.pitch ? t->o.pitch : (uint64_t)t->o.width * t->texel;
	for (uint32_t i = 0; i < MIN(level, MAX(t->o.levels, 1u) - 1); i++) {
		l.at += l.pitch * l.size[1] * l.size[2] * t->layers * t->faces;
		for (int d = 0; d < 3; d++)
			l.size[d] = MAX(l.size[d] / 2, 1u);
		l.pitch = (uint64_t)l.size[0] * t->texel;
	}
	return l;
}

static uint32_t most_levels(const cptx_emu_texture_opt *o)
{
	uint32_t n = 1;

	for (uint32_t size = MAX(MAX(o->width, o->height), o->depth); size > 1; size /= 2)
		n++;
	return n;
}

/* The rule that the options break; NULL: none. */
static const char *wrong(const cptx_emu_texture_opt *o, uint32_t texel)
{
	bool fraction = o->channel == CPTX_EMU_F16 || o->channel == CPTX_EMU_F32 || o->as_fraction || o->srgb;

	if ((unsigned)o->channel >= CPTX_EMU_CHANNELS || (o->channels != 1 && o->channels != 2 && o->channels != 4))
		return "a texel has 1, 2 or 4 channels of a kind of cptx_emu_channel";
	if (!o->width || o->width > MOST_WIDTH || o->height > MOST_SIZE || o->depth > MOST_SIZE || o->layers > MOST_SIZE)
		return "width must be 1 to 2^30, and height, depth and layers at most 2^20";
	if (o->depth && (!o->height || o->layers || o->cube))
		return "depth needs a height, and has neither layers nor faces";
	if (o->cube && o->height != o->width)
		return "faces of a cube are square: height must be width";
	if (!o->at || o->at % texel || o->pitch % texel)
		return "the address and the pitch must be multiples of a texel's size";
	if (o->pitch && (o->pitch / texel < o->width || o->pitch > MOST_PITCH))
		return "the pitch must be at least a row's bytes, and at most 2^34";
	if (o->levels > most_levels(o))
		return "the last mipmap level is one of a single texel";
	if (isnan(o->mip_bias) || isnan(o->mip_least) || isnan(o->mip_most))
		return "mip_bias, mip_least and mip_most must be numbers";
	for (int i = 0; i < 3; i++)
		if ((unsigned)o->outside[i] > CPTX_EMU_BORDER)
			return "outside must be a value of cptx_emu_outside";
	if ((o->as_fraction && o->channel > CPTX_EMU_S16) || (o->srgb && o->channel != CPTX_EMU_U8))
		return "as_fraction is for integers of 8 and 16 bits, srgb for U8";
	return (o->linear || o->mip_linear) && !fraction ? "weights are for texels that are read as numbers with a fraction"
	                                                 : NULL;
}

/* Bytes of all levels, up to the last texel; more than there are addresses if it is too much. */
static uint64_t bytes_of(const emu_texture *t)
{
	uint32_t slices = t->layers * t->faces * MAX(t->o.depth, 1u);
	emu_level l = emu_level_of(t, 0);

	if (l.pitch * l.size[1] > UINT64_C(1) << 40)
		return UINT64_MAX;
	if (t->o.levels > 1) {
		l = emu_level_of(t, t->o.levels - 1);
		slices = t->layers * t->faces * l.size[2];
	}
	return l.at - t->o.at + (slices * (uint64_t)l.size[1] - 1) * l.pitch + (uint64_t)l.size[0] * t->texel;
}

/* A place in the table; false: memory is short. */
static bool keep(emu_machine *m, emu_texture *t)
{
	if (!array_room(&m->texture, m->ntexture, &m->cap_texture, sizeof *m->texture, 16))
		return false;
	m->texture[m->ntexture++] = t;
	return true;
}

uint64_t emu_texture_new(emu_machine *m, const cptx_emu_texture_opt *o, cptx_error *err)
{
	uint32_t texel = emu_channel_bytes(o->channel) * MAX(MIN(o->channels, 4u), 1u);
	const char *why = wrong(o, texel);

	if (why) {
		error_set(err, CPTX_E_ARG, NOWHERE, "no texture: %s", why);
		return 0;
	}
	const emu_texture made = { .o = *o,
		                       .texel = texel,
		                       .layers = MAX(o->layers, 1u),
		                       .faces = o->cube ? 6 : 1,
		                       .dims = o->depth    ? 3
		                               : o->height ? 2
		                                           : 1 };
	const emu_alloc *a = emu_alloc_find(m, o->at);
	uint64_t bytes = bytes_of(&made);
	if (!a || bytes > a->size - (o->at - a->at)) {
		error_set(
			err, CPTX_E_ARG, NOWHERE, "no texture: it is %llu bytes from device address 0x%llx on, where %llu are allocated",
			(unsigned long long)bytes, (unsigned long long)o->at, (unsigned long long)(a ? a->size - (o->at - a->at) : 0));
		return 0;
	}
	emu_texture *t = NEW(emu_texture);
	if (!t || !keep(m, t)) {
		free(t);
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return 0;
	}
	*t = made;
	return first_handle(m) + m->ntexture * HANDLE_STEP;
}

/* Its place in the table; NULL: none. */
static emu_texture **place_of(const emu_machine *m, uint64_t handle)
{
	const uint64_t first = first_handle(m), n = (handle - first) / HANDLE_STEP;

	return handle > first && handle % HANDLE_STEP == 0 && n <= m->ntexture ? &m->texture[n - 1] : NULL;
}

const emu_texture *emu_texture_find(const emu_machine *m, uint64_t handle)
{
	emu_texture **t = place_of(m, handle);

	return t ? *t : NULL;
}

bool emu_texture_free(emu_machine *m, uint64_t handle)
{
	emu_texture **t = place_of(m, handle);

	if (!t || !*t)
		return false;
	free(*t);
	*t = NULL;
	return true;
}

void emu_textures_free(emu_machine *m)
{
	for (size_t i = 0; i < m->ntexture; i++)
		free(m->texture[i]);
	free(m->texture);
}
