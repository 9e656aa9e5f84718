/* SPDX-License-Identifier: MIT */
/*
 * Scale factors of blocks, f32: of A for 1 x 128 elements, of B for 128 x 128.
 *
 * Tensor cores of sm_90 keep 13 bits of sums of 8-bit floats, and know no factors.  So a K tile, 128 elements, makes sums of
 * its own, which are multiplied by both factors and added to those of the tile in f32.
 *
 * The factors of A come with each stage, by TMA.  Those of B are few: each thread loads them itself, of the next K tile
 * while this one is multiplied.
 */
#include "gemm/tma/tma.h"

#include <cptx/cptx.h>

enum { FACTOR = 4 /* bytes */, COPY_ROWS = 4 /* that a copy of factors begins at */, COLUMNS = 192 /* most of a tile */ };

#define RULE(ok, ...) TMA_RULE(ok, "%s: " __VA_ARGS__)

static uint32_t common_divisor(uint32_t a, uint32_t b) { return b ? common_divisor(b, a % b) : a; }

uint32_t tma_gemm_scaled_parts(uint32_t columns) { return columns / common_divisor(columns, GEMM_SCALE_BLOCK); }

uint32_t tma_gemm_scaled_rows(const cptx_gemm_opt *o)
{
	return o->scale && !tma_gemm_has_weights(o) ? o->bm + (o->experts ? COPY_ROWS : 0) : 0;
}

bool tma_gemm_scaled_check(const char *target, const cptx_gemm_opt *o, cptx_error *err)
{
	RULE(!o->scale_rows || o->scale, "factors of B for 1 x 128 elements (.scale_rows) without .scale = CPTX_F32", target);
	if (!o->scale || tma_gemm_has_weights(o))
		return true;
	/* beside the sums of a tile those of a K tile need registers */
	RULE(o->bm <= 128 && o->bn <= COLUMNS,
	     "tile %ux%u with scale factors; 64 and 128 rows and up to %d columns have room in registers", target, o->bm, o->bn,
	     COLUMNS);
	RULE(o->scale == CPTX_F32, "scale factors of type .%s; here they are f32", target, cptx_type_name(o->scale));
	RULE(is_fp8(o->a), "scale factors of .%s; e4m3 and e5m2 have them", target, cptx_type_name(o->a));
	RULE(!o->swap, "scale factors with a tile whose sides are swapped; the rows of factors lie along M", target);
	RULE(
		o->scale_rows || tma_gemm_scaled_parts(o->bn) <= GEMM_SCALE_PARTS,
		"tile N = %u with scale factors; 8, 16, 24, 32, 48, 64, 96, 128 and 192 are possible, which blocks of 128 divide in "
		"few parts",
		target, o->bn);
	return true;
}

void tma_gemm_scaled_new(cptx_kernel *k, tma_gemm_scaled *x, const cptx_tiled_mma *mma)
{
	if (!x->t->row_scales)
		return;
	x->parts = x->t->o->scale_rows ? 1 : tma_gemm_scaled_parts(mma->opt.n), x->width = mma->opt.n / MAX(x->parts, 1u);
	cptx_acc_new(k, mma, &x->part);
	if (x->t->o->scale_rows) {
		const uint32_t more = x->of_a->at + tma_gemm_row_scale_bytes(x->t);
		x->cols_at = cptx_add(k, cptx_mad(k, x->acc->col, FACTOR, x->of_a->smem, .mode = CPTX_LO), more);
	}
	x->of_b = cptx_regs(k, CPTX_F32, x->parts);
	for (uint32_t i = 0; i < x->parts; i++)
		x->of_b_at[i] = cptx_reg(k, CPTX_U64);
	x->of_a_at = cptx_var(k, CPTX_U32, cptx_mad(k, x->acc->row, FACTOR, x->of_a->smem, .mode = CPTX_LO));
}

/* Loads the factors of B of the K tile that the addresses are of, and goes on to the next one. */
static void load_of_b(cptx_kernel *k, tma_gemm_scaled *x, cptx_val when)
{
	for (uint32_t i = 0; i < x->parts; i++) {
		cptx_ld(k, x->of_b_at[i], .space = CPTX_GLOBAL, .nc = CPTX_NC, .type = CPTX_F32, .into = cptx_elem(x->of_b, i),
		        .when = when);
		cptx_add(k, x->of_b_at[i], FACTOR, .into = x->of_b_at[i]);
	}
}

/* Of experts copies begin at a multiple of four rows. */
static void find_rows(cptx_kernel *k, const tma_gemm_scaled *x)
{
	if (!x->t->in.experts)
		return;
	const cptx_val more = cptx_and(k, cptx_as(x->w->m0, CPTX_U32), 3), row = cptx_add(k, x->acc->row, more);
	cptx_mad(k, row, FACTOR, x->of_a->smem, .into = x->of_a_at, .mode = CPTX_LO);
}

