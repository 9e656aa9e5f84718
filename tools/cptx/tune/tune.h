/* SPDX-License-Identifier: MIT */
/* What the files of `cptx tune` share. */
#ifndef CPTX_TOOL_TUNE_TUNE_H
#define CPTX_TOOL_TUNE_TUNE_H

#include "cli/cli.h"

#include <cptx/tune.h>

/* A family of kernels that can be tuned. */
enum { TUNE_MOST_DIMS = 5 };
typedef struct tune_family {
	const char *name, *sizes; /* what sizes look like, for messages */
	uint32_t fewest, most;    /* numbers in sizes */
	/* Measures the candidates of the sizes; false with an error.  text: options, NULL: the usual. */
	bool (*measure)(cptx_tune *db, cptx_device *dev, const char *text, const char *sizes, const cptx_tune_use *use,
	                cptx_tune_done *done, cptx_error *err);
} tune_family;
/* NULL: there is none of that name. */
const tune_family *tune_family_find(const char *name);
/* Reads sizes; false with an error where they are none of the family.  Numbers that may be left out stay as they are. */
bool tune_family_dims(const tune_family *f, const char *sizes, uint64_t dims[TUNE_MOST_DIMS], cptx_error *err);

/* Which records are listed. */
typedef struct tune_filter {
	const char *generator, *sizes; /* NULL: all; sizes: with all that follow these, as those of a batch */
} tune_filter;
int tune_list(const cli_command *cmd, cptx_tune *db, const tune_filter *filter);
/* The candidates of each problem as bars, best first. */
int tune_plot(const cli_command *cmd, cptx_tune *db, const tune_filter *filter);

#endif
