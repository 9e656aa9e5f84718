/* SPDX-License-Identifier: MIT */
/* Accumulators: which element a thread has, and what may be done with all of them, from their fragment alone. */
#include "base/options.h"
#include "kit/mma.h"
#include "kit/store.h"
#include "kit/value.h"

#include <cptx/cptx.h>

bool kit_acc_is_made(cptx_kernel *k, cptx_site at, const cptx_acc *acc) { return KIT_IS_MADE(cptx_acc, k, at, acc); }

bool kit_acc_has_registers(cptx_kernel *k, cptx_site at, const cptx_acc *acc)
{
	if (!kit_acc_is_made(k, at, acc))
		return false;
	if (!acc->count)
		cptx_fail_(k, at, "an accumulator in tensor memory; cptx_acc_load brings a part of it to registers");
	return acc->count != 0;
}

enum cptx_type kit_acc_type(enum cptx_type a)
{
	return a == CPTX_S8 || a == CPTX_U8 ? CPTX_S32 : a == CPTX_F64 ? CPTX_F64 : CPTX_F32;
}

/* ---- rows ---- */

void kit_acc_find_rows(cptx_acc *acc)
{
	acc->atom_rows = 0;
	for (uint16_t r = 0; r < acc->map.regs; r++) {
		cptx_cell c;
		uint32_t i = 0;
		if (!cptx_frag_cell(&acc->map, (cptx_place){ .lane = acc->map.value, .reg = r }, &c))
			continue;
		const uint16_t row = c.row;
		while (i < acc->atom_rows && acc->atom_row[i] < row)
			i++;
		if ((i < acc->atom_rows && acc->atom_row[i] == row) || acc->atom_rows == CPTX_ACC_ROWS)
			continue;
		memmove(&acc->atom_row[i + 1], &acc->atom_row[i], (acc->atom_rows - i) * sizeof *acc->atom_row);
		acc->atom_row[i] = row;
		acc->atom_rows++;
	}
	acc->rows = acc->atoms_m * acc->atom_rows;
}

cptx_acc_elem cptx_acc_at(const cptx_acc *acc, uint32_t i)
{
	cptx_acc_elem e = { .value = { .kind = CPTX_VAL_BAD }, .i = i };
	cptx_cell c;

	if (!acc || acc->made.mark != kit_made(NULL, KIT_cptx_acc).mark) { /* a loop over it comes here once, and uses e */
		e.i = i ? UINT32_MAX : 0;
		return e;
	}
	if (i >= acc->count)
		return e;
	const uint32_t atom = i / acc->map.regs, m = atom / acc->atoms_n, n = atom % acc->atoms_n;
	if (!cptx_frag_cell(&acc->map, (cptx_place){ .lane = acc->map.value, .reg = (uint16_t)(i % acc->map.regs) }, &c))
		return e;
	e.value = cptx_elem(acc->regs, i);
	e.row = m * acc->map.rows + c.row, e.col = n * acc->map.cols + c.col;
	for (e.at_row = m * acc->atom_rows; acc->atom_row[e.at_row - m * acc->atom_rows] != c.row;)
		e.at_row++;
	return e;
}

uint32_t kit_acc_number(const cptx_acc *acc, uint32_t row, uint32_t col)
{
	const cptx_cell cell = { (uint16_t)(row % acc->map.rows), (uint16_t)(col % acc->map.cols) };
	const uint32_t atom = row / acc->map.rows * acc->atoms_n + col / acc->map.cols;
	cptx_place p;

	if (row >= acc->m || col >= acc->n || !cptx_frag_place(&acc->map, cell, &p) || p.lane != acc->map.value)
		return UINT32_MAX;
	return atom * acc->map.regs + p.reg;
}

/* ---- making ---- */

static cptx_val sum_of(cptx_kernel *k, cptx_site at, cptx_val a, cptx_val b)
{
	if (a.kind == CPTX_VAL_INT && !a.i)
		return b;
	if (b.kind == CPTX_VAL_INT && !b.i)
		return a;
	if (a.kind == CPTX_VAL_INT && b.kind == CPTX_VAL_INT)
		return cptx_imm(a.i + b.i);
	return CALL(add, .a = a, .b = b);
}

