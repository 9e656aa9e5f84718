/* SPDX-License-Identifier: MIT */
/* What `cptx run --print` shows of buffers behind a run. */
#ifndef CPTX_TOOL_RUN_PRINT_H
#define CPTX_TOOL_RUN_PRINT_H

#include "cli/cli.h"
#include "run/args.h"

typedef struct run_print {
	const char *spec; /* as given */
	char name[128];   /* of the parameter, "" where the argument's number is given */
	uint64_t arg;
	enum cptx_type type;  /* NONE: that of the buffer, all of it */
	uint64_t from, count; /* elements */
} run_print;

/* Reads "0", "0:f32[8]", "out:u32[4]+16".  False, with the reason in why. */
bool run_print_read(run_print *p, const char *spec, char *why, size_t size);
/*
 * Finds the argument, by its name among the parameters of the kernel `entry` (NULL: the only one) of the text, and looks
 * whether the buffer is long enough.  The exit status, after a message if it is not EXIT_OK.
 */
int run_print_check(const cli_command *cmd, run_print *p, const run_arg *args, size_t narg, const char *text, size_t size,
                    const char *entry);
/* On standard output, `data` being the buffer. */
void run_print_show(const run_print *p, const unsigned char *data);

#endif
