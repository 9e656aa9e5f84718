/* SPDX-License-Identifier: MIT */
/* Every allocation of a compilation, of the cache and of an error's text fails once: an error or a result, never a crash. */
#define _GNU_SOURCE
#include "../own_malloc.h"
#include "../runtime/harness.h"

#include <cptx/compile.h>

#include <sys/stat.h>
#include <unistd.h>

static volatile long left = -1; /* allocations until one fails; negative: none does */

#if COUNTED
static bool fails(void) { return left >= 0 && left-- == 0; }

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t size) { return fails() ? NULL : __libc_realloc(p, size); }
#endif

static const char text[] = ".version 8.0\n.target sm_90\n.visible .entry k() { ret; }\n";
static char folder[64], ptxas[96], cache_folder[96];
static cptx_error err;

static void before(void)
{
	memset(&err, 0, sizeof err);
	snprintf(folder, sizeof folder, "/tmp/cptx-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(ptxas, sizeof ptxas, "%s/ptxas", folder);
	snprintf(cache_folder, sizeof cache_folder, "%s/cache", folder);
	setenv("CPTX_PTXAS", ptxas, 1);
}

static void after(void)
{
	char command[128];

	left = -1;
	unsetenv("CPTX_PTXAS");
	snprintf(command, sizeof command, "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

/* A program in place of ptxas: a line, and an ELF image of 64 bytes or a refusal. */
static void pretend(bool refuses)
{
	FILE *f = fopen(ptxas, "w");

	ck_assert_ptr_nonnull(f);
	fputs("#!/bin/sh\necho \"ptxas $2, line 3; warning : a word\"\n", f);
	fputs(refuses ? "exit 1\n" : "{ printf '\\177ELF\\002\\001'; head -c 58 /dev/zero; } >\"$4\"\n", f);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(chmod(ptxas, 0755), 0);
}

static cptx_cubin *compile(void)
{
	cptx_cache *cache = cptx_cache_open(&(cptx_cache_opt){ .path = cache_folder }, &err);
	cptx_compile_opt opt = { .compiler = CPTX_COMPILER_PTXAS, .cache = cache };
	cptx_cubin *c = cptx_compile(text, sizeof text - 1, &opt, &err);

	cptx_cache_close(cache);
	return c;
}

/* Into an empty cache; out of it; refused. */
START_TEST(each_fails_once)
{
	bool done = false;
	long n;

	if (!COUNTED)
		SKIP("an allocator that can be made to fail (glibc, no sanitizer)");
	pretend(_i == 2);
	for (n = 0; n < 1000 && !done; n++) {
		if (_i == 0) {
			char command[128];
			snprintf(command, sizeof command, "rm -rf %s", cache_folder);
			ck_assert_int_eq(system(command), 0);
		}
		memset(&err, 0, sizeof err);
		left = n;
		cptx_cubin *c = compile();
		done = left >= 0; /* none was left to fail */
		left = -1;
		if (c) {
			ck_assert_int_ne(_i, 2);
			ck_assert_int_eq(err.code, CPTX_OK);
			ck_assert_uint_eq(cptx_cubin_size(c), 64);
			ck_assert_str_eq(cptx_cubin_log(c), "ptxas ptx, line 3; warning : a word\n");
		} else {
			bool fair = err.code == CPTX_E_MEMORY || err.code == CPTX_E_IO || (_i == 2 && err.code == CPTX_E_COMPILE) ||
			            (err.code == CPTX_E_NO_COMPILER && !done);
			ck_assert_msg(fair, "allocation %ld: %s: %s", n, cptx_code_name(err.code), err.text);
		}
		ck_assert(!done || (c != NULL) == (_i != 2));
		cptx_cubin_destroy(c);
	}
	ck_assert(done);
	printf("%ld allocations failed, one at a time\n", n - 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("memory");
	TCase *c = tcase_create("memory");

	tcase_set_timeout(c, 60);
	tcase_add_checked_fixture(c, before, after);
	tcase_add_loop_test(c, each_fails_once, 0, 3);
	suite_add_tcase(s, c);
	return test_main("memory", s);
}
