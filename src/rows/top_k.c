/* SPDX-License-Identifier: MIT */
/*
 * The .k largest elements of rows.
 *
 * A row's threads find a bound that at least .k elements reach: each has the largest of a few sets of its elements, and the
 * bound is the least, over all sets and warps, of a warp's r-th largest (sets_of).  Few elements more than .k reach it.
 * Those go to a list in shared memory, in any order.  A warp sorts a short list in its registers, as far as it is asked for;
 * else, and of a small .k, the place of each in the result is the number of those that come in front of it.  Where the list
 * has no room, because many elements equal the bound, one is looked for after another.
 *
 * An entry of the list is 64 bits that compare as elements do: the value's bits in an order of whole numbers, and below them
 * the complement of the column, as the first one of equal elements comes first.
 */
#include "rows/core.h"

#include <cptx/cptx.h>

#include <math.h>

#define V(operand) e.v[CPTX_ROWS_##operand]

enum {
	ENTRY = 8,          /* bytes */
	SORTED_FROM = 16,   /* .k from which on a warp sorts */
	AT_ONCE = 4,        /* entries that are compared in a turn of the loop; behind the last one lie zeros */
	MOST_OF_A_WARP = 16 /* rounds in which a warp finds its lanes' r-th largest */
};
static const uint32_t minus_infinity = 0x007fffff; /* as a whole number that compares as the value does */

static uint32_t rounded_up(uint32_t n, uint32_t to) { return (n + to - 1) / to * to; }

/* Entries of a row's list: more than reach the bound, which are about twice .k, and of many warps that have only their
 * largest element to offer about three and a half times their number. */
static uint32_t room_of(const cptx_rows_opt *o)
{
	const uint32_t largest = MAX(o->k, o->per_row / CPTX_WARP), room = largest < 16 ? 64 : largest < 32 ? 128 : 256;

	return rounded_up(MIN(room, o->n), AT_ONCE);
}

uint32_t rows_top_k_static(const cptx_rows_opt *o, const rows_shape *s)
{
	return o->kernel == CPTX_ROWS_TOP_K ? s->rows * (room_of(o) * ENTRY + 16) : 0;
}

/* The threads of a row, or of a row's parts, and their list. */
typedef struct team {
	cptx_kernel *k;
	cptx_rows_row *row;
	uint32_t threads, room;
	bool raw;             /* entries are values and columns yet, as they stand in the row */
	cptx_val list, count; /* .u32 shared addresses: of entry 0, and of the number of entries */
} team;

static void team_sync(const team *t)
{
	if (t->threads > CPTX_WARP)
		cptx_bar_sync(t->k, 0);
	else
		cptx_bar_warp_sync(t->k, 0xffffffffu);
}

/* The list, with zeros in it.  All of the team pass here, and by a barrier before they add to it. */
static team team_of(cptx_rows_row *r, uint32_t threads, uint32_t room)
{
	cptx_kernel *k = r->k;
	const uint32_t pairs = room / 2, lists = r->combines ? 1 : r->s.rows;
	team t = { .k = k, .row = r, .threads = threads, .room = room };

	if (rows_none(r->list))
		r->list = cptx_mov(k, cptx_shared(k, CPTX_B64, lists * (room + 2)), .type = CPTX_U32);
	t.list = lists > 1 ? cptx_mad(k, r->group, (room + 2) * ENTRY, r->list, .mode = CPTX_LO) : r->list;
	t.count = cptx_add(k, t.list, room * ENTRY);
	const cptx_val none[] = { cptx_imm(0), cptx_imm(0) };
	for (uint32_t i = 0; i < pairs + 1; i += threads) { /* the last pair is the count */
		cptx_val number = cptx_add(k, r->thread, i);
		cptx_st(k, cptx_mad(k, number, 2 * ENTRY, t.list, .mode = CPTX_LO), cptx_pack(k, 2, none), .space = CPTX_SHARED,
		        .type = CPTX_B64, .vec = CPTX_V2, .when = cptx_setp(k, number, pairs, .cmp = CPTX_LE));
	}
	return t;
}

