/* SPDX-License-Identifier: MIT */
/*
 * Makes cptx.h of all public headers and cptx.c of all sources: amalgamate CPTX.H CPTX.C LICENCE INCLUDE-FOLDER... --
 * PUBLIC-HEADER...
 * -- SOURCE...
 * Headers of the project stand where they are first included, tables (.def, .inc) wherever they are, those of the system
 * stay.
 */
#include "amalgamate.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 1024, MOST_DEEP = 32 };

typedef struct amalgam {
	char **folders;
	int nfolders;
	char *seen[MOST_FILES]; /* headers */
	int nseen, deep;
	const char *skip; /* "cptx/": headers that stand in cptx.h, which cptx.c includes */
} amalgam;

void die(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	fputs("amalgamate: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	exit(1);
}

void text_put(text *t, const char *s, size_t n)
{
	if (t->n + n + 1 > t->room) {
		t->room = 2 * (t->n + n + 1);
		t->p = realloc(t->p, t->room);
		if (!t->p)
			die("out of memory");
	}
	memcpy(t->p + t->n, s, n);
	t->n += n;
	t->p[t->n] = 0;
}

void text_str(text *t, const char *s) { text_put(t, s, strlen(s)); }

static bool text_read(text *t, const char *path)
{
	char block[1 << 14];
	size_t n;
	FILE *f = fopen(path, "rb");

	if (!f)
		return false;
	*t = (text){ 0 };
	text_str(t, "");
	while ((n = fread(block, 1, sizeof block, f)) > 0)
		text_put(t, block, n);
	if (ferror(f))
		die("cannot read %s", path);
	fclose(f);
	return true;
}

/* What an #include line names, between its quotes or angles; false for other lines. */
static bool included(const char *line, const char *end, char *name, size_t room, bool *quotes)
{
	const char *p = line;
	char close;

	while (p < end && isblank((unsigned char)*p))
		p++;
	if (p >= end || *p++ != '#')
		return false;
	while (p < end && isblank((unsigned char)*p))
		p++;
	if (end - p < 7 || strncmp(p, "include", 7))
		return false;
	p += 7;
	while (p < end && isblank((unsigned char)*p))
		p++;
	if (p >= end || (*p != '"' && *p != '<'))
		return false;
	*quotes = *p == '"';
	close = *p++ == '"' ? '"' : '>';
	const char *stop = memchr(p, close, (size_t)(end - p));
	if (!stop || (size_t)(stop - p) >= room)
		return false;
	memcpy(name, p, (size_t)(stop - p));
	name[stop - p] = 0;
	return true;
}

static bool ends(const char *s, const char *with)
{
	size_t n = strlen(s), m = strlen(with);
	return n >= m && !strcmp(s + n - m, with);
}

static bool was_seen(amalgam *a, const char *name)
{
	for (int i = 0; i < a->nseen; i++)
		if (!strcmp(a->seen[i], name))
			return true;
	if (a->nseen == MOST_FILES)
		die("too many headers");
	a->seen[a->nseen] = malloc(strlen(name) + 1);
	if (!a->seen[a->nseen])
		die("out of memory");
	strcpy(a->seen[a->nseen++], name);
	return false;
}

static void expand(amalgam *a, text *own, text *headers, const text *in);

/* The text of an included file; false: it is none of the project's. */
static bool include(amalgam *a, text *own, text *headers, const char *name)
{
	char path[4096];
	text in;
	bool header = ends(name, ".h"), found = false;

	for (int i = 0; i < a->nfolders && !found; i++) {
		snprintf(path, sizeof path, "%s/%s", a->folders[i], name);
		found = text_read(&in, path);
	}
	if (!found)
		return false;
	if (++a->deep == MOST_DEEP)
		die("%s includes itself", name);
	if (!header)
		expand(a, own, headers, &in);
	else if (!(a->skip && !strncmp(name, a->skip, strlen(a->skip))) && !was_seen(a, name)) {
		text with = { 0 }; /* what it includes in turn stands in its place */
		expand(a, &with, &with, &in);
		text_str(headers, "\n/* ==== ");
		text_str(headers, name);
		text_str(headers, " ==== */\n");
		text_put(headers, with.p ? with.p : "", with.n);
		free(with.p);
	}
	a->deep--;
	free(in.p);
	return true;
}

static const char spdx[] = "/* SPDX-License-Identifier: MIT */\n";

/* Copies text line by line: own text to `own`, headers, in front of it, to `headers`. */
static void expand(amalgam *a, text *own, text *headers, const text *in)
{
	char name[256];
	bool quotes;

	for (const char *p = in->p, *end = in->p + in->n, *next; p < end; p = next) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		next = stop ? stop + 1 : end;
		if ((size_t)(next - p) == sizeof spdx - 1 && !memcmp(p, spdx, sizeof spdx - 1)) /* both files begin with one */
			continue;
		if (included(p, next, name, sizeof name, &quotes)) {
			if (include(a, own, headers, name))
				continue;
			if (quotes)
				die("no folder has \"%s\"", name);
		}
		text_put(own, p, (size_t)(next - p));
	}
}

