/* SPDX-License-Identifier: MIT */
/*
 * The kernel that makes dK and dV, and sums of dQ, for sm_90a.  A producer warp brings K and V of the CTA, and Q, dO, LSE
 * and delta of block after block of queries by TMA.  Two MMA warpgroups have 64 keys each: S^T = K * Q^T and dP^T = V * dO^T
 * come from shared memory, P^T and dS^T are in registers what dV += P^T * dO and dK += dS^T * Q take as their A.
 *
 * dQ = dS * K sums over the keys of both: dS^T goes to shared memory, and each warpgroup makes a half of dQ a block later,
 * so that it need not wait for the other, which is half a block behind: they issue most of their products by turns, and
 * while one does, the other has exponentials to compute.  A bulk copy adds a part of dQ to the sums of the workspace, where
 * it lies as the threads hold it.  The product S^T of the next block runs beside that.
 *
 * Small heads (dq_apart) leave registers for more: a third warpgroup makes dQ of whole blocks, so that the other two neither
 * wait for one another nor for the copies, and V is the A of dP^T in registers, for products of 64 rows and columns whose
 * operands both come from shared memory take all that it gives.  S^T of the next block is issued behind dK.
 */
#include "attention/backward/backward.h"

#include <cptx/cptx.h>
#include <cptx/roles.h>

/* Numbered barriers; 0 is the CTA's.  Each has one for each warpgroup. */
enum { TURN = 1 /* its turn to issue products */, PART = 3 /* of its threads */, DS_STAGES = 2 };

typedef struct keys90 {
	cptx_kernel *k;
	const cptx_attention_backward_opt *o;
	backward_in in;
	const backward_shape *s;
	cptx_roles roles;
	backward_tile t;
	cptx_operand key, v, q, d_o;
	cptx_pipe kv_pipe, q_pipe, do_pipe, ds_pipe;
	cptx_pipe_at kv_at, q_at, do_at; /* the role's places */
	cptx_pipe_at q_done;             /* the stage of Q to be released next, where q_at runs ahead */
	cptx_pipe_at ds_to, ds_at;       /* of an MMA warpgroup: dS^T that it writes, and that it reads */
	cptx_val stats, ds, parts;       /* .u32, shared memory */
	cptx_val blocks;                 /* .u32, of queries, of all heads that share that of K and V */
	backward_cursor at;              /* the role's block */

	/* of an MMA warpgroup */
	cptx_val group, thread, releases;
	cptx_val turn, next_turn; /* barriers */
	cptx_val part, to; /* .u32, the thread's place in the warpgroup's part; .u64, where the block before has its own */
	cptx_val v_regs;   /* V as an A, with dq_apart */
	cptx_tiled_mma kq, vo, grad, dq; /* S^T; dP^T; dV and dK; dQ */
	cptx_acc scores, probs, dp, sum_dv, sum_dk, dq_part;
} keys90;

static cptx_operand operand(keys90 *x, const char *name, const cptx_tile *tile, const char *map, uint32_t stages)
{
	cptx_operand op;

	cptx_operand_new(x->k, &op, .type = x->o->in, .tile = *tile, .stages = stages,
	                 .map = cptx_params_get(x->k, &x->in.params, map), .batched = true, .name = name, .batch_dims = 2);
	return op;
}

static cptx_val smem(keys90 *x, uint32_t bytes, uint32_t align, const char *name)
{
	return cptx_mov(x->k, cptx_shared_dyn(x->k, bytes, align, name), .type = CPTX_U32);
}

/* ---- blocks of queries ---- */

/* Of the blocks those that count: the roles must know how many there are. */
static void count_blocks(keys90 *x)
{
	cptx_kernel *k = x->k;
	const cptx_val all = x->blocks, i = cptx_var(k, CPTX_U32, 0);

	x->blocks = cptx_var(k, CPTX_U32, 0);
	x->at = backward_cursor_queries(k, &x->in, &x->t, &x->scores);
	CPTX_FOR(k, i, all, 1) {
		cptx_add(k, x->blocks, 1, .into = x->blocks, .when = backward_cursor_counts(k, &x->in, &x->at));
		backward_cursor_advance(k, &x->at);
	}
}

