/* SPDX-License-Identifier: MIT */
/* The attention of <cptx/attention.h> as bench/attention.py calls it: a shared object that it loads. */
#include <cptx/attention.h>

#include <stdlib.h>

/* The numbers that describe a measurement, in an array, so that Python needs no structs.  IN: 0 bf16, 1 f16, 2 e4m3. */
enum { IN, DIM, DIM_V, CAUSAL, BQ, BK, STAGES, WARPS, SYNC, TMA, PACK, BATCH, HEADS, KV_HEADS, QUERIES, KEYS, NUMBERS };

typedef struct bench {
	cptx_device *dev;
	cptx_program *program;
	cptx_launch *launch;
	cptx_error err;
} bench;

CPTX_API bench *attention_new(const char *device, const uint32_t n[NUMBERS], const uint64_t at[4]);
CPTX_API const char *attention_error(const bench *b);
CPTX_API int attention_run(bench *b, int times);
CPTX_API void attention_free(bench *b);

/* A kernel for these numbers, and its launch on Q, K, V and O, dense. */
bench *attention_new(const char *device, const uint32_t n[NUMBERS], const uint64_t at[4])
{
	static const enum cptx_type types[] = { CPTX_BF16, CPTX_F16, CPTX_E4M3 };
	bench *b = calloc(1, sizeof *b);
	cptx_module *m = cptx_module_new(NULL);
	const cptx_attention_opt o = { .size = CPTX_OPT_SIZE(cptx_attention_opt),
		                           .mma = n[SYNC] ? CPTX_ATTENTION_SYNC : CPTX_ATTENTION_WGMMA,
		                           .in = types[n[IN] % 3],
		                           .dim = n[DIM],
		                           .dim_v = n[DIM_V],
		                           .causal = n[CAUSAL],
		                           .bq = n[BQ],
		                           .bk = n[BK],
		                           .stages = n[STAGES],
		                           .warps = n[WARPS],
		                           .tma = n[TMA],
		                           .pack = n[PACK] };
	const cptx_attention_problem p = { .size = CPTX_OPT_SIZE(cptx_attention_problem),
		                               .batch = n[BATCH],
		                               .heads = n[HEADS],
		                               .kv_heads = n[KV_HEADS],
		                               .queries = n[QUERIES],
		                               .keys = n[KEYS],
		                               .q = at[0],
		                               .k = at[1],
		                               .v = at[2],
		                               .o = at[3] };

	if (!b)
		return NULL;
	b->dev = cptx_device_open(device, &b->err);
	if (b->dev && cptx_attention_build(m, &o, &b->err))
		b->program = cptx_device_load(b->dev, m, NULL, &b->err);
	if (b->program)
		b->launch = cptx_attention_launch(b->program, b->dev, &o, &p, &b->err);
	cptx_module_destroy(m);
	return b;
}

/* "": it can be run. */
const char *attention_error(const bench *b) { return b->err.text; }

/* On the default stream; 0: all were started. */
int attention_run(bench *b, int times)
{
	cptx_error err = { 0 };

	for (int i = 0; i < times && !err.code; i++)
		cptx_launch_run(b->launch, NULL, &err);
	return (int)err.code;
}

void attention_free(bench *b)
{
	cptx_launch_destroy(b->launch);
	cptx_program_destroy(b->program);
	cptx_device_close(b->dev);
	free(b);
}
