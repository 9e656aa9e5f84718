/* SPDX-License-Identifier: MIT */
/* Runs an attention kernel on a device and compares its results with a reference in f64; used by `cptx attention --run`,
 * tests and benchmarks. */
#ifndef CPTX_TOOL_REFERENCE_ATTENTION_CHECK_H
#define CPTX_TOOL_REFERENCE_ATTENTION_CHECK_H

#include <cptx/attention.h>

/* The twin of cptx_attention_opt.score on the host. */
typedef double (*attention_score_fn)(const void *user, double score, uint32_t batch, uint32_t head, uint32_t query,
                                     uint32_t key);

/* The twin of cptx_attention_opt.mask. */
typedef bool (*attention_mask_fn)(const void *user, uint32_t batch, uint32_t head, uint32_t query, uint32_t key);

/* A problem to run, and how much of its result to compare. */
typedef struct attention_trial {
	cptx_attention_problem p; /* sizes, strides and numbers; addresses are filled in */
	uint64_t seed;            /* of Q, K and V, which are random */
	uint32_t rows;   /* queries of each head that are compared, drawn at random; 0: all, and what lies between them */
	unsigned bursts; /* timed bursts; 0: none */
	attention_score_fn score;
	attention_mask_fn mask;
	const void *user;
	cptx_load_opt load;
} attention_trial;

typedef struct attention_report {
	uint64_t elements, compared, wrong; /* of O and LSE */
	double worst;                       /* largest error as a part of the tolerance */
	double rms;                         /* root of the mean square error of O */
	uint32_t batch, head, row, col;     /* of the first wrong element; col UINT32_MAX: LSE */
	double value, reference;            /* of that */
	bool stray;                         /* what is wrong is memory beside O */
	double ms;                          /* median time of a launch; 0 if not asked for, or emulated */
	cptx_attention_plan plan;
	cptx_resources resources;
} attention_report;

/* Sets what of the problem follows from lengths that are drawn: rows in all, pages.  The first sequence is the longest. */
void attention_trial_complete(attention_trial *t, const cptx_attention_opt *o);
/* module: what cptx_attention_build made of the options.  False, with err: it could not be run. */
bool attention_trial_run(cptx_device *dev, cptx_module *module, const cptx_attention_opt *o, const attention_trial *t,
                         attention_report *r, cptx_error *err);
/* "all 64 elements right; ...", "3 of 64 elements are wrong; ..." */
void attention_report_text(const attention_report *r, char *text, size_t size);

#endif
