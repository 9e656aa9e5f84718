/* SPDX-License-Identifier: MIT */
/*
 * Prints an instruction as a call.  The call is tried out by matching it: first with every modifier, and every register in
 * its type; then everything that can be left out is.
 */
#include "to_c/to_c.h"

typedef struct call {
	to_c_body *b;
	const ir_item *it;
	const arch_form *f;
	const arch_op *op;
	const arch_operand *o;
	cptx_val v[ARCH_OPERANDS]; /* the operands of the instruction */
	bool result;
	uint8_t as[ARCH_OPERANDS];
	uint16_t mods[ARCH_FIELDS];
	arch_match m;
} call;

static unsigned first_type(const to_c_body *b, const cptx_val *v)
{
	if (v->kind == CPTX_VAL_REG)
		return b->k->reg[v->id].type;
	for (uint32_t i = 0; v->kind == CPTX_VAL_VEC && i < v->count; i++)
		if (b->k->vec[v->id + i].kind == CPTX_VAL_REG)
			return b->k->reg[b->k->vec[v->id + i].id].type;
	return 0;
}

static bool is_first_dest(const call *c, unsigned i) { return !i && c->o[0].flags & OPERAND_DEST && !c->o[0].slot; }

static bool same_operand(const cptx_val *a, const cptx_val *b)
{
	if (a->kind == CPTX_VAL_VEC || b->kind == CPTX_VAL_VEC)
		return b->count == a->count;
	if (a->kind != b->kind)
		return false;
	if (a->kind == CPTX_VAL_INT)
		return a->i == b->i;
	return a->kind != CPTX_VAL_FLOAT ||
	       (!memcmp(&a->f, &b->f, sizeof a->f) && (a->type == CPTX_F64) == (b->type == CPTX_F64));
}

/* Whether the call, as it stands now, makes the instruction. */
static bool matches(call *c)
{
	const cptx_val *v = c->v;
	cptx_val vals[3 + ARCH_SLOTS] = { 0 };
	unsigned from = 0;

	c->b->nvec = 0;
	for (unsigned i = 0; i < c->it->noperand; i++) {
		if (v[i].kind == CPTX_VAL_NONE || c->o[i].kind == OPERAND_NOWHERE)
			continue;
		if (is_first_dest(c, i) && c->result)
			from = 1;
		else
			vals[c->o[i].slot ? 2 + c->o[i].slot : 0] = value_of(c->b, &v[i], c->as[i]);
	}
	if (!arch_match_op(&c->b->memo, c->f->op, vals, c->mods, c->b->vec, &c->m) || c->m.form != c->it->form ||
	    memcmp(c->m.mod, ir_mods(c->it), c->it->nmod * sizeof *c->m.mod))
		return false;
	for (unsigned i = from; i < c->it->noperand; i++)
		if (!same_operand(&v[i], &c->m.operand[i]))
			return false;
	if (!c->result)
		return true;
	unsigned want = arch_types[first_type(c->b, &v[0])].bits, have = arch_types[c->m.dest_type].bits;
	return c->m.dest_type && have == want && have != 8 && c->m.dest_count == v[0].count;
}

static void fill(call *c)
{
	const cptx_val *v = c->v;

	for (unsigned i = 0; i < c->it->noperand; i++) {
		unsigned type = first_type(c->b, &v[i]);
		cptx_val as_c = type ? value_of(c->b, &v[i], 0) : v[i];
		c->as[i] = (uint8_t)(type && as_c.type != type ? type : 0);
	}
	for (unsigned g = 0; g < c->f->ngroup; g++) {
		const arch_group *group = &arch_groups[c->f->group + g];
		if (group->kind != GROUP_REPEAT && ir_mods(c->it)[g])
			c->mods[group->field] = ir_mods(c->it)[g];
	}
}

/* Leaves out what matching finds by itself. */
static void shorten(call *c)
{
	for (unsigned i = 0; i < c->it->noperand; i++) {
		uint8_t as = c->as[i];
		c->as[i] = 0;
		if (as && !matches(c))
			c->as[i] = as;
	}
	unsigned dest = c->m.dest_type;
	for (unsigned f = 0; f < c->op->nfield; f++) {
		uint16_t mod = c->mods[f];
		c->mods[f] = 0;
		if (mod && (!matches(c) || (c->result && arch_types[c->m.dest_type].cls != arch_types[dest].cls)))
			c->mods[f] = mod;
	}
	matches(c);
}

/* ---- printing ---- */

static bool is_bits(const call *c, unsigned i)
{
	unsigned type = c->o[i].type ? c->o[i].type : c->o[i].tgroup != ARCH_NO ? ir_mods(c->it)[c->o[i].tgroup] : 0;
	return type < arch_ntype && arch_types[type].cls == 'B';
}

static unsigned operand_of_slot(const call *c, unsigned slot)
{
	unsigned i = 0;
	while (i < c->it->noperand && c->o[i].slot != slot + 1)
		i++;
	return i;
}

/* Whether a field is a flag such as .ftz, whose only value has the field's name. */
static bool is_flag(const call *c, unsigned field)
{
	return c->mods[field] >= arch_ntype && !strcmp(c->op->field[field], arch_mods[c->mods[field]].name);
}

static void put_modifiers(const call *c)
{
	for (unsigned f = 0; f < c->op->nfield; f++) {
		if (!c->mods[f])
			continue;
		buf_printf(&c->b->line, ", .%s = ", c->op->field[f]);
		if (is_flag(c, f))
			put(c->b, "1");
		else
			put_type(c->b, c->mods[f]);
	}
}

