/* Spellings: the forms that one can be, found once and remembered; and what is wrong with one that is none. */
#include "parse/parser.h"

#include <stdio.h>

/* What the operands of a form may be that text writes like something else. */
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

	s->form = count ? arena_alloc(&p->m->a, count * sizeof *s->form) : NULL;
	if (count && !s->form)
		return parse_out_of_memory(p);
	for (unsigned i = 0; i < count; i++) {
		if (!parse_opcode(forms[i], s->text, s->len, mods))
			continue;
		s->form[s->nform].form = forms[i];
		memcpy(s->form[s->nform++].mods, mods, sizeof mods);
		note_operands(&arch_forms[forms[i]], s);
	}
	return true;
}

/* The next 8 bytes of a text, of which `left` are its own. */
static inline uint64_t part_of(const char *text, size_t left)
{
	uint64_t part;

	memcpy(&part, text, sizeof part);
	return left < sizeof part ? part & ((UINT64_C(1) << 8 * left) - 1) : part;
}

static inline bool is_text(const spelled *s, const char *text, size_t len)
{
	for (size_t i = 0; i < len && s->len == len; i += sizeof(uint64_t))
		if (part_of(s->text + i, len - i) != part_of(text + i, len - i))
			return false;
	return s->len == len;
}

static spelled *new_spelled(parser *p, spelled **slot, const char *text, size_t len)
{
	spelled *s = arena_zalloc(&p->m->a, sizeof *s);
	char *copy = s ? arena_zalloc(&p->m->a, len + SPELLING_BEHIND) : NULL;

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
	uint64_t hash = len;

	for (size_t i = 0; i < len; i += sizeof hash)
		hash = (hash ^ part_of(text + i, len - i)) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32;
	spelled **slot = &p->spelled[hash % SPELLED_SLOTS], *s = *slot;
	while (s && !is_text(s, text, len))
		s = s->next;
	return s ? s : new_spelled(p, slot, text, len);
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

/* One modifier moved elsewhere, but no type across another, so that it is a spelling; into `right`. */
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

bool parse_spelling_error(parser *p, const char *at, const spelled *s)
{
	size_t n = strcspn(s->text, "."), best = 0;
	const char *near = NULL, *form = "";
	unsigned distance = 4, forms;
	char right[256], known[64];

	for (unsigned i = 0; i < arch_nop; i++) {
		const char *text = arch_forms[arch_ops[i].form].text;
		snprintf(known, sizeof known, "%.*s", (int)strcspn(text, ".{ "), text);
		char mine[64];
		snprintf(mine, sizeof mine, "%.*s", (int)MIN(n, sizeof mine - 1), s->text);
		unsigned d = text_distance(mine, known);
		if (d && d < distance)
			distance = d, near = text;
	}
	const uint16_t *of = arch_forms_of(s->text, s->len, &forms);
	for (unsigned i = 0; i < forms; i++) {
		size_t reached = parse_opcode_reach(of[i], s->text, s->len);
		if (!i || reached > best)
			best = reached, form = arch_forms[of[i]].text;
	}
	if (!forms)
		return parse_error(p, at, CPTX_E_PARSE, "'%.*s' is no instruction%s%.*s%s", (int)MIN(n, (size_t)100), s->text,
		                   near ? "; did you mean " : "", near ? (int)strcspn(near, ".{ ") : 0, near ? near : "",
		                   near ? "?" : "");
	if (in_order(s, right, sizeof right))
		return parse_error(p, at, CPTX_E_FORM, "%.*s: the modifiers stand in another order; write %s",
		                   (int)MIN(s->len, 200u), s->text, right);
	if (best >= s->len)
		return parse_error(p, at, CPTX_E_FORM, "%.*s: a modifier is missing at the end; the form is \"%s\"",
		                   (int)MIN(s->len, 200u), s->text, form);
	size_t len = 1 + strcspn(s->text + best + 1, ".");
	return parse_error(p, at + (at[0] == s->text[0] ? best : 0), CPTX_E_FORM,
	                   "%.*s: '%.*s' does not fit here; the form is \"%s\"", (int)MIN(s->len, 200u), s->text,
	                   (int)MIN(len, (size_t)64), s->text + best, form);
}
