/* SPDX-License-Identifier: MIT */
/* The arguments of .pragma, .attribute and .section: kept as text, and checked as ptxas does. */
#include "parse/parser.h"

#include <stdlib.h>

void parse_needs(parser *p, const char *at, enum arch_directive d)
{
	const arch_need *n = &arch_needs[d];
	const cptx_module *m = p->m;

	if (m->target->number < n->number)
		parse_error(p, at, CPTX_E_TARGET, "%s is not available on %s; it needs sm_%u or later", n->name, m->target->name,
		            n->number);
	else if (m->version < n->version)
		parse_error(p, at, CPTX_E_TARGET, "%s needs .version %u.%u; the text says %u.%u", n->name, n->version / 10u,
		            n->version % 10u, m->version / 10u, m->version % 10u);
}

bool parse_listed(parser *p, enum arch_directive d)
{
	const char *at = p->p;

	if (!parse_directive(p, arch_needs[d].name + 1))
		return false;
	parse_needs(p, at, d);
	return true;
}

/* ---- .pragma ---- */

/* Reads the number behind the name of a pragma, up to the end; false if it is none. */
static bool pragma_number(const char *s, const char *end, unsigned long long *v)
{
	char text[32], *stop;

	while (s < end && *s == ' ')
		s++;
	if (s == end || end - s >= (ptrdiff_t)sizeof text || parse_is_word[(unsigned char)*s] != 3)
		return false;
	memcpy(text, s, (size_t)(end - s));
	text[end - s] = 0;
	*v = strtoull(text, &stop, 0);
	return !*stop;
}

/* Checks a pragma.  ptxas ignores pragmas that it does not know, but not in front of all functions. */
static bool check_pragma(parser *p, const char *at, const char *s, const char *end, enum pragma_place place)
{
	static const struct {
		const char *name;
		enum arch_directive needs;
		int least; /* least value of the pragma's number; -1: the pragma has no number */
		bool kernels;
	} known[] = { { "used_bytes_mask", DIR_USED_BYTES_MASK, 0, false },
		          { "enable_smem_spilling", DIR_SMEM_SPILLING, -1, true },
		          { "frequency", DIR_FREQUENCY, 1, false } };
	unsigned long long v = 0;
	int len = (int)MIN(end - s, (ptrdiff_t)64);

	for (unsigned i = 0; i < ARRAY_LEN(known); i++) {
		size_t n = strlen(known[i].name);
		if ((size_t)(end - s) < n || memcmp(s, known[i].name, n))
			continue;
		if (place != PRAGMA_BODY)
			return parse_error(p, at, CPTX_E_PARSE, ".pragma \"%s\" belongs into the body of a function", known[i].name);
		parse_needs(p, at, known[i].needs);
		if (known[i].kernels && p->k->is_func)
			return parse_error(p, at, CPTX_E_PARSE, ".pragma \"%s\" is for kernels", known[i].name);
		if (known[i].least >= 0 && (!pragma_number(s + n, end, &v) || v < (unsigned)known[i].least))
			return parse_error(p, at, CPTX_E_PARSE, "'%.*s': behind %s stands a number%s", len, s, known[i].name,
			                   known[i].least ? " from 1 on" : "");
		return true;
	}
	bool unroll = end - s == 8 && !memcmp(s, "nounroll", 8);
	return place != PRAGMA_MODULE || unroll ||
	       parse_error(p, at, CPTX_E_PARSE, "'%.*s' is no pragma of a module; \"nounroll\" is", len, s);
}

bool parse_pragma(parser *p, enum pragma_place place)
{
	do {
		const char *at = p->p;
		if (!parse_string(p) || !check_pragma(p, at, at + 1, p->stop - 1, place))
			return false;
	} while (parse_take(p, ','));
	return parse_expect(p, ';', "behind .pragma");
}

/* ---- .attribute(.managed, .unified(uuid1, uuid2)) ---- */

static bool read_uuid(parser *p)
{
	uint64_t v;
	return parse_natural(p, 0, UINT64_MAX, &v, "half of the identifier in .unified(uuid1, uuid2)");
}