static void save(const char *path, const text *t)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(t->p, 1, t->n, f) != t->n || fclose(f))
		die("cannot write %s", path);
}

/* "src/emu/race/race.c" is "_emu_race" behind its names. */
static void suffix_of(char *to, size_t room, const char *path)
{
	const char *at = strstr(path, "src/");
	size_t n = 0;

	for (at = at ? at + 3 : path; *at && strcmp(at, ".c") != 0 && n + 2 < room; at++)
		to[n++] = isalnum((unsigned char)*at) ? *at : '_';
	to[n] = 0;
}

static const char head[] =
	"/*\n * cptx in two files, made by tools/amalgamate: cptx.h is all public headers, cptx.c all sources.\n"
	" * Needs a compiler of C11 or C++17 (gcc or clang), POSIX, and -lm -ldl -pthread to link.\n */\n";
static const char before[] =
	"#ifndef _GNU_SOURCE\n#define _GNU_SOURCE /* POSIX, and dladdr */\n#endif\n#include \"cptx.h\"\n\n"
	"/* results of the emulator must not depend on fused multiplications and additions */\n"
	"#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n"
	"#pragma clang diagnostic ignored \"-Wunused-function\" /* inline ones of headers that only tests use */\n#elif "
	"defined(__GNUC__)\n"
	"#pragma GCC optimize(\"fp-contract=off\")\n#endif\n";

/* What it is, and under which licence. */
static void put_head(text *out, const char *licence)
{
	text in;

	if (!text_read(&in, licence))
		die("cannot read %s", licence);
	text_str(out, spdx);
	text_str(out, head);
	text_str(out, "/*\n");
	for (const char *p = in.p, *next; *p; p = next) {
		size_t n = strcspn(p, "\n");
		next = p + n + (p[n] == '\n');
		text_str(out, n ? " * " : " *");
		text_put(out, p, (size_t)(next - p));
	}
	text_str(out, " */\n");
	free(in.p);
}

static void make_header(amalgam *a, const char *path, const char *licence, char **list, int n)
{
	text out = { 0 };

	put_head(&out, licence);
	for (int i = 0; i < n; i++)
		if (!include(a, &out, &out, list[i]))
			die("there is no header %s", list[i]);
	save(path, &out);
	free(out.p);
}

static void make_source(amalgam *a, const char *path, const char *licence, char **sources, int n)
{
	text *own = calloc((size_t)n, sizeof *own), *headers = calloc((size_t)n, sizeof *headers), out = { 0 }, in;
	static names all;
	char suffix[256];

	if (!own || !headers)
		die("out of memory");
	a->skip = "cptx/";
	for (int i = 0; i < n; i++) {
		if (!text_read(&in, sources[i]))
			die("cannot read %s", sources[i]);
		expand(a, &own[i], &headers[i], &in);
		free(in.p);
		names_read(&all, &own[i], i);
		if (headers[i].p)
			names_read(&all, &headers[i], n);
	}
	put_head(&out, licence);
	text_str(&out, before);
	for (int i = 0; i < n; i++) {
		text_put(&out, headers[i].p ? headers[i].p : "", headers[i].n);
		suffix_of(suffix, sizeof suffix, sources[i]);
		text_str(&out, "\n/* ==== ");
		text_str(&out, strstr(sources[i], "src/") ? strstr(sources[i], "src/") : sources[i]);
		text_str(&out, " ==== */\n");
		rename_into(&out, &own[i], &all, i, n, suffix);
		free(own[i].p);
		free(headers[i].p);
	}
	save(path, &out);
	for (size_t i = 0; i < all.n; i++)
		free(all.v[i].s);
	free(all.v);
	free(own);
	free(headers);
	free(out.p);
}

static int upto(char **list, int n)
{
	int i = 0;

	while (i < n && strcmp(list[i], "--") != 0)
		i++;
	return i;
}

int main(int argc, char **argv)
{
	if (argc < 7)
		die("usage: amalgamate CPTX.H CPTX.C LICENCE INCLUDE-FOLDER... -- PUBLIC-HEADER... -- SOURCE...");
	amalgam a = { .folders = argv + 4 };
	a.nfolders = upto(argv + 4, argc - 4);
	char **headers = argv + 4 + a.nfolders + 1;
	int nheaders = upto(headers, argc - (int)(headers - argv));
	char **sources = headers + nheaders + 1;
	make_header(&a, argv[1], argv[3], headers, nheaders);
	make_source(&a, argv[2], argv[3], sources, argc - (int)(sources - argv));
	for (int i = 0; i < a.nseen; i++)
		free(a.seen[i]);
	return 0;
}
