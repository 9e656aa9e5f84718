/* SPDX-License-Identifier: MIT */
/* What the files of the trials share: operands of a trial, and where they are. */
#ifndef GEMM_TRIAL_OWN_H
#define GEMM_TRIAL_OWN_H

#include "gemm_trial.h"
#include "reference/number.h"

enum {
	TRIAL_NOBODYS = -1 /* the matrix of a row that is no expert's */,
	TRIAL_POISON = 0xff,
	TRIAL_SAID = CPTX_ERROR_TEXT + 200
};

typedef struct trial_data {
	const gemm_trial *t;
	const cptx_gemm_opt *o;
	uint32_t batch, vec;
	uint64_t rows;         /* of D, of all matrices */
	uint32_t *matrix;      /* of each of these: which of B; NOBODYS: it is no expert's */
	uint32_t counts_of[3]; /* matrices A, B, and C or D */
	uint64_t k_first[GEMM_TRIAL_EXPERTS], k_end[GEMM_TRIAL_EXPERTS]; /* of an expert whose rows lie along K; else all of K */
	int8_t *a, *b, *c;                                               /* a: M x K, b: N x K, c: M x N, each `batch` times */
	int8_t *bias;
	double *sa, *sb;              /* factors: M x K / vec, N x K / vec */
	uint64_t na, nb, nd, d_bytes; /* elements; bytes of D with all that lies between and behind its rows */
	uint8_t *bytes;               /* to and from the device */
	uint64_t dev_a, dev_b, dev_c, dev_d, dev_bias, dev_sa, dev_sb, workspace, table, counts;
	int8_t *factor, *add; /* of the visitors: M of each matrix, and N numbers */
	gemm_trial_args args;
	uint32_t *from, *to; /* gathered, scattered: the row of A and of D of each row */
	float *routing;      /* and its weight */
	uint64_t dev_from, dev_to, dev_routing, dev_meta, dev_sd, sd_bytes; /* sd: factors of D */
	char *said;
	float *sd;
} trial_data;

/* A matrix as it is stored: elements from row to row, from matrix to matrix, and in all. */
typedef struct trial_stored {
	uint64_t off, ld, stride, all;
} trial_stored;

/* Where matrix number `which` of A, B, C, D is; columns of D. */
trial_stored gemm_trial_stored(const trial_data *x, unsigned which);
uint64_t gemm_trial_columns(const trial_data *x);
/* The element of the product, behind alpha, beta, bias and epilogue. */
double gemm_trial_expected(const trial_data *x, uint64_t i);

/* gemm_trial_out.c: room for the factors of D; compares D whose columns are gated or quantized, and its factors; bytes that
 * are right become poison.  False: x->said tells what is wrong. */
bool gemm_trial_make_factors(cptx_device *dev, trial_data *x, cptx_error *err);
bool gemm_trial_compare_columns(const trial_data *x);

#endif
