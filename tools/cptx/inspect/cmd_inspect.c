/* SPDX-License-Identifier: MIT */
/* cptx inspect: what the GPU gets of a kernel. */
#include "inspect/inspect.h"
#include "reference/number.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_ARCH, OPTION_THREADS, OPTION_SMEM, OPTION_SOURCES, OPTION_JSON, OPTION_HTML };
static const cli_option options[] = {
	[OPTION_ARCH] = { "arch", 'a', "NAME", "assemble PTX for that target; default: that of the text", "@arch" },
	[OPTION_THREADS] = { "threads", 't', "N", "threads of a CTA, where the kernel does not say", NULL },
	[OPTION_SMEM] = { "smem", 's', "BYTES",
	                  "dynamic shared memory of a launch; default: none is assumed, and the report says so", NULL },
	[OPTION_SOURCES] = { "sources", 0, NULL,
	                     "show the source files that the PTX names, wherever they are; default: only those "
	                     "beside it",
	                     NULL },
	[OPTION_JSON] = { "json", 'j', NULL, "all of it as JSON", NULL },
	[OPTION_HTML] = { "html", 'H', "FILE", "all of it as a page that shows source, PTX and machine code side by side",
	                  "@file" },
};

static int run(const cli_command *cmd, int argc, char **argv)
{
	inspect_opt o = { 0 };
	const char *value, *html = NULL;
	bool json = false;
	int status = EXIT_OK, option;
	uint64_t n;

	while ((option = cli_next(cmd, argc, argv, &value, &status)) >= 0) {
		switch (option) {
		case OPTION_ARCH:
			if (!cli_target(cmd, value))
				return EXIT_USAGE;
			o.arch = value;
			break;
		case OPTION_THREADS:
			if (!number_dims(value, &n, 1, CPTX_THREADS_PER_CTA))
				return cli_usage(cmd, "--threads %s: 1 to %d", value, CPTX_THREADS_PER_CTA);
			o.threads = (uint32_t)n;
			break;
		case OPTION_SMEM:
			n = 0;
			if (strcmp(value, "0") && !number_dims(value, &n, 1, 1 << 20))
				return cli_usage(cmd, "--smem %s: bytes, up to 1 MiB", value);
			o.dynamic_smem = (uint32_t)n, o.smem_given = true;
			break;
		case OPTION_SOURCES: o.read_sources = true; break;
		case OPTION_JSON: json = true; break;
		default: html = value; break;
		}
	}
	if (option == -2)
		return status;
	if (optind + 1 != argc)
		return cli_usage(cmd, "give one file, PTX or a cubin, or - for standard input");
	if (html && cli_clash(cmd, "the page", html, argv[optind]))
		return EXIT_FAILED;
	inspected *in = malloc(sizeof *in);
	if (!in)
		return cli_no_memory(cmd), EXIT_FAILED;
	bool ok = inspect_load(in, cmd, argv[optind], &o);
	cli_output page;
	if (ok && html && (ok = cli_create(cmd, &page, html))) {
		inspect_html(in, page.f);
		ok = cli_finish(cmd, &page);
	}
	if (ok && json)
		inspect_json(in, stdout);
	else if (ok && !html)
		inspect_text(in);
	inspect_free(in);
	free(in);
	return cli_flush(cmd, ok ? EXIT_OK : EXIT_FAILED);
}

const cli_command cmd_inspect = {
	.name = "inspect",
	.arguments = "[OPTION]... FILE",
	.about = "What the GPU gets of a kernel: registers, spills, occupancy, hot loop, what ptxas remarks.",
	.details = "FILE is PTX, which ptxas assembles, or a cubin. Without ptxas figures are estimates, and say so. Machine "
			   "code is shown\n"
			   "where nvdisasm or cuobjdump is found. Lines are those of the C source where the PTX has them (.loc, cptx "
			   "gemm --lines).\n",
	.options = options,
	.noption = sizeof options / sizeof *options,
	.operand_choices = "@file",
	.run = run,
};
