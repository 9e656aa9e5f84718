/* SPDX-License-Identifier: MIT */
/* cptx insn: the instruction table, as pages; and how much of the PTX manual it has. */
#include "cli/cli.h"

#include <fnmatch.h>
#include <getopt.h>
#include <string.h>

/* A value of a modifier: the field of the call, its name in C and in PTX. */
typedef struct page_value {
	const char *field, *id, *text, *about /* "" of a type */;
	int is_flag;                /* 1 sets it */
	unsigned long long targets; /* that have it, a bit for each, in the order of cptx_target_at */
} page_value;

/* One instruction: its builder call, how its spellings begin, and the lines of its page, each list ended by NULL. */
typedef struct page {
	const char *name, *mnemonic;
	const char *const *head, *const *forms /* two lines each */, *const *operands;
	const page_value *values; /* ended by a NULL field */
	const char *const *notes, *const *example;
} page;

/* One section of the manual. */
typedef struct coverage {
	const char *chapter, *section, *reason /* why the table has nothing of it; "" if it has */;
	const char *of; /* the section where its forms are listed, "" if that is it */
	unsigned nop, nform;
} coverage;

#include "insn_pages.inc" /* pages, by number as cptx_op_at has them, and sections */

enum { NPAGES = sizeof pages / sizeof pages[0], NSECTIONS = sizeof sections / sizeof sections[0] };
enum { OPTION_ARCH, OPTION_COVERAGE };
static const cli_option options[] = {
	[OPTION_ARCH] = { "arch", 'a', "NAME", "only what this target has", "@arch" },
	[OPTION_COVERAGE] = { "coverage", 'c', NULL, "what of each section of the PTX manual the table has", NULL },
};

/* The pattern is a glob on the call's name or the start of a spelling; without wildcards, a part of either. */
static bool matches(const char *pattern, const char *text)
{
	return strpbrk(pattern, "*?[") ? fnmatch(pattern, text, 0) == 0 : strstr(text, pattern) != NULL;
}

/* Is `spelling` a whole one, of this form (NPAGES: of any) of the instruction, on the target (NULL: on any)? */
static bool is_spelled(const char *spelling, size_t i, size_t j, const cptx_target *target)
{
	size_t op, form;

	for (size_t n = 0; cptx_form_spelled(spelling, n, &op, &form); n++)
		if (op == i && (form == j || j == NPAGES) && (!target || cptx_form_on_target(op, form, target)))
			return true;
	return false;
}

/*
 * How well a page answers: 4 by its name or mnemonic, 3 if it has this spelling, 2 if its mnemonic begins with these words,
 * 1 as a pattern, 0 not.
 */
static unsigned rank(size_t i, const char *pattern)
{
	const page *p = &pages[i];
	size_t n = strlen(pattern);

	if (!n || pattern[0] == '.' || pattern[n - 1] == '.') /* no name has an empty part */
		return 0;
	if (!strcmp(p->name, pattern) || !strcmp(p->mnemonic, pattern))
		return 4;
	if (is_spelled(pattern, i, NPAGES, NULL))
		return 3;
	if (!strncmp(p->mnemonic, pattern, n) && p->mnemonic[n] == '.')
		return 2;
	return matches(pattern, p->name) || matches(pattern, p->mnemonic);
}

static bool is_on(size_t op, const cptx_target *target)
{
	bool on = !target;

	for (size_t j = 0; !on && pages[op].forms[2 * j]; j++)
		on = cptx_form_on_target(op, j, target);
	return on;
}

static void print_lines(const char *const *lines)
{
	for (; *lines; lines++)
		puts(*lines);
}

static bool value_on(const page_value *v, const cptx_target *target)
{
	for (size_t i = 0; target && cptx_target_at(i); i++)
		if (cptx_target_at(i) == target)
			return v->targets >> i & 1;
	return !target;
}

static void print_value(const page_value *v)
{
	if (v->is_flag)
		printf("    .%s = 1  (.%s)  %s\n", v->field, v->text, v->about);
	else
		printf("    .%s = %s  (.%s)  %s\n", v->field, v->id, v->text, v->about);
}

/* The types of a field on one line. */
static void print_values(const page_value *v, const cptx_target *target)
{
	const char *types_of = NULL;
	bool any = false;

	for (; v->field; v++) {
		bool type = !*v->about && !v->is_flag;
		if (!value_on(v, target))
			continue;
		if (!any)
			puts("MODIFIERS");
		any = true;
		if (types_of && (!type || strcmp(types_of, v->field))) {
			putchar('\n');
			types_of = NULL;
		}
		if (!type)
			print_value(v);
		else if (types_of)
			printf(", %s", v->id);
		else
			printf("    .%s = %s", types_of = v->field, v->id);
	}
	if (types_of)
		putchar('\n');
}

