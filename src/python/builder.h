/* SPDX-License-Identifier: MIT */
/* What the callables of the builder share. */
#ifndef CPTX_PYTHON_BUILDER_H
#define CPTX_PYTHON_BUILDER_H

#include "arch/arch.h"
#include "python/python.h"
#include <cptx/python.h>

/* An object that holds a value: the head of a PyObject (two words where there is a GIL), and the value. */
typedef struct held_value {
	ptrdiff_t refs;
	object *type;
	cptx_val v;
} held_value;

/* lines.c: the lines of a code object. */
typedef struct code_line {
	uint32_t start, line; /* start: offset of the first byte of code that belongs to the line */
} code_line;
typedef struct code_lines {
	object *code; /* held */
	const char *file;
	size_t n;
	code_line at[];
} code_lines;
enum { CODES = 1024 /* code objects whose lines are kept, a power of two */ };

typedef struct call_kind call_kind;
typedef struct builder {
	call_kind **kinds; /* by the number of the call; those that were not asked for are NULL */
	object *value_class, *failed;
	object *mods;  /* dict: PTX spelling -> number of a modifier or type */
	object *files; /* dict: names of files, which modules compare by their pointer, for good */
	object *f_code, *f_lasti, *f_back, *co_lines, *co_filename; /* names of attributes */
	size_t ncodes;
	const code_lines *last;
	code_lines *codes[CODES]; /* a hash table by the address of the code */
} builder;

builder *builder_of(object *capsule); /* NULL, with a Python exception, if it is none */

/* value.c */
object *value_new(object *type, cptx_val v); /* None for NONE */

/* operand.c: all return false with a Python exception. */
bool take_value(builder *b, cptx_kernel *k, cptx_site at, object *x, cptx_val *v);
bool take_mod(builder *b, object *x, uint16_t *mod);
bool take_int(object *x, int64_t *i);
bool take_text(object *x, const char **text); /* None: NULL */

/* lines.c */
cptx_site line_at(builder *b, unsigned up);
void lines_forget(builder *b);

/* calls.c: calls that are no instructions. */
enum { MOST_ARGS = 6 };
typedef union call_arg {
	cptx_val v;
	int64_t i;
	const char *s;
	uint16_t mod;
} call_arg;
typedef struct call_row {
	const char *name, *takes, *names; /* as calls.def has them */
	cptx_val (*fn)(cptx_kernel *k, cptx_site at, const call_arg *a, const cptx_val *v, size_t n);
} call_row;
extern const call_row python_calls[];
extern const size_t python_ncalls;

#endif
