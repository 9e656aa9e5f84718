/* Operands of text, read without knowing the form, given to those of a form. */
#include "parse/parse.h"

static bool is_needed(const arch_operand *o, const uint16_t *mods)
{
	return o->given != ARCH_NO ? mods[o->given] != 0 : !(o->flags & OPERAND_OPTIONAL);
}

/* The modifier that stands behind an address. */
static bool read_behind(const arch_form *f, const arch_operand *o, const parse_token *t, uint16_t *mods)
{
	if (!t->behind)
		return true;
	if (o->behind == ARCH_NO)
		return false;
	const arch_group *g = &arch_groups[f->group + o->behind];
	for (unsigned i = 0; i < g->nalt; i++) {
		unsigned mod = arch_alts[g->alt + i].mod;
		if (arch_mods[mod].len == t->nbehind && !memcmp(arch_mods[mod].name, t->behind, t->nbehind))
			mods[o->behind] = (uint16_t)mod;
	}
	return mods[o->behind] != 0;
}

/* One form against the operands of the text. */
typedef struct trying {
	const parse_token *token;
	unsigned ntoken, form;
	const cptx_val *vec;
	uint16_t mods[ARCH_GROUPS];
	cptx_val vals[3 + ARCH_SLOTS];
	arch_match *m;
	buf *why;
	bool declared;
	bool assigned; /* some way to give each operand its token was found */
} trying;

/* Is it a coordinate of a texture or surface?  A single one needs no braces. */
static bool in_texture(const arch_operand *o)
{
	if (!(o->flags & OPERAND_INSIDE))
		return false;
	while (o->flags & OPERAND_INSIDE)
		o--;
	return o->address == ADDRESS_HANDLE;
}

/* May a vector of one stand for the operand, which is none?  In a mov that packs, and beside the fragments of matrices. */
static bool takes_one(unsigned op, const arch_operand *o, const uint16_t *mods)
{
	if (op != CPTX_OP_MOV)
		return !strncmp(arch_ops[op].name, "mma", 3) || !strncmp(arch_ops[op].name, "wgmma", 5);
	arch_type t = arch_types[o->tgroup != ARCH_NO ? mods[o->tgroup] : o->type];
	return t.cls == 'B' && t.bits <= 64;
}

/* May the token stand for the operand? */
static bool stands_for(const parse_token *k, unsigned op, const arch_operand *o, const uint16_t *mods, bool optional)
{
	bool pipe = o->flags & OPERAND_PIPE, inside = o->flags & OPERAND_INSIDE;
	bool one = arch_operand_count(o, mods) == 1, vector = o->kind == OPERAND_REG && (o->brace || !one);

	bool address = o->kind == OPERAND_ADDR && !inside;
	bool reads = op == CPTX_OP_LD || op == CPTX_OP_LDU || op == CPTX_OP_ST, takes = op == CPTX_OP_MOV || op == CPTX_OP_CVTA;

	if (k->pipe != pipe || k->inside != inside || (k->indexed ? !(address ? reads : takes) : k->address != address))
		return false;
	bool braces = k->braces == BRACES_EITHER ? k->v.kind == CPTX_VAL_VEC || k->v.count > 1 : k->braces;
	if (optional && o->kind == OPERAND_REG) /* must look like it, for what comes next might not */
		return braces == vector;
	if (vector)
		return k->braces || k->v.kind == CPTX_VAL_SINK || (one && in_texture(o));
	return k->braces != BRACES_HERE || o->cgroup != ARCH_NO || takes_one(op, o, mods);
}

/* Operands from number i on have the tokens from number t on: tries an optional one's token before leaving it out. */
static bool try_operands(trying *a, unsigned i, unsigned t)
{
	const arch_form *f = &arch_forms[a->form];
	const arch_operand *o = &arch_operands[f->operand + i];

	if (i == f->noperand) {
		if (t != a->ntoken)
			return false;
		buf *why = a->assigned ? NULL : a->why; /* of the first way only */
		a->assigned = true;
		return arch_match_form(a->form, a->vals, a->mods, a->vec, a->declared, a->m, why);
	}
	cptx_val *v = &a->vals[o->slot ? 2 + o->slot : 0];
	bool optional = !is_needed(o, a->mods), never = o->given != ARCH_NO && optional;
	if (!never && t < a->ntoken && stands_for(&a->token[t], f->op, o, a->mods, optional) &&
	    read_behind(f, o, &a->token[t], a->mods)) {
		*v = a->token[t].v;
		/* a name may be that of a list; the value in a hole says itself what it is */
		bool list = v->kind == CPTX_VAL_LABEL && a->token[t].braces != BRACES_EITHER;
		if (list && o->kind == OPERAND_TARGETS)
			v->kind = CPTX_VAL_TARGETS;
		else if (list && o->kind == OPERAND_PROTO)
			v->kind = CPTX_VAL_PROTO;
		if (try_operands(a, i + 1, t + 1))
			return true;
		*v = (cptx_val){ 0 };
		if (o->behind != ARCH_NO)
			a->mods[o->behind] = 0;
	}
	return optional && try_operands(a, i + 1, t);
}

static void put_misfit(const trying *a)
{
	const arch_form *f = &arch_forms[a->form];
	unsigned least = 0, most = 0;

	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		least += is_needed(o, a->mods);
		most += is_needed(o, a->mods) || o->given == ARCH_NO;
	}
	buf_str(a->why, "not these operands: ");
	if (a->ntoken >= least && a->ntoken <= most)
		buf_str(a->why, "braces, brackets or | are wrong");
	else if (least == most)
		buf_printf(a->why, "%u, where it has %u", a->ntoken, most);
	else
		buf_printf(a->why, "%u, where it has %u to %u", a->ntoken, least, most);
}

bool parse_match(unsigned form, const uint16_t mods[ARCH_GROUPS], const parse_token *token, unsigned ntoken,
                 const cptx_val *vec, bool declared, arch_match *m, buf *why)
{
	trying a = { .token = token, .ntoken = ntoken, .form = form, .vec = vec, .m = m, .why = why, .declared = declared };

	memcpy(a.mods, mods, sizeof a.mods);
	if (try_operands(&a, 0, 0))
		return true;
	if (why && !a.assigned)
		put_misfit(&a);
	return false;
}
