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
	DIRECT_KINDS = 4,
	OWNER_SHIFT = 8 * offsetof(cptx_val, owner),     /* place of a value's owner in arch_value_front */
	DIRECT_TRIES = 32,                               /* how often another call is looked at for its kinds of operands */
	LIKE = sizeof(ir_item) - offsetof(ir_item, form) /* bytes of an item behind its links */
};

/* How an operand of a direct call becomes a word. */
typedef struct direct_operand {
	uint64_t owned; /* the bits of the owner if the value must be the body's own, else 0 */
	uint64_t below; /* its number must be below this; 0: it is a register, which must exist */
	uint64_t mask;  /* of the number in the word */
} direct_operand;

/* What the operands of a direct call are: arch_value_front without the owner, and the words without their numbers. */
typedef struct direct_kinds {
	uint64_t front[DIRECT_OPERANDS];
	uint32_t word[DIRECT_OPERANDS];
} direct_kinds;

/* The item of a direct call. */
typedef struct direct_item {
	direct_operand of[DIRECT_OPERANDS]; /* of what follows the destination */
	ir_item like;                       /* the item, but for its owner and file */
	uint64_t mod[DIRECT_MODS / 4];      /* its modifiers */
	uint64_t made_front;                /* of the new register (arch_value_front), but for its owner */
	uint64_t whole_front;               /* of a value that stands behind the words */
	uint32_t made_word;                 /* the word of the new register, but for its number */
	uint16_t size, room; /* bytes of the item with all behind it; and of what is written in between */
	uint16_t mods_at;    /* bytes from the words to the modifiers */
	uint8_t makes, cls;  /* makes: operand 0 is a new register, of class `cls` */
	uint8_t whole;       /* number + 1 of the operand whose value stands behind the words; 0: none */
	uint8_t made_type;   /* the type of the new register */
} direct_item;

/*
 * What a cptx_again holds: filled once, by the first thread that has something to put there, and only read from then on.  But
 * calls that differ in the types of their registers alone are added to `kinds`: a thread that took `adding` publishes `nkinds`.
 */
enum { PLACE_EMPTY, PLACE_TAKEN, PLACE_READY, PLACE_DIRECT };
typedef struct called_here {
	uint32_t state, line; /* these four are those of cptx_again, which the callers' code reads */
	const char *file;
	uint64_t mods[ARCH_FIELDS / 4];
	direct_kinds kinds[DIRECT_KINDS]; /* from here on for PLACE_DIRECT */
	direct_item item;
	uint32_t nkinds, adding, tries;
	arch_remembered r;
} called_here;
_Static_assert(sizeof(called_here) <= sizeof(cptx_again), "cptx_again has room for it");
_Static_assert(offsetof(called_here, line) == offsetof(cptx_again, line_) &&
                   offsetof(called_here, file) == offsetof(cptx_again, file_) &&
                   offsetof(called_here, mods) == offsetof(cptx_again, mods_) &&
                   sizeof(((cptx_again *)0)->mods_) == ARCH_FIELDS / 4 * sizeof(uint64_t),
               "the callers' code reads these");

/* ---- filling ---- */

/* Plans operand number `slot` of the call; false where it cannot be made directly. */
static bool plan_direct(direct_item *d, direct_kinds *kinds, const arch_remembered *r, const cptx_val *v, unsigned slot)
{
	unsigned to = slot + d->makes; /* the operand of the item */
	const arch_operand_plan *o = &r->plan.of[to];
	const uint64_t owner = (uint64_t)UINT16_MAX << OWNER_SHIFT;

	d->of[slot] = (direct_operand){ .below = 1 };
	kinds->front[slot] = arch_value_front(*v) & ~owner;
	if (to >= r->known.noperand || v->kind == CPTX_VAL_NONE)
		return v->kind == CPTX_VAL_NONE && (to >= r->known.noperand || !o->front);
	kinds->word[slot] = o->front;
	if (o->from != 3 + slot)
		return false;
	if (o->is == AGAIN_WORD && o->mask) {
		d->of[slot] = (direct_operand){ o->reg ? owner : 0, o->reg ? 0 : o->below, UINT32_MAX };
		return o->reg || o->below;
	}
	if (o->is != AGAIN_FLOAT || d->whole)
		return false;
	d->of[slot].below = UINT64_MAX;
	d->whole = (uint8_t)(slot + 1);
	d->whole_front =
		arch_value_front((cptx_val){ .kind = v->kind, .type = o->type, .negated = v->negated, .count = v->count });
	return true;
}

