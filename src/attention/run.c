/* SPDX-License-Identifier: MIT */
/* Attention in one call each: programs of earlier calls are kept, and found by the options. */
#include "attention/attention.h"
#include "base/options.h"
#include "attention/options.h"

#include <pthread.h>
#include <stdlib.h>

/* A loaded kernel. */
typedef struct loaded {
	struct loaded *next;
	cptx_attention_opt opt;
	char *name; /* of opt */
	cptx_program *program;
} loaded;

struct cptx_attention_runner {
	cptx_device *dev;
	cptx_cache *cache;
	pthread_mutex_t lock;
	loaded *kernels;
};

cptx_attention_runner *cptx_attention_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	if (err)
		*err = (cptx_error){ .code = CPTX_OK };
	if (!IS_GIVEN(dev, "device", NOWHERE, err))
		return NULL;
	cptx_attention_runner *r = NEW(cptx_attention_runner);
	if (!r || pthread_mutex_init(&r->lock, NULL)) {
		free(r);
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	r->dev = dev, r->cache = cache;
	return r;
}

static void release(loaded *l)
{
	if (!l)
		return;
	cptx_program_destroy(l->program);
	free(l->name);
	free(l);
}

void cptx_attention_runner_destroy(cptx_attention_runner *r)
{
	if (!r)
		return;
	for (loaded *l = r->kernels, *next; l; l = next) {
		next = l->next;
		release(l);
	}
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static bool same_options(const cptx_attention_opt *a, const cptx_attention_opt *b)
{
	bool same = a->user == b->user && !strcmp(a->name, b->name);

#define ATTENTION_FIELD(id, field, type, set, least, most, step, about) same &= a->field == b->field;
#include "attention/options.def"
	return same;
}

/* Builds, compiles and loads the kernel of completed options. */
static loaded *load(const cptx_attention_runner *r, const cptx_attention_opt *o, cptx_error *err)
{
	const size_t n = strlen(o->name) + 1;
	loaded *l = NEW(loaded);

	if (!l || !(l->name = NEW_UNSET(char, n))) {
		release(l);
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	memcpy(l->name, o->name, n);
	l->opt = *o, l->opt.name = l->name;
	cptx_module *m = cptx_module_new(NULL);
	if (cptx_attention_build(m, o, err))
		l->program = cptx_device_load_(NOWHERE, r->dev, m, CPTX_OPT(cptx_load_opt, .cache = r->cache), err);
	cptx_module_destroy(m);
	if (l->program)
		return l;
	release(l);
	return NULL;
}

static const loaded *find(cptx_attention_runner *r, const cptx_attention_opt *o, cptx_error *err)
{
	loaded *l;

	pthread_mutex_lock(&r->lock);
	for (l = r->kernels; l && !same_options(&l->opt, o);)
		l = l->next;
	if (!l && (l = load(r, o, err)))
		l->next = r->kernels, r->kernels = l;
	pthread_mutex_unlock(&r->lock);
	return l;
}

bool cptx_attention_run(cptx_attention_runner *r, const cptx_attention_opt *opt, const cptx_attention_problem *problem,
                        cptx_stream *stream, cptx_error *err)
{
	cptx_attention_opt o;
	cptx_attention_plan plan;
	const loaded *l;

	if (!IS_GIVEN(r, "runner", NOWHERE, err) ||
	    !attention_read(&o, opt, cptx_target_find(cptx_device_get_info(r->dev)->target), &plan, err) ||
	    !(l = find(r, &o, err)))
		return false;
	cptx_launch *launch = cptx_attention_launch(l->program, r->dev, &l->opt, problem, err);
	const bool ok = launch && cptx_launch_run(launch, stream, err);
	cptx_launch_destroy(launch);
	return ok;
}
