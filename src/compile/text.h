/* SPDX-License-Identifier: MIT */
/* Reading PTX text without parsing it, and compilers' logs about it. */
#ifndef CPTX_COMPILE_TEXT_H
#define CPTX_COMPILE_TEXT_H

#include "base/base.h"

/* text_skip_blank skips white space and comments, text_skip_token one token: a word (with its dots), a string, or a
 * character. */
const char *text_skip_blank(const char *s);
const char *text_skip_token(const char *s);
bool text_token_is(const char *s, const char *end, const char *what);

/* The version of PTX text, times ten, 0 if it has none; *target gets the place of its .target (not terminated), and
 * *target_len the length. */
unsigned ptx_header(const char *text, const char **target, size_t *target_len);

/*
 * Whether CUDA's linkers (the driver's and nvJitLink, as of 13.0) make of a text what compilers make of it.  They compile it
 * as one part of several: setmaxnreg is ignored, and dynamic shared memory is aligned to 16 bytes whatever the text says, so
 * that a kernel with static shared memory in front of it finds it misaligned.
 */
bool text_links_as_it_compiles(const char *text);

/*
 * Finds the line that a line of n bytes of a log names: "ptxas FILE, line N; error ...", the last of these words, because a
 * file may have them in its name.  *behind: where that ends.  0: it names none.
 */
unsigned log_line(const char *s, size_t n, size_t *behind);

typedef struct log_source {
	const char *text; /* the text that was compiled; NULL: unknown */
	/* the same text as it was printed, or NULL; then the .loc lines of the text must tell the user's lines */
	const cptx_ptx *ptx;
	char file[CPTX_ERROR_FILE]; /* file of the site that log_explain returns */
} log_source;
/* Appends the log; below each line of it that names a line of the text come that line, and the user's.  Returns the first
 * such site. */
cptx_site log_explain(buf *b, const char *log, log_source *from);

#endif
