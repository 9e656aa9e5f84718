/*
 * The GEMM beside cuBLAS (cublasGemmEx, its default algorithm, found at run time), in alternated bursts of the same process.
 * Arguments: SIZE...; default 2048 4096 8192.  Types: bf16 in; f32 and bf16 out.
 */
#include "cublas.h"
#include "gemm_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct arms {
	cptx_device *dev;
	cptx_launch *ours;
	cublas *theirs;
	uint64_t a, b, d;
	int n;
	enum cptx_type out;
} arms;

static void run_arm(const arms *t, int arm, cptx_error *err)
{
	if (arm == 0) {
		cptx_launch_run(t->ours, NULL, err);
		return;
	}
	cublas_run(t->theirs,
	           &(cublas_problem){
				   .m = t->n, .n = t->n, .k = t->n, .in = CPTX_BF16, .out = t->out, .a = t->a, .b = t->b, .d = t->d },
	           err);
}

static double burst(const arms *t, int arm, int runs, cptx_event *start, cptx_event *end, cptx_error *err)
{
	float ms = 0;

	nanosleep(&(struct timespec){ .tv_nsec = 40000000 }, NULL); /* out of the power limit */
	for (int i = -2; i < runs; i++) {
		if (i == 0)
			cptx_event_record(start, NULL, err);
		run_arm(t, arm, err);
	}
	cptx_event_record(end, NULL, err);
	cptx_event_synchronize(end, err);
	cptx_event_elapsed(start, end, &ms, err);
	return (double)ms / runs;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Fills a buffer with normal bf16 numbers through a host copy. */
static void fill(cptx_device *dev, uint64_t to, size_t count, cptx_error *err)
{
	uint16_t *p = malloc(count * 2);
	uint64_t s = to | 1;

	for (size_t i = 0; p && i < count; i++) { /* sum of eight uniform bytes: near enough to normal for the power drawn */
		s ^= s << 13, s ^= s >> 7, s ^= s << 17;
		int sum = 0;
		for (int j = 0; j < 8; j++)
			sum += (int)(s >> 8 * j & 255);
		float f = ((float)sum - 1020.0f) / 209.0f;
		uint32_t u;
		__builtin_memcpy(&u, &f, sizeof u);
		p[i] = (uint16_t)((u + 0x8000) >> 16);
	}
	if (p)
		cptx_mem_write(dev, to, p, count * 2, err);
	free(p);
}

static bool bench(cptx_device *dev, cublas *theirs, uint32_t n, enum cptx_type out, cptx_error *err)
{
	enum { ROUNDS = 7 };
	cptx_gemm_opt o = cptx_gemm_default(cptx_target_find(cptx_device_get_info(dev)->target));
	cptx_gemm_plan plan;
	cptx_module *m = cptx_module_new(NULL);
	double t[2][ROUNDS];
	size_t count = (size_t)n * n;

	o.out = out;
	cptx_gemm_build(m, &o, err);
	cptx_gemm_check(&o, NULL, &plan, err);
	cptx_program *p = cptx_device_load(dev, m, NULL, err);
	arms arm = { .dev = dev,
		         .theirs = theirs,
		         .n = (int)n,
		         .out = out,
		         .a = cptx_mem_alloc(dev, count * 2, err),
		         .b = cptx_mem_alloc(dev, count * 2, err),
		         .d = cptx_mem_alloc(dev, count * 4, err) };
	fill(dev, arm.a, count, err);
	fill(dev, arm.b, count, err);
	arm.ours = cptx_launch_new(p, NULL,
	                           &(cptx_launch_opt){ .grid = { cptx_gemm_grid(&o, n, n, cptx_device_get_info(dev)->sms) },
	                                               .block = { plan.threads },
	                                               CPTX_ARGS(arm.a, arm.b, arm.d, n, n, n) },
	                           err);
	cptx_event *start = cptx_event_new(dev, err), *end = cptx_event_new(dev, err);
	int runs = (int)(4e12 / ((double)n * n * n)) + 1;
	runs = runs > 30 ? 30 : runs < 3 ? 3 : runs;
	for (int i = 0; i < ROUNDS && err->code == CPTX_OK; i++)
		for (int a = 0; a < 1 + (theirs != NULL); a++)
			t[a][i] = burst(&arm, a, runs, start, end, err);
	if (err->code == CPTX_OK) {
		double flop = 2e-9 * (double)n * n * n;
		qsort(t[0], ROUNDS, sizeof(double), by_value);
		printf("%5u cubed, bf16 -> %-4s: cptx %6.1f TFLOP/s", n, cptx_type_name(out), flop / t[0][ROUNDS / 2]);
		if (theirs) {
			qsort(t[1], ROUNDS, sizeof(double), by_value);
			printf(", cuBLAS %6.1f, ratio %.3f", flop / t[1][ROUNDS / 2], t[1][ROUNDS / 2] / t[0][ROUNDS / 2]);
		}
		putchar('\n');
	}
	cptx_event_destroy(start);
	cptx_event_destroy(end);
	cptx_launch_destroy(arm.ours);
	cptx_program_destroy(p);
	cptx_module_destroy(m);
	cptx_mem_free(dev, arm.a);
	cptx_mem_free(dev, arm.b);
	cptx_mem_free(dev, arm.d);
	return err->code == CPTX_OK;
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 2048, 4096, 8192 };
	cptx_error err = { 0 };
	cptx_device *dev = cptx_device_open("cuda", &err);
	cublas peer = { 0 };

	if (!dev || !cptx_device_make_current(dev, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	bool have = cublas_open(&peer);
	if (!have)
		fprintf(stderr, "no cuBLAS library found: no peer in this run\n");
	bool ok = true;
	for (int i = 0; ok && i < (argc > 1 ? argc - 1 : 3); i++)
		for (int wide = 1; ok && wide >= 0; wide--)
			ok = bench(dev, have ? &peer : NULL, argc > 1 ? (uint32_t)strtoul(argv[i + 1], NULL, 10) : sizes[i],
			           wide ? CPTX_F32 : CPTX_BF16, &err);
	if (!ok)
		fprintf(stderr, "%s\n", err.text);
	cptx_device_close(dev);
	return !ok;
}
