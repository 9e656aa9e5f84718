/* SPDX-License-Identifier: MIT */
/* GEMMs in one call each: choices and programs of earlier calls are kept, and found by the options and sizes. */
#include "base/options.h"
#include "gemm/auto.h"
#include "gemm/options.h"
#include "gemm/tuned.h"
#include "kit/runner.h"

typedef struct loaded {
	kit_kept kept;
	cptx_gemm_opt opt;
} loaded;

/* Options and sizes that a run asked for, and the kernel that was found for them. */
typedef struct asked {
	kit_kept kept; /* without a program of its own */
	cptx_gemm_opt opt;
	uint64_t m, n, k; /* 0: any, since the options have a shape */
	uint32_t batch, ctas;
	const loaded *kernel;
} asked;

/* Memory for the workspaces of the runs of a stream, which follow one another.  A larger one comes in front of those that
 * earlier runs may still use. */
typedef struct room {
	kit_kept kept; /* without a name and a program */
	const cptx_stream *stream;
	uint64_t at, bytes;
} room;

struct cptx_gemm_runner {
	kit_runner base;
	kit_kept *requests, *rooms;
	cptx_gemm_runner_stats stats;
};

static bool same_name(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static bool same_options(const cptx_gemm_opt *a, const cptx_gemm_opt *b)
{
	bool same = a->user == b->user && same_name(a->name, b->name);

#define GEMM_FIELD(id, field, type, set, none, least, most, why, about) same &= a->field == b->field;
#include "gemm/options.def"
	return same;
}

cptx_gemm_runner *cptx_gemm_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	if (!IS_GIVEN(dev, "device", NOWHERE, err))
		return NULL;
	return (cptx_gemm_runner *)kit_runner_new(sizeof(cptx_gemm_runner), dev, cache, err);
}

void cptx_gemm_runner_destroy(cptx_gemm_runner *r)
{
	if (!r)
		return;
	kit_kept_free(r->requests);
	for (const kit_kept *k = r->rooms; k; k = k->next)
		cptx_mem_free(r->base.dev, ((const room *)k)->at);
	kit_kept_free(r->rooms);
	kit_runner_destroy(&r->base);
}

bool cptx_gemm_runner_set_tune(cptx_gemm_runner *r, const cptx_tune_use *use, cptx_error *err)
{
	return kit_runner_set_tune(r ? &r->base : NULL, use, err);
}

/* A shape for the problem where the options have none, measured or by the model; without stream_k, for which there is no
 * workspace. */
static bool choose(cptx_gemm_runner *r, const cptx_gemm_problem *p, cptx_gemm_opt *o, uint32_t *ctas, cptx_error *err)
{
	cptx_gemm_choice c;

	if (gemm_tuned_choose(&r->base, o, p, ctas))
		return true;
	if (!gemm_auto_whole(o, r->base.target, cptx_device_get_info(r->base.dev)->sms, p, true, &c, 1, err))
		return false;
	*o = c.opt, *ctas = c.ctas;
	return true;
}

static const loaded *load(cptx_gemm_runner *r, const cptx_gemm_opt *o, cptx_error *err)
{
	for (kit_kept *l = r->base.kernels; l; l = l->next)
		if (same_options(&((const loaded *)l)->opt, o))
			return (const loaded *)l;
	loaded *l = (loaded *)kit_kept_new(sizeof *l, o->name, err);
	if (!l)
		return NULL;
	l->opt = *o, l->opt.name = l->kept.name;
	cptx_module *m = cptx_module_new(NULL);
	const bool ok = cptx_gemm_build(m, o, err) && kit_runner_load(&r->base, &l->kept, m, err);
	cptx_module_destroy(m);
	if (ok) {
		r->stats.programs++;
		return l;
	}
	kit_kept_free(&l->kept);
	return NULL;
}

static const asked *find(const cptx_gemm_runner *r, const cptx_gemm_opt *o, const cptx_gemm_problem *p)
{
	const asked *a = (const asked *)r->requests;

	while (a &&
	       !(same_options(&a->opt, o) && (o->bm || (a->m == p->m && a->n == p->n && a->k == p->k && a->batch == p->batch))))
		a = (const asked *)a->kept.next;
	return a;
}

