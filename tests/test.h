/* SPDX-License-Identifier: MIT */
/*
 * A test program: Check test cases and a last line "N passed, N failed, N skipped" that CI adds up.  A test that lacks
 * something (ptxas, a GPU) calls skip("what it lacks") and returns; it is counted as skipped, not as passed.
 */
#ifndef CPTX_TEST_H
#define CPTX_TEST_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Check writes to a file where each assertion that holds has stood, for tests in processes of their own that crash; here the
 * process that crashes is the one that would read it (CK_NOFORK), and it makes loops of assertions ten times as slow. */
#define _mark_point(file, line) ((void)0)

/* ck_assert_msg for loops of millions of turns: nothing is called while all is well. */
#define SURE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			ck_abort_msg(__VA_ARGS__);                                                                                      \
	while (0)

/* &err without the error of an earlier call, which would keep this one from doing anything. */
#define FRESH(err) (*(err) = (cptx_error){ .code = CPTX_OK }, (err))

/* Needs CK_NOFORK (test_main sets it), so that the count reaches the summary. */
static int test_skips;
#define skip(...) (printf("SKIP %s: ", __func__), printf(__VA_ARGS__), putchar('\n'), (void)test_skips++)

/* A case without a time limit; CK_RUN_CASE=name runs it alone. */
static inline TCase *test_case(Suite *s, const char *name)
{
	TCase *c = tcase_create(name);

	tcase_set_timeout(c, 0);
	suite_add_tcase(s, c);
	return c;
}

static inline int test_main(const char *name, Suite *s)
{
	SRunner *r = srunner_create(s);
	srunner_set_fork_status(r, CK_NOFORK);
	srunner_run_all(r, CK_NORMAL);
	int run = srunner_ntests_run(r), failed = srunner_ntests_failed(r);
	srunner_free(r);
	printf("%s: %d passed, %d failed, %d skipped\n", name, run - failed - test_skips, failed, test_skips);
	return failed != 0;
}

#endif