static void setup(keys90 *x)
{
	cptx_kernel *k = x->k;
	const backward_shape *s = x->s;
	const uint32_t stages = x->o->stages;

	cptx_params_declare(k, &x->in.params, backward_map_params, BACKWARD_MAPS);
	x->key = operand(x, "keys", &s->k, "k_map", 1), x->v = operand(x, "values", &s->k, "v_map", 1);
	x->q = operand(x, "queries_ring", &s->q, "q_map", stages), x->d_o = operand(x, "do_ring", &s->q, "do_map", stages);
	if (!x->o->deterministic) {
		x->ds = smem(x, DS_STAGES * cptx_tile_bytes(&s->p), 1024, "ds");
		x->parts = smem(x, BACKWARD_PARTS * s->part_bytes, 128, "parts");
	}
	x->stats = smem(x, stages * s->stats_bytes, 128, "stats_ring");
	cptx_roles_begin(k, &x->roles, .threads = s->threads);
	const cptx_val first = cptx_setp(k, x->roles.tid, 0, .cmp = CPTX_EQ);
	cptx_params_prefetch(k, &x->in.params, first);
	cptx_pipe_new(k, &x->kv_pipe, .stages = 1, .consumers = BACKWARD_GROUPS);
	const uint32_t consumers = BACKWARD_GROUPS * (s->dq_apart ? 4 : 1); /* warps, or warpgroups whose threads meet */
	cptx_pipe_new(k, &x->q_pipe, .stages = stages, .consumers = consumers);
	cptx_pipe_new(k, &x->do_pipe, .stages = stages, .consumers = consumers);
	/* a warp of each warpgroup arrives for its part of dS^T, and each warpgroup that makes dQ reads all of it */
	cptx_pipe_new(k, &x->ds_pipe, .stages = DS_STAGES, .producers = 4 * BACKWARD_GROUPS, .consumers = s->dq_groups);
	cptx_pipe_prepare(k, &x->ds_pipe, first);
	cptx_pipe_prepare(k, &x->kv_pipe, first);
	cptx_pipe_prepare(k, &x->q_pipe, first);
	cptx_pipe_init(k, &x->do_pipe, first);
	x->t = backward_locate(k, &x->in);
	const cptx_val some = cptx_sub(k, cptx_max(k, x->t.end, x->t.first), x->t.first);
	const cptx_val each = cptx_div(k, cptx_add(k, some, x->o->bq - 1), x->o->bq);
	x->blocks = cptx_mul(k, each, x->in.group, .mode = CPTX_LO);
	if (x->o->blocks)
		count_blocks(x);
}

static void begin_blocks(keys90 *x)
{
	x->at = backward_cursor_queries(x->k, &x->in, &x->t, &x->scores);
	backward_cursor_skip(x->k, &x->in, &x->at);
}

static void next_block(keys90 *x)
{
	backward_cursor_advance(x->k, &x->at);
	backward_cursor_skip(x->k, &x->in, &x->at);
}

static cptx_val plane_of(keys90 *x) { return backward_plane(x->k, &x->in, x->t.batch, x->at.block.head); }

/* A row or key of the sequence as a coordinate of TMA, and its batch. */
static cptx_val row_of(keys90 *x, cptx_val row, cptx_val before)
{
	return cptx_as(x->o->varlen ? cptx_add(x->k, row, before) : row, CPTX_S32);
}
static cptx_val batch_of(keys90 *x) { return x->o->varlen ? cptx_imm(0) : x->t.batch; }

/* ---- the producer ---- */

