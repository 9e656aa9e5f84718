/* SPDX-License-Identifier: MIT */
/* Reads signatures and grids; <cptx/dlpack.h> has the grammar. */
#include "tensor/tensor.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>

typedef struct reader {
	signature *s;
	const char *what, *text, *at; /* what: "signature" or "grid" */
	cptx_site site;
	cptx_error *err;
} reader;

static bool fail(const reader *r, const char *format, ...) CPTX_PRINTF_(2, 3);
static bool fail(const reader *r, const char *format, ...)
{
	cptx_error why = { .code = CPTX_OK };
	va_list ap;

	if (r->s->mem.failed) /* out of memory: a text could not be copied */
		return no_memory(r->err, r->site);
	va_start(ap, format);
	error_vset(&why, CPTX_E_PARSE, NOWHERE, format, ap);
	va_end(ap);
	return error_set(r->err, CPTX_E_PARSE, r->site, "%s \"%s\", column %zu: %s", r->what, r->text,
	                 (size_t)(r->at - r->text) + 1, why.text);
}

static void blank(reader *r)
{
	while (isspace((unsigned char)*r->at))
		r->at++;
}

static bool take(reader *r, char c)
{
	blank(r);
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

static bool want(reader *r, char c, const char *where) { return take(r, c) || fail(r, "'%c' is missing %s", c, where); }

static size_t word_length(const reader *r)
{
	size_t n = 0;

	if (isdigit((unsigned char)*r->at))
		return 0;
	while (isalnum((unsigned char)r->at[n]) || r->at[n] == '_')
		n++;
	return n;
}

/* Reads a word into the signature's memory; NULL if there is none. */
static const char *word(reader *r)
{
	blank(r);
	size_t n = word_length(r);
	char *copy = n ? ARENA_ARRAY(&r->s->mem, char, n + 1) : NULL;

	if (!copy)
		return NULL;
	memcpy(copy, r->at, n);
	copy[n] = 0;
	r->at += n;
	return copy;
}

static bool take_word(reader *r, const char *what)
{
	blank(r);
	size_t n = word_length(r);

	if (n != strlen(what) || memcmp(r->at, what, n))
		return false;
	r->at += n;
	return true;
}

static bool number(reader *r, int64_t *v)
{
	char *end;

	*v = 0;
	blank(r);
	if (!isdigit((unsigned char)*r->at))
		return fail(r, "a number must stand here");
	unsigned long long u = strtoull(r->at, &end, 10);
	if (u >= (unsigned long long)1 << 62) /* also true for numbers that strtoull cannot hold */
		return fail(r, "the number is beyond 2^62");
	*v = (int64_t)u;
	r->at = end;
	return true;
}

/* The number of a dimension's name; -1 with an error. */
static int symbol(reader *r, const char *name)
{
	signature *s = r->s;

	for (size_t i = 0; i < s->nnames; i++)
		if (!strcmp(s->name[i], name))
			return (int)i;
	if (s->nnames == MAX_NAMES) {
		fail(r, "there are more than %d names of dimensions", MAX_NAMES);
		return -1;
	}
	s->name[s->nnames] = name;
	return (int)s->nnames++;
}

static bool extent_read(reader *r, extent *e, const char *where)
{
	*e = (extent){ .kind = EXTENT_NUMBER };
	blank(r);
	if (isdigit((unsigned char)*r->at))
		return number(r, &e->number);
	const char *name = word(r);
	if (!name)
		return fail(r, "a number, a name or _ must stand %s", where);
	if (!strcmp(name, "_")) {
		e->kind = EXTENT_ANY;
		return true;
	}
	int i = symbol(r, name);
	e->kind = EXTENT_NAME;
	e->name = (uint8_t)MAX(i, 0);
	return i >= 0;
}

/* Reads the inside of brackets; returns the number of extents, -1 with an error. */
static int extents(reader *r, extent *e, const char *where)
{
	int n = 0;

	if (take(r, ']'))
		return 0;
	do {
		if (n == MAX_RANK) {
			fail(r, "there are more than %d dimensions", MAX_RANK);
			return -1;
		}
		if (!extent_read(r, &e[n++], where))
			return -1;
	} while (take(r, ','));
	return want(r, ']', "behind dimensions") ? n : -1;
}

static bool product_read(reader *r, product *p)
{
	p->divisor = 1;
	do {
		if (p->n == MAX_FACTORS)
			return fail(r, "there are more than %d factors", MAX_FACTORS);
		if (!extent_read(r, &p->factor[p->n], "in a product"))
			return false;
		if (p->factor[p->n++].kind == EXTENT_ANY)
			return fail(r, "_ has no value");
	} while (take(r, '*'));
	if (!take(r, '/'))
		return true;
	if (!number(r, &p->divisor))
		return false;
	return p->divisor > 0 || fail(r, "the number behind / must be above 0");
}

bool product_value(const product *p, const tensor_binding *names, int64_t *v)
{
	*v = 1;
	for (const extent *e = p->factor; e < p->factor + p->n; e++)
		if (__builtin_mul_overflow(*v, e->kind == EXTENT_NUMBER ? e->number : names[e->name].v, v))
			return false;
	*v = *v / p->divisor + (*v % p->divisor > 0);
	return true;
}

/* Whether a product fits a type, if it is made of numbers only; others are checked by each run. */
static bool constant_fits(reader *r, const product *p, enum cptx_type t)
{
	int64_t v;

	for (size_t i = 0; i < p->n; i++)
		if (p->factor[i].kind != EXTENT_NUMBER)
			return true;
	if (!product_value(p, NULL, &v))
		return fail(r, "the product is beyond 64 bits");
	return type_holds(t, v) || fail(r, "%lld is no .%s", (long long)v, cptx_type_name(t));
}

static uint32_t natural_align(enum cptx_type t) { return MIN(MAX(cptx_type_bits(t) / 8, 1u), 16u); }

static bool strides_read(reader *r, entry *a)
{
	if (!want(r, '[', "behind strides"))
		return false;
	a->strided = true;
	int n = extents(r, a->stride, "in strides");
	return n == a->rank || (n >= 0 && fail(r, "\"%s\" has %d dimensions and %d strides", a->name, a->rank, n));
}

static bool align_read(reader *r, entry *a)
{
	int64_t v;

	if (!number(r, &v))
		return false;
	a->align = (uint32_t)v;
	return (v > 0 && v <= 1 << 20 && !(v & (v - 1))) || fail(r, "an alignment is a power of two up to 2^20");
}

static bool tensor_read(reader *r, entry *a)
{
	DLDataType d;

	a->is_tensor = true;
	a->align = natural_align(a->type);
	if (!type_to_dl(a->type, &d))
		return fail(r, "DLPack has no tensors of .%s", cptx_type_name(a->type));
	a->rank = extents(r, a->dim, "in dimensions");
	if (a->rank < 0)
		return false;
	for (;;) {
		if (take_word(r, "const"))
			a->is_const = true;
		else if (take_word(r, "optional"))
			a->is_optional = true;
		else if (take_word(r, "align")) {
			if (!align_read(r, a))
				return false;
		} else if (take_word(r, "strides")) {
			if (!strides_read(r, a))
				return false;
		} else
			return true;
	}
}

static bool is_integer(enum cptx_type t) { return (t >= CPTX_U8 && t <= CPTX_S64) || (t >= CPTX_B8 && t <= CPTX_B64); }

static bool number_read(reader *r, entry *a)
{
	if (!is_integer(a->type) && a->type != CPTX_F32 && a->type != CPTX_F64)
		return fail(r, "a number is u8 to s64, b8 to b64, f32 or f64, not .%s; a tensor has [dimensions] behind its type",
		            cptx_type_name(a->type));
	if (!take(r, '=')) {
		a->symbol = is_integer(a->type) ? symbol(r, a->name) : -1;
		return a->symbol >= 0 || !is_integer(a->type);
	}
	if (!is_integer(a->type))
		return fail(r, "what is computed is an integer, not .%s", cptx_type_name(a->type));
	return product_read(r, &a->value) && constant_fits(r, &a->value, a->type);
}

static bool entry_read(reader *r, entry *a)
{
	*a = (entry){ .symbol = -1 };
	a->name = word(r);
	if (!a->name)
		return fail(r, "the name of an argument must stand here");
	for (const entry *b = r->s->arg; b < a; b++)
		if (!strcmp(b->name, a->name))
			return fail(r, "a second argument \"%s\"", a->name);
	if (!want(r, ':', "behind the name of an argument"))
		return false;
	blank(r);
	const char *start = r->at, *type = word(r);
	a->type = type ? cptx_type_find(type) : CPTX_TYPE_NONE;
	if (a->type == CPTX_TYPE_NONE)
		return r->at = start, fail(r, "\"%s\" is no type; types are those of PTX: f32, bf16, u8, b64", type ? type : "");
	return take(r, '[') ? tensor_read(r, a) : number_read(r, a);
}

static bool ended(reader *r)
{
	blank(r);
	return !*r->at || fail(r, "\"%.20s\" cannot stand here", r->at);
}

/* Whether every name in a product is known from an argument. */
static bool known(const reader *r, const product *p, const bool *given)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->factor[i].kind == EXTENT_NAME && !given[p->factor[i].name])
			return error_set(r->err, CPTX_E_PARSE, r->site,
			                 "%s \"%s\": nothing says what %s is: no argument has it in its "
			                 "dimensions or strides, or as its name",
			                 r->what, r->text, r->s->name[p->factor[i].name]);
	return true;
}

