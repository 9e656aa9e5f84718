/* SPDX-License-Identifier: MIT */
/* What the subcommands share that compile: --compiler, and the cache of the environment. */
#ifndef CPTX_TOOL_CLI_COMPILING_H
#define CPTX_TOOL_CLI_COMPILING_H

#include "cli/cli.h"

#include <cptx/compile.h>

#define COMPILING_CHOICES "auto driver ptxas nvjitlink nvptxcompiler"

/* The compiler of that name; EXIT_OK, or EXIT_USAGE after a message. */
int compiling_named(const cli_command *cmd, const char *value, enum cptx_compiler *compiler);
/* The user's cache, its one warning on stderr; NULL after a message, where the environment has no meaning. */
cptx_cache *compiling_cache(const cli_command *cmd);

#endif
