/* SPDX-License-Identifier: MIT */
/* Descriptions of tensor maps: their rules, and the bytes that cptx uses where there is no driver. */
#include "base/options.h"
#include <cptx/tensor_map.h>

#include "layout/layout.h"

static const struct type {
	const char *name;
	uint8_t bits;
	bool is_float, padded;
} types[CPTX_TENSOR_TYPES] = {
	[CPTX_TENSOR_U8] = { "u8", 8, false, false },
	[CPTX_TENSOR_U16] = { "u16", 16, false, false },
	[CPTX_TENSOR_U32] = { "u32", 32, false, false },
	[CPTX_TENSOR_S32] = { "s32", 32, false, false },
	[CPTX_TENSOR_U64] = { "u64", 64, false, false },
	[CPTX_TENSOR_S64] = { "s64", 64, false, false },
	[CPTX_TENSOR_F16] = { "f16", 16, true, false },
	[CPTX_TENSOR_F32] = { "f32", 32, true, false },
	[CPTX_TENSOR_F64] = { "f64", 64, true, false },
	[CPTX_TENSOR_BF16] = { "bf16", 16, true, false },
	[CPTX_TENSOR_F32_FTZ] = { "f32_ftz", 32, true, false },
	[CPTX_TENSOR_TF32] = { "tf32", 32, true, false },
	[CPTX_TENSOR_TF32_FTZ] = { "tf32_ftz", 32, true, false },
	[CPTX_TENSOR_16U4_ALIGN8B] = { "16U4_ALIGN8B", 4, false, false },
	[CPTX_TENSOR_16U4_ALIGN16B] = { "16U4_ALIGN16B", 4, false, true },
	[CPTX_TENSOR_16U6_ALIGN16B] = { "16U6_ALIGN16B", 6, false, true },
};

const char *cptx_tensor_type_name(enum cptx_tensor_type t) { return (unsigned)t < CPTX_TENSOR_TYPES ? types[t].name : "?"; }
uint32_t cptx_tensor_type_bits(enum cptx_tensor_type t) { return (unsigned)t < CPTX_TENSOR_TYPES ? types[t].bits : 0; }

#define RULE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "tensor map: " __VA_ARGS__);                                         \
	while (0)

typedef unsigned long long ull;
enum { MOST_BOX = 256, MOST_PIXELS = 1024, PADDED_BOX = 128 };
static const uint64_t most_dim = (uint64_t)1 << 32, stride_end = (uint64_t)1 << 40;
static const uint64_t beyond = UINT64_MAX / 32 * 32; /* UINT64_MAX, rounded down to an alignment of 32 */

static bool is_wide(const cptx_tensor_map_opt *o)
{
	return o->mode == CPTX_TENSOR_IM2COL_W || o->mode == CPTX_TENSOR_IM2COL_W_128;
}
static uint32_t element_stride(const cptx_tensor_map_opt *o, uint32_t i)
{
	return o->element_stride[i] ? o->element_stride[i] : 1;
}

/* Bytes of n elements of dimension 0 in global memory. */
static uint64_t bytes_of(const cptx_tensor_map_opt *o, uint64_t n) { return (n * cptx_tensor_type_bits(o->type) + 7) / 8; }
/* Bytes of n elements of dimension 0 in shared memory. */
static uint32_t smem_bytes(const cptx_tensor_map_opt *o, uint32_t n)
{
	return types[o->type].padded ? n : (uint32_t)bytes_of(o, n);
}
static uint32_t alignment(const cptx_tensor_map_opt *o) { return o->interleave == 32 || types[o->type].padded ? 32 : 16; }

static void strides_of(const cptx_tensor_map_opt *o, uint64_t stride[CPTX_TENSOR_RANK])
{
	memset(stride, 0, CPTX_TENSOR_RANK * sizeof *stride);
	for (uint32_t i = 1; i < CPTX_TENSOR_RANK; i++)
		stride[i] = i >= o->rank                                                  ? 0
		            : o->stride[i]                                                ? o->stride[i]
		            : i == 1                                                      ? bytes_of(o, o->dim[0])
		            : stride[i - 1] && o->dim[i - 1] > UINT64_MAX / stride[i - 1] ? beyond
		                                                                          : stride[i - 1] * o->dim[i - 1];
}

