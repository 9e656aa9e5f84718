/* SPDX-License-Identifier: MIT */
/*
 * Lookup by name.  Each body has an index, made when a name is first asked for and kept up from then on; the module has one,
 * which is always there, and one that tells which bodies have a name of their own.
 *
 * Several threads may look up names in a frozen module, so the index of a body is made aside and published by one store.
 */
#include "base/atomic.h"
#include "base/table.h"
#include "ir/ir.h"

static uint32_t hash_of(enum ir_named kind, const char *name)
{
	return table_hash(TABLE_HASH ^ (uint32_t)kind * 0x9e3779b9u, name);
}

/* The hash of the first n characters of the name. */
static uint32_t hash_of_first(enum ir_named kind, const char *name, size_t n)
{
	uint32_t hash = hash_of(kind, "");

	for (size_t i = 0; i < n; i++)
		hash = table_hash_char(hash, name[i]);
	return hash;
}

/* The length of a name without the digits at its end. */
static size_t stem_length(const char *name)
{
	size_t n = strlen(name);

	while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
		n--;
	return n;
}

static uint32_t stem_hash(const char *name) { return hash_of_first(NAMED_STEM, name, stem_length(name)); }

static bool add_stem(hash_table *t, const cptx_allocator *hook, const char *name)
{
	uint32_t hash = stem_hash(name);

	return table_find(t, hash) != TABLE_NONE || table_add(t, hook, hash, 0);
}

/* ---- the module ---- */

static const char *global_name(const cptx_module *m, enum ir_named kind, uint32_t id)
{
	return kind == NAMED_GLOBAL ? m->sym[id]->name : kind == NAMED_BODY ? m->body[id]->name : m->file[id];
}

bool ir_index_global(cptx_module *m, enum ir_named kind, uint32_t id)
{
	const char *name = global_name(m, kind, id);

	m->odd_names |= kind != NAMED_FILE && (*name == '%' || *name == '$');
	if (m->has_stems && kind != NAMED_FILE && !add_stem(&m->stems, &m->a.hook, name))
		return false;
	return table_add(&m->names, &m->a.hook, hash_of(kind, name), id);
}

bool ir_global_begins(cptx_module *m, const char *prefix)
{
	bool ok = true;

	for (size_t i = m->has_stems ? m->nsym : 0; i < m->nsym && ok; i++)
		ok = add_stem(&m->stems, &m->a.hook, m->sym[i]->name);
	for (size_t i = m->has_stems ? m->nbody : 0; i < m->nbody && ok; i++)
		ok = add_stem(&m->stems, &m->a.hook, m->body[i]->name);
	m->has_stems = ok;
	if (!ok)
		table_free(&m->stems, &m->a.hook);
	return !ok || table_find(&m->stems, stem_hash(prefix)) != TABLE_NONE;
}

bool ir_index_renamed(cptx_module *m, enum ir_named kind, uint32_t id, const char *old)
{
	table_drop(&m->names, hash_of(kind, old), id);
	return ir_index_global(m, kind, id);
}

bool ir_variable_is_there(const cptx_module *m, uint32_t sym, const void *user)
{
	(void)user;
	return !m->sym[sym]->removed;
}

uint32_t ir_global_named(const cptx_module *m, enum ir_named kind, const char *name, ir_global_fn fits, const void *user)
{
	uint32_t hash = hash_of(kind, name);
	size_t n = kind == NAMED_GLOBAL ? m->nsym : kind == NAMED_BODY ? m->nbody : m->nfile;

	TABLE_EACH(&m->names, hash, id) /* names of other kinds have the same hash now and then */
	{
		if (id < n && !strcmp(global_name(m, kind, id), name) && (!fits || fits(m, id, user)))
			return id;
	}
	return IR_NONE;
}

/* ---- bodies ---- */

static uint32_t how_many(const cptx_kernel *k, enum ir_named kind)
{
	return (uint32_t)(kind <= NAMED_RANGE ? k->ndecl : kind == NAMED_LABEL ? k->nlabel : k->nsym);
}

/* The name of a register declaration, variable or label if it has that kind; else NULL. */
static const char *local_name(const cptx_kernel *k, enum ir_named kind, uint32_t id)
{
	switch (kind) {
	case NAMED_REG:
	case NAMED_RANGE:
		return id >= CLASS_COUNT && (k->decl[id].form == DECL_RANGE) == (kind == NAMED_RANGE) ? k->decl[id].name : NULL;
	case NAMED_VAR:
	case NAMED_ENDED: return !k->sym[id]->ended == (kind == NAMED_VAR) ? k->sym[id]->name : NULL;
	default: return k->label[id].name;
	}
}

static bool add_all(hash_table *t, const cptx_kernel *k, const cptx_allocator *hook, bool bodies)
{
	for (enum ir_named kind = NAMED_REG; kind <= NAMED_LABEL; kind = (enum ir_named)(kind + 1))
		for (uint32_t i = 0; i < how_many(k, kind); i++) {
			const char *name = local_name(k, kind, i);
			if (name &&
			    !(table_add(t, hook, hash_of(kind, name), bodies ? k->number : i) && (bodies || add_stem(t, hook, name))))
				return false;
		}
	return true;
}

