/* SPDX-License-Identifier: MIT */
/*
 * Attention forward for sm_100a: O = softmax(Q * K^T / sqrt(D)) * V for each head, causal or not, bf16 in and out.
 *
 * A CTA has 128 queries of a head and goes over the keys, 64 at a time.  A producer warp has TMA copy K and V to a
 * ring of stages, an MMA warp starts both products, which tcgen05 makes in tensor memory, and a warpgroup, a row for each
 * thread, makes probabilities P of the scores S, which go back to tensor memory as the A of the second product.
 *
 * Two pipelines of one stage order the two: S is full when the first product is complete, and empty when the warpgroup
 * has read it; P is full when the warpgroup has written it, and O is corrected for the new maxima, and empty when the second
 * product is complete.
 */
#include "attention_run.h"

#include <cptx/cptx.h>
#include <cptx/roles.h>
#include <cptx/softmax.h>
#include <cptx/tmem.h>

enum { D = ATTENTION_D, QUERIES = 128, KEYS = 64, THREADS = 192, STAGES = 2 };
enum { S_AT = 0, P_AT = KEYS, O_AT = P_AT + KEYS / 2, COLUMNS = O_AT + D }; /* columns of tensor memory */

typedef struct kernel {
	attention_kernel a;
	cptx_pipe s_pipe, p_pipe;
	cptx_tiled_mma qk, pv;
	cptx_acc s, o; /* in tensor memory */
	cptx_val p;    /* tensor memory address */
} kernel;

/* Starts S = Q * K^T of the next keys. */
static void multiply_qk(kernel *x, cptx_pipe_at *at, cptx_pipe_at *s)
{
	const attention_kernel *a = &x->a;
	cptx_kernel *k = a->k;

	cptx_pipe_wait_full(k, &a->pipe, at);
	cptx_pipe_wait_empty(k, &x->s_pipe, s);
	cptx_val q = cptx_operand_at(k, &a->q, 0), k_tile = cptx_operand_at(k, &a->key, at->stage);
	cptx_mma_tile(k, &x->qk, &x->s, q, k_tile, .fresh = true);
	cptx_mma_commit(k, &x->qk, cptx_pipe_full(s));
	cptx_pipe_next(k, &x->s_pipe, s);
	cptx_pipe_next(k, &a->pipe, at);
}

/* One thread: the scores of the next keys are made while the warpgroup works on these. */
static void multiply(kernel *x)
{
	const attention_kernel *a = &x->a;
	cptx_kernel *k = a->k;
	cptx_pipe_at first = cptx_pipe_consumer(k, &a->q_pipe), at = cptx_pipe_consumer(k, &a->pipe);
	cptx_pipe_at ahead = cptx_pipe_consumer(k, &a->pipe);
	cptx_pipe_at s = cptx_pipe_producer(k, &x->s_pipe), p = cptx_pipe_consumer(k, &x->p_pipe);
	cptx_val key = cptx_var(k, CPTX_U32, 0);

	cptx_pipe_wait_full(k, &a->q_pipe, &first);
	multiply_qk(x, &ahead, &s);
	CPTX_FOR(k, key, a->end, KEYS) {
		CPTX_IF(k, cptx_setp(k, cptx_add(k, key, KEYS), a->end, .cmp = CPTX_LT))
			multiply_qk(x, &ahead, &s);
		cptx_pipe_wait_full(k, &x->p_pipe, &p);
		cptx_val v_tile = cptx_operand_at(k, &a->v, at.stage), fresh = cptx_setp(k, key, 0, .cmp = CPTX_EQ);
		cptx_mma_tile(k, &x->pv, &x->o, x->p, v_tile, .fresh_when = fresh);
		cptx_mma_commit(k, &x->pv, cptx_pipe_empty(&p));
		cptx_mma_commit(k, &x->pv, cptx_pipe_empty(&at));
		cptx_pipe_next(k, &x->p_pipe, &p);
		cptx_pipe_next(k, &a->pipe, &at);
	}
}

/* Multiplies O by a row vector; whether behind all products or between two of them, it is complete. */
static cptx_acc scaled(kernel *x, cptx_val rows)
{
	cptx_acc o;

	cptx_acc_load(x->a.k, &x->o, 0, D, &o);
	cptx_acc_scale_rows(x->a.k, &o, rows);
	return o;
}

