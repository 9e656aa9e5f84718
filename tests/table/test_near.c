/* SPDX-License-Identifier: MIT */
/* Typical mistakes (mistakes.h): the message must name the form that was meant first of all. */
#include "../whole.h"
#include "arch/near.h"
#include "judge.h"
#include "mistakes.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

enum { DRAWN = 200 };

static void message_of_call(const trial *t, char *message, size_t size)
{
	pool p = pool_make(true);

	cptx_insn_(p.k, (cptx_site){ "k.c", 7 }, (enum cptx_op)arch_forms[t->form].op, t->vals, t->mods);
	const cptx_error *e = cptx_module_error(p.m);
	snprintf(message, size, "%s", e ? e->text : "");
	cptx_module_destroy(p.m);
}

static void note_first(void *user, const cptx_error *e)
{
	char *message = user;
	if (!*message)
		snprintf(message, CPTX_ERROR_TEXT, "%s", e->text);
}

/* "" where the text is right. */
static void message_of_text(const trial *t, char *message)
{
	char line[LINE], *text;

	trial_print(t, line);
	text = judge_text(cptx_target_find("sm_100a"), ARCH_NEWEST, line);
	*message = 0;
	cptx_parse_opt opt = { .name = "k.ptx", .report = note_first, .user = message };
	cptx_module_destroy(cptx_parse(text, strlen(text), &opt));
	free(text);
}

/* ---- */

static void form_text(unsigned form, char *text, size_t size)
{
	buf b;

	buf_init(&b, NULL);
	arch_put_form(form, &b);
	buf_put(&b, "", 1);
	snprintf(text, size, "%s", b.p);
	buf_free(&b);
}

/* The line below the first one is the form. */
static bool names_first(const char *message, unsigned form)
{
	char text[4096];
	const char *line = strstr(message, "\n    ");

	form_text(form, text, sizeof text);
	size_t n = strlen(text);
	return line && !strncmp(line + 5, text, n) && (line[5 + n] == '\n' || !line[5 + n]);
}

/* The first line offers what was left out or changed: the value of the field, or the word. */
static bool offers(const char *message, const trial *meant, const trial *t, bool by_text)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];
	char line[CPTX_ERROR_TEXT], word[OPCODE];

	snprintf(line, sizeof line, "%.*s", (int)strcspn(message, "\n"), message);
	const char *write = strstr(line, "write ");
	for (unsigned i = 0; write && !by_text && i < op->nfield; i++) {
		snprintf(word, sizeof word, "CPTX_%s", arch_mods[meant->mods[i]].id);
		const char *found = meant->mods[i] != t->mods[i] ? strstr(write, word) : NULL;
		if (found && strchr(" ,)", found[strlen(word)]))
			return true;
	}
	size_t same = 0;
	while (by_text && meant->opcode[same] && meant->opcode[same] == t->opcode[same])
		same++;
	while (same && meant->opcode[same - 1] != '.')
		same--;
	snprintf(word, sizeof word, ".%.*s", (int)strcspn(meant->opcode + same, "."), meant->opcode + same);
	for (const char *p = write; by_text && same && p && (p = strstr(p, word)); p++)
		if (!p[strlen(word)] || strchr(" .,;)", p[strlen(word)]))
			return true;
	return false;
}

/* A sample of mistakes, from kind `from` up to `to`; how many of them, in all and of each kind, were answered with the form
 * that was meant first, and with that or its value offered in the first line. */
typedef struct sample {
	const char *what;
	bool by_text;
	enum mistake from, to;
	unsigned seeds, all_seeds; /* with CPTX_WHOLE */
	unsigned want, want_least, want_offered;
	unsigned right, offered, least, of[MISTAKES], right_of[MISTAKES];
} sample;

