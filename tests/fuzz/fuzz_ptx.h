/* SPDX-License-Identifier: MIT */
/* What is asked of every text.  fuzz_ptx.c; libFuzzer (entry.c) and the replay of the corpus (replay.c) call it. */
#ifndef FUZZ_PTX_H
#define FUZZ_PTX_H

#include <stddef.h>

/*
 * Reads, checks and prints the text.  NULL if all is as it should be, else what is not, in static memory.
 *
 * A first line "!abc" is no PTX: its characters say which allocations fail ('a' lets 'a' % 64 pass, then one fails, and so
 * on; behind the last none fails).
 */
const char *fuzz_ptx(const char *text, size_t size);

#endif