/* A warpgroup: the softmax of 128 rows. */
static void softmax(kernel *x)
{
	const attention_kernel *a = &x->a;
	cptx_kernel *k = a->k;
	cptx_pipe_at s = cptx_pipe_consumer(k, &x->s_pipe), p = cptx_pipe_producer(k, &x->p_pipe);
	cptx_val key = cptx_var(k, CPTX_U32, 0);
	cptx_acc scores, o;
	cptx_softmax soft;

	cptx_softmax_new(k, &soft, 1, a->scale);
	CPTX_FOR(k, key, a->end, KEYS) {
		cptx_pipe_wait_full(k, &x->s_pipe, &s);
		cptx_acc_load(k, &x->s, 0, KEYS, &scores);
		cptx_pipe_release(k, &x->s_pipe, &s, CPTX_NONE_);
		cptx_pipe_next(k, &x->s_pipe, &s);
		attention_mask(a, &scores, key, KEYS);
		cptx_val correct = cptx_softmax_step(k, &soft, &scores);
		cptx_pipe_wait_empty(k, &x->p_pipe, &p);
		CPTX_IF(k, cptx_setp(k, key, 0, .cmp = CPTX_GT)) {
			o = scaled(x, correct);
			cptx_acc_save(k, &x->o, 0, &o);
		}
		cptx_acc_put_a(k, &scores, CPTX_BF16, x->p, 0);
		cptx_pipe_filled(k, &x->p_pipe, &p);
		cptx_pipe_next(k, &x->p_pipe, &p);
	}
	cptx_pipe_wait_empty(k, &x->p_pipe, &p);
	o = scaled(x, cptx_softmax_end(k, &soft, &scores));
	attention_store(a, &o);
}

static void build(cptx_module *m, const void *self, bool causal)
{
	kernel x = { .a = attention_begin(m, self, causal) };
	attention_kernel *a = &x.a;
	cptx_kernel *k = a->k;
	cptx_roles r;
	cptx_tmem t;

	cptx_roles_begin(k, &r, .threads = THREADS);
	cptx_val first = cptx_setp(k, r.tid, 0, .cmp = CPTX_EQ);
	cptx_params_prefetch(k, &a->params, first);
	cptx_pipe_new(k, &a->q_pipe, .stages = 1);
	cptx_pipe_new(k, &a->pipe, .stages = STAGES);
	cptx_pipe_new(k, &x.s_pipe, .stages = 1, .consumers = 128);
	cptx_pipe_new(k, &x.p_pipe, .stages = 1, .producers = 128);
	cptx_pipe_prepare(k, &a->q_pipe, first);
	cptx_pipe_prepare(k, &a->pipe, first);
	cptx_pipe_prepare(k, &x.s_pipe, first);
	cptx_pipe_prepare(k, &x.p_pipe, first);
	cptx_tiled_mma_new(k, &x.qk, .by = CPTX_BY_TCGEN05, .a = CPTX_BF16, .b = CPTX_BF16, .m = QUERIES, .n = KEYS,
	                   .a_tile = a->q.opt.tile, .b_tile = a->key.opt.tile);
	cptx_tiled_mma_new(k, &x.pv, .by = CPTX_BY_TCGEN05, .a = CPTX_BF16, .b = CPTX_BF16, .m = QUERIES, .n = D,
	                   .a_from = CPTX_A_TMEM, .b_tile = a->v.opt.tile);
	CPTX_TMEM(k, &t, .columns = COLUMNS, .warp = cptx_setp(k, r.warp, 0, .cmp = CPTX_EQ)) {
		cptx_acc_in_tmem(k, &x.qk, &x.s, cptx_offset(t.address, S_AT));
		cptx_acc_in_tmem(k, &x.pv, &x.o, cptx_offset(t.address, O_AT));
		x.p = cptx_offset(t.address, P_AT);
		CPTX_ROLE(k, &r, .warps = 4)
			softmax(&x);
		CPTX_ROLE(k, &r, .warps = 1, .elect = true)
			attention_produce(a, KEYS);
		CPTX_ROLE(k, &r, .warps = 1, .elect = true)
			multiply(&x);
	}
}

const attention attention_sm100a = { "emu:sm_100a", QUERIES, THREADS, 0, build, KEYS, STAGES };

#ifndef EXAMPLES_NO_MAIN
int main(void) { return attention_main(&attention_sm100a); }
#endif