static void release(hash_table *t, const cptx_allocator *hook)
{
	if (!t)
		return;
	table_free(t, hook);
	heap_realloc(hook, t, 0);
}

/* An empty table; a module that nobody else reads yet has some to spare. */
static hash_table *new_table(cptx_module *m)
{
	hash_table *t = m->frozen ? NULL : m->spare_tables;

	if (t) {
		m->spare_tables = t->spare;
		return t;
	}
	t = HEAP_ARRAY(&m->a.hook, hash_table, NULL, 1);
	if (t)
		*t = (hash_table){ 0 };
	return t;
}

/* The body's index, made if need be; NULL when memory is short. */
static const hash_table *index_of(const cptx_kernel *k)
{
	const cptx_allocator *hook = &k->m->a.hook;
	void **place = (void **)(uintptr_t)&k->names;
	hash_table *t = (hash_table *)atomic_pointer(place);

	if (t)
		return t;
	t = new_table(k->m);
	if (!t)
		return NULL;
	if (!add_all(t, k, hook, false)) {
		release(t, hook);
		return NULL;
	}
	hash_table *had = (hash_table *)atomic_put_pointer(place, t);
	if (had)
		release(t, hook);
	return had ? had : t;
}

void ir_index_clear(cptx_module *m)
{
	for (size_t i = 0; i < m->nbody; i++) {
		hash_table *t = (hash_table *)(uintptr_t)m->body[i]->names;
		table_free(&m->body[i]->renamed, &m->a.hook);
		if (!t)
			continue;
		table_clear(t);
		t->spare = m->spare_tables;
		m->spare_tables = t;
	}
	table_clear(&m->names);
	table_free(&m->locals, &m->a.hook);
	table_free(&m->words, &m->a.hook);
	table_free(&m->stems, &m->a.hook);
	table_free(&m->renamed, &m->a.hook);
}

void ir_index_free(cptx_module *m)
{
	for (hash_table *t = m->spare_tables, *next; t; t = next) {
		next = t->spare;
		release(t, &m->a.hook);
	}
	for (size_t i = 0; i < m->nbody; i++)
		release((hash_table *)m->body[i]->names, &m->a.hook);
	table_free(&m->names, &m->a.hook);
	table_free(&m->locals, &m->a.hook);
	table_free(&m->words, &m->a.hook);
	table_free(&m->stems, &m->a.hook);
	table_free(&m->renamed, &m->a.hook);
	for (size_t i = 0; i < m->nbody; i++)
		table_free(&m->body[i]->renamed, &m->a.hook);
}

/* Drops the index if an addition failed; the next lookup makes a new one. */
static void keep(bool added, cptx_kernel *k)
{
	if (added)
		return;
	release((hash_table *)k->names, &k->m->a.hook);
	k->names = NULL;
	table_free(&k->m->locals, &k->m->a.hook);
	k->m->has_locals = false;
}

static void enter(cptx_kernel *k, enum ir_named kind, uint32_t id, const char *name)
{
	const cptx_allocator *hook = &k->m->a.hook;
	uint32_t hash = hash_of(kind, name);

	if (k->names)
		keep(table_add((hash_table *)k->names, hook, hash, id) && add_stem((hash_table *)k->names, hook, name), k);
	if (k->m->has_locals)
		keep(table_add(&k->m->locals, hook, hash, k->number), k);
}

static void leave(cptx_kernel *k, enum ir_named kind, uint32_t id, const char *name)
{
	if (k->names)
		table_drop((hash_table *)k->names, hash_of(kind, name), id);
	if (k->m->has_locals)
		table_drop(&k->m->locals, hash_of(kind, name), k->number);
}

void ir_index_local(cptx_kernel *k, enum ir_named kind, uint32_t id)
{
	const char *name = k->names || k->m->has_locals ? local_name(k, kind, id) : NULL;

	if (name)
		enter(k, kind, id, name);
}

void ir_index_renamed_local(cptx_kernel *k, enum ir_named kind, uint32_t id, const char *old)
{
	if (old)
		leave(k, kind, id, old);
	ir_index_local(k, kind, id);
}

void ir_index_ended(cptx_kernel *k, uint32_t sym)
{
	leave(k, NAMED_VAR, sym, k->sym[sym]->name);
	ir_index_local(k, NAMED_ENDED, sym);
}

bool ir_local_begins(const cptx_kernel *k, const char *prefix)
{
	const hash_table *t = index_of(k);

	return !t || table_find(t, stem_hash(prefix)) != TABLE_NONE;
}

static bool is_it(const cptx_kernel *k, enum ir_named kind, uint32_t id, const char *name, size_t n, ir_local_fn fits,
                  const void *user)
{
	/* an id that is another kind's has the same hash now and then */
	const char *has = id < how_many(k, kind) ? local_name(k, kind, id) : NULL;

	return has && !strncmp(has, name, n) && !has[n] && (!fits || fits(k, id, user));
}

