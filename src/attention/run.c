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

static bool same(const kit_kept *kernel, const void *options)
{
	return attention_same_options(&((const loaded *)kernel)->opt, (const cptx_attention_opt *)options);
}

static bool build(cptx_module *m, kit_kept *kernel, const void *options, cptx_error *err)
{
	loaded *l = (loaded *)kernel;

	l->opt = *(const cptx_attention_opt *)options, l->opt.name = l->kept.name;
	return cptx_attention_build(m, &l->opt, err) != NULL;
}

static const kit_keeper keeper = { sizeof(loaded), same, build };

static bool fits(const cptx_attention_runner *r, const cptx_attention_opt *o, const cptx_attention_problem *p,
                 cptx_error *err)
{
	return cptx_attention_check_problem(o, p, cptx_device_get_info(r->base.dev)->sms, NULL, err) &&
	       cptx_attention_check(o, r->base.target, NULL, err);
}

/* Where what is given of the shape leaves the usual rest of it no room, the rest that the model likes best. */
static bool complete(const cptx_attention_runner *r, cptx_attention_opt *o, const cptx_attention_problem *p, cptx_error *err)
{
	enum { CHOICES = 64 };
	cptx_error why = { .code = CPTX_OK };
	cptx_attention_choice c[CHOICES];

	if (fits(r, o, p, &why))
		return true;
	const size_t n = cptx_attention_auto(o, p, cptx_device_get_info(r->base.dev)->sms, c, CHOICES, NULL);
	for (size_t i = 0; i < n; i++)
		if (fits(r, &c[i].opt, p, NULL)) {
			*o = c[i].opt;
			return true;
		}
	*err = why;
	return false;
}

/* The options with a measured shape, where the caller leaves it open and one is known. */
static bool choose(cptx_attention_runner *r, cptx_attention_opt *o, const cptx_attention_opt *opt,
                   const cptx_attention_problem *problem, cptx_error *err)
{
	cptx_attention_problem p;

	if (!IS_GIVEN(opt, "options struct", NOWHERE, err) || !IS_GIVEN(problem, "problem", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_attention_opt, o, opt, NOWHERE, err) ||
	    !OPTIONS_READ(cptx_attention_problem, &p, problem, NOWHERE, err) || !complete(r, o, &p, err))
		return false;
	const char *name = o->name; /* the one of a choice goes with it */
	pthread_mutex_lock(&r->base.lock);
	*o = *attention_tuned_choose(&r->base, &r->choices, o, &p);
	pthread_mutex_unlock(&r->base.lock);
	o->name = name;
	return true;
}

/* Heads in a tile, where the caller leaves it open and the shape allows it. */
static bool pack(cptx_attention_opt *o, const cptx_attention_opt *given, const cptx_attention_problem *problem,
                 cptx_error *err)
{
	cptx_attention_problem p;

	if (o->pack)
		return true;
	if (!attention_read_problem(&p, problem, o, err))
		return false;
	attention_set_pack(o, &p, !given->bq);
	return true;
}

bool cptx_attention_run(cptx_attention_runner *r, const cptx_attention_opt *opt, const cptx_attention_problem *problem,
                        cptx_stream *stream, cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	cptx_attention_opt o, chosen;
	cptx_attention_plan plan;
	const loaded *l;

	err = err ? err : &own;
	if (!IS_GIVEN(r, "runner", NOWHERE, err) || !choose(r, &chosen, opt, problem, err) ||
	    !attention_read(&o, &chosen, r->base.target, &plan, err) || !pack(&o, &chosen, problem, err) ||
	    !(l = (const loaded *)kit_runner_find(&r->base, &keeper, &o, o.name, err)))
		return false;
	cptx_launch *launch = cptx_attention_launch(l->kept.program, r->base.dev, &l->opt, problem, err);
	const bool ok = launch && cptx_launch_run(launch, stream, err);
	cptx_launch_destroy(launch);
	return ok;
}
