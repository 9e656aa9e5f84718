/* SPDX-License-Identifier: MIT */
/*
 * Attention forward by mma.sync: cp.async -> shared memory -> ldmatrix -> mma.sync -> softmax in registers -> mma.sync -> O.
 *
 * A CTA has one tile of queries, and each of its warps 16 or 32 of them with all keys, so that no warp needs another's
 * scores or sums.  All threads copy K and V, block by block, to a ring of stages, from the last block down; one barrier for
 * each block tells that a stage is there and that the one before is free.  S becomes P in the registers where it is made,
 * and P is the A of the second product.  Two CTAs (or more warps) share a multiprocessor, so that the softmax of one runs
 * beside the products of another.  Blocks that need a mask and those that do not have loops of their own.
 */
#include "attention/sm80/forward.h"

#include "base/base.h"

#include <cptx/cptx.h>
#include <cptx/pipeline.h>
#include <cptx/roles.h>

#define SLACK 8 /* powers of 2 that maxima may grow by before O is multiplied: it rarely is then */

typedef struct forward80 {
	cptx_kernel *k;
	const cptx_attention_opt *o;
	shape80 s;
	attention_in in;
	attention_tile tile;
	attention_kv q;
	attention_kv key, v;
	cptx_val rows_left; /* with .page by cp.async: keys from the block on, .u32, a variable */
	cptx_pipe pipe, q_pipe;
	cptx_pipe_at to, at;        /* marks of places; place() says where */
	cptx_pipe_left left;        /* by TMA: the block of the step before */
	cptx_val first_warp, first; /* by TMA: predicates: the warp that waits for a free stage, its thread that copies */
	cptx_val first_lane;        /* and the threads that release */
	cptx_tiled_mma qk, pv;
	cptx_val lane;
	cptx_val q_regs;        /* all of the warp's Q, where it stays in registers */
	cptx_acc sums, results; /* S, O */
	cptx_softmax soft;
	attention_rows rows;
	cptx_val block, key0; /* .s32: number of the step, from the last block down; the first key of its block */
	cptx_val load_key;    /* .s32: with .blocks the first key of the block that is copied next */
} forward80;

/* ---- copies ---- */

/* Of a head: rows of `dim` elements; transposed where they lie along K of the product. */
static cptx_operand operand(forward80 *f, const cptx_operand_opt *of, const char *name, uint32_t dim, cptx_val rows,
                            cptx_val pitch, cptx_val address)
{
	const bool along_k = of->tile.elem.mn_major;
	const uint32_t padded = along_k ? of->tile.rows : of->tile.cols;
	const cptx_val all = dim < padded ? cptx_imm(dim) : (cptx_val){ 0 }; /* NONE: nothing is tested */
	cptx_operand_opt opt = *of;
	cptx_operand op;

	opt.by = CPTX_OPERAND_CP_ASYNC, opt.batched = false, opt.batch_dims = 0;
	opt.address = address, opt.pitch = pitch;
	opt.rows = along_k ? all : rows, opt.cols = along_k ? rows : all;
	opt.threads = f->s.threads, opt.whole = true, opt.name = name;
	cptx_operand_make(f->k, &op, &opt);
	return op;
}

static void make_operands(forward80 *f)
{
	cptx_kernel *k = f->k;
	const attention_in *in = &f->in;
	const attention_tile *t = &f->tile;
	attention_operands ops = attention_sm80.operands(f->o);

	if (f->o->tma) {
		attention_make_operands(k, in, &ops, &f->q, &f->key, &f->v);
		return;
	}
	const cptx_val q_at = attention_rows_at(k, &in->q, t, t->q0, t->head),
				   k_at = attention_rows_at(k, &in->k, t, t->k0, t->kv_head),
				   v_at = attention_rows_at(k, &in->v, t, t->k0, t->kv_head);
	const cptx_val keys = f->o->page ? (f->rows_left = cptx_var(k, CPTX_U32, t->keys)) : t->keys;
	f->q.op = operand(f, &ops.q, "q", f->o->dim, t->queries, in->q.row, q_at);
	f->key.op = operand(f, &ops.k, "k", f->o->dim, keys, in->k.row, k_at);
	f->v.op = operand(f, &ops.v, "v", attention_dim_v(f->o), keys, in->v.row, v_at);
}

