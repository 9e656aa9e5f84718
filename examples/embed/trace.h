/* SPDX-License-Identifier: MIT */
/*
 * Traces as tracing compilers such as Dr.Jit record them: a list of variables, each with an operation, a type and the
 * numbers of the variables that it depends on; all of them are functions of an element's index.  trace_host.c computes them,
 * and trace.c compiles them.
 */
#ifndef EXAMPLES_TRACE_H
#define EXAMPLES_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_VARS = 256, DEPS = 3, BUFFERS = 4 /* one to be read and one to be written for each trace_type of data */ };

typedef enum trace_type { U32, I32, F32, F64, BOOL, TYPES } trace_type;
typedef enum trace_op {
	LITERAL, /* the value `bits` */
	INDEX,   /* number of the element, u32 */
	ADD,
	SUB,
	MUL,
	DIV,
	REM,   /* this and the next: of integers */
	MULHI, /* the upper half of the product */
	FMA,
	MIN,
	MAX,
	NEG,
	ABS,
	SQRT, /* this and the next five: of floats */
	RCP,
	FLOOR,
	CEIL,
	ROUND, /* ties to even */
	TRUNC,
	NOT, /* this and the next three: of integers and bool */
	AND,
	OR,
	XOR,
	SHL, /* of integers by u32; more than all bits away are gone */
	SHR,
	POPC, /* this and the next two give u32 of an integer: the bits that are set, the zeros above and below them */
	CLZ,
	CTZ,
	BREV, /* of integers: the bits in the other order */
	EQ,   /* these give bool, of two others of one type */
	NE,
	LT,
	LE,
	GT,
	GE,
	SELECT,  /* dep[0], a bool, chooses between dep[1] and dep[2] */
	CAST,    /* of dep[0] to another number; floats are cut towards 0 and clamped to integers, a NaN is 0 (f32) or 0x80000000
	            (f64) */
	BITCAST, /* of dep[0]: the same 32 bits as another type */
	GATHER,  /* element dep[0] of the buffer of its type that is read */
	SCATTER, /* element dep[0] of the buffer of that type that is written becomes dep[1] */
	SCATTER_ADD, /* dep[1], an integer, is added to that element, by one thread after another */
	OPS
} trace_op;

typedef struct var {
	uint8_t op, type;
	uint32_t dep[DEPS];
	uint64_t bits; /* of a literal */
} var;

typedef struct trace {
	var v[MOST_VARS];
	uint32_t n;
} trace;

/* The buffers, of the types U32 to F64. */
typedef struct buffers {
	void *in[BUFFERS], *out[BUFFERS];
	uint32_t n; /* elements of each */
} buffers;

/* Appends a variable; returns its number. */
uint32_t trace_add(trace *t, trace_op o, trace_type type, uint32_t a, uint32_t b, uint32_t c);
uint32_t trace_literal(trace *t, trace_type type, uint64_t bits);
/* A trace of at least `size` variables, which scatters the last one of each type. */
void trace_random(trace *t, uint64_t seed, uint32_t size, uint32_t elements);
/* Bytes of a trace_type of data. */
size_t type_size(trace_type type);
/* How many variables an operation depends on. */
unsigned op_deps(trace_op o);
/* Marks the variables that scatters depend on: the others are not computed. */
void trace_mark(const trace *t, bool live[MOST_VARS]);
/* Computes the trace for all elements. */
void trace_run(const trace *t, const buffers *b);

#endif
