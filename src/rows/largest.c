/* SPDX-License-Identifier: MIT */
/* The largest element of rows. */
#include "rows/rows.h"

#include <cptx/cptx.h>

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
