/* SPDX-License-Identifier: MIT */
/* Tensor maps as arguments of `cptx run`: tmap:K,type=bf16,dims=256x512,box=64x64,swizzle=128 ... */
#include "run/args.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORD = 64 };

typedef struct reader {
	run_arg *a;
	char *why;
	size_t size;
} reader;

CPTX_PRINTF_(2, 3)
static bool wrong(const reader *r, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(r->why, r->size, format, ap);
	va_end(ap);
	return false;
}

/* Numbers with x between them; how many, 0 if they are none. */
static uint32_t read_list(const char *text, int64_t *out, uint32_t most)
{
	uint32_t n = 0;
	char *end;

	for (; n < most; text = end + 1) {
		errno = 0;
		out[n++] = strtoll(text, &end, 0);
		if (end == text || errno || (*end && *end != 'x'))
			return 0;
		if (!*end)
			return n;
	}
	return 0;
}

/* Numbers for the dimensions, from dimension `first` on. */
static bool read_sizes(const reader *r, const char *key, const char *text, uint32_t first, uint64_t *out)
{
	int64_t v[CPTX_TENSOR_RANK] = { 0 };
	uint32_t n = read_list(text, v, CPTX_TENSOR_RANK), want = r->a->map.rank - first;

	if (!r->a->map.rank)
		return wrong(r, "dims= must stand before %s=", key);
	if (n != want)
		return wrong(r, "%s=%s: expected %u numbers with x between them, innermost dimension first", key, text, want);
	for (uint32_t i = 0; i < n; i++) {
		if (v[i] <= 0 || (first + i && strcmp(key, "strides") && v[i] > INT64_C(1) << 32))
			return wrong(r, "%s=%s: %lld is no size", key, text, (long long)v[i]);
		out[first + i] = (uint64_t)v[i];
	}
	return true;
}

static bool read_small(const reader *r, const char *key, const char *text, uint32_t *out)
{
	uint64_t v[CPTX_TENSOR_RANK] = { 0 };

	if (!read_sizes(r, key, text, 0, v))
		return false;
	for (uint32_t i = 0; i < r->a->map.rank; i++)
		out[i] = v[i] > UINT32_MAX ? UINT32_MAX : (uint32_t)v[i];
	return true;
}

static bool read_dims(const reader *r, const char *text)
{
	int64_t v[CPTX_TENSOR_RANK];

	r->a->map.rank = read_list(text, v, CPTX_TENSOR_RANK);
	if (!r->a->map.rank)
		return wrong(r, "dims=%s: expected 1 to %d numbers with x between them, innermost first, as in dims=256x512", text,
		             CPTX_TENSOR_RANK);
	return read_sizes(r, "dims", text, 0, r->a->map.dim);
}

static bool read_type(const reader *r, const char *text)
{
	for (unsigned t = 0; t < CPTX_TENSOR_TYPES; t++)
		if (!strcmp(cptx_tensor_type_name((enum cptx_tensor_type)t), text)) {
			r->a->map.type = (enum cptx_tensor_type)t;
			return true;
		}
	return wrong(r, "type=%s: there is no such type of tensors; bf16, f32 and u8 are some", text);
}

/* "128B" or "128". */
static bool read_swizzle(const reader *r, const char *text)
{
	char name[MOST_WORD + 2];

	snprintf(name, sizeof name, "%sB", text);
	r->a->map.swizzle = cptx_swizzle_find(text);
	if (r->a->map.swizzle == CPTX_SWIZZLE_COUNT)
		r->a->map.swizzle = cptx_swizzle_find(name);
	return r->a->map.swizzle != CPTX_SWIZZLE_COUNT ||
	       wrong(r, "swizzle=%s: expected none, 32, 64, 128 or 128B_ATOM_32B", text);
}

