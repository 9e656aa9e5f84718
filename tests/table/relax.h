/* SPDX-License-Identifier: MIT */
/* Which of the library's rules, stricter than ptxas on purpose, a rejected instruction breaks. */
#ifndef TABLE_RELAX_H
#define TABLE_RELAX_H

#include "cases.h"

/* Words of an opcode, at dots. */
enum { MOST_WORDS = 20, WORD = 64 };
typedef struct words {
	char w[MOST_WORDS][WORD];
	unsigned n;
} words;
words words_split(const char *opcode);
void words_join(const words *o, char opcode[OPCODE]);

/* Why the library rejects on `target` what ptxas accepts; NULL if there is no reason, so that the table lacks the form. */
const char *relax_reason(const trial *t, const cptx_target *target);
/* Why this ptxas accepts, or refuses, a line where others, and the library, do not; NULL if left_out.def says nothing of it.
 */
const char *relax_by_some(const char *line, bool refused);
/* Prints how often each reason was given; the number of rows of left_out.def that never were. */
unsigned relax_report(void);

#endif