static void load_block(keys90 *x)
{
	cptx_kernel *k = x->k;
	const backward_shape *s = x->s;
	const cptx_val row = row_of(x, x->at.block.query, x->in.q0), batch = batch_of(x);

	cptx_pipe_wait_empty(k, &x->q_pipe, &x->q_at);
	cptx_pipe_expect(k, &x->q_pipe, &x->q_at, x->q.bytes + s->stats_bytes);
	const cptx_val full = cptx_pipe_full(&x->q_at);
	cptx_operand_load(k, &x->q, x->q_at.stage, row, 0, .barrier = full, .z = x->at.block.head, .z2 = batch);
	cptx_cp_async_bulk_load(k, cptx_mad(k, x->q_at.stage, s->stats_bytes, x->stats, .mode = CPTX_LO),
	                        backward_stats(k, &x->in, plane_of(x), x->at.block.query), s->stats_bytes, full,
	                        .dst = CPTX_SHARED_CLUSTER);
	cptx_pipe_next(k, &x->q_pipe, &x->q_at);
	cptx_pipe_wait_empty(k, &x->do_pipe, &x->do_at);
	cptx_pipe_expect(k, &x->do_pipe, &x->do_at, x->d_o.bytes);
	cptx_operand_load(k, &x->d_o, x->do_at.stage, row, 0, .barrier = cptx_pipe_full(&x->do_at), .z = x->at.block.head,
	                  .z2 = batch);
	cptx_pipe_next(k, &x->do_pipe, &x->do_at);
}

/* By one thread. */
static void produce(keys90 *x)
{
	cptx_kernel *k = x->k;
	const cptx_val i = cptx_var(k, CPTX_U32, 0), key = row_of(x, x->t.key0, x->in.k0), batch = batch_of(x);

	x->kv_at = cptx_pipe_producer(k, &x->kv_pipe);
	x->q_at = cptx_pipe_producer(k, &x->q_pipe), x->do_at = cptx_pipe_producer(k, &x->do_pipe);
	begin_blocks(x);
	cptx_pipe_expect(k, &x->kv_pipe, &x->kv_at, x->key.bytes + x->v.bytes);
	const cptx_val full = cptx_pipe_full(&x->kv_at);
	cptx_operand_load(k, &x->key, 0, key, 0, .barrier = full, .z = x->t.kv_head, .z2 = batch);
	cptx_operand_load(k, &x->v, 0, key, 0, .barrier = full, .z = x->t.kv_head, .z2 = batch);
	CPTX_FOR(k, i, x->blocks, 1) {
		load_block(x);
		next_block(x);
	}
}

/* ---- the MMA warpgroups ---- */

/* dP^T, and V of the warpgroup's keys, which is there: each warp's 16 keys are an A of mma.sync, too. */
static void begin_dp(keys90 *x)
{
	cptx_kernel *k = x->k;
	const enum cptx_type in = x->o->in;
	const backward_shape *s = x->s;
	const cptx_val warp = cptx_role_warp(k, &x->roles);
	cptx_tiled_mma by_warp;

	x->vo = x->kq;
	if (!s->dq_apart)
		return;
	cptx_tiled_mma_new(k, &by_warp, .by = CPTX_BY_MMA_SYNC, .a = in, .b = in, .m = 16, .n = x->o->bq,
	                   .units_m = 4 * BACKWARD_GROUPS, .a_tile = s->k, .b_tile = s->q, .unit = warp,
	                   .thread = x->roles.lane);
	cptx_tiled_mma_new(k, &x->vo, .by = CPTX_BY_WGMMA, .a = in, .b = in, .m = 64, .n = x->o->bq, .units_m = BACKWARD_GROUPS,
	                   .a_from = CPTX_A_REGS, .b_tile = s->q, .unit = x->group, .thread = x->thread);
	x->v_regs = cptx_mma_load_a(k, &by_warp, cptx_operand_at(k, &x->v, 0));
}

