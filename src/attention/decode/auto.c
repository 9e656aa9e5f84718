/* SPDX-License-Identifier: MIT */
/*
 * Picks a shape and a number of splits by a model of what bounds decoding: the memory, or how many bytes are under way at
 * once (a multiprocessor that asks for few waits for each), and in how many rounds CTAs run.
 */
#include "attention/decode/decode.h"
#include "base/options.h"

#include <stdlib.h>

/* Of an H200. */
#define BYTES_PER_US 4300e3
#define LATENCY_US 1.0 /* of a load when memory is busy */
#define SM_MOST 1.0    /* times its share of the memory that a multiprocessor can take while others are idle */
#define ROUND_US 2.5   /* what a round of CTAs takes beside its bytes: first loads, results */
#define LAUNCH_US 2.0  /* of the second launch */
#define WORTH 0.97     /* more splits are taken where they save at least the rest */
enum { MOST_SHAPES = 64, DEVICE_SMS = 132 };

typedef struct load {
	double planes, tiles, rows; /* heads of K and V of all sequences; tiles and packed rows of each */
	double key_bytes, row_bytes;
	double in_flight; /* bytes that a CTA asks for at once */
	uint32_t keys;    /* of a sequence, in the mean */
	uint32_t longest;
	uint32_t sms, per_sm;
} load;

static load load_of(const cptx_attention_decode_opt *o, const cptx_attention_decode_problem *p, const cptx_target *target,
                    uint32_t sms)
{
	const decode_shape s = decode_shape_of(o, target);
	const uint32_t group = p->heads ? p->heads / p->kv_heads : 1;
	const uint64_t mean = p->batch ? (p->total_keys + p->batch - 1) / p->batch : 0;

	return (load){ .planes = (double)p->batch * p->kv_heads,
		           .tiles = attention_up(group * p->queries, o->rows),
		           .rows = group * p->queries,
		           .key_bytes = decode_key_bytes(o),
		           .row_bytes = 4.0 * (decode_dim_v(o) + 1),
		           .in_flight = (double)(o->mla ? 1 : o->warps) * s.ring * (o->stages - 1) / o->stages,
		           .keys = decode_keys_read(o, p, MIN(mean, p->keys)),
		           .longest = decode_keys_read(o, p, p->keys),
		           .sms = sms ? sms : DEVICE_SMS,
		           .per_sm = s.ctas_per_sm };
}

/* The time of a round of CTAs that read `bytes` each, of which the memory has to bring `share`. */
static double round_us(const load *l, double ctas, double bytes, double share)
{
	const double bandwidth = BYTES_PER_US * l->sms / DEVICE_SMS;
	const double busy = ctas < l->sms ? ctas : l->sms, of_sms = busy / l->sms * SM_MOST * bandwidth;
	const double asked = ctas * l->in_flight / LATENCY_US, memory = ctas * bytes * share / bandwidth;
	const double rate = asked < of_sms ? asked : of_sms, others = ctas * bytes / rate;

	return ROUND_US + (memory > others ? memory : others);
}

static cptx_attention_decode_choice predict(const cptx_attention_decode_opt *o, const load *l, uint32_t splits)
{
	const uint32_t chunk = decode_chunk_of(o, l->longest, splits), chunks = MAX(attention_up(l->keys, chunk), 1);
	const uint32_t most = MAX(attention_up(l->longest, chunk), 1);
	const double ctas = l->planes * l->tiles * chunks, slots = (double)l->sms * l->per_sm;
	const double bytes = (double)MIN(chunk, MAX(l->keys, 1)) * l->key_bytes, whole = (double)(uint64_t)(ctas / slots);
	const double held = ctas < slots ? (ctas + l->sms - 1) / l->sms : l->per_sm;
	cptx_attention_decode_choice c = { .splits = most, .chunk = chunk, .ctas_per_sm = l->per_sm, .opt = *o };

	c.grid = (uint32_t)(l->planes * l->tiles * most);
	c.waves = ctas / slots;
	c.in_flight = l->in_flight * (double)(uint64_t)held;
	if (most > 1)
		c.combine_us = LAUNCH_US + 2 * chunks * l->planes * l->rows * l->row_bytes / BYTES_PER_US;
	c.us = c.combine_us + whole * round_us(l, slots, bytes, 1 / l->tiles);
	if (ctas > whole * slots)
		c.us += round_us(l, ctas - whole * slots, bytes, 1 / l->tiles);
	return c;
}

