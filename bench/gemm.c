/* SPDX-License-Identifier: MIT */
/*
 * The GEMM beside cuBLAS (cublasGemmEx, its default algorithm, found at run time), in alternated bursts of the same process.
 * Arguments: SIZE...; default 2048 4096 8192.  Types: bf16 in; f32 and bf16 out.
 */
#include "burst.h"
#include "cublas.h"

#include <cptx/gemm.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct arms {
	cptx_launch *ours;
	const cublas *theirs;
	cublas_problem p;
} arms;

static void run_ours(void *user, cptx_error *err) { cptx_launch_run(((arms *)user)->ours, NULL, err); }
static void run_theirs(void *user, cptx_error *err) { cublas_run(((arms *)user)->theirs, &((arms *)user)->p, err); }

static bool bench(cptx_device *dev, const cublas *theirs, uint32_t n, enum cptx_type out, cptx_error *err)
{
	enum { ROUNDS = 7 };
	cptx_gemm_opt o = cptx_gemm_default(CPTX_GEMM_SYNC, cptx_target_find(cptx_device_get_info(dev)->target));
	cptx_module *m = cptx_module_new(NULL);
	double t[2][ROUNDS];
	size_t count = (size_t)n * n;

	o.out = out;
	cptx_gemm_build(m, &o, err);
	cptx_program *p = cptx_device_load(dev, m, NULL, err);
	arms arm = { .theirs = theirs,
		         .p = { .m = (int)n,
		                .n = (int)n,
		                .k = (int)n,
		                .in = CPTX_BF16,
		                .out = out,
		                .a = burst_random(dev, count, CPTX_BF16, 1, err),
		                .b = burst_random(dev, count, CPTX_BF16, 2, err),
		                .d = cptx_mem_alloc(dev, count * 4, err) } };
	cptx_gemm_problem ours = { .m = n, .n = n, .k = n, .a = arm.p.a, .b = arm.p.b, .d = arm.p.d };
	arm.ours = cptx_gemm_launch(p, dev, &o, &ours, err);
	int runs = (int)(4e12 / ((double)n * n * n)) + 1;
	runs = runs > 30 ? 30 : runs < 3 ? 3 : runs;
	for (int i = 0; i < ROUNDS && err->code == CPTX_OK; i++)
		for (int a = 0; a < 1 + (theirs != NULL); a++)
			t[a][i] = burst_time(dev, &(burst){ a ? run_theirs : run_ours, &arm, runs, 40000000 }, err);
	if (err->code == CPTX_OK) {
		double flop = 2e-9 * (double)n * n * n;
		qsort(t[0], ROUNDS, sizeof(double), burst_order);
		printf("%5u cubed, bf16 -> %-4s: cptx %6.1f TFLOP/s", n, cptx_type_name(out), flop / t[0][ROUNDS / 2]);
		if (theirs) {
			qsort(t[1], ROUNDS, sizeof(double), burst_order);
			printf(", cuBLAS %6.1f, ratio %.3f", flop / t[1][ROUNDS / 2], t[1][ROUNDS / 2] / t[0][ROUNDS / 2]);
		}
		putchar('\n');
	}
	cptx_launch_destroy(arm.ours);
	cptx_program_destroy(p);
	cptx_module_destroy(m);
	cptx_mem_free(dev, arm.p.a);
	cptx_mem_free(dev, arm.p.b);
	cptx_mem_free(dev, arm.p.d);
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
