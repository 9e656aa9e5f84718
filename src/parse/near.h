/* SPDX-License-Identifier: MIT */
/* What near.c and align.c share: spellings, and operands, that nearly fit a form. */
#ifndef CPTX_PARSE_NEAR_H
#define CPTX_PARSE_NEAR_H

#include "arch/near.h"
#include "parse/parse.h"

enum { NEAR_WORDS = 32, NEAR_SLOTS = 64, NEAR_FAULTS = 6, NEAR_FIELDS = 6, NEAR_TEXT = 250 /* of a spelling, looked at */ };

/* A spelling, its words, and the fields that each is a value of in some form of the instruction. */
typedef struct near_text {
	const char *text;
	size_t n;
	unsigned nword;
	uint16_t word[NEAR_WORDS + 1]; /* where each begins, behind its dot; the last: behind all */
	const char *field[NEAR_WORDS][NEAR_FIELDS];
} near_text;

/* What a form writes there: a fixed word, or the value of a group. */
typedef struct near_slot {
	const char *text;
	uint8_t len, group; /* ARCH_NO: fixed */
} near_slot;

enum near_word { WORD_MISSING, WORD_OTHER, WORD_EXTRA };
typedef struct near_fault {
	uint8_t kind, slot; /* enum near_word; of the form: not of WORD_EXTRA */
	uint16_t at, len;   /* the word, or where one is missing, in the spelling */
} near_fault;

typedef struct near_words {
	uint16_t form, cost;
	uint8_t nslot, nfault;
	uint16_t mods[ARCH_GROUPS]; /* the values that the spelling has */
	near_slot slot[NEAR_SLOTS];
	near_fault fault[NEAR_FAULTS]; /* the first of them, in the order of the text */
} near_words;

void near_read(const char *text, size_t n, near_text *t);
/* The form's spelling that is nearest to the text, whose first word is the form's. */
void near_align(unsigned form, const near_text *t, near_words *out);

/* Operands as text has them. */
typedef struct near_operands {
	const parse_token *token;
	unsigned n;
	const cptx_val *vec;
	bool declared; /* as for arch_match_form */
} near_operands;
/*
 * How far operands are from those of a form whose groups have the values `mods`, some of which may be missing; vals: the
 * values as the form takes them.  False if they are not as many, or stand in other brackets.  (operands.c)
 */
bool parse_near(unsigned form, const uint16_t mods[ARCH_GROUPS], const near_operands *o, cptx_val vals[3 + ARCH_SLOTS],
                arch_near *n);
/* The least and most operands that the form has. */
void parse_operand_numbers(unsigned form, const uint16_t mods[ARCH_GROUPS], unsigned *least, unsigned *most);

/*
 * What is wrong with the spelling text[0 .. n) and its operands (NULL: not known), and what to write: added to `why`; false,
 * with nothing added, if no instruction begins so.  *place: where in the spelling the first wrong word stands.
 */
bool near_why(const char *text, size_t n, const near_operands *o, buf *why, size_t *place);

#endif