void kit_acc_find_place(cptx_kernel *k, cptx_site at, cptx_acc *acc)
{
	acc->row = sum_of(k, at, cptx_as(cptx_frag_lane_(k, at, &acc->map, acc->thread, false), CPTX_U32), acc->unit_row);
	acc->col = sum_of(k, at, cptx_as(cptx_frag_lane_(k, at, &acc->map, acc->thread, true), CPTX_U32), acc->unit_col);
}

void cptx_acc_new_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_acc *acc, cptx_val tmem)
{
	if (!IS_GIVEN_TO(k, at, acc, "accumulator"))
		return;
	*acc = (cptx_acc){ .m = 0 };
	if (!kit_mma_is_made(k, at, mma) ||
	    !kit_value(k, at, "cptx_acc_in_tmem", "the address", tmem, KIT_U32 | KIT_WHOLE | KIT_NONE))
		return;
	const bool in_tmem = mma->opt.by == CPTX_BY_TCGEN05;
	if (in_tmem != (tmem.kind != CPTX_VAL_NONE)) {
		cptx_fail_(k, at,
		           in_tmem ? "accumulators of tcgen05 lie in tensor memory: cptx_acc_in_tmem"
		                   : "only accumulators of tcgen05 lie in tensor memory: cptx_acc_new");
		return;
	}
	*acc = (cptx_acc){ .made = kit_made(k, KIT_cptx_acc),
		               .type = kit_acc_type(mma->opt.a),
		               .tmem = tmem,
		               .m = mma->opt.m / mma->opt.ctas,
		               .n = mma->opt.n,
		               .units_m = mma->opt.units_m,
		               .units_n = mma->opt.units_n,
		               .row = mma->row,
		               .col = mma->col,
		               .unit_row = mma->row,
		               .unit_col = mma->col,
		               .thread = mma->opt.thread,
		               .warp = mma->opt.warp };
	if (in_tmem)
		return;
	acc->map = mma->d_map;
	acc->atoms_m = acc->m / acc->map.rows, acc->atoms_n = acc->n / acc->map.cols;
	acc->count = acc->atoms_m * acc->atoms_n * acc->map.regs;
	acc->regs = cptx_regs_(k, at, acc->type, acc->count);
	kit_acc_find_rows(acc);
	kit_acc_find_place(k, at, acc);
}

void cptx_acc_clear_(cptx_kernel *k, cptx_site at, const cptx_acc *acc)
{
	if (!kit_acc_has_registers(k, at, acc))
		return;
	for (uint32_t i = 0; i < acc->count; i++)
		CALL(mov, .a = acc->type == CPTX_S32 ? cptx_imm(0) : cptx_immf(0), .into = cptx_elem(acc->regs, i));
}

cptx_val cptx_acc_coordinate_(cptx_kernel *k, cptx_site at, cptx_val first, uint32_t more, cptx_val from)
{
	if (!kit_value(k, at, "cptx_acc_row", "the first row or column of the tile", from, KIT_U32 | KIT_SIGNED | KIT_NONE))
		return CPTX_NONE_;
	cptx_val c = more ? sum_of(k, at, first, cptx_imm(more)) : first;

	if (from.kind == CPTX_VAL_NONE)
		return c;
	return sum_of(k, at, from.kind == CPTX_VAL_REG ? cptx_as(from, CPTX_U32) : from, c);
}

/* ---- row vectors ---- */

static bool is_row_vector(cptx_kernel *k, cptx_site at, const cptx_acc *acc, cptx_val rows)
{
	if (!kit_acc_has_registers(k, at, acc))
		return false;
	if (rows.kind != CPTX_VAL_REG || rows.count != acc->rows)
		cptx_fail_(k, at, "a row vector of %u registers; one of this accumulator has %u: cptx_acc_row_vector",
		           rows.kind == CPTX_VAL_REG ? rows.count : 0, acc->rows);
	else if (rows.type != acc->type && (acc->type != CPTX_S32 || (rows.type != CPTX_U32 && rows.type != CPTX_B32)))
		cptx_fail_(k, at, "a row vector of .%s; one of this accumulator is of .%s: cptx_acc_row_vector",
		           cptx_type_name((enum cptx_type)rows.type), cptx_type_name(acc->type));
	else
		return true;
	return false;
}

