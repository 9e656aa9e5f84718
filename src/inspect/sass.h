/* SPDX-License-Identifier: MIT */
/* Machine code of sm_75 to sm_121a: the registers of a thread, and the control flow. */
#ifndef CPTX_INSPECT_SASS_H
#define CPTX_INSPECT_SASS_H

#include <stdbool.h>
#include <stdint.h>

enum { SASS_BYTES = 16, SASS_WORDS = 4, SASS_BARRIERS = 16, SASS_STACK = 1 /* R1, the stack pointer */ };

/* Where execution goes behind an instruction. */
enum sass_flow {
	SASS_NEXT,   /* to the next instruction */
	SASS_BRANCH, /* to .target */
	SASS_EXIT,   /* nowhere */
	SASS_RETURN, /* behind the call */
	SASS_CALL,   /* to the function at .target, and then to the next instruction */
	SASS_MARK,   /* to the next instruction; .target is stored in .barrier */
	SASS_JOIN,   /* to the address stored in .barrier */
	SASS_TABLE,  /* to one of the targets that the cubin lists for the instruction */
	SASS_AWAY    /* to a function that is not in this section */
};

/* A set of registers R0 to R254, a bit for each. */
typedef struct sass_set {
	uint64_t w[SASS_WORDS];
} sass_set;

typedef struct sass_insn {
	sass_set use, def;
	enum sass_flow flow;
	bool guarded;   /* some threads may not execute it */
	bool may_pass;  /* for a branch, an exit or a return: other threads go on to the next instruction */
	int64_t target; /* byte offset from the start of the section */
	unsigned barrier;
	const char *name; /* name of the operation; NULL: not in the table */
} sass_insn;

/* Whether the table was compared with code of that architecture: code of others may mean something else. */
bool sass_knows(unsigned sm);
/* Decodes an instruction.  False if the table does not know all that it reads and writes; then out->name is NULL, or the
 * operation's name. */
bool sass_decode(const unsigned char p[SASS_BYTES], unsigned sm, uint32_t address, sass_insn *out);

#endif
