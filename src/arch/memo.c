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

/* ---- what is known of operands ---- */

static bool is_plain_register(const cptx_val *v)
{
	return v->kind == CPTX_VAL_REG && v->count == 1 && !v->offset && !v->negated && !v->space;
}

/* Plans how operand i of the match is made anew from a value of the same key. */
static void plan_operand(arch_plan *p, const arch_match *m, const cptx_val *given, unsigned i)
{
	const arch_operand *o = &arch_operands[arch_forms[m->form].operand + i];
	const cptx_val *v = &m->operand[i];
	arch_operand_plan *to = &p->of[i];
	int64_t most = arch_integers_up_to(m, i);
	bool number = v->kind == CPTX_VAL_INT && given->kind == CPTX_VAL_INT && most >= 0;
	bool real = v->kind == CPTX_VAL_FLOAT && given->kind == CPTX_VAL_FLOAT && o->kind == OPERAND_REG;

	to->type = v->type;
	to->front = v->kind | (uint32_t)v->type << WORD_KIND;
	if (v->kind == CPTX_VAL_SINK || (v->kind == CPTX_VAL_NONE && !(m->dest_type && !i)))
		return;
	if (v->kind == CPTX_VAL_NONE) {
		to->is = AGAIN_NEW;
		p->makes = true;
		p->whole |= m->dest_count != 1;
	} else if (is_plain_register(v) || number) {
		to->mask = UINT32_MAX;
		to->reg = !number;
		to->front += number ? WORD_ZERO << WORD_NUMBER : 0;
		to->below = (uint32_t)MIN(most + 1, (int64_t)WORD_ZERO);
	} else {
		to->is = real && !arch_forms[m->form].constraint ? AGAIN_FLOAT : AGAIN_WHOLE;
		p->direct &= to->is == AGAIN_FLOAT || !arch_varies(v);
		p->whole = true;
	}
	p->other |= (uint16_t)((to->is != AGAIN_WORD) << i);
}

static void make_plan(arch_remembered *r, const arch_match *m, const cptx_val *vals)
{
	arch_plan *p = &r->plan;

	*p = (arch_plan){ .direct = !m->labels };
	for (unsigned i = 0; i < m->noperand; i++) {
		p->of[i].from = r->known.from[i] < KNOWN_SINK ? r->known.from[i] : 0;
		plan_operand(p, m, &vals[p->of[i].from], i);
	}
}

/* ---- the memo ---- */

void arch_memo_begin(arch_memo *memo, const cptx_allocator *hook) { *memo = (arch_memo){ .hook = hook }; }

void arch_memo_end(arch_memo *memo)
{
	for (unsigned i = 0; i < ARRAY_LEN(memo->block); i++)
		if (memo->block[i])
			heap_realloc(memo->hook, memo->block[i], 0);
}

static inline arch_remembered *call_at(const arch_memo *memo, unsigned i)
{
	return &memo->block[i / ARCH_MEMO_BLOCK][i % ARCH_MEMO_BLOCK];
}

/* An entry for a new call; NULL when memory is short, without which there is no memo.  *number gets its number from 1. */
static arch_remembered *new_call(arch_memo *memo, uint8_t *number)
{
	unsigned i = memo->n < ARCH_MEMO ? memo->n : memo->turn % ARCH_MEMO;
	arch_remembered **block = &memo->block[i / ARCH_MEMO_BLOCK];

	if (!*block && !(*block = HEAP_ARRAY(memo->hook, arch_remembered, NULL, ARCH_MEMO_BLOCK)))
		return NULL;
	memo->turn += memo->n == ARCH_MEMO;
	memo->n += memo->n < ARCH_MEMO;
	*number = (uint8_t)(i + 1);
	return call_at(memo, i);
}

/* What the hash of a key takes of a value: all of arch_value_key but whether an address has an offset. */
static inline uint64_t hashed_of(const cptx_val *v)
{
	return arch_value_front(*v) & ~arch_value_front((cptx_val){ .owner = UINT16_MAX });
}

/*
 * The hash of the key of a call: of its destination and of the op's slots (not of its guard, which no form depends on), and
 * of its modifiers, four to a word.
 */
