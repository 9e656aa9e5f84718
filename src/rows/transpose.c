/* SPDX-License-Identifier: MIT */
/*
 * Transposition: a CTA moves a tile of 64 rows and 64 columns through shared memory, so that both matrices are accessed
 * along their rows.  Elements of 16 bits go in pairs where rows of both matrices begin at even elements, else one by one.
 */
#include "rows/core.h"

#include <cptx/cptx.h>

enum { LANES = 32, WARPS = ROWS_TILE_THREADS / LANES, SIDE = ROWS_TILE };

typedef struct tile {
	cptx_kernel *k;
	uint32_t size, n;            /* bytes of an element; columns of x */
	cptx_val x, y, rows;         /* matrices; rows of x */
	cptx_val x_stride, y_stride; /* bytes */
	cptx_val row, column;        /* of the tile's first element in x */
	cptx_val lane, warp, shared;
} tile;

static bool in_pairs(const cptx_rows_opt *o) { return rows_bytes(o->in) == 2 && o->align >= 2 && o->n % 2 == 0; }

static cptx_val address(const tile *t, cptx_val at, cptx_val stride, cptx_val row, cptx_val column)
{
	cptx_kernel *k = t->k;
	cptx_val begin = cptx_add(k, at, cptx_mul_wide(k, row, stride));

	return cptx_add(k, begin, cptx_mul_wide(k, column, t->size));
}

/* The address of a word of the tile, whose rows have so many and one more, so that columns lie in all banks. */
static cptx_val word(const tile *t, cptx_val row, cptx_val column, uint32_t words)
{
	cptx_kernel *k = t->k;
	cptx_val begin = cptx_mad(k, row, (words + 1) * 4, t->shared, .mode = CPTX_LO);

	return cptx_mad(k, column, 4, begin, .mode = CPTX_LO);
}

static cptx_val both_inside(const tile *t, cptx_val row, cptx_val column)
{
	cptx_val has_row = cptx_setp(t->k, row, t->rows, .cmp = CPTX_LT);

	return cptx_and(t->k, has_row, cptx_setp(t->k, column, t->n, .cmp = CPTX_LT));
}

static void move_one_by_one(const tile *t)
{
	cptx_kernel *k = t->k;
	const enum cptx_type type = t->size == 2 ? CPTX_U16 : CPTX_U32;

	for (uint32_t i = 0; i < 2 * SIDE / WARPS; i++) {
		cptx_val r = cptx_add(k, t->warp, i / 2 * WARPS), c = cptx_add(k, t->lane, i % 2 * LANES);
		cptx_val row = cptx_add(k, t->row, r), column = cptx_add(k, t->column, c), v = cptx_var(k, type, 0);
		cptx_ld(k, address(t, t->x, t->x_stride, row, column), .space = CPTX_GLOBAL, .type = type, .into = v,
		        .when = both_inside(t, row, column));
		cptx_st(k, word(t, r, c, SIDE), t->size == 2 ? cptx_cvt(k, v, .dtype = CPTX_U32) : v, .space = CPTX_SHARED);
	}
	cptx_bar_sync(k, 0);
	for (uint32_t i = 0; i < 2 * SIDE / WARPS; i++) {
		cptx_val c = cptx_add(k, t->warp, i / 2 * WARPS), r = cptx_add(k, t->lane, i % 2 * LANES);
		cptx_val row = cptx_add(k, t->row, r), column = cptx_add(k, t->column, c);
		cptx_val v = cptx_ld(k, word(t, r, c, SIDE), .space = CPTX_SHARED, .type = CPTX_U32);
		cptx_st(k, address(t, t->y, t->y_stride, column, row), t->size == 2 ? cptx_cvt(k, v, .dtype = CPTX_U16) : v,
		        .space = CPTX_GLOBAL, .when = both_inside(t, row, column));
	}
}

