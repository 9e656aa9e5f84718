/* SPDX-License-Identifier: MIT */
/* What the files of this tool share: text, tokens of C, the names of a file. */
#ifndef AMALGAMATE_H
#define AMALGAMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct text {
	char *p;
	size_t n, room;
} text;
void text_put(text *t, const char *s, size_t n);
void text_str(text *t, const char *s);
/* Prints it and ends the program. */
_Noreturn void die(const char *format, ...);

enum token_kind {
	TOKEN_END,
	TOKEN_NAME,
	TOKEN_OTHER /* a character, ->, ##, a number, a string */,
	TOKEN_BLANK /* and comments */
};
typedef struct token {
	enum token_kind kind;
	const char *p;
	size_t n;
	bool directive; /* in a preprocessor line */
} token;
/* The token at p; `line` says whether p is in a preprocessor line, and is kept up to date. */
token token_at(const char *p, const char *end, bool *line);
/* The one from p on that is not blank. */
token token_next(const char *p, const char *end, bool line);
static inline bool token_is(const token *t, const char *s)
{
	size_t i = 0;
	while (i < t->n && s[i] && t->p[i] == s[i])
		i++;
	return i == t->n && !s[i];
}

/* Names, each with the files that define it at file scope. */
typedef struct defined {
	char *s;
	int file;
	bool macro;  /* of the preprocessor */
	bool global; /* for other files too: it keeps its name */
	bool tag;    /* of a struct, union or enum */
	bool twice;  /* another file has it too */
	size_t next; /* 1 + the next one of the same hash */
} defined;
enum { BUCKETS = 8192 };
typedef struct names {
	defined *v;
	size_t n, room;
	size_t bucket[BUCKETS]; /* 1 + the newest of that hash */
} names;
/* Notes what a file (number `file`) defines at file scope: functions, variables, types, tags, constants, macros. */
void names_read(names *all, const text *t, int file);
/* Whether two files define the name. */
bool names_clash(const names *all, const char *s, size_t n);
/* What this file defines by that name, for itself; NULL: nothing.  A tag that a header names, and a macro
 * that one has too, are the header's. */
const defined *names_own(const names *all, const char *s, size_t n, int file, int headers);

/* `headers`: the number that all headers have as a file.  Copies text with `suffix` behind the names that this file and
 * another one define; then #undef of its macros. */
void rename_into(text *out, const text *in, const names *all, int file, int headers, const char *suffix);

#endif