/* A whole number that compares as the .f32 does, which is no NaN; both zeros are the same, and come back as +0. */
static cptx_val whole_of(cptx_kernel *k, cptx_val v)
{
	cptx_val bits = cptx_as(cptx_add(k, v, 0.0f), CPTX_S32);
	cptx_val flips = cptx_or(k, cptx_as(cptx_shr(k, bits, 31), CPTX_B32), 0x80000000u);

	return cptx_as(cptx_xor(k, cptx_as(bits, CPTX_B32), flips), CPTX_U32);
}

static cptx_val value_of(cptx_kernel *k, cptx_val whole)
{
	cptx_val sign = cptx_shr(k, cptx_as(cptx_not(k, cptx_as(whole, CPTX_B32)), CPTX_S32), 31);
	cptx_val flips = cptx_or(k, cptx_as(sign, CPTX_B32), 0x80000000u);

	return cptx_as(cptx_xor(k, cptx_as(whole, CPTX_B32), flips), CPTX_F32);
}

/* Adds an entry to the list, as far as that has room. */
static void add(const team *t, cptx_val whole, cptx_val below)
{
	cptx_kernel *k = t->k;
	cptx_val number = cptx_atom(k, t->count, 1, .sem = CPTX_RELAXED, .scope = CPTX_CTA, .space = CPTX_SHARED, .op = CPTX_ADD,
	                            .type = CPTX_U32);
	const cptx_val entry[] = { below, whole };

	cptx_st(k, cptx_mad(k, number, ENTRY, t->list, .mode = CPTX_LO), cptx_pack(k, 2, entry), .space = CPTX_SHARED,
	        .type = CPTX_B32, .vec = CPTX_V2, .when = cptx_setp(k, number, t->room, .cmp = CPTX_LT));
}

/* ---- the bound ---- */

/* The largest of each of so many sets of the thread's elements. */
static cptx_val largest_of_sets(cptx_kernel *k, cptx_rows_row *row, uint32_t sets)
{
	cptx_val largest = cptx_regs(k, CPTX_F32, sets);
	uint32_t i = 0;
	cptx_rows_at e;

	cptx_reduce_clear(k, largest, CPTX_REDUCE_MAX);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .fill = -INFINITY)
	{
		cptx_val to = cptx_elem(largest, i++ % sets);
		cptx_max(k, to, V(X), .into = to);
	}
	return largest;
}

/* The `rank`th of what the lanes have, of the lanes of a warp that hold a row; a little less than it, as its last bits tell
 * lanes with equal values apart. */
static cptx_val ranked(const team *t, cptx_val value, uint32_t rank)
{
	cptx_kernel *k = t->k;
	const uint32_t lanes = MIN(t->threads, (uint32_t)CPTX_WARP);
	cptx_val lane = cptx_and(k, cptx_tid_x(k), CPTX_WARP - 1), whole = whole_of(k, value);
	cptx_val left = cptx_as(cptx_or(k, cptx_and(k, cptx_as(whole, CPTX_B32), ~(uint32_t)(CPTX_WARP - 1)), lane), CPTX_U32);
	cptx_val best = cptx_reg(k, CPTX_U32);

	for (uint32_t i = 0; i < rank; i++) {
		cptx_mov(k, left, .into = best);
		cptx_reduce_lanes(k, best, CPTX_REDUCE_MAX, lanes);
		if (i + 1 < rank)
			cptx_mov(k, cptx_imm(0), .into = left, .when = cptx_setp(k, left, best, .cmp = CPTX_EQ));
	}
	return best;
}

/* How many sets of a thread's elements, and the rank r in a warp's lanes: at least .k elements reach the
 * least of all r-th largest. */
static uint32_t sets_of(const team *t, uint32_t *rank)
{
	const cptx_rows_row *r = t->row;
	const uint32_t lanes = MIN(t->threads, (uint32_t)CPTX_WARP), warps = t->threads / lanes;
	const uint32_t most = lanes == CPTX_WARP ? MOST_OF_A_WARP : MAX(lanes / 2, 1u);
	const uint32_t asked = (r->o->k + most * warps - 1) / (most * warps);
	const uint32_t sets = MIN(asked == 3 ? 4 : asked, rows_elements(r->o, &r->s));

	*rank = (r->o->k + sets * warps - 1) / (sets * warps);
	return sets;
}

/*
 * A number that at least `rank` of the sets' largest of a warp reach, and few more: between the least and the largest of
 * them that part is halved, turn by turn, in which it lies.
 */
