/* SPDX-License-Identifier: MIT */
/* Tensor maps: their rules when they are used, and which bytes a box is. */
#include "emu/async/tma.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/exec/exec.h"
#include "emu/memory/memory.h"

#include <stdio.h>

enum { PADDED = 128 /* elements that padded types come in */ };

bool tma_wrong(const tma_use *u, const char *format, ...)
{
	char what[600];
	va_list ap;

	va_start(ap, format);
	vsnprintf(what, sizeof what, format, ap);
	va_end(ap);
	emu_find(u->w, u->op, (int)u->lane, CPTX_FIND_TENSOR_MAP, "%s", what);
	return false;
}

/* ---- types ---- */

/* What reductions compute with. */
static const uint16_t types[CPTX_TENSOR_TYPES] = {
	[CPTX_TENSOR_U8] = CPTX_U8,        [CPTX_TENSOR_U16] = CPTX_U16,     [CPTX_TENSOR_U32] = CPTX_U32,
	[CPTX_TENSOR_S32] = CPTX_S32,      [CPTX_TENSOR_U64] = CPTX_U64,     [CPTX_TENSOR_S64] = CPTX_S64,
	[CPTX_TENSOR_F16] = CPTX_F16,      [CPTX_TENSOR_F32] = CPTX_F32,     [CPTX_TENSOR_F64] = CPTX_F64,
	[CPTX_TENSOR_BF16] = CPTX_BF16,    [CPTX_TENSOR_F32_FTZ] = CPTX_F32, [CPTX_TENSOR_TF32] = CPTX_F32,
	[CPTX_TENSOR_TF32_FTZ] = CPTX_F32,
};

unsigned tma_arithmetic(enum cptx_tensor_type type) { return types[type]; }

static uint32_t bits_of(const tma_use *u) { return cptx_tensor_type_bits(u->map.type); }
static bool is_padded(const tma_use *u)
{
	return u->map.type == CPTX_TENSOR_16U4_ALIGN16B || u->map.type == CPTX_TENSOR_16U6_ALIGN16B;
}

/* Zeros, or NaN: the same 16 bits for all types (measured on an H200). */
static void set_fill(const tma_use *u, bulk_copy *b)
{
	for (uint32_t i = 0; u->map.nan_fill && i < sizeof b->fill; i++)
		b->fill[i] = i % 2 ? 0x7f : 0xf7;
}

/* ---- fetching ---- */

/* 96B swizzles are made by tensormap.replace only; the driver's rules, which know none, are asked about 128B. */
static bool check_rules(const tma_use *u)
{
	cptx_tensor_map_opt map = u->map;
	cptx_error err = { .code = CPTX_OK };

	if (map.swizzle == CPTX_SWIZZLE_96B) {
		map.swizzle = CPTX_SWIZZLE_128B;
		if (map.interleave || is_padded(u) || map.box[0] * bits_of(u) > 96 * 8)
			return tma_wrong(
				u, "tensor map: swizzle 96B is for boxes of up to 96 bytes along dimension 0, without interleave and "
				   "padded types");
	}
	return cptx_tensor_map_check(&map, &err) || tma_wrong(u, "%s", err.text);
}

static bool check_target(const tma_use *u)
{
	const cptx_target *t = u->w->grid->machine->target;

	if (u->map.swizzle == CPTX_SWIZZLE_96B && t->compute_capability != 103)
		return tma_wrong(u, "tensor map: swizzle 96B, which %s has not; only sm_103a has it", t->name);
	if (t->compute_capability >= 100)
		return true;
	if (u->map.swizzle > CPTX_SWIZZLE_128B)
		return tma_wrong(u, "tensor map: swizzle %s, which %s has not; it has none, 32B, 64B and 128B",
		                 cptx_swizzle_get(u->map.swizzle)->name, t->name);
	if (u->map.type >= CPTX_TENSOR_16U4_ALIGN8B)
		return tma_wrong(u, "tensor map: type %s, which %s has not", cptx_tensor_type_name(u->map.type), t->name);
	return true;
}

static bool check_mode(const tma_use *u)
{
	static const uint8_t need[] = { CPTX_TENSOR_TILED, CPTX_TENSOR_TILED, CPTX_TENSOR_IM2COL, CPTX_TENSOR_IM2COL_W,
		                            CPTX_TENSOR_IM2COL_W_128 };
	static const char *const made[] = { "tiled", "im2col", "im2col::w", "im2col::w::128" };

	if (u->map.mode != need[u->mode])
		return tma_wrong(u, "tensor map: it was made for mode %s; the instruction needs one for %s", made[u->map.mode],
		                 made[need[u->mode]]);
	if (u->map.rank != u->dims)
		return tma_wrong(u, "tensor map: it has %u dimensions; the instruction names %u", u->map.rank, u->dims);
	if (u->mode == TMA_ROWS && (u->map.box[1] != 1 || u->map.interleave))
		return tma_wrong(u, "tensor map: a box of %u rows%s; for gather4 and scatter4 it has one, without interleave",
		                 u->map.box[1], u->map.interleave ? " with interleave" : "");
	return true;
}

