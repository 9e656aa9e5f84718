/* SPDX-License-Identifier: MIT */
/* Tools as processes: found, started without a shell, held to a time limit.  Stands on libc alone: the tests use it too. */
#ifndef CPTX_COMPILE_PROCESS_H
#define CPTX_COMPILE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

/* Path of a tool: $VARIABLE (this one or none), bin/ of $CUDA_HOME and $CUDA_PATH, the PATH, /usr/local/cuda/bin. */
bool process_find(const char *name, const char *variable, char *path, size_t size);

typedef struct process {
	/* in */
	char *const *argv; /* argv[0]: the path */
	const int *keep;   /* descriptors that the process gets, under the same numbers */
	size_t nkeep;
	unsigned limit_ms; /* 0: none */
	/* out */
	char *said; /* both streams, NUL-terminated; malloced */
	int status; /* exit status; 128 and the number of a signal; -1: somebody else took it (SIGCHLD is ignored) */
	bool late;  /* it ran into the limit and was killed */
	bool lost;  /* not all that it said is there, for lack of memory */
} process;
/*
 * Runs it to its end, with nothing to read on its standard input.  It and all that it started are one group, which is ended
 * with it; and it ends with the thread that called this.  False with errno where it could not be started.
 */
bool process_run(process *p);

/*
 * A file without a name, with these bytes, for a process to read or write as "/proc/self/fd/N"; -1 on failure.  It is gone
 * with its last descriptor, so that a killed program leaves nothing behind.
 */
int process_file(const void *data, size_t size);
/* All bytes of such a file, malloced and NUL-terminated; NULL on failure. */
char *process_read(int fd, size_t *size);

#endif
