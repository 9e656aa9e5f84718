/* SPDX-License-Identifier: MIT */
#include "tensor.h"

uint32_t tensor_below(uint64_t *state, uint32_t n)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((*state >> 33) % n);
}

/* ---- the rules, byte by byte ---- */

static bool padded(const tensor_case *c)
{
	return c->map.type == CPTX_TENSOR_16U4_ALIGN16B || c->map.type == CPTX_TENSOR_16U6_ALIGN16B;
}
static uint32_t bits(const tensor_case *c) { return cptx_tensor_type_bits(c->map.type); }
static uint32_t step(const tensor_case *c, uint32_t i) { return c->map.element_stride[i] ? c->map.element_stride[i] : 1; }
static bool is(const tensor_case *c, const char *mode) { return !strcmp(c->mode, mode); }
static bool im2col(const tensor_case *c) { return is(c, "im2col") || is(c, "im2col_no_offs"); }
static bool along_w(const tensor_case *c) { return is(c, "im2col::w") || is(c, "im2col::w::128"); }

/* Dimensions that count rows begin here: W, where there are pixels. */
static uint32_t first_dim(const tensor_case *c) { return c->map.interleave ? 0 : 1; }
/* Of rows along a dimension; a box has one slice of channels. */
static uint32_t count(const tensor_case *c, uint32_t i)
{
	return c->map.interleave && i == c->map.rank - 2 ? 1 : (c->map.box[i] + step(c, i) - 1) / step(c, i);
}

/* Bytes of a row of the box in shared memory, and how many there are. */
static uint32_t row_bytes(const tensor_case *c)
{
	uint32_t n = im2col(c) || along_w(c) ? c->map.channels : c->map.box[0];

	return c->map.interleave ? c->map.interleave : padded(c) ? n : n * bits(c) / 8;
}

static uint32_t rows(const tensor_case *c)
{
	uint32_t n = 1;

	if (im2col(c))
		return c->map.pixels;
	if (along_w(c))
		return is(c, "im2col::w") ? c->map.pixels + c->offset[0] : 4 * (32u + c->offset[0]);
	if (is(c, "tile::gather4") || is(c, "tile::scatter4"))
		return 4;
	for (uint32_t i = first_dim(c); i < c->map.rank; i++)
		n *= count(c, i);
	return n;
}

uint32_t tensor_bytes(const tensor_case *c) { return row_bytes(c) * rows(c); }
uint32_t tensor_told(const tensor_case *c) { return padded(c) ? tensor_bytes(c) / 8 * bits(c) : tensor_bytes(c); }

/* From row to row in shared memory: a row begins with a span of the swizzle. */
static uint32_t pitch(const tensor_case *c)
{
	uint32_t span = c->map.swizzle && !c->map.interleave ? cptx_swizzle_get(c->map.swizzle)->span : 16, n = row_bytes(c);

	return (n + span - 1) / span * span;
}

static bool has_room(const tensor_case *c) { return pitch(c) * rows(c) + c->at <= TENSOR_SMEM - 1024; }

/*
 * Pixels along W, and behind the last of them, or behind each 32, `offset[0]` that follow it.  Behind the bounding box,
 * which moves by offset[1], the next image begins.
 */
static void pixel_along_w(const tensor_case *c, uint32_t row, int64_t at[5])
{
	uint32_t group = (is(c, "im2col::w") ? c->map.pixels : 32) + c->offset[0], halo = row % group, pixel,
			 last = c->map.rank - 1;
	int64_t low = c->map.lower[0], end = (int64_t)c->map.dim[1] + c->map.upper[0],
			wide = (end - low + step(c, 1) - 1) / step(c, 1);

	halo = halo >= group - c->offset[0] ? halo - (group - c->offset[0]) + 1 : 0;
	pixel = row / group * (group - c->offset[0]) + (halo ? group - c->offset[0] - 1 : row % group);
	int64_t first = (end - at[1] + step(c, 1) - 1) / step(c, 1); /* pixels of the first image */
	if (pixel < first) {
		at[1] += (int64_t)pixel * step(c, 1);
	} else {
		at[last] += 1 + (pixel - first) / wide;
		at[1] = low + (pixel - first) % wide * step(c, 1);
	}
	at[1] += c->offset[1] + (int64_t)halo * step(c, 1);
}

