/* Small texts: what we say of each, beside what ptxas says (verdicts.def). */
#include "parse.h"

#include "../ask.h"
#include "../verify/assemble.h"

enum form { FILE_FORM, BODY_FORM };
enum verdict { GOOD, BAD, LAX, STRICT };
static const struct {
	int line;
	enum verdict verdict;
	enum form form;
	const char *text, *part;
} cases[] = {
#define FILE FILE_FORM
#define BODY BODY_FORM
#define GOOD(form, text, part) { __LINE__, GOOD, form, text, part },
#define BAD(form, text, part) { __LINE__, BAD, form, text, part },
#define LAX(form, text, reason) { __LINE__, LAX, form, text, "" },
#define STRICT(form, text, part, reason) { __LINE__, STRICT, form, text, part },
#include "verdicts.def"
#undef FILE
#undef BODY
#undef GOOD
#undef BAD
#undef LAX
#undef STRICT
};

static char *text_of(size_t i) { return cases[i].form == BODY_FORM ? in_body(cases[i].text) : with_head(cases[i].text); }
static bool we_take(size_t i) { return cases[i].verdict == GOOD || cases[i].verdict == LAX; }
static bool they_take(size_t i) { return cases[i].verdict == GOOD || cases[i].verdict == STRICT; }

static unsigned wrong(size_t i, const char *what, const char *said)
{
	printf("verdicts.def:%d: %s\n    %s\n    %s\n", cases[i].line, what, cases[i].text, said);
	return 1;
}

START_TEST(ours)
{
	unsigned bad = 0;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *text = text_of(i);
		outcome o = outcome_of(text, strlen(text), NULL);
		if (!o.nerror != we_take(i))
			bad += wrong(i, o.nerror ? "refused" : "taken", o.said);
		else if (!strstr(o.nerror ? o.said : o.printed, cases[i].part))
			bad += wrong(i, "the message or the text printed lacks its part", o.nerror ? o.said : o.printed);
		outcome_free(&o);
		free(text);
	}
	ck_assert_msg(!bad, "%u verdicts of ours are others", bad);
}
END_TEST

/* ptxas takes its time: a sixth of what it agrees with, all that it does not; with CPTX_WHOLE=1 all. */
static bool is_asked(size_t i)
{
	const char *whole = getenv("CPTX_WHOLE");
	return (whole && *whole == '1') || cases[i].verdict == LAX || cases[i].verdict == STRICT || i % 6 == 0;
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
		bool turing = strstr(text, ".target sm_75") != NULL, ampere = strstr(text, ".target sm_80") != NULL;
		number[n] = i;
		jobs[n++] = (assembly){ .target = turing   ? "sm_75"
			                              : ampere ? "sm_80"
			                                       : "sm_90",
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
