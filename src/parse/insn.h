/* SPDX-License-Identifier: MIT */
/* Declarations that the files that read instructions share: operands as they stand in the text. */
#ifndef CPTX_PARSE_INSN_H
#define CPTX_PARSE_INSN_H

#include "parse/parser.h"

enum { MOST_TOKENS = 24 };

typedef struct token {
	const char *at;
	bool unknown; /* a name that is not declared: a label to come, or an error */
	word name;
} token;

/*
 * The operands of an instruction.  Most are plain: a single register, maybe in brackets, or a small integer.  A plain
 * operand is kept as the word that an item has for it (words[i], 0 for others), and as 16 bits of `shape`: kind and type,
 * and its brackets.
 */
typedef struct tokens {
	parse_token t[MOST_TOKENS];       /* plain operands are stored here only by parse_unfold */
	token from[MOST_TOKENS];          /* the places of operands that are not plain */
	uint32_t words[PLAIN_TOKENS + 1]; /* the last word is always 0 */
	uint64_t shape[PLAIN_TOKENS / 4];
	unsigned n, nplain;
	bool unknown; /* an undeclared name is among the operands */
	bool lists;   /* parentheses hold the arguments of a call, not an expression */
} tokens;

/* ---- tokens.c ---- */
/* reads all operands up to the semicolon */
bool parse_operands(parser *p, tokens *all);
void parse_unfold(const parser *p, tokens *all);
cptx_val parse_register_value(const cptx_kernel *k, uint32_t id, uint32_t count);
bool parse_undeclared(parser *p, const token *t); /* reports the undeclared name of a token; returns false */

/* ---- fit.c ---- */
/* The match of an earlier instruction with the same spelling and plain operands of the same shape, if these operands fit
 * too; NULL if there is none. */
const plain_match *parse_fit_plain(const spelled *s, const tokens *all);
/* Matches the first form of the spelling that takes the operands, into *m; false if none does. */
bool parse_fit(parser *p, spelled *s, const tokens *all, arch_match *m);

/* ---- spelling.c ---- */
/* Reports why no form of the table has this spelling, or takes these operands (NULL: they could not be read).  Returns
 * false. */
bool parse_spelling_error(parser *p, const char *at, const spelled *s, const tokens *all);

#endif
