/* SPDX-License-Identifier: MIT */
/* The text: blanks, comments, names, and messages about a place. */
#include "parse/parser.h"

#include <stdio.h>

/* clang-format off */
/* A table by byte: 3 for digits, 1 for other characters of names. */
#define NAME_BYTES(dot) \
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
	0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, dot, 0, /* $ % . */ \
	3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0, 0, 0, 0, 0, 0, /* 0 to 9 */ \
	0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* A to O */ \
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, /* P to Z, _ */ \
	0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* a to o */ \
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0  /* p to z */
/* clang-format on */
const unsigned char parse_is_word[256] = { NAME_BYTES(0) };
const unsigned char parse_is_dotted[256] = { NAME_BYTES(1) };

bool parse_ascii(parser *p, const char *from, const char *to)
{
	for (; from < to; from++)
		if (*from & 0x80 || !*from)
			return parse_error(p, from, CPTX_E_PARSE, "%s 0x%02x: PTX is ASCII text, in comments and strings too",
			                   *from ? "byte" : "a NUL byte,", (unsigned char)*from);
	return true;
}

static void note_comment(parser *p, const char *at, size_t len, uint32_t line)
{
	parse_ascii(p, at, at + len);
	if (p->ncomment == p->cap_comment) {
		size_t want = p->cap_comment ? 2 * p->cap_comment : 16;
		comment *grown = HEAP_ARRAY(&p->m->a.hook, comment, p->comments, want);
		if (!grown) {
			parse_out_of_memory(p);
			return;
		}
		p->comments = grown;
		p->cap_comment = want;
	}
	p->comments[p->ncomment++] = (comment){ at, len, line };
}

/*
 * The end of a line that a preprocessor leaves: # 12 "file" 1 3, or #line 12 "file".  NULL: ptxas would not see it as one.
 * Lines are still counted in the text itself, because the user has that at hand.
 */
static const char *marker_end(const char *s)
{
	s += 1 + strspn(s + 1, " \t");
	if (!strncmp(s, "line", 4))
		s += 4 + strspn(s + 4, " \t");
	size_t digits = strspn(s, "0123456789");
	s += digits + strspn(s + digits, " \t");
	if (!digits || *s != '"')
		return NULL;
	s += 1 + strcspn(s + 1, "\"\n");
	if (*s != '"')
		return NULL;
	s++;
	s += strspn(s, " \t0123456789\r");
	return *s == '\n' ? s : NULL;
}

void parse_skip(parser *p)
{
	const char *s = p->p, *marker;

	for (;; s++) {
		if (*s == '\n') {
			p->line++;
			p->line_start = s + 1;
		} else if (*s == '/' && s[1] == '/') {
			const char *from = s;
			while (s < p->end && *s != '\n')
				s++;
			note_comment(p, from, (size_t)(s - from), p->line);
			s--;
		} else if (*s == '/' && s[1] == '*') {
			const char *from = s;
			uint32_t line = p->line;
			for (s += 2; s < p->end && !(*s == '*' && s[1] == '/'); s++)
				if (*s == '\n') {
					p->line++;
					p->line_start = s + 1;
				}
			if (s >= p->end) {
				parse_error(p, from, CPTX_E_PARSE, "this comment never ends; close it with */");
				p->p = p->end;
				return;
			}
			s++;
			note_comment(p, from, (size_t)(s + 1 - from), line);
		} else if (*s == '#' && (marker = marker_end(s))) {
			s = marker - 1;
		} else if (*s != ' ' && (*s < '\t' || *s > '\r')) {
			break;
		}
	}
	p->p = s;
}

word parse_word_of(const char *s, size_t len)
{
	word w = { s, (uint32_t)len, TABLE_HASH, 0, TABLE_HASH, NULL };

	for (size_t i = 0; i < len; i++) {
		w.hash = table_hash_char(w.hash, s[i]);
		if (parse_is_word[(unsigned char)s[i]] != 3)
			w.stem = (uint32_t)i + 1, w.stem_hash = w.hash;
	}
	return w;
}

