/* SPDX-License-Identifier: MIT */
/* cptx fmt and cptx check: PTX files, printed in one form, and judged. */
#include "cli/cli.h"
#include "reference/number.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARCHS = 32 };

static void report(void *user, const cptx_error *e)
{
	uint32_t *n = user;

	*n += 1;
	fprintf(stderr, "%s\n", e->text);
}

/* The module, even where the text has errors; NULL, after a message, if there is none. */
static cptx_module *parse(const cli_command *cmd, const char *path, bool keep, uint32_t most_errors, cptx_report_fn to,
                          void *user, uint32_t *n)
{
	size_t size = 0;
	char *text = cli_read(cmd, path, &size);

	if (!text)
		return NULL;
	cptx_module *m = cptx_parse(text, size,
	                            &(cptx_parse_opt){ .name = strcmp(path, "-") ? path : "<stdin>",
	                                               .keep = keep,
	                                               .most_errors = most_errors,
	                                               .report = to,
	                                               .user = user });
	free(text);
	if (*n == most_errors)
		cli_failed(cmd, "%s: stopped after %u errors, and read no further; `cptx check --errors N` goes on to the N-th",
		           path, (unsigned)*n);
	const cptx_error *e = cptx_module_error(m);
	if (e && (!m || !e->line))
		cli_failed(cmd, "%s: %s", path, e->text); /* what has no place in the text was not reported yet */
	return m;
}

cptx_module *cli_parse(const cli_command *cmd, const char *path, bool keep, uint32_t most_errors)
{
	uint32_t n = 0;
	cptx_module *m = parse(cmd, path, keep, most_errors, report, &n, &n);

	if (m && cptx_module_error(m)) {
		cptx_module_destroy(m);
		return NULL;
	}
	return m;
}

/* ---- fmt ---- */

enum { FMT_KEEP, FMT_ARCH, FMT_OUTPUT };
static const cli_option fmt_options[] = {
	[FMT_KEEP] = { "keep", 0, NULL, "keep comments, blanks and order as they stand", NULL },
	[FMT_ARCH] = { "arch", 'a', "ARCH", "print for another target", "@arch" },
	[FMT_OUTPUT] = { "output", 'o', "FILE", "write there; - is standard output (the default)", "@file" },
};

static int run_fmt(const cli_command *cmd, int argc, char **argv)
{
	const char *value, *arch = NULL, *output = "-";
	int status = EXIT_OK, option;
	bool keep = false;

	while ((option = cli_next(cmd, argc, argv, &value, &status)) >= 0) {
		switch (option) {
		case FMT_KEEP: keep = true; break;
		case FMT_ARCH:
			if (!cli_target(cmd, value))
				return EXIT_USAGE;
			arch = value;
			break;
		case FMT_OUTPUT: output = value; break;
		}
	}
	if (option == -2)
		return status;
	if (optind + 1 != argc)
		return cli_usage(cmd, "give one file, or - for standard input");
	cptx_module *m = cli_parse(cmd, argv[optind], keep, CLI_MOST_ERRORS);
	if (!m)
		return EXIT_FAILED;
	cptx_error err = { .code = CPTX_OK };
	cptx_ptx *ptx = cptx_emit(m, arch, &(cptx_emit_opt){ .keep = keep }, &err);
	if (!ptx)
		status = cli_failed(cmd, "%s", err.text);
	else if (!cli_write(cmd, output, cptx_ptx_text(ptx), cptx_ptx_size(ptx)))
		status = EXIT_FAILED;
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return status;
}

const cli_command cmd_fmt = {
	.name = "fmt",
	.arguments = "[OPTION]... FILE",
	.about = "Prints a PTX file in one normal form, or for another target.",
	.details = "Comments stay, one to a line. Printing what was printed changes nothing.\n",
	.options = fmt_options,
	.noption = sizeof fmt_options / sizeof *fmt_options,
	.operand_choices = "@file",
	.run = run_fmt,
};

/* ---- check ---- */

enum { CHECK_ARCH, CHECK_ERRORS };
static const cli_option check_options[] = {
	[CHECK_ARCH] = { "arch", 'a', "ARCH", "as ptxas -arch; may be given several times (default: the file's target)",
	                 "@arch" },
	[CHECK_ERRORS] = { "errors", 'e', "N", "stop after so many errors of a file (default 1000)", NULL },
};

