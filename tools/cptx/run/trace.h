/* SPDX-License-Identifier: MIT */
/* `cptx run --trace`: the timeline of a launch as JSON of chrome://tracing and Perfetto. */
#ifndef CPTX_TOOL_RUN_TRACE_H
#define CPTX_TOOL_RUN_TRACE_H

#include "cli/cli.h"

#include <cptx/emu.h>

/* A microsecond of the timeline is a step of the emulator. */
typedef struct run_trace {
	cli_output out;
	FILE *f; /* of it; NULL: no timeline */
	uint64_t nevent, nasync, nblock;
	bool lost;       /* a span, for want of memory */
	uint32_t *named; /* by number of the block: its warps that have a name, a bit each */
} run_trace;

/* run_trace_open and run_trace_close print why they fail. */
bool run_trace_open(run_trace *t, const cli_command *cmd, const char *path);
void run_trace_put(run_trace *t, const cptx_emu_span *s);
bool run_trace_close(run_trace *t, const cli_command *cmd);
void run_json_string(FILE *f, const char *s);

#endif
