/* SPDX-License-Identifier: MIT */
/* What `cptx diff` compares: lines, each with what it is, up to names that may be others. */
#ifndef CPTX_TOOL_INSPECT_DIFF_H
#define CPTX_TOOL_INSPECT_DIFF_H

#include "inspect/inspect.h"

typedef struct diff_line {
	const char *text; /* for people, of n bytes, in what the lines were made of */
	size_t n;
	char *key;      /* without the names of registers and labels */
	uint32_t *name; /* those, in the order of the line: a number for each name of a body or kernel */
	size_t nname;
	uint32_t same;         /* equal for equal keys: diff_number */
	uint64_t registers[4]; /* of machine code: R0 to R254 that it uses, a bit for each */
} diff_line;

typedef struct diff_lines {
	diff_line *at;
	size_t n, cap;
	char *own; /* text of theirs, to be freed; or NULL */
} diff_lines;

/* Names of one side, and those of the other: each has one at most. */
typedef struct diff_renaming {
	uint32_t *to[2]; /* of each name of one side, that of the other + 1; 0: none yet */
	size_t n[2];
} diff_renaming;
/* Whether a of the first is b of the second, which it becomes if both are new; *trouble: no memory. */
bool diff_maps(diff_renaming *r, uint32_t a, uint32_t b, bool *trouble);
/* What a of the first is called in the second, + 1; 0: nothing yet. */
uint32_t diff_image(const diff_renaming *r, uint32_t a);

/* One line more, whose key and names are the lines' then. */
bool diff_add(diff_lines *l, diff_line line);
void diff_free(diff_lines *l);
/* Numbers the keys of both; false without memory. */
bool diff_number(diff_lines *a, diff_lines *b);

/* Of a kernel's machine code and the labels in it; each false without memory.  by_letter: without any names. */
bool diff_code(diff_lines *l, const inspect_kernel *k, bool by_letter);
/* Is it known of each instruction which registers it uses? */
bool diff_code_known(const inspect_kernel *k);
/* Of lines of machine code whose names are the same: are all registers that they use? */
bool diff_same_registers(diff_renaming *r, const diff_line *a, const diff_line *b, bool *trouble);
/* What stands outside of bodies, and the variables and prototypes in them.  NULL in *err: no memory. */
bool diff_head(diff_lines *l, cptx_module *m, cptx_error *err);
/* Finds the lines of the PTX, for diff_body; false without memory. */
bool diff_find_lines(inspected *in);
/* Labels and instructions of a body, as they were read. */
bool diff_body(diff_lines *l, const inspected *in, const cptx_kernel *k);

#endif
