/* SPDX-License-Identifier: MIT */
/* cptx compile: PTX to machine code, and several inputs to one program. */
#include "cli/compiling.h"
#include "reference/number.h"

#include "compile/piece.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { ARCH, OUTPUT, COMPILER, LEVEL, REGS, LINES, DEBUG, VERBOSE, OBJECT, FLAG, LIMIT, LIST };
static const cli_option options[] = {
	[ARCH] = { "arch", 'a', "TARGET", "of the machine code (default: .target of the text; linking needs it)", "@arch" },
	[OUTPUT] = { "output", 'o', "FILE",
	             "where the cubin goes (default: FILE with .cubin, in this folder; -: standard output)", "@file" },
	[COMPILER] = { "compiler", 'c', "NAME", "who compiles (default: auto, the first that is there and new enough)",
	               "auto ptxas nvjitlink nvptxcompiler" },
	[LEVEL] = { "opt-level", 'O', "N", "0 to 3 (default 3)", "0 1 2 3" },
	[REGS] = { "max-regs", 'r', "N", "registers per thread", NULL },
	[LINES] = { "line-info", 'l', NULL, "keep the .loc lines", NULL },
	[DEBUG] = { "debug", 'g', NULL, "for a debugger, not optimized", NULL },
	[VERBOSE] = { "verbose", 'v', NULL, "print resource usage", NULL },
	[OBJECT] = { "object", 0, NULL, "a relocatable object, to be linked", NULL },
	[FLAG] = { "flag", 'f', "OPTION", "one more option, as ptxas spells it: --flag=-warn-spills", NULL },
	[LIMIT] = { "limit", 0, "SECONDS", "the longest that ptxas may take (default 600)", NULL },
	[LIST] = { "list", 0, NULL, "print which compilers are there", NULL },
};

enum { MOST_INPUTS = 256, MOST_FLAGS = 64 };

typedef struct request {
	const cli_command *cmd;
	cptx_compile_opt opt;
	const char *output, *flags[MOST_FLAGS];
	bool list;
} request;

static int number(const request *q, int option, const char *value, unsigned long least, unsigned long most, uint32_t *out)
{
	char *end;
	unsigned long v = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || v < least || v > most)
		return cli_usage(q->cmd, "--%s %s: expected a number from %lu to %lu", options[option].name, value, least, most);
	*out = (uint32_t)v;
	return EXIT_OK;
}

static int take(request *q, int option, const char *value)
{
	uint32_t n = 0;
	int status = EXIT_OK;

	switch (option) {
	case ARCH: q->opt.target = value; break;
	case OUTPUT: q->output = value; break;
	case COMPILER: return compiling_named(q->cmd, value, &q->opt.compiler);
	case LEVEL:
		status = number(q, option, value, 0, 3, &n);
		q->opt.optimize = (enum cptx_opt_level)(CPTX_OPT_0 + n);
		break;
	case REGS: return number(q, option, value, 1, 255, &q->opt.max_regs);
	case LIMIT:
		status = number(q, option, value, 1, 86400, &n);
		q->opt.limit_ms = n * 1000;
		break;
	case LINES: q->opt.line_info = true; break;
	case DEBUG: q->opt.debug = true; break;
	case VERBOSE: q->opt.verbose = true; break;
	case OBJECT: q->opt.relocatable = true; break;
	case LIST: q->list = true; break;
	case FLAG:
		if (q->opt.nflags == MOST_FLAGS)
			return cli_usage(q->cmd, "more than %d of --flag", MOST_FLAGS);
		q->flags[q->opt.nflags++] = value;
		break;
	}
	return status;
}

static int list(const request *q)
{
	char text[1024];

	for (int c = CPTX_COMPILER_PTXAS; cptx_compiler_name((enum cptx_compiler)c); c++) {
		bool there = cptx_compiler_find((enum cptx_compiler)c, text, sizeof text);
		printf("%-14s %s%s\n", cptx_compiler_name((enum cptx_compiler)c), there ? "" : "none: ", text);
	}
	return cli_flush(q->cmd, EXIT_OK);
}

