/* SPDX-License-Identifier: MIT */
/*
 * The kernel of multi-head latent attention, where V is the first columns of K: TMA, wgmma, sm_90a.  A CTA has a chunk of
 * the keys of one sequence and 64 packed rows.  A producer thread brings blocks of 64 keys; each block serves both products,
 * as K with keys along N, and as V with keys along K.
 *
 * 64 rows of O of 512 columns are more than the registers of a warpgroup: two have half of the columns each.  Both compute
 * all scores, so that neither waits for the other: one multiplies while the other makes exponentials.  It costs half as much
 * again in products, which is less than what memory takes for a block while up to 64 rows share it.
 */
#include "attention/decode/decode.h"

#include <cptx/cptx.h>
#include <cptx/pipeline.h>
#include <cptx/roles.h>

enum { MEET = 1 /* a numbered barrier, of both warpgroups */, GROUP_THREADS = 128, SPAN = 128 /* bytes */ };
enum { THREADS = DECODE_MLA_GROUPS * GROUP_THREADS, CHUNKS = SPAN / ATTENTION_CHUNK };

typedef struct mla {
	cptx_kernel *k;
	const cptx_attention_decode_opt *o;
	decode_in in;
	const decode_shape *s;
	cptx_roles roles;
	decode_work w;
	cptx_val q; /* .u32, shared memory address */
	cptx_operand key;
	cptx_pipe pipe;
	cptx_pipe_at at; /* the role's */

	/* of an MMA warpgroup */
	cptx_val group, thread, tid, releases; /* tid: among the threads of both */
	cptx_tiled_mma qk, pv;
	cptx_acc sums, results;
	cptx_softmax soft;
	decode_limits limits;
} mla;

static void setup(mla *x)
{
	cptx_kernel *k = x->k;
	const decode_shape *s = x->s;

	cptx_params_declare(k, &x->in.params, decode_map_params, DECODE_MAPS);
	x->q = cptx_mov(k, cptx_shared_dyn(k, cptx_tile_bytes(&s->q), 1024, "queries_tile"), .type = CPTX_U32);
	cptx_operand_new(k, &x->key, .type = x->o->in, .tile = s->k, .stages = x->o->stages,
	                 .map = cptx_params_get(k, &x->in.params, "k_map"), .batched = true, .name = "keys_ring",
	                 .batch_dims = 2);
	cptx_roles_begin(k, &x->roles, .threads = s->threads);
	cptx_pipe_new(k, &x->pipe, .stages = x->o->stages, .consumers = DECODE_MLA_GROUPS);
	cptx_pipe_init(k, &x->pipe, cptx_setp(k, x->roles.tid, 0, .cmp = CPTX_EQ));
}

/* ---- the producer: one thread ---- */

static void produce(mla *x)
{
	cptx_kernel *k = x->k;
	const cptx_val key = cptx_var(k, CPTX_U32, x->w.first);

	x->at = cptx_pipe_producer(k, &x->pipe);
	CPTX_FOR(k, key, x->w.end, x->o->bk) {
		cptx_val row = key, batch = x->w.batch;
		if (x->o->paged) {
			const cptx_val page = cptx_div(k, key, x->in.page);
			row = cptx_sub(k, key, cptx_mul(k, page, x->in.page, .mode = CPTX_LO));
			batch = attention_entry(k, x->in.pages, cptx_mad(k, batch, x->in.page_pitch, page, .mode = CPTX_LO), 0);
		}
		cptx_pipe_wait_empty(k, &x->pipe, &x->at);
		cptx_pipe_expect(k, &x->pipe, &x->at, x->key.bytes);
		cptx_operand_load(k, &x->key, x->at.stage, cptx_as(row, CPTX_S32), 0, .barrier = cptx_pipe_full(&x->at),
		                  .z = x->w.kv_head, .z2 = batch);
		cptx_pipe_next(k, &x->pipe, &x->at);
	}
}

/* ---- the MMA warpgroups ---- */

