/* SPDX-License-Identifier: MIT */
/* Picks a shape: what each takes for the blocks of a problem, by a model of the chip. */
#include "attention/attention.h"

#include <stdlib.h>

/* Of an H200; per_tile: Q's first load, the first block, which overlaps with nothing, and the epilogue. */
enum { CYCLES_PER_TILE = 4000, MOST_SHAPES = 64 };
#define CLOCK_MHZ 1600.0

/* Blocks of the rows of tiles of one head: in all, and of the longest. */
typedef struct work {
	double blocks, longest;
} work;

static work work_of(const cptx_attention_opt *o, const cptx_attention_problem *p)
{
	const int64_t shift = o->top_left ? 0 : (int64_t)p->keys - p->queries;
	const int64_t right = o->causal ? 0 : p->window_right;
	work w = { 0 };

	for (int64_t row = 0; row < p->queries; row += o->bq) {
		const int64_t last = attention_min(row + o->bq, p->queries) - 1;
		int64_t end = p->keys, first = 0;
		if (o->causal || o->window)
			end = attention_max(attention_min(last + shift + right + 1, p->keys), 0);
		if (o->window)
			first = attention_max(row + shift - (int64_t)p->window_left, 0);
		const double blocks = (double)attention_max((end + o->bk - 1) / o->bk - first / o->bk, 0);
		w.blocks += blocks;
		w.longest = blocks > w.longest ? blocks : w.longest;
	}
	return w;
}

static void predict(cptx_attention_choice *c, const cptx_attention_problem *p, uint32_t sms)
{
	const cptx_attention_opt *o = &c->opt;
	const double planes = (double)p->heads * p->batch, rows = attention_up(p->queries, o->bq), tiles = rows * planes;
	const work w = work_of(o, p);
	double mma, softmax;

	attention_generator_of(o)->cycles(o, &mma, &softmax);
	const double block = mma > softmax ? mma : softmax, us = 1 / (CLOCK_MHZ * sms);
	const double all = (w.blocks * block + rows * CYCLES_PER_TILE) * planes * us;
	/* the last tiles are the shortest with a causal mask; else whole rounds are run */
	const double longest = (w.longest * block + CYCLES_PER_TILE) / CLOCK_MHZ;
	const double rounds = (double)((uint64_t)(tiles + sms - 1) / sms);
	c->us = o->causal ? all + longest / 4 : rounds * longest;
	c->us = c->us > longest ? c->us : longest;
	c->mma_us = w.blocks * mma * planes * us, c->softmax_us = w.blocks * softmax * planes * us;
	c->tail = c->us > 0 ? 1 - all / c->us : 0;
	const double computed = w.blocks * o->bq * o->bk * planes;
	c->waste = computed > 0 ? 1 - attention_scores(o, p) / computed : 0;
}

static int by_time(const void *a, const void *b)
{
	const double x = ((const cptx_attention_choice *)a)->us, y = ((const cptx_attention_choice *)b)->us;

	return (x > y) - (x < y);
}

size_t cptx_attention_auto(const cptx_attention_opt *opt, const cptx_attention_problem *problem, uint32_t sms,
                           cptx_attention_choice *choices, size_t room, cptx_error *err)
{
	cptx_attention_choice all[MOST_SHAPES];
	cptx_attention_opt shape[MOST_SHAPES], usual;
	cptx_attention_plan plan;
	cptx_attention_problem p;
	size_t n = 0;

	/* the usual shape tells whether the options and the problem are right */
	if (!attention_read(&usual, opt, NULL, &plan, err) || !attention_read_problem(&p, problem, &usual, err) ||
	    !IS_GIVEN(choices, "room for choices", NOWHERE, err))
		return 0;
	cptx_attention_opt given = usual;
	given.bq = opt->bq, given.bk = opt->bk, given.stages = opt->stages;
	const size_t shapes = attention_generator_of(&usual)->shapes(&given, shape, MOST_SHAPES);
	for (size_t i = 0; i < shapes; i++) {
		if (!cptx_attention_check_problem(&shape[i], &p, sms, &plan, NULL))
			continue;
		all[n] = (cptx_attention_choice){ .opt = shape[i] };
		predict(&all[n++], &p, sms ? sms : 1);
	}
	qsort(all, n, sizeof *all, by_time);
	for (size_t i = 0; i < n && i < room; i++)
		choices[i] = all[i];
	return n < room ? n : room;
}
