/* SPDX-License-Identifier: MIT */
#include "shapes.h"

#include <cptx/cptx.h>

static cptx_val scale(cptx_module *m)
{
	cptx_kernel *f = cptx_func_begin(m, "scale", CPTX_F32);
	cptx_func_return(f, cptx_mul(f, cptx_param(f, CPTX_F32, "x"), 0.5f));
	return cptx_func_val(f);
}

static void walk(cptx_module *m, cptx_val func, cptx_val table)
{
	cptx_kernel *k = cptx_kernel_begin(m, "walk", .block = { 128 }, .min_ctas = 2);
	cptx_val p = cptx_param(k, CPTX_PTR, "p"), n = cptx_param(k, CPTX_U32, "n"), i = cptx_var(k, CPTX_U32, cptx_tid_x(k));
	cptx_val map = cptx_param_bytes(k, 128, 64, "map"), buffer = cptx_shared(k, CPTX_F32, 32);
	cptx_val ring = cptx_mov(k, cptx_shared_dyn(k, 1024, 128, "ring")), v = cptx_regs(k, CPTX_F32, 4);

	cptx_ld(k, map, .space = CPTX_PARAM, .type = CPTX_U64);
	cptx_pragma(k, "nounroll");
	CPTX_FOR(k, i, n, 128) {
		cptx_val at = cptx_add(k, p, cptx_mul_wide(k, i, 16)), big = cptx_setp(k, i, 1000, .cmp = CPTX_GT);
		cptx_ld(k, at, .space = CPTX_GLOBAL, .into = v);
		CPTX_IF(k, big)
			cptx_st(k, buffer, cptx_elem(v, 0));
		CPTX_ELSE(k)
			cptx_asm(k, "st.shared.v2.f32 [{}+8], {{}, {}};", ring, cptx_elem(v, 1), cptx_elem(v, 2));
		cptx_break_when(k, big);
		cptx_comment(k, "through %s", "the function");
		cptx_val x = cptx_ld(k, table, .type = CPTX_F32), y = cptx_call(k, func, 1, &x);
		cptx_st(k, at, cptx_pack(k, 2, ((cptx_val[]){ y, cptx_elem(v, 3) })), .space = CPTX_GLOBAL);
	}
}

void build_everything(cptx_module *m)
{
	static const float numbers[] = { 1, 2, 3, 4 };
	cptx_gemm_opt o = { .bm = 64,
		                .bn = 64,
		                .bk = 32,
		                .warps_m = 2,
		                .warps_n = 2,
		                .stages = 3,
		                .a = CPTX_BF16,
		                .b = CPTX_BF16,
		                .out = CPTX_F16 };
	cptx_val table = cptx_global(m, CPTX_F32, 4, "table", .space = CPTX_CONST, .init = numbers);

	cptx_global(m, CPTX_U32, 1, "counter", .export_ = true);
	walk(m, scale(m), table);
	cptx_gemm_build(m, &o, NULL);
}
