/* SPDX-License-Identifier: MIT */
/*
 * The rungs of the ladder (examples/hgemm.h) beside each other and cuBLAS, in alternated bursts of one process.
 *
 *   bench_hgemm [-s SIZE[xK]] [-n ROUNDS] [-t f16] [-p TWINS.ptx] [-c COMPILER] [SHAPE...]
 *
 * SHAPE is RUNG,KEY=VALUE,...: the rung 0 to 3, and what differs from the defaults of the device: m n k (tile), wm wn
 * (warps), s (stages), g (group), r (consumer_regs), q (most_regs), o (1: along_m), f (1: rolling), y (1: stay).  The rung p
 * is the library's GEMM by mma.sync (cptx/gemm.h) with keys m n k wm wn s g, a (0: cp.async, 1: TMA) and x (1: stream-K).
 * Each arm is timed in every round; behind its figures stand the median and the quartiles of the rounds' ratios to the first
 * rung. Each is first compared with the reference at a size with edges.  Without shapes: p and all rungs with tile K 32
 * and 64. -p: the CUDA kernels that the ladder follows take part, from what bench/hgemm_twins.sh makes (bf16, sizes that 128
 * divides).  -c: who compiles these and ours, "ptxas"; else the driver.
 */
#include "burst.h"
#include "cublas.h"
#include "hgemm_run.h"
#include "twins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 96, MOST_ROUNDS = 255, PAUSE = 30000000 /* ns; keeps the board out of its power limit */ };

typedef struct arm {
	char name[100];
	hgemm_case c;
	bool product; /* the library's, by */
	cptx_gemm_opt o;
	uint64_t workspace;
	cptx_launch *launch;
	cptx_program *program;
	gemm_report r;
	double ms[MOST_ROUNDS];
	double ratio[3]; /* of the first rung's time to its own, round by round: median and quartiles; 0: no rung */
} arm;

typedef struct bench {
	cptx_device *dev;
	gemm_problem p;
	gemm_matrices at;
	cublas peer;
	bool have_peer;
	enum cptx_type type;
	unsigned arms, rounds;
	arm arm[MOST];
	const char *twins_path;
	cptx_load_opt load;
	twins twins;
	double twin_ms[TWINS][MOST_ROUNDS];
} bench;

static bool set(hgemm_opt *o, const char *key, uint32_t value)
{
	const struct {
		const char *key;
		uint32_t *to;
	} keys[] = { { "m", &o->bm },       { "n", &o->bn },     { "k", &o->bk },    { "wm", &o->warps_m },
		         { "wn", &o->warps_n }, { "s", &o->stages }, { "g", &o->group }, { "r", &o->consumer_regs },
		         { "q", &o->most_regs } };

	if (!strcmp(key, "o"))
		return o->along_m = value, true;
	if (!strcmp(key, "y"))
		return o->stay = value, true;
	if (!strcmp(key, "f"))
		return o->rolling = value, true;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!strcmp(key, keys[i].key))
			return *keys[i].to = value, true;
	return false;
}

static bool set_product(cptx_gemm_opt *o, const char *key, uint32_t value)
{
	const struct {
		const char *key;
		uint32_t *to;
	} keys[] = { { "m", &o->bm },       { "n", &o->bn },     { "k", &o->bk },   { "wm", &o->warps_m },
		         { "wn", &o->warps_n }, { "s", &o->stages }, { "g", &o->group } };

	if (!strcmp(key, "a"))
		return o->tma = value, true;
	if (!strcmp(key, "x"))
		return o->stream_k = value, true;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!strcmp(key, keys[i].key))
			return *keys[i].to = value, true;
	return false;
}

static bool read_product(bench *b, arm *a, const char *text, const cptx_target *target)
{
	uint32_t value;
	char key[8];
	int used;

	a->product = true;
	a->o = cptx_gemm_default(CPTX_GEMM_SYNC, target);
	a->o.a = a->o.b = a->o.out = b->type, a->o.b_n_major = true;
	for (text++; *text; text += used)
		if (sscanf(text, ",%7[a-z]=%u%n", key, &value, &used) != 2 || !set_product(&a->o, key, value))
			return false;
	b->arms++;
	return true;
}

