/* SPDX-License-Identifier: MIT */
/*
 * Attention forward for sm_100a: TMA -> shared memory -> tcgen05 -> tensor memory -> softmax -> tensor memory -> tcgen05 ->
 * O.
 *
 * A CTA has a tile of 128 queries and goes over the blocks of keys from the last one down.  One thread copies K and V to
 * rings of stages, one starts the products, and each thread of four warps has a row: it reads S, lets it go, and writes P,
 * as the A of the second product, and O, multiplied for the new maximum, unless no maximum of its warp has grown.  The next
 * block's S is made while these warps work.  Two CTAs share a multiprocessor where their shared and tensor memory suffice,
 * so that one's products run beside the other's softmax.
 *
 * S and P have pipelines of one stage: S is full when its product is complete, and empty when all have read it; P is full
 * when all have written it and O, and empty when the second product is complete.
 */
#include "attention/sm100/forward.h"

#include "base/base.h"

#include <cptx/cptx.h>

enum { SOFTMAX_WARPS = 4, SOFTMAX_THREADS = 128 };

static void setup(forward100 *f, const cptx_roles *roles)
{
	cptx_kernel *k = f->k;
	const cptx_val first = cptx_setp(k, roles->tid, 0, .cmp = CPTX_EQ);
	const enum cptx_type in = f->o->in;

	cptx_params_prefetch(k, &f->in.params, first);
	cptx_pipe_new(k, &f->q_pipe, .stages = 1);
	cptx_pipe_new(k, &f->k_pipe, .stages = f->o->stages);
	cptx_pipe_new(k, &f->v_pipe, .stages = f->o->stages);
	cptx_pipe_new(k, &f->s_pipe, .stages = 1, .consumers = SOFTMAX_THREADS);
	cptx_pipe_new(k, &f->p_pipe, .stages = 1, .producers = SOFTMAX_THREADS);
	cptx_pipe_prepare(k, &f->q_pipe, first);
	cptx_pipe_prepare(k, &f->k_pipe, first);
	cptx_pipe_prepare(k, &f->v_pipe, first);
	cptx_pipe_prepare(k, &f->s_pipe, first);
	cptx_pipe_prepare(k, &f->p_pipe, first);
	cptx_tiled_mma_new(k, &f->qk, .by = CPTX_BY_TCGEN05, .a = in, .b = in, .m = TILE_ROWS, .n = f->o->bk, .a_tile = f->s.q,
	                   .b_tile = f->s.k, .warp = roles->warp);
	cptx_tiled_mma_new(k, &f->pv, .by = CPTX_BY_TCGEN05, .a = in, .b = in, .m = TILE_ROWS, .n = f->s.dim_v,
	                   .a_from = CPTX_A_TMEM, .b_tile = f->s.v, .warp = roles->warp);
}

/* ---- blocks ---- */

void attention_sm100_each_block(forward100 *f, void (*step)(forward100 *f, bool masked), bool mask)
{
	cptx_kernel *k = f->k;
	const attention_tile *t = &f->tile;
	const cptx_val *ends[] = { &t->edge, &t->plain, &t->blocks };

	f->key0 = cptx_var(k, CPTX_S32, t->last_key);
	f->block = cptx_var(k, CPTX_S32, 0);
	if (f->o->blocks) {
		CPTX_DO(k)
		{
			step(f, true);
			cptx_sub(k, f->key0, f->o->bk, .into = f->key0);
			cptx_add(k, f->block, 1, .into = f->block);
			cptx_continue_when(k, cptx_negated(attention_skip(k, &f->in, t, f->key0)));
		}
		return;
	}
	/* only who masks has loops of their own for blocks that need it */
	for (int i = mask ? 0 : 2; i < (mask && !f->o->window ? 2 : 3); i++)
		CPTX_FOR(k, f->block, *ends[i], 1) {
			step(f, i != 1);
			cptx_sub(k, f->key0, f->o->bk, .into = f->key0);
		}
}

/* ---- the thread that copies ---- */

static void load_kv(forward100 *f, const attention_kv *kv, const cptx_pipe *pipe, cptx_pipe_at *at)
{
	cptx_kernel *k = f->k;

	cptx_pipe_wait_empty(k, pipe, at);
	cptx_pipe_expect(k, pipe, at, kv->op.bytes);
	attention_load_kv(k, &f->in, &f->tile, kv, at->stage, f->key0, cptx_pipe_full(at));
	cptx_pipe_next(k, pipe, at);
}

static void load_step(forward100 *f, bool masked)
{
	(void)masked;
	load_kv(f, &f->key, &f->k_pipe, &f->k_at);
	load_kv(f, &f->v, &f->v_pipe, &f->v_at);
}

void attention_sm100_load_blocks(forward100 *f)
{
	f->k_at = cptx_pipe_producer(f->k, &f->k_pipe);
	f->v_at = cptx_pipe_producer(f->k, &f->v_pipe);
	attention_sm100_each_block(f, load_step, false);
}

