/* SPDX-License-Identifier: MIT */
/* The largest elements of rows. */
#include "rows/rows.h"

#include <math.h>

#define V(operand) e.v[CPTX_ROWS_##operand]

void rows_argmax(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_val best = cptx_regs(k, CPTX_F32, 2), value = cptx_elem(best, 0), column = cptx_as(cptx_elem(best, 1), CPTX_U32);
	cptx_rows_at e;

	(void)user;
	cptx_reduce_clear(k, best, CPTX_REDUCE_ARG_MAX);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .fill = -INFINITY)
	{
		cptx_val better = cptx_setp(k, V(X), value, .cmp = CPTX_GT);
		cptx_mov(k, V(X), .into = value, .when = better);
		cptx_mov(k, cptx_rows_column(k, row, &e), .into = column, .when = better);
	}
	cptx_rows_reduce(k, row, best, CPTX_REDUCE_ARG_MAX);
	/* nothing is greater than -infinity */
	cptx_val none = cptx_setp(k, column, cptx_imm(UINT32_MAX), .cmp = CPTX_EQ);
	cptx_rows_put(k, row, CPTX_ROWS_AT, cptx_selp(k, 0, column, none, .type = CPTX_U32));
}

/* The largest element of the thread and its column into `best`; behind: of those that come after this one in the order of
 * values, and of columns among equal ones; NONE: of all. */
static void scan(cptx_kernel *k, cptx_rows_row *row, cptx_val best, cptx_val behind)
{
	cptx_val value = cptx_elem(best, 0), column = cptx_as(cptx_elem(best, 1), CPTX_U32);
	cptx_rows_at e;

	cptx_reduce_clear(k, best, CPTX_REDUCE_ARG_MAX);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .fill = -INFINITY)
	{
		cptx_val c = cptx_as(cptx_rows_column(k, row, &e), CPTX_U32), inside = cptx_rows_inside(k, row, &e);
		cptx_val more = cptx_setp(k, V(X), value, .cmp = CPTX_GT), same = cptx_setp(k, V(X), value, .cmp = CPTX_EQ);
		cptx_val first = cptx_and(k, same, cptx_setp(k, c, column, .cmp = CPTX_LT)), takes = cptx_or(k, more, first);
		if (behind.kind != CPTX_VAL_NONE) {
			cptx_val last = cptx_elem(behind, 0), at = cptx_as(cptx_elem(behind, 1), CPTX_U32);
			cptx_val less = cptx_setp(k, V(X), last, .cmp = CPTX_LT), equal = cptx_setp(k, V(X), last, .cmp = CPTX_EQ);
			cptx_val later = cptx_and(k, equal, cptx_setp(k, c, at, .cmp = CPTX_GT)), left = cptx_or(k, less, later);
			takes = cptx_and(k, takes, left);
		}
		if (inside.kind != CPTX_VAL_NONE)
			takes = cptx_and(k, takes, inside);
		cptx_mov(k, V(X), .into = value, .when = takes);
		cptx_mov(k, c, .into = column, .when = takes);
	}
}

/* One after another.  Only the thread that had the last one looks for its next one. */
void rows_top_k(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_val best = cptx_regs(k, CPTX_F32, 2), found = cptx_regs(k, CPTX_F32, 2), i = cptx_var(k, CPTX_U32, 0);
	cptx_val column = cptx_as(cptx_elem(found, 1), CPTX_U32), own = cptx_as(cptx_elem(best, 1), CPTX_U32);

	(void)user;
	scan(k, row, best, CPTX_NONE_);
	CPTX_FOR(k, i, cptx_rows_options(row)->k, 1) {
		for (uint32_t part = 0; part < 2; part++)
			cptx_mov(k, cptx_elem(best, part), .into = cptx_elem(found, part));
		cptx_rows_reduce(k, row, found, CPTX_REDUCE_ARG_MAX);
		rows_put_at(k, CPTX_HERE, row, CPTX_ROWS_TOP, i, cptx_elem(found, 0));
		rows_put_at(k, CPTX_HERE, row, CPTX_ROWS_AT, i, column);
		cptx_val is_own = cptx_setp(k, own, column, .cmp = CPTX_EQ),
				 there = cptx_setp(k, column, cptx_imm(UINT32_MAX), .cmp = CPTX_NE);
		CPTX_IF(k, cptx_and(k, is_own, there)) {
			scan(k, row, best, found);
		}
	}
}