static void meet(mla *x)
{
	cptx_fence_proxy(x->k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_sync(x->k, MEET, .b = cptx_imm(THREADS));
}

/* The tile's packed rows of Q, which lie anywhere; rows that are not there are 0. */
static void load_q(mla *x)
{
	cptx_kernel *k = x->k;
	const decode_in *in = &x->in;
	const uint32_t rows = THREADS / CHUNKS, span_bytes = x->o->rows * SPAN;
	const cptx_val chunk = cptx_and(k, x->tid, CHUNKS - 1), first = cptx_div(k, x->tid, CHUNKS);
	const cptx_val swizzled = cptx_xor(k, chunk, cptx_and(k, first, CHUNKS - 1)); /* rows are a multiple of 8 apart */
	const cptx_val to =
		cptx_mad(k, first, SPAN, cptx_mad(k, swizzled, ATTENTION_CHUNK, x->q, .mode = CPTX_LO), .mode = CPTX_LO);

	for (uint32_t row = 0; row < x->o->rows; row += rows) {
		const cptx_val r = cptx_add(k, cptx_add(k, first, row), x->w.row0),
					   there = cptx_setp(k, r, in->rows, .cmp = CPTX_LT);
		const cptx_val bytes = cptx_selp(k, ATTENTION_CHUNK, 0, there, .type = CPTX_U32);
		const cptx_val safe = cptx_selp(k, r, 0, there, .type = CPTX_U32);
		const cptx_val at = decode_row_of(k, in, x->w.batch, x->w.kv_head, safe, in->q, in->q_batch, in->q_head, in->q_row);
		const cptx_val from = cptx_add(k, at, cptx_mul_wide(k, chunk, ATTENTION_CHUNK));
		for (uint32_t span = 0; span < x->s->dim * 2 / SPAN; span++)
			cptx_cp_async(k, cptx_offset(to, span * span_bytes + row * SPAN), cptx_offset(from, span * SPAN),
			              ATTENTION_CHUNK, .cop = CPTX_CG, .src_size = bytes);
	}
	cptx_cp_async_wait_all(k);
	meet(x);
}

static void begin_group(mla *x)
{
	cptx_kernel *k = x->k;
	const enum cptx_type in = x->o->in;
	const decode_shape *s = x->s;

	x->group = cptx_shr(k, cptx_role_warp(k, &x->roles), 2);
	x->thread = cptx_and(k, x->roles.tid, GROUP_THREADS - 1);
	x->tid = cptx_mad(k, x->group, GROUP_THREADS, x->thread, .mode = CPTX_LO);
	x->releases = cptx_setp(k, x->thread, 0, .cmp = CPTX_EQ);
	x->at = cptx_pipe_consumer(k, &x->pipe);
	load_q(x);
	cptx_tiled_mma_new(k, &x->qk, .by = CPTX_BY_WGMMA, .a = in, .b = in, .m = x->o->rows, .n = x->o->bk, .a_tile = s->q,
	                   .b_tile = s->k, .thread = x->thread);
	cptx_tiled_mma_new(k, &x->pv, .by = CPTX_BY_WGMMA, .a = in, .b = in, .m = x->o->rows, .n = s->dim_v / DECODE_MLA_GROUPS,
	                   .units_n = DECODE_MLA_GROUPS, .a_from = CPTX_A_REGS, .b_tile = s->v, .unit = x->group,
	                   .thread = x->thread);
	cptx_acc_new(k, &x->qk, &x->sums);
	cptx_acc_new(k, &x->pv, &x->results);
	cptx_acc_clear(k, &x->results);
	cptx_softmax_new(k, &x->soft, x->sums.rows, x->in.scale);
	x->limits = decode_limits_of(k, &x->in, &x->w, &x->sums);
}

/* Rows of the block behind the sequence's last key become 0: memory may have anything there, and 0 * infinity is not 0. */
static void clear_tail(mla *x, cptx_val at, cptx_val key)
{
	cptx_kernel *k = x->k;
	const uint32_t span_bytes = x->o->bk * SPAN, all = cptx_tile_bytes(&x->s->k);

	CPTX_IF(k, cptx_setp(k, cptx_add(k, key, x->o->bk), x->w.range.length, .cmp = CPTX_GT)) {
		const cptx_val first = cptx_mul(k, cptx_sub(k, x->w.range.length, key), SPAN, .mode = CPTX_LO);
		const cptx_val i = cptx_var(k, CPTX_U32, cptx_mul(k, x->tid, ATTENTION_CHUNK, .mode = CPTX_LO));
		const cptx_val zero = cptx_regs(k, CPTX_B32, 4);
		for (uint32_t j = 0; j < 4; j++)
			cptx_mov(k, 0, .into = cptx_elem(zero, j));
		CPTX_FOR(k, i, all, THREADS * ATTENTION_CHUNK)
			cptx_st(k, cptx_add(k, at, i), zero, .space = CPTX_SHARED, .type = CPTX_B32, .vec = CPTX_V4,
			        .when = cptx_setp(k, cptx_and(k, i, span_bytes - 1), first, .cmp = CPTX_GE));
		meet(x);
	}
}

static void multiply(mla *x, cptx_val key)
{
	cptx_kernel *k = x->k;

	cptx_pipe_wait_full(k, &x->pipe, &x->at);
	const cptx_val at = cptx_operand_at(k, &x->key, x->at.stage);
	clear_tail(x, at, key);
	cptx_mma_tile(k, &x->qk, &x->sums, x->q, at, .fresh = true);
	cptx_mma_wait(k, &x->qk, 0);
	decode_scores_of(k, &x->in, &x->limits, &x->sums, cptx_as(key, CPTX_S32));
	cptx_acc_scale_rows(k, &x->results, cptx_softmax_step(k, &x->soft, &x->sums));
	const cptx_val p = cptx_acc_as_a(k, &x->sums, &x->pv);
	cptx_mma_tile(k, &x->pv, &x->results, p, at);
	cptx_mma_wait(k, &x->pv, 0);
	cptx_pipe_release(k, &x->pipe, &x->at, x->releases);
	cptx_pipe_next(k, &x->pipe, &x->at);
}

/* The rows of O where they belong, or of f32 among the results of chunks. */
static cptx_val own_row(cptx_kernel *k, const void *user, const cptx_acc *o, const cptx_acc_elem *e, cptx_val *there)
{
	const mla *x = (const mla *)user;
	const decode_in *in = &x->in;
	const cptx_val r = cptx_acc_row(k, o, e, x->w.row0);

	*there = cptx_setp(k, r, in->rows, .cmp = CPTX_LT);
	return decode_row_of(k, in, x->w.batch, x->w.kv_head, r, in->o, in->o_batch, in->o_head, in->o_row);
}

static cptx_val part_row(cptx_kernel *k, const void *user, const cptx_acc *o, const cptx_acc_elem *e, cptx_val *there)
{
	const mla *x = (const mla *)user;
	const cptx_val r = cptx_acc_row(k, o, e, x->w.row0);

	*there = cptx_setp(k, r, x->in.rows, .cmp = CPTX_LT);
	return decode_part_of(k, &x->in, &x->w, x->in.o_part, r, x->s->dim_v * 4);
}

static void store_lse(mla *x, cptx_val alone)
{
	cptx_kernel *k = x->k;
	const decode_in *in = &x->in;
	const cptx_val lse = cptx_softmax_lse(k, &x->soft, &x->sums);
	uint32_t found = 0;

	CPTX_ACC_EACH(&x->sums, e)
	{
		if (e.at_row != found)
			continue;
		const cptx_val r = cptx_acc_row(k, &x->sums, &e, x->w.row0), v = cptx_elem(lse, found++);
		CPTX_IF(k, cptx_setp(k, r, in->rows, .cmp = CPTX_LT)) {
			if (x->o->lse) {
				CPTX_IF(k, alone)
					cptx_st(k, decode_lse_of(k, in, x->w.batch, x->w.kv_head, r), v, .space = CPTX_GLOBAL);
			}
			CPTX_IF(k, cptx_negated(alone))
				cptx_st(k, decode_part_of(k, in, &x->w, in->lse_part, r, 4), v, .space = CPTX_GLOBAL);
		}
	}
}

static void work(mla *x)
{
	cptx_kernel *k = x->k;

	begin_group(x);
	const cptx_val key = cptx_var(k, CPTX_U32, x->w.first), alone = cptx_setp(k, x->in.splits, 1, .cmp = CPTX_EQ);
	CPTX_FOR(k, key, x->w.end, x->o->bk)
		multiply(x, key);
	cptx_acc_scale_rows(k, &x->results, cptx_softmax_end(k, &x->soft, &x->sums));
	CPTX_IF(k, alone)
		attention_store_pairs(k, decode_out(x->o), &x->results, 0, own_row, x);
	CPTX_ELSE(k)
		attention_store_pairs(k, CPTX_F32, &x->results, 0, part_row, x);
	/* one thread of the four that share a row */
	const cptx_val leads = cptx_setp(k, cptx_or(k, x->sums.col, x->group), 0, .cmp = CPTX_EQ);
	CPTX_IF(k, leads)
		store_lse(x, alone);
}

cptx_kernel *decode_build_mla(cptx_module *m, const cptx_attention_decode_opt *o)
{
	const decode_shape s = decode_shape_of(o, NULL);
	mla x = { .o = o };
	cptx_kernel *k = x.k = cptx_kernel_begin(m, o->name, .block = { s.threads }, .min_ctas = 1);

	decode_declare(k, &x.in, o);
	x.s = &x.in.s;
	x.w = decode_locate(k, &x.in);
	cptx_exit(k, .unless = decode_has_work(k, &x.in, &x.w));
	setup(&x);
	CPTX_ROLE(k, &x.roles, .warps = 4, .regs = 24, .elect = true, .exits = true)
		produce(&x);
	CPTX_ROLE(k, &x.roles, .warps = 4 * DECODE_MLA_GROUPS, .regs = 240)
		work(&x);
	return k;
}
