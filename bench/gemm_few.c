/* SPDX-License-Identifier: MIT */
/*
 * GEMMs of few rows, with weights of few bits, and with rows that are no multiples of 16 bytes: beside a copy and cuBLAS.
 *
 *   bench_gemm_few [COUNT [MxNxK [TYPE]]]
 *
 * Every time is the least of seven bursts, whose runs take operands by turns so that B comes from memory.  A row of "few"
 * and "bits" has the time of the model's first choice, of the best of COUNT of its choices (default 8), of cuBLAS with B in
 * 16 bits, and which part of the copy's rate the bytes of A, B, scale factors and D come to; one of "any" the time of the
 * model's first choice, that of its aligned neighbour, and of cuBLAS for the same sizes.  With a size that size alone is
 * measured, with a type B of that alone, and each choice printed.
 */
#include "burst.h"
#include "cublas.h"

#include <cptx/gemm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 12, ROUNDS = 7, MOST = 64 };
#define APART_BYTES (400u << 20)

typedef struct bench {
	cptx_device *dev;
	cublas peer;
	bool has_peer;
	double copy_gbs;
	size_t room;      /* choices that are tried */
	const char *only; /* a size; NULL: all */
	const char *type; /* of B; NULL: all */
	uint64_t b[SETS];
	uint32_t sets, turn;
	cptx_launch *launch[SETS];
	cublas_problem q;
} bench;

static double least(const bench *t, const burst *b, cptx_error *err)
{
	double best = 0;

	for (int i = 0; i < ROUNDS && err->code == CPTX_OK; i++) {
		double ms = burst_time(t->dev, b, err);
		best = !i || ms < best ? ms : best;
	}
	return best * 1e3;
}

/* ---- the copy ---- */

typedef struct copying {
	cptx_launch *launch;
} copying;

static void run_copy(void *user, cptx_error *err) { cptx_launch_run(((copying *)user)->launch, NULL, err); }

static cptx_module *build_copy(void)
{
	enum { THREADS = 256, EACH = 4 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "copy", .block = { THREADS });
	cptx_val from = cptx_param(k, CPTX_PTR, "from"), to = cptx_param(k, CPTX_PTR, "to"), v[EACH];
	cptx_val at = cptx_mad(k, cptx_ctaid_x(k), THREADS * EACH, cptx_tid_x(k), .mode = CPTX_LO);
	cptx_val far = cptx_mul_wide(k, at, 16), source = cptx_add(k, from, far), target = cptx_add(k, to, far);

	for (int i = 0; i < EACH; i++)
		v[i] = cptx_ld(k, cptx_offset(source, i * THREADS * 16), .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = CPTX_B32);
	for (int i = 0; i < EACH; i++)
		cptx_st(k, cptx_offset(target, i * THREADS * 16), v[i], .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = CPTX_B32);
	return m;
}

static void measure_copy(bench *t, cptx_error *err)
{
	const uint64_t bytes = 512u << 20;
	cptx_module *m = build_copy();
	cptx_program *p = cptx_device_load(t->dev, m, NULL, err);
	uint64_t from = cptx_mem_alloc(t->dev, bytes, err), to = cptx_mem_alloc(t->dev, bytes, err);
	copying c = { NULL };

	if (p && err->code == CPTX_OK)
		c.launch = cptx_launch_new(p, "copy",
		                           &(cptx_launch_opt){ .grid = { (uint32_t)(bytes / 16384) }, CPTX_ARGS(from, to) }, err);
	const double us = c.launch ? least(t, &(burst){ run_copy, &c, 20, 0 }, err) : 1;
	t->copy_gbs = 2e-3 * (double)bytes / us;
	printf("copy %.0f GB/s (512 MB, read and written)\n", t->copy_gbs);
	cptx_launch_destroy(c.launch);
	cptx_program_destroy(p);
	cptx_module_destroy(m);
	cptx_mem_free(t->dev, from), cptx_mem_free(t->dev, to);
}

/* ---- a choice ---- */

static void run_choice(void *user, cptx_error *err)
{
	bench *t = user;

	cptx_launch_run(t->launch[t->turn++ % t->sets], NULL, err);
}

