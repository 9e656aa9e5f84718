/* SPDX-License-Identifier: MIT */
/*
 * Softmax over rows: y[r][i] = exp(x[r][i] - max) / sum.  One CTA a row; the row is read once and kept in registers.
 *
 * Each thread takes the maximum and the sum of its own part, and the pairs (maximum, sum) are merged, first over the warp,
 * then over the CTA: one barrier in place of the two that a maximum followed by a sum would need.
 */
#include "examples.h"
#include "reduce.h"
#include "rows.h"

#include <math.h>

static const float log2e = 1.44269504f;
static const float lowest =
	-1e38f; /* stands for an empty maximum: minus infinity would give NaN when subtracted from itself */

/* 2^((v - from) * log2e) */
static cptx_val exp_above(cptx_kernel *k, cptx_val v, cptx_val from)
{
	return cptx_ex2(k, cptx_mul(k, cptx_sub(k, v, from), log2e));
}

/* Over `lanes` neighbouring lanes: `top` becomes the maximum, `sum` the sum of the parts seen from there. */
static void merge_lanes(cptx_kernel *k, cptx_val top, cptx_val sum, int lanes)
{
	cptx_val own = cptx_var(k, CPTX_F32, top);

	reduce_lanes(k, REDUCE_MAX, top, lanes);
	cptx_mul(k, sum, exp_above(k, own, top), .into = sum);
	reduce_lanes(k, REDUCE_SUM, sum, lanes);
}

/* The same over the CTA; `pairs` holds two f32 per warp. */
static void merge_cta(cptx_kernel *k, cptx_val top, cptx_val sum, cptx_val pairs, int warps)
{
	cptx_val tid = cptx_tid_x(k), lane = cptx_and(k, tid, 31), base = cptx_mov(k, pairs),
			 pair = cptx_pack(k, 2, ((cptx_val[]){ top, sum }));

	merge_lanes(k, top, sum, 32);
	if (warps == 1)
		return;
	cptx_st(k, cptx_mad(k, cptx_shr(k, tid, 5), 8, base, .mode = CPTX_LO), pair, .space = CPTX_SHARED, .type = CPTX_F32,
	        .when = cptx_setp(k, lane, 0, .cmp = CPTX_EQ));
	cptx_bar_sync(k, 0);
	cptx_ld(k, cptx_mad(k, cptx_and(k, lane, warps - 1), 8, base, .mode = CPTX_LO), .space = CPTX_SHARED, .type = CPTX_F32,
	        .into = pair);
	merge_lanes(k, top, sum, warps);
}

cptx_kernel *softmax(cptx_module *m, uint32_t n, uint32_t threads)
{
	cptx_kernel *k = cptx_kernel_begin(m, "softmax", .block = { threads });
	cptx_val x = cptx_param(k, CPTX_PTR, "x"), y = cptx_param(k, CPTX_PTR, "y"), pairs = cptx_shared(k, CPTX_F32, 64);
	cptx_val row_at = cptx_mul_wide(k, cptx_ctaid_x(k), n * 4);
	cptx_val top = cptx_var(k, CPTX_F32, lowest), sum = cptx_var(k, CPTX_F32, 0.0f);
	row r = row_of(k, n, threads);

	row_load(&r, cptx_add(k, x, row_at), -INFINITY);
	for (uint32_t i = 0; i < r.v.count; i++)
		cptx_max(k, top, cptx_elem(r.v, i), .into = top);
	cptx_val own = cptx_var(k, CPTX_F32, top), shift = cptx_mul(k, top, -log2e);
	for (uint32_t i = 0; i < r.v.count; i++) {
		cptx_val v = cptx_elem(r.v, i);
		cptx_ex2(k, cptx_fma(k, v, log2e, shift, .rnd = CPTX_RN), .into = v);
		cptx_add(k, sum, v, .into = sum);
	}
	merge_cta(k, top, sum, pairs, (int)threads / 32);
	cptx_val scale = cptx_mul(k, exp_above(k, own, top), cptx_rcp(k, sum, .rnd = CPTX_RN));
	for (uint32_t i = 0; i < r.v.count; i++)
		cptx_mul(k, cptx_elem(r.v, i), scale, .into = cptx_elem(r.v, i));
	row_store(&r, cptx_add(k, y, row_at));
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
