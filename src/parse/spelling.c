/* SPDX-License-Identifier: MIT */
/* Spellings: the forms of each, found once and remembered; and the description of what is wrong with one that no form has.
 */
#include "parse/insn.h"
#include "parse/near.h"

#include <stdio.h>

/* Notes what kinds of operands a form has that text writes like other kinds. */
static void note_operands(const arch_form *f, spelled *s)
{
	for (unsigned i = 0; i < f->noperand; i++) {
		unsigned kind = arch_operands[f->operand + i].kind;
		s->takes_label |= kind == OPERAND_LABEL || kind == OPERAND_TARGETS || kind == OPERAND_PROTO;
		s->takes_list |= kind == OPERAND_LIST;
	}
}

static bool find_forms(parser *p, spelled *s)
{
	uint16_t mods[ARCH_GROUPS];
	unsigned count;
	const uint16_t *forms = arch_forms_of(s->text, s->len, &count);

	s->form = count ? ARENA_ARRAY(&p->forms, spelled_form, count) : NULL;
	if (count && !s->form)
		return parse_out_of_memory(p);
	for (unsigned i = 0; i < 2 * count; i++) {
		unsigned form = forms[i % count];
		if (i == count && s->nform)
			break;
		if (i < count ? !parse_opcode(form, s->text, s->len, mods) : !parse_opcode_any(form, s->text, s->len, mods))
			continue;
		s->form[s->nform].form = (uint16_t)form;
		memcpy(s->form[s->nform++].mods, mods, sizeof mods);
		note_operands(&arch_forms[form], s);
	}
	return true;
}

/* ---- found again: 8 bytes of the text at a time ---- */

static inline uint64_t bytes_at(const char *text)
{
	uint64_t bytes;

	memcpy(&bytes, text, sizeof bytes);
	return bytes;
}

/* The lowest `bits` bits of 8 bytes, fewer than 64. */
static inline uint64_t first_bits(uint64_t bytes, unsigned bits) { return bytes & ((UINT64_C(1) << bits) - 1); }

static inline uint64_t mix(uint64_t hash, uint64_t bytes)
{
	hash = (hash ^ bytes) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}

/* Finds the spelling with text[0 .. len) and that hash; `rest` has its last bytes, fewer than 8 and maybe none. */
static inline spelled *look_up(const parser *p, const char *text, size_t len, uint64_t rest, uint64_t hash)
{
	for (spelled *s = p->spelled[hash % SPELLED_SLOTS]; s; s = s->next) {
		size_t i = 0;
		if (s->len != len)
			continue;
		while (i + 8 <= len && bytes_at(s->text + i) == bytes_at(text + i))
			i += 8;
		if (i + 8 > len && bytes_at(s->text + i) == rest) /* zeros stand behind the text of a spelling */
			return s;
	}
	return NULL;
}

/* A mask whose lowest set bit is the highest bit of the first byte that is a blank, a control character or a semicolon. */
static inline uint64_t ends_in(uint64_t bytes)
{
	const uint64_t each = UINT64_MAX / 255; /* times a byte: eight copies of that byte */
	uint64_t semicolons = bytes ^ each * ';';

	return (((bytes - each * (' ' + 1)) & ~bytes) | ((semicolons - each) & ~semicolons)) & each * 0x80;
}

spelled *parse_known(parser *p)
{
	const char *s = p->p;
	uint64_t hash = 0, bytes = bytes_at(s), ends;

	for (; !(ends = ends_in(bytes)); bytes = bytes_at(s)) {
		hash = mix(hash, bytes);
		s += sizeof bytes;
	}
	unsigned bits = (unsigned)__builtin_ctzll(ends) & ~7u;
	uint64_t rest = first_bits(bytes, bits);
	s += bits / 8;
	const char *next = s + (*s == ' ');
	next += *next == '\t';
	/* rare cases are left to the slow path: comments, a dot or colon behind a blank */
	if (*next <= ' ' || *next == '.' || *next == ':' || *next == '/' || *next == '#')
		return NULL;
	spelled *known = look_up(p, p->p, (size_t)(s - p->p), rest, mix(hash, rest));
	if (known) {
		p->stop = s;
		p->p = next;
	}
	return known;
}

static spelled *new_spelled(parser *p, spelled **slot, const char *text, size_t len)
{
	spelled *s = ARENA_NEW(&p->spellings, spelled);
	char *copy = s ? ARENA_ZEROED(&p->spellings, char, len + SPELLING_BEHIND) : NULL;

	if (!copy) {
		parse_out_of_memory(p);
		return NULL;
	}
	memcpy(copy, text, len);
	s->text = copy;
	s->len = (uint32_t)len;
	if (!find_forms(p, s))
		return NULL;
	s->next = *slot;
	*slot = s;
	return s;
}

