/* SPDX-License-Identifier: MIT */
/*
 * Picks the shape of the sm_90a GEMM for a problem, by a model of the H200.
 *
 * All shapes that the rules allow are tried.  A tile takes, for each K tile, the longer of two times: that of multiplying,
 * by the tensor cores or by shared memory, which wgmma reads and TMA writes, and that of bringing operands from L2, which
 * multicast lowers.  To these come a part for each tile and one for each launch.  All together take at least as long as
 * global memory needs.  Two that are near to one another hinder each other, hence longer().  The constants were fitted to
 * 1900 measured times of 54 sizes, in the order of tiles of gemm/order.c: what they say of clocks, waits and bytes is what
 * makes the times come out, not what each was measured to be.  bench/RESULTS.md says how well.
 */
#include "gemm/sm90/gemm.h"

#include <math.h>

/* Clocks are those that the chip holds under load. */
#define GHZ 1.676              /* 1000 clocks a microsecond */
#define LAUNCH_US 2.14         /* until the first load is there, and the end of the grid */
#define LAUNCH_BESIDE_US 0.198 /* the same where it has room beside the launch before */
#define PER_SM_US 2.86         /* more with two CTAs on a multiprocessor */
#define CLUSTER_US 0.683       /* more with clusters */
#define TILE_CLOCKS 570.0      /* the first load of a tile, wgmma's start and end */
#define COLUMN_CLOCKS 8.79     /* of each column of 64 rows that is rounded and stored */
#define LATER_CLOCKS 2040.0    /* instead of both, where a tile is stored while the next one is multiplied */
#define SHARED_BYTES 151.8     /* of shared memory in a clock */
#define WRITTEN 0.157          /* of each byte that TMA writes there, the time of one that wgmma reads */
#define WAIT_FOR_A 0.041       /* clocks that CTAs wait for each other, for each row of A that they share; of B */
#define WAIT_FOR_B 0.206
#define L2_BYTES 10960.0         /* a clock, to all multiprocessors */
#define CROSSED 2.92             /* rows that begin in the midst of a line */
#define LATENCY_US 1.047         /* from asking for a stage to having it */
#define LATENCY_CLUSTER_US 0.148 /* more for each doubling of the cluster */
#define HOT 0.222                /* where a launch runs for long, power slows wgmma that are not 256 columns wide */
#define HOT_US 300.0             /* half of that after so long */
#define HOTTER 0.546             /* where it runs for very long, what is loaded for a product counts, beside 128 x 256 */
#define HOTTER_US 3000.0         /* half of that after so long */
#define HINDRANCE 6.0            /* gemm_longer() */
#define MEMORY_GBS 4369.0
#define AGAIN 0.655    /* of an operand that several rows or columns of clusters read, what that adds to its bytes */
#define IDLE 0.371     /* part of that rate that idle multiprocessors take with them */
#define L2_KEEPS 40e6  /* bytes that stay in L2 while a problem runs */
#define APART 2.32     /* with stream_k loads of the same lines come at different times */
#define REDUCE_US 2.04 /* leaving a sum and fetching it, at least */
#define REDUCE_BYTES_US 88700.0 /* of one multiprocessor */

/* ---- the model ---- */

static double longer(double a, double b) { return gemm_longer(a, b, HINDRANCE); }

/* Of a K tile, four wgmma long.  For each block of 64 rows wgmma reads these and all of B. */
static double mma_clocks(const cptx_gemm_opt *o, const gemm_shape *s, const cptx_gemm_problem *in)
{
	const double us = (double)in->m * (double)in->n * (double)in->k * given(in->batch) * s->in_bytes / 750e6;
	const double narrow = 256.0 / o->bn - 1, loads = (1.0 / o->bm + 1.0 / o->bn) / (1.0 / 128 + 1.0 / 256) - 1;
	const double hot = HOT * us / (us + HOT_US) * narrow + HOTTER * us / (us + HOTTER_US) * loads;
	const double blocks = o->bm / (double)BLOCK_M, tensor = blocks * 4 * (o->bn / 2.0) * (1 + hot);
	const double bytes = SPAN * (blocks * (BLOCK_M + o->bn) + WRITTEN * (o->bm + o->bn));

	return longer(tensor, bytes / SHARED_BYTES) + (s->cluster_n > 1 ? WAIT_FOR_A * o->bm : 0) +
	       (s->cluster_m > 1 ? WAIT_FOR_B * o->bn : 0);
}

/* Clocks that L2 takes to give a K tile to so many CTAs. */
static double load_clocks(const cptx_gemm_opt *o, const gemm_shape *s, const cptx_gemm_problem *in, double ctas)
{
	const double of_a = (double)MIN(o->bm, in->m) / s->cluster_n;
	const double of_b = (double)MIN(o->bn, in->n) / s->cluster_m;

	return ctas * (of_a + of_b) * SPAN * (in->k * s->in_bytes % SPAN ? CROSSED : 1) / L2_BYTES;
}

