/* SPDX-License-Identifier: MIT */
#include "mistakes.h"

#include "arch/match.h"

#include <stdio.h>
#include <stdlib.h>

const char *mistake_name(enum mistake kind)
{
	static const char *const names[MISTAKES] = {
		[MISTAKE_LEFT_OUT] = "a modifier less",
		[MISTAKE_OTHER_VALUE] = "another value",
		[MISTAKE_OTHER_TYPE] = "another type of operand",
		[MISTAKE_NO_ROUNDING] = "no rounding",
		[MISTAKE_TYPES_TURNED] = "types turned round",
		[MISTAKE_OPERANDS_TURNED] = "operands turned round",
		[MISTAKE_ALL_TYPES] = "all operands of another type",
		[MISTAKE_OTHER_COUNT] = "another number of registers",
		[MISTAKE_MODIFIER_OF_OTHER_FORM] = "a modifier of another form",
		[MISTAKE_OPERAND_LESS] = "an operand less",
		[MISTAKE_OPERAND_MORE] = "an operand more",
		[MISTAKE_TWO_MISTAKES] = "two mistakes",
	};
	return names[kind];
}

bool mistake_pick(dice *d, trial *t, spelling *s)
{
	unsigned form = roll(d, arch_nform), n;
	arch_match m;
	spelling *all = spell_all(form, 20, &n);

	*s = all[roll(d, n)];
	free(all);
	*t = trial_of(s);
	return arch_match_call(form, t->vals, t->mods, NULL, false, &m);
}

static bool any_fits(const trial *t)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];
	arch_match m;

	for (unsigned i = op->form; i < (unsigned)op->form + op->nform; i++)
		if (arch_match_call(i, t->vals, t->mods, NULL, false, &m))
			return true;
	return false;
}

/* ---- operands ---- */

static bool is_register(const cptx_val *v) { return v->kind == CPTX_VAL_REG && !v->space && !v->offset && v->count <= 24; }

static bool make(cptx_val *v, unsigned type, unsigned count)
{
	*v = count > 1 ? pool_vec(type, 1, count) : pool_reg(type, 1);
	return v->kind == CPTX_VAL_REG;
}

static unsigned any_type(dice *d)
{
	static const uint8_t types[] = { CPTX_PRED, CPTX_B16, CPTX_U16, CPTX_F16, CPTX_B32, CPTX_U32,   CPTX_S32,
		                             CPTX_F32,  CPTX_B64, CPTX_U64, CPTX_S64, CPTX_F64, CPTX_F16X2, CPTX_BF16 };
	return types[roll(d, ARRAY_LEN(types))];
}

/* A register, or as many, of another type. */
static bool change_type(dice *d, const cptx_val *from, cptx_val *to)
{
	unsigned type = any_type(d);

	return is_register(from) && type != from->type && make(to, type, from->count);
}

/* All registers that have the type of one of them get another, which holds numbers too. */
static bool change_all(dice *d, cptx_val *const *v, unsigned n)
{
	const cptx_val *like = v[roll(d, n)];
	unsigned from = like->type, to = any_type(d), changed = 0;

	if (!is_register(like) || from == CPTX_PRED || to == CPTX_PRED || to == from)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (is_register(v[i]) && v[i]->type == from) {
			if (!make(v[i], to, v[i]->count))
				return false;
			changed++;
		}
	return changed > 1;
}

static bool change_count(dice *d, cptx_val *v)
{
	static const uint8_t counts[] = { 1, 2, 4, 8 };
	unsigned count = counts[roll(d, ARRAY_LEN(counts))];

	return is_register(v) && v->type != CPTX_PRED && count != v->count && (count > 1 || v->count > 1) &&
	       make(v, v->type, count);
}

static bool is_same(const cptx_val *a, const cptx_val *b)
{
	return a->kind == b->kind && a->type == b->type && a->count == b->count && a->space == b->space;
}

/* ---- modifiers ---- */

/* A value that any form of the instruction has, with its group; 0: it has none. */
static unsigned value_of_form(dice *d, const trial *t, const arch_group **group)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];
	const arch_form *f = &arch_forms[op->form + roll(d, op->nform)];
	const arch_group *g = f->ngroup ? &arch_groups[f->group + roll(d, f->ngroup)] : NULL;

	*group = g;
	return g && g->nalt ? arch_alts[g->alt + roll(d, g->nalt)].mod : 0;
}

