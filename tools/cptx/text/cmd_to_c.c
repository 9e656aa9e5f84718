/* SPDX-License-Identifier: MIT */
/* cptx to-c: a PTX file as C that builds it. */
#include "cli/cli.h"

#include <getopt.h>

enum { TO_C_MAIN, TO_C_OUTPUT };
static const cli_option options[] = {
	[TO_C_MAIN] = { "main", 0, NULL, "write a whole program, which prints the PTX", NULL },
	[TO_C_OUTPUT] = { "output", 'o', "FILE", "write there; - is standard output (the default)", "@file" },
};

static int run(const cli_command *cmd, int argc, char **argv)
{
	const char *value, *output = "-";
	int status = EXIT_OK, option;
	cptx_to_c_opt opt = { 0 };
	cptx_error err = { .code = CPTX_OK };

	while ((option = cli_next(cmd, argc, argv, &value, &status)) >= 0) {
		if (option == TO_C_MAIN)
			opt.main = true;
		else
			output = value;
	}
	if (option == -2)
		return status;
	if (optind + 1 != argc)
		return cli_usage(cmd, "give one file, or - for standard input");
	if (cli_clash(cmd, "the C", output, argv[optind]))
		return EXIT_FAILED;
	cptx_module *m = cli_parse(cmd, argv[optind], false, CLI_MOST_ERRORS);
	if (!m)
		return EXIT_FAILED;
	cptx_ptx *text = cptx_to_c(m, &opt, &err);
	if (!text)
		status = cli_failed(cmd, "%s", err.text);
	else if (!cli_write(cmd, output, cptx_ptx_text(text), cptx_ptx_size(text)))
		status = EXIT_FAILED;
	cptx_ptx_destroy(text);
	cptx_module_destroy(m);
	return status;
}

const cli_command cmd_to_c = {
	.name = "to-c",
	.arguments = "[OPTION]... FILE",
	.about = "Turns a PTX file into C that builds it by cptx calls.",
	.details =
		"Compiled and run, a program made by --main prints PTX with the same instructions, for the target of the file\n"
		"or the one that it is given:\n"
		"  cptx to-c --main kernel.ptx -o kernel.c && cc kernel.c -lcptx -o kernel && ./kernel sm_90a\n",
	.options = options,
	.noption = sizeof options / sizeof *options,
	.operand_choices = "@file",
	.run = run,
};
