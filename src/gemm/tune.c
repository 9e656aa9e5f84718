/* SPDX-License-Identifier: MIT */
/*
 * Times choices of a GEMM on a device, as a program that runs many of them in a row would see them: in bursts of
 * launches, on copies of the operands that take turns so that none of them stays in L2.
 */
#include "base/options.h"
#include "gemm/tma/tma.h"

#include <stdlib.h>

enum { SETS = 8, ROUNDS = 3, WARM = 2, FEWEST = 2, MOST = 100 };
#define APART_BYTES (256u << 20) /* of operands, so that a set has left L2 when its turn comes again */
#define BURST_US 2000.0

typedef struct candidate {
	cptx_gemm_choice choice;
	size_t given; /* its place in the caller's list */
	cptx_program *program;
	cptx_launch *launch[SETS];
	uint64_t workspace; /* bytes */
} candidate;

typedef struct tuning {
	cptx_device *dev;
	const cptx_gemm_problem *p;
	struct candidate *candidate;
	size_t n;
	uint32_t sets;
	uint64_t a[SETS], b[SETS], workspace, workspace_bytes; /* set 0 is the caller's */
	cptx_event *begin, *end;
} tuning;

/* Bytes from the first element of A or B to behind the last one. */
static uint64_t operand_bytes(const tuning *t, enum gemm_which which)
{
	const tma_gemm of = { .o = &t->candidate->choice.opt };
	const gemm_stored s = tma_gemm_stored(&of, t->p, which);

	return s.rows ? gemm_stored_bytes(&s, (s.count - 1) * s.stride + (s.rows - 1) * s.ld + s.cols) : 0;
}

static bool copy_operands(tuning *t, cptx_error *err)
{
	const uint64_t a = operand_bytes(t, GEMM_A), b = operand_bytes(t, GEMM_B);

	t->a[0] = t->p->a, t->b[0] = t->p->b;
	for (t->sets = 1; t->sets < SETS && t->sets * (a + b) < APART_BYTES && err->code == CPTX_OK; t->sets++) {
		t->a[t->sets] = cptx_mem_alloc(t->dev, a, err), t->b[t->sets] = cptx_mem_alloc(t->dev, b, err);
		if (err->code == CPTX_OK)
			cptx_mem_copy(t->dev, t->a[t->sets], t->p->a, a, err), cptx_mem_copy(t->dev, t->b[t->sets], t->p->b, b, err);
	}
	return err->code == CPTX_OK;
}

static bool load(tuning *t, size_t i, cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);
	candidate *c = &t->candidate[i];

	cptx_gemm_plan plan;
	cptx_gemm_problem p = *t->p;

	p.ctas = c->choice.ctas;
	if (cptx_gemm_build(m, &c->choice.opt, err) &&
	    cptx_gemm_check_problem(&c->choice.opt, &p, cptx_device_get_info(t->dev)->sms, &plan, err)) {
		c->workspace = plan.workspace;
		c->program = cptx_device_load(t->dev, m, NULL, err);
		t->workspace_bytes = MAX(t->workspace_bytes, c->workspace);
	}
	cptx_module_destroy(m);
	return c->program != NULL;
}

static bool prepare(tuning *t, cptx_error *err)
{
	for (size_t i = 0; i < t->n; i++)
		if (!load(t, i, err))
			return false;
	if (t->workspace_bytes && !(t->workspace = cptx_mem_alloc(t->dev, t->workspace_bytes, err)))
		return false;
	for (size_t i = 0; i < t->n; i++)
		for (uint32_t s = 0; s < t->sets; s++) {
			candidate *c = &t->candidate[i];
			cptx_gemm_problem p = *t->p;
			p.a = t->a[s], p.b = t->b[s], p.workspace = t->workspace, p.ctas = c->choice.ctas;
			if (!(c->launch[s] = cptx_gemm_launch(c->program, t->dev, &c->choice.opt, &p, err)))
				return false;
		}
	return true;
}

/* Microseconds of a launch; 0 on errors. */
static double burst(const tuning *t, const candidate *c, double expected, cptx_error *err)
{
	int runs = (int)(BURST_US / expected);
	uint32_t set = 0;
	float ms = 0;

	runs = runs < FEWEST ? FEWEST : runs > MOST ? MOST : runs;
	if (c->workspace) /* another kernel left its sums there */
		cptx_mem_fill8(t->dev, t->workspace, 0, c->workspace, err);
	for (int i = -WARM; i < runs && err->code == CPTX_OK; i++) {
		if (i == 0)
			cptx_event_record(t->begin, NULL, err);
		cptx_launch_run(c->launch[set++ % t->sets], NULL, err);
	}
	cptx_event_record(t->end, NULL, err);
	cptx_event_synchronize(t->end, err);
	cptx_event_elapsed(t->begin, t->end, &ms, err);
	return err->code == CPTX_OK ? 1e3 * (double)ms / runs : 0;
}