static const asked *make(cptx_gemm_runner *r, const cptx_gemm_opt *o, const cptx_gemm_problem *p, cptx_error *err)
{
	cptx_gemm_opt full = *o;
	asked *a = (asked *)kit_kept_new(sizeof *a, o->name, err);

	if (!a)
		return NULL;
	a->opt = *o, a->opt.name = a->kept.name;
	a->m = p->m, a->n = p->n, a->k = p->k, a->batch = p->batch;
	if ((!o->bm && !choose(r, p, &full, &a->ctas, err)) || !(a->kernel = load(r, &full, err))) {
		kit_kept_free(&a->kept);
		return NULL;
	}
	a->kept.next = r->requests, r->requests = &a->kept;
	return a;
}

/* A workspace of so many bytes for the next run of a stream; 0: err says why. */
static uint64_t workspace(cptx_gemm_runner *r, const cptx_stream *stream, uint64_t bytes, cptx_error *err)
{
	for (const kit_kept *k = r->rooms; k; k = k->next) {
		const room *known = (const room *)k;
		if (known->stream == stream && known->bytes >= bytes)
			return known->at;
	}
	room *x = (room *)kit_kept_new(sizeof *x, NULL, err);
	if (!x)
		return 0;
	x->stream = stream, x->bytes = bytes, x->at = cptx_mem_alloc(r->base.dev, bytes, err);
	if (x->at && cptx_mem_fill8(r->base.dev, x->at, 0, bytes, err)) {
		x->kept.next = r->rooms, r->rooms = &x->kept;
		return x->at;
	}
	cptx_mem_free(r->base.dev, x->at);
	kit_kept_free(&x->kept);
	return 0;
}

/* The workspace that copies of A and B need, where the caller left it to the runner. */
static bool make_room(cptx_gemm_runner *r, const cptx_gemm_opt *o, cptx_gemm_problem *p, const cptx_stream *stream,
                      cptx_error *err)
{
	cptx_gemm_plan plan;

	if (p->workspace || o->stream_k || !o->unaligned)
		return true;
	return cptx_gemm_check_problem(o, p, cptx_device_get_info(r->base.dev)->sms, &plan, err) &&
	       (!plan.workspace || (p->workspace = workspace(r, stream, plan.workspace, err)) != 0);
}

static bool read_arguments(const cptx_gemm_runner *r, const cptx_gemm_opt *opt, const cptx_gemm_problem *problem,
                           cptx_gemm_opt *o, cptx_gemm_problem *p, cptx_error *err)
{
	if (!IS_GIVEN(r, "runner", NOWHERE, err) || !IS_GIVEN(opt, "options struct", NOWHERE, err) ||
	    !IS_GIVEN(problem, "problem", NOWHERE, err) || !OPTIONS_READ(cptx_gemm_opt, o, opt, NOWHERE, err) ||
	    !OPTIONS_READ(cptx_gemm_problem, p, problem, NOWHERE, err))
		return false;
	return !o->grouped ||
	       error_set(err, CPTX_E_ARG, NOWHERE,
	                 "gemm: cptx_gemm_run takes one problem, not a list (.grouped): cptx_gemm_launch_grouped");
}

bool cptx_gemm_run(cptx_gemm_runner *r, const cptx_gemm_opt *opt, const cptx_gemm_problem *problem, cptx_stream *stream,
                   cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	cptx_gemm_opt o;
	cptx_gemm_problem p;

	err = err ? err : &own;
	if (!read_arguments(r, opt, problem, &o, &p, err))
		return false;
	if (!o.bm)
		gemm_auto_fit(&o, &p);
	pthread_mutex_lock(&r->base.lock);
	const asked *a = find(r, &o, &p);
	r->stats.hits += a != NULL, r->stats.misses += a == NULL;
	a = a ? a : make(r, &o, &p, err);
	if (a)
		p.ctas = p.ctas ? p.ctas : a->ctas;
	const bool ready = a && make_room(r, &a->kernel->opt, &p, stream, err);
	pthread_mutex_unlock(&r->base.lock);
	if (!ready)
		return false;
	cptx_launch *l = cptx_gemm_launch(a->kernel->kept.program, r->base.dev, &a->kernel->opt, &p, err);
	bool ok = l && cptx_launch_run(l, stream, err);
	cptx_launch_destroy(l);
	return ok;
}

void cptx_gemm_runner_count_(cptx_gemm_runner *r, cptx_gemm_runner_stats *stats, size_t size)
{
	cptx_gemm_runner_stats s = { .hits = 0 };

	if (r) {
		pthread_mutex_lock(&r->base.lock);
		s = r->stats;
		pthread_mutex_unlock(&r->base.lock);
	}
	if (stats)
		RESULT_FILL(stats, size, &s);
}
