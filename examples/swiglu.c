/* SPDX-License-Identifier: MIT */
/* SwiGLU: y = a / (1 + exp(-a)) * b, element by element.  Each thread has `unroll` vectors of four floats under way. */
#include "examples.h"

cptx_kernel *swiglu(cptx_module *m, uint32_t threads, uint32_t unroll)
{
	const float log2e = 1.44269504f;
	cptx_kernel *k = cptx_kernel_begin(m, "swiglu", .block = { threads });
	cptx_val a = cptx_param(k, CPTX_PTR, "a"), b = cptx_param(k, CPTX_PTR, "b"), y = cptx_param(k, CPTX_PTR, "y");
	cptx_val vectors = cptx_param(k, CPTX_U32, "vectors");
	cptx_val first = cptx_mad(k, cptx_ctaid_x(k), threads * unroll, cptx_tid_x(k), .mode = CPTX_LO);
	cptx_val at = cptx_mul_wide(k, first, 16), u = cptx_regs(k, CPTX_F32, unroll * 4),
			 v = cptx_regs(k, CPTX_F32, unroll * 4);
	cptx_val pa = cptx_add(k, a, at), pb = cptx_add(k, b, at), py = cptx_add(k, y, at), has[16];

	for (uint32_t i = 0; i < unroll && i < 16; i++) {
		has[i] = cptx_setp(k, cptx_add(k, first, i * threads), vectors, .cmp = CPTX_LT);
		cptx_ld(k, cptx_offset(pa, i * threads * 16), .space = CPTX_GLOBAL, .cop = CPTX_CS, .into = cptx_slice(u, i * 4, 4),
		        .when = has[i]);
		cptx_ld(k, cptx_offset(pb, i * threads * 16), .space = CPTX_GLOBAL, .cop = CPTX_CS, .into = cptx_slice(v, i * 4, 4),
		        .when = has[i]);
	}
	for (uint32_t i = 0; i < unroll * 4; i++) {
		cptx_val x = cptx_elem(u, i), gate = cptx_add(k, cptx_ex2(k, cptx_mul(k, x, -log2e)), 1.0f);
		cptx_mul(k, cptx_div(k, x, gate, .rnd = CPTX_FULL), cptx_elem(v, i), .into = x);
	}
	for (uint32_t i = 0; i < unroll && i < 16; i++)
		cptx_st(k, cptx_offset(py, i * threads * 16), cptx_slice(u, i * 4, 4), .space = CPTX_GLOBAL, .cop = CPTX_CS,
		        .when = has[i]);
	return k;
}

#ifndef EXAMPLES_NO_MAIN
#include "row_run.h"

int main(void)
{
	return row_main(
		&(row_case){ .kernel = ROW_SWIGLU, .rows = 2048, .n = 8192, .threads = 1024, .unroll = 1, .bursts = 11 });
}
#endif
