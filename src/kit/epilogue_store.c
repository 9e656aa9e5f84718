/* SPDX-License-Identifier: MIT */
/* Results of an epilogue, rounded, to memory: from registers to a matrix. */
#include "kit/epilogue.h"
#include "base/options.h"

#include <cptx/cptx.h>

/* ---- rounding ---- */

bool epi_is_storable(enum cptx_type t)
{
	return t == CPTX_F32 || t == CPTX_S32 || t == CPTX_BF16 || t == CPTX_F16 || t == CPTX_E4M3 || t == CPTX_E5M2;
}

void epi_store_group(cptx_kernel *k, cptx_site at, enum cptx_type type, const epi_group *g, cptx_val to, uint16_t space,
                     cptx_val when)
{
	const uint32_t size = cptx_type_bits(type) / 8, most = MIN(g->n, 16 / size);
	cptx_val v[CPTX_EPILOGUE_VEC];

	for (uint32_t i = 0; i < g->n; i++)
		v[i] = g->elem[i].value;
	for (uint32_t i = 0; i < g->n; i += most)
		kit_store(k, at, type, v + i, most, cptx_offset(to, i * size), space, when);
}

/* ---- registers ---- */

bool epi_has_run(cptx_kernel *k, cptx_site at, const cptx_epilogue *e, enum cptx_type type)
{
	if (!KIT_IS_MADE(cptx_epilogue, k, at, e))
		return false;
	const bool tmem = !e->acc.count && e->acc.tmem.kind != CPTX_VAL_NONE;
	const bool integers = tmem ? e->opt.integers : e->acc.type == CPTX_S32;
	if ((!e->acc.count && !tmem) || !e->vec || e->vec > CPTX_EPILOGUE_VEC || e->next > e->count ||
	    e->count > CPTX_EPILOGUE_VISITORS) {
		cptx_fail_(k, at, "an epilogue without results; cptx_epilogue_run comes first");
		return false;
	}
	if (integers != (type == CPTX_S32)) {
		cptx_fail_(k, at,
		           "results stored as .%s, which are .%s; .integers of cptx_epilogue_opt leaves integer sums as they are",
		           cptx_type_name(type), cptx_type_name(integers ? CPTX_S32 : CPTX_F32));
		return false;
	}
	return tmem || epi_is_acc(k, at, &e->acc);
}

bool epi_check_type(cptx_kernel *k, cptx_site at, enum cptx_type type)
{
	if (!type)
		cptx_fail_(k, at, "results stored without a type: say .type, CPTX_F32, BF16, F16, E4M3, E5M2, of integers S32");
	else if (!epi_is_storable(type))
		cptx_fail_(k, at, "results stored as .%s; they can be stored as CPTX_F32, BF16, F16, E4M3, E5M2, integers as S32",
		           cptx_type_name(type));
	return epi_is_storable(type);
}

static bool check_matrix(cptx_kernel *k, cptx_site at, const cptx_epilogue *e, const cptx_epilogue_to *to)
{
	if (!epi_check_type(k, at, to->type) || !KIT_OPTION("cptx_epilogue_store", to, address, KIT_U64 | KIT_NONE) ||
	    !KIT_OPTION("cptx_epilogue_store", to, pitch, KIT_U32 | KIT_COUNT | KIT_NONE) ||
	    !KIT_OPTION("cptx_epilogue_store", to, scatter, KIT_U64 | KIT_NONE))
		return false;
	if (to->address.kind != CPTX_VAL_REG || to->pitch.kind == CPTX_VAL_NONE)
		cptx_fail_(k, at, "no matrix for the results: say .address, .u64 of global memory, and .pitch, in elements");
	else if (to->scatter.kind != CPTX_VAL_NONE && e->opt.transposed)
		cptx_fail_(k, at, "results of D^T (.transposed) with .scatter, which is for rows of D");
	else if (to->add > 4 || to->add == 3 || (to->add && to->type != CPTX_F32))
		cptx_fail_(k, at, "results of .%s with .add = %u; those of .f32 are added, 1, 2 or 4 at once",
		           cptx_type_name(to->type), to->add);
	else if (to->pitch.kind == CPTX_VAL_INT && to->pitch.i % e->vec)
		cptx_fail_(k, at,
		           "results in rows of .pitch = %lld elements; with .vec = %u it is a multiple of that: say .vec = %lld in "
		           "cptx_epilogue_new",
		           (long long)to->pitch.i, e->vec, (long long)(to->pitch.i & -to->pitch.i));
	else
		return true;
	return false;
}

