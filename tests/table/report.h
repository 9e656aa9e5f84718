/* SPDX-License-Identifier: MIT */
/* Collects what is wrong, so that a test can tell all of it and fail once. */
#ifndef TABLE_REPORT_H
#define TABLE_REPORT_H

#include "arch/arch.h"

#include <stdio.h>
#include <stdlib.h>

enum { REPORT_MOST = 40 };

typedef struct report {
	unsigned n;
} report;

/* Prints the first REPORT_MOST (all with CPTX_TABLE_ALL set in the environment), with the row of insn.def. */
static inline void report_add(report *r, unsigned form, const char *what, const char *line, const char *why)
{
	if (r->n++ < REPORT_MOST || getenv("CPTX_TABLE_ALL"))
		printf("%s:%u: %s: %s\n    %s\n    %s\n", arch_forms[form].file, arch_forms[form].line, what, arch_forms[form].text,
		       line, why);
}

#endif