/* ---- calls ---- */

/* What follows from the operands few write. */
static void leave_out(dice *d, trial *t)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];
	arch_match m, was;

	if (!roll(d, 2) || !arch_match_call(t->form, t->vals, t->mods, NULL, false, &was))
		return;
	for (unsigned i = 0; i < op->nfield; i++) {
		uint16_t mod = t->mods[i];
		t->mods[i] = 0;
		if (!mod || !arch_match_call(t->form, t->vals, t->mods, NULL, false, &m) ||
		    memcmp(m.mod, was.mod, m.ngroup * sizeof *m.mod))
			t->mods[i] = mod;
	}
}

/* A value that a form of the instruction has there, or a type for a type. */
static unsigned other_value(dice *d, const trial *t, unsigned field)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];
	const arch_form *f = &arch_forms[op->form + roll(d, op->nform)];

	if (t->mods[field] < arch_ntype && roll(d, 2))
		return CPTX_ON + 1 + roll(d, CPTX_PTR - CPTX_ON - 1u);
	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		if (g->kind != GROUP_REPEAT && g->field == field && g->nalt)
			return arch_alts[g->alt + roll(d, g->nalt)].mod;
	}
	return roll(d, 4) ? 0 : arch_ntype + roll(d, arch_nmod - arch_ntype);
}

static bool spoil_step(dice *d, trial *t, enum mistake kind)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];
	unsigned field = op->nfield ? roll(d, op->nfield) : 0, slot = roll(d, op->nslot + 1u);
	cptx_val *v = &t->vals[slot ? 2 + slot : 0], other; /* slots begin behind the result and two predicates */

	leave_out(d, t);
	if (kind == MISTAKE_OTHER_TYPE) {
		if (!change_type(d, v, &other))
			return false;
		*v = other;
		return true;
	}
	unsigned was = op->nfield ? t->mods[field] : 0, mod = was && kind == MISTAKE_OTHER_VALUE ? other_value(d, t, field) : 0;
	if (!was || mod == was || (kind == MISTAKE_OTHER_VALUE && !mod))
		return false;
	t->mods[field] = (uint16_t)mod;
	return true;
}

static bool take_rounding(trial *t)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];

	for (unsigned i = 0; i < op->nfield; i++)
		if (!strcmp(op->field[i], "rnd") && t->mods[i]) {
			t->mods[i] = 0;
			return true;
		}
	return false;
}

static bool turn_types(dice *d, trial *t)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];
	unsigned a = op->nfield ? roll(d, op->nfield) : 0, b = op->nfield ? roll(d, op->nfield) : 0;
	uint16_t was = op->nfield ? t->mods[a] : 0;

	if (!was || !t->mods[b] || was == t->mods[b] || was >= arch_ntype || t->mods[b] >= arch_ntype)
		return false;
	t->mods[a] = t->mods[b], t->mods[b] = was;
	return true;
}

static bool add_modifier(dice *d, trial *t)
{
	const arch_group *g;
	unsigned mod = value_of_form(d, t, &g);

	if (!mod || g->kind == GROUP_REPEAT || t->mods[g->field])
		return false;
	t->mods[g->field] = (uint16_t)mod;
	return true;
}