/* Prints an example of the spelling that was asked for, in the first form that has it; else one of the instruction. */
static void print_example(size_t i, const cptx_target *target, const char *spelling)
{
	char text[4096];
	size_t op, form;

	for (size_t n = 0; cptx_form_spelled(spelling, n, &op, &form); n++) {
		if (op != i || (target && !cptx_form_on_target(op, form, target)) ||
		    !cptx_spelling_example(spelling, n, text, sizeof text))
			continue;
		puts("EXAMPLE");
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			printf("    %s\n", line);
		return;
	}
	print_lines(pages[i].example);
}

static void show(size_t i, const cptx_target *target, const char *spelling)
{
	const page *p = &pages[i];

	print_lines(p->head);
	if (target && is_spelled(spelling, i, NPAGES, NULL) && !is_spelled(spelling, i, NPAGES, target))
		printf("%s is not on %s; without --arch its form tells where it is\n", spelling, target->name);
	puts("FORMS");
	for (size_t j = 0; p->forms[2 * j]; j++) {
		if (target && !cptx_form_on_target(i, j, target))
			continue;
		printf("%s\n%s\n", p->forms[2 * j], p->forms[2 * j + 1]);
		if (p->forms[2] && is_spelled(spelling, i, j, NULL))
			printf("        ^ %s is spelled so\n", spelling);
	}
	print_lines(p->operands);
	print_values(p->values, target);
	print_lines(p->notes);
	print_example(i, target, spelling);
	putchar('\n');
}

/* A question about modifiers: .dim = CPTX_DIM_2D, .dim, CPTX_DIM_2D, .2d or 2d. */
typedef struct value_query {
	char field[64], value[64]; /* the value in C or in PTX; "": any */
	bool either;               /* `field` may be a value in PTX, too */
} value_query;

/* Copies the words of text up to `end`, without the blanks around them; false: too long. */
static bool copy_word(char to[64], const char *text, const char *end)
{
	while (text < end && *text == ' ')
		text++;
	while (end > text && end[-1] == ' ')
		end--;
	if (end - text >= 64)
		return false;
	memcpy(to, text, (size_t)(end - text));
	to[end - text] = 0;
	return true;
}

static bool read_query(const char *pattern, value_query *q)
{
	const char *text = pattern + (*pattern == '.'), *equals = strchr(text, '='), *end = text + strlen(text);

	*q = (value_query){ .either = !equals };
	if (!equals && !strncmp(text, "CPTX_", 5))
		return copy_word(q->value, text, end);
	return copy_word(q->field, text, equals ? equals : end) && (!equals || copy_word(q->value, equals + 1, end)) &&
	       (*q->field || *q->value);
}

static bool is_asked(const value_query *q, const page_value *v)
{
	if (q->either && *q->field)
		return !strcmp(v->field, q->field) || !strcmp(v->text, q->field);
	return (!*q->field || !strcmp(v->field, q->field)) &&
	       (!*q->value || !strcmp(v->id, q->value) || !strcmp(v->text, q->value + (*q->value == '.')));
}

/* The instructions that have a value, and it; how many. */
static size_t find_value(const char *pattern, const cptx_target *target)
{
	size_t found = 0;
	value_query q;

	for (size_t i = 0; read_query(pattern, &q) && i < NPAGES; i++)
		for (const page_value *v = pages[i].values; v->field; v++)
			if (is_asked(&q, v) && value_on(v, target)) {
				printf("%-31s", pages[i].name);
				print_value(v);
				found++;
			}
	return found;
}

/* The name that a wrong one is nearest to, of instructions or, where it begins with CPTX_ or a dot, of values or fields; ""
 * if there is none. */
static void find_similar(const char *pattern, char name[64])
{
	cli_near near = { .word = pattern + (*pattern == '.') };
	bool is_field = *pattern == '.', is_value = !strncmp(pattern, "CPTX_", 5) || is_field;
	char word[64];

	*name = 0;
	for (size_t i = 0; i < NPAGES; i++) {
		for (const page_value *v = pages[i].values; is_value && v->field; v++)
			cli_near_try(&near, is_field ? v->field : v->id);
		if (is_value)
			continue;
		const char *before = near.best;
		cli_near_try(&near, pages[i].name);
		cli_near_try(&near, pages[i].mnemonic);
		if (near.best != before)
			snprintf(name, 64, "%s", near.best);
		snprintf(word, sizeof word, "%.*s", (int)strcspn(pages[i].mnemonic, "."), pages[i].mnemonic);
		cli_near_try(&near, word);
		if (near.best == word) {
			snprintf(name, 64, "%s", word);
			near.best = name;
		}
	}
	if (is_value && near.best)
		snprintf(name, 64, "%s%s", is_field ? "." : "", near.best);
}

static void list(size_t i)
{
	cptx_op_info op;

	if (cptx_op_at(i, &op))
		printf("%-24s %2zu form%s  %s\n", op.name, op.nforms, op.nforms == 1 ? " " : "s", op.about);
}

