/* Softmax over rows: y[r][i] = exp(x[r][i] - max) / sum.  One CTA a row; the row is read once and kept in registers. */
#include "examples.h"
#include "reduce.h"
#include "rows.h"

#include <math.h>

cptx_kernel *softmax(cptx_module *m, uint32_t n, uint32_t threads)
{
	const float log2e = 1.44269504f;
	cptx_kernel *k = cptx_kernel_begin(m, "softmax", .block = { threads });
	cptx_val x = cptx_param(k, CPTX_PTR, "x"), y = cptx_param(k, CPTX_PTR, "y");
	cptx_val maxima = cptx_shared(k, CPTX_F32, 32), sums = cptx_shared(k, CPTX_F32, 32);
	cptx_val row_at = cptx_mul_wide(k, cptx_ctaid_x(k), n * 4);
	cptx_val top = cptx_var(k, CPTX_F32, -INFINITY), sum = cptx_var(k, CPTX_F32, 0.0f);
	row r = row_of(k, n, threads);

	row_load(&r, cptx_add(k, x, row_at), -INFINITY);
	for (uint32_t i = 0; i < r.v.count; i++)
		cptx_max(k, top, cptx_elem(r.v, i), .into = top);
	reduce_cta(k, REDUCE_MAX, top, maxima, (int)threads / 32);

	cptx_val shift = cptx_mul(k, top, -log2e); /* exp(v - top) = 2^(v * log2e + shift) */
	for (uint32_t i = 0; i < r.v.count; i++) {
		cptx_val v = cptx_elem(r.v, i);
		cptx_ex2(k, cptx_fma(k, v, log2e, shift, .rnd = CPTX_RN), .into = v);
		cptx_add(k, sum, v, .into = sum);
	}
	reduce_cta(k, REDUCE_SUM, sum, sums, (int)threads / 32);
	cptx_val scale = cptx_rcp(k, sum, .rnd = CPTX_RN);
	for (uint32_t i = 0; i < r.v.count; i++)
		cptx_mul(k, cptx_elem(r.v, i), scale, .into = cptx_elem(r.v, i));
	row_store(&r, cptx_add(k, y, row_at));
	return k;
}

#ifndef EXAMPLES_NO_MAIN
#include "row_run.h"

int main(void)
{
	return row_main(&(row_case){ .kernel = ROW_SOFTMAX, .rows = 2048, .n = 8192, .threads = 512, .unroll = 1, .bursts = 11 });
}
#endif
