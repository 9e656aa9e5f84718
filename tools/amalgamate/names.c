/* SPDX-License-Identifier: MIT */
/* What a file defines at file scope, found by its tokens: no preprocessor runs, and what macros make is not seen. */
#include "amalgamate.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool in_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

static size_t quoted(const char *p, const char *end)
{
	size_t n = 1;

	while (p + n < end && p[n] != *p)
		n += p[n] == '\\' ? 2 : 1;
	return n + 1;
}

static size_t blank(const char *p, const char *end, bool *line)
{
	size_t n = 0;

	if (end - p > 1 && p[0] == '/' && p[1] == '*') {
		const char *close = strstr(p + 2, "*/");
		return close ? (size_t)(close + 2 - p) : (size_t)(end - p);
	}
	if (end - p > 1 && p[0] == '/' && p[1] == '/') {
		while (p + n < end && p[n] != '\n')
			n++;
		return n;
	}
	if (end - p > 1 && p[0] == '\\' && p[1] == '\n')
		return 2;
	if (*p == '\n')
		*line = false;
	return isspace((unsigned char)*p) ? 1 : 0;
}

token token_at(const char *p, const char *end, bool *line)
{
	token t = { TOKEN_OTHER, p, 1, *line };

	if (p >= end)
		return t.kind = TOKEN_END, t.n = 0, t;
	if ((t.n = blank(p, end, line)) != 0)
		return t.kind = TOKEN_BLANK, t;
	t.n = 1;
	if (in_name(*p)) {
		while (p + t.n < end && (in_name(p[t.n]) || (isdigit((unsigned char)*p) && p[t.n] == '.')))
			t.n++;
		t.kind = isdigit((unsigned char)*p) ? TOKEN_OTHER : TOKEN_NAME;
	} else if (*p == '"' || *p == '\'') {
		t.n = quoted(p, end);
	} else if (end - p > 1 && (!strncmp(p, "->", 2) || !strncmp(p, "##", 2))) {
		t.n = 2;
	} else if (*p == '#' && !*line) {
		t.directive = *line = true;
	}
	return t;
}

token token_next(const char *p, const char *end, bool line)
{
	token t = token_at(p, end, &line);

	while (t.kind == TOKEN_BLANK) {
		p += t.n;
		t = token_at(p, end, &line);
	}
	return t;
}

static size_t *bucket_of(const names *all, const char *s, size_t n)
{
	size_t hash = 5381;

	for (size_t i = 0; i < n; i++)
		hash = hash * 33 + (unsigned char)s[i];
	return (size_t *)&all->bucket[hash % BUCKETS];
}

/* The entry of a name and file (-1: any); NULL if there is none. */
static defined *find(const names *all, const char *s, size_t n, int file)
{
	for (size_t i = *bucket_of(all, s, n); i; i = all->v[i - 1].next) {
		defined *d = &all->v[i - 1];
		if (!strncmp(d->s, s, n) && !d->s[n] && (file < 0 || d->file == file))
			return d;
	}
	return NULL;
}

