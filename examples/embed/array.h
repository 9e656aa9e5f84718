/* SPDX-License-Identifier: MIT */
/*
 * A small array language.  Variables are arrays of N f32, whose elements count up from 0 to 1 at first; a statement is
 *
 *   y = a * x + y            for each element; `i` is its index, a number is the same for all
 *   repeat 8 z = z * z + c   the same several times
 *   s = sum(x * y)           a reduction; s has one element, which stands for all where it is read
 *   h[4 * x] += y            scatter: elements of h get sums; indices are rounded down, those outside are left out
 *
 * with + - * /, min(a, b), max(a, b) and sqrt(a), and ends with `;`.
 */
#ifndef EXAMPLES_ARRAY_H
#define EXAMPLES_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

enum { VARS = 16, NODES = 128, NAME = 16, SHAPE = 512 };
enum kind { NUMBER, INDEX, VAR, ADD, SUB, MUL, DIV, MIN_OF, MAX_OF, SQRT };
enum form { EACH, SUM, SCATTER };

typedef struct array {
	char name[NAME];
	bool single; /* it has one element */
	float *host;
	uint64_t on_device; /* for the compiler's use */
} array;
typedef struct node {
	enum kind kind;
	int a, b; /* operands, as places in `node`; of a VAR: place among the statement's variables */
	float number;
} node;
typedef struct statement {
	enum form form;
	int repeat, value, at; /* at: the index of a scatter */
	int var[VARS], nvar;   /* its variables, the target first */
	node node[NODES];
	int nnode;
	char shape[SHAPE]; /* the statement without the names of its variables */
} statement;
typedef struct script {
	array var[VARS];
	int nvar;
	uint32_t n;
	const char *rest; /* the text that is not read yet */
} script;

/* Reads the next statement; false at the end.  Errors end the process. */
bool read_statement(script *p, statement *s);
/* Computes a statement on the host. */
void interpret(script *p, const statement *s);
void die(const char *what, const char *why);

#endif
