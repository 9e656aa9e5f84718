/* SPDX-License-Identifier: MIT */
/*
 * Teams: CTAs that share a row and are no cluster, so that they may lie on any multiprocessors.  All of a launch are there
 * at once, and meet in global memory.
 *
 * Each CTA has one part of the columns.  A reduction leaves what it found of its part in a slot, of this row and reduction
 * alone, and reads those of the others as soon as they are there: each register stands beside a word that is not 0, in one
 * access of 64 bits, so that no fence waits for the stores of the rows before.  A launch in front clears the slots.
 *
 * Multiprocessors are not equally fast.  CTAs of the same part share their rows by a counter: the next one takes who has
 * room for it.  Each takes rows in their order, so the first row that is not done has all its CTAs at work.
 */
#include "rows/core.h"

#include <cptx/cptx.h>

uint32_t rows_meetings(const cptx_rows_opt *o) { return o->smoothing != 0 ? 2 : 1; }

uint64_t rows_meeting_bytes(const cptx_rows_opt *o, uint32_t rows)
{
	return (uint64_t)o->split * (ROWS_COUNTER + (uint64_t)rows * rows_meetings(o) * ROWS_SLOT);
}

void rows_team_begin(cptx_rows_row *r)
{
	r->result = cptx_mov(r->k, cptx_shared(r->k, CPTX_B32, ROWS_SLOT_VALUES), .type = CPTX_U32);
}

cptx_val rows_team_claim(const cptx_rows_row *r)
{
	cptx_kernel *k = r->k;
	cptx_val counter = cptx_add(k, r->meeting, cptx_mul_wide(k, r->part, ROWS_COUNTER));

	return cptx_atom(k, counter, 1, .sem = CPTX_RELAXED, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .op = CPTX_ADD,
	                 .type = CPTX_U32);
}

/* The slot of part 0 of this row and reduction. */
static cptx_val slots_of(cptx_kernel *k, cptx_site at, const cptx_rows_row *r)
{
	const uint32_t parts = r->o->split, all = rows_meetings(r->o) * parts * ROWS_SLOT;
	cptx_val row = CALL(add, .a = r->meeting, .b = CALL(mul_wide, .a = r->row, .b = cptx_imm(all)));

	return CALL(add, .a = row, .b = cptx_imm((int64_t)parts * (ROWS_COUNTER + r->reductions * ROWS_SLOT)));
}

/* One or two registers of v from the i-th on, each with a word that is not 0. */
static void leave(cptx_kernel *k, cptx_site at, cptx_val to, cptx_val v, uint32_t i, cptx_val when)
{
	const uint32_t n = v.count - i >= 2 ? 2 : 1;
	cptx_val both[2];

	for (uint32_t j = 0; j < n; j++) {
		const cptx_val words[] = { cptx_as(cptx_elem(v, i + j), CPTX_B32), cptx_var_(k, at, CPTX_B32, cptx_imm(1)) };
		both[j] = CALL(mov, .a = cptx_pack(k, 2, words), .type = CPTX_B64);
	}
	CALL(st, .a = cptx_offset(to, (int64_t)i * 8), .b = n == 2 ? cptx_pack(k, 2, both) : both[0], .sem = CPTX_RELAXED,
	     .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_B64, .vec = n == 2 ? CPTX_V2 : (enum cptx_mod)0,
	     .when = when);
}

