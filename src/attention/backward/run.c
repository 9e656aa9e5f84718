/* SPDX-License-Identifier: MIT */
/* Attention backward in one call each: programs of earlier calls are kept, and found by the options. */
#include "attention/backward/backward.h"
#include "kit/runner.h"

typedef struct loaded {
	kit_kept kept;
	cptx_attention_backward_opt opt;
} loaded;

struct cptx_attention_backward_runner {
	kit_runner base;
};

cptx_attention_backward_runner *cptx_attention_backward_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	if (!IS_GIVEN(dev, "device", NOWHERE, err))
		return NULL;
	return (cptx_attention_backward_runner *)kit_runner_new(sizeof(cptx_attention_backward_runner), dev, cache, err);
}

void cptx_attention_backward_runner_destroy(cptx_attention_backward_runner *r) { kit_runner_destroy(r ? &r->base : NULL); }

static bool same(const kit_kept *kernel, const void *options)
{
	const cptx_attention_backward_opt *a = &((const loaded *)kernel)->opt, *b = (const cptx_attention_backward_opt *)options;
	bool same = !strcmp(a->name, b->name);

#define BACKWARD_FIELD(id, field, type, least, most, step, about) same &= a->field == b->field;
#include "attention/backward/options.def"
	return same;
}

static bool build(cptx_module *m, kit_kept *kernel, const void *options, cptx_error *err)
{
	loaded *l = (loaded *)kernel;

	l->opt = *(const cptx_attention_backward_opt *)options, l->opt.name = kernel->name;
	return cptx_attention_backward_build(m, &l->opt, err) != NULL;
}

static const kit_keeper keeper = { sizeof(loaded), same, build };

bool cptx_attention_backward_run(cptx_attention_backward_runner *r, const cptx_attention_backward_opt *opt,
                                 const cptx_attention_backward_problem *problem, cptx_stream *stream, cptx_error *err)
{
	cptx_attention_backward_opt o;
	cptx_attention_backward_plan plan;
	cptx_attention_backward_problem p;
	const loaded *l;
	bool ok = true;

	if (!IS_GIVEN(r, "runner", NOWHERE, err) || !backward_read(&o, opt, NULL, &plan, err))
		return false;
	/* shared memory of sm_86, 89 and 120 holds smaller blocks than the usual ones */
	if (o.mma == CPTX_ATTENTION_SYNC && !opt->bq && !opt->bk && r->base.target &&
	    !backward_read(&o, opt, r->base.target, &plan, NULL))
		o.bq = 32, o.bk = 64;
	o.sm90 = o.sm90 || (r->base.target && cptx_form_on_target(CPTX_OP_GRIDDEPCONTROL, 0, r->base.target));
	const cptx_attention_backward_opt chosen = o;
	if (!backward_read(&o, &chosen, r->base.target, &plan, err) || !backward_read_problem(&p, problem, &o, &plan, err) ||
	    !(l = (const loaded *)kit_runner_find(&r->base, &keeper, &o, o.name, err)))
		return false;
	for (uint32_t i = 0; ok && i < CPTX_ATTENTION_BACKWARD_LAUNCHES; i++) {
		if (!backward_has_launch(&l->opt, &p, &plan, i))
			continue;
		cptx_launch *launch = cptx_attention_backward_launch(l->kept.program, r->base.dev, &l->opt, problem, i, err);
		ok = launch && cptx_launch_run(launch, stream, err);
		cptx_launch_destroy(launch);
	}
	return ok;
}
