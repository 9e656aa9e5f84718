/* SPDX-License-Identifier: MIT */
/* What the files that read instructions share: operands as they stand in the text. */
#ifndef CPTX_PARSE_INSN_H
#define CPTX_PARSE_INSN_H

#include "parse/parser.h"

enum { MOST_TOKENS = 24 };

typedef struct token {
	const char *at;
	bool unknown; /* a name that nothing has: a label to come, or an error */
	word name;
} token;

/*
 * Most operands are plain: a single register, maybe in brackets, or a small integer.  They are kept as the word that an item
 * has for them (words[i], 0 for others), and as 16 bits of `shape`: kind and type, and how it stands.
 */
typedef struct tokens {
	parse_token t[MOST_TOKENS];       /* plain ones stand here when parse_unfold has put them there */
	token from[MOST_TOKENS];          /* where each stands that is not plain */
	uint32_t words[PLAIN_TOKENS + 1]; /* the last is 0 */
	uint64_t shape[PLAIN_TOKENS / 4];
	unsigned n, nplain;
	bool unknown; /* a name that nothing has is among them */
	bool lists;   /* parentheses hold what a call passes, and no expression */
} tokens;

/* ---- tokens.c ---- */
/* All up to the semicolon. */
bool parse_operands(parser *p, tokens *all);
void parse_unfold(const parser *p, tokens *all);
cptx_val parse_register_value(const cptx_kernel *k, uint32_t id, uint32_t count);
bool parse_undeclared(parser *p, const token *t); /* false, with the error */

/* ---- fit.c ---- */
/* The match of the same spelling with plain operands of the same shape, if these fit as well; NULL if there was none. */
const plain_match *parse_fit_plain(const spelled *s, const tokens *all);
/* The first form of the spelling that takes the operands, in *m; false if none does. */
bool parse_fit(parser *p, spelled *s, const tokens *all, arch_match *m);

/* ---- spelling.c ---- */
/* Why no form of the table is spelled so, or takes these operands (NULL: they could not be read), as an error.  False. */
bool parse_spelling_error(parser *p, const char *at, const spelled *s, const tokens *all);

#endif
