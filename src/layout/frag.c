/* SPDX-License-Identifier: MIT */
/*
 * Fragments.  Every mapping of the manual is a sum over bits: each bit of the numbers of lane, register and slot moves the
 * element by a fixed number of rows or columns.  A kind is built as a list of such steps, in the order of the bits, and one
 * function each converts a place to an element and back.  Steps are powers of two except for halves and quarters of N, which
 * are larger than all steps of registers; so taking the largest step that still fits finds an element.
 */
#include "layout/layout.h"

/* ---- what mma, wmma and wgmma share: t = lane & 3 goes along the contiguous dimension, g = lane >> 2 across it ---- */

static uint32_t per_reg(uint32_t bits) { return bits < 32 ? 32 / bits : 1; }

static void quads_along_cols(build *b, uint32_t step) { lane_cols(b, step, 4 * step), lane_rows(b, 1, 8); }
static void quads_along_rows(build *b, uint32_t step) { lane_rows(b, step, 4 * step), lane_cols(b, 1, 8); }

static bool operand_a(build *b, uint32_t m, uint32_t k, uint32_t bits)
{
	uint32_t e = per_reg(bits);

	quads_along_cols(b, e);
	slot_cols(b, e);
	reg_rows(b, 8, MIN(m, 16u));
	reg_cols(b, 4 * e, k);
	reg_rows(b, 16, m);
	return size(b, m, k, bits);
}

static bool operand_b(build *b, uint32_t k, uint32_t n, uint32_t bits)
{
	uint32_t e = per_reg(bits);

	quads_along_rows(b, e);
	slot_rows(b, e);
	reg_rows(b, 4 * e, k);
	reg_cols(b, 8, n);
	return size(b, k, n, bits);
}

static bool accumulator(build *b, uint32_t m, uint32_t n, uint32_t bits)
{
	quads_along_cols(b, 2);
	if (bits == 16)
		slot(b, 0, 1);
	else
		reg(b, 0, 1);
	reg_rows(b, 8, MIN(m, 16u));
	reg_cols(b, 8, n);
	reg_rows(b, 16, m);
	return size(b, m, n, bits);
}

/* ---- mma ---- */

static bool is_m8n8k4_f16(const cptx_frag *f)
{
	return f->m == 8 && f->n == 8 && f->k == 4 && (f->bits == 16 || (f->kind == CPTX_FRAG_MMA_C && f->bits == 32));
}

/* k times the bits of an element is 128 or 256 for one instruction, twice that if A is sparse; f64 has more. */
static bool mma_shape(build *b)
{
	const cptx_frag *f = b->f;
	uint32_t kbits = f->k * f->bits, least = f->bits == 64 ? 256 : 128, most = f->bits == 64 ? 1024 : 256;
	bool sparse = f->sparse || f->kind == CPTX_FRAG_MMA_META;

	if (sparse)
		least *= 2, most *= 2;
	if (f->m == 8)
		most = least;
	if (!is_power(f->bits) || f->bits > 64 || f->bits == 2 || (sparse && (f->bits == 64 || f->bits == 1)))
		NO_SUCH("mma fragment: elements of %u bits; they have 4, 8, 16 or 32, if A is not sparse also 1 or 64", f->bits);
	if (f->n != 8 || !(f->m == 16 || (f->m == 8 && !sparse)))
		NO_SUCH("mma fragment: m%un%u; shapes are m16n8%s", f->m, f->n, sparse ? "" : " and m8n8");
	if (f->m == 8 && f->bits == 32)
		NO_SUCH("mma fragment: no m8n8 with elements of 32 bits; m16n8k4 and m16n8k8 are there");
	if (kbits < least || kbits > most || !is_power(f->k))
		NO_SUCH("mma fragment: no m%un%uk%u with %selements of %u bits; k is a power of two from %u to %u", f->m, f->n, f->k,
		        sparse ? "sparse " : "", f->bits, least / f->bits, most / f->bits);
	return true;
}

