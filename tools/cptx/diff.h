/* What `cptx diff` compares: lines, each with what it is, up to names that may be others. */
#ifndef CPTX_TOOL_DIFF_H
#define CPTX_TOOL_DIFF_H

#include "inspect.h"

typedef struct diff_line {
	const char *text; /* for people, of n bytes, in what the lines were made of */
	size_t n;
	char *key;      /* without the names of registers and labels */
	uint32_t *name; /* those: twice their number in the body, labels odd */
	size_t nname;
	uint32_t same; /* equal for equal keys: diff_number */
} diff_line;

typedef struct diff_lines {
	diff_line *at;
	size_t n, cap;
	char *own; /* text of theirs, to be freed; or NULL */
} diff_lines;

void diff_free(diff_lines *l);
/* Numbers the keys of both; false without memory. */
bool diff_number(diff_lines *a, diff_lines *b);

/* Of a kernel's machine code, without the numbers of registers and labels; each false without memory. */
bool diff_code(diff_lines *l, const inspect_kernel *k);
/* What stands outside of bodies, and the variables and prototypes in them.  NULL in *err: no memory. */
bool diff_head(diff_lines *l, cptx_module *m, cptx_error *err);
/* Labels and instructions of a body, as they were read. */
bool diff_body(diff_lines *l, const inspected *in, const cptx_kernel *k);

#endif