static void one_seed(sample *x, uint64_t seed)
{
	char message[CPTX_ERROR_TEXT], line[LINE], written[LINE];
	unsigned n = 0, right = 0, tried = 0;
	dice d = { seed };

	for (; n < DRAWN; tried++) {
		trial t, meant;
		spelling s;
		const unsigned kinds = x->to - x->from; /* of those that people make as many of each */
		enum mistake kind = (enum mistake)(x->from + (x->from == MISTAKE_LEFT_OUT ? roll(&d, kinds) : n % kinds));
		ck_assert_uint_lt(tried, 2000 * DRAWN);
		if (!mistake_pick(&d, &t, &s))
			continue;
		meant = t;
		if (x->by_text ? !mistake_in_text(&d, &t, kind) : !mistake_in_call(&d, &t, kind))
			continue;
		if (x->by_text)
			message_of_text(&t, message);
		else
			message_of_call(&t, message, sizeof message);
		if (x->by_text && !*message)
			continue;
		n++;
		bool first = names_first(message, t.form);
		right += first;
		x->of[kind]++, x->right_of[kind] += first;
		x->offered += first || offers(message, &meant, &t, x->by_text);
		if (first)
			continue;
		trial_print(&meant, line);
		trial_print(&t, written);
		printf("seed %u, %s: %s was meant, and written%s\n    %s\n    but the message is %s\n\n", (unsigned)seed,
		       mistake_name(kind), line + 1, x->by_text ? written : " as a call", arch_forms[t.form].text, message);
	}
	x->right += right, x->least = MIN(x->least, right);
}

/*
 * What is left out or changed may have been the one thing that told two forms apart: of an instruction without its .op, add
 * and min are as near, and no ranking is right about both.  So one seed has a few more of these than another: .want is
 * what all seeds must reach on average, .want_least what each must.  Such a value is offered in the first line even so.
 * CPTX_NEAR_SEED=N: samples from another seed on.
 */
static void compare(sample *x)
{
	const char *given = getenv("CPTX_NEAR_SEED");
	const uint64_t from = given ? strtoull(given, NULL, 10) : 1, seeds = whole() ? x->all_seeds : x->seeds;

	x->least = DRAWN;
	for (uint64_t seed = from; seed < from + seeds; seed++)
		one_seed(x, seed);
	for (unsigned kind = x->from; kind < (unsigned)x->to; kind++)
		printf("%s: %s: %u of %u\n", x->what, mistake_name((enum mistake)kind), x->right_of[kind], x->of[kind]);
	printf(
		"%s: of %u mistakes, %.1f are answered with the form that was meant as the nearest, at least %u, %.1f with what was "
		"meant in the first line\n",
		x->what, (unsigned)DRAWN, (double)x->right / (double)seeds, x->least, (double)x->offered / (double)seeds);
	ck_assert_uint_ge(x->right, x->want * seeds);
	ck_assert_uint_ge(x->least, x->want_least);
	ck_assert_uint_ge(x->offered, x->want_offered * seeds);
}

#define STEP .seeds = 20, .all_seeds = 20, .want = 190, .want_least = 184, .want_offered = 193
/* Of what people get wrong much can be mended in two ways: add.f32 of f64 registers, rcp without a rounding, mbarrier.arrive
 * with a scope and no .sem.  Of half a million calls drawn so, those that are drawn 8 times or more would be named 2 of 200
 * more often by who knew what each of them was meant as most often. */
#define PEOPLE .seeds = 2, .all_seeds = 20
START_TEST(people_are_told_what_they_meant)
{
	static sample samples[] = {
		{ .what = "calls, one step", .from = MISTAKE_LEFT_OUT, .to = MISTAKE_STEPS, STEP },
		{ .what = "text, one step", .by_text = true, .from = MISTAKE_LEFT_OUT, .to = MISTAKE_STEPS, STEP },
		{ .what = "calls, as people do",
		  .from = MISTAKE_STEPS,
		  .to = MISTAKES,
		  PEOPLE,
		  .want = 180,
		  .want_least = 172,
		  .want_offered = 183 },
		{ .what = "text, as people do",
		  .by_text = true,
		  .from = MISTAKE_STEPS,
		  .to = MISTAKES,
		  PEOPLE,
		  .want = 181,
		  .want_least = 168,
		  .want_offered = 187 },
	};
	compare(&samples[_i]);
}
END_TEST

int main(void)
{
	pool_init();
	Suite *s = suite_create("table");
	TCase *t = tcase_create("near");
	tcase_set_timeout(t, 0);
	tcase_add_loop_test(t, people_are_told_what_they_meant, 0, 4);
	suite_add_tcase(s, t);
	return test_main("table near", s);
}