static cptx_val halved(const team *t, cptx_val largest, uint32_t rank)
{
	cptx_kernel *k = t->k;
	cptx_val keys = cptx_regs(k, CPTX_U32, largest.count), least = cptx_reg(k, CPTX_U32), most = cptx_reg(k, CPTX_U32);
	cptx_val count = cptx_reg(k, CPTX_U32), half = cptx_reg(k, CPTX_U32), is_in = cptx_reg(k, CPTX_PRED);

	for (uint32_t i = 0; i < keys.count; i++) {
		cptx_val key = cptx_elem(keys, i);
		cptx_mov(k, whole_of(k, cptx_elem(largest, i)), .into = key);
		cptx_min(k, i ? least : key, key, .into = least), cptx_max(k, i ? most : key, key, .into = most);
	}
	cptx_reduce_warp(k, least, CPTX_REDUCE_MIN);
	cptx_reduce_warp(k, most, CPTX_REDUCE_MAX);
	CPTX_DO(k)
	{ /* at least `rank` reach `least` */
		cptx_shr(k, cptx_sub(k, most, least), 1, .into = half);
		cptx_break_when(k, cptx_setp(k, half, 0, .cmp = CPTX_EQ));
		cptx_add(k, half, least, .into = half);
		cptx_mov(k, cptx_imm(0), .into = count);
		for (uint32_t i = 0; i < keys.count; i++)
			cptx_add(k, count, 1, .into = count, .when = cptx_setp(k, cptx_elem(keys, i), half, .cmp = CPTX_GE));
		cptx_reduce_warp(k, count, CPTX_REDUCE_SUM);
		cptx_setp(k, count, rank, .cmp = CPTX_GE, .into = is_in);
		cptx_mov(k, half, .into = least, .when = is_in);
		cptx_mov(k, half, .into = most, .when = cptx_not(k, is_in));
		cptx_val is_more = cptx_setp(k, count, rank + rank / 8, .cmp = CPTX_GT);
		cptx_continue_when(k, cptx_or(k, is_more, cptx_not(k, is_in)));
	}
	return least;
}

/* An .f32 that at least .k of the row's elements reach, or -infinity; *own: the thread's largest element. */
static cptx_val bound_of(const team *t, cptx_val *own)
{
	cptx_kernel *k = t->k;
	uint32_t rank = 0;
	const uint32_t sets = sets_of(t, &rank);
	cptx_val largest = largest_of_sets(k, t->row, sets), least = cptx_reg(k, CPTX_U32);
	const bool halves = t->threads >= CPTX_WARP && sets > 1;

	*own = cptx_elem(largest, 0);
	if (halves) {
		const uint32_t warps = t->threads / CPTX_WARP;
		cptx_mov(k, halved(t, largest, (t->row->o->k + warps - 1) / warps), .into = least);
	}
	for (uint32_t i = 0; i < sets && !halves; i++) {
		cptx_val one = ranked(t, cptx_elem(largest, i), rank);
		if (i)
			cptx_min(k, least, one, .into = least);
		else
			cptx_mov(k, one, .into = least);
	}
	for (uint32_t i = 1; i < sets; i++)
		cptx_max(k, *own, cptx_elem(largest, i), .into = *own);
	if (t->threads > CPTX_WARP)
		cptx_reduce_cta(k, &t->row->all, least, CPTX_REDUCE_MIN);
	else
		team_sync(t);
	least = cptx_and(k, cptx_as(least, CPTX_B32), ~(uint32_t)(CPTX_WARP - 1));
	return value_of(k, cptx_max(k, cptx_as(least, CPTX_U32), cptx_imm(minus_infinity)));
}

/* ---- the list ---- */

/* Whether the element where the pass stands reaches the bound. */
static cptx_val reaches(const team *t, const cptx_rows_at *at, cptx_val bound)
{
	cptx_kernel *k = t->k;
	const cptx_rows_at e = *at;
	cptx_val is_one = cptx_setp(k, V(X), bound, .cmp = CPTX_GE), inside = cptx_rows_inside(k, t->row, &e);

	return rows_none(inside) ? is_one : cptx_and(k, is_one, inside);
}

