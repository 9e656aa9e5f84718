/* SPDX-License-Identifier: MIT */
/*
 * Random cases of instructions that work on each lane alone, for a comparison of the emulator with a GPU: a kernel for a
 * spelling of a row of the table, operands for it, and how far apart two results may be.
 */
#ifndef CPTX_TEST_CASE_H
#define CPTX_TEST_CASE_H

#include "../../table/cases.h"
#include "operand.h"

enum { MOST_IN = 8, MOST_OUT = 4 };

/* An operand, or an element of one that is a vector. */
typedef struct port {
	uint8_t type;
	uint8_t bits; /* of its register: 1, 8, 16, 32, 64, 128 */
} port;

/* An instruction that a kernel executes between loading its inputs and storing its outputs. */
typedef struct plan {
	spelling s;
	char opcode[OPCODE], operands[400], before[200], after[200]; /* instructions around it: for the carry */
	port in[MOST_IN], out[MOST_OUT];
	unsigned nin, nout;
	unsigned version; /* times ten, that it needs */
} plan;

/* Why no kernel can be made of this instruction on any target; NULL if it can. */
const char *plan_refuses(unsigned form);
/* NULL, or why the spelling is not there on the target. */
const char *plan_make(plan *p, const spelling *s, unsigned target, source *random);
/* The kernel k<number>(in, out, lanes): operand i of lane l stands at in + (i * lanes + l) * SLOT, results likewise.  To be
 * freed. */
char *plan_kernel(const plan *p, unsigned number);

enum verdict_of { SAME, WITHIN_BOUND, NO_GUARANTEE, DIFFERENT };
/* Results of output `i`, for inputs one of which stands each `stride` bytes. */
enum verdict_of compare(const plan *p, unsigned i, const unsigned char *in, size_t stride, const unsigned char *a,
                        const unsigned char *b);

#endif
