/* SPDX-License-Identifier: MIT */
/*
 * The kernel that makes dQ in a fixed order, with .deterministic: a CTA has a block of queries, a warp 16 of them, and goes
 * over the blocks of keys.  S = Q * K^T and dP = dO * V^T have queries along M, so dS is in registers what dQ += dS * K
 * takes as its A.
 */
#include "attention/backward/backward.h"

#include <cptx/cptx.h>

enum { WARPS = BACKWARD_DQ_ROWS / 16, THREADS = WARPS * CPTX_WARP };

typedef struct queries {
	cptx_kernel *k;
	const cptx_attention_backward_opt *o;
	backward_in in;
	cptx_tile tile, tile_t; /* of queries and of keys: both have as many rows; of keys along K */
	cptx_val tid, warp, lane;
	cptx_val batch, head, kv_head, query0; /* .u32, of the CTA */
	cptx_val first, end;                   /* .u32: keys of blocks, from one on to behind the last */
	cptx_operand q, d_o;
	backward_source key, v;
	cptx_val k_head, v_head; /* .u64 */
	backward_cursor next;    /* of the block to copy next */
	cptx_pipe pipe;
	cptx_pipe_at to, at;
	cptx_tiled_mma qk, dq;
	cptx_acc scores, dp, sum;
	cptx_val lse, delta; /* row vectors */
} queries;

static void find_keys(queries *x)
{
	cptx_kernel *k = x->k;
	const backward_in *in = &x->in;
	const cptx_val keys = cptx_as(in->keys, CPTX_S32);
	cptx_val place, first, end;

	x->first = cptx_imm(0), x->end = in->keys;
	if (!x->o->causal && !x->o->window)
		return;
	place = cptx_add(k, cptx_as(x->query0, CPTX_S32), in->shift);
	end = cptx_add(k, place, BACKWARD_DQ_ROWS);
	if (x->o->window)
		end = cptx_add(k, end, in->right);
	x->end = cptx_as(cptx_max(k, cptx_min(k, end, keys), 0), CPTX_U32);
	if (!x->o->window)
		return;
	first = cptx_max(k, cptx_sub(k, place, in->left), 0);
	x->first = cptx_as(cptx_and(k, first, -(int64_t)BACKWARD_DQ_KEYS, .type = CPTX_B32), CPTX_U32);
}

static void locate(queries *x)
{
	cptx_kernel *k = x->k;
	const cptx_val id = cptx_ctaid_x(k),
				   tiles = cptx_div(k, cptx_add(k, x->in.queries, BACKWARD_DQ_ROWS - 1), BACKWARD_DQ_ROWS);

	x->tid = cptx_tid_x(k);
	x->warp = cptx_shr(k, x->tid, 5), x->lane = cptx_and(k, x->tid, CPTX_WARP - 1);
	const cptx_val plane = cptx_div(k, id, tiles);
	x->query0 = cptx_mul(k, cptx_sub(k, id, cptx_mul(k, plane, tiles, .mode = CPTX_LO)), BACKWARD_DQ_ROWS, .mode = CPTX_LO);
	x->batch = cptx_div(k, plane, x->in.heads);
	x->head = cptx_sub(k, plane, cptx_mul(k, x->batch, x->in.heads, .mode = CPTX_LO));
	x->kv_head = cptx_div(k, x->head, x->in.group);
	backward_find_sequence(k, &x->in, x->batch);
	if (x->o->varlen)
		cptx_exit(k, .when = cptx_setp(k, x->query0, x->in.queries, .cmp = CPTX_GE));
	find_keys(x);
}

static backward_scores scores_of(queries *x, cptx_val key)
{
	return (backward_scores){ .s = &x->scores, .batch = x->batch, .head = x->head, .query = x->query0, .key = key };
}

static void load(queries *x)
{
	cptx_kernel *k = x->k;

	CPTX_IF(k, backward_cursor_is_there(k, &x->in, &x->next)) {
		backward_copy(k, &x->key, x->to.stage, x->k_head, x->next.block.key, x->in.keys);
		backward_copy(k, &x->v, x->to.stage, x->v_head, x->next.block.key, x->in.keys);
		backward_cursor_advance(k, &x->next);
		backward_cursor_skip(k, &x->in, &x->next);
	}
	cptx_pipe_filled(k, &x->pipe, &x->to);
	cptx_pipe_next(k, &x->pipe, &x->to);
}

