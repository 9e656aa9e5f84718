/* SPDX-License-Identifier: MIT */
/* What the tests of the parser share: texts read whole, every message kept, and printed again. */
#ifndef PARSE_TEST_H
#define PARSE_TEST_H

#include <cptx/cptx.h>

#include "../test.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* In front of a text that begins with neither .version nor a comment. */
#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

/* What reading and checking a text gave.  Freed by outcome_free. */
typedef struct outcome {
	size_t nerror;
	char *message; /* all messages, each with a newline; "" */
	char *printed; /* NULL if there were errors */
} outcome;

/* Reads text as file "t", checks it for `arch` (NULL: its own target), prints it. */
outcome outcome_of(const char *text, size_t size, const char *arch);
void outcome_free(outcome *o);
/* text behind a head, unless it has one; the caller frees it. */
char *with_head(const char *text);
/* text as the statements of a kernel with some registers, parameters and variables; the caller frees it. */
char *in_body(const char *text);
/* Statements of a kernel, as in_body, for another target, with a .version that knows it. */
char *in_body_on(const char *target, const char *text);
/* Prints the text's module; the caller frees it.  It must have no errors. */
char *print_text(const char *text, size_t size, bool keep);
char *read_whole(const char *path, size_t *size);

int parse_test_run(const char *name, const TTest *const *tests, size_t n);

#endif