/* An H200 stops with an illegal instruction at what is not allowed here. */
static bool check_coordinates(const tma_use *u)
{
	int32_t step = is_padded(u) ? PADDED : (int32_t)(128 / bits_of(u));
	bool from_shared = u->direction == TMA_STORE || u->direction == TMA_REDUCE;
	uint32_t count = u->mode == TMA_ROWS ? 5 : u->dims;

	if (!u->map.interleave && u->coord[0] % step)
		return tma_wrong(u, "coordinate %d along dimension 0; of %s it is a multiple of %d%s", u->coord[0],
		                 cptx_tensor_type_name(u->map.type), step, is_padded(u) ? "" : ", which are 16 bytes");
	for (uint32_t i = 0; from_shared && i < count; i++)
		if (u->coord[i] < 0)
			return tma_wrong(u, "coordinate %d along dimension %u; to store, none may be negative", u->coord[i],
			                 MIN(i, u->dims - 1));
	return true;
}

static bool check_store(const tma_use *u)
{
	if (u->direction != TMA_STORE && u->direction != TMA_REDUCE)
		return true;
	if (u->map.type == CPTX_TENSOR_16U4_ALIGN16B || u->map.swizzle == CPTX_SWIZZLE_128B_ATOM_32B_FLIP_8B)
		return tma_wrong(u, "tensor map: %s%s is for loads only",
		                 u->map.type == CPTX_TENSOR_16U4_ALIGN16B ? "type " : "swizzle ",
		                 u->map.type == CPTX_TENSOR_16U4_ALIGN16B ? "16U4_ALIGN16B" : "128B_ATOM_32B_FLIP_8B");
	for (uint32_t i = 0; u->mode == TMA_IM2COL && i + 2 < u->dims; i++)
		if (u->map.lower[i] < 0 || u->map.upper[i] > 0)
			return tma_wrong(
				u, "tensor map: corners %d and %d along %c; to store, the lower is not below 0 and the upper not above",
				u->map.lower[i], u->map.upper[i], "WHD"[i]);
	return true;
}

static bool find_map(const tma_use *u, const emu_arg *a, emu_place *p)
{
	uint64_t at = emu_address(u->w, a, u->lane);
	bool own = a->space == SPACE_PARAM || (a->space == SPACE_GENERIC && at >= WINDOW_PARAM && at < FUNC_FIRST);
	bool formal = own && (uint32_t)at < u->w->g->frame->f->formals;

	if (a->space == SPACE_GENERIC && at >= WINDOW_SHARED && at < FUNC_FIRST && !formal)
		return tma_wrong(
			u,
			"the tensor map is in %s memory (address 0x%llx); it must be in global or constant memory, or a parameter "
			"of the kernel (in CUDA C: const __grid_constant__)",
			at < WINDOW_LOCAL ? "shared" : "local", (unsigned long long)at);
	if (at % CPTX_TENSOR_MAP_ALIGN)
		return tma_wrong(u, "the tensor map is at address 0x%llx, which must be a multiple of %d", (unsigned long long)at,
		                 CPTX_TENSOR_MAP_ALIGN);
	return emu_resolve(u->w, u->op, u->lane, a->space, at, CPTX_TENSOR_MAP_BYTES, CPTX_TENSOR_MAP_ALIGN, p);
}

bool tma_fetch(tma_use *u, const emu_arg *a)
{
	uint8_t bytes[CPTX_TENSOR_MAP_BYTES];
	cptx_error err = { .code = CPTX_OK };

	if (!find_map(u, a, &u->at) || !tensormap_visible(u, &u->at))
		return false;
	emu_fetch(u->w->cluster, &u->at, bytes, sizeof bytes);
	if (!cptx_tensor_map_unpack(bytes, &u->map, &err))
		return tma_wrong(u, "%s", err.text);
	cptx_tensor_map_strides(&u->map, u->stride);
	return check_rules(u) && check_target(u) && check_mode(u) && check_coordinates(u) && check_store(u);
}

/* ---- boxes ---- */

static bool is_there(const tma_use *u, uint32_t dim, int64_t at) { return at >= 0 && (uint64_t)at < u->map.dim[dim]; }
static uint32_t step_of(const tma_use *u, uint32_t dim) { return MAX(u->map.element_stride[dim], 1u); }
/* Bytes of elements in shared memory. */
static uint32_t inside_bytes(const tma_use *u, uint32_t n) { return is_padded(u) ? n : n * bits_of(u) / 8; }

