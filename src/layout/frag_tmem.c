/* SPDX-License-Identifier: MIT */
/* Tensor memory: the elements that tcgen05.ld and st move, and how tcgen05.mma lays out its operands. */
#include "layout/layout.h"

/* ---- tcgen05.ld, tcgen05.st: rows are lanes of tensor memory, columns its columns, both from the address on ---- */

bool layout_tcgen05(build *b)
{
	const cptx_frag *f = b->f;
	uint32_t num = MAX(f->num, 1), half = f->pack16 ? 2 : 1; /* half: with .pack every column step counts two halves */
	uint32_t words = f->n == 256 ? 4 : f->n == 128 ? 2 : 1;  /* registers of .x1 */

	if (!(f->m == 32 && f->n == 32) && !(f->m == 16 && (f->n == 32 || f->n == 64 || f->n == 128 || f->n == 256)))
		NO_SUCH("tcgen05 fragment: no %ux%ub; shapes are 32x32b, 16x64b, 16x128b, 16x256b and 16x32bx2 (m 16, n 32)", f->m,
		        f->n);
	if (!is_power(num) || num > 128 / words)
		NO_SUCH("tcgen05 fragment: .x%u of %ux%ub; it is a power of two up to %u", num, f->m, f->n, 128 / words);
	if (f->split && (f->m != 16 || f->n != 32 || f->split + half * num > 512))
		NO_SUCH("tcgen05 fragment: the second half %u columns on; only 16x32bx2 has one, and no column is over 511",
		        f->split);
	if (f->pack16)
		slot(b, 0, 1);
	if (f->m == 32)
		lane_rows(b, 1, 32);
	else if (f->n == 32)
		lane_rows(b, 1, 16), lane(b, 0, f->split);
	else if (f->n == 64)
		lane(b, 8, 0), lane(b, 0, half), lane_rows(b, 1, 8);
	else
		lane_cols(b, f->n / 128 * half, f->n / 128 * half * 4), lane_rows(b, 1, 8);
	if (f->n == 256)
		reg(b, 0, half);
	if (f->n >= 128)
		reg(b, 8, 0);
	reg_cols(b, f->n / 32 * half, f->n / 32 * half * num);
	return size(b, f->m, f->n / 32 * half * num + f->split, 32 / half);
}

/* ---- tcgen05.mma ---- */

/*
 * How the rows of A and D lie in lanes, with the manual's letters of data path layouts:
 *   full     every lane a row: M = 128 (D); of a pair of CTAs M = 256 (A)
 *   spread   16 rows in each quarter of 32 lanes: M = 64 (F); pair, sparse, M = 128 (C)
 *   folded   the columns of D in 2 or 4 groups of lanes: .ws M = 64 (E), 32 (G); pair, M = 128 (B)
 */
typedef struct rows {
	uint32_t per_cta, folds;
	bool spread;
} rows;

static bool choose_rows(build *b, rows *r)
{
	const cptx_frag *f = b->f;
	uint32_t ctas = MAX(f->ctas, 1);

	if (ctas > 2 || (ctas == 2 && f->ws))
		NO_SUCH("tmem fragment: cta_group::%u%s; it is 1 or 2, of .ws 1", ctas, f->ws ? " with .ws" : "");
	r->per_cta = f->m / ctas;
	r->spread = r->per_cta == 64 && !f->ws && (ctas == 1 || f->sparse);
	r->folds = r->spread || !r->per_cta ? 1 : 128 / r->per_cta;
	if (r->per_cta != 128 && r->per_cta != 64 && !(f->ws && f->m == 32))
		NO_SUCH("tmem fragment: M = %u; it is %s", f->m,
		        f->ws       ? "32, 64 or 128 with .ws"
		        : ctas == 2 ? "128 or 256 with cta_group::2"
		                    : "64 or 128 with cta_group::1");
	if (f->m % ctas)
		NO_SUCH("tmem fragment: M = %u is not divisible among %u CTAs", f->m, ctas);
	return true;
}

/* Adds the lane bits of one CTA, then the bit of the other CTA.  Folds are `fold` columns apart (0: copies). */
static void row_lanes(build *b, const rows *r, uint32_t fold)
{
	if (r->spread) {
		lane_rows(b, 1, 16);
		lane(b, 0, 0); /* lanes 16 to 31 of a quarter are used if the address begins there */
		lane_rows(b, 16, 64);
		b->map->mask = 16;
	} else {
		lane_rows(b, 1, r->per_cta);
		for (uint32_t i = 1; i < r->folds; i *= 2)
			lane(b, 0, i * fold);
	}
	if (MAX(b->f->ctas, 1) == 2)
		lane(b, r->per_cta, 0);
}

static bool accumulators(build *b)
{
	const cptx_frag *f = b->f;
	rows r;

	if (!choose_rows(b, &r))
		return false;
	if (!f->n || f->n > 256 || f->n % 8)
		NO_SUCH("tmem fragment: N = %u; it is a multiple of 8 from 8 to 256", f->n);
	row_lanes(b, &r, f->n / r.folds);
	reg_cols(b, 1, f->n / r.folds);
	b->map->regs = (uint16_t)(f->n / r.folds);
	return size(b, f->m, f->n, 32); /* f16 elements take a word each too */
}

