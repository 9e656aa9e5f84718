/* SPDX-License-Identifier: MIT */
/* Gives operands of text, which were read without knowing the form, to the operands of a form. */
#include "parse/near.h"

static bool is_needed(const arch_operand *o, const uint16_t *mods)
{
	return o->given != ARCH_NO ? mods[o->given] != 0 : !(o->flags & OPERAND_OPTIONAL);
}

/* Reads the modifier that stands behind an address. */
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

/* The matching of one form with the operands of the text. */
typedef struct trying {
	const parse_token *token;
	unsigned ntoken, form;
	const cptx_val *vec;
	uint16_t mods[ARCH_GROUPS];
	cptx_val vals[3 + ARCH_SLOTS];
	arch_match *m;
	bool declared;
	bool assigned;   /* in some attempt each operand got its token */
	arch_near *near; /* the nearest attempt and its values; NULL: not wanted */
	cptx_val nearest[3 + ARCH_SLOTS];
	unsigned edits;       /* tokens that may still be too many, lacking, or in other brackets than the operand */
	unsigned spent, cost; /* what those cost that are; the nearest attempt, with that */
	unsigned attempts;    /* that are still looked at */
} trying;

/* Costs in the units of arch/near.c, beside those of the operand as such. */
enum {
	COST_TOKEN = 32,
	COST_LACKING = 2,
	COST_BRACES = 24,
	COST_EXCHANGED = 34,
	MOST_EDITS = 2,
	MOST_ATTEMPTS = 64,
	MOST_EXCHANGED = 8
};

/* Whether an operand is a coordinate of a texture or surface, which needs no braces if it is single. */
static bool in_texture(const arch_operand *o)
{
	if (!(o->flags & OPERAND_INSIDE))
		return false;
	while (o->flags & OPERAND_INSIDE)
		o--;
	return o->address == ADDRESS_HANDLE;
}

/* Whether a vector of one element may stand for an operand that is no vector: in a mov that packs, and beside the fragments
 * of matrices. */
static bool takes_one(unsigned op, const arch_operand *o, const uint16_t *mods)
{
	if (op != CPTX_OP_MOV)
		return !strncmp(arch_ops[op].name, "mma", 3) || !strncmp(arch_ops[op].name, "wgmma", 5);
	arch_type t = arch_types[o->tgroup != ARCH_NO ? mods[o->tgroup] : o->type];
	return t.cls == 'B' && t.bits <= 64;
}

/* Whether a token may stand for an operand. */
static bool stands_for(const parse_token *k, unsigned op, const arch_operand *o, const uint16_t *mods, bool optional)
{
	bool pipe = o->flags & OPERAND_PIPE, inside = o->flags & OPERAND_INSIDE;
	bool one = arch_operand_count(o, mods) == 1, vector = o->kind == OPERAND_REG && (o->brace || !one);

	bool address = o->kind == OPERAND_ADDR && !inside;
	bool reads = op == CPTX_OP_LD || op == CPTX_OP_LDU || op == CPTX_OP_ST, takes = op == CPTX_OP_MOV || op == CPTX_OP_CVTA;

	if (k->pipe != pipe || k->inside != inside || (k->indexed ? !(address ? reads : takes) : k->address != address))
		return false;
	bool braces = k->braces == BRACES_EITHER ? k->v.kind == CPTX_VAL_VEC || k->v.count > 1 : k->braces;
	if (optional && o->kind == OPERAND_REG) /* an optional register must fit, because the next operand might fit instead */
		return braces == vector;
	if (vector)
		return k->braces || k->v.kind == CPTX_VAL_SINK || (one && in_texture(o));
	return k->braces != BRACES_HERE || o->cgroup != ARCH_NO || takes_one(op, o, mods);
}

/* Keeps the attempt if it is the nearest so far; an attempt that fits is never kept. */
static void look_how_near(trying *a)
{
	const arch_request q = { a->vals, a->vec, a->mods, true, false, a->declared };
	arch_near n;

	if (!a->attempts)
		return;
	a->attempts--;
	arch_near_form(a->form, &q, &n);
	if (a->assigned && arch_distance(n.cost + a->spent, n.doubt) >= arch_distance(a->cost, a->near->doubt))
		return;
	a->assigned = true;
	a->cost = n.cost + a->spent;
	*a->near = n;
	memcpy(a->nearest, a->vals, sizeof a->vals);
}

static bool try_operands(trying *a, unsigned i, unsigned t);

/* Goes on with one edit less, which costs so much; false, as all attempts of which the nearest is wanted. */
static bool edit(trying *a, unsigned i, unsigned t, unsigned cost)
{
	if (!a->attempts)
		return false;
	a->edits--, a->spent += cost;
	try_operands(a, i, t);
	a->edits++, a->spent -= cost;
	return false;
}

