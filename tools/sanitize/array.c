/* SPDX-License-Identifier: MIT */
/* Arrays, and copies to and from them. */
#include "array.h"
#include "api.h"

#include <stdlib.h>
#include <string.h>

/* ---- formats ---- */

/* CUarray_format by kind and size of a channel. */
static const struct {
	int driver, kind, bits;
	enum cptx_emu_channel channel;
} formats[] = {
	{ 0x01, RT_UNSIGNED, 8, CPTX_EMU_U8 }, { 0x02, RT_UNSIGNED, 16, CPTX_EMU_U16 }, { 0x03, RT_UNSIGNED, 32, CPTX_EMU_U32 },
	{ 0x08, RT_SIGNED, 8, CPTX_EMU_S8 },   { 0x09, RT_SIGNED, 16, CPTX_EMU_S16 },   { 0x0a, RT_SIGNED, 32, CPTX_EMU_S32 },
	{ 0x10, RT_FLOAT, 16, CPTX_EMU_F16 },  { 0x20, RT_FLOAT, 32, CPTX_EMU_F32 },
};
enum { FORMATS = sizeof formats / sizeof *formats };

static unsigned channels_of(const rt_format *f) { return f->w ? 4 : f->z ? 3 : f->y ? 2 : 1; }

size_t san_texel(const rt_format *f) { return f->x > 0 ? (size_t)f->x / 8 * channels_of(f) : 0; }

bool san_format(const rt_format *f, enum cptx_emu_channel *channel, unsigned *channels)
{
	*channels = channels_of(f);
	const bool even = (*channels == 1 || f->y == f->x) && (*channels != 2 || (!f->z && !f->w)) &&
	                  (*channels != 4 || (f->z == f->x && f->w == f->x));
	for (size_t i = 0; i < FORMATS; i++)
		if (formats[i].kind == f->kind && formats[i].bits == f->x && even && *channels != 3) {
			*channel = formats[i].channel;
			return true;
		}
	san_say("there are no texels of %d, %d, %d and %d bits of kind %d here", f->x, f->y, f->z, f->w, f->kind);
	return false;
}

bool san_driver_format(int format, unsigned channels, rt_format *out)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (formats[i].driver == format && (channels == 1 || channels == 2 || channels == 4)) {
			int bits = formats[i].bits;
			*out = (rt_format){ .x = bits,
				                .y = channels > 1 ? bits : 0,
				                .z = channels > 2 ? bits : 0,
				                .w = channels > 2 ? bits : 0,
				                .kind = formats[i].kind };
			return true;
		}
	san_say("there are no texels of %u channels of CUarray_format 0x%x here", channels, (unsigned)format);
	return false;
}

static int format_of(const rt_format *f)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (formats[i].kind == f->kind && formats[i].bits == f->x)
			return formats[i].driver;
	return 0;
}

/* ---- arrays ---- */

static size_t rows_of(const san_texels *t) { return (t->height ? t->height : 1) * (t->depth ? t->depth : 1); }

/* The level behind a level of a mipmapped array: half as large, and behind its rows. */
static san_texels next_level(const san_texels *t)
{
	san_texels n = *t;

	n.at += t->pitch * rows_of(t);
	n.width = t->width > 1 ? t->width / 2 : 1;
	n.height = t->height > 1 ? t->height / 2 : t->height;
	if (!(t->flags & (RT_ARRAY_LAYERED | RT_ARRAY_CUBE)))
		n.depth = t->depth > 1 ? t->depth / 2 : t->depth;
	n.pitch = n.width * san_texel(&t->format);
	return n;
}

static int place(san_array *a, unsigned levels)
{
	san_texels t = a->t;
	size_t bytes = 0;

	for (unsigned i = 0; i < levels; i++, t = next_level(&t))
		bytes += t.pitch * rows_of(&t);
	int e = san_alloc(SAN_DEVICE_MEMORY, bytes, &a->t.at);
	if (e || !(a->level = (san_array *)calloc(levels, sizeof *a->level)))
		return e ? e : SAN_MEMORY;
	a->t.levels = levels;
	t = a->t;
	for (unsigned i = 0; i < levels; i++, t = next_level(&t)) {
		a->level[i].t = t;
		a->level[i].t.levels = 1;
	}
	return SAN_OK;
}

