/* SPDX-License-Identifier: MIT */
/* The shape of the sm_100a attention, its rules, and what a block of keys takes. */
#include "attention/sm100/forward.h"

#include "base/base.h"

#define TARGET "sm_100a"
#define RULE(ok, ...) ATTENTION_RULE(ok, TARGET ": " __VA_ARGS__)

enum {
	THREADS = 192,
	PAIR_THREADS = 512,
	STATIC_SMEM = 1024,      /* for mbarriers and alignment */
	PAIR_STATIC_SMEM = 2560, /* and for what the softmax tells the warps that correct */
	TMEM_COLUMNS = 512,      /* of a multiprocessor */
	MMA_PER_CYCLE = 4096,
	EX2_PER_CYCLE = 16,
	PER_BLOCK = 64,     /* waits and arrivals, a guess that prefers large blocks */
	F32_PER_CYCLE = 128 /* of one, multiply-adds and operations */
};
/* Operations on a score beside the exponential: maximum, fma, sum, half a conversion. */
#define PER_SCORE 3.5
/* With two tiles: instructions for a score, of which a multiprocessor starts F32_PER_CYCLE, and the share of the
 * exponentials that ex2 is left with; it is twice as fast on sm_103a. */
#define PAIR_PER_SCORE 4.06
#define EX2_SHARE (13 / 16.0)

static const cptx_target *target_of(void) { return cptx_target_find(TARGET); }

/* Tensor memory is allocated in powers of two. */
static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 32;

	while (p < n)
		p *= 2;
	return p;
}

static uint32_t static_smem(const shape100 *s) { return s->tiles > 1 ? PAIR_STATIC_SMEM : STATIC_SMEM; }

/* Two tiles: S of both, P over its second half, O of both. */
static void place_pair(const cptx_attention_opt *o, shape100 *s)
{
	const uint32_t bytes = cptx_type_bits(attention_out(o)) / 8, cols = s->dim_v * bytes % 128 ? 64 / bytes : 128 / bytes;

	s->threads = PAIR_THREADS, s->ctas = 1;
	/* of a row of 128 scores, and of 64; in all 512, of a thread of each warpgroup */
	s->softmax_regs = o->bk > 64 ? 192 : 152, s->correct_regs = o->bk > 64 ? 80 : 112, s->rest_regs = o->bk > 64 ? 48 : 96;
	s->s_apart = o->bk, s->o_apart = s->dim_v;
	s->p = s->s + o->bk / 2, s->o = s->s + s->tiles * o->bk;
	s->columns = power_of_two(s->o + s->tiles * s->dim_v);
	s->out = (cptx_tile){
		CPTX_WARP, cols, { (uint8_t)(8 * bytes), false, false }, cols * bytes == 128 ? CPTX_SWIZZLE_128B : CPTX_SWIZZLE_64B,
		0,         0
	};
	if (!o->varlen)
		s->smem += CPTX_TMEM_LANES / CPTX_WARP * RING_STAGES * cptx_epilogue_ring_bytes(&s->out);
}

static void place_one(const cptx_attention_opt *o, shape100 *s)
{
	const cptx_target *t = target_of();

	s->p = s->s + o->bk, s->o = s->p + o->bk / 2;
	s->columns = power_of_two(s->o + s->dim_v);
	const uint32_t each = s->smem + STATIC_SMEM + t->smem_reserved;
	s->ctas = 2 * s->columns <= TMEM_COLUMNS && 2 * each <= t->smem_per_sm && o->bk <= 64 ? 2 : 1;
}

shape100 attention_sm100_shape(const cptx_attention_opt *o)
{
	shape100 s = { .dim = attention_round_dim(o, o->dim),
		           .dim_v = attention_round_dim(o, attention_dim_v(o)),
		           .threads = THREADS };

	s.tiles = o->bq / TILE_ROWS;
	s.q = attention_tile_of(o, TILE_ROWS, s.dim, s.dim, false);
	s.k = attention_tile_of(o, o->bk, s.dim, s.dim, false);
	s.v = attention_tile_of(o, s.dim_v, o->bk, s.dim_v, true);
	s.smem = s.tiles * cptx_tile_bytes(&s.q) + o->stages * (cptx_tile_bytes(&s.k) + cptx_tile_bytes(&s.v));
	if (s.tiles > 1)
		place_pair(o, &s);
	else
		place_one(o, &s);
	return s;
}

static void complete(cptx_attention_opt *o)
{
	const uint32_t dim = (uint32_t)attention_max(attention_round_dim(o, o->dim), attention_round_dim(o, attention_dim_v(o)));

	if (!o->bq)
		o->bq = dim <= 128 && o->bk != 32 && (!o->stages || o->stages == 2) ? 2 * TILE_ROWS : TILE_ROWS;
	if (!o->stages)
		o->stages = 2;
	/* a row of 128 scores leaves few registers, for two bounds of a row one too few */
	const bool many = !o->window && !o->score && !o->mask && (!o->page || o->page >= 128);
	if (!o->bk)
		o->bk = o->bq > TILE_ROWS ? (many ? 128 : 64) : dim <= 128 ? 64 : 32;
}

