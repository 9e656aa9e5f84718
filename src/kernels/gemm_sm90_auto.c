/*
 * Picks the shape of the sm_90a GEMM for a problem, by a model of the H200.
 *
 * All shapes that the rules allow are tried.  A tile takes, for each K tile, the longer of two times: that of the tensor
 * cores and that of filling shared memory from L2, which multicast lowers.  To these come a part for each tile and one for
 * each launch.  All together take at least as long as global memory needs.  Two that are near to one another hinder each
 * other, hence gemm_longer().  The constants were fitted to measured times: 31 shapes for each of the 24 larger sizes of
 * bench/gemm_sizes.h, and the best two of all sizes there.
 */
#include "kernels/gemm_sm90.h"

#include <math.h>

/* Clocks are those that the chip holds under load. */
#define GHZ 1.65                 /* 1000 clocks a microsecond */
#define LAUNCH_US 1.6            /* until the first load is there, and the end of the grid */
#define LAUNCH_BESIDE_US 0.455   /* the same where it has room beside the launch before */
#define PER_SM_US 2.86           /* more with two CTAs on a multiprocessor */
#define CLUSTER_US 0.354         /* more with clusters */
#define TILE_CLOCKS 1717.0       /* the first load of a tile, wgmma's start and end */
#define LATER_CLOCKS 855.0       /* instead of both, where a tile is stored while the next one is multiplied */
#define COLUMN_CLOCKS 4.44       /* of each column of 64 rows that is rounded and stored */
#define NARROW 0.0196            /* more shared memory is read for each wgmma that is not 256 columns wide */
#define TOGETHER 0.18            /* clocks that CTAs wait for each other, for each row that they share */
#define L2_BYTES 9360.0          /* a clock, to all multiprocessors */
#define SM_BYTES 172.0           /* to one */
#define CROSSED 2.21             /* rows that begin in the midst of a line */
#define LATENCY_US 0.384         /* from asking for a stage to having it */
#define LATENCY_CLUSTER_US 0.163 /* more for each doubling of the cluster */
#define HINDRANCE 3.83           /* gemm_longer() */
#define MEMORY_GBS 4020.0
#define IDLE 0.283              /* part of that rate that idle multiprocessors take with them */
#define L2_KEEPS 40e6           /* bytes that stay in L2 while a problem runs */
#define APART 2.32              /* with stream_k loads of the same lines come at different times */
#define REDUCE_US 2.04          /* leaving a sum and fetching it, at least */
#define REDUCE_BYTES_US 88700.0 /* of one multiprocessor */

/* ---- the model ---- */

/* A K tile is four wgmma long.  CTAs that share an operand wait for each other, the longer the more of it there is. */
static double mma_clocks(const cptx_gemm_opt *o, const gemm_shape *s)
{
	double shared = (s->cluster_n > 1 ? o->bm : 0) + (s->cluster_m > 1 ? o->bn : 0);

	return o->bm / 64 * 4 * (o->bn / 2.0) * (1 + NARROW * (256.0 / o->bn - 1)) + TOGETHER * shared;
}

/* Clocks that a K tile of so many clusters takes to come: what L2 gives out, or what a multiprocessor takes in, whichever is
 * slower. */
static double load_clocks(const cptx_gemm_opt *o, const gemm_shape *s, const cptx_gemm_problem *in, uint64_t clusters)
{
	uint64_t rows = MIN(o->bm * s->cluster_m, in->m) + MIN(o->bn * s->cluster_n, in->n);
	double crossed = in->k * s->in_bytes % SPAN ? CROSSED : 1;

	return MAX((double)(clusters * rows * SPAN) * crossed / L2_BYTES, (double)(s->a_bytes + s->b_bytes) / SM_BYTES);
}

/* Of a launch, whatever it computes.  The next one begins beside it where both have room. */
static double fixed_us(const gemm_shape *s, uint64_t ctas, uint32_t sms)
{
	double start = 2 * ctas <= (uint64_t)sms * s->per_sm ? LAUNCH_BESIDE_US : LAUNCH_US;

	return start + (s->per_sm > 1 ? PER_SM_US : s->cluster > 1 ? CLUSTER_US : 0);
}

