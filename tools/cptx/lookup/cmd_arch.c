/* SPDX-License-Identifier: MIT */
/* cptx arch: the targets and their facts. */
#include "cli/cli.h"

#include <getopt.h>
#include <string.h>

static void list(void)
{
	const cptx_target *t;

	printf("%-9s %-5s %-9s %-12s %-11s %-8s %s\n", "target", "PTX", "smem/CTA", "static smem", "threads/SM", "cluster", "");
	for (size_t i = 0; (t = cptx_target_at(i)); i++)
		printf("%-9s %u.%-3u %-9u %-12u %-11u %-8u %s\n", t->name, t->ptx / 10u, t->ptx % 10u, t->smem_per_cta,
		       t->static_smem, t->threads_per_sm, t->cluster, t->about);
}

static void show(const cptx_target *t)
{
	size_t forms = 0, all = 0;
	cptx_op_info op;

	for (size_t i = 0; cptx_op_at(i, &op); i++)
		for (size_t j = 0; j < op.nforms; j++, all++)
			forms += cptx_form_on_target(i, j, t);
	printf("%s: %s\n", t->name, t->about);
	printf("  compute capability            %u.%u\n", t->compute_capability / 10u, t->compute_capability % 10u);
	printf("  lowest PTX version            %u.%u\n", t->ptx / 10u, t->ptx % 10u);
	printf("  code runs on                  %s\n", t->suffix == 'a'   ? "this architecture only"
	                                               : t->suffix == 'f' ? "this family"
	                                                                  : "this architecture and later ones");
	printf("  shared memory, CTA            %u bytes (static: %u)\n", t->smem_per_cta, t->static_smem);
	printf("  shared memory, multiprocessor %u bytes\n", t->smem_per_sm);
	printf("  registers                     %d per thread, %d per multiprocessor and CTA\n", CPTX_REGS_PER_THREAD,
	       CPTX_REGS_PER_SM);
	printf("  threads                       %d per CTA, %u per multiprocessor\n", CPTX_THREADS_PER_CTA, t->threads_per_sm);
	printf("  CTAs per multiprocessor       %u\n", t->ctas_per_sm);
	printf("  portable cluster size         %u%s\n", t->cluster, t->cluster ? "" : " (no clusters)");
	printf("  instruction forms             %zu of the table's %zu\n", forms, all);
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	const char *value;
	int status = EXIT_OK, option = cli_next(cmd, argc, argv, &value, &status);

	if (option == -2)
		return status;
	if (optind == argc)
		list();
	for (int i = optind; i < argc; i++) {
		const cptx_target *t = cli_target(cmd, argv[i]);
		if (!t)
			return EXIT_USAGE;
		show(t);
	}
	return cli_flush(cmd, EXIT_OK);
}

const cli_command cmd_arch = {
	.name = "arch",
	.arguments = "[NAME]...",
	.about = "Facts of the targets: PTX versions, shared memory, limits.",
	.operand_choices = "@arch",
	.run = run,
};