/* Finds the first n characters of a name, given their hash for that kind. */
static uint32_t find(const cptx_kernel *k, enum ir_named kind, const char *name, size_t n, uint32_t hash, ir_local_fn fits,
                     const void *user)
{
	const hash_table *t = index_of(k);

	if (t) {
		TABLE_EACH(t, hash, id)
		{
			if (is_it(k, kind, id, name, n, fits, user))
				return id;
		}
		return IR_NONE;
	}
	for (uint32_t id = 0; id < how_many(k, kind); id++)
		if (is_it(k, kind, id, name, n, fits, user))
			return id;
	return IR_NONE;
}

uint32_t ir_local_named(const cptx_kernel *k, enum ir_named kind, const char *name, ir_local_fn fits, const void *user)
{
	return find(k, kind, name, strlen(name), hash_of(kind, name), fits, user);
}

uint32_t ir_local_beginning(const cptx_kernel *k, enum ir_named kind, const char *name, size_t n, ir_local_fn fits,
                            const void *user)
{
	return find(k, kind, name, n, hash_of_first(kind, name, n), fits, user);
}

/* Calls fn for each beginning of a name behind which only digits stand, with its length and hash. */
typedef void (*stem_fn)(const char *name, size_t n, uint32_t hash, void *user);
static void each_stem(const char *name, stem_fn fn, void *user)
{
	uint32_t hash = hash_of(NAMED_RANGE, "");
	size_t len = strlen(name), stem = stem_length(name);

	for (size_t i = 0; i < len; i++) {
		if (i && i >= stem)
			fn(name, i, hash, user);
		hash = table_hash_char(hash, name[i]);
	}
}

typedef struct range_search {
	const cptx_kernel *k;
	ir_range_fn fits;
	const char *digits;
	uint32_t found;
} range_search;

static bool range_fits(const cptx_kernel *k, uint32_t decl, const void *user)
{
	const range_search *s = (const range_search *)user;

	return !s->fits || s->fits(&k->decl[decl], s->digits);
}

static void find_range(const char *name, size_t n, uint32_t hash, void *user)
{
	range_search *s = (range_search *)user;

	s->digits = name + n;
	uint32_t id = find(s->k, NAMED_RANGE, name, n, hash, range_fits, s);
	s->found = MIN(s->found, id);
}

uint32_t ir_range_named(const cptx_kernel *k, const char *name, ir_range_fn fits)
{
	range_search s = { .k = k, .fits = fits, .found = IR_NONE };

	each_stem(name, find_range, &s);
	return s.found;
}

/* ---- all bodies ---- */

typedef struct body_search {
	const cptx_module *m;
	const char *name;
	uint32_t found;
} body_search;

static void try_bodies(body_search *s, uint32_t hash)
{
	TABLE_EACH(&s->m->locals, hash, number)
	{
		const cptx_kernel *k = s->m->body[number - 1];
		if (number < s->found && k->has_body && !k->removed && ir_body_has_name(k, s->name))
			s->found = number;
	}
}

static void try_stem(const char *name, size_t n, uint32_t hash, void *user)
{
	(void)name, (void)n;
	try_bodies((body_search *)user, hash);
}

const cptx_kernel *ir_any_body_with(cptx_module *m, const char *name)
{
	body_search s = { .m = m, .name = name, .found = IR_NONE };
	bool ok = true;

	for (const cptx_kernel *k = m->has_locals ? NULL : m->first; k && ok; k = k->next)
		ok = add_all(&m->locals, k, &m->a.hook, true);
	m->has_locals = ok;
	if (!ok) {
		table_free(&m->locals, &m->a.hook);
		for (const cptx_kernel *k = m->first; k; k = k->next)
			if (ir_body_has_name(k, name))
				return k;
		return NULL;
	}
	for (enum ir_named kind = NAMED_REG; kind <= NAMED_LABEL; kind = (enum ir_named)(kind + 1))
		if (kind != NAMED_RANGE)
			try_bodies(&s, hash_of(kind, name));
	each_stem(name, try_stem, &s);
	return s.found == IR_NONE ? NULL : m->body[s.found - 1];
}

/* ---- words of what is kept as text ---- */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$%";

static bool add_words(cptx_module *m, const char *text)
{
	for (const char *p = text; *(p += strcspn(p, letters));) {
		uint32_t hash = TABLE_HASH;
		for (; *p && strchr(letters, *p); p++)
			hash = table_hash_char(hash, *p);
		if (table_find(&m->words, hash) == TABLE_NONE && !table_add(&m->words, &m->a.hook, hash, 0))
			return false;
	}
	return true;
}

bool ir_text_may_name(cptx_module *m, const char *name)
{
	bool ok = true;

	for (const ir_top *t = m->has_words ? NULL : m->text_first; t && ok; t = t->next_text)
		ok = add_words(m, t->text);
	m->has_words = ok;
	if (!ok)
		table_free(&m->words, &m->a.hook);
	return !ok || table_find(&m->words, table_hash(TABLE_HASH, name)) != TABLE_NONE;
}

void ir_text_changed(cptx_module *m)
{
	table_free(&m->words, &m->a.hook);
	m->has_words = false;
}
