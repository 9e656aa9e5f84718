/* SPDX-License-Identifier: MIT */
/* Every kernel of tests/corpus/cuda on the emulator, as nvcc compiled it for each target and level. */
#include "run.h"

enum { MOST_ROWS = 300 };

static const corpus_case *row[MOST_ROWS];
static size_t nrow;

static void add(const corpus_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		row[nrow < MOST_ROWS ? nrow++ : 0] = &t->row[i];
	}
}

START_TEST(a_kernel) { ck_assert_msg(corpus_run(row[_i], 1), "%s", row[_i]->kernel); }
END_TEST

static bool has_row(const char *file, const char *kernel, size_t n)
{
	for (size_t i = 0; i < nrow; i++) {
		const char *stem = strchr(row[i]->file, '/') + 1;
		if (!strncmp(file, stem, strlen(stem)) && file[strlen(stem)] == '.' && !strncmp(row[i]->kernel, kernel, n) &&
		    !row[i]->kernel[n])
			return true;
	}
	return false;
}

static bool all_have_rows(void *user, const char *path, const char *text, size_t size, const char *target)
{
	unsigned *seen = user;

	(void)size, (void)target;
	for (const char *p = text; (p = strstr(p, ".entry ")); ++*seen) {
		size_t n = strcspn(p += 7, "(");
		ck_assert_msg(has_row(path, p, n), "%s: kernel %.*s has no row", path, (int)n, p);
	}
	return true;
}

/* Kernels that clang compiled have no CUDA source. */
START_TEST(no_kernel_is_left_out)
{
	unsigned seen = 0;

	ck_assert_uint_lt(nrow, MOST_ROWS);
	ck_assert(corpus_files("ptx/", all_have_rows, &seen));
	ck_assert_uint_gt(seen, 1000);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("emu_corpus");
	TCase *c = tcase_create("corpus");

	add(&corpus_floats);
	add(&corpus_integers);
	add(&corpus_matrices);
	add(&corpus_memory);
	add(&corpus_whole);
	tcase_add_loop_test(c, a_kernel, 0, (int)nrow);
	tcase_add_test(c, no_kernel_is_left_out);
	tcase_set_timeout(c, 0);
	suite_add_tcase(s, c);
	return test_main("emu_corpus", s);
}
