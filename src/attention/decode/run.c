/* SPDX-License-Identifier: MIT */
/* Decoding in one call each: programs of earlier calls are kept, and found by the options. */
#include "attention/decode/decode.h"
#include "kit/runner.h"

typedef struct loaded {
	kit_kept kept;
	cptx_attention_decode_opt opt;
} loaded;

struct cptx_attention_decode_runner {
	kit_runner base;
};

cptx_attention_decode_runner *cptx_attention_decode_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	if (!IS_GIVEN(dev, "device", NOWHERE, err))
		return NULL;
	return (cptx_attention_decode_runner *)kit_runner_new(sizeof(cptx_attention_decode_runner), dev, cache, err);
}

void cptx_attention_decode_runner_destroy(cptx_attention_decode_runner *r) { kit_runner_destroy(r ? &r->base : NULL); }

static bool same(const kit_kept *kernel, const void *options)
{
	const cptx_attention_decode_opt *a = &((const loaded *)kernel)->opt, *b = (const cptx_attention_decode_opt *)options;
	bool same = !strcmp(a->name, b->name);

#define DECODE_FIELD(id, field, type, least, most, step, about) same &= a->field == b->field;
#include "attention/decode/options.def"
	return same;
}

static bool build(cptx_module *m, kit_kept *kernel, const void *options, cptx_error *err)
{
	loaded *l = (loaded *)kernel;

	l->opt = *(const cptx_attention_decode_opt *)options, l->opt.name = kernel->name;
	return cptx_attention_decode_build(m, &l->opt, err) != NULL;
}

static const kit_keeper keeper = { sizeof(loaded), same, build };

/* The options of a run: the model's shape where none is given, and what the device can. */
static bool choose(cptx_attention_decode_runner *r, const cptx_attention_decode_opt *opt,
                   const cptx_attention_decode_problem *problem, cptx_attention_decode_opt *o,
                   cptx_attention_decode_plan *plan, cptx_error *err)
{
	const cptx_target *t = r->base.target;
	const uint32_t sms = cptx_device_get_info(r->base.dev)->sms;
	cptx_attention_decode_choice c;

	if (!cptx_attention_decode_auto(opt, problem, t, sms, &c, 1, err))
		return false;
	*o = c.opt;
	o->overlap = o->overlap || (t && cptx_form_on_target(CPTX_OP_GRIDDEPCONTROL, 0, t));
	return cptx_attention_decode_check_problem(o, problem, t, sms, plan, err);
}

uint64_t cptx_attention_decode_workspace(cptx_attention_decode_runner *r, const cptx_attention_decode_opt *opt,
                                         const cptx_attention_decode_problem *problem, cptx_error *err)
{
	cptx_attention_decode_opt o;
	cptx_attention_decode_plan plan;

	return IS_GIVEN(r, "runner", NOWHERE, err) && choose(r, opt, problem, &o, &plan, err) ? plan.workspace : 0;
}

bool cptx_attention_decode_run(cptx_attention_decode_runner *r, const cptx_attention_decode_opt *opt,
                               const cptx_attention_decode_problem *problem, cptx_stream *stream, cptx_error *err)
{
	cptx_attention_decode_opt o;
	cptx_attention_decode_plan plan;
	const loaded *l;
	bool ok = true;

	if (!IS_GIVEN(r, "runner", NOWHERE, err) || !choose(r, opt, problem, &o, &plan, err))
		return false;
	if (!plan.grid || !problem->queries)
		return true;
	if (!(l = (const loaded *)kit_runner_find(&r->base, &keeper, &o, o.name, err)))
		return false;
	for (uint32_t i = 0; ok && i < plan.launches; i++) {
		cptx_launch *launch = cptx_attention_decode_launch(l->kept.program, r->base.dev, &l->opt, problem, i, err);
		ok = launch && cptx_launch_run(launch, stream, err);
		cptx_launch_destroy(launch);
	}
	return ok;
}
