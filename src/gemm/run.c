/* SPDX-License-Identifier: MIT */
/* GEMMs in one call each: choices and programs of earlier calls are kept, and found by the options and sizes. */
#include "base/options.h"
#include "gemm/auto.h"
#include "gemm/options.h"

#include <pthread.h>
#include <stdlib.h>

/* A loaded kernel. */
typedef struct loaded {
	struct loaded *next;
	cptx_gemm_opt opt;
	char *name; /* behind opt.name, if that was given */
	cptx_program *program;
} loaded;

/* What was asked for, and the kernel that does it. */
typedef struct asked {
	struct asked *next;
	cptx_gemm_opt opt;
	char *name;
	uint64_t m, n, k; /* 0: any, since the options have a shape */
	uint32_t batch, ctas;
	const loaded *kernel;
} asked;

struct cptx_gemm_runner {
	cptx_device *dev;
	cptx_cache *cache;
	pthread_mutex_t lock;
	asked *requests;
	loaded *kernels;
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

/* The options with a name of their own. */
static bool keep_options(cptx_gemm_opt *to, char **name, const cptx_gemm_opt *from)
{
	size_t n = from->name ? strlen(from->name) + 1 : 0;

	*to = *from;
	*name = n ? NEW_UNSET(char, n) : NULL;
	if (*name)
		memcpy(*name, from->name, n);
	to->name = *name;
	return !n || *name;
}

cptx_gemm_runner *cptx_gemm_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	if (err)
		*err = (cptx_error){ .code = CPTX_OK };
	if (!IS_GIVEN(dev, "device", NOWHERE, err))
		return NULL;
	cptx_gemm_runner *r = NEW(cptx_gemm_runner);
	if (!r || pthread_mutex_init(&r->lock, NULL)) {
		free(r);
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	r->dev = dev, r->cache = cache;
	return r;
}

static void release_loaded(loaded *l)
{
	if (!l)
		return;
	cptx_program_destroy(l->program);
	free(l->name);
	free(l);
}

static void release_asked(asked *a)
{
	if (a)
		free(a->name);
	free(a);
}

void cptx_gemm_runner_destroy(cptx_gemm_runner *r)
{
	if (!r)
		return;
	for (asked *a = r->requests, *next; a; a = next) {
		next = a->next;
		release_asked(a);
	}
	for (loaded *l = r->kernels, *next; l; l = next) {
		next = l->next;
		release_loaded(l);
	}
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* A shape for the problem where the options have none; without stream_k, for which there is no workspace. */
static bool choose(const cptx_gemm_runner *r, const cptx_gemm_problem *p, cptx_gemm_opt *o, uint32_t *ctas, cptx_error *err)
{
	const cptx_device_info *info = cptx_device_get_info(r->dev);
	cptx_gemm_choice c;
	gemm_pick x = { .choices = (char *)&c,
		            .size = sizeof c,
		            .room = 1,
		            .target = cptx_target_find(info->target),
		            .sms = info->sms,
		            .whole_tiles = true };

	if (!gemm_auto_fill(&x, o, p, err))
		return false;
	*o = c.opt, *ctas = c.ctas;
	return true;
}

static const loaded *load(cptx_gemm_runner *r, const cptx_gemm_opt *o, cptx_error *err)
{
	for (const loaded *l = r->kernels; l; l = l->next)
		if (same_options(&l->opt, o))
			return l;
	loaded *l = NEW(loaded);
	if (!l || !keep_options(&l->opt, &l->name, o)) {
		release_loaded(l);
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	cptx_module *m = cptx_module_new(NULL);
	if (cptx_gemm_build(m, o, err))
		l->program = cptx_device_load_(NOWHERE, r->dev, m, CPTX_OPT(cptx_load_opt, .cache = r->cache), err);
	cptx_module_destroy(m);
	if (!l->program) {
		release_loaded(l);
		return NULL;
	}
	l->next = r->kernels, r->kernels = l;
	r->stats.programs++;
	return l;
}

static const asked *find(const cptx_gemm_runner *r, const cptx_gemm_opt *o, const cptx_gemm_problem *p)
{
	const asked *a = r->requests;

	while (a &&
	       !(same_options(&a->opt, o) && (o->bm || (a->m == p->m && a->n == p->n && a->k == p->k && a->batch == p->batch))))
		a = a->next;
	return a;
}

static const asked *make(cptx_gemm_runner *r, const cptx_gemm_opt *o, const cptx_gemm_problem *p, cptx_error *err)
{
	cptx_gemm_opt full = *o;
	asked *a = NEW(asked);

	if (!a || !keep_options(&a->opt, &a->name, o)) {
		release_asked(a);
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	a->m = p->m, a->n = p->n, a->k = p->k, a->batch = p->batch;
	if ((!o->bm && !choose(r, p, &full, &a->ctas, err)) || !(a->kernel = load(r, &full, err))) {
		release_asked(a);
		return NULL;
	}
	a->next = r->requests, r->requests = a;
	return a;
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
	cptx_error own;
	cptx_gemm_opt o;
	cptx_gemm_problem p;

	err = err ? err : &own;
	*err = (cptx_error){ .code = CPTX_OK };
	if (!read_arguments(r, opt, problem, &o, &p, err))
		return false;
	pthread_mutex_lock(&r->lock);
	const asked *a = find(r, &o, &p);
	r->stats.hits += a != NULL, r->stats.misses += a == NULL;
	a = a ? a : make(r, &o, &p, err);
	pthread_mutex_unlock(&r->lock);
	if (!a)
		return false;
	p.ctas = p.ctas ? p.ctas : a->ctas;
	cptx_launch *l = cptx_gemm_launch(a->kernel->program, r->dev, &a->kernel->opt, &p, err);
	bool ok = l && cptx_launch_run(l, stream, err);
	cptx_launch_destroy(l);
	return ok;
}

void cptx_gemm_runner_count_(cptx_gemm_runner *r, cptx_gemm_runner_stats *stats, size_t size)
{
	cptx_gemm_runner_stats s = { .hits = 0 };

	if (r) {
		pthread_mutex_lock(&r->lock);
		s = r->stats;
		pthread_mutex_unlock(&r->lock);
	}
	if (stats)
		RESULT_FILL(stats, size, &s);
}