static void make_pipes(forward80 *f, const cptx_roles *roles)
{
	cptx_kernel *k = f->k;

	if (!f->o->tma) {
		cptx_pipe_new(k, &f->pipe, .stages = f->o->stages, .by = CPTX_PIPE_CP_ASYNC_GROUPS);
		return;
	}
	f->first_warp = cptx_setp(k, roles->warp, 0, .cmp = CPTX_EQ);
	f->first = cptx_setp(k, roles->tid, 0, .cmp = CPTX_EQ);
	f->first_lane = cptx_setp(k, roles->lane, 0, .cmp = CPTX_EQ);
	cptx_params_prefetch(k, &f->in.params, f->first);
	cptx_pipe_new(k, &f->q_pipe, .stages = 1);
	cptx_pipe_new(k, &f->pipe, .stages = f->o->stages, .consumers = f->o->warps);
	cptx_pipe_prepare(k, &f->q_pipe, f->first);
	cptx_pipe_init(k, &f->pipe, f->first);
}

/* number / stages; ptxas makes a division of what it could make a shift or a product. */
static cptx_val turn_of(cptx_kernel *k, cptx_val number, uint32_t stages)
{
	for (uint32_t bit = 1; bit < 4; bit++)
		if (stages == 1u << bit)
			return cptx_shr(k, number, bit);
	return cptx_mul(k, number, UINT32_MAX / stages + 1, .mode = CPTX_HI);
}

/* Where in the ring block number `number` is.  It follows from the number, which takes no registers from step to step. */
static cptx_pipe_at place(forward80 *f, const cptx_pipe_at *of, cptx_val number)
{
	cptx_kernel *k = f->k;
	const cptx_val n = cptx_as(number, CPTX_U32), turn = turn_of(k, n, f->o->stages);
	cptx_pipe_at at = *of;

	at.stage = cptx_sub(k, n, cptx_mul(k, turn, f->o->stages, .mode = CPTX_LO));
	if (!f->o->tma)
		return at;
	at.parity = cptx_and(k, of->producer ? cptx_add(k, turn, 1) : turn, 1);
	at.barrier = cptx_mad(k, at.stage, 8, of->first, .mode = CPTX_LO);
	return at;
}

/*
 * A block by TMA, by one thread of the warp that is here.  A used stage was read in the step before, by all warps.  All
 * threads of the warp wait: while one waits alone, the others pass the place where they should meet it (ptxas 13.0 yields in
 * such a loop), and overwrite uniform registers that it needs behind the wait.
 */
static void load_by_tma(forward80 *f, const cptx_pipe_at *to, cptx_val key, bool used)
{
	cptx_kernel *k = f->k;

	if (used)
		cptx_pipe_wait_empty(k, &f->pipe, to);
	CPTX_IF(k, f->first) {
		cptx_pipe_expect(k, &f->pipe, to, f->key.op.bytes + f->v.op.bytes);
		attention_load_kv(k, &f->in, &f->tile, &f->key, to->stage, key, cptx_pipe_full(to));
		attention_load_kv(k, &f->in, &f->tile, &f->v, to->stage, key, cptx_pipe_full(to));
	}
}

/* K and V begin at the row of a page that has this key. */
static void go_to_page(forward80 *f, cptx_val key)
{
	cptx_kernel *k = f->k;
	attention_tile page = f->tile;
	const cptx_val row = cptx_cvt(k, cptx_and(k, cptx_as(key, CPTX_U32), f->o->page - 1), .dtype = CPTX_U64);

	page.batch = attention_page_of(k, &f->in, &f->tile, key);
	const cptx_val k_at = attention_rows_at(k, &f->in.k, &page, page.k0, page.kv_head),
				   v_at = attention_rows_at(k, &f->in.v, &page, page.k0, page.kv_head);
	cptx_sub(k, f->tile.keys, cptx_as(key, CPTX_U32), .into = f->rows_left);
	cptx_operand_rebase(k, &f->key.op, cptx_mad(k, row, f->in.k.row, k_at, .mode = CPTX_LO));
	cptx_operand_rebase(k, &f->v.op, cptx_mad(k, row, f->in.v.row, v_at, .mode = CPTX_LO));
}