/* Plans the sizes and the pieces of the item. */
static void plan_item(direct_item *d, direct_kinds *kinds, const arch_known *n)
{
	size_t words = ir_bytes_of(n->noperand, n->ngroup, 0);

	if (d->whole)
		kinds->word[d->whole - 1] =
			WORD_WHOLE | (uint32_t)CPTX_VAL_FLOAT << WORD_KIND | (uint32_t)(words / 8) << 2 * WORD_KIND;
	if (d->makes) {
		d->cls = (uint8_t)ir_class_of(n->dest_type);
		d->made_type = n->dest_type;
		d->made_front = arch_value_front((cptx_val){ .kind = CPTX_VAL_REG, .type = n->dest_type, .count = 1 });
		d->made_word = CPTX_VAL_REG | (uint32_t)n->dest_type << WORD_KIND;
	}
	d->mods_at = (uint16_t)(n->noperand * sizeof(uint32_t));
	d->size = (uint16_t)(sizeof(ir_item) + words + (d->whole ? sizeof(cptx_val) : 0));
	d->room =
		(uint16_t)(sizeof(ir_item) + (DIRECT_OPERANDS + 1) * sizeof(uint32_t) + sizeof d->mod + words + sizeof(cptx_val));
	d->like = (ir_item){ .form = n->form, .kind = ITEM_INSN, .nmod = n->ngroup & 31, .noperand = n->noperand & 15 };
	ir_put_mods((uint16_t *)d->mod, n->mod, n->ngroup);
}

/* Plans a direct call that is made like `r`; false where there is none. */
static bool make_direct(direct_item *d, direct_kinds *kinds, const cptx_module *m, const arch_remembered *r,
                        const cptx_val *vals)
{
	const arch_known *n = &r->known;
	unsigned nslot = arch_ops[r->op - 1].nslot;

	memset(d, 0, sizeof *d); /* so that two can be compared */
	memset(kinds, 0, sizeof *kinds);
	d->makes = r->plan.makes;
	if (nslot > DIRECT_OPERANDS || n->ngroup > DIRECT_MODS || n->noperand > DIRECT_OPERANDS + d->makes || vals[0].kind ||
	    (d->makes ? n->dest_count != 1 : n->dest_type) || ir_is_call(arch_forms[n->form].op) || m->parsed)
		return false;
	for (unsigned i = 0; i < nslot; i++)
		if (!plan_direct(d, kinds, r, &vals[3 + i], i))
			return false;
	plan_item(d, kinds, n);
	return true;
}

/* Adds the kinds of operands of a call that makes the same item as the place's first one. */
static void note_kinds(called_here *h, const cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals,
                       const uint16_t *mods)
{
	direct_item d;
	direct_kinds kinds;

	if (!atomic_take(&h->adding, 0, 1))
		return;
	const arch_remembered *r = h->nkinds < DIRECT_KINDS && h->tries++ < DIRECT_TRIES && h->r.op == op + 1 && at.line == h->line
	                               ? arch_recalled(&k->m->memo, op, vals, mods)
	                               : NULL;
	if (r && r->plan.direct && make_direct(&d, &kinds, k->m, r, vals)) {
		d.like.line = h->item.like.line, d.like.src = h->item.like.src;
		bool same = !memcmp(&d, &h->item, sizeof d);
		for (unsigned i = 0; i < r->nfield; i += 4)
			same &= h->mods[i / 4] == arch_four_mods(mods + i, r->nfield - i);
		if (same) {
			h->kinds[h->nkinds] = kinds;
			atomic_publish(&h->nkinds, h->nkinds + 1);
		}
	}
	atomic_publish(&h->adding, 0);
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
	bool direct = make_direct(&h->item, &h->kinds[0], k->m, r, vals);
	h->item.like.line = at.line;
	h->item.like.src = ir_tag(k->m, r);
	h->nkinds = direct;
	atomic_publish(&h->state, direct ? PLACE_DIRECT : PLACE_READY);
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
	if (!k || k->m->err.code != CPTX_OK)
		return result;
	if (state == PLACE_EMPTY)
		note_here(h, k, at, op, vals, mods);
	else if (state == PLACE_DIRECT && atomic_state(&h->nkinds) < DIRECT_KINDS)
		note_kinds(h, k, at, op, vals, mods);
	return result;
}

