/* SPDX-License-Identifier: MIT */
/* An index of where the blocks found so far begin and end, by which a new block is compared with all of them in a few steps.
 */
#include "to_c/to_c.h"

bool blocks_begin(to_c_body *b)
{
	size_t n = b->nplace = (size_t)b->nitem + 2; /* one more than items: the body ends behind the last item */

	b->ends = TO_C_ARRAY(b->t, to_c_ends, n);
	b->reach = TO_C_ARRAY(b->t, to_c_reach, 2 * n);
	b->open = TO_C_ARRAY(b->t, int32_t, n + 1);
	for (size_t i = 0; !b->t->failed && i < n; i++)
		b->ends[i] = (to_c_ends){ .loop = IR_NONE, .pair = IR_NONE };
	for (size_t i = 0; !b->t->failed && i < 2 * n; i++)
		b->reach[i].start = IR_NONE;
	return !b->t->failed;
}

/* Adds `more` to the number of open blocks from a place on; b->open is a tree of sums (Fenwick's). */
static void count(to_c_body *b, size_t at, int32_t more)
{
	for (size_t i = at + 1; i <= b->nplace; i += i & (~i + 1))
		b->open[i] += more;
}

bool blocks_add(to_c_body *b, enum to_c_block_kind kind, uint32_t start, uint32_t end)
{
	if (!arena_push(&b->t->a, &b->block, b->nblock, &b->cap_block, sizeof *b->block))
		return to_c_no_memory(b->t);
	b->block[b->nblock++] = (to_c_block){ .kind = kind, .start = start, .end = end, .pair = IR_NONE };
	for (size_t i = b->nplace + start; i; i /= 2)
		b->reach[i].end = MAX(b->reach[i].end, end);
	for (size_t i = b->nplace + end; i; i /= 2)
		b->reach[i].start = MIN(b->reach[i].start, start);
	count(b, start, 1);
	count(b, end, -1);
	to_c_ends *e = &b->ends[end];
	e->last = MAX(e->last, start);
	e->loop = kind == TO_C_DO ? MIN(e->loop, start) : e->loop;
	return true;
}

bool blocks_cross(const to_c_body *b, uint32_t start, uint32_t end)
{
	uint32_t first = IR_NONE,
			 last = 0; /* the first start of the blocks that end in the range, and the last end of those that start there */

	for (size_t l = b->nplace + start + 1, r = b->nplace + end; l < r; l = (l + 1) / 2, r /= 2) {
		const to_c_reach *left = l % 2 ? &b->reach[l] : NULL, *right = r % 2 ? &b->reach[r - 1] : NULL;
		first = MIN(first, MIN(left ? left->start : IR_NONE, right ? right->start : IR_NONE));
		last = MAX(last, MAX(left ? left->end : 0, right ? right->end : 0));
	}
	return first < start || last > end;
}

unsigned blocks_around(const to_c_body *b, uint32_t at)
{
	int32_t n = 0;

	for (size_t i = (size_t)at + 1; i; i &= i - 1)
		n += b->open[i];
	return (unsigned)n;
}
