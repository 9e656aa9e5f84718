/* SPDX-License-Identifier: MIT */
/* Decoding of <cptx/attention_decode.h> as bench/attention_decode.py calls it: a shared object that it loads. */
#include <cptx/attention_decode.h>

#include <stdio.h>
#include <stdlib.h>

/* The numbers that describe a measurement, in an array, so that Python needs no structs. */
enum { DIM, BATCH, HEADS, KV_HEADS, QUERIES, KEYS, PAGE, ROWS, BK, WARPS, STAGES, SPLITS, NUMBERS };
/* Addresses: Q, K, V, O, the lengths or 0, the table of pages or 0. */
enum { Q, K, V, O, LENGTHS, PAGES, ADDRESSES };
enum { MOST_DIM = 256, MLA_DIM_V = 512 };

typedef struct bench {
	cptx_device *dev;
	cptx_program *program;
	cptx_launch *launch[2];
	uint64_t workspace;
	char shape[100];
	cptx_error err;
} bench;

CPTX_API bench *decode_new(const char *device, const uint32_t n[NUMBERS], const uint64_t at[ADDRESSES]);
CPTX_API const char *decode_error(const bench *b);
CPTX_API const char *decode_shape(const bench *b);
CPTX_API int decode_run(bench *b, int times);
CPTX_API void decode_free(bench *b);

static void prepare(bench *b, const cptx_attention_decode_opt *asked, cptx_attention_decode_problem *p)
{
	const cptx_device_info *info = cptx_device_get_info(b->dev);
	const cptx_target *target = info->target ? cptx_target_find(info->target) : NULL;
	cptx_module *m = cptx_module_new(NULL);
	cptx_attention_decode_plan plan = { .threads = 0 };
	cptx_attention_decode_choice c;
	bool ok = cptx_attention_decode_auto(asked, p, target, info->sms, &c, 1, &b->err) > 0;

	if (ok) {
		p->splits = c.splits;
		ok = cptx_attention_decode_check_problem(&c.opt, p, target, info->sms, &plan, &b->err) &&
		     cptx_attention_decode_build(m, &c.opt, &b->err);
		snprintf(b->shape, sizeof b->shape, "%ux%ux%u, %u stages, %u chunks, %u CTAs", c.opt.rows, c.opt.bk, c.opt.warps,
		         c.opt.stages, c.splits, plan.grid);
	}
	if (ok && plan.workspace)
		ok = (p->workspace = b->workspace = cptx_mem_alloc(b->dev, plan.workspace, &b->err)) != 0;
	if (ok)
		ok = (b->program = cptx_device_load(b->dev, m, NULL, &b->err)) != NULL;
	for (uint32_t i = 0; ok && i < plan.launches; i++)
		ok = (b->launch[i] = cptx_attention_decode_launch(b->program, b->dev, &c.opt, p, i, &b->err)) != NULL;
	cptx_module_destroy(m);
}

/* Kernels for these numbers, and their launches on bf16, dense or in pages; larger heads are of MLA. */
bench *decode_new(const char *device, const uint32_t n[NUMBERS], const uint64_t at[ADDRESSES])
{
	bench *b = calloc(1, sizeof *b);
	const bool mla = n[DIM] > MOST_DIM;
	const cptx_attention_decode_opt o = { .size = CPTX_OPT_SIZE(cptx_attention_decode_opt),
		                                  .in = CPTX_BF16,
		                                  .dim = n[DIM],
		                                  .dim_v = mla ? MLA_DIM_V : 0,
		                                  .causal = n[QUERIES] > 1,
		                                  .paged = n[PAGE] != 0,
		                                  .rows = n[ROWS],
		                                  .bk = n[BK],
		                                  .warps = n[WARPS],
		                                  .stages = n[STAGES],
		                                  .overlap = true,
		                                  .mla = mla };
	cptx_attention_decode_problem p = { .size = CPTX_OPT_SIZE(cptx_attention_decode_problem),
		                                .batch = n[BATCH],
		                                .heads = n[HEADS],
		                                .kv_heads = n[KV_HEADS],
		                                .queries = n[QUERIES],
		                                .keys = n[KEYS],
		                                .q = at[Q],
		                                .k = at[K],
		                                .v = mla ? 0 : at[V],
		                                .o = at[O],
		                                .lengths = at[LENGTHS],
		                                .pages = at[PAGES],
		                                .page = n[PAGE],
		                                .splits = n[SPLITS] };

	if (!b)
		return NULL;
	b->dev = cptx_device_open(device, &b->err);
	if (b->dev)
		prepare(b, &o, &p);
	return b;
}

/* "": it can be run. */
const char *decode_error(const bench *b) { return b->err.text; }
const char *decode_shape(const bench *b) { return b->shape; }

/* On the default stream; 0: all were started. */
int decode_run(bench *b, int times)
{
	cptx_error err = { 0 };

	for (int i = 0; i < times && !err.code; i++)
		for (int j = 0; j < 2 && b->launch[j] && !err.code; j++)
			cptx_launch_run(b->launch[j], NULL, &err);
	return (int)err.code;
}

void decode_free(bench *b)
{
	cptx_launch_destroy(b->launch[0]);
	cptx_launch_destroy(b->launch[1]);
	cptx_program_destroy(b->program);
	cptx_mem_free(b->dev, b->workspace);
	cptx_device_close(b->dev);
	free(b);
}
