/* SPDX-License-Identifier: MIT */
/* What has no form on Windows: the cache, the tuning database, compilers that are programs, and the module of Python. */
#include "base/options.h"
#include "compile/process.h"

#include <cptx/dlpack.h>
#include <cptx/python.h>
#include <cptx/tune.h>

#include <errno.h>
#include <stdlib.h>

static bool absent(const char *what, cptx_error *err)
{
	return error_set(err, CPTX_E_STATE, NOWHERE, "there is no %s on Windows", what);
}

/* ---- the cache: it can be opened, and keeps nothing ---- */

struct cptx_cache {
	uint64_t misses;
};

cptx_cache *cptx_cache_open(const cptx_cache_opt *opt, cptx_error *err)
{
	cptx_cache_opt o;

	if ((err && err->code != CPTX_OK) || !OPTIONS_READ(cptx_cache_opt, &o, opt, NOWHERE, err))
		return NULL;
	cptx_cache *c = NEW(cptx_cache);
	if (!c)
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	else if (o.warn)
		o.warn(o.user, "no cache: there is none on Windows");
	return c;
}

void cptx_cache_close(cptx_cache *cache) { free(cache); }
const char *cptx_cache_path(const cptx_cache *cache) { return (void)cache, ""; }
bool cptx_cache_can_read(const cptx_cache *cache) { return (void)cache, false; }
bool cptx_cache_can_write(const cptx_cache *cache) { return (void)cache, false; }

bool cptx_cache_get(cptx_cache *cache, const cptx_cache_key *key, cptx_cache_entry *entry)
{
	(void)key;
	if (entry)
		*entry = (cptx_cache_entry){ 0 };
	if (cache)
		cache->misses++;
	return false;
}

bool cptx_cache_put(cptx_cache *cache, const cptx_cache_key *key, const cptx_cache_entry *entry)
{
	(void)cache, (void)key, (void)entry;
	return false;
}

bool cptx_cache_each(cptx_cache *cache, bool remove_damaged, bool (*each)(void *user, const cptx_cache_item *item),
                     void *user)
{
	(void)cache, (void)remove_damaged, (void)each, (void)user;
	return false;
}

uint64_t cptx_cache_clear(cptx_cache *cache) { return (void)cache, 0; }

void cptx_cache_count_(cptx_cache *cache, cptx_cache_stats *stats, size_t size)
{
	const cptx_cache_stats s = { .misses = cache ? cache->misses : 0 };

	if (stats)
		RESULT_FILL(stats, size, &s);
}

/* ---- the tuning database: runners take what the models pick ---- */

cptx_tune *cptx_tune_open(const cptx_tune_opt *opt, cptx_error *err)
{
	(void)opt;
	absent("tuning database", err);
	return NULL;
}

void cptx_tune_close(cptx_tune *db) { (void)db; }
const char *cptx_tune_path(const cptx_tune *db) { return (void)db, ""; }

bool cptx_tune_add(cptx_tune *db, const cptx_tune_record *record, cptx_error *err)
{
	(void)db, (void)record;
	return absent("tuning database", err);
}

size_t cptx_tune_find(cptx_tune *db, const cptx_tune_key *key, double radius, cptx_tune_found *found, size_t room,
                      cptx_error *err)
{
	(void)db, (void)key, (void)radius, (void)found, (void)room;
	return absent("tuning database", err);
}

bool cptx_tune_has(cptx_tune *db, const cptx_tune_key *key, const char *candidate, cptx_error *err)
{
	(void)db, (void)key, (void)candidate;
	return absent("tuning database", err);
}

bool cptx_tune_each(cptx_tune *db, bool (*each)(void *user, const cptx_tune_record *record), void *user, uint64_t *damaged,
                    cptx_error *err)
{
	(void)db, (void)each, (void)user, (void)damaged;
	return absent("tuning database", err);
}

uint64_t cptx_tune_export(cptx_tune *db, const char *file, cptx_error *err)
{
	(void)db, (void)file;
	return absent("tuning database", err);
}

uint64_t cptx_tune_import(cptx_tune *db, const char *from, cptx_error *err)
{
	(void)db, (void)from;
	return absent("tuning database", err);
}

bool cptx_tune_prune(cptx_tune *db, const cptx_tune_prune_opt *opt, cptx_tune_pruned *pruned, cptx_error *err)
{
	(void)db, (void)opt, (void)pruned;
	return absent("tuning database", err);
}

bool cptx_tune_measure(cptx_tune *db, cptx_device *dev, const cptx_tune_job *job, const cptx_tune_use *use,
                       cptx_tune_done *done, cptx_error *err)
{
	(void)db, (void)dev, (void)job, (void)use, (void)done;
	return absent("tuning database", err);
}

/* ---- compilers that are programs: none is found, so that another is taken ---- */

bool process_find(const char *name, const char *variable, char *path, size_t size)
{
	(void)name, (void)variable, (void)path, (void)size;
	return false;
}

bool process_run(process *p)
{
	(void)p;
	errno = ENOSYS;
	return false;
}

int process_file(const void *data, size_t size)
{
	(void)data, (void)size;
	errno = ENOSYS;
	return -1;
}

char *process_read(int fd, size_t *size)
{
	(void)fd, (void)size;
	errno = ENOSYS;
	return NULL;
}

/* ---- Python: CPython is found by weak symbols, which libraries of Windows do not have ---- */

void *cptx_python_value_class(cptx_error *err)
{
	absent("module of Python", err);
	return NULL;
}

void *cptx_python_builder(const cptx_python_builder_opt *opt, cptx_error *err)
{
	(void)opt;
	return cptx_python_value_class(err);
}

void *cptx_python_value(void *builder, cptx_val v)
{
	(void)builder, (void)v;
	return NULL;
}

void *cptx_python_calls(void *builder, cptx_module *module, cptx_kernel *kernel, void *owner, cptx_error *err)
{
	(void)builder, (void)module, (void)kernel, (void)owner;
	return cptx_python_value_class(err);
}

const char *cptx_python_call_at(size_t i)
{
	(void)i;
	return NULL;
}

cptx_site cptx_python_line(void *builder, unsigned up)
{
	(void)builder, (void)up;
	return NOWHERE;
}

void *cptx_python_callable(cptx_tensor_launch *launch, const cptx_python_opt *opt, cptx_error *err)
{
	(void)launch, (void)opt;
	return cptx_python_value_class(err);
}
