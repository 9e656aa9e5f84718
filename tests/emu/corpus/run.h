/* SPDX-License-Identifier: MIT */
/* Runs kernels of the compiler corpus on the emulator: a row of a table for each, and what the host makes of the same
 * arguments. */
#ifndef CPTX_TEST_CORPUS_RUN_H
#define CPTX_TEST_CORPUS_RUN_H

#include <cptx/emu.h>

#include "../../test.h"
#include "run/args.h"

#include <math.h>

/*
 * Buffers by argument, as the launch finds them.  `got` is what the launch left, NULL before it: what no host can foresee
 * (an address, the order of atomics) is taken from there, once it has been looked at.
 */
typedef void corpus_fn(void **buffer, void **got);

typedef struct corpus_case {
	const char *file; /* in tests/corpus, without .sm_ARCH.VARIANT.ptx; of all archs and variants */
	const char *kernel;
	const char *shape;            /* GRID/BLOCK[/CLUSTER[/BYTES]], each as X,Y,Z; NULL: it is not run, as why says */
	const char *args;             /* as --arg of cptx run takes them, blanks between */
	corpus_fn *expect;            /* does what the kernel does; NULL: buffers stay as they are */
	corpus_fn *prepare;           /* fills buffers in another way than =iota and =rand do; may be NULL */
	double tolerance;             /* of floating point, relative, and absolute below 1; 0: the same bits */
	bool any_result;              /* what comes out is not looked at, as why says */
	enum cptx_finding_code finds; /* what is wrong with it, as why says; COUNT: it depends on the schedule what shows */
	const char *only, *except;    /* in names of files: "O0", "sm_80" */
	const char *refused;          /* in the error of a kernel that is not emulated */
	const char *why;
	bool cooperative;
	const char *first, *first_args; /* a kernel that runs before it, with those of its arguments: "0 2" */
} corpus_case;

#define ROW(file_, kernel_, shape_, args_, ...)                                                                             \
	{                                                                                                                       \
		.file = "ptx/" file_, .kernel = (kernel_), .shape = (shape_), .args = (args_), __VA_ARGS__                          \
	}
typedef struct corpus_table {
	const corpus_case *row;
	size_t n;
} corpus_table;
extern const corpus_table corpus_floats, corpus_integers, corpus_matrices, corpus_memory, corpus_whole;
#define CORPUS_TABLE(rows)                                                                                                  \
	{                                                                                                                       \
		rows, sizeof rows / sizeof *rows                                                                                    \
	}

/* Runs a row for all its files of sm_80 and later, `seeds` random schedules, an eager and a late one each; false (told) if
 * anything is not as it should be. */
bool corpus_run(const corpus_case *c, unsigned seeds); /* CPTX_SEEDS: another number of them */
/* Runs the files of a row that a GPU can run; nothing may be wrong with the kernel.  files: how many there were. */
bool corpus_run_on(cptx_device *dev, const corpus_case *c, unsigned *files);
/* Calls it for each file of NAME, "ptx/warp" or "ptx/" for all, in the corpus with its text and target; false if there is
 * none. */
typedef bool corpus_file_fn(void *user, const char *path, const char *text, size_t size, const char *target);
bool corpus_files(const char *name, corpus_file_fn *each, void *user);

#endif
