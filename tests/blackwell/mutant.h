/* SPDX-License-Identifier: MIT */
/* A kernel with one thing missing: a fence, a wait, a commit, an arrival, a barrier. */
#ifndef TEST_MUTANT_H
#define TEST_MUTANT_H

#include <cptx/emu.h>

/* Kinds that the rungs have, the generators, and all. */
enum { MUTANT_OF_RUNGS = 14, MUTANT_OF_GENERATORS = 15, MUTANT_KINDS = 20 };
/* How that begins which is taken out. */
extern const char *const mutant_kinds[MUTANT_KINDS];

typedef struct mutant {
	unsigned kind, nth; /* nth: of that spelling, from the kernel's start on */
	bool other;         /* of arrive.expect_tx only the bytes; of barrier.cluster.arrive the wait too */
	bool whole;         /* nothing is taken out */
	char what[64];      /* the whole spelling */
	const char *kernel; /* of the module; NULL: the only one */
} mutant;

/* Takes it out of the kernel.  False: there is no such instruction. */
bool mutant_make(cptx_module *m, const mutant *x);
/* What a run on the emulator showed: the name of the first finding, "wrong", or "".  Closes the device and frees the module;
 * fails the test where a run failed without a finding. */
const char *mutant_verdict(cptx_device *dev, cptx_module *m, bool ok, bool wrong, const cptx_error *err);
/* What need not be there, with the reason; who: words, the names of those of which this holds. */
typedef struct spared {
	const char *who, *spelling;
	unsigned nth;
	const char *why;
} spared;

/* Of the fences around the last barrier. */
#define MUTANT_FREED                                                                                                        \
	"all that used tensor memory is waited for in front of that barrier: nothing is left for tcgen05.dealloc to pass"

/* Whose mutants are tried. */
typedef struct mutant_subject {
	const char *name;
	cptx_module *(*build)(const void *user);
	/* Builds it, mutates it and runs it in an order of asynchronous work that the seed says; what is found, or "" */
	const char *(*run)(const void *user, const mutant *x, unsigned seed);
	const void *user;
	const spared *spared;
	size_t spares;
	unsigned seeds;     /* 1 to this; of the spared 3 at most */
	unsigned sample;    /* 0: all mutants, and the kernel as it is; else one of those that are not spared, chosen by this */
	const char *kernel; /* as of mutant */
} mutant_subject;

/* Tries them; prints a line about all, and one about each that is found or not against the list of the spared.  Gives the
 * number of these; of_kind: how many there are is added. */
unsigned mutants_try(const mutant_subject *s, unsigned of_kind[MUTANT_KINDS]);

#endif