static bool operand_a(build *b)
{
	const cptx_frag *f = b->f;
	uint32_t k = f->sparse ? f->k / 2u : f->k;
	rows r;

	if (!choose_rows(b, &r))
		return false;
	bool is_long = f->bits == 4 && k == 96;
	if (!is_long && ((f->bits != 32 && f->bits != 16 && f->bits != 8 && f->bits != 4) || k * f->bits != 256))
		NO_SUCH("tmem fragment: k%u with elements of %u bits; k is %u for 32 bits, twice that for half as many%s", f->k,
		        f->bits, f->sparse ? 16 : 8, f->sparse ? "" : ", twice again if sparse");
	row_lanes(b, &r, 0);
	slot_cols(b, 32 / f->bits);
	reg_cols(b, 32 / f->bits, k);
	b->map->regs = (uint16_t)(k * f->bits / 32);
	return size(b, f->m, k, f->bits);
}

/*
 * Three or six factors: they begin in any byte of the first word, and go on in the word behind those of 128 rows.  The
 * columns of the fragment are the bytes of all these words.
 */
static bool long_scales(build *b, uint32_t count, uint32_t vec)
{
	uint32_t byte = b->f->byte, stride = (count + 127) / 128 * 4, words = (byte + vec + 3) / 4;

	if (byte > 3 || (vec == 6 && byte % 2))
		NO_SUCH("tmem scale fragment: byte %u with %u factors; it is 0 %s", byte, vec, vec == 6 ? "or 2" : "to 3");
	slot_cols(b, 4);
	reg_rows(b, 32, 32 * stride);
	reg(b, 0, 4);
	b->map->regs = (uint16_t)((words - 1) * stride + (count + 31) / 32);
	return size(b, count, 4 * words, 8);
}

/* Scale factors have four copies, in each 32 lanes; where D is folded in two, each half of the columns of B has its copies
 * in its own lanes. */
static bool scale_factors(build *b)
{
	const cptx_frag *f = b->f;
	uint32_t ctas = MAX(f->ctas, 1), vec = MAX(f->vec, 1), count = f->n, group;
	bool halves = f->kind == CPTX_FRAG_TMEM_SCALE_B && ctas == 2 && f->m == 128, is_long = vec == 3 || vec == 6;

	if (!is_long && !layout_scale_vector(b))
		return false;
	if (f->kind == CPTX_FRAG_TMEM_SCALE_A)
		count = f->m / ctas; /* each CTA has the factors of its own rows */
	if (!count || count > 256 || count % 8)
		NO_SUCH("tmem scale fragment: %u rows; it is a multiple of 8 up to 256", count);
	if (halves && f->n % 64)
		NO_SUCH("tmem scale fragment: N = %u of M = 128 in two CTAs; it is a multiple of 64: each half begins a new lane 0",
		        f->n);
	if (halves && is_long)
		NO_SUCH("tmem scale fragment: %u factors with M = 128 in two CTAs; the manual has them with M = 256 only", vec);
	group = halves ? count / 2 : count;
	lane_rows(b, 1, 32);
	lane(b, 0, 0);
	lane(b, halves ? group : 0, 0);
	if (is_long)
		return long_scales(b, count, vec);
	slot_cols(b, vec);
	reg_rows(b, 32, group);
	b->map->regs = (uint16_t)((group + 31) / 32);
	return size(b, count, vec, 8);
}

/*
 * Metadata: rows lie in the lanes where D has them.  8-bit and 4-bit elements take two columns for each row; of other
 * elements two rows share a lane: each 16 rows lie in the first 8 of their lanes.  Where D is folded each fold has a copy.
 */
static bool metadata(build *b)
{
	const cptx_frag *f = b->f;
	/* one index covers a pair of 4-bit elements */
	uint32_t bits = f->bits == 32 ? 4 : 2, cols = f->k / (f->bits == 4 ? 4u : 2u);
	rows r;

	if (!choose_rows(b, &r))
		return false;
	if ((f->bits != 4 && f->bits != 8 && f->bits != 16 && f->bits != 32) || f->k * f->bits != 512)
		NO_SUCH(
			"tmem metadata fragment: k%u with elements of %u bits; k is 128 for 4 bits, 64 for 8, 32 for 16 and 16 for 32",
			f->k, f->bits);
	if (f->bits <= 8) {
		row_lanes(b, &r, 0);
		slot_cols(b, 16);
		reg(b, 0, 16);
		return size(b, f->m, cols, bits);
	}
	lane_rows(b, 1, 8);
	lane(b, 0, f->k / 4u);
	if (r.spread)
		lane(b, 0, 0), b->map->mask = 16;
	lane_rows(b, 16, r.per_cta);
	for (uint32_t i = 1; i < r.folds; i *= 2)
		lane(b, 0, 0);
	if (MAX(f->ctas, 1) == 2)
		lane(b, r.per_cta, 0);
	slot_cols(b, f->k / 4u);
	slot(b, 8, 0);
	return size(b, f->m, cols, bits);
}

bool layout_tmem(build *b)
{
	switch (b->f->kind) {
	case CPTX_FRAG_TMEM_D: return accumulators(b);
	case CPTX_FRAG_TMEM_A: return operand_a(b);
	case CPTX_FRAG_TMEM_META: return metadata(b);
	default: return scale_factors(b);
	}
}
