/* SPDX-License-Identifier: MIT */
#include "jobs.h"
#include "../../hang.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOT_OPENED = 3 /* exit status of a child */ };

void *jobs_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static bool in_time(const jobs *j, time_t start) { return !j->all_seconds || time(NULL) - start < (time_t)j->all_seconds; }

static void child(const jobs *j, atomic_size_t *next, time_t start)
{
	void *opened = j->open(j->user);

	for (size_t i; opened && in_time(j, start) && (i = atomic_fetch_add(next, 1)) < j->count;) {
		hang_after(j->seconds);
		if (!j->run(j->user, opened, i))
			_exit(1);
		hang_after(0);
	}
	/* What libraries do at exit must not hang. */
	_exit(opened ? 0 : NOT_OPENED);
}

static bool start_one(const jobs *j, atomic_size_t *next, time_t start)
{
	fflush(NULL);
	pid_t pid = fork();

	if (!pid)
		child(j, next, start);
	return pid > 0;
}

bool jobs_run(const jobs *j)
{
	atomic_size_t *next = jobs_memory(sizeof *next);
	time_t start = time(NULL);
	unsigned running = 0;
	bool ok = next != NULL;

	while (ok && running < j->workers && (ok = start_one(j, next, start)))
		running++;
	for (int status; running && wait(&status) > 0; running--) {
		ok &= !WIFEXITED(status) || WEXITSTATUS(status) != NOT_OPENED;
		if (ok && status && in_time(j, start) && atomic_load(next) < j->count && (ok = start_one(j, next, start)))
			running++;
	}
	if (next)
		munmap(next, sizeof *next);
	return ok;
}
