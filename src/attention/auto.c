/* SPDX-License-Identifier: MIT */
/* Picks a shape: what each takes for the blocks of a problem, by a model of the chip. */
#include "attention/attention.h"
#include "base/options.h"

#include <stdlib.h>

/* Of an H200; per_tile: Q's first load, the first block, which overlaps with nothing, and the epilogue. */
enum { CYCLES_PER_TILE = 4000, MOST_SHAPES = 64, FEW_ROWS = 128 };
#define CLOCK_MHZ 1600.0

/* ---- blocks, in closed form ---- */

/* The sum of floor((a * i + b) / m) for i from 0 to n - 1; all are 0 or more: as Euclid's algorithm goes. */
static double sum_of_floors(int64_t n, int64_t m, int64_t a, int64_t b)
{
	double sum = 0;

	while (n > 0) {
		sum += (double)(a / m) * ((double)n * (double)(n - 1) / 2) + (double)(b / m) * (double)n;
		a %= m, b %= m;
		/* what is left are the lattice points below a line, which are counted along the other axis */
		const int64_t most = a * n + b, turned = m;
		n = most / m, b = most % m, m = a, a = turned;
		if (!m)
			break;
	}
	return sum;
}

/* The rows of a head's tiles on the axis of keys. */
typedef struct tile_rows {
	int64_t n, step;    /* whole tiles, and the queries of one */
	int64_t end, first; /* of tile 0: keys in front of `end` count, from `first` on, before both are clamped */
	int64_t keys, bk;
} tile_rows;

/* The blocks that end in front of the ends: the sum of ceil(clamp(end + i * step, 0, keys) / bk). */
static double sum_of_ends(const tile_rows *r)
{
	const int64_t begin = attention_min(r->end > 0 ? 0 : -r->end / r->step + 1, r->n);
	const int64_t full = attention_max(attention_min((r->keys - r->end + r->step - 1) / r->step, r->n), begin);

	return sum_of_floors(full - begin, r->bk, r->step, r->end + begin * r->step + r->bk - 1) +
	       (double)(r->n - full) * (double)((r->keys + r->bk - 1) / r->bk);
}

static double sum_of_firsts(const tile_rows *r)
{
	const int64_t begin = attention_min(r->first >= 0 ? 0 : (-r->first + r->step - 1) / r->step, r->n);

	return sum_of_floors(r->n - begin, r->bk, r->step, r->first + begin * r->step);
}

/* Of one tile. */
static int64_t blocks_of(const tile_rows *r, int64_t end, int64_t first)
{
	end = attention_max(attention_min(end, r->keys), 0);
	return attention_max((end + r->bk - 1) / r->bk - attention_max(first, 0) / r->bk, 0);
}

attention_work attention_work_of(const cptx_attention_opt *o, const cptx_attention_problem *p)
{
	const int64_t shift = o->top_left ? 0 : (int64_t)p->keys - p->queries, bq = attention_tile_queries(o);
	const int64_t right = o->causal ? 0 : attention_min(p->window_right, ATTENTION_MOST_ROWS);
	const int64_t left = attention_min(p->window_left, ATTENTION_MOST_ROWS), tiles = attention_up(p->queries, bq);
	tile_rows r = { tiles - 1, bq, p->keys, 0, p->keys, o->bk };

	if (!p->queries || !p->keys)
		return (attention_work){ 0, 0 };
	if (o->causal || o->window)
		r.end = bq + shift + right;
	if (o->window)
		r.first = shift - left;
	const int64_t last_end = o->causal || o->window ? p->queries + shift + right : p->keys;
	const int64_t last_first = o->window ? r.first + (tiles - 1) * bq : 0;
	const int64_t behind = attention_up(p->keys, o->bk) * (int64_t)o->bk - r.first; /* tiles from there on see no key */
	if (o->window)
		r.n = attention_max(attention_min(r.n, (behind + bq - 1) / bq), 0);
	attention_work w = { .longest = (double)blocks_of(&r, last_end, last_first) };
	if (r.n > 0 && o->window) /* those in the midst are as long as the window and a tile */
		w.longest = (double)attention_min(attention_up(p->keys, o->bk), (bq + left + right + o->bk - 1) / o->bk + 1);
	const double firsts = o->window ? sum_of_firsts(&r) : 0;
	w.blocks = (double)blocks_of(&r, last_end, last_first) +
	           (o->causal || o->window ? sum_of_ends(&r) : (double)r.n * (double)attention_up(p->keys, o->bk)) - firsts;
	return w;
}

