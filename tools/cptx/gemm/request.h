/* SPDX-License-Identifier: MIT */
/* What was asked of `cptx gemm`, and how it becomes a kernel's options. */
#ifndef CPTX_TOOL_GEMM_REQUEST_H
#define CPTX_TOOL_GEMM_REQUEST_H

#include "cli/cli.h"
#include "reference/gemm_check.h"

enum {
	OPTION_ARCH,
	OPTION_MMA,
	OPTION_KIND,
	OPTION_TILE,
	OPTION_WARPS,
	OPTION_STAGES,
	OPTION_CLUSTER,
	OPTION_STREAM_K,
	OPTION_SWAP,
	OPTION_PER_SM,
	OPTION_BATCH,
	OPTION_GROUPED,
	OPTION_LAYOUT,
	OPTION_SCALE,
	OPTION_A_TMEM,
	OPTION_ALPHA,
	OPTION_BETA,
	OPTION_BIAS,
	OPTION_IN,
	OPTION_OUT,
	OPTION_GROUP,
	OPTION_OUTPUT,
	OPTION_RUN,
	OPTION_DEVICE,
	OPTION_LINES,
	OPTION_TIMELINE,
	OPTION_EXPLAIN,
	OPTION_COMPILER
};

typedef struct gemm_request {
	const cli_command *cmd;
	uint32_t seen;   /* 1 << OPTION_ of all that were given */
	cptx_gemm_opt o; /* what was asked for; completed: the kernel */
	const char *arch, *output, *device, *timeline;
	enum cptx_tcgen05_kind kind; /* with --kind */
	gemm_problem problem;
} gemm_request;

static inline bool asked(const gemm_request *q, int option) { return q->seen >> option & 1; }

/* Chooses what multiplies and completes the options; with --explain it tells how.  EXIT_OK, or a message was printed. */
int gemm_complete(gemm_request *q, const cptx_target *target, const cptx_device *dev, FILE *out);
/* "tile 128x256x64, 4 stages ..." */
void gemm_text(const cptx_gemm_opt *o, char *text, size_t size);

#endif
