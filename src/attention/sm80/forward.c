/* SPDX-License-Identifier: MIT */
/*
 * Attention forward by mma.sync: cp.async -> shared memory -> ldmatrix -> mma.sync -> softmax in registers -> mma.sync -> O.
 *
 * A CTA has one tile of queries, and each of its warps 16 or 32 of them with all keys, so that no warp needs another's scores
 * or sums.  All threads copy K and V, block by block, to a ring of stages, from the last block down; one barrier for each
 * block tells that a stage is there and that the one before is free.  S becomes P in the registers where it is made, and P is
 * the A of the second product.  Two CTAs (or more warps) share a multiprocessor, so that the softmax of one runs beside the
 * products of another.  Blocks that need a mask and those that do not have loops of their own.
 */
#include "attention/sm80/forward.h"

#include "base/base.h"
#include <stdlib.h>
static unsigned X(void) { const char *e = getenv("AF80"); return e ? (unsigned)atoi(e) : 0; }

#include <cptx/pipeline.h>
#include <cptx/roles.h>

#define SLACK 8 /* powers of 2 that maxima may grow by before O is multiplied: it rarely is then */

typedef struct forward80 {
	cptx_kernel *k;
	const cptx_attention_opt *o;
	shape80 s;
	attention_in in;
	attention_tile tile;
	cptx_operand q, key, v;
	cptx_pipe pipe, q_pipe;
	cptx_pipe_at to, at; /* marks of places; place() says where */
	cptx_val first, first_lane; /* by TMA: predicates: the thread that copies, and those that release */
	cptx_tiled_mma qk, pv;
	cptx_mma_frags qf, vf;
	cptx_val q_regs; /* all of the warp's Q, where it stays in registers */
	cptx_acc sums, results; /* S, O */
	cptx_softmax soft;
	attention_rows rows;
	cptx_val block, key0; /* .s32: number of the step, from the last block down; the first key of its block */
} forward80;

/* ---- copies ---- */

/* Of a head: rows of `dim` elements from `address` on; transposed where they lie along K of the product. */
static cptx_operand operand(forward80 *f, const char *name, const cptx_tile *tile, uint32_t stages, uint32_t dim,
                            cptx_val rows, const attention_place *from, cptx_val head)
{
	const bool along_k = tile->elem.mn_major;
	const uint32_t padded = along_k ? tile->rows : tile->cols;
	const cptx_val all = dim < padded ? cptx_imm(dim) : (cptx_val){ 0 }; /* NONE: nothing is tested */
	const cptx_operand_opt opt = { .size = CPTX_OPT_SIZE(cptx_operand_opt),
		                           .by = CPTX_OPERAND_CP_ASYNC,
		                           .type = f->o->in,
		                           .tile = *tile,
		                           .stages = stages,
		                           .address = attention_head_at(f->k, from, f->tile.batch, head),
		                           .rows = along_k ? all : rows,
		                           .cols = along_k ? rows : all,
		                           .pitch = from->row,
		                           .threads = f->s.threads,
		                           .whole = true,
		                           .name = name };
	cptx_operand op;

	cptx_operand_make(f->k, &op, &opt);
	return op;
}

static void make_operands(forward80 *f)
{
	const attention_in *in = &f->in;
	const uint32_t stages = f->o->stages;

	if (f->o->tma) {
		attention_operands ops = attention_sm80.operands(f->o);
		ops.q.map = in->map_q, ops.k.map = in->map_k, ops.v.map = in->map_v;
		ops.q.name = "q", ops.k.name = "k", ops.v.name = "v";
		cptx_operand_make(f->k, &f->q, &ops.q);
		cptx_operand_make(f->k, &f->key, &ops.k);
		cptx_operand_make(f->k, &f->v, &ops.v);
		return;
	}
	f->q = operand(f, "q", &f->s.q, 1, f->o->dim, in->queries, &in->q, f->tile.head);
	f->key = operand(f, "k", &f->s.k, stages, f->o->dim, in->keys, &in->k, f->tile.kv_head);
	f->v = operand(f, "v", &f->s.v, stages, attention_dim_v(f->o), in->keys, &in->v, f->tile.kv_head);
}