cptx_attention_decode_choice decode_choose(const cptx_attention_decode_opt *o, const cptx_attention_decode_problem *p,
                                           const cptx_target *target, uint32_t sms)
{
	const load l = load_of(o, p, target, sms);
	const uint32_t turns = attention_up(l.longest, decode_turn(o));
	cptx_attention_decode_choice best = predict(o, &l, 1);

	for (uint32_t n = 2; n <= DECODE_MOST_SPLITS && n <= turns; n++) {
		const cptx_attention_decode_choice c = predict(o, &l, n);
		if (c.us < WORTH * best.us)
			best = c;
	}
	return best;
}

/* ---- shapes ---- */

static bool agrees(uint32_t given, uint32_t value) { return !given || given == value; }

static size_t add_shape(const cptx_attention_decode_opt *given, cptx_attention_decode_opt o, const cptx_target *target,
                        cptx_attention_decode_opt *to)
{
	cptx_attention_decode_plan plan;

	if (!agrees(given->rows, o.rows) || !agrees(given->bk, o.bk) || !agrees(given->warps, o.warps) ||
	    !agrees(given->stages, o.stages))
		return 0;
	return decode_read(to, &o, target, &plan, NULL);
}

/* Shapes that fit the options, at most MOST_SHAPES. */
static size_t list_shapes(const cptx_attention_decode_opt *given, const cptx_target *target, uint32_t rows,
                          cptx_attention_decode_opt *to)
{
	cptx_attention_decode_opt o = *given;
	size_t n = 0;

	for (o.rows = 16; o.rows <= 32; o.rows *= 2)
		for (o.bk = 16; o.bk <= 32; o.bk *= 2)
			for (o.warps = 4; o.warps <= 8; o.warps *= 2)
				for (o.stages = 2; o.stages <= 5; o.stages++)
					if (o.rows == 16 || rows > 16 || given->rows == o.rows)
						n += add_shape(given, o, target, to + n);
	return n;
}

static int by_time(const void *a, const void *b)
{
	const cptx_attention_decode_choice *x = (const cptx_attention_decode_choice *)a,
									   *y = (const cptx_attention_decode_choice *)b;

	if (x->us != y->us)
		return (x->us > y->us) - (x->us < y->us);
	/* the same by the model: what asks for more at once, then what takes less shared memory */
	if (x->in_flight * x->ctas_per_sm != y->in_flight * y->ctas_per_sm)
		return x->in_flight * x->ctas_per_sm < y->in_flight * y->ctas_per_sm ? 1 : -1;
	return (int)x->opt.stages - (int)y->opt.stages;
}

size_t cptx_attention_decode_auto_(const cptx_attention_decode_opt *opt, const cptx_attention_decode_problem *problem,
                                   const cptx_target *target, uint32_t sms, cptx_attention_decode_choice *choices,
                                   size_t size, size_t room, cptx_error *err)
{
	cptx_attention_decode_opt usual, given, shape[MOST_SHAPES + 1];
	cptx_attention_decode_choice all[MOST_SHAPES + 1];
	cptx_attention_decode_problem p;
	cptx_attention_decode_plan plan;

	/* the usual shape tells whether the options and the problem are right */
	if (!decode_read(&usual, opt, target, &plan, err) || !decode_read_problem(&p, problem, &usual, err) ||
	    !decode_plan_problem(&usual, &p, target, sms, &plan, err) ||
	    !CHOICES_FIT(cptx_attention_decode_choice, choices, size, room, err))
		return 0;
	given = usual;
	given.rows = opt->rows, given.bk = opt->bk, given.warps = opt->warps, given.stages = opt->stages;
	size_t n = list_shapes(&given, target, p.heads ? p.heads / p.kv_heads * p.queries : 0, shape), m = 0;
	if (!n)
		shape[n++] = usual;
	for (size_t i = 0; i < n; i++) {
		if (usual.paged && p.page % shape[i].bk)
			continue;
		const load l = load_of(&shape[i], &p, target, sms);
		all[m++] = p.splits ? predict(&shape[i], &l, p.splits) : decode_choose(&shape[i], &p, target, sms);
	}
	qsort(all, m, sizeof *all, by_time);
	for (size_t i = 0; i < m && i < room; i++)
		CHOICE_WRITE(cptx_attention_decode_choice, cptx_attention_decode_opt, choices, i, size, opt->size, &all[i]);
	return m < room ? m : room;
}