/* The coordinates of the first element of a row. */
static void row_place(const tensor_case *c, uint32_t row, int64_t at[5])
{
	uint32_t last = c->map.rank - 1, w = first_dim(c);

	for (uint32_t i = 0; i < 5; i++)
		at[i] = c->coord[i];
	if (is(c, "tile::gather4") || is(c, "tile::scatter4")) {
		at[1] = c->coord[1 + row];
	} else if (along_w(c)) {
		pixel_along_w(c, row, at);
	} else if (im2col(c)) {
		/* As a number with W, H, D and N for digits, from the start on. */
		for (uint32_t k = 0; k < row; k++) {
			uint32_t i = 0;
			while (i + 2 < c->map.rank && (at[w + i] += step(c, w + i)) > (int64_t)c->map.dim[w + i] - 1 + c->map.upper[i]) {
				at[w + i] = c->map.lower[i];
				i++;
			}
			if (i + 2 == c->map.rank)
				at[last] += step(c, last);
		}
		for (uint32_t i = 0; i + 2 < c->map.rank; i++)
			at[w + i] += c->offset[i];
	} else {
		for (uint32_t i = w; i < c->map.rank; i++) {
			at[i] += (int64_t)(row % count(c, i)) * step(c, i);
			row /= count(c, i);
		}
	}
}

/* Offset in the buffer of byte b of a row; -1: outside of the tensor, -2: padding. */
static int64_t source(const tensor_case *c, const int64_t at[5], uint32_t b)
{
	uint64_t stride[5];
	int64_t where = (int64_t)c->map.address;
	int64_t first = at[0];

	cptx_tensor_map_strides(&c->map, stride);
	if (c->map.interleave) {
		stride[0] = c->map.interleave;
		for (uint32_t i = 0; i < c->map.rank; i++) {
			if (at[i] < 0 || at[i] >= (int64_t)c->map.dim[i])
				return -1;
			where += at[i] * (int64_t)stride[i];
		}
		return where + b;
	}
	if (padded(c)) {
		if (b % 16 >= bits(c) * 2)
			return -2;
		b = b / 16 * bits(c) * 2 + b % 16;
	}
	int64_t bit = first * bits(c) + (int64_t)b * 8, end = (int64_t)c->map.dim[0] * bits(c);
	if (c->way != TENSOR_LOAD && !padded(c)) /* whole 16 bytes are written */
		end = (end + 127) / 128 * 128;
	if (bit < 0 || bit >= end)
		return -1;
	for (uint32_t i = 1; i < c->map.rank; i++) {
		if (at[i] < 0 || at[i] >= (int64_t)c->map.dim[i])
			return -1;
		where += at[i] * (int64_t)stride[i];
	}
	return where + bit / 8;
}

/* Shared memory begins at a multiple of 1024: offsets are swizzled as addresses are. */
static uint32_t swizzled(const tensor_case *c, uint32_t a)
{
	switch (c->map.swizzle) {
	case CPTX_SWIZZLE_32B:
	case CPTX_SWIZZLE_96B: return a ^ (a >> 7 & 1) << 4;
	case CPTX_SWIZZLE_64B: return a ^ (a >> 7 & 3) << 4;
	case CPTX_SWIZZLE_128B: return a ^ (a >> 7 & 7) << 4;
	case CPTX_SWIZZLE_128B_ATOM_32B: return a ^ (a >> 7 & 3) << 5;
	case CPTX_SWIZZLE_128B_ATOM_32B_FLIP_8B: return a ^ (a >> 7 & 3) << 5 ^ (a >> 7 & 1) << 3;
	case CPTX_SWIZZLE_128B_ATOM_64B: return a ^ (a >> 7 & 1) << 6;
	default: return a;
	}
}

/* What becomes of 32 bits on the way to shared memory. */
static uint32_t loaded(const tensor_case *c, uint32_t v)
{
	uint32_t rest = v & 0x1fff;

	if (c->map.type != CPTX_TENSOR_TF32 && c->map.type != CPTX_TENSOR_TF32_FTZ)
		return v;
	if ((v & 0x7fffffff) > 0x7f800000)
		return 0x7fffe000;
	v -= rest;
	return v + (rest > 0x1000 || (rest == 0x1000 && v >> 13 & 1) ? 0x2000 : 0);
}