cptx_val cptx_acc_row_vector_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, cptx_val init)
{
	if (!kit_acc_has_registers(k, at, acc))
		return CPTX_NONE_;
	const uint32_t takes = acc->type == CPTX_F32 ? KIT_F32 : acc->type == CPTX_F64 ? KIT_F64 : KIT_U32;
	if (!kit_value(k, at, "cptx_acc_row_vector", "the value", init, takes | KIT_REAL))
		return CPTX_NONE_;
	cptx_val rows = cptx_regs_(k, at, acc->type, acc->rows);
	for (uint32_t i = 0; i < acc->rows; i++)
		CALL(mov, .a = init, .into = cptx_elem(rows, i));
	return rows;
}

static bool can_reduce(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_reduce_op op)
{
	if (cptx_reduce_parts(op) != 1)
		cptx_fail_(k, at, "rows of an accumulator reduced by operation %d; it is CPTX_REDUCE_SUM, MAX or MIN", (int)op);
	else if (acc->type == CPTX_F64)
		cptx_fail_(k, at, "rows of an accumulator of .f64; those of .f32 and .s32 are reduced: cptx_acc_at gives elements");
	else
		return true;
	return false;
}

void cptx_acc_row_reduce_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_reduce_op op, cptx_val rows)
{
	if (!is_row_vector(k, at, acc, rows) || !can_reduce(k, at, acc, op))
		return;
	CPTX_ACC_EACH(acc, e)
	cptx_reduce_with_(k, at, cptx_elem(rows, e.at_row), e.value, op);
}

/* The bits of the lane number that choose a column alone. */
static uint32_t lanes_of_a_row(const cptx_frag_map *map)
{
	uint32_t bits = 0;

	for (uint32_t b = 0; 1u << b < MIN(map->lanes, (uint16_t)CPTX_WARP); b++)
		if (!map->lane[b].row && map->lane[b].col)
			bits |= 1u << b;
	return bits;
}

void cptx_acc_row_combine_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_reduce_op op, cptx_val rows)
{
	if (!is_row_vector(k, at, acc, rows) || !can_reduce(k, at, acc, op))
		return;
	const uint32_t bits = lanes_of_a_row(&acc->map);
	for (uint32_t b = 1; b < CPTX_WARP; b *= 2)
		for (uint32_t i = 0; bits & b && i < acc->rows; i++) {
			cptx_val row = cptx_elem(rows, i);
			cptx_val other = CALL(shfl_sync, .a = row, .b = cptx_imm(b), .c = cptx_imm(CPTX_WARP - 1), .mask = cptx_imm(-1),
			                      .mode = CPTX_BFLY);
			cptx_reduce_with_(k, at, row, other, op);
		}
}

void cptx_acc_scale_rows_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, cptx_val rows)
{
	if (!is_row_vector(k, at, acc, rows))
		return;
	CPTX_ACC_EACH(acc, e)
	CALL(mul, .a = e.value, .b = cptx_elem(rows, e.at_row), .into = e.value, .mode = acc->type == CPTX_S32 ? CPTX_LO : 0);
}

/* ---- tensor memory ---- */

enum { AT_ONCE = 32 /* columns of a load */ };

/* Where the thread's warp finds its 32 lanes: lane in the upper half, column in the lower. */
static cptx_val lanes_at(cptx_kernel *k, cptx_site at, const cptx_acc *acc, cptx_val address, uint32_t first)
{
	const bool warp = acc->warp.kind != CPTX_VAL_NONE;
	cptx_val all = kit_plain(k, at, address), n = acc->warp;

	if (!warp)
		n = CALL(and, .a = acc->thread, .b = cptx_imm(~(CPTX_WARP - 1) & 127));
	return cptx_offset(CALL(mad, .a = n, .b = cptx_imm((warp ? CPTX_WARP : 1) << 16), .c = all, .mode = CPTX_LO), first);
}

