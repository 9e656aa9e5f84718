/* SPDX-License-Identifier: MIT */
/* The shape of the attention by mma.sync, and its rules. */
#include "attention/sm80/forward.h"

#include "base/base.h"

#define TARGET "sm_80"
#define RULE(ok, ...) ATTENTION_RULE(ok, TARGET ": " __VA_ARGS__)

enum {
	MOST_REGS = 255,
	OTHER_REGS = 24,    /* fragments and addresses, and beside them for each row of a warp maxima, sums and ends: what ptxas
	                       13.0 takes beside S, O and Q */
	COPY_REGS = 16,     /* and for copies by cp.async */
	MOST_WITH_Q = 248,  /* where Q stays in registers, too */
	STATIC_SMEM = 1024, /* for mbarriers and alignment */
	MOST_SMEM = 227 * 1024,
	FP8_FROM = 89 /* the least target with e4m3 */
};

shape80 attention_sm80_shape(const cptx_attention_opt *o)
{
	shape80 s = { .dim = attention_round_dim(o, o->dim),
		          .dim_v = attention_round_dim(o, attention_dim_v(o)),
		          .rows = o->bq / o->warps,
		          .threads = o->warps * CPTX_WARP };

	const uint32_t q_regs = s.rows * s.dim * attention_bytes(o) / 4 / CPTX_WARP;
	s.regs = s.rows * (s.dim_v + o->bk) / CPTX_WARP + OTHER_REGS + s.rows * 5 / 4 + (o->tma ? 0 : COPY_REGS);
	s.q_in_regs = s.regs + q_regs <= MOST_WITH_Q && !attention_is_fp8(o); /* the kit has no A of 8 bits in registers */
	s.regs += s.q_in_regs ? q_regs : 0;
	s.q = attention_tile_of(o, o->bq, s.dim, s.dim, false);
	s.k = attention_tile_of(o, o->bk, s.dim, s.dim, false);
	s.v = attention_tile_of(o, s.dim_v, o->bk, s.dim_v, true);
	s.stage = cptx_tile_bytes(&s.k) + cptx_tile_bytes(&s.v);
	s.smem = cptx_tile_bytes(&s.q) + o->stages * s.stage;
	return s;
}

/* ---- shapes to choose from ---- */

/* With 32 rows of a warp each fragment of K and V that ldmatrix brings is multiplied twice, but O of wide heads leaves
 * registers for 16 alone.  All of these fit the shared memory of sm_86. */
static void complete(cptx_attention_opt *o)
{
	const uint32_t dim = (uint32_t)attention_max(attention_round_dim(o, o->dim), attention_round_dim(o, attention_dim_v(o)));
	const uint32_t rows = dim <= 128 ? 2 * MMA_ROWS : MMA_ROWS;

	if (!o->bq)
		o->bq = o->warps ? o->warps * rows : dim <= 128 ? 128 : 64;
	if (!o->warps)
		o->warps = (uint32_t)attention_max(o->bq / rows, 1);
	if (!o->stages)
		o->stages = 2;
	const bool usual = !o->bk;
	if (usual)
		o->bk = dim <= 96 ? 64 : dim <= 128 ? (o->tma && !attention_is_fp8(o) ? 48 : 32) : dim <= 192 ? 64 : 32;
	if (usual && o->page && o->bk > o->page)
		o->bk = (uint32_t)attention_max(o->page, 16);
	else if (usual && o->page && o->page % o->bk)
		o->bk = 32;
}

static bool check(const cptx_attention_opt *o, const cptx_target *target, cptx_attention_plan *plan, cptx_error *err)
{
	const uint32_t most = (target ? target->smem_per_cta : (uint32_t)MOST_SMEM) - (o->tma ? STATIC_SMEM : 0);

	if (attention_is_fp8(o) && target && target->number < FP8_FROM)
		return error_set(err, CPTX_E_TARGET, NOWHERE,
		                 "attention for " TARGET ": %s has no .e4m3; targets from sm_%d on have it", target->name, FP8_FROM);
	RULE(!o->tma || !target || cptx_form_on_target(CPTX_OP_CP_ASYNC_BULK_TENSOR_LOAD, 0, target),
	     ".tma for %s; TMA is there from sm_90 on", target->name);
	RULE(o->bq % (o->warps * MMA_ROWS) == 0 && o->bq <= 2 * o->warps * MMA_ROWS,
	     "%u queries and %u warps; each warp has 16 or 32 queries", o->bq, o->warps);
	const shape80 s = attention_sm80_shape(o);
	RULE(s.regs <= MOST_REGS,
	     "%u queries of a warp, blocks of %u keys and head size %u need about %u registers; a thread has %d: take more "
	     "warps, or "
	     "smaller blocks",
	     s.rows, o->bk, attention_dim_v(o), s.regs, MOST_REGS);
	RULE(s.regs * s.threads <= CPTX_REGS_PER_SM, "%u warps of about %u registers each; a CTA has %d registers in all",
	     o->warps, s.regs, CPTX_REGS_PER_SM);
	RULE(s.smem <= most,
	     "%u queries, and %u stages of %u keys of head size %u need %u bytes of shared memory; a CTA of %s has at most %u",
	     o->bq, o->stages, o->bk, o->dim, s.smem, target ? target->name : "any target", most);
	*plan = (cptx_attention_plan){
		.threads = s.threads, .smem = s.smem, .dim = s.dim, .dim_v = s.dim_v, .groups = o->warps, .regs = { 0, s.regs }
	};
	return true;
}

static attention_operands operands(const cptx_attention_opt *o)
{
	const shape80 s = attention_sm80_shape(o);

	return attention_operands_of(o, &s.q, &s.k, &s.v);
}

const attention_generator attention_sm80 = { .target = TARGET,
	                                         .where = "targets from sm_80 on have",
	                                         .op = CPTX_OP_CP_ASYNC,
	                                         .one_tile = true,
	                                         .complete = complete,
	                                         .check = check,
	                                         .build = attention_sm80_build,
	                                         .operands = operands,
	                                         .shapes = attention_sm80_shapes,
	                                         .cycles = attention_sm80_cycles,
	                                         .serial = 0.7 /* fitted to 10 shapes on an H100, 5 % off */ };
