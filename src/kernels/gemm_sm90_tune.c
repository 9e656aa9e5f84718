/* Times choices of the sm_90a GEMM on a device. */
#include "kernels/gemm_sm90.h"

#include <stdlib.h>

enum { RUNS = 5 };
#define SCRATCH (256u << 20) /* bytes that are written between runs, so that no operand is in L2 */

typedef struct tuning {
	cptx_device *dev;
	const cptx_gemm_problem *p;
	uint64_t scratch;
	cptx_event *begin, *end;
} tuning;

static double run_once(const tuning *t, cptx_launch *l, cptx_error *err)
{
	float ms = 0;

	cptx_mem_fill32_async(t->dev, t->scratch, 0, SCRATCH / 4, NULL, err);
	cptx_event_record(t->begin, NULL, err);
	cptx_launch_run(l, NULL, err);
	cptx_event_record(t->end, NULL, err);
	cptx_event_synchronize(t->end, err);
	return cptx_event_elapsed(t->begin, t->end, &ms, err) ? 1e3 * (double)ms : 0;
}

/* The least time, after a run that is not counted. */
static bool measure(const tuning *t, cptx_gemm_sm90_choice *c, cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_gemm_problem p = *t->p;
	cptx_gemm_sm90_plan plan = { 0 };
	cptx_launch *l = NULL;

	p.ctas = c->ctas;
	bool ok = cptx_gemm_sm90_build(m, &c->opt, err) &&
	          cptx_gemm_sm90_check_problem(&c->opt, &p, cptx_device_get_info(t->dev)->sms, &plan, err);
	cptx_program *program = ok ? cptx_device_load(t->dev, m, NULL, err) : NULL;
	if (program && plan.workspace) {
		p.workspace = cptx_mem_alloc(t->dev, plan.workspace, err);
		cptx_mem_fill8(t->dev, p.workspace, 0, plan.workspace, err);
	}
	if (program && (l = cptx_gemm_sm90_launch(program, t->dev, &c->opt, &p, err)))
		for (int i = 0; i <= RUNS; i++) {
			double us = run_once(t, l, err);
			if (i && (i == 1 || us < c->measured_us))
				c->measured_us = us;
		}
	cptx_launch_destroy(l);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	cptx_mem_free(t->dev, plan.workspace ? p.workspace : 0);
	return !err || err->code == CPTX_OK;
}

static int by_time(const void *a, const void *b)
{
	const cptx_gemm_sm90_choice *x = a, *y = b;
	return (x->measured_us > y->measured_us) - (x->measured_us < y->measured_us);
}

bool cptx_gemm_sm90_tune(cptx_device *dev, const cptx_gemm_problem *p, cptx_gemm_sm90_choice *choices, size_t n,
                         cptx_error *err)
{
	cptx_error own = { 0 };
	tuning t = { .dev = dev, .p = p };

	err = err ? err : &own;
	if (!dev || !p || !choices)
		return error_set(err, CPTX_E_ARG, NOWHERE, "gemm for sm_90a: the %s NULL",
		                 !dev ? "device is"
		                 : !p ? "problem is"
		                      : "choices are");
	t.scratch = cptx_mem_alloc(dev, SCRATCH, err);
	t.begin = cptx_event_new(dev, err), t.end = cptx_event_new(dev, err);
	bool ok = err->code == CPTX_OK;
	for (size_t i = 0; ok && i < n; i++)
		ok = measure(&t, &choices[i], err);
	if (ok)
		qsort(choices, n, sizeof *choices, by_time);
	cptx_event_destroy(t.begin);
	cptx_event_destroy(t.end);
	cptx_mem_free(dev, t.scratch);
	return ok;
}
