/* SPDX-License-Identifier: MIT */
/*
 * Jobs in child processes: one that loses its GPU context, crashes or hangs costs itself only.  The parent must not have
 * opened a GPU.
 */
#ifndef CPTX_TEST_JOBS_H
#define CPTX_TEST_JOBS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct jobs {
	size_t count;
	unsigned workers, seconds; /* a job may take; its process is killed behind that */
	unsigned all_seconds;      /* no job is started later than so many seconds after the first; 0: any time */
	void *user;
	void *(*open)(void *user);                       /* once in each process; NULL: no job can be run */
	bool (*run)(void *user, void *opened, size_t i); /* false: this process is of no more use */
} jobs;

/* Zeroed memory that parent and children share; NULL: there is none. */
void *jobs_memory(size_t size);
/* Runs them, each at most once.  False: processes cannot be made, or `open` fails. */
bool jobs_run(const jobs *j);

#endif
