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

#include <cptx/pipeline.h>
#include <cptx/roles.h>

typedef struct forward80 {
	cptx_kernel *k;
	const cptx_attention_opt *o;
	shape80 s;
	attention_in in;
	attention_tile tile;
	cptx_operand q, key, v;
	cptx_pipe pipe;
	cptx_pipe_at to, at;
	cptx_tiled_mma qk, pv;
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
	const cptx_operand_opt opt = { .size = CPTX_OPT_SIZE(cptx_operand_opt),
		                           .by = CPTX_OPERAND_CP_ASYNC,
		                           .type = f->o->in,
		                           .tile = *tile,
		                           .stages = stages,
		                           .address = attention_head_at(f->k, from, f->tile.batch, head),
		                           .rows = along_k ? cptx_imm(dim) : rows,
		                           .cols = along_k ? rows : cptx_imm(dim),
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

	f->q = operand(f, "q", &f->s.q, 1, f->o->dim, in->queries, &in->q, f->tile.head);
	f->key = operand(f, "k", &f->s.k, stages, f->o->dim, in->keys, &in->k, f->tile.kv_head);
	f->v = operand(f, "v", &f->s.v, stages, attention_dim_v(f->o), in->keys, &in->v, f->tile.kv_head);
}

/* Block number `ahead` steps further, if there is one; then the group of its copies is closed in any case. */
static void load(forward80 *f, uint32_t ahead)
{
	cptx_kernel *k = f->k;
	const cptx_val number = cptx_add(k, f->block, ahead);

	CPTX_IF (k, cptx_setp(k, number, f->tile.blocks, .cmp = CPTX_LT)) {
		const cptx_val key = cptx_as(cptx_sub(k, f->key0, ahead * f->o->bk), CPTX_U32);
		cptx_operand_load(k, &f->key, f->to.stage, key, 0);
		cptx_operand_load(k, &f->v, f->to.stage, 0, key);
	}
	cptx_pipe_filled(k, &f->pipe, &f->to);
	cptx_pipe_next(k, &f->pipe, &f->to);
}

/* ---- products ---- */

static void begin_products(forward80 *f, const cptx_roles *roles)
{
	cptx_kernel *k = f->k;
	const cptx_attention_opt *o = f->o;
	const enum cptx_mma_from q_from = f->s.q_in_regs ? CPTX_A_REGS : CPTX_A_SHARED;

	cptx_tiled_mma_new(k, &f->qk, .a = o->in, .b = o->in, .m = f->s.rows, .n = o->bk, .units_m = o->warps, .a_from = q_from,
	                   .a_tile = f->s.q, .b_tile = f->s.k, .unit = roles->warp, .thread = roles->lane, .b_base = f->key.smem, .few_regs = true);
	cptx_tiled_mma_new(k, &f->pv, .a = o->in, .b = o->in, .m = f->s.rows, .n = f->s.dim_v, .units_m = o->warps,
	                   .a_from = CPTX_A_REGS, .b_tile = f->s.v, .unit = roles->warp, .thread = roles->lane,
	                   .b_base = f->v.smem, .few_regs = true);
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

	cptx_pipe_wait_full(k, &f->pipe, &f->at);
	load(f, f->o->stages - 1);
	const cptx_val key = cptx_mul(k, f->at.stage, f->key.apart, .mode = CPTX_LO);
	const cptx_val v = f->v.apart == f->key.apart ? key : cptx_mul(k, f->at.stage, f->v.apart, .mode = CPTX_LO);
	cptx_mma_tile(k, &f->qk, &f->sums, f->s.q_in_regs ? f->q_regs : cptx_operand_at(k, &f->q, 0), key, .fresh = true);
	attention_scores_of(k, &f->in, &f->tile, &f->rows, &f->sums, f->key0, masked);
	cptx_acc_scale_rows(k, &f->results, cptx_softmax_step(k, &f->soft, &f->sums));
	const cptx_val p = cptx_acc_as_a(k, &f->sums, &f->pv);
	cptx_mma_tile(k, &f->pv, &f->results, p, v);
	cptx_pipe_next(k, &f->pipe, &f->at);
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

	f->rows = attention_rows_of(k, &f->in, t, &f->sums);
	f->block = cptx_var(k, CPTX_S32, 0);
	f->key0 = cptx_var(k, CPTX_S32, t->last_key);
	f->to = cptx_pipe_producer(k, &f->pipe);
	f->at = cptx_pipe_consumer(k, &f->pipe);
	cptx_operand_load(k, &f->q, 0, f->tile.row0, 0);
	for (uint32_t i = 0; i + 1 < f->o->stages; i++)
		load(f, i);
	if (f->s.q_in_regs) {
		cptx_pipe_wait_full(k, &f->pipe, &f->at);
		load_q_regs(f, roles);
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
	cptx_pipe_new(f.k, &f.pipe, .stages = o->stages, .by = CPTX_PIPE_CP_ASYNC_GROUPS);
	attend(&f, &roles);
	return f.k;
}
