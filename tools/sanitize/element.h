/* SPDX-License-Identifier: MIT */
/* What memory holds, for comparisons that allow a tolerance. */
#ifndef CPTX_SANITIZE_ELEMENT_H
#define CPTX_SANITIZE_ELEMENT_H

#include <stdbool.h>

typedef struct san_element {
	const char *name;
	unsigned bytes;
	double (*value)(const unsigned char *p);
} san_element;

const san_element *san_element_named(const char *name); /* f16, bf16, f32 or f64; NULL: none of them */
/* Whether two values differ by at most the tolerance times the larger one, or 1.  Infinities and NaN are near themselves
 * alone. */
bool san_near(const san_element *e, double tolerance, const unsigned char *a, const unsigned char *b);

#endif
