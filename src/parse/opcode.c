/* SPDX-License-Identifier: MIT */
#include "parse/parse.h"

typedef struct reading {
	const arch_form *f;
	const char *end;
	uint16_t *mods;
} reading;

static bool literal(const char **p, const char *end, const char *s, size_t n)
{
	if ((size_t)(end - *p) < n || memcmp(*p, s, n))
		return false;
	*p += n;
	return *p == end || **p == '.';
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

/* Reads group i and all behind it, from p on.  Tries an optional group's values before leaving it out. */
static bool read_groups(reading *r, unsigned i, const char *p)
{
	if (i == r->f->ngroup)
		return literal(&p, r->end, r->f->tail, r->f->ntail) && p == r->end;
	const arch_group *g = &arch_groups[r->f->group + i];
	if (g->nprefix && !literal(&p, r->end, g->prefix, g->nprefix))
		return false;
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

bool parse_opcode(unsigned form, const char *text, size_t n, uint16_t mods[ARCH_GROUPS])
{
	reading r = { &arch_forms[form], text + n, mods };
	return read_groups(&r, 0, text);
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
