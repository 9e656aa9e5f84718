/* SPDX-License-Identifier: MIT */
/* The backward of <cptx/attention_backward.h> as bench/attention_backward.py calls it: a shared object that it loads. */
#include <cptx/attention_backward.h>

#include <stdlib.h>

/* The numbers that describe a measurement, in an array, so that Python needs no structs. */
enum { MMA, DIM, BATCH, HEADS, KV_HEADS, QUERIES, KEYS, CAUSAL, DETERMINISTIC, BQ, BK, STAGES, NUMBERS };
enum { Q, K, V, O, D_O, LSE, DQ, DK, DV, ADDRESSES };

typedef struct bench {
	cptx_device *dev;
	cptx_program *program;
	cptx_launch *launch[CPTX_ATTENTION_BACKWARD_LAUNCHES];
	uint64_t workspace;
	cptx_error err;
} bench;

CPTX_API bench *backward_new(const char *device, const uint32_t n[NUMBERS], const uint64_t at[ADDRESSES]);
CPTX_API const char *backward_error(const bench *b);
CPTX_API int backward_run(bench *b, int times);
CPTX_API int backward_run_one(bench *b, int number, int times);
CPTX_API void backward_free(bench *b);

static void prepare(bench *b, const cptx_attention_backward_opt *o, cptx_attention_backward_problem *p)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_attention_backward_plan plan = { .threads = 0 };
	bool ok = cptx_attention_backward_check_problem(o, p, &plan, &b->err) && cptx_attention_backward_build(m, o, &b->err);

	ok = ok && (p->workspace = b->workspace = cptx_mem_alloc(b->dev, plan.workspace, &b->err)) != 0;
	ok = ok && (b->program = cptx_device_load(b->dev, m, NULL, &b->err)) != NULL;
	for (uint32_t i = 0; ok && i < CPTX_ATTENTION_BACKWARD_LAUNCHES; i++)
		ok = (b->launch[i] = cptx_attention_backward_launch(b->program, b->dev, o, p, i, &b->err)) != NULL;
	cptx_module_destroy(m);
}

/* Kernels for these numbers, and their launches on dense bf16. */
bench *backward_new(const char *device, const uint32_t n[NUMBERS], const uint64_t at[ADDRESSES])
{
	bench *b = calloc(1, sizeof *b);
	const cptx_attention_backward_opt o = { .size = CPTX_OPT_SIZE(cptx_attention_backward_opt),
		                                    .mma = (enum cptx_attention_mma)n[MMA],
		                                    .in = CPTX_BF16,
		                                    .dim = n[DIM],
		                                    .causal = n[CAUSAL],
		                                    .deterministic = n[DETERMINISTIC],
		                                    .bq = n[BQ],
		                                    .bk = n[BK],
		                                    .stages = n[STAGES],
		                                    .sm90 = true };
	cptx_attention_backward_problem p = { .size = CPTX_OPT_SIZE(cptx_attention_backward_problem),
		                                  .batch = n[BATCH],
		                                  .heads = n[HEADS],
		                                  .kv_heads = n[KV_HEADS],
		                                  .queries = n[QUERIES],
		                                  .keys = n[KEYS],
		                                  .q = at[Q],
		                                  .k = at[K],
		                                  .v = at[V],
		                                  .o = at[O],
		                                  .d_o = at[D_O],
		                                  .lse = at[LSE],
		                                  .dq = at[DQ],
		                                  .dk = at[DK],
		                                  .dv = at[DV] };

	if (!b)
		return NULL;
	b->dev = cptx_device_open(device, &b->err);
	if (b->dev)
		prepare(b, &o, &p);
	return b;
}

/* "": it can be run. */
const char *backward_error(const bench *b) { return b->err.text; }

/* All launches, on the default stream; 0: all were started. */
int backward_run(bench *b, int times)
{
	int failed = 0;

	for (int i = 0; i < times && !failed; i++)
		for (int j = 0; j < CPTX_ATTENTION_BACKWARD_LAUNCHES && !failed; j++)
			failed = backward_run_one(b, j, 1);
	return failed;
}

int backward_run_one(bench *b, int number, int times)
{
	cptx_error err = { 0 };

	for (int i = 0; i < times && !err.code; i++)
		cptx_launch_run(b->launch[number], NULL, &err);
	return (int)err.code;
}

void backward_free(bench *b)
{
	for (int i = 0; i < CPTX_ATTENTION_BACKWARD_LAUNCHES; i++)
		cptx_launch_destroy(b->launch[i]);
	cptx_program_destroy(b->program);
	cptx_mem_free(b->dev, b->workspace);
	cptx_device_close(b->dev);
	free(b);
}
