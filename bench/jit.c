/* SPDX-License-Identifier: MIT */
/*
 * Host time of a back end that makes PTX of traces: nanoseconds per instruction to build, check and print, on one core,
 * beside a string printer that checks nothing.  All arms print the same bytes, or it is said and the status is 1.
 */
#include "clock.h"
#include "jit_llvm.h"

#include <cptx/cptx.h>
#include <cptx/fast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct arm_time {
	double build, print; /* ns */
} arm_time;

static void die(const char *why)
{
	fprintf(stderr, "bench_jit: %s\n", why);
	exit(1);
}

/* ---- ordinary calls ---- */

static cptx_kernel *begin(cptx_module *m, cptx_val *v)
{
	cptx_kernel *k = cptx_kernel_begin(m, "trace", .block = { 256 });

	v[VAR_POINTER] = cptx_param(k, CPTX_PTR, "p");
	v[VAR_SIZE] = cptx_param(k, CPTX_U32, "n");
	v[VAR_TID] = cptx_tid_x(k);
	return k;
}

static cptx_val call(cptx_kernel *k, const trace_step *s, const cptx_val *v)
{
	cptx_val a = v[s->a], b = v[s->b], c = v[s->c];

	switch ((enum trace_op)s->op) {
	case U32_ADD: return cptx_add(k, a, b, .type = CPTX_U32);
	case U32_ADD_IMM: return cptx_add(k, a, s->b, .type = CPTX_U32);
	case U32_AND: return cptx_and(k, a, b, .type = CPTX_B32);
	case U32_MAD: return cptx_mad(k, a, b, c, .mode = CPTX_LO, .type = CPTX_U32);
	case U64_ELEMENT: return cptx_mul_wide(k, a, 4, .type = CPTX_U32);
	case U64_ADDRESS: return cptx_add(k, a, v[VAR_POINTER]);
	case F32_LOAD: return cptx_ld(k, a, .type = CPTX_F32, .space = CPTX_GLOBAL, .nc = CPTX_ON);
	case F32_CVT: return cptx_cvt(k, a, .dtype = CPTX_F32, .atype = CPTX_U32, .rnd = CPTX_RN);
	case F32_IMM: return cptx_mov(k, (float)s->b, .type = CPTX_F32);
	case F32_ADD: return cptx_add(k, a, b, .ftz = CPTX_ON);
	case F32_MUL: return cptx_mul(k, a, b, .ftz = CPTX_ON);
	case F32_FMA: return cptx_fma(k, a, b, c, .rnd = CPTX_RN, .ftz = CPTX_ON);
	case F32_EX2: return cptx_ex2(k, a, .ftz = CPTX_ON);
	case F32_SELECT: return cptx_selp(k, a, b, c);
	case PRED_LESS: return cptx_setp(k, a, b, .cmp = CPTX_LT);
	case STORE: cptx_st(k, a, b, .space = CPTX_GLOBAL); break;
	case TRACE_OPS: break;
	}
	return cptx_imm(0);
}

/* ---- the same by the fast path ---- */

static cptx_val call_fast(cptx_kernel *k, const trace_step *s, const cptx_val *v)
{
	cptx_val a = v[s->a], b = v[s->b], c = v[s->c];

	switch ((enum trace_op)s->op) {
	case U32_ADD: return CPTX_FAST(cptx_add, k, a, b, .type = CPTX_U32);
	case U32_ADD_IMM: return CPTX_FAST(cptx_add, k, a, s->b, .type = CPTX_U32);
	case U32_AND: return CPTX_FAST(cptx_and, k, a, b, .type = CPTX_B32);
	case U32_MAD: return CPTX_FAST(cptx_mad, k, a, b, c, .mode = CPTX_LO, .type = CPTX_U32);
	case U64_ELEMENT: return CPTX_FAST(cptx_mul_wide, k, a, 4, .type = CPTX_U32);
	case U64_ADDRESS: return CPTX_FAST(cptx_add, k, a, v[VAR_POINTER]);
	case F32_LOAD: return CPTX_FAST(cptx_ld, k, a, .type = CPTX_F32, .space = CPTX_GLOBAL, .nc = CPTX_ON);
	case F32_CVT: return CPTX_FAST(cptx_cvt, k, a, .dtype = CPTX_F32, .atype = CPTX_U32, .rnd = CPTX_RN);
	case F32_IMM: return CPTX_FAST(cptx_mov, k, (float)s->b, .type = CPTX_F32);
	case F32_ADD: return CPTX_FAST(cptx_add, k, a, b, .ftz = CPTX_ON);
	case F32_MUL: return CPTX_FAST(cptx_mul, k, a, b, .ftz = CPTX_ON);
	case F32_FMA: return CPTX_FAST(cptx_fma, k, a, b, c, .rnd = CPTX_RN, .ftz = CPTX_ON);
	case F32_EX2: return CPTX_FAST(cptx_ex2, k, a, .ftz = CPTX_ON);
	case F32_SELECT: return CPTX_FAST(cptx_selp, k, a, b, c);
	case PRED_LESS: return CPTX_FAST(cptx_setp, k, a, b, .cmp = CPTX_LT);
	case STORE: CPTX_FAST(cptx_st, k, a, b, .space = CPTX_GLOBAL); break;
	case TRACE_OPS: break;
	}
	return cptx_imm(0);
}

