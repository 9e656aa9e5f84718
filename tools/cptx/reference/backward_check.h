/* SPDX-License-Identifier: MIT */
/* Runs attention backward on a device and compares the gradients with a reference in f64; used by `cptx attention-backward
 * --run`, tests and benchmarks. */
#ifndef CPTX_TOOL_REFERENCE_BACKWARD_CHECK_H
#define CPTX_TOOL_REFERENCE_BACKWARD_CHECK_H

#include "reference/attention_check.h"

#include <cptx/attention_backward.h>

/* A problem to run, and how much of its result to compare. */
typedef struct backward_trial {
	cptx_attention_backward_problem p;    /* sizes, strides and numbers; addresses are filled in */
	uint64_t seed;                        /* of Q, K, V, O and dO, which are random; LSE is about what such scores have */
	uint32_t rows;                        /* rows of each gradient of each head that are compared, drawn at random; 0: all */
	unsigned bursts;                      /* timed bursts; 0: none */
	unsigned runs;                        /* how often the launches are run before results are compared; 0: once */
	attention_score_fn score, score_grad; /* twins of those of the options */
	attention_mask_fn mask;
	const void *user;
	cptx_load_opt load;
} backward_trial;

typedef struct backward_report {
	attention_report r; /* its plan is not set; ms: of all launches together */
	const char *of;     /* the gradient of the first wrong element: "dQ" */
	cptx_attention_backward_plan plan;
	double ms[CPTX_ATTENTION_BACKWARD_LAUNCHES];
} backward_report;

/* Sets what of the problem follows from lengths that are drawn: rows in all.  The first sequence is the longest. */
void backward_trial_complete(backward_trial *t, const cptx_attention_backward_opt *o);
/* module: what cptx_attention_backward_build made of the options.  False, with err: it could not be run. */
bool backward_trial_run(cptx_device *dev, cptx_module *module, const cptx_attention_backward_opt *o, const backward_trial *t,
                        backward_report *r, cptx_error *err);
/* Writes the report as text, as attention_report_text does. */
void backward_report_text(const backward_report *r, char *text, size_t size);

#endif