static void mark(const extent *e, int n, bool *given)
{
	for (int i = 0; i < n; i++)
		if (e[i].kind == EXTENT_NAME)
			given[e[i].name] = true;
}

static bool all_known(const reader *r, const reader *grid)
{
	const signature *s = r->s;
	bool given[MAX_NAMES] = { false };

	for (size_t i = 0; i < s->nargs; i++) {
		const entry *a = &s->arg[i];
		mark(a->dim, a->rank, given);
		mark(a->stride, a->strided ? a->rank : 0, given);
		if (a->symbol >= 0)
			given[a->symbol] = true;
	}
	for (size_t i = 0; i < s->nargs; i++)
		if (!known(r, &s->arg[i].value, given))
			return false;
	for (int i = 0; i < 3; i++)
		if (!known(grid, &s->grid[i], given))
			return false;
	return true;
}

static bool grid_read(reader *r)
{
	size_t n = 0;

	do {
		if (n == 3)
			return fail(r, "a grid has at most three dimensions");
		if (!product_read(r, &r->s->grid[n]) || !constant_fits(r, &r->s->grid[n++], CPTX_U32))
			return false;
	} while (take(r, ','));
	return ended(r);
}

bool signature_read(signature *s, const char *text, const char *grid, cptx_site at, cptx_error *err)
{
	reader r = { s, "signature", text, text, at, err }, g = { s, "grid", grid, grid, at, err };

	arena_init(&s->mem, NULL);
	blank(&r);
	if (*r.at)
		do {
			if (s->nargs == MAX_ARGS)
				return fail(&r, "there are more than %d arguments", MAX_ARGS);
			if (!entry_read(&r, &s->arg[s->nargs]))
				return s->mem.failed ? no_memory(err, at) : false;
			s->nargs++;
		} while (take(&r, ','));
	return ended(&r) && (!grid || grid_read(&g)) && (!s->mem.failed || no_memory(err, at)) && all_known(&r, &g);
}
