/* SPDX-License-Identifier: MIT */
/* What libcptx_sanitize writes for the command: a finding a line (tools/sanitize/report.c). */
#ifndef CPTX_TOOL_SANITIZE_RECORD_H
#define CPTX_TOOL_SANITIZE_RECORD_H

#include "run/finding.h"

/* What was not checked, and why (tools/sanitize/unchecked.def). */
typedef struct record_unchecked {
	const char *word, *one, *several; /* what it is; in the summary */
	int tells;                        /* the exit status: 2 always, 1 if no launch was checked, 0 never */
	const char *kernel, *why;
} record_unchecked;

bool record_is_checked(const char *line); /* a launch that was checked */
/* Reads a line in place, if it is one of what was not checked; else it stays as it is. */
bool record_read_unchecked(char *line, record_unchecked *u);
/* Likewise, of orders of a launch that leave other memory. */
bool record_read_order(char *line, finding_order *o);
/* Reads a line in place: strings of the finding point into it.  False: it is none. */
bool record_read(char *line, cptx_emu_finding *f);

#endif