static void load_by_threads(forward80 *f, const cptx_pipe_at *to, cptx_val key)
{
	cptx_kernel *k = f->k;
	const cptx_val row = f->o->page ? cptx_imm(0) : cptx_as(key, CPTX_U32);

	if (f->o->page)
		go_to_page(f, key);
	cptx_operand_load(k, &f->key.op, to->stage, row, 0);
	cptx_operand_load(k, &f->v.op, to->stage, 0, row);
}

/* Block number `ahead` steps further, if there is one; then the group of its copies by cp.async is closed in any case. */
static void load(forward80 *f, uint32_t ahead)
{
	cptx_kernel *k = f->k;
	const bool skips = f->o->blocks != NULL, used = ahead + 1 >= f->o->stages;
	const cptx_val number = cptx_add(k, f->block, ahead), mine = used || skips ? f->first_warp : f->first;
	const cptx_val there = skips ? cptx_setp(k, f->load_key, f->tile.first_key, .cmp = CPTX_GE)
	                             : cptx_setp(k, number, f->tile.blocks, .cmp = CPTX_LT);

	CPTX_IF(k, f->o->tma ? cptx_and(k, there, mine, .type = CPTX_PRED) : there) {
		const cptx_val key = skips ? f->load_key : cptx_sub(k, f->key0, ahead * f->o->bk);
		const cptx_pipe_at to = place(f, &f->to, number);
		if (f->o->tma)
			load_by_tma(f, &to, key, used);
		else
			load_by_threads(f, &to, key);
		if (skips) {
			cptx_sub(k, f->load_key, f->o->bk, .into = f->load_key);
			attention_skip(k, &f->in, &f->tile, f->load_key);
		}
	}
	cptx_pipe_copied(k, &f->pipe, &f->to);
}

/* Q, with the first block. */
static void load_q(forward80 *f)
{
	cptx_kernel *k = f->k;

	if (!f->o->tma) {
		cptx_operand_load(k, &f->q.op, 0, f->tile.row0, 0);
		return;
	}
	const cptx_pipe_at at = cptx_pipe_producer(k, &f->q_pipe);
	CPTX_IF(k, f->first) {
		cptx_pipe_expect(k, &f->q_pipe, &at, f->q.op.bytes);
		attention_load_q(k, &f->in, &f->tile, &f->q, 0, cptx_pipe_full(&at));
	}
}

/* ---- products ---- */

static void begin_products(forward80 *f, const cptx_roles *roles)
{
	cptx_kernel *k = f->k;
	const cptx_attention_opt *o = f->o;
	const enum cptx_mma_from q_from = f->s.q_in_regs ? CPTX_A_REGS : CPTX_A_SHARED;

	cptx_tiled_mma_new(k, &f->qk, .a = o->in, .b = o->in, .m = f->s.rows, .n = o->bk, .units_m = o->warps, .a_from = q_from,
	                   .a_tile = f->s.q, .b_tile = f->s.k, .unit = roles->warp, .thread = roles->lane,
	                   .b_base = f->key.op.smem, .few_regs = true);
	const bool bytes = attention_is_fp8(o);
	const enum cptx_type pv = bytes ? CPTX_F16 : o->in;
	/* of e4m3 the kit has S alone: V's tile is one of the same sizes, which it does not read */
	const cptx_tile halves = { f->s.dim_v, o->bk, { 16, true, false }, CPTX_SWIZZLE_128B, 0, 0 };
	f->lane = roles->lane;
	cptx_tiled_mma_new(k, &f->pv, .a = pv, .b = pv, .m = f->s.rows, .n = f->s.dim_v, .units_m = o->warps,
	                   .a_from = CPTX_A_REGS, .b_tile = bytes ? halves : f->s.v, .unit = roles->warp, .thread = roles->lane,
	                   .b_base = f->v.op.smem, .few_regs = true);
	cptx_acc_new(k, &f->qk, &f->sums);
	cptx_acc_new(k, &f->pv, &f->results);
	cptx_acc_clear(k, &f->results);
}

