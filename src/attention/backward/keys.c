/* SPDX-License-Identifier: MIT */
/*
 * The kernel that makes dK and dV, and without .deterministic sums of dQ.  A CTA has a block of keys of one head of K and V,
 * a warp 16 keys of it, and goes over the blocks of queries of all heads of Q that share it.  Scores are computed
 * transposed, S^T = K * Q^T, with keys along M, so that P^T and dS^T are in registers what dV += P^T * dO and dK += dS^T * Q
 * take as their A. For dQ, which sums over the keys of all warps, dS^T goes to shared memory, from where it is read as dS.
 */
#include "attention/backward/backward.h"

#include <cptx/cptx.h>

typedef struct keys {
	cptx_kernel *k;
	const cptx_attention_backward_opt *o;
	backward_in in;
	const backward_shape *s;
	cptx_val tid, warp, lane;
	backward_tile t;

	backward_source q, d_o;
	cptx_operand key, v;
	cptx_pipe pipe;
	cptx_pipe_at to, at;
	cptx_val stats, ds;   /* .u32, shared memory */
	backward_cursor next; /* of the block to copy next */

	cptx_tiled_mma kq, grad, dq; /* S^T and dP^T; dV and dK; dQ */
	cptx_acc scores, probs, dp, sum_dv, sum_dk, part;
} keys;

/* ---- copies ---- */

/* LSE and delta of the block's queries: rows of the workspace are there for all of a block. */
static void copy_stats(keys *x)
{
	cptx_kernel *k = x->k;
	const cptx_val plane = backward_plane(k, &x->in, x->t.batch, x->next.block.head);
	const cptx_val at = backward_stats(k, &x->in, plane, x->next.block.query);
	const cptx_val from = cptx_add(k, at, cptx_mul_wide(k, x->tid, ATTENTION_CHUNK));
	const cptx_val stage = cptx_mad(k, x->to.stage, x->s->stats_bytes, x->stats, .mode = CPTX_LO);

	cptx_cp_async(k, cptx_mad(k, x->tid, ATTENTION_CHUNK, stage, .mode = CPTX_LO), from, ATTENTION_CHUNK, .cop = CPTX_CG,
	              .when = cptx_setp(k, x->tid, x->s->stats_bytes / ATTENTION_CHUNK, .cmp = CPTX_LT));
}

static backward_scores scores_of(keys *x, cptx_val head, cptx_val query)
{
	return (backward_scores){
		.s = &x->scores, .by_keys = true, .batch = x->t.batch, .head = head, .query = query, .key = x->t.key0
	};
}

/* Starts the copies of the next block, where there is one. */
static void load(keys *x)
{
	cptx_kernel *k = x->k;
	const backward_in *in = &x->in;

	CPTX_IF(k, backward_cursor_is_there(k, in, &x->next)) {
		const cptx_val q = backward_head(k, in->q, x->t.batch, in->q_batch, x->next.block.head, in->q_head);
		const cptx_val d_o = backward_head(k, in->d_o, x->t.batch, in->do_batch, x->next.block.head, in->do_head);
		backward_copy(k, &x->q, x->to.stage, q, x->next.block.query, in->queries);
		backward_copy(k, &x->d_o, x->to.stage, d_o, x->next.block.query, in->queries);
		copy_stats(x);
		backward_cursor_advance(k, &x->next);
		backward_cursor_skip(k, in, &x->next);
	}
	cptx_pipe_filled(k, &x->pipe, &x->to);
	cptx_pipe_next(k, &x->pipe, &x->to);
}

/* K and V of the CTA, which stay; their copies are in the first group. */
static cptx_operand load_keys(keys *x, cptx_val head, cptx_val row, const char *name)
{
	const backward_source s = backward_source_new(x->k, &x->in, &x->s->k, 1, head, row, x->s->threads, name);

	backward_copy(x->k, &s, cptx_imm(0), head, x->t.key0, x->in.keys);
	return s.op;
}

