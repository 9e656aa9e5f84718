/* SPDX-License-Identifier: MIT */
/* What must be known of PTX text without parsing it, and of a compiler's log about it. */
#ifndef CPTX_COMPILE_TEXT_H
#define CPTX_COMPILE_TEXT_H

#include "base/base.h"

/* Past white space and comments; past one token: a word (with its dots), a string, or a character. */
const char *text_skip_blank(const char *s);
const char *text_skip_token(const char *s);
bool text_token_is(const char *s, const char *end, const char *what);

/* The version of PTX text, times ten, 0 if it has none; *target gets its .target (not terminated) and the length. */
unsigned ptx_header(const char *text, const char **target, size_t *target_len);

/*
 * The line that a line of n bytes of a log names: "ptxas FILE, line N; error ...", the last of these, for a file may be
 * called so, too.  *behind: where that ends.  0: it names none.
 */
unsigned log_line(const char *s, size_t n, size_t *behind);

typedef struct log_source {
	const char *text;           /* that was compiled; NULL: none is known */
	const cptx_ptx *ptx;        /* the same as it was printed, or NULL; then the .loc lines of the text must tell */
	char file[CPTX_ERROR_FILE]; /* of the site that log_explain gives */
} log_source;
/* Appends the log; under each line of it that names a line of the text: that line, and the user's.  The first such. */
cptx_site log_explain(buf *b, const char *log, log_source *from);

#endif