/* Adds the thread's elements that reach the bound, one by one. */
static void gather_few(const team *t, cptx_val bound, cptx_val own)
{
	cptx_kernel *k = t->k;
	cptx_rows_at e;

	CPTX_IF(k, cptx_setp(k, own, bound, .cmp = CPTX_GE)) {
		CPTX_ROWS_EACH(k, t->row, &e, .reads = R_X, .fill = -INFINITY)
		{
			CPTX_IF(k, reaches(t, &e, bound)) {
				cptx_val whole = whole_of(k, V(X)), column = cptx_as(cptx_rows_column(k, t->row, &e), CPTX_B32);
				cptx_val below = cptx_as(cptx_not(k, column), CPTX_U32);
				add(t, whole, below);
			}
		}
	}
}

/* Where a thread with so many entries puts its first one: its warp takes all places of its lanes at once. */
static cptx_val place_in_list(const team *t, cptx_val count)
{
	cptx_kernel *k = t->k;
	cptx_val lane = cptx_and(k, cptx_tid_x(k), CPTX_WARP - 1), upto = cptx_var(k, CPTX_U32, count);
	cptx_val first = cptx_var(k, CPTX_U32, 0), last = cptx_setp(k, lane, CPTX_WARP - 1, .cmp = CPTX_EQ);

	for (uint32_t d = 1; d < CPTX_WARP; d *= 2) {
		cptx_val below = cptx_as(cptx_shfl_sync(k, upto, d, 0, -1, .mode = CPTX_UP), CPTX_U32);
		cptx_add(k, upto, below, .into = upto, .when = cptx_setp(k, lane, d, .cmp = CPTX_GE));
	}
	cptx_atom(k, t->count, upto, .sem = CPTX_RELAXED, .scope = CPTX_CTA, .space = CPTX_SHARED, .op = CPTX_ADD,
	          .type = CPTX_U32, .into = first, .when = last);
	first = cptx_as(cptx_shfl_sync(k, first, CPTX_WARP - 1, CPTX_WARP - 1, -1, .mode = CPTX_IDX), CPTX_U32);
	return cptx_sub(k, cptx_add(k, first, upto), count);
}

/* Gathers all that reach the bound where many do: values and columns as they are, without a branch for each. */
static void gather_many(const team *t, cptx_val bound)
{
	cptx_kernel *k = t->k;
	cptx_val count = cptx_var(k, CPTX_U32, 0);
	cptx_rows_at e;

	CPTX_ROWS_EACH(k, t->row, &e, .reads = R_X, .fill = -INFINITY)
	{
		cptx_add(k, count, 1, .into = count, .when = reaches(t, &e, bound));
	}
	cptx_val first = place_in_list(t, count), end = cptx_add(k, first, count);
	cptx_val to = cptx_mad(k, first, ENTRY, t->list, .mode = CPTX_LO), has = cptx_setp(k, count, 0, .cmp = CPTX_NE);
	CPTX_IF(k, cptx_and(k, has, cptx_setp(k, end, t->room, .cmp = CPTX_LE))) {
		CPTX_ROWS_EACH(k, t->row, &e, .reads = R_X, .fill = -INFINITY)
		{
			cptx_val is_one = reaches(t, &e, bound), column = cptx_as(cptx_rows_column(k, t->row, &e), CPTX_U32);
			cptx_st(k, to, column, .space = CPTX_SHARED, .when = is_one);
			cptx_st(k, cptx_offset(to, 4), V(X), .space = CPTX_SHARED, .when = is_one);
			cptx_add(k, to, ENTRY, .into = to, .when = is_one);
		}
	}
}

/* Stores what is at place `i`: its whole number, and the complement of its column, of the row or of this part of it. */
static void put(const team *t, cptx_val i, cptx_val whole, cptx_val below, cptx_val when)
{
	cptx_kernel *k = t->k;
	cptx_rows_row *r = t->row;

	if (r->s.parts && !r->combines) {
		const cptx_val entry[] = { below, whole };
		CPTX_IF(k, when) { /* not .when: ptxas would keep the addresses in registers beside the row */
			cptx_val first = rows_part_at(k, CPTX_HERE, r, r->row, r->part);
			cptx_st(k, cptx_add(k, first, cptx_mul_wide(k, i, ENTRY)), cptx_pack(k, 2, entry), .space = CPTX_GLOBAL,
			        .type = CPTX_B32, .vec = CPTX_V2);
		}
		return;
	}
	cptx_val column = cptx_as(cptx_not(k, cptx_as(below, CPTX_B32)), CPTX_U32);
	rows_put_at(k, CPTX_HERE, r, CPTX_ROWS_TOP, i, value_of(k, whole), when);
	rows_put_at(k, CPTX_HERE, r, CPTX_ROWS_AT, i, column, when);
}

