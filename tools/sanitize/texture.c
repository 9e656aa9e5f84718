/* SPDX-License-Identifier: MIT */
/* Texture and surface objects: what the two APIs say of them, as the emulator's textures. */
#include "array.h"
#include "api.h"

#include <stdlib.h>
#include <string.h>

/* An object, with what its program may ask for again. */
typedef struct object {
	struct object *next;
	uint64_t handle;
	bool surface;
	rt_resource resource;
	rt_sampler sampler;
} object;
static object *objects;

static int keep(uint64_t *out, const cptx_emu_texture_opt *opt, const rt_resource *r, const rt_sampler *s)
{
	cptx_error err = { .code = CPTX_OK };
	object *o = out ? (object *)calloc(1, sizeof *o) : NULL;

	if (!o)
		return out ? SAN_MEMORY : SAN_VALUE;
	o->handle = cptx_emu_texture(san.dev, opt, &err);
	if (!o->handle) {
		free(o);
		return san_failed(opt->surface ? "a surface object" : "a texture object", &err);
	}
	o->resource = *r, o->surface = opt->surface;
	if (s)
		o->sampler = *s;
	o->next = objects;
	objects = o;
	*out = o->handle;
	return SAN_OK;
}

static int drop(uint64_t handle, bool surface)
{
	object **p = &objects;

	while (*p && ((*p)->handle != handle || (*p)->surface != surface))
		p = &(*p)->next;
	if (!*p)
		return SAN_VALUE;
	object *o = *p;
	*p = o->next;
	cptx_emu_texture_free(san.dev, handle);
	free(o);
	return SAN_OK;
}

/* ---- descriptors ---- */

/* What the resource is; false, and said: none. */
static bool texels_of(const rt_resource *r, san_texels *t)
{
	size_t texel;

	switch (r->type) {
	case RT_OF_ARRAY:
	case RT_OF_MIPMAPPED:
		if (!san_array_lives(r->res.array))
			return false;
		*t = r->res.array->t;
		return true;
	case RT_OF_LINEAR:
		texel = san_texel(&r->res.linear.format);
		*t = (san_texels){ .at = (uintptr_t)r->res.linear.at,
			               .format = r->res.linear.format,
			               .width = texel ? r->res.linear.size / texel : 0 };
		break;
	case RT_OF_ROWS:
		*t = (san_texels){ .at = (uintptr_t)r->res.rows.at,
			               .format = r->res.rows.format,
			               .width = r->res.rows.width,
			               .height = r->res.rows.height,
			               .pitch = r->res.rows.pitch };
		break;
	default: return false;
	}
	int align = 1, of_pitch = 1;
	san_attribute(14, &align);
	san_attribute(51, &of_pitch);
	if (t->at % (unsigned)align || t->pitch % (unsigned)of_pitch) {
		san_say("a texture of memory begins at a multiple of %d bytes, and its pitch is one of %d", align, of_pitch);
		return false;
	}
	return true;
}

static bool options_of(const san_texels *t, cptx_emu_texture_opt *o)
{
	bool layered = t->flags & RT_ARRAY_LAYERED, cube = t->flags & RT_ARRAY_CUBE;

	*o = (cptx_emu_texture_opt){ .size = CPTX_OPT_SIZE(cptx_emu_texture_opt),
		                         .at = t->at,
		                         .width = (uint32_t)t->width,
		                         .height = (uint32_t)t->height,
		                         .depth = layered || cube ? 0 : (uint32_t)t->depth,
		                         .layers = layered ? (uint32_t)t->depth / (cube ? 6u : 1u) : 0,
		                         .cube = cube,
		                         .levels = t->levels,
		                         .pitch = t->pitch };
	return t->width <= UINT32_MAX && t->height <= UINT32_MAX && san_format(&t->format, &o->channel, &o->channels);
}

static int texture(uint64_t *out, const rt_resource *r, const rt_sampler *s, const void *view)
{
	cptx_emu_texture_opt o;
	san_texels t;

	if (view)
		return san_missing("cudaCreateTextureObject of a resource view");
	if (!r || !s || !texels_of(r, &t) || !options_of(&t, &o))
		return SAN_VALUE;
	bool whole = o.channel == CPTX_EMU_U32 || o.channel == CPTX_EMU_S32, small = o.channel <= CPTX_EMU_S16;
	if (s->as_fraction && whole) {
		san_say("integers of 32 bits are read as they are: cudaReadModeNormalizedFloat is for 8 and 16 bits");
		return SAN_VALUE;
	}
	o.as_fraction = s->as_fraction && small;
	o.srgb = s->srgb != 0;
	o.mip_linear = s->mip_linear != 0, o.mip_bias = s->mip_bias, o.mip_least = s->mip_least, o.mip_most = s->mip_most;
	if (r->type != RT_OF_MIPMAPPED || s->mip_most <= 0)
		o.levels = 1, o.mip_linear = false, o.mip_bias = o.mip_least = o.mip_most = 0;
	memcpy(o.border, s->border, sizeof o.border);
	for (int d = 0; d < 3; d++)
		o.outside[d] = r->type == RT_OF_LINEAR ? CPTX_EMU_BORDER : (enum cptx_emu_outside)s->outside[d];
	if (r->type == RT_OF_LINEAR) { /* read by tex1Dfetch alone, which gives 0 beside it */
		memset(o.border, 0, sizeof o.border);
	} else {
		o.linear = s->linear != 0;
		o.normalized = s->normalized != 0;
	}
	return keep(out, &o, r, s);
}