/* Each file has its own entry; all that have the same name are `twice`. */
static void note(names *all, const token *t, defined is)
{
	static const char *const words[] = { "static_assert", "_Static_assert", "const", "void", "defined", "__attribute__" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (t->kind != TOKEN_NAME || token_is(t, words[i]))
			return;
	if (find(all, t->p, t->n, is.file))
		return;
	size_t *bucket = bucket_of(all, t->p, t->n);
	bool twice = find(all, t->p, t->n, -1) != NULL;
	for (size_t i = twice ? *bucket : 0; i; i = all->v[i - 1].next)
		if (!strncmp(all->v[i - 1].s, t->p, t->n) && !all->v[i - 1].s[t->n])
			all->v[i - 1].twice = true;
	if (all->n == all->room) {
		all->room = all->room ? 2 * all->room : 1024;
		all->v = realloc(all->v, all->room * sizeof *all->v);
	}
	char *s = malloc(t->n + 1);
	if (!all->v || !s)
		die("out of memory");
	memcpy(s, t->p, t->n);
	s[t->n] = 0;
	is.s = s, is.twice = twice, is.next = *bucket;
	all->v[all->n] = is;
	*bucket = ++all->n;
}

bool names_clash(const names *all, const char *s, size_t n)
{
	const defined *d = find(all, s, n, -1);
	return d && d->twice;
}

const defined *names_own(const names *all, const char *s, size_t n, int file, int headers)
{
	const defined *d = find(all, s, n, file);
	const defined *h = find(all, s, n, headers);
	return d && !d->global && !(h && d->tag && !h->tag) && !(h && d->macro && h->macro) ? d : NULL;
}

/* The reader of one file.  Declarations are walked at depth 0; what is between braces only matters for enums. */
typedef struct reader {
	names *all;
	int file, depth, parens;
	bool in_enum, named /* the declarator has its name */, is_static /* or a type */;
	token last, before; /* significant ones */
} reader;

static void restart(reader *r)
{
	r->named = r->in_enum = r->is_static = false;
	r->parens = 0;
}

/* A name in front of ( = [ ; , at depth 0 is what a declaration declares; so is x in (*x. */
static void outside(reader *r, const token *t, const token *next)
{
	bool ends = t->n == 1 && strchr("(=[;,", *t->p);

	if (t->kind == TOKEN_NAME) {
		if (token_is(t, "static") || token_is(t, "typedef"))
			restart(r), r->is_static = true;
		else if (r->parens == 1 && !r->named && *r->last.p == '*' && *r->before.p == '(')
			note(r->all, t, (defined){ .file = r->file, .global = !r->is_static }), r->named = true;
		return;
	}
	if (ends && !r->parens && !r->named && r->last.kind == TOKEN_NAME && !(*t->p == '(' && *next->p == '*')) {
		note(r->all, &r->last, (defined){ .file = r->file, .global = !r->is_static });
		r->named = *t->p != ',';
	}
	r->parens += *t->p == '(';
	r->parens -= *t->p == ')';
	if (!r->parens && *t->p == ',')
		r->named = false;
	if (!r->parens && *t->p == ';')
		restart(r);
	if (*t->p == '{') {
		bool tag = token_is(&r->before, "struct") || token_is(&r->before, "union") || token_is(&r->before, "enum");
		if (tag)
			note(r->all, &r->last, (defined){ .file = r->file, .tag = true });
		r->in_enum = token_is(&r->last, "enum") || token_is(&r->before, "enum");
	}
}

/* What macros are given between parentheses is none. */
static void enumerator(reader *r, const token *t)
{
	if (t->kind == TOKEN_NAME && !r->parens && (*r->last.p == '{' || *r->last.p == ','))
		note(r->all, t, (defined){ .file = r->file });
	r->parens += *t->p == '(';
	r->parens -= *t->p == ')';
}

static void significant(reader *r, const token *t, const token *next)
{
	if (!r->depth)
		outside(r, t, next);
	else if (r->in_enum && r->depth == 1)
		enumerator(r, t);
	if (*t->p == '{' && *r->last.p != '"') /* not extern "C", whose } does nothing */
		r->depth++;
	if (*t->p == '}' && r->depth > 0 && --r->depth == 0) {
		/* a function is over; behind a struct or an initialiser comes more, up to ; */
		if (r->named && *r->last.p != ',')
			restart(r);
		r->in_enum = false;
	}
	r->before = r->last;
	r->last = *t;
}

void names_read(names *all, const text *in, int file)
{
	static const token none = { TOKEN_END, "", 0, false };
	reader r = { .all = all, .file = file, .last = none, .before = none };
	const char *p = in->p, *end = in->p + in->n;
	bool line = false;
	token word[2] = { none, none }; /* of a directive */

	for (token t = token_at(p, end, &line); t.kind != TOKEN_END; p += t.n, t = token_at(p, end, &line)) {
		if (t.kind == TOKEN_BLANK)
			continue;
		if (!t.directive) {
			token next = token_next(p + t.n, end, line);
			significant(&r, &t, &next);
			continue;
		}
		if (token_is(&word[1], "define") && *word[0].p == '#')
			note(all, &t, (defined){ .file = file, .macro = true });
		word[0] = *t.p == '#' ? t : word[1];
		word[1] = t;
	}
}
