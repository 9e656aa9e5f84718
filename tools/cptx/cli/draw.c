/* SPDX-License-Identifier: MIT */
#include "cli/draw.h"

#include <string.h>

/* Light, so that black text can be read; neighbours differ for eyes that see no red or green. */
static const char *const colours[8] = { "#9ecae1", "#fdd0a2", "#c7e9c0", "#dadaeb",
	                                    "#fee391", "#a6dbd5", "#fcc5c0", "#d9d9d9" };

static uint32_t widest(const draw_table *t)
{
	uint32_t most = 1;

	for (uint32_t r = 0; r < t->rows; r++)
		for (uint32_t c = 0; c < t->cols; c++) {
			draw_cell cell = { .colour = -1 };
			t->cell(t->user, r, c, &cell);
			if (strlen(cell.text) + 2 * cell.framed > most)
				most = (uint32_t)strlen(cell.text) + 2 * cell.framed;
		}
	return most;
}

void draw_text(FILE *out, const draw_table *t)
{
	int width = (int)widest(t);

	fprintf(out, "%5s ", "");
	for (uint32_t c = 0; c < t->cols; c++)
		fprintf(out, " %*u", width, c * t->col_step);
	fprintf(out, "   %s\n", t->col_name);
	for (uint32_t r = 0; r < t->rows; r++) {
		fprintf(out, "%5u:", r);
		for (uint32_t c = 0; c < t->cols; c++) {
			draw_cell cell = { .colour = -1 };
			char text[32];
			t->cell(t->user, r, c, &cell);
			snprintf(text, sizeof text, cell.bad ? "!%s!" : cell.framed ? "[%s]" : "%s", cell.text);
			fprintf(out, " %*s", width, text);
		}
		if (!r && t->row_name)
			fprintf(out, "   rows: %s", t->row_name);
		fputc('\n', out);
	}
}

enum { LEFT = 56, CELL_HEIGHT = 22, LINE_HEIGHT = 18, CHAR_WIDTH = 8 };

/* < and & may stand in headings. */
static void put_escaped(FILE *out, const char *s, size_t n)
{
	for (; n--; s++)
		if (*s == '<' || *s == '&')
			fputs(*s == '<' ? "&lt;" : "&amp;", out);
		else
			fputc(*s, out);
}

static void put_text(FILE *out, uint32_t x, uint32_t y, const char *anchor, const char *s, size_t n)
{
	fprintf(out, "<text x=\"%u\" y=\"%u\" text-anchor=\"%s\">", x, y, anchor);
	put_escaped(out, s, n);
	fputs("</text>\n", out);
}

static uint32_t put_heading(FILE *out, const char *heading)
{
	uint32_t y = LINE_HEIGHT;

	for (; *heading; y += LINE_HEIGHT) {
		size_t n = strcspn(heading, "\n");
		put_text(out, 8, y, "start", heading, n);
		heading += n + (heading[n] == '\n');
	}
	return y;
}

void draw_svg(FILE *out, const draw_table *t, const char *heading)
{
	uint32_t width = widest(t) * CHAR_WIDTH + 10, lines = 2, text_width = 0;

	for (const char *p = heading; *p; p += strcspn(p, "\n"), p += *p == '\n', lines++)
		if (strcspn(p, "\n") > text_width)
			text_width = (uint32_t)strcspn(p, "\n");
	uint32_t table_width = LEFT + t->cols * width, all = text_width * CHAR_WIDTH + 16;
	fprintf(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" font-family=\"monospace\" font-size=\"12\">\n",
		(table_width > all ? table_width : all) + 8, lines * LINE_HEIGHT + t->rows * CELL_HEIGHT + 8);
	fputs("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n", out);
	uint32_t top = put_heading(out, heading) + 6;
	for (uint32_t c = 0; c < t->cols; c++) {
		char number[16];
		int n = snprintf(number, sizeof number, "%u", c * t->col_step);
		put_text(out, LEFT + c * width + width / 2, top, "middle", number, (size_t)n);
	}
	for (uint32_t r = 0; r < t->rows; r++) {
		char number[16];
		int n = snprintf(number, sizeof number, "%u", r);
		uint32_t y = top + 6 + r * CELL_HEIGHT;
		put_text(out, LEFT - 6, y + 15, "end", number, (size_t)n);
		for (uint32_t c = 0; c < t->cols; c++) {
			draw_cell cell = { .colour = -1 };
			t->cell(t->user, r, c, &cell);
			fprintf(out,
			        "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%d\" fill=\"%s\" stroke=\"%s\" stroke-width=\"%s\"/>\n",
			        LEFT + c * width + 1, y + 1, width - 2, CELL_HEIGHT - 2,
			        cell.colour < 0 ? "white" : colours[cell.colour & 7],
			        cell.bad      ? "#d00000"
			        : cell.framed ? "black"
			                      : "#bbbbbb",
			        cell.framed || cell.bad ? "2" : "0.5");
			put_text(out, LEFT + c * width + width / 2, y + 15, "middle", cell.text, strlen(cell.text));
		}
	}
	fputs("</svg>\n", out);
}