/* ---- direct calls ---- */

/*
 * The functions below get operands as the two words of each, front and number.  As a cptx_val, whose fields are narrower,
 * compilers would put them into memory and read them back.
 */
typedef struct direct_value {
	uint64_t front, number;
} direct_value;
static const direct_value nothing = { 0, 0 };

static inline cptx_val value_of(direct_value d)
{
	cptx_val v;

	memcpy(&v, &d.front, sizeof d.front);
	v.i = (int64_t)d.number;
	return v;
}

/* Makes the call in the ordinary way, as all that is out of the ordinary. */
__attribute__((__noinline__, __cold__)) static cptx_val call_slowly(cptx_kernel *k, cptx_again *again, direct_value a,
                                                                    direct_value b, direct_value c, direct_value d)
{
	const called_here *h = (const called_here *)(void *)again;
	const cptx_val vals[3 + DIRECT_OPERANDS] = { { 0 }, { 0 }, { 0 }, value_of(a), value_of(b), value_of(c), value_of(d) };
	uint16_t mods[ARCH_FIELDS];

	memcpy(mods, h->mods, sizeof mods);
	return cptx_insn_again_(k, (cptx_site){ h->file, h->line }, again, (enum cptx_op)(h->r.op - 1), vals, mods);
}

/* Whether a register and the item can be appended without an allocation, at the end of a body that calls fill and that has
 * registers and items already. */
static inline bool has_room_for(const cptx_kernel *k, const called_here *h)
{
	const cptx_module *m = k->m;

	return ir_open_quietly(k) && !k->cursor && k->last && !m->parsed && m->last_file == h->file &&
	       (size_t)(m->a.end - m->a.at) >= h->item.room && k->nreg < k->cap_reg && k->nreg < WORD_NUMBERS;
}
_Static_assert(WORD_NUMBERS <= IR_MOST_MADE, "a class has no more registers than the body");

/* Writes the word of operand i; not 0 where the operand is not of this kind. */
static inline uint64_t put_word(const called_here *h, const direct_kinds *kinds, unsigned i, uint32_t *words,
                                const cptx_kernel *k, direct_value v)
{
	const direct_operand *o = &h->item.of[i];
	uint64_t owner = (uint64_t)k->owner << OWNER_SHIFT;

	words[i] = kinds->word[i] + ((uint32_t)v.number << WORD_NUMBER & (uint32_t)o->mask);
	return (v.front ^ kinds->front[i] ^ (owner & o->owned)) | (v.number >= (o->below ? o->below : k->nreg));
}

/* Writes the words of n operands; not 0 where they are not of these kinds. */
static inline uint64_t put_words(const called_here *h, const direct_kinds *kinds, unsigned n, ir_item *it,
                                 const cptx_kernel *k, direct_value a, direct_value b, direct_value c, direct_value d)
{
	uint32_t *words = (uint32_t *)(void *)(it + 1);

	*words = h->item.made_word + ((uint32_t)k->nreg << WORD_NUMBER);
	words += h->item.makes;
	return put_word(h, kinds, 0, words, k, a) | (n > 1 ? put_word(h, kinds, 1, words, k, b) : 0) |
	       (n > 2 ? put_word(h, kinds, 2, words, k, c) : 0) | (n > 3 ? put_word(h, kinds, 3, words, k, d) : 0);
}

static inline uint64_t whole_of(const direct_item *d, direct_value a, direct_value b, direct_value c, direct_value e)
{
	return d->whole < 2 ? a.number : d->whole == 2 ? b.number : d->whole == 3 ? c.number : e.number;
}

