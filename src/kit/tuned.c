/* SPDX-License-Identifier: MIT */
#include "kit/tuned.h"
#include "base/options.h"

#include <cptx/emu.h>

#include <stdio.h>

enum { FOUND = 16 /* candidates that are looked at */, CANDIDATES = 8, CHUNK = 1 << 20 };

/* ---- option sets as text ---- */

static uint64_t value_of(const kit_field *f, const void *options)
{
	const char *p = (const char *)options + f->offset;
	uint32_t u32;
	uint64_t u64;

	switch (f->kind) {
	case KIT_BOOL: return *(const bool *)p;
	case KIT_S64: memcpy(&u64, p, sizeof u64); return u64;
	case KIT_NOT_TEXT: return 0;
	default: memcpy(&u32, p, sizeof u32); return u32; /* of an f32 its bits */
	}
}

bool kit_fields_text(const kit_field *fields, size_t n, const void *options, const void *base, char *text, size_t size)
{
	size_t used = 0;

	*text = 0;
	for (size_t i = 0; i < n; i++) {
		const kit_field *f = &fields[i];
		const uint64_t v = value_of(f, options);
		if (v == value_of(f, base))
			continue;
		int m;
		if (f->kind == KIT_TYPE || f->kind == KIT_WORD)
			m = snprintf(text + used, size - used, "%s%s=%s", used ? " " : "", f->name,
			             f->kind == KIT_WORD ? f->word((unsigned)v)
			             : v                 ? cptx_type_name((enum cptx_type)v)
			                                 : "none");
		else
			m = snprintf(text + used, size - used, f->kind == KIT_FLOAT ? "%s%s=0x%08llx" : "%s%s=%lld", used ? " " : "",
			             f->name, (long long)v);
		used += m > 0 ? (size_t)m : 0;
		if (used >= size)
			return false;
	}
	return true;
}

/* The value of a field from text; false: it is none. */
static bool read_value(const kit_field *f, const char *text, uint64_t *v)
{
	char *end;

	switch (f->kind) {
	case KIT_TYPE: *v = (uint64_t)cptx_type_find(text); return *v != CPTX_TYPE_NONE || !strcmp(text, "none");
	case KIT_WORD:
		for (*v = 0; strcmp(f->word((unsigned)*v), "?") != 0; ++*v)
			if (!strcmp(f->word((unsigned)*v), text))
				return true;
		return false;
	default:
		*v = (uint64_t)strtoll(text, &end, f->kind == KIT_FLOAT ? 16 : 10);
		return *text && !*end && (f->kind == KIT_S64 || *v <= UINT32_MAX) && (f->kind != KIT_BOOL || *v <= 1);
	}
}

static void set_value(const kit_field *f, void *options, uint64_t v)
{
	char *p = (char *)options + f->offset;
	const uint32_t u32 = (uint32_t)v;

	if (f->kind == KIT_BOOL)
		*(bool *)p = v != 0;
	else if (f->kind == KIT_S64)
		memcpy(p, &v, sizeof v);
	else
		memcpy(p, &u32, sizeof u32);
}

static bool read_word(const kit_field *fields, size_t n, char *word, void *options)
{
	char *value = strchr(word, '=');
	size_t i = 0;
	uint64_t v;

	if (!value)
		return false;
	*value++ = 0;
	while (i < n && (fields[i].kind == KIT_NOT_TEXT || strcmp(fields[i].name, word) != 0))
		i++;
	if (i == n || !read_value(&fields[i], value, &v))
		return false;
	set_value(&fields[i], options, v);
	return true;
}

const char *kit_fields_read(const kit_field *fields, size_t n, const char *text, void *options)
{
	char word[80];

	for (size_t length; *text; text += length + (text[length] == ' ')) {
		length = strcspn(text, " ");
		if (!length)
			continue;
		memcpy(word, text, MIN(length, sizeof word - 1));
		word[MIN(length, sizeof word - 1)] = 0;
		if (length >= sizeof word || !read_word(fields, n, word, options))
			return text;
	}
	return NULL;
}

