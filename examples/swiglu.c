/* SPDX-License-Identifier: MIT */
/* SwiGLU: y = a / (1 + exp(-a)) * b, element by element.  Each thread loads `unroll` vectors of four floats before it
 * computes. */
#include "examples.h"

#include <cptx/vector.h>

cptx_kernel *swiglu(cptx_module *m, uint32_t threads, uint32_t unroll)
{
	const float log2e = 1.44269504f;
	const uint32_t part = threads * unroll * 4; /* elements that a CTA takes, as if they were a row */
	cptx_kernel *k = cptx_kernel_begin(m, "swiglu", .block = { threads });
	cptx_val a = cptx_param(k, CPTX_PTR, "a"), b = cptx_param(k, CPTX_PTR, "b"), y = cptx_param(k, CPTX_PTR, "y");
	cptx_val elements = cptx_shl(k, cptx_param(k, CPTX_U32, "vectors"), 2), cta = cptx_ctaid_x(k);
	cptx_val at = cptx_mul_wide(k, cta, part * 4);
	cptx_row u, v;
	cptx_row_at it;

	cptx_row_new(k, &u, .type = CPTX_F32, .count = cptx_sub(k, elements, cptx_mul(k, cta, part, .mode = CPTX_LO)),
	             .most = part, .whole = true, .threads = threads);
	cptx_row_like(k, &u, &v);
	cptx_row_load(k, &u, cptx_add(k, a, at), .unset = true, .cop = CPTX_CS);
	cptx_row_load(k, &v, cptx_add(k, b, at), .unset = true, .cop = CPTX_CS);
	CPTX_ROW_EACH(k, &u, &it)
	{
		cptx_val gate = cptx_add(k, cptx_ex2(k, cptx_mul(k, it.v, -log2e)), 1.0f);
		cptx_mul(k, cptx_div(k, it.v, gate, .rnd = CPTX_FULL), cptx_elem(v.v, it.i), .into = it.v);
	}
	cptx_row_store(k, &u, cptx_add(k, y, at), .cop = CPTX_CS);
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