/* The errors of a file, in the order in which they were found. */
typedef struct file_error {
	char *text;
	uint32_t line, column, order;
} file_error;
typedef struct error_list {
	uint32_t n; /* the first member: see parse() */
	file_error *at;
	size_t cap;
	bool no_memory;
} error_list;

static void collect(void *user, const cptx_error *e)
{
	error_list *list = user;

	if (list->n == list->cap) {
		size_t cap = list->cap ? 2 * list->cap : 64;
		file_error *grown = realloc(list->at, cap * sizeof *grown);
		list->no_memory |= !grown;
		if (!grown)
			return;
		list->at = grown, list->cap = cap;
	}
	if (list->n && !strcmp(list->at[0].text, e->text)) /* cptx_check reports the first one again */
		return;
	list->at[list->n] = (file_error){ strdup(e->text), e->line, e->column, list->n };
	list->no_memory |= !list->at[list->n].text;
	list->n += list->at[list->n].text != NULL;
}

static int by_place(const void *a, const void *b)
{
	const file_error *x = a, *y = b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->column != y->column)
		return x->column < y->column ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* Prints the first `most` errors.  One that several targets have stands in the list several times. */
static void print_errors(const cli_command *cmd, const char *path, const error_list *list, uint32_t most, bool told)
{
	uint32_t printed = 0;

	for (uint32_t i = 0; i < list->n; i++) {
		if (i && !strcmp(list->at[i - 1].text, list->at[i].text))
			continue;
		if (printed == most) {
			if (!told)
				cli_failed(cmd, "%s: stopped after %u errors; `cptx check --errors N` goes on to the N-th", path,
				           (unsigned)most);
			return;
		}
		fprintf(stderr, "%s\n", list->at[i].text);
		printed++;
	}
}

static bool check_file(const cli_command *cmd, const char *path, const char **arch, int narch, uint32_t most)
{
	error_list list = { 0 };
	cptx_module *m = parse(cmd, path, false, most, collect, &list, &list.n);
	uint32_t misread = list.n;
	bool good = m && !cptx_module_error(m);

	for (int a = 0; m && a < narch; a++)
		good &= !cptx_check(m, arch[a], collect, &list);
	if (misread) /* what the instructions lack was found behind all errors of reading */
		qsort(list.at, list.n, sizeof *list.at, by_place);
	print_errors(cmd, path, &list, most, misread == most);
	good &= !list.n;
	if (list.no_memory)
		good = !cli_failed(cmd, "out of memory");
	for (uint32_t i = 0; i < list.n; i++)
		free(list.at[i].text);
	free(list.at);
	cptx_module_destroy(m);
	return good;
}

static int run_check(const cli_command *cmd, int argc, char **argv)
{
	const char *value, *arch[MOST_ARCHS];
	int status = EXIT_OK, narch = 0, option;
	uint32_t most = CLI_MOST_ERRORS;
	uint64_t given;

	while ((option = cli_next(cmd, argc, argv, &value, &status)) >= 0) {
		if (option == CHECK_ERRORS) {
			if (!number_dims(value, &given, 1, UINT32_MAX))
				return cli_usage(cmd, "--errors %s: a number from 1 on", value);
			most = (uint32_t)given;
			continue;
		}
		if (!cli_target(cmd, value))
			return EXIT_USAGE;
		if (narch == MOST_ARCHS)
			return cli_usage(cmd, "at most %d targets", MOST_ARCHS);
		arch[narch++] = value;
	}
	if (option == -2)
		return status;
	if (optind == argc)
		return cli_usage(cmd, "give a file, or - for standard input");
	if (!narch)
		arch[narch++] = NULL;
	for (int i = optind; i < argc; i++)
		if (!check_file(cmd, argv[i], arch, narch, most))
			status = EXIT_FAILED;
	return status;
}

const cli_command cmd_check = {
	.name = "check",
	.arguments = "[OPTION]... FILE...",
	.about = "Checks PTX files: every error, with its place and what would be right.",
	.details =
		"Errors go to standard error, as file:line:column: error: what; what would be right.\n"
		"The verdicts are those of ptxas. Stricter on purpose: numbers that it would cut in silence, addresses of\n"
		"too few bits, sums and indices in registers outside of addresses, and what it takes though no manual has it.\n"
		"Exit status: 0 no error, 1 errors, 2 wrong usage.\n",
	.options = check_options,
	.noption = sizeof check_options / sizeof *check_options,
	.operand_choices = "@file",
	.run = run_check,
};