bool mistake_in_call(dice *d, trial *t, enum mistake kind)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];
	cptx_val *v[1 + ARCH_SLOTS] = { &t->vals[0] }, other;
	unsigned n = 1 + op->nslot, a, b;
	bool spoiled = false;

	for (unsigned i = 1; i < n; i++)
		v[i] = &t->vals[2 + i];
	if (kind < MISTAKE_STEPS)
		return spoil_step(d, t, kind) && !any_fits(t);
	leave_out(d, t);
	a = roll(d, n), b = roll(d, n);
	switch (kind) {
	case MISTAKE_NO_ROUNDING: spoiled = take_rounding(t); break;
	case MISTAKE_TYPES_TURNED: spoiled = turn_types(d, t); break;
	case MISTAKE_OPERANDS_TURNED:
		spoiled = a && b && v[a]->kind && v[b]->kind && !is_same(v[a], v[b]);
		other = *v[a];
		if (spoiled)
			*v[a] = *v[b], *v[b] = other;
		break;
	case MISTAKE_ALL_TYPES: spoiled = change_all(d, v, n); break;
	case MISTAKE_OTHER_COUNT: spoiled = change_count(d, v[a]); break;
	case MISTAKE_MODIFIER_OF_OTHER_FORM: spoiled = add_modifier(d, t); break;
	case MISTAKE_OPERAND_LESS:
		spoiled = v[a]->kind != CPTX_VAL_NONE;
		*v[a] = (cptx_val){ 0 };
		break;
	case MISTAKE_OPERAND_MORE:
		spoiled = v[a]->kind == CPTX_VAL_NONE;
		if (spoiled)
			*v[a] = pool_reg(any_type(d), 2);
		break;
	case MISTAKE_TWO_MISTAKES:
		spoiled =
			spoil_step(d, t, (enum mistake)roll(d, MISTAKE_STEPS)) && spoil_step(d, t, (enum mistake)roll(d, MISTAKE_STEPS));
		break;
	default: break;
	}
	return spoiled && !any_fits(t);
}

/* ---- text ---- */

enum { MOST_WORDS = 32 };
/* A spelling's words. */
typedef struct words {
	char text[OPCODE], *at[MOST_WORDS];
	unsigned n, name; /* name: the first ones, which are the instruction's name and no modifiers */
} words;

static void read_words(const trial *t, words *w)
{
	const char *name = arch_ops[arch_forms[t->form].op].name;

	w->n = w->name = 0;
	memcpy(w->text, t->opcode, sizeof w->text);
	for (char *p = strtok(w->text, "."); p && w->n < MOST_WORDS; p = strtok(NULL, "."))
		w->at[w->n++] = p;
	for (size_t len; w->name < w->n; w->name++) {
		len = strlen(w->at[w->name]);
		if (strncmp(name, w->at[w->name], len) || (name[len] && name[len] != '_'))
			break;
		name += len + (name[len] == '_');
	}
	w->name = MAX(w->name, 1u);
}

/* Writes the words with `other` in the place of word number `at` (NULL: without it), or, if `insert`, in front of it. */
static void write_words(trial *t, const words *w, unsigned at, const char *other, bool insert)
{
	t->opcode[0] = 0;
	for (unsigned i = 0; i <= w->n; i++) {
		const char *word[2] = { i == at ? other : NULL, i < w->n && (i != at || insert) ? w->at[i] : NULL };
		for (unsigned k = 0; k < 2; k++)
			if (word[k])
				snprintf(t->opcode + strlen(t->opcode), sizeof t->opcode - strlen(t->opcode), "%s%s", *t->opcode ? "." : "",
				         word[k]);
	}
}

/* Registers are declared as what they hold, as people do it. */
static void declare(trial *t)
{
	for (unsigned i = 0; i < t->ntok; i++) {
		cptx_val *v = &t->tok[i].v;
		for (unsigned n = 0; pool_declared(n); n++)
			if (v->kind == CPTX_VAL_REG && !v->space && !v->offset && !v->negated && pool_declared(n) == v->type)
				t->tok[i].as = v->type;
	}
}

static bool is_type_word(const char *word) { return cptx_type_find(word) != CPTX_TYPE_NONE; }

static bool spoil_words(dice *d, trial *t, enum mistake kind)
{
	const arch_group *g;
	const char *other = NULL;
	words w;

	read_words(t, &w);
	if (w.n == w.name)
		return false;
	unsigned at = w.name + roll(d, w.n - w.name), b = w.name + roll(d, w.n - w.name);
	if (kind == MISTAKE_NO_ROUNDING) {
		static const char *const roundings[] = { "rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna", "rs" };
		for (at = w.name; at < w.n && !other; at++)
			for (unsigned i = 0; i < ARRAY_LEN(roundings) && !other; i++)
				other = strcmp(w.at[at], roundings[i]) ? NULL : roundings[i];
		if (other)
			write_words(t, &w, at - 1, NULL, false);
		return other != NULL;
	}
	if (kind == MISTAKE_TYPES_TURNED) {
		char *was = w.at[at];
		if (!is_type_word(was) || !is_type_word(w.at[b]) || !strcmp(was, w.at[b]))
			return false;
		w.at[at] = w.at[b], w.at[b] = was;
		write_words(t, &w, w.n, NULL, false);
		return true;
	}
	unsigned mod = value_of_form(d, t, &g);
	other = mod ? arch_mods[mod].name : NULL;
	if (!other || !*other || !strcmp(other, w.at[at]))
		return false;
	write_words(t, &w, at, other, true);
	return true;
}