static bool mma_c(build *b)
{
	const cptx_frag *f = b->f;

	if ((f->m != 8 && f->m != 16) || f->n != 8)
		NO_SUCH("mma fragment: C of m%un%u; it is m16n8 or m8n8", f->m, f->n);
	if ((f->bits != 16 || f->m == 8) && f->bits != 32 && f->bits != 64)
		NO_SUCH("mma fragment: C of m%un%uk%u with elements of %u bits; they have 32 or 64, of m16n8 also 16", f->m, f->n,
		        f->k, f->bits);
	return accumulator(b, f->m, f->n * MAX(f->beside, 1u), f->bits);
}

/* Four products of 8x8x4: lanes 4q to 4q + 3 and 16 + 4q to 19 + 4q do number q. */
static bool mma_m8n8k4(build *b)
{
	const cptx_frag *f = b->f;
	bool is_b = f->kind == CPTX_FRAG_MMA_B;

	if (f->kind == CPTX_FRAG_MMA_C) {
		bool wide = f->bits == 32;
		lane(b, 1, 0);
		wide ? lane(b, 0, 2) : lane(b, 2, 0);
		lane_rows(b, 8, 32);
		lane(b, 4, 0);
		if (wide)
			reg(b, 0, 1), reg(b, 2, 0), reg(b, 0, 4);
		else
			slot(b, 0, 1), reg_cols(b, 2, 8);
		return size(b, 32, 8, f->bits);
	}
	bool lane_counts_rows = is_b == f->trans;
	if (lane_counts_rows)
		lane_rows(b, 1, 4);
	else
		lane_cols(b, 1, 4);
	if (is_b)
		lane_cols(b, 8, 32), lane(b, 0, 4);
	else
		lane_rows(b, 8, 32), lane(b, 4, 0);
	if (lane_counts_rows)
		slot(b, 0, 1), reg(b, 0, 2);
	else
		slot(b, 1, 0), reg(b, 2, 0);
	return is_b ? size(b, 4, 32, 16) : size(b, 32, 4, 16);
}

/* Metadata: a word has 16 indices of 2 bits or 8 of 4 bits.  With elements of 16 and 32 bits it holds two rows. */
static bool metadata(build *b)
{
	const cptx_frag *f = b->f;
	/* one index covers a pair of 4-bit elements */
	uint32_t bits = f->bits == 32 ? 4 : 2, cols = f->k / (f->bits == 4 ? 4 : 2);
	uint32_t word = 32 / bits, warps = f->kind == CPTX_FRAG_WGMMA_META ? 4 : 1;
	uint32_t holders = 16 * cols / word / 8; /* number of lanes of a quad that hold indices: 1, 2 or 4 */

	if (f->select >= 4 / holders)
		NO_SUCH("metadata fragment: sparsity selector %u; for this shape it is below %u", f->select, 4 / holders);
	if (f->bits >= 16) {
		lane(b, 0, holders > 1 ? cols / 2 : 0), lane(b, 0, 0);
		slot_cols(b, word / 2);
		slot(b, 8, 0);
	} else {
		lane(b, 8, 0), lane(b, 0, holders > 2 ? cols / 2 : 0);
		slot_cols(b, word);
	}
	lane_rows(b, 1, 8);
	lane_rows(b, 16, 16 * warps);
	b->map->mask = (uint16_t)(4 - holders), b->map->value = (uint16_t)(f->select * holders);
	return size(b, 16 * warps, cols, bits);
}

bool layout_scale_vector(build *b)
{
	const cptx_frag *f = b->f;
	uint32_t vec = MAX(f->vec, 1);

	if (vec != 1 && vec != 2 && vec != 4)
		NO_SUCH("scale fragment: %u factors of a row; 1, 2 or 4 are possible", vec);
	if (f->byte % vec || f->byte + vec > 4)
		NO_SUCH("scale fragment: byte %u with %u factors; it is a multiple of %u below 4", f->byte, vec, vec);
	b->map->first = f->byte;
	return true;
}

static bool mma_scale(build *b)
{
	const cptx_frag *f = b->f;
	uint32_t vec = MAX(f->vec, 1);

	if (!layout_scale_vector(b))
		return false;
	if (f->kind == CPTX_FRAG_MMA_SCALE_A) {
		if (f->select > 1)
			NO_SUCH("scale fragment: thread-id %u; of A it is 0 or 1", f->select);
		lane(b, 8, 0), lane(b, 0, 0), lane_rows(b, 1, 8);
		slot_cols(b, vec);
		b->map->mask = 2, b->map->value = (uint16_t)(f->select * 2);
		return size(b, 16, vec, 8);
	}
	if (f->select > 3)
		NO_SUCH("scale fragment: thread-id %u; of B it is 0 to 3", f->select);
	lane(b, 0, 0), lane(b, 0, 0), lane_cols(b, 1, 8);
	slot_rows(b, vec);
	b->map->mask = 3, b->map->value = f->select;
	return size(b, vec, 8, 8);
}

