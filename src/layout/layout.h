/* SPDX-License-Identifier: MIT */
/* How the files of src/layout build a fragment's mapping, step by step. */
#ifndef CPTX_LAYOUT_LAYOUT_H
#define CPTX_LAYOUT_LAYOUT_H

#include <cptx/layout.h>

#include "base/base.h"

static inline bool is_power(uint32_t v) { return v && !(v & (v - 1)); }
static inline uint64_t round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

/* A mapping under construction: steps are added for the next bits of the lane, register and slot numbers. */
typedef struct build {
	const cptx_frag *f;
	cptx_frag_map *map;
	cptx_error *err;
	uint32_t nlane, nreg, nslot;
} build;

static inline void lane(build *b, uint32_t row, uint32_t col)
{
	b->map->lane[b->nlane++] = (cptx_frag_step){ (uint16_t)row, (uint16_t)col };
}
static inline void reg(build *b, uint32_t row, uint32_t col)
{
	b->map->reg[b->nreg++] = (cptx_frag_step){ (uint16_t)row, (uint16_t)col };
}
static inline void slot(build *b, uint32_t row, uint32_t col)
{
	b->map->slot[b->nslot++] = (cptx_frag_step){ (uint16_t)row, (uint16_t)col };
}

/* Adds lane bits with row steps first, 2 * first, ... below end. */
static inline void lane_rows(build *b, uint32_t first, uint32_t end)
{
	for (; first < end; first *= 2)
		lane(b, first, 0);
}
static inline void lane_cols(build *b, uint32_t first, uint32_t end)
{
	for (; first < end; first *= 2)
		lane(b, 0, first);
}
static inline void reg_rows(build *b, uint32_t first, uint32_t end)
{
	for (; first < end; first *= 2)
		reg(b, first, 0);
}
static inline void reg_cols(build *b, uint32_t first, uint32_t end)
{
	for (; first < end; first *= 2)
		reg(b, 0, first);
}
static inline void slot_rows(build *b, uint32_t end)
{
	for (uint32_t s = 1; s < end; s *= 2)
		slot(b, s, 0);
}
static inline void slot_cols(build *b, uint32_t end)
{
	for (uint32_t s = 1; s < end; s *= 2)
		slot(b, 0, s);
}
static inline bool size(build *b, uint32_t rows, uint32_t cols, uint32_t bits)
{
	cptx_frag_map *m = b->map;

	m->rows = (uint16_t)rows, m->cols = (uint16_t)cols;
	m->bits = (uint8_t)bits, m->reg_bits = bits == 64 ? 64 : 32;
	return true;
}

/* Whether a map can come from cptx_frag_resolve: its lanes, registers and slots have no more bits than there are steps. */
static inline bool layout_is_map(const cptx_frag_map *m)
{
	return m && m->lanes && m->lanes <= 1u << ARRAY_LEN(m->lane) && m->regs <= 1u << ARRAY_LEN(m->reg) &&
	       m->slots <= 1u << ARRAY_LEN(m->slot);
}

/* lines.c.  Whether lines come from cptx_tile_lines; the offset of a line of such ones, as cptx_lines_offset. */
bool layout_is_lines(const cptx_lines *l);
uint32_t lines_place(const cptx_lines *l, uint32_t i, uint32_t lane);

/* tile.c.  The place of an element, of a tile that cptx_tile_check() has passed: code for a kernel's lanes asks for
 * thousands. */
cptx_smem_place tile_place(const cptx_tile *t, uint32_t row, uint32_t col);

#define NO_SUCH(...) return error_set(b->err, CPTX_E_ARG, NOWHERE, __VA_ARGS__)

/* The bits of a field in its word. */
static inline uint64_t field_mask(const cptx_desc_field *f)
{
	return (((uint64_t)1 << (f->high - f->low + 1)) - 1) << f->low;
}
static inline uint64_t field_get(uint64_t word, const cptx_desc_field *f) { return (word & field_mask(f)) >> f->low; }
static inline uint64_t field_put(uint64_t value, const cptx_desc_field *f) { return value << f->low & field_mask(f); }
/* desc.c.  layout_number reads a number up to `most`; layout_flag reads yes, no, 1 or 0. */
bool layout_number(const char *what, const char *value, uint64_t most, uint32_t *v, cptx_error *err);
bool layout_flag(const char *what, const char *value, bool *v, cptx_error *err);

/* frag_tmem.c */
bool layout_tcgen05(build *b);
bool layout_tmem(build *b);
/* frag.c */
bool layout_scale_vector(build *b);

#endif
