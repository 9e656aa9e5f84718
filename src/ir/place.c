/* SPDX-License-Identifier: MIT */
/*
 * Calls at a place in the program that has a cptx_again.  The first call fills it.  Those that follow are compared with what
 * it holds; usual ones, whose operands are single registers and small numbers, are appended in one go from a finished item.
 */
#include "base/atomic.h"
#include "ir/ir.h"

enum {
	DIRECT_OPERANDS = 4,
	DIRECT_MODS = 8,
	LIKE = sizeof(ir_item) - offsetof(ir_item, form) /* bytes of an item behind its links */
};

/* What an operand of a direct call is, and how it becomes a word. */
typedef struct direct_operand {
	uint64_t front; /* of its value (arch_value_front), without the owner */
	uint64_t owned; /* the bits of the owner if the value must be the body's own, else 0 */
	uint64_t below; /* its number must be below this; 0: it is a register, which must exist */
	uint32_t word, mask; /* word + (number << WORD_NUMBER & mask) */
} direct_operand;

/* What a cptx_again holds: filled once, by the first thread that has something to put there, and only read from then on. */
enum { PLACE_EMPTY, PLACE_TAKEN, PLACE_READY, PLACE_DIRECT };
typedef struct called_here {
	uint32_t state, line; /* these four are those of cptx_again, which the callers' code reads */
	const char *file;
	uint64_t mods[ARCH_FIELDS / 4];
	direct_operand of[DIRECT_OPERANDS]; /* PLACE_DIRECT: what follows the destination */
	ir_item like;                       /* the item, but for its owner and file */
	uint64_t mod[DIRECT_MODS / 4];      /* the item's modifiers */
	uint16_t size, room;                /* bytes of the item with all behind it; and of what is written in between */
	uint16_t mods_at;                   /* bytes from the words to the modifiers */
	uint8_t makes, cls; /* makes: operand 0 is a new register, of class `cls` */
	uint8_t whole;      /* number + 1 of the operand whose value stands behind the words; 0: none */
	uint8_t whole_type;
	uint32_t made; /* the word of the new register, without its number */
	arch_remembered r;
} called_here;
_Static_assert(sizeof(called_here) <= sizeof(cptx_again), "cptx_again has room for it");
_Static_assert(offsetof(called_here, line) == offsetof(cptx_again, line_) &&
                   offsetof(called_here, file) == offsetof(cptx_again, file_) &&
                   offsetof(called_here, mods) == offsetof(cptx_again, mods_) &&
                   sizeof(((cptx_again *)0)->mods_) == ARCH_FIELDS / 4 * sizeof(uint64_t),
               "the callers' code reads these");

/* ---- filling ---- */

/* Whether operand number `to` of the item can be made by the direct call, of the value in slot `slot`. */
static bool plan_direct(called_here *h, const cptx_val *v, unsigned slot)
{
	const arch_plan *p = &h->r.plan;
	unsigned to = slot + h->makes;
	direct_operand *d = &h->of[slot];

	*d = (direct_operand){ .below = 1 };
	if (to >= h->r.known.noperand)
		return v->kind == CPTX_VAL_NONE;
	const arch_operand_plan *o = &p->of[to];
	d->front = arch_value_front(*v) & ~arch_value_front((cptx_val){ .owner = UINT16_MAX });
	d->word = o->front;
	if (v->kind == CPTX_VAL_NONE)
		return !d->word;
	if (o->from != 3 + slot)
		return false;
	if (o->is == AGAIN_WORD && o->mask) {
		d->mask = UINT32_MAX;
		d->below = o->reg ? 0 : o->below;
		d->owned = o->reg ? arch_value_front((cptx_val){ .owner = UINT16_MAX }) : 0;
		return o->reg || o->below;
	}
	if (o->is != AGAIN_FLOAT || h->whole)
		return false;
	d->below = UINT64_MAX;
	h->whole = (uint8_t)(slot + 1);
	h->whole_type = o->type;
	return true;
}

