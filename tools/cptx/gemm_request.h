/* What was asked of `cptx gemm`, and how it becomes a kernel's options. */
#ifndef CPTX_GEMM_REQUEST_H
#define CPTX_GEMM_REQUEST_H

#include "cli.h"
#include "gemm_check.h"

enum {
	OPTION_ARCH,
	OPTION_KIND,
	OPTION_TILE,
	OPTION_WARPS,
	OPTION_STAGES,
	OPTION_CLUSTER,
	OPTION_STREAM_K,
	OPTION_SWAP,
	OPTION_PER_SM,
	OPTION_GROUPED,
	OPTION_LAYOUT,
	OPTION_SCALE,
	OPTION_A_TMEM,
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
	uint32_t seen; /* 1 << OPTION_ of all that were given */
	gemm_kind g;
	cptx_gemm_opt o; /* what was asked for, whatever the kind; in: the type of A */
	enum cptx_type in_b;
	const char *arch, *output, *device, *kind, *layout, *timeline;
	enum cptx_tcgen05_kind multiplies; /* if --kind names one of PTX; else CPTX_TCGEN05_KINDS */
	uint32_t cluster[2], per_sm;
	enum cptx_type scale;
	gemm_problem problem;
} gemm_request;

static inline bool asked(const gemm_request *q, int option) { return q->seen >> option & 1; }

/* Chooses the generator and completes its options, q->g; with --explain it tells how.  EXIT_OK, or a message was printed. */
int gemm_complete(gemm_request *q, const cptx_target *target, const cptx_device *dev, FILE *out);

#endif