static int show_coverage(const cli_command *cmd)
{
	unsigned in = 0, reasoned = 0, forms = 0;
	cptx_op_info op;

	for (size_t i = 0; i < NSECTIONS; i++) {
		const coverage *c = &sections[i];
		if (!i || strcmp(c->chapter, sections[i - 1].chapter))
			printf("%s%s\n", i ? "\n" : "", c->chapter);
		if (c->nop)
			printf("    %-36s %2u instruction%s %3u form%s%s%s\n", c->section, c->nop, c->nop == 1 ? ", " : "s,", c->nform,
			       c->nform == 1 ? "" : "s", *c->of ? ", with " : "", c->of);
		else
			printf("    %-36s -  %s\n", c->section, *c->reason ? c->reason : "MISSING");
		in += c->nop != 0;
		reasoned += !c->nop && *c->reason;
	}
	for (size_t i = 0; cptx_op_at(i, &op); i++)
		forms += (unsigned)op.nforms;
	printf("\n%u sections with instructions, %u without for a reason, %u missing; %u instructions, %u forms\n", in, reasoned,
	       (unsigned)NSECTIONS - in - reasoned, (unsigned)NPAGES, forms);
	return in + reasoned == NSECTIONS ? cli_flush(cmd, EXIT_OK)
	                                  : cli_failed(cmd, "the table lacks %u sections", (unsigned)NSECTIONS - in - reasoned);
}

static int no_such(const cli_command *cmd, const char *pattern, const cptx_target *target)
{
	char name[128];
	size_t n = strlen(pattern);
	char near[64];

	snprintf(name, sizeof name, "%s", pattern);
	while (n && n < sizeof name && name[n - 1] == '.') /* "add." */
		name[--n] = 0;
	find_similar(name, near);
	for (size_t i = 0; target && i < NPAGES; i++)
		if (rank(i, name) > 1 && !is_on(i, target))
			return cli_failed(cmd, "'%s' is not on %s; without --arch its page tells where it is", name, target->name);
	return cli_failed(cmd, "no instruction of the table matches '%s'%s%s; %s%s%s`cptx insn` lists them", pattern,
	                  target ? " on " : "", target ? target->name : "", *near ? "did you mean " : "", near,
	                  *near ? "? " : "");
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	const cptx_target *target = NULL;
	const char *value, *pattern;
	bool cover = false;
	unsigned best = 0;
	int status = EXIT_OK;

	for (int option; (option = cli_next(cmd, argc, argv, &value, &status)) != -1;) {
		if (option == -2)
			return status;
		if (option == OPTION_COVERAGE)
			cover = true;
		else if (!(target = cli_target(cmd, value)))
			return EXIT_USAGE;
	}
	if (argc - optind > 1 || (cover && (target || argc > optind)))
		return cli_usage(cmd, cover ? "--coverage stands alone" : "one NAME at most");
	if (cover)
		return show_coverage(cmd);
	pattern = optind < argc ? argv[optind] : NULL;
	if (pattern && (!strncmp(pattern, "CPTX_", 5) || *pattern == '.') && find_value(pattern, target))
		return cli_flush(cmd, EXIT_OK);
	if (pattern && !strncmp(pattern, "cptx_", 5))
		pattern += 5;
	for (size_t i = 0; pattern && i < NPAGES; i++)
		if (is_on(i, target) || !strcmp(pages[i].name, pattern))
			best = rank(i, pattern) > best ? rank(i, pattern) : best;
	size_t found = 0;
	for (size_t i = 0; i < NPAGES; i++) {
		if (!is_on(i, target) || (pattern && (!best || rank(i, pattern) < best)))
			continue;
		found++;
		if (pattern)
			show(i, target, pattern);
		else
			list(i);
	}
	if (!found && pattern)
		found = find_value(pattern, target);
	if (!found)
		return no_such(cmd, pattern ? pattern : "*", target);
	return cli_flush(cmd, EXIT_OK);
}

const cli_command cmd_insn = {
	.name = "insn",
	.arguments = "[--arch NAME] [NAME] | --coverage",
	.about = "Looks up instructions: forms, operands, availability.",
	.details =
		"NAME is a spelling's start (cp.async, mbarrier.try_wait), a whole spelling (ld.global.u32), whose form is "
		"marked and\n"
		"which the example is of, a builder call's name (cp_async or cptx_cp_async), a part of these, or a glob (mma*);\n"
		"or a modifier's field, value or both (.dim, CPTX_DIM_2D, tile::gather4, '.dim = CPTX_DIM_2D'), for the\n"
		"instructions that have it.  Without one, all are listed.\n"
		"--arch leaves out forms and values that the target lacks.\n"
		"Forms read as in the PTX manual: {.x} may be left out, .label=a|b is a choice, [a] an address.\n",
	.options = options,
	.noption = sizeof options / sizeof options[0],
	.operand_choices = "@insn",
	.run = run,
};
