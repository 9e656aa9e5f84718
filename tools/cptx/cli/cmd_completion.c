/* SPDX-License-Identifier: MIT */
/* cptx completion: a bash script made from what the subcommands say of themselves. */
#include "cli/cli.h"

#include <getopt.h>
#include <string.h>

static void words(const char *choices)
{
	cptx_op_info op;

	if (!strcmp(choices, "@arch"))
		for (size_t i = 0; cptx_target_at(i); i++)
			printf("%s%s", i ? " " : "", cptx_target_at(i)->name);
	else if (!strcmp(choices, "@insn"))
		for (size_t i = 0; cptx_op_at(i, &op); i++)
			printf("%s%s", i ? " " : "", op.name);
	else
		fputs(choices, stdout);
}

static void complete(const char *choices)
{
	if (!choices) {
		fputs("COMPREPLY=()", stdout);
	} else if (!strcmp(choices, "@file")) {
		fputs("COMPREPLY=($(compgen -f -- \"$cur\"))", stdout);
	} else {
		fputs("COMPREPLY=($(compgen -W '", stdout);
		words(choices);
		fputs("' -- \"$cur\"))", stdout);
	}
	fputs("; return;;\n", stdout);
}

static void command(const cli_command *c)
{
	printf("\t%s)\n\t\tcase \"$prev\" in\n", c->name);
	for (size_t i = 0; i < c->noption; i++) {
		const cli_option *o = &c->options[i];
		if (!o->argument)
			continue;
		printf("\t\t--%s", o->name);
		if (o->letter)
			printf("|-%c", o->letter);
		fputs(") ", stdout);
		complete(o->choices);
	}
	fputs("\t\tesac\n\t\tCOMPREPLY=($(compgen -W '--help", stdout);
	for (size_t i = 0; i < c->noption; i++)
		printf(" --%s", c->options[i].name);
	if (c->operand_choices) {
		putchar(' ');
		words(c->operand_choices);
	}
	fputs("' -- \"$cur\"));;\n", stdout);
}

static void names_of_commands(void)
{
	for (size_t i = 0; i < cli_ncommand; i++)
		printf(" %s", cli_commands[i]->name);
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	const char *value;
	int status = EXIT_OK;

	if (cli_next(cmd, argc, argv, &value, &status) == -2)
		return status;
	if (argc - optind != 1 || strcmp(argv[optind], "bash"))
		return cli_usage(cmd, "name the shell: bash");
	fputs("# bash completion of cptx.  Install: cptx completion bash > ~/.local/share/bash-completion/completions/cptx\n"
	      "_cptx()\n{\n\tlocal cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
	      "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W '--help --version help",
	      stdout);
	names_of_commands();
	fputs("' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase \"${COMP_WORDS[1]}\" in\n\thelp)\n\t\tCOMPREPLY=($(compgen -W '",
	      stdout);
	names_of_commands();
	fputs("' -- \"$cur\"));;\n", stdout);
	for (size_t i = 0; i < cli_ncommand; i++)
		command(cli_commands[i]);
	fputs("\tesac\n}\ncomplete -F _cptx cptx\n", stdout);
	return cli_flush(cmd, EXIT_OK);
}

const cli_command cmd_completion = {
	.name = "completion",
	.arguments = "bash",
	.about = "Prints a completion script for the shell.",
	.operand_choices = "bash",
	.run = run,
};
