/* SPDX-License-Identifier: MIT */
/* tcgen05.mma of every kind as a kernel, against sums in double. */
#ifndef CPTX_TEST_TCGEN05_MMA_H
#define CPTX_TEST_TCGEN05_MMA_H

#include "matrix_forms.h"
#include "trial.h"

typedef struct mma_case {
	enum cptx_tcgen05_kind kind;
	enum cptx_type a, b, d, scale;
	uint16_t m, n;
	uint8_t ctas, vec, selector;
	enum cptx_swizzle swizzle;
	bool a_mn, b_mn, a_tmem, sparse, ws, negate, discard /* D */, off /* some lanes */, halve /* D, by its scale */;
	bool k96;
	uint8_t a_id, b_id;   /* bytes of the scale factors */
	uint64_t zero;        /* .ws: the zero-column mask; 0: none */
	const char *spelling; /* behind .kind */
} mma_case;

/* Runs it and fails the test where D is wrong. */
void mma_check(const mma_case *c, uint64_t seed);
mma_case mma_random(uint64_t seed); /* that is legal */

#endif
