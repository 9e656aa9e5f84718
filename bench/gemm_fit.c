/*
 * What the model of the sm_90a GEMM is fitted to: many unlike choices for each size, timed by cptx_gemm_tune.
 *
 *   bench_gemm_fit [--load] [--f16 | --e4m3] [MxNxK]...
 *
 * A line for each: M N K, swap, per_sm, bm, bn, stages, cluster_m, cluster_n, group, stream_k, ctas, measured and predicted
 * microseconds.  --load only compiles the kernels, and needs no time of the GPU: the driver keeps them, so that several such
 * runs at once, each with some of the sizes, can go in front.  A default list of sizes: gemm_sizes.h.
 */
#include "burst.h"
#include "gemm_sizes.h"

#include <cptx/gemm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OFFERED = 3000, TAKEN = 60, OF_A_KIND = 3 };

typedef struct options {
	enum cptx_type in, out;
	bool load;
} options;

/* Choices that differ in nothing but bn and cluster are of a kind. */
static unsigned kind_of(const cptx_gemm_choice *c)
{
	const cptx_gemm_opt *o = &c->opt;
	unsigned parts = !o->stream_k ? 0 : !c->ctas ? 1 : 2;

	return ((o->bm / 64 * 2 + o->swap) * 4 + o->per_sm) * 4 + parts;
}

/* The best few of each kind that are not hopeless, in the order of the model; gives how many. */
static size_t unlike(cptx_gemm_choice *c, size_t n)
{
	unsigned of_kind[256] = { 0 };
	size_t taken = 0;

	for (size_t i = 0; i < n && taken < TAKEN; i++) {
		unsigned *seen = &of_kind[kind_of(&c[i]) % 256], most = i < 12 ? 12 : OF_A_KIND;
		if (*seen < most && c[i].us < 1.7 * c[0].us) {
			++*seen;
			c[taken++] = c[i];
		}
	}
	return taken;
}

static bool load(cptx_device *dev, const cptx_gemm_choice *c, size_t n, cptx_error *err)
{
	for (size_t i = 0; i < n && err->code == CPTX_OK; i++) {
		cptx_module *m = cptx_module_new(NULL);
		cptx_gemm_build(m, &c[i].opt, err);
		cptx_program_destroy(cptx_device_load(dev, m, NULL, err));
		cptx_module_destroy(m);
	}
	return err->code == CPTX_OK;
}

static void print(const cptx_gemm_problem *p, const cptx_gemm_choice *c)
{
	const cptx_gemm_opt *o = &c->opt;

	printf("%llu %llu %llu %d %u %u %u %u %u %u %u %d %u %.2f %.2f\n", (unsigned long long)p->m, (unsigned long long)p->n,
	       (unsigned long long)p->k, o->swap, o->per_sm, o->bm, o->bn, o->stages, o->cluster_m, o->cluster_n, o->group,
	       o->stream_k, c->ctas, c->measured_us, c->us);
}

static bool one(cptx_device *dev, const options *o, const char *shape, cptx_error *err)
{
	static cptx_gemm_choice choice[OFFERED];
	unsigned long long m, n, k;

	if (sscanf(shape, "%llux%llux%llu", &m, &n, &k) != 3)
		return fprintf(stderr, "%s: expected MxNxK\n", shape), false;
	cptx_gemm_problem p = { .m = m, .n = n, .k = k };
	size_t count = cptx_gemm_auto(&(cptx_gemm_opt){ .mma = CPTX_GEMM_WGMMA, .a = o->in, .b = o->in, .out = o->out }, &p,
	                              cptx_device_get_info(dev)->sms, choice, OFFERED, err);
	count = unlike(choice, count);
	if (o->load)
		return count && load(dev, choice, count, err);
	p.a = burst_random(dev, m * k, o->in, 1, err), p.b = burst_random(dev, n * k, o->in, 2, err);
	p.d = cptx_mem_alloc(dev, m * n * cptx_type_bits(o->out) / 8, err);
	if (err->code == CPTX_OK && cptx_gemm_tune(dev, &p, choice, count, err))
		for (size_t i = 0; i < count; i++)
			print(&p, &choice[i]);
	cptx_mem_free(dev, p.a), cptx_mem_free(dev, p.b), cptx_mem_free(dev, p.d);
	fflush(stdout);
	return err->code == CPTX_OK;
}

int main(int argc, char **argv)
{
	options o = { .in = CPTX_BF16, .out = CPTX_BF16 };
	const char *const *shape = gemm_sizes;
	size_t n = sizeof gemm_sizes / sizeof *gemm_sizes;
	cptx_error err = { 0 };
	int i = 1;
	bool ok = true;

	for (; i < argc && argv[i][0] == '-'; i++)
		if (!strcmp(argv[i], "--load"))
			o.load = true;
		else if (!strcmp(argv[i], "--f16"))
			o.in = o.out = CPTX_F16;
		else if (!strcmp(argv[i], "--e4m3"))
			o.in = CPTX_E4M3;
		else
			return fprintf(stderr, "%s: no such option\n", argv[i]), 2;
	if (i < argc)
		shape = (const char *const *)argv + i, n = (size_t)(argc - i);
	cptx_device *dev = cptx_device_open("cuda", &err);
	if (!dev || !cptx_device_make_current(dev, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (size_t at = 0; at < n && ok; at++)
		ok = one(dev, &o, shape[at], &err);
	if (err.code != CPTX_OK)
		fprintf(stderr, "%s\n", err.text);
	cptx_device_close(dev);
	return !ok;
}
