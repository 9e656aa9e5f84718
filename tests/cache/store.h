/* SPDX-License-Identifier: MIT */
/* What the tests of the cache's files share: a cache in a folder of its own, its warnings, entries that are known by a
 * number. */
#ifndef CPTX_TEST_STORE_H
#define CPTX_TEST_STORE_H

#include "folder.h"

static cptx_error err;
static unsigned warnings;
static char warned[1024];

static const char *const variables[] = { "CPTX_CACHE", "CPTX_CACHE_DIR", "CPTX_CACHE_SIZE", "XDG_CACHE_HOME", "HOME" };
static char *kept[sizeof variables / sizeof *variables];

static inline void before(void)
{
	folder_make();
	memset(&err, 0, sizeof err);
	warnings = 0, warned[0] = 0;
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		kept[i] = getenv(variables[i]) ? strdup(getenv(variables[i])) : NULL;
		unsetenv(variables[i]);
	}
}

static inline void after(void)
{
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		if (kept[i])
			setenv(variables[i], kept[i], 1);
		free(kept[i]);
	}
	folder_remove();
}

static inline void hear(void *user, const char *text)
{
	(void)user;
	warnings++;
	snprintf(warned, sizeof warned, "%s", text);
}

static inline cptx_cache *open_with(cptx_cache_opt opt)
{
	opt.path = opt.path ? opt.path : place;
	opt.warn = hear;
	cptx_cache *c = cptx_cache_open(&opt, &err);
	OK(err);
	return c;
}

static inline cptx_cache *open_cache(void) { return open_with((cptx_cache_opt){ 0 }); }

static inline cptx_cache_key key_of(unsigned n) { return cptx_cache_key_of(&(cptx_cache_part){ &n, sizeof n }, 1); }

static inline bool item_is_listed(void *user, const cptx_cache_item *item)
{
	(void)user;
	return item->name != NULL;
}

static inline bool put(cptx_cache *c, unsigned n, size_t size)
{
	unsigned char *data = malloc(size + 1);
	cptx_cache_key key = key_of(n);

	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)(n * 31 + i * 7 + (i >> 8));
	bool ok =
		cptx_cache_put(c, &key, &(cptx_cache_entry){ .data = data, .size = size, .log = "warning", .about = "kernel" });
	free(data);
	return ok;
}

static inline bool has(cptx_cache *c, unsigned n, size_t size)
{
	cptx_cache_key key = key_of(n);
	cptx_cache_entry e = { .data = &key, .log = "before" };

	if (!cptx_cache_get(c, &key, &e)) {
		ck_assert(!e.data && !e.size && !e.log && !e.about);
		return false;
	}
	ck_assert_uint_eq(e.size, size);
	for (size_t i = 0; i < size; i++)
		SURE(((unsigned char *)e.data)[i] == (unsigned char)(n * 31 + i * 7 + (i >> 8)), "byte %zu of entry %u", i, n);
	ck_assert_str_eq(e.log, "warning");
	ck_assert_str_eq(e.about, "kernel");
	free(e.data);
	return true;
}

#endif