static double time_choice(bench *t, const cptx_gemm_choice *c, const cptx_gemm_problem *problem, int runs, cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_gemm_problem p = *problem;
	cptx_gemm_plan plan = { 0 };
	cptx_program *program = NULL;
	double us = 0;

	p.ctas = c->ctas;
	if (cptx_gemm_check_problem(&c->opt, &p, cptx_device_get_info(t->dev)->sms, &plan, err) && plan.workspace) {
		p.workspace = cptx_mem_alloc(t->dev, plan.workspace, err);
		cptx_mem_fill8(t->dev, p.workspace, 0, plan.workspace, err);
	}
	bool ok = err->code == CPTX_OK && cptx_gemm_build(m, &c->opt, err) && (program = cptx_device_load(t->dev, m, NULL, err));
	for (uint32_t i = 0; ok && i < t->sets; i++) {
		p.b = t->b[i];
		ok = (t->launch[i] = cptx_gemm_launch(program, t->dev, &c->opt, &p, err)) != NULL;
	}
	if (ok)
		us = least(t, &(burst){ run_choice, t, runs, 0 }, err);
	for (uint32_t i = 0; i < t->sets; i++)
		cptx_launch_destroy(t->launch[i]), t->launch[i] = NULL;
	cptx_mem_free(t->dev, p.workspace);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	return us;
}

static void shape_text(const cptx_gemm_opt *o, char *text, size_t size)
{
	snprintf(text, size, "%s %ux%ux%u warps %ux%u%s", cptx_gemm_mma_name(o->mma), o->bm, o->bn, o->bk, o->warps_m,
	         o->warps_n, o->unaligned & 3 && o->mma != CPTX_GEMM_GEMV ? " copied" : "");
}

static void run_peer(void *user, cptx_error *err)
{
	bench *t = user;

	t->q.b = t->b[t->turn++ % t->sets];
	cublas_run(&t->peer, &t->q, err);
}

/* Operands for a problem; of B so many that they do not stay in L2. */
static void make(bench *t, const cptx_gemm_opt *o, cptx_gemm_problem *p, uint64_t bits, cptx_error *err)
{
	const uint64_t of_b = p->n * p->k * bits / 8;

	p->a = burst_random(t->dev, p->m * p->k, o->a, 1, err), p->d = cptx_mem_alloc(t->dev, p->m * p->n * 4, err);
	p->scale_b = burst_random(t->dev, p->n * (p->k / 32 + 1), o->a, 3, err);
	p->zero_b = o->zeros ? burst_random(t->dev, p->n * (p->k / 32 + 1), o->a, 4, err) : 0;
	for (t->sets = 0; t->sets < SETS && (!t->sets || t->sets * of_b < APART_BYTES); t->sets++)
		t->b[t->sets] = burst_random(t->dev, of_b / 2 + 8, o->a, 5 + t->sets, err);
}

static void release(bench *t, cptx_gemm_problem *p)
{
	cptx_mem_free(t->dev, p->a), cptx_mem_free(t->dev, p->d);
	cptx_mem_free(t->dev, p->scale_b), cptx_mem_free(t->dev, p->zero_b);
	for (uint32_t i = 0; i < t->sets; i++)
		cptx_mem_free(t->dev, t->b[i]);
}

static double time_peer(bench *t, const cptx_gemm_opt *o, const cptx_gemm_problem *p, int runs, cptx_error *err)
{
	t->q = (cublas_problem){ (int)p->m, (int)p->n, (int)p->k, CPTX_BF16, o->out, o->a_m_major, o->b_n_major, p->a, 0, p->d };
	return t->has_peer ? least(t, &(burst){ run_peer, t, runs, 0 }, err) : 0;
}

/* With a size on the command line that alone. */
static bool is_wanted(const bench *t, uint64_t m, uint64_t n, uint64_t k)
{
	char text[64];

	snprintf(text, sizeof text, "%llux%llux%llu", (unsigned long long)m, (unsigned long long)n, (unsigned long long)k);
	return !t->only || !strcmp(t->only, text);
}

/* ---- few rows ---- */

