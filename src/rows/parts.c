/* SPDX-License-Identifier: MIT */
/*
 * The second launch of kernels whose rows are in parts: it puts together what the parts' CTAs found.
 *
 * The kernel is the same body, built once more: its passes are empty, and its reductions, the same ones in the same order,
 * are over what the first launch left in the workspace.  A lane has a part, so that a warp has one row or several.
 */
#include "rows/core.h"

#include <cptx/cptx.h>

enum { SLOT = 16 /* bytes of a value */ };

/* Of top-k a part has .k elements with their columns. */
uint32_t rows_part_bytes(const cptx_rows_opt *o)
{
	return o->kernel == CPTX_ROWS_TOP_K ? o->k * 2 * (uint32_t)sizeof(uint32_t) : ROWS_PART_VALUES * SLOT;
}

cptx_val rows_part_at(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, cptx_val row, cptx_val part)
{
	cptx_val i = CALL(mad, .a = row, .b = cptx_imm(r->o->split), .c = part, .mode = CPTX_LO);

	return CALL(add, .a = r->workspace, .b = CALL(mul_wide, .a = i, .b = cptx_imm(rows_part_bytes(r->o))));
}

/* Where reduction `number` of a part of the row lies. */
static cptx_val slot_of(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, cptx_val row, cptx_val part)
{
	cptx_val base = rows_part_at(k, at, r, row, part);

	return CALL(add, .a = base, .b = cptx_imm((int64_t)r->reductions * SLOT));
}

static bool has_room(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, cptx_val v)
{
	if (r->reductions < ROWS_PART_VALUES && v.count * 4 <= SLOT)
		return true;
	cptx_fail_(k, at, "reduction %u, of %u registers; what is found of a part of a row is %d reductions of %d registers",
	           r->reductions, v.count, ROWS_PART_VALUES, SLOT / 4);
	return false;
}

void rows_part_reduce(cptx_kernel *k, cptx_site at, cptx_rows_row *r, cptx_val v, enum cptx_reduce_op op)
{
	if (!has_room(k, at, r, v))
		return;
	if (r->combines) {
		cptx_val from = slot_of(k, at, r, rows_row_to_read(k, at, r), r->thread);
		for (uint32_t i = 0; i < v.count; i++)
			CALL(ld, .a = cptx_offset(from, i * 4), .space = CPTX_GLOBAL, .type = v.type, .into = cptx_elem(v, i));
		cptx_reduce_lanes_(k, at, v, op, r->o->split);
	} else {
		cptx_reduce_cta_(k, at, &r->all, v, op);
		cptx_val to = slot_of(k, at, r, r->row, r->part), one = CALL(setp, .a = r->thread, .b = cptx_imm(0), .cmp = CPTX_EQ);
		for (uint32_t i = 0; i < v.count; i++)
			CALL(st, .a = cptx_offset(to, i * 4), .b = cptx_elem(v, i), .space = CPTX_GLOBAL, .when = one);
	}
	r->reductions++;
}

void rows_build_combine(cptx_module *m, const cptx_rows_opt *o, const char *name)
{
	cptx_rows_row r = { .k = NULL };

	r.o = o, r.s = rows_shape_of(o), r.combines = true;
	r.k = cptx_kernel_begin(m, name, .block = { ROWS_COMBINE_THREADS });
	if (!r.k)
		return;
	cptx_kernel *k = r.k;
	rows_declare(&r);
	if (o->kernel == CPTX_ROWS_TOP_K) { /* a CTA for each row */
		rows_build_combine_top_k(&r);
		return;
	}
	cptx_val tid = cptx_tid_x(k), cta = cptx_ctaid_x(k), in_cta = cptx_div(k, tid, o->split);
	r.thread = cptx_and(k, tid, o->split - 1);
	r.row = cptx_mad(k, cta, ROWS_COMBINE_THREADS / o->split, in_cta, .mode = CPTX_LO);
	r.there = cptx_setp(k, r.row, r.rows, .cmp = CPTX_LT);
	o->body(k, &r, o->user);
}
