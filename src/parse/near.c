/* SPDX-License-Identifier: MIT */
/*
 * Describes why text is no instruction of the table: first what is wrong with it and the spelling to write, from the form
 * that is nearest by its words and operands; then the nearest forms.
 */
#include "parse/near.h"

enum { COST_NUMBER = 36, COST_BRACES = 40, STRANGER = 24 /* of doubt */ };

typedef struct question {
	near_text t;
	const near_operands *o; /* the operands; NULL: unknown */
} question;

typedef struct candidate {
	unsigned cost, doubt; /* as of arch_near */
	near_words words;
	bool assigned; /* each operand was given to one of the form's */
	arch_near near;
	cptx_val vals[3 + ARCH_SLOTS]; /* the operands in the order of `near` */
} candidate;

static bool fits(const question *q, unsigned form, const uint16_t *mods)
{
	arch_match m;
	return !q->o || parse_match(form, mods, q->o->token, q->o->n, q->o->vec, q->o->declared, &m);
}

/* How many elements a packed type has; 1 for any other. */
static unsigned packed(unsigned type)
{
	const char *name = cptx_type_name((enum cptx_type)type), *x = strrchr(name, 'x');

	return x && x[1] >= '2' && x[1] <= '9' ? (unsigned)(x[1] - '0') : 1;
}

/* Groups of types have words, too, that are none. */
static bool are_kin(unsigned a, unsigned b)
{
	if (b >= arch_ntype)
		return false;
	const char cls = arch_types[a].cls;

	return packed(a) == packed(b) && (packed(a) > 1 || cls == arch_types[b].cls);
}

/* A type that the form does not have, and nothing like it: another form was meant, if one is as near. */
static unsigned strangers(const question *q, const near_words *w)
{
	unsigned doubt = 0;

	for (unsigned i = 0; i < w->nfault; i++) {
		const near_fault *f = &w->fault[i];
		const unsigned group = f->kind == WORD_OTHER ? w->slot[f->slot].group : ARCH_NO;
		const arch_group *g = group == ARCH_NO ? NULL : &arch_groups[arch_forms[w->form].group + group];
		const unsigned type = g && g->is_type ? arch_type_of(q->t.text + f->at, f->len) : CPTX_TYPE_NONE;
		bool kin = type == CPTX_TYPE_NONE;
		for (unsigned a = 0; !kin && a < g->nalt; a++)
			kin = are_kin(type, arch_alts[g->alt + a].mod);
		doubt += kin ? 0 : STRANGER;
	}
	return doubt;
}

static void look_at(const question *q, unsigned form, candidate *c)
{
	near_align(form, &q->t, &c->words);
	c->cost = c->words.cost;
	c->doubt = strangers(q, &c->words);
	c->assigned = false;
	if (!q->o)
		return;
	unsigned have = q->o->n, least, most, edits, cost;
	if (parse_near(form, c->words.mods, q->o, c->vals, &c->near, &edits, &cost)) {
		c->assigned = !edits;
		c->cost += cost;
		c->doubt += c->near.doubt;
		return;
	}
	parse_operand_numbers(form, c->words.mods, &least, &most);
	c->cost += have < least ? COST_NUMBER * (least - have) : have > most ? COST_NUMBER * (have - most) : COST_BRACES;
}

/* ---- the spelling to write ---- */

static const arch_form *form_of(const candidate *c) { return &arch_forms[c->words.form]; }

static const arch_group *group_at(const candidate *c, const near_fault *f)
{
	unsigned group = f->kind == WORD_EXTRA ? ARCH_NO : c->words.slot[f->slot].group;
	return group == ARCH_NO ? NULL : &arch_groups[arch_forms[c->words.form].group + group];
}

/* How little the word looks like the value: of values equally far, one that begins as it does is meant (leq: le, not eq). */
static unsigned distance_to(const question *q, const near_fault *f, unsigned mod)
{
	enum { LETTER = 64 /* more than a word has letters */ };
	char word[48];
	unsigned same = 0;

	if (f->len >= sizeof word || arch_mods[mod].len >= sizeof word)
		return UINT16_MAX;
	memcpy(word, q->t.text + f->at, f->len);
	word[f->len] = 0;
	while (same < f->len && word[same] == arch_mods[mod].name[same])
		same++;
	return LETTER * text_distance(word, arch_mods[mod].name) - same;
}

/* Collects the values of a form's group that mend the fault, or all values. */
static void offer_values(const question *q, const candidate *c, const near_fault *f, bool all, arch_offers *v)
{
	const arch_group *g = group_at(c, f);
	uint16_t mods[ARCH_GROUPS];

	memcpy(mods, c->words.mods, sizeof mods);
	for (unsigned a = 0; a < g->nalt; a++) {
		arch_set_value(form_of(c), mods, c->words.slot[f->slot].group, arch_alts[g->alt + a].mod);
		if (all || fits(q, c->words.form, mods))
			arch_offer(v, arch_alts[g->alt + a].mod);
	}
}

