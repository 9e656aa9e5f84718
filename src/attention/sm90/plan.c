/* SPDX-License-Identifier: MIT */
/* The shape of the sm_90a attention, and its rules. */
#include "attention/sm90/forward.h"

#include <cptx/epilogue.h>

#define TARGET "sm_90a"
#define RULE(ok, ...) ATTENTION_RULE(ok, TARGET ": " __VA_ARGS__)

enum {
	STATIC_SMEM = 1024, /* for mbarriers */
	MOST_GROUPS = 3,
	MOST_STAGES_OF_O = 2,
	PING_PONG_DIM = 128, /* turns keep groups of larger heads waiting for long products, but those of WIDE_DIM */
	WIDE_DIM = 256,      /* without a mask */
	MOST_REGS = 216 /* of the 240 that an MMA thread has, for S, P (half of S) and O: what ptxas 13.0 leaves beside them */
};
/* Registers of a thread by the number of MMA warpgroups; one has them all anyway. */
static const uint8_t producer_regs[] = { 0, 0, 24, 32 }, mma_regs[] = { 0, 0, 240, 160 };
/* Where the producer's other warps turn V around. */
static const uint8_t turner_regs[] = { 0, 0, 40, 32 }, regs_beside[] = { 0, 0, 232, 160 };

static uint32_t most_smem(void)
{
	const cptx_target *t = cptx_target_find(TARGET);

	return MIN(t->smem_per_sm - t->smem_reserved, t->smem_per_cta) - STATIC_SMEM;
}

static uint8_t bits_of(const cptx_attention_opt *o) { return (uint8_t)cptx_type_bits(o->in); }

/* Whole spans of 64 bytes, and of 128 where they are even. */
static uint32_t round_dim(const cptx_attention_opt *o, uint32_t dim)
{
	const uint32_t span = 64 * 8 / bits_of(o);

	return attention_up(dim, span) * span;
}

/* along: elements of the contiguous dimension. */
static cptx_tile tile(const cptx_attention_opt *o, uint32_t rows, uint32_t cols, uint32_t along, bool mn_major)
{
	const uint32_t bytes = along * bits_of(o) / 8;
	const enum cptx_swizzle swizzle = bytes % 64 ? CPTX_SWIZZLE_32B : bytes % 128 ? CPTX_SWIZZLE_64B : CPTX_SWIZZLE_128B;

	return (cptx_tile){ rows, cols, { bits_of(o), mn_major, false }, swizzle, 0, 0 };
}

static uint32_t bytes_of(const cptx_attention_opt *o, const shape90 *s)
{
	const uint32_t turned = s->turners ? cptx_tile_bytes(&s->turned) : 0;

	return cptx_tile_bytes(&s->q) + o->stages * (cptx_tile_bytes(&s->k) + cptx_tile_bytes(&s->v) + turned) +
	       s->groups * s->o_stages * cptx_tile_bytes(&s->o);
}

shape90 attention_sm90_shape(const cptx_attention_opt *o)
{
	shape90 s = { .dim = round_dim(o, o->dim), .dim_v = round_dim(o, attention_dim_v(o)), .groups = o->bq / GROUP_ROWS };

	s.threads = (s.groups + 1) * GROUP_THREADS;
	s.turners = attention_is_fp8(o) ? 3 : 0;
	const uint32_t groups = MIN(s.groups, (uint32_t)MOST_GROUPS); /* more of them break a rule, later */
	s.regs[0] = (s.turners ? turner_regs : producer_regs)[groups], s.regs[1] = (s.turners ? regs_beside : mma_regs)[groups];
	s.q = tile(o, o->bq, s.dim, s.dim, false);
	s.k = tile(o, o->bk, s.dim, s.dim, false);
	s.v = tile(o, s.dim_v, o->bk, s.dim_v, true);
	if (s.turners)
		s.turned = tile(o, s.dim_v, o->bk, o->bk, false);
	s.o = cptx_epilogue_tile(attention_out(o), GROUP_ROWS, s.dim_v);
	s.o_stages = MOST_STAGES_OF_O;
	if (bytes_of(o, &s) > most_smem() || s.o.cols == s.dim_v)
		s.o_stages = 1;
	s.smem = bytes_of(o, &s);
	/* measured: three warpgroups with e4m3, D256 of 16 bits, and D128 without a mask are 1 to 4 % faster with few
	 * corrections; others, in which the multiplications hide behind exponentials, up to 2 % slower */
	const bool full = !o->causal && !o->window, fp8 = attention_is_fp8(o), small = fp8 && s.dim == 128 && s.groups > 2;
	s.corrects_few = small || (!fp8 && (s.dim == WIDE_DIM || (s.dim == 128 && full)));
	/* turns are worth 1 % of D256 without a mask, too; three warpgroups with e4m3 and D128 are 1 % faster without them */
	s.ping_pong = s.groups > 1 && !small && (s.dim <= PING_PONG_DIM || (s.dim == WIDE_DIM && full && !fp8));
	return s;
}

