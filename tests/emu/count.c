/* SPDX-License-Identifier: MIT */
#include "count.h"

#include <stdbool.h>
#include <stddef.h>

static unsigned long requests, fail_at;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

unsigned long count_requests(void) { return __atomic_load_n(&requests, __ATOMIC_RELAXED); }

void count_fail_at(unsigned long n)
{
	fail_at = n;
	__atomic_store_n(&requests, 0, __ATOMIC_RELAXED);
}

static bool may(void)
{
	unsigned long n = __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED);

	return !fail_at || n < fail_at;
}

void *__wrap_malloc(size_t size) { return may() ? __real_malloc(size) : NULL; }
void *__wrap_calloc(size_t n, size_t size) { return may() ? __real_calloc(n, size) : NULL; }
void *__wrap_realloc(void *p, size_t size) { return may() ? __real_realloc(p, size) : NULL; }