/* The choices in turn, and that several times, so that none is alone with what else the device did. */
static bool measure(tuning *t, cptx_error *err)
{
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < t->n; i++) {
			cptx_gemm_choice *c = &t->candidate[i].choice;
			double us = burst(t, &t->candidate[i], MAX(c->us, 1.0), err);
			if (err->code != CPTX_OK)
				return false;
			if (!round || us < c->measured_us)
				c->measured_us = us;
		}
	return true;
}

static void release(tuning *t)
{
	for (size_t i = 0; t->candidate && i < t->n; i++) {
		for (uint32_t s = 0; s < SETS; s++)
			cptx_launch_destroy(t->candidate[i].launch[s]);
		cptx_program_destroy(t->candidate[i].program);
	}
	for (uint32_t s = 1; s < SETS; s++)
		cptx_mem_free(t->dev, t->a[s]), cptx_mem_free(t->dev, t->b[s]);
	cptx_mem_free(t->dev, t->workspace);
	cptx_event_destroy(t->begin);
	cptx_event_destroy(t->end);
	free(t->candidate);
}

static int by_measured(const void *a, const void *b)
{
	double x = ((const candidate *)a)->choice.measured_us, y = ((const candidate *)b)->choice.measured_us;

	return (x > y) - (x < y);
}

static bool check_arguments(const cptx_device *dev, const cptx_gemm_problem *p, const cptx_gemm_choice *choices,
                            cptx_error *err)
{
	if (!dev || !p || !choices)
		return error_set(err, CPTX_E_ARG, NOWHERE, "gemm: the %s NULL",
		                 !dev ? "device is"
		                 : !p ? "problem is"
		                      : "choices are");
	return true;
}

/* The caller's choices, of `size` bytes each: the fields that this library knows. */
static bool read_choices(tuning *t, const cptx_gemm_choice *choices, size_t size, cptx_error *err)
{
	for (size_t i = 0; i < t->n; i++) {
		const cptx_gemm_choice *from = (const cptx_gemm_choice *)(const void *)((const char *)choices + i * size);
		candidate *c = &t->candidate[i];

		memcpy(&c->choice, from, offsetof(cptx_gemm_choice, opt));
		c->given = i;
		if (!OPTIONS_READ(cptx_gemm_opt, &c->choice.opt, &from->opt, NOWHERE, err))
			return false;
	}
	return true;
}

/* Sorts the caller's choices by their times; where there is no memory for that they keep their order. */
static bool sort_choices(tuning *t, cptx_gemm_choice *choices, size_t size, cptx_error *err)
{
	char *sorted = NEW_ARRAY(char, t->n *size);

	if (!sorted)
		return error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	qsort(t->candidate, t->n, sizeof *t->candidate, by_measured);
	for (size_t i = 0; i < t->n; i++) {
		cptx_gemm_choice *to = (cptx_gemm_choice *)(void *)(sorted + i * size);
		memcpy(to, (const char *)choices + t->candidate[i].given * size, size);
		to->measured_us = t->candidate[i].choice.measured_us;
	}
	memcpy(choices, sorted, t->n * size);
	free(sorted);
	return true;
}

bool cptx_gemm_tune_(cptx_device *dev, const cptx_gemm_problem *p, cptx_gemm_choice *choices, size_t size, size_t n,
                     cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	tuning t = { .dev = dev, .p = p, .n = n };

	err = err ? err : &own;
	if (!may_go(err) || !check_arguments(dev, p, choices, err))
		return false;
	cptx_gemm_problem known;
	if (!OPTIONS_READ(cptx_gemm_problem, &known, p, NOWHERE, err))
		return false;
	t.p = &known;
	if (!n)
		return true;
	t.candidate = NEW_ARRAY(candidate, n);
	if (!t.candidate)
		return error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	t.begin = cptx_event_new(dev, err), t.end = cptx_event_new(dev, err);
	bool ok = read_choices(&t, choices, size, err) && err->code == CPTX_OK && copy_operands(&t, err) && prepare(&t, err) &&
	          measure(&t, err) && sort_choices(&t, choices, size, err);
	release(&t);
	return ok;
}
