/* SPDX-License-Identifier: MIT */
/*
 * Picks the shape of the sm_100a GEMM for a problem, by public figures of the B200.
 *
 * All shapes that the rules allow are tried.  A K tile takes the longest of: its products, its bytes' way into shared memory
 * and out again, its bytes from L2, which multicast lowers, its requests by TMA, and what of the time until a copy comes the
 * other stages do not cover; two CTAs of a multiprocessor share all of these but the last.  To these come a part for each
 * tile and one for the launch; what brings a tile out is seen where nothing overlaps it.  All together take at least as long
 * as global memory needs.  No B200 has been measured.
 */
#include "gemm/sm100/gemm.h"

#include <math.h>

/* The data sheet: 2.25 PFLOP/s of dense bf16 and 8 TB/s with 148 multiprocessors.  Tensor cores make 128 rows x 1 column x
 * 128 bytes along K in 2 clocks, whatever the kind. */
#define GHZ 1.856
#define MEMORY_GBS 8000.0
#define COLUMN_CLOCKS 2.0
/* As published or measured of Hopper, where nothing is for Blackwell. */
#define SHARED_BYTES 128.0 /* a clock, of one multiprocessor: what it reads or writes of its shared memory, */
#define L2_BYTES 64.0      /* and what L2 gives it */
#define APART 1.48         /* with stream_k loads of the same lines come at different times */
#define LATENCY 1500.0     /* clocks from asking for a stage to having it */
#define TILE_CLOCKS 400.0  /* the first load of a tile, and the first product's start */
#define OUT_CLOCKS 4.0     /* of a column of the tile */
#define LAUNCH_US 2.5
#define HINDRANCE 6.0 /* gemm_longer() */

/* ---- the model ---- */

/* Of global memory: each matrix once; of the product that is computed. */
static double all_bytes(const cptx_gemm_opt *o, const gemm100_shape *s, const cptx_gemm_problem *p)
{
	double m = (double)p->m, n = (double)p->n, k = (double)p->k, factors = s->vec ? k / s->vec : 0;
	double in = m * k * s->a.elem.bits / 8 + n * k * s->b.elem.bits / 8 + (m + n) * factors;

	return given(p->batch) * (in + m * n * s->out_bytes * (o->beta ? 2 : 1));
}

/* Leaving the sums of a tile and fetching those of others, one after the other, with stream_k. */
static double reduce_clocks(const gemm100_shape *s, double tiles, double at_once)
{
	double sharers = tiles < at_once ? at_once / tiles : 2;

	return 2 * LATENCY + sharers * READERS * s->sum_bytes / L2_BYTES;
}

/* Clocks of a K tile in one CTA: its products; its way into shared memory, of which `latency` is what nobody shares. */
typedef struct k_tile {
	double mma, load, latency;
} k_tile;

static k_tile k_tile_of(const cptx_gemm_opt *o, const gemm100_shape *s, const cptx_gemm_problem *in)
{
	double rows = ROWS + (double)o->bn / s->ctas, factors = s->sa_bytes + s->sb_bytes;
	/* rows that are not there are not fetched */
	double a = SPAN_BYTES * (double)MIN(ROWS, in->m), b = SPAN_BYTES * (double)MIN(o->bn / s->ctas, in->n);
	double bytes = a / s->cluster_n + b / s->cluster_m + factors;
	double l2 = bytes / L2_BYTES * (o->stream_k ? APART : 1), shared = 2 * rows * SPAN_BYTES / SHARED_BYTES;

	return (k_tile){ COLUMN_CLOCKS * o->bn, MAX(MAX(l2, rows), shared), LATENCY / o->stages };
}

static void predict(cptx_gemm_choice *c, const cptx_gemm_problem *p, uint32_t sms)
{
	const cptx_gemm_opt *o = &c->opt;
	const cptx_gemm_problem in = tma_gemm_inner_problem(o, p);
	const gemm100_shape s = gemm_sm100_shape(o);
	const tma_gemm t = gemm_sm100_describe(o);
	const gemm_rounds r = gemm_rounds_of(&t, c, p, sms);
	const k_tile x = k_tile_of(o, &s, &in);
	const double clock = 1e-3 / GHZ, out = OUT_CLOCKS * o->bn * r.together;

	c->tail = r.idle;
	c->mma_us = r.steps * r.together * x.mma * clock, c->load_us = r.steps * MAX(r.together * x.load, x.latency) * clock;
	c->memory_us = all_bytes(o, &s, &in) / (1e3 * MEMORY_GBS);
	/* what one CTA does at the ends of a tile, the other one's products overlap */
	double ends = (r.rounds * (TILE_CLOCKS + (s.accs == 1 ? out : 0))) / r.together + out;
	ends += o->stream_k ? reduce_clocks(&s, r.tiles, r.at_once) : 0;
	c->us = LAUNCH_US + gemm_longer(MAX(c->mma_us, c->load_us) + ends * clock, c->memory_us, HINDRANCE);
}

/* ---- the search ---- */

/* As many as there is room for, but at most so many that each has a place of its own in tensor memory, if these are four. */
static uint32_t most_stages(cptx_gemm_opt o)
{
	uint32_t most = 0;

	for (o.stages = 16; o.stages >= 2; o.stages--) {
		if (!cptx_gemm_check(&o, NULL, NULL, NULL))
			continue;
		most = MAX(most, o.stages);
		gemm100_shape s = gemm_sm100_shape(&o);
		if (o.stages < 4 || !s.slot || s.slots > 1)
			return o.stages < 4 ? most : o.stages;
	}
	return most;
}

static void offer_all(gemm_pick *x, cptx_gemm_opt o)
{
	const gemm100_shape s = gemm_sm100_shape(&o);
	/* the tiles of a round, as a square of elements */
	const double rows = sqrt((double)x->sms / s.ctas * o.bn / o.bm) / s.cluster_m;

	if (!(o.stages = most_stages(o)))
		return;
	o.group = o.group ? o.group : rows < 1 ? 1 : (uint32_t)(rows + 0.5);
	const tma_gemm t = gemm_sm100_describe(&o);
	gemm_offer(x, (cptx_gemm_choice){ .opt = o }, predict);
	gemm_offer_shared(x, &t, (cptx_gemm_choice){ .opt = o }, predict);
}

void gemm_sm100_simplest(cptx_gemm_opt *o)
{
	o->bm = ROWS, o->bn = 128, o->stages = 2, o->cluster_m = o->cluster_n = o->per_sm = 1, o->swap = o->stream_k = false;
}

void gemm_sm100_search(gemm_pick *x, cptx_gemm_opt o)
{
	static const uint8_t clusters[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 4, 1 }, { 1, 4 } };

	for (size_t i = 0; i < ARRAY_LEN(clusters); i++)
		for (o.bm = ROWS; o.bm <= 2 * ROWS; o.bm += ROWS)
			for (o.bn = 256; o.bn >= 16; o.bn -= 16)
				for (uint32_t way = 0; way < 4; way++) {
					o.cluster_m = clusters[i][0], o.cluster_n = clusters[i][1], o.stages = 2;
					o.swap = way % 2, o.per_sm = 1 + way / 2;
					if (cptx_gemm_check(&o, NULL, NULL, NULL))
						offer_all(x, o);
				}
}
