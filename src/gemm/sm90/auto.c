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
#include "gemm/auto.h"
#include "gemm/sm90/gemm.h"

#include <math.h>

#define GHZ 1.676              /* that an H200 holds under load */
#define MEMORY_GBS 4369.0      /* of its memory */
#define LAUNCH_US 2.14         /* until the first load is there, and the end of the grid */
#define LAUNCH_BESIDE_US 0.198 /* the same where it has room beside the launch before */
#define PER_SM_US 2.86         /* more with two CTAs on a multiprocessor */
#define CLUSTER_US 0.683       /* more with clusters */
#define TILE_CLOCKS 570.0      /* the first load of a tile, wgmma's start and end */
#define COLUMN_CLOCKS 8.79     /* of each column of 64 rows that is rounded and stored */
#define DEFERRED_CLOCKS 2040.0 /* instead of both, where a tile is stored while the next one is multiplied */
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
#define AGAIN 0.655    /* of an operand that several rows or columns of clusters read, what that adds to its bytes */
#define IDLE 0.371     /* part of that rate that idle multiprocessors take with them */
#define L2_KEEPS 40e6  /* bytes that stay in L2 while a problem runs */
#define APART 2.32     /* with stream_k loads of the same lines come at different times */
#define REDUCE_US 2.04 /* leaving a sum and fetching it, at least */
#define REDUCE_BYTES_US 88700.0 /* of one multiprocessor */
#define PROMOTE_CLOCKS 60.0     /* with scale factors: between two K tiles; a guess, not fitted */

/* Weights of few bits, by 150 times of an H200: instructions of a warp for 64 elements along K of 64 of their rows, and of a
 * stage beside; those that a scheduler starts in a clock; clocks of 64 rows beside those of shared memory; three warpgroups
 * of rows of their own take so much longer; clocks that a warpgroup waits in a stage. */
#define WEIGHTS_UNPACK 58.0
#define WEIGHTS_UNPACK_8 94.0 /* of 8 bits */
#define WEIGHTS_STAGE 40.0
#define WEIGHTS_ISSUED 0.85
#define WEIGHTS_BLOCK 45.0
#define WEIGHTS_THREE 1.28
#define WEIGHTS_WAIT 490.0

/* ---- the model ---- */

static double longer(double a, double b) { return gemm_longer(a, b, HINDRANCE); }

/* Clocks of the products of a K tile, which is four wgmma deep.  For each block of 64 rows wgmma reads these and all of B.
 */
static double mma_clocks(const cptx_gemm_opt *o, const gemm_shape *s, const cptx_gemm_problem *in)
{
	const double us = (double)in->m * (double)in->n * (double)in->k * or_one(in->batch) * s->in_bytes / 750e6;
	const double narrow = 256.0 / o->bn - 1, loads = (1.0 / o->bm + 1.0 / o->bn) / (1.0 / 128 + 1.0 / 256) - 1;
	const double hot = HOT * us / (us + HOT_US) * narrow + HOTTER * us / (us + HOTTER_US) * loads;
	const double blocks = o->bm / (double)BLOCK_M, part = o->sparse ? 0.5 : 1; /* of the products, and of A */
	const double tensor = part * blocks * 4 * (o->bn / 2.0) * (1 + hot);
	const double bytes = SPAN * (blocks * (part * BLOCK_M + o->bn) + WRITTEN * (part * o->bm + o->bn));

	if (s->scale_bytes) /* while a warpgroup scales its sums the tensor cores have products of another one, if there is one
	                     */
		return longer(tensor, bytes / SHARED_BYTES) + PROMOTE_CLOCKS + (blocks * s->per_sm > 1 ? 0 : o->bn / 2.0);
	return longer(tensor, bytes / SHARED_BYTES) + (s->cluster_n > 1 ? WAIT_FOR_A * o->bm : 0) +
	       (s->cluster_m > 1 ? WAIT_FOR_B * o->bn : 0);
}

/* Clocks in which shared memory gives the K tile: a warp takes four for 16 bytes of 8 rows of weights, of which each thread
 * uses a fourth; wgmma reads all of B for 64 rows; TMA writes both. */
static double weight_shared_clocks(const cptx_gemm_opt *o, const gemm_shape *s)
{
	const double words = s->bk * tma_gemm_bits(o->b) / 4.0, factors = 16, b = s->bk * o->bn / 64.0;

	return o->bm / 64.0 * (words + factors + b + WEIGHTS_BLOCK) + (s->a_bytes + s->b_bytes) / 128.0;
}

/* Clocks of a K tile with weights, where so many CTAs are on a multiprocessor: of the schedulers, each of which has a warp
 * of each warpgroup, of the tensor cores and of shared memory; or, where there are few warpgroups, of waiting. */
static double weight_clocks(const cptx_gemm_opt *o, const gemm_shape *s, double together)
{
	const double unpack = is_fp8(o->b) ? WEIGHTS_UNPACK_8 : WEIGHTS_UNPACK;
	const double each = s->blocks * (unpack * s->bk / 64 + o->bn / 2.0) + WEIGHTS_STAGE;
	const double issue = s->units * each / WEIGHTS_ISSUED, tensor = s->units * s->blocks * o->bn * s->bk / 32.0;
	const double waits = WEIGHTS_WAIT * (s->blocks + 1) / 2;
	const double alone = (each + waits + tensor / s->units) / (s->slices * together);
	const double shared = weight_shared_clocks(o, s) * (s->units == 3 ? WEIGHTS_THREE : 1);

	return longer(longer(longer(issue, tensor), shared), alone);
}

