/* SPDX-License-Identifier: MIT */
/* What was asked of `cptx gemm`, and how it becomes a kernel's options. */
#ifndef CPTX_TOOL_GEMM_REQUEST_H
#define CPTX_TOOL_GEMM_REQUEST_H

#include "cli/cli.h"
#include "reference/gemm_check.h"
/* from src */
#include "gemm/options.h"

/* The options of the command: those of the generators, from their list, and its own. */
enum {
#define GEMM_OPTION(ID, name, letter, argument, shape, set, help, choices, expected) OPTION_##ID,
#include "gemm/options.def"
	GEMM_OPTIONS, /* how many are in the list */
	OPTION_ARCH = GEMM_OPTIONS,
	OPTION_OUTPUT,
	OPTION_RUN,
	OPTION_DEVICE,
	OPTION_LINES,
	OPTION_EXPLAIN,
	OPTION_COMPILER,
	OPTIONS
};
extern const cli_option gemm_options[OPTIONS];
extern const char *const gemm_scopes[OPTIONS]; /* the kernels that have each */
/* The kernels that have an option: GEMM_NOT_SYNC and so on. */
unsigned gemm_option_of(int option);

typedef struct gemm_request {
	const cli_command *cmd;
	uint64_t seen;   /* 1 << OPTION_ of all that were given */
	cptx_gemm_opt o; /* what was asked for; completed: the kernel */
	const char *arch, *output, *device, *timeline;
	enum cptx_tcgen05_kind kind; /* with --kind */
	gemm_problem problem;
} gemm_request;

static inline bool asked(const gemm_request *q, int option) { return q->seen >> option & 1; }

/* Chooses what multiplies and completes the options; with --explain it tells how.  EXIT_OK, or a message was printed. */
int gemm_complete(gemm_request *q, const cptx_target *target, const cptx_device *dev, FILE *out);
/* Reads the value of an option; EXIT_OK, or a message was printed. */
int gemm_option_read(gemm_request *q, int option, const char *value);
/* The completed request as options: with them `cptx gemm` makes the same kernel. */
void gemm_options_text(const gemm_request *q, char *text, size_t size);
/* "tile 128x256x64, 4 stages ..." */
void gemm_text(const cptx_gemm_opt *o, char *text, size_t size);

#endif
