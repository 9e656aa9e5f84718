/* SPDX-License-Identifier: MIT */
/* The spellings of a row. */
#include "cases.h"

#include <cptx/tune.h>

#include <stdio.h>
#include <stdlib.h>

static const arch_group *group_of(unsigned form, unsigned i) { return &arch_groups[arch_forms[form].group + i]; }

/* Number of choices of a group; the value of choice c. */
static unsigned choices(const arch_group *g) { return g->kind == GROUP_REPEAT ? 1 : g->nalt + (g->kind == GROUP_OPTIONAL); }

static uint16_t choice(const arch_group *g, unsigned c) { return c < g->nalt ? arch_alts[g->alt + c].mod : 0; }

static unsigned long count_all(unsigned form)
{
	unsigned long n = 1;
	for (unsigned i = 0; i < arch_forms[form].ngroup; i++)
		n *= choices(group_of(form, i));
	return n;
}

static void take(unsigned form, const unsigned *pick, spelling *s)
{
	*s = (spelling){ .form = (uint16_t)form };
	for (unsigned i = 0; i < arch_forms[form].ngroup; i++) {
		const arch_group *g = group_of(form, i);
		s->mod[i] = g->kind == GROUP_REPEAT ? s->mod[g->same] : choice(g, pick[i]);
	}
}

static void by_number(unsigned form, unsigned long n, spelling *s)
{
	unsigned pick[ARCH_GROUPS];
	for (unsigned i = 0; i < arch_forms[form].ngroup; i++) {
		unsigned c = choices(group_of(form, i));
		pick[i] = (unsigned)(n % c);
		n /= c;
	}
	take(form, pick, s);
}

/* Samples below that are the same whether the table is tried as a whole or not. */
enum { ROOM_FOR_PAIRS = 100 };

bool spell_whole(void) { return getenv("CPTX_TABLE_WHOLE") != NULL; }

bool spell_part(void) { return getenv("CPTX_TABLE_ONLY") || getenv("CPTX_TABLE_SHARD"); }

/* CPTX_TABLE_SHARD=i/n: the forms that are i modulo n, so that n processes try all of them. */
static unsigned shard(unsigned *n)
{
	const char *text = getenv("CPTX_TABLE_SHARD");
	unsigned i = 0;

	*n = 1;
	if (!text && spell_whole()) { /* the part of a rank of MPI or Slurm */
		cptx_error err = { .code = CPTX_OK };
		if (!cptx_tune_share(&i, n, &err)) {
			fprintf(stderr, "%s\n", err.text);
			exit(2);
		}
	}
	if (text && (sscanf(text, "%u/%u", &i, n) != 2 || i >= *n)) {
		fprintf(stderr, "CPTX_TABLE_SHARD is '%s', not i/n with i from 0 to n - 1\n", text);
		exit(2);
	}
	return i;
}

unsigned spell_shards(void)
{
	unsigned n;
	shard(&n);
	return n;
}

bool spell_wanted(unsigned form)
{
	const char *only = getenv("CPTX_TABLE_ONLY"), *text = arch_forms[form].text;
	size_t n = only ? strlen(only) : 0;
	unsigned shards, mine = shard(&shards);

	return form % shards == mine &&
	       (!only || !strcmp(arch_ops[arch_forms[form].op].name, only) || (n > 4 && strstr(arch_forms[form].file, only)) ||
	        (!strncmp(text, only, n) && (!text[n] || strchr(".{ ", text[n]))));
}

uint64_t spell_hash(const char *text)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a */
	for (const char *p = text; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211u;
	return hash;
}

uint64_t spell_seed(unsigned form) { return spell_hash(arch_forms[form].text); }

/* Every value of every group, the others at random. */
static unsigned singles(unsigned form, spelling *list, unsigned room)
{
	dice d = { spell_seed(form) };
	unsigned n = 0, ngroup = arch_forms[form].ngroup, pick[ARCH_GROUPS];

	for (unsigned a = 0; a < ngroup; a++)
		for (unsigned x = 0; x < choices(group_of(form, a)) && n < room; x++) {
			for (unsigned i = 0; i < ngroup; i++)
				pick[i] = roll(&d, choices(group_of(form, i)));
			pick[a] = x;
			take(form, pick, &list[n++]);
		}
	return n;
}

/* One spelling for each pair of values of two groups, the others at random. */
static unsigned pairs(unsigned form, spelling *list, unsigned room)
{
	dice d = { spell_seed(form) };
	unsigned n = 0, ngroup = arch_forms[form].ngroup, pick[ARCH_GROUPS];

	for (unsigned a = 0; a < ngroup; a++)
		for (unsigned b = a + 1; b < ngroup; b++)
			for (unsigned x = 0; x < choices(group_of(form, a)); x++)
				for (unsigned y = 0; y < choices(group_of(form, b)) && n < room; y++) {
					for (unsigned i = 0; i < ngroup; i++)
						pick[i] = roll(&d, choices(group_of(form, i)));
					pick[a] = x;
					pick[b] = y;
					take(form, pick, &list[n++]);
				}
	return n;
}

spelling *spell_all(unsigned form, unsigned most, unsigned *n)
{
	unsigned long all = count_all(form);
	unsigned room = all <= most ? (unsigned)all : most + 20000;
	spelling *list = malloc(room * sizeof *list);
	dice d = { spell_seed(form) + 1 };

	if (!list)
		exit(2);
	*n = 0;
	if (all <= most) {
		for (; *n < all; ++*n)
			by_number(form, *n, &list[*n]);
		return list;
	}
	*n = spell_whole() && most >= ROOM_FOR_PAIRS ? pairs(form, list, room) : singles(form, list, room);
	while (*n < most) {
		by_number(form, (unsigned long)roll(&d, (unsigned)(all < 1u << 30 ? all : 1u << 30)), &list[*n]);
		++*n;
	}
	return list;
}

void spell(const spelling *s, char text[OPCODE])
{
	const arch_form *f = &arch_forms[s->form];
	char *p = text;

	for (unsigned i = 0; i < f->ngroup; i++) {
		p += sprintf(p, "%s", group_of(s->form, i)->prefix);
		if (s->mod[i] && !group_of(s->form, i)->behind)
			p += sprintf(p, ".%s", arch_mods[s->mod[i]].name);
	}
	sprintf(p, "%s", f->tail);
}
