/* SPDX-License-Identifier: MIT */
/*
 * Attention forward for sm_90a: O = softmax(Q * K^T / sqrt(D)) * V for each head, causal or not, bf16 in and out.
 *
 * A CTA has 128 queries of a head and goes over the keys, 128 at a time.  A producer warp has TMA copy K and V to a ring
 * of stages; two warpgroups multiply 64 rows each by wgmma.  Scores stay in registers: they become probabilities there, and
 * these the A of the second product.
 */
#include "attention_run.h"

#include <cptx/cptx.h>
#include <cptx/roles.h>
#include <cptx/softmax.h>

enum { D = ATTENTION_D, QUERIES = 128, KEYS = 128, GROUPS = 2, THREADS = 128 * (GROUPS + 1), STAGES = 2 };

/* A warpgroup: 64 rows of O. */
static void consume(attention_kernel *a, cptx_val group, cptx_val lane)
{
	cptx_kernel *k = a->k;
	cptx_pipe_at first = cptx_pipe_consumer(k, &a->q_pipe), at = cptx_pipe_consumer(k, &a->pipe);
	cptx_val key = cptx_var(k, CPTX_U32, 0), is_first = cptx_setp(k, lane, 0, .cmp = CPTX_EQ);
	cptx_tiled_mma qk, pv;
	cptx_acc s, o;
	cptx_softmax soft;

	cptx_tiled_mma_new(k, &qk, .by = CPTX_BY_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .m = 64, .n = KEYS, .units_m = GROUPS,
	                   .unit = group, .thread = lane, .a_tile = a->q.opt.tile, .b_tile = a->key.opt.tile);
	cptx_tiled_mma_new(k, &pv, .by = CPTX_BY_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .m = 64, .n = D, .units_m = GROUPS,
	                   .unit = group, .thread = lane, .a_from = CPTX_A_REGS, .b_tile = a->v.opt.tile);
	cptx_acc_new(k, &qk, &s);
	cptx_acc_new(k, &pv, &o);
	cptx_acc_clear(k, &o);
	cptx_softmax_new(k, &soft, s.rows, a->scale);
	cptx_pipe_wait_full(k, &a->q_pipe, &first);
	CPTX_FOR(k, key, a->end, KEYS) {
		cptx_pipe_wait_full(k, &a->pipe, &at);
		cptx_val q = cptx_operand_at(k, &a->q, 0), k_tile = cptx_operand_at(k, &a->key, at.stage);
		cptx_mma_tile(k, &qk, &s, q, k_tile, .fresh = true);
		cptx_mma_wait(k, &qk, 0);
		attention_mask(a, &s, key, KEYS);
		cptx_acc_scale_rows(k, &o, cptx_softmax_step(k, &soft, &s));
		cptx_val p = cptx_acc_as_a(k, &s, &pv), v_tile = cptx_operand_at(k, &a->v, at.stage);
		cptx_mma_tile(k, &pv, &o, p, v_tile);
		cptx_mma_wait(k, &pv, 0);
		cptx_pipe_release(k, &a->pipe, &at, is_first);
		cptx_pipe_next(k, &a->pipe, &at);
	}
	cptx_acc_scale_rows(k, &o, cptx_softmax_end(k, &soft, &s));
	attention_store(a, &o);
}

static void build(cptx_module *m, const void *self, bool causal)
{
	attention_kernel a = attention_begin(m, self, causal);
	cptx_kernel *k = a.k;
	cptx_roles r;

	cptx_roles_begin(k, &r, .threads = THREADS);
	cptx_val first = cptx_setp(k, r.tid, 0, .cmp = CPTX_EQ);
	cptx_params_prefetch(k, &a.params, first);
	cptx_pipe_new(k, &a.q_pipe, .stages = 1);
	cptx_pipe_new(k, &a.pipe, .stages = STAGES, .consumers = GROUPS);
	cptx_pipe_prepare(k, &a.q_pipe, first);
	cptx_pipe_init(k, &a.pipe, first);
	CPTX_ROLE(k, &r, .warps = 4, .regs = 24, .elect = true, .exits = true)
		attention_produce(&a, KEYS);
	CPTX_ROLE(k, &r, .warps = 4 * GROUPS, .regs = 240) {
		cptx_val group = cptx_shr(k, cptx_role_warp(k, &r), 2), thread = cptx_and(k, r.tid, 127);
		consume(&a, group, thread);
	}
}

const attention attention_sm90a = { "emu:sm_90a", QUERIES, THREADS, 1, build, KEYS, STAGES };

#ifndef EXAMPLES_NO_MAIN
int main(void) { return attention_main(&attention_sm90a); }
#endif
