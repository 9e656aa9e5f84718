/* SPDX-License-Identifier: MIT */
/* A memo of matched calls: kernels repeat a call with other registers over and over. */
#include "arch/match.h"

_Static_assert(sizeof(cptx_val) == 16, "a value is passed in two registers");

/* Restores a remembered match with these values; false if a constant does not fit. */
static inline bool recall(const arch_known *known, const cptx_val *vals, const cptx_val *vec, arch_match *m)
{
	arch_recall(known, vec, m);
	for (unsigned i = 0; i < known->noperand; i++)
		m->operand[i] = known->from[i] == KNOWN_SINK ? cptx_sink() : vals[known->from[i]];
	return arch_match_again(m, known);
}

static bool has_varying(const cptx_val *vals, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (arch_varies(&vals[i]))
			return true;
	return false;
}

void arch_know(arch_known *known, const arch_match *m)
{
	*known = (arch_known){ .form = m->form,
		                   .dest_count = m->dest_count,
		                   .ngroup = m->ngroup,
		                   .noperand = m->noperand,
		                   .dest_type = m->dest_type,
		                   .labels = m->labels };
	memcpy(known->mod, m->mod, m->ngroup * sizeof *m->mod);
	for (unsigned i = 0; i < m->noperand; i++)
		known->varying |= (uint16_t)(arch_varies(&m->operand[i]) << i);
}

/*
 * The key of a remembered call: the keys of its destination and of the op's slots (not of its guard, which no form depends
 * on), and its modifiers, four to a word.
 */
typedef struct call_key {
	unsigned op, n;
	uint64_t hash, word[ARRAY_LEN(((arch_remembered *)0)->key)];
} call_key;

static inline void add_word(call_key *c, uint64_t word)
{
	c->word[c->n++] = word;
	c->hash = (c->hash << 7 | c->hash >> 57) ^ word;
}

static inline void key_of(call_key *c, unsigned op, const cptx_val *vals, const uint16_t *mods)
{
	unsigned nslot = arch_ops[op].nslot, nfield = arch_ops[op].nfield;

	c->op = op + 1;
	c->n = 0;
	c->hash = op;
	add_word(c, arch_value_key(&vals[0]));
	for (unsigned i = 1; i <= nslot; i++)
		add_word(c, arch_value_key(&vals[FIRST_SLOT + i]));
	for (unsigned i = 0; i < nfield; i += 4)
		add_word(c, arch_four_mods(mods + i, nfield - i));
	c->hash = c->hash * 0x9e3779b97f4a7c15u >> 32;
}

static inline bool is_call(const arch_remembered *r, const call_key *c)
{
	if (r->hash != c->hash || r->op != c->op)
		return false;
	for (unsigned i = 0; i < c->n; i++)
		if (r->key[i] != c->word[i])
			return false;
	return true;
}

static void remember(arch_memo *memo, const call_key *c, const arch_match *m)
{
	/* a call has two places, used in turns, so that two calls with one hash can both stay */
	arch_remembered *r = &memo->at[(c->hash ^ (memo->turn++ & 1)) % ARCH_MEMO];

	r->op = (uint16_t)c->op;
	r->hash = c->hash;
	memcpy(r->key, c->word, c->n * sizeof *c->word);
	arch_know(&r->known, m);
	for (unsigned i = 0; i < m->noperand; i++) {
		const arch_operand *o = &arch_operands[arch_forms[m->form].operand + i];
		r->known.from[i] = o->kind == OPERAND_NOWHERE ? KNOWN_SINK : o->slot ? (uint8_t)(FIRST_SLOT + o->slot) : 0;
	}
}

bool arch_match_op(arch_memo *memo, unsigned op, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec,
                   arch_match *out)
{
	const arch_op *o = &arch_ops[op];
	bool other = false; /* an earlier form might fit with other constants */
	arch_match scratch;
	call_key c;

	key_of(&c, op, vals, mods);
	for (unsigned way = 0; way < 2; way++) {
		const arch_remembered *r = &memo->at[(c.hash ^ way) % ARCH_MEMO];
		if (is_call(r, &c) && recall(&r->known, vals, vec, out))
			return true;
	}
	for (unsigned i = 0; i < o->nform; i++) {
		if (!arch_match_call(o->form + i, vals, mods, vec, false, out))
			continue;
		for (unsigned j = 0; j < i && !other && has_varying(vals, 3u + o->nslot); j++)
			other = arch_match_call(o->form + j, vals, mods, vec, true, &scratch);
		if (!other && !out->once)
			remember(memo, &c, out);
		return true;
	}
	return false;
}