static bool check(const cptx_attention_opt *o, const cptx_target *target, cptx_attention_plan *plan, cptx_error *err)
{
	(void)target;
	RULE(o->bq == TILE_ROWS || o->bq == 2 * TILE_ROWS, "bq = %u; a CTA has %d queries, or two tiles of these", o->bq,
	     TILE_ROWS);
	RULE(o->bk == 32 || o->bk == 64 || o->bk == 128, "bk = %u; a block has 32, 64 or 128 keys", o->bk);
	RULE(o->bq == TILE_ROWS || o->bk > 32, "bk = %u; with two tiles of queries a block has 64 or 128 keys", o->bk);
	const shape100 s = attention_sm100_shape(o);
	const uint32_t most = target_of()->smem_per_cta - static_smem(&s);
	RULE(s.tiles * (o->bk + s.dim_v) <= TMEM_COLUMNS || s.tiles == 1,
	     "two tiles with %u keys and head size %u of V need %u columns of tensor memory; there are %d", o->bk, s.dim_v,
	     s.tiles * (o->bk + s.dim_v), TMEM_COLUMNS);
	RULE(s.smem <= most, "%u stages of %u keys of head size %u need %u bytes of shared memory; a CTA has at most %u",
	     o->stages, o->bk, o->dim, s.smem, most);
	*plan = (cptx_attention_plan){ .threads = s.threads,
		                           .smem = s.smem,
		                           .dim = s.dim,
		                           .dim_v = s.dim_v,
		                           .groups = s.tiles,
		                           .regs = { s.rest_regs, s.softmax_regs },
		                           .ex2_error = attention_sm100_ex2_error(o) };
	return true;
}

static bool stores_by_tma(const cptx_attention_opt *o) { return o->bq > TILE_ROWS; }

static attention_operands operands(const cptx_attention_opt *o)
{
	const shape100 s = attention_sm100_shape(o);

	attention_operands ops = attention_operands_of(o, &s.q, &s.k, &s.v);

	ops.q.stages = ops.q_part.stages = s.tiles;
	ops.o = s.out;
	return ops;
}

/* ---- shapes to choose from ---- */

static size_t shapes(const cptx_attention_opt *o, cptx_attention_opt *to, size_t room)
{
	size_t n = 0;

	for (uint32_t bq = TILE_ROWS; bq <= 2 * TILE_ROWS; bq *= 2)
		for (uint32_t bk = 32; bk <= 128; bk *= 2)
			for (uint32_t stages = 2; stages <= 3; stages++) {
				cptx_attention_opt x = *o;
				x.bq = o->bq ? o->bq : bq, x.bk = o->bk ? o->bk : bk, x.stages = o->stages ? o->stages : stages;
				const bool again = (o->bq && bq > TILE_ROWS) || (o->bk && bk > 32) || (o->stages && stages > 2);
				if (n < room && !again && cptx_attention_check(&x, NULL, NULL, NULL))
					to[n++] = x;
			}
	return n;
}

/* One CTA alone makes the softmax and the products of a block one after the other, but with two tiles. */
static void cycles(const cptx_attention_opt *o, double *mma, double *softmax)
{
	const shape100 s = attention_sm100_shape(o);
	const double scores = (double)o->bq * o->bk;

	*mma = scores * (s.dim + s.dim_v) * attention_bytes(o) / (2 * MMA_PER_CYCLE);
	if (s.tiles > 1) {
		const double ex2 = scores * (attention_sm100_by_polynomial(o) ? EX2_SHARE : 0.5) / EX2_PER_CYCLE;
		const double starts = scores * PAIR_PER_SCORE / F32_PER_CYCLE;
		*softmax = (ex2 > starts ? ex2 : starts) + PER_BLOCK, *mma += PER_BLOCK;
		return;
	}
	*softmax = (scores / EX2_PER_CYCLE + scores * PER_SCORE / F32_PER_CYCLE) * (s.ctas > 1 ? 1 : 2);
}

const attention_generator attention_sm100 = { .target = TARGET,
	                                          .where = "sm_100a has",
	                                          .op = CPTX_OP_TCGEN05_MMA,
	                                          .by_tma = true,
	                                          .stores_by_tma = stores_by_tma,
	                                          .one_tile = true,
	                                          .complete = complete,
	                                          .check = check,
	                                          .build = attention_sm100_build,
	                                          .operands = operands,
	                                          .shapes = shapes,
	                                          .cycles = cycles };
