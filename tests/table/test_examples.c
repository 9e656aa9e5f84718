/* SPDX-License-Identifier: MIT */
/* The example on the page of every instruction: ptxas assembles it as it is printed there, and as its C call makes it. */
#include "../ask.h"
#include "../reparse.h"
#include "cases.h"
#include "judge.h"
#include "test.h"

typedef struct example {
	const char *name, *opcode, *declarations, *ptx;
	unsigned form;
	void (*build)(cptx_kernel *k, cptx_kernel *function);
} example;

#include "insn_examples.inc"

enum { NEXAMPLES = sizeof examples / sizeof examples[0] };

/* The lowest target that has the form, and the version there. */
static const cptx_target *lowest(unsigned form, unsigned *version)
{
	for (unsigned i = 0; i < arch_ntarget; i++) {
		*version = arch_avails[arch_forms[form].avail][i];
		if (*version)
			return &arch_targets[i];
	}
	return NULL;
}

START_TEST(examples_are_assembled)
{
	unsigned number[NEXAMPLES], wrong = 0;
	bool asked[NEXAMPLES];

	if (!test_ptxas()) {
		skip("ptxas not found");
		return;
	}
	judge *j = judge_new();
	for (unsigned i = 0; i < NEXAMPLES; i++) {
		char line[LINE];
		unsigned version;
		const cptx_target *t = lowest(examples[i].form, &version);
		ck_assert_msg(t != NULL, "%s: on no target", examples[i].name);
		snprintf(line, sizeof line, "\t{ %s%s }", examples[i].declarations, examples[i].ptx);
		asked[i] = judge_reads(version);
		if (asked[i])
			number[i] = judge_ask(j, t, version, line);
	}
	judge_run(j);
	for (unsigned i = 0; i < NEXAMPLES; i++)
		if (asked[i] && !judge_said(j, number[i])->ok) {
			printf("%s: { %s%s }: %s\n", examples[i].name, examples[i].declarations, examples[i].ptx,
			       judge_said(j, number[i])->why);
			wrong++;
		}
	unsigned latest, left = judge_left(&latest);
	printf("%u examples, %u not assembled, %u of versions that ptxas does not read\n", (unsigned)NEXAMPLES, wrong, left);
	judge_free(j);
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

static cptx_ptx *made[NEXAMPLES];
static judged_file files[NEXAMPLES];

/* What is wrong with the example before ptxas sees it. */
static const char *make(unsigned i, cptx_error *err)
{
	unsigned version;
	const cptx_target *t = lowest(examples[i].form, &version);
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *function = cptx_func_begin(m, "function", CPTX_TYPE_NONE);

	examples[i].build(cptx_kernel_begin(m, "k"), function);
	made[i] = cptx_emit(m, t->name, NULL, err);
	cptx_module_destroy(m);
	if (!made[i])
		return err->text;
	if (!strstr(cptx_ptx_text(made[i]), examples[i].opcode))
		return "printed as another spelling";
	return test_reparses(cptx_ptx_text(made[i])) ? NULL : "read and printed again it is another";
}

static unsigned wrong_example(unsigned i, const char *why)
{
	printf("%s (%s): %s\n", examples[i].name, examples[i].opcode, why);
	return 1;
}

START_TEST(calls_make_the_examples)
{
	static unsigned number[NEXAMPLES];
	unsigned wrong = 0, n = 0, version;

	for (unsigned i = 0; i < NEXAMPLES; i++) {
		const cptx_target *t = lowest(examples[i].form, &version);
		cptx_error err = { .code = CPTX_OK };
		const char *why = make(i, &err);
		if (why) {
			wrong += wrong_example(i, why);
		} else if (test_ptxas() && judge_reads(version)) {
			number[n] = i;
			files[n++] = (judged_file){ .text = cptx_ptx_text(made[i]), .target = t };
		}
	}
	judge_files(files, n);
	for (unsigned i = 0; i < n; i++)
		wrong += files[i].status ? wrong_example(number[i], files[i].message) : 0;
	for (unsigned i = 0; i < NEXAMPLES; i++)
		cptx_ptx_destroy(made[i]);
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

int main(void)
{
	pool_init();
	Suite *s = suite_create("table");
	TCase *t = tcase_create("examples");
	tcase_set_timeout(t, 0);
	tcase_add_test(t, examples_are_assembled);
	tcase_add_test(t, calls_make_the_examples);
	suite_add_tcase(s, t);
	return test_main("table examples", s);
}