static int array_new(san_array **out, const rt_format *f, rt_extent x, unsigned levels, unsigned flags)
{
	const size_t most = (size_t)1 << 20;
	enum cptx_emu_channel channel;
	unsigned channels;

	if (!out || !f || !x.width || x.width > most || x.height > most || x.depth > most || !levels || levels > 21 ||
	    !san_format(f, &channel, &channels))
		return SAN_VALUE;
	if (flags & RT_ARRAY_CUBE && (x.height != x.width || !x.depth || x.depth % 6))
		return SAN_VALUE;
	if (rows_of(&(san_texels){ .height = x.height, .depth = x.depth }) > SIZE_MAX / 4 / (x.width * san_texel(f)))
		return SAN_MEMORY;
	san_array *a = (san_array *)calloc(1, sizeof *a);
	if (!a)
		return SAN_MEMORY;
	a->t = (san_texels){
		.format = *f, .width = x.width, .height = x.height, .depth = x.depth, .flags = flags, .pitch = x.width * san_texel(f)
	};
	int e = place(a, levels);
	if (e) {
		san_free(a->t.at, false);
		free(a);
		return e;
	}
	a->next = san.arrays;
	san.arrays = a;
	*out = a;
	return SAN_OK;
}

bool san_array_lives(const san_array *array)
{
	for (const san_array *a = san.arrays; a; a = a->next)
		if (a == array || (array >= a->level && array < a->level + a->t.levels))
			return true;
	san_say("%p is no array, or one that was freed", (const void *)array);
	return false;
}

static int array_free(san_array *array)
{
	san_array **p = &san.arrays;

	while (*p && *p != array)
		p = &(*p)->next;
	if (!array)
		return SAN_OK;
	if (!*p)
		return SAN_VALUE;
	*p = array->next;
	int e = san_free(array->t.at, false);
	free(array->level);
	free(array);
	return e;
}

static int array_info(rt_format *f, rt_extent *x, unsigned *flags, const san_array *a)
{
	if (!san_array_lives(a))
		return SAN_VALUE;
	if (f)
		*f = a->t.format;
	if (x)
		*x = (rt_extent){ a->t.width, a->t.height, a->t.depth };
	if (flags)
		*flags = a->t.flags;
	return SAN_OK;
}

static int level_of(san_array **out, const san_array *a, unsigned level)
{
	if (!san_array_lives(a) || !a->level || level >= a->t.levels)
		return SAN_VALUE;
	*out = &a->level[level];
	return SAN_OK;
}

static int driver_new(san_array **out, const dr_array3d *d, unsigned levels)
{
	rt_format f;

	if (!d || !san_driver_format(d->format, d->channels, &f))
		return SAN_VALUE;
	return array_new(out, &f, (rt_extent){ d->width, d->height, d->depth }, levels, d->flags);
}

static int driver_info(dr_array3d *out, const san_array *a)
{
	if (!san_array_lives(a))
		return SAN_VALUE;
	*out = (dr_array3d){ .width = a->t.width,
		                 .height = a->t.height,
		                 .depth = a->t.depth,
		                 .format = format_of(&a->t.format),
		                 .channels = channels_of(&a->t.format),
		                 .flags = a->t.flags };
	return SAN_OK;
}

static int driver_new2d(san_array **out, const dr_array *d)
{
	return !d ? SAN_VALUE
	          : driver_new(
					out,
					&(dr_array3d){ .width = d->width, .height = d->height, .format = d->format, .channels = d->channels },
					1);
}

static int driver_info2d(dr_array *out, const san_array *a)
{
	dr_array3d d;
	int e = driver_info(&d, a);

	if (!e)
		*out = (dr_array){ .width = d.width, .height = d.height, .format = d.format, .channels = d.channels };
	return e;
}

PLAIN(rt_format, cudaCreateChannelDesc, (int x, int y, int z, int w, int kind), return ((rt_format){ x, y, z, w, kind });)
CALL(cudaMallocArray, (san_array * *out, const rt_format *f, size_t width, size_t height, unsigned flags),
     array_new(out, f, (rt_extent){ width, height, 0 }, 1, flags))
CALL(cudaMalloc3DArray, (san_array * *out, const rt_format *f, rt_extent x, unsigned flags), array_new(out, f, x, 1, flags))
CALL(cudaMallocMipmappedArray, (san_array * *out, const rt_format *f, rt_extent x, unsigned levels, unsigned flags),
     array_new(out, f, x, levels, flags))
