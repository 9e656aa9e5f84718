/* SPDX-License-Identifier: MIT */
/*
 * Attention forward for sm_100a: O = softmax(Q * K^T / sqrt(D)) * V for each head, causal or not, bf16 in and out.
 *
 * A CTA has 128 queries of a head and walks over the keys, 64 at a time.  One warp has TMA bring K and V to a ring of
 * stages, another starts both products, which tcgen05 makes in tensor memory, and a warpgroup, a row for each thread, turns
 * scores S into probabilities P, which go back to tensor memory as the A of the second product.
 *
 * Two rings of one stage say whose turn it is: S is full when the first product is complete, and empty when the warpgroup
 * has read it; P is full when the warpgroup has written it, and O is corrected for the new maxima, and empty when the second
 * product is complete.
 */
#include "attention_run.h"

#include <cptx/pipeline.h>
#include <cptx/roles.h>
#include <cptx/softmax.h>
#include <cptx/tmem.h>

enum { D = ATTENTION_D, QUERIES = 128, KEYS = 64, THREADS = 192, STAGES = 2 };
enum { S_AT = 0, P_AT = KEYS, O_AT = P_AT + KEYS / 2, COLUMNS = O_AT + D }; /* columns of tensor memory */

static const cptx_operand_opt q_opt = { .type = CPTX_BF16,
	                                    .batched = true,
	                                    .tile = { QUERIES, D, .elem.bits = 16, .swizzle = CPTX_SWIZZLE_128B } };
static const cptx_operand_opt k_opt = {
	.type = CPTX_BF16, .batched = true, .stages = STAGES, .tile = { KEYS, D, .elem.bits = 16, .swizzle = CPTX_SWIZZLE_128B }
};
static const cptx_operand_opt v_opt = { .type = CPTX_BF16,
	                                    .batched = true,
	                                    .stages = STAGES, /* keys lie along K */
	                                    .tile = { D, KEYS, .elem = { 16, .mn_major = true },
	                                              .swizzle = CPTX_SWIZZLE_128B } };

typedef struct kernel {
	cptx_kernel *k;
	bool causal;
	cptx_operand q, key, v;
	cptx_pipe q_pipe, pipe, s_pipe, p_pipe;
	cptx_tiled_mma qk, pv;
	cptx_acc s, o;                                       /* in tensor memory */
	cptx_val p;                                          /* tensor memory address */
	cptx_val row0, head, queries, keys, end, scale, out; /* first query; batch and head; keys, and where this CTA's end */
} kernel;

/* One thread. */
static void load(kernel *a)
{
	cptx_kernel *k = a->k;
	cptx_pipe_at first = cptx_pipe_producer(k, &a->q_pipe), at = cptx_pipe_producer(k, &a->pipe);
	cptx_val key = cptx_var(k, CPTX_U32, 0);

	cptx_pipe_expect(k, &a->q_pipe, &first, a->q.bytes);
	cptx_operand_load(k, &a->q, 0, a->row0, 0, .z = a->head, .barrier = cptx_pipe_full(&first));
	CPTX_FOR(k, key, a->end, KEYS) {
		cptx_pipe_wait_empty(k, &a->pipe, &at);
		cptx_pipe_expect(k, &a->pipe, &at, a->key.bytes + a->v.bytes);
		cptx_operand_load(k, &a->key, at.stage, key, 0, .z = a->head, .barrier = cptx_pipe_full(&at));
		cptx_operand_load(k, &a->v, at.stage, 0, key, .z = a->head, .barrier = cptx_pipe_full(&at));
		cptx_pipe_next(k, &a->pipe, &at);
	}
}

/* One thread. */
static void multiply(kernel *a)
{
	cptx_kernel *k = a->k;
	cptx_pipe_at first = cptx_pipe_consumer(k, &a->q_pipe), at = cptx_pipe_consumer(k, &a->pipe);
	cptx_pipe_at s = cptx_pipe_producer(k, &a->s_pipe), p = cptx_pipe_consumer(k, &a->p_pipe);
	cptx_val key = cptx_var(k, CPTX_U32, 0);

	cptx_pipe_wait_full(k, &a->q_pipe, &first);
	CPTX_FOR(k, key, a->end, KEYS) {
		cptx_pipe_wait_full(k, &a->pipe, &at);
		cptx_pipe_wait_empty(k, &a->s_pipe, &s);
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		cptx_mma_tile(k, &a->qk, &a->s, cptx_operand_at(k, &a->q, 0), cptx_operand_at(k, &a->key, at.stage), .fresh = true);
		cptx_mma_commit(k, &a->qk, cptx_pipe_full(&s));
		cptx_pipe_next(k, &a->s_pipe, &s);
		cptx_pipe_wait_full(k, &a->p_pipe, &p);
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		cptx_mma_tile(k, &a->pv, &a->o, a->p, cptx_operand_at(k, &a->v, at.stage),
		              .fresh_when = cptx_setp(k, key, 0, .cmp = CPTX_EQ));
		cptx_mma_commit(k, &a->pv, cptx_pipe_empty(&p));
		cptx_mma_commit(k, &a->pv, cptx_pipe_empty(&at));
		cptx_pipe_next(k, &a->p_pipe, &p);
		cptx_pipe_next(k, &a->pipe, &at);
	}
}

/* Multiplies O by a row vector; whether behind all products or between two of them, it is complete. */
static cptx_acc scaled(kernel *a, cptx_val rows)
{
	cptx_acc o;

	cptx_acc_load(a->k, &a->o, 0, D, &o);
	cptx_acc_scale_rows(a->k, &o, rows);
	return o;
}