static void predict(cptx_gemm_choice *c, const cptx_gemm_problem *p, uint32_t sms)
{
	const cptx_gemm_opt *o = &c->opt;
	gemm_shape s = gemm_sm90_shape(o);
	uint64_t batch = p->batch ? p->batch : 1, k_tiles = up(p->k, s.bk);
	uint64_t at_once = c->ctas ? MAX(c->ctas / s.cluster, 1u) : tma_gemm_resident(sms, s.cluster, s.per_sm);
	tma_gemm t = gemm_sm90_describe(o);
	uint64_t tiles = tma_gemm_tiles(&t, p) * batch;
	double rounds = o->stream_k ? (double)tiles / (double)at_once : (double)up(tiles, at_once);
	double busy =
		MIN(1.0, (double)(tiles * (o->stream_k ? k_tiles : 1) * s.cluster) / (ceil(rounds) * sms)); /* on average */
	double steps = rounds * (double)k_tiles, clock = 1e-3 / GHZ;
	double sizes =
		(double)batch * ((double)(p->m + p->n) * (double)p->k * s.in_bytes + (double)p->m * (double)p->n * s.out_bytes);

	busy = MIN(busy, (double)at_once * s.cluster / sms);
	cptx_gemm_problem inner_p = tma_gemm_inner_problem(o, p);
	uint64_t run = MIN(at_once, tiles * (o->stream_k ? k_tiles : 1)) * s.cluster;
	double together = MIN((double)s.per_sm, ceil((double)run / sms)); /* CTAs of one multiprocessor */
	c->mma_us = together * steps * mma_clocks(o, &s) * clock;
	double load = load_clocks(o, &s, &inner_p, run / s.cluster);
	double latency = (LATENCY_US + LATENCY_CLUSTER_US * log2(s.cluster)) / o->stages;
	c->load_us = steps * MAX(load * clock, latency);
	c->tail = 1 - (double)tiles / (double)(up(tiles, at_once) * at_once) * (double)(at_once * s.cluster) / sms;
	if (o->stream_k) {
		/* CTAs are at different places along K, so what they share is not in L2 by chance */
		double all =
			(double)(tiles * k_tiles * s.cluster) * ((double)s.a_bytes / s.cluster_n + (double)s.b_bytes / s.cluster_m);
		sizes = sizes > L2_KEEPS && tiles > at_once ? MAX(sizes, all) : sizes;
		c->tail = 0, c->load_us *= APART;
	}
	c->memory_us = sizes / (1e3 * MEMORY_GBS * (1 - IDLE * (1 - busy)));
	double columns = COLUMN_CLOCKS * s.blocks * o->bn * together;
	double end = TILE_CLOCKS + columns, ends = (end + (ceil(rounds) - 1) * (s.later ? LATER_CLOCKS : end)) * clock;
	double work = gemm_longer(c->mma_us, c->load_us, HINDRANCE);
	c->us = fixed_us(&s, run, sms) + gemm_longer(work + ends, c->memory_us, HINDRANCE);
	if (o->stream_k) {
		double sharers = tiles < at_once ? (double)at_once / (double)tiles : 2;
		c->us += REDUCE_US + sharers * o->bm * o->bn * 4.0 / REDUCE_BYTES_US;
	}
}

/* ---- the search ---- */

/* As many as leave room for two pieces of D of 32 columns: narrower ones cost more than a stage gains. */
static uint32_t most_stages(cptx_gemm_opt o)
{
	for (o.stages = 16; o.stages > 2; o.stages--) {
		gemm_shape s = gemm_sm90_shape(&o);
		bool wide = s.out_cols == o.bn || (s.out_cols >= 32 && s.store_buffers == 2);
		if (wide && cptx_gemm_check(&o, NULL, NULL, NULL))
			break;
	}
	return o.stages;
}

/* As it is, and with tiles shared: by all CTAs, or if there are few tiles by some for each. */
static void offer_all(gemm_pick *x, const cptx_gemm_opt *o)
{
	gemm_shape s = gemm_sm90_shape(o);
	cptx_gemm_choice c = { .opt = *o };
	uint64_t batch = x->p->batch ? x->p->batch : 1, k_tiles = up(x->p->k, s.bk);
	tma_gemm t = gemm_sm90_describe(o);
	uint64_t tiles = tma_gemm_tiles(&t, x->p) * batch;

	if (!cptx_gemm_check_problem(o, x->p, x->sms, NULL, NULL))
		return;
	for (int shared = 0; shared < 2; shared++) {
		c.opt.stream_k = shared, c.ctas = 0;
		if (shared && !cptx_gemm_check_problem(&c.opt, x->p, x->sms, NULL, NULL))
			return;
		predict(&c, x->p, x->sms);
		gemm_offer(x, &c);
		if (s.per_sm > 1 && tiles * (shared ? k_tiles : 1) > x->sms) { /* leaves room for the launch behind this one */
			c.ctas = x->sms;
			predict(&c, x->p, x->sms);
			gemm_offer(x, &c);
		}
	}
	for (uint64_t parts = 2;
	     parts <= 8 && parts * 4 <= k_tiles && tiles * parts <= tma_gemm_resident(x->sms, s.cluster, s.per_sm); parts++) {
		c.ctas = (uint32_t)(tiles * parts * s.cluster);
		predict(&c, x->p, x->sms);
		gemm_offer(x, &c);
	}
}

void gemm_sm90_simplest(cptx_gemm_opt *o)
{
	o->bm = 64, o->bn = 64, o->stages = 2, o->cluster_m = o->cluster_n = o->per_sm = 1, o->swap = o->stream_k = false;
}

void gemm_sm90_search(gemm_pick *x, cptx_gemm_opt o)
{
	static const uint8_t clusters[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 1, 4 }, { 4, 1 }, { 8, 1 }, { 1, 8 } };
	const uint32_t group = o.group;

	for (size_t i = 0; i < sizeof clusters / sizeof *clusters; i++)
		for (o.bm = 64; o.bm <= 256; o.bm += 64)
			for (o.bn = 8; o.bn <= 256; o.bn += 8)
				for (uint32_t way = 0; way < 4; way++) {
					o.cluster_m = clusters[i][0], o.cluster_n = clusters[i][1], o.stages = 2;
					o.swap = way % 2, o.per_sm = 1 + way / 2;
					if (!cptx_gemm_check(&o, NULL, NULL, NULL))
						continue;
					o.stages = most_stages(o);
					double rows = sqrt((double)x->sms * o.bn / o.bm) / o.cluster_m;
					o.group = group ? group : rows < 1 ? 1 : (uint32_t)(rows + 0.5);
					offer_all(x, &o);
				}
}
