/* SPDX-License-Identifier: MIT */
/*
 * expected.txt says of some thousand instructions which targets have them, from which version on.  It has a line for every
 * row of the table and for every value of its modifiers, with the others at their least, and other instructions that ptxas
 * takes; so a row that is lost, a value too many and a target or version that was changed are seen without ptxas, which
 * judged each line once, and judges a sample (CPTX_TABLE_WHOLE: all) where there is one.  CPTX_BLESS=1 writes what the table
 * has now, but keeps lines that it lost and ptxas takes.
 *
 * Registers have no numbers there, and {%r*4} is a vector of four.  Lines stand behind "= " and where they are: the lowest
 * .version, if that of the target does not do, and targets; sm_80-sm_121a are all from the first to the last, in the order
 * of target.def.
 */
#include "cases.h"
#include "judge.h"
#include "../ask.h"
#include "report.h"
#include "shape.h"
#include "test.h"

#include "parse/parse.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_LINES = 40000, SAMPLE = 90, ATTEMPTS = 60 };

typedef struct expected {
	char *text;          /* the instruction, as the file has it */
	const char *heading; /* where it is */
	unsigned line, form /* that it was made of, + 1; 0: read from the file */;
	bool known; /* to the table and the file */
} expected;

typedef struct lines {
	expected *e;
	unsigned n;
} lines;

static char *copy(const char *s)
{
	char *p = strdup(s);
	must(p != NULL, "strdup");
	return p;
}

static void add_line(lines *l, const char *text, const char *heading, unsigned line, unsigned form)
{
	must(l->n < MOST_LINES, "more lines than expected.txt has room for");
	l->e[l->n++] = (expected){ copy(text), copy(heading), line, form, false };
}

static void free_lines(lines *l)
{
	for (unsigned i = 0; i < l->n; i++)
		free(l->e[i].text), free((void *)(uintptr_t)l->e[i].heading);
	free(l->e);
}

static int by_text(const void *a, const void *b) { return strcmp(((const expected *)a)->text, ((const expected *)b)->text); }

static int by_heading(const void *a, const void *b)
{
	int order = strcmp(((const expected *)a)->heading, ((const expected *)b)->heading);
	return order ? order : by_text(a, b);
}

/* ---- where an instruction is ---- */

/* What the library makes of the text of an instruction: false and why it cannot be read, or the lowest versions. */
static bool versions_of(const char *line, uint8_t version[ARCH_TARGETS], char why[400])
{
	unsigned oldest = strstr(line, "%rq") ? 83 : 63; /* which declares registers of 128 bits */
	char *head = pool_file_head("sm_75", oldest, false), *kernel = pool_kernel_head(0, oldest, line);
	size_t n = strlen(head) + strlen(kernel) + strlen(line) + 16;
	char *text = malloc(n);

	must(text != NULL, "malloc");
	snprintf(text, n, "%s%s%s\nret;\n}\n", head, kernel, line);
	cptx_module *m = cptx_parse(text, strlen(text), NULL);
	bool ok = !cptx_module_error(m);
	if (!ok)
		snprintf(why, 400, "%.399s", cptx_module_error(m)->text);
	for (unsigned i = 0; i < arch_ntarget && ok; i++) {
		cptx_ptx *ptx = cptx_emit(m, arch_targets[i].name, NULL, NULL);
		version[i] = ptx ? (uint8_t)cptx_ptx_version(ptx) : 0;
		cptx_ptx_destroy(ptx);
	}
	cptx_module_destroy(m);
	free(text), free(head), free(kernel);
	return ok;
}

/* ---- the lines that the table gives ---- */

static const arch_group *group_of(unsigned form, unsigned i) { return &arch_groups[arch_forms[form].group + i]; }

/* The value of a group that most targets have: none, if it may be left out. */
static uint16_t least_of(const arch_group *g)
{
	for (unsigned a = 0; a < g->nalt && g->kind == GROUP_REQUIRED; a++)
		if (!arch_alts[g->alt + a].avail)
			return arch_alts[g->alt + a].mod;
	return g->kind == GROUP_REQUIRED ? arch_alts[g->alt].mod : 0;
}