/* ---- arms ---- */

typedef struct bench {
	trace t;
	cptx_val *v;
	char *expected, *text;
	size_t size;
} bench;

static void compare(const bench *b, const char *text, size_t n)
{
	size_t at = 0;

	if (n == b->size && !memcmp(text, b->expected, n))
		return;
	while (at < n && at < b->size && text[at] == b->expected[at])
		at++;
	fprintf(stderr, "bench_jit: the texts differ at byte %zu:\n%.80s\n-- printer:\n%.80s\n", at,
	        text + (at > 40 ? at - 40 : 0), b->expected + (at > 40 ? at - 40 : 0));
	exit(1);
}

typedef cptx_val (*call_fn)(cptx_kernel *k, const trace_step *s, const cptx_val *v);

static inline arm_time by(bench *b, call_fn make)
{
	double t0 = now_ns();
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = begin(m, b->v);

	for (size_t i = TRACE_FIRST; i < b->t.n; i++)
		b->v[i] = make(k, &b->t.step[i], b->v);
	if (!cptx_module_freeze(m))
		die(cptx_module_error(m)->text);
	double t1 = now_ns();
	cptx_ptx *p = cptx_emit(m, "sm_80", NULL, &err);
	if (!p)
		die(err.text);
	double t2 = now_ns();
	compare(b, cptx_ptx_text(p), cptx_ptx_size(p));
	double t3 = now_ns();
	cptx_ptx_destroy(p);
	cptx_module_destroy(m);
	return (arm_time){ t1 - t0 + now_ns() - t3, t2 - t1 };
}

static arm_time by_calls(bench *b) { return by(b, call); }
static arm_time by_fast_calls(bench *b) { return by(b, call_fast); }

/* Builds and prints the trace with a module and a text that are kept from kernel to kernel, as the printer's buffer is. */
static inline arm_time by_kept(bench *b, call_fn make)
{
	static cptx_module *m;
	static cptx_ptx *p;
	cptx_error err = { .code = CPTX_OK };

	m = m ? m : cptx_module_new(NULL);
	p = p ? p : cptx_ptx_new(NULL);
	double t0 = now_ns();
	cptx_module_clear(m);
	cptx_kernel *k = begin(m, b->v);
	for (size_t i = TRACE_FIRST; i < b->t.n; i++)
		b->v[i] = make(k, &b->t.step[i], b->v);
	if (!cptx_module_freeze(m))
		die(cptx_module_error(m)->text);
	double t1 = now_ns();
	if (!cptx_emit_again(p, m, "sm_80", NULL, &err))
		die(err.text);
	double t2 = now_ns();
	compare(b, cptx_ptx_text(p), cptx_ptx_size(p));
	return (arm_time){ t1 - t0, t2 - t1 };
}
static arm_time by_kept_calls(bench *b) { return by_kept(b, call); }
static arm_time by_kept_fast(bench *b) { return by_kept(b, call_fast); }

static arm_time by_printer(bench *b)
{
	double t0 = now_ns();
	size_t n = trace_print(&b->t, b->text);
	double t1 = now_ns();

	if (n != b->size)
		die("the printer changed its mind");
	return (arm_time){ 0, t1 - t0 };
}

typedef struct arm {
	const char *name;
	arm_time (*run)(bench *b);
} arm;

static const arm arms[] = { { "string printer", by_printer },
	                        { "ordinary calls", by_calls },
	                        { "fast path", by_fast_calls },
	                        { "calls, kept", by_kept_calls },
	                        { "fast path, kept", by_kept_fast } };
enum { ARMS = sizeof arms / sizeof *arms, MOST_ROUNDS = 2001 };

/* Prints what hashing the trace takes. */
static void time_hashes(bench *b, size_t insns, size_t rounds, double *time)
{
	static const char *const names[] = { "hash", "any registers" };
	cptx_module *m = cptx_module_new(NULL);
	cptx_ptx *scratch = cptx_ptx_new(NULL);
	cptx_kernel *k = begin(m, b->v);
	cptx_hash h, first = { { 0, 0 } };
	cptx_error err = { .code = CPTX_OK };

	for (size_t i = TRACE_FIRST; i < b->t.n; i++)
		b->v[i] = call_fast(k, &b->t.step[i], b->v);
	for (unsigned any = 0; any < 2; any++) {
		for (size_t i = 0; i < rounds; i++) {
			double t0 = now_ns();
			if (!cptx_module_hash(m, "sm_80", CPTX_OPT(cptx_hash_opt, .any_registers = any, .scratch = scratch), &h, &err))
				die(err.text);
			time[i] = now_ns() - t0;
			first = i ? first : h;
			if (memcmp(&first, &h, sizeof h))
				die("the hash changed");
		}
		qsort(time, rounds, sizeof *time, by_value);
		printf("  %-16s %6.1f (%6.1f)\n", names[any], time[rounds / 2] / (double)insns, time[0] / (double)insns);
	}
	cptx_ptx_destroy(scratch);
	cptx_module_destroy(m);
}

