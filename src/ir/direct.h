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
	OWNER_SHIFT = 8 * offsetof(cptx_val, owner), /* place of a value's owner in arch_value_front */
	HEAD_OWNER = 32,                             /* place of an item's owner in its head, the word that begins with `form` */
	HEAD_FILE = 48
};
_Static_assert(offsetof(ir_item, owner) == offsetof(ir_item, form) + 4 &&
                   offsetof(ir_item, file) == offsetof(ir_item, form) + 6,
               "an item's head is put together by shifts");
_Static_assert(offsetof(ir_item, line) == offsetof(ir_item, form) + sizeof(uint64_t) &&
                   offsetof(ir_item, shape) == offsetof(ir_item, line) + sizeof(uint64_t),
               "direct_end stores what stands between these as words");

/* How an operand of a direct call is checked, and becomes a word. */
typedef struct direct_operand {
	uint64_t owned; /* the bits of the owner if the value must be the body's own, else 0 */
	uint64_t regs;  /* all bits: its number must be below that of the body's registers; 0: below `below` */
	uint64_t below;
	uint64_t mask; /* of the number in the word */
} direct_operand;

/* What the operands of a direct call are: arch_value_front without the owner, and the words without their numbers. */
typedef struct direct_kinds {
	uint64_t front[DIRECT_OPERANDS];
	uint32_t word[DIRECT_OPERANDS];
} direct_kinds;

/* The item of a direct call. */
typedef struct direct_item {
	direct_operand of[DIRECT_OPERANDS]; /* of what follows the destination */
	uint64_t head;                      /* of the item, but for its owner and file */
	uint64_t made_front;                /* of the new register (arch_value_front), but for its owner */
	uint64_t whole_front;               /* of a value that stands behind the words */
	uint32_t made_word;                 /* the word of the new register, but for its number */
	uint32_t made_reg;                  /* its ir_reg, but for its number */
	uint16_t size;                      /* bytes of the item with all behind it */
	uint8_t makes, cls;                 /* makes: operand 0 is a new register, of class `cls` */
	uint8_t whole;                      /* number + 1 of the operand whose value stands behind the words; 0: none */
	uint8_t registers; /* so many operands, the first ones, are registers, and the others NONE; 0: they are not so */
} direct_item;
enum { DIRECT_ROOM = sizeof(ir_item) + (DIRECT_OPERANDS + 2) * sizeof(uint32_t) + sizeof(cptx_val) }; /* most of an item */

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

/* Whether a register and an item can be appended without an allocation, at the end of a body that calls fill and that has
 * items already. */
CPTX_INLINE_ bool direct_fits(const cptx_kernel *k)
{
	const cptx_module *m = k->m;

	return ir_open_quietly(k) && !k->cursor && k->last && (size_t)(m->a.end - m->a.at) >= DIRECT_ROOM &&
	       k->nreg < k->cap_reg && k->nreg < WORD_NUMBERS;
}
_Static_assert(WORD_NUMBERS <= IR_MOST_MADE, "a class has no more registers than the body");

/* Writes the word of operand i; not 0 where the operand is not of this kind. */
CPTX_INLINE_ uint64_t direct_word(const direct_item *d, const direct_kinds *kinds, unsigned i, uint32_t *words,
                                  uint64_t owner, uint64_t nreg, direct_value v)
{
	const direct_operand *o = &d->of[i];
	uint64_t below = o->below | (nreg & o->regs);

	words[i] = kinds->word[i] + (uint32_t)((v.number & o->mask) << WORD_NUMBER);
	return (v.front ^ kinds->front[i] ^ (owner & o->owned)) | (v.number >= below);
}

/* direct_word where each of the operands is a register; the highest number is noted. */
CPTX_INLINE_ uint64_t direct_register(const direct_kinds *kinds, unsigned i, uint32_t *words, uint64_t owner, uint64_t *most,
                                      direct_value v)
{
	words[i] = kinds->word[i] + ((uint32_t)v.number << WORD_NUMBER);
	*most = MAX(*most, v.number);
	return v.front ^ kinds->front[i] ^ owner;
}

/* Writes the words of n operands; not 0 where they are not of these kinds. */
CPTX_INLINE_ uint64_t direct_words(const direct_item *d, const direct_kinds *kinds, unsigned n, ir_item *it,
                                   const cptx_kernel *k, direct_value v0, direct_value v1, direct_value v2, direct_value v3)
{
	uint32_t *words = (uint32_t *)(void *)(it + 1);
	uint64_t owner = (uint64_t)k->owner << OWNER_SHIFT, nreg = k->nreg, most = v0.number, wrong;

	*words = d->made_word + ((uint32_t)nreg << WORD_NUMBER);
	words += d->makes;
	if (d->registers == n) {
		wrong = direct_register(kinds, 0, words, owner, &most, v0);
		wrong |= n > 1 ? direct_register(kinds, 1, words, owner, &most, v1) : 0;
		wrong |= n > 2 ? direct_register(kinds, 2, words, owner, &most, v2) : 0;
		wrong |= n > 3 ? direct_register(kinds, 3, words, owner, &most, v3) : 0;
		return wrong | (most >= nreg);
	}
	wrong = direct_word(d, kinds, 0, words, owner, nreg, v0);
	wrong |= n > 1 ? direct_word(d, kinds, 1, words, owner, nreg, v1) : 0;
	wrong |= n > 2 ? direct_word(d, kinds, 2, words, owner, nreg, v2) : 0;
	return wrong | (n > 3 ? direct_word(d, kinds, 3, words, owner, nreg, v3) : 0);
}

static inline uint64_t direct_whole(const direct_item *d, direct_value a, direct_value b, direct_value c, direct_value e)
{
	return d->whole < 2 ? a.number : d->whole == 2 ? b.number : d->whole == 3 ? c.number : e.number;
}

/* Links the item whose words are written, and makes its destination. */
CPTX_INLINE_ cptx_val direct_end(cptx_kernel *k, const direct_item *d, ir_item *it, uint64_t head, uint32_t line,
                                 const ir_shape *shape, direct_value a, direct_value b, direct_value c, direct_value e)
{
	const ir_item shaped = { .shaped = 1 };
	ir_item *last = k->last;
	uint64_t word;

	it->prev = last;
	it->next = NULL;
	head |= (uint64_t)k->owner << HEAD_OWNER;
	memcpy((char *)it + offsetof(ir_item, form), &head, sizeof head);
	memcpy(&word, (const char *)&shaped + offsetof(ir_item, line), sizeof word);
	word |= line;
	memcpy((char *)it + offsetof(ir_item, line), &word, sizeof word);
	it->shape = shape;
	last->next = it;
	k->last = it;
	k->closed_if = NULL;
	k->ninsn++;
	k->m->a.at = (char *)it + d->size;
	if (d->whole) {
		direct_value v = { d->whole_front, direct_whole(d, a, b, c, e) };
		memcpy((char *)it + d->size - sizeof v, &v, sizeof v);
	}
	if (!d->makes)
		return direct_val(direct_nothing);
	uint64_t nreg = k->nreg;
	uint32_t reg = d->made_reg + (ir_count_made(&k->decl[d->cls]) << REG_AT);
	memcpy(&k->reg[nreg], &reg, sizeof reg);
	k->nreg = nreg + 1;
	return direct_val((direct_value){ d->made_front | (uint64_t)k->owner << OWNER_SHIFT, nreg });
}

#endif
