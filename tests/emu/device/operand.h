/* SPDX-License-Identifier: MIT */
/* Random operands that find mistakes. */
#ifndef CPTX_TEST_OPERAND_H
#define CPTX_TEST_OPERAND_H

#include <stdint.h>

enum { SLOT = 16 /* bytes of an operand in memory */ };

/* Numbers from a seed. */
typedef struct source {
	uint64_t state;
} source;
uint64_t draw(source *s);
unsigned draw_below(source *s, unsigned n);

/* One operand: special values, numbers of all sizes, and such as stand near `near`, another operand of the same type. */
void operand_fill(unsigned char to[SLOT], unsigned type, const unsigned char *near, source *random);

#endif
