/* SPDX-License-Identifier: MIT */
/* RMSNorm: y[r][i] = x[r][i] * rsqrt(mean(x[r]^2) + eps) * w[i].  One CTA a row; the row is read once and kept in registers.
 */
#include "examples.h"
#include "reduce.h"
#include "rows.h"

cptx_kernel *rms_norm(cptx_module *m, uint32_t n, uint32_t threads)
{
	cptx_kernel *k = cptx_kernel_begin(m, "rms_norm", .block = { threads });
	cptx_val x = cptx_param(k, CPTX_PTR, "x"), w = cptx_param(k, CPTX_PTR, "w"), y = cptx_param(k, CPTX_PTR, "y");
	cptx_val eps = cptx_param(k, CPTX_F32, "eps"), scratch = cptx_shared(k, CPTX_F32, 32);
	cptx_val row_at = cptx_mul_wide(k, cptx_ctaid_x(k), n * 4), sum = cptx_var(k, CPTX_F32, 0.0f);
	row r = row_of(k, n, threads), weight = r;

	row_load(&r, cptx_add(k, x, row_at), 0);
	for (uint32_t i = 0; i < r.v.count; i++) {
		cptx_val v = cptx_elem(r.v, i);
		cptx_fma(k, v, v, sum, .rnd = CPTX_RN, .into = sum);
	}
	reduce_cta(k, REDUCE_SUM, sum, scratch, (int)threads / 32);
	cptx_val scale = cptx_rsqrt(k, cptx_fma(k, sum, 1.0f / (float)n, eps, .rnd = CPTX_RN));

	weight.v = cptx_regs(k, CPTX_F32, r.v.count);
	cptx_val p = cptx_add(k, w, r.first);
	for (uint32_t i = 0; i < r.vectors; i++) {
		cptx_ld(k, cptx_offset(p, i * threads * 16), .space = CPTX_GLOBAL, .nc = 1, .into = row_vector(&weight, i),
		        .when = row_has(&r, i));
		for (uint32_t e = i * 4; e < i * 4 + 4; e++) {
			cptx_val v = cptx_elem(r.v, e);
			cptx_mul(k, cptx_mul(k, v, scale), cptx_elem(weight.v, e), .into = v);
		}
	}
	row_store(&r, cptx_add(k, y, row_at));
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
