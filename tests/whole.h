/* SPDX-License-Identifier: MIT */
/* CPTX_WHOLE: all is tried, and not a sample.  Of what is tried then, and of what fuzzers draw, a process takes its part, so
 * that mpirun, srun or a Slurm array divide it among many (cptx_tune_share; CPTX_SHARE=i/n by hand). */
#ifndef CPTX_TEST_WHOLE_H
#define CPTX_TEST_WHOLE_H

#include <cptx/tune.h>

#include <stdio.h>
#include <stdlib.h>

static inline bool whole(void) { return getenv("CPTX_WHOLE") != NULL; }

/* Ends the program where the environment says nonsense, since all would try too little then. */
static inline void my_share(uint32_t *part, uint32_t *parts)
{
	cptx_error err = { .code = CPTX_OK };

	if (!cptx_tune_share(part, parts, &err)) {
		fprintf(stderr, "%s\n", err.text);
		exit(2);
	}
}

/* Whether number i of the work is of this process. */
static inline bool is_my_share(uint64_t i)
{
	uint32_t part, parts;

	my_share(&part, &parts);
	return i % parts == part;
}

/* How many of n numbers from `first` on are. */
static inline uint64_t count_my_share(uint64_t first, uint64_t n)
{
	uint32_t part, parts;

	my_share(&part, &parts);
	const uint64_t skipped = (part + parts - first % parts) % parts;
	return n > skipped ? (n - skipped - 1) / parts + 1 : 0;
}

/* Whether this process tries case i: without CPTX_WHOLE each process tries the whole sample. */
static inline bool is_my_part(uint64_t i) { return !whole() || is_my_share(i); }

/* Whether case i is tried: one of `sample` cases, and with CPTX_WHOLE all that are this process's. */
static inline bool is_tried(uint64_t i, unsigned sample) { return whole() ? is_my_share(i) : i % sample == 0; }

#endif