static void begin_group(keys90 *x)
{
	cptx_kernel *k = x->k;
	const enum cptx_type in = x->o->in;
	const backward_shape *s = x->s;

	x->group = cptx_shr(k, cptx_role_warp(k, &x->roles), 2);
	x->thread = cptx_and(k, x->roles.tid, BACKWARD_GROUP_THREADS - 1);
	x->releases = cptx_setp(k, x->thread, 0, .cmp = CPTX_EQ);
	x->kv_at = cptx_pipe_consumer(k, &x->kv_pipe);
	x->q_at = cptx_pipe_consumer(k, &x->q_pipe), x->do_at = cptx_pipe_consumer(k, &x->do_pipe);
	begin_blocks(x);
	cptx_tiled_mma_new(k, &x->kq, .by = CPTX_BY_WGMMA, .a = in, .b = in, .m = 64, .n = x->o->bq, .units_m = BACKWARD_GROUPS,
	                   .a_tile = s->k, .b_tile = s->q, .unit = x->group, .thread = x->thread);
	cptx_tiled_mma_new(k, &x->grad, .by = CPTX_BY_WGMMA, .a = in, .b = in, .m = 64, .n = s->dim, .units_m = BACKWARD_GROUPS,
	                   .a_from = CPTX_A_REGS, .b_tile = s->q_t, .unit = x->group, .thread = x->thread);
	cptx_acc_new(k, &x->kq, &x->scores);
	x->probs = backward_probabilities_of(k, &x->in, &x->kq, &x->scores);
	cptx_acc_new(k, &x->kq, &x->dp);
	cptx_acc_new(k, &x->grad, &x->sum_dv);
	cptx_acc_new(k, &x->grad, &x->sum_dk);
	cptx_acc_clear(k, &x->sum_dv);
	cptx_acc_clear(k, &x->sum_dk);
	if (!x->o->deterministic)
		x->ds_to = cptx_pipe_producer(k, &x->ds_pipe);
	if (s->dq_apart) {
		x->releases = cptx_setp(k, x->roles.lane, 0, .cmp = CPTX_EQ);
		x->q_done = cptx_pipe_consumer(k, &x->q_pipe);
		return;
	}
	x->turn = cptx_add(k, x->group, TURN), x->next_turn = cptx_sub(k, 2 * TURN + 1, x->turn);
	if (x->o->deterministic)
		return;
	backward_dq_product(k, &x->in, x->group, x->thread, &x->dq, &x->dq_part);
	x->ds_at = cptx_pipe_consumer(k, &x->ds_pipe);
	x->to = cptx_var(k, CPTX_U64, 0);
	x->part = cptx_mad(k, x->thread, 16, cptx_mad(k, x->group, s->part_bytes, x->parts, .mode = CPTX_LO), .mode = CPTX_LO);
}

static void issue_scores(keys90 *x)
{
	cptx_kernel *k = x->k;

	cptx_pipe_wait_full(k, &x->q_pipe, &x->q_at);
	const cptx_val q = cptx_operand_at(k, &x->q, x->q_at.stage);
	cptx_mma_tile(k, &x->kq, &x->scores, cptx_operand_at(k, &x->key, 0), q, .fresh = true);
}

static void release(keys90 *x, const cptx_pipe *pipe, cptx_pipe_at *at)
{
	cptx_pipe_release(x->k, pipe, at, x->releases);
	cptx_pipe_next(x->k, pipe, at);
}

static void meet(keys90 *x)
{
	const cptx_val barrier = x->group.kind == CPTX_VAL_NONE ? cptx_imm(PART) : cptx_add(x->k, x->group, PART);

	cptx_bar_sync(x->k, barrier, .b = cptx_imm(BACKWARD_GROUP_THREADS));
}