/* The rows of D that the rows at hand go to. */
static void scatter_rows(epi *x, cptx_site at, cptx_val to)
{
	cptx_kernel *k = x->k;

	for (uint32_t r = x->row_first; r < x->row_end; r++) {
		const cptx_val from = epi_address(k, at, to, x->row[r], 0, 4), row = cptx_var_(k, at, CPTX_U32, cptx_imm(0));
		CALL(ld, .a = from, .space = CPTX_GLOBAL, .type = CPTX_U32, .into = row, .when = x->row_ok[r]);
		x->row[r] = row;
	}
}

/* Adds the elements of a group to memory, up to `most` of them at once. */
static void add_group(cptx_kernel *k, cptx_site at, const epi_group *g, cptx_val to, uint32_t most, cptx_val when)
{
	cptx_val v[CPTX_EPILOGUE_VEC];
	const uint32_t each = MIN(g->n, most);

	for (uint32_t i = 0; i < g->n; i++)
		v[i] = g->elem[i].value;
	for (uint32_t i = 0; i < g->n; i += each)
		CALL(red, .a = cptx_offset(to, i * 4), .b = each > 1 ? cptx_pack_(k, at, v + i, each) : v[i], .space = CPTX_GLOBAL,
		     .op = CPTX_ADD,
		     .vec = each == 4   ? CPTX_V4
		            : each == 2 ? CPTX_V2
		                        : 0,
		     .type = CPTX_F32, .when = when);
}

void cptx_epilogue_store_(cptx_kernel *k, cptx_site at, cptx_epilogue *e, const cptx_epilogue_to *opt)
{
	cptx_epilogue_to given, *to = &given;
	epi_matrix d = { .bytes = 0 };
	epi_group g;

	if (!IS_GIVEN_TO(k, at, opt, "matrix") || !OPTIONS_READ_IN(cptx_epilogue_to, to, opt, at, k) ||
	    !epi_has_run(k, at, e, to->type) || !epi_is_acc(k, at, &e->acc) || !check_matrix(k, at, e, to))
		return;
	epi x = epi_begin(k, at, e, e->next, e->count, EPI_AT_ROW);
	epi_rows(&x, at, 0, e->acc.rows);
	epi places = x; /* the same with rows of the matrix, which .scatter lays elsewhere */
	if (to->scatter.kind != CPTX_VAL_NONE)
		scatter_rows(&places, at, to->scatter);
	epi_find_rows_of(&places, at, to->address, to->pitch, cptx_type_bits(to->type) / 8, &d);
	for (uint32_t c = 0; c < e->acc.n; c++) {
		if (!epi_group_at(&e->acc, x.vec, 0, c, &g))
			continue;
		epi_visit(&x, at, c, g.n);
		const cptx_val ok = x.cols.kind == CPTX_VAL_NONE
		                        ? CPTX_NONE_
		                        : epi_is_below(k, at, cptx_acc_coordinate_(k, at, x.col, c, CPTX_NONE_), x.cols);
		epi_find_column_of(&x, at, c, &d);
		for (uint32_t r = 0; r < e->acc.rows; r++) {
			if (!epi_group_at(&e->acc, x.vec, r, c, &g))
				continue;
			const cptx_val there = epi_element_of(&x, &d, r, c), when = epi_both(k, at, x.row_ok[r], ok);
			if (to->add)
				add_group(k, at, &g, there, to->add, when);
			else
				epi_store_group(k, at, to->type, &g, there, CPTX_GLOBAL, when);
		}
		c += g.n - 1;
	}
	epi_end(&x);
	e->next = e->count;
}