/* Q or dO of the CTA, which stay. */
static cptx_operand load_queries(queries *x, cptx_val head, cptx_val row, const char *name)
{
	const backward_source s = backward_source_new(x->k, &x->in, &x->tile, 1, head, row, THREADS, name);

	backward_copy(x->k, &s, cptx_imm(0), head, x->query0, x->in.queries);
	return s.op;
}

static void begin_copies(queries *x)
{
	cptx_kernel *k = x->k;
	const backward_in *in = &x->in;

	x->next = (backward_cursor){ .block = scores_of(x, cptx_var(k, CPTX_U32, x->first)),
		                         .queries = BACKWARD_DQ_ROWS,
		                         .keys = BACKWARD_DQ_KEYS,
		                         .end = x->end };
	x->k_head = backward_head(k, in->k, x->batch, in->k_batch, x->kv_head, in->k_head);
	x->v_head = backward_head(k, in->v, x->batch, in->v_batch, x->kv_head, in->v_head);
	x->q = load_queries(x, backward_head(k, in->q, x->batch, in->q_batch, x->head, in->q_head), in->q_row, "queries_tile");
	x->d_o = load_queries(x, backward_head(k, in->d_o, x->batch, in->do_batch, x->head, in->do_head), in->do_row, "do_tile");
	x->key = backward_source_new(k, in, &x->tile, BACKWARD_DQ_STAGES, x->k_head, in->k_row, THREADS, "keys_ring");
	x->v = backward_source_new(k, in, &x->tile, BACKWARD_DQ_STAGES, x->v_head, in->v_row, THREADS, "values_ring");
	cptx_pipe_new(k, &x->pipe, .stages = BACKWARD_DQ_STAGES, .by = CPTX_PIPE_CP_ASYNC_GROUPS);
	x->to = cptx_pipe_producer(k, &x->pipe), x->at = cptx_pipe_consumer(k, &x->pipe);
	backward_cursor_skip(k, in, &x->next);
	for (uint32_t i = 0; i + 1 < BACKWARD_DQ_STAGES; i++)
		load(x);
}

static void begin_products(queries *x)
{
	cptx_kernel *k = x->k;
	const enum cptx_type in = x->o->in;
	const cptx_val plane = backward_plane(k, &x->in, x->batch, x->head);
	uint32_t found = 0;

	cptx_tiled_mma_new(k, &x->qk, .a = in, .b = in, .m = 16, .n = BACKWARD_DQ_KEYS, .units_m = WARPS, .a_tile = x->tile,
	                   .b_tile = x->tile, .unit = x->warp, .thread = x->lane);
	cptx_tiled_mma_new(k, &x->dq, .a = in, .b = in, .m = 16, .n = x->tile.cols, .units_m = WARPS, .a_from = CPTX_A_REGS,
	                   .b_tile = x->tile_t, .unit = x->warp, .thread = x->lane);
	cptx_acc_new(k, &x->qk, &x->scores);
	cptx_acc_new(k, &x->qk, &x->dp);
	cptx_acc_new(k, &x->dq, &x->sum);
	cptx_acc_clear(k, &x->sum);
	x->lse = cptx_regs(k, CPTX_F32, x->scores.rows), x->delta = cptx_regs(k, CPTX_F32, x->scores.rows);
	CPTX_ACC_EACH(&x->scores, e)
	{
		if (e.at_row != found)
			continue;
		const cptx_val at = backward_stats(k, &x->in, plane, cptx_acc_row(k, &x->scores, &e, x->query0));
		const cptx_val pair = cptx_ld(k, at, .space = CPTX_GLOBAL, .type = CPTX_F32, .vec = CPTX_V2);
		cptx_mov(k, cptx_elem(pair, 0), .into = cptx_elem(x->lse, found));
		cptx_mov(k, cptx_elem(pair, 1), .into = cptx_elem(x->delta, found));
		found++;
	}
}