void cptx_tensor_map_strides(const cptx_tensor_map_opt *opt, uint64_t stride[CPTX_TENSOR_RANK])
{
	cptx_tensor_map_opt o;

	OPTIONS_READ(cptx_tensor_map_opt, &o, opt, NOWHERE, NULL);
	if (stride)
		strides_of(&o, stride);
}

static bool check_choices(const cptx_tensor_map_opt *o, cptx_error *err)
{
	bool grouped = o->interleave || o->mode != CPTX_TENSOR_TILED;

	RULE((unsigned)o->mode < CPTX_TENSOR_MODES, "there is no mode %u", (unsigned)o->mode);
	RULE((unsigned)o->type < CPTX_TENSOR_TYPES, "there is no type %u", (unsigned)o->type);
	RULE(o->interleave == 0 || o->interleave == 16 || o->interleave == 32, "interleave %u; it is 0, 16 or 32 bytes",
	     o->interleave);
	RULE(!o->interleave || !is_wide(o), "interleave %u with im2col along W; it must be 0", o->interleave);
	RULE(o->rank >= (grouped ? 3 : 1) && o->rank <= CPTX_TENSOR_RANK, "rank %u; it is %u to 5%s", o->rank, grouped ? 3 : 1,
	     grouped ? " with im2col or interleave" : "");
	RULE(o->l2 == 0 || o->l2 == 64 || o->l2 == 128 || o->l2 == 256, "L2 fetches of %u bytes; they are 0, 64, 128 or 256",
	     o->l2);
	RULE(!o->nan_fill || types[o->type].is_float, "NaN as fill of type %s; only floating point types have one",
	     types[o->type].name);
	RULE(!o->interleave || o->type != CPTX_TENSOR_16U6_ALIGN16B, "interleave %u with 16U6_ALIGN16B; it must be 0",
	     o->interleave);
	return true;
}

static bool check_memory(const cptx_tensor_map_opt *o, cptx_error *err)
{
	uint32_t align = alignment(o), group = types[o->type].padded ? 128 : types[o->type].bits == 4 ? 2 : 1;
	uint64_t stride[CPTX_TENSOR_RANK];
	const char *why = align == 16 ? "" : o->interleave == 32 ? " with interleave 32" : " with padded types";

	RULE(o->address % align == 0, "address 0x%llx; it is a multiple of %u%s", (ull)o->address, align, why);
	for (uint32_t i = 0; i < o->rank; i++)
		RULE(o->dim[i] && o->dim[i] <= most_dim, "dimension %u of %llu elements; it has 1 to 2^32", i, (ull)o->dim[i]);
	RULE(o->dim[0] % group == 0, "dimension 0 of %llu elements; of %s it is a multiple of %u (nearest: %llu)",
	     (ull)o->dim[0], types[o->type].name, group, (ull)round_up(o->dim[0], group));
	strides_of(o, stride);
	for (uint32_t i = 1; i < o->rank; i++) {
		RULE(stride[i] % align == 0, "stride %llu of dimension %u%s; it is a multiple of %u bytes%s (nearest: %llu)",
		     (ull)stride[i], i, o->stride[i] ? "" : " (packed)", align, why, (ull)round_up(stride[i], align));
		RULE(stride[i] < stride_end, "stride %llu of dimension %u; it is below 2^40", (ull)stride[i], i);
	}
	return true;
}

