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
