/* SPDX-License-Identifier: MIT */
#include "parse.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static bool starts_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
static bool in_name(char c) { return starts_name(c) || (c >= '0' && c <= '9'); }

/* Where the name, comment, string, number or single character at p ends. */
static const char *token_end(const char *p)
{
	const char *q;

	if (p[0] == '/' && p[1] == '/')
		return p + strcspn(p, "\n");
	if (p[0] == '/' && p[1] == '*')
		return (q = strstr(p + 2, "*/")) ? q + 2 : p + strlen(p);
	if (p[0] == '"')
		return (q = strchr(p + 1, '"')) ? q + 1 : p + strlen(p);
	if (*p == '.' || in_name(*p)) { /* .directive too */
		for (p++; in_name(*p);)
			p++;
		return p;
	}
	return p + 1;
}

typedef struct name_set {
	const char **at;
	size_t *len, n, cap;
} name_set;

static bool has_name(const name_set *s, const char *p, size_t len)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->len[i] == len && !memcmp(s->at[i], p, len))
			return true;
	return false;
}

static void *grown(void *array, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return array;
	*cap = *cap ? *cap * 2 : 64;
	void *p = realloc(array, *cap * size);
	if (!p) {
		fprintf(stderr, "bench_parse: out of memory\n");
		exit(1);
	}
	return p;
}

/* The first name of each statement outside of braces and parentheses: a variable or function. */
static void declared(name_set *s, const char *text)
{
	int depth = 0;
	bool named = false;

	for (const char *p = text, *end; *p; p = end) {
		end = token_end(p);
		depth += (*p == '{' || *p == '(') - (*p == '}' || *p == ')');
		if (!depth && (*p == ';' || *p == '}'))
			named = false;
		if (depth || named || !starts_name(*p))
			continue;
		named = true;
		if (has_name(s, p, (size_t)(end - p)))
			continue;
		size_t cap = s->cap;
		s->at = grown(s->at, s->n, &cap, sizeof *s->at);
		s->len = grown(s->len, s->n, &s->cap, sizeof *s->len);
		s->at[s->n] = p, s->len[s->n++] = (size_t)(end - p);
	}
}

static void find_names(corpus_file *f)
{
	name_set s = { 0 };
	size_t cap = 0;

	declared(&s, f->text + f->body);
	for (const char *p = f->text + f->body, *end; *p; p = end) {
		end = token_end(p);
		if (!starts_name(*p) || !has_name(&s, p, (size_t)(end - p)))
			continue;
		f->name = grown(f->name, f->nname + 1, &cap, sizeof *f->name);
		f->name[f->nname++] = (size_t)(p - f->text), f->name[f->nname++] = (size_t)(end - f->text);
	}
	free(s.at), free(s.len);
}

/* ---- files ---- */

static bool read_file(corpus_file *f, const char *path)
{
	FILE *in = fopen(path, "rb");
	long size = -1;

	if (!in)
		return false;
	if (!fseek(in, 0, SEEK_END))
		size = ftell(in);
	rewind(in);
	f->size = size > 0 ? (size_t)size : 0, f->text = malloc(f->size + 1), f->path = strdup(path);
	if (f->text && f->path)
		f->text[fread(f->text, 1, f->size, in)] = 0;
	fclose(in);
	return f->text && f->path && f->size;
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static bool fits(const char *name, const char *arch, const char *ending)
{
	char middle[64];
	size_t len = strlen(name), tail = (size_t)snprintf(middle, sizeof middle, ".%s%s", arch, ending);
	return len > tail && !strcmp(name + len - tail, middle);
}

/* Keeps a file that cptx accepts, and the highest .version of all. */
static void add(corpus *c, corpus_file *f, size_t *cap, unsigned *version)
{
	cptx_module *m = cptx_parse(f->text, f->size, &(cptx_parse_opt){ .name = f->path });
	const char *end = strstr(f->text, "\n.address_size 64");

	if (cptx_module_error(m) || !end) {
		c->left_out++;
		free(f->text), free(f->path);
	} else {
		if (cptx_module_version(m) > *version)
			*version = cptx_module_version(m);
		f->body = (size_t)(end - f->text) + strlen("\n.address_size 64");
		find_names(f);
		c->file = grown(c->file, c->n, cap, sizeof *c->file);
		c->bytes += f->size;
		c->file[c->n++] = *f;
	}
	cptx_module_destroy(m);
}

bool corpus_read(corpus *c, const char *folder, const char *arch, const char *ending)
{
	struct dirent **entry;
	char path[4096];
	size_t cap = 0;
	unsigned version = 0;
	int n = scandir(folder, &entry, NULL, by_name);

	*c = (corpus){ 0 };
	for (int i = 0; i < n; i++) {
		corpus_file f = { 0 };
		snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
		if (fits(entry[i]->d_name, arch, ending) && read_file(&f, path))
			add(c, &f, &cap, &version);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	if (!c->n)
		return fprintf(stderr, "bench_parse: no files for %s in %s\n", arch, folder), false;
	snprintf(c->head, sizeof c->head, ".version %u.%u\n.target %s\n.address_size 64\n", version / 10, version % 10, arch);
	return true;
}

char *corpus_repeat(const corpus *c, size_t size, size_t *got)
{
	size_t most = size + c->bytes * 2 + sizeof c->head, n = 0;
	char *text = malloc(most), suffix[24];

	if (!text)
		return fprintf(stderr, "bench_parse: out of memory\n"), NULL;
	memcpy(text, c->head, n = strlen(c->head));
	for (unsigned copy = 0, i = 0; n < size; i = (i + 1) % (unsigned)c->n, copy++) {
		const corpus_file *f = &c->file[i];
		size_t len = (size_t)snprintf(suffix, sizeof suffix, "_%u", copy), at = f->body;
		for (size_t k = 0; k < f->nname; k += 2) {
			memcpy(text + n, f->text + at, f->name[k + 1] - at);
			n += f->name[k + 1] - at, at = f->name[k + 1];
			memcpy(text + n, suffix, len);
			n += len;
		}
		memcpy(text + n, f->text + at, f->size - at);
		n += f->size - at;
	}
	*got = n;
	return text;
}

/* ---- file by file ---- */

void corpus_measure(const corpus *c, int rounds)
{
	double sum = 0;

	for (size_t i = 0; i < c->n; i++) {
		double best = 1e9;
		for (int r = 0; r < rounds; r++) {
			double t0 = seconds();
			cptx_module *m = cptx_parse(c->file[i].text, c->file[i].size, NULL);
			best = least(best, seconds() - t0);
			cptx_module_destroy(m);
		}
		sum += best;
	}
	printf("  %-28s %9.1f ms %8.1f MB/s, %zu files\n", "cptx parse", sum * 1e3, (double)c->bytes / sum * 1e-6, c->n);
}

void corpus_peer(const corpus *c, const char *command)
{
	FILE *to = popen(command, "w");

	for (size_t i = 0; to && i < c->n; i++)
		fprintf(to, "%s\n", c->file[i].path);
	if (!to || pclose(to))
		printf("  the peer failed: %s\n", command);
}

void corpus_free(corpus *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->file[i].path), free(c->file[i].text), free(c->file[i].name);
	free(c->file);
}
