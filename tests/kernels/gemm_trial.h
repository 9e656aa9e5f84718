/* SPDX-License-Identifier: MIT */
/* A GEMM kernel run on random small integers, all sums of which are exact: every element of D must be what rounding the
 * exact result, in f64, gives. */
#ifndef GEMM_TRIAL_H
#define GEMM_TRIAL_H

#include <cptx/gemm.h>

enum { GEMM_TRIAL_EXPERTS = 40 };
/* How a matrix lies in memory; all zero: densely, from the begin of an allocation on.  Elements. */
typedef struct gemm_trial_place {
	uint32_t off, pad, gap; /* in front of it, behind each row, behind each matrix of a batch */
	bool shared;            /* A, B, C: one matrix for all */
} gemm_trial_place;

typedef struct gemm_trial {
	cptx_gemm_opt opt;
	uint64_t m, n, k;
	gemm_trial_place place[4]; /* A, B, C, D, of a kernel that is strided */
	bool one_row_of_c;
	uint32_t batch, ctas;                /* of a kernel that takes a list, the batch is one, up to 8 */
	uint32_t counts[GEMM_TRIAL_EXPERTS]; /* of experts, of which there are .batch: their rows */
	uint64_t rows_a, rows_d;             /* gathered, scattered: rows of A and of D */
	bool in_place;                       /* with beta: C is D */
	uint64_t seed;
	bool (*edit)(cptx_module *m, const void *user); /* of the kernel, before it runs; NULL: none */
	const void *user;
} gemm_trial;

/* A state of number_random: what it draws from near seeds is not alike. */
uint64_t gemm_trial_random(uint64_t seed);
/* The trial's kernel in a module, edited. */
bool gemm_trial_build(const gemm_trial *t, cptx_module *m, cptx_error *err);
/* "": all right; else what was wrong. */
const char *gemm_trial_run(cptx_device *dev, const gemm_trial *t);
/* The trial in a line. */
const char *gemm_trial_text(const gemm_trial *t);

/* An epilogue for trials: max(v, 0) + row % 2 + column % 4. */
cptx_val gemm_trial_epilogue(cptx_kernel *k, void *user, cptx_val v, cptx_val row, cptx_val col);

/* Visitors for trials, with parameters: v * factor[z][row] by a callback of their own, times a scalar, plus add[column].
 * They are options: { ..., GEMM_TRIAL_VISITORS }. */
void gemm_trial_visitors(cptx_kernel *k, void *user, cptx_epilogue *e, const cptx_gemm_operands *x);
typedef struct gemm_trial_args {
	uint64_t factor, add; /* f32, one for each row of each matrix, one for each column */
	float by;
} gemm_trial_args;
enum { GEMM_TRIAL_PARAMS = 3 };
extern const cptx_param_row gemm_trial_params[GEMM_TRIAL_PARAMS];
#define GEMM_TRIAL_VISITORS .visitors = gemm_trial_visitors, .params = gemm_trial_params, .nparams = GEMM_TRIAL_PARAMS

#endif