static void make_pipes(forward80 *f, const cptx_roles *roles)
{
	cptx_kernel *k = f->k;

	if (!f->o->tma) {
		cptx_pipe_new(k, &f->pipe, .stages = f->o->stages, .by = CPTX_PIPE_CP_ASYNC_GROUPS);
		return;
	}
	f->first = cptx_setp(k, roles->tid, 0, .cmp = CPTX_EQ);
	f->first_lane = cptx_setp(k, roles->lane, 0, .cmp = CPTX_EQ);
	cptx_params_prefetch(k, &f->in.params, f->first);
	cptx_pipe_new(k, &f->q_pipe, .stages = 1);
	cptx_pipe_new(k, &f->pipe, .stages = f->o->stages, .consumers = f->o->warps);
	cptx_pipe_prepare(k, &f->q_pipe, f->first);
	cptx_pipe_init(k, &f->pipe, f->first);
	/* what stands in front of this may overlap with the launch before, cptx_launch_opt.overlap */
	cptx_griddepcontrol(k, .op = CPTX_WAIT);
	cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
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

/* Of a block by TMA, by one thread.  The stage was read in the step before, by all warps. */
static void load_by_tma(forward80 *f, const cptx_pipe_at *to, cptx_val key)
{
	cptx_kernel *k = f->k;
	const cptx_val full = cptx_pipe_full(to), head = f->tile.kv_head, batch = f->tile.batch;

	cptx_pipe_wait_empty(k, &f->pipe, to);
	cptx_pipe_expect(k, &f->pipe, to, f->key.bytes + f->v.bytes);
	cptx_operand_load(k, &f->key, to->stage, key, 0, .barrier = full, .z = head, .z2 = batch);
	cptx_operand_load(k, &f->v, to->stage, 0, key, .barrier = full, .z = head, .z2 = batch);
}

/* Block number `ahead` steps further, if there is one; then the group of its copies by cp.async is closed in any case. */
static void load(forward80 *f, uint32_t ahead)
{
	cptx_kernel *k = f->k;
	const cptx_val number = cptx_add(k, f->block, ahead), there = cptx_setp(k, number, f->tile.blocks, .cmp = CPTX_LT);

	CPTX_IF (k, f->o->tma ? cptx_and(k, there, f->first, .type = CPTX_PRED) : there) {
		const cptx_val key = cptx_sub(k, f->key0, ahead * f->o->bk);
		const cptx_pipe_at to = place(f, &f->to, number);
		if (f->o->tma) {
			load_by_tma(f, &to, key);
		} else {
			cptx_operand_load(k, &f->key, to.stage, cptx_as(key, CPTX_U32), 0);
			cptx_operand_load(k, &f->v, to.stage, 0, cptx_as(key, CPTX_U32));
		}
	}
	cptx_pipe_copied(k, &f->pipe, &f->to);
}

/* Q, with the first block. */
static void load_q(forward80 *f)
{
	cptx_kernel *k = f->k;

	if (!f->o->tma) {
		cptx_operand_load(k, &f->q, 0, f->tile.row0, 0);
		return;
	}
	const cptx_pipe_at at = cptx_pipe_producer(k, &f->q_pipe);
	CPTX_IF (k, f->first) {
		cptx_pipe_expect(k, &f->q_pipe, &at, f->q.bytes);
		cptx_operand_load(k, &f->q, 0, f->tile.row0, 0, .barrier = cptx_pipe_full(&at), .z = f->tile.head,
		                  .z2 = f->tile.batch);
	}
}

/* ---- products ---- */

static void begin_products(forward80 *f, const cptx_roles *roles)
{
	cptx_kernel *k = f->k;
	const cptx_attention_opt *o = f->o;
	const enum cptx_mma_from q_from = f->s.q_in_regs ? CPTX_A_REGS : CPTX_A_SHARED;

	cptx_tiled_mma_new(k, &f->qk, .a = o->in, .b = o->in, .m = f->s.rows, .n = o->bk, .units_m = o->warps, .a_from = q_from,
	                   .a_tile = f->s.q, .b_tile = f->s.k, .unit = roles->warp, .thread = roles->lane, .b_base = f->key.smem, .few_regs = X() & 1);
	cptx_tiled_mma_new(k, &f->pv, .a = o->in, .b = o->in, .m = f->s.rows, .n = f->s.dim_v, .units_m = o->warps,
	                   .a_from = CPTX_A_REGS, .b_tile = f->s.v, .unit = roles->warp, .thread = roles->lane,
	                   .b_base = f->v.smem, .few_regs = X() & 1);
	if (X() & 2) cptx_mma_frags_new(k, &f->qk, &f->qf, !(X() & 8));
	if (X() & 4) cptx_mma_frags_new(k, &f->pv, &f->vf, !(X() & 16));
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
	f->q_regs = cptx_mma_load_a(k, &from, cptx_operand_at(k, &f->q, 0));
}

static void step(forward80 *f, bool masked)
{
	cptx_kernel *k = f->k;

	const cptx_pipe_at at = place(f, &f->at, f->block);
	cptx_pipe_wait_full(k, &f->pipe, &at);
	if (!f->o->tma)
		load(f, f->o->stages - 1);
	const cptx_val key = cptx_mul(k, at.stage, f->key.apart, .mode = CPTX_LO);
	const cptx_val v = f->v.apart == f->key.apart ? key : cptx_mul(k, at.stage, f->v.apart, .mode = CPTX_LO);
	const cptx_val q = f->s.q_in_regs ? f->q_regs : cptx_operand_at(k, &f->q, 0);
	if (X() & 2) cptx_mma_fetch(k, &f->qk, &f->qf, q, key);
	cptx_mma_tile(k, &f->qk, &f->sums, q, key, .fresh = true, .frags = X() & 2 ? &f->qf : NULL);
	if (f->o->tma) /* by now the other warps have hardly anything of the step before left */
		load(f, f->o->stages - 1);
	if (masked && !(X() & 64)) f->rows = attention_rows_of(k, &f->in, &f->tile, &f->sums);
	attention_scores_of(k, &f->in, &f->tile, &f->rows, &f->sums, f->key0, masked);
	if (X() & 32) cptx_acc_scale_rows(k, &f->results, cptx_softmax_step(k, &f->soft, &f->sums));
	else cptx_softmax_step_lazily(k, &f->soft, &f->sums, &f->results, SLACK);
	const cptx_val p = cptx_acc_as_a(k, &f->sums, &f->pv);
	if (X() & 4) cptx_mma_fetch(k, &f->pv, &f->vf, p, v);
	cptx_mma_tile(k, &f->pv, &f->results, p, v, .frags = X() & 4 ? &f->vf : NULL);
	if (f->o->tma) {
		cptx_bar_warp_sync(k, -1);
		cptx_pipe_release(k, &f->pipe, &at, f->first_lane);
	}
	cptx_sub(k, f->key0, f->o->bk, .into = f->key0);
}

static void steps(forward80 *f, cptx_val end, bool masked)
{
	CPTX_FOR (f->k, f->block, end, 1)
		step(f, masked);
}

/* ---- a tile ---- */

static void multiply_blocks(forward80 *f, const cptx_roles *roles)
{
	cptx_kernel *k = f->k;
	const attention_tile *t = &f->tile;

	if (X() & 64) f->rows = attention_rows_of(k, &f->in, t, &f->sums);
	f->block = cptx_var(k, CPTX_S32, 0);
	f->key0 = cptx_var(k, CPTX_S32, t->last_key);
	f->to = cptx_pipe_producer(k, &f->pipe);
	f->at = cptx_pipe_consumer(k, &f->pipe);
	load_q(f);
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
	steps(f, t->edge, true);
	steps(f, t->plain, false);
	if (f->o->window)
		steps(f, t->blocks, true);
}

static void attend(forward80 *f, const cptx_roles *roles)
{
	cptx_kernel *k = f->k;

	begin_products(f, roles);
	cptx_softmax_new(k, &f->soft, f->sums.rows, f->in.scale);
	CPTX_IF (k, cptx_setp(k, f->tile.blocks, 0, .cmp = CPTX_GT))
		multiply_blocks(f, roles);
	cptx_acc_scale_rows(k, &f->results, cptx_softmax_end(k, &f->soft, &f->sums));
	if (f->o->lse)
		attention_store_lse(k, &f->in, &f->tile, &f->sums, cptx_softmax_lse(k, &f->soft, &f->sums));
	attention_store_o(k, &f->in, &f->tile, &f->results);
}

cptx_kernel *attention_sm80_build(cptx_module *m, const cptx_attention_opt *o)
{
	forward80 f = { .o = o, .s = attention_sm80_shape(o) };
	const uint32_t ctas = CPTX_REGS_PER_SM / (f.s.threads * (CPTX_REGS_PER_THREAD + 1));
	cptx_roles roles;

	f.k = cptx_kernel_begin(m, o->name, .block = { f.s.threads }, .min_ctas = MAX(ctas, 1u));
	attention_declare(f.k, &f.in, o);
	cptx_roles_begin(f.k, &roles, .threads = f.s.threads, .keep_regs = true);
	attention_locate(f.k, &f.in, cptx_ctaid_x(f.k), &f.tile);
	make_operands(&f);
	make_pipes(&f, &roles);
	attend(&f, &roles);
	return f.k;
}
