/* SPDX-License-Identifier: MIT */
/* The edit distance of two words; the command compiles this file too. */
#include "base/base.h"

unsigned text_distance(const char *a, const char *b)
{
	enum { MOST = 40 };
	unsigned row[MOST + 1];
	size_t n = strlen(b);

	if (strlen(a) > MOST || n > MOST)
		return MOST;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned diagonal = row[0];
		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned here = MIN(MIN(row[j], row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = row[j];
			row[j] = here;
		}
	}
	return row[n];
}