static inline uint32_t hash_of(unsigned op, const cptx_val *vals, const uint16_t *mods)
{
	unsigned nslot = arch_ops[op].nslot, nfield = arch_ops[op].nfield;
	uint64_t hash = op ^ hashed_of(&vals[0]);

	for (unsigned i = 1; i <= nslot; i++)
		hash = (hash << 7 | hash >> 57) ^ hashed_of(&vals[FIRST_SLOT + i]);
	for (unsigned i = 0; i < nfield; i += 4)
		hash = (hash << 7 | hash >> 57) ^ arch_four_mods(mods + i, nfield - i);
	return (uint32_t)(hash * 0x9e3779b97f4a7c15u >> 32);
}

/* A call has two places, so that two calls with one place can both stay. */
static inline const arch_remembered *recalled(const arch_memo *memo, uint32_t hash, unsigned op, const cptx_val *vals,
                                              const uint16_t *mods)
{
	for (unsigned way = 0; way < 2; way++) {
		unsigned at = memo->at[(hash ^ way) % ARCH_MEMO_PLACES];
		const arch_remembered *r = at ? call_at(memo, at - 1) : NULL;
		if (r && r->hash == hash && arch_is_again(r, op, vals, mods))
			return r;
	}
	return NULL;
}

const arch_remembered *arch_recalled(const arch_memo *memo, unsigned op, const cptx_val *vals, const uint16_t *mods)
{
	return recalled(memo, hash_of(op, vals, mods), op, vals, mods);
}

static void note_key(arch_remembered *r, const cptx_val *vals, const uint16_t *mods)
{
	uint64_t *key = r->key;

	*key++ = arch_value_key(&vals[0]);
	for (unsigned i = 1; i <= r->nslot; i++)
		*key++ = arch_value_key(&vals[FIRST_SLOT + i]);
	for (unsigned i = 0; i < r->nfield; i += 4)
		*key++ = arch_four_mods(mods + i, r->nfield - i);
}

static void remember(arch_memo *memo, uint32_t hash, unsigned op, const cptx_val *vals, const uint16_t *mods,
                     const arch_match *m)
{
	uint8_t number;
	arch_remembered *r = new_call(memo, &number);

	if (!r)
		return;
	r->op = (uint16_t)(op + 1);
	r->nslot = arch_ops[op].nslot;
	r->nfield = arch_ops[op].nfield;
	r->hash = hash;
	r->serial = ++memo->serial;
	r->number = (uint8_t)(number - 1);
	note_key(r, vals, mods);
	arch_know(&r->known, m);
	for (unsigned i = 0; i < m->noperand; i++) {
		const arch_operand *o = &arch_operands[arch_forms[m->form].operand + i];
		r->known.from[i] = o->kind == OPERAND_NOWHERE ? KNOWN_SINK : o->slot ? (uint8_t)(FIRST_SLOT + o->slot) : 0;
	}
	make_plan(r, m, vals);
	unsigned place = hash % ARCH_MEMO_PLACES;
	if (memo->at[place] && call_at(memo, memo->at[place] - 1u)->hash % ARCH_MEMO_PLACES == place)
		place ^= 1;
	memo->at[place] = number;
}

bool arch_match_op(arch_memo *memo, unsigned op, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec,
                   arch_match *out)
{
	const arch_op *o = &arch_ops[op];
	bool other = false; /* an earlier form might fit with other constants */
	arch_match scratch;
	uint32_t hash = hash_of(op, vals, mods);
	const arch_remembered *r = recalled(memo, hash, op, vals, mods);

	if (r && recall(&r->known, vals, vec, out))
		return true;
	for (unsigned i = 0; i < o->nform; i++) {
		if (!arch_match_call(o->form + i, vals, mods, vec, false, out))
			continue;
		for (unsigned j = 0; j < i && !other && has_varying(vals, 3u + o->nslot); j++)
			other = arch_match_call(o->form + j, vals, mods, vec, true, &scratch);
		if (!other && !out->once)
			remember(memo, hash, op, vals, mods, out);
		return true;
	}
	return false;
}
