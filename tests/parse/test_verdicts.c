/* SPDX-License-Identifier: MIT */
/* Small texts: what we say of each, beside what ptxas says (verdicts.def). */
#include "../whole.h"
#include "parse.h"

#include "../ask.h"
#include "../verify/assemble.h"

enum verdict { GOOD, BAD, LAX, STRICT };
static const struct {
	int line;
	enum verdict verdict;
	const char *form; /* "", "body", or a target */
	const char *text, *part;
	unsigned turned; /* from this ptxas on it says the opposite; 0: never */
} cases[] = {
#define FILE ""
#define BODY "body"
#define ON(target) #target
#define GOOD(form, text, part) { __LINE__, GOOD, form, text, part, 0 },
#define BAD(form, text, part) { __LINE__, BAD, form, text, part, 0 },
#define LAX(form, text, reason) { __LINE__, LAX, form, text, "", 0 },
#define STRICT(form, text, part, reason) { __LINE__, STRICT, form, text, part, 0 },
#define TURNED(version, verdict, form, text, part, reason) { __LINE__, verdict, form, text, part, version },
#include "verdicts.def"
#undef FILE
#undef BODY
#undef ON
#undef GOOD
#undef BAD
#undef LAX
#undef STRICT
#undef TURNED
};

static bool is_file(size_t i) { return !*cases[i].form; }
static bool is_body(size_t i) { return !strcmp(cases[i].form, "body"); }

static char *text_of(size_t i)
{
	return is_file(i)   ? with_head(cases[i].text)
	       : is_body(i) ? in_body(cases[i].text)
	                    : in_body_on(cases[i].form, cases[i].text);
}

static const char *target_of(size_t i, const char *text)
{
	if (!is_file(i) && !is_body(i))
		return cases[i].form;
	char name[16] = "";
	const char *at = strstr(text, ".target ");
	if (at)
		sscanf(at, ".target %15[a-z0-9_]", name);
	const cptx_target *t = cptx_target_find(name);
	return t ? t->name : "sm_90";
}

static bool we_take(size_t i) { return cases[i].verdict == GOOD || cases[i].verdict == LAX; }
static bool they_take(size_t i)
{
	bool takes = cases[i].verdict == GOOD || cases[i].verdict == STRICT;
	return cases[i].turned && test_ptxas_version() >= cases[i].turned ? !takes : takes;
}

static unsigned wrong(size_t i, const char *what, const char *message)
{
	printf("verdicts.def:%d: %s\n    %s\n    %s\n", cases[i].line, what, cases[i].text, message);
	return 1;
}

START_TEST(ours)
{
	unsigned bad = 0;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *text = text_of(i);
		outcome o = outcome_of(text, strlen(text), NULL);
		if (!o.nerror != we_take(i))
			bad += wrong(i, o.nerror ? "refused" : "taken", o.message);
		else if (!strstr(o.nerror ? o.message : o.printed, cases[i].part))
			bad += wrong(i, "the message or the text printed lacks its part", o.nerror ? o.message : o.printed);
		outcome_free(&o);
		free(text);
	}
	ck_assert_msg(!bad, "%u verdicts of ours are others", bad);
}
END_TEST

/* ptxas takes its time: a sixth of what it agrees with, all that it does not; with CPTX_WHOLE=1 all. */
static bool is_asked(size_t i)
{
	return (whole() && is_my_part(i)) || cases[i].verdict == LAX || cases[i].verdict == STRICT || cases[i].turned ||
	       i % 6 == 0;
}

START_TEST(theirs)
{
	static assembly jobs[ARRAY_LEN(cases)];
	static size_t number[ARRAY_LEN(cases)];
	unsigned bad = 0;
	size_t n = 0;

	if (!test_ptxas()) {
		skip("no ptxas");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (!is_asked(i))
			continue;
		char *text = text_of(i);
		number[n] = i;
		jobs[n++] = (assembly){ .target = target_of(i, text),
			                    .ptx = text,
			                    .separate = strstr(text, ".extern") || strstr(text, ".unified") };
	}
	assemble(jobs, n);
	for (size_t j = 0; j < n; j++)
		if (!jobs[j].status != they_take(number[j]))
			bad += wrong(number[j], jobs[j].status ? "ptxas refuses it" : "ptxas takes it", jobs[j].said);
	for (size_t j = 0; j < n; j++)
		free((void *)(uintptr_t)jobs[j].ptx);
	assemble_free(jobs, n);
	ck_assert_msg(!bad, "%u verdicts of ptxas are others", bad);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { ours, theirs };
	return parse_test_run("verdicts", tests, ARRAY_LEN(tests));
}