bool parse_word(parser *p, word *w)
{
	const char *s = p->p;
	uint32_t hash = TABLE_HASH, stem_hash = hash;
	unsigned char c = parse_is_word[(unsigned char)*s];

	if (c != 1)
		return false;
	const char *stem = s;
	do {
		hash = table_hash_char(hash, *s++);
		if (c == 1)
			stem = s, stem_hash = hash;
		c = parse_is_word[(unsigned char)*s];
	} while (c);
	*w = (word){ p->p, (uint32_t)(s - p->p), hash, (uint32_t)(stem - p->p), stem_hash, p->p };
	p->stop = p->p = s;
	parse_blanks(p);
	return true;
}

bool parse_directive(parser *p, const char *name)
{
	size_t n = 0;

	if (*p->p != '.')
		return false;
	while (name[n] && p->p[1 + n] == name[n]) /* most names differ in the first character */
		n++;
	if (name[n] || parse_is_word[(unsigned char)p->p[1 + n]])
		return false;
	if (p->p[1 + n] == ':' && p->p[2 + n] == ':') /* .shared must not match the beginning of .shared::cta */
		return false;
	p->stop = p->p += 1 + n;
	parse_blanks(p);
	return true;
}

/* ---- messages ---- */

const char *parse_found(const parser *p, char text[24])
{
	if (p->p >= p->end)
		return "the end of the file";
	if (!*p->p)
		return "a NUL byte";
	if ((unsigned char)*p->p < ' ' || (unsigned char)*p->p > '~')
		snprintf(text, 24, "byte 0x%02x", (unsigned char)*p->p);
	else
		snprintf(text, 24, "'%c'", *p->p);
	return text;
}

bool parse_out_of_memory(parser *p)
{
	p->no_memory = true;
	p->p = p->end; /* read nothing more */
	return ir_no_memory(p->m, NOWHERE);
}

bool parse_error(parser *p, const char *at, enum cptx_code code, const char *format, ...)
{
	cptx_error err = { .code = code, .line = p->line };
	const char *start = p->line_start;
	va_list ap;

	if (p->no_memory || p->nerror++ >= p->most_errors)
		return false;
	if (at < start) { /* the place is on an earlier line of the statement */
		for (const char *s = at; s < p->line_start; s++)
			err.line -= *s == '\n';
		for (start = at; start > p->begin && start[-1] != '\n'; start--)
			;
	}
	err.column = (uint32_t)(at - start) + 1;
	snprintf(err.file, sizeof err.file, "%s", p->file);
	int n = snprintf(err.text, sizeof err.text, "%s:%u:%u: error: ", err.file, (unsigned)err.line, (unsigned)err.column);
	va_start(ap, format);
	text_message(err.text + n, sizeof err.text - (size_t)n, format, ap);
	error_clean(&err);
	va_end(ap);
	if (p->m->err.code == CPTX_OK)
		p->m->err = err;
	if (p->report)
		p->report(p->user, &err);
	if (p->nerror == p->most_errors)
		p->p = p->end;
	return false;
}

bool parse_expect(parser *p, char c, const char *where)
{
	char found[24];
	return parse_take(p, c) ||
	       parse_error(p, p->p, CPTX_E_PARSE, "expected '%c' %s, found %s", c, where, parse_found(p, found));
}

cptx_site parse_site(const parser *p) { return (cptx_site){ p->file, p->start_line }; }

/* ---- text kept as it stands ---- */

const char *parse_collapse(parser *p, const char *from, const char *to)
{
	char *copy = ARENA_ARRAY(&p->m->a, char, (size_t)(to - from) + 1), *out = copy;
	bool quoted = false;

	if (!copy) {
		parse_out_of_memory(p);
		return NULL;
	}
	for (const char *s = from; s < to;) {
		if (*s == '"')
			quoted = !quoted;
		bool comment_line = !quoted && *s == '/' && s + 1 < to && s[1] == '/';
		bool comment_block = !quoted && *s == '/' && s + 1 < to && s[1] == '*';
		const char *marker = !quoted && *s == '#' ? marker_end(s) : NULL;
		if (marker) {
			s = marker;
		} else if (comment_line) {
			while (s < to && *s != '\n')
				s++;
		} else if (comment_block) {
			for (s += 2; s < to && !(*s == '*' && s[1] == '/'); s++)
				;
			s += 2;
		} else if (quoted || *(const unsigned char *)s > ' ') {
			*out++ = *s++;
			continue;
		} else {
			s++;
		}
		if (out > copy && out[-1] != ' ')
			*out++ = ' ';
	}
	while (out > copy && out[-1] == ' ')
		out--;
	*out = 0;
	return copy;
}