/* CHANNELSxPIXELS:LOWER:UPPER, the corners as W, WxH or WxHxD. */
static bool read_im2col(const reader *r, const char *key, const char *text)
{
	cptx_tensor_map_opt *m = &r->a->map;
	char part[3][MOST_WORD] = { "" };
	int64_t v[3][CPTX_TENSOR_RANK] = { { 0 } };
	uint32_t corners;

	m->mode = !strcmp(key, "im2col")     ? CPTX_TENSOR_IM2COL
	          : !strcmp(key, "im2col_w") ? CPTX_TENSOR_IM2COL_W
	                                     : CPTX_TENSOR_IM2COL_W_128;
	corners = m->mode == CPTX_TENSOR_IM2COL && m->rank >= 3 ? m->rank - 2 : 1;
	if (sscanf(text, "%63[^:]:%63[^:]:%63[^:]", part[0], part[1], part[2]) != 3 || read_list(part[0], v[0], 2) != 2 ||
	    read_list(part[1], v[1], 3) != corners || read_list(part[2], v[2], 3) != corners)
		return wrong(r,
		             "%s=%s: expected CHANNELSxPIXELS:LOWER:UPPER behind dims=, with %u number%s for each corner, as in "
		             "64x32:-1x-1:1x1",
		             key, text, corners, corners == 1 ? "" : "s");
	m->channels = (uint32_t)v[0][0];
	m->pixels = (uint32_t)v[0][1];
	for (uint32_t i = 0; i < corners; i++) {
		m->lower[i] = (int32_t)v[1][i];
		m->upper[i] = (int32_t)v[2][i];
	}
	return true;
}

static bool read_number(const reader *r, const char *key, const char *text, uint32_t *out)
{
	int64_t v;

	if (read_list(text, &v, 1) != 1 || v < 0 || v > UINT32_MAX)
		return wrong(r, "%s=%s: expected a number", key, text);
	*out = (uint32_t)v;
	return true;
}

static bool read_pair(const reader *r, const char *key, const char *text)
{
	cptx_tensor_map_opt *m = &r->a->map;

	if (!strcmp(key, "type"))
		return read_type(r, text);
	if (!strcmp(key, "dims"))
		return read_dims(r, text);
	if (!strcmp(key, "box"))
		return read_small(r, key, text, m->box);
	if (!strcmp(key, "estrides"))
		return read_small(r, key, text, m->element_stride);
	if (!strcmp(key, "strides"))
		return read_sizes(r, key, text, 1, m->stride);
	if (!strcmp(key, "swizzle"))
		return read_swizzle(r, text);
	if (!strcmp(key, "interleave"))
		return read_number(r, key, text, &m->interleave);
	if (!strcmp(key, "l2"))
		return read_number(r, key, text, &m->l2);
	if (!strcmp(key, "im2col") || !strcmp(key, "im2col_w") || !strcmp(key, "im2col_w128"))
		return read_im2col(r, key, text);
	if (!strcmp(key, "fill")) {
		m->nan_fill = !strcmp(text, "nan");
		return m->nan_fill || !strcmp(text, "zero") || wrong(r, "fill=%s: expected zero or nan", text);
	}
	return wrong(r,
	             "there is no %s=; type, dims, box, swizzle, strides, estrides, interleave, fill, l2, im2col, im2col_w and "
	             "im2col_w128 are",
	             key);
}

bool run_map_read(run_arg *a, const char *text, char *why, size_t size)
{
	reader r = { a, why, size };
	char *end, key[MOST_WORD], value[MOST_WORD];
	cptx_error err = { 0 };

	a->is_map = true;
	a->over = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != ',')
		return wrong(&r, "expected tmap:K,type=...,dims=...,box=..., K being the number of a buffer argument, from 0");
	for (text = end + 1; *text; text += strcspn(text, ",") + (text[strcspn(text, ",")] != 0)) {
		if (sscanf(text, "%63[^,=]=%63[^,]", key, value) != 2)
			return wrong(&r, "expected words with values, as in type=bf16,dims=256x512,box=64x64");
		if (!read_pair(&r, key, value))
			return false;
	}
	return cptx_tensor_map_check(&a->map, &err) || wrong(&r, "%s", err.text);
}
