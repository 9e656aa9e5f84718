/* SPDX-License-Identifier: MIT */
/* Row kernels in one call each: programs of earlier calls are kept, and found by their options. */
#include "base/options.h"
#include "kit/runner.h"
#include "rows/rows.h"
#include "rows/tuned.h"

/* A loaded kernel: what was asked for, and the shape that was chosen.  A shape is chosen for a number of rows, to a power of
 * two. */
typedef struct loaded {
	kit_kept kept;
	cptx_rows_opt asked, opt;
	uint32_t rows;
} loaded;

struct cptx_rows_runner {
	kit_runner base;
};

cptx_rows_runner *cptx_rows_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	if (!IS_GIVEN(dev, "device", NOWHERE, err))
		return NULL;
	return (cptx_rows_runner *)kit_runner_new(sizeof(cptx_rows_runner), dev, cache, err);
}

void cptx_rows_runner_destroy(cptx_rows_runner *r) { kit_runner_destroy(r ? &r->base : NULL); }

bool cptx_rows_runner_set_tune(cptx_rows_runner *r, const cptx_tune_use *use, cptx_error *err)
{
	return kit_runner_set_tune(r ? &r->base : NULL, use, err);
}

/* Complete options with the same values are the same kernel: of floats the same bits; names are compared as texts. */
static bool same(const cptx_rows_opt *a, const cptx_rows_opt *b)
{
	bool same = a->user == b->user && !strcmp(a->name, b->name);

#define ROWS_FIELD(field, type) same &= !memcmp(&a->field, &b->field, sizeof a->field);
#include "rows/options.def"
	return same;
}

static const loaded *load(cptx_rows_runner *r, const cptx_rows_opt *asked, uint32_t rows, cptx_error *err)
{
	const uint32_t sms = cptx_device_get_info(r->base.dev)->sms;
	cptx_rows_choice c;
	loaded *l = (loaded *)kit_kept_new(sizeof *l, asked->name, err);

	if (!l)
		return NULL;
	l->asked = *asked, l->asked.name = l->kept.name, l->rows = rows;
	cptx_module *m = cptx_module_new(NULL);
	c.opt = l->asked;
	bool ok = rows_tuned_choose(&r->base, &c.opt, rows) || rows_auto(&l->asked, r->base.target, rows, sms, &c, 1, err);
	if (ok) {
		l->opt = c.opt;
		ok = cptx_rows_build(m, &l->opt, err) && kit_runner_load(&r->base, &l->kept, m, err);
	}
	cptx_module_destroy(m);
	if (ok)
		return l;
	kit_kept_free(&l->kept);
	return NULL;
}

static const loaded *find(cptx_rows_runner *r, const cptx_rows_opt *o, uint32_t rows, cptx_error *err)
{
	pthread_mutex_lock(&r->base.lock);
	const loaded *l = (const loaded *)r->base.kernels;
	while (l && !(l->rows == rows && same(&l->asked, o)))
		l = (const loaded *)l->kept.next;
	l = l ? l : load(r, o, rows, err);
	pthread_mutex_unlock(&r->base.lock);
	return l;
}

static bool read_options(const cptx_rows_runner *r, const cptx_rows_opt *opt, cptx_rows_opt *o, cptx_error *err)
{
	if (!IS_GIVEN(r, "runner", NOWHERE, err) || !IS_GIVEN(opt, "options struct", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_rows_opt, o, opt, NOWHERE, err))
		return false;
	o->bandwidth = o->bandwidth ? o->bandwidth : cptx_rows_bandwidth(cptx_device_get_info(r->base.dev));
	return rows_complete(o, r->base.target, err);
}

uint32_t rows_align_of_problem(const cptx_rows_opt *o, const cptx_rows_problem *p)
{
	const rows_shape s = rows_shape_of(o);
	uint32_t align = s.each;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(s.reads | s.writes, i) && rows_operands[i].kind == ROWS_MATRIX && !rows_packed(o, i))
			align = rows_align_at(&p->at[i], rows_bytes(rows_type_of(o, (enum cptx_rows_operand)i)),
			                      rows_columns(o, i, p->rows), align);
	return align;
}

bool cptx_rows_run(cptx_rows_runner *r, const cptx_rows_opt *opt, const cptx_rows_problem *problem, cptx_stream *stream,
                   cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	cptx_rows_opt o;
	cptx_rows_problem p;

	err = err ? err : &own;
	if (!read_options(r, opt, &o, err) || !IS_GIVEN(problem, "problem", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_rows_problem, &p, problem, NOWHERE, err))
		return false;
	o.align = o.align ? o.align : rows_align_of_problem(&o, &p);
	const bool sums = rows_shape_of(&o).sums;
	if (!p.rows && !sums)
		return true;
	const loaded *l = find(r, &o, rows_about(MAX(p.rows, 1u)), err);
	const rows_shape shape = rows_shape_of(l ? &l->opt : &o);
	for (uint32_t i = p.rows ? 0 : 1; l && i < rows_launches(&shape); i++) {
		cptx_launch *launch = cptx_rows_launch(l->kept.program, r->base.dev, &l->opt, &p, i, err);
		const bool ok = launch && cptx_launch_run(launch, stream, err);
		cptx_launch_destroy(launch);
		if (!ok)
			return false;
	}
	return l != NULL;
}

/* The bytes with rows of that alignment, to *most where they are more. */
static bool workspace_at(const cptx_rows_runner *r, cptx_rows_opt o, uint32_t align, uint32_t rows, uint64_t *most,
                         cptx_error *err)
{
	const uint32_t sms = cptx_device_get_info(r->base.dev)->sms;
	cptx_rows_choice c;
	cptx_rows_plan plan = { .workspace = 0 };

	o.align = align;
	if (!rows_auto(&o, r->base.target, rows_about(MAX(rows, 1u)), sms, &c, 1, err) ||
	    !cptx_rows_check(&c.opt, r->base.target, rows, sms, &plan, err))
		return false;
	*most = MAX(*most, plan.workspace);
	return true;
}

uint64_t cptx_rows_workspace(cptx_rows_runner *r, const cptx_rows_opt *opt, uint32_t rows, cptx_error *err)
{
	cptx_rows_opt o;
	uint64_t most = 0;

	if (!read_options(r, opt, &o, err))
		return 0;
	const rows_shape s = rows_shape_of(&o);
	if (!s.sums && !s.partible)
		return 0;
	/* a run finds the alignment, with which the shape changes, and not each shape that is given serves each alignment */
	const uint32_t first = o.align, last = MAX(o.align, 1u); /* 0, whole vectors, and 1, elements */
	unsigned served = 0;
	for (uint32_t align = first; align <= last; align++)
		served += workspace_at(r, o, align, rows, &most, NULL);
	if (!served)
		workspace_at(r, o, first, rows, &most, err); /* once more, for the reason */
	return most;
}
