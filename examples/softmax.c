/* SPDX-License-Identifier: MIT */
/*
 * Softmax over rows: y[r][i] = exp(x[r][i] - max) / sum.  One CTA a row; the row is read once and kept in registers.
 *
 * Each thread takes the maximum and the sum of its own part, and the pairs (maximum, sum) are merged, first over the warp,
 * then over the CTA: one barrier in place of the two that a maximum followed by a sum would need.
 */
#include "examples.h"

#include <cptx/reduce.h>
#include <cptx/vector.h>

#include <math.h>

static const float log2e = 1.44269504f;

cptx_kernel *softmax(cptx_module *m, uint32_t n, uint32_t threads)
{
	cptx_kernel *k = cptx_kernel_begin(m, "softmax", .block = { threads });
	cptx_val x = cptx_param(k, CPTX_PTR, "x"), y = cptx_param(k, CPTX_PTR, "y");
	cptx_val row_at = cptx_mul_wide(k, cptx_ctaid_x(k), n * 4), pair = cptx_regs(k, CPTX_F32, 2);
	cptx_val top = cptx_elem(pair, 0), sum = cptx_elem(pair, 1);
	cptx_row r;
	cptx_row_at it;
	cptx_reduce all;

	cptx_reduce_new(k, &all, .threads = threads, .words = 2);
	cptx_row_new(k, &r, .type = CPTX_F32, .n = n, .threads = threads);
	cptx_row_load(k, &r, cptx_add(k, x, row_at), .fill = -INFINITY, .cop = CPTX_CS);
	cptx_reduce_clear(k, pair, CPTX_REDUCE_SOFTMAX);
	CPTX_ROW_EACH(k, &r, &it)
	cptx_max(k, top, it.v, .into = top);
	cptx_val own = cptx_var(k, CPTX_F32, top), shift = cptx_mul(k, top, -log2e);
	CPTX_ROW_EACH(k, &r, &it)
	{
		cptx_ex2(k, cptx_fma(k, it.v, log2e, shift, .rnd = CPTX_RN), .into = it.v);
		cptx_add(k, sum, it.v, .into = sum);
	}
	cptx_reduce_cta(k, &all, pair, CPTX_REDUCE_SOFTMAX);
	cptx_val above = cptx_ex2(k, cptx_mul(k, cptx_sub(k, own, top), log2e));
	cptx_val scale = cptx_mul(k, above, cptx_rcp(k, sum, .rnd = CPTX_RN));
	CPTX_ROW_EACH(k, &r, &it)
	cptx_mul(k, it.v, scale, .into = it.v);
	cptx_row_store(k, &r, cptx_add(k, y, row_at), .cop = CPTX_CS);
	return k;
}

#ifndef EXAMPLES_NO_MAIN
#include "row_run.h"

int main(void)
{
	return row_main(
		&(row_case){ .kernel = ROW_SOFTMAX, .rows = 2048, .n = 8192, .threads = 1024, .unroll = 1, .bursts = 11 });
}
#endif
