/* SPDX-License-Identifier: MIT */
/*
 * Elements in .e2m1, two in a byte.  The conversion is made of other instructions, the same on all targets: only some of
 * those that the kernels are for have one.
 */
#include "rows/core.h"

#include <cptx/cptx.h>

/* The four bits, rounded to nearest even: 0, .5, 1, 1.5, 2, 3, 4, 6 and the sign.  The numbers lie .5, 1 or 2 apart below 2,
 * 4 and from there on, and each of these parts begins at code 0, 4 or 6, as its first number over the distance less 0, 2
 * or 4. */
static cptx_val code(cptx_kernel *k, cptx_val x)
{
	cptx_val size = cptx_min(k, cptx_abs(k, x), 6.0f);
	cptx_val below_2 = cptx_setp(k, size, 2.0f, .cmp = CPTX_LT), below_4 = cptx_setp(k, size, 4.0f, .cmp = CPTX_LT);
	cptx_val each = cptx_selp(k, 1.0f, 0.5f, below_4, .type = CPTX_F32);
	cptx_val less = cptx_selp(k, 2, 4, below_4, .type = CPTX_U32);

	cptx_selp(k, 2.0f, each, below_2, .type = CPTX_F32, .into = each);
	cptx_selp(k, 0, less, below_2, .type = CPTX_U32, .into = less);
	cptx_val steps = cptx_cvt(k, cptx_mul(k, size, each), .rnd = CPTX_RNI, .dtype = CPTX_U32);
	cptx_val sign = cptx_and(k, cptx_shr(k, cptx_as(x, CPTX_U32), 28), 8);
	return cptx_add(k, cptx_add(k, steps, less), sign);
}

void rows_store_packed(const cptx_rows_row *r, unsigned operand)
{
	cptx_kernel *k = r->k;
	const cptx_row *row = &r->have[operand];
	const uint32_t each = row->each, bytes = each / 2;
	cptx_val count = rows_none(r->here) ? cptx_imm(r->s.part) : r->here;

	for (uint32_t v = 0; v < row->vectors; v++) {
		cptx_val word = cptx_var(k, CPTX_U32, 0), number = cptx_add(k, r->thread, v * r->o->per_row);
		for (uint32_t i = 0; i < each; i++) {
			cptx_val four = code(k, cptx_elem(row->v, v * each + i));
			cptx_mad(k, four, cptx_imm((int64_t)1 << 4 * i), word, .mode = CPTX_LO, .into = word);
		}
		cptx_val to = cptx_add(k, r->begin[operand], cptx_mul_wide(k, number, bytes));
		cptx_val inside = cptx_setp(k, cptx_mul(k, number, each, .mode = CPTX_LO), count, .cmp = CPTX_LT);
		cptx_st(k, to, bytes == 4 ? word : cptx_cvt(k, word, .dtype = CPTX_U16), .space = CPTX_GLOBAL, .when = inside);
	}
}