/*
 * Tensor memory is moved between two fences: what a barrier or an mbarrier in front of the call has told of comes before,
 * and what one behind it tells of comes after.  Both are instructions of PTX that take no time.
 */
static void begin_move(cptx_kernel *k, cptx_site at) { CALL(tcgen05_fence, .op = CPTX_FENCE_AFTER_THREAD_SYNC); }

static void end_move(cptx_kernel *k, cptx_site at, enum cptx_mod what, bool fenced)
{
	CALL(tcgen05_wait, .op = what);
	if (!fenced)
		CALL(tcgen05_fence, .op = CPTX_FENCE_BEFORE_THREAD_SYNC);
}

static void store_columns(cptx_kernel *k, cptx_site at, cptx_val to, cptx_val words)
{
	const cptx_tmem_move move = { .shape = CPTX_SHAPE_32X32B, .num = words.count };

	begin_move(k, at);
	cptx_tmem_store_(k, at, to, words, &move);
	end_move(k, at, CPTX_WAIT_ST, false);
}

static bool is_in_tmem(cptx_kernel *k, cptx_site at, const cptx_acc *acc)
{
	if (!kit_acc_is_made(k, at, acc))
		return false;
	if (acc->count)
		cptx_fail_(k, at, "an accumulator in registers; cptx_acc_in_tmem makes one in tensor memory");
	return !acc->count;
}

/* A load needs registers beside one another, for which ptxas finds more room than for all at once. */
static cptx_val load_columns(cptx_kernel *k, cptx_site at, cptx_val from, uint32_t n)
{
	static const uint16_t nums[] = { CPTX_X2, CPTX_X4, CPTX_X8, CPTX_X16, CPTX_X32 };
	const cptx_val regs = cptx_regs_(k, at, CPTX_B32, n);
	const uint32_t each = MIN(n, AT_ONCE);
	uint32_t bits = 0;

	while (2u << bits < each)
		bits++;
	for (uint32_t i = 0; i < n; i += each)
		CALL(tcgen05_ld, .a = cptx_offset(from, i), .shape = CPTX_SHAPE_32X32B, .num = nums[bits],
		     .into = cptx_slice(regs, i, each));
	return regs;
}

void cptx_acc_load_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, uint32_t first, uint32_t n, cptx_acc *part)
{
	if (!IS_GIVEN_TO(k, at, part, "accumulator"))
		return;
	*part = (cptx_acc){ .m = 0 };
	if (!is_in_tmem(k, at, acc))
		return;
	const cptx_frag f = { .kind = CPTX_FRAG_TCGEN05, .m = CPTX_WARP, .n = 32, .num = (uint8_t)n };
	cptx_error err = { .code = CPTX_OK };
	if (n < 2 || n > 128 || n & (n - 1) || n > acc->n || first > acc->n - n) {
		cptx_fail_(k, at, "%u columns from %u on of an accumulator with %u; a load takes 2, 4, 8, 16, 32, 64 or 128 of them",
		           n, first, acc->n);
		return;
	}
	*part = *acc;
	if (!cptx_frag_resolve(&f, &part->map, &err)) {
		cptx_fail_(k, at, "%s", err.text);
		return;
	}
	part->tmem = CPTX_NONE_;
	part->n = n, part->atoms_m = part->atoms_n = 1, part->count = n;
	cptx_val from = lanes_at(k, at, acc, acc->tmem, first);
	if (!acc->fenced)
		begin_move(k, at);
	part->regs = load_columns(k, at, from, n);
	end_move(k, at, CPTX_WAIT_LD, acc->fenced);
	part->regs = cptx_as(part->regs, acc->type);
	kit_acc_find_rows(part);
	part->row = sum_of(k, at, acc->thread, acc->row);
	part->col = sum_of(k, at, cptx_imm(first), acc->col);
	part->unit_col = part->col;
}

