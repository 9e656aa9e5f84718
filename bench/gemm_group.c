/* SPDX-License-Identifier: MIT */
/*
 * A list of problems in one launch of the sm_90a GEMM, beside a launch for each and cuBLAS for each, in alternated bursts.
 *
 *   bench_gemm_group [MxNxK]...
 *
 * bf16.  Default: tokens of a mixture of 16 experts, N = 4096, K = 7168.  The kernel of the list is that of
 * cptx_gemm_auto for one problem of as many rows, or the best of some tiles that are tried; of each launch alone that
 * of auto for it.  Every byte of the list's results is compared with those of launches of the same kernel alone.
 */
#include "burst.h"
#include "cublas.h"

#include <cptx/gemm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, ROUNDS = 7, TRIED = 6 };

typedef struct bench {
	cptx_device *dev;
	cublas peer;
	size_t n;
	cptx_gemm_problem p[MOST];
	uint64_t reference[MOST], workspace[MOST], table[TRIED];
	cptx_program *alone_program[MOST], *list_program[TRIED];
	cptx_launch *alone[MOST], *list[TRIED];
	cptx_gemm_opt list_opt[TRIED];
	size_t lists, which;
} bench;

static cptx_program *load(bench *t, const cptx_gemm_opt *o, cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_gemm_build(m, o, err);
	cptx_program *p = cptx_device_load(t->dev, m, NULL, err);
	cptx_module_destroy(m);
	return p;
}

static bool add_alone(bench *t, size_t i, cptx_error *err)
{
	cptx_gemm_opt o = { .mma = CPTX_GEMM_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_BF16 };
	cptx_gemm_choice c;
	cptx_gemm_plan plan;
	cptx_gemm_problem p = t->p[i];
	uint32_t sms = cptx_device_get_info(t->dev)->sms;

	if (!cptx_gemm_auto(&o, &p, sms, &c, 1, err))
		return false;
	p.ctas = c.ctas, p.d = t->reference[i];
	cptx_gemm_check_problem(&c.opt, &p, sms, &plan, err);
	if (plan.workspace) {
		p.workspace = t->workspace[i] = cptx_mem_alloc(t->dev, plan.workspace, err);
		cptx_mem_fill8(t->dev, p.workspace, 0, plan.workspace, err);
	}
	t->alone_program[i] = load(t, &c.opt, err);
	t->alone[i] = cptx_gemm_launch(t->alone_program[i], t->dev, &c.opt, &p, err);
	return t->alone[i] != NULL;
}

static bool add_list(bench *t, cptx_gemm_opt o, cptx_error *err)
{
	size_t i = t->lists++;

	o.grouped = true, o.stream_k = false;
	t->list_opt[i] = o;
	t->list_program[i] = load(t, &o, err);
	t->table[i] = cptx_mem_alloc(t->dev, t->n * CPTX_GEMM_GROUP_BYTES, err);
	t->list[i] = cptx_gemm_launch_grouped(t->list_program[i], t->dev, &o, t->p, t->n, t->table[i], err);
	return t->list[i] != NULL;
}

/* What auto takes for all rows, and tiles that waste less where a problem has few. */
static bool add_lists(bench *t, cptx_error *err)
{
	static const uint16_t tiles[TRIED - 1][5] = { /* bm, bn, stages, cluster_m, cluster_n */
		                                          { 128, 256, 4, 1, 1 },
		                                          { 128, 256, 4, 1, 2 },
		                                          { 128, 128, 6, 1, 1 },
		                                          { 128, 128, 6, 1, 2 },
		                                          { 64, 256, 5, 1, 1 }
	};
	cptx_gemm_opt o = { .mma = CPTX_GEMM_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_BF16 };
	cptx_gemm_problem all = t->p[0];
	cptx_gemm_choice c;
	bool ok;

	for (size_t i = 1; i < t->n; i++)
		all.m += t->p[i].m;
	ok = cptx_gemm_auto(&o, &all, cptx_device_get_info(t->dev)->sms, &c, 1, err) && add_list(t, c.opt, err);
	for (size_t i = 0; ok && i < TRIED - 1; i++) {
		o.bm = tiles[i][0], o.bn = tiles[i][1], o.stages = tiles[i][2];
		o.cluster_m = tiles[i][3], o.cluster_n = tiles[i][4];
		ok = add_list(t, o, err);
	}
	return ok;
}

static void run_list(void *user, cptx_error *err)
{
	bench *t = user;
	cptx_launch_run(t->list[t->which], NULL, err);
}

static void run_alone(void *user, cptx_error *err)
{
	bench *t = user;

	for (size_t i = 0; i < t->n; i++)
		cptx_launch_run(t->alone[i], NULL, err);
}

static void run_peer(void *user, cptx_error *err)
{
	bench *t = user;

	for (size_t i = 0; i < t->n; i++) {
		const cptx_gemm_problem *p = &t->p[i];
		cublas_problem q = {
			(int)p->m, (int)p->n, (int)p->k, CPTX_BF16, CPTX_BF16, false, false, p->a, p->b, t->reference[i]
		};
		cublas_run(&t->peer, &q, err);
	}
}

