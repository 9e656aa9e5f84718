/* SPDX-License-Identifier: MIT */
/*
 * Sorts whole numbers in the registers of a warp, by a bitonic network whose runs all fall: with `per` registers each,
 * number e of a list is register e % per of lane e / per.  Two runs of `size` / 2 numbers become one by comparing each
 * number with the one that is as far from the other end, and then those of each half with one another.
 */
#include "rows/rows.h"

#include <cptx/cptx.h>

enum { LANE_BITS = 5, MOST = 8 /* registers of a list */ };

typedef struct sorter {
	cptx_kernel *k;
	cptx_val v;              /* of the list */
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

/* Of the lane whose number has these bits changed. */
static cptx_val of_lane(cptx_kernel *k, cptx_val v, uint32_t bits)
{
	enum { ALL = CPTX_WARP - 1 };

	if (v.type == CPTX_U32)
		return cptx_as(cptx_shfl_sync(k, v, bits, ALL, -1, .mode = CPTX_BFLY), CPTX_U32);
	cptx_val half = cptx_regs(k, CPTX_B32, 2), there[2];
	const cptx_val halves[] = { cptx_elem(half, 0), cptx_elem(half, 1) };
	cptx_mov(k, cptx_as(v, CPTX_B64), .into = cptx_pack(k, 2, halves));
	for (uint32_t i = 0; i < 2; i++)
		there[i] = cptx_shfl_sync(k, halves[i], bits, ALL, -1, .mode = CPTX_BFLY);
	return cptx_as(cptx_mov(k, cptx_pack(k, 2, there), .type = CPTX_B64), CPTX_U64);
}

/* The larger one goes to a. */
static void order(cptx_kernel *k, cptx_val a, cptx_val b)
{
	cptx_val larger = cptx_max(k, a, b);

	cptx_min(k, a, b, .into = b);
	cptx_mov(k, larger, .into = a);
}

/* A number e is compared with e ^ bits, of which the lower one becomes the larger: bits - 1 up to the highest one. */
static void step(const sorter *s, uint32_t bits)
{
	const uint32_t own = bits & (s->per - 1), lanes = bits / s->per;
	cptx_val other[MOST];

	if (!lanes) {
		for (uint32_t i = 0; i < s->per; i++)
			if ((i ^ own) > i)
				order(s->k, cptx_elem(s->v, i), cptx_elem(s->v, i ^ own));
		return;
	}
	cptx_val upper = s->bit[log_of(lanes + 1) - 1]; /* by the highest bit */
	for (uint32_t i = 0; i < s->per; i++)
		other[i] = of_lane(s->k, cptx_elem(s->v, i ^ own), lanes);
	for (uint32_t i = 0; i < s->per; i++) {
		cptx_val mine = cptx_elem(s->v, i);
		cptx_val takes = cptx_setp(s->k, other[i], mine, .c = upper, .boolop = CPTX_XOR, .cmp = CPTX_GT);
		cptx_mov(s->k, other[i], .into = mine, .when = takes);
	}
}

/* A list whose numbers first rise and then fall, or the reverse. */
static void merge(const sorter *s, uint32_t size)
{
	for (uint32_t apart = size / 2; apart; apart /= 2)
		step(s, apart);
}

static void sort(const sorter *s)
{
	for (uint32_t size = 2; size <= s->per * CPTX_WARP; size *= 2) {
		step(s, size - 1);
		merge(s, size / 2);
	}
}

void rows_sort_warp(cptx_kernel *k, cptx_val v)
{
	const uint32_t per = v.count / 2;
	cptx_val lane = cptx_and(k, cptx_tid_x(k), CPTX_WARP - 1);
	sorter s[2] = { { .k = k, .per = per, .v = cptx_slice(v, 0, per) }, { .per = 0 } };

	for (uint32_t i = 0; i < LANE_BITS; i++)
		s[0].bit[i] = cptx_setp(k, cptx_and(k, lane, 1u << i), 0, .cmp = CPTX_NE);
	s[1] = s[0], s[1].v = cptx_slice(v, per, per);
	sort(&s[0]), sort(&s[1]);
	/* the larger of a number and its counterpart at the other end of the second list are the largest ones */
	for (uint32_t i = 0; i < per; i++) {
		cptx_val mine = cptx_elem(s[0].v, i);
		cptx_max(k, mine, of_lane(k, cptx_elem(s[1].v, per - 1 - i), CPTX_WARP - 1), .into = mine);
	}
	merge(&s[0], per * CPTX_WARP);
}