static bool read_shape(bench *b, const char *text)
{
	const cptx_target *target = cptx_target_find(cptx_device_get_info(b->dev)->target);
	arm *a = &b->arm[b->arms];
	uint32_t rung, bk = strstr(text, ",k=32") ? 32 : 64, value;
	char key[8];
	int used;

	if (b->arms < MOST && *text == 'p') {
		snprintf(a->name, sizeof a->name, "%s", text);
		return read_product(b, a, text, target);
	}
	if (b->arms == MOST || sscanf(text, "%u%n", &rung, &used) != 1 || rung >= HGEMM_RUNGS)
		return false;
	snprintf(a->name, sizeof a->name, "%s", text);
	a->c.rung = (enum hgemm_rung)rung;
	a->c.o = hgemm_default(a->c.rung, bk, b->type, target);
	for (text += used; *text; text += used)
		if (sscanf(text, ",%7[a-z]=%u%n", key, &value, &used) != 2 || !set(&a->c.o, key, value))
			return false;
	b->arms++;
	return true;
}

static cptx_launch *launch_product(bench *b, arm *a, cptx_error *err)
{
	cptx_gemm_problem p = { .m = b->p.m, .n = b->p.n, .k = b->p.k, .a = b->at.a, .b = b->at.b, .d = b->at.d };
	cptx_gemm_plan plan;

	if (!cptx_gemm_check_problem(&a->o, &p, cptx_device_get_info(b->dev)->sms, &plan, err))
		return NULL;
	if (plan.workspace)
		p.workspace = a->workspace = cptx_mem_alloc(b->dev, plan.workspace, err);
	if (plan.workspace && !(a->workspace && cptx_mem_fill8(b->dev, a->workspace, 0, plan.workspace, err)))
		return NULL;
	return cptx_gemm_launch(a->program, b->dev, &a->o, &p, err);
}

/* Compares the GEMM of the library with the reference and prepares its launch, as prepare does for a rung. */
static bool prepare_product(bench *b, arm *a, const gemm_problem *small, cptx_module *m, cptx_error *err)
{
	bool ok = cptx_gemm_check(&a->o, cptx_target_find(cptx_device_get_info(b->dev)->target), NULL, err) &&
	          cptx_gemm_build(m, &a->o, err) && gemm_check(b->dev, m, &a->o, small, &a->r, err);

	if (ok && a->r.wrong) {
		err->code = CPTX_E_WRONG;
		snprintf(err->text, sizeof err->text, "%s: %llu elements are wrong", a->name, (unsigned long long)a->r.wrong);
	}
	if (ok && err->code == CPTX_OK && (a->program = cptx_device_load(b->dev, m, &b->load, err)))
		a->launch = launch_product(b, a, err);
	cptx_module_destroy(m);
	return a->launch != NULL;
}

/* Compares it with the reference, at a size with edges, and prepares its launch. */
static bool prepare(bench *b, arm *a, cptx_error *err)
{
	const gemm_problem small = { .m = 1000, .n = 1096, .k = 584, .seed = 3 };
	cptx_module *m = cptx_module_new(NULL);

	if (a->product)
		return prepare_product(b, a, &small, m, err);
	bool ok = hgemm_check(a->c.rung, &a->c.o, cptx_target_find(cptx_device_get_info(b->dev)->target), NULL, err) &&
	          hgemm_run(b->dev, &a->c, &small, &a->r, err);
	if (ok && a->r.wrong) {
		err->code = CPTX_E_WRONG;
		snprintf(err->text, sizeof err->text, "%s: %llu elements are wrong", a->name, (unsigned long long)a->r.wrong);
	}
	if (ok && err->code == CPTX_OK) {
		hgemm_build(m, a->c.rung, &a->c.o);
		a->program = cptx_device_load(b->dev, m, &b->load, err);
		a->launch = a->program ? hgemm_launch(&a->c, b->dev, a->program, &b->p, &b->at, &a->r, err) : NULL;
	}
	cptx_module_destroy(m);
	return a->launch != NULL;
}

static void run_arm(void *user, cptx_error *err) { cptx_launch_run(((arm *)user)->launch, NULL, err); }

static void run_twin(void *user, cptx_error *err) { cptx_launch_run(user, NULL, err); }

static void run_peer(void *user, cptx_error *err)
{
	bench *b = user;

	cublas_run(&b->peer,
	           &(cublas_problem){ .m = (int)b->p.m,
	                              .n = (int)b->p.n,
	                              .k = (int)b->p.k,
	                              .in = b->type,
	                              .out = b->type,
	                              .b_n_major = true,
	                              .a = b->at.a,
	                              .b = b->at.b,
	                              .d = b->at.d },
	           err);
}

