/* SPDX-License-Identifier: MIT */
/* Instructions, and the targets that have them, as expected.txt writes them. */
#ifndef TABLE_SHAPE_H
#define TABLE_SHAPE_H

#include "cases.h"

enum { HEADING = 512, SHAPED_LINE = 2 * LINE };

/* "mov.b32 %r1, {%h2, %h3};" becomes "mov.b32 %r, {%h*2}".  No kernel writes its parameters: st goes to those of a call. */
void shape_of_line(const char *line, char shape[LINE]);
/* The other way round: an instruction whose registers are all different, with a tab and a semicolon. */
void shape_to_line(const char *shape, char line[SHAPED_LINE]);
/* "PTX 8.6 sm_100a sm_103a" of the lowest version on each target; where they differ, several of these behind one another. */
void shape_heading(const uint8_t version[ARCH_TARGETS], char heading[HEADING]);

#endif