/* One word less, or another; or an operand of another type. */
static bool spoil_text_step(dice *d, trial *t, enum mistake kind)
{
	words w;
	const char *other = NULL;
	cptx_val v;

	read_words(t, &w);
	unsigned at = w.n > w.name ? w.name + roll(d, w.n - w.name) : 0, token_at = t->ntok ? roll(d, t->ntok) : 0;
	if (kind == MISTAKE_OTHER_TYPE) {
		if (!t->ntok || !change_type(d, &t->tok[token_at].v, &v))
			return false;
		t->tok[token_at].v = v;
		return true;
	}
	if (kind == MISTAKE_OTHER_VALUE && at && is_type_word(w.at[at])) {
		other = arch_mods[CPTX_ON + 1 + roll(d, CPTX_PTR - CPTX_ON - 1u)].name;
	} else if (kind == MISTAKE_OTHER_VALUE) {
		const arch_group *g;
		unsigned mod = value_of_form(d, t, &g);
		other = mod ? arch_mods[mod].name : NULL;
	}
	if (!at || (kind == MISTAKE_OTHER_VALUE && (!other || !strcmp(other, w.at[at]))))
		return false;
	write_words(t, &w, at, other, false);
	return true;
}

/* Whether an operand shares brackets or | with a neighbour. */
static bool is_tied(const trial *t, unsigned i)
{
	const token *x = &t->tok[i];

	return x->inside || x->pipe || (i + 1 < t->ntok && (x[1].inside || x[1].pipe));
}

static bool spoil_token(dice *d, trial *t, enum mistake kind)
{
	unsigned a = t->ntok ? roll(d, t->ntok) : 0, b = t->ntok ? roll(d, t->ntok) : 0;
	token *x = &t->tok[a], *y = &t->tok[b];
	cptx_val other;
	bool address, brace;

	if (!t->ntok)
		return false;
	switch (kind) {
	case MISTAKE_OTHER_COUNT: return !x->address && change_count(d, &x->v);
	case MISTAKE_OPERANDS_TURNED:
		if (is_same(&x->v, &y->v) && x->address == y->address)
			return false;
		if (is_tied(t, a) || is_tied(t, b))
			return false;
		other = x->v, x->v = y->v, y->v = other; /* brackets and braces go with what they are around */
		address = x->address, x->address = y->address, y->address = address;
		brace = x->brace, x->brace = y->brace, y->brace = brace;
		return true;
	case MISTAKE_OPERAND_LESS:
		if (x->address || is_tied(t, a))
			return false;
		memmove(x, x + 1, (t->ntok - a - 1) * sizeof *x);
		t->ntok--;
		return true;
	default:
		if (t->ntok == MOST_TOKENS || x->address || is_tied(t, a))
			return false;
		memmove(x + 1, x, (t->ntok - a) * sizeof *x);
		t->ntok++;
		return true;
	}
}

static bool spoil_text(dice *d, trial *t, enum mistake kind)
{
	cptx_val *v[MOST_TOKENS];

	switch (kind) {
	case MISTAKE_OTHER_COUNT:
	case MISTAKE_OPERANDS_TURNED:
	case MISTAKE_OPERAND_LESS:
	case MISTAKE_OPERAND_MORE: return spoil_token(d, t, kind);
	case MISTAKE_ALL_TYPES:
		for (unsigned i = 0; i < t->ntok; i++)
			v[i] = &t->tok[i].v;
		return t->ntok && change_all(d, v, t->ntok);
	case MISTAKE_TWO_MISTAKES:
		return spoil_text_step(d, t, (enum mistake)roll(d, MISTAKE_STEPS)) &&
		       spoil_text_step(d, t, (enum mistake)roll(d, MISTAKE_STEPS));
	default: return kind < MISTAKE_STEPS ? spoil_text_step(d, t, kind) : spoil_words(d, t, kind);
	}
}

bool mistake_in_text(dice *d, trial *t, enum mistake kind)
{
	if (!spoil_text(d, t, kind))
		return false;
	declare(t);
	return true;
}