static void repeat(spelling *s)
{
	for (unsigned i = 0; i < arch_forms[s->form].ngroup; i++)
		if (group_of(s->form, i)->kind == GROUP_REPEAT)
			s->mod[i] = s->mod[group_of(s->form, i)->same];
}

static bool is_built(const trial *t, char line[LINE])
{
	outcome o;

	if (!trial_lowest(t, BY_CALL, &o))
		return false;
	memcpy(line, o.line, LINE);
	return true;
}

static bool takes(unsigned form, const trial *t)
{
	uint16_t mods[ARCH_GROUPS] = { 0 };
	arch_match m;

	return parse_opcode(form, t->opcode, strlen(t->opcode), mods) && arch_match_form(form, t->vals, mods, NULL, false, &m);
}

static bool is_as_early(unsigned other, unsigned form)
{
	const uint8_t *a = arch_avails[arch_forms[other].avail], *b = arch_avails[arch_forms[form].avail];

	for (unsigned i = 0; i < arch_ntarget; i++)
		if (b[i] && (!a[i] || a[i] > b[i]))
			return false;
	return true;
}

/* Does another form of the instruction take it too, wherever this one does? */
static bool has_twin(unsigned form, const trial *t)
{
	const arch_op *op = &arch_ops[arch_forms[form].op];

	for (unsigned other = op->form; other < op->form + op->nform; other++)
		if (other != form && is_as_early(other, form) && takes(other, t))
			return true;
	return false;
}

/* A spelling with that value (ARCH_GROUPS: any): the others at their least, or at random. */
static spelling some_spelling(unsigned form, unsigned group, uint16_t value, dice *d, bool least)
{
	spelling s = { .form = (uint16_t)form };

	for (unsigned i = 0; i < arch_forms[form].ngroup; i++) {
		const arch_group *g = group_of(form, i);
		unsigned some = !least && g->nalt ? roll(d, g->nalt + (g->kind == GROUP_OPTIONAL)) : 0;
		s.mod[i] = i == group ? value : least ? least_of(g) : some < g->nalt ? arch_alts[g->alt + some].mod : 0;
	}
	repeat(&s);
	return s;
}

/* With the other modifiers at their least; with some others, if a rule forbids that or another form takes it too. */
static bool build_with(unsigned form, unsigned group, uint16_t value, spelling *s, char line[LINE])
{
	dice d = { spell_seed(form) + group + value };
	char other[LINE];
	bool found = false;

	for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
		spelling one = some_spelling(form, group, value, &d, !attempt);
		trial t = trial_of(&one);
		bool twin = found || takes(form, &t) ? has_twin(form, &t) : false;
		if (!takes(form, &t) || (found && twin) || !is_built(&t, found ? other : line))
			continue;
		*s = one;
		if (found)
			memcpy(line, other, LINE);
		found = true;
		if (!twin)
			break;
	}
	return found;
}

/* Builds the spelling with an operand of another kind, which no other form takes: forms may differ in nothing else. */
static bool build_own(unsigned form, const spelling *s, char line[LINE])
{
	const cptx_val kinds[] = { cptx_sink(), pool_symbol(CPTX_SHARED), pool_symbol(CPTX_GLOBAL), pool_symbol(CPTX_TEXREF),
		                       pool_reg(CPTX_U32, 5) };
	trial plain = trial_of(s);

	for (unsigned i = 0; i < arch_forms[form].noperand; i++)
		for (unsigned n = 0; n < ARRAY_LEN(kinds); n++) {
			trial t = trial_with(s, &plain, i, kinds[n]);
			if (takes(form, &t) && !has_twin(form, &t) && is_built(&t, line))
				return true;
		}
	return false;
}