static void produce(forward100 *f)
{
	cptx_kernel *k = f->k;

	f->q_at = cptx_pipe_producer(k, &f->q_pipe);
	cptx_pipe_expect(k, &f->q_pipe, &f->q_at, f->q.op.bytes);
	attention_load_q(k, &f->in, &f->tile, &f->q, 0, cptx_pipe_full(&f->q_at));
	attention_sm100_load_blocks(f);
}

/* ---- the thread that starts products ---- */

static void issue_qk(forward100 *f)
{
	cptx_kernel *k = f->k;

	cptx_pipe_wait_full(k, &f->k_pipe, &f->k_at);
	cptx_pipe_wait_empty(k, &f->s_pipe, &f->s_at);
	const cptx_val q = cptx_operand_at(k, &f->q.op, 0), key = cptx_operand_at(k, &f->key.op, f->k_at.stage);
	cptx_mma_tile(k, &f->qk, &f->sums, q, key, .fresh = true);
	cptx_mma_commit(k, &f->qk, cptx_pipe_full(&f->s_at));
	cptx_mma_commit(k, &f->qk, cptx_pipe_empty(&f->k_at));
	cptx_pipe_next(k, &f->s_pipe, &f->s_at);
	cptx_pipe_next(k, &f->k_pipe, &f->k_at);
}

static void issue_pv(forward100 *f, cptx_val fresh)
{
	cptx_kernel *k = f->k;

	cptx_pipe_wait_full(k, &f->v_pipe, &f->v_at);
	cptx_pipe_wait_full(k, &f->p_pipe, &f->p_at);
	cptx_mma_tile(k, &f->pv, &f->results, f->p, cptx_operand_at(k, &f->v.op, f->v_at.stage), .fresh_when = fresh);
	cptx_mma_commit(k, &f->pv, cptx_pipe_empty(&f->p_at));
	cptx_mma_commit(k, &f->pv, cptx_pipe_empty(&f->v_at));
	cptx_pipe_next(k, &f->p_pipe, &f->p_at);
	cptx_pipe_next(k, &f->v_pipe, &f->v_at);
}

/* S of each block in front of P * V of the one before. */
static void multiply_step(forward100 *f, bool masked)
{
	cptx_kernel *k = f->k;

	(void)masked;
	issue_qk(f);
	CPTX_IF(k, cptx_setp(k, f->block, 0, .cmp = CPTX_GT))
		issue_pv(f, cptx_setp(k, f->block, 1, .cmp = CPTX_EQ));
}

static void multiply(forward100 *f)
{
	cptx_kernel *k = f->k;

	f->q_at = cptx_pipe_consumer(k, &f->q_pipe);
	f->k_at = cptx_pipe_consumer(k, &f->k_pipe);
	f->v_at = cptx_pipe_consumer(k, &f->v_pipe);
	f->s_at = cptx_pipe_producer(k, &f->s_pipe);
	f->p_at = cptx_pipe_consumer(k, &f->p_pipe);
	cptx_pipe_wait_full(k, &f->q_pipe, &f->q_at);
	attention_sm100_each_block(f, multiply_step, false);
	issue_pv(f, cptx_setp(k, f->block, 1, .cmp = CPTX_EQ));
}

/* ---- the warps of the softmax ---- */

/* Multiplies O for the new maxima, where any of the warp has grown. */
static void correct(forward100 *f, cptx_val factor)
{
	cptx_kernel *k = f->k;
	const cptx_val grown = cptx_setp(k, cptx_elem(factor, 0), 1.0f, .cmp = CPTX_NE);
	const cptx_val some = cptx_and(k, cptx_vote_sync(k, grown, -1, .mode = CPTX_ANY),
	                               cptx_setp(k, f->block, 0, .cmp = CPTX_GT), .type = CPTX_PRED);
	cptx_acc part;

	CPTX_IF(k, some) {
		for (uint32_t col = 0; col < f->s.dim_v; col += CHUNK) {
			cptx_acc_load(k, &f->results, col, CHUNK, &part);
			cptx_acc_scale_rows(k, &part, factor);
			cptx_acc_save(k, &f->results, col, &part);
		}
	}
}

static void softmax_step(forward100 *f, bool masked)
{
	cptx_kernel *k = f->k;

	cptx_pipe_wait_full(k, &f->s_pipe, &f->s_at);
	cptx_acc_load(k, &f->sums, 0, f->o->bk, &f->part);
	cptx_pipe_release(k, &f->s_pipe, &f->s_at, (cptx_val){ 0 });
	cptx_pipe_next(k, &f->s_pipe, &f->s_at);
	const attention_rows rows = attention_rows_of(k, &f->in, &f->tile, &f->part);
	attention_scores_of(k, &f->in, &f->tile, &rows, &f->part, f->key0, masked);
	const cptx_val factor = cptx_softmax_step(k, &f->soft, &f->part);
	cptx_pipe_wait_empty(k, &f->p_pipe, &f->p_at);
	correct(f, factor);
	cptx_acc_put_a(k, &f->part, f->o->in, f->p, 0);
	cptx_pipe_filled(k, &f->p_pipe, &f->p_at);
	cptx_pipe_next(k, &f->p_pipe, &f->p_at);
}

