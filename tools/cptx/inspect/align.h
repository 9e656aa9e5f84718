/* SPDX-License-Identifier: MIT */
/* Aligning two sequences so that few elements are left alone. */
#ifndef CPTX_TOOL_INSPECT_ALIGN_H
#define CPTX_TOOL_INSPECT_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct align_pair {
	size_t a, b; /* SIZE_MAX: the element is on the other side only */
} align_pair;

/*
 * The elements of both in order, equal ones beside each other; *n pairs, to be freed; NULL without memory.  *rough: there
 * was too much to compare, so that some stand alone that have an equal.
 */
align_pair *align(const uint32_t *a, size_t na, const uint32_t *b, size_t nb, size_t *n, bool *rough);

#endif
