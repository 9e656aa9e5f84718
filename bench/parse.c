/* SPDX-License-Identifier: MIT */
/*
 * Host time and memory to read, check and print big PTX texts, and to build; on one core, the best of five.
 *
 *     bench_parse [-p] [-c CORPUS] [MEGABYTES]...
 *
 * The texts are the corpus files for one target, repeated under new names of kernels and variables until they are as big as
 * asked for (default: 20 and 100 MB).  Times are CPU time, so a busy machine does not count.  -p leaves out pyptx.
 */
#include "parse.h"

#include <cptx/gemm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 5, HEAD = 32 };
static const char arch[] = "sm_90a";

/* ---- memory ---- */

typedef struct meter {
	size_t now, peak;
} meter;

static void *metered(void *user, void *old, size_t size)
{
	meter *m = user;
	char *base = old ? (char *)old - HEAD : NULL;
	size_t was = 0;

	if (base)
		memcpy(&was, base, sizeof was);
	if (!size) {
		free(base);
		m->now -= was;
		return NULL;
	}
	/* While a block is moved, both may exist. */
	size_t both = m->now + size;
	base = realloc(base, size + HEAD);
	if (!base)
		return NULL;
	memcpy(base, &size, sizeof size);
	m->now += size - was;
	m->peak = both > m->peak ? both : m->peak;
	return base + HEAD;
}

static void memory_line(const char *what, const meter *m, size_t text, size_t insns, const char *goal)
{
	printf("  %-28s %7.1f bytes per instruction, peak %7.1f; per byte of text %.2f, peak %.2f%s\n", what,
	       (double)m->now / (double)insns, (double)m->peak / (double)insns, (double)m->now / (double)text,
	       (double)m->peak / (double)text, goal);
}

/* ---- one text ---- */

static int complain(const char *what, const cptx_error *e)
{
	fprintf(stderr, "bench_parse: %s: %s\n", what, e ? e->text : "out of memory");
	return 1;
}

static void row(const char *what, double seconds, size_t bytes, size_t insns, const char *goal)
{
	printf("  %-28s %9.1f ms %8.0f MB/s %7.1f ns per instruction%s%s\n", what, seconds * 1e3, (double)bytes / seconds * 1e-6,
	       seconds / (double)insns * 1e9, *goal ? "   goal " : "", goal);
}

static void count_errors(void *user, const cptx_error *e)
{
	(void)e;
	++*(size_t *)user;
}

static int measure_memory(const char *text, size_t size, bool keep)
{
	meter m = { 0 };
	const cptx_allocator hook = { metered, &m };
	cptx_module *mod = cptx_parse(text, size, &(cptx_parse_opt){ .keep = keep, .allocator = &hook });

	if (cptx_module_error(mod) || !cptx_module_freeze(mod))
		return complain("parse", cptx_module_error(mod));
	size_t insns = cptx_module_size(mod);
	memory_line(keep ? "memory: parsed, .keep" : "memory: parsed", &m, size, insns, keep ? "" : "   goal <= 128");
	m.peak = m.now;
	cptx_ptx *p = cptx_emit(mod, NULL, &(cptx_emit_opt){ .keep = keep }, NULL);
	memory_line(keep ? "and printed, .keep" : "and printed", &m, size, insns, "");
	cptx_ptx_destroy(p);
	cptx_module_destroy(mod);
	if (m.now)
		fprintf(stderr, "bench_parse: %zu bytes were not given back\n", m.now);
	return m.now != 0;
}

static int measure_text(const char *text, size_t size)
{
	double copy = 1e9, parse = 1e9, parse_keep = 1e9, freeze = 1e9, check = 1e9, emit = 1e9, emit_keep = 1e9, destroy = 1e9;
	size_t insns = 0, printed = 0, errors = 0;
	cptx_error err = { .code = CPTX_OK };

	for (int i = 0; i < ROUNDS; i++) {
		char *to = malloc(size);
		if (!to)
			return complain("memcpy", NULL);
		memset(to, 1, size); /* its pages exist */
		double t0 = seconds();
		memcpy(to, text, size);
		copy = least(copy, seconds() - t0);
		volatile char used = to[size / 2];
		(void)used;
		free(to);
		for (int keep = 0; keep < 2; keep++) {
			t0 = seconds();
			cptx_module *m = cptx_parse(text, size, &(cptx_parse_opt){ .keep = keep });
			double t1 = seconds();
			if (cptx_module_error(m) || !cptx_module_freeze(m))
				return complain("parse", cptx_module_error(m));
			double t2 = seconds();
			insns = cptx_module_size(m), errors = 0;
			cptx_check(m, NULL, count_errors, &errors);
			double t3 = seconds();
			cptx_ptx *p = cptx_emit(m, NULL, &(cptx_emit_opt){ .keep = keep }, &err);
			double t4 = seconds();
			if (!p)
				return complain("print", &err);
			if (keep && (cptx_ptx_size(p) != size || memcmp(cptx_ptx_text(p), text, size)))
				return fprintf(stderr, "bench_parse: printed with .keep, the text is another\n"), 1;
			if (keep) {
				parse_keep = least(parse_keep, t1 - t0), emit_keep = least(emit_keep, t4 - t3);
			} else {
				parse = least(parse, t1 - t0), emit = least(emit, t4 - t3), printed = cptx_ptx_size(p);
				freeze = least(freeze, t2 - t1), check = least(check, t3 - t2);
			}
			cptx_ptx_destroy(p);
			t4 = seconds();
			cptx_module_destroy(m);
			destroy = least(destroy, seconds() - t4);
		}
	}
	printf("%.1f MB, %zu instructions, %.1f bytes each\n", (double)size * 1e-6, insns, (double)size / (double)insns);
	row("memcpy of the text", copy, size, insns, "");
	row("parse", parse, size, insns, ">= 150 MB/s");
	row("parse, .keep", parse_keep, size, insns, "");
	row("freeze", freeze, size, insns, "");
	row("check", check, size, insns, "");
	row("print", emit, printed, insns, ">= 500 MB/s");
	row("print, .keep", emit_keep, size, insns, "");
	row("destroy", destroy, size, insns, "");
	if (errors)
		printf("  (check names %zu errors)\n", errors);
	return measure_memory(text, size, false) || measure_memory(text, size, true);
}