static void few(bench *t, cptx_gemm_opt o, uint64_t m, uint64_t n, uint64_t k, cptx_error *err)
{
	static cptx_gemm_choice c[MOST];
	cptx_gemm_problem p = { .m = m, .n = n, .k = k };
	const uint32_t bits = o.b == CPTX_U4 || o.b == CPTX_E2M1 ? 4 : cptx_type_bits(o.b);
	const cptx_target *target = cptx_target_find(cptx_device_get_info(t->dev)->target);
	double first = 0, best = 0;
	char shape[96] = "", model[96] = "";

	if (!is_wanted(t, m, n, k) || (t->type && strcmp(t->type, cptx_type_name(o.b))))
		return;
	make(t, &o, &p, bits, err);
	size_t found = cptx_gemm_auto_for(&o, target, &p, cptx_device_get_info(t->dev)->sms, c, t->room, err);
	for (size_t i = 0; i < found && err->code == CPTX_OK; i++) {
		double us = time_choice(t, &c[i], &p, 40, err);
		first = i ? first : us;
		if (!i)
			shape_text(&c[i].opt, model, sizeof model);
		if (us > 0 && (best <= 0 || us < best))
			best = us, shape_text(&c[i].opt, shape, sizeof shape);
		if (t->only) {
			char s[96];
			shape_text(&c[i].opt, s, sizeof s);
			printf("    %8.2f us, model %8.2f  %s\n", us, c[i].us, s);
		}
	}
	release(t, &p);
	cptx_gemm_opt wide = o;
	wide.b = o.a, wide.scale = CPTX_TYPE_NONE, wide.scale_k = 0, wide.zeros = false;
	make(t, &wide, &p, 16, err); /* the peer has B in 16 bits, and so has the kernel for many rows */
	wide.mma = cptx_gemm_mma_of(target);
	double many = 0;
	if (cptx_gemm_auto_for(&wide, target, &p, cptx_device_get_info(t->dev)->sms, c, 1, err))
		many = time_choice(t, c, &p, 40, err);
	const double peer = time_peer(t, &o, &p, 40, err);
	release(t, &p);
	const double groups = o.scale_k ? (double)(k / o.scale_k) : o.scale != CPTX_TYPE_NONE;
	const double bytes = (double)(n * k) * bits / 8 + 2.0 * (double)(m * k) + (double)(m * n) * cptx_type_bits(o.out) / 8 +
	                     (double)n * groups * 2 * (o.zeros ? 2 : 1);
	const double at_copy = bytes / t->copy_gbs * 1e-3;
	printf("%s %5llux%llux%llu %s %s%s: first %.2f us (%.3f of copy, %s), best %.2f us (%.3f, %s), cuBLAS %.2f us: %.2f "
	       "times; %s %.2f us\n",
	       bits < 16 ? "bits" : "few ", (unsigned long long)m, (unsigned long long)n, (unsigned long long)k,
	       cptx_type_name(o.b), o.b_n_major ? "NN" : "NT", k % 8 ? " unaligned" : "", first, at_copy / first, model, best,
	       at_copy / best, shape, peer, peer / first, cptx_gemm_mma_name(wide.mma), many);
	fflush(stdout);
}

/* ---- any rows ---- */

static double any_time(bench *t, const cptx_gemm_opt *o, uint64_t m, uint64_t n, uint64_t k, double *peer, char *shape,
                       cptx_error *err)
{
	cptx_gemm_problem p = { .m = m, .n = n, .k = k };
	cptx_gemm_choice c;
	double us = 0;

	make(t, o, &p, 16, err);
	if (cptx_gemm_auto_for(o, cptx_target_find(cptx_device_get_info(t->dev)->target), &p, cptx_device_get_info(t->dev)->sms,
	                       &c, 1, err))
		us = time_choice(t, &c, &p, 10, err), shape_text(&c.opt, shape, 96);
	*peer = time_peer(t, o, &p, 10, err);
	release(t, &p);
	return us;
}