/* Adds the warpgroup's part of a block's dQ to the sums. */
static void add_part(keys90 *x, cptx_val to)
{
	cptx_kernel *k = x->k;

	CPTX_IF(k, x->releases)
		cptx_cp_async_bulk_wait_group(k, x->s->dq_apart ? 1 : 0, .read = CPTX_READ);
	meet(x);
	for (uint32_t i = 0; i < x->dq_part.count; i += 4)
		cptx_st(k, cptx_offset(x->part, i / 4 * BACKWARD_GROUP_THREADS * 16), cptx_slice(x->dq_part.regs, i, 4),
		        .space = CPTX_SHARED, .vec = CPTX_V4);
	cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	meet(x);
	CPTX_IF(k, x->releases) {
		cptx_cp_reduce_async_bulk(k, to, x->part, x->s->part_bytes, .op = CPTX_ADD, .type = CPTX_F32);
		cptx_cp_async_bulk_commit_group(k);
	}
}

/* Where the warpgroup's part of the block's dQ is among the sums. */
static cptx_val sums_of(keys90 *x)
{
	cptx_kernel *k = x->k;
	const cptx_val row = backward_work_row(k, &x->in, plane_of(x), x->at.block.query);
	const cptx_val block = cptx_mad(k, row, x->s->dim * 4, x->in.sums, .mode = CPTX_LO);

	return x->s->dq_apart ? block : cptx_mad_wide(k, x->group, x->s->part_bytes, block);
}

static cptx_val ds_of(keys90 *x, const cptx_pipe_at *at)
{
	return cptx_mad(x->k, at->stage, cptx_tile_bytes(&x->s->p), x->ds, .mode = CPTX_LO);
}

/* dS^T to shared memory, for both warpgroups. */
static void share_ds(keys90 *x)
{
	cptx_kernel *k = x->k;

	cptx_pipe_wait_empty(k, &x->ds_pipe, &x->ds_to);
	cptx_acc_put_tile(k, &x->dp, x->o->in, &x->s->p, ds_of(x, &x->ds_to));
	cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_warp_sync(k, -1);
	CPTX_IF(k, cptx_setp(k, x->roles.lane, 0, .cmp = CPTX_EQ))
		cptx_pipe_filled(k, &x->ds_pipe, &x->ds_to);
	cptx_pipe_next(k, &x->ds_pipe, &x->ds_to);
}

/* Starts dQ of the block whose dS^T is the oldest. */
static void issue_dq(keys90 *x)
{
	cptx_kernel *k = x->k;

	cptx_pipe_wait_full(k, &x->ds_pipe, &x->ds_at);
	const cptx_val ds = ds_of(x, &x->ds_at);
	cptx_mma_tile(k, &x->dq, &x->dq_part, ds, cptx_operand_at(k, &x->key, 0), .fresh = true);
}

/* Behind its products: its part of dQ is on its way. */
static void finish_dq(keys90 *x)
{
	release(x, &x->ds_pipe, &x->ds_at);
	add_part(x, x->to);
}

static void take_turn(keys90 *x) { cptx_bar_sync(x->k, x->turn, .b = cptx_imm(BACKWARD_GROUPS * BACKWARD_GROUP_THREADS)); }
static void pass_turn(keys90 *x) { cptx_bar_arrive(x->k, x->next_turn, BACKWARD_GROUPS * BACKWARD_GROUP_THREADS); }

/* A block, whose S^T is there, to its dS^T, which it gives as the A of dK; dV is on its way. */
static cptx_val differentiate(keys90 *x)
{
	cptx_kernel *k = x->k;
	const backward_scores b = x->at.block;
	const cptx_val stage = cptx_mad(k, x->q_at.stage, x->s->stats_bytes, x->stats, .mode = CPTX_LO);
	const cptx_val mine = cptx_mad(k, x->scores.col, 8, stage, .mode = CPTX_LO);

	cptx_pipe_wait_full(k, &x->do_pipe, &x->do_at);
	const cptx_val d_o = cptx_operand_at(k, &x->d_o, x->do_at.stage);
	const cptx_val v = x->s->dq_apart ? x->v_regs : cptx_operand_at(k, &x->v, 0);
	cptx_mma_tile(k, &x->vo, &x->dp, v, d_o, .fresh = true);
	backward_probabilities(k, &x->in, &b, &x->probs, mine);
	const cptx_val p = cptx_acc_as_a(k, &x->probs, &x->grad);
	cptx_mma_wait(k, &x->kq, 0);
	cptx_mma_tile(k, &x->grad, &x->sum_dv, p, d_o);
	backward_differentiate(k, &x->in, &b, &x->dp, mine);
	const cptx_val ds = cptx_acc_as_a(k, &x->dp, &x->grad);
	if (!x->o->deterministic)
		share_ds(x);
	return ds;
}

