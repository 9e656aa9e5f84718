/* SPDX-License-Identifier: MIT */
/*
 * Describes why a call fits no form: first the one thing to change in the nearest form, as C writes it; then the nearest
 * forms.
 */
#include "arch/near.h"

#include <stdlib.h>

/* ---- what text and calls share ---- */

bool arch_wants_all_forms(void)
{
	const char *forms = getenv("CPTX_FORMS");

	return forms && !strcmp(forms, "all");
}

void arch_put_form(unsigned form, buf *b)
{
	const char *p = arch_forms[form].text;

	while (*p) {
		size_t n = strcspn(p, "<");
		buf_put(b, p, n);
		p += n;
		p += *p ? strcspn(p, ">") + 1 : 0;
	}
}

/* Writes the spelling, as far as it is known. */
static void put_opcode(const arch_near *n, buf *b)
{
	char text[ARCH_OPCODE];
	uint16_t mods[ARCH_GROUPS];

	for (unsigned i = 0; i < ARCH_GROUPS; i++)
		mods[i] = n->open >> i & 1 ? 0 : n->m.mod[i];
	buf_put(b, text, (size_t)(arch_put_opcode(text, n->m.form, mods) - text));
}

static const char *field_name(const arch_form *f, unsigned group)
{
	return arch_ops[f->op].field[arch_groups[f->group + group].field];
}

void arch_put_fault(const arch_near *n, const arch_request *q, unsigned i, buf *b)
{
	static const uint8_t kept[ARCH_GROUPS] = { 0 };
	const arch_form *f = &arch_forms[n->m.form];
	const arch_op *op = &arch_ops[f->op];
	unsigned at = n->fault[i].index;
	arch_match m = n->m;

	switch ((enum arch_fault_kind)n->fault[i].kind) {
	case FAULT_MISSING: buf_printf(b, ".%s is missing", field_name(f, at)); break;
	case FAULT_VALUE: buf_printf(b, ".%s has another value", field_name(f, at)); break;
	case FAULT_EXTRA: buf_printf(b, ".%s does not go with it", op->field[at]); break;
	case FAULT_OPERAND: arch_match_operand(f, q, at, &m, kept, b); break;
	case FAULT_NO_OPERAND:
		buf_printf(b, at ? "it has no operand %s" : "it has no result", at ? op->slot[at - 1] : "");
		break;
	case FAULT_RULE: buf_str(b, arch_constraint_check(f->constraint, &m)); break;
	}
}

void arch_put_near(const arch_near *near, unsigned n, const arch_request *q, buf *b)
{
	buf_str(b, "\n    ");
	arch_put_form(near->m.form, b);
	if (n)
		for (unsigned i = 0; i < near->nfault; i++) {
			buf_str(b, i ? "; " : "  -- ");
			arch_put_fault(near, q, i, b);
		}
}

/* ---- modifiers of a call ---- */

/* Whether a field is a flag: all forms that have it have it with this value alone, so that 1 sets it. */
static bool is_flag(unsigned op, unsigned field)
{
	unsigned only = 0;

	for (unsigned i = arch_ops[op].form; i < arch_ops[op].form + arch_ops[op].nform; i++)
		for (unsigned k = 0; k < arch_forms[i].ngroup; k++) {
			const arch_group *g = &arch_groups[arch_forms[i].group + k];
			if (g->kind == GROUP_REPEAT || g->field != field)
				continue;
			if (g->nalt != 1 || (only && only != arch_alts[g->alt].mod))
				return false;
			only = arch_alts[g->alt].mod;
		}
	return true;
}

static bool takes(unsigned op, const arch_request *q)
{
	arch_match m;

	for (unsigned i = arch_ops[op].form; i < arch_ops[op].form + arch_ops[op].nform; i++)
		if (arch_match_call(i, q->vals, q->mods, q->vec, false, &m))
			return true;
	return false;
}

/* Collects the values of a form's group that make the call right, or all values. */
static void add_values(unsigned form, unsigned field, const arch_request *q, bool all, arch_offers *v)
{
	const arch_form *f = &arch_forms[form];
	uint16_t mods[ARCH_FIELDS];
	arch_request changed = *q;

	memcpy(mods, q->mods, sizeof *mods * arch_ops[f->op].nfield);
	changed.mods = mods;
	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		for (unsigned a = 0; g->kind != GROUP_REPEAT && g->field == field && a < g->nalt; a++) {
			mods[field] = arch_alts[g->alt + a].mod;
			if (all || takes(f->op, &changed))
				arch_offer(v, mods[field]);
		}
	}
}