/* Makes the error about a word of options: there is no such field, or the field does not take the value. */
static bool bad_word(const kit_family *f, const char *word, cptx_error *err)
{
	const int n = (int)strcspn(word, " "), name = (int)strcspn(word, "= ");
	char given[80];
	const char *near = NULL;
	unsigned best = 3;

	snprintf(given, sizeof given, "%.*s", name, word);
	for (size_t i = 0; i < f->nfields; i++) {
		const unsigned d = f->fields[i].kind == KIT_NOT_TEXT ? best : text_distance(given, f->fields[i].name);
		if (d < best)
			best = d, near = f->fields[i].name;
	}
	if (best == 0)
		return error_set(err, CPTX_E_ARG, NOWHERE, "%s: \"%.*s\" is no value of %s", f->generator, n, word, near);
	return error_set(err, CPTX_E_ARG, NOWHERE,
	                 near ? "%s: \"%.*s\" is no option; did you mean %s=?" : "%s: \"%.*s\" is no option", f->generator, n,
	                 word, near);
}

bool kit_options_read(const kit_family *f, const char *text, void *candidate, cptx_error *err)
{
	if (!IS_GIVEN(text, "text", NOWHERE, err))
		return false;
	const char *word = kit_fields_read(f->fields, f->nfields, text, candidate);
	return !word || bad_word(f, word, err);
}

/* ---- the key of a problem ---- */

typedef struct texts {
	char problem[CPTX_TUNE_TEXT], compiler[CPTX_TUNE_TEXT];
} texts;

/* Whether functions of the user's are part of the kernel: a pointer that is not that of the base. */
static bool has_function(const kit_problem *p)
{
	bool differs = false;

	for (size_t i = 0; i < p->family->nfields; i++) {
		const kit_field *f = &p->family->fields[i];
		differs |= f->kind == KIT_NOT_TEXT && memcmp((const char *)p->asked + f->offset, (const char *)p->base + f->offset,
		                                             sizeof(void (*)(void))) != 0;
	}
	return differs;
}

/* Makes the key of a problem.  False, without an error: nobody can find the problem again. */
static bool key_of(cptx_device *dev, enum cptx_compiler compiler, const kit_problem *p, cptx_tune_key *key, texts *t,
                   cptx_error *err)
{
	const kit_family *f = p->family;
	const bool own = has_function(p);

	if ((own && !p->function) || !kit_fields_text(f->fields, f->nfields, p->asked, p->base, t->problem, sizeof t->problem))
		return false;
	const size_t n = strlen(t->problem);
	if (own && snprintf(t->problem + n, sizeof t->problem - n, "%sfunction=%s", n ? " " : "", p->function) >=
	               (int)(sizeof t->problem - n))
		return false;
	if (!*t->problem)
		memcpy(t->problem, "usual", 6);
	*key = (cptx_tune_key){ .generator = f->generator, .version = f->version, .problem = t->problem };
	memcpy(key->dims, p->dims, sizeof key->dims);
	return cptx_tune_describe(dev, compiler, key, t->compiler, err);
}

/* ---- the runners ---- */

bool kit_runner_set_tune(kit_runner *r, const cptx_tune_use *use, cptx_error *err)
{
	cptx_tune_use u;

	if (!IS_GIVEN(r, "runner", NOWHERE, err) || !kit_tuned_read_use(&u, use, err))
		return false;
	pthread_mutex_lock(&r->lock);
	if (r->owns_db)
		cptx_tune_close(r->db);
	r->use = u, r->db = u.db, r->owns_db = false, r->knows_db = u.db != NULL;
	pthread_mutex_unlock(&r->lock);
	return true;
}

/* The runner's database, the usual one where none was given; NULL: none is looked into. */
static cptx_tune *database(kit_runner *r, enum cptx_tune_policy *policy)
{
	cptx_error err = { .code = CPTX_OK };

	*policy = cptx_tune_policy_of(r->use.policy, &err);
	if (err.code != CPTX_OK || *policy == CPTX_TUNE_OFF)
		return NULL;
	if (!r->knows_db)
		r->db = cptx_tune_open(NULL, NULL), r->owns_db = r->knows_db = true;
	return r->db;
}