/* Prints what LLVM takes for the trace; the text is another one, but of the same operations. */
static void time_llvm(const bench *b, size_t insns, double cptx)
{
#ifdef HAVE_LLVM
	double time[5];
	size_t lines;
	enum { ROUNDS = sizeof time / sizeof *time, MOST = 20000 };

	if (insns > MOST)
		return;
	for (unsigned i = 0; i < ROUNDS; i++)
		time[i] = llvm_print(&b->t, &lines);
	qsort(time, ROUNDS, sizeof *time, by_value);
	double each = time[ROUNDS / 2] / (double)insns;
	printf("  %-16s %6.0f (%6.0f), %zu lines: %.0f times the fast path, kept\n", "LLVM", each, time[0] / (double)insns,
	       lines, each / cptx);
#else
	(void)b, (void)insns, (void)cptx;
#endif
}

/* What the command line asks for. */
typedef struct wish {
	size_t rounds;   /* 0: as many as take a few seconds */
	const char *arm; /* NULL: all; only one of cptx's: to count instructions with callgrind */
} wish;

static void run(size_t n, bool unrolled, wish w)
{
	static double build[ARMS][MOST_ROUNDS], print[ARMS][MOST_ROUNDS], all[ARMS][MOST_ROUNDS];
	bench b = { .t = trace_make(n, unrolled) };
	size_t insns = b.t.n - TRACE_FIRST + 5, rounds = 4000000 / insns + 5;

	rounds = w.rounds ? w.rounds : rounds;
	rounds = rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;
	b.v = calloc(b.t.n + TRACE_NUMBERS, sizeof *b.v); /* calls read a value for numbers, too */
	b.expected = malloc(insns * TRACE_LINE + TRACE_HEAD), b.text = malloc(insns * TRACE_LINE + TRACE_HEAD);
	b.size = trace_print(&b.t, b.expected);
	for (size_t i = 0; i < rounds; i++)
		for (unsigned a = 0; a < ARMS; a++) {
			if (w.arm && strcmp(w.arm, arms[a].name))
				continue;
			arm_time t = arms[a].run(&b);
			build[a][i] = t.build, print[a][i] = t.print, all[a][i] = t.build + t.print;
		}
	printf("%zu instructions%s, %zu bytes, median (and least) of %zu rounds: ns per instruction\n", insns,
	       unrolled ? " of an unrolled loop" : " in random order", b.size, rounds);
	double printer = 0, best = 0;
	for (unsigned a = 0; a < ARMS; a++) {
		qsort(build[a], rounds, sizeof(double), by_value);
		qsort(print[a], rounds, sizeof(double), by_value);
		qsort(all[a], rounds, sizeof(double), by_value);
		double each = 1 / (double)insns, together = all[a][rounds / 2] * each;
		printer = a ? printer : together;
		best = together;
		printf("  %-16s build and check %6.1f, print %6.1f, together %6.1f (%6.1f; %.2f of the printer's speed)\n",
		       arms[a].name, build[a][rounds / 2] * each, print[a][rounds / 2] * each, together, all[a][0] * each,
		       printer / together);
	}
	if (!w.arm)
		time_hashes(&b, insns, rounds, build[0]), time_llvm(&b, insns, best);
	free(b.v), free(b.expected), free(b.text);
	trace_free(&b.t);
}

/* Prints what the first kernel of the process takes. */
static void time_first(void)
{
	enum { FIRST = 1000 };
	bench b = { .t = trace_make(FIRST, false) };

	b.v = calloc(b.t.n + TRACE_NUMBERS, sizeof *b.v);
	b.expected = malloc((b.t.n + 8) * TRACE_LINE + TRACE_HEAD);
	b.size = trace_print(&b.t, b.expected);
	arm_time t = by_calls(&b);
	printf("the first kernel of the process, of %d instructions: %.3f ms\n", FIRST, (t.build + t.print) / 1e6);
	free(b.v), free(b.expected);
	trace_free(&b.t);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 10, 100, 1000, 10000, 100000 };
	wish w = { 0 };
	size_t given[16], n = 0;

	time_first();
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
			w.rounds = (size_t)strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--arm") && i + 1 < argc)
			w.arm = argv[++i];
		else if (n < sizeof given / sizeof *given)
			given[n++] = (size_t)strtoull(argv[i], NULL, 10);
	for (size_t i = 0; i < (n ? n : sizeof sizes / sizeof *sizes); i++)
		run(n ? given[i] : sizes[i], false, w), run(n ? given[i] : sizes[i], true, w);
	return 0;
}