/* Writes " write .rnd = CPTX_RN (also CPTX_RZ)" for a field that has no value, or a wrong one. */
static void put_values(const arch_near *n, const arch_request *q, unsigned group, buf *b)
{
	const arch_form *f = &arch_forms[n->m.form];
	const arch_op *op = &arch_ops[f->op];
	unsigned field = arch_groups[f->group + group].field;
	arch_offers v = { { 0 }, 0 };

	if (n->nfault == 1) {
		add_values(n->m.form, field, q, false, &v);
		for (unsigned i = op->form; i < op->form + op->nform; i++)
			add_values(i, field, q, false, &v);
	}
	if (!v.n && n->m.mod[group] && n->m.mod[group] != q->mods[field])
		arch_offer(&v, n->m.mod[group]); /* that the other words and the operands ask for */
	if (v.n < 2 && n->nfault > 1)
		add_values(n->m.form, field, q, true, &v);
	else if (!v.n)
		add_values(n->m.form, field, q, true, &v);
	if (is_flag(f->op, field)) {
		buf_printf(b, "write .%s = 1", op->field[field]);
		return;
	}
	for (unsigned i = 0; i < arch_offered(&v); i++) {
		if (i)
			buf_printf(b, "%sCPTX_%s", i == 1 ? " (also " : ", ", arch_mods[v.mod[i]].id);
		else
			buf_printf(b, "write .%s = CPTX_%s", op->field[field], arch_mods[v.mod[i]].id);
	}
	buf_str(b, arch_offers_end(&v));
}

/* ---- operands of a call ---- */

/* Writes the C call that converts a register of one type to another. */
static void put_conversion(const char *name, unsigned have, unsigned want, buf *b)
{
	arch_type h = arch_types[have], w = arch_types[want];
	const char *id = arch_mods[want].id;
	bool real = h.cls == 'F', to_real = w.cls == 'F';

	if (want == CPTX_PRED)
		buf_printf(b,
		           real ? "; write cptx_setp(k, %s, 0.0f, .cmp = CPTX_NE)" : "; write cptx_setp(k, %s, 0, .cmp = CPTX_NE)",
		           name);
	else if (have == CPTX_PRED)
		buf_printf(b, "; write cptx_selp(k, 1, 0, %s, .type = CPTX_%s)", name, id);
	else if (h.bits == w.bits && real == to_real)
		buf_printf(b, "; write cptx_as(%s, CPTX_%s)", name, id);
	else if (h.cls == 'X' || w.cls == 'X' || h.bits > 64 || w.bits > 64)
		return;
	else if (h.bits == w.bits && !(w.cls != 'B' && h.cls != 'B'))
		buf_printf(b, "; write cptx_as(%s, CPTX_%s)", name, id);
	else if (w.cls == 'B' || h.cls == 'B')
		return; /* no conversion is obvious for another number of bits */
	else if (real && !to_real)
		buf_printf(b, "; write cptx_cvt(k, %s, .dtype = CPTX_%s, .rnd = CPTX_RZI)", name, id);
	else if (to_real && (!real || h.bits > w.bits))
		buf_printf(b, "; write cptx_cvt(k, %s, .dtype = CPTX_%s, .rnd = CPTX_RN)", name, id);
	else
		buf_printf(b, "; write cptx_cvt(k, %s, .dtype = CPTX_%s)", name, id);
}