/* The results of list `which` beside those of a launch of the same kernel for each problem. */
static bool same(bench *t, cptx_error *err)
{
	cptx_gemm_opt o = t->list_opt[t->which];
	uint64_t wrong = 0;

	o.grouped = false;
	cptx_program *program = load(t, &o, err);
	for (size_t i = 0; i < t->n; i++)
		cptx_mem_fill8(t->dev, t->p[i].d, 0xff, t->p[i].m * t->p[i].n * 2, err);
	run_list(t, err);
	for (size_t i = 0; i < t->n && err->code == CPTX_OK; i++) {
		cptx_gemm_problem p = t->p[i];
		uint64_t bytes = p.m * p.n * 2;
		uint8_t *x = malloc(bytes), *y = malloc(bytes);
		p.d = t->reference[i];
		cptx_launch *l = cptx_gemm_launch(program, t->dev, &o, &p, err);
		cptx_launch_run(l, NULL, err);
		cptx_mem_read(t->dev, x, t->p[i].d, bytes, err), cptx_mem_read(t->dev, y, p.d, bytes, err);
		wrong += x && y && memcmp(x, y, bytes) != 0;
		cptx_launch_destroy(l);
		free(x), free(y);
	}
	cptx_program_destroy(program);
	if (wrong)
		printf("    %llu problems of the list have other results than alone\n", (unsigned long long)wrong);
	return !wrong && err->code == CPTX_OK;
}

static bool measure(bench *t, double flop, cptx_error *err)
{
	double ms[TRIED + 2][ROUNDS];
	bool ok = true;

	for (t->which = 0; t->which < t->lists; t->which++)
		ok &= same(t, err);
	for (int r = 0; r < ROUNDS && err->code == CPTX_OK; r++) {
		for (t->which = 0; t->which < t->lists; t->which++)
			ms[t->which][r] = burst_time(t->dev, &(burst){ run_list, t, 10, 20000000 }, err);
		ms[TRIED][r] = burst_time(t->dev, &(burst){ run_alone, t, 10, 20000000 }, err);
		ms[TRIED + 1][r] = burst_time(t->dev, &(burst){ run_peer, t, 10, 20000000 }, err);
	}
	for (size_t i = 0; i < TRIED + 2 && err->code == CPTX_OK; i++) {
		qsort(ms[i], ROUNDS, sizeof(double), burst_order);
		double us = 1e3 * ms[i][ROUNDS / 2], rate = 1e3 * flop / us;
		const cptx_gemm_opt *o = &t->list_opt[i < TRIED ? i : 0];
		if (i < TRIED)
			printf("one launch, %ux%u%s, cluster %ux%u%s: %.1f us, %.1f TFLOP/s\n", o->bm, o->bn, o->swap ? " swapped" : "",
			       o->cluster_m, o->cluster_n, i ? "" : " (auto for all rows)", us, rate);
		else
			printf("%s: %.1f us, %.1f TFLOP/s\n", i == TRIED ? "a launch for each" : "cuBLAS for each", us, rate);
	}
	return ok && err->code == CPTX_OK;
}

static bool prepare(bench *t, char **shape, size_t n, double *flop, cptx_error *err)
{
	static const uint16_t rows[] = { 611, 480, 402, 333, 290, 257, 224, 201, 160, 130, 96, 77, 64, 40, 24, 9 };

	t->n = n ? n : sizeof rows / sizeof *rows;
	for (size_t i = 0; i < t->n; i++) {
		unsigned long long m = n ? 0 : rows[i], cols = 4096, k = 7168;
		if (n && sscanf(shape[i], "%llux%llux%llu", &m, &cols, &k) != 3)
			return fprintf(stderr, "%s: expected MxNxK\n", shape[i]), false;
		t->p[i] = (cptx_gemm_problem){ .m = m, .n = cols, .k = k };
		t->p[i].a = burst_random(t->dev, m * k, CPTX_BF16, 2 * i + 1, err);
		t->p[i].b = burst_random(t->dev, cols * k, CPTX_BF16, 2 * i + 2, err);
		t->p[i].d = cptx_mem_alloc(t->dev, m * cols * 2, err), t->reference[i] = cptx_mem_alloc(t->dev, m * cols * 2, err);
		*flop += 2e-9 * (double)m * (double)cols * (double)k;
	}
	bool ok = err->code == CPTX_OK && add_lists(t, err);
	for (size_t i = 0; ok && i < t->n; i++)
		ok = add_alone(t, i, err);
	return ok;
}

static void release(bench *t)
{
	for (size_t i = 0; i < t->lists; i++) {
		cptx_launch_destroy(t->list[i]);
		cptx_program_destroy(t->list_program[i]);
		cptx_mem_free(t->dev, t->table[i]);
	}
	for (size_t i = 0; i < t->n; i++) {
		cptx_launch_destroy(t->alone[i]);
		cptx_program_destroy(t->alone_program[i]);
		uint64_t held[] = { t->p[i].a, t->p[i].b, t->p[i].d, t->reference[i], t->workspace[i] };
		for (size_t h = 0; h < sizeof held / sizeof *held; h++)
			cptx_mem_free(t->dev, held[h]);
	}
}

int main(int argc, char **argv)
{
	static bench t;
	cptx_error err = { 0 };
	double flop = 0;

	t.dev = cptx_device_open("cuda", &err);
	if (!t.dev || !cptx_device_make_current(t.dev, &err))
		return fprintf(stderr, "%s\n", err.text), 1;
	if (!cublas_open(&t.peer) || argc > MOST)
		return fprintf(stderr, argc > MOST ? "too many problems\n" : "no cuBLAS library found\n"), 1;
	bool ok = prepare(&t, argv + 1, (size_t)argc - 1, &flop, &err) && measure(&t, flop, &err);
	if (err.code != CPTX_OK)
		fprintf(stderr, "%s\n", err.text);
	release(&t);
	cptx_device_close(t.dev);
	return !ok;
}