/* ---- wmma ---- */

static bool wmma(build *b)
{
	const cptx_frag *f = b->f;
	bool square = f->m == 16 && f->n == 16, small = f->m == 8 && f->n == 8;
	bool large = square || (f->m == 8 && f->n == 32) || (f->m == 32 && f->n == 8), fits;

	if (f->kind == CPTX_FRAG_WMMA_C)
		fits = (large && (f->bits == 16 || f->bits == 32)) || (small && (f->bits == 32 || f->bits == 64));
	else
		fits = (large && f->k == 16 && (f->bits == 16 || f->bits == 8)) || (square && f->k == 8 && f->bits == 32) ||
		       (small && f->k == 4 && f->bits == 64) || (small && f->k == 32 && f->bits == 4) ||
		       (small && f->k == 128 && f->bits == 1);
	if (!fits)
		NO_SUCH("wmma fragment: no m%un%uk%u with elements of %u bits; the table of wmma in the manual has the shapes", f->m,
		        f->n, f->k, f->bits);
	if (f->kind == CPTX_FRAG_WMMA_C)
		return accumulator(b, f->m, f->n, f->bits);
	if (f->kind == CPTX_FRAG_WMMA_A)
		operand_a(b, f->m, f->k, f->bits);
	else
		operand_b(b, f->k, f->n, f->bits);
	while (f->repeated && b->nreg < 3) /* the operand is repeated to fill 8 registers */
		b->map->reg_copies |= (uint16_t)(1u << b->nreg), reg(b, 0, 0);
	return true;
}

/* ---- wgmma: four warps, 16 rows each ---- */

static bool wgmma(build *b)
{
	const cptx_frag *f = b->f;
	bool sparse = f->sparse || f->kind == CPTX_FRAG_WGMMA_META;

	if (f->m != 64)
		NO_SUCH("wgmma fragment: m%u; it is always m64", f->m);
	if (f->kind == CPTX_FRAG_WGMMA_D) {
		if (!f->n || f->n % 8 || f->n > 256)
			NO_SUCH("wgmma fragment: n%u; it is a multiple of 8 from 8 to 256", f->n);
		if (f->bits != 16 && f->bits != 32)
			NO_SUCH("wgmma fragment: D with elements of %u bits; they have 16 or 32", f->bits);
		accumulator(b, 16, f->n, f->bits);
		b->map->regs = (uint16_t)(f->n * f->bits / 64);
	} else {
		uint32_t kbits = sparse ? 512 : 256;
		if (f->bits != 8 && f->bits != 16 && f->bits != 32 && (f->bits != 1 || sparse))
			NO_SUCH("wgmma fragment: elements of %u bits; they have 8, 16 or 32, if A is not sparse also 1", f->bits);
		if (f->k * f->bits != kbits)
			NO_SUCH("wgmma fragment: k%u with elements of %u bits; it is k%u", f->k, f->bits, kbits / f->bits);
		if (f->kind == CPTX_FRAG_WGMMA_META)
			return metadata(b);
		operand_a(b, 16, sparse ? f->k / 2u : f->k, f->bits);
	}
	lane_rows(b, 16, 64);
	b->map->rows = 64;
	return true;
}

/* ---- ldmatrix, stmatrix ---- */

