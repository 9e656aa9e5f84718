/* SPDX-License-Identifier: MIT */
/* Row kernels in one call each: programs of earlier calls are kept, and found by their options. */
#include "base/options.h"
#include "rows/rows.h"

#include <pthread.h>

/* A loaded kernel: what was asked for, and the shape that was chosen.  A shape is chosen for a number of rows, to a power of
 * two. */
typedef struct loaded {
	struct loaded *next;
	cptx_rows_opt asked, opt;
	uint32_t rows;
	char *name;
	cptx_program *program;
} loaded;

struct cptx_rows_runner {
	cptx_device *dev;
	cptx_cache *cache;
	pthread_mutex_t lock;
	loaded *kernels;
};

cptx_rows_runner *cptx_rows_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	if (err)
		*err = (cptx_error){ .code = CPTX_OK };
	if (!IS_GIVEN(dev, "device", NOWHERE, err))
		return NULL;
	cptx_rows_runner *r = NEW(cptx_rows_runner);
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

void cptx_rows_runner_destroy(cptx_rows_runner *r)
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

/* Complete options with the same values are the same kernel; names are compared as texts. */
static bool same(const cptx_rows_opt *a, const cptx_rows_opt *b)
{
	return a->kernel == b->kernel && a->in == b->in && a->out == b->out && a->weight == b->weight && a->index == b->index &&
	       a->n == b->n && a->align == b->align && a->with == b->with && memcmp(&a->eps, &b->eps, sizeof a->eps) == 0 &&
	       memcmp(&a->smoothing, &b->smoothing, sizeof a->smoothing) == 0 &&
	       memcmp(&a->z_loss, &b->z_loss, sizeof a->z_loss) == 0 && a->ignored_label == b->ignored_label &&
	       a->ignore == b->ignore && a->tanh == b->tanh && a->heads == b->heads && a->place == b->place &&
	       a->threads == b->threads && a->per_row == b->per_row && a->split == b->split && a->min_ctas == b->min_ctas &&
	       a->prefetch == b->prefetch && a->reads == b->reads && a->writes == b->writes && a->local == b->local &&
	       a->body == b->body && a->user == b->user && !strcmp(a->name, b->name);
}

static loaded *load(cptx_rows_runner *r, const cptx_rows_opt *asked, uint32_t rows, cptx_error *err)
{
	const cptx_device_info *info = cptx_device_get_info(r->dev);
	cptx_rows_choice c;
	loaded *l = NEW(loaded);
	const size_t size = strlen(asked->name) + 1;

	if (!l || !(l->name = NEW_UNSET(char, size))) {
		release(l);
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	memcpy(l->name, asked->name, size);
	l->asked = *asked, l->asked.name = l->name, l->rows = rows;
	cptx_module *m = cptx_module_new(NULL);
	if (cptx_rows_auto(&l->asked, cptx_target_find(info->target ? info->target : ""), rows, info->sms, &c, 1, err)) {
		l->opt = c.opt;
		if (cptx_rows_build(m, &l->opt, err))
			l->program = cptx_device_load_(NOWHERE, r->dev, m, CPTX_OPT(cptx_load_opt, .cache = r->cache), err);
	}
	cptx_module_destroy(m);
	if (!l->program) {
		release(l);
		return NULL;
	}
	l->next = r->kernels, r->kernels = l;
	return l;
}

/* The largest power of two that is no more: shapes for about as many rows are the same. */
static uint32_t about(uint32_t rows)
{
	uint32_t p = 1;

	while (p <= rows / 2)
		p *= 2;
	return p;
}

static const loaded *find(cptx_rows_runner *r, const cptx_rows_opt *o, uint32_t rows, cptx_error *err)
{
	pthread_mutex_lock(&r->lock);
	const loaded *l = r->kernels;
	while (l && !(l->rows == about(rows) && same(&l->asked, o)))
		l = l->next;
	l = l ? l : load(r, o, about(rows), err);
	pthread_mutex_unlock(&r->lock);
	return l;
}

static bool read_options(const cptx_rows_runner *r, const cptx_rows_opt *opt, cptx_rows_opt *o, cptx_error *err)
{
	if (!IS_GIVEN(r, "runner", NOWHERE, err) || !IS_GIVEN(opt, "options struct", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_rows_opt, o, opt, NOWHERE, err))
		return false;
	const char *target = cptx_device_get_info(r->dev)->target;
	return rows_complete(o, cptx_target_find(target ? target : ""), err);
}

/* What all rows of matrices are aligned to. */
static uint32_t align_of(const cptx_rows_opt *o, const cptx_rows_problem *p)
{
	const rows_shape s = rows_shape_of(o);
	uint32_t align = s.each;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		const uint64_t size = rows_bytes(rows_type_of(o, (enum cptx_rows_operand)i));
		const uint64_t stride = (p->at[i].stride ? p->at[i].stride : o->n) * size;
		if (!rows_has(s.reads | s.writes, i) || rows_operands[i].kind != ROWS_MATRIX)
			continue;
		while (align > 1 && (p->at[i].address % (align * size) || stride % (align * size)))
			align /= 2;
	}
	return align;
}

bool cptx_rows_run(cptx_rows_runner *r, const cptx_rows_opt *opt, const cptx_rows_problem *problem, cptx_stream *stream,
                   cptx_error *err)
{
	cptx_error own;
	cptx_rows_opt o;
	cptx_rows_problem p;

	err = err ? err : &own;
	*err = (cptx_error){ .code = CPTX_OK };
	if (!read_options(r, opt, &o, err) || !IS_GIVEN(problem, "problem", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_rows_problem, &p, problem, NOWHERE, err))
		return false;
	o.align = o.align ? o.align : align_of(&o, &p);
	const bool sums = rows_shape_of(&o).sums;
	if (!p.rows && !sums)
		return true;
	const loaded *l = find(r, &o, MAX(p.rows, 1u), err);
	for (uint32_t i = p.rows ? 0 : 1; l && i < (sums ? 2u : 1u); i++) {
		cptx_launch *launch = cptx_rows_launch(l->program, r->dev, &l->opt, &p, i, err);
		const bool ok = launch && cptx_launch_run(launch, stream, err);
		cptx_launch_destroy(launch);
		if (!ok)
			return false;
	}
	return l != NULL;
}

uint64_t cptx_rows_workspace(cptx_rows_runner *r, const cptx_rows_opt *opt, uint32_t rows, cptx_error *err)
{
	cptx_rows_opt o;
	uint64_t most = 0;

	if (err)
		*err = (cptx_error){ .code = CPTX_OK };
	if (!read_options(r, opt, &o, err) || !rows_shape_of(&o).sums)
		return 0;
	const cptx_device_info *info = cptx_device_get_info(r->dev);
	/* where a run finds the alignment, the shape is the same: the model does not look at it */
	cptx_rows_choice c;
	cptx_rows_plan plan = { .workspace = 0 };
	const cptx_target *t = cptx_target_find(info->target ? info->target : "");
	if (cptx_rows_auto(&o, t, about(MAX(rows, 1u)), info->sms, &c, 1, err) &&
	    cptx_rows_check(&c.opt, t, rows, info->sms, &plan, err))
		most = plan.workspace;
	return most;
}