/* The token is too many, the operand is lacking, or the token's brackets are wrong. */
static bool try_edits(trying *a, unsigned i, unsigned t, bool optional)
{
	const arch_form *f = &arch_forms[a->form];
	const arch_operand *o = i < f->noperand ? &arch_operands[f->operand + i] : NULL;

	if (!a->edits)
		return false;
	if (t < a->ntoken)
		edit(a, i, t + 1, COST_TOKEN);
	if (!o || optional)
		return false;
	edit(a, i + 1, t, COST_LACKING);
	if (t < a->ntoken && !stands_for(&a->token[t], f->op, o, a->mods, false)) {
		cptx_val *v = &a->vals[o->slot ? 2 + o->slot : 0];
		*v = a->token[t].v;
		edit(a, i + 1, t + 1, COST_BRACES);
		*v = (cptx_val){ 0 };
	}
	return false;
}

/* Gives operands from number i on the tokens from number t on.  Tries an optional operand's token before leaving it out. */
static bool try_operands(trying *a, unsigned i, unsigned t)
{
	const arch_form *f = &arch_forms[a->form];
	const arch_operand *o = &arch_operands[f->operand + i];

	if (i == f->noperand) {
		if (t != a->ntoken)
			return try_edits(a, i, t, false);
		if (a->near)
			look_how_near(a);
		return !a->near && arch_match_form(a->form, a->vals, a->mods, a->vec, a->declared, a->m);
	}
	cptx_val *v = &a->vals[o->slot ? 2 + o->slot : 0];
	bool optional = !is_needed(o, a->mods), never = o->given != ARCH_NO && optional;
	if (!never && t < a->ntoken && stands_for(&a->token[t], f->op, o, a->mods, optional) &&
	    read_behind(f, o, &a->token[t], a->mods)) {
		*v = a->token[t].v;
		/* a name in the text may be that of a list; a value in a hole of cptx_asm has its kind */
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
	return (optional && try_operands(a, i + 1, t)) || try_edits(a, i, t, optional);
}

void parse_operand_numbers(unsigned form, const uint16_t mods[ARCH_GROUPS], unsigned *least, unsigned *most)
{
	const arch_form *f = &arch_forms[form];

	*least = *most = 0;
	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		*least += is_needed(o, mods);
		*most += is_needed(o, mods) || o->given == ARCH_NO;
	}
}

/* Whether two tokens that people exchange may be: none shares brackets or | with a neighbour. */
static bool is_alone(const near_operands *o, unsigned i)
{
	const parse_token *x = &o->token[i];

	return !x->inside && !x->pipe && (i + 1 == o->n || (!x[1].inside && !x[1].pipe));
}

/* Two operands in each other's place are one mistake.  Keeps the exchange with which the form is nearest. */
static void try_exchanges(trying *a, const near_operands *o)
{
	parse_token token[MOST_EXCHANGED];

	if (o->n > MOST_EXCHANGED)
		return;
	a->token = token, a->edits = 0, a->spent = COST_EXCHANGED, a->attempts = MOST_ATTEMPTS;
	for (unsigned i = 0; i < o->n; i++)
		for (unsigned j = i + 1; j < o->n && is_alone(o, i); j++) {
			if (!is_alone(o, j))
				continue;
			memcpy(token, o->token, o->n * sizeof *token);
			token[i] = o->token[j], token[j] = o->token[i];
			try_operands(a, 0, 0);
		}
	a->token = o->token;
}

bool parse_near(unsigned form, const uint16_t mods[ARCH_GROUPS], const near_operands *o, cptx_val vals[3 + ARCH_SLOTS],
                arch_near *n, unsigned *edits, unsigned *cost_of)
{
	trying a = { .token = o->token, .ntoken = o->n, .form = form, .vec = o->vec, .declared = o->declared };

	a.near = n;
	n->cost = UINT16_MAX;
	n->doubt = 0;
	memcpy(a.mods, mods, sizeof a.mods);
	*cost_of = 0;
	unsigned least, most;
	parse_operand_numbers(form, mods, &least, &most);
	if (o->n > most + MOST_EDITS || o->n + MOST_EDITS < least)
		return false;
	for (a.edits = 0; a.edits <= MOST_EDITS && !a.assigned; a.edits++) {
		a.attempts = MOST_ATTEMPTS;
		try_operands(&a, 0, 0);
		*edits = a.edits;
	}
	if (!a.assigned)
		return false;
	memcpy(vals, a.nearest, sizeof a.nearest);
	const arch_near first = *n;
	const unsigned cost = a.cost;
	if (cost + n->operands >= n->cost + (unsigned)COST_EXCHANGED) { /* the message tells what is wrong as it is written */
		try_exchanges(&a, o);
		const unsigned doubt = n->doubt;
		*n = first, n->doubt = (uint16_t)doubt;
	}
	*cost_of = a.cost + first.operands - first.cost;
	return true;
}

bool parse_match(unsigned form, const uint16_t mods[ARCH_GROUPS], const parse_token *token, unsigned ntoken,
                 const cptx_val *vec, bool declared, arch_match *m)
{
	trying a = { .token = token, .ntoken = ntoken, .form = form, .vec = vec, .m = m, .declared = declared };

	memcpy(a.mods, mods, sizeof a.mods);
	return try_operands(&a, 0, 0);
}