/* How many entries of the list come in front of one. */
static cptx_val count_before(const team *t, cptx_val entries, cptx_val entry)
{
	cptx_kernel *k = t->k;
	cptx_val before = cptx_var(k, CPTX_U32, 0), i = cptx_var(k, CPTX_U32, 0);

	CPTX_FOR(k, i, entries, AT_ONCE) {
		cptx_val at = cptx_mad(k, i, ENTRY, t->list, .mode = CPTX_LO);
		for (uint32_t j = 0; j < AT_ONCE; j += 2) {
			cptx_val two = cptx_ld(k, cptx_offset(at, j * ENTRY), .space = CPTX_SHARED, .vec = CPTX_V2, .type = CPTX_U64);
			for (uint32_t h = 0; h < 2; h++)
				cptx_add(k, before, 1, .into = before, .when = cptx_setp(k, cptx_elem(two, h), entry, .cmp = CPTX_GT));
		}
	}
	return before;
}

/* The .k first ones of the list, each by one thread; where there are fewer, -infinity at column -1. */
static void finish(const team *t, cptx_val entries)
{
	cptx_kernel *k = t->k;
	const uint32_t wanted = t->row->o->k;
	cptx_val i = cptx_var(k, CPTX_U32, t->row->thread), all = cptx_max(k, entries, wanted);

	CPTX_FOR(k, i, all, t->threads) {
		cptx_val is_there = cptx_setp(k, i, entries, .cmp = CPTX_LT), at = cptx_mad(k, i, ENTRY, t->list, .mode = CPTX_LO);
		cptx_val two = cptx_regs(k, CPTX_U32, 2), place = cptx_var(k, CPTX_U32, i);
		cptx_mov(k, cptx_imm(0), .into = cptx_elem(two, 0));
		cptx_mov(k, cptx_imm(minus_infinity), .into = cptx_elem(two, 1));
		CPTX_IF(k, is_there) {
			cptx_ld(k, at, .space = CPTX_SHARED, .vec = CPTX_V2, .type = CPTX_U32, .into = two);
			const cptx_val words[] = { cptx_elem(two, 0), cptx_elem(two, 1) };
			cptx_val entry = cptx_mov(k, cptx_pack(k, 2, words), .type = CPTX_B64);
			cptx_mov(k, count_before(t, entries, cptx_as(entry, CPTX_U64)), .into = place);
		}
		put(t, place, cptx_elem(two, 1), cptx_elem(two, 0), cptx_setp(k, place, wanted, .cmp = CPTX_LT));
	}
}

/* Entries that a warp sorts, and whether it does. */
static uint32_t sorted_of(const team *t) { return t->row->o->k <= CPTX_WARP ? 2 * CPTX_WARP : 4 * CPTX_WARP; }
static bool sorts(const team *t) { return t->row->o->k >= SORTED_FROM && t->threads >= CPTX_WARP; }

/* Whether of each 32 elements about one reaches the bound, so that a branch for each would be taken about as often as not.
 */
static bool finds_many(const team *t) { return sorts(t) && t->row->s.part <= 100 * t->row->o->k; }

/* Values of the list become whole numbers, and columns their complements. */
static void make_whole(const team *t, cptx_val entries)
{
	cptx_kernel *k = t->k;
	cptx_val i = cptx_var(k, CPTX_U32, t->row->thread);

	CPTX_FOR(k, i, entries, t->threads) {
		cptx_val at = cptx_mad(k, i, ENTRY, t->list, .mode = CPTX_LO);
		cptx_val column = cptx_ld(k, at, .space = CPTX_SHARED, .type = CPTX_B32);
		cptx_val value = cptx_ld(k, cptx_offset(at, 4), .space = CPTX_SHARED, .type = CPTX_F32);
		cptx_st(k, at, cptx_not(k, column), .space = CPTX_SHARED);
		cptx_st(k, cptx_offset(at, 4), whole_of(k, value), .space = CPTX_SHARED);
	}
	team_sync(t);
}