static void any(bench *t, const cptx_gemm_opt *o, uint64_t m, uint64_t n, uint64_t k, uint64_t n0, uint64_t k0,
                cptx_error *err)
{
	double peer, peer0;
	char shape[96] = "", shape0[96] = "";
	if (!is_wanted(t, m, n, k))
		return;
	const double us = any_time(t, o, m, n, k, &peer, shape, err), us0 = any_time(t, o, m, n0, k0, &peer0, shape0, err);
	const double work = (double)(n * k) / (double)(n0 * k0);

	printf("any  %llux%llux%llu: %.2f us (%s), cuBLAS %.2f us; %llux%llux%llu: %.2f us (%s), cuBLAS %.2f us: %.3f of the "
	       "neighbour's rate, cuBLAS %.3f; %.2f times cuBLAS\n",
	       (unsigned long long)m, (unsigned long long)n, (unsigned long long)k, us, shape, peer, (unsigned long long)m,
	       (unsigned long long)n0, (unsigned long long)k0, us0, shape0, peer0, us0 * work / us, peer0 * work / peer,
	       peer / us);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const uint64_t sides[][2] = { { 4096, 4096 }, { 8192, 8192 }, { 28672, 8192 }, { 4096, 14336 }, { 1024, 8192 } };
	static const uint64_t ms[] = { 1, 8, 16 }, weights[] = { 1, 16, 64, 128 };
	static const enum cptx_type types[] = { CPTX_U4, CPTX_E2M1, CPTX_E4M3 };
	const cptx_gemm_opt o = { .mma = CPTX_GEMM_GEMV, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_BF16 };
	cptx_error err = { 0 };
	bench t = { .dev = cptx_device_open("cuda", &err),
		        .room = argc > 1 ? strtoul(argv[1], NULL, 10) : 8,
		        .only = argc > 2 ? argv[2] : NULL,
		        .type = argc > 3 ? argv[3] : NULL };

	t.room = t.room < 1 || t.room > MOST ? MOST : t.room;
	if (!t.dev) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	cptx_device_make_current(t.dev, &err);
	t.has_peer = cublas_open(&t.peer);
	printf("%s, bf16%s\n", cptx_device_get_info(t.dev)->name, t.has_peer ? "" : ", no cuBLAS here");
	measure_copy(&t, &err);
	for (size_t i = 0; i < 5; i++)
		for (size_t j = 0; j < 3; j++)
			few(&t, o, ms[j], sides[i][0], sides[i][1], &err);
	few(&t, o, 1, 8192, 8193, &err), few(&t, o, 8, 8192, 8193, &err), few(&t, o, 16, 8192, 8193, &err);
	cptx_gemm_opt nn = o;
	nn.b_n_major = true;
	few(&t, nn, 1, 8192, 8192, &err), few(&t, nn, 16, 8192, 8192, &err), few(&t, nn, 1, 28672, 8192, &err);
	cptx_gemm_opt w = o;
	w.mma = cptx_gemm_mma_of(cptx_target_find(cptx_device_get_info(t.dev)->target));
	for (size_t i = 0; i < 3; i++)
		for (size_t j = 0; j < sizeof weights / sizeof *weights; j++) {
			cptx_gemm_opt q = o;
			q.b = types[i], q.scale = CPTX_BF16, q.scale_k = 128, q.zeros = !i;
			for (int by = 0; by < (w.mma == CPTX_GEMM_WGMMA ? 2 : 1); by++) {
				few(&t, q, weights[j], 8192, 8192, &err), few(&t, q, weights[j], 28672, 8192, &err);
				q.mma = w.mma;
			}
		}
	any(&t, &w, 4096, 4096, 4097, 4096, 4096, &err), any(&t, &w, 4097, 4097, 4097, 4096, 4096, &err);
	any(&t, &w, 8192, 8192, 8193, 8192, 8192, &err), any(&t, &w, 1024, 4096, 4097, 4096, 4096, &err);
	any(&t, &w, 128, 4096, 4097, 4096, 4096, &err), any(&t, &w, 4096, 4097, 4096, 4096, 4096, &err);
	if (err.code)
		fprintf(stderr, "%s\n", err.text);
	cptx_device_close(t.dev);
	return err.code != CPTX_OK;
}
