/* SPDX-License-Identifier: MIT */
/* What directives need: the example of each row of directive.def, for its lowest target and .version, and one lower. */
#include "parse.h"

#include "../ask.h"
#include "../verify/assemble.h"

static const struct {
	const char *name;
	unsigned version, number;
	const char *example;
} rows[] = {
#define DIRECTIVE(id, name, version, number, example) { name, version, number, example },
#include "../../src/arch/directive.def"
#undef DIRECTIVE
};

/* Targets that text may name, in their order, and the first .version of each; plain ones alone. */
static const struct {
	const char *name;
	unsigned number, version;
} targets[] = {
#define TARGET(name, number, suffix, family, version, ...) { name, suffix == ' ' ? number : 0, version },
#include "../../src/arch/target.def"
#undef TARGET
};

static const unsigned versions[] = { 10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 30, 31, 32, 40, 41, 42,
	                                 43, 50, 60, 61, 62, 63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77,
	                                 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90, 91, 92, 93, 94, 95 };

/* The plain target of the lowest number from..to, or of the highest. */
static size_t target_of(unsigned from, unsigned to, bool highest)
{
	size_t best = ARRAY_LEN(targets);

	for (size_t i = 0; i < ARRAY_LEN(targets); i++)
		if (targets[i].number >= from && targets[i].number <= to && targets[i].number &&
		    (best == ARRAY_LEN(targets) || (targets[i].number < targets[best].number) != highest))
			best = i;
	return best;
}

typedef struct question {
	size_t row;
	bool good;
	char text[600];
} question;

enum { MOST = 3 * ARRAY_LEN(rows) };
static question list[MOST];
static assembly jobs[MOST];

static void ask(size_t *n, size_t row, size_t target, unsigned version, bool good)
{
	question *q = &list[(*n)++];
	const char *example = rows[row].example;

	*q = (question){ .row = row, .good = good };
	snprintf(q->text, sizeof q->text, ".version %u.%u\n.target %s%s%s\n", version / 10, version % 10, targets[target].name,
	         *example == ',' ? "" : "\n", example);
}

static size_t questions(unsigned newest)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned before = 0, least = rows[i].number ? rows[i].number : 1;
		size_t low = target_of(least, 999, false), lower = target_of(1, least - 1, true);
		for (size_t v = 0; v < ARRAY_LEN(versions) && versions[v] < rows[i].version; v++)
			before = versions[v];
		if (rows[i].version > newest)
			continue;
		ask(&n, i, low, rows[i].version > targets[low].version ? rows[i].version : targets[low].version, true);
		if (before >= targets[low].version)
			ask(&n, i, low, before, false);
		if (lower < ARRAY_LEN(targets))
			ask(&n, i, lower, newest, false);
	}
	return n;
}

START_TEST(ours_are_exact)
{
	size_t n = questions(95);

	for (size_t i = 0; i < n; i++) {
		outcome o = outcome_of(list[i].text, strlen(list[i].text), NULL);
		bool named = strstr(o.message, rows[list[i].row].name);
		ck_assert_msg(!o.nerror == list[i].good && (list[i].good || named), "%s\n%s", list[i].text, o.message);
		outcome_free(&o);
	}
}
END_TEST

START_TEST(theirs_are_the_same)
{
	unsigned newest = test_ptxas_version(), wrong = 0;
	size_t n;

	if (!newest) {
		skip("no ptxas");
		return;
	}
	n = questions(newest);
	for (size_t i = 0; i < n; i++) {
		char name[16] = "";
		sscanf(strstr(list[i].text, ".target "), ".target %15[a-z0-9_]", name);
		const cptx_target *t = cptx_target_find(name);
		jobs[i] = (assembly){ .target = t ? t->name : "sm_75",
			                  .ptx = list[i].text,
			                  .separate = strstr(list[i].text, ".unified") != NULL };
	}
	assemble(jobs, n);
	for (size_t i = 0; i < n; i++) {
		if (!jobs[i].status != list[i].good) {
			printf("ptxas %s:\n%s%s\n", jobs[i].status ? "refuses" : "takes", list[i].text, jobs[i].said);
			wrong++;
		}
	}
	assemble_free(jobs, n);
	ck_assert_msg(!wrong, "%u verdicts of ptxas are others", wrong);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { ours_are_exact, theirs_are_the_same };
	return parse_test_run("directives", tests, ARRAY_LEN(tests));
}