static void put_guard(to_c_body *b, const ir_item *it)
{
	cptx_val p = { .kind = CPTX_VAL_REG, .type = CPTX_PRED, .count = 1 };

	if (!it->guard)
		return;
	p.id = it->guard - 1;
	put(b, it->flags & ITEM_NEGATED ? ", .unless = " : ", .when = ");
	put_value(b, &p, 0);
}

static void print(const call *c)
{
	const cptx_val *v = c->v;
	to_c_body *b = c->b;
	uint32_t printed = 0;
	bool mods = false;

	for (unsigned f = 0; f < c->op->nfield; f++)
		mods |= c->mods[f] != 0;
	if (c->f->op == CPTX_OP_MOV && c->result && !c->it->guard && !mods && v[1].kind == CPTX_VAL_SREG) {
		buf_printf(&b->line, "cptx_%s(k)", arch_sregs[v[1].id].name);
		return;
	}
	buf_printf(&b->line, "cptx_%s(k", c->op->name);
	for (unsigned i = 0; i < c->op->npos; i++) {
		unsigned n = operand_of_slot(c, c->op->pos[i]);
		put(b, ", ");
		if (n < c->it->noperand) {
			put_argument(b, &v[n], c->as[n], is_bits(c, n), v[n].type == CPTX_F64);
			printed |= 1u << n;
		} else {
			put(b, "(cptx_val){ 0 }");
		}
	}
	for (unsigned i = 0; i < c->it->noperand; i++) {
		if (printed >> i & 1 || v[i].kind == CPTX_VAL_NONE || !c->o[i].slot || c->o[i].kind == OPERAND_NOWHERE)
			continue;
		buf_printf(&b->line, ", .%s = ", c->op->slot[c->o[i].slot - 1]);
		put_value(b, &v[i], c->as[i]);
	}
	put_modifiers(c);
	if (!c->result && c->it->noperand && is_first_dest(c, 0) && v[0].kind && c->o[0].kind != OPERAND_NOWHERE) {
		put(b, ", .into = ");
		put_value(b, &v[0], c->as[0]);
	}
	put_guard(b, c->it);
	put(b, ")");
}

/* ---- text ---- */

static void put_spelling(const call *c)
{
	const arch_group *g = &arch_groups[c->f->group];

	for (unsigned i = 0; i < c->f->ngroup; i++, g++) {
		put(c->b, g->prefix);
		if (ir_mods(c->it)[i] && !g->behind)
			buf_printf(&c->b->line, ".%s", arch_mods[ir_mods(c->it)[i]].name);
	}
	put(c->b, c->f->tail);
}

static bool more_inside(const call *c, unsigned i)
{
	while (++i < c->it->noperand && c->o[i].flags & OPERAND_INSIDE)
		if (c->v[i].kind)
			return true;
	return false;
}

/* Prints the instruction as text with holes, where no call makes it. */
static void print_asm(const call *c)
{
	const cptx_val *v = c->v;
	to_c_body *b = c->b;
	unsigned n = 0;

	put(b, c->it->guard ? c->it->flags & ITEM_NEGATED ? "cptx_asm(k, \"@!{} " : "cptx_asm(k, \"@{} " : "cptx_asm(k, \"");
	put_spelling(c);
	for (unsigned i = 0; i < c->it->noperand; i++) {
		const arch_operand *o = &c->o[i];
		if (!v[i].kind)
			continue;
		put(b, !n++ ? " " : o->flags & OPERAND_PIPE ? "|" : ", ");
		bool bracket = o->kind == OPERAND_ADDR && !(o->flags & OPERAND_INSIDE);
		bool brace = o->brace && v[i].count < 2;
		put(b, bracket ? "[" : brace ? "{" : "");
		put(b, v[i].kind == CPTX_VAL_SINK ? "_" : "{}");
		put(b, brace ? "}" : "");
		if ((bracket || o->flags & OPERAND_INSIDE) && !more_inside(c, i))
			put(b, "]");
		if (o->behind != ARCH_NO && ir_mods(c->it)[o->behind])
			buf_printf(&b->line, ".%s", arch_mods[ir_mods(c->it)[o->behind]].name);
	}
	put(b, ";\"");
	if (c->it->guard) {
		cptx_val p = { .kind = CPTX_VAL_REG, .type = CPTX_PRED, .count = 1 };
		p.id = c->it->guard - 1;
		put(b, ", ");
		put_value(b, &p, 0);
	}
	for (unsigned i = 0; i < c->it->noperand; i++) {
		if (!v[i].kind || v[i].kind == CPTX_VAL_SINK)
			continue;
		put(b, ", ");
		put_value(b, &v[i], c->as[i]);
	}
	put(b, ")");
}

bool put_call(to_c_body *b, const ir_item *it, bool result, uint8_t *type)
{
	const arch_form *f = &arch_forms[it->form];
	call c = { .b = b, .it = it, .f = f, .op = &arch_ops[f->op], .o = &arch_operands[f->operand], .result = result };

	ir_operands(b->k, it, c.v);
	fill(&c);
	if (!matches(&c)) {
		if (!result)
			print_asm(&c);
		return !result;
	}
	shorten(&c);
	*type = result ? c.m.dest_type : 0;
	print(&c);
	return true;
}

bool call_makes(to_c_body *b, const ir_item *it, bool result, uint16_t mod)
{
	const arch_form *f = &arch_forms[it->form];
	call c = { .b = b, .it = it, .f = f, .op = &arch_ops[f->op], .o = &arch_operands[f->operand], .result = result };

	ir_operands(b->k, it, c.v);
	for (unsigned g = 0; g < f->ngroup; g++)
		if (mod && ir_mods(it)[g] == mod && arch_groups[f->group + g].kind != GROUP_REPEAT)
			c.mods[arch_groups[f->group + g].field] = mod;
	return matches(&c);
}