/* One of the authors' kernels, and what the fastest of ours on that rung makes of it; behind print's sorting. */
static void print_twin(bench *b, unsigned i, double flop)
{
	double best = 0;

	qsort(b->twin_ms[i], b->rounds, sizeof(double), burst_order);
	double ms = b->twin_ms[i][b->rounds / 2];
	for (unsigned a = 0; a < b->arms; a++)
		if (!b->arm[a].product && (unsigned)b->arm[a].c.rung == twin_rung(i) && ms / b->arm[a].ms[b->rounds / 2] > best)
			best = ms / b->arm[a].ms[b->rounds / 2];
	printf("twin %-12s %6.1f TFLOP/s; ours on its rung: %.2f times\n", twin_name(i), flop / ms, best);
}

/* Fills in .ratio of all arms; in front of print's sorting. */
static void compare(bench *b)
{
	double of[MOST_ROUNDS];
	unsigned rung = 0;

	while (rung < b->arms && b->arm[rung].product)
		rung++;
	for (unsigned i = 0; i < b->arms && rung < b->arms; i++) {
		for (unsigned r = 0; r < b->rounds; r++)
			of[r] = b->arm[rung].ms[r] / b->arm[i].ms[r];
		qsort(of, b->rounds, sizeof *of, burst_order);
		for (unsigned q = 0; q < 3; q++)
			b->arm[i].ratio[q] = of[b->rounds * (q == 0 ? 2 : q == 1 ? 1 : 3) / 4];
	}
}

static void print(bench *b, const double *peer)
{
	double flop = 2e-9 * (double)(b->p.m * b->p.n) * (double)b->p.k;

	compare(b);
	for (unsigned i = 0; i < b->arms; i++) {
		arm *a = &b->arm[i];
		const hgemm_opt *o = &a->c.o;
		const cptx_gemm_opt *g = &a->o;
		const bool of_ours = a->product;
		qsort(a->ms, b->rounds, sizeof(double), burst_order);
		printf("%-22s %ux%ux%u %ux%u warps, %u stages  %-32s %6.1f TFLOP/s (best %6.1f)",
		       of_ours ? "cptx/gemm.h" : hgemm_name(a->c.rung), of_ours ? g->bm : o->bm, of_ours ? g->bn : o->bn,
		       of_ours ? g->bk : o->bk, of_ours ? g->warps_m : o->warps_m, of_ours ? g->warps_n : o->warps_n,
		       of_ours ? g->stages : o->stages, a->name, flop / a->ms[b->rounds / 2], flop / a->ms[0]);
		printf(" %3u registers, %u local bytes, %u CTAs", a->r.resources.regs, a->r.resources.local_bytes,
		       a->r.resources.ctas_per_sm);
		if (b->have_peer)
			printf(", %.3f of cuBLAS", peer[b->rounds / 2] / a->ms[b->rounds / 2]);
		if (a->ratio[0] > 0)
			printf(", %.4f (%.4f to %.4f) of the first rung", a->ratio[0], a->ratio[1], a->ratio[2]);
		putchar('\n');
	}
	for (unsigned i = 0; i < TWINS && b->twins_path; i++)
		print_twin(b, i, flop);
	if (b->have_peer)
		printf("cuBLAS %.1f TFLOP/s\n", flop / peer[b->rounds / 2]);
}

static bool measure(bench *b, cptx_error *err)
{
	int runs = (int)(2e12 / ((double)(b->p.m * b->p.n) * (double)b->p.k)) + 3;
	double peer[MOST_ROUNDS] = { 0 };

	for (unsigned r = 0; r < b->rounds && err->code == CPTX_OK; r++) {
		for (unsigned i = 0, j = r; i < b->arms; i++, j++) /* each round begins with another arm */
			b->arm[j % b->arms].ms[r] = burst_time(b->dev, &(burst){ run_arm, &b->arm[j % b->arms], runs, PAUSE }, err);
		for (unsigned i = 0; i < TWINS && b->twins_path; i++)
			b->twin_ms[i][r] = burst_time(b->dev, &(burst){ run_twin, b->twins.launch[i], runs, PAUSE }, err);
		if (b->have_peer)
			peer[r] = burst_time(b->dev, &(burst){ run_peer, b, runs, PAUSE }, err);
	}
	qsort(peer, b->rounds, sizeof(double), burst_order);
	if (err->code == CPTX_OK)
		print(b, peer);
	return err->code == CPTX_OK;
}

