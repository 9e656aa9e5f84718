/* SPDX-License-Identifier: MIT */
/* The shape of the sm_100a attention, its rules, and what a block of keys takes. */
#include "attention/sm100/forward.h"

#include "base/base.h"

#define TARGET "sm_100a"
#define RULE(ok, ...) ATTENTION_RULE(ok, TARGET ": " __VA_ARGS__)

enum {
	THREADS = 192,
	STATIC_SMEM = 1024, /* for mbarriers and alignment */
	TMEM_COLUMNS = 512, /* of a multiprocessor */
	MMA_PER_CYCLE = 4096,
	EX2_PER_CYCLE = 16,
	F32_PER_CYCLE = 128 /* of one, multiply-adds and operations */
};
/* Operations on a score beside the exponential: maximum, fma, sum, half a conversion. */
#define PER_SCORE 3.5

static const cptx_target *target_of(void) { return cptx_target_find(TARGET); }

static uint32_t round_dim(uint32_t dim) { return attention_up(dim, 32) * 32; }

static cptx_tile tile(uint32_t rows, uint32_t cols, uint32_t dim, bool mn_major)
{
	return (cptx_tile){ rows, cols, { 16, mn_major, false }, dim % 64 ? CPTX_SWIZZLE_64B : CPTX_SWIZZLE_128B, 0, 0 };
}

/* Tensor memory is allocated in powers of two. */
static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 32;

	while (p < n)
		p *= 2;
	return p;
}

shape100 attention_sm100_shape(const cptx_attention_opt *o)
{
	shape100 s = { .dim = round_dim(o->dim), .dim_v = round_dim(attention_dim_v(o)), .threads = THREADS };
	const cptx_target *t = target_of();

	s.q = tile(o->bq, s.dim, s.dim, false);
	s.k = tile(o->bk, s.dim, s.dim, false);
	s.v = tile(s.dim_v, o->bk, s.dim_v, true);
	s.smem = cptx_tile_bytes(&s.q) + o->stages * (cptx_tile_bytes(&s.k) + cptx_tile_bytes(&s.v));
	s.p = s.s + o->bk, s.o = s.p + o->bk / 2;
	s.columns = power_of_two(s.o + s.dim_v);
	const uint32_t each = s.smem + STATIC_SMEM + t->smem_reserved;
	s.ctas = 2 * s.columns <= TMEM_COLUMNS && 2 * each <= t->smem_per_sm && o->bk <= 64 ? 2 : 1;
	return s;
}

static void complete(cptx_attention_opt *o)
{
	const uint32_t dim = (uint32_t)attention_max(round_dim(o->dim), round_dim(attention_dim_v(o)));

	if (!o->bq)
		o->bq = TILE_ROWS;
	if (!o->stages)
		o->stages = 2;
	if (!o->bk)
		o->bk = dim <= 128 ? 64 : 32;
}

static bool check(const cptx_attention_opt *o, const cptx_target *target, cptx_attention_plan *plan, cptx_error *err)
{
	const uint32_t most = target_of()->smem_per_cta - STATIC_SMEM;

	(void)target;
	RULE(o->bq == TILE_ROWS, "bq = %u; a CTA has %d queries", o->bq, TILE_ROWS);
	RULE(o->bk == 32 || o->bk == 64 || o->bk == 128, "bk = %u; a block has 32, 64 or 128 keys", o->bk);
	const shape100 s = attention_sm100_shape(o);
	RULE(s.smem <= most, "%u stages of %u keys of head size %u need %u bytes of shared memory; a CTA has at most %u",
	     o->stages, o->bk, o->dim, s.smem, most);
	*plan = (cptx_attention_plan){
		.threads = s.threads, .smem = s.smem, .dim = s.dim, .dim_v = s.dim_v, .groups = 1, .regs = { 0, 0 }
	};
	return true;
}

static attention_operands operands(const cptx_attention_opt *o)
{
	const shape100 s = attention_sm100_shape(o);

	return attention_operands_of(o, &s.q, &s.k, &s.v);
}

/* ---- shapes to choose from ---- */

static size_t shapes(const cptx_attention_opt *o, cptx_attention_opt *to, size_t room)
{
	size_t n = 0;

	for (uint32_t bk = 32; bk <= 128; bk *= 2)
		for (uint32_t stages = 2; stages <= 3; stages++) {
			cptx_attention_opt x = *o;
			x.bq = o->bq ? o->bq : TILE_ROWS, x.bk = o->bk ? o->bk : bk, x.stages = o->stages ? o->stages : stages;
			const bool again = (o->bk && bk > 32) || (o->stages && stages > 2);
			if (n < room && !again && cptx_attention_check(&x, NULL, NULL, NULL))
				to[n++] = x;
		}
	return n;
}

/* One CTA alone makes the softmax and the products of a block one after the other. */
static void cycles(const cptx_attention_opt *o, double *mma, double *softmax)
{
	const shape100 s = attention_sm100_shape(o);
	const double scores = (double)o->bq * o->bk;

	*mma = scores * (s.dim + s.dim_v) / MMA_PER_CYCLE;
	*softmax = (scores / EX2_PER_CYCLE + scores * PER_SCORE / F32_PER_CYCLE) * (s.ctas > 1 ? 1 : 2);
}

const attention_generator attention_sm100 = { .target = TARGET,
	                                          .where = "sm_100a has",
	                                          .op = CPTX_OP_TCGEN05_MMA,
	                                          .by_tma = true,
	                                          .one_tile = true,
	                                          .complete = complete,
	                                          .check = check,
	                                          .build = attention_sm100_build,
	                                          .operands = operands,
	                                          .shapes = shapes,
	                                          .cycles = cycles };