/* O, chunk by chunk; of a tile in which nothing counts there is none in tensor memory, and it is zeros. */
static void store(forward100 *f)
{
	cptx_kernel *k = f->k;
	const cptx_val factor = cptx_softmax_end(k, &f->soft, &f->part);
	cptx_acc part;

	if (attention_is_fp8(f->o))
		cptx_mul(k, cptx_elem(factor, 0), f->in.v_scale, .into = cptx_elem(factor, 0));
	if (f->o->lse)
		attention_store_lse(k, &f->in, &f->tile, &f->part, cptx_softmax_lse(k, &f->soft, &f->part));
	CPTX_IF(k, cptx_setp(k, f->tile.blocks, 0, .cmp = CPTX_GT)) {
		cptx_pipe_wait_empty(k, &f->p_pipe, &f->p_at);
		for (uint32_t col = 0; col < f->s.dim_v; col += CHUNK) {
			cptx_acc_load(k, &f->results, col, CHUNK, &part);
			cptx_acc_scale_rows(k, &part, factor);
			attention_store_o(k, &f->in, &f->tile, &part);
		}
	}
	CPTX_ELSE(k) {
		part.regs = cptx_regs(k, CPTX_F32, CHUNK);
		cptx_acc_clear(k, &part);
		for (uint32_t col = 0; col < f->s.dim_v; col += CHUNK) {
			part.col = part.unit_col = cptx_imm(col);
			attention_store_o(k, &f->in, &f->tile, &part);
		}
	}
}

static void soften(forward100 *f)
{
	cptx_kernel *k = f->k;

	f->s_at = cptx_pipe_consumer(k, &f->s_pipe);
	f->p_at = cptx_pipe_producer(k, &f->p_pipe);
	attention_begin_softmax(k, &f->in, &f->tile, NULL, &f->soft);
	CPTX_IF(k, cptx_setp(k, f->tile.blocks, 0, .cmp = CPTX_GT))
		attention_sm100_each_block(f, softmax_step, true);
	store(f);
}

/* ---- a CTA ---- */

static void run_roles(forward100 *f, cptx_roles *roles)
{
	cptx_kernel *k = f->k;
	const cptx_val some = cptx_setp(k, f->tile.blocks, 0, .cmp = CPTX_GT);

	CPTX_ROLE(k, roles, .warps = SOFTMAX_WARPS)
		soften(f);
	CPTX_ROLE(k, roles, .warps = 1, .elect = true) {
		CPTX_IF(k, some)
			produce(f);
	}
	CPTX_ROLE(k, roles, .warps = 1, .elect = true) {
		CPTX_IF(k, some)
			multiply(f);
	}
}

/* The tile of the CTA. */
static void run_tile(forward100 *f, cptx_roles *roles)
{
	cptx_kernel *k = f->k;
	attention_operands ops = attention_sm100.operands(f->o);
	cptx_tmem t;

	attention_make_operands(k, &f->in, &ops, &f->q, &f->key, &f->v);
	setup(f, roles);
	CPTX_TMEM(k, &t, .columns = f->s.columns, .warp = cptx_setp(k, roles->warp, 0, .cmp = CPTX_EQ)) {
		cptx_acc_in_tmem(k, &f->qk, &f->sums, cptx_offset(t.address, f->s.s));
		cptx_acc_in_tmem(k, &f->pv, &f->results, cptx_offset(t.address, f->s.o));
		f->p = cptx_offset(t.address, f->s.p);
		run_roles(f, roles);
	}
}

cptx_kernel *attention_sm100_build(cptx_module *m, const cptx_attention_opt *o)
{
	forward100 f = { .o = o, .s = attention_sm100_shape(o) };
	cptx_kernel *k = f.k = cptx_kernel_begin(m, o->name, .block = { f.s.threads }, .min_ctas = f.s.ctas);
	void (*run)(forward100 *, cptx_roles *) = f.s.tiles > 1 ? attention_sm100_run_pair : run_tile;
	cptx_roles roles;

	attention_declare(k, &f.in, o);
	cptx_roles_begin(k, &roles, .threads = f.s.threads, .keep_regs = f.s.tiles == 1);
	/* what stands in front of this may overlap with the launch before, cptx_launch_opt.overlap */
	cptx_griddepcontrol(k, .op = CPTX_WAIT);
	cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
	CPTX_IF(k, cptx_setp(k, cptx_ctaid_x(k), f.in.slots, .cmp = CPTX_LT)) { /* a launch has a CTA at least */
		attention_locate(k, &f.in, cptx_ctaid_x(k), &f.tile);
		if (f.tile.there.kind == CPTX_VAL_NONE) {
			run(&f, &roles);
		} else {
			CPTX_IF(k, f.tile.there)
				run(&f, &roles);
		}
	}
	return k;
}