/* Waits for these, and puts them into v. */
static void take(cptx_kernel *k, cptx_site at, cptx_val from, cptx_val v, uint32_t i)
{
	const uint32_t n = v.count - i >= 2 ? 2 : 1;
	cptx_val both = cptx_regs_(k, at, CPTX_B64, n), is_there = { 0 };

	cptx_wait_begin_(k, at);
	CALL(ld, .a = cptx_offset(from, (int64_t)i * 8), .sem = CPTX_RELAXED, .scope = CPTX_GPU, .space = CPTX_GLOBAL,
	     .type = CPTX_B64, .vec = n == 2 ? CPTX_V2 : (enum cptx_mod)0, .into = both);
	for (uint32_t j = 0; j < n; j++) {
		cptx_val word = cptx_regs_(k, at, CPTX_B32, 1);
		const cptx_val words[] = { cptx_as(cptx_elem(v, i + j), CPTX_B32), word };
		CALL(mov, .a = cptx_elem(both, j), .into = cptx_pack(k, 2, words));
		cptx_val one = CALL(setp, .a = cptx_as(word, CPTX_U32), .b = cptx_imm(0), .cmp = CPTX_NE);
		is_there = j ? CALL(and, .a = is_there, .b = one) : one;
	}
	cptx_wait_end_(k, at, CPTX_WAIT_LOOP, is_there);
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/* v of each lane becomes that of a part; of lanes behind the last part, what changes nothing. */
static void take_all(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, cptx_val v, enum cptx_reduce_op op,
                     cptx_val slots)
{
	const uint32_t parts = r->o->split, lanes = power_of_two(parts);
	cptx_val lane = CALL(and, .a = r->thread, .b = cptx_imm(lanes - 1));
	cptx_val from = CALL(add, .a = slots, .b = CALL(mul_wide, .a = lane, .b = cptx_imm(ROWS_SLOT)));

	if (lanes != parts) {
		cptx_reduce_clear_(k, at, v, op);
		for (uint32_t i = 0; op == CPTX_REDUCE_SOFTMAX && i < v.count; i += 2) /* no maximum of others is lower */
			CALL(mov, .a = cptx_f32_bits(0xff7fffffu), .into = cptx_elem(v, i));
		cptx_if_begin_(k, at, CALL(setp, .a = lane, .b = cptx_imm(parts), .cmp = CPTX_LT));
	}
	for (uint32_t i = 0; i < v.count; i += 2)
		take(k, at, from, v, i);
	if (lanes != parts)
		cptx_block_end_(k, at);
}

/* What was read of others' parts is read in front of what is stored behind the reduction, perhaps in its place. */
static void fence(cptx_kernel *k, cptx_site at) { CALL(fence, .sem = CPTX_ACQ_REL, .scope = CPTX_GPU); }

/* The first warp leaves what the CTA found, waits for the others, and tells its own CTA. */
void rows_team_reduce(cptx_kernel *k, cptx_site at, cptx_rows_row *r, cptx_val v, enum cptx_reduce_op op)
{
	const bool orders = r->read_alone;

	if (r->reductions >= rows_meetings(r->o) || v.count > ROWS_SLOT_VALUES) {
		cptx_fail_(k, at, "reduction %u, of %u registers; CTAs that are no cluster meet %u times, with %d registers",
		           r->reductions, v.count, rows_meetings(r->o), ROWS_SLOT_VALUES);
		return;
	}
	cptx_reduce_cta_(k, at, &r->all, v, op);
	cptx_val slots = slots_of(k, at, r), first = CALL(setp, .a = r->thread, .b = cptx_imm(0), .cmp = CPTX_EQ);
	cptx_if_begin_(k, at, CALL(setp, .a = r->thread, .b = cptx_imm(CPTX_WARP), .cmp = CPTX_LT));
	cptx_val mine = CALL(add, .a = slots, .b = CALL(mul_wide, .a = r->part, .b = cptx_imm(ROWS_SLOT)));
	if (orders)
		fence(k, at);
	for (uint32_t i = 0; i < v.count; i += 2)
		leave(k, at, mine, v, i, first);
	take_all(k, at, r, v, op, slots);
	if (orders)
		fence(k, at);
	cptx_reduce_lanes_(k, at, v, op, power_of_two(r->o->split));
	for (uint32_t i = 0; i < v.count; i++)
		CALL(st, .a = cptx_offset(r->result, i * 4), .b = cptx_elem(v, i), .space = CPTX_SHARED, .when = first);
	cptx_block_end_(k, at);
	if (r->o->threads > CPTX_WARP) {
		CALL(bar_sync, .a = cptx_imm(0));
		for (uint32_t i = 0; i < v.count; i++)
			CALL(ld, .a = cptx_offset(r->result, i * 4), .space = CPTX_SHARED, .into = cptx_elem(v, i));
	}
	r->reductions++, r->read_alone = false;
}

void rows_build_clear(cptx_module *m, const char *name)
{
	cptx_kernel *k = cptx_kernel_begin(m, name, .block = { ROWS_CLEAR_THREADS });
	cptx_param_row table[ROWS_PARAMS];
	cptx_params params = { .n = 0 };
	const size_t n = rows_clear_table(table);

	if (!k)
		return;
	cptx_params_declare(k, &params, table, n);
	cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
	cptx_val at = cptx_params_get(k, &params, "meeting"), words = cptx_params_get(k, &params, "words");
	cptx_val i = cptx_mad(k, cptx_ctaid_x(k), ROWS_CLEAR_THREADS, cptx_tid_x(k), .mode = CPTX_LO);
	const cptx_val none[] = { cptx_imm(0), cptx_imm(0) };
	cptx_st(k, cptx_add(k, at, cptx_mul_wide(k, i, ROWS_CLEARED)), cptx_pack(k, 2, none), .space = CPTX_GLOBAL,
	        .type = CPTX_B64, .vec = CPTX_V2, .when = cptx_setp(k, i, words, .cmp = CPTX_LT));
}