/* Bytes of global memory that a problem reads and writes; more of an operand that goes to both halves of L2. */
static double memory_bytes(const cptx_gemm_opt *o, const gemm_shape *s, const cptx_gemm_problem *in)
{
	const double again_a = up(in->n, o->bn * s->cluster_n) > 1 ? AGAIN : 0;
	const double again_b = up(in->m, o->bm * s->cluster_m) > 1 ? AGAIN : 0;
	const double of_k = (double)in->k * s->in_bytes;

	return given(in->batch) * ((double)in->m * of_k * (1 + again_a) + (double)in->n * of_k * (1 + again_b) +
	                           (double)in->m * (double)in->n * s->out_bytes);
}

/* Of a launch, whatever it computes.  The next one begins beside it where both have room. */
static double fixed_us(const gemm_shape *s, double ctas, uint32_t sms)
{
	double start = 2 * ctas <= (double)sms * s->per_sm ? LAUNCH_BESIDE_US : LAUNCH_US;

	return start + (s->per_sm > 1 ? PER_SM_US : s->cluster > 1 ? CLUSTER_US : 0);
}

static void predict(cptx_gemm_choice *c, const cptx_gemm_problem *p, uint32_t sms)
{
	const cptx_gemm_opt *o = &c->opt;
	const cptx_gemm_problem in = tma_gemm_inner_problem(o, p);
	const gemm_shape s = gemm_sm90_shape(o);
	const tma_gemm t = gemm_sm90_describe(o);
	const gemm_rounds r = gemm_rounds_of(&t, c, p, sms);
	const double clock = 1e-3 / GHZ, k_tiles = (double)up(p->k, s.bk);
	double busy = r.tiles * (o->stream_k ? k_tiles : 1) * s.cluster / (r.rounds * sms); /* on average */
	double latency = (LATENCY_US + LATENCY_CLUSTER_US * log2(s.cluster)) / o->stages, bytes = memory_bytes(o, &s, &in);

	busy = MIN(MIN(busy, 1), r.at_once * s.cluster / sms);
	c->tail = r.idle;
	c->mma_us = r.together * r.steps * mma_clocks(o, &s, &in) * clock;
	c->load_us = r.steps * longer(load_clocks(o, &s, &in, r.run) * clock, latency);
	if (o->stream_k) {
		/* CTAs are at different places along K, so what they share is not in L2 by chance */
		double all = r.tiles * k_tiles * s.cluster * ((double)s.a_bytes / s.cluster_n + (double)s.b_bytes / s.cluster_m);
		bytes = bytes > L2_KEEPS && r.tiles > r.at_once ? MAX(bytes, all) : bytes;
		c->load_us *= APART;
	}
	c->memory_us = bytes / (1e3 * MEMORY_GBS * (1 - IDLE * (1 - busy)));
	double end = TILE_CLOCKS + COLUMN_CLOCKS * s.blocks * o->bn * r.together;
	double ends = (end + (r.rounds - 1) * (s.later ? LATER_CLOCKS : end)) * clock;
	c->us = fixed_us(&s, r.run, sms) + ends + longer(longer(c->mma_us, c->load_us), c->memory_us);
	if (o->stream_k) {
		double sharers = r.tiles < r.at_once ? r.at_once / r.tiles : 2;
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

/* As it is, and with tiles shared; two CTAs on a multiprocessor also one on each, with room for the launch behind. */
static void offer_all(gemm_pick *x, const cptx_gemm_opt *o)
{
	const tma_gemm t = gemm_sm90_describe(o);
	const uint64_t tiles = tma_gemm_tiles(&t, x->p) * given(x->p->batch), k_tiles = up(x->p->k, t.bk);
	cptx_gemm_choice c = { .opt = *o };

	gemm_offer(x, c, predict);
	gemm_offer_shared(x, &t, c, predict);
	for (int shared = 0; t.per_sm > 1 && shared < 2; shared++) {
		c.opt.stream_k = shared, c.ctas = x->sms;
		if (tiles * (shared ? k_tiles : 1) > x->sms)
			gemm_offer(x, c, predict);
	}
}

static uint32_t best_group(const cptx_gemm_opt *o, const gemm_pick *x)
{
	const cptx_gemm_problem in = tma_gemm_inner_problem(o, x->p);
	const gemm_order order = gemm_order_of(o, x->sms);
	const uint32_t cluster = o->cluster_m * o->cluster_n;

	return gemm_order_rows(&order, up(in.m, o->bm * o->cluster_m), up(in.n, o->bn * o->cluster_n),
	                       tma_gemm_resident(x->sms, cluster, given(o->per_sm)));
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
					if (o.cluster_m * o.cluster_n > x->sms)
						continue;
					o.swap = way % 2, o.per_sm = 1 + way / 2;
					if (!cptx_gemm_check(&o, NULL, NULL, NULL))
						continue;
					o.stages = most_stages(o);
					o.group = group ? group : best_group(&o, x);
					offer_all(x, &o);
				}
}