/* Checks the rows that are written to shared memory, n elements of dimension 0 each. */
static bool check_inner(const cptx_tensor_map_opt *o, const char *what, uint32_t n, cptx_error *err)
{
	const cptx_swizzle_info *w = cptx_swizzle_get(o->swizzle);
	const struct type *t = &types[o->type];
	uint32_t bytes = smem_bytes(o, n), bits = t->bits;

	RULE(w && o->swizzle != CPTX_SWIZZLE_96B, "swizzle %s; %s", w ? w->name : "?",
	     w ? "the driver has none of 96B, only tensormap.replace can set it" : "there is no such swizzle");
	RULE(n >= 1 && n <= MOST_BOX, "%s of %u elements along dimension 0; it is 1 to %u", what, n, MOST_BOX);
	RULE(!t->padded || n == PADDED_BOX, "%s of %u elements of %s along dimension 0; it is always %u", what, n, t->name,
	     PADDED_BOX);
	RULE(o->interleave != 32 || o->swizzle == CPTX_SWIZZLE_32B, "swizzle %s with interleave 32; it must be 32B", w->name);
	RULE(n * bits % 128 == 0 || t->padded,
	     "%s of %u elements of %s along dimension 0 is %u bytes; it is a multiple of 16 (nearest: %u elements)", what, n,
	     t->name, bytes, (uint32_t)round_up(n * bits, 128) / bits);
	RULE(!o->swizzle || o->interleave || bytes <= w->span,
	     "%s of %u bytes along dimension 0 with swizzle %s; it is at most %u bytes (%u elements)", what, bytes, w->name,
	     w->span, t->padded ? w->span : w->span * 8 / bits);
	RULE(!is_wide(o) || o->swizzle == CPTX_SWIZZLE_64B || o->swizzle == CPTX_SWIZZLE_128B ||
	         o->swizzle == CPTX_SWIZZLE_128B_ATOM_32B,
	     "swizzle %s with im2col along W; it is 64B, 128B or 128B_ATOM_32B", w->name);
	RULE(!t->padded || o->swizzle == CPTX_SWIZZLE_NONE || o->swizzle == CPTX_SWIZZLE_128B ||
	         o->swizzle == CPTX_SWIZZLE_128B_ATOM_32B ||
	         (o->swizzle == CPTX_SWIZZLE_128B_ATOM_64B && o->type == CPTX_TENSOR_16U6_ALIGN16B),
	     "swizzle %s of %s; it is none, 128B or 128B_ATOM_32B%s", w->name, t->name,
	     o->type == CPTX_TENSOR_16U6_ALIGN16B ? ", to store also 128B_ATOM_64B" : "");
	return true;
}

static bool check_im2col(const cptx_tensor_map_opt *o, cptx_error *err)
{
	uint32_t n = is_wide(o) ? 1 : o->rank - 2, w = o->interleave ? 0 : 1; /* n: number of corners; w: the dimension W */
	int32_t end = is_wide(o) || o->rank == 3 ? 32768 : o->rank == 4 ? 128 : 16;

	RULE(o->mode == CPTX_TENSOR_IM2COL_W_128 || (o->pixels >= 1 && o->pixels <= MOST_PIXELS), "%u pixels; they are 1 to %u",
	     o->pixels, MOST_PIXELS);
	for (uint32_t i = 0; i < n; i++) {
		RULE(o->lower[i] >= -end && o->lower[i] < end, "lower corner %d along %c; of rank %u it is %d to %d", o->lower[i],
		     "WHD"[i], o -> rank, -end, end - 1);
		RULE(o->upper[i] >= -end && o->upper[i] < end, "upper corner %d along %c; of rank %u it is %d to %d", o->upper[i],
		     "WHD"[i], o -> rank, -end, end - 1);
		RULE((int64_t)o->dim[w + i] + o->upper[i] > o->lower[i], "corners %d and %d along %c leave nothing of %llu pixels",
		     o->lower[i], o->upper[i], "WHD"[i], (ull)o -> dim[w + i]);
	}
	return true;
}

static bool check(const cptx_tensor_map_opt *o, cptx_error *err)
{
	if (!check_choices(o, err) || !check_memory(o, err))
		return false;
	for (uint32_t i = 0; i < o->rank; i++)
		RULE(element_stride(o, i) <= 8, "element stride %u of dimension %u; it is 1 to 8", o->element_stride[i], i);
	if (o->mode != CPTX_TENSOR_TILED)
		return check_inner(o, "channels", o->channels, err) && check_im2col(o, err);
	for (uint32_t i = 1; i < o->rank; i++)
		RULE(o->box[i] >= 1 && o->box[i] <= MOST_BOX, "box of %u elements along dimension %u; it is 1 to %u", o->box[i], i,
		     MOST_BOX);
	return check_inner(o, "box", o->box[0], err);
}

/* Whether a description is there and its options could be read into *o. */
static bool is_read(cptx_tensor_map_opt *o, const cptx_tensor_map_opt *given, const char *function, cptx_error *err)
{
	return (given || error_null(function, "description", NOWHERE, err)) &&
	       OPTIONS_READ(cptx_tensor_map_opt, o, given, NOWHERE, err);
}

