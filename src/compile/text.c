/* SPDX-License-Identifier: MIT */
#include "compile/text.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%';
}

const char *text_skip_blank(const char *s)
{
	for (;;) {
		s += strspn(s, " \t\r\n\f\v");
		if (s[0] == '/' && s[1] == '/') {
			s += strcspn(s, "\n");
		} else if (s[0] == '/' && s[1] == '*') {
			const char *end = strstr(s + 2, "*/");
			s = end ? end + 2 : s + strlen(s);
		} else {
			return s;
		}
	}
}

const char *text_skip_token(const char *s)
{
	if (*s == '"') {
		s += 1 + strcspn(s + 1, "\"\n");
		return *s ? s + 1 : s;
	}
	if (*s != '.' && !is_word(*s))
		return *s ? s + 1 : s;
	while (*s == '.' || is_word(*s))
		s++;
	return s;
}

bool text_token_is(const char *s, const char *end, const char *what)
{
	return (size_t)(end - s) == strlen(what) && !memcmp(s, what, (size_t)(end - s));
}

unsigned ptx_header(const char *text, const char **target, size_t *target_len)
{
	unsigned version = 0;
	const char *end;

	*target = NULL;
	*target_len = 0;
	for (const char *s = text_skip_blank(text); *s; s = text_skip_blank(end)) {
		end = text_skip_token(s);
		if (text_token_is(s, end, ".version")) {
			char *dot;
			version = (unsigned)strtoul(text_skip_blank(end), &dot, 10) * 10;
			version += *dot == '.' ? (unsigned)strtoul(dot + 1, NULL, 10) : 0;
		} else if (text_token_is(s, end, ".target")) {
			*target = text_skip_blank(end);
			*target_len = (size_t)(text_skip_token(*target) - *target);
			break;
		}
	}
	return version;
}

/* ---- the compiler's log ---- */

static const char *text_line(const char *text, unsigned line, size_t *len)
{
	for (; text && line > 1; line--) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	*len = text ? strcspn(text, "\r\n") : 0;
	return text;
}

bool text_links_as_it_compiles(const char *text)
{
	static const char dynamic[] = ".extern .shared .align ";

	for (const char *at = text; (at = strstr(at, dynamic));) {
		at += strlen(dynamic);
		if (strtoul(at, NULL, 10) > 16)
			return false;
	}
	return !strstr(text, "setmaxnreg");
}

unsigned log_line(const char *s, size_t n, size_t *behind)
{
	static const char words[] = ", line ";
	unsigned found = 0;

	for (size_t i = 0; i + sizeof words <= n; i++) {
		unsigned v = 0;
		size_t j = i + sizeof words - 1;
		if (memcmp(s + i, words, sizeof words - 1))
			continue;
		for (; j < n && s[j] >= '0' && s[j] <= '9'; j++)
			v = v * 10 + (unsigned)(s[j] - '0');
		if (v && j + 1 < n && s[j] == ';' && s[j + 1] == ' ')
			found = v, *behind = j + 2;
	}
	return found;
}

static bool begins(const char *line, const char *what)
{
	line += strspn(line, " \t");
	return !strncmp(line, what, strlen(what)) && strchr(" \t", line[strlen(what)]);
}

/* Finds the name behind `.file number "name"` anywhere in the text. */
static bool file_named(const char *text, unsigned long number, char *name, size_t size)
{
	for (const char *s = text; s; s = strchr(s, '\n')) {
		s += *s == '\n';
		char *end;
		if (!begins(s, ".file") || strtoul(strstr(s, ".file") + 5, &end, 10) != number)
			continue;
		end += strspn(end, " \t");
		if (*end != '"')
			continue;
		snprintf(name, size, "%.*s", (int)strcspn(end + 1, "\"\n"), end + 1);
		return true;
	}
	return false;
}

/* The user's line of an instruction: that of the last .loc in front of it in the same body. */
static cptx_site loc_of(log_source *from, const char *at)
{
	const char *loc = NULL;

	for (const char *s = from->text; s && s < at; s = strchr(s, '\n')) {
		s += *s == '\n';
		if (begins(s, ".loc"))
			loc = s;
		else if (*s == '}')
			loc = NULL;
	}
	if (!loc)
		return NOWHERE;
	char *end;
	unsigned long file = strtoul(strstr(loc, ".loc") + 4, &end, 10), line = strtoul(end, NULL, 10);
	if (!line || !file_named(from->text, file, from->file, sizeof from->file))
		return NOWHERE;
	return (cptx_site){ from->file, (uint32_t)line };
}

static cptx_site origin(log_source *from, unsigned line, const char *at)
{
	cptx_site s = from->ptx ? cptx_ptx_origin(from->ptx, line) : NOWHERE;
	return s.file ? s : loc_of(from, at);
}

cptx_site log_explain(buf *b, const char *log, log_source *from)
{
	cptx_site first = NOWHERE;

	for (size_t n; *log; log += n + (log[n] != 0)) {
		n = strcspn(log, "\n");
		if (!n)
			continue;
		buf_printf(b, "\n    %.*s", (int)n, log);
		size_t len = 0, behind;
		unsigned line = log_line(log, n, &behind);
		const char *src = line ? text_line(from->text, line, &len) : NULL;
		if (!src)
			continue;
		cptx_site user = origin(from, line, src);
		src += strspn(src, " \t"), len = strcspn(src, "\r\n");
		if (user.file)
			buf_printf(b, "\n        from %s:%u: %.*s", user.file, (unsigned)user.line, (int)len, src);
		else
			buf_printf(b, "\n        which is: %.*s", (int)len, src);
		if (!first.file)
			first = user;
	}
	return first;
}
