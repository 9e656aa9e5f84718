/* SPDX-License-Identifier: MIT */
/* What the tests of the runtime share. */
#ifndef CPTX_TEST_HARNESS_H
#define CPTX_TEST_HARNESS_H

#include "../test.h"

#define SKIP(...)                                                                                                           \
	do {                                                                                                                    \
		skip(__VA_ARGS__);                                                                                                  \
		return;                                                                                                             \
	} while (0)

/* No error in a cptx_error; else the test fails with its text. */
#define OK(err) ck_assert_msg((err).code == CPTX_OK, "%s", (err).text)
/* An error of that code, whose text has that part.  It is cleared for what follows. */
#define FAILS(err, want, part)                                                                                              \
	do {                                                                                                                    \
		ck_assert_msg((err).code == (want), "code %s: %s", cptx_code_name((err).code), (err).text);                         \
		ck_assert_msg(strstr((err).text, (part)) != NULL, "no \"%s\" in: %s", (part), (err).text);                          \
		memset(&(err), 0, sizeof(err));                                                                                     \
	} while (0)

static inline int harness_run(const char *name, const TTest *const *tests, size_t n, void (*before)(void),
                              void (*after)(void))
{
	Suite *s = suite_create(name);
	TCase *c = tcase_create(name);

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_add_checked_fixture(c, before, after);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(c, tests[i]);
	suite_add_tcase(s, c);
	return test_main(name, s);
}

#endif