static uint8_t filler(const tensor_case *c, uint32_t b) { return !c->map.nan_fill ? 0 : b % 2 ? 0x7f : 0xf7; }

/* The swizzle may put the last chunks of a row that fills no whole span further on. */
uint32_t tensor_extent(const tensor_case *c)
{
	uint32_t last = c->at + pitch(c) * (rows(c) - 1) + row_bytes(c) - 1;

	for (uint32_t row = 0; row < rows(c); row++)
		for (uint32_t b = 0; b < row_bytes(c); b++) {
			uint32_t at = swizzled(c, c->at + row * pitch(c) + b);
			last = at > last ? at : last;
		}
	return last + 1 - c->at;
}

static void load_row(const tensor_case *c, const uint8_t *buffer, uint8_t *smem, uint32_t row)
{
	uint32_t n = row_bytes(c);
	int64_t at[5];

	row_place(c, row, at);
	for (uint32_t b = 0; b < n; b++) {
		int64_t from = source(c, at, b);
		uint8_t *to = &smem[swizzled(c, c->at + row * pitch(c) + b)];
		if (from == -1) {
			*to = filler(c, b);
		} else if (from >= 0 && bits(c) == 32) {
			uint32_t v;
			memcpy(&v, buffer + (from & ~INT64_C(3)), 4);
			v = loaded(c, v);
			*to = (uint8_t)(v >> (from & 3) * 8);
		} else if (from >= 0) {
			*to = buffer[from];
		}
	}
}

/* Of whole numbers. */
static uint64_t reduced(const tensor_case *c, uint64_t old, uint64_t v)
{
	bool is_signed = c->map.type == CPTX_TENSOR_S32 || c->map.type == CPTX_TENSOR_S64;
	uint64_t sign = is_signed ? UINT64_C(1) << (bits(c) - 1) : 0;

	if (!strcmp(c->op, "add"))
		return old + v;
	if (!strcmp(c->op, "and"))
		return old & v;
	if (!strcmp(c->op, "or"))
		return old | v;
	if (!strcmp(c->op, "xor"))
		return old ^ v;
	if (!strcmp(c->op, "inc"))
		return old >= v ? 0 : old + 1;
	if (!strcmp(c->op, "dec"))
		return !old || old > v ? v : old - 1;
	return ((old ^ sign) < (v ^ sign)) == !strcmp(c->op, "min") ? old : v;
}

static void store_row(const tensor_case *c, uint8_t *buffer, const uint8_t *smem, uint32_t row)
{
	uint32_t n = row_bytes(c), each = c->way == TENSOR_REDUCE ? bits(c) / 8 : 1;
	int64_t at[5];

	row_place(c, row, at);
	for (uint32_t b = 0; b < n; b += each) {
		int64_t to = source(c, at, b);
		if (to < 0 || to >= (int64_t)c->size)
			continue;
		uint64_t v = 0, old = 0;
		memcpy(&v, &smem[swizzled(c, c->at + row * pitch(c) + b)], each);
		memcpy(&old, buffer + to, each);
		v = c->way == TENSOR_REDUCE ? reduced(c, old, v) : v;
		memcpy(buffer + to, &v, each);
	}
}

void tensor_reference(const tensor_case *c, uint8_t *buffer, uint8_t *smem)
{
	if (c->way == TENSOR_LOAD)
		memset(smem, TENSOR_FILL, TENSOR_SMEM);
	for (uint32_t row = 0; row < rows(c); row++)
		if (c->way == TENSOR_LOAD)
			load_row(c, buffer, smem, row);
		else
			store_row(c, buffer, smem, row);
}

/* ---- random ones ---- */

static const enum cptx_swizzle old_swizzles[] = { CPTX_SWIZZLE_NONE, CPTX_SWIZZLE_32B, CPTX_SWIZZLE_64B, CPTX_SWIZZLE_128B };