/* A block.  first: there is none in front of it, whose dQ is still to be made; last: none behind it. */
static void multiply(keys90 *x, bool first, bool last)
{
	cptx_kernel *k = x->k;
	const bool sums = !x->o->deterministic, dq = sums && !first;
	const cptx_val q = cptx_operand_at(k, &x->q, x->q_at.stage), ds = differentiate(x);

	meet(x); /* all threads have read LSE and delta */
	take_turn(x);
	cptx_mma_tile(k, &x->grad, &x->sum_dk, ds, q);
	if (dq)
		issue_dq(x);
	cptx_mma_wait(k, &x->grad, 1 + dq);
	release(x, &x->do_pipe, &x->do_at);
	cptx_mma_wait(k, &x->grad, dq);
	release(x, &x->q_pipe, &x->q_at);
	if (!last)
		issue_scores(x);
	pass_turn(x);
	if (dq) {
		cptx_mma_wait(k, &x->dq, last ? 0 : 1);
		finish_dq(x);
	}
	if (sums)
		cptx_mov(k, sums_of(x), .into = x->to);
	if (last)
		return;
	next_block(x);
	cptx_mma_wait(k, &x->kq, 0); /* ptxas orders all products one by one where one is on its way around a loop */
}

/* A step's products where another warpgroup makes dQ. */
static void multiply_apart(keys90 *x, bool last)
{
	cptx_kernel *k = x->k;
	const cptx_val q = cptx_operand_at(k, &x->q, x->q_at.stage), ds = differentiate(x);

	cptx_mma_tile(k, &x->grad, &x->sum_dk, ds, q);
	if (!last) {
		cptx_pipe_next(k, &x->q_pipe, &x->q_at);
		issue_scores(x);
	}
	cptx_mma_wait(k, &x->grad, last ? 0 : 1);
	release(x, &x->do_pipe, &x->do_at);
	release(x, &x->q_pipe, &x->q_done);
	if (last)
		return;
	next_block(x);
	cptx_mma_wait(k, &x->kq, 0);
}

static void multiply_blocks_apart(keys90 *x)
{
	cptx_kernel *k = x->k;
	const cptx_val i = cptx_var(k, CPTX_U32, 1);

	issue_scores(x);
	cptx_mma_wait(k, &x->kq, 0);
	CPTX_FOR(k, i, x->blocks, 1)
		multiply_apart(x, false);
	multiply_apart(x, true);
}

/* Warpgroup 0 has the first turn. */
static void begin_turns(keys90 *x)
{
	CPTX_IF(x->k, cptx_setp(x->k, x->group, BACKWARD_GROUPS - 1, .cmp = CPTX_EQ))
		pass_turn(x);
}

/* The last arrival for it is taken here. */
static void end_turns(keys90 *x)
{
	CPTX_IF(x->k, cptx_setp(x->k, x->group, 0, .cmp = CPTX_EQ))
		take_turn(x);
}

static void multiply_blocks(keys90 *x)
{
	cptx_kernel *k = x->k;
	const cptx_val i = cptx_var(k, CPTX_U32, 2), one = cptx_setp(k, x->blocks, 1, .cmp = CPTX_EQ);

	begin_turns(x);
	issue_scores(x);
	cptx_mma_wait(k, &x->kq, 0);
	CPTX_IF(k, one)
		multiply(x, true, true);
	CPTX_ELSE(k) {
		multiply(x, true, false);
		CPTX_FOR(k, i, x->blocks, 1)
			multiply(x, false, false);
		multiply(x, false, true);
	}
	end_turns(x);
	if (x->o->deterministic)
		return;
	issue_dq(x);
	cptx_mma_wait(k, &x->dq, 0);
	finish_dq(x);
}