static void add_trial(lines *l, const char *line, unsigned form)
{
	uint8_t version[ARCH_TARGETS] = { 0 };
	char shape[LINE], text[SHAPED_LINE], heading[HEADING], why[400] = "";

	shape_of_line(line, shape);
	shape_to_line(shape, text);
	if (!versions_of(text, version, why)) {
		printf("%s: %s\n", text, why);
		exit(2);
	}
	shape_heading(version, heading);
	add_line(l, shape, heading, 0, form + 1);
}

static void add_spelling(lines *l, const spelling *s, char line[LINE])
{
	trial t = trial_of(s);

	add_trial(l, line, s->form);
	if (has_twin(s->form, &t) && build_own(s->form, s, line))
		add_trial(l, line, s->form);
}

static void add_form(lines *l, unsigned form)
{
	const arch_form *f = &arch_forms[form];
	char line[LINE];
	spelling s;

	if (!build_with(form, ARCH_GROUPS, 0, &s, line))
		return;
	add_spelling(l, &s, line);
	trial full = trial_full(&s);
	if (is_built(&full, line))
		add_trial(l, line, form);
	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = group_of(form, i);
		for (unsigned a = 0; a < g->nalt && g->kind != GROUP_REPEAT; a++)
			if (build_with(form, i, arch_alts[g->alt + a].mod, &s, line))
				add_spelling(l, &s, line);
	}
}

/* Sorted, each text once. */
static lines lines_of_table(void)
{
	lines l = { malloc(MOST_LINES * sizeof(expected)), 0 };
	unsigned n = 0;

	must(l.e != NULL, "malloc");
	for (unsigned form = 0; form < arch_nform; form++)
		add_form(&l, form);
	qsort(l.e, l.n, sizeof *l.e, by_text);
	for (unsigned i = 0; i < l.n; i++) {
		if (n && !strcmp(l.e[n - 1].text, l.e[i].text)) {
			free(l.e[i].text), free((void *)(uintptr_t)l.e[i].heading);
			continue;
		}
		l.e[n++] = l.e[i];
	}
	l.n = n;
	return l;
}

/* ---- the file ---- */

#define KEPT TABLE_DIR "/expected.txt"

static lines lines_of_file(void)
{
	lines l = { malloc(MOST_LINES * sizeof(expected)), 0 };
	char text[LINE], heading[HEADING] = "";
	FILE *f = fopen(KEPT, "r");

	must(l.e != NULL, "malloc");
	for (unsigned line = 1; f && fgets(text, sizeof text, f); line++) {
		text[strcspn(text, "\n")] = 0;
		if (!strncmp(text, "= ", 2))
			snprintf(heading, sizeof heading, "%.*s", HEADING - 1, text + 2);
		else if (*text && *text != '#')
			add_line(&l, text, heading, line, 0);
	}
	if (f)
		fclose(f);
	qsort(l.e, l.n, sizeof *l.e, by_text);
	return l;
}

static bool is_blessed(void)
{
	const char *bless = getenv("CPTX_BLESS");
	return bless && *bless == '1';
}

/* ---- ptxas ---- */

/* The first target of a heading, and its version. */
static const cptx_target *first_of(const char *heading, unsigned *version)
{
	const char *name = strstr(heading, "sm_");
	unsigned major = 0, minor = 0;
	char text[16];

	if (!name)
		return NULL;
	snprintf(text, sizeof text, "%.*s", (int)MIN(strcspn(name, " -;"), (size_t)15), name);
	const cptx_target *t = cptx_target_find(text);
	must(t != NULL, heading);
	*version = sscanf(heading, "PTX %u.%u", &major, &minor) == 2 ? MAX(major * 10 + minor, (unsigned)t->ptx) : t->ptx;
	return t;
}

