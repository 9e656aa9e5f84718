/* SPDX-License-Identifier: MIT */
/*
 * Random cases by number, on many processes: what fuzz_emu and fuzz_modules share.  A case is known by its seed alone, so
 * that it gives the same whatever process has it, and whatever was run before.
 *
 *     PROGRAM [--seed N] [--NOUN N] [--seconds N] [--jobs N] [--show 1]
 *
 * --seed: of the first case (1), the next has the next; --NOUN ("kernels"): how many, of all processes (no bound);
 * --seconds: of CPU time of a process (5, or no bound where --NOUN is given); --jobs: processes (1); --show 1: prints each
 * case before it runs, so that `PROGRAM --seed S --NOUN 1 --show 1` shows a failure again.
 *
 * On SIGTERM the processes end behind the case that they are at, and the totals are printed.
 *
 * A case that ends its process, or takes more than MOST_CPU seconds of CPU time, or stands still, is named on standard
 * output with its seed, and a new process goes on with the next.
 */
#ifndef FUZZ_FARM_H
#define FUZZ_FARM_H

#include <stdbool.h>
#include <stdint.h>

enum { FARM_COUNTS = 64 };

/* What cases add to: figures by number, and what they did as a number, which must not depend on the order of cases. */
typedef struct farm_sum {
	uint64_t count[FARM_COUNTS];
	uint64_t digest;
} farm_sum;

typedef struct farm {
	const char *name, *noun;
	void (*begin)(void); /* once in each process; NULL: nothing */
	/* NULL if all is well, else what is not, in memory that lasts until the next call. */
	const char *(*one)(uint64_t seed, bool show, farm_sum *sum);
	/* Prints what the counts are; false, with the reason printed, if the cases tried too little.  NULL: nothing. */
	bool (*report)(const farm_sum *sum, uint64_t cases);
} farm;

/* The program; its exit status. */
int farm_main(const farm *f, int argc, char **argv);

#endif
