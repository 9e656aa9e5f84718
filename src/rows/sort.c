/* SPDX-License-Identifier: MIT */
/*
 * Sorts whole numbers in the registers of a warp, by Batcher's bitonic network: with .count registers each, number e is
 * register e % .count of lane e / .count.  A run of `size` numbers falls where e & size is 0 and else rises, so that the
 * runs of twice that size become one.
 */
#include "rows/rows.h"

#include <cptx/cptx.h>

enum { LANE_BITS = 5 };

typedef struct sorter {
	cptx_kernel *k;
	cptx_val v;
	cptx_val bit[LANE_BITS]; /* predicates: the bits of the lane's number */
	uint32_t per;
} sorter;

static uint32_t log_of(uint32_t n)
{
	uint32_t log = 0;

	while (1u << log < n)
		log++;
	return log;
}

/* The predicate that bit `of` of the number e is set, which is one of the lane's. */
static cptx_val bit_of(const sorter *s, uint32_t of) { return s->bit[log_of(of / s->per)]; }

static cptx_val shuffled(cptx_kernel *k, cptx_val v, uint32_t lanes)
{
	enum { ALL = CPTX_WARP - 1 };

	if (v.type == CPTX_U32)
		return cptx_as(cptx_shfl_sync(k, v, lanes, ALL, -1, .mode = CPTX_BFLY), CPTX_U32);
	cptx_val half = cptx_regs(k, CPTX_B32, 2), there[2];
	const cptx_val halves[] = { cptx_elem(half, 0), cptx_elem(half, 1) };
	cptx_mov(k, cptx_as(v, CPTX_B64), .into = cptx_pack(k, 2, halves));
	for (uint32_t i = 0; i < 2; i++)
		there[i] = cptx_shfl_sync(k, halves[i], lanes, ALL, -1, .mode = CPTX_BFLY);
	return cptx_as(cptx_mov(k, cptx_pack(k, 2, there), .type = CPTX_B64), CPTX_U64);
}

/* Whether a > b; where `turns` is not NONE, turned by it. */
static cptx_val is_greater(cptx_kernel *k, cptx_val a, cptx_val b, cptx_val turns)
{
	if (turns.kind == CPTX_VAL_NONE)
		return cptx_setp(k, a, b, .cmp = CPTX_GT);
	return cptx_setp(k, a, b, .c = turns, .boolop = CPTX_XOR, .cmp = CPTX_GT);
}

/* Compares with the numbers `apart` further, in other lanes, of which the upper one of a falling run keeps the smaller. */
static void step_of_lanes(const sorter *s, uint32_t apart, cptx_val rises)
{
	cptx_kernel *k = s->k;
	cptx_val upper = bit_of(s, apart), smaller = rises.kind == CPTX_VAL_NONE ? upper : cptx_xor(k, upper, rises);

	for (uint32_t i = 0; i < s->per; i++) {
		cptx_val mine = cptx_elem(s->v, i), other = shuffled(k, mine, apart / s->per);
		cptx_mov(k, other, .into = mine, .when = is_greater(k, other, mine, smaller));
	}
}

/* Compares numbers that the lane itself has, `apart` from one another: runs within the lane rise or fall by their places. */
static void step_of_own(const sorter *s, uint32_t apart, uint32_t size, cptx_val rises)
{
	cptx_kernel *k = s->k;

	for (uint32_t i = 0; i < s->per; i++) {
		if (i & apart)
			continue;
		const bool back = size < s->per && i & size;
		cptx_val a = cptx_elem(s->v, back ? i + apart : i), b = cptx_elem(s->v, back ? i : i + apart);
		cptx_val swaps = is_greater(k, b, a, rises), kept = cptx_mov(k, a);
		cptx_mov(k, b, .into = a, .when = swaps);
		cptx_mov(k, kept, .into = b, .when = swaps);
	}
}

void rows_sort_warp(cptx_kernel *k, cptx_val v)
{
	sorter s = { .k = k, .v = v, .per = v.count };
	const uint32_t n = v.count * CPTX_WARP;
	cptx_val lane = cptx_and(k, cptx_tid_x(k), CPTX_WARP - 1);

	for (uint32_t i = 0; i < LANE_BITS; i++)
		s.bit[i] = cptx_setp(k, cptx_and(k, lane, 1u << i), 0, .cmp = CPTX_NE);
	for (uint32_t size = 2; size <= n; size *= 2) {
		const cptx_val rises = size >= s.per && size < n ? bit_of(&s, size) : CPTX_NONE_;
		for (uint32_t apart = size / 2; apart; apart /= 2) {
			if (apart >= s.per)
				step_of_lanes(&s, apart, rises);
			else
				step_of_own(&s, apart, size, rises);
		}
	}
}
