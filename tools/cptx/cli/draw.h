/* SPDX-License-Identifier: MIT */
/* Tables of coloured cells, as text or as SVG. */
#ifndef CPTX_TOOL_CLI_DRAW_H
#define CPTX_TOOL_CLI_DRAW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct draw_cell {
	char text[24];
	int8_t colour; /* 0 to 7; -1: white */
	bool framed, bad /* framed in red */;
} draw_cell;

typedef struct draw_table {
	uint32_t rows, cols;
	const char *row_name /* may be NULL */, *col_name;
	/* What stands in a cell. */
	void (*cell)(const void *user, uint32_t row, uint32_t col, draw_cell *out);
	const void *user;
	uint32_t col_step; /* what a column counts for in its heading */
} draw_table;

void draw_text(FILE *out, const draw_table *t);
/* `heading`: lines above the table, each ended by a newline. */
void draw_svg(FILE *out, const draw_table *t, const char *heading);

#endif