/* Where the cubin goes, in `name` or as it was given; NULL, after a message, where an input is there. */
static const char *destination(const request *q, const cptx_link_input *in, size_t n, char name[PATH_MAX])
{
	const char *first = in[0].name, *base = strrchr(first, '/'), *dot, *to;

	base = base ? base + 1 : first;
	dot = strrchr(base, '.');
	snprintf(name, PATH_MAX, "%.*s.cubin", (int)(dot && dot != base ? dot - base : (long)strlen(base)), base);
	to = q->output ? q->output : !strcmp(first, "-") ? "-" : name;
	for (size_t i = 0; i < n; i++)
		if (cli_clash(q->cmd, "the cubin", to, in[i].name))
			return NULL;
	return to;
}

static int write_cubin(const request *q, const char *to, const cptx_cubin *c)
{
	if (*cptx_cubin_note(c))
		fprintf(stderr, "cptx %s: %s\n", q->cmd->name, cptx_cubin_note(c));
	cli_put(stderr, cptx_cubin_log(c), strlen(cptx_cubin_log(c)));
	return cli_write(q->cmd, to, cptx_cubin_data(c), cptx_cubin_size(c)) ? EXIT_OK : EXIT_FAILED;
}

static int compile(request *q, cptx_link_input *in, size_t n)
{
	const cptx_site nowhere = { 0 };
	cptx_error err = { 0 };
	cptx_cubin *c;
	char name[PATH_MAX];
	const char *to = destination(q, in, n, name);

	if (!to)
		return EXIT_FAILED;
	q->opt.flags = q->flags;
	q->opt.name = in[0].name;
	q->opt.cache = compiling_cache(q->cmd);
	if (!q->opt.cache)
		return EXIT_FAILED;
	if (n == 1 && piece_kind(in[0].data, in[0].size) == PIECE_PTX)
		c = cptx_compile_(nowhere, in[0].data, in[0].size, &q->opt, &err);
	else if (!q->opt.target)
		return cptx_cache_close(q->opt.cache), cli_usage(q->cmd, "what is linked needs --arch, as in --arch sm_90a");
	else
		c = cptx_link_(nowhere, in, n, &q->opt, &err);
	int status = c ? write_cubin(q, to, c) : cli_failed(q->cmd, "%s", err.text);
	cptx_cubin_destroy(c);
	cptx_cache_close(q->opt.cache);
	return status;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	request q = { .cmd = cmd };
	cptx_link_input in[MOST_INPUTS] = { { 0 } };
	const char *value;
	int option, status = EXIT_OK;
	size_t n = 0;

	while ((option = cli_next(cmd, argc, argv, &value, &status)) >= 0)
		if ((status = take(&q, option, value)))
			return status;
	if (option == -2)
		return status;
	if (q.list)
		return list(&q);
	if (optind == argc)
		return cli_usage(cmd, "name a file");
	if (argc - optind > MOST_INPUTS)
		return cli_usage(cmd, "more than %d files", MOST_INPUTS);
	for (; optind < argc && status == EXIT_OK; optind++, n++) {
		in[n].name = argv[optind];
		in[n].data = cli_read(cmd, argv[optind], &in[n].size);
		status = in[n].data ? EXIT_OK : EXIT_FAILED;
	}
	if (status == EXIT_OK)
		status = compile(&q, in, n);
	for (size_t i = 0; i < n; i++)
		free((void *)in[i].data);
	return status;
}

const cli_command cmd_compile = {
	.name = "compile",
	.arguments = "FILE...",
	.about = "PTX to machine code by ptxas, nvJitLink or nvPTXCompiler; links several files.",
	.details =
		"One file of PTX is compiled. Several files, or a cubin, a fat binary, an object or library of nvcc -rdc=true, are\n"
		"linked by nvJitLink. What was made before comes out of the cache (`cptx cache`); CPTX_CACHE=0 turns that off.\n",
	.options = options,
	.noption = sizeof options / sizeof *options,
	.operand_choices = "@file",
	.run = run,
};
