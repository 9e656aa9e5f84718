/* SPDX-License-Identifier: MIT */
/* Asks ptxas about PTX text, two files at a time. */
#ifndef VERIFY_ASSEMBLE_H
#define VERIFY_ASSEMBLE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct assembly {
	const char *target; /* of the library: sm_101 is asked for by its new name */
	const char *ptx;
	bool separate; /* -c: what is extern may be missing */
	int status;    /* 0: accepted */
	char *said;    /* with -v and all warnings; freed by assemble_free */
} assembly;

void assemble(assembly *jobs, size_t n);
void assemble_free(assembly *jobs, size_t n);
/* How many kernels spill registers, of what was said; adds how many there are. */
unsigned assembly_spills(const char *said, unsigned *kernels);

#endif
