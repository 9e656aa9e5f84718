/* SPDX-License-Identifier: MIT */
/* What was asked of `cptx attention`. */
#ifndef CPTX_TOOL_ATTENTION_REQUEST_H
#define CPTX_TOOL_ATTENTION_REQUEST_H

#include "cli/cli.h"
#include "reference/attention_check.h"
/* from src */
#include "attention/options.h"

/* The options of the command: those of the generators, from their list, and its own. */
enum {
#define ATTENTION_OPTION(ID, name, letter, argument, shape, set, help, choices, expected) OPTION_##ID,
#include "attention/options.def"
	ATTENTION_OPTIONS, /* how many are in the list */
	OPTION_HEADS = ATTENTION_OPTIONS,
	OPTION_KV_HEADS,
	OPTION_SCALE,
	OPTION_ARCH,
	OPTION_OUTPUT,
	OPTION_RUN,
	OPTION_DEVICE,
	OPTION_LINES,
	OPTION_EXPLAIN,
	OPTION_COMPILER,
	OPTIONS
};
extern const cli_option attention_options[OPTIONS];

typedef struct attention_request {
	const cli_command *cmd;
	uint32_t seen;        /* 1 << OPTION_ of all that were given */
	cptx_attention_opt o; /* what was asked for; completed: the kernel */
	const char *arch, *output, *device;
	attention_trial trial;
} attention_request;

static inline bool asked(const attention_request *q, int option) { return q->seen >> option & 1; }

/* Reads the value of an option; EXIT_OK, or a message was printed. */
int attention_option_read(attention_request *q, int option, const char *value);
/* The request as options: with them `cptx attention` makes the same kernel. */
void attention_options_text(const attention_request *q, char *text, size_t size);

#endif