CALL(cudaGetMipmappedArrayLevel, (san_array * *out, const san_array *a, unsigned level), level_of(out, a, level))
CALL(cudaFreeArray, (san_array * a), array_free(a))
CALL(cudaFreeMipmappedArray, (san_array * a), array_free(a))
CALL(cudaArrayGetInfo, (rt_format * f, rt_extent *x, unsigned *flags, const san_array *a), array_info(f, x, flags, a))
CALL(cudaGetChannelDesc, (rt_format * f, const san_array *a), array_info(f, NULL, NULL, a))
DRIVER(cuArrayCreate_v2, (san_array * *out, const dr_array *d), driver_new2d(out, d))
DRIVER(cuArray3DCreate_v2, (san_array * *out, const dr_array3d *d), driver_new(out, d, 1))
DRIVER(cuMipmappedArrayCreate, (san_array * *out, const dr_array3d *d, unsigned levels), driver_new(out, d, levels))
DRIVER(cuMipmappedArrayGetLevel, (san_array * *out, const san_array *a, unsigned level), level_of(out, a, level))
DRIVER(cuArrayDestroy, (san_array * a), array_free(a))
DRIVER(cuMipmappedArrayDestroy, (san_array * a), array_free(a))
DRIVER(cuArrayGetDescriptor_v2, (dr_array * out, const san_array *a), driver_info2d(out, a))
DRIVER(cuArray3DGetDescriptor_v2, (dr_array3d * out, const san_array *a), driver_info(out, a))

/* ---- copies ---- */

/* A side of a copy: rows of memory, x in bytes. */
typedef struct side {
	char *at;
	size_t pitch, rows; /* rows from slice to slice */
} side;

/* The side of an array, from a place on; false, and said: the copy leaves it. */
static bool side_of(side *s, const san_array *a, size_t x, size_t y, size_t z, size_t width, size_t height, size_t depth)
{
	if (!san_array_lives(a))
		return false;
	size_t rows = a->t.height ? a->t.height : 1, slices = a->t.depth ? a->t.depth : 1;
	if (x > a->t.pitch || width > a->t.pitch - x || y > rows || height > rows - y || z > slices || depth > slices - z) {
		san_say(
			"a copy of %zu bytes, %zu rows, %zu slices from (%zu, %zu, %zu) on leaves its array of %zu bytes, %zu rows, %zu "
			"slices",
			width, height, depth, x, y, z, a->t.pitch, rows, slices);
		return false;
	}
	*s = (side){ .at = (char *)(uintptr_t)a->t.at + (z * rows + y) * a->t.pitch + x, .pitch = a->t.pitch, .rows = rows };
	return true;
}

static int copy_slices(side dst, side src, size_t width, size_t height, size_t depth, int kind, san_stream *s)
{
	return san_copy_rows(&(san_rows){ .dst = dst.at,
	                                  .src = src.at,
	                                  .dst_pitch = dst.pitch,
	                                  .src_pitch = src.pitch,
	                                  .width = width,
	                                  .height = depth ? height : 0,
	                                  .kind = kind,
	                                  .more = depth ? depth - 1 : 0,
	                                  .dst_slice = dst.rows * dst.pitch,
	                                  .src_slice = src.rows * src.pitch },
	                     s);
}

/* Whether a copy at a pointer, with pitch and rows from slice to slice, ends at bytes that size_t can count. */
static bool is_counted(rt_pitched p, rt_pos at, rt_extent x)
{
	size_t z, y, n;

	return !__builtin_add_overflow(at.z, x.depth, &z) && !__builtin_mul_overflow(z, p.ysize, &n) &&
	       !__builtin_add_overflow(at.y, x.height, &y) && !__builtin_add_overflow(n, y, &n) &&
	       !__builtin_mul_overflow(n, p.pitch, &n) && !__builtin_add_overflow(n, at.x, &n) &&
	       !__builtin_add_overflow(n, x.width, &n);
}

/* A program's pointer and positions are numbers: NULL where there is an array. */
static side pitched_side(rt_pitched p, rt_pos at)
{
	const uintptr_t first = (uintptr_t)p.ptr + (at.z * p.ysize + at.y) * p.pitch + at.x;

	return (side){ .at = (char *)first, .pitch = p.pitch, .rows = p.ysize };
}

