/* Calls that were matched before: kernels repeat one with other registers over and over. */
#include "arch/match.h"

/* What stands in a value in front of its number, as one word. */
static inline uint64_t front(cptx_val v)
{
	uint64_t word;
	memcpy(&word, &v, sizeof word);
	return word;
}

/* All of a value that the choice of a form depends on, constants apart: everything but its number and owner. */
static inline uint64_t value_key(const cptx_val *v)
{
	uint64_t rest = front(*v) & ~front((cptx_val){ .owner = UINT16_MAX });

	return v->kind == CPTX_VAL_REG && v->offset ? rest | front((cptx_val){ .owner = 1 }) : rest;
}

uint64_t arch_value_key(const cptx_val *v) { return value_key(v); }
_Static_assert(offsetof(cptx_val, id) == sizeof(uint64_t), "arch_value_key takes what stands in front of the number");
_Static_assert(sizeof(cptx_val) == 16, "a value is passed in two registers");

/* The remembered match with these values in it; false if a constant does not fit. */
static bool recall(const arch_match *known, const cptx_val *vals, const cptx_val *vec, arch_match *m)
{
	const arch_form *f = &arch_forms[known->form];

	m->form = known->form;
	m->ngroup = known->ngroup;
	m->noperand = known->noperand;
	m->dest_type = known->dest_type;
	m->dest_count = known->dest_count;
	memcpy(m->mod, known->mod, sizeof m->mod);
	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		m->operand[i] = o->kind == OPERAND_NOWHERE ? cptx_sink() : vals[o->slot ? FIRST_SLOT + o->slot : 0];
	}
	return arch_match_again(m, vec);
}

static bool has_varying(const cptx_val *vals, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (arch_varies(&vals[i]))
			return true;
	return false;
}

/* What a call is remembered by. */
typedef struct call_key {
	const uint16_t *mods;
	unsigned op, n, nfield;
	uint64_t hash, vals[3 + ARCH_SLOTS];
} call_key;

static inline void key_of(call_key *c, unsigned op, const cptx_val *vals, const uint16_t *mods)
{
	c->mods = mods;
	c->op = op + 1;
	c->n = 3u + arch_ops[op].nslot;
	c->nfield = arch_ops[op].nfield;
	c->hash = op;
	for (unsigned i = 0; i < c->n; i++) {
		c->vals[i] = value_key(&vals[i]);
		c->hash += c->vals[i] << i;
	}
	for (unsigned i = 0; i < c->nfield; i++)
		c->hash += (uint64_t)mods[i] << i;
	c->hash = c->hash * 0x9e3779b97f4a7c15u >> 32;
}

static inline bool is_call(const arch_remembered *r, const call_key *c)
{
	uint64_t differs = r->op ^ c->op;

	for (unsigned i = 0; i < c->n; i++)
		differs |= r->key[i] ^ c->vals[i];
	for (unsigned i = 0; i < c->nfield; i++)
		differs |= r->mods[i] ^ c->mods[i];
	return !differs;
}

static void remember(arch_memo *memo, const call_key *c, const arch_match *m)
{
	arch_remembered *r = &memo->at[(c->hash ^ (memo->turn++ & 1)) % ARCH_MEMO]; /* one of two; either, to settle */

	r->op = (uint16_t)c->op;
	r->hash = c->hash;
	memcpy(r->key, c->vals, c->n * sizeof *c->vals);
	memcpy(r->mods, c->mods, c->nfield * sizeof *c->mods);
	r->m = *m;
}

bool arch_match_op(arch_memo *memo, unsigned op, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec,
                   arch_match *out)
{
	const arch_op *o = &arch_ops[op];
	bool other = false; /* constants might fit an earlier form */
	arch_match scratch;
	call_key c;

	key_of(&c, op, vals, mods);
	for (unsigned way = 0; way < 2; way++) {
		const arch_remembered *r = &memo->at[(c.hash ^ way) % ARCH_MEMO];
		if (r->hash == c.hash && is_call(r, &c) && recall(&r->m, vals, vec, out))
			return true;
	}
	for (unsigned i = 0; i < o->nform; i++) {
		if (!arch_match_call(o->form + i, vals, mods, vec, false, out))
			continue;
		for (unsigned j = 0; j < i && !other && has_varying(vals, c.n); j++)
			other = arch_match_call(o->form + j, vals, mods, vec, true, &scratch);
		if (!other)
			remember(memo, &c, out);
		return true;
	}
	return false;
}