/* ---- shapes to choose from ---- */

static attention_operands operands(const cptx_attention_opt *o);

/* Whether blocks are made of more parts than an operand can have, by pages that are small. */
static bool too_many_parts(const cptx_attention_opt *o)
{
	const attention_operands ops = operands(o);

	return o->page && attention_max(ops.k_part.stages, ops.v_part.stages) > ATTENTION_MOST_PARTS;
}

static uint32_t registers(const cptx_attention_opt *o, const shape90 *s)
{
	return o->bk / 2 + o->bk / 4 * bits_of(o) / 16 + s->dim_v / 2;
}

static uint32_t most_registers(const shape90 *s) { return s->groups > 2 ? MOST_REGS - 80 : MOST_REGS; }

/* Whether registers and shared memory suffice for a whole shape. */
static bool fits(const cptx_attention_opt *o)
{
	const shape90 s = attention_sm90_shape(o);

	return registers(o, &s) <= most_registers(&s) && s.smem <= most_smem();
}

/* Of e4m3 three warpgroups with small blocks are the fastest. */
static bool small_blocks(const cptx_attention_opt *o, uint32_t dim)
{
	return attention_is_fp8(o) && dim == 128 && !o->window && !o->page && !o->stages;
}

/* Keys of a block by the head size, where nothing else is known. */
static void complete(cptx_attention_opt *o)
{
	const uint32_t dim = (uint32_t)attention_max(round_dim(o, o->dim), round_dim(o, attention_dim_v(o)));
	const bool any_bq = !o->bq;

	if (any_bq) /* 192 rows have no power of two of them for each head of a tile */
		o->bq = (dim <= 64 || (small_blocks(o, dim) && !o->bk)) && o->pack < 2 ? 192 : 128;
	if (!o->stages)
		o->stages = 2;
	const bool open = !o->bk;
	if (open)
		o->bk = dim <= 128 ? 128 : o->page ? 64 : dim <= 160 ? 112 : dim <= 192 ? 96 : 64;
	if (open && attention_is_fp8(o) && !o->page)
		o->bk = dim <= 64 ? 128 : dim <= 128 ? (o->bq > 128 ? 96 : 224) : dim <= 192 ? 128 : 96;
	else if (open && attention_is_fp8(o))
		o->bk = dim <= 192 ? 128 : 64;
	while (open && o->bk > 16 && too_many_parts(o))
		o->bk /= 2;
	if (any_bq && o->bq > 128 && !fits(o)) /* what is given of the shape may fit fewer rows alone */
		o->bq = 128;
}

static bool check(const cptx_attention_opt *o, const cptx_target *target, cptx_attention_plan *plan, cptx_error *err)
{
	(void)target; /* those that have wgmma have the same shared memory */
	RULE(o->bq % GROUP_ROWS == 0 && o->bq <= MOST_GROUPS * GROUP_ROWS,
	     "bq = %u; it is 64 for each MMA warpgroup: 64, 128 or 192", o->bq);
	RULE(!attention_is_fp8(o) || o->bk % 32 == 0, "blocks of %u keys; of e4m3 a multiple of 32, which an instruction takes",
	     o->bk);
	const shape90 s = attention_sm90_shape(o);
	const uint32_t regs = registers(o, &s), most = most_registers(&s);

	RULE(regs <= most, "blocks of %u keys and head size %u need %u registers for S, P and O; %u warpgroups have %u", o->bk,
	     attention_dim_v(o), regs, s.groups, most);
	RULE(s.smem <= most_smem(),
	     "%u queries, and %u stages of %u keys of head size %u need %u bytes of shared memory; a CTA has at most %u", o->bq,
	     o->stages, o->bk, o->dim, s.smem, most_smem());
	*plan = (cptx_attention_plan){ .threads = s.threads,
		                           .smem = s.smem,
		                           .dim = s.dim,
		                           .dim_v = s.dim_v,
		                           .groups = s.groups,
		                           .regs = { s.regs[0], s.regs[1] } };
	return true;
}

static attention_operands operands(const cptx_attention_opt *o)
{
	const shape90 s = attention_sm90_shape(o);
	attention_operands ops = attention_operands_of(o, &s.q, &s.k, &s.v);

	ops.o = s.o;
	return ops;
}

static bool stores_by_tma(const cptx_attention_opt *o)
{
	(void)o;
	return true;
}

const attention_generator attention_sm90 = { .target = TARGET,
	                                         .where = "sm_90a has",
	                                         .op = CPTX_OP_WGMMA_MMA_ASYNC,
	                                         .by_tma = true,
	                                         .stores_by_tma = stores_by_tma,
	                                         .complete = complete,
	                                         .check = check,
	                                         .build = attention_sm90_build,
	                                         .operands = operands,
	                                         .shapes = attention_sm90_shapes,
	                                         .cycles = attention_sm90_cycles };
