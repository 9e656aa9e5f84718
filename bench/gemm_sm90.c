/* SPDX-License-Identifier: MIT */
/*
 * The sm_90a GEMM beside cuBLAS (cublasGemmEx, its default algorithm; of e4m3 cublasLtMatmul), in alternated bursts of the
 * same process.
 *
 *   bench_gemm_sm90 [--f16 | --e4m3] [--sustained SECONDS] [--sweep] [--load] [--table FILE] [--more] [--choices N]
 *                    [MxNxK]...
 *
 * Without sizes: those of gemm_sizes.h, with --more the others there; with --e4m3 (D is bf16) 4096 and 8192 cubed.
 * --load only compiles the kernels, and needs no time of the GPU: the driver keeps them, so that several such
 * runs at once, each with some of the sizes, can go in front.  --choices: so many are compiled and timed for each size (32).
 * --sustained runs each arm for so long without a pause, and times the last third.  --table writes M, N, K and TFLOP/s of
 * both for bench/gemm_sm90.gp. Every element of D is compared with cuBLAS's.  Operands are drawn from a normal distribution;
 * sets of them are rotated so that they do not stay in L2.  Two kernels of ours are measured: the fastest of the best
 * choices of cptx_gemm_auto (cptx_gemm_tune), and the first of these; with --sweep all of them.
 */
#include "burst.h"
#include "cublas.h"
#include "gemm_sizes.h"
#include "reference/number.h"

#include <cptx/gemm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SETS = 8, ROUNDS = 5, TUNED = 32, MOST_ARMS = TUNED + 4 };
#define ROTATED_BYTES (160u << 20)

typedef struct options {
	enum cptx_type in, out;
	bool sweep, load, more;
	size_t choices;
	double sustained;
	FILE *table;
} options;

typedef struct arm {
	cptx_gemm_choice choice; /* of ours */
	uint64_t workspace;
	bool theirs;
	cptx_program *program;
	cptx_launch *launch[SETS];
	double ms[ROUNDS];
} arm;

typedef struct bench {
	const options *o;
	cptx_device *dev;
	const cublas *peer;
	cublaslt *lt; /* of e4m3 */
	uint64_t m, n, k;
	uint32_t sets;
	uint64_t a[SETS], b[SETS], d, reference;
	arm arm[MOST_ARMS];
	uint32_t arms;
	unsigned next;
} bench;

static cublas_problem theirs(const bench *t, unsigned set)
{
	return (cublas_problem){ .m = (int)t->m,
		                     .n = (int)t->n,
		                     .k = (int)t->k,
		                     .in = t->o->in,
		                     .out = t->o->out,
		                     .a = t->a[set],
		                     .b = t->b[set],
		                     .d = t->reference };
}

static void run_arm(bench *t, const arm *a, cptx_error *err)
{
	unsigned set = t->next++ % t->sets;

	cublas_problem q = theirs(t, set);
	if (!a->theirs)
		cptx_launch_run(a->launch[set], NULL, err);
	else if (t->lt)
		cublaslt_run(t->lt, &q, err);
	else
		cublas_run(t->peer, &q, err);
}

typedef struct running {
	bench *t;
	const arm *a;
} running;

static void run_burst(void *user, cptx_error *err)
{
	running *r = user;
	run_arm(r->t, r->a, err);
}

static double time_arm(bench *t, const arm *a, int runs, long idle, cptx_error *err)
{
	running r = { t, a };
	return burst_time(t->dev, &(burst){ .run = run_burst, .user = &r, .runs = runs, .idle = idle }, err);
}

static bool prepare(bench *t, cptx_error *err)
{
	uint64_t bytes = (t->m + t->n) * t->k * (cptx_type_bits(t->o->in) / 8),
			 out = t->m * t->n * (cptx_type_bits(t->o->out) / 8);

	t->sets = bytes * SETS < ROTATED_BYTES ? SETS : (uint32_t)(ROTATED_BYTES / bytes + 1);
	t->sets = t->sets > SETS ? SETS : t->sets;
	for (uint32_t i = 0; i < t->sets; i++) {
		t->a[i] = burst_random(t->dev, t->m * t->k, t->o->in, 2 * i + 1, err);
		t->b[i] = burst_random(t->dev, t->n * t->k, t->o->in, 2 * i + 2, err);
	}
	t->d = cptx_mem_alloc(t->dev, out, err), t->reference = cptx_mem_alloc(t->dev, out, err);
	if (t->o->in == CPTX_E4M3 && err->code == CPTX_OK) {
		cublas_problem q = theirs(t, 0);
		t->lt = cublaslt_new(t->dev, &q, err);
		if (!t->lt && err->code == CPTX_OK)
			fprintf(stderr, "no cuBLASLt library found: there is nothing to compare with\n");
		return t->lt != NULL;
	}
	return err->code == CPTX_OK;
}