/* Links the item whose words are written, and makes its destination. */
static inline cptx_val end_direct(cptx_kernel *k, const direct_item *d, ir_item *it, direct_value a,
                                  direct_value b, direct_value c, direct_value e)
{
	cptx_module *m = k->m;
	size_t nreg = k->nreg;

	memcpy((char *)(it + 1) + d->mods_at, d->mod, sizeof d->mod);
	memcpy((char *)it + offsetof(ir_item, form), (const char *)&d->like + offsetof(ir_item, form), LIKE);
	it->owner = k->owner;
	it->file = m->last_file_number;
	it->next = NULL;
	it->prev = k->last;
	k->last->next = it;
	k->last = it;
	k->closed_if = NULL;
	k->ninsn++;
	m->a.at = (char *)it + d->size;
	if (d->whole) {
		direct_value v = { d->whole_front, whole_of(d, a, b, c, e) };
		memcpy((char *)it + d->size - sizeof v, &v, sizeof v);
	}
	if (!d->makes)
		return value_of(nothing);
	k->reg[nreg] = (ir_reg){ .type = d->made_type, .made = 1, .at = ++k->decl[d->cls].count & IR_MOST_MADE };
	k->nreg = nreg + 1;
	return value_of((direct_value){ d->made_front | (uint64_t)k->owner << OWNER_SHIFT, nreg });
}

/* The direct call of operands that are not of the first kinds. */
__attribute__((__noinline__)) static cptx_val call_otherwise(cptx_kernel *k, cptx_again *again, direct_value a,
                                                             direct_value b, direct_value c, direct_value d)
{
	const called_here *h = (const called_here *)(void *)again;
	ir_item *it = (ir_item *)(void *)k->m->a.at;
	unsigned n = atomic_state(&h->nkinds);

	for (unsigned i = 1; i < n; i++)
		if (!put_words(h, &h->kinds[i], DIRECT_OPERANDS, it, k, a, b, c, d))
			return end_direct(k, &h->item, it, a, b, c, d);
	return call_slowly(k, again, a, b, c, d);
}

/* The direct call of n operands. */
static inline cptx_val call_directly(cptx_kernel *k, cptx_again *again, unsigned n, direct_value a, direct_value b,
                                     direct_value c, direct_value d)
{
	const called_here *h = (const called_here *)(void *)again;

	if (!k || !has_room_for(k, h))
		return call_slowly(k, again, a, b, c, d);
	ir_item *it = (ir_item *)(void *)k->m->a.at;
	if (put_words(h, &h->kinds[0], n, it, k, a, b, c, d))
		return call_otherwise(k, again, a, b, c, d);
	return end_direct(k, &h->item, it, a, b, c, d);
}

cptx_val cptx_again_1_(cptx_kernel *k, cptx_again *again, uint64_t a, uint64_t a2)
{
	return call_directly(k, again, 1, (direct_value){ a, a2 }, nothing, nothing, nothing);
}

cptx_val cptx_again_2_(cptx_kernel *k, cptx_again *again, uint64_t a, uint64_t a2, uint64_t b, uint64_t b2)
{
	return call_directly(k, again, 2, (direct_value){ a, a2 }, (direct_value){ b, b2 }, nothing, nothing);
}

cptx_val cptx_again_3_(cptx_kernel *k, cptx_again *again, uint64_t a, uint64_t a2, uint64_t b, uint64_t b2, uint64_t c,
                       uint64_t c2)
{
	return call_directly(k, again, 3, (direct_value){ a, a2 }, (direct_value){ b, b2 }, (direct_value){ c, c2 }, nothing);
}

cptx_val cptx_again_4_(cptx_kernel *k, cptx_again *again, uint64_t a, uint64_t a2, uint64_t b, uint64_t b2, uint64_t c,
                       uint64_t c2, uint64_t d, uint64_t d2)
{
	return call_directly(k, again, 4, (direct_value){ a, a2 }, (direct_value){ b, b2 }, (direct_value){ c, c2 },
	                     (direct_value){ d, d2 });
}
