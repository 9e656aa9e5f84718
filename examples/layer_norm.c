/* SPDX-License-Identifier: MIT */
/*
 * LayerNorm of bf16 rows: y[r][i] = (x[r][i] - mean) * rsqrt(variance + eps) * w[i] + b[i].  One CTA a row; the row is read
 * once and kept in registers as f32.
 *
 * Each thread finds mean and squared deviations of its own part, and these are merged by Welford's method: exact where the
 * difference of two sums, of x and of its square, would cancel.
 */
#include "examples.h"

#include <cptx/reduce.h>
#include <cptx/vector.h>

/* Mean, sum of squared deviations, and count of a thread's elements; elements outside of the row are 0 and do not count. */
static cptx_val of_thread(cptx_kernel *k, const cptx_row *r)
{
	cptx_val v = cptx_regs(k, CPTX_F32, 3), mean = cptx_elem(v, 0), m2 = cptx_elem(v, 1), count = cptx_elem(v, 2);
	cptx_val inside = { 0 };
	cptx_row_at it;

	cptx_reduce_clear(k, v, CPTX_REDUCE_WELFORD);
	CPTX_ROW_EACH(k, r, &it)
	{
		cptx_add(k, mean, it.v, .into = mean);
		if (it.i % r->each == 0)
			cptx_add(k, count, (float)r->each, .into = count, .when = cptx_row_inside(k, r, &it));
	}
	cptx_mul(k, mean, cptx_rcp(k, cptx_max(k, count, 1.0f), .rnd = CPTX_RN), .into = mean);
	CPTX_ROW_EACH(k, r, &it)
	{
		cptx_val d = cptx_sub(k, it.v, mean);
		if (it.i % r->each == 0)
			inside = cptx_row_inside(k, r, &it);
		cptx_fma(k, d, d, m2, .rnd = CPTX_RN, .into = m2, .when = inside);
	}
	return v;
}

cptx_kernel *layer_norm(cptx_module *m, uint32_t n, uint32_t threads)
{
	cptx_kernel *k = cptx_kernel_begin(m, "layer_norm", .block = { threads });
	cptx_val x = cptx_param(k, CPTX_PTR, "x"), w = cptx_param(k, CPTX_PTR, "w"), b = cptx_param(k, CPTX_PTR, "b");
	cptx_val y = cptx_param(k, CPTX_PTR, "y"), eps = cptx_param(k, CPTX_F32, "eps");
	cptx_val row_at = cptx_mul_wide(k, cptx_ctaid_x(k), n * 2);
	cptx_row r, weight, bias;
	cptx_row_at it;
	cptx_reduce all;

	cptx_reduce_new(k, &all, .threads = threads, .words = 3);
	cptx_row_new(k, &r, .type = CPTX_BF16, .n = n, .threads = threads);
	cptx_row_like(k, &r, &weight);
	cptx_row_like(k, &r, &bias);
	cptx_row_load(k, &r, cptx_add(k, x, row_at), .fill = 0, .cop = CPTX_CS);
	cptx_val v = of_thread(k, &r);
	cptx_reduce_cta(k, &all, v, CPTX_REDUCE_WELFORD);
	cptx_val scale = cptx_rsqrt(k, cptx_fma(k, cptx_elem(v, 1), 1.0f / (float)n, eps, .rnd = CPTX_RN));
	cptx_row_load(k, &weight, w, .nc = true);
	cptx_row_load(k, &bias, b, .nc = true);
	CPTX_ROW_EACH(k, &r, &it)
	{
		cptx_val normal = cptx_mul(k, cptx_sub(k, it.v, cptx_elem(v, 0)), scale);
		cptx_fma(k, normal, cptx_elem(weight.v, it.i), cptx_elem(bias.v, it.i), .rnd = CPTX_RN, .into = it.v);
	}
	cptx_row_store(k, &r, cptx_add(k, y, row_at), .cop = CPTX_CS);
	return k;
}

#ifndef EXAMPLES_NO_MAIN
#include "row_run.h"

int main(void)
{
	return row_main(
		&(row_case){ .kernel = ROW_LAYER_NORM, .rows = 2048, .n = 8192, .threads = 512, .unroll = 1, .bursts = 11 });
}
#endif