/* Positions and the width count texels where there is an array. */
int san_copy3d(const rt_copy3d *c, san_stream *s)
{
	const san_array *from = (const san_array *)c->src_array, *to = (const san_array *)c->dst_array;
	const rt_format *f = from && san_array_lives(from) ? &from->t.format : to && san_array_lives(to) ? &to->t.format : NULL;
	const size_t texel = f ? san_texel(f) : 1, most = SIZE_MAX / texel, h = c->extent.height, d = c->extent.depth;
	const size_t width = c->extent.width * texel; /* which is looked at only where it is no more than `most` texels */
	if (c->extent.width > most || c->src_pos.x > most || c->dst_pos.x > most ||
	    (!from && !is_counted(c->src, c->src_pos, (rt_extent){ width, h, d })) ||
	    (!to && !is_counted(c->dst, c->dst_pos, (rt_extent){ width, h, d }))) {
		san_say("a copy of %zu by %zu by %zu elements has more bytes than there are", c->extent.width, c->extent.height,
		        c->extent.depth);
		return SAN_VALUE;
	}
	side dst = pitched_side(c->dst, c->dst_pos), src = pitched_side(c->src, c->src_pos);

	if (from && !side_of(&src, from, c->src_pos.x * texel, c->src_pos.y, c->src_pos.z, width, h, d))
		return SAN_VALUE;
	if (to && !side_of(&dst, to, c->dst_pos.x * texel, c->dst_pos.y, c->dst_pos.z, width, h, d))
		return SAN_VALUE;
	return copy_slices(dst, src, width, h, d, c->kind, s);
}

/* A copy of rows, of an array on one side or both (NULL: at `dst` or `src`). */
typedef struct rows {
	const san_array *to, *from;
	size_t x, y, from_x, from_y;
	void *dst;
	const void *src;
	size_t pitch, width, height;
	int kind;
} rows;

static int copy_rows(rows c, san_stream *s)
{
	side dst = { .at = (char *)c.dst, .pitch = c.pitch }, src = { .at = (char *)(uintptr_t)c.src, .pitch = c.pitch };

	if (c.to && !side_of(&dst, c.to, c.x, c.y, 0, c.width, c.height, 1))
		return SAN_VALUE;
	if (c.from && !side_of(&src, c.from, c.from_x, c.from_y, 0, c.width, c.height, 1))
		return SAN_VALUE;
	return copy_slices(dst, src, c.width, c.height, 1, c.kind, s);
}

/* Bytes that go on in the next row of the array. */
static int copy_bytes(const san_array *a, size_t x, size_t y, void *p, size_t size, bool to, int kind, san_stream *s)
{
	int e = san_array_lives(a) ? SAN_OK : SAN_VALUE;

	while (size && !e) {
		size_t left = x < a->t.pitch ? a->t.pitch - x : 0, n = size < left ? size : left;
		rows c = { .width = n, .height = 1, .kind = kind, .pitch = n, .x = x, .y = y, .from_x = x, .from_y = y };
		if (to)
			c.to = a, c.src = p;
		else
			c.from = a, c.dst = p;
		e = n ? copy_rows(c, s) : SAN_VALUE;
		p = (char *)p + n;
		size -= n, x = 0, y++;
	}
	return e;
}

#define TO_ARRAY san_array *a, size_t x, size_t y, const void *src, size_t pitch, size_t width, size_t height, int kind
#define TO_ROWS                                                                                                             \
	((rows){ .to = a, .x = x, .y = y, .src = src, .pitch = pitch, .width = width, .height = height, .kind = kind })
CALL(cudaMemcpy2DToArray, (TO_ARRAY), copy_rows(TO_ROWS, NULL))
CALL(cudaMemcpy2DToArrayAsync, (TO_ARRAY, san_stream *s), copy_rows(TO_ROWS, san_stream_of(s)))
#define FROM_ARRAY void *dst, size_t pitch, const san_array *a, size_t x, size_t y, size_t width, size_t height, int kind
#define FROM_ROWS                                                                                                           \
	((rows){                                                                                                                \
		.from = a, .from_x = x, .from_y = y, .dst = dst, .pitch = pitch, .width = width, .height = height, .kind = kind })