bool cptx_tensor_map_check(const cptx_tensor_map_opt *opt, cptx_error *err)
{
	cptx_tensor_map_opt o;

	return is_read(&o, opt, __func__, err) && check(&o, err);
}

/* A window as high as the box, and rows that bring it to its place; `front`: rows that it begins in front of the matrix. */
static bool make_window(cptx_tensor_map_opt *map, cptx_tensor_map_opt *o, uint32_t front, cptx_error *err)
{
	uint64_t stride[CPTX_TENSOR_RANK];

	RULE(o->rank == 2 && o->mode == CPTX_TENSOR_TILED && o->box[1] && o->dim[1] + front <= most_dim,
	     "a map of %u dimensions to be cut along the second; it is tiled and has two, the second below 2^32 - 256", o->rank);
	strides_of(o, stride);
	o->rank = 3;
	o->stride[1] = o->stride[2] = stride[1];
	o->dim[2] = o->dim[1] + front, o->dim[1] = o->box[1], o->box[2] = 1;
	o->address -= front * stride[1];
	OPTIONS_WRITE(cptx_tensor_map_opt, map, o);
	return check(o, err);
}

bool cptx_tensor_map_cut(cptx_tensor_map_opt *map, cptx_error *err)
{
	cptx_tensor_map_opt o;

	return is_read(&o, map, __func__, err) && make_window(map, &o, o.box[1], err);
}

bool cptx_tensor_map_cut_load(cptx_tensor_map_opt *map, cptx_error *err)
{
	cptx_tensor_map_opt o;

	return is_read(&o, map, __func__, err) && make_window(map, &o, 0, err);
}

/* Bytes of a row of a box in shared memory; row_count is the number of its rows. */
static uint32_t row_bytes(const cptx_tensor_map_opt *o)
{
	return o->interleave ? o->interleave : smem_bytes(o, o->mode == CPTX_TENSOR_TILED ? o->box[0] : o->channels);
}

static uint64_t row_count(const cptx_tensor_map_opt *o)
{
	uint64_t n = 1;

	if (o->mode != CPTX_TENSOR_TILED)
		return o->mode == CPTX_TENSOR_IM2COL_W_128 ? 128 : o->pixels;
	for (uint32_t i = o->interleave ? 0 : 1; i < o->rank; i++)
		if (!o->interleave || i != o->rank - 2) /* a box has one slice of channels */
			n *= (o->box[i] + element_stride(o, i) - 1) / element_stride(o, i);
	return n;
}

uint32_t cptx_tensor_map_box_bytes(const cptx_tensor_map_opt *opt)
{
	cptx_tensor_map_opt o;

	if (!is_read(&o, opt, __func__, NULL) || !check(&o, NULL))
		return UINT32_MAX;
	uint64_t row = row_bytes(&o);
	return (uint32_t)MIN((types[o.type].padded ? bytes_of(&o, row) : row) * row_count(&o), UINT32_MAX);
}

uint32_t cptx_tensor_map_box_pitch(const cptx_tensor_map_opt *opt)
{
	cptx_tensor_map_opt o;

	if (!is_read(&o, opt, __func__, NULL) || !check(&o, NULL))
		return UINT32_MAX;
	return (uint32_t)round_up(row_bytes(&o), o.swizzle && !o.interleave ? cptx_swizzle_get(o.swizzle)->span : 1);
}

/* ---- bytes ---- */

static const char magic[8] = { 'c', 'p', 't', 'x', 't', 'm', 'a', 'p' };
enum {
	AT_CHOICES = 8,
	AT_ADDRESS = 16,
	AT_DIM = 24,
	AT_STRIDE = 49,
	AT_BOX = 69,
	AT_STEP = 79,
	AT_CORNER = 84,
	AT_PIXELS = 96,
	AT_END = 100
};

/* Writes v to n bytes, little-endian; false if v has no room in them. */
static bool put(uint8_t *p, uint32_t n, uint64_t v)
{
	while (n--) {
		*p++ = (uint8_t)v;
		v >>= 8;
	}
	return !v;
}

