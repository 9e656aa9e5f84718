/* A GEMM kernel run on random small integers, all sums of which are exact: every element of D must be what rounding the
 * exact result gives. */
#ifndef GEMM_TRIAL_H
#define GEMM_TRIAL_H

#include <cptx/gemm_sm90.h>

typedef struct gemm_trial {
	cptx_gemm_sm90_opt opt;
	uint64_t m, n, k;
	uint32_t batch, ctas;
	uint64_t seed;
} gemm_trial;

/* "": all right; else what was wrong. */
const char *gemm_trial_run(cptx_device *dev, const gemm_trial *t);
/* The trial in a line. */
const char *gemm_trial_text(const gemm_trial *t);

#endif
