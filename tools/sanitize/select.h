/* SPDX-License-Identifier: MIT */
/* Which launches are recorded or replayed: those of --kernel and --launches. */
#ifndef CPTX_SANITIZE_SELECT_H
#define CPTX_SANITIZE_SELECT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct san_choice {
	const char *kernel; /* part of the name; NULL: any */
	uint64_t first, last;
} san_choice;

/* "A..B", "A.." or "A"; NULL: all.  False: it is none of these, or counts from 0. */
static inline bool san_choose_launches(const char *text, san_choice *c)
{
	char *end;

	c->first = 1, c->last = UINT64_MAX;
	if (!text)
		return true;
	if (*text < '0' || *text > '9')
		return false;
	c->first = c->last = strtoull(text, &end, 10);
	if (!strncmp(end, "..", 2)) {
		c->last = UINT64_MAX;
		text = end + 2;
		if (*text >= '0' && *text <= '9')
			c->last = strtoull(text, &end, 10);
		else
			end += 2;
	}
	return !*end && c->first && c->first <= c->last;
}

static inline bool san_chosen(const san_choice *c, uint64_t number, const char *kernel)
{
	return number >= c->first && number <= c->last && (!c->kernel || strstr(kernel, c->kernel));
}

#endif