static bool matrix(build *b)
{
	const cptx_frag *f = b->f;
	bool store = f->kind == CPTX_FRAG_STMATRIX, tall = f->m == 16 && !store;
	uint32_t num = MAX(f->num, 1), shape = f->m * 1000u + f->n * 10u + f->trans;
	const char *name = store ? "stmatrix" : "ldmatrix";

	if (num != 1 && num != 2 && (num != 4 || tall))
		NO_SUCH("%s fragment: .x%u; .x1, .x2%s are possible", name, num, tall ? "" : " and .x4");
	if (shape == 8080 && f->bits == 16) {
		quads_along_cols(b, 2), slot_cols(b, 2);
		reg_rows(b, 8, 8 * num);
		return size(b, 8 * num, 8, 16);
	}
	if (shape == 8081 && f->bits == 16) {
		quads_along_rows(b, 2), slot_rows(b, 2);
		reg_rows(b, 8, 8 * num);
		return size(b, 8 * num, 8, 16);
	}
	if (shape == 16161 && f->bits == 8 && !store) {
		quads_along_rows(b, 4), slot_rows(b, 4);
		reg(b, 0, 8), reg_rows(b, 16, 16 * num);
		return size(b, 16 * num, 16, 8);
	}
	if (shape == 8160 && f->bits == 8 && !store) {
		quads_along_cols(b, 4), slot_cols(b, 4);
		reg_rows(b, 8, 8 * num);
		return size(b, 8 * num, 16, 8);
	}
	if (shape == 16081 && f->bits == 8 && store) {
		quads_along_rows(b, 2), slot(b, 1, 0), slot(b, 0, 8);
		reg_rows(b, 8, 8 * num);
		return size(b, 8 * num, 16, 8);
	}
	NO_SUCH("%s fragment: no m%un%u%s with elements of %u bits; there are m8n8 of 16%s", name, f->m, f->n,
	        f->trans ? " .trans" : "", f->bits, store ? ", and m16n8 .trans of 8" : ", and m16n16 .trans and m8n16 of 8");
}

/* ---- all kinds ---- */

static bool mma(build *b)
{
	const cptx_frag *f = b->f;

	if (f->beside > 1 && (!is_power(f->beside) || f->beside > 16 || is_m8n8k4_f16(f) ||
	                      (f->kind != CPTX_FRAG_MMA_B && f->kind != CPTX_FRAG_MMA_C)))
		NO_SUCH("mma fragment: %u beside one another; those of B and C, but of f16 m8n8k4, can be 1, 2, 4, 8 or 16",
		        f->beside);
	if (is_m8n8k4_f16(f))
		return mma_m8n8k4(b);
	if (f->kind == CPTX_FRAG_MMA_C)
		return mma_c(b);
	if (!mma_shape(b))
		return false;
	if (f->kind == CPTX_FRAG_MMA_META)
		return metadata(b);
	return f->kind == CPTX_FRAG_MMA_A ? operand_a(b, f->m, f->sparse ? f->k / 2u : f->k, f->bits)
	                                  : operand_b(b, f->k, f->n * MAX(f->beside, 1u), f->bits);
}

static const struct kind {
	const char *name;
	bool (*build)(build *b);
} kinds[] = {
	[CPTX_FRAG_MMA_A] = { "mma A", mma },
	[CPTX_FRAG_MMA_B] = { "mma B", mma },
	[CPTX_FRAG_MMA_C] = { "mma C", mma },
	[CPTX_FRAG_MMA_META] = { "mma metadata", mma },
	[CPTX_FRAG_MMA_SCALE_A] = { "mma scale A", mma_scale },
	[CPTX_FRAG_MMA_SCALE_B] = { "mma scale B", mma_scale },
	[CPTX_FRAG_WMMA_A] = { "wmma A", wmma },
	[CPTX_FRAG_WMMA_B] = { "wmma B", wmma },
	[CPTX_FRAG_WMMA_C] = { "wmma C", wmma },
	[CPTX_FRAG_WGMMA_A] = { "wgmma A", wgmma },
	[CPTX_FRAG_WGMMA_D] = { "wgmma D", wgmma },
	[CPTX_FRAG_WGMMA_META] = { "wgmma metadata", wgmma },
	[CPTX_FRAG_LDMATRIX] = { "ldmatrix", matrix },
	[CPTX_FRAG_STMATRIX] = { "stmatrix", matrix },
	[CPTX_FRAG_TCGEN05] = { "tcgen05", layout_tcgen05 },
	[CPTX_FRAG_TMEM_D] = { "tmem D", layout_tmem },
	[CPTX_FRAG_TMEM_A] = { "tmem A", layout_tmem },
	[CPTX_FRAG_TMEM_SCALE_A] = { "tmem scale A", layout_tmem },
	[CPTX_FRAG_TMEM_SCALE_B] = { "tmem scale B", layout_tmem },
	[CPTX_FRAG_TMEM_META] = { "tmem metadata", layout_tmem },
};