/* Elements that are outside of the tensor. */
static bool add_none(const tma_use *u, bulk_copy *b, uint32_t bytes)
{
	if (!bytes || u->direction != TMA_LOAD) {
		bulk_skip(b, bytes);
		return true;
	}
	return bulk_add(b, NULL, bytes);
}

/* `bytes` of global memory that are `size` in shared memory. */
static bool add_there(const tma_use *u, bulk_copy *b, uint64_t addr, uint32_t bytes, uint32_t size)
{
	emu_place p;

	if (!emu_resolve(u->w, u->op, u->lane, SPACE_GLOBAL, addr, bytes, 1, &p))
		return false;
	if (p.alloc->is_const && (u->direction == TMA_STORE || u->direction == TMA_REDUCE)) {
		emu_find(u->w, u->op, (int)u->lane, CPTX_FIND_BOUNDS, "a write to constant memory");
		return false;
	}
	return bulk_add(b, &p, size);
}

/*
 * Stores and reductions do 16 bytes at a time: also those behind the last element of a row, up to a multiple of 16 (measured
 * on an H200).  At the end of an allocation that harms nobody: there it is left away.
 */
static bool add_tail(const tma_use *u, bulk_copy *b, uint32_t elements)
{
	uint32_t n = inside_bytes(u, elements), there;
	const bulk_span *s = &b->span[b->nspan - 1];

	if (u->direction == TMA_LOAD || u->direction == TMA_PREFETCH || is_padded(u) || !n)
		return add_none(u, b, n);
	emu_place p = { .p = s->alloc->p, .space = SPACE_GLOBAL, .alloc = s->alloc, .offset = s->offset + s->n };
	p.p += p.offset;
	there = (uint32_t)MIN(MIN((16 - b->bytes % 16) % 16, n), s->alloc->size - p.offset);
	if (there && !bulk_add(b, &p, there))
		return false;
	return add_none(u, b, n - there);
}

/* n elements along dimension 0; at: the coordinates of the first. */
static bool add_elements(const tma_use *u, bulk_copy *b, const int64_t at[5], uint32_t n)
{
	uint64_t addr = u->map.address;
	int64_t first = at[0], end = MIN(first + n, (int64_t)u->map.dim[0]);
	uint32_t left = first < 0 ? (uint32_t)MIN(-first, (int64_t)n) : 0;
	uint32_t there = end > first + left ? (uint32_t)(end - first - left) : 0;

	for (uint32_t i = 1; i < u->map.rank; i++) {
		if (!is_there(u, i, at[i]))
			return add_none(u, b, inside_bytes(u, n));
		addr += (uint64_t)at[i] * u->stride[i];
	}
	addr += (uint64_t)(first + left) * bits_of(u) / 8;
	return add_none(u, b, inside_bytes(u, left)) &&
	       (there ? add_there(u, b, addr, there * bits_of(u) / 8, inside_bytes(u, there)) && add_tail(u, b, n - left - there)
	              : add_none(u, b, inside_bytes(u, n - left)));
}

/*
 * Interleaved: dimension 0 counts pixels of 16 or 32 bytes, one behind the other, and the last dimension but one slices of
 * channels (NC/8DHWC8 is W, H, D, slices, N).  A box has one slice.
 */
static bool add_pixel(const tma_use *u, bulk_copy *b, const int64_t at[5])
{
	uint64_t addr = u->map.address + (uint64_t)at[0] * u->map.interleave;

	for (uint32_t i = 0; i < u->map.rank; i++) {
		if (!is_there(u, i, at[i]))
			return add_none(u, b, u->map.interleave);
		addr += (uint64_t)at[i] * u->stride[i];
	}
	return add_there(u, b, addr, u->map.interleave, u->map.interleave);
}

/* What lies together in shared memory: n elements, which begin a span where they are swizzled, or a pixel. */
static bool add_row(const tma_use *u, bulk_copy *b, const int64_t at[5], uint32_t n)
{
	uint32_t span = u->map.swizzle ? cptx_swizzle_get(u->map.swizzle)->span : 1;

	if (u->map.interleave)
		return add_pixel(u, b, at);
	bulk_skip(b, (span - b->bytes % span) % span);
	return add_elements(u, b, at, n);
}

