/* SPDX-License-Identifier: MIT */
/* Rules of arithmetic, conversion, texture, video and control instructions. */
#include "arch/check.h"

const char *arch_check_CVT_SAT(const arch_match *m)
{
	arch_type d = arch_types[check_type(m, 0)], a = arch_types[check_type(m, 1)];
	bool fits = d.cls == a.cls ? d.bits >= a.bits : d.cls == 'S' && d.bits > a.bits;
	return fits ? ".sat has no effect, the destination holds every source value" : NULL;
}

static unsigned register_bits(const cptx_val *v) { return v->kind == CPTX_VAL_REG ? arch_types[v->type].bits : 0; }

/* From f32 to f64: the source may be a wider register, but ptxas refuses 128 bits. */
const char *arch_check_CVT_FTZ(const arch_match *m)
{
	return m->mod[0] && register_bits(&m->operand[1]) > 64 ? ".ftz takes no register of 128 bits" : NULL;
}

/* From f64 to f32: what ptxas 13.0 takes. */
const char *arch_check_CVT_FTZ_NARROW(const arch_match *m)
{
	const unsigned d = register_bits(&m->operand[0]), a = register_bits(&m->operand[1]);

	if (!m->mod[1])
		return NULL;
	if (d > 64 || a > 64)
		return ".ftz takes no register of 128 bits";
	return d > 32 && m->mod[0] != CPTX_RN ? ".ftz takes no destination of 64 bits with another rounding than .rn" : NULL;
}

const char *arch_check_BITS(const arch_match *m)
{
	for (unsigned i = 0; i < m->noperand; i++) {
		const cptx_val *v = &m->operand[i];
		bool position = arch_operands[arch_forms[m->form].operand + i].type == CPTX_U32;
		if (position && v->kind == CPTX_VAL_INT && (v->i < 0 || v->i > 255))
			return "a constant position or length is not in 0 to 255";
	}
	return NULL;
}

const char *arch_check_MAXNREG(const arch_match *m)
{
	return m->operand[0].i % 8 ? "the number of registers is not a multiple of 8" : NULL;
}

const char *arch_check_ALIGNMENT(const arch_match *m)
{
	const cptx_val *n = &m->operand[2];
	return n->kind && n->i & (n->i - 1) ? "the alignment is not a power of two" : NULL;
}

/* The value of the operand with this name; NULL if the form has none or it was left out. */
static const cptx_val *operand_named(const arch_match *m, const char *name)
{
	const arch_form *f = &arch_forms[m->form];

	for (unsigned i = 0; i < m->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		if (o->slot && m->operand[i].kind && !strcmp(arch_ops[f->op].slot[o->slot - 1], name))
			return &m->operand[i];
	}
	return NULL;
}

const char *arch_check_TEX(const arch_match *m)
{
	unsigned vec = 0, dtype = check_type(m, 0), ctype = check_type(m, 1);

	for (unsigned i = 0; i < m->ngroup; i++)
		if (check_group(m, i)->is_count)
			vec = m->mod[i];
	if ((dtype == CPTX_F16X2) != (vec == CPTX_V2))
		return "f16x2 comes as .v2, other types as .v4";
	if (dtype == CPTX_F16X2 && m->operand[0].kind == CPTX_VAL_VEC && m->operand[0].space & VEC_SINKS)
		return "no element of f16x2 can be the sink _";
	return ctype != CPTX_F32 && operand_named(m, "f") ? "a depth is compared at .f32 coordinates only" : NULL;
}

const char *arch_check_SURFACE(const arch_match *m)
{
	unsigned count = 1;

	if (m->operand[0].kind == CPTX_VAL_SINK)
		return "the destination cannot be the sink _";
	for (unsigned i = 0; i < m->ngroup; i++)
		if (check_group(m, i)->is_count && m->mod[i])
			count = arch_mods[m->mod[i]].count;
	return count * arch_types[check_type(m, 0)].bits > 128 ? "the vector has more than 128 bits" : NULL;
}

const char *arch_check_VMAD(const arch_match *m)
{
	const cptx_val *v = m->operand;
	bool minus_product = v[1].negated != v[2].negated, minus_c = v[3].negated, po = false;

	for (unsigned i = 0; i < m->ngroup; i++)
		po |= m->mod[i] == CPTX_PO;
	if (po && (minus_product || minus_c))
		return "with .po neither the product nor c can be negated";
	return minus_product && minus_c ? "the product and c cannot both be negated" : NULL;
}