uint32_t attention_pack_for(const cptx_attention_opt *o, const cptx_attention_problem *p)
{
	const uint32_t group = p->kv_heads ? p->heads / p->kv_heads : 1;
	uint32_t pack = 1;

	if (o->mma != CPTX_ATTENTION_WGMMA)
		return 0;
	while (group % (2 * pack) == 0 && 2 * pack <= ATTENTION_MOST_PACK && 2 * pack * (uint64_t)p->queries <= o->bq &&
	       attention_can_pack(o, 2 * pack))
		pack *= 2;
	return pack > 1 ? pack : 0;
}

void attention_set_pack(cptx_attention_opt *o, const cptx_attention_problem *p, bool open)
{
	cptx_attention_opt smaller = *o;

	o->pack = attention_pack_for(o, p);
	smaller.bq = FEW_ROWS; /* tiles of 192 rows have no power of two of them for each head */
	if (o->pack || !open || o->bq <= FEW_ROWS || !(smaller.pack = attention_pack_for(&smaller, p)))
		return;
	*o = smaller;
}

/* ---- times ---- */

static void predict(cptx_attention_choice *c, const cptx_attention_problem *p, uint32_t sms)
{
	const cptx_attention_opt *o = &c->opt;
	const double planes = (double)attention_tile_heads(o, p) * p->batch;
	const double rows = attention_up(p->queries, attention_tile_queries(o)), tiles = rows * planes;
	const attention_work w = attention_work_of(o, p);
	double mma, softmax;

	attention_generator_of(o)->cycles(o, &mma, &softmax);
	const attention_generator *g = attention_generator_of(o);
	const double block = mma > softmax ? mma + g->serial * softmax : softmax + g->serial * mma, us = 1 / (CLOCK_MHZ * sms);
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

/* The model's shapes that the options leave open.  usual: completed options, which tell whether a problem is right: of the
 * usual shape, or where what is given of it does not fit that, of one of these.  False: none is right, and err says why. */
static bool find_shapes(const cptx_attention_opt *opt, cptx_attention_opt *given, cptx_attention_opt shape[MOST_SHAPES],
                        size_t *n, cptx_attention_opt *usual, cptx_error *err)
{
	cptx_error why = { .code = CPTX_OK };
	cptx_attention_plan plan;

	if (!IS_GIVEN(opt, "options struct", NOWHERE, err) || !OPTIONS_READ(cptx_attention_opt, given, opt, NOWHERE, err))
		return false;
	const bool fits = attention_read(usual, opt, NULL, &plan, &why), known = (unsigned)given->mma < CPTX_ATTENTION_MMAS;
	*n = known ? attention_generator_of(given)->shapes(given, shape, MOST_SHAPES) : 0;
	if (fits || (*n && attention_read(usual, &shape[0], NULL, &plan, err)))
		return true;
	if (err)
		*err = why;
	return false;
}

/* Adds a shape to the n choices where it can do the problem; else err says why it cannot. */
static size_t offer(const cptx_attention_opt *o, uint32_t pack, const cptx_attention_problem *p, uint32_t sms,
                    cptx_attention_choice *choices, size_t n, cptx_error *err)
{
	cptx_attention_choice *c = &choices[n];

	*c = (cptx_attention_choice){ .opt = *o };
	c->opt.pack = pack ? pack : attention_pack_for(o, p);
	if (!cptx_attention_check_problem(&c->opt, p, sms, NULL, err))
		return n;
	predict(c, p, sms ? sms : 1);
	return n + 1;
}

size_t cptx_attention_auto_(const cptx_attention_opt *opt, const cptx_attention_problem *problem, uint32_t sms,
                            cptx_attention_choice *choices, size_t size, size_t room, cptx_error *err)
{
	cptx_attention_choice all[MOST_SHAPES];
	cptx_attention_opt shape[MOST_SHAPES], usual, given;
	cptx_attention_problem p;
	size_t shapes, n = 0;

	if (!find_shapes(opt, &given, shape, &shapes, &usual, err) || !attention_read_problem(&p, problem, &usual, err) ||
	    !CHOICES_FIT(cptx_attention_choice, choices, size, room, err))
		return 0;
	for (size_t i = 0; i < shapes; i++)
		n = offer(&shape[i], given.pack, &p, sms, all, n, NULL);
	usual.name = given.name;
	if (!n) /* the model has none for these options, and the usual shape may fit */
		n = offer(&usual, given.pack, &p, sms, all, n, err);
	qsort(all, n, sizeof *all, by_time);
	for (size_t i = 0; i < n && i < room; i++)
		CHOICE_WRITE(cptx_attention_choice, cptx_attention_opt, choices, i, size, opt->size, &all[i]);
	return n < room ? n : room;
}