static uint64_t get(const uint8_t *p, uint32_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

bool cptx_tensor_map_pack(const cptx_tensor_map_opt *opt, uint8_t b[CPTX_TENSOR_MAP_BYTES], cptx_error *err)
{
	cptx_tensor_map_opt given, *o = &given;

	if (!is_read(o, opt, __func__, err) || !IS_GIVEN(b, "result", NOWHERE, err))
		return false;
	const uint64_t choice[] = { o->mode,    o->type, o->rank, o->interleave / 16, o->swizzle, o->l2 == 256 ? 3 : o->l2 / 64,
		                        o->nan_fill };
	uint64_t stride[CPTX_TENSOR_RANK];
	bool ok = o->rank <= CPTX_TENSOR_RANK;

	memset(b, 0, CPTX_TENSOR_MAP_BYTES);
	memcpy(b, magic, sizeof magic);
	for (uint32_t i = 0; i < ARRAY_LEN(choice); i++)
		ok &= put(b + AT_CHOICES + i, 1, choice[i]);
	put(b + AT_ADDRESS, 8, o->address);
	strides_of(o, stride);
	for (uint32_t i = 0; i < CPTX_TENSOR_RANK; i++) {
		ok &= put(b + AT_DIM + 5 * i, 5, o->dim[i]);
		ok &= put(b + AT_BOX + 2 * i, 2, o->box[i]);
		ok &= put(b + AT_STEP + i, 1, element_stride(o, i));
		ok &= !i || put(b + AT_STRIDE + 5 * (i - 1), 5, i < o->rank ? stride[i] : o->stride[i]);
	}
	for (uint32_t i = 0; i < 3; i++) {
		ok &= put(b + AT_CORNER + 2 * i, 2, (uint16_t)o->lower[i]) && o->lower[i] == (int16_t)o->lower[i];
		ok &= put(b + AT_CORNER + 6 + 2 * i, 2, (uint16_t)o->upper[i]) && o->upper[i] == (int16_t)o->upper[i];
	}
	ok &= put(b + AT_PIXELS, 2, o->channels) && put(b + AT_PIXELS + 2, 2, o->pixels);
	RULE(ok, "a number has no room in the 128 bytes; cptx_tensor_map_check says which is not legal");
	return true;
}

static bool unpack(const uint8_t b[CPTX_TENSOR_MAP_BYTES], cptx_tensor_map_opt *o, cptx_error *err)
{
	const uint8_t *c = b + AT_CHOICES;
	bool zeros = !c[7];

	for (uint32_t i = AT_END; i < CPTX_TENSOR_MAP_BYTES; i++)
		zeros &= !b[i];
	RULE(!memcmp(b, magic, sizeof magic) && zeros, "these bytes are none of cptx: no map, overwritten, or one of a driver");
	RULE(c[0] < CPTX_TENSOR_MODES && c[1] < CPTX_TENSOR_TYPES && c[2] <= CPTX_TENSOR_RANK && c[5] <= 3 && c[6] <= 1,
	     "mode %u, type %u, rank %u, L2 %u, fill %u: one of them is out of range", c[0], c[1], c[2], c[5], c[6]);
	o->mode = (enum cptx_tensor_mode)c[0], o->type = (enum cptx_tensor_type)c[1], o->rank = c[2];
	o->interleave = c[3] * 16u, o->swizzle = (enum cptx_swizzle)c[4];
	o->l2 = c[5] ? 32u << c[5] : 0, o->nan_fill = c[6];
	o->address = get(b + AT_ADDRESS, 8);
	for (uint32_t i = 0; i < CPTX_TENSOR_RANK; i++) {
		o->dim[i] = get(b + AT_DIM + 5 * i, 5);
		o->stride[i] = i ? get(b + AT_STRIDE + 5 * (i - 1), 5) : 0;
		o->element_stride[i] = b[AT_STEP + i];
		o->box[i] = (uint32_t)get(b + AT_BOX + 2 * i, 2);
	}
	for (uint32_t i = 0; i < 3; i++) {
		o->lower[i] = (int16_t)get(b + AT_CORNER + 2 * i, 2);
		o->upper[i] = (int16_t)get(b + AT_CORNER + 6 + 2 * i, 2);
	}
	o->channels = (uint32_t)get(b + AT_PIXELS, 2), o->pixels = (uint32_t)get(b + AT_PIXELS + 2, 2);
	return true;
}

bool cptx_tensor_map_unpack_(const uint8_t b[CPTX_TENSOR_MAP_BYTES], cptx_tensor_map_opt *opt, uint32_t size,
                             cptx_error *err)
{
	cptx_tensor_map_opt o = { .mode = CPTX_TENSOR_TILED };

	if (!IS_GIVEN(opt, "result", NOWHERE, err))
		return false;
	const bool ok = IS_GIVEN(b, "map", NOWHERE, err) && unpack(b, &o, err);
	OPTIONS_FILL(opt, size, &o);
	return ok;
}

/* ---- tiles ---- */

static bool describe(const cptx_tile *t, enum cptx_tensor_type type, uint64_t address, uint64_t rows, uint64_t cols,
                     uint64_t pitch, cptx_tensor_map_opt *o, cptx_error *err)
{
	cptx_tile_boxes b;

	*o = (cptx_tensor_map_opt){ .type = type, .rank = 2, .address = address };
	if (!cptx_tile_get_boxes(t, &b, err))
		return false;
	o->swizzle = t->swizzle;
	RULE((unsigned)type < CPTX_TENSOR_TYPES && types[type].bits == t->elem.bits && types[type].padded == t->elem.padded,
	     "type %s for a tile with elements of %u bits%s", cptx_tensor_type_name(type), t->elem.bits,
	     t->elem.padded ? ", padded" : "");
	o->dim[0] = t->elem.mn_major ? rows : cols, o->dim[1] = t->elem.mn_major ? cols : rows;
	o->stride[1] = pitch;
	o->box[0] = b.box[0], o->box[1] = b.box[1];
	return cptx_tensor_map_check(o, err);
}

static bool describe_3d(const cptx_tile *t, enum cptx_tensor_type type, uint64_t address, uint64_t rows, uint64_t cols,
                        uint64_t pitch, cptx_tensor_map_opt *o, cptx_error *err)
{
	cptx_tile_boxes b;

	if (!describe(t, type, address, rows, cols, pitch, o, err) || !cptx_tile_get_boxes(t, &b, err))
		return false;
	uint32_t span = b.box[0];
	RULE(o->dim[0] % span == 0,
	     "%llu elements along the contiguous dimension; seen as spans, they are a multiple of %u (swizzle %s): use "
	     "cptx_tile_tensor_map, which fills up with zeros",
	     (unsigned long long)o->dim[0], span, cptx_swizzle_get(t->swizzle)->name);
	RULE(b.count[1] == 1, "%u along the other dimension; a box has at most 256", b.box[1] * b.count[1]);
	if (!o->stride[1])
		o->stride[1] = o->dim[0] * t->elem.bits / 8;
	o->rank = 3;
	o->dim[2] = o->dim[0] / span, o->dim[0] = span;
	o->stride[2] = (uint64_t)span * t->elem.bits / 8;
	o->box[2] = b.count[0];
	return cptx_tensor_map_check(o, err);
}

bool cptx_tile_tensor_map_(const cptx_tile *t, enum cptx_tensor_type type, uint64_t address, uint64_t rows, uint64_t cols,
                           uint64_t pitch, cptx_tensor_map_opt *opt, uint32_t size, cptx_error *err)
{
	cptx_tensor_map_opt o;

	if (!IS_GIVEN(opt, "result", NOWHERE, err))
		return false;
	const bool ok = describe(t, type, address, rows, cols, pitch, &o, err);
	OPTIONS_FILL(opt, size, &o);
	return ok;
}

bool cptx_tile_tensor_map_3d_(const cptx_tile *t, enum cptx_tensor_type type, uint64_t address, uint64_t rows, uint64_t cols,
                              uint64_t pitch, cptx_tensor_map_opt *opt, uint32_t size, cptx_error *err)
{
	cptx_tensor_map_opt o;

	if (!IS_GIVEN(opt, "result", NOWHERE, err))
		return false;
	const bool ok = describe_3d(t, type, address, rows, cols, pitch, &o, err);
	OPTIONS_FILL(opt, size, &o);
	return ok;
}
