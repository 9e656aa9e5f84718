/* SPDX-License-Identifier: MIT */
#include "cli/compiling.h"

#include <string.h>

int compiling_named(const cli_command *cmd, const char *value, enum cptx_compiler *compiler)
{
	size_t i = 0;

	if (cptx_compiler_named(value, compiler))
		return EXIT_OK;
	while (strcmp(cmd->options[i].name, "compiler"))
		i++;
	return cli_bad_value(cmd, i, value, "expected one of " COMPILING_CHOICES);
}

static void warn(void *user, const char *text) { fprintf(stderr, "cptx %s: %s\n", ((const cli_command *)user)->name, text); }

cptx_cache *compiling_cache(const cli_command *cmd)
{
	cptx_error err = { 0 };
	cptx_cache *cache = cptx_cache_open(&(cptx_cache_opt){ .warn = warn, .user = (void *)cmd }, &err);

	if (!cache)
		cli_failed(cmd, "%s", err.text);
	return cache;
}

void compiling_print_ptx(FILE *out, const cptx_module *m, const cptx_ptx *ptx, const char *output)
{
	fprintf(out, "PTX      %s, %zu bytes, %zu instructions, .version %u.%u, %s\n",
	        !output               ? "not kept (-o FILE keeps it)"
	        : strcmp(output, "-") ? output
	                              : "standard output",
	        cptx_ptx_size(ptx), cptx_module_size(m), cptx_ptx_version(ptx) / 10, cptx_ptx_version(ptx) % 10,
	        cptx_ptx_target(ptx)->name);
}

void compiling_print_device(FILE *out, const cptx_device_info *info, const cptx_resources *resources, uint32_t ctas)
{
	fprintf(out, "device   %s (%s): ", info->name, info->target);
	if (resources->regs) /* the emulator compiles nothing */
		fprintf(out, "%u registers, %u bytes of local memory, ", resources->regs, resources->local_bytes);
	fprintf(out, "%u CTAs on %u multiprocessors", ctas, info->sms);
}
