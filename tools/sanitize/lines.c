/* SPDX-License-Identifier: MIT */
/*
 * From lines of PTX to lines of the program's source, by the .file and .loc directives that nvcc -lineinfo leaves in the
 * text.  The text is read when something was found in it, and not before.
 */
#include "san.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 4096 };

typedef struct lines {
	uint32_t *file, *line; /* by line of the PTX, from 0 on; file 0: unknown */
	size_t n;
	char *name[MOST_FILES];
} lines;

static void lines_free(lines *l)
{
	for (size_t i = 0; l && i < MOST_FILES; i++)
		free(l->name[i]);
	if (l) {
		free(l->file);
		free(l->line);
	}
	free(l);
}

static const char *blank(const char *p) { return p + strspn(p, " \t"); }

/* .file 1 "name"[, time, size] */
static void read_file(lines *l, const char *p)
{
	char *end;
	unsigned long i = strtoul(p, &end, 10);
	const char *from = strchr(end, '"'), *to = from ? strchr(from + 1, '"') : NULL;

	if (i && i < MOST_FILES && to && !l->name[i])
		l->name[i] = strndup(from + 1, (size_t)(to - from - 1));
}

/* Code behind a .loc is of its line until the next one; a new body begins without. */
static void read_line(lines *l, const char *p, size_t i, uint32_t now[2])
{
	char *end;

	p = blank(p);
	if (!strncmp(p, ".file", 5)) {
		read_file(l, p + 5);
	} else if (!strncmp(p, ".loc", 4) && (p[4] == ' ' || p[4] == '\t')) {
		now[0] = (uint32_t)strtoul(p + 4, &end, 10);
		now[1] = (uint32_t)strtoul(end, NULL, 10);
	} else if (*p == '}') {
		now[0] = 0;
	}
	l->file[i] = now[0] < MOST_FILES ? now[0] : 0;
	l->line[i] = now[1];
}

static lines *lines_new(const char *text)
{
	lines *l = (lines *)calloc(1, sizeof *l);
	uint32_t now[2] = { 0, 0 };

	for (const char *p = text; l && *p; p++)
		l->n += *p == '\n';
	if (!l)
		return NULL;
	l->file = (uint32_t *)calloc(l->n + 1, sizeof *l->file);
	l->line = (uint32_t *)calloc(l->n + 1, sizeof *l->line);
	if (!l->file || !l->line) {
		lines_free(l);
		return NULL;
	}
	for (size_t i = 0; i <= l->n && text; i++) {
		read_line(l, text, i, now);
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return l;
}

void san_lines_free(san_module *m)
{
	lines_free((lines *)m->lines);
	m->lines = NULL;
}

bool san_source(const char *ptx, size_t ptx_size, unsigned line, const char **file, unsigned *its_line)
{
	san_module *m = san.modules;

	while (m && (!*m->name || strlen(m->name) != ptx_size || memcmp(m->name, ptx, ptx_size)))
		m = m->next;
	if (!m || !m->text || !line)
		return false;
	if (!m->lines)
		m->lines = lines_new(m->text);
	const lines *l = (const lines *)m->lines;
	if (!l || line > l->n || !l->file[line - 1] || !l->name[l->file[line - 1]])
		return false;
	*file = l->name[l->file[line - 1]];
	*its_line = l->line[line - 1];
	return true;
}