/* Puts the best value first: the one that looks most like the word, or that the operands call for. */
static void choose_offer(const question *q, const candidate *c, const near_fault *f, arch_offers *v)
{
	unsigned best = 0, assumed = c->assigned ? c->near.m.mod[c->words.slot[f->slot].group] : 0;
	bool alone = c->words.nfault == 1;

	for (unsigned i = 0; i < arch_offered(v); i++)
		if (f->kind == WORD_OTHER && alone ? distance_to(q, f, v->mod[i]) < distance_to(q, f, v->mod[best])
		                                   : !alone && v->mod[i] == assumed)
			best = i;
	uint16_t first = v->mod[best];
	memmove(v->mod + 1, v->mod, best * sizeof *v->mod);
	v->mod[0] = first;
}

/* Adds values that equally near forms have where the nearest one lacks a value. */
static void offer_more(const question *q, const candidate *best, arch_offers *v)
{
	unsigned count;
	const uint16_t *forms = arch_forms_of(q->t.text, q->t.n, &count);
	const near_fault *f = &best->words.fault[0];
	candidate c;

	for (unsigned i = 0; i < count; i++) {
		if (forms[i] == best->words.form)
			continue;
		look_at(q, forms[i], &c);
		const near_fault *other = &c.words.fault[0];
		if (c.words.nfault == 1 && other->kind == f->kind && other->at == f->at && group_at(&c, other) &&
		    group_at(&c, other)->kind != GROUP_REPEAT)
			offer_values(q, &c, other, false, v);
	}
}

static void put_spelling(const candidate *c, const uint16_t *mods, buf *b)
{
	char text[ARCH_OPCODE];
	buf_put(b, text, (size_t)(arch_put_opcode(text, c->words.form, mods) - text));
}

static void put_word_fault(const question *q, const candidate *c, const near_fault *f, buf *b)
{
	const near_slot *s = &c->words.slot[f->slot];
	const arch_form *form = &arch_forms[c->words.form];
	const arch_group *g = group_at(c, f);
	bool repeats = g && g->kind == GROUP_REPEAT;
	int len = (int)MIN(f->len, (uint16_t)64);

	g = repeats ? &arch_groups[form->group + g->same] : g;
	const char *field = g ? arch_ops[form->op].field[g->field] : NULL;
	switch ((enum near_word)f->kind) {
	case WORD_EXTRA: buf_printf(b, "'.%.*s' does not belong there", len, q->t.text + f->at); break;
	case WORD_TURNED: buf_printf(b, "'.%.*s' is the wrong way round", len, q->t.text + f->at); break;
	case WORD_MISSING:
		if (g)
			buf_printf(b, ".%s is missing", field);
		else
			buf_printf(b, ".%.*s is missing", s->len, s->text);
		break;
	case WORD_OTHER:
		if (repeats)
			buf_printf(b, "'.%.*s' should be the same as .%s", len, q->t.text + f->at, field);
		else if (g)
			buf_printf(b, "'.%.*s' is no .%s here", len, q->t.text + f->at, field);
		else
			buf_printf(b, "'.%.*s' should be .%.*s", len, q->t.text + f->at, s->len, s->text);
		break;
	}
}

/* Writes which words of the text differ from the nearest form, and the spelling to write; `mods` gets that spelling's
 * values. */
static void put_words(const question *q, const candidate *c, uint16_t *mods, buf *b)
{
	arch_offers v = { { 0 }, 0 };

	memcpy(mods, c->words.mods, sizeof c->words.mods);
	for (unsigned i = 0; i < c->words.nfault; i++) {
		const near_fault *f = &c->words.fault[i];
		buf_str(b, i ? ", " : "");
		put_word_fault(q, c, f, b);
		const arch_group *g = group_at(c, f);
		if (!g || g->kind == GROUP_REPEAT || f->kind == WORD_TURNED)
			continue;
		v.n = 0;
		if (c->words.nfault == 1) {
			offer_values(q, c, f, false, &v);
			offer_more(q, c, &v);
		}
		if (!v.n)
			offer_values(q, c, f, true, &v);
		choose_offer(q, c, f, &v);
		arch_set_value(form_of(c), mods, c->words.slot[f->slot].group, v.mod[0]);
	}
	for (unsigned i = 0; i < arch_forms[c->words.form].ngroup; i++)
		arch_set_value(form_of(c), mods, i, mods[i]);
	buf_str(b, "; write ");
	put_spelling(c, mods, b);
	if (c->words.nfault > 1)
		return;
	for (unsigned i = 1; i < arch_offered(&v); i++)
		buf_printf(b, "%s.%s", i == 1 ? " (also " : " ", arch_mods[v.mod[i]].name);
	buf_str(b, arch_offers_end(&v));
}

/* ---- operands ---- */

