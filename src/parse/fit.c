/* SPDX-License-Identifier: MIT */
/* Finds the form that the operands of an instruction fit: that of the last instruction with the same spelling, or else the
 * first of the spelling's forms. */
#include "parse/insn.h"

#include <limits.h>

/* ---- the last match again ---- */

static inline uint64_t token_key(const parse_token *t)
{
	return arch_value_key(&t->v) ^ (uint64_t)(t->pipe | t->address << 1 | t->inside << 2 | t->braces << 3 | t->indexed << 5 |
	                                          (t->behind != NULL) << 6)
	                                   << 56;
}

/* Returns the older of the two remembered matches, to be overwritten. */
static remembered *oldest(parser *p, spelled *s)
{
	remembered *r = s->before ? s->before : ARENA_NEW(&p->forms, remembered);

	if (r) {
		s->before = s->last;
		s->last = r;
	} else {
		parse_out_of_memory(p);
	}
	return r;
}

/* Remembers a match.  The tokens are, in order, the operands of the form that are there. */
static void remember(parser *p, spelled *s, const tokens *all, const arch_match *m)
{
	const arch_form *f = &arch_forms[m->form];
	unsigned t = 0;

	for (unsigned i = 0; i < all->n; i++)
		if (all->t[i].behind)
			return;
	remembered *r = all->n > REMEMBERED_TOKENS ? NULL : oldest(p, s);
	if (!r)
		return;
	r->ntoken = all->n;
	arch_know(&r->known, m);
	for (unsigned i = 0; i < all->n; i++)
		r->key[i] = token_key(&all->t[i]);
	for (unsigned i = 0; i < f->noperand; i++) {
		bool sink = arch_operands[f->operand + i].kind == OPERAND_NOWHERE, none = m->operand[i].kind == CPTX_VAL_NONE;
		r->known.from[i] = sink ? KNOWN_SINK : none ? KNOWN_NONE : (uint8_t)t++;
	}
	if (t != all->n)
		r->ntoken = UINT_MAX; /* UINT_MAX tokens: nothing matches it again */
}

static inline bool same_kinds(const remembered *r, const uint64_t *key, unsigned n)
{
	if (!r || r->ntoken != n)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (r->key[i] != key[i])
			return false;
	return true;
}

/* Marks labels that the form takes for names of lists and prototypes. */
static void name_lists(arch_match *m)
{
	const arch_operand *o = &arch_operands[arch_forms[m->form].operand];

	for (unsigned i = 0; i < m->noperand; i++, o++)
		if (m->operand[i].kind == CPTX_VAL_LABEL && o->kind != OPERAND_LABEL)
			m->operand[i].kind = o->kind == OPERAND_TARGETS ? CPTX_VAL_TARGETS : CPTX_VAL_PROTO;
}

/* Repeats the match of an earlier instruction with the same spelling and operands of the same kinds; false if there is none.
 */
static bool again(parser *p, spelled *s, const tokens *all, arch_match *m)
{
	uint64_t key[REMEMBERED_TOKENS];
	remembered *r = s->last;
	unsigned n = all->n;

	if (n > REMEMBERED_TOKENS)
		return false;
	for (unsigned i = 0; i < n; i++)
		key[i] = token_key(&all->t[i]);
	if (!same_kinds(r, key, n)) {
		r = s->before;
		if (!same_kinds(r, key, n))
			return false;
		s->before = s->last;
		s->last = r;
	}
	arch_recall(&r->known, p->k->vec, m);
	for (unsigned i = 0; i < m->noperand; i++) {
		unsigned from = r->known.from[i];
		m->operand[i] = from == KNOWN_NONE ? (cptx_val){ 0 } : from == KNOWN_SINK ? cptx_sink() : all->t[from].v;
	}
	if (m->labels)
		name_lists(m);
	return arch_match_again(m, &r->known);
}

/* ---- the same of plain operands, which needs no values ---- */

const plain_match *parse_fit_plain(const spelled *s, const tokens *all)
{
	for (unsigned way = 0; way < ARRAY_LEN(s->plain); way++) {
		const plain_match *r = s->plain[way];
		bool fits = r && r->ntoken == all->n && r->shape[0] == all->shape[0] && r->shape[1] == all->shape[1];
		for (unsigned i = 0; fits && i < all->n; i++)
			fits = all->words[i] >> WORD_NUMBER <= r->most[i];
		if (fits)
			return r;
	}
	return NULL;
}
_Static_assert(PLAIN_TOKENS / 4 == 2, "both are compared");

/* Computes what is added to the token's own word to get the word of the operand that token t became; false if the words
 * differ otherwise. */
static bool rest_of_word(plain_match *r, unsigned i, const tokens *all, unsigned t, const arch_match *m, uint16_t owner)
{
	uint32_t made = ir_word(&m->operand[i], owner), mine = all->words[t];
	bool integer = ir_word_is(mine, CPTX_VAL_INT);

	r->from[i] = (uint8_t)t;
	r->words[i] = made & ~mine;
	r->most[t] = UINT32_MAX;
	if (integer) {
		int64_t most = MIN(arch_integers_up_to(m, i), (int64_t)WORD_ZERO - 1);
		r->most[t] = most < 0 ? 0 : (uint32_t)most + WORD_ZERO;
	}
	return (r->words[i] | mine) == made && !(r->words[i] >> WORD_NUMBER);
}

/* Remembers a match of plain operands.  Labels, and calls, whose rules concern more than their operands, are never plain. */
static void remember_plain(parser *p, spelled *s, const tokens *all, const arch_match *m)
{
	const arch_form *f = &arch_forms[m->form];
	plain_match r = { .ntoken = all->n };
	unsigned t = 0;

	if (m->labels || ir_is_call(f->op))
		return;
	r.head.form = m->form;
	r.head.noperand = m->noperand & 15;
	r.head.nmod = m->ngroup & 31;
	memcpy(r.shape, all->shape, sizeof r.shape);
	memcpy(r.mod, m->mod, m->ngroup * sizeof *m->mod);
	for (unsigned i = 0; i < m->noperand; i++) {
		bool sink = arch_operands[f->operand + i].kind == OPERAND_NOWHERE;
		if (sink || m->operand[i].kind == CPTX_VAL_NONE)
			r.from[i] = PLAIN_TOKENS, r.words[i] = ir_word(&m->operand[i], p->k->owner);
		else if (t == all->n || !rest_of_word(&r, i, all, t++, m, p->k->owner))
			return;
	}
	plain_match **to = &s->plain[s->turn++ % ARRAY_LEN(s->plain)];
	if (!*to)
		*to = ARENA_ARRAY(&p->spellings, plain_match, 1);
	if (!*to)
		parse_out_of_memory(p);
	else if (t == all->n)
		**to = r;
}

bool parse_fit(parser *p, spelled *s, const tokens *all, arch_match *m)
{
	bool plain = all->nplain == all->n;

	if (again(p, s, all, m))
		return true;
	for (unsigned i = 0; i < s->nform; i++)
		if (parse_match(s->form[i].form, s->form[i].mods, all->t, all->n, p->k->vec, true, m)) {
			if (!m->once)
				remember(p, s, all, m);
			if (!m->once && plain)
				remember_plain(p, s, all, m);
			return true;
		}
	return false;
}
