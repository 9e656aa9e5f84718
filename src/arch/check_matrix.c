/* SPDX-License-Identifier: MIT */
/* Rules of matrix instructions. */
#include "arch/check.h"

static bool chosen(const arch_match *m, unsigned mod)
{
	for (unsigned i = 0; i < m->ngroup; i++)
		if (m->mod[i] == mod)
			return true;
	return false;
}

/* The value of the operand with this name; kind NONE if it is left out. */
static cptx_val operand(const arch_match *m, const char *name)
{
	const arch_form *f = &arch_forms[m->form];

	for (unsigned i = 0; i < m->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		if (o->slot && !strcmp(arch_ops[f->op].slot[o->slot - 1], name))
			return m->operand[i];
	}
	return (cptx_val){ 0 };
}

/* Whether element i of a vector is a constant outside of 0 to `most`, or no multiple of `step`. */
static bool id_wrong(const arch_match *m, cptx_val ids, unsigned i, int64_t most, int64_t step)
{
	if (ids.kind != CPTX_VAL_VEC || !(ids.space & VEC_CONSTANTS))
		return false;
	const cptx_val *e = &m->vec[ids.id + i];
	return e->kind == CPTX_VAL_INT && (e->i < 0 || e->i > most || e->i % step);
}

const char *arch_check_SCALE_ID(const arch_match *m)
{
	bool four = chosen(m, CPTX_SCALE_VEC_4X);
	bool two = chosen(m, CPTX_SCALE_VEC_2X) || chosen(m, CPTX_KIND_MXF4);
	cptx_val ia = operand(m, "ia"), ib = operand(m, "ib");
	int64_t most = four ? 0 : 3, step = two ? 2 : 1;

	if (id_wrong(m, ia, 0, most, step) || id_wrong(m, ib, 0, most, step))
		return four ? "with four scales the byte is 0" : two ? "with two scales the byte is 0 or 2" : "the byte is 0 to 3";
	if (id_wrong(m, ia, 1, 1, 1))
		return "the thread that holds scales of A is 0 or 1";
	return id_wrong(m, ib, 1, 3, 1) ? "the thread that holds scales of B is 0 to 3" : NULL;
}

const char *arch_check_WGMMA(const arch_match *m)
{
	cptx_val a = operand(m, "scale_a"), b = operand(m, "scale_b");

	return (a.kind && !a.i) || (b.kind && !b.i) ? "scale_a and scale_b are 1 or -1" : NULL;
}

const char *arch_check_COLUMNS(const arch_match *m)
{
	cptx_val n = operand(m, "n");
	bool fits = n.kind != CPTX_VAL_INT || (n.i >= 32 && n.i <= 512 && !(n.i & (n.i - 1)));
	return fits ? NULL : "the number of columns is a power of two from 32 to 512";
}

const char *arch_check_COLUMNS32(const arch_match *m)
{
	cptx_val n = operand(m, "n");
	return n.kind == CPTX_VAL_INT && (n.i <= 0 || n.i % 32) ? "the number of columns is a multiple of 32" : NULL;
}

const char *arch_check_ASHIFT(const arch_match *m)
{
	bool kept = chosen(m, CPTX_COLLECTOR_A_FILL) || chosen(m, CPTX_COLLECTOR_A_USE);
	return kept && chosen(m, CPTX_ASHIFT) ? ".ashift goes with .collector::a::lastuse and ::discard only" : NULL;
}