/* Prepares the item of direct calls; false where the call is none. */
static bool make_direct(called_here *h, const cptx_val *vals)
{
	const arch_known *n = &h->r.known;
	const arch_op *op = &arch_ops[h->r.op - 1];

	h->makes = h->r.plan.makes;
	if (op->nslot > DIRECT_OPERANDS || n->ngroup > DIRECT_MODS || n->noperand > DIRECT_OPERANDS + h->makes ||
	    vals[0].kind || (h->makes && n->dest_count != 1) || ir_is_call(arch_forms[n->form].op))
		return false;
	if (!h->makes && n->dest_type)
		return false;
	for (unsigned i = 0; i < op->nslot; i++)
		if (!plan_direct(h, &vals[3 + i], i))
			return false;
	h->cls = h->makes ? (uint8_t)ir_class_of(n->dest_type) : 0;
	h->made = h->makes ? CPTX_VAL_REG | (uint32_t)n->dest_type << WORD_KIND : 0;
	h->mods_at = (uint16_t)(n->noperand * sizeof(uint32_t));
	size_t words = ir_bytes_of(n->noperand, n->ngroup, 0);
	if (h->whole)
		h->of[h->whole - 1].word = WORD_WHOLE | (uint32_t)CPTX_VAL_FLOAT << WORD_KIND | (uint32_t)(words / 8)
		                                                                                    << 2 * WORD_KIND;
	h->size = (uint16_t)(sizeof(ir_item) + words + (h->whole ? sizeof(cptx_val) : 0));
	h->room = (uint16_t)(sizeof(ir_item) + (DIRECT_OPERANDS + 1) * sizeof(uint32_t) + sizeof h->mod + words +
	                     sizeof(cptx_val));
	h->like = (ir_item){ .form = n->form, .kind = ITEM_INSN, .nmod = n->ngroup & 31, .noperand = n->noperand & 15 };
	h->like.line = h->line;
	ir_put_mods((uint16_t *)h->mod, n->mod, n->ngroup);
	return true;
}

static void note_here(called_here *h, const cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals,
                      const uint16_t *mods)
{
	const arch_remembered *r = arch_recalled(&k->m->memo, op, vals, mods);

	if (!r || !r->plan.direct || !atomic_take(&h->state, PLACE_EMPTY, PLACE_TAKEN))
		return;
	h->r = *r;
	h->line = at.line;
	h->file = at.file;
	for (unsigned i = 0; i < r->nfield; i += 4)
		h->mods[i / 4] = arch_four_mods(mods + i, r->nfield - i);
	atomic_publish(&h->state, make_direct(h, vals) ? PLACE_DIRECT : PLACE_READY);
}

cptx_val cptx_insn_again_(cptx_kernel *k, cptx_site at, cptx_again *again, enum cptx_op op, const cptx_val *vals,
                          const uint16_t *mods)
{
	called_here *h = (called_here *)(void *)again;
	cptx_val result;

	if (!h || !vals || !mods)
		return cptx_insn_(k, at, op, vals, mods);
	uint32_t state = atomic_state(&h->state);
	if (state >= PLACE_READY && k && ir_open_quietly(k) && arch_is_again(&h->r, op, vals, mods) &&
	    ir_append_again(k, at, &h->r, vals, &result))
		return result;
	result = cptx_insn_(k, at, op, vals, mods);
	if (state == PLACE_EMPTY && k && k->m->err.code == CPTX_OK)
		note_here(h, k, at, op, vals, mods);
	return result;
}

/* ---- direct calls ---- */

/* Makes the call in the ordinary way, as all that is out of the ordinary. */
static cptx_val call_slowly(cptx_kernel *k, cptx_again *again, const cptx_val *v, unsigned n)
{
	const called_here *h = (const called_here *)(void *)again;
	cptx_val vals[3 + DIRECT_OPERANDS] = { { 0 } };
	uint16_t mods[ARCH_FIELDS];

	memcpy(mods, h->mods, sizeof mods);
	memcpy(vals + 3, v, n * sizeof *v);
	return cptx_insn_again_(k, (cptx_site){ h->file, h->line }, again, (enum cptx_op)(h->r.op - 1), vals, mods);
}