/*
 * Bits below the values' that a key of 32 bits has for the column: of .bf16 an .f32 has 16 that are 0, of .f16 13.  A key
 * has 64 bits where the row's columns do not fit there; then 0.
 */
static uint32_t column_bits(const team *t)
{
	const cptx_rows_opt *o = t->row->o;
	const uint32_t bits = o->in == CPTX_BF16 ? 16 : o->in == CPTX_F16 ? 13 : 0;

	return o->n <= 1u << bits && bits ? bits : 0;
}

/* Entry i of the list as a key, 0 where there is none. */
static void load_key(const team *t, cptx_val i, cptx_val entries, cptx_val key)
{
	cptx_kernel *k = t->k;
	const uint32_t bits = column_bits(t), mask = (1u << bits) - 1;
	cptx_val two = cptx_regs(k, CPTX_U32, 2), below = cptx_elem(two, 0), whole = cptx_elem(two, 1);
	cptx_val is_there = cptx_setp(k, i, entries, .cmp = CPTX_LT);

	const bool is_short = t->room < sorted_of(t); /* behind the list lies what is not the kernel's */
	for (uint32_t part = 0; is_short && part < 2; part++)
		cptx_mov(k, cptx_imm(0), .into = cptx_elem(two, part));
	cptx_ld(k, cptx_mad(k, i, ENTRY, t->list, .mode = CPTX_LO), .space = CPTX_SHARED, .vec = CPTX_V2, .type = CPTX_U32,
	        .into = two, .when = is_short ? is_there : CPTX_NONE_);
	if (t->raw) {
		below = cptx_as(cptx_not(k, cptx_as(below, CPTX_B32)), CPTX_U32);
		whole = whole_of(k, cptx_as(whole, CPTX_F32));
	}
	if (bits) {
		cptx_val value = cptx_and(k, cptx_as(whole, CPTX_B32), ~mask), column = cptx_and(k, cptx_as(below, CPTX_B32), mask);
		cptx_selp(k, cptx_as(cptx_or(k, value, column), CPTX_U32), 0, is_there, .type = CPTX_U32, .into = key);
		return;
	}
	const cptx_val words[] = { cptx_as(below, CPTX_B32), cptx_as(whole, CPTX_B32) };
	cptx_val both = cptx_as(cptx_mov(k, cptx_pack(k, 2, words), .type = CPTX_B64), CPTX_U64);
	cptx_selp(k, both, 0, is_there, .type = CPTX_U64, .into = key);
}

/* Stores a key at its place; where there are fewer than .k, -infinity at column -1. */
static void put_key(const team *t, cptx_val place, cptx_val key)
{
	cptx_kernel *k = t->k;
	const uint32_t bits = column_bits(t), mask = (1u << bits) - 1;
	cptx_val whole, below;

	if (bits) {
		cptx_val value = cptx_and(k, cptx_as(value_of(k, key), CPTX_B32), ~mask),
				 column = cptx_or(k, cptx_as(key, CPTX_B32), ~mask);
		cptx_val none = cptx_setp(k, key, 0, .cmp = CPTX_EQ);
		whole = whole_of(k, cptx_as(value, CPTX_F32)), below = cptx_as(column, CPTX_U32);
		cptx_mov(k, cptx_imm(minus_infinity), .into = whole, .when = none);
		cptx_mov(k, cptx_imm(0), .into = below, .when = none);
	} else {
		cptx_val half = cptx_regs(k, CPTX_B32, 2);
		const cptx_val words[] = { cptx_elem(half, 0), cptx_elem(half, 1) };
		cptx_mov(k, cptx_as(key, CPTX_B64), .into = cptx_pack(k, 2, words));
		below = cptx_as(words[0], CPTX_U32), whole = cptx_max(k, cptx_as(words[1], CPTX_U32), cptx_imm(minus_infinity));
	}
	put(t, place, whole, below, cptx_setp(k, place, t->row->o->k, .cmp = CPTX_LT));
}

