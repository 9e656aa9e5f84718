/* cptx insn: the instruction table. */
#include "cli.h"

#include <fnmatch.h>
#include <getopt.h>
#include <string.h>

enum { OPTION_ARCH };
static const cli_option options[] = {
	[OPTION_ARCH] = { "arch", 'a', "NAME", "only forms that this target has", "@arch" },
};

/* The pattern is a glob on the call's name or the PTX spelling of a form; without wildcards, a part of either. */
static bool matches(const char *pattern, const char *text)
{
	return strpbrk(pattern, "*?[") ? fnmatch(pattern, text, 0) == 0 : strstr(text, pattern) != NULL;
}

/* "cp.async" of "cp.async.cop=cg...": the fixed start of a spelling. */
static void spelling(const char *form, char *out, size_t size)
{
	size_t n = 0;
	while (form[n] && form[n] != ' ' && form[n] != '{' && n + 1 < size) {
		if (form[n] == '=') { /* the label is no part of it */
			while (n && out[n] != '.')
				n--;
			break;
		}
		out[n] = form[n];
		n++;
	}
	out[n] = 0;
}

static void show(size_t i, const cptx_op_info *op, const cptx_target *target)
{
	cptx_form_info f;

	printf("%s: %s\n  %s; call: cptx_%s(k, ...)\n", op->name, op->about, op->chapter, op->name);
	for (size_t j = 0; cptx_form_at(i, j, &f); j++) {
		if (target && !cptx_form_on_target(i, j, target))
			continue;
		printf("    %s\n        %s%s%s\n", f.text, f.availability, f.constraint ? "; " : "",
		       f.constraint ? f.constraint : "");
	}
}

static bool wanted(const cptx_op_info *op, size_t i, const char *pattern, const cptx_target *target)
{
	cptx_form_info f;
	bool match = matches(pattern, op->name), on = !target;

	for (size_t j = 0; cptx_form_at(i, j, &f); j++) {
		char start[64];
		spelling(f.text, start, sizeof start);
		match |= matches(pattern, start);
		on |= target && cptx_form_on_target(i, j, target);
	}
	return match && on;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	const cptx_target *target = NULL;
	const char *value, *pattern;
	cptx_op_info op;
	size_t found = 0;
	int status = EXIT_OK;

	for (int option; (option = cli_next(cmd, argc, argv, &value, &status)) != -1;) {
		if (option == -2)
			return status;
		if (!(target = cptx_target_find(value)))
			return cli_usage(cmd, "there is no target '%s'; `cptx arch` lists them", value);
	}
	if (argc - optind > 1)
		return cli_usage(cmd, "one PATTERN at most");
	pattern = optind < argc ? argv[optind] : NULL;
	bool exact = false;
	for (size_t i = 0; pattern && cptx_op_at(i, &op); i++)
		exact |= !strcmp(op.name, pattern);
	for (size_t i = 0; cptx_op_at(i, &op); i++) {
		if (exact ? strcmp(op.name, pattern) != 0 || !wanted(&op, i, pattern, target)
		          : !wanted(&op, i, pattern ? pattern : "*", target))
			continue;
		found++;
		if (pattern)
			show(i, &op, target);
		else
			printf("%-24s %2zu form%s  %s\n", op.name, op.nforms, op.nforms == 1 ? " " : "s", op.about);
	}
	if (!found)
		return cli_failed(cmd, "no instruction of the table matches '%s'%s%s; `cptx insn` lists them",
		                  pattern ? pattern : "*", target ? " on " : "", target ? target->name : "");
	return cli_flush(cmd, EXIT_OK);
}

const cli_command cmd_insn = {
	.name = "insn",
	.arguments = "[--arch NAME] [PATTERN]",
	.about = "Looks up instructions: forms, operands, availability.",
	.details =
		"PATTERN is a part of a name or spelling (ldmatrix, cp.async), or a glob (mma*). Without one, all are listed.\n"
		"Forms read as in the PTX manual: {.x} may be left out, .label=a|b is a choice, [a] an address.\n",
	.options = options,
	.noption = sizeof options / sizeof options[0],
	.operand_choices = "@insn",
	.run = run,
};
