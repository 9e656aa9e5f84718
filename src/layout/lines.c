/* SPDX-License-Identifier: MIT */
/* Lines of 16 bytes between tiles and fragments (ldmatrix, stmatrix), and the cost of a warp's accesses. */
#include "layout/layout.h"

#define RULE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "lines: " __VA_ARGS__);                                              \
	while (0)

enum { BANKS = 32, LINE = 16 /* bytes */ };

static bool is_b(enum cptx_frag_kind kind) { return kind == CPTX_FRAG_MMA_B; }

static bool has_lines(enum cptx_frag_kind kind)
{
	return kind == CPTX_FRAG_MMA_A || kind == CPTX_FRAG_MMA_B || kind == CPTX_FRAG_MMA_C || kind == CPTX_FRAG_WGMMA_A ||
	       kind == CPTX_FRAG_WGMMA_D;
}

/* The step of the fragment along the contiguous dimension of the tile; 0: the step goes across it. */
static uint32_t contiguous(const cptx_lines *l, cptx_frag_step s)
{
	return l->transposed != l->tile.elem.mn_major ? s.row : s.col;
}

/* Whether the first n bits of a list step through 1, 2, 4 ... times `first` elements along the contiguous dimension. */
static bool runs(const cptx_lines *l, const cptx_frag_step *s, uint32_t n, uint32_t first)
{
	bool ok = true;

	for (uint32_t i = 0; i < n; i++)
		ok &= contiguous(l, s[i]) == first << i;
	return ok;
}

bool cptx_tile_lines(const cptx_tile *t, const cptx_frag *f, uint32_t row, uint32_t col, cptx_lines *l, cptx_error *err)
{
	if (!IS_GIVEN(l, "result", NOWHERE, err))
		return false;
	*l = (cptx_lines){ .row = row, .col = col };
	if (!cptx_tile_check(t, err) || !cptx_frag_resolve(f, &l->map, err))
		return false;
	l->tile = *t, l->transposed = is_b(f->kind);
	const cptx_frag_map *m = &l->map;
	uint32_t rows = l->transposed ? m->cols : m->rows, cols = l->transposed ? m->rows : m->cols;
	uint32_t slot_bits = 0;

	while (1u << slot_bits < m->slots)
		slot_bits++;
	RULE(has_lines(f->kind) && !(f->k == 4 && f->m == 8), "ldmatrix and stmatrix do not move fragments of %s%s",
	     cptx_frag_kind_name(f->kind), has_lines(f->kind) ? " m8n8k4" : "");
	RULE(m->reg_bits == 32, "elements of %u bits; registers of ldmatrix and stmatrix have 32", m->bits);
	RULE(m->bits == t->elem.bits && !t->elem.padded, "elements of %u bits%s in the tile, of %u in the fragment",
	     t->elem.bits, t->elem.padded ? " (padded)" : "", m->bits);
	RULE(rows <= t->rows && row <= t->rows - rows && cols <= t->cols && col <= t->cols - cols,
	     "%ux%u elements from row %u, column %u on exceed the tile of %ux%u", rows, cols, row, col, t->rows, t->cols);
	/* without .trans a lane gets 4 bytes of a line, and 4 lanes the line; with it a lane gets 2 bytes, and 8 lanes the line
	 */
	bool plain = runs(l, m->slot, slot_bits, 1) && runs(l, m->lane, 2, m->slots);
	l->trans = !plain;
	RULE(plain || (m->bits == 16 && runs(l, m->lane + 2, 3, 1)),
	     "the tile is contiguous along %s; 16 bytes of it are no row of the fragment%s", t->elem.mn_major ? "m or n" : "k",
	     m->bits == 16 ? "" : " (.trans moves elements of 16 bits)");
	uint32_t first = (t->elem.mn_major ? row : col) * m->bits;
	RULE(first % (LINE * 8) == 0, "the fragment begins %u bits into a row of the tile; lines begin at multiples of 16 bytes",
	     first);
	RULE(!t->pitch || t->pitch % LINE == 0, "pitch %u; lines begin at multiples of 16 bytes", t->pitch);
	l->num = m->regs % 4 == 0 ? 4 : m->regs % 2 == 0 ? 2 : 1;
	l->count = m->regs / l->num;
	return true;
}