/* Whether a thread has one row: cptx_acc_load made it. */
static bool is_part(const cptx_acc *part) { return part->rows == 1 && part->count == part->n && part->n > 1; }

void cptx_acc_save_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, uint32_t first, const cptx_acc *part)
{
	if (!is_in_tmem(k, at, acc) || !kit_acc_has_registers(k, at, part))
		return;
	if (part->n > acc->n || first > acc->n - part->n || !is_part(part)) {
		cptx_fail_(k, at, "%u columns from %u on of an accumulator with %u, from a part that cptx_acc_load should have made",
		           part->n, first, acc->n);
		return;
	}
	store_columns(k, at, lanes_at(k, at, acc, acc->tmem, first), cptx_as(part->regs, CPTX_B32));
}

/* ---- rounding ---- */

static bool is_byte(enum cptx_type type) { return type == CPTX_E4M3 || type == CPTX_E5M2; }

static bool is_half(cptx_kernel *k, cptx_site at, enum cptx_type type)
{
	if (type == CPTX_BF16 || type == CPTX_F16)
		return true;
	cptx_fail_(k, at, "an accumulator as .%s; it can be rounded to CPTX_BF16 or CPTX_F16", cptx_type_name(type));
	return false;
}

/* Rounds two elements to one register; the first is the lower half. */
static void pack(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_type type, uint32_t first, uint32_t second,
                 cptx_val into)
{
	kit_round_pair(k, at, type, cptx_elem(acc->regs, first), cptx_elem(acc->regs, second), into);
}

static bool can_round(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_type type)
{
	if (!kit_acc_has_registers(k, at, acc))
		return false;
	if (acc->type != CPTX_F32)
		cptx_fail_(k, at, "an accumulator of .%s as .%s; convert the elements first", cptx_type_name(acc->type),
		           cptx_type_name(type));
	return acc->type == CPTX_F32;
}

static bool can_narrow(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_type type)
{
	return kit_acc_has_registers(k, at, acc) && is_half(k, at, type) && can_round(k, at, acc, type);
}

cptx_val cptx_acc_narrow_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_type type)
{
	if (!can_narrow(k, at, acc, type))
		return CPTX_NONE_;
	cptx_val words = cptx_regs_(k, at, CPTX_B32, acc->count / 2);
	for (uint32_t i = 0; i < acc->count / 2; i++)
		pack(k, at, acc, type, 2 * i, 2 * i + 1, cptx_elem(words, i));
	return words;
}

/* Whether lanes move through rows and columns alike, so that what holds in lane 0 holds in all.  Through columns of A of
 * 8 bits they move twice as far, which column_of undoes. */
static bool lanes_agree(const cptx_frag_map *a, const cptx_frag_map *d, uint32_t far)
{
	bool ok = a->lanes == d->lanes;

	for (uint32_t b = 0; ok && 1u << b < a->lanes; b++)
		ok = a->lane[b].row == d->lane[b].row && a->lane[b].col == far * d->lane[b].col;
	return ok;
}

/* The column of the accumulator that stands at place `i` along the next product's K. */
static uint32_t column_of(uint32_t i, bool bytes)
{
	return bytes ? i / 16 * 16 + i / 2 % 2 * 8 + i % 16 / 4 * 2 + i % 2 : i;
}

