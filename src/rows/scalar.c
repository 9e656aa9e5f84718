/* SPDX-License-Identifier: MIT */
/* Scalars of rows, and single elements. */
#include "rows/core.h"

#include <cptx/cptx.h>

static bool is_scalar(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, uint32_t set, unsigned operand, const char *does)
{
	if (!IS_GIVEN_TO(k, at, r, "row"))
		return false;
	if (operand >= CPTX_ROWS_OPERANDS || rows_operands[operand].kind != ROWS_SCALAR)
		cptx_fail_(k, at, "%s is no scalar of a row", cptx_rows_operand_name((enum cptx_rows_operand)operand));
	else if (!rows_has(set, operand))
		cptx_fail_(k, at, "the body %s %s, which the kernel's options do not say: .reads, .writes, .with", does,
		           rows_operands[operand].name);
	else
		return true;
	return false;
}

cptx_val rows_row_to_read(cptx_kernel *k, cptx_site at, const cptx_rows_row *r)
{
	if (rows_none(r->there))
		return r->row;
	return CALL(min, .a = r->row, .b = CALL(sub, .a = r->rows, .b = cptx_imm(1)));
}

static void load_scalar(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, unsigned operand, cptx_val row, cptx_val to)
{
	const enum cptx_type type = rows_type_of(r->o, (enum cptx_rows_operand)operand);
	cptx_val from = CALL(add, .a = r->at[operand], .b = CALL(mul_wide, .a = row, .b = cptx_imm(rows_bytes(type))));

	CALL(ld, .a = from, .space = CPTX_GLOBAL, .type = type, .into = to);
}

cptx_val cptx_rows_get_(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, enum cptx_rows_operand operand)
{
	if (!is_scalar(k, at, r, r ? r->s.reads : 0, operand, "reads"))
		return (cptx_val){ 0 };
	cptx_val v = r->scalar[operand];
	if (rows_none(v)) {
		v = cptx_regs_(k, at, rows_type_of(r->o, operand), 1);
		load_scalar(k, at, r, operand, rows_row_to_read(k, at, r), v);
	}
	return v.type == CPTX_S32 ? CALL(cvt, .a = v, .dtype = CPTX_S64) : v;
}

void rows_load_scalars(cptx_rows_row *r, cptx_val row, bool first)
{
	cptx_kernel *k = r->k;
	cptx_val last = cptx_sub(k, r->rows, 1), from = cptx_min(k, row, last);

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		if (!rows_has(r->s.reads, i) || rows_operands[i].kind != ROWS_SCALAR)
			continue;
		const enum cptx_type type = rows_type_of(r->o, (enum cptx_rows_operand)i);
		if (first)
			r->scalar[i] = cptx_reg(k, type), r->ahead[i] = cptx_reg(k, type);
		else
			cptx_mov(k, r->ahead[i], .into = r->scalar[i]);
		load_scalar(k, CPTX_HERE, r, i, from, r->ahead[i]);
	}
}

void rows_put_at(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, enum cptx_rows_operand operand, cptx_val i,
                 cptx_val v, cptx_val when)
{
	if (!is_scalar(k, at, r, r ? r->s.writes : 0, operand, "writes") || (r->s.parts && !r->combines))
		return;
	if (r->set)
		*r->set |= CPTX_ROWS_BIT(operand);
	const enum cptx_type type = rows_type_of(r->o, operand);
	cptx_val who = r->thread, one = when;
	if (rows_none(one)) {
		if (!rows_none(r->first)) /* of the first CTA alone */
			who = CALL(or, .a = who, .b = r->first, .type = CPTX_B32), who = cptx_as(who, CPTX_U32);
		one = CALL(setp, .a = who, .b = cptx_imm(0), .cmp = CPTX_EQ);
	}
	if (!rows_none(r->there))
		one = CALL(and, .a = one, .b = r->there);
	if (type == CPTX_S64) /* no column is as large that its sign shows, but for -1 */
		v = CALL(cvt, .a = cptx_as(v, CPTX_S32), .dtype = CPTX_S64);
	const uint32_t n = rows_scalars(r->o, operand);
	cptx_val to = CALL(add, .a = r->at[operand], .b = CALL(mul_wide, .a = r->row, .b = cptx_imm(n * rows_bytes(type))));
	if (n > 1)
		to = CALL(add, .a = to, .b = CALL(mul_wide, .a = i, .b = cptx_imm(rows_bytes(type))));
	CALL(st, .a = to, .b = v, .space = CPTX_GLOBAL, .when = one);
}

void cptx_rows_put_(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, enum cptx_rows_operand operand, cptx_val v)
{
	rows_put_at(k, at, r, operand, cptx_imm(0), v, CPTX_NONE_);
}

cptx_val cptx_rows_element_(cptx_kernel *k, cptx_site at, cptx_rows_row *r, enum cptx_rows_operand operand, cptx_val column)
{
	if (!IS_GIVEN_TO(k, at, r, "row"))
		return (cptx_val){ 0 };
	if (operand >= CPTX_ROWS_OPERANDS || rows_operands[operand].kind != ROWS_MATRIX || !rows_has(r->s.reads, operand))
		return cptx_fail_(k, at, "%s is no matrix that the kernel reads", cptx_rows_operand_name(operand));
	const enum cptx_type type = rows_type_of(r->o, operand);
	const cptx_val row = rows_row_to_read(k, at, r);
	r->read_alone = true;
	cptx_val from = CALL(add, .a = r->at[operand], .b = CALL(mul_wide, .a = row, .b = r->stride[operand]));
	from = CALL(add, .a = from, .b = CALL(mul_wide, .a = column, .b = cptx_imm(rows_bytes(type))));
	if (type == CPTX_F32)
		return CALL(ld, .a = from, .space = CPTX_GLOBAL, .type = CPTX_F32);
	cptx_val half = CALL(ld, .a = from, .space = CPTX_GLOBAL, .type = CPTX_B16);
	if (type == CPTX_F16)
		return CALL(cvt, .a = cptx_as(half, CPTX_F16), .dtype = CPTX_F32);
	cptx_val wide = CALL(cvt, .a = cptx_as(half, CPTX_U16), .dtype = CPTX_U32);
	return cptx_as(CALL(shl, .a = wide, .b = cptx_imm(16)), CPTX_F32);
}
