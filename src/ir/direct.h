/* SPDX-License-Identifier: MIT */
/*
 * Direct calls: usual calls, whose operands are single registers and small numbers, are appended in one go from a finished
 * item.  Such items are kept at places in the program (place.c) and beside the module's memo (again.c).
 */
#ifndef CPTX_IR_DIRECT_H
#define CPTX_IR_DIRECT_H

#include "ir/ir.h"

enum {
	DIRECT_OPERANDS = 4,
	DIRECT_MODS = 8,
	OWNER_SHIFT = 8 * offsetof(cptx_val, owner),     /* place of a value's owner in arch_value_front */
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
	uint16_t size, room;                /* bytes of the item with all behind it; and of what is written in between */
	uint16_t mods_at;                   /* bytes from the words to the modifiers */
	uint8_t makes, cls;                 /* makes: operand 0 is a new register, of class `cls` */
	uint8_t whole;                      /* number + 1 of the operand whose value stands behind the words; 0: none */
	uint8_t made_type;                  /* the type of the new register */
} direct_item;

/* Plans the direct call of a call that is made like `r`; false where there is none. */
bool ir_make_direct(direct_item *d, direct_kinds *kinds, const cptx_module *m, const arch_remembered *r,
                    const cptx_val *vals);

/*
 * The functions below get operands as the two words of each, front and number.  As a cptx_val, whose fields are narrower,
 * compilers would put them into memory and read them back.
 */
typedef struct direct_value {
	uint64_t front, number;
} direct_value;
static const direct_value direct_nothing = { 0, 0 };

static inline cptx_val direct_val(direct_value d)
{
	cptx_val v;

	memcpy(&v, &d.front, sizeof d.front);
	v.i = (int64_t)d.number;
	return v;
}

/* Whether a register and the item can be appended without an allocation, at the end of a body that calls fill and that has
 * registers and items already. */
static inline bool direct_fits(const cptx_kernel *k, const direct_item *d, const char *file)
{
	const cptx_module *m = k->m;

	return ir_open_quietly(k) && !k->cursor && k->last && !m->parsed && m->last_file == file &&
	       (size_t)(m->a.end - m->a.at) >= d->room && k->nreg < k->cap_reg && k->nreg < WORD_NUMBERS;
}
_Static_assert(WORD_NUMBERS <= IR_MOST_MADE, "a class has no more registers than the body");

/* Writes the word of operand i; not 0 where the operand is not of this kind. */
static inline uint64_t direct_word(const direct_item *d, const direct_kinds *kinds, unsigned i, uint32_t *words,
                                   const cptx_kernel *k, direct_value v)
{
	const direct_operand *o = &d->of[i];
	uint64_t owner = (uint64_t)k->owner << OWNER_SHIFT;

	words[i] = kinds->word[i] + ((uint32_t)v.number << WORD_NUMBER & (uint32_t)o->mask);
	return (v.front ^ kinds->front[i] ^ (owner & o->owned)) | (v.number >= (o->below ? o->below : k->nreg));
}

/* Writes the words of n operands; not 0 where they are not of these kinds. */
static inline uint64_t direct_words(const direct_item *d, const direct_kinds *kinds, unsigned n, ir_item *it,
                                    const cptx_kernel *k, direct_value v0, direct_value v1, direct_value v2, direct_value v3)
{
	uint32_t *words = (uint32_t *)(void *)(it + 1);

	*words = d->made_word + ((uint32_t)k->nreg << WORD_NUMBER);
	words += d->makes;
	return direct_word(d, kinds, 0, words, k, v0) | (n > 1 ? direct_word(d, kinds, 1, words, k, v1) : 0) |
	       (n > 2 ? direct_word(d, kinds, 2, words, k, v2) : 0) | (n > 3 ? direct_word(d, kinds, 3, words, k, v3) : 0);
}

static inline uint64_t direct_whole(const direct_item *d, direct_value a, direct_value b, direct_value c, direct_value e)
{
	return d->whole < 2 ? a.number : d->whole == 2 ? b.number : d->whole == 3 ? c.number : e.number;
}

/* Links the item whose words are written, and makes its destination. */
static inline cptx_val direct_end(cptx_kernel *k, const direct_item *d, ir_item *it, direct_value a, direct_value b,
                                  direct_value c, direct_value e)
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
		direct_value v = { d->whole_front, direct_whole(d, a, b, c, e) };
		memcpy((char *)it + d->size - sizeof v, &v, sizeof v);
	}
	if (!d->makes)
		return direct_val(direct_nothing);
	k->reg[nreg] = (ir_reg){ .type = d->made_type, .made = 1, .at = ++k->decl[d->cls].count & IR_MOST_MADE };
	k->nreg = nreg + 1;
	return direct_val((direct_value){ d->made_front | (uint64_t)k->owner << OWNER_SHIFT, nreg });
}

#endif
