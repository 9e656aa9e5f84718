/* SPDX-License-Identifier: MIT */
#include "kernels.h"

#include "../../examples/examples.h"

/*
 * Lines count from the head of build_flow, in a file that does not exist: nothing of the build's place shows.  No call spans
 * lines, since compilers differ in which of them they name.
 */
#undef CPTX_HERE
#define CPTX_HERE ((cptx_site){ "flow.c", CPTX_LINE_ - head })

void build_flow(cptx_module *m)
{
	static const uint16_t steps[] = { 1, 2, 3, 5 };
	const uint32_t head = __LINE__;
	cptx_val table = cptx_global(m, CPTX_U16, 4, "steps", .space = CPTX_CONST, .init = steps);
	cptx_kernel *f = cptx_func_begin(m, "clamp", CPTX_F32);
	cptx_val x = cptx_param(f, CPTX_F32, "x");
	CPTX_IF(f, cptx_setp(f, x, 1.0f, .cmp = CPTX_GT))
		cptx_func_return(f, 1.0f);
	cptx_func_return(f, cptx_max(f, x, 0.0f));

	cptx_kernel *k = cptx_kernel_begin(m, "flow", .block = { 128 }, .min_ctas = 4);
	cptx_val p = cptx_param(k, CPTX_PTR, "p"), n = cptx_param(k, CPTX_U32, "n"), i = cptx_var(k, CPTX_U32, cptx_tid_x(k));
	cptx_val sums = cptx_shared(k, CPTX_F32, 128), sum = cptx_var(k, CPTX_F32, 0.0f), turn = cptx_var(k, CPTX_U32, 0);
	cptx_comment(k, "threads walk over the vector together");
	CPTX_FOR(k, i, n, 128) {
		cptx_val v = cptx_ld(k, cptx_add(k, p, cptx_mul_wide(k, i, 4)), .space = CPTX_GLOBAL, .type = CPTX_F32);
		cptx_continue_when(k, cptx_setp(k, v, 0.0f, .cmp = CPTX_EQ));
		cptx_val c = cptx_call(k, cptx_func_val(f), 1, &v);
		CPTX_IF(k, cptx_setp(k, c, 0.5f, .cmp = CPTX_LT))
			cptx_add(k, sum, c, .into = sum);
		CPTX_ELSE(k)
			cptx_fma(k, c, 0.5f, sum, .rnd = CPTX_RN, .into = sum);
	}
	cptx_val base = cptx_mov(k, sums);
	cptx_st(k, cptx_mad(k, cptx_tid_x(k), 4, base, .mode = CPTX_LO), sum, .space = CPTX_SHARED);
	cptx_bar_sync(k, 0);
	CPTX_WHILE(k, cptx_setp(k, turn, 4, .cmp = CPTX_NE)) {
		cptx_val at = cptx_add(k, cptx_mov(k, table, .type = CPTX_U64), cptx_mul_wide(k, turn, 2));
		cptx_val step = cptx_ld(k, at, .space = CPTX_CONST, .type = CPTX_U16);
		cptx_break_when(k, cptx_setp(k, step, 9, .cmp = CPTX_GT));
		cptx_asm(k, "ld.shared.f32 {}, [{}+4];", sum, base);
		cptx_add(k, turn, 1, .into = turn);
	}
	cptx_st(k, p, sum, .space = CPTX_GLOBAL, .when = cptx_setp(k, cptx_tid_x(k), 0, .cmp = CPTX_EQ));
}
