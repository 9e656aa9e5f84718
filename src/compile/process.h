/* SPDX-License-Identifier: MIT */
/* Tools as processes: found, started without a shell, held to a time limit.  This header needs libc only, because the tests
 * use it too. */
#ifndef CPTX_COMPILE_PROCESS_H
#define CPTX_COMPILE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the path of a tool: $VARIABLE (only that, if it is set), bin/ of $CUDA_HOME and $CUDA_PATH, the PATH,
 * /usr/local/cuda/bin. */
bool process_find(const char *name, const char *variable, char *path, size_t size);

typedef struct process {
	/* inputs */
	char *const *argv; /* argv[0]: the path */
	const int *keep;   /* descriptors that the process inherits, under the same numbers */
	size_t nkeep;
	unsigned limit_ms; /* time limit; 0: none */
	/* results */
	char *output; /* output of both streams, NUL-terminated, from malloc */
	int status;   /* exit status; 128 and the number of a signal; -1: unknown, because SIGCHLD is ignored */
	bool late;    /* the process exceeded the limit and was killed */
	bool lost;    /* part of the output was lost, for lack of memory */
} process;
/*
 * Runs a process to its end, with an empty standard input.  It and all that it starts are one group, which is killed at its
 * end, or when the calling thread ends.  False, with errno, if it could not be started.
 */
bool process_run(process *p);

/*
 * Makes a file without a name, with these bytes, which a process can read or write as "/proc/self/fd/N"; returns a
 * descriptor, -1 on failure.  The file goes with its last descriptor, so that a killed program leaves nothing behind.
 */
int process_file(const void *data, size_t size);
/* Reads all bytes of such a file into memory from malloc, NUL-terminated; NULL on failure. */
char *process_read(int fd, size_t *size);

#endif