static void begin_copies(keys *x)
{
	cptx_kernel *k = x->k;
	const backward_in *in = &x->in;
	const uint32_t stages = x->o->stages;

	x->next = backward_cursor_queries(k, in, &x->t, &x->scores);
	x->key = load_keys(x, backward_head(k, in->k, x->t.batch, in->k_batch, x->t.kv_head, in->k_head), in->k_row, "keys");
	x->v = load_keys(x, backward_head(k, in->v, x->t.batch, in->v_batch, x->t.kv_head, in->v_head), in->v_row, "values");
	x->q = backward_source_new(k, in, &x->s->q, stages, in->q, in->q_row, x->s->threads, "queries_ring");
	x->d_o = backward_source_new(k, in, &x->s->q, stages, in->d_o, in->do_row, x->s->threads, "do_ring");
	if (!x->o->deterministic)
		x->ds = cptx_mov(k, cptx_shared_dyn(k, cptx_tile_bytes(&x->s->p), 1024, "ds"), .type = CPTX_U32);
	x->stats = cptx_mov(k, cptx_shared_dyn(k, stages * x->s->stats_bytes, 16, "stats_ring"), .type = CPTX_U32);
	cptx_pipe_new(k, &x->pipe, .stages = stages, .by = CPTX_PIPE_CP_ASYNC_GROUPS);
	x->to = cptx_pipe_producer(k, &x->pipe), x->at = cptx_pipe_consumer(k, &x->pipe);
	/* where there are no queries nothing is loaded */
	cptx_mov(k, cptx_add(k, x->t.head0, in->group), .into = x->next.block.head,
	         .when = cptx_setp(k, x->t.first, x->t.end, .cmp = CPTX_GE));
	backward_cursor_skip(k, in, &x->next);
	for (uint32_t i = 0; i + 1 < stages; i++)
		load(x);
}

/* ---- products ---- */

static void begin_products(keys *x)
{
	cptx_kernel *k = x->k;
	const enum cptx_type in = x->o->in;
	const backward_shape *s = x->s;

	cptx_tiled_mma_new(k, &x->kq, .a = in, .b = in, .m = 16, .n = x->o->bq, .units_m = s->warps, .a_tile = s->k,
	                   .b_tile = s->q, .unit = x->warp, .thread = x->lane);
	cptx_tiled_mma_new(k, &x->grad, .a = in, .b = in, .m = 16, .n = s->dim, .units_m = s->warps, .a_from = CPTX_A_REGS,
	                   .b_tile = s->q_t, .unit = x->warp, .thread = x->lane);
	cptx_acc_new(k, &x->kq, &x->scores);
	x->probs = backward_probabilities_of(k, &x->in, &x->kq, &x->scores);
	cptx_acc_new(k, &x->kq, &x->dp);
	cptx_acc_new(k, &x->grad, &x->sum_dv);
	cptx_acc_new(k, &x->grad, &x->sum_dk);
	cptx_acc_clear(k, &x->sum_dv);
	cptx_acc_clear(k, &x->sum_dk);
	if (x->o->deterministic)
		return;
	const cptx_tile ds = { x->o->bq, x->o->bk, { 16, true, false }, s->p.swizzle, 0, 0 };
	const uint32_t along = x->o->bq / 16;
	cptx_tiled_mma_new(k, &x->dq, .a = in, .b = in, .m = 16, .n = s->dim / (s->warps / along), .units_m = along,
	                   .units_n = s->warps / along, .a_tile = ds, .b_tile = s->k_t, .unit = x->warp, .thread = x->lane);
	cptx_acc_new(k, &x->dq, &x->part);
}

/* Adds the block's part of dQ to the sums of the workspace. */
static void add_dq(keys *x, cptx_val plane, cptx_val query)
{
	cptx_kernel *k = x->k;
	const uint32_t row_bytes = x->s->dim * 4;
	cptx_val at;

	cptx_acc_put_tile(k, &x->dp, x->o->in, &x->s->p, x->ds);
	cptx_bar_sync(k, 0);
	cptx_mma_tile(k, &x->dq, &x->part, x->ds, cptx_operand_at(k, &x->key, 0), .fresh = true);
	const cptx_val row = backward_work_row(k, &x->in, plane, cptx_add(k, query, x->part.row));
	at = cptx_mad(k, row, row_bytes, cptx_add(k, x->in.sums, cptx_mul_wide(k, x->part.col, 4)), .mode = CPTX_LO);
	for (uint32_t i = 0; i < x->part.count; i += 2) {
		const cptx_acc_elem e = cptx_acc_at(&x->part, i);
		const cptx_val to = cptx_offset(at, e.row * row_bytes + e.col * 4);
		if (x->o->sm90)
			cptx_red(k, to, cptx_slice(x->part.regs, i, 2), .space = CPTX_GLOBAL, .op = CPTX_ADD, .vec = CPTX_V2,
			         .type = CPTX_F32);
		for (uint32_t j = 0; j < 2 && !x->o->sm90; j++)
			cptx_red(k, cptx_offset(to, 4 * j), cptx_elem(x->part.regs, i + j), .space = CPTX_GLOBAL, .op = CPTX_ADD,
			         .type = CPTX_F32);
	}
}

