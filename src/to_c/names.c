/* SPDX-License-Identifier: MIT */
/* Names: C identifiers that clash with nothing, and PTX names that the builder accepts. */
#include "to_c/to_c.h"

#include <stdio.h>

bool to_c_no_memory(to_c *t)
{
	t->failed = true;
	return false;
}

void *to_c_alloc(to_c *t, size_t n, size_t size)
{
	void *p = n <= SIZE_MAX / 2 / size ? arena_zalloc(&t->a, (n ? n : 1) * size) : NULL;
	t->failed |= !p;
	return p;
}

uint32_t *to_c_nones(to_c *t, size_t n)
{
	uint32_t *p = TO_C_ARRAY(t, uint32_t, n);
	if (p)
		memset(p, 0xff, n * sizeof *p);
	return p;
}

/* Words of C, and macros and names of the headers that the printed C includes. */
static const char *const reserved[] = {
	"auto",     "break",    "case",     "char",     "const",        "continue", "default", "do",        "double",
	"else",     "enum",     "extern",   "float",    "for",          "goto",     "if",      "inline",    "int",
	"long",     "register", "restrict", "return",   "short",        "signed",   "sizeof",  "static",    "struct",
	"switch",   "typedef",  "union",    "unsigned", "void",         "volatile", "while",   "asm",       "typeof",
	"bool",     "true",     "false",    "nullptr",  "thread_local", "alignas",  "alignof", "constexpr", "static_assert",
	"offsetof", "linux",    "unix",     "stdin",    "stdout",       "stderr",   "errno",   "main",      "build",
	"k",        "m",        "f",
};

static to_c_name *slot_of(const to_c_names *n, const char *text)
{
	size_t i = table_hash(TABLE_HASH, text) & (n->nslot - 1);
	while (n->slot[i].text && strcmp(n->slot[i].text, text))
		i = (i + 1) & (n->nslot - 1);
	return &n->slot[i];
}

bool names_new(to_c *t, to_c_names *n)
{
	*n = (to_c_names){ .nslot = 16 };
	n->slot = TO_C_ARRAY(t, to_c_name, n->nslot);
	return n->slot != NULL;
}

const to_c_name *names_get(const to_c_names *n, const char *text)
{
	const to_c_name *s = slot_of(n, text);
	return s->text ? s : n->outer ? names_get(n->outer, text) : NULL;
}

static bool add(to_c *t, to_c_names *n, const to_c_name *name)
{
	if (n->used * 2 >= n->nslot) {
		to_c_names grown = *n;
		grown.nslot *= 2;
		grown.slot = TO_C_ARRAY(t, to_c_name, grown.nslot);
		if (!grown.slot)
			return false;
		for (size_t i = 0; i < n->nslot; i++)
			if (n->slot[i].text)
				*slot_of(&grown, n->slot[i].text) = n->slot[i];
		*n = grown;
	}
	to_c_name *s = slot_of(n, name->text);
	n->used += !s->text;
	*s = *name;
	return true;
}

bool names_add(to_c *t, to_c_names *n, const char *text, uint32_t id)
{
	return add(t, n, CPTX_OPT_(to_c_name, .text = text, .block = IR_NONE, .id = id));
}

static bool is_reserved(const char *s)
{
	for (unsigned i = 0; i < ARRAY_LEN(reserved); i++)
		if (!strcmp(reserved[i], s))
			return true;
	return !strncmp(s, "cptx", 4) || !strncmp(s, "CPTX", 4);
}

/* Whether a name has capitals only: NULL, EOF, INT_MAX and others that headers may define. */
static bool is_capitals(const char *s)
{
	size_t letters = 0;
	for (; *s; s++) {
		if (*s >= 'a' && *s <= 'z')
			return false;
		letters += *s >= 'A' && *s <= 'Z';
	}
	return letters > 1;
}

/* The identifier nearest to a name: letters, digits and _ (C), in PTX also $. */
static char *identifier(to_c *t, const char *want, bool c)
{
	enum { LONGEST = 200 }; /* longest name, for people who read the C; names that the PTX needs are not cut */
	size_t n = c ? MIN(strlen(want), (size_t)LONGEST) : strlen(want);
	char *s = TO_C_ARRAY(t, char, n + 24), *p = s;

	if (!s)
		return NULL;
	if (c)
		while (n && (*want == '%' || *want == '$' || *want == '_'))
			want++, n--;
	else
		while (n && (*want == '%' || (*want == '_' && !strncmp(want + strspn(want, "_"), &IR_PREFIX[2], 4))))
			want++, n--;
	if (!n || (*want >= '0' && *want <= '9') || (!c && !strncmp(want, "$L", 2)))
		*p++ = 'v';
	for (size_t i = 0; i < n; i++) {
		char ch = want[i];
		bool ok = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_' ||
		          (!c && ch == '$');
		*p++ = ok ? ch : '_';
	}
	*p = 0;
	if (!c && (!strcmp(s, "_") || !strcmp(s, "$")))
		memcpy(s, "v", 2);
	if (c && is_capitals(s))
		for (char *q = s; *q; q++)
			*q = (char)(*q >= 'A' && *q <= 'Z' ? *q + 'a' - 'A' : *q);
	if (c ? is_reserved(s) : !strcmp(s, "WARP_SZ"))
		memcpy(s + strlen(s), "_", 2);
	return s;
}

/* Whether a scope may use a name that another scope had: it must not lie in it or around it. */
static bool free_again(const to_c_body *b, const to_c_name *had, uint32_t block)
{
	return b && block != IR_NONE && had->block != IR_NONE && !flow_inside(b, block, had->block) &&
	       !flow_inside(b, had->block, block);
}

const char *names_make(to_c *t, to_c_names *n, const char *want, bool c, const to_c_body *b, uint32_t block)
{
	char *s = identifier(t, want, c);
	size_t len = s ? strlen(s) : 0;

	if (!s)
		return "";
	const to_c_name *had = names_get(n, s);
	if (had && n->outer && !slot_of(n, s)->text && !names_add(t, n, had->text, had->id)) /* added to keep its `next` */
		return "";
	to_c_name *first = slot_of(n, s);
	for (unsigned i = MAX(first->next, 2u);; i++) {
		had = names_get(n, s);
		if (!had || free_again(b, had, block))
			break;
		if (had->block == IR_NONE && (had == first || first->next == i - 1))
			first->next = MAX(first->next, i);
		snprintf(s + len, 24 - 2, "_%u", i);
	}
	return add(t, n, CPTX_OPT_(to_c_name, .text = s, .block = block)) ? s : "";
}
