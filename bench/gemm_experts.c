/* SPDX-License-Identifier: MIT */
/* GEMMs of <cptx/gemm.h> as bench/gemm_experts.py and bench/gemm_more.py call them: a shared object that these load. */
#include <cptx/gemm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sizes and addresses of a problem, in arrays, so that Python needs no structs. */
enum { M, N, K, EXPERTS, EXPECTED, SIZES };
enum { A, B, D, SCALE_A, SCALE_B, COUNTS, GATHER, SCATTER, WEIGHTS, SCALE_D, META, ADDRESSES };

typedef struct bench {
	cptx_device *dev;
	cptx_program *program;
	cptx_launch *launch;
	char shape[200];
	cptx_error err;
} bench;

CPTX_API bench *experts_new(const char *device, const char *options, uint32_t choice, const uint64_t n[SIZES],
                            const uint64_t at[ADDRESSES]);
CPTX_API const char *experts_error(const bench *b);
CPTX_API const char *experts_shape(const bench *b);
CPTX_API int experts_run(bench *b, int times, void *stream);
CPTX_API void experts_free(bench *b);
CPTX_API int experts_pack(const char *type, uint64_t values, uint64_t meta, uint64_t dense, uint64_t m, uint64_t k);

/* Without a shape: the model's choice of that number, of those that need no workspace. */
static bool choose(bench *b, cptx_gemm_opt *o, cptx_gemm_problem *p, uint32_t choice)
{
	enum { MOST = 16 };
	cptx_gemm_choice c[MOST];

	if (o->bm)
		return true;
	size_t n = 0;
	const size_t all = cptx_gemm_auto(o, p, cptx_device_get_info(b->dev)->sms, c, MOST, &b->err);
	for (size_t i = 0; i < all; i++)
		if (!c[i].opt.stream_k)
			c[n++] = c[i];
	if (!n)
		return false;
	choice = choice < n ? choice : (uint32_t)n - 1;
	*o = c[choice].opt, p->ctas = c[choice].ctas;
	return true;
}

/* A kernel for these options, as cptx_gemm_options_read takes them, and its launch. */
bench *experts_new(const char *device, const char *options, uint32_t choice, const uint64_t n[SIZES],
                   const uint64_t at[ADDRESSES])
{
	bench *b = calloc(1, sizeof *b);
	cptx_module *m = cptx_module_new(NULL);
	cptx_gemm_opt o = { .size = CPTX_OPT_SIZE(cptx_gemm_opt) };
	cptx_gemm_problem p = { .size = CPTX_OPT_SIZE(cptx_gemm_problem),
		                    .m = n[M],
		                    .n = n[N],
		                    .k = n[K],
		                    .batch = (uint32_t)n[EXPERTS],
		                    .a = at[A],
		                    .b = at[B],
		                    .d = at[D],
		                    .scale_a = at[SCALE_A],
		                    .scale_b = at[SCALE_B],
		                    .counts = at[COUNTS],
		                    .gather = at[GATHER],
		                    .scatter = at[SCATTER],
		                    .weights = at[WEIGHTS],
		                    .scale_d = at[SCALE_D],
		                    .meta = at[META],
		                    .expected = (uint32_t)n[EXPECTED] };

	if (!b)
		return NULL;
	b->dev = cptx_device_open(device, &b->err);
	if (b->dev && cptx_gemm_options_read(options, &o, &b->err) && choose(b, &o, &p, choice) &&
	    cptx_gemm_build(m, &o, &b->err))
		b->program = cptx_device_load(b->dev, m, NULL, &b->err);
	if (b->program)
		b->launch = cptx_gemm_launch(b->program, b->dev, &o, &p, &b->err);
	snprintf(b->shape, sizeof b->shape, "%ux%u%s, cluster %ux%u, %u stages%s", o.bm, o.bn, o.swap ? " swapped" : "",
	         o.cluster_m, o.cluster_n, o.stages, o.per_sm > 1 ? ", 2 a multiprocessor" : "");
	cptx_module_destroy(m);
	return b;
}

/* "": it can be run. */
const char *experts_error(const bench *b) { return b->err.text; }

const char *experts_shape(const bench *b) { return b->shape; }

/* On a CUstream, NULL: the default stream; 0: all were started. */
int experts_run(bench *b, int times, void *stream)
{
	cptx_error err = { 0 };
	cptx_stream *s = stream ? cptx_stream_adopt(b->dev, stream, &err) : NULL;

	for (int i = 0; i < times && !err.code; i++)
		cptx_launch_run(b->launch, s, &err);
	cptx_stream_destroy(s);
	return (int)err.code;
}

/* cptx_gemm_sparse_pack, of addresses of the host; 0: it was packed. */
int experts_pack(const char *type, uint64_t values, uint64_t meta, uint64_t dense, uint64_t m, uint64_t k)
{
	return !cptx_gemm_sparse_pack((void *)(uintptr_t)values, (uint32_t *)(uintptr_t)meta, (const void *)(uintptr_t)dense,
	                              cptx_type_find(type), m, k, 0, NULL);
}

void experts_free(bench *b)
{
	cptx_launch_destroy(b->launch);
	cptx_program_destroy(b->program);
	cptx_device_close(b->dev);
	free(b);
}
