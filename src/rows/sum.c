/* SPDX-License-Identifier: MIT */
/* The second launch of kernels with sums: adds up the CTAs' sums of each column, always in the same order, with what the
 * roundings lose. */
#include "rows/rows.h"

#include <cptx/cptx.h>

/* Rounds one .f32 and stores it. */
static void store(cptx_kernel *k, enum cptx_type type, cptx_val to, cptx_val v, cptx_val when)
{
	if (type != CPTX_F32)
		v = cptx_cvt(k, v, .rnd = CPTX_RN, .dtype = type);
	cptx_st(k, to, type == CPTX_F32 ? v : cptx_as(v, CPTX_B16), .space = CPTX_GLOBAL, .when = when);
}

/* A sum, and what its roundings lost. */
typedef struct exact {
	cptx_val sum, lost;
} exact;

/* Adds another one: the error of a sum of two is itself a number (Knuth).  Of infinities it is none, which changes no sum.
 */
static void add(cptx_kernel *k, const exact *to, const exact *other)
{
	cptx_val both = cptx_add(k, to->sum, other->sum), second = cptx_sub(k, both, to->sum);
	cptx_val first = cptx_sub(k, both, second), of_first = cptx_sub(k, to->sum, first);
	cptx_val of_second = cptx_sub(k, other->sum, second), error = cptx_add(k, of_first, of_second);

	if (other->lost.kind != CPTX_VAL_NONE)
		cptx_add(k, to->lost, other->lost, .into = to->lost);
	cptx_add(k, to->lost, error, .into = to->lost);
	cptx_mov(k, both, .into = to->sum);
}

/* Over a warp, with the same result in all lanes. */
static void add_lanes(cptx_kernel *k, const exact *v)
{
	for (uint32_t lane = CPTX_WARP / 2; lane; lane /= 2) {
		const exact other = { .sum = cptx_shfl_sync(k, v->sum, lane, CPTX_WARP - 1, -1, .mode = CPTX_BFLY),
			                  .lost = cptx_shfl_sync(k, v->lost, lane, CPTX_WARP - 1, -1, .mode = CPTX_BFLY) };
		add(k, v, &other);
	}
}

static cptx_val rounded(cptx_kernel *k, const exact *v)
{
	cptx_val is_number = cptx_setp(k, v->lost, v->lost, .cmp = CPTX_EQ), both = cptx_add(k, v->sum, v->lost);

	return cptx_selp(k, both, v->sum, is_number, .type = CPTX_F32);
}

void rows_build_sum(cptx_module *m, const cptx_rows_opt *o, const char *name)
{
	enum { X = ROWS_SUM_COLUMNS, Y = ROWS_SUM_PARTS, PITCH = (X + 1) * 4 };
	const rows_shape s = rows_shape_of(o);
	cptx_param_row table[ROWS_PARAMS];
	cptx_params params = { .n = 0 };
	cptx_kernel *k = cptx_kernel_begin(m, name, .block = { X, Y });
	const size_t n = rows_sum_table(&s, table);

	if (!k)
		return;
	cptx_params_declare(k, &params, table, n);
	cptx_val to = cptx_params_get(k, &params, table[0].name), parts = cptx_params_get(k, &params, "sums");
	cptx_val from = cptx_params_get(k, &params, "workspace"), which = cptx_ctaid_y(k);
	cptx_val x = cptx_tid_x(k), y = cptx_tid_y(k), column = cptx_mad(k, cptx_ctaid_x(k), X, x, .mode = CPTX_LO);
	if (n > 3) { /* both sums: those of db lie behind those of dw */
		cptx_val second = cptx_setp(k, which, 0, .cmp = CPTX_NE);
		cptx_selp(k, cptx_params_get(k, &params, table[1].name), to, second, .type = CPTX_U64, .into = to);
	}
	cptx_val first = cptx_mad(k, which, parts, y, .mode = CPTX_LO);
	cptx_val at = cptx_add(k, from, cptx_mul_wide(k, first, s.sum_pitch * 4));
	const exact all = { .sum = cptx_var(k, CPTX_F32, 0.0f), .lost = cptx_var(k, CPTX_F32, 0.0f) };
	at = cptx_add(k, at, cptx_mul_wide(k, column, 4));
	cptx_val inside = cptx_setp(k, column, o->n, .cmp = CPTX_LT), part = cptx_var(k, CPTX_U32, y);
	const exact one = { .sum = cptx_var(k, CPTX_F32, 0.0f), .lost = CPTX_NONE_ };
	CPTX_FOR(k, part, parts, Y) {
		cptx_ld(k, at, .space = CPTX_GLOBAL, .type = CPTX_F32, .into = one.sum, .when = inside);
		add(k, &all, &one);
		cptx_add(k, at, cptx_imm((int64_t)Y * s.sum_pitch * 4), .into = at);
	}
	cptx_val shared = cptx_mov(k, cptx_shared(k, CPTX_F32, 2 * Y * (X + 1)), .type = CPTX_U32);
	cptx_val mine = cptx_mad(k, x, 4, cptx_mad(k, y, PITCH, shared, .mode = CPTX_LO), .mode = CPTX_LO);
	cptx_st(k, mine, all.sum, .space = CPTX_SHARED);
	cptx_st(k, cptx_offset(mine, Y * PITCH), all.lost, .space = CPTX_SHARED);
	cptx_bar_sync(k, 0);
	/* a warp for each column */
	cptx_val other = cptx_mad(k, y, 4, cptx_mad(k, x, PITCH, shared, .mode = CPTX_LO), .mode = CPTX_LO);
	cptx_ld(k, other, .space = CPTX_SHARED, .type = CPTX_F32, .into = all.sum);
	cptx_ld(k, cptx_offset(other, Y * PITCH), .space = CPTX_SHARED, .type = CPTX_F32, .into = all.lost);
	add_lanes(k, &all);
	cptx_val its = cptx_mad(k, cptx_ctaid_x(k), X, y, .mode = CPTX_LO);
	cptx_val stores = cptx_and(k, cptx_setp(k, its, o->n, .cmp = CPTX_LT), cptx_setp(k, x, 0, .cmp = CPTX_EQ));
	cptx_val sum = rounded(k, &all), here = cptx_add(k, to, cptx_mul_wide(k, its, rows_bytes(o->weight)));
	store(k, o->weight, here, sum, stores);
}