/* The first warp sorts the list in its registers. */
static void finish_sorted(const team *t, cptx_val entries)
{
	cptx_kernel *k = t->k;
	const uint32_t per = sorted_of(t) / CPTX_WARP;

	CPTX_IF(k, cptx_setp(k, t->row->thread, CPTX_WARP, .cmp = CPTX_LT)) {
		cptx_val keys = cptx_regs(k, column_bits(t) ? CPTX_U32 : CPTX_U64, per);
		for (uint32_t i = 0; i < per; i++)
			load_key(t, cptx_add(k, t->row->thread, i * CPTX_WARP), entries, cptx_elem(keys, i));
		rows_sort_warp(k, keys);
		for (uint32_t i = 0; i < per / 2; i++) /* the larger half, at least .k */
			put_key(t, cptx_mad(k, t->row->thread, per / 2, i, .mode = CPTX_LO), cptx_elem(keys, i));
	}
}

static void conclude(const team *t, cptx_val entries)
{
	cptx_kernel *k = t->k;

	if (!sorts(t)) {
		finish(t, entries);
		return;
	}
	CPTX_IF(k, cptx_setp(k, entries, sorted_of(t), .cmp = CPTX_LE)) {
		finish_sorted(t, entries);
	}
	CPTX_ELSE(k) {
		if (t->raw)
			make_whole(t, entries);
		finish(t, entries);
	}
}

/* ---- one after another ---- */

/* The largest element of the thread and its column into `best`; behind: of those that come after this one in the order of
 * values, and of columns among equal ones; NONE: of all. */
static void scan(cptx_kernel *k, cptx_rows_row *row, cptx_val best, cptx_val behind)
{
	cptx_val value = cptx_elem(best, 0), column = cptx_as(cptx_elem(best, 1), CPTX_U32);
	cptx_rows_at e;

	cptx_reduce_clear(k, best, CPTX_REDUCE_ARG_MAX);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .fill = -INFINITY)
	{
		cptx_val c = cptx_as(cptx_rows_column(k, row, &e), CPTX_U32), inside = cptx_rows_inside(k, row, &e);
		cptx_val more = cptx_setp(k, V(X), value, .cmp = CPTX_GT), same = cptx_setp(k, V(X), value, .cmp = CPTX_EQ);
		cptx_val first = cptx_and(k, same, cptx_setp(k, c, column, .cmp = CPTX_LT)), takes = cptx_or(k, more, first);
		if (!rows_none(behind)) {
			cptx_val last = cptx_elem(behind, 0), at = cptx_as(cptx_elem(behind, 1), CPTX_U32);
			cptx_val less = cptx_setp(k, V(X), last, .cmp = CPTX_LT), equal = cptx_setp(k, V(X), last, .cmp = CPTX_EQ);
			cptx_val later = cptx_and(k, equal, cptx_setp(k, c, at, .cmp = CPTX_GT)), left = cptx_or(k, less, later);
			takes = cptx_and(k, takes, left);
		}
		if (!rows_none(inside))
			takes = cptx_and(k, takes, inside);
		cptx_mov(k, V(X), .into = value, .when = takes);
		cptx_mov(k, c, .into = column, .when = takes);
	}
}

static void reduce_team(const team *t, cptx_val v, enum cptx_reduce_op op)
{
	if (t->threads > CPTX_WARP)
		cptx_reduce_cta(t->k, &t->row->all, v, op);
	else
		cptx_reduce_lanes(t->k, v, op, t->threads);
}

/* Only the thread that had the last one looks for its next one. */
static void one_by_one(const team *t)
{
	cptx_kernel *k = t->k;
	cptx_val best = cptx_regs(k, CPTX_F32, 2), found = cptx_regs(k, CPTX_F32, 2), i = cptx_var(k, CPTX_U32, 0);
	cptx_val column = cptx_as(cptx_elem(found, 1), CPTX_U32), own = cptx_as(cptx_elem(best, 1), CPTX_U32);

	scan(k, t->row, best, CPTX_NONE_);
	CPTX_FOR(k, i, t->row->o->k, 1) {
		for (uint32_t part = 0; part < 2; part++)
			cptx_mov(k, cptx_elem(best, part), .into = cptx_elem(found, part));
		reduce_team(t, found, CPTX_REDUCE_ARG_MAX);
		cptx_val whole = whole_of(k, cptx_elem(found, 0)), one = cptx_setp(k, t->row->thread, 0, .cmp = CPTX_EQ);
		cptx_val below = cptx_as(cptx_not(k, cptx_as(column, CPTX_B32)), CPTX_U32);
		put(t, i, whole, below, one);
		cptx_val is_own = cptx_setp(k, own, column, .cmp = CPTX_EQ),
				 there = cptx_setp(k, column, cptx_imm(UINT32_MAX), .cmp = CPTX_NE);
		CPTX_IF(k, cptx_and(k, is_own, there)) {
			scan(k, t->row, best, found);
		}
	}
}

