/* SPDX-License-Identifier: MIT */
/* The corpus of tests/corpus, file by file. */
#ifndef CORPUS_H
#define CORPUS_H

#include <cptx/cptx.h>

#include "../test.h"

typedef struct corpus_file {
	char path[512];
	char *text;
	size_t size;
} corpus_file;

size_t corpus_count(void);
corpus_file corpus_read(size_t i); /* in the order of names; free with corpus_free */
void corpus_free(corpus_file *f);

/* Parses with the text kept; NULL for what the parser refuses. */
cptx_module *corpus_parse(const char *name, const char *text, size_t size);
/* Prints, as it stood or in normal form; the caller frees the text. */
char *print_module(cptx_module *m, const char *target, bool keep);
/* Prints the module without lines that hold a comment alone. */
char *print_code(cptx_module *m);

#endif