bool kit_tuned_find(kit_runner *r, const kit_search *s, void *to)
{
	enum cptx_tune_policy policy;
	cptx_tune *db = database(r, &policy);
	cptx_error err = { .code = CPTX_OK };
	cptx_tune_key key;
	texts t;
	bool taken = false;

	cptx_tune_found *found =
		db && key_of(r->dev, r->use.compiler, &s->problem, &key, &t, &err) ? NEW_ARRAY(cptx_tune_found, FOUND) : NULL;
	if (!found)
		return false;
	size_t n = cptx_tune_find(db, &key, CPTX_TUNE_RADIUS, found, FOUND, &err);
	if (policy == CPTX_TUNE_ALWAYS || (policy == CPTX_TUNE_ONCE && (!n || found[0].match != CPTX_TUNE_EXACT))) {
		cptx_tune_use use = r->use;
		use.policy = policy, use.cache = use.cache ? use.cache : r->cache;
		if (s->measure(s->user, db, &use))
			n = cptx_tune_find(db, &key, CPTX_TUNE_RADIUS, found, FOUND, &err);
	}
	for (size_t i = 0; i < n && !taken; i++) {
		memcpy(to, s->problem.asked, s->problem.family->size);
		taken = !kit_fields_read(s->problem.family->fields, s->problem.family->nfields, found[i].candidate, to) &&
		        s->fits(s->user, to);
	}
	free(found);
	return taken;
}

/* ---- measuring ---- */

bool kit_tuned_read_use(cptx_tune_use *to, const cptx_tune_use *given, cptx_error *err)
{
	if (!OPTIONS_READ(cptx_tune_use, to, given, NOWHERE, err))
		return false;
	to->candidates = to->candidates ? to->candidates : CANDIDATES;
	return true;
}

bool kit_tuned_emulated(const cptx_device *dev)
{
	cptx_emu_counters counters;

	return cptx_emu_get_counters(dev, &counters);
}

typedef struct named {
	char text[CPTX_TUNE_TEXT];
} named;
typedef struct bench {
	const kit_bench *b;
	named *names;
} bench;

static const char *name_of(void *user, uint32_t i) { return ((bench *)user)->names[i].text; }

static bool build(void *user, uint32_t i, cptx_module *m, cptx_error *err)
{
	const kit_bench *b = ((bench *)user)->b;

	return b->build(b->user, i, m, err);
}

static uint32_t launch(void *user, uint32_t i, const cptx_program *program, cptx_launch **launches, uint32_t room,
                       cptx_error *err)
{
	const kit_bench *b = ((bench *)user)->b;

	return b->launch(b->user, i, program, launches, room, err);
}

static bool before(void *user, uint32_t i, cptx_error *err)
{
	const kit_bench *b = ((bench *)user)->b;

	return !b->before || b->before(b->user, i, err);
}

static bool name_all(bench *b, cptx_error *err)
{
	const kit_family *f = b->b->problem.family;

	for (uint32_t i = 0; i < b->b->n; i++) {
		const char *candidate = (const char *)b->b->candidates + i * f->size;
		if (!kit_fields_text(f->fields, f->nfields, candidate, b->b->problem.asked, b->names[i].text, CPTX_TUNE_TEXT))
			return error_set(err, CPTX_E_LIMIT, NOWHERE, "tune: a candidate of %s is longer than %d characters",
			                 f->generator, CPTX_TUNE_TEXT - 1);
		if (!*b->names[i].text)
			memcpy(b->names[i].text, "as asked", 9);
	}
	return true;
}

static bool tells(const cptx_error *err) { return err && err->code != CPTX_OK; }

bool kit_tuned_measure(cptx_tune *db, cptx_device *dev, const kit_bench *given, const cptx_tune_use *use,
                       cptx_tune_done *done, cptx_error *err)
{
	bench b = { given, NULL };
	cptx_tune_key key;
	texts t;

	if (!key_of(dev, use->compiler, &given->problem, &key, &t, err))
		return tells(err) ? false
		       : has_function(&given->problem) && !given->problem.function
		           ? error_set(err, CPTX_E_ARG, NOWHERE,
		                       "tune: the kernel has a function of the user's; give it a .name, by which it is found again")
		           : error_set(err, CPTX_E_LIMIT, NOWHERE, "tune: the options of the kernel are longer than %d characters",
		                       CPTX_TUNE_TEXT - 1);
	b.names = NEW_ARRAY(named, given->n + 1u);
	if (!b.names)
		return error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	const bool ok =
		name_all(&b, err) && cptx_tune_measure(db, dev,
	                                           CPTX_OPT(cptx_tune_job, .key = &key, .candidates = given->n, .name = name_of,
	                                                    .build = build, .launch = launch, .before = before, .user = &b),
	                                           use, done, err);
	free(b.names);
	return ok;
}

