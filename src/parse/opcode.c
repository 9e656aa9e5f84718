#include "parse/parse.h"

typedef struct reading {
	const arch_form *f;
	const char *end, *far; /* far: the furthest that a modifier was understood */
	uint16_t *mods;
	bool asked; /* how far it is understood, also within fixed modifiers */
} reading;

static bool literal(const char **p, const char *end, const char *s, size_t n)
{
	if ((size_t)(end - *p) < n || memcmp(*p, s, n))
		return false;
	*p += n;
	return *p == end || **p == '.';
}

/* Of fixed modifiers that are not these, the first ones may be. */
static void understand(reading *r, const char *p, const char *s, size_t n)
{
	for (size_t i = 0; i < n && p + i < r->end && p[i] == s[i]; i++)
		if (s[i] == '.')
			r->far = MAX(r->far, p + i);
}

static bool read_groups(reading *r, unsigned i, const char *p);

static bool read_value(reading *r, unsigned i, const char *p, unsigned mod)
{
	const arch_mod *m = &arch_mods[mod];

	if (p == r->end || *p != '.')
		return false;
	p++;
	if (!literal(&p, r->end, m->name, m->len))
		return false;
	r->mods[i] = (uint16_t)mod;
	return read_groups(r, i + 1, p);
}

/* Group i and all behind it, from p on.  Tries an optional group's values before leaving it out. */
static bool read_groups(reading *r, unsigned i, const char *p)
{
	r->far = MAX(r->far, p);
	if (i == r->f->ngroup)
		return literal(&p, r->end, r->f->tail, r->f->ntail) && p == r->end;
	const arch_group *g = &arch_groups[r->f->group + i];
	if (g->nprefix && !literal(&p, r->end, g->prefix, g->nprefix)) {
		if (r->asked)
			understand(r, p, g->prefix, g->nprefix);
		return false;
	}
	r->far = MAX(r->far, p);
	if (g->behind) {
		r->mods[i] = 0;
		return read_groups(r, i + 1, p);
	}
	if (g->kind == GROUP_REPEAT)
		return read_value(r, i, p, r->mods[g->same]);
	for (unsigned a = 0; a < g->nalt; a++)
		if (read_value(r, i, p, arch_alts[g->alt + a].mod))
			return true;
	r->mods[i] = 0;
	return g->kind == GROUP_OPTIONAL && read_groups(r, i + 1, p);
}

/* *reached: how much of it the form can begin with; NULL: that is not asked. */
static bool read_opcode(unsigned form, const char *text, size_t n, uint16_t mods[ARCH_GROUPS], size_t *reached)
{
	reading r = { &arch_forms[form], text + n, text, mods, reached != NULL };
	bool ok = read_groups(&r, 0, text);

	if (reached)
		*reached = (size_t)(r.far - text);
	return ok;
}

bool parse_opcode(unsigned form, const char *text, size_t n, uint16_t mods[ARCH_GROUPS])
{
	return read_opcode(form, text, n, mods, NULL);
}

size_t parse_opcode_reach(unsigned form, const char *text, size_t n)
{
	uint16_t mods[ARCH_GROUPS];
	size_t reached;

	return read_opcode(form, text, n, mods, &reached) ? n : reached;
}

bool cptx_form_spelled(const char *spelling, size_t nth, size_t *op, size_t *form)
{
	uint16_t mods[ARCH_GROUPS];
	size_t n = spelling ? strlen(spelling) : 0;
	unsigned count = 0;
	const uint16_t *forms = n ? arch_forms_of(spelling, n, &count) : NULL;

	for (unsigned i = 0; i < count; i++) {
		if (!parse_opcode(forms[i], spelling, n, mods) || nth--)
			continue;
		*op = arch_forms[forms[i]].op;
		*form = (size_t)forms[i] - arch_ops[*op].form;
		return true;
	}
	return false;
}