/* A pair of neighbours in a row of y; of the last row of x, where their number is odd, the first one. */
static void store_pair(const tile *t, cptx_val column, cptx_val row, cptx_val pair)
{
	cptx_kernel *k = t->k;
	cptx_val to = address(t, t->y, t->y_stride, column, row), inside = both_inside(t, row, column);
	cptx_val two = cptx_setp(k, cptx_add(k, row, 1), t->rows, .cmp = CPTX_LT), both = cptx_and(k, inside, two);

	cptx_st(k, to, pair, .space = CPTX_GLOBAL, .when = both);
	cptx_val one = cptx_and(k, inside, cptx_setp(k, cptx_add(k, row, 1), t->rows, .cmp = CPTX_EQ));
	cptx_st(k, to, cptx_cvt(k, pair, .dtype = CPTX_U16), .space = CPTX_GLOBAL, .when = one);
}

static void move_pairs(const tile *t)
{
	enum { WORDS = SIDE / 2, FIRSTS = 0x5410, SECONDS = 0x7632 };
	cptx_kernel *k = t->k;
	cptx_val c = cptx_mul(k, t->lane, 2, .mode = CPTX_LO), column = cptx_add(k, t->column, c);

	for (uint32_t i = 0; i < SIDE / WARPS; i++) {
		cptx_val r = cptx_add(k, t->warp, i * WARPS), row = cptx_add(k, t->row, r), v = cptx_var(k, CPTX_U32, 0);
		cptx_ld(k, address(t, t->x, t->x_stride, row, column), .space = CPTX_GLOBAL, .type = CPTX_U32, .into = v,
		        .when = both_inside(t, row, column));
		cptx_st(k, word(t, r, t->lane, WORDS), v, .space = CPTX_SHARED);
	}
	cptx_bar_sync(k, 0);
	cptx_val r = cptx_mul(k, t->lane, 2, .mode = CPTX_LO), row = cptx_add(k, t->row, r);
	for (uint32_t i = 0; i < WORDS / WARPS; i++) {
		cptx_val pair = cptx_add(k, t->warp, i * WARPS), from = word(t, r, pair, WORDS);
		cptx_val a = cptx_ld(k, from, .space = CPTX_SHARED, .type = CPTX_B32);
		cptx_val b = cptx_ld(k, cptx_offset(from, (WORDS + 1) * 4), .space = CPTX_SHARED, .type = CPTX_B32);
		cptx_val first = cptx_mad(k, pair, 2, t->column, .mode = CPTX_LO);
		cptx_val firsts = cptx_prmt(k, a, b, FIRSTS), seconds = cptx_prmt(k, a, b, SECONDS), next = cptx_add(k, first, 1);
		store_pair(t, first, row, cptx_as(firsts, CPTX_U32));
		store_pair(t, next, row, cptx_as(seconds, CPTX_U32));
	}
}

void rows_transpose(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	const cptx_rows_opt *o = row->o;
	tile t = { .k = k, .size = rows_bytes(o->in), .n = o->n, .x = row->at[CPTX_ROWS_X], .y = row->at[CPTX_ROWS_Y] };
	cptx_val cta = cptx_ctaid_x(k), tid = cptx_tid_x(k), across = cptx_imm((o->n + SIDE - 1) / SIDE);

	(void)user;
	t.rows = row->rows, t.x_stride = row->stride[CPTX_ROWS_X], t.y_stride = row->stride[CPTX_ROWS_Y];
	cptx_val down = cptx_div(k, cta, across), left = cptx_rem(k, cta, across);
	t.row = cptx_mul(k, down, SIDE, .mode = CPTX_LO), t.column = cptx_mul(k, left, SIDE, .mode = CPTX_LO);
	t.lane = cptx_and(k, tid, LANES - 1), t.warp = cptx_shr(k, tid, 5);
	t.shared = cptx_mov(k, cptx_shared(k, CPTX_B32, SIDE * (SIDE + 1)), .type = CPTX_U32);
	if (in_pairs(o))
		move_pairs(&t);
	else
		move_one_by_one(&t);
}
