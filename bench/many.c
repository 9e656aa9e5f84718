/* SPDX-License-Identifier: MIT */
/*
 * Very many of what a back end makes, on one core:
 *
 *     bench_many [KERNELS]
 *
 * KERNELS (default: 1,000,000) small kernels, each built, printed and thrown away, by modules of their own and by one that
 * is kept, with the resident memory behind each tenth; and what names cost where there are 10,000, 100,000 and 1,000,000.
 * The status is 1 if memory grew, or if a name costs ten times as much among a hundred times as many (caches make it cost a
 * few times as much).
 */
#include "clock.h"

#include <cptx/cptx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(const char *why)
{
	fprintf(stderr, "bench_many: %s\n", why);
	exit(1);
}

/* Resident memory of the process, in KiB. */
static long resident(void)
{
	long all = 0, now = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%ld %ld", &all, &now) != 2)
		die("no /proc/self/statm");
	fclose(f);
	return now * (sysconf(_SC_PAGESIZE) / 1024);
}

/* ---- kernels ---- */

/* A kernel of 10 instructions that differs from others by a constant. */
static void small_kernel(cptx_module *m, unsigned i)
{
	cptx_kernel *k = cptx_kernel_begin(m, "small", .block = { 256 });
	cptx_val x = cptx_param(k, CPTX_PTR, "x"), n = cptx_param(k, CPTX_U32, "n"), tid = cptx_tid_x(k);
	cptx_val at = cptx_mad(k, cptx_ctaid_x(k), 256, tid, .mode = CPTX_LO);

	CPTX_IF(k, cptx_setp(k, at, n, .cmp = CPTX_LT)) {
		cptx_val p = cptx_add(k, x, cptx_mul_wide(k, at, 4));
		cptx_st(k, p, cptx_add(k, cptx_ld(k, p, .type = CPTX_U32, .space = CPTX_GLOBAL), i), .space = CPTX_GLOBAL);
	}
}

/* Returns whether memory stayed as it was after the first tenth. */
static bool many_kernels(size_t n, bool kept)
{
	cptx_module *m = kept ? cptx_module_new(NULL) : NULL;
	cptx_ptx *p = kept ? cptx_ptx_new(NULL) : NULL;
	long first = 0, last = 0;
	double t0 = now_ns();

	printf("%zu kernels, %s: KiB", n, kept ? "kept module and text" : "modules of their own");
	for (size_t tenth = 0; tenth < 10; tenth++) {
		for (size_t i = 0; i < n / 10; i++) {
			cptx_module *mine = m ? m : cptx_module_new(NULL);
			if (m)
				cptx_module_clear(m);
			small_kernel(mine, (unsigned)(tenth * n + i));
			cptx_ptx *text = p ? p : cptx_emit(mine, "sm_80", NULL, NULL);
			if (!text || (p && !cptx_emit_again(p, mine, "sm_80", NULL, NULL)))
				die("a kernel was not printed");
			if (m)
				continue;
			cptx_ptx_destroy(text);
			cptx_module_destroy(mine);
		}
		last = resident();
		first = first ? first : last;
		printf(" %ld", last);
	}
	printf("; %.0f ns each\n", (now_ns() - t0) / (double)n);
	cptx_ptx_destroy(p);
	cptx_module_destroy(m);
	return last <= first + 256;
}

/* ---- names ---- */

enum { WAYS = 6 };
static const char *const ways[WAYS] = { "declare a function", "find a function",           "rename a function",
	                                    "parse and print it", "find a variable of a body", "rename a variable of a body" };

/* Text with n functions, or a function with n variables. */
static char *text_of(size_t n, bool body, size_t *size)
{
	char *text = malloc(n * 64 + 256), *p = text;

	if (!text)
		die("out of memory");
	p += sprintf(p, ".version 8.0\n.target sm_80\n.address_size 64\n");
	if (body)
		p += sprintf(p, ".func all()\n{\n");
	for (size_t i = 0; i < n; i++)
		p += body ? sprintf(p, "\t.local .b32 v_%zu_x;\n", i) : sprintf(p, ".func f_%zu_x() { ret; }\n", i);
	if (body)
		p += sprintf(p, "\tret;\n}\n");
	*size = (size_t)(p - text);
	return text;
}