static void put_operand_repair(const arch_near *n, const arch_request *q, unsigned i, buf *b)
{
	const arch_form *f = &arch_forms[n->m.form];
	const arch_operand *o = &arch_operands[f->operand + i];
	const cptx_val *v = &q->vals[o->slot ? FIRST_SLOT + o->slot : 0];
	const char *name = o->slot ? arch_ops[f->op].slot[o->slot - 1] : "d";
	unsigned want = o->type ? o->type : o->tgroup != ARCH_NO ? n->m.mod[o->tgroup] : 0;
	bool reg = v->kind == CPTX_VAL_REG && !v->space && !v->offset && !v->negated;

	if (!v->kind && o->slot && o->given != ARCH_NO)
		buf_printf(b, "; give .%s = ..., or leave .%s out", name, field_name(f, o->given));
	else if (!v->kind && o->slot)
		buf_printf(b, "; give .%s = ...", name);
	else if (o->kind == OPERAND_ADDR && o->address == ADDRESS_MEMORY && reg && v->count == 1 && v->type != CPTX_PRED &&
	         !(arch_is_integer(v->type) && arch_types[v->type].bits == 64))
		put_conversion(name, v->type, CPTX_U64, b);
	else if (o->kind != OPERAND_REG || !reg || !want || arch_types[want].cls == 0)
		return;
	else if (v->count != arch_operand_count(o, n->m.mod))
		buf_printf(b, "; cptx_regs(k, CPTX_%s, %u) makes them, cptx_slice and cptx_elem take some", arch_mods[want].id,
		           arch_operand_count(o, n->m.mod));
	else if (o->flags & OPERAND_DOUBLE || v->count != 1)
		return;
	else if (o->flags & OPERAND_DEST)
		buf_printf(b, "; give .%s a register of CPTX_%s, or leave it out", o->slot ? name : "into", arch_mods[want].id);
	else if (f->op == CPTX_OP_MOV && v->type != CPTX_PRED && arch_types[v->type].bits == arch_types[want].bits)
		buf_printf(b, "; write cptx_as(%s, CPTX_%s) for the same bits, or cptx_cvt for the same number", name,
		           arch_mods[want].id);
	else
		put_conversion(name, v->type, want, b);
}

/* ---- the message ---- */

static void put_repair(const arch_near *n, const arch_request *q, unsigned i, buf *b)
{
	const arch_form *f = &arch_forms[n->m.form];
	const arch_op *op = &arch_ops[f->op];
	unsigned at = n->fault[i].index, field = 0;

	switch ((enum arch_fault_kind)n->fault[i].kind) {
	case FAULT_MISSING:
		arch_put_fault(n, q, i, b);
		buf_str(b, ": ");
		put_values(n, q, at, b);
		return;
	case FAULT_VALUE:
		field = arch_groups[f->group + at].field;
		buf_printf(b, ".%s = %s%s does not fit: ", op->field[field], q->mods[field] == CPTX_ON ? "1" : "CPTX_",
		           q->mods[field] == CPTX_ON    ? ""
		           : q->mods[field] < arch_nmod ? arch_mods[q->mods[field]].id
		                                        : "?");
		put_values(n, q, at, b);
		return;
	case FAULT_EXTRA:
		arch_put_fault(n, q, i, b);
		buf_str(b, ": leave it out");
		return;
	case FAULT_OPERAND:
		arch_put_fault(n, q, i, b);
		put_operand_repair(n, q, at, b);
		return;
	case FAULT_NO_OPERAND:
		arch_put_fault(n, q, i, b);
		buf_printf(b, ": leave .%s out", at ? op->slot[at - 1] : "into");
		return;
	case FAULT_RULE: arch_put_fault(n, q, i, b); return;
	}
}

void arch_why(unsigned op, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec, buf *why)
{
	const arch_request q = { .vals = vals, .vec = vec, .mods = mods };
	const arch_op *o = &arch_ops[op];
	arch_near near[ARCH_NEAR];
	unsigned n = arch_nearest(op, &q, near), more = o->nform - n;

	put_opcode(&near[0], why);
	for (unsigned i = 0; i < near[0].nfault; i++) {
		buf_str(why, i ? "; " : ": ");
		put_repair(&near[0], &q, i, why);
	}
	for (unsigned i = 0; i < n; i++)
		arch_put_near(&near[i], i, &q, why);
	for (unsigned i = o->form; more && arch_wants_all_forms() && i < (unsigned)o->form + o->nform; i++) {
		bool there = false;
		arch_near other;
		for (unsigned k = 0; k < n; k++)
			there |= near[k].m.form == i;
		arch_near_form(i, &q, &other);
		if (!there)
			arch_put_near(&other, 1, &q, why);
	}
	if (more && !arch_wants_all_forms())
		buf_printf(why, "\n    %u more: `cptx insn %s`, or CPTX_FORMS=all in the environment", more, o->name);
}
