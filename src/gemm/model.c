/* SPDX-License-Identifier: MIT */
/*
 * What the models of the GEMMs share: how tiles come over a chip, and the roofline of those whose chips are known by their
 * data sheets.
 *
 * By the roofline a K tile takes the longest of its products, its way into shared memory, and what of the time until a copy
 * comes the other stages do not cover; CTAs of a multiprocessor share all of these but the last.  To these come the ends of
 * tiles and a part for the launch.  All together take at least as long as global memory needs; two times that are near to
 * one another hinder each other, hence gemm_longer.
 */
#include "gemm/auto.h"

#include <math.h>

/* Figures of Hopper, published or measured. */
#define SHARED_BYTES 128.0 /* of shared memory that a multiprocessor reads or writes in a clock */
#define L2_BYTES 64.0      /* that a multiprocessor gets from L2 in a clock */
#define APART 1.48         /* with stream_k loads of the same lines come at different times */
#define LATENCY 1500.0     /* clocks from asking for a stage to having it */
#define LAUNCH_US 2.5
#define HINDRANCE 6.0

double gemm_longer(double a, double b, double power) { return pow(pow(a, power) + pow(b, power), 1 / power); }

/* Cluster tiles.  Rows of experts differ, so the last tile of one is as often nearly empty as nearly full: a mean over
 * counts from two thirds of the average to four thirds. */
static double tiles_of(const tma_gemm *t, const gemm_pick *x)
{
	enum { COUNTS = 9 };
	double rows = 0;

	if (!t->o->experts || t->o->experts == CPTX_GEMM_EXPERTS_K)
		return (double)(tma_gemm_tiles(t, x->p) * or_one(x->p->batch));
	for (int i = 0; i < COUNTS; i++)
		rows += ceil((double)x->p->m * (2 + 2.0 * i / (COUNTS - 1)) / 3 / t->side_m) / COUNTS;
	return rows * (double)divide_up(x->p->n, t->side_n) * or_one(x->p->batch);
}

gemm_rounds gemm_rounds_of(const tma_gemm *t, const cptx_gemm_choice *c, const gemm_pick *x)
{
	const double k_tiles = (double)divide_up(x->p->k, t->bk), cluster = t->cluster;
	gemm_rounds r = { .tiles = tiles_of(t, x) };

	r.at_once = c->ctas ? MAX(c->ctas / t->cluster, 1u) : tma_gemm_resident(x->sms, t->cluster, or_one(t->per_sm));
	r.rounds = ceil(r.tiles / r.at_once);
	r.steps = c->opt.stream_k ? ceil(r.tiles * k_tiles / r.at_once) : r.rounds * k_tiles;
	r.run = MIN(r.at_once, c->opt.stream_k ? r.tiles * k_tiles : r.tiles) * cluster;
	r.together = MIN((double)or_one(t->per_sm), ceil(r.run / x->sms));
	r.idle = 1 - r.tiles * k_tiles / (r.steps * r.at_once) * MIN(1.0, r.at_once * cluster / (x->sms * r.together));
	return r;
}

double gemm_sharers(const gemm_rounds *r) { return r->tiles < r->at_once ? r->at_once / r->tiles : 2; }

double gemm_l2_clocks(const cptx_gemm_opt *o, double bytes) { return bytes / L2_BYTES * (o->stream_k ? APART : 1); }

double gemm_shared_clocks(double bytes) { return bytes / SHARED_BYTES; }

static double bytes_of_d(const cptx_gemm_opt *o, const cptx_gemm_problem *p)
{
	return (double)p->m * (double)tma_gemm_columns(o, p->n) * cptx_type_bits(o->out) / 8;
}

double gemm_memory_bytes(const cptx_gemm_opt *o, const cptx_gemm_problem *p, double times_a, double times_b)
{
	const double m = (double)p->m, n = (double)p->n, k = (double)p->k;

	return or_one(p->batch) *
	       (m * k * tma_gemm_bits(o->a) / 8 * times_a + n * k * tma_gemm_bits(o->b) / 8 * times_b + bytes_of_d(o, p));
}

/* Bytes of scale factors and of C. */
static double bytes_beside(const cptx_gemm_opt *o, const cptx_gemm_problem *p)
{
	const double vec = o->scale == CPTX_UE4M3 ? 16 : 32;
	const double factors = o->scale == CPTX_TYPE_NONE ? 0 : (double)(p->m + p->n) * (double)p->k / vec;

	return or_one(p->batch) * (factors + (o->beta ? bytes_of_d(o, p) : 0));
}

void gemm_roofline(cptx_gemm_choice *c, const gemm_pick *x, const gemm_rounds *r, const gemm_clocks *w)
{
	const double clock = 1e-3 / x->chip.ghz;
	/* accumulators of a shared tile are left, and then those of others fetched, one after the other */
	const double shared = c->opt.stream_k ? 2 * LATENCY + gemm_sharers(r) * w->sums / L2_BYTES : 0;
	const double ends = r->rounds * w->tile / r->together + w->out + shared;

	c->tail = r->idle;
	c->mma_us = r->steps * w->mma * clock;
	c->load_us = r->steps * MAX(w->load, LATENCY / c->opt.stages) * clock;
	c->memory_us = (gemm_memory_bytes(&c->opt, x->p, 1, 1) + bytes_beside(&c->opt, x->p)) / (1e3 * x->chip.memory_gbs);
	c->us = LAUNCH_US + gemm_longer(MAX(c->mma_us, c->load_us) + ends * clock, c->memory_us, HINDRANCE);
}
