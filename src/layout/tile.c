/* SPDX-License-Identifier: MIT */
/* Tiles of shared memory: addresses, boxes of tensor maps, descriptors. */
#include "layout/layout.h"

#define RULE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "tile: " __VA_ARGS__);                                               \
	while (0)

enum { MOST_BYTES = 1 << 18, CHUNK = 16, MOST_BOX = 256 };

static uint32_t along(const cptx_tile *t) { return t->elem.mn_major ? t->rows : t->cols; }
static uint32_t across(const cptx_tile *t) { return t->elem.mn_major ? t->cols : t->rows; }

/* Bytes of n consecutive elements from the start of a chunk on; *bit gets the bit of the last element in the last byte. */
static uint32_t length(const cptx_tile *t, uint32_t n, uint32_t *bit)
{
	uint32_t per_chunk = t->elem.padded ? 16 : 128u / t->elem.bits, bits = n % per_chunk * t->elem.bits;

	*bit = bits % 8;
	return n / per_chunk * CHUNK + bits / 8;
}

static uint32_t span_of(const cptx_tile *t) { return cptx_swizzle_get(t->swizzle)->span; }

/* The offset of a byte of a row or column before swizzling. */
static uint32_t linear(const cptx_tile *t, uint32_t byte, uint32_t other)
{
	uint32_t span = span_of(t);

	return t->pitch ? other * t->pitch + byte : byte / span * across(t) * span + other * span + byte % span;
}

/* Bytes of a tile.  A row with a pitch may end within a span, whose chunks are permuted as a whole. */
static uint64_t bytes_of(const cptx_tile *t)
{
	uint32_t bit;
	uint64_t bytes = (uint64_t)(t->pitch ? t->pitch : length(t, along(t), &bit)) * across(t);

	return t->pitch && t->swizzle ? round_up(bytes, span_of(t)) : bytes;
}

static bool check_elem(cptx_smem_elem e, cptx_error *err)
{
	RULE(e.bits == 6 || (is_power(e.bits) && e.bits <= 64 && e.bits != 2),
	     "elements of %u bits; they have 1, 4, 6, 8, 16, 32 or 64", e.bits);
	RULE(e.bits != 6 || e.padded, "elements of 6 bits are stored padded: 16 of them in 16 bytes");
	RULE(!e.padded || e.bits == 4 || e.bits == 6, "padded elements of %u bits; only those of 4 and 6 bits are padded",
	     e.bits);
	return true;
}

bool cptx_tile_check(const cptx_tile *t, cptx_error *err)
{
	if (!IS_GIVEN(t, "tile", NOWHERE, err))
		return false;
	const cptx_swizzle_info *w = cptx_swizzle_get(t->swizzle);
	uint32_t bit, row;

	if (!check_elem(t->elem, err))
		return false;
	RULE(w && t->swizzle != CPTX_SWIZZLE_96B, "swizzle %s; a tile can have any but 96B", w ? w->name : "?");
	RULE(t->rows && t->cols && t->rows <= 65536 && t->cols <= 65536, "%ux%u elements; each side is from 1 to 65536", t->rows,
	     t->cols);
	row = length(t, along(t), &bit);
	RULE(!bit, "%u elements of %u bits are no whole bytes", along(t), t->elem.bits);
	RULE(!t->elem.padded || along(t) % 16 == 0, "%u padded elements; they come in groups of 16", along(t));
	if (t->pitch) {
		RULE(t->pitch >= row, "pitch %u is less than the %u bytes of a row", t->pitch, row);
		RULE(!t->swizzle || t->pitch % CHUNK == 0, "pitch %u with a swizzle; it must be a multiple of 16 (nearest: %u)",
		     t->pitch, (t->pitch + CHUNK - 1) / CHUNK * CHUNK);
	} else {
		RULE(row % w->span == 0, "rows of %u bytes are not made of spans of %u bytes (swizzle %s): take a multiple, or %s",
		     row, w->span, w->name,
		     row % 64 == 0      ? "swizzle 64B"
		     : row % 32 == 0    ? "swizzle 32B"
		     : row % CHUNK == 0 ? "swizzle none"
		                        : "swizzle none and a pitch");
	}
	uint64_t bytes = bytes_of(t);
	RULE(bytes < MOST_BYTES, "%llu bytes; shared memory addresses end at %u", (unsigned long long)bytes, MOST_BYTES);
	return true;
}

uint32_t cptx_tile_bytes(const cptx_tile *t) { return cptx_tile_check(t, NULL) ? (uint32_t)bytes_of(t) : UINT32_MAX; }

uint32_t cptx_tile_align(const cptx_tile *t)
{
	return !cptx_tile_check(t, NULL) ? UINT32_MAX : t->swizzle ? cptx_swizzle_get(t->swizzle)->repeat : 128;
}

cptx_smem_place tile_place(const cptx_tile *t, uint32_t row, uint32_t col)
{
	uint32_t bit, byte;

	if (row >= t->rows || col >= t->cols)
		return (cptx_smem_place){ UINT32_MAX, 0 };
	byte = length(t, t->elem.mn_major ? row : col, &bit);
	return (cptx_smem_place){ cptx_swizzle_address(t->swizzle, linear(t, byte, t->elem.mn_major ? col : row)),
		                      (uint8_t)bit };
}