spelled *parse_spelled(parser *p, const char *text, size_t len)
{
	uint64_t hash = 0, rest;
	size_t i = 0;

	for (; i + 8 <= len; i += 8)
		hash = mix(hash, bytes_at(text + i));
	rest = first_bits(bytes_at(text + i), 8 * (unsigned)(len - i));
	hash = mix(hash, rest);
	spelled *s = look_up(p, text, len, rest, hash);
	return s ? s : new_spelled(p, &p->spelled[hash % SPELLED_SLOTS], text, len);
}

/* ---- what is wrong ---- */

static bool is_spelling(const char *text, size_t len)
{
	uint16_t mods[ARCH_GROUPS];
	unsigned count;
	const uint16_t *forms = arch_forms_of(text, len, &count);

	for (unsigned i = 0; i < count; i++)
		if (parse_opcode(forms[i], text, len, mods))
			return true;
	return false;
}

static bool is_type(const char *dot, const char *end)
{
	char name[16];

	snprintf(name, sizeof name, "%.*s", (int)MIN(end - dot - 1, (ptrdiff_t)sizeof name - 1), dot + 1);
	return cptx_type_find(name) != CPTX_TYPE_NONE;
}

/* Whether moving one modifier makes it a spelling, without moving a type across another; writes that to `right`. */
static bool in_order(const spelled *s, char *right, size_t size)
{
	enum { MOST_PARTS = 24 };
	const char *part[MOST_PARTS + 1];
	unsigned n = 0;

	for (const char *q = s->text; n < MOST_PARTS && q; q = strchr(q + 1, '.'))
		part[n++] = q;
	part[n] = s->text + s->len;
	if (s->len >= size || n == MOST_PARTS)
		return false;
	for (unsigned from = 1; from < n; from++)
		for (unsigned to = 1; to < n; to++) {
			bool type = is_type(part[from], part[from + 1]), across = false;
			size_t at = 0;
			for (unsigned i = MIN(from, to); i <= MAX(from, to); i++)
				across |= type && i != from && is_type(part[i], part[i + 1]);
			if (across)
				continue;
			for (unsigned i = 0, next = 0; i < n; i++) {
				next += next == from;
				unsigned k = i == to ? from : next++;
				memcpy(right + at, part[k], (size_t)(part[k + 1] - part[k]));
				at += (size_t)(part[k + 1] - part[k]);
			}
			right[at] = 0;
			if (from != to && is_spelling(right, at))
				return true;
		}
	return false;
}

/* The instruction whose name is nearest to an unknown one, or NULL. */
static const char *similar(const char *text, size_t n)
{
	const char *near = NULL;
	unsigned distance = 4;
	char mine[64], known[64];

	snprintf(mine, sizeof mine, "%.*s", (int)MIN(n, sizeof mine - 1), text);
	for (char *c = mine; *c; c++)
		*c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
	for (unsigned i = 0; i < arch_nop; i++) {
		const char *form = arch_forms[arch_ops[i].form].text;
		snprintf(known, sizeof known, "%.*s", (int)strcspn(form, ".{ "), form);
		unsigned d = text_distance(mine, known);
		if (d < distance && 2 * d <= n) /* most of the name must be the same */
			distance = d, near = form;
	}
	return near;
}

bool parse_spelling_error(parser *p, const char *at, const spelled *s, const tokens *all)
{
	char right[256];
	size_t n = strcspn(s->text, "."), place;
	near_operands o = { all ? all->t : NULL, all ? all->n : 0, p->k->vec, true };
	buf why;

	if (!s->nform && in_order(s, right, sizeof right))
		return parse_error(p, at, CPTX_E_FORM, "%.*s: the modifiers stand in another order; write %s",
		                   (int)MIN(s->len, 200u), s->text, right);
	buf_init(&why, &p->m->a.hook);
	if (near_why(s->text, s->len, all ? &o : NULL, &why, &place)) {
		buf_put(&why, "", 1);
		if (why.failed)
			parse_out_of_memory(p);
		else
			parse_error(p, at + (at[0] == s->text[0] ? place : 0), CPTX_E_FORM, "%s", why.p);
	} else {
		const char *near = similar(s->text, n);
		parse_error(p, at, CPTX_E_PARSE, "'%.*s' is no instruction%s%.*s%s", (int)MIN(n, (size_t)100), s->text,
		            near ? "; did you mean " : "", near ? (int)strcspn(near, ".{ ") : 0, near ? near : "", near ? "?" : "");
	}
	buf_free(&why);
	return false;
}
