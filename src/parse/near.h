/* SPDX-License-Identifier: MIT */
/* Declarations that near.c and align.c share: spellings and operands that nearly fit a form. */
#ifndef CPTX_PARSE_NEAR_H
#define CPTX_PARSE_NEAR_H

#include "arch/near.h"
#include "parse/parse.h"

enum {
	NEAR_WORDS = 32,
	NEAR_SLOTS = 64,
	NEAR_FAULTS = 6,
	NEAR_FIELDS = 6,
	NEAR_TEXT = 250 /* only that much of a spelling is compared */
};

/* A spelling, its words, and for each word the fields that have it as a value in some form of the instruction. */
typedef struct near_text {
	const char *text;
	size_t n;
	unsigned nword;
	uint16_t word[NEAR_WORDS + 1]; /* where each word begins, behind its dot; the last: the end */
	bool is_type[NEAR_WORDS];      /* the word is a type's name */
	const char *field[NEAR_WORDS][NEAR_FIELDS];
} near_text;

/* One part of a form's spelling: a fixed word, or the value of a group. */
typedef struct near_slot {
	const char *text;
	uint8_t len, group; /* group: ARCH_NO for a fixed word */
} near_slot;

enum near_word { WORD_MISSING, WORD_OTHER, WORD_EXTRA, WORD_TURNED /* two types in each other's place */ };
typedef struct near_fault {
	uint8_t kind, slot; /* kind: enum near_word; slot: the form's, unless the kind is WORD_EXTRA */
	uint16_t at, len;   /* the word in the spelling, or the place where one is missing */
} near_fault;

typedef struct near_words {
	uint16_t form, cost;
	uint8_t nslot, nfault;
	uint16_t mods[ARCH_GROUPS]; /* the values that the spelling gives */
	near_slot slot[NEAR_SLOTS];
	near_fault fault[NEAR_FAULTS]; /* the first NEAR_FAULTS faults, in the order of the text */
} near_words;

void near_read(const char *text, size_t n, near_text *t);
/* Aligns the text with a form's spellings, and describes the nearest one.  The text's first word is the form's. */
void near_align(unsigned form, const near_text *t, near_words *out);

/* Operands as the text has them. */
typedef struct near_operands {
	const parse_token *token;
	unsigned n;
	const cptx_val *vec;
	bool declared; /* as in arch_match_form */
} near_operands;
/*
 * Computes how far operands are from those of a form whose groups have the values `mods`, some of which may be missing; vals
 * gets the values as the form takes them.  Where their number or their brackets differ, that many of them are left out,
 * taken as lacking, or taken as they are: *edits.  *cost: of all that is wrong with operands, where two in each other's
 * place are one mistake.  False if they differ in more.  (operands.c)
 */
bool parse_near(unsigned form, const uint16_t mods[ARCH_GROUPS], const near_operands *o, cptx_val vals[3 + ARCH_SLOTS],
                arch_near *n, unsigned *edits, unsigned *cost);
/* Computes the least and most operands that a form takes. */
void parse_operand_numbers(unsigned form, const uint16_t mods[ARCH_GROUPS], unsigned *least, unsigned *most);

/*
 * Describes what is wrong with the spelling text[0 .. n) and its operands (NULL: unknown), and what to write, in `why`.
 * False, with nothing added, if no instruction begins so.  *place: where in the spelling the first wrong word stands.
 */
bool near_why(const char *text, size_t n, const near_operands *o, buf *why, size_t *place);

#endif