static int surface(uint64_t *out, const rt_resource *r)
{
	cptx_emu_texture_opt o;
	san_texels t;

	if (!r || r->type != RT_OF_ARRAY || !texels_of(r, &t) || !options_of(&t, &o))
		return SAN_VALUE;
	o.surface = true;
	o.levels = 1;
	return keep(out, &o, r, NULL);
}

/* ---- the driver's, as the runtime's ---- */

static bool resource_of(const dr_resource *d, rt_resource *r)
{
	if (!d)
		return false;
	*r = (rt_resource){ .type = d->type };
	switch (d->type) {
	case RT_OF_LINEAR:
		r->res.linear.at = (void *)(uintptr_t)d->res.linear.at, r->res.linear.size = d->res.linear.size;
		return san_driver_format(d->res.linear.format, d->res.linear.channels, &r->res.linear.format);
	case RT_OF_ROWS:
		r->res.rows.at = (void *)(uintptr_t)d->res.rows.at, r->res.rows.width = d->res.rows.width;
		r->res.rows.height = d->res.rows.height, r->res.rows.pitch = d->res.rows.pitch;
		return san_driver_format(d->res.rows.format, d->res.rows.channels, &r->res.rows.format);
	default: r->res.array = d->res.array; return true;
	}
}

static int driver_texture(uint64_t *out, const dr_resource *resource, const dr_sampler *d, const void *view)
{
	rt_resource r;
	san_texels t;

	if (!d || !resource_of(resource, &r) || !texels_of(&r, &t))
		return SAN_VALUE;
	rt_sampler s = { .outside = { d->outside[0], d->outside[1], d->outside[2] },
		             .linear = d->linear,
		             /* integers of 32 bits and numbers are never turned into fractions */
		             .as_fraction = !(d->flags & DR_AS_INTEGER) && t.format.kind != RT_FLOAT && t.format.x < 32,
		             .srgb = (d->flags & DR_SRGB) != 0,
		             .normalized = (d->flags & DR_NORMALIZED) != 0,
		             .mip_linear = d->mip_linear,
		             .mip_bias = d->mip_bias,
		             .mip_least = d->mip_least,
		             .mip_most = d->mip_most };
	memcpy(s.border, d->border, sizeof s.border);
	return texture(out, &r, &s, view);
}

static int driver_surface(uint64_t *out, const dr_resource *resource)
{
	rt_resource r;

	return resource_of(resource, &r) ? surface(out, &r) : SAN_VALUE;
}

static int ask(uint64_t handle, rt_resource *r, rt_sampler *s)
{
	const object *o = objects;

	while (o && o->handle != handle)
		o = o->next;
	if (!o)
		return SAN_VALUE;
	if (r)
		*r = o->resource;
	if (s)
		*s = o->sampler;
	return SAN_OK;
}

CALL(cudaCreateTextureObject, (uint64_t * out, const rt_resource *r, const rt_sampler *s, const void *view),
     texture(out, r, s, view))
CALL(cudaCreateSurfaceObject, (uint64_t * out, const rt_resource *r), surface(out, r))
BOTH(cudaDestroyTextureObject, cuTexObjectDestroy, (uint64_t handle), drop(handle, false))
BOTH(cudaDestroySurfaceObject, cuSurfObjectDestroy, (uint64_t handle), drop(handle, true))
CALL(cudaGetTextureObjectResourceDesc, (rt_resource * r, uint64_t handle), ask(handle, r, NULL))
CALL(cudaGetSurfaceObjectResourceDesc, (rt_resource * r, uint64_t handle), ask(handle, r, NULL))
CALL(cudaGetTextureObjectTextureDesc, (rt_sampler * s, uint64_t handle), ask(handle, NULL, s))
DRIVER(cuTexObjectCreate, (uint64_t * out, const dr_resource *r, const dr_sampler *s, const void *view),
       driver_texture(out, r, s, view))
DRIVER(cuSurfObjectCreate, (uint64_t * out, const dr_resource *r), driver_surface(out, r))
CALL(cudaDeviceGetTexture1DLinearMaxWidth, (size_t * most, const rt_format *f, int number),
     ((void)f, *most = (size_t)1 << 28, number ? SAN_DEVICE : SAN_OK))