static void names_of_module(size_t n, double ns[WAYS])
{
	char name[32];
	size_t size;
	double t = now_ns();
	cptx_module *m = cptx_module_new(NULL);

	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof name, "f_%zu_x", i);
		cptx_func_begin(m, name, CPTX_TYPE_NONE);
	}
	ns[0] = now_ns() - t;
	t = now_ns();
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof name, "f_%zu_x", i * 7919 % n);
		if (!cptx_module_body(m, name))
			die("a function was not found");
	}
	ns[1] = now_ns() - t;
	cptx_module_destroy(m);
	char *text = text_of(n, false, &size);
	t = now_ns();
	m = cptx_parse(text, size, NULL);
	cptx_ptx *p = cptx_emit(m, NULL, NULL, NULL);
	if (!p)
		die(cptx_module_error(m)->text);
	ns[3] = now_ns() - t;
	cptx_ptx_destroy(p);
	cptx_module_destroy(m);
	m = cptx_parse(text, size, NULL);
	t = now_ns();
	for (size_t i = 0; i < n; i++) {
		char to[32];
		snprintf(name, sizeof name, "f_%zu_x", i);
		snprintf(to, sizeof to, "g_%zu_y", i);
		cptx_edit_rename_global(m, name, to);
	}
	p = cptx_emit(m, NULL, NULL, NULL);
	if (!p || !strstr(cptx_ptx_text(p), "g_0_y"))
		die("functions were not renamed");
	ns[2] = now_ns() - t;
	cptx_ptx_destroy(p);
	cptx_module_destroy(m);
	free(text);
}

static void names_of_body(size_t n, double ns[WAYS])
{
	char name[32];
	size_t size;
	char *text = text_of(n, true, &size);
	cptx_module *m = cptx_parse(text, size, NULL);
	cptx_kernel *k = cptx_module_body(m, "all");
	double t = now_ns();

	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof name, "v_%zu_x", i * 7919 % n);
		if (!cptx_body_value(k, name).kind)
			die("a variable was not found");
	}
	ns[4] = now_ns() - t;
	t = now_ns();
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof name, "v_%zu_x", i);
		cptx_val v = cptx_body_value(k, name);
		*name = 'w';
		cptx_edit_rename(k, v, name);
	}
	cptx_ptx *p = cptx_emit(m, NULL, NULL, NULL);
	if (!p || !strstr(cptx_ptx_text(p), "w_0_x"))
		die("variables were not renamed");
	ns[5] = now_ns() - t;
	cptx_ptx_destroy(p);
	cptx_module_destroy(m);
	free(text);
}

static bool many_names(void)
{
	enum { SIZES = 3 };
	double ns[SIZES][WAYS];
	bool linear = true;
	size_t n = 10000;

	for (unsigned s = 0; s < SIZES; s++, n *= 10) {
		names_of_module(n, ns[s]);
		names_of_body(n, ns[s]);
		for (unsigned w = 0; w < WAYS; w++)
			ns[s][w] /= (double)n;
	}
	printf("ns for each name, among 10,000, 100,000, 1,000,000:\n");
	for (unsigned w = 0; w < WAYS; w++) {
		printf("  %-28s %8.0f %8.0f %8.0f\n", ways[w], ns[0][w], ns[1][w], ns[2][w]);
		linear &= ns[2][w] < 10 * ns[0][w];
	}
	return linear;
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? (size_t)strtoull(argv[1], NULL, 10) : 1000000;
	bool flat = many_kernels(n, false), kept = many_kernels(n, true), linear = many_names();

	if (!flat || !kept)
		printf("memory grew\n");
	if (!linear)
		printf("names are not found in constant time\n");
	return !flat || !kept || !linear;
}