/* ptxas's word on each line, on the first of its targets: 1 taken, 0 refused, -1 not asked, as it is too new. */
static int *ask_ptxas(const lines *l, const bool *wanted)
{
	int *message = malloc((l->n + 1) * sizeof *message);
	unsigned *number = malloc((l->n + 1) * sizeof *number), version = 0;
	char line[SHAPED_LINE];
	judge *j = judge_new();

	must(message && number, "malloc");
	for (unsigned i = 0; i < l->n; i++) {
		const cptx_target *t = wanted[i] ? first_of(l->e[i].heading, &version) : NULL;
		message[i] = t && judge_reads(version) ? 1 : -1;
		if (message[i] < 0)
			continue;
		shape_to_line(l->e[i].text, line);
		number[i] = judge_ask(j, t, version, line);
	}
	judge_run(j);
	for (unsigned i = 0; i < l->n; i++)
		if (message[i] > 0)
			message[i] = judge_said(j, number[i])->ok;
	judge_free(j);
	free(number);
	return message;
}

/* ---- tests ---- */

static lines table, file, before; /* before: what the file had, if it was written anew */

static void write_file(void)
{
	bool *lost = calloc(file.n + 1, sizeof *lost);
	lines all = { malloc(MOST_LINES * sizeof(expected)), 0 };

	must(lost && all.e, "malloc");
	for (unsigned i = 0; i < table.n; i++)
		add_line(&all, table.e[i].text, table.e[i].heading, 0, 0);
	for (unsigned i = 0; i < file.n; i++)
		lost[i] = !bsearch(&file.e[i], table.e, table.n, sizeof *table.e, by_text);
	int *message = ask_ptxas(&file, lost);
	for (unsigned i = 0; i < file.n; i++) {
		uint8_t version[ARCH_TARGETS] = { 0 };
		char line[SHAPED_LINE], heading[HEADING], why[400];
		if (!lost[i] || !message[i])
			continue;
		shape_to_line(file.e[i].text, line);
		if (versions_of(line, version, why))
			shape_heading(version, heading);
		else
			snprintf(heading, sizeof heading, "%s", file.e[i].heading);
		add_line(&all, file.e[i].text, heading, 0, 0);
	}
	qsort(all.e, all.n, sizeof *all.e, by_heading);
	FILE *f = fopen(KEPT, "w");
	must(f != NULL, KEPT);
	fputs("# Instructions and the targets that have them: test_expected.c says how to read and to write this.\n", f);
	for (unsigned i = 0; i < all.n; i++) {
		if (!i || strcmp(all.e[i - 1].heading, all.e[i].heading))
			fprintf(f, "= %s\n", all.e[i].heading);
		fprintf(f, "%s\n", all.e[i].text);
	}
	fclose(f);
	free(lost), free(message);
	free_lines(&all);
}

START_TEST(lines_are_where_they_were)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < file.n; i++) {
		uint8_t version[ARCH_TARGETS] = { 0 };
		char line[SHAPED_LINE], heading[HEADING] = "", why[400] = "";
		const expected *same = bsearch(&file.e[i], table.e, table.n, sizeof *table.e, by_text);
		shape_to_line(file.e[i].text, line);
		bool reads = same || versions_of(line, version, why);
		if (same)
			snprintf(heading, sizeof heading, "%s", same->heading);
		else if (reads)
			shape_heading(version, heading);
		if (reads && !strcmp(heading, file.e[i].heading))
			continue;
		if (bad++ < REPORT_MOST || getenv("CPTX_TABLE_ALL"))
			printf("expected.txt:%u: %s\n    expected: %s\n    is now:   %s\n", file.e[i].line, file.e[i].text,
			       file.e[i].heading, reads ? heading : why);
	}
	printf("%u instructions expected\n", file.n);
	ck_assert_uint_gt(file.n, 1000);
	ck_assert_msg(!bad, "%u of them are lost or elsewhere", bad);
}
END_TEST

START_TEST(nothing_else_is_there)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < table.n; i++)
		if (!bsearch(&table.e[i], file.e, file.n, sizeof *file.e, by_text) && bad++ < REPORT_MOST)
			report_add(&(report){ 0 }, table.e[i].form - 1, "expected.txt lacks what the table has", table.e[i].text,
			           table.e[i].heading);
	ck_assert_msg(!bad, "%u instructions are new; CPTX_BLESS=1 takes them, if ptxas does", bad);
}
END_TEST

