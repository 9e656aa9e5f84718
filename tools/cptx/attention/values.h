/* SPDX-License-Identifier: MIT */
/* Values of options that the commands of attention read alike. */
#ifndef CPTX_TOOL_ATTENTION_VALUES_H
#define CPTX_TOOL_ATTENTION_VALUES_H

#include "reference/number.h"

#include <math.h>
#include <stdlib.h>

/* A number above 0; false if the value is not that. */
static inline bool attention_number(const char *value, float *to)
{
	char *end;

	*to = strtof(value, &end);
	return *value && !*end && *to > 0 && isfinite(*to);
}

/* One from 1 to most. */
static inline bool attention_count(const char *value, uint64_t most, uint32_t *to)
{
	uint64_t n;
	const bool ok = number_dims(value, &n, 1, most);

	*to = ok ? (uint32_t)n : 0;
	return ok;
}

/* Batches (sequences), queries and keys, "16x1x8192". */
static inline bool attention_sizes(const char *value, uint32_t *batch, uint32_t *queries, uint32_t *keys)
{
	uint64_t d[3];

	if (!number_dims(value, d, 3, UINT32_MAX))
		return false;
	*batch = (uint32_t)d[0], *queries = (uint32_t)d[1], *keys = (uint32_t)d[2];
	return true;
}

#endif