/* Shapes that cannot be built or are wrong are named and left out. */
static bool prepare_all(bench *b, cptx_error *err)
{
	unsigned kept = 0, lost = 0;

	for (unsigned i = 0; i < b->arms; i++) {
		cptx_error why = { 0 };
		if (prepare(b, &b->arm[i], &why))
			b->arm[kept++] = b->arm[i];
		else
			lost++, fprintf(stderr, "%s: %s\n", b->arm[i].name, why.text);
		if (why.code == CPTX_E_DRIVER || why.code == CPTX_E_WRONG)
			*err = why;
	}
	b->arms = kept;
	return !lost;
}

static bool bench_all(bench *b, int argc, char **argv, cptx_error *err)
{
	static const char *const ladder[] = {
		"p", "p,a=0,m=128,n=256,wm=2,wn=4,s=4", "0,k=32", "0", "1,k=32", "1", "2,k=32", "2", "3,k=32", "3"
	};
	uint64_t n = b->p.m;

	for (int i = 0; i < argc; i++)
		if (!read_shape(b, argv[i]))
			return fprintf(stderr, "%s is no shape; the head of bench/hgemm.c says what is\n", argv[i]), false;
	for (size_t i = 0; !argc && i < sizeof ladder / sizeof *ladder; i++)
		read_shape(b, ladder[i]);
	b->at.a = burst_random(b->dev, n * b->p.k, b->type, 1, err), b->at.b = burst_random(b->dev, n * b->p.k, b->type, 2, err);
	b->at.d = cptx_mem_alloc(b->dev, n * n * 2, err);
	bool all = prepare_all(b, err);
	if (b->twins_path && err->code == CPTX_OK)
		twins_prepare(&b->twins, b->dev, b->twins_path, &b->load, (uint32_t)n, b->at.a, b->at.b, b->at.d, err);
	bool ok = err->code == CPTX_OK && measure(b, err) && all;
	for (unsigned i = 0; i < b->arms; i++) {
		cptx_launch_destroy(b->arm[i].launch);
		cptx_program_destroy(b->arm[i].program);
		cptx_mem_free(b->dev, b->arm[i].workspace);
	}
	twins_destroy(&b->twins);
	cptx_mem_free(b->dev, b->at.a), cptx_mem_free(b->dev, b->at.b), cptx_mem_free(b->dev, b->at.d);
	return ok;
}

int main(int argc, char **argv)
{
	static bench b = { .rounds = 7, .type = CPTX_BF16 };
	uint64_t n = 4096, depth = n;
	char *end;
	cptx_error err = { 0 };

	for (int o; (o = getopt(argc, argv, "s:n:t:p:c:")) != -1;) {
		if (o == 's')
			n = strtoull(optarg, &end, 10), depth = *end == 'x' ? strtoull(end + 1, NULL, 10) : n;
		else if (o == 'n')
			b.rounds = (unsigned)strtoul(optarg, NULL, 10);
		else if (o == 'p')
			b.twins_path = optarg;
		else if (o == 't')
			b.type = cptx_type_find(optarg);
		else if (o == 'c' && cptx_compiler_named(optarg, &b.load.compiler))
			continue;
		else
			return 2;
	}
	if (!n || n > 32768 || !depth || depth > 32768 || !b.rounds || b.rounds > MOST_ROUNDS ||
	    (b.type != CPTX_BF16 && b.type != CPTX_F16))
		return fprintf(stderr, "sizes are from 8 to 32768, rounds from 1 to %d, types bf16 and f16\n", MOST_ROUNDS), 2;
	if (b.twins_path && (b.type != CPTX_BF16 || n % 128 || depth != n))
		return fprintf(stderr, "the twins of -p take bf16 and cubes of a size that 128 divides\n"), 2;
	b.p = (gemm_problem){ .m = n, .n = n, .k = depth, .seed = 1 };
	b.dev = cptx_device_open("cuda", &err);
	if (!b.dev || !cptx_device_make_current(b.dev, &err))
		return fprintf(stderr, "%s\n", err.text), 1;
	b.have_peer = cublas_open(&b.peer);
	if (!b.have_peer)
		fprintf(stderr, "no cuBLAS library found: no peer in this run\n");
	bool ok = bench_all(&b, argc - optind, argv + optind, &err);
	if (err.code)
		fprintf(stderr, "%s\n", err.text);
	cptx_device_close(b.dev);
	return !ok;
}