/*
 * What the two tests above rest on: an instruction of the file that only this form makes, and with each value, if it is one
 * that can be lost; so they fail when any form or value is lost, or comes later than it did.
 */
static void count_witnesses(unsigned form, unsigned *lost, unsigned *values)
{
	const arch_form *f = &arch_forms[form];
	const arch_operand *last = f->noperand ? &arch_operands[f->operand + f->noperand - 1u] : NULL;
	bool sampler = last && last->space == CPTX_SAMPLERREF; /* the pool has none by name */
	char line[LINE], shape[LINE];
	bool any = false;
	spelling s;

	for (unsigned i = 0; i <= f->ngroup; i++) {
		const arch_group *g = i < f->ngroup ? group_of(form, i) : NULL;
		for (unsigned a = 0; g ? a < g->nalt && g->kind != GROUP_REPEAT : a < 1; a++) {
			if (!build_with(form, g ? i : ARCH_GROUPS, g ? arch_alts[g->alt + a].mod : 0, &s, line))
				continue;
			trial t = trial_of(&s);
			bool own = !has_twin(form, &t) || build_own(form, &s, line);
			shape_of_line(line, shape);
			bool seen = own && bsearch(&(expected){ .text = shape }, file.e, file.n, sizeof *file.e, by_text);
			any |= seen;
			if (g && !seen && !sampler && ++*values <= REPORT_MOST)
				printf("%s:%u: nothing would tell if .%s were lost: %s\n", f->file, f->line,
				       arch_mods[arch_alts[g->alt + a].mod].name, shape);
		}
	}
	if (!any && ++*lost)
		printf("%s:%u: nothing would tell if this form were lost: %s\n", f->file, f->line, f->text);
}

START_TEST(a_lost_form_would_be_seen)
{
	unsigned lost = 0, values = 0;

	for (unsigned form = 0; form < arch_nform; form++)
		count_witnesses(form, &lost, &values);
	printf("%u forms, %u values of modifiers could be lost unseen\n", lost, values);
	ck_assert_uint_eq(lost + values, 0);
}
END_TEST

START_TEST(ptxas_takes_them)
{
	bool *wanted = calloc(file.n + 1, sizeof *wanted);
	unsigned bad = 0;

	if (!test_ptxas()) {
		skip("ptxas not found");
		free(wanted);
		return;
	}
	must(wanted != NULL, "calloc");
	for (unsigned i = 0; i < file.n; i++)
		wanted[i] = spell_whole() || i % SAMPLE == 0 ||
		            (before.e && !bsearch(&file.e[i], before.e, before.n, sizeof *before.e, by_text));
	int *message = ask_ptxas(&file, wanted);
	for (unsigned i = 0; i < file.n; i++)
		if (!message[i]) {
			printf("expected.txt:%u: ptxas refuses %s (%s)\n", file.e[i].line, file.e[i].text, file.e[i].heading);
			bad++;
		}
	free(wanted), free(message);
	ck_assert_uint_eq(bad, 0);
}
END_TEST

int main(void)
{
	pool_init();
	file = lines_of_file();
	table = lines_of_table();
	if (is_blessed()) {
		write_file();
		before = file;
		file = lines_of_file();
	}
	Suite *s = suite_create("table");
	TCase *t = tcase_create("lines"), *rest = tcase_create("rest");
	tcase_set_timeout(t, 0);
	tcase_set_timeout(rest, 0);
	tcase_add_test(t, lines_are_where_they_were);
	tcase_add_test(t, nothing_else_is_there);
	tcase_add_test(rest, a_lost_form_would_be_seen);
	tcase_add_test(rest, ptxas_takes_them);
	suite_add_tcase(s, t);
	suite_add_tcase(s, rest);
	int status = test_main("table expected", s);
	free_lines(&file), free_lines(&table), free_lines(&before);
	return status;
}