static void mask(queries *x, cptx_val key)
{
	cptx_kernel *k = x->k;
	const cptx_val query = cptx_as(x->query0, CPTX_S32);
	const cptx_val row = cptx_as(x->scores.row, CPTX_S32), col = cptx_as(x->scores.col, CPTX_S32);
	backward_place p = { .by_keys = false };

	CPTX_IF(k, backward_is_masked(k, &x->in, query, BACKWARD_DQ_ROWS, key, BACKWARD_DQ_KEYS)) {
		const cptx_val mine = cptx_add(k, key, col);
		p.keys = cptx_sub(k, cptx_as(x->in.keys, CPTX_S32), mine);
		if (x->o->causal || x->o->window)
			p.apart = cptx_sub(k, cptx_add(k, cptx_add(k, query, x->in.shift), row), mine);
		backward_mask(k, &x->in, &x->scores, &p);
	}
}

static void multiply(queries *x, cptx_val key)
{
	cptx_kernel *k = x->k;
	const backward_scores b = scores_of(x, key);

	cptx_pipe_wait_full(k, &x->pipe, &x->at);
	load(x);
	const cptx_val k_at = cptx_operand_at(k, &x->key.op, x->at.stage), v_at = cptx_operand_at(k, &x->v.op, x->at.stage);
	cptx_mma_tile(k, &x->qk, &x->scores, cptx_operand_at(k, &x->q, 0), k_at, .fresh = true);
	cptx_mma_tile(k, &x->qk, &x->dp, cptx_operand_at(k, &x->d_o, 0), v_at, .fresh = true);
	backward_begin_scores(k, &x->in, &b);
	mask(x, cptx_as(key, CPTX_S32));
	CPTX_ACC_EACH(&x->scores, e)
	{
		const cptx_val dp = cptx_acc_at(&x->dp, e.i).value, p = cptx_reg(k, CPTX_F32);
		backward_probability(k, &x->in, &b, &e, cptx_elem(x->lse, e.at_row), p);
		cptx_sub(k, dp, cptx_elem(x->delta, e.at_row), .into = dp);
		backward_derive(k, &x->in, &b, &e, dp, p);
	}
	cptx_mma_tile(k, &x->dq, &x->sum, cptx_acc_as_a(k, &x->dp, &x->dq), k_at);
	cptx_pipe_next(k, &x->pipe, &x->at);
}

static void store(queries *x)
{
	cptx_kernel *k = x->k;
	const backward_in *in = &x->in;
	const cptx_val head = backward_head(k, in->dq, x->batch, in->dq_batch, x->head, in->dq_head);

	CPTX_ACC_EACH(&x->sum, e)
	cptx_mul(k, e.value, in->scale, .into = e.value);
	const cptx_val address = cptx_mad_wide(k, x->query0, in->dq_row, head), pitch = cptx_shr(k, in->dq_row, 1);
	const cptx_val rows = cptx_sub(k, in->queries, x->query0);
	const cptx_val cols = x->o->dim == x->tile.cols ? (cptx_val){ 0 } : cptx_imm(x->o->dim);
	cptx_acc_store(
		k, &x->sum,
		CPTX_OPT(cptx_acc_matrix, .address = address, .type = x->o->in, .pitch = pitch, .rows = rows, .cols = cols));
}

void backward_build_queries(cptx_module *m, const cptx_attention_backward_opt *o, const char *name)
{
	queries x = { .o = o };
	cptx_kernel *k = x.k = cptx_kernel_begin(m, name, .block = { THREADS }, .min_ctas = 1);

	backward_declare(k, &x.in, o);
	x.tile = x.tile_t = x.in.s.q;
	x.tile.rows = BACKWARD_DQ_ROWS;
	x.tile_t = x.in.s.q_t;
	x.tile_t.cols = BACKWARD_DQ_KEYS;
	locate(&x);
	begin_copies(&x);
	begin_products(&x);
	const cptx_val key = cptx_var(k, CPTX_U32, x.first);
	CPTX_FOR(k, key, x.end, BACKWARD_DQ_KEYS) {
		const backward_scores b = scores_of(&x, key);
		if (o->blocks)
			cptx_continue_when(
				k, cptx_not(k, backward_counts(k, &x.in, &b, BACKWARD_DQ_ROWS, BACKWARD_DQ_KEYS), .type = CPTX_PRED));
		multiply(&x, key);
	}
	store(&x);
}
