/* SPDX-License-Identifier: MIT */
/*
 * Host time to build, check and print the GEMM: nanoseconds per instruction, on one core, beside a memcpy of the text.
 * Each round builds a module, prints it and frees both, as a program that generates kernels would.
 */
#include "clock.h"

#include <cptx/gemm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 501 };

int main(void)
{
	static double build[ROUNDS], emit[ROUNDS], copy[ROUNDS];
	cptx_gemm_opt o = cptx_gemm_default(CPTX_GEMM_SYNC, NULL);
	size_t insns = 0, bytes = 0;
	cptx_error err = { .code = CPTX_OK };

	for (int i = 0; i < ROUNDS; i++) {
		double t0 = now_ns();
		cptx_module *m = cptx_module_new(NULL);
		if (!cptx_gemm_build(m, &o, &err) || !cptx_module_freeze(m))
			return fprintf(stderr, "%s\n", err.text), 1;
		double t1 = now_ns();
		cptx_ptx *p = cptx_emit(m, "sm_90a", NULL, &err);
		if (!p)
			return fprintf(stderr, "%s\n", err.text), 1;
		double t2 = now_ns();
		insns = cptx_module_size(m), bytes = cptx_ptx_size(p);
		char *to = malloc(bytes);
		double t3 = now_ns();
		memcpy(to, cptx_ptx_text(p), bytes);
		double t4 = now_ns();
		volatile char used = to[bytes / 2];
		(void)used;
		free(to);
		cptx_ptx_destroy(p);
		cptx_module_destroy(m);
		build[i] = t1 - t0, emit[i] = t2 - t1, copy[i] = t4 - t3;
	}
	double first = (build[0] + emit[0]) / (double)insns;
	qsort(build, ROUNDS, sizeof *build, by_value);
	qsort(emit, ROUNDS, sizeof *emit, by_value);
	qsort(copy, ROUNDS, sizeof *copy, by_value);
	double b = build[ROUNDS / 2] / (double)insns, e = emit[ROUNDS / 2] / (double)insns;
	printf("GEMM %ux%ux%u: %zu instructions, %zu bytes of PTX\n", o.bm, o.bn, o.bk, insns, bytes);
	printf("build and check  %6.1f ns per instruction\n", b);
	printf("print            %6.1f ns per instruction, %.0f MB/s (memcpy of the text: %.0f MB/s)\n", e,
	       (double)bytes / emit[ROUNDS / 2] * 1e3, (double)bytes / copy[ROUNDS / 2] * 1e3);
	printf("together         %6.1f ns per instruction (median of %d; the first in the process: %.1f)\n", b + e, ROUNDS,
	       first);
	return 0;
}
