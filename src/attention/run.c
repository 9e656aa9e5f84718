/* SPDX-License-Identifier: MIT */
/* Attention in one call each: programs of earlier calls are kept, and found by the options. */
#include "attention/attention.h"
#include "attention/options.h"
#include "attention/tuned.h"
#include "base/options.h"
#include "kit/runner.h"

typedef struct loaded {
	kit_kept kept;
	cptx_attention_opt opt;
} loaded;

struct cptx_attention_runner {
	kit_runner base;
	kit_kept *choices; /* what the tuning database says of earlier problems */
};

cptx_attention_runner *cptx_attention_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	if (err)
		*err = (cptx_error){ .code = CPTX_OK };
	if (!IS_GIVEN(dev, "device", NOWHERE, err))
		return NULL;
	return (cptx_attention_runner *)kit_runner_new(sizeof(cptx_attention_runner), dev, cache, err);
}

void cptx_attention_runner_destroy(cptx_attention_runner *r)
{
	if (!r)
		return;
	kit_kept_free(r->choices);
	kit_runner_destroy(&r->base);
}

bool cptx_attention_runner_set_tune(cptx_attention_runner *r, const cptx_tune_use *use, cptx_error *err)
{
	return kit_runner_set_tune(r ? &r->base : NULL, use, err);
}

static bool same_options(const cptx_attention_opt *a, const cptx_attention_opt *b)
{
	bool same = a->user == b->user && !strcmp(a->name, b->name);

#define ATTENTION_FIELD(id, field, type, set, least, most, step, about) same &= a->field == b->field;
#include "attention/options.def"
	return same;
}

/* Builds, compiles and loads the kernel of completed options. */
static const loaded *load(cptx_attention_runner *r, const cptx_attention_opt *o, cptx_error *err)
{
	loaded *l = (loaded *)kit_kept_new(sizeof *l, o->name, err);

	if (!l)
		return NULL;
	l->opt = *o, l->opt.name = l->kept.name;
	cptx_module *m = cptx_module_new(NULL);
	const bool ok = cptx_attention_build(m, o, err) && kit_runner_load(&r->base, &l->kept, m, err);
	cptx_module_destroy(m);
	if (ok)
		return l;
	kit_kept_free(&l->kept);
	return NULL;
}

static const loaded *find(cptx_attention_runner *r, const cptx_attention_opt *o, cptx_error *err)
{
	pthread_mutex_lock(&r->base.lock);
	const loaded *l = (const loaded *)r->base.kernels;
	while (l && !same_options(&l->opt, o))
		l = (const loaded *)l->kept.next;
	l = l ? l : load(r, o, err);
	pthread_mutex_unlock(&r->base.lock);
	return l;
}

/* The options with a measured shape, where the caller leaves it open and one is known. */
static bool choose(cptx_attention_runner *r, cptx_attention_opt *o, const cptx_attention_opt *opt,
                   const cptx_attention_problem *problem, cptx_error *err)
{
	cptx_attention_problem p;

	*err = (cptx_error){ .code = CPTX_OK };
	if (!IS_GIVEN(opt, "options struct", NOWHERE, err) || !IS_GIVEN(problem, "problem", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_attention_opt, o, opt, NOWHERE, err) ||
	    !OPTIONS_READ(cptx_attention_problem, &p, problem, NOWHERE, err))
		return false;
	pthread_mutex_lock(&r->base.lock);
	*o = *attention_tuned_choose(&r->base, &r->choices, o, &p);
	pthread_mutex_unlock(&r->base.lock);
	return true;
}

bool cptx_attention_run(cptx_attention_runner *r, const cptx_attention_opt *opt, const cptx_attention_problem *problem,
                        cptx_stream *stream, cptx_error *err)
{
	cptx_error own;
	cptx_attention_opt o, chosen;
	cptx_attention_plan plan;
	const loaded *l;

	err = err ? err : &own;
	if (!IS_GIVEN(r, "runner", NOWHERE, err) || !choose(r, &chosen, opt, problem, err) ||
	    !attention_read(&o, &chosen, r->base.target, &plan, err) || !(l = find(r, &o, err)))
		return false;
	cptx_launch *launch = cptx_attention_launch(l->kept.program, r->base.dev, &l->opt, problem, err);
	const bool ok = launch && cptx_launch_run(launch, stream, err);
	cptx_launch_destroy(launch);
	return ok;
}
