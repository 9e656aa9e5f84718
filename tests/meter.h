/* SPDX-License-Identifier: MIT */
/* An allocator that counts what is live, and fails at the n-th request. */
#ifndef METER_H
#define METER_H

#include <stdbool.h>
#include <stdlib.h>

typedef struct meter {
	unsigned long requests, fail_at; /* fail_at: number of the request that fails, and all after it if `forever`; 0: none */
	long live;
	bool forever;
} meter;

static void *metered(void *user, void *old, size_t size)
{
	meter *a = user;

	if (!size) {
		a->live -= old != NULL;
		free(old);
		return NULL;
	}
	a->requests++;
	if (a->fail_at && (a->forever ? a->requests >= a->fail_at : a->requests == a->fail_at))
		return NULL;
	void *p = realloc(old, size);
	a->live += !old && p;
	return p;
}

#endif