/* ---- building ---- */

enum { TURNS = 20000 }; /* of 10 instructions */

/* Straight-line code, as an unrolled kernel has it: loads and stores, f32 and integer arithmetic, compares. */
static cptx_module *build_straight(const cptx_allocator *hook)
{
	cptx_module *m = cptx_module_new(hook);
	cptx_kernel *k = cptx_kernel_begin(m, "straight");
	cptx_val x = cptx_param(k, CPTX_PTR, "x"), n = cptx_param(k, CPTX_U32, "n"), sum = cptx_var(k, CPTX_F32, 0.0f);

	for (int i = 0; i < TURNS; i++) {
		cptx_val a = cptx_ld(k, cptx_offset(x, i * 16), .space = CPTX_GLOBAL, .type = CPTX_F32);
		cptx_val v = cptx_ld(k, cptx_offset(x, i * 16), .space = CPTX_GLOBAL, .type = CPTX_F32, .vec = CPTX_V4);
		cptx_val b = cptx_add(k, a, cptx_elem(v, 1)), c = cptx_mul(k, b, 2.0f);
		cptx_val j = cptx_shl(k, cptx_and(k, n, 31), 2), p = cptx_setp(k, j, i, .cmp = CPTX_LT);
		cptx_fma(k, b, c, sum, .rnd = CPTX_RN, .into = sum);
		cptx_add(k, sum, c, .into = sum, .when = p);
		cptx_st(k, cptx_offset(x, i * 16), sum, .space = CPTX_GLOBAL);
	}
	return m;
}

static cptx_module *build_gemms(const cptx_allocator *hook)
{
	cptx_module *m = cptx_module_new(hook);
	cptx_gemm_opt o = cptx_gemm_default(CPTX_GEMM_SYNC, NULL);
	char name[32];

	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "gemm_%d", i);
		o.name = name;
		cptx_gemm_build(m, &o, NULL);
	}
	return m;
}

static int measure_build(const char *what, cptx_module *(*build)(const cptx_allocator *))
{
	double took = 1e9;
	size_t insns = 0;
	char memory[64];
	meter mem = { 0 };
	const cptx_allocator hook = { metered, &mem };

	for (int i = 0; i < ROUNDS; i++) {
		double t0 = seconds();
		cptx_module *m = build(NULL);
		if (!cptx_module_freeze(m))
			return complain(what, cptx_module_error(m));
		took = least(took, seconds() - t0);
		insns = cptx_module_size(m);
		cptx_module_destroy(m);
	}
	cptx_module *m = build(&hook);
	if (!cptx_module_freeze(m))
		return complain(what, cptx_module_error(m));
	snprintf(memory, sizeof memory, "%.1f", (double)mem.now / (double)insns);
	printf("  %-28s %9.1f million instructions/s, %.1f ns each, %s bytes each (peak %.1f)   goal >= 10, <= 128\n", what,
	       (double)insns / took * 1e-6, took / (double)insns * 1e9, memory, (double)mem.peak / (double)insns);
	cptx_module_destroy(m);
	return 0;
}

int main(int argc, char **argv)
{
	const char *from = SOURCE_ROOT "/tests/corpus/ptx";
	bool peers = true;
	int option, failed = 0;
	static char *defaults[] = { "20", "100", NULL };

	while ((option = getopt(argc, argv, "c:p")) >= 0) {
		if (option == '?')
			return 2;
		if (option == 'c')
			from = optarg;
		else
			peers = false;
	}
	char **sizes = optind < argc ? argv + optind : defaults;
	corpus c;
	if (!corpus_read(&c, from, arch, ".O3.ptx"))
		return 1;
	printf("%zu files of the corpus for %s (%zu more are not accepted), %zu bytes; CPU time, best of %d\n\n", c.n, arch,
	       c.left_out, c.bytes, ROUNDS);
	for (; *sizes && !failed; sizes++) {
		size_t size;
		char *text = corpus_repeat(&c, (size_t)(atof(*sizes) * 1e6), &size);
		failed = !text || measure_text(text, size);
		free(text);
		printf("\n");
	}
	printf("building\n");
	failed |= measure_build("straight-line code", build_straight);
	failed |= measure_build("100 GEMMs", build_gemms);
	if (peers) {
		printf("\nfile by file, the files that are accepted\n");
		corpus_measure(&c, ROUNDS);
		fflush(stdout);
		if (system("python3 -c 'import pyptx.parser' 2>/dev/null") != 0)
			printf("  no pyptx in python3's path\n");
		else
			corpus_peer(&c, "python3 " SOURCE_ROOT "/bench/parse_peer.py");
	}
	corpus_free(&c);
	return failed;
}