const char *cptx_frag_kind_name(enum cptx_frag_kind kind)
{
	return (unsigned)kind < ARRAY_LEN(kinds) ? kinds[kind].name : "?";
}

/* Bits of the lane number that have no step and do not select the lanes that hold elements. */
static uint16_t idle_bits(const cptx_frag_map *m, uint32_t n)
{
	uint16_t idle = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!m->lane[i].row && !m->lane[i].col)
			idle |= (uint16_t)(1u << i);
	return idle & (uint16_t)~m->mask;
}

bool cptx_frag_resolve(const cptx_frag *f, cptx_frag_map *map, cptx_error *err)
{
	build b = { .f = f, .map = map, .err = err };

	if (!IS_GIVEN(map, "map", NOWHERE, err))
		return false;
	*map = (cptx_frag_map){ 0 };
	if (!IS_GIVEN(f, "fragment", NOWHERE, err))
		return false;
	if ((unsigned)f->kind >= ARRAY_LEN(kinds))
		return error_set(err, CPTX_E_ARG, NOWHERE, "fragment: there is no kind %u", (unsigned)f->kind);
	if (!kinds[f->kind].build(&b))
		return false;
	map->lanes = (uint16_t)(1u << b.nlane);
	map->slots = (uint8_t)(1u << b.nslot);
	if (!map->regs)
		map->regs = (uint16_t)(1u << b.nreg);
	map->copies = idle_bits(map, b.nlane);
	return true;
}

static void add_steps(cptx_cell *cell, const cptx_frag_step *step, uint32_t number)
{
	for (; number; number >>= 1, step++)
		if (number & 1)
			cell->row = (uint16_t)(cell->row + step->row), cell->col = (uint16_t)(cell->col + step->col);
}

bool cptx_frag_cell(const cptx_frag_map *m, cptx_place at, cptx_cell *cell)
{
	if (!cell || !layout_is_map(m))
		return false;
	*cell = (cptx_cell){ 0 };
	if (at.lane >= m->lanes || at.reg >= m->regs || at.slot >= m->slots || (at.lane & m->mask) != m->value)
		return false;
	add_steps(cell, m->lane, at.lane);
	add_steps(cell, m->reg, at.reg);
	add_steps(cell, m->slot, at.slot);
	return cell->row < m->rows && cell->col < m->cols;
}

/* Takes the largest step of a list that still fits; returns 0 if none does. */
static uint32_t take(const cptx_frag_step *step, uint32_t n, uint32_t taken, cptx_cell left, uint32_t *best)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t length = step[i].row + step[i].col;
		if (length > *best && step[i].row <= left.row && step[i].col <= left.col && !(taken >> i & 1))
			*best = length, found = 1u << i;
	}
	return found;
}

bool cptx_frag_place(const cptx_frag_map *m, cptx_cell cell, cptx_place *place)
{
	cptx_cell left = cell, again;

	if (!place || !layout_is_map(m))
		return false;
	*place = (cptx_place){ m->value, 0, 0 };
	while (left.row || left.col) {
		uint32_t best = 0, l = take(m->lane, ARRAY_LEN(m->lane), place->lane, left, &best);
		uint32_t r = take(m->reg, ARRAY_LEN(m->reg), place->reg, left, &best);
		uint32_t s = take(m->slot, ARRAY_LEN(m->slot), place->slot, left, &best);
		cptx_cell step = { 0 };
		if (!best)
			return false;
		/* the last list that found a step has the largest */
		if (s)
			place->slot |= (uint16_t)s, add_steps(&step, m->slot, s);
		else if (r)
			place->reg |= (uint16_t)r, add_steps(&step, m->reg, r);
		else
			place->lane |= (uint16_t)l, add_steps(&step, m->lane, l);
		left.row = (uint16_t)(left.row - step.row), left.col = (uint16_t)(left.col - step.col);
	}
	return cptx_frag_cell(m, *place, &again) && again.row == cell.row && again.col == cell.col;
}
