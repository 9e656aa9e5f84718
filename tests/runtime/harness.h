/* Check, with tests that say why they cannot run.  The last line of a test program is "N passed, N failed, N skipped". */
#ifndef CPTX_TEST_HARNESS_H
#define CPTX_TEST_HARNESS_H

#include <check.h>
#include <stdio.h>
#include <string.h>

static int harness_skipped;

/* Ends the test; __func__ in a Check test is its name and "_fn". */
#define SKIP(...)                                                                                                         \
	do {                                                                                                                 \
		harness_skipped++;                                                                                               \
		printf("SKIP %.*s: ", (int)strlen(__func__) - 3, __func__);                                                      \
		printf(__VA_ARGS__);                                                                                             \
		printf("\n");                                                                                                    \
		return;                                                                                                          \
	} while (0)

/* No error in a cptx_error; else the test fails with its text. */
#define OK(err) ck_assert_msg((err).code == CPTX_OK, "%s", (err).text)
/* An error of that code, whose text has that part. */
#define FAILS(err, want, part)                                                                                            \
	do {                                                                                                                 \
		ck_assert_msg((err).code == (want), "code %s: %s", cptx_code_name((err).code), (err).text);                      \
		ck_assert_msg(strstr((err).text, (part)) != NULL, "no \"%s\" in: %s", (part), (err).text);                       \
		memset(&(err), 0, sizeof(err));                                                                                  \
	} while (0)


/* In one process: a CUDA context does not survive fork. */
static int harness_run(const char *name, const TTest *const *tests, size_t n, void (*before)(void), void (*after)(void))
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner = srunner_create(suite);

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, before, after);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner), ran = srunner_ntests_run(runner);
	srunner_free(runner);
	printf("%d passed, %d failed, %d skipped\n", ran - failed - harness_skipped, failed, harness_skipped);
	return failed;
}

#endif
