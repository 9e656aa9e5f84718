/*
 * For LD_PRELOAD: allocation number $FAIL_AT (from 1 on), with $FAIL_ON all behind it too, finds no memory; then the file
 * $FAIL_SEEN is there.  Processes that are started know nothing of it.
 */
#define _GNU_SOURCE
#include "../own_malloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#if COUNTED
static struct {
	unsigned long n, at; /* 0: none fails */
	bool on;
	char seen[256];
} heap;

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("FAIL_AT"), *seen = getenv("FAIL_SEEN");
	size_t i = 0;

	for (; seen && seen[i] && i + 1 < sizeof heap.seen; i++)
		heap.seen[i] = seen[i];
	heap.on = getenv("FAIL_ON");
	unsetenv("LD_PRELOAD"), unsetenv("FAIL_AT"), unsetenv("FAIL_SEEN"), unsetenv("FAIL_ON");
	heap.n = 0, heap.at = at ? strtoul(at, NULL, 10) : 0;
}

static bool fails_now(void)
{
	if (!heap.at)
		return false;
	unsigned long n = __atomic_add_fetch(&heap.n, 1, __ATOMIC_RELAXED);
	if (n != heap.at && !(heap.on && n > heap.at))
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