cptx_val cptx_acc_as_a_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_tiled_mma *next)
{
	if (!kit_mma_is_made(k, at, next))
		return CPTX_NONE_;
	const enum cptx_type type = next->opt.a;
	const bool bytes = is_byte(type);
	if (!(bytes ? can_round(k, at, acc, type) : can_narrow(k, at, acc, type)))
		return CPTX_NONE_;
	const cptx_frag_map *a = &next->a_map;
	if (next->opt.a_from != CPTX_A_REGS || next->opt.m != acc->m || next->steps * next->depth != acc->n ||
	    !lanes_agree(a, &acc->map, bytes ? 2 : 1)) {
		cptx_fail_(k, at,
		           "an accumulator of %u x %u as the A of a product that takes %u x %u; both are of the same kind, and the "
		           "product is made with .a_from = CPTX_A_REGS",
		           acc->m, acc->n, next->opt.m, next->steps * next->depth);
		return CPTX_NONE_;
	}
	const uint32_t atoms = acc->m / a->rows;
	cptx_val words = cptx_regs_(k, at, CPTX_B32, next->steps * atoms * a->regs);
	for (uint32_t i = 0; i < words.count; i++) {
		const uint32_t step = i / (atoms * a->regs), m = i / a->regs % atoms;
		cptx_val v[4];
		for (uint16_t s = 0; s < (bytes ? 4 : 2); s++) {
			cptx_cell c = { 0, 0 };
			cptx_frag_cell(a, (cptx_place){ .reg = (uint16_t)(i % a->regs), .slot = s }, &c);
			const uint32_t n = kit_acc_number(acc, m * a->rows + c.row, column_of(step * next->depth + c.col, bytes));
			if (n == UINT32_MAX) {
				cptx_fail_(k, at, "an accumulator whose threads do not have the elements that the product takes as A");
				return CPTX_NONE_;
			}
			v[s] = cptx_elem(acc->regs, n);
		}
		if (bytes)
			CALL(mov, .a = kit_round_word(k, at, type, v), .into = cptx_elem(words, i));
		else
			kit_round_pair(k, at, type, v[0], v[1], cptx_elem(words, i));
	}
	return words;
}

void cptx_acc_put_a_(cptx_kernel *k, cptx_site at, const cptx_acc *part, enum cptx_type type, cptx_val address,
                     uint32_t first)
{
	const bool bytes = is_byte(type);
	const uint32_t each = bytes ? 4 : 2;

	if (!(bytes ? can_round(k, at, part, type) : can_narrow(k, at, part, type)) ||
	    !kit_value(k, at, "cptx_acc_put_a", "the address", address, KIT_U32 | KIT_WHOLE))
		return;
	if (!is_part(part) || part->count % each || first % each) {
		cptx_fail_(k, at,
		           "a part that cptx_acc_load should have made, put from element %u on; that, and the number of elements, "
		           "are multiples of %u",
		           first, each);
		return;
	}
	cptx_val words = bytes ? CPTX_NONE_ : cptx_acc_narrow_(k, at, part, type);
	if (bytes) {
		words = cptx_regs_(k, at, CPTX_B32, part->count / each);
		for (uint32_t i = 0; i < words.count; i++) {
			const cptx_val v[] = { cptx_elem(part->regs, 4 * i), cptx_elem(part->regs, 4 * i + 1),
				                   cptx_elem(part->regs, 4 * i + 2), cptx_elem(part->regs, 4 * i + 3) };
			CALL(mov, .a = kit_round_word(k, at, type, v), .into = cptx_elem(words, i));
		}
	}
	store_columns(k, at, lanes_at(k, at, part, address, first / each), words);
}

/* ---- to global memory ---- */

/* A predicate: first + more < end; NONE: always. */
static cptx_val is_inside(cptx_kernel *k, cptx_site at, cptx_val first, uint32_t more, cptx_val end)
{
	if (end.kind == CPTX_VAL_NONE)
		return CPTX_NONE_;
	return CALL(setp, .a = cptx_acc_coordinate_(k, at, first, more, CPTX_NONE_), .b = end, .cmp = CPTX_LT, .type = CPTX_U32);
}

static cptx_val both(cptx_kernel *k, cptx_site at, cptx_val p, cptx_val q)
{
	if (p.kind == CPTX_VAL_NONE || q.kind == CPTX_VAL_NONE)
		return p.kind == CPTX_VAL_NONE ? q : p;
	return CALL(and, .a = p, .b = q, .type = CPTX_PRED);
}

static bool check_matrix(cptx_kernel *k, cptx_site at, const cptx_acc_matrix *to)
{
	static const char where[] = "cptx_acc_store";
	const uint32_t count = KIT_U32 | KIT_WHOLE | KIT_NONE;

	return KIT_OPTION(where, to, address, KIT_U64 | KIT_NONE) && KIT_OPTION(where, to, pitch, count) &&
	       KIT_OPTION(where, to, rows, count) && KIT_OPTION(where, to, cols, count);
}

