/* `cptx run --trace`: the timeline of a launch as JSON of chrome://tracing and Perfetto. */
#ifndef CPTX_RUN_TRACE_H
#define CPTX_RUN_TRACE_H

#include <cptx/emu.h>

#include <stdio.h>

/* A microsecond of the timeline is a step of the emulator. */
typedef struct run_trace {
	FILE *f;
	uint64_t nevent, nasync, nblock;
	uint32_t *named; /* by number of the block: its warps that have a name, a bit each */
} run_trace;

bool run_trace_open(run_trace *t, const char *path); /* errno says why not */
void run_trace_put(run_trace *t, const cptx_emu_span *s);
bool run_trace_close(run_trace *t); /* false: not all could be written */
void run_json_string(FILE *f, const char *s);

#endif