static void put_misfit(const question *q, const candidate *c, buf *b)
{
	unsigned have = q->o->n, least, most;

	parse_operand_numbers(c->words.form, c->words.mods, &least, &most);
	buf_str(b, "not these operands: ");
	if (have >= least && have <= most)
		buf_str(b, "braces, brackets or | are wrong");
	else if (least == most)
		buf_printf(b, "%u, where it has %u", have, most);
	else
		buf_printf(b, "%u, where it has %u to %u", have, least, most);
}

static void put_operand_faults(const question *q, const candidate *c, buf *b)
{
	const char *between = "";

	if (!c->assigned) {
		put_misfit(q, c, b);
		return;
	}
	const arch_request r = { c->vals, q->o->vec, c->words.mods, true, false, q->o->declared };
	for (unsigned i = 0; i < c->near.nfault; i++) {
		if (c->near.fault[i].kind != FAULT_OPERAND && c->near.fault[i].kind != FAULT_RULE)
			continue;
		buf_str(b, between);
		arch_put_fault(&c->near, &r, i, b);
		between = "; ";
	}
}

/* Writes other values, one at a time, with which the form takes the operands. */
static void put_other_spellings(const question *q, const candidate *c, buf *b)
{
	const arch_form *f = &arch_forms[c->words.form];
	uint16_t mods[ARCH_GROUPS];
	unsigned n = 0;

	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		for (unsigned a = 0; g->kind != GROUP_REPEAT && !g->behind && a <= g->nalt; a++) {
			memcpy(mods, c->words.mods, sizeof mods);
			arch_set_value(form_of(c), mods, i, a < g->nalt ? arch_alts[g->alt + a].mod : 0);
			if ((!mods[i] && g->kind == GROUP_REQUIRED) || mods[i] == c->words.mods[i] || !fits(q, c->words.form, mods))
				continue;
			if (n < 3) {
				buf_str(b, n ? " or " : "; with these operands write ");
				put_spelling(c, mods, b);
			}
			n++;
		}
	}
}

/* ---- the message ---- */

static void put_form(const question *q, const candidate *c, bool reason, buf *b)
{
	const char *between = "  -- ";

	buf_str(b, "\n    ");
	arch_put_form(c->words.form, b);
	for (unsigned i = 0; reason && i < c->words.nfault; i++, between = ", ") {
		buf_str(b, between);
		put_word_fault(q, c, &c->words.fault[i], b);
	}
	if (reason && q->o && c->cost > c->words.cost) {
		buf_str(b, between);
		put_operand_faults(q, c, b);
	}
}

bool near_why(const char *text, size_t n, const near_operands *o, buf *why, size_t *place)
{
	question q = { .o = o };
	candidate best[ARCH_NEAR], c;
	unsigned count, nbest = 0, far[ARCH_NEAR];
	const uint16_t *forms = arch_forms_of(text, n, &count);

	*place = 0;
	if (!count)
		return false;
	near_read(text, n, &q.t);
	for (unsigned i = 0; i < count; i++) {
		look_at(&q, forms[i], &c);
		candidate *to = (candidate *)arch_near_insert(best, sizeof *best, far, &nbest, arch_distance(c.cost, c.doubt));
		if (to)
			*to = c;
	}
	buf_printf(why, "%.*s: ", (int)MIN(n, (size_t)200), text);
	uint16_t mods[ARCH_GROUPS];
	if (best->words.nfault) {
		put_words(&q, best, mods, why);
		*place = MIN((size_t)(best->words.fault[0].at ? best->words.fault[0].at - 1 : 0), n);
	}
	/* the operands are wrong even with the right spelling */
	if (o && best->words.nfault && !fits(&q, best->words.form, mods)) {
		c = *best;
		memcpy(c.words.mods, mods, sizeof mods);
		unsigned edits, cost;
		c.assigned = parse_near(c.words.form, mods, o, c.vals, &c.near, &edits, &cost) && !edits;
		if (!c.assigned || c.near.operands) {
			buf_str(why, "; then ");
			put_operand_faults(&q, &c, why);
		}
	} else if (o && !best->words.nfault) {
		put_operand_faults(&q, best, why);
		put_other_spellings(&q, best, why);
	}
	for (unsigned i = 0; i < nbest; i++)
		put_form(&q, &best[i], i > 0, why);
	for (unsigned i = 0; i < count && count > nbest && arch_wants_all_forms(); i++) {
		bool there = false;
		for (unsigned k = 0; k < nbest; k++)
			there |= best[k].words.form == forms[i];
		look_at(&q, forms[i], &c);
		if (!there)
			put_form(&q, &c, true, why);
	}
	if (count > nbest && !arch_wants_all_forms())
		buf_printf(why, "\n    %u more: `cptx insn %.*s`, or CPTX_FORMS=all in the environment", count - nbest,
		           (int)MIN(strcspn(text, "."), n), text);
	return true;
}