/* False: no such kernel. */
static bool add_arm(bench *t, const cptx_gemm_choice *choice, cptx_error *err)
{
	arm *a = &t->arm[t->arms];
	const cptx_gemm_opt *opt = &choice->opt;
	cptx_gemm_plan plan;
	cptx_gemm_problem p = { .m = t->m, .n = t->n, .k = t->k, .d = t->d, .ctas = choice->ctas };

	*a = (arm){ .choice = *choice };
	if (!cptx_gemm_check_problem(opt, &p, cptx_device_get_info(t->dev)->sms, &plan, err)) {
		*err = (cptx_error){ 0 };
		return false;
	}
	if (plan.workspace) {
		a->workspace = p.workspace = cptx_mem_alloc(t->dev, plan.workspace, err);
		cptx_mem_fill8(t->dev, p.workspace, 0, plan.workspace, err);
	}
	cptx_module *m = cptx_module_new(NULL);
	cptx_gemm_build(m, opt, err);
	a->program = cptx_device_load(t->dev, m, NULL, err);
	cptx_module_destroy(m);
	for (uint32_t i = 0; a->program && i < t->sets; i++) {
		p.a = t->a[i], p.b = t->b[i];
		a->launch[i] = cptx_gemm_launch(a->program, t->dev, opt, &p, err);
	}
	t->arms++;
	return err->code == CPTX_OK;
}

/* Ours, poisoned before, with cuBLAS's: both round the same sums, made in another order. */
static bool same(bench *t, const arm *a, cptx_error *err)
{
	uint64_t count = t->m * t->n, size = cptx_type_bits(t->o->out) / 8, wrong = 0;
	unsigned char *x = malloc(count * size), *y = malloc(count * size);
	double tolerance =
		4 * ldexp(sqrt((double)t->k), -22) * sqrt((double)t->k); /* sums of normal numbers grow by the root of K */
	if (t->o->in ==
	    CPTX_E4M3) /* wgmma keeps 13 bits behind the point, and cuts the others off at each of K / 32 additions */
		tolerance = ldexp(sqrt((double)t->k), -13) * (double)t->k / 32;

	const uint32_t poison = size == 4 ? UINT32_MAX : UINT16_MAX;
	cptx_mem_fill8(t->dev, t->d, 0xff, count * size, err);
	t->next = 0, run_arm(t, &t->arm[0], err);
	t->next = 0, run_arm(t, a, err);
	cptx_mem_read(t->dev, x, t->d, count * size, err), cptx_mem_read(t->dev, y, t->reference, count * size, err);
	/* --sweep: every 61st */
	for (uint64_t i = 0; err->code == CPTX_OK && i < count; i += t->o->sweep ? 61 : 1) {
		uint32_t u = 0, v = 0;
		memcpy(&u, x + i * size, size), memcpy(&v, y + i * size, size);
		if (u == v && u != poison)
			continue;
		double ours = number_value(t->o->out, u), theirs = number_value(t->o->out, v);
		double allowed = tolerance + fabs(theirs) * (size == 4 ? 0 : t->o->out == CPTX_BF16 ? ldexp(1, -7) : ldexp(1, -10));
		if (!(fabs(ours - theirs) <= allowed) && !wrong++)
			printf("    (%llu, %llu) is %g, cuBLAS has %g\n", (unsigned long long)(i / t->n), (unsigned long long)(i % t->n),
			       ours, theirs);
	}
	free(x), free(y);
	if (wrong)
		printf("    %llu of %llu elements differ\n", (unsigned long long)wrong, (unsigned long long)count);
	return !wrong && err->code == CPTX_OK;
}

/* Compiles what add_choices() will load. */
static void load_choices(cptx_device *dev, const options *o, cptx_gemm_problem p, cptx_error *err)
{
	cptx_gemm_choice choice[TUNED];
	cptx_gemm_opt opt = { .mma = CPTX_GEMM_WGMMA, .a = o->in, .b = o->in, .out = o->out };
	size_t n = cptx_gemm_auto(&opt, &p, cptx_device_get_info(dev)->sms, choice, o->choices, err);

	for (size_t i = 0; i < n && err->code == CPTX_OK; i++) {
		cptx_module *m = cptx_module_new(NULL);
		cptx_gemm_build(m, &choice[i].opt, err);
		cptx_program_destroy(cptx_device_load(dev, m, NULL, err));
		cptx_module_destroy(m);
	}
}