/* Clocks that L2 takes to give a K tile to so many CTAs. */
static double load_clocks(const cptx_gemm_opt *o, const gemm_shape *s, const cptx_gemm_problem *in, double ctas)
{
	const double of_a = (double)MIN(o->bm, in->m) / s->cluster_n;
	const double of_b = (double)MIN(o->bn, in->n) / s->cluster_m;

	if (s->weights)
		return ctas * (of_a * s->a_bytes / o->bm + of_b * s->b_bytes / o->bn) / L2_BYTES;
	return ctas * (of_a + of_b) * SPAN * (in->k * s->in_bytes % SPAN ? CROSSED : 1) / L2_BYTES;
}

/* Bytes of global memory that a problem reads and writes; more of an operand that goes to both halves of L2. */
static double memory_bytes(const cptx_gemm_opt *o, const gemm_shape *s, const cptx_gemm_problem *in)
{
	const double again_a = divide_up(in->n, o->bn * s->cluster_n) > 1 ? AGAIN : 0;
	const double again_b = divide_up(in->m, o->bm * s->cluster_m) > 1 ? AGAIN : 0;

	const cptx_gemm_opt inner = tma_gemm_inner(o);

	return gemm_memory_bytes(&inner, in, 1 + again_a, 1 + again_b);
}

/* The time of a launch, whatever it computes.  The next one begins beside it where both have room. */
static double fixed_us(const gemm_shape *s, double ctas, uint32_t sms)
{
	double start = 2 * ctas <= (double)sms * s->per_sm ? LAUNCH_BESIDE_US : LAUNCH_US;

	return start + (s->per_sm > 1 ? PER_SM_US : s->cluster > 1 ? CLUSTER_US : 0);
}

static void predict(cptx_gemm_choice *c, const gemm_pick *x, const tma_gemm *t)
{
	const cptx_gemm_opt *o = &c->opt;
	const cptx_gemm_problem in = tma_gemm_inner_problem(o, x->p);
	const gemm_shape s = gemm_sm90_shape(o);
	const gemm_rounds r = gemm_rounds_of(t, c, x);
	const double clock = 1e-3 / x->chip.ghz, k_tiles = (double)divide_up(x->p->k, s.bk);
	double busy = r.tiles * (o->stream_k ? k_tiles : 1) * s.cluster / (r.rounds * x->sms); /* on average */
	double latency = (LATENCY_US + LATENCY_CLUSTER_US * log2(s.cluster)) / o->stages, bytes = memory_bytes(o, &s, &in);

	busy = MIN(MIN(busy, 1), r.at_once * s.cluster / x->sms);
	c->tail = r.idle;
	c->mma_us = r.together * r.steps * (s.weights ? weight_clocks(o, &s, r.together) : mma_clocks(o, &s, &in)) * clock;
	c->load_us = r.steps * longer(load_clocks(o, &s, &in, r.run) * clock, latency);
	if (o->stream_k && !s.weights) { /* what these share is small, and stays in L2 */
		/* CTAs are at different places along K, so what they share is not in L2 by chance */
		double all = r.tiles * k_tiles * s.cluster * ((double)s.a_bytes / s.cluster_n + (double)s.b_bytes / s.cluster_m);
		bytes = bytes > L2_KEEPS && r.tiles > r.at_once ? MAX(bytes, all) : bytes;
		c->load_us *= APART;
	}
	c->memory_us = bytes / (1e3 * x->chip.memory_gbs * (1 - IDLE * (1 - busy)));
	double end = TILE_CLOCKS + COLUMN_CLOCKS * s.blocks * o->bn * r.together;
	double ends = (end + (r.rounds - 1) * (s.deferred ? DEFERRED_CLOCKS : end)) * clock;
	c->us = fixed_us(&s, r.run, x->sms) + ends + longer(longer(c->mma_us, c->load_us), c->memory_us);
	if (o->stream_k)
		c->us += REDUCE_US + gemm_sharers(&r) * o->bm * o->bn * 4.0 / REDUCE_BYTES_US;
}

/* ---- the candidates ---- */

/* With room for two subtiles of D of 32 columns, where D goes through shared memory: narrower ones cost more than a stage
 * gains. */
static bool suits(const cptx_gemm_opt *o, const cptx_target *target)
{
	const gemm_shape s = gemm_sm90_shape(o);

	(void)target;
	if (s.weights)
		return o->bm > BLOCK_M || s.slices == gemm_sm90_slices(o->bn, 0);
	return o->stages == 2 || s.by_threads || s.out.tile.cols == tma_gemm_columns(o, o->bn) ||
	       (s.out.tile.cols >= 32 && s.out.buffers == 2);
}

static const uint8_t clusters[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 1, 4 }, { 4, 1 }, { 8, 1 }, { 1, 8 } };

const gemm_model gemm_sm90_model = { .by = GEMM_BY_WGMMA,
	                                 .ghz = GHZ,
	                                 .memory_gbs = MEMORY_GBS,
	                                 .clusters = clusters,
	                                 .cluster_count = ARRAY_LEN(clusters),
	                                 .axes = { GEMM_AXIS(bm, 64, 64, 256, 64), GEMM_AXIS(bn, 64, 8, 256, 8),
	                                           GEMM_AXIS(per_sm, 1, 1, 2, 1), GEMM_AXIS(swap, false, false, true, 1) },
	                                 .one_each = true,
	                                 .suits = suits,
	                                 .predict = predict };
