/* SPDX-License-Identifier: MIT */
/* Machine code of sm_75 to sm_121a, as far as the registers of a thread and the way through the code go. */
#ifndef CPTX_INSPECT_SASS_H
#define CPTX_INSPECT_SASS_H

#include <stdbool.h>
#include <stdint.h>

enum { SASS_BYTES = 16, SASS_WORDS = 4, SASS_BARRIERS = 16, SASS_STACK = 1 /* the register of the stack pointer */ };

/* What comes behind an instruction. */
enum sass_flow {
	SASS_NEXT,   /* the next one */
	SASS_BRANCH, /* .target */
	SASS_EXIT,   /* nothing */
	SASS_RETURN, /* what stands behind the call */
	SASS_CALL,   /* the function at .target, and then the next one */
	SASS_MARK,   /* the next one; .target is kept in .barrier */
	SASS_JOIN,   /* what is kept in .barrier */
	SASS_TABLE,  /* one of those that the cubin lists for it */
	SASS_AWAY    /* a function that is not in this section */
};

/* Registers R0 to R254, a bit for each. */
typedef struct sass_set {
	uint64_t w[SASS_WORDS];
} sass_set;

typedef struct sass_insn {
	sass_set use, def;
	enum sass_flow flow;
	bool guarded;   /* some threads may not execute it */
	bool may_pass;  /* behind a branch, an exit or a return: others go on to the next */
	int64_t target; /* in bytes, from the start of the section */
	unsigned barrier;
	const char *name; /* NULL: not in the table */
} sass_insn;

/* Whether the table was compared with code of that architecture: the code of others may mean something else. */
bool sass_knows(unsigned sm);
/* False, with out->name NULL or of the instruction, if the table does not know all that it reads and writes. */
bool sass_decode(const unsigned char p[SASS_BYTES], unsigned sm, uint32_t address, sass_insn *out);

#endif
