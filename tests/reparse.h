/* SPDX-License-Identifier: MIT */
/* What was printed is PTX text: read and printed again it is the same, byte for byte. */
#ifndef CPTX_TEST_REPARSE_H
#define CPTX_TEST_REPARSE_H

#include <cptx/cptx.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void test_reparse_report(void *user, const cptx_error *e)
{
	(void)user;
	printf("%s\n", e->text);
}

/* False, with what differs on standard output. */
static inline bool test_reparses(const char *text)
{
	cptx_error err = { 0 };
	cptx_parse_opt opt = { .name = "printed", .report = test_reparse_report };
	cptx_module *m = cptx_parse(text, strlen(text), &opt);
	bool good = m && !cptx_module_error(m) && !cptx_check(m, NULL, test_reparse_report, NULL);
	cptx_ptx *ptx = good ? cptx_emit(m, NULL, NULL, &err) : NULL;
	const char *again = cptx_ptx_text(ptx);
	size_t at = 0, line = 1;

	while (ptx && text[at] && text[at] == again[at])
		line += text[at++] == '\n';
	bool same = ptx && text[at] == again[at];
	if (!same && ptx)
		printf("printed again, line %zu is another:\n%.200s\n-- and was\n%.200s\n", line, again + at, text + at);
	else if (!same && good)
		printf("%s\n", err.text);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return same;
}

/* test_reparses where it would take long: only with CPTX_TEST_REPARSE=1, else true. */
static inline bool test_reparses_slowly(const char *text)
{
	const char *wanted = getenv("CPTX_TEST_REPARSE");
	return !wanted || *wanted != '1' || test_reparses(text);
}

#endif