/* Q comes with the first block. */
static void load_q_regs(forward80 *f, const cptx_roles *roles)
{
	cptx_kernel *k = f->k;
	cptx_tiled_mma from;

	cptx_tiled_mma_new(k, &from, .a = f->o->in, .b = f->o->in, .m = f->s.rows, .n = f->o->bk, .units_m = f->o->warps,
	                   .a_tile = f->s.q, .b_tile = f->s.k, .unit = roles->warp, .thread = roles->lane);
	f->q_regs = cptx_mma_load_a(k, &from, cptx_operand_at(k, &f->q.op, 0));
}

static void step(forward80 *f, bool masked)
{
	cptx_kernel *k = f->k;

	const cptx_pipe_at at = place(f, &f->at, f->block);
	if (f->o->tma) { /* the step before, behind the products that took what ldmatrix had read of it */
		cptx_bar_warp_sync(k, -1);
		cptx_pipe_release(k, &f->pipe, &f->left.at, f->left.when);
	}
	cptx_pipe_wait_full(k, &f->pipe, &at);
	if (!f->o->tma)
		load(f, f->o->stages - 1);
	const cptx_val key = cptx_mul(k, at.stage, f->key.op.apart, .mode = CPTX_LO);
	const cptx_val v = f->v.op.apart == f->key.op.apart ? key : cptx_mul(k, at.stage, f->v.op.apart, .mode = CPTX_LO);
	cptx_mma_tile(k, &f->qk, &f->sums, f->s.q_in_regs ? f->q_regs : cptx_operand_at(k, &f->q.op, 0), key, .fresh = true);
	if (f->o->tma) { /* by now the other warps have hardly anything of the step before left */
		load(f, f->o->stages - 1);
		cptx_bar_warp_sync(k,
		                   -1); /* else the warp of the thread that copies runs on in two parts: a quarter slower in all */
	}
	if (masked) /* anew in each step: they would take registers in the other loops */
		f->rows = attention_rows_of(k, &f->in, &f->tile, &f->sums);
	attention_scores_of(k, &f->in, &f->tile, &f->rows, &f->sums, f->key0, masked);
	cptx_softmax_step_lazily(k, &f->soft, &f->sums, &f->results, SLACK);
	const cptx_val p = cptx_acc_as_a(k, &f->sums, &f->pv);
	if (attention_is_fp8(f->o))
		attention_sm80_multiply_bytes(k, &f->s, &f->results, p, cptx_operand_at(k, &f->v.op, at.stage), f->lane);
	else
		cptx_mma_tile(k, &f->pv, &f->results, p, v);
	if (f->o->tma)
		cptx_pipe_leave(k, &f->pipe, &f->left, &at, f->first_lane);
	cptx_sub(k, f->key0, f->o->bk, .into = f->key0);
}

static void steps(forward80 *f, cptx_val end, bool masked)
{
	CPTX_FOR(f->k, f->block, end, 1)
		step(f, masked);
}

/* With .blocks: from block to block that counts. */
static void skipping_steps(forward80 *f)
{
	cptx_kernel *k = f->k;

	CPTX_DO(k)
	{
		step(f, true);
		cptx_add(k, f->block, 1, .into = f->block);
		const cptx_val behind = attention_skip(k, &f->in, &f->tile, f->key0);
		cptx_continue_when(k, cptx_negated(behind));
	}
}

/* ---- a tile ---- */

