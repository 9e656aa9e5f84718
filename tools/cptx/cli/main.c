/* SPDX-License-Identifier: MIT */
/* The cptx command: finds the subcommand.  Its own --help is the place to start. */
#include "cli/cli.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

const cli_command *const cli_commands[] = {
#define COMMAND(name) &cmd_##name,
#include "cli/commands.def"
#undef COMMAND
};
const size_t cli_ncommand = sizeof cli_commands / sizeof cli_commands[0];

static void help(FILE *out)
{
	fputs("usage: cptx COMMAND [OPTION]...\n\nBuilds, checks, prints and runs PTX kernels. No CUDA is needed but to run "
	      "them.\n\ncommands:\n",
	      out);
	for (size_t i = 0; i < cli_ncommand; i++)
		fprintf(out, "  %-18s %s\n", cli_commands[i]->name, cli_commands[i]->about);
	fputs("\nTo begin:\n"
	      "  cptx gemm --arch sm_90a -o gemm.ptx      a matrix multiplication as PTX\n"
	      "  cptx gemm --run 4096x4096x4096           the same on this machine's GPU: checked and timed\n"
	      "  cptx gemm --tile 128x128x32 --stages 3   another tile shape\n"
	      "  cptx run kernel.ptx --arg buf:f32[64]=iota  a kernel of a file, on the emulator\n"
	      "  cptx compile gemm.ptx --verbose          machine code, and the registers that it takes\n"
	      "  cptx inspect gemm.ptx                    registers, occupancy, hot loop, what ptxas remarks\n"
	      "  cptx insn ldmatrix                       what an instruction looks like, and where it exists\n"
	      "  cptx arch sm_120a                        facts of a target\n"
	      "\n`cptx help COMMAND` and `cptx COMMAND --help` tell all of a command.\n"
	      "Exit status: 0 done, 1 failed or wrong result, 2 wrong usage.\n",
	      out);
}

/* The manual page cptx.1, made when cptx is built. */
static void man(FILE *out)
{
	fprintf(out,
	        ".TH CPTX 1 \"\" \"cptx %s\" \"User Commands\"\n.SH NAME\ncptx \\- build, check, print and run PTX kernels\n"
	        ".SH SYNOPSIS\n.B cptx\n.I COMMAND\n.RI [ OPTION ]...\n.SH COMMANDS\n",
	        cptx_version());
	for (size_t i = 0; i < cli_ncommand; i++)
		cli_man(cli_commands[i], out);
	fputs(".SH \"EXIT STATUS\"\n0 done, 1 failed or wrong result, 2 wrong usage\n", out);
}

/*
 * No file gets the number of a standard stream that was closed: what is printed must not land in it.  The stream itself
 * fails when it is used, for what takes its place has the wrong direction.
 */
static void keep_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			_exit(EXIT_FAILED);
}

/* NULL, after a message that names the nearest, if there is none of that name. */
static const cli_command *find_command(const char *name)
{
	cli_near near = { .word = name };

	for (size_t i = 0; i < cli_ncommand; i++) {
		if (!strcmp(cli_commands[i]->name, name))
			return cli_commands[i];
		cli_near_try(&near, cli_commands[i]->name);
	}
	if (near.best)
		cli_usage(NULL, "there is no command '%s'; did you mean %s?", name, near.best);
	else
		cli_usage(NULL, "there is no command '%s'", name);
	return NULL;
}

/* cptx help [COMMAND]: as cptx --help, or cptx COMMAND --help. */
static int run_help(int argc, char **argv)
{
	const cli_command *cmd = NULL;

	if (argc > 3)
		return cli_usage(NULL, "%s takes one command", argv[1]);
	if (argc == 3 && !(cmd = find_command(argv[2])))
		return EXIT_USAGE;
	if (cmd)
		cli_help(cmd, stdout);
	else
		help(stdout);
	return cli_flush(cmd, EXIT_OK);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	keep_streams();
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help"))
		return run_help(argc, argv);
	if (!strcmp(name, "--man")) {
		man(stdout);
		return cli_flush(NULL, EXIT_OK);
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		printf("cptx %s\n", cptx_version());
		return cli_flush(NULL, EXIT_OK);
	}
	if (argc < 2) {
		help(stderr);
		return EXIT_USAGE;
	}
	const cli_command *cmd = find_command(name);
	return cmd ? cmd->run(cmd, argc - 1, argv + 1) : EXIT_USAGE;
}
