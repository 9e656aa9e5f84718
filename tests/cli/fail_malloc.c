/* SPDX-License-Identifier: MIT */
/*
 * For LD_PRELOAD, with CPTX_TEST_FAIL=N:FILE: allocation N, from 1 on, finds no memory; with N+:FILE all behind it neither.
 * Then FILE is there.  With 0:FILE none fails, and FILE holds how many there were, an unsigned long.  Processes that are
 * started know nothing of it; those of a fork count on, each for itself, and FILE has the most.
 */
#define _GNU_SOURCE
#include "../own_malloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#if COUNTED
static struct {
	unsigned long n, at; /* 0: none fails */
	unsigned long *most; /* with 0:FILE, in FILE: however the process ends, or another program takes its place */
	bool on;
	char seen[256];
} heap;

static unsigned long *counter_in(const char *path)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
	void *at = fd < 0 || ftruncate(fd, sizeof *heap.most) ? MAP_FAILED
	                                                      : mmap(NULL, sizeof *heap.most, PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

__attribute__((constructor)) static void begin(void)
{
	const char *asked = getenv("CPTX_TEST_FAIL");
	char *end;

	if (!asked)
		return;
	unsigned long at = strtoul(asked, &end, 10);
	heap.on = *end == '+';
	for (size_t i = 0, from = heap.on ? 2 : 1; *end && end[from + i] && i + 1 < sizeof heap.seen; i++)
		heap.seen[i] = end[from + i];
	unsetenv("LD_PRELOAD"), unsetenv("CPTX_TEST_FAIL");
	heap.n = 0, heap.at = at, heap.most = at ? NULL : counter_in(heap.seen);
}

static bool fails_now(void)
{
	unsigned long n = __atomic_add_fetch(&heap.n, 1, __ATOMIC_RELAXED);
	if (heap.most && n > *heap.most)
		*heap.most = n;
	if (!heap.at || (n != heap.at && !(heap.on && n > heap.at)))
		return false;
	if (n == heap.at)
		close(open(heap.seen, O_CREAT | O_WRONLY, 0600));
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size) { return fails_now() ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails_now() ? NULL : __libc_calloc(n, size); }
void *realloc(void *old, size_t size) { return fails_now() ? NULL : __libc_realloc(old, size); }
#endif
