/* SPDX-License-Identifier: MIT */
/*
 * What the optimizing pass does for a back end that makes code without looking back: each of n accesses computes its
 * element's address anew, constants are moved into registers, and every fourth value is never read.  Prints the time of the
 * pass and of printing; `bench_optimize n before.ptx after.ptx` writes the texts, for ptxas.
 */
#include "clock.h"

#include <cptx/cptx.h>
#include <cptx/optimize.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 21, ARRAYS = 4 };

/* The address of the thread's element of an array, as such a back end writes it. */
static cptx_val element(cptx_kernel *k, cptx_val array, unsigned shift)
{
	cptx_val index = cptx_mad(k, cptx_ctaid_x(k), cptx_ntid_x(k), cptx_tid_x(k), .mode = CPTX_LO, .type = CPTX_U32);
	cptx_val size = cptx_mov(k, 4, .type = CPTX_U32);

	return cptx_add(k, cptx_add(k, array, cptx_mul_wide(k, index, size, .type = CPTX_U32)), (int)(4 * shift));
}

static cptx_module *naive(unsigned n)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 256 });
	cptx_val array[ARRAYS], sum = cptx_var(k, CPTX_F32, 0.0f);

	for (unsigned i = 0; i < ARRAYS; i++)
		array[i] = cptx_param(k, CPTX_PTR, ((const char *const[ARRAYS]){ "a", "b", "c", "d" })[i]);
	for (unsigned i = 0; i < n; i++) {
		cptx_val x = cptx_ld(k, element(k, array[i % 3], i / 8), .type = CPTX_F32, .space = CPTX_GLOBAL);
		cptx_val y = cptx_mov(k, x), scale = cptx_mov(k, 1.5f, .type = CPTX_F32);
		cptx_val z = cptx_fma(k, y, scale, x, .rnd = CPTX_RN);
		if (i % 4)
			cptx_add(k, sum, z, .into = sum);
	}
	cptx_st(k, element(k, array[3], 0), sum, .space = CPTX_GLOBAL);
	return m;
}

static void save(const char *path, cptx_module *m, size_t *bytes)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_ptx *p = cptx_emit(m, "sm_90", NULL, &err);
	FILE *f = p && path ? fopen(path, "w") : NULL;

	if (!p || (path && (!f || fputs(cptx_ptx_text(p), f) < 0 || fclose(f) != 0))) {
		fprintf(stderr, "bench_optimize: %s\n", p ? path : err.text);
		exit(1);
	}
	*bytes = cptx_ptx_size(p);
	cptx_ptx_destroy(p);
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000;
	double pass[ROUNDS], print[2][ROUNDS];
	size_t insns[2], bytes[2];
	cptx_optimized done;

	for (unsigned i = 0; i < ROUNDS; i++) {
		cptx_module *plain = naive(n), *m = naive(n);
		insns[0] = cptx_module_size(plain);
		double t0 = now_ns();
		save(i || argc < 4 ? NULL : argv[2], plain, &bytes[0]);
		double t1 = now_ns();
		if (!cptx_optimize(m, NULL, &done, NULL))
			return fprintf(stderr, "bench_optimize: %s\n", cptx_module_error(m)->text), 1;
		double t2 = now_ns();
		save(i || argc < 4 ? NULL : argv[3], m, &bytes[1]);
		double t3 = now_ns();
		insns[1] = cptx_module_size(m);
		print[0][i] = t1 - t0, pass[i] = t2 - t1, print[1][i] = t3 - t2;
		cptx_module_destroy(plain);
		cptx_module_destroy(m);
	}
	qsort(pass, ROUNDS, sizeof *pass, by_value);
	qsort(print[0], ROUNDS, sizeof(double), by_value);
	qsort(print[1], ROUNDS, sizeof(double), by_value);
	printf("%zu instructions, %zu bytes: %zu and %zu behind the pass, which takes %.1f ns an instruction; printing %.1f us, "
	       "%.1f\n",
	       insns[0], bytes[0], insns[1], bytes[1], pass[ROUNDS / 2] / (double)insns[0], print[0][ROUNDS / 2] / 1e3,
	       print[1][ROUNDS / 2] / 1e3);
	printf("copies %zu, constants %zu, common %zu, addresses %zu, dead %zu\n", done.copies, done.constants, done.common,
	       done.addresses, done.dead);
	return 0;
}