/* Whether a register and the item can be appended without an allocation, at the end of a body that calls fill. */
static inline bool has_room_for(const cptx_kernel *k, const called_here *h)
{
	const arena *a = &k->m->a;

	return ir_open_quietly(k) && k->has_body && !k->cursor && k->last && k->ndecl && !k->m->parsed &&
	       k->m->last_file == h->file && (size_t)(a->end - a->at) >= h->room && k->nreg < k->cap_reg &&
	       k->nreg < WORD_NUMBERS && k->decl[h->cls].count < IR_MOST_MADE;
}

/* Writes the n words behind the destination; false where an operand is not what the place has seen. */
static inline bool put_words(const cptx_kernel *k, const called_here *h, uint32_t *words, const cptx_val *v, unsigned n)
{
	uint64_t owner = arch_value_front((cptx_val){ .owner = k->owner }), nreg = k->nreg, wrong = 0;

	for (unsigned i = 0; i < n; i++) {
		const direct_operand *o = &h->of[i];
		uint64_t number = (uint64_t)v[i].i;
		wrong |= arch_value_front(v[i]) ^ o->front ^ (owner & o->owned);
		wrong |= number >= (o->below ? o->below : nreg);
		words[i] = o->word + ((uint32_t)number << WORD_NUMBER & o->mask);
	}
	return !wrong;
}

static inline cptx_val call_directly(cptx_kernel *k, cptx_again *again, const cptx_val *v, unsigned n)
{
	const called_here *h = (const called_here *)(void *)again;

	if (!k || !has_room_for(k, h))
		return call_slowly(k, again, v, n);
	ir_item *it = (ir_item *)(void *)k->m->a.at;
	uint32_t *words = (uint32_t *)(void *)(it + 1);
	words[0] = h->made + ((uint32_t)k->nreg << WORD_NUMBER);
	if (!put_words(k, h, words + h->makes, v, n))
		return call_slowly(k, again, v, n);
	memcpy((char *)words + h->mods_at, h->mod, sizeof h->mod);
	memcpy((char *)it + offsetof(ir_item, form), (const char *)&h->like + offsetof(ir_item, form), LIKE);
	it->owner = k->owner;
	it->file = k->m->last_file_number;
	it->next = NULL;
	it->prev = k->last;
	k->last->next = it;
	k->last = it;
	k->closed_if = NULL;
	k->ninsn++;
	k->m->a.at = (char *)it + h->size;
	if (h->whole) {
		cptx_val *whole = (cptx_val *)(void *)((char *)it + h->size) - 1;
		*whole = v[h->whole - 1];
		whole->type = h->whole_type;
		whole->space = 0;
	}
	if (!h->makes)
		return (cptx_val){ 0 };
	uint8_t type = h->r.known.dest_type;
	cptx_val made = { .kind = CPTX_VAL_REG, .type = type, .count = 1, .owner = k->owner, .id = (uint32_t)k->nreg };
	k->reg[k->nreg++] = (ir_reg){ .type = type, .made = 1, .at = ++k->decl[h->cls].count & IR_MOST_MADE };
	return made;
}

cptx_val cptx_again_1_(cptx_kernel *k, cptx_again *again, cptx_val a)
{
	const cptx_val v[] = { a };
	return call_directly(k, again, v, 1);
}

cptx_val cptx_again_2_(cptx_kernel *k, cptx_again *again, cptx_val a, cptx_val b)
{
	const cptx_val v[] = { a, b };
	return call_directly(k, again, v, 2);
}

cptx_val cptx_again_3_(cptx_kernel *k, cptx_again *again, cptx_val a, cptx_val b, cptx_val c)
{
	const cptx_val v[] = { a, b, c };
	return call_directly(k, again, v, 3);
}

cptx_val cptx_again_4_(cptx_kernel *k, cptx_again *again, cptx_val a, cptx_val b, cptx_val c, cptx_val d)
{
	const cptx_val v[] = { a, b, c, d };
	return call_directly(k, again, v, 4);
}
