/* SPDX-License-Identifier: MIT */
/* The compiled tables, and the public look-ups in them. */
#include "base/options.h"
#include "arch/check.h"

#include "insn_table.inc" /* generated from insn.def */

static const char *const constraint_text[] = {
#define CONSTRAINT(name, text) text,
#include "arch/constraint.def"
#undef CONSTRAINT
};

static const char *(*const constraint_check[])(const arch_match *) = {
#define CONSTRAINT(name, text) arch_check_##name,
#include "arch/constraint.def"
#undef CONSTRAINT
};

const char *arch_check_NONE(const arch_match *m)
{
	(void)m;
	return NULL;
}

const char *arch_constraint_check(unsigned constraint, const arch_match *m) { return constraint_check[constraint](m); }

const uint16_t *arch_forms_of(const char *text, size_t n, unsigned *count)
{
	const char *dot = n ? text_find(text, '.', n) : NULL;
	unsigned low = 0, high = arch_nmnemonic;

	n = dot ? (size_t)(dot - text) : n;
	*count = 0;
	while (low < high) {
		const arch_mnemonic *m = &arch_mnemonics[(low + high) / 2];
		int order = memcmp(text, m->text, MIN(n, m->len));
		if (!order)
			order = (n > m->len) - (n < m->len);
		if (!order) {
			*count = m->nform;
			return &arch_forms_by_mnemonic[m->first];
		}
		if (order < 0)
			high = (low + high) / 2;
		else
			low = (low + high) / 2 + 1;
	}
	return NULL;
}

const char *arch_constraint_text(unsigned constraint) { return constraint_text[constraint]; }

unsigned cptx_type_bits(enum cptx_type type) { return (unsigned)type < arch_ntype ? arch_types[type].bits : 0; }

const char *cptx_type_name(enum cptx_type type)
{
	return (unsigned)type > CPTX_ON && (unsigned)type < arch_ntype ? arch_mods[type].name : "?";
}

enum cptx_type arch_type_of(const char *name, size_t n)
{
	for (unsigned t = CPTX_ON + 1; t < CPTX_PTR; t++)
		if (arch_mods[t].len == n && arch_mods[t].name[0] == *name && !memcmp(arch_mods[t].name, name, n))
			return (enum cptx_type)t;
	return CPTX_TYPE_NONE;
}

enum cptx_type cptx_type_find(const char *name) { return name ? arch_type_of(name, strlen(name)) : CPTX_TYPE_NONE; }

const char *cptx_mod_name(enum cptx_mod mod)
{
	return (unsigned)mod >= arch_ntype && (unsigned)mod < arch_nmod ? arch_mods[mod].name : "?";
}

enum cptx_mod cptx_mod_find(const char *name)
{
	const size_t n = name ? strlen(name) : 0;

	for (unsigned m = arch_ntype; m < arch_nmod; m++)
		if (arch_mods[m].len == n && n && !memcmp(arch_mods[m].name, name, n))
			return (enum cptx_mod)m;
	return (enum cptx_mod)0;
}

bool cptx_op_at_(size_t i, cptx_op_info *info, size_t size)
{
	if (i >= arch_nop || !info)
		return false;
	const cptx_op_info x = { arch_ops[i].name, arch_ops[i].chapter, arch_ops[i].about, arch_ops[i].nform };
	RESULT_FILL(info, size, &x);
	return true;
}

bool cptx_form_at_(size_t op, size_t form, cptx_form_info *info, size_t size)
{
	if (op >= arch_nop || form >= arch_ops[op].nform || !info)
		return false;
	const arch_form *f = &arch_forms[arch_ops[op].form + form];
	const cptx_form_info x = { f->text, arch_avail_text[f->avail],
		                       f->constraint ? arch_constraint_text(f->constraint) : NULL };
	RESULT_FILL(info, size, &x);
	return true;
}

/* Slot number i of an instruction in the order of cptx_field_at: those that are positional come first. */
static unsigned slot_at(const arch_op *o, unsigned i)
{
	unsigned slot = 0;

	if (i < o->npos)
		return o->pos[i];
	for (i -= o->npos;; slot++)
		if (!memchr(o->pos, (int)slot, o->npos) && !i--)
			return slot;
}

bool cptx_field_at_(size_t op, size_t i, cptx_field_info *info, size_t size)
{
	const arch_op *o = op < arch_nop ? &arch_ops[op] : NULL;

	if (!o || !info || i >= (size_t)o->nslot + o->nfield)
		return false;
	cptx_field_info x = { .is_operand = i < o->nslot, .is_positional = i < o->npos };
	x.place = x.is_operand ? slot_at(o, (unsigned)i) : (uint32_t)i - o->nslot;
	x.name = x.is_operand ? o->slot[x.place] : o->field[x.place];
	RESULT_FILL(info, size, &x);
	return true;
}

bool cptx_mod_at_(size_t mod, cptx_mod_info *info, size_t size)
{
	if (mod >= arch_nmod || !info)
		return false;
	const cptx_mod_info x = { arch_mods[mod].name, arch_mods[mod].id, arch_mods[mod].about };
	RESULT_FILL(info, size, &x);
	return true;
}

const char *cptx_sreg_call(size_t i) { return i < arch_nsreg ? arch_sregs[i].name : NULL; }

bool cptx_form_on_target(size_t op, size_t form, const cptx_target *target)
{
	const cptx_target *t = target ? cptx_target_find(target->name) : NULL; /* the user's struct may be a copy */

	return t && op < arch_nop && form < arch_ops[op].nform &&
	       arch_avails[arch_forms[arch_ops[op].form + form].avail][arch_target_index(t)];
}

char *arch_put_opcode(char *p, unsigned form, const uint16_t *mods)
{
	const arch_form *f = &arch_forms[form];
	const arch_group *g = &arch_groups[f->group];

	for (unsigned i = 0; i < f->ngroup; i++, g++) {
		memcpy(p, g->prefix, g->nprefix);
		p += g->nprefix;
		if (!mods[i] || g->behind)
			continue;
		const arch_mod *m = &arch_mods[mods[i]];
		*p++ = '.';
		memcpy(p, m->name, m->len);
		p += m->len;
	}
	memcpy(p, f->tail, f->ntail);
	return p + f->ntail;
}