/* The first dimension that counts rows, and how many there are along each. */
static uint32_t row_dims(const tma_use *u) { return u->map.interleave ? 0 : 1; }
static void count_rows(const tma_use *u, uint32_t count[5])
{
	for (uint32_t k = row_dims(u); k < u->map.rank; k++)
		count[k] = (u->map.box[k] + step_of(u, k) - 1) / step_of(u, k);
	if (u->map.interleave)
		count[u->map.rank - 2] = 1;
}

static bool add_tile(const tma_use *u, bulk_copy *b)
{
	uint32_t first = row_dims(u), count[5] = { 1, 1, 1, 1, 1 }, i[5] = { 0 };

	count_rows(u, count);
	for (;;) {
		int64_t at[5] = { 0 };
		uint32_t k = first;
		for (uint32_t j = 0; j < u->map.rank; j++)
			at[j] = (int64_t)u->coord[j] + (int64_t)i[j] * step_of(u, j);
		if (!add_row(u, b, at, u->map.box[0]))
			return false;
		while (k < u->map.rank && ++i[k] == count[k])
			i[k++] = 0;
		if (k >= u->map.rank)
			return true;
	}
}

static bool add_rows(const tma_use *u, bulk_copy *b)
{
	for (uint32_t i = 0; i < 4; i++) {
		int64_t at[5] = { u->coord[0], u->coord[1 + i] };
		if (!add_row(u, b, at, u->map.box[0]))
			return false;
	}
	return true;
}

/* W first, then H, D, and the next image. */
static void next_pixel(const tma_use *u, int64_t p[5])
{
	uint32_t last = u->map.rank - 1, w = row_dims(u);

	for (uint32_t i = 0; i + 2 < u->map.rank; i++) {
		p[w + i] += step_of(u, w + i);
		if (p[w + i] < (int64_t)u->map.dim[w + i] + u->map.upper[i])
			return;
		p[w + i] = u->map.lower[i];
	}
	p[last] += step_of(u, last);
}

/* Pixels from the coordinates on, through the bounding box. */
static bool add_im2col(const tma_use *u, bulk_copy *b)
{
	uint32_t w = row_dims(u);
	int64_t p[5] = { 0 };

	for (uint32_t i = 0; i < u->map.rank; i++)
		p[i] = u->coord[i];
	for (uint32_t n = 0; n < u->map.pixels; n++) {
		int64_t at[5];
		memcpy(at, p, sizeof at);
		for (uint32_t i = 0; i + 2 < u->map.rank; i++)
			at[w + i] += u->offset[i];
		if (!add_row(u, b, at, u->map.channels))
			return false;
		next_pixel(u, p);
	}
	return true;
}

/*
 * Along W, as the manual words it (no GPU of ours has it): the box moves by the offset; behind its last pixel comes the next
 * image; halo pixels go on behind the last pixel, or of ::128 behind each 32.
 */
static bool add_im2col_w(const tma_use *u, bulk_copy *b)
{
	uint32_t last = u->map.rank - 1, halo = u->offset[0], every = u->mode == TMA_IM2COL_W_128 ? 32 : u->map.pixels;
	uint32_t pixels = u->mode == TMA_IM2COL_W_128 ? 128 : u->map.pixels;
	int64_t at[5] = { 0 }, end = (int64_t)u->map.dim[1] + u->map.upper[0] + u->offset[1];

	for (uint32_t i = 0; i <= last; i++)
		at[i] = u->coord[i];
	at[1] += u->offset[1];
	for (uint32_t n = 0; n < pixels; n++) {
		if (!add_row(u, b, at, u->map.channels))
			return false;
		int64_t behind[5];
		memcpy(behind, at, sizeof behind);
		for (uint32_t h = 0; (n + 1) % every == 0 && h < halo; h++) {
			behind[1] += step_of(u, 1);
			if (!add_row(u, b, behind, u->map.channels))
				return false;
		}
		at[1] += step_of(u, 1);
		if (at[1] >= end) {
			at[1] = u->map.lower[0] + (int64_t)u->offset[1];
			at[last]++;
		}
	}
	return true;
}

bool tma_box(const tma_use *u, bulk_copy *b)
{
	b->swizzle = (uint8_t)u->map.swizzle;
	if (u->at.alloc && !u->at.alloc->is_const)
		b->map = u->at;
	b->to_tf32 = u->direction == TMA_LOAD && (u->map.type == CPTX_TENSOR_TF32 || u->map.type == CPTX_TENSOR_TF32_FTZ);
	if (is_padded(u)) {
		b->spread = 16;
		b->gather = (uint8_t)(bits_of(u) * 2);
	}
	set_fill(u, b);
	switch (u->mode) {
	case TMA_TILE: return add_tile(u, b);
	case TMA_ROWS: return add_rows(u, b);
	case TMA_IM2COL: return add_im2col(u, b);
	default: return add_im2col_w(u, b);
	}
}
