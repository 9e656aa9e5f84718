/* SPDX-License-Identifier: MIT */
/*
 * Attention forward for sm_80: O = softmax(Q * K^T / sqrt(D)) * V for each head, causal or not, bf16 in and out.
 *
 * A CTA of four warps has 64 queries of a head and goes over the keys, 64 at a time, which cp.async copies to a ring of
 * stages.  The scores of a warp's 16 rows stay in its registers: they become probabilities there, and these the A of the
 * second product.
 */
#include "attention_run.h"

#include <cptx/cptx.h>
#include <cptx/softmax.h>

enum { D = ATTENTION_D, QUERIES = 64, KEYS = 64, WARPS = 4, THREADS = 32 * WARPS, STAGES = 2 };

typedef struct kernel {
	attention_kernel a;
	cptx_operand_src key_at, v_at; /* the tiles to copy next */
} kernel;

/* An operand of a head: rows of D elements from `address` on; transposed where they lie along K of the product. */
static cptx_operand operand(cptx_kernel *k, cptx_val address, cptx_val rows, bool transposed, uint32_t stages)
{
	cptx_operand op;
	cptx_tile tile = { 64, D, .elem = { 16, .mn_major = transposed }, .swizzle = CPTX_SWIZZLE_128B };

	cptx_operand_new(k, &op, .by = CPTX_OPERAND_CP_ASYNC, .type = CPTX_BF16, .tile = tile, .stages = stages,
	                 .address = address, .rows = transposed ? cptx_imm(D) : rows, .cols = transposed ? rows : cptx_imm(D),
	                 .pitch = cptx_imm(2 * D), .threads = THREADS);
	return op;
}

/* Starts the copies of the next K and V to a stage. */
static void load(kernel *x, const cptx_pipe_at *to)
{
	cptx_kernel *k = x->a.k;

	cptx_operand_load_from(k, &x->a.key, to->stage, &x->key_at);
	cptx_operand_load_from(k, &x->a.v, to->stage, &x->v_at);
	cptx_operand_advance(k, &x->a.key, &x->key_at, KEYS, 0);
	cptx_operand_advance(k, &x->a.v, &x->v_at, 0, KEYS);
}

static void attend(kernel *x, cptx_val warp)
{
	const attention_kernel *a = &x->a;
	cptx_kernel *k = a->k;
	cptx_pipe_at to = cptx_pipe_producer(k, &a->pipe), at = cptx_pipe_consumer(k, &a->pipe);
	cptx_val key = cptx_var(k, CPTX_U32, 0);
	cptx_tiled_mma qk, pv;
	cptx_mma_frags q_frags, v_frags; /* ldmatrix of a step runs beside the products of the one before */
	cptx_acc s, o;
	cptx_softmax soft;

	cptx_tiled_mma_new(k, &qk, .a = CPTX_BF16, .b = CPTX_BF16, .m = 16, .n = KEYS, .units_m = WARPS, .unit = warp,
	                   .a_tile = a->q.opt.tile, .b_tile = a->key.opt.tile);
	cptx_tiled_mma_new(k, &pv, .a = CPTX_BF16, .b = CPTX_BF16, .m = 16, .n = D, .units_m = WARPS, .unit = warp,
	                   .a_from = CPTX_A_REGS, .b_tile = a->v.opt.tile);
	cptx_acc_new(k, &qk, &s);
	cptx_acc_new(k, &pv, &o);
	cptx_mma_frags_new(k, &qk, &q_frags, false);
	cptx_mma_frags_new(k, &pv, &v_frags, false);
	cptx_acc_clear(k, &o);
	cptx_softmax_new(k, &soft, s.rows, a->scale);
	cptx_operand_load(k, &a->q, 0, a->row0, 0);
	load(x, &to);
	cptx_pipe_filled(k, &a->pipe, &to);
	cptx_pipe_next(k, &a->pipe, &to);
	CPTX_FOR(k, key, a->end, KEYS) {
		cptx_pipe_wait_full(k, &a->pipe, &at);
		cptx_val q = cptx_operand_at(k, &a->q, 0), k_tile = cptx_operand_at(k, &a->key, at.stage);
		cptx_mma_fetch(k, &qk, &q_frags, q, k_tile);
		CPTX_IF(k, cptx_setp(k, cptx_add(k, key, KEYS), a->end, .cmp = CPTX_LT))
			load(x, &to);
		cptx_pipe_filled(k, &a->pipe, &to);
		cptx_mma_tile(k, &qk, &s, q, k_tile, .fresh = true, .frags = &q_frags);
		attention_mask(a, &s, key, KEYS);
		cptx_acc_scale_rows(k, &o, cptx_softmax_step(k, &soft, &s));
		cptx_val p = cptx_acc_as_a(k, &s, &pv), v_tile = cptx_operand_at(k, &a->v, at.stage);
		cptx_mma_fetch(k, &pv, &v_frags, p, v_tile);
		cptx_mma_tile(k, &pv, &o, p, v_tile, .frags = &v_frags);
		cptx_pipe_next(k, &a->pipe, &to);
		cptx_pipe_next(k, &a->pipe, &at);
	}
	cptx_acc_scale_rows(k, &o, cptx_softmax_end(k, &soft, &s));
	attention_store(a, &o);
}

/* Where a head begins in a matrix with so many rows of D elements for each. */
static cptx_val head_at(cptx_kernel *k, cptx_val matrix, cptx_val rows)
{
	cptx_val row = cptx_mul_wide(k, cptx_ctaid_y(k), rows);

	return cptx_mad(k, row, 2 * D, matrix, .mode = CPTX_LO);
}

static void build(cptx_module *m, const void *self, bool causal)
{
	kernel x = { .a = attention_begin(m, self, causal) };
	attention_kernel *a = &x.a;
	cptx_kernel *k = a->k;

	a->q = operand(k, head_at(k, cptx_params_get(k, &a->params, "q"), a->queries), a->queries, false, 1);
	a->key = operand(k, head_at(k, cptx_params_get(k, &a->params, "key"), a->keys), a->keys, false, STAGES);
	a->v = operand(k, head_at(k, cptx_params_get(k, &a->params, "v"), a->keys), a->keys, true, STAGES);
	x.key_at = cptx_operand_source(k, &a->key, 0, 0), x.v_at = cptx_operand_source(k, &a->v, 0, 0);
	cptx_pipe_new(k, &a->pipe, .stages = STAGES, .by = CPTX_PIPE_CP_ASYNC_GROUPS);
	attend(&x, cptx_shr(k, cptx_tid_x(k), 5));
}

const attention attention_sm80 = { "emu:sm_80", QUERIES, THREADS, 0, build, 0, 0 };

#ifndef EXAMPLES_NO_MAIN
int main(void) { return attention_main(&attention_sm80); }
#endif