static void random_type(tensor_case *c, uint64_t *s, bool newer)
{
	static const enum cptx_tensor_type whole[] = { CPTX_TENSOR_U32, CPTX_TENSOR_S32, CPTX_TENSOR_U64 };
	cptx_tensor_map_opt *m = &c->map;

	m->type = (enum cptx_tensor_type)tensor_below(s, newer && c->way != TENSOR_REDUCE ? CPTX_TENSOR_TYPES
	                                                                                  : CPTX_TENSOR_TF32_FTZ + 1);
	if (c->way == TENSOR_STORE && m->type == CPTX_TENSOR_16U4_ALIGN16B)
		m->type = CPTX_TENSOR_16U6_ALIGN16B;
	m->swizzle = newer ? (enum cptx_swizzle)tensor_below(s, CPTX_SWIZZLE_96B) : old_swizzles[tensor_below(s, 4)];
	if (m->swizzle == CPTX_SWIZZLE_128B_ATOM_32B_FLIP_8B && c->way != TENSOR_LOAD)
		m->swizzle = CPTX_SWIZZLE_128B_ATOM_32B;
	if (c->way != TENSOR_REDUCE)
		return;
	/* Bits and whole numbers; what floats give is tested elsewhere. */
	static const char *const ops[] = { "add", "min", "max", "and", "or", "xor", "inc", "dec" };
	uint32_t op = tensor_below(s, 8);
	c->op = ops[op];
	m->type = op >= 6 ? CPTX_TENSOR_U32 : whole[tensor_below(s, 3)];
}

/* Elements along dimension 0 that the rules allow. */
static uint32_t random_inner(const tensor_case *c, uint64_t *s)
{
	const cptx_swizzle_info *w = cptx_swizzle_get(c->map.swizzle);
	uint32_t most = c->map.swizzle && !c->map.interleave ? w->span : 256, unit = bits(c) == 4 ? 32 : 128 / bits(c);

	if (padded(c))
		return 128;
	most = most * 8 / bits(c);
	most = (most > 256 ? 256 : most) / unit;
	return (1 + tensor_below(s, most)) * unit;
}

/* A coordinate in the tensor or a little outside; to store, none is negative. */
static int32_t around(const tensor_case *c, uint64_t *s, uint64_t dim)
{
	return c->way == TENSOR_LOAD ? (int32_t)tensor_below(s, (uint32_t)dim + 6) - 3
	                             : (int32_t)tensor_below(s, (uint32_t)dim + 3);
}

static void random_shape(tensor_case *c, uint64_t *s)
{
	cptx_tensor_map_opt *m = &c->map;
	uint32_t group = padded(c) ? 128 : bits(c) == 4 ? 32 : 128 / bits(c), align = padded(c) || m->interleave == 32 ? 32 : 16;

	m->dim[0] = (1 + tensor_below(s, 5)) * group;
	if (!padded(c) && bits(c) >= 8) /* rows that do not end at 16 bytes, but for padding */
		m->dim[0] -= tensor_below(s, group < 4 ? group : 4);
	if (m->interleave)
		m->dim[0] = 1 + tensor_below(s, 20);
	uint64_t bytes = m->interleave ? m->dim[0] * m->interleave : (m->dim[0] * bits(c) + 7) / 8;
	for (uint32_t i = 1; i < m->rank; i++) {
		m->stride[i] = (bytes + align - 1) / align * align + tensor_below(s, 2) * align;
		m->dim[i] = 1 + tensor_below(s, i == 1 ? 40 : 6);
		bytes = m->stride[i] * m->dim[i];
	}
	m->address = tensor_below(s, 4) * align;
	c->size = (size_t)(m->address + bytes + 64);
	for (uint32_t i = 0; i < m->rank; i++)
		c->coord[i] = around(c, s, m->dim[i]);
	/* Whole 16 bytes; to store, from 0 on. */
	group = padded(c) ? 128 : 128 / bits(c);
	if (!m->interleave)
		c->coord[0] = ((int32_t)tensor_below(s, (uint32_t)m->dim[0] / group + 3) - (c->way == TENSOR_LOAD)) * (int32_t)group;
}

static void random_box(tensor_case *c, uint64_t *s)
{
	cptx_tensor_map_opt *m = &c->map;

	for (uint32_t i = 0; i < m->rank; i++)
		m->element_stride[i] = tensor_below(s, 4) ? 1 : 1 + tensor_below(s, 8);
	m->box[0] = random_inner(c, s);
	for (uint32_t i = 1; i < m->rank; i++)
		m->box[i] = 1 + tensor_below(s, i == 1 ? 40 : 5);
	while (!has_room(c))
		for (uint32_t i = 1; i < m->rank; i++)
			m->box[i] = (m->box[i] + 1) / 2;
}