const char *parse_attributes(parser *p, bool variable)
{
	if (!parse_expect(p, '(', "behind .attribute"))
		return NULL;
	const char *from = p->p, *to;
	do {
		if (variable && parse_listed(p, DIR_MANAGED))
			continue;
		const char *at = p->p;
		bool unified = parse_listed(p, DIR_UNIFIED);
		if (!unified)
			parse_error(p, at, CPTX_E_PARSE,
			            variable ? "the attributes of variables are .managed and .unified(uuid1, uuid2)"
			                     : "the attribute of a function is .unified(uuid1, uuid2)");
		if (!unified || !parse_expect(p, '(', "behind .unified") || !read_uuid(p) ||
		    !parse_expect(p, ',', "between the numbers of .unified") || !read_uuid(p) ||
		    !parse_expect(p, ')', "behind the numbers of .unified"))
			return NULL;
	} while (variable && parse_take(p, ','));
	to = p->stop;
	return parse_expect(p, ')', "behind the attributes") ? parse_collapse(p, from, to) : NULL;
}

/* ---- .section .debug_info { label: .b8 1, 2  .b64 label + 4  .b32 .debug_str } ---- */

static bool read_section_name(parser *p)
{
	word w;

	if (*p->p != '.' || parse_is_word[(unsigned char)p->p[1]] != 1)
		return parse_error(p, p->p, CPTX_E_PARSE, "expected the name of a section, such as .debug_str");
	p->p++;
	return parse_word(p, &w);
}

/* Reads a value of debug information: a section or label, which may have an offset, or the difference of two labels. */
static bool read_place(parser *p, unsigned bits)
{
	const char *at = p->p;
	char found[24];
	word w;
	bool section = *at == '.';
	uint64_t v;

	if (section ? !read_section_name(p) : !parse_word(p, &w))
		return section ? false
		               : parse_error(p, at, CPTX_E_PARSE, "expected numbers or a label, found %s", parse_found(p, found));
	if (bits < 32)
		return parse_error(p, at, CPTX_E_PARSE, "a place has .b32 or .b64, not .b%u", bits);
	if (parse_take(p, '+'))
		return parse_natural(p, 0, INT64_MAX, &v, "an offset");
	at = p->p;
	if (section || !parse_take(p, '-'))
		return true;
	parse_needs(p, at, DIR_SECTION_DIFFERENCE);
	return parse_word(p, &w) || parse_error(p, at, CPTX_E_PARSE, "expected a label behind -: the difference of two");
}

/* Reads a number.  ptxas truncates wider numbers, but only of .b32 and .b64. */
static bool read_section_number(parser *p, unsigned bits)
{
	uint64_t most = bits >= 32 ? UINT64_MAX : ((uint64_t)1 << bits) - 1, v;
	const char *at = p->p;

	if (parse_take(p, '-')) {
		parse_needs(p, at, DIR_SECTION_NEGATIVE);
		most = most / 2 + 1;
	}
	return parse_natural(p, 0, most, &v, "what a section holds");
}

static bool read_section_data(parser *p)
{
	static const uint8_t widths[] = { 8, 16, 32, 64 };
	static const char *const names[] = { "b8", "b16", "b32", "b64" };
	const char *at = p->p;
	char found[24];
	word w;

	for (unsigned i = 0; i < ARRAY_LEN(widths); i++) {
		if (!parse_directive(p, names[i]))
			continue;
		if (*p->p != '-' && parse_is_word[(unsigned char)*p->p] != 3)
			return read_place(p, widths[i]);
		do {
			if (!read_section_number(p, widths[i]))
				return false;
		} while (parse_take(p, ','));
		return true;
	}
	if (parse_word(p, &w)) {
		parse_needs(p, at, DIR_SECTION_LABEL);
		return parse_expect(p, ':', "behind a label in a section");
	}
	return parse_error(p, at, CPTX_E_PARSE, "expected .b8, .b16, .b32, .b64 or a label in the section, found %s",
	                   parse_found(p, found));
}

bool parse_section(parser *p)
{
	parse_flush_comments(p);
	if (!read_section_name(p) || !parse_expect(p, '{', "behind the name of the section"))
		return false;
	while (*p->p != '}' && p->p < p->end)
		if (!read_section_data(p))
			return false;
	if (!parse_take(p, '}'))
		return parse_error(p, p->start, CPTX_E_PARSE, "this section is never closed; a } is missing");
	p->has_section = true;
	return true;
}
