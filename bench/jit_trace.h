/* SPDX-License-Identifier: MIT */
/*
 * Kernels such as a tracing compiler makes: a long list of scalar operations on variables, each known by its number and its
 * type.  All arms of bench_jit get the same list, and must print the same PTX.
 */
#ifndef BENCH_JIT_TRACE_H
#define BENCH_JIT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a step computes; the name in front is the type of its result. */
enum trace_op {
	U32_ADD,     /* a + b */
	U32_ADD_IMM, /* a + the number `b` */
	U32_AND,     /* a & b */
	U32_MAD,     /* a * b + c */
	U64_ELEMENT, /* a * 4, wide: bytes in front of element a */
	U64_ADDRESS, /* a + the pointer */
	F32_LOAD,    /* at address a */
	F32_CVT,     /* of u32 a */
	F32_IMM,     /* the number `b` */
	F32_ADD,
	F32_MUL,
	F32_FMA, /* a * b + c, flushing denormals */
	F32_EX2,
	F32_SELECT, /* p ? a : b, p being c */
	PRED_LESS,  /* f32 a < b */
	STORE,      /* f32 b at address a, no result */
	TRACE_OPS
};
enum trace_type { TYPE_NONE, TYPE_U32, TYPE_U64, TYPE_F32, TYPE_PRED, TRACE_TYPES };

typedef struct trace_step {
	uint8_t op, type; /* type: of the result */
	uint32_t a, b, c; /* numbers of variables, or a number */
	uint32_t reg;     /* number of its register among those of its type, from 1 */
} trace_step;

typedef struct trace {
	trace_step *step; /* variable i is the result of step i; the first TRACE_FIRST are parameters and %tid.x */
	size_t n;
	uint32_t regs[TRACE_TYPES]; /* registers of each type */
} trace;
enum { VAR_POINTER, VAR_SIZE, VAR_TID, TRACE_FIRST };
enum { TRACE_NUMBERS = 1000 }; /* numbers in the place of variables are below this */

/* A trace of n instructions in all; the same for the same arguments.  unrolled: the operations repeat, as those of an
 * unrolled loop do; else their order is random.  To be freed by trace_free. */
trace trace_make(size_t n, bool unrolled);
void trace_free(trace *t);

/* The printer: PTX for sm_80 without any check, as such compilers print it; returns the bytes.  `to` has TRACE_LINE bytes
 * for each instruction. */
enum { TRACE_LINE = 80, TRACE_HEAD = 1024 };
size_t trace_print(const trace *t, char *to);

#endif