/* Columns behind the last one have the scale factors of the last block: nobody stores them. */
void tma_gemm_scaled_begin(cptx_kernel *k, tma_gemm_scaled *x)
{
	const tma_gemm_work *w = x->w;

	if (!x->t->row_scales)
		return;
	find_rows(k, x);
	if (x->t->o->scale_rows)
		return;
	const cptx_val blocks = cptx_div(k, cptx_add(k, w->in.N, GEMM_SCALE_BLOCK - 1), GEMM_SCALE_BLOCK);
	const cptx_val last = cptx_sub(k, blocks, 1);
	const cptx_val z = tma_gemm_z_of(k, x->t, w, &w->in.of[1]); /* a broadcast B has one set of factors */

	for (uint32_t i = 0; i < x->parts; i++) {
		cptx_val block = cptx_shr(k, cptx_add(k, cptx_as(w->n0, CPTX_U32), i * x->width), 7);
		block = cptx_min(k, block, last);
		if (w->z.kind != CPTX_VAL_NONE)
			block = cptx_mad(k, cptx_as(z, CPTX_U32), blocks, block, .mode = CPTX_LO);
		cptx_val index = cptx_mul_wide(k, block, w->k_tiles);
		if (x->t->in.stream_k)
			index = cptx_add(k, index, cptx_cvt(k, w->k_first, .dtype = CPTX_U64));
		cptx_mad(k, index, FACTOR, w->in.map[CPTX_GEMM_MAP_SCALE_B], .into = x->of_b_at[i], .mode = CPTX_LO);
	}
	load_of_b(k, x, (cptx_val){ 0 });
}

cptx_val tma_gemm_scaled_load(cptx_kernel *k, const tma_gemm_scaled *x, cptx_val stage)
{
	const uint32_t rows = x->part.rows;
	const cptx_val of_a = cptx_regs(k, CPTX_F32, rows), at = cptx_mad(k, stage, x->of_a->apart, x->of_a_at, .mode = CPTX_LO);

	for (uint32_t r = 0; r < rows; r++)
		cptx_ld(k, cptx_offset(at, (int64_t)x->part.atom_row[r] * FACTOR), .space = CPTX_SHARED, .type = CPTX_F32,
		        .into = cptx_elem(of_a, r));
	return of_a;
}

cptx_val tma_gemm_scaled_factors(cptx_kernel *k, tma_gemm_scaled *x, cptx_val of_a, cptx_val k_tile)
{
	const uint32_t rows = x->part.rows;

	if (x->t->o->scale_rows)
		return of_a;
	const cptx_val both = cptx_regs(k, CPTX_F32, x->parts * rows);
	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t i = 0; i < x->parts; i++)
			cptx_mul(k, cptx_elem(of_a, r), cptx_elem(x->of_b, i), .into = cptx_elem(both, i * rows + r));
	load_of_b(k, x, cptx_setp(k, cptx_add(k, k_tile, 1, .type = CPTX_U32), x->w->k_end, .cmp = CPTX_LT));
	return both;
}

/* An element times the factor of its column, those of two neighbours read at once. */
static cptx_val times_column(cptx_kernel *k, const cptx_acc_elem *e, cptx_val at, cptx_val *two)
{
	if (e->i % 2 == 0)
		*two = cptx_ld(k, cptx_offset(at, (int64_t)e->col * FACTOR), .space = CPTX_SHARED, .vec = CPTX_V2, .type = CPTX_F32);
	return cptx_mul(k, e->value, cptx_elem(*two, e->i % 2));
}

void tma_gemm_scaled_add(cptx_kernel *k, const tma_gemm_scaled *x, cptx_val stage, cptx_val factors, bool fresh)
{
	const bool cols = x->t->o->scale_rows;
	const cptx_val at = cols ? cptx_mad(k, stage, x->of_a->apart, x->cols_at, .mode = CPTX_LO) : (cptx_val){ 0 };
	cptx_val two = { 0 };

	CPTX_ACC_EACH(&x->part, e)
	{
		const cptx_val factor = cptx_elem(factors, e.col / x->width * x->part.rows + e.at_row);
		const cptx_val sum = cptx_elem(x->acc->regs, e.i), value = cols ? times_column(k, &e, at, &two) : e.value;
		if (fresh)
			cptx_mul(k, value, factor, .into = sum);
		else
			cptx_fma(k, value, factor, sum, .rnd = CPTX_RN, .into = sum);
	}
}