/* ---- the kernels ---- */

void rows_top_k(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	team t = team_of(row, row->o->per_row, room_of(row->o));
	cptx_val own, bound = bound_of(&t, &own);

	(void)user;
	t.raw = finds_many(&t);
	if (t.raw)
		gather_many(&t, bound);
	else
		gather_few(&t, bound, own);
	team_sync(&t);
	cptx_val entries = cptx_ld(k, t.count, .space = CPTX_SHARED, .type = CPTX_U32);
	cptx_val fits = cptx_setp(k, entries, t.room, .cmp = CPTX_LE);
	if (t.threads < CPTX_WARP) /* all rows of a warp go the same way */
		fits = cptx_vote_sync(k, fits, -1, .mode = CPTX_ALL);
	CPTX_IF(k, fits) {
		conclude(&t, entries);
	}
	CPTX_ELSE(k) {
		one_by_one(&t);
	}
	if (!rows_none(row->step)) /* the next row begins with an empty list */
		team_sync(&t);
}

/* A row's parts have .k entries each in the workspace, the first one first.  At least .k entries are not behind the last one
 * of any part, nor behind the least of the parts' r-th ones. */
static cptx_val bound_of_parts(const team *t, cptx_val from)
{
	cptx_kernel *k = t->k;
	const cptx_rows_opt *o = t->row->o;
	const uint32_t rank = (o->k + o->split - 1) / o->split;
	cptx_val part = cptx_and(k, t->row->thread, o->split - 1);
	cptx_val at = cptx_add(k, from, cptx_mul_wide(k, part, o->k * ENTRY));
	cptx_val least = cptx_ld(k, cptx_offset(at, (int64_t)(rank - 1) * ENTRY + 4), .space = CPTX_GLOBAL, .type = CPTX_U32);
	cptx_val last = cptx_ld(k, cptx_offset(at, (int64_t)(o->k - 1) * ENTRY + 4), .space = CPTX_GLOBAL, .type = CPTX_U32);

	cptx_reduce_warp(k, least, CPTX_REDUCE_MIN);
	cptx_reduce_warp(k, last, CPTX_REDUCE_MAX);
	return cptx_max(k, least, last);
}

void rows_build_combine_top_k(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;
	const uint32_t entries = r->o->split * r->o->k;

	r->thread = cptx_tid_x(k), r->row = cptx_ctaid_x(k);
	const team t = team_of(r, ROWS_COMBINE_THREADS, rounded_up(entries, AT_ONCE));
	cptx_val from = cptx_add(k, r->workspace, cptx_mul_wide(k, r->row, entries * ENTRY));
	cptx_val bound = bound_of_parts(&t, from);
	team_sync(&t);
	for (uint32_t i = 0; i < entries; i += ROWS_COMBINE_THREADS) {
		cptx_val number = cptx_add(k, r->thread, i), two = cptx_regs(k, CPTX_U32, 2);
		cptx_val below = cptx_elem(two, 0), whole = cptx_elem(two, 1);
		for (uint32_t part = 0; part < 2; part++)
			cptx_mov(k, cptx_imm(0), .into = cptx_elem(two, part));
		cptx_ld(k, cptx_add(k, from, cptx_mul_wide(k, number, ENTRY)), .space = CPTX_GLOBAL, .vec = CPTX_V2,
		        .type = CPTX_U32, .into = two, .when = cptx_setp(k, number, entries, .cmp = CPTX_LT));
		/* those that stand in for elements that a part does not have are at column -1 */
		cptx_val reaches = cptx_setp(k, whole, bound, .cmp = CPTX_GE), is_one = cptx_setp(k, below, 0, .cmp = CPTX_NE);
		CPTX_IF(k, cptx_and(k, reaches, is_one)) {
			add(&t, whole, below);
		}
	}
	team_sync(&t);
	conclude(&t, cptx_ld(k, t.count, .space = CPTX_SHARED, .type = CPTX_U32));
}