cptx_smem_place cptx_tile_at(const cptx_tile *t, uint32_t row, uint32_t col)
{
	return cptx_tile_check(t, NULL) ? tile_place(t, row, col) : (cptx_smem_place){ UINT32_MAX, 0 };
}

/* ---- tensor maps ---- */

bool cptx_tile_get_boxes(const cptx_tile *t, cptx_tile_boxes *b, cptx_error *err)
{
	if (!IS_GIVEN(b, "result", NOWHERE, err))
		return false;
	*b = (cptx_tile_boxes){ 0 };
	if (!cptx_tile_check(t, err))
		return false;
	uint32_t bit, row, apart, inner, outer = across(t);
	row = length(t, along(t), &bit);
	apart = t->swizzle && row < span_of(t) ? span_of(t) : row;
	RULE(!t->pitch || t->pitch == apart, "pitch %u; a tensor map writes these rows %u bytes apart", t->pitch, apart);
	RULE(!t->pitch || !t->swizzle || row <= span_of(t), "rows of %u bytes with swizzle %s; a tensor map writes at most %u",
	     row, cptx_swizzle_get(t->swizzle)->name, span_of(t));
	b->count[0] = t->pitch ? 1 : row / span_of(t);
	inner = along(t) / b->count[0];
	RULE(!t->elem.padded || inner == 128, "boxes of %u padded elements; a tensor map writes 128 of them: take swizzle 128B",
	     inner);
	RULE(inner <= MOST_BOX, "rows of %u elements; a box has at most %u: leave pitch away, for spans", inner, MOST_BOX);
	RULE((row / b->count[0]) % CHUNK == 0, "rows of %u bytes; those of a box are a multiple of 16", row);
	b->count[1] = (outer + MOST_BOX - 1) / MOST_BOX;
	RULE(b->count[1] == 1 || b->count[0] == 1 || !(outer % MOST_BOX),
	     "%u across; a box has at most %u: take a multiple of it, or one span", outer, MOST_BOX);
	while (outer % b->count[1])
		b->count[1]++;
	b->box[0] = inner, b->box[1] = outer / b->count[1];
	b->bytes = (t->pitch ? t->pitch : row / b->count[0]) * b->box[1];
	return true;
}

/* ---- descriptors ---- */

bool cptx_tile_desc(const cptx_tile *t, enum cptx_desc_arch arch, uint32_t start, uint32_t row, uint32_t col,
                    cptx_smem_desc *d, cptx_error *err)
{
	uint64_t word;

	if (!IS_GIVEN(d, "descriptor", NOWHERE, err))
		return false;
	*d = (cptx_smem_desc){ .arch = arch };
	if (!cptx_tile_check(t, err))
		return false;
	d->swizzle = t->swizzle;
	uint32_t span = span_of(t), bit, byte = length(t, t->elem.mn_major ? row : col, &bit);
	uint32_t other = t->elem.mn_major ? col : row, group = t->swizzle == CPTX_SWIZZLE_128B_ATOM_32B ? 4 : 8;
	uint32_t span_bytes = across(t) * span; /* bytes from span to span */

	RULE(!t->pitch || (t->pitch == span && length(t, along(t), &bit) == span),
	     "pitch %u; a descriptor describes spans of %u bytes: leave pitch away", t->pitch, span);
	RULE(t->elem.bits <= 32, "elements of %u bits; an operand of wgmma or tcgen05.mma has at most 32", t->elem.bits);
	RULE(arch != CPTX_DESC_WGMMA || !t->elem.mn_major || t->elem.bits == 16,
	     "elements of %u bits, MN-major; wgmma reads only those of 16 bits so", t->elem.bits);
	RULE(start + bytes_of(t) <= MOST_BYTES, "%llu bytes from address %u on; shared memory addresses end at %u",
	     (unsigned long long)bytes_of(t), start, MOST_BYTES);
	RULE(start % cptx_tile_align(t) == 0, "address %u is not aligned to %u bytes", start, cptx_tile_align(t));
	RULE(row < t->rows && col < t->cols, "row %u, column %u are outside of %ux%u", row, col, t->rows, t->cols);
	RULE(across(t) % group == 0, "%u %s; a descriptor counts them in groups of %u", across(t),
	     t->elem.mn_major ? "columns" : "rows", group);
	RULE(other % group == 0, "an operand cannot begin at %s %u; it is a multiple of %u", t->elem.mn_major ? "column" : "row",
	     other, group);
	RULE(!bit && byte % (t->elem.mn_major ? span : CHUNK) == 0,
	     "an operand cannot begin %u bytes into a %s; %u is a multiple", byte, t->elem.mn_major ? "column" : "row",
	     t->elem.mn_major ? span : CHUNK);
	d->start = start + linear(t, byte, other);
	if (!t->swizzle) {
		d->lbo = t->elem.mn_major ? 8 * CHUNK : span_bytes;
		d->sbo = t->elem.mn_major ? span_bytes : 8 * CHUNK;
	} else {
		d->lbo = t->elem.mn_major ? span_bytes : CHUNK; /* K-major: the field is not used */
		d->sbo = group * span;
	}
	return cptx_smem_desc_encode(d, &word, err);
}