static void work(keys90 *x)
{
	cptx_kernel *k = x->k;
	const backward_in *in = &x->in;

	begin_group(x);
	cptx_pipe_wait_full(k, &x->kv_pipe, &x->kv_at);
	begin_dp(x);
	CPTX_IF(k, cptx_setp(k, x->blocks, 0, .cmp = CPTX_GT)) {
		if (x->s->dq_apart)
			multiply_blocks_apart(x);
		else
			multiply_blocks(x);
	}
	CPTX_ACC_EACH(&x->sum_dk, e)
	cptx_mul(k, e.value, in->scale, .into = e.value);
	backward_store(k, in, &x->t, &x->sum_dk, in->dk, in->dk_batch, in->dk_head, in->dk_row);
	backward_store(k, in, &x->t, &x->sum_dv, in->dv, in->dv_batch, in->dv_head, in->dv_row);
	if (x->o->deterministic || x->s->dq_apart)
		return;
	CPTX_IF(k, x->releases)
		cptx_cp_async_bulk_wait_group(k, 0);
}

/* ---- the warpgroup that makes dQ of all keys, with dq_apart ---- */

static void sum_queries(keys90 *x)
{
	cptx_kernel *k = x->k;
	const cptx_val i = cptx_var(k, CPTX_U32, 0);

	x->group = (cptx_val){ 0 };
	x->thread = cptx_and(k, x->roles.tid, BACKWARD_GROUP_THREADS - 1);
	x->releases = cptx_setp(k, x->thread, 0, .cmp = CPTX_EQ);
	x->kv_at = cptx_pipe_consumer(k, &x->kv_pipe), x->ds_at = cptx_pipe_consumer(k, &x->ds_pipe);
	begin_blocks(x);
	backward_dq_product(k, &x->in, x->group, x->thread, &x->dq, &x->dq_part);
	x->part = cptx_var(k, CPTX_U32, cptx_mad(k, x->thread, 16, x->parts, .mode = CPTX_LO));
	const cptx_val both = cptx_mad(k, x->part, 2, x->s->part_bytes, .mode = CPTX_LO);
	cptx_pipe_wait_full(k, &x->kv_pipe, &x->kv_at);
	CPTX_FOR(k, i, x->blocks, 1) {
		const cptx_val to = sums_of(x);
		issue_dq(x);
		cptx_mma_wait(k, &x->dq, 0);
		release(x, &x->ds_pipe, &x->ds_at);
		add_part(x, to);
		cptx_sub(k, both, x->part, .into = x->part); /* to the other part */
		next_block(x);
	}
	CPTX_IF(k, x->releases)
		cptx_cp_async_bulk_wait_group(k, 0);
}

cptx_kernel *backward_build_keys90(cptx_module *m, const cptx_attention_backward_opt *o)
{
	keys90 x = { .o = o };
	const backward_shape s = backward_shape_of(o);

	x.k = cptx_kernel_begin(m, o->name, .block = { s.threads }, .min_ctas = 1);
	backward_declare(x.k, &x.in, o);
	x.s = &x.in.s;
	setup(&x);
	CPTX_ROLE(x.k, &x.roles, .warps = 4, .regs = 24, .elect = true, .exits = true)
		produce(&x);
	CPTX_ROLE(x.k, &x.roles, .warps = 4 * BACKWARD_GROUPS, .regs = s.regs)
		work(&x);
	if (s.dq_apart)
		CPTX_ROLE(x.k, &x.roles, .warps = 4, .regs = 72)
			sum_queries(&x);
	return x.k;
}
