/* SPDX-License-Identifier: MIT */
/* Running a random kernel: what the host does around it, what is found, and which instructions it came to. */
#ifndef CPTX_FUZZ_RUN_H
#define CPTX_FUZZ_RUN_H

#include "fuzz_kernel.h"

/* Of a run, all that must not depend on the number of threads. */
typedef struct fuzz_outcome {
	uint64_t hash; /* findings, counters, memory, what was printed */
	bool loaded, launched, ended, found;
	uint64_t instructions;
	uint64_t reached; /* a bit for each of fuzz_families */
} fuzz_outcome;

/* Lines that must contain both words. */
typedef struct fuzz_family {
	const char *name, *word, *other;
} fuzz_family;
extern const fuzz_family fuzz_families[];
extern const unsigned fuzz_nfamily;

/* Takes out of the kernel what the emulator refuses.  show: prints why a launch failed. */
fuzz_outcome fuzz_run(fuzz_kernel *k, uint32_t threads, bool show);

#endif
