/* SPDX-License-Identifier: MIT */
#ifndef CPTX_TOOL_CLI_PTXAS_H
#define CPTX_TOOL_CLI_PTXAS_H

/* Finding and running ptxas and the disassembler; for the command and for the tests. */
#include <stdbool.h>
#include <stddef.h>

/* Path of ptxas: $CPTX_PTXAS (this one or none), the PATH, /usr/local/cuda/bin; false if there is none. */
bool ptxas_find(char *path, size_t size);

/* Path of another tool: $VARIABLE, the PATH, /usr/local/cuda/bin. */
bool tool_find(const char *name, const char *variable, char *path, size_t size);
/* Runs a program: its exit status, -1 if it could not be run; its output in `out`. */
int tool_run(char *const argv[], char *out, size_t most);
/* Makes an empty file in $TMPDIR or /tmp, to be removed by the caller. */
bool tool_temporary(char *name, size_t size, int *fd);

typedef struct ptxas_job {
	const char *path, *target, *ptx;
	size_t size;
	const char *option; /* one more; NULL: none */
	const char *output; /* of the machine code; NULL: nowhere */
} ptxas_job;
int ptxas_job_run(const ptxas_job *job, char *out, size_t most);

/* Assembles PTX text with the ptxas at `path`: its exit status, 0 for accepted; -1 if it could not be run.  What it said is
 * in out. */
int ptxas_run(const char *path, const char *target, const char *ptx, size_t size, char *out, size_t most);

#endif