/* The fastest of the best choices of cptx_gemm_auto, and the first one; with --sweep all of them. */
static void add_choices(bench *t, cptx_error *err)
{
	cptx_gemm_choice choice[TUNED];
	cptx_gemm_problem p = { .m = t->m, .n = t->n, .k = t->k, .a = t->a[0], .b = t->b[0], .d = t->d };
	cptx_gemm_opt o = { .mma = CPTX_GEMM_WGMMA, .a = t->o->in, .b = t->o->in, .out = t->o->out };
	size_t n = cptx_gemm_auto(&o, &p, cptx_device_get_info(t->dev)->sms, choice, t->o->choices, err);
	cptx_gemm_choice first = choice[0];

	if (!n || (!t->o->sweep && !cptx_gemm_tune(t->dev, &p, choice, n, err)))
		return;
	for (size_t i = 0; i < (t->o->sweep ? n : 1); i++)
		add_arm(t, &choice[i], err);
	/* where both are the same kernel, one arm is enough */
	const bool same_shape = !memcmp(&first.opt, &choice[0].opt, sizeof first.opt) && first.ctas == choice[0].ctas;
	if (!t->o->sweep && !same_shape)
		add_arm(t, &first, err);
}

static void print_arm(const bench *t, arm *a, double theirs)
{
	double flop = 2e-9 * (double)t->m * (double)t->n * (double)t->k;

	const cptx_gemm_opt *o = &a->choice.opt;
	qsort(a->ms, ROUNDS, sizeof *a->ms, burst_order);
	double ms = a->ms[ROUNDS / 2];
	if (a->theirs)
		printf("%6llu x %6llu x %6llu  %s %8.1f us %7.1f TFLOP/s\n", (unsigned long long)t->m, (unsigned long long)t->n,
		       (unsigned long long)t->k, t->lt ? "cuBLASLt" : "cuBLAS", 1e3 * ms, flop / ms);
	else
		printf(
			"    %3ux%3u%s, %u a SM, %2u stages, cluster %ux%u, group %2u%s, %3u CTAs: %8.1f us %7.1f TFLOP/s, ratio %.3f "
			"(predicted %.1f us)\n",
			o->bm, o->bn, o->swap ? " swapped" : "", o->per_sm, o->stages, o->cluster_m, o->cluster_n, o->group,
			o->stream_k ? ", stream-K" : "", a->choice.ctas, 1e3 * ms, flop / ms, theirs / ms, a->choice.us);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Back to back, so that the chip settles at its power limit. */
static double sustained(bench *t, const arm *a, int runs, cptx_error *err)
{
	double begin = now(), settled = begin + t->o->sustained * 2 / 3, sum = 0;
	int n = 0;

	for (double at = begin; at < begin + t->o->sustained && err->code == CPTX_OK; at = now()) {
		double ms = time_arm(t, a, runs, 0, err);
		if (at >= settled)
			sum += ms, n++;
	}
	return n ? sum / n : 0;
}

static bool measure(bench *t, cptx_error *err)
{
	double flop = 2e-9 * (double)t->m * (double)t->n * (double)t->k;
	int runs = (int)((t->o->sweep ? 3000 : 6000) / flop) + 3; /* about 4 or 8 ms */
	bool ok = true;

	runs = runs > 200 ? 200 : runs;
	for (uint32_t i = 1; i < t->arms && err->code == CPTX_OK; i++)
		ok &= same(t, &t->arm[i], err);
	for (int r = 0; r < ROUNDS && err->code == CPTX_OK; r++)
		for (uint32_t i = 0; i < t->arms && err->code == CPTX_OK; i++) {
			if (t->o->sustained > 0) {
				t->arm[i].ms[r] = r < 1 ? sustained(t, &t->arm[i], runs, err) : t->arm[i].ms[0];
				continue;
			}
			t->arm[i].ms[r] =
				time_arm(t, &t->arm[i], runs, t->o->sweep ? 10000000 : 20000000, err); /* out of the power limit */
		}
	for (uint32_t i = 0; i < t->arms && err->code == CPTX_OK; i++)
		print_arm(t, &t->arm[i], t->arm[0].ms[ROUNDS / 2]);
	fflush(stdout);
	if (t->o->table && t->arms > 1)
		fprintf(t->o->table, "%llu %llu %llu %.1f %.1f\n", (unsigned long long)t->m, (unsigned long long)t->n,
		        (unsigned long long)t->k, flop / t->arm[1].ms[ROUNDS / 2], flop / t->arm[0].ms[ROUNDS / 2]);
	return ok && err->code == CPTX_OK;
}

static void release(bench *t)
{
	for (uint32_t i = 0; i < t->arms; i++) {
		for (uint32_t s = 0; s < SETS; s++)
			cptx_launch_destroy(t->arm[i].launch[s]);
		cptx_program_destroy(t->arm[i].program);
		cptx_mem_free(t->dev, t->arm[i].workspace);
	}
	for (uint32_t i = 0; i < SETS; i++)
		cptx_mem_free(t->dev, t->a[i]), cptx_mem_free(t->dev, t->b[i]);
	cptx_mem_free(t->dev, t->d), cptx_mem_free(t->dev, t->reference);
	cublaslt_destroy(t->lt);
}

static bool one(cptx_device *dev, const cublas *peer, const options *o, const char *shape, double *ratio, cptx_error *err)
{
	unsigned long long m, n, k;
	bench *t = calloc(1, sizeof *t);

	if (!t || sscanf(shape, "%llux%llux%llu", &m, &n, &k) != 3) {
		fprintf(stderr, "%s: expected MxNxK\n", shape);
		free(t);
		return false;
	}
	if (o->load) {
		load_choices(dev, o, (cptx_gemm_problem){ .m = m, .n = n, .k = k }, err);
		free(t);
		return err->code == CPTX_OK;
	}
	*t = (bench){ .o = o, .dev = dev, .peer = peer, .m = m, .n = n, .k = k };
	bool ok = prepare(t, err);
	t->arm[t->arms++] = (arm){ .theirs = true };
	if (ok)
		add_choices(t, err);
	ok = ok && measure(t, err);
	for (uint32_t i = 0; i < 2 && t->arms > 1; i++)
		ratio[i] = t->arm[0].ms[ROUNDS / 2] / t->arm[t->arms > i + 1 ? i + 1 : 1].ms[ROUNDS / 2];
	release(t);
	free(t);
	return ok;
}

/* All sizes, and the geometric mean of the ratios. */
static bool all(cptx_device *dev, const cublas *peer, const options *o, const char *const *shape, size_t n, cptx_error *err)
{
	double sum[2] = { 0 }, least[2] = { 1e9, 1e9 };
	bool ok = true;

	for (size_t i = 0; i < n && err->code == CPTX_OK; i++) {
		double ratio[2] = { 1, 1 };
		ok &= one(dev, peer, o, shape[i], ratio, err);
		for (int j = 0; j < 2; j++)
			sum[j] += log(ratio[j]), least[j] = ratio[j] < least[j] ? ratio[j] : least[j];
	}
	if (!o->load)
		printf("%zu sizes: geometric mean of the ratios to cuBLAS %.3f, least %.3f; of the choices that are not tuned %.3f, "
		       "least %.3f\n",
		       n, exp(sum[0] / (double)n), least[0], exp(sum[1] / (double)n), least[1]);
	return ok;
}

static bool read_options(options *o, int argc, char **argv, int *first)
{
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--f16"))
			o->in = o->out = CPTX_F16;
		else if (!strcmp(argv[i], "--e4m3"))
			o->in = CPTX_E4M3;
		else if (!strcmp(argv[i], "--sweep"))
			o->sweep = true;
		else if (!strcmp(argv[i], "--load"))
			o->load = true;
		else if (!strcmp(argv[i], "--more"))
			o->more = true;
		else if (!strcmp(argv[i], "--choices") && i + 1 < argc)
			o->choices = (size_t)strtoul(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--sustained") && i + 1 < argc)
			o->sustained = strtod(argv[++i], NULL);
		else if (!strcmp(argv[i], "--table") && i + 1 < argc && (o->table = fopen(argv[i + 1], "w")))
			i++;
		else
			return fprintf(stderr, "%s: no such option, or its file cannot be written\n", argv[i]), false;
	}
	if (!o->choices || o->choices > TUNED)
		return fprintf(stderr, "--choices: 1 to %d\n", TUNED), false;
	*first = i;
	return true;
}

int main(int argc, char **argv)
{
	options o = { .in = CPTX_BF16, .out = CPTX_BF16, .choices = TUNED };
	cptx_error err = { 0 };
	cublas peer = { 0 };
	int first;

	if (!read_options(&o, argc, argv, &first))
		return 2;
	cptx_device *dev = cptx_device_open("cuda", &err);
	if (!dev || !cptx_device_make_current(dev, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (!cublas_open(&peer)) {
		fprintf(stderr, "no cuBLAS library found: there is nothing to compare with\n");
		return 1;
	}
	bool given = first < argc;
	static const char *const cubes[] = { "4096x4096x4096", "8192x8192x8192" };
	const char *const *sizes = o.in == CPTX_E4M3 ? cubes : o.more ? gemm_more_sizes : gemm_sizes;
	size_t n = o.in == CPTX_E4M3 ? 2 : o.more ? sizeof gemm_more_sizes / sizeof *sizes : sizeof gemm_sizes / sizeof *sizes;
	if (given)
		sizes = (const char *const *)argv + first, n = (size_t)(argc - first);
	bool ok = all(dev, &peer, &o, sizes, n, &err);
	if (err.code != CPTX_OK)
		fprintf(stderr, "%s\n", err.text);
	if (o.table)
		fclose(o.table);
	cptx_device_close(dev);
	return !ok || err.code != CPTX_OK;
}
