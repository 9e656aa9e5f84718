/* SPDX-License-Identifier: MIT */
/* RMSNorm: y[r][i] = x[r][i] * rsqrt(mean(x[r]^2) + eps) * w[i].  One CTA a row; the row is read once and kept in registers.
 */
#include "examples.h"

#include <cptx/reduce.h>
#include <cptx/vector.h>

cptx_kernel *rms_norm(cptx_module *m, uint32_t n, uint32_t threads)
{
	cptx_kernel *k = cptx_kernel_begin(m, "rms_norm", .block = { threads });
	cptx_val x = cptx_param(k, CPTX_PTR, "x"), w = cptx_param(k, CPTX_PTR, "w"), y = cptx_param(k, CPTX_PTR, "y");
	cptx_val eps = cptx_param(k, CPTX_F32, "eps"), row_at = cptx_mul_wide(k, cptx_ctaid_x(k), n * 4);
	cptx_val sum = cptx_var(k, CPTX_F32, 0.0f);
	cptx_row r, weight;
	cptx_row_at it;
	cptx_reduce all;

	cptx_reduce_new(k, &all, .threads = threads, .words = 1);
	cptx_row_new(k, &r, .type = CPTX_F32, .n = n, .threads = threads);
	cptx_row_like(k, &r, &weight);
	cptx_row_load(k, &r, cptx_add(k, x, row_at), .fill = 0, .cop = CPTX_CS);
	CPTX_ROW_EACH(k, &r, &it)
	cptx_fma(k, it.v, it.v, sum, .rnd = CPTX_RN, .into = sum);
	cptx_reduce_cta(k, &all, sum, CPTX_REDUCE_SUM);
	cptx_val scale = cptx_rsqrt(k, cptx_fma(k, sum, 1.0f / (float)n, eps, .rnd = CPTX_RN));
	cptx_row_load(k, &weight, w, .unset = true, .nc = true);
	CPTX_ROW_EACH(k, &r, &it)
	cptx_mul(k, cptx_mul(k, it.v, scale), cptx_elem(weight.v, it.i), .into = it.v);
	cptx_row_store(k, &r, cptx_add(k, y, row_at), .cop = CPTX_CS);
	return k;
}

#ifndef EXAMPLES_NO_MAIN
#include "row_run.h"

int main(void)
{
	return row_main(
		&(row_case){ .kernel = ROW_RMS_NORM, .rows = 2048, .n = 8192, .threads = 1024, .unroll = 1, .bursts = 11 });
}
#endif
