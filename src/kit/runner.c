/* SPDX-License-Identifier: MIT */
#include "kit/runner.h"

#include <stdlib.h>

void *kit_runner_new(size_t size, cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	const char *target = cptx_device_get_info(dev)->target;
	cptx_error own = { .code = CPTX_OK };

	err = err ? err : &own;
	cptx_tune_policy_of(CPTX_TUNE_AS_SET, err); /* whoever misspells CPTX_TUNE would wonder why nothing is measured */
	if (err->code != CPTX_OK)
		return NULL;
	kit_runner *r = NEW_SIZED(kit_runner, size);
	if (!r || pthread_mutex_init(&r->lock, NULL)) {
		free(r);
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	r->dev = dev, r->cache = cache;
	r->target = target ? cptx_target_find(target) : NULL;
	return r;
}

void kit_runner_destroy(kit_runner *r)
{
	if (!r)
		return;
	kit_kept_free(r->kernels);
	if (r->owns_db)
		cptx_tune_close(r->db);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

void *kit_kept_new(size_t size, const char *name, cptx_error *err)
{
	const size_t n = name ? strlen(name) + 1 : 0;
	kit_kept *kept = NEW_SIZED(kit_kept, size);

	if (!kept || (n && !(kept->name = NEW_UNSET(char, n)))) {
		kit_kept_free(kept);
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	if (n)
		memcpy(kept->name, name, n);
	return kept;
}

void kit_kept_free(kit_kept *list)
{
	for (kit_kept *next; list; list = next) {
		next = list->next;
		cptx_program_destroy(list->program);
		free(list->name);
		free(list);
	}
}

bool kit_runner_load(kit_runner *r, kit_kept *kernel, cptx_module *m, cptx_error *err)
{
	kernel->program = cptx_device_load_(NOWHERE, r->dev, m, CPTX_OPT(cptx_load_opt, .cache = r->cache), err);
	if (!kernel->program)
		return false;
	kernel->next = r->kernels, r->kernels = kernel;
	return true;
}

static kit_kept *make(kit_runner *r, const kit_keeper *of, const void *options, const char *name, cptx_error *err)
{
	kit_kept *kernel = (kit_kept *)kit_kept_new(of->size, name, err);

	if (!kernel)
		return NULL;
	cptx_module *m = cptx_module_new(NULL);
	const bool ok = of->build(m, kernel, options, err) && kit_runner_load(r, kernel, m, err);
	cptx_module_destroy(m);
	if (ok)
		return kernel;
	kit_kept_free(kernel);
	return NULL;
}

const kit_kept *kit_runner_find(kit_runner *r, const kit_keeper *of, const void *options, const char *name, cptx_error *err)
{
	pthread_mutex_lock(&r->lock);
	const kit_kept *kernel = r->kernels;
	while (kernel && !of->same(kernel, options))
		kernel = kernel->next;
	kernel = kernel ? kernel : make(r, of, options, name, err);
	pthread_mutex_unlock(&r->lock);
	return kernel;
}
