/* SPDX-License-Identifier: MIT */
/* What the subcommands share that compile: --compiler, and the cache of the environment. */
#ifndef CPTX_TOOL_CLI_COMPILING_H
#define CPTX_TOOL_CLI_COMPILING_H

#include "cli/cli.h"

#include <cptx/compile.h>
#include <cptx/device.h>

#define COMPILING_CHOICES "auto driver ptxas nvjitlink nvptxcompiler"

/* The compiler of that name; EXIT_OK, or EXIT_USAGE after a message. */
int compiling_named(const cli_command *cmd, const char *value, enum cptx_compiler *compiler);
/* The user's cache, its one warning on stderr; NULL after a message, where the environment has no meaning. */
cptx_cache *compiling_cache(const cli_command *cmd);
/* A line on a module that was printed; output: where to, NULL: the text is not kept. */
void compiling_print_ptx(FILE *out, const cptx_module *m, const cptx_ptx *ptx, const char *output);
/* Most of a line on a launch: the device, what a compiler told of the kernel, CTAs. */
void compiling_print_device(FILE *out, const cptx_device_info *info, const cptx_resources *resources, uint32_t ctas);

#endif