static void multiply_blocks(forward80 *f, const cptx_roles *roles)
{
	cptx_kernel *k = f->k;
	const attention_tile *t = &f->tile;

	f->block = cptx_var(k, CPTX_S32, 0);
	f->key0 = cptx_var(k, CPTX_S32, t->last_key);
	f->to = cptx_pipe_producer(k, &f->pipe);
	f->at = cptx_pipe_consumer(k, &f->pipe);
	if (f->o->tma)
		f->left = cptx_pipe_left_none(k, &f->pipe, &f->at);
	load_q(f);
	if (f->o->blocks)
		f->load_key = cptx_var(k, CPTX_S32, t->last_key);
	for (uint32_t i = 0; i + 1 < f->o->stages; i++)
		load(f, i);
	if (f->o->tma) {
		const cptx_pipe_at q_at = cptx_pipe_consumer(k, &f->q_pipe);
		cptx_pipe_wait_full(k, &f->q_pipe, &q_at);
	} else if (f->s.q_in_regs) { /* Q comes with the first block */
		cptx_pipe_wait_full(k, &f->pipe, &f->at);
	}
	if (f->s.q_in_regs)
		load_q_regs(f, roles);
	if (f->o->blocks) {
		skipping_steps(f);
		return;
	}
	steps(f, t->edge, true);
	steps(f, t->plain, false);
	if (f->o->window)
		steps(f, t->blocks, true);
}

static void attend(forward80 *f, const cptx_roles *roles)
{
	cptx_kernel *k = f->k;

	begin_products(f, roles);
	attention_begin_softmax(k, &f->in, &f->tile, &f->sums, &f->soft);
	CPTX_IF(k, cptx_setp(k, f->tile.blocks, 0, .cmp = CPTX_GT))
		multiply_blocks(f, roles);
	const cptx_val factors = cptx_softmax_end(k, &f->soft, &f->sums);
	for (uint32_t r = 0; r < factors.count && attention_is_fp8(f->o); r++)
		cptx_mul(k, cptx_elem(factors, r), f->in.v_scale, .into = cptx_elem(factors, r));
	cptx_acc_scale_rows(k, &f->results, factors);
	if (f->o->lse)
		attention_store_lse(k, &f->in, &f->tile, &f->sums, cptx_softmax_lse(k, &f->soft, &f->sums));
	if (attention_is_fp8(f->o))
		attention_sm80_store_bytes(k, &f->in, &f->tile, &f->results, f->lane);
	else
		attention_store_o(k, &f->in, &f->tile, &f->results);
}

static void run_tile(forward80 *f, const cptx_roles *roles)
{
	attention_locate(f->k, &f->in, cptx_ctaid_x(f->k), &f->tile);
	make_operands(f);
	make_pipes(f, roles);
	if (f->tile.there.kind == CPTX_VAL_NONE) {
		attend(f, roles);
	} else {
		CPTX_IF(f->k, f->tile.there)
			attend(f, roles);
	}
}

cptx_kernel *attention_sm80_build(cptx_module *m, const cptx_attention_opt *o)
{
	forward80 f = { .o = o, .s = attention_sm80_shape(o) };
	const uint32_t ctas = CPTX_REGS_PER_SM / (f.s.threads * (CPTX_REGS_PER_THREAD + 1));
	cptx_roles roles;

	f.k = cptx_kernel_begin(m, o->name, .block = { f.s.threads }, .min_ctas = MAX(ctas, 1u));
	attention_declare(f.k, &f.in, o);
	cptx_roles_begin(f.k, &roles, .threads = f.s.threads, .keep_regs = true);
	if (o->tma) { /* what stands in front of this may overlap with the launch before, cptx_launch_opt.overlap */
		cptx_griddepcontrol(f.k, .op = CPTX_WAIT);
		cptx_griddepcontrol(f.k, .op = CPTX_LAUNCH_DEPENDENTS);
	}
	CPTX_IF(f.k, cptx_setp(f.k, cptx_ctaid_x(f.k), f.in.slots, .cmp = CPTX_LT)) /* a launch has a CTA at least */
		run_tile(&f, &roles);
	return f.k;
}