/* A warpgroup: the softmax of 128 rows. */
static void softmax(kernel *a)
{
	cptx_kernel *k = a->k;
	cptx_pipe_at s = cptx_pipe_consumer(k, &a->s_pipe), p = cptx_pipe_producer(k, &a->p_pipe);
	cptx_val key = cptx_var(k, CPTX_U32, 0);
	cptx_acc scores, o;
	cptx_softmax soft;

	cptx_softmax_new(k, &soft, 1, a->scale);
	CPTX_FOR(k, key, a->end, KEYS) {
		cptx_pipe_wait_full(k, &a->s_pipe, &s);
		cptx_acc_load(k, &a->s, 0, KEYS, &scores);
		cptx_pipe_release(k, &a->s_pipe, &s, CPTX_NONE_);
		cptx_pipe_next(k, &a->s_pipe, &s);
		cptx_val border = a->causal ? a->row0 : a->keys; /* tiles that end behind it have scores that do not count */
		CPTX_IF(k, cptx_setp(k, cptx_add(k, key, KEYS), border, .cmp = CPTX_GT))
			cptx_softmax_mask(k, &scores, .row0 = a->row0, .col0 = key, .cols = a->keys, .causal = a->causal);
		cptx_val correct = cptx_softmax_step(k, &soft, &scores);
		cptx_pipe_wait_empty(k, &a->p_pipe, &p);
		CPTX_IF(k, cptx_setp(k, key, 0, .cmp = CPTX_GT)) {
			o = scaled(a, correct);
			cptx_acc_save(k, &a->o, 0, &o);
		}
		cptx_acc_put_a(k, &scores, CPTX_BF16, a->p, 0);
		cptx_pipe_filled(k, &a->p_pipe, &p);
		cptx_pipe_next(k, &a->p_pipe, &p);
	}
	cptx_pipe_wait_empty(k, &a->p_pipe, &p);
	o = scaled(a, cptx_softmax_end(k, &soft, &scores));
	cptx_acc_store(
		k, &o,
		(&(cptx_acc_matrix){
			.address = a->out, .type = CPTX_BF16, .pitch = cptx_imm(D), .rows = cptx_sub(k, a->queries, a->row0) }));
}

static void build(cptx_module *m, const void *self, bool causal)
{
	cptx_kernel *k = cptx_kernel_begin(m, "attention", .block = { THREADS });
	kernel a = { .k = k, .causal = causal };
	cptx_params p = { 0 };
	cptx_roles r;
	cptx_tmem t;

	attention_params(k, &p, self);
	a.q = attention_operand(k, &p, &q_opt, "q"), a.key = attention_operand(k, &p, &k_opt, "key");
	a.v = attention_operand(k, &p, &v_opt, "v");
	a.queries = cptx_params_get(k, &p, "queries"), a.keys = cptx_params_get(k, &p, "keys");
	a.scale = cptx_params_get(k, &p, "scale");
	cptx_roles_begin(k, &r, .threads = THREADS);
	cptx_val first = cptx_setp(k, r.tid, 0, .cmp = CPTX_EQ);
	cptx_params_prefetch(k, &p, first);
	cptx_pipe_new(k, &a.q_pipe, .stages = 1);
	cptx_pipe_new(k, &a.pipe, .stages = STAGES);
	cptx_pipe_new(k, &a.s_pipe, .stages = 1, .consumers = 128);
	cptx_pipe_new(k, &a.p_pipe, .stages = 1, .producers = 128);
	cptx_pipe_prepare(k, &a.q_pipe, first);
	cptx_pipe_prepare(k, &a.pipe, first);
	cptx_pipe_prepare(k, &a.s_pipe, first);
	cptx_pipe_prepare(k, &a.p_pipe, first);
	cptx_tiled_mma_new(k, &a.qk, .by = CPTX_BY_TCGEN05, .a = CPTX_BF16, .b = CPTX_BF16, .m = QUERIES, .n = KEYS,
	                   .a_tile = q_opt.tile, .b_tile = k_opt.tile);
	cptx_tiled_mma_new(k, &a.pv, .by = CPTX_BY_TCGEN05, .a = CPTX_BF16, .b = CPTX_BF16, .m = QUERIES, .n = D,
	                   .a_from = CPTX_A_TMEM, .b_tile = v_opt.tile);

	a.row0 = cptx_mul(k, cptx_ctaid_x(k), QUERIES, .mode = CPTX_LO), a.head = cptx_ctaid_y(k);
	a.end = causal ? cptx_min(k, cptx_add(k, a.row0, QUERIES), a.keys) : a.keys;
	cptx_val row = cptx_mad_wide(k, a.head, a.queries, cptx_cvt(k, a.row0, .dtype = CPTX_U64));
	a.out = cptx_mad(k, row, 2 * D, cptx_params_get(k, &p, "o"), .mode = CPTX_LO);
	CPTX_TMEM(k, &t, .columns = COLUMNS, .warp = cptx_setp(k, r.warp, 0, .cmp = CPTX_EQ)) {
		cptx_acc_in_tmem(k, &a.qk, &a.s, cptx_offset(t.address, S_AT));
		cptx_acc_in_tmem(k, &a.pv, &a.o, cptx_offset(t.address, O_AT));
		a.p = cptx_offset(t.address, P_AT);
		CPTX_ROLE(k, &r, .warps = 4)
			softmax(&a);
		CPTX_ROLE(k, &r, .warps = 1, .elect = true)
			load(&a);
		CPTX_ROLE(k, &r, .warps = 1, .elect = true)
			multiply(&a);
	}
}

const attention attention_sm100a = { "emu:sm_100a", QUERIES, THREADS, build, &q_opt, &k_opt, &v_opt };

#ifndef EXAMPLES_NO_MAIN
int main(void) { return attention_main(&attention_sm100a); }
#endif