static bool can_store(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_acc_matrix *to)
{
	const bool constant = to->pitch.kind == CPTX_VAL_INT;

	if (to->type != acc->type && (acc->type != CPTX_F32 || (to->type != CPTX_BF16 && to->type != CPTX_F16)))
		cptx_fail_(k, at,
		           "an accumulator of .%s stored as .%s; it can be stored as it is, and .f32 as CPTX_BF16 and CPTX_F16",
		           cptx_type_name(acc->type), cptx_type_name(to->type));
	else if (to->address.kind != CPTX_VAL_REG)
		cptx_fail_(k, at, "a matrix without an address: say .address, a .u64 register");
	else if (to->pitch.kind != CPTX_VAL_REG && (!constant || to->pitch.i <= 0 || to->pitch.i % 2))
		cptx_fail_(k, at, "a matrix with rows %lld elements apart: say .pitch, an even number of them",
		           constant ? (long long)to->pitch.i : 0);
	else if (to->cols.kind == CPTX_VAL_INT && to->cols.i % 2)
		cptx_fail_(k, at,
		           "a matrix of .cols = %lld; an even number of columns is stored: cptx_epilogue_store with .vec = 1 "
		           "takes any",
		           (long long)to->cols.i);
	else
		return check_matrix(k, at, to);
	return false;
}

/* Rows of the matrix as the thread has them: their addresses at its first column, and whether they are inside. */
static void find_rows_of(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_acc_matrix *to, cptx_val address[],
                         cptx_val inside[])
{
	const uint32_t bytes = cptx_type_bits(to->type) / 8;
	cptx_val pitch = to->pitch.kind == CPTX_VAL_REG ? cptx_as(to->pitch, CPTX_U32) : to->pitch;
	cptx_val first = kit_plain(k, at, to->address);
	int64_t behind = 0; /* bytes: of the first column, where it is a constant */

	if (acc->col.kind == CPTX_VAL_REG)
		first = CALL(add, .a = first, .b = CALL(mul_wide, .a = acc->col, .b = cptx_imm(bytes)));
	else
		behind = acc->col.i * bytes;
	for (uint32_t i = 0; i < acc->rows; i++) {
		const uint32_t more = i / acc->atom_rows * acc->map.rows + acc->atom_row[i % acc->atom_rows];
		cptx_val row = cptx_acc_coordinate_(k, at, acc->row, more, CPTX_NONE_);
		cptx_val elements = CALL(mul_wide, .a = row, .b = pitch);
		address[i] = cptx_offset(CALL(mad, .a = elements, .b = cptx_imm(bytes), .c = first, .mode = CPTX_LO), behind);
		inside[i] = is_inside(k, at, acc->row, more, to->rows);
	}
}

enum { MOST_ROWS = 512 };

void cptx_acc_store_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_acc_matrix *opt)
{
	cptx_acc_matrix given, *to = &given;
	cptx_val address[MOST_ROWS], row_inside[MOST_ROWS];

	if (!kit_acc_has_registers(k, at, acc) || !IS_GIVEN_TO(k, at, opt, "matrix") ||
	    !OPTIONS_READ_IN(cptx_acc_matrix, to, opt, at, k) || !can_store(k, at, acc, to))
		return;
	const uint32_t bytes = cptx_type_bits(to->type) / 8;
	find_rows_of(k, at, acc, to, address, row_inside);
	for (uint32_t i = 0; i + 1 < acc->count; i += 2) {
		const cptx_acc_elem e = cptx_acc_at(acc, i);
		const cptx_val pair[2] = { e.value, cptx_elem(acc->regs, i + 1) };
		const cptx_val col_inside = is_inside(k, at, acc->col, e.col, to->cols);
		const cptx_val when = both(k, at, row_inside[e.at_row], col_inside);
		kit_store(k, at, to->type, pair, 2, cptx_offset(address[e.at_row], (int64_t)e.col * bytes), CPTX_GLOBAL, when);
	}
}