static void random_im2col(tensor_case *c, uint64_t *s)
{
	cptx_tensor_map_opt *m = &c->map;
	bool load = c->way == TENSOR_LOAD;
	uint32_t w = first_dim(c);

	c->mode = load ? "im2col" : "im2col_no_offs";
	m->mode = CPTX_TENSOR_IM2COL;
	for (uint32_t i = 0; i < m->rank; i++)
		m->element_stride[i] = tensor_below(s, 3) || i == m->rank - 1 ? 1 : 1 + tensor_below(s, 3);
	m->channels = random_inner(c, s);
	m->pixels = 1 + tensor_below(s, 60);
	while (!has_room(c))
		m->pixels = (m->pixels + 1) / 2;
	for (uint32_t i = 0; i + 2 < m->rank; i++) {
		int32_t wide = (int32_t)m->dim[w + i];
		m->lower[i] = load ? (int32_t)tensor_below(s, 4) - 2 : 0;
		m->upper[i] = (int32_t)tensor_below(s, 3) - 2;
		if (wide + m->upper[i] <= m->lower[i])
			m->upper[i] = load ? m->lower[i] - wide + 1 : 0;
		c->offset[i] = load ? (uint16_t)tensor_below(s, 3) : 0;
		c->coord[w + i] = m->lower[i] + (int32_t)tensor_below(s, (uint32_t)(wide + m->upper[i] - m->lower[i]));
	}
	for (uint32_t i = m->rank - 2; i < m->rank; i++) /* slices of channels, if there are any, and images */
		if (m->interleave || i == m->rank - 1)
			c->coord[i] = (int32_t)tensor_below(s, (uint32_t)m->dim[i]);
}

static void random_along_w(tensor_case *c, uint64_t *s)
{
	static const enum cptx_swizzle swizzles[] = { CPTX_SWIZZLE_64B, CPTX_SWIZZLE_128B, CPTX_SWIZZLE_128B_ATOM_32B };
	cptx_tensor_map_opt *m = &c->map;
	bool fixed = tensor_below(s, 2);

	c->mode = fixed ? "im2col::w::128" : "im2col::w";
	m->mode = fixed ? CPTX_TENSOR_IM2COL_W_128 : CPTX_TENSOR_IM2COL_W;
	m->swizzle = swizzles[tensor_below(s, 3)];
	m->element_stride[1] = 1 + tensor_below(s, 2);
	m->channels = random_inner(c, s);
	m->pixels = 1 + tensor_below(s, 60);
	c->offset[0] = (uint16_t)tensor_below(s, 8);
	c->offset[1] = (uint16_t)tensor_below(s, 4);
	m->lower[0] = (int32_t)tensor_below(s, 3) - 1;
	m->upper[0] = (int32_t)tensor_below(s, 3) - 1;
	if ((int32_t)m->dim[1] + m->upper[0] <= m->lower[0])
		m->lower[0] = m->upper[0] = 0;
	c->coord[1] = m->lower[0] + (int32_t)tensor_below(s, (uint32_t)((int32_t)m->dim[1] + m->upper[0] - m->lower[0]));
}

static void random_rows(tensor_case *c, uint64_t *s)
{
	c->mode = c->way == TENSOR_LOAD ? "tile::gather4" : "tile::scatter4";
	c->map.rank = 2;
	c->map.interleave = 0;
	random_shape(c, s);
	c->map.box[0] = random_inner(c, s);
	c->map.box[1] = 1;
	for (uint32_t i = 1; i < 5; i++)
		c->coord[i] = around(c, s, c->map.dim[1]);
	/* Rows that are the same would be written in any order. */
	for (uint32_t i = 1; c->way != TENSOR_LOAD && i < 5; i++)
		c->coord[i] = c->coord[1] + (int32_t)i;
}

