/* SPDX-License-Identifier: MIT */
/*
 * Attention forward for sm_80: O = softmax(Q * K^T / sqrt(D)) * V for each head, causal or not, bf16 in and out.
 *
 * A CTA of four warps has 64 queries of a head and walks over the keys, 64 at a time, which cp.async brings to a ring of
 * stages.  The scores of a warp's 16 rows stay in its registers: they become probabilities there, and these the A of the
 * second product.
 */
#include "attention_run.h"

#include <cptx/pipeline.h>
#include <cptx/softmax.h>

enum { D = ATTENTION_D, QUERIES = 64, KEYS = 64, WARPS = 4, THREADS = 32 * WARPS, STAGES = 2 };

typedef struct kernel {
	cptx_kernel *k;
	bool causal;
	cptx_operand q, key, v;
	cptx_operand_src key_at, v_at; /* the tiles to copy next */
	cptx_pipe pipe;
	cptx_val row0, queries, keys, end, scale, out; /* first query of the CTA; where its keys end */
} kernel;

/* Of a head: rows of D elements from `address` on; transposed where they lie along K of the product. */
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
static void load(kernel *a, const cptx_pipe_at *to)
{
	cptx_operand_load_from(a->k, &a->key, to->stage, &a->key_at);
	cptx_operand_load_from(a->k, &a->v, to->stage, &a->v_at);
	cptx_operand_advance(a->k, &a->key, &a->key_at, KEYS, 0);
	cptx_operand_advance(a->k, &a->v, &a->v_at, 0, KEYS);
}

static void attend(kernel *a, cptx_val warp)
{
	cptx_kernel *k = a->k;
	cptx_pipe_at to = cptx_pipe_producer(k, &a->pipe), at = cptx_pipe_consumer(k, &a->pipe);
	cptx_val key = cptx_var(k, CPTX_U32, 0);
	cptx_tiled_mma qk, pv;
	cptx_acc s, o;
	cptx_softmax soft;

	cptx_tiled_mma_new(k, &qk, .a = CPTX_BF16, .b = CPTX_BF16, .m = 16, .n = KEYS, .units_m = WARPS, .unit = warp,
	                   .a_tile = a->q.opt.tile, .b_tile = a->key.opt.tile);
	cptx_tiled_mma_new(k, &pv, .a = CPTX_BF16, .b = CPTX_BF16, .m = 16, .n = D, .units_m = WARPS, .unit = warp,
	                   .a_from = CPTX_A_REGS, .b_tile = a->v.opt.tile);
	cptx_acc_new(k, &qk, &s);
	cptx_acc_new(k, &pv, &o);
	cptx_acc_clear(k, &o);
	cptx_softmax_new(k, &soft, s.rows, a->scale);
	cptx_operand_load(k, &a->q, 0, a->row0, 0);
	load(a, &to);
	cptx_pipe_filled(k, &a->pipe, &to);
	cptx_pipe_next(k, &a->pipe, &to);
	CPTX_FOR(k, key, a->end, KEYS) {
		cptx_pipe_wait_full(k, &a->pipe, &at);
		CPTX_IF(k, cptx_setp(k, cptx_add(k, key, KEYS), a->end, .cmp = CPTX_LT))
			load(a, &to);
		cptx_pipe_filled(k, &a->pipe, &to);
		cptx_mma_tile(k, &qk, &s, cptx_operand_at(k, &a->q, 0), cptx_operand_at(k, &a->key, at.stage), .fresh = true);
		cptx_val border = a->causal ? a->row0 : a->keys; /* tiles that end behind it have scores that do not count */
		CPTX_IF(k, cptx_setp(k, cptx_add(k, key, KEYS), border, .cmp = CPTX_GT))
			cptx_softmax_mask(k, &s, .row0 = a->row0, .col0 = key, .cols = a->keys, .causal = a->causal);
		cptx_acc_scale_rows(k, &o, cptx_softmax_step(k, &soft, &s));
		cptx_mma_tile(k, &pv, &o, cptx_acc_as_a(k, &s, &pv), cptx_operand_at(k, &a->v, at.stage));
		cptx_pipe_next(k, &a->pipe, &to);
		cptx_pipe_next(k, &a->pipe, &at);
	}
	cptx_acc_scale_rows(k, &o, cptx_softmax_end(k, &soft, &s));
	cptx_acc_store(
		k, &o,
		(&(cptx_acc_matrix){
			.address = a->out, .type = CPTX_BF16, .pitch = cptx_imm(D), .rows = cptx_sub(k, a->queries, a->row0) }));
}

/* Where a head begins in a matrix with so many rows of D elements for each. */
static cptx_val head_at(cptx_kernel *k, cptx_val matrix, cptx_val rows)
{
	cptx_val row = cptx_mul_wide(k, cptx_ctaid_y(k), rows);

	return cptx_mad(k, row, 2 * D, matrix, .mode = CPTX_LO);
}

static void build(cptx_module *m, const void *self, bool causal)
{
	cptx_kernel *k = cptx_kernel_begin(m, "attention", .block = { THREADS });
	kernel a = { .k = k, .causal = causal };
	cptx_params p = { 0 };

	attention_params(k, &p, self);
	a.queries = cptx_params_get(k, &p, "queries"), a.keys = cptx_params_get(k, &p, "keys");
	a.scale = cptx_params_get(k, &p, "scale");
	a.row0 = cptx_mul(k, cptx_ctaid_x(k), QUERIES, .mode = CPTX_LO);
	a.end = causal ? cptx_min(k, cptx_add(k, a.row0, QUERIES), a.keys) : a.keys;
	a.q = operand(k, head_at(k, cptx_params_get(k, &p, "q"), a.queries), a.queries, false, 1);
	a.key = operand(k, head_at(k, cptx_params_get(k, &p, "key"), a.keys), a.keys, false, STAGES);
	a.v = operand(k, head_at(k, cptx_params_get(k, &p, "v"), a.keys), a.keys, true, STAGES);
	a.key_at = cptx_operand_source(k, &a.key, 0, 0), a.v_at = cptx_operand_source(k, &a.v, 0, 0);
	a.out = cptx_mad_wide(k, a.row0, 2 * D, head_at(k, cptx_params_get(k, &p, "o"), a.queries));
	cptx_pipe_new(k, &a.pipe, .stages = STAGES, .by = CPTX_PIPE_CP_ASYNC_GROUPS);
	attend(&a, cptx_shr(k, cptx_tid_x(k), 5));
}

const attention attention_sm80 = { "emu:sm_80", QUERIES, THREADS, build, NULL, NULL, NULL };

#ifndef EXAMPLES_NO_MAIN
int main(void) { return attention_main(&attention_sm80); }
#endif
