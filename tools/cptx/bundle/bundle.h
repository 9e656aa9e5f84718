/* SPDX-License-Identifier: MIT */
/* What the files of `cptx bundle` share. */
#ifndef CPTX_TOOL_BUNDLE_BUNDLE_H
#define CPTX_TOOL_BUNDLE_BUNDLE_H

#include "cli/cli.h"

/* Prints what a bundle holds. */
int bundle_list(const cli_command *cmd, const char *path);

#endif