static tensor_case random_one(uint64_t *s, enum tensor_way way, bool newer)
{
	tensor_case c = { .way = way, .mode = "tile", .op = "add", .target = newer ? "sm_100a" : "sm_90" };
	cptx_tensor_map_opt *m = &c.map;
	uint32_t kind = tensor_below(s, 8);

	m->rank = 1 + tensor_below(s, 5);
	random_type(&c, s, newer);
	c.at = tensor_below(s, 16) * 128;
	if (m->rank >= 3 && m->type <= CPTX_TENSOR_TF32_FTZ && !tensor_below(s, 5)) {
		m->interleave = tensor_below(s, 2) ? 16 : 32;
		m->swizzle = m->interleave == 32 ? CPTX_SWIZZLE_32B : tensor_below(s, 2) ? m->swizzle : CPTX_SWIZZLE_NONE;
	}
	m->nan_fill = m->type >= CPTX_TENSOR_F16 && m->type <= CPTX_TENSOR_TF32_FTZ && tensor_below(s, 2);
	if (newer && kind == 1 && way != TENSOR_REDUCE) {
		random_rows(&c, s);
		return c;
	}
	random_shape(&c, s);
	if (newer && kind == 3 && way == TENSOR_LOAD && m->rank >= 3 && !m->interleave && !padded(&c) && bits(&c) >= 8)
		random_along_w(&c, s);
	else if ((kind == 2 || kind == 3) && m->rank >= 3 && !padded(&c) && bits(&c) >= 8)
		random_im2col(&c, s);
	else
		random_box(&c, s);
	return c;
}

tensor_case tensor_random(uint64_t *s, enum tensor_way way, bool newer)
{
	for (;;) {
		tensor_case c = random_one(s, way, newer);
		if (cptx_tensor_map_check(&c.map, NULL))
			return c;
	}
}

tensor_case tensor_random_float(uint64_t *s, bool newer)
{
	static const enum cptx_tensor_type of32[] = { CPTX_TENSOR_F32,      CPTX_TENSOR_F32_FTZ, CPTX_TENSOR_TF32,
		                                          CPTX_TENSOR_TF32_FTZ, CPTX_TENSOR_F16,     CPTX_TENSOR_BF16 };
	static const char *const ops[] = { "add", "min", "max" };

	for (;;) {
		tensor_case c = tensor_random(s, TENSOR_REDUCE, newer);
		cptx_tensor_map_opt *m = &c.map;
		m->type = bits(&c) == 64 ? CPTX_TENSOR_F64 : of32[tensor_below(s, 6)];
		c.op = ops[bits(&c) == 16 ? tensor_below(s, 3) : 0];
		if (bits(&c) == 16 && !m->interleave)
			m->dim[0] *= 2, c.coord[0] *= 2;
		if (bits(&c) == 16)
			m->box[0] *= 2, m->channels *= 2;
		if (cptx_tensor_map_check(m, NULL) && has_room(&c))
			return c;
	}
}

void tensor_print(const tensor_case *c, char *text, size_t size)
{
	const cptx_tensor_map_opt *m = &c->map;
	char place[200];
	size_t n = 0;

	tensor_place(c, place, sizeof place);
	n += (size_t)snprintf(text, size, "%s%s %s, %s, rank %u, swizzle %s, interleave %u, %s, address %u:",
	                      c->way == TENSOR_LOAD    ? "load"
	                      : c->way == TENSOR_STORE ? "store"
	                                               : "reduce ",
	                      c->way == TENSOR_REDUCE ? c->op : "", c->mode, cptx_tensor_type_name(m->type), m->rank,
	                      cptx_swizzle_get(m->swizzle)->name, m->interleave, m->nan_fill ? "fill NaN" : "fill 0",
	                      (unsigned)m->address);
	for (uint32_t i = 0; i < m->rank; i++)
		n += (size_t)snprintf(text + n, size - n, " [%u: dim %u stride %u box %u step %u]", i, (unsigned)m->dim[i],
		                      (unsigned)m->stride[i], m->box[i], m->element_stride[i]);
	if (m->mode != CPTX_TENSOR_TILED)
		n += (size_t)snprintf(text + n, size - n, ", %u channels, %u pixels, corners %d %d %d, %d %d %d", m->channels,
		                      m->pixels, m->lower[0], m->lower[1], m->lower[2], m->upper[0], m->upper[1], m->upper[2]);
	snprintf(text + n, size - n, "; at %s, shared offset %u of %u", place, c->at, c->room ? c->room : TENSOR_SMEM);
}