bool layout_is_lines(const cptx_lines *l)
{
	return l && l->count && is_power(l->num) && l->num <= 4 && layout_is_map(&l->map) && cptx_tile_check(&l->tile, NULL);
}

uint32_t lines_place(const cptx_lines *l, uint32_t i, uint32_t lane)
{
	uint32_t line = lane % 32 % (8u * l->num), r = line % 8, reg = i * l->num + line / 8;
	uint32_t holder = lane / 32 * 32 + (l->trans ? r / 2 : r * 4);
	cptx_place p = { (uint16_t)holder, (uint16_t)reg, (uint16_t)(l->trans ? r % 2 : 0) };
	cptx_cell c;

	if (!cptx_frag_cell(&l->map, p, &c))
		return UINT32_MAX;
	return tile_place(&l->tile, l->row + (l->transposed ? c.col : c.row), l->col + (l->transposed ? c.row : c.col)).byte;
}

uint32_t cptx_lines_offset(const cptx_lines *l, uint32_t i, uint32_t lane)
{
	return layout_is_lines(l) ? lines_place(l, i, lane) : UINT32_MAX;
}

/* ---- banks ---- */

/* The wavefronts of a phase: the most different words of one bank among up to 128 words. */
static uint32_t turns_of(const uint32_t *word, uint32_t n)
{
	uint32_t in_bank[BANKS] = { 0 }, first[BANKS], most = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = 0, bank = word[i] % BANKS;
		if (!in_bank[bank]) {
			first[bank] = word[i];
			j = i;
		}
		while (j < i && first[bank] != word[i] && word[j] != word[i])
			j++;
		if (j == i && ++in_bank[bank] > most)
			most = in_bank[bank];
	}
	return most;
}

cptx_banks cptx_bank_conflicts(const uint32_t offset[32], uint32_t active, uint32_t bytes)
{
	cptx_banks b = { 0 };
	uint32_t lanes = bytes <= 4 ? 32 : 128 / bytes, words = MAX(bytes / 4, 1u);

	if (!offset || !is_power(bytes) || bytes > 16)
		return b;
	for (uint32_t first = 0; first < 32; first += lanes) {
		uint32_t word[32], n = 0;
		for (uint32_t lane = first; lane < first + lanes; lane++)
			for (uint32_t w = 0; w < words && (active >> lane & 1); w++)
				word[n++] = offset[lane] / 4 + w;
		uint32_t turns = turns_of(word, n);
		b.phases = (uint16_t)(b.phases + (n > 0)), b.turns = (uint16_t)(b.turns + turns);
		b.worst = (uint16_t)MAX(b.worst, turns);
	}
	b.conflicts = b.turns - b.phases;
	return b;
}

cptx_banks cptx_lines_banks(const cptx_lines *l, uint32_t i)
{
	cptx_banks sum = { 0 };
	uint32_t offset[32];

	if (!layout_is_lines(l) || i >= l->count)
		return sum;
	uint32_t lines = 8u * l->num;
	for (uint32_t warp = 0; warp < l->map.lanes / 32u; warp++) {
		for (uint32_t lane = 0; lane < 32; lane++)
			offset[lane] = lines_place(l, i, warp * 32 + lane);
		cptx_banks b = cptx_bank_conflicts(offset, lines == 32 ? UINT32_MAX : (1u << lines) - 1, LINE);
		sum.phases = (uint16_t)(sum.phases + b.phases), sum.turns = (uint16_t)(sum.turns + b.turns);
		sum.worst = MAX(sum.worst, b.worst), sum.conflicts = (uint16_t)(sum.conflicts + b.conflicts);
	}
	return sum;
}