/* An offer, and the candidates that its model has chosen. */
typedef struct offered {
	const kit_offer *o;
	const char *candidates;
} offered;

static const void *candidate_of(const offered *x, uint32_t i) { return x->candidates + i * x->o->problem.family->size; }

static bool build_offered(void *user, uint32_t i, cptx_module *m, cptx_error *err)
{
	const offered *x = (const offered *)user;

	return x->o->build(x->o->user, candidate_of(x, i), m, err);
}

static uint32_t launch_offered(void *user, uint32_t i, const cptx_program *program, cptx_launch **launches, uint32_t room,
                               cptx_error *err)
{
	const offered *x = (const offered *)user;

	return x->o->launch(x->o->user, candidate_of(x, i), program, launches, room, err);
}

bool kit_tuned_measure_offer(cptx_tune *db, cptx_device *dev, const kit_offer *offer, const cptx_tune_use *use,
                             cptx_tune_done *done, cptx_error *err)
{
	const size_t size = offer->problem.family->size;
	char *choices = NEW_ARRAY(char, use->candidates * offer->choice), *candidates = NEW_ARRAY(char, use->candidates *size);
	const bool room = choices && candidates;
	const uint32_t n = room ? (uint32_t)offer->choose(offer->user, choices, use->candidates, err) : 0;
	offered x = { offer, candidates };
	const kit_bench b = { .problem = offer->problem,
		                  .candidates = candidates,
		                  .n = n,
		                  .build = build_offered,
		                  .launch = launch_offered,
		                  .user = &x };

	if (!room)
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	for (uint32_t i = 0; i < n; i++)
		memcpy(candidates + i * size, choices + i * offer->choice + offer->at, size);
	free(choices);
	const bool ok = n && offer->operands(offer->user, candidates, n, err) && kit_tuned_measure(db, dev, &b, use, done, err);
	if (n)
		offer->release(offer->user);
	free(candidates);
	return ok;
}

/* Bits that every number of a type has, and bits that none has: so it is finite, and not far from 1. */
static void shape_of(enum cptx_type type, uint32_t *set, uint32_t *kept)
{
	*set = 0, *kept = UINT32_MAX;
	switch (type) {
	case CPTX_BF16: *set = 0x3f003f00, *kept = 0x80ff80ff; break;
	case CPTX_F16: *set = 0x38003800, *kept = 0x83ff83ff; break;
	case CPTX_F32:
	case CPTX_TF32: *set = 0x3f000000, *kept = 0x807fffff; break;
	case CPTX_E4M3:
	case CPTX_E5M2: *set = 0x30303030, *kept = 0x87878787; break;
	case CPTX_UE4M3: *set = 0x38383838, *kept = 0x07070707; break;
	case CPTX_UE8M0: *set = 0x7f7f7f7f, *kept = 0; break;
	default: break; /* any bits are a number */
	}
}

uint64_t kit_tuned_operand(cptx_device *dev, enum cptx_type type, uint64_t bytes, cptx_error *err)
{
	const uint64_t room = (MAX(bytes, 4u) + 3) / 4 * 4;
	uint64_t have = MIN(room, (uint64_t)CHUNK), seed = 88172645463325252u;
	uint32_t set, kept, *words = NEW_UNSET(uint32_t, have / 4);
	const uint64_t to = words ? cptx_mem_alloc(dev, room, err) : 0;

	if (!words)
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	shape_of(type, &set, &kept);
	for (uint64_t i = 0; to && i < have / 4; i++) {
		seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
		words[i] = ((uint32_t)(seed >> 16) & kept) | set;
	}
	if (to)
		cptx_mem_write(dev, to, words, have, err);
	for (uint64_t n; to && have < room; have += n) {
		n = MIN(have, room - have);
		cptx_mem_copy(dev, to + have, to, n, err);
	}
	free(words);
	if (err->code == CPTX_OK)
		return to;
	cptx_mem_free(dev, to);
	return 0;
}
