/* SPDX-License-Identifier: MIT */
/* What the optimizing pass has to know of a body: who writes which register, where branches go, what is pure; and what is
 * dead in the end. */
#include "ir/optimize.h"

/* ---- what is pure ---- */

static bool begins(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

/* The moves that are pure; the other instructions of the chapter read or write memory, or talk to other lanes. */
static bool is_pure_move(const char *name)
{
	return !strcmp(name, "mov") || !strcmp(name, "prmt") || !strcmp(name, "cvt") || !strcmp(name, "cvta") ||
	       !strcmp(name, "isspacep");
}

static bool is_pure_op(const arch_op *op)
{
	const char *c = op->chapter;

	return begins(c, "Integer Arithmetic") || begins(c, "Floating Point") || begins(c, "Comparison and Selection") ||
	       begins(c, "Logic and Shift") || (begins(c, "Data Movement") && is_pure_move(op->name));
}

/* Whether the instruction loads a parameter of a kernel, which nobody writes. */
static bool is_parameter(const cptx_kernel *k, const ir_item *it)
{
	if (k->is_func || arch_forms[it->form].op != CPTX_OP_LD || it->noperand < 2)
		return false;
	cptx_val v = ir_operand(k, it, 1);
	const ir_sym *s = v.kind == CPTX_VAL_SYM ? ir_symbol(k, v.id) : NULL;
	return s && s->space == CPTX_PARAM && s->is_param == PARAM_IN;
}

bool opt_is_pure(optimizer *o, const ir_item *it)
{
	unsigned op = arch_forms[it->form].op;
	uint8_t *known = &o->pure[op];

	if (!*known)
		*known = is_pure_op(&arch_ops[op]) ? OPT_PURE : OPT_IMPURE;
	return *known == OPT_PURE || is_parameter(o->k, it);
}

bool opt_is_fixed(unsigned sreg)
{
	static const char *const fixed[] = { "%tid",    "%ntid",      "%ctaid",   "%nctaid",
		                                 "%laneid", "%lanemask_", "%cluster", "%ncluster" };

	for (unsigned i = 0; i < ARRAY_LEN(fixed); i++)
		if (begins(arch_sregs[sreg].text, fixed[i]))
			return true;
	return false;
}

/* ---- registers ---- */

/* In front of all labels, where everything is executed once, the last write alone counts: parameters are loaded into a
 * register and converted there. */
static void note_write(optimizer *o, ir_item *it, const cptx_val *v, bool alone)
{
	for (uint32_t i = 0; v->kind == CPTX_VAL_REG && i < v->count; i++) {
		opt_reg *r = &o->reg[v->id + i];
		unsigned before = o->labels ? r->writes : 0;
		r->writes = (uint8_t)MIN(before + (alone && v->count == 1 ? 1u : 2u), 2u);
		r->def = it;
	}
}

static void note_writes(optimizer *o, ir_item *it)
{
	const arch_operand *operand = &arch_operands[arch_forms[it->form].operand];

	for (unsigned i = 0; i < it->noperand; i++) {
		if (!(operand[i].flags & OPERAND_DEST))
			continue;
		cptx_val v = ir_operand(o->k, it, i);
		note_write(o, it, &v, !it->guard && opt_is_written(it, i));
		for (uint32_t j = 0; (v.kind == CPTX_VAL_VEC || v.kind == CPTX_VAL_LIST) && j < v.count; j++)
			note_write(o, it, &o->k->vec[v.id + j], false);
	}
}

/* Registers of the head are written in front of the body, and those of the result are read behind it. */
static void note_head(optimizer *o)
{
	const cptx_kernel *k = o->k;

	for (size_t i = 0; i < k->narg; i++)
		if (k->arg[i].sym == IR_NONE)
			o->reg[k->arg[i].reg].writes = 2;
	for (size_t i = 0; i < k->nresult; i++)
		if (k->result[i].sym == IR_NONE)
			o->reg[k->result[i].reg].writes = 2, o->reg[k->result[i].reg].uses = 1;
}

/* ---- branches ---- */

static void note_branch(optimizer *o, uint32_t at, const cptx_val *v)
{
	opt_label *l = &o->label[v->id];

	if (v->kind == CPTX_VAL_TARGETS)
		o->irregular = true;
	if (v->kind != CPTX_VAL_LABEL)
		return;
	l->last = MAX(l->last, at);
	l->first = MIN(l->first, at);
}

/* Looks for branches from in front of a loop into it.  A loop is what lies between a label and the last branch to it. */
static void look_at_loops(optimizer *o)
{
	uint32_t at = 0;

	for (const ir_item *it = o->k->first; it; it = it->next, at++) {
		if (it->kind != ITEM_LABEL)
			continue;
		uint32_t id = ir_operand(o->k, it, 0).id;
		const opt_label *l = &o->label[id];
		while (o->nloop && o->label[o->loop[o->nloop - 1]].last < at)
			o->nloop--;
		if (o->nloop && l->first < o->label[o->loop[o->nloop - 1]].at)
			o->irregular = true;
		if (l->last > at)
			o->loop[o->nloop++] = id;
	}
}

/* ---- declarations ---- */

/* Notes where declarations inside { } end.  Of one that is open `until` holds how many { it is in. */
static void note_scope(optimizer *o, const ir_item *it, uint32_t at, uint32_t *depth)
{
	cptx_val v = it->kind == ITEM_REGS ? ir_operand(o->k, it, 0) : (cptx_val){ 0 };

	for (uint32_t i = 0; *depth && v.kind && i < (uint32_t)v.offset; i++) {
		o->until[v.id + i] = *depth;
		o->open[o->nopen++] = v.id + i;
	}
	*depth += it->kind == ITEM_SCOPE;
	if (it->kind != ITEM_END)
		return;
	for (; o->nopen && o->until[o->open[o->nopen - 1]] == *depth; o->nopen--)
		o->until[o->open[o->nopen - 1]] = at;
	--*depth;
}

bool opt_survey(optimizer *o)
{
	uint32_t at = 0, depth = 0;

	for (size_t i = 0; i < o->k->ndecl; i++)
		o->until[i] = IR_NONE;
	for (size_t i = 0; i < o->k->nlabel; i++)
		o->label[i] = (opt_label){ .first = IR_NONE };
	note_head(o);
	for (ir_item *it = o->k->first; it; it = it->next, at++) {
		if (it->kind == ITEM_LABEL)
			o->label[ir_operand(o->k, it, 0).id].at = at, o->labels = true;
		note_scope(o, it, at, &depth);
		if (it->kind != ITEM_INSN)
			continue;
		note_writes(o, it);
		for (unsigned i = 0; i < it->noperand && ir_has_kind(it, 1u << CPTX_VAL_LABEL | 1u << CPTX_VAL_TARGETS); i++) {
			cptx_val v = ir_operand(o->k, it, i);
			note_branch(o, at, &v);
		}
	}
	look_at_loops(o);
	return at < IR_NONE;
}

/* ---- what is dead ---- */

static void count(optimizer *o, const cptx_val *v, uint32_t by)
{
	for (uint32_t i = 0; v->kind == CPTX_VAL_REG && i < v->count; i++)
		o->reg[v->id + i].uses += by;
}

/* Adds `by` to the uses of all registers that an instruction reads. */
static void count_reads(optimizer *o, const ir_item *it, uint32_t by)
{
	if (it->guard)
		o->reg[it->guard - 1].uses += by;
	for (unsigned i = 0; i < it->noperand; i++) {
		if (opt_is_written(it, i))
			continue;
		cptx_val v = ir_operand(o->k, it, i);
		count(o, &v, by);
		for (uint32_t j = 0; (v.kind == CPTX_VAL_VEC || v.kind == CPTX_VAL_LIST) && j < v.count; j++)
			count(o, &o->k->vec[v.id + j], by);
	}
}

static bool is_unread(const optimizer *o, const cptx_val *v)
{
	for (uint32_t i = 0; v->kind == CPTX_VAL_REG && i < v->count; i++)
		if (o->reg[v->id + i].uses)
			return false;
	return v->kind == CPTX_VAL_REG || v->kind == CPTX_VAL_SINK || v->kind == CPTX_VAL_NONE;
}

/* Whether nobody reads what a pure instruction writes. */
static bool is_dead(optimizer *o, const ir_item *it)
{
	if (!opt_is_pure(o, it))
		return false;
	for (unsigned i = 0; i < it->noperand; i++) {
		if (!(arch_operands[arch_forms[it->form].operand + i].flags & OPERAND_DEST))
			continue;
		cptx_val v = ir_operand(o->k, it, i);
		if (!is_unread(o, &v))
			return false;
	}
	return true;
}

bool opt_remove_dead(optimizer *o)
{
	if (o->opt.keep_dead)
		return true;
	for (const ir_item *it = o->k->first; it; it = it->next)
		if (it->kind == ITEM_INSN)
			count_reads(o, it, 1);
	for (ir_item *it = o->k->last, *prev; it; it = prev) {
		prev = it->prev;
		if (it->kind != ITEM_INSN || !is_dead(o, it))
			continue;
		count_reads(o, it, UINT32_MAX); /* one less */
		if (!ir_remove(o->k, it))
			return false;
		o->done.dead++;
	}
	return true;
}
