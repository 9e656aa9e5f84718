/* SPDX-License-Identifier: MIT */
/* A bar on standard error while something long goes on; none, if that is no terminal. */
#ifndef CPTX_TOOL_CLI_PROGRESS_H
#define CPTX_TOOL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress_bar {
	bool on, shown;
	double begin, last; /* seconds */
} progress_bar;

bool progress_open(progress_bar *b, bool off); /* whether there will be one */
/* Some of all CTAs are over: drawn from the second second on, four times in each. */
void progress_show(progress_bar *b, uint64_t n, uint64_t of);
void progress_clear(progress_bar *b); /* before anything else is printed */

#endif