static void multiply(keys *x, cptx_val head, cptx_val plane, cptx_val query)
{
	cptx_kernel *k = x->k;
	const backward_scores b = scores_of(x, head, query);

	cptx_pipe_wait_full(k, &x->pipe, &x->at);
	load(x);
	const cptx_val q = cptx_operand_at(k, &x->q.op, x->at.stage), d_o = cptx_operand_at(k, &x->d_o.op, x->at.stage);
	cptx_mma_tile(k, &x->kq, &x->scores, cptx_operand_at(k, &x->key, 0), q, .fresh = true);
	const cptx_val stats = cptx_mad(k, x->at.stage, x->s->stats_bytes, x->stats, .mode = CPTX_LO);
	const cptx_val mine = cptx_mad(k, x->scores.col, 8, stats, .mode = CPTX_LO);
	backward_probabilities(k, &x->in, &b, &x->probs, mine);
	const cptx_val p = cptx_acc_as_a(k, &x->probs, &x->grad);
	cptx_mma_tile(k, &x->grad, &x->sum_dv, p, d_o);
	cptx_mma_tile(k, &x->kq, &x->dp, cptx_operand_at(k, &x->v, 0), d_o, .fresh = true);
	backward_differentiate(k, &x->in, &b, &x->dp, mine);
	const cptx_val ds = cptx_acc_as_a(k, &x->dp, &x->grad);
	cptx_mma_tile(k, &x->grad, &x->sum_dk, ds, q);
	if (!x->o->deterministic)
		add_dq(x, plane, query);
	cptx_pipe_next(k, &x->pipe, &x->at);
}

cptx_kernel *backward_build_keys(cptx_module *m, const cptx_attention_backward_opt *o)
{
	keys x = { .o = o };
	cptx_kernel *k = x.k = cptx_kernel_begin(m, o->name, .block = { o->bk / 16 * CPTX_WARP }, .min_ctas = 1);

	backward_declare(k, &x.in, o);
	x.s = &x.in.s;
	x.tid = cptx_tid_x(k);
	x.warp = cptx_shr(k, x.tid, 5), x.lane = cptx_and(k, x.tid, CPTX_WARP - 1);
	x.t = backward_locate(k, &x.in);
	begin_copies(&x);
	begin_products(&x);
	const cptx_val head = cptx_var(k, CPTX_U32, 0), query = cptx_var(k, CPTX_U32, 0);
	CPTX_FOR(k, head, x.in.group, 1) {
		const cptx_val of_q = cptx_add(k, head, x.t.head0), plane = backward_plane(k, &x.in, x.t.batch, of_q);
		cptx_mov(k, x.t.first, .into = query);
		CPTX_FOR(k, query, x.t.end, o->bq) {
			const backward_scores b = scores_of(&x, of_q, query);
			if (o->blocks)
				cptx_continue_when(k, cptx_not(k, backward_counts(k, &x.in, &b, o->bq, o->bk), .type = CPTX_PRED));
			multiply(&x, of_q, plane, query);
		}
	}
	CPTX_ACC_EACH(&x.sum_dk, e)
	cptx_mul(k, e.value, x.in.scale, .into = e.value);
	backward_store(k, &x.in, &x.t, &x.sum_dk, x.in.dk, x.in.dk_batch, x.in.dk_head, x.in.dk_row);
	backward_store(k, &x.in, &x.t, &x.sum_dv, x.in.dv, x.in.dv_batch, x.in.dv_head, x.in.dv_row);
	return k;
}
