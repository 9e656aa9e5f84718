/* SPDX-License-Identifier: MIT */
/* Source lines of PTX text: a .loc names the line and the .file from which all that follows comes, up to the next function.
 */
#include "inspect/remark.h"

#include <stdlib.h>

typedef struct text {
	const char *p, *end;
} text;

static void blanks(text *t)
{
	while (t->p < t->end && (*t->p == ' ' || *t->p == '\t'))
		t->p++;
}

static bool word(text *t, const char *w)
{
	size_t n = strlen(w);

	blanks(t);
	if ((size_t)(t->end - t->p) < n || memcmp(t->p, w, n) != 0)
		return false;
	t->p += n;
	return true;
}

static uint32_t number(text *t)
{
	uint32_t v = 0;

	blanks(t);
	for (; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++)
		v = v < UINT32_MAX / 10 ? v * 10 + (uint32_t)(*t->p - '0') : UINT32_MAX;
	return v;
}

typedef struct file_list {
	const char **name;
	size_t cap;
} file_list;

enum { MOST_FILES = 1 << 16 };

/* Reads .file 1 "name". */
static bool note_file(loc_map *l, file_list *files, text t)
{
	uint32_t i = number(&t);

	if (!i || i >= MOST_FILES || !word(&t, "\""))
		return true;
	const char *end = text_find(t.p, '"', (size_t)(t.end - t.p));
	size_t had = files->cap;
	if (!end)
		return true;
	if (!arena_reserve(&l->a, &files->name, had, &files->cap, sizeof *files->name, i + 1))
		return false;
	if (files->cap > had)
		memset(files->name + had, 0, (files->cap - had) * sizeof *files->name);
	char *copy = ARENA_ARRAY(&l->a, char, (size_t)(end - t.p) + 1);
	if (!copy)
		return false;
	memcpy(copy, t.p, (size_t)(end - t.p));
	copy[end - t.p] = 0;
	files->name[i] = copy;
	return true;
}

static const char *next_line(text all, text *line)
{
	const char *end = text_find(all.p, '\n', (size_t)(all.end - all.p));

	*line = (text){ all.p, end ? end : all.end };
	return end ? end + 1 : all.end;
}

/* Collects the files first, because they may stand behind the lines that use them: nvcc puts them last. */
static bool read_files(loc_map *l, text all, file_list *files, size_t *lines)
{
	for (text line; all.p < all.end; (*lines)++) {
		all.p = next_line(all, &line);
		if (word(&line, ".file ") && !note_file(l, files, line))
			return false;
	}
	return true;
}

bool loc_read(loc_map *l, const char *ptx, size_t size)
{
	file_list files = { NULL, 0 };
	text all = { ptx, ptx + size }, line;
	cptx_site at = NOWHERE;

	arena_init(&l->a, NULL);
	l->n = 0;
	if (!read_files(l, all, &files, &l->n) || !(l->line = ARENA_ARRAY(&l->a, cptx_site, l->n + 1)))
		return false;
	for (size_t i = 0; i < l->n; i++) {
		all.p = next_line(all, &line);
		if (word(&line, ".loc ")) {
			uint32_t file = number(&line);
			at = (cptx_site){ file < files.cap ? files.name[file] : NULL, number(&line) };
		} else if (word(&line, ".visible") || word(&line, ".entry") || word(&line, ".func") || word(&line, ".weak")) {
			at = NOWHERE;
		}
		l->line[i] = at.file && at.line ? at : NOWHERE;
	}
	return true;
}

void loc_free(loc_map *l) { arena_free(&l->a); }
