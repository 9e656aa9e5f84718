/* SPDX-License-Identifier: MIT */
/* Runs decoding on a device and compares its results with a reference in f64; used by `cptx attention-decode --run`, tests
 * and benchmarks. */
#ifndef CPTX_TOOL_REFERENCE_DECODE_CHECK_H
#define CPTX_TOOL_REFERENCE_DECODE_CHECK_H

#include "reference/attention_check.h"

#include <cptx/attention_decode.h>

/* A problem to run, and how much of its result to compare. */
typedef struct decode_trial {
	cptx_attention_decode_problem
		p;           /* sizes, strides and numbers; addresses are filled in, and pages where there is .page */
	uint64_t seed;   /* of Q, K and V, which are random */
	bool ragged;     /* sequences have random lengths, from 0 to the problem's keys */
	uint32_t heads;  /* heads of Q of each sequence that are compared, from one drawn at random on; 0: all */
	unsigned bursts; /* timed bursts; 0: none */
	cptx_load_opt load;
} decode_trial;

typedef struct decode_report {
	attention_report r; /* its plan is not set; ms: of all launches together */
	cptx_attention_decode_plan plan;
	double ms[2]; /* of each launch */
} decode_report;

/* module: what cptx_attention_decode_build made of the options.  False, with err: it could not be run. */
bool decode_trial_run(cptx_device *dev, cptx_module *module, const cptx_attention_decode_opt *o, const decode_trial *t,
                      decode_report *r, cptx_error *err);

#endif