CALL(cudaMemcpy2DFromArray, (FROM_ARRAY), copy_rows(FROM_ROWS, NULL))
CALL(cudaMemcpy2DFromArrayAsync, (FROM_ARRAY, san_stream *s), copy_rows(FROM_ROWS, san_stream_of(s)))
CALL(cudaMemcpy2DArrayToArray,
     (san_array * a, size_t x, size_t y, const san_array *from, size_t from_x, size_t from_y, size_t width, size_t height,
      int kind),
     copy_rows((rows){ .to = a,
                       .from = from,
                       .x = x,
                       .y = y,
                       .from_x = from_x,
                       .from_y = from_y,
                       .width = width,
                       .height = height,
                       .kind = kind },
               NULL))
#define WHOLE_TO san_array *a, size_t x, size_t y, void *src, size_t size, int kind
#define WHOLE_FROM void *dst, san_array *a, size_t x, size_t y, size_t size, int kind
CALL(cudaMemcpyToArray, (WHOLE_TO), copy_bytes(a, x, y, src, size, true, kind, NULL))
CALL(cudaMemcpyToArrayAsync, (WHOLE_TO, san_stream *s), copy_bytes(a, x, y, src, size, true, kind, san_stream_of(s)))
CALL(cudaMemcpyFromArray, (WHOLE_FROM), copy_bytes(a, x, y, dst, size, false, kind, NULL))
CALL(cudaMemcpyFromArrayAsync, (WHOLE_FROM, san_stream *s), copy_bytes(a, x, y, dst, size, false, kind, san_stream_of(s)))
DRIVER(cuMemcpyHtoA_v2, (san_array * a, size_t x, void *src, size_t size),
       copy_bytes(a, x, 0, src, size, true, RT_DEFAULT, NULL))
DRIVER(cuMemcpyAtoH_v2, (void *dst, san_array *a, size_t x, size_t size),
       copy_bytes(a, x, 0, dst, size, false, RT_DEFAULT, NULL))

/* ---- copies of the driver ---- */

static bool driver_side(side *s, const dr_side3d *d, size_t width, size_t height, size_t depth)
{
	if (d->type == DR_ARRAY)
		return side_of(s, d->array, d->x, d->y, d->z, width, height, depth);
	const rt_pitched memory = { .ptr = d->type == DR_HOST ? (void *)(uintptr_t)d->host : (void *)(uintptr_t)d->device,
		                        .pitch = d->pitch ? d->pitch : width,
		                        .ysize = d->height ? d->height : height };
	const rt_pos at = { d->x, d->y, d->z };

	*s = pitched_side(memory, at);
	return (d->type == DR_HOST || d->type == DR_DEVICE || d->type == DR_UNIFIED) &&
	       is_counted(memory, at, (rt_extent){ width, height, depth });
}

int san_driver_copy3d(const dr_copy3d *c, san_stream *s)
{
	side src, dst;

	if (!c || !driver_side(&src, &c->src, c->width, c->height, c->depth) ||
	    !driver_side(&dst, &c->dst, c->width, c->height, c->depth))
		return SAN_VALUE;
	return copy_slices(dst, src, c->width, c->height, c->depth, RT_DEFAULT, s);
}

static dr_side3d flat(const dr_side2d *s)
{
	return (dr_side3d){
		.x = s->x, .y = s->y, .type = s->type, .host = s->host, .device = s->device, .array = s->array, .pitch = s->pitch
	};
}

static int driver_copy2d(const dr_copy2d *c, san_stream *s)
{
	const dr_copy3d d = { .src = flat(&c->src), .dst = flat(&c->dst), .width = c->width, .height = c->height, .depth = 1 };

	return san_driver_copy3d(&d, s);
}

DRIVER(cuMemcpy3D_v2, (const dr_copy3d *c), san_driver_copy3d(c, NULL))
DRIVER(cuMemcpy3DAsync_v2, (const dr_copy3d *c, san_stream *s), san_driver_copy3d(c, san_stream_of(s)))
DRIVER(cuMemcpy2D_v2, (const dr_copy2d *c), driver_copy2d(c, NULL))
DRIVER(cuMemcpy2DUnaligned_v2, (const dr_copy2d *c), driver_copy2d(c, NULL))
DRIVER(cuMemcpy2DAsync_v2, (const dr_copy2d *c, san_stream *s), driver_copy2d(c, san_stream_of(s)))
