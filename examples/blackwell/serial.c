/* SPDX-License-Identifier: MIT */
/*
 * The kernel of the rungs v1a to v2b: one thing after the other.
 *
 * Thread 0 starts the copies of a tile of A and of B, waits for their bytes, starts the products, and waits for those before
 * it loads over what they read.  Then four warps, 32 lanes of tensor memory each, bring the accumulator out.
 */
#include "serial.h"

void serial_build(cptx_module *m, const ladder_rung *rung, const ladder_opt *o)
{
	gemm g = gemm_begin(m, rung, o, 128);
	cptx_kernel *k = g.k;
	cptx_val bars = cptx_shared(k, CPTX_B64, 3), loaded = bars, used = cptx_offset(bars, 8), done = cptx_offset(bars, 16);
	cptx_val first = gemm_is(&g, g.tid, 0), stage = cptx_mov(k, 0, .type = CPTX_U32);
	cptx_val x = cptx_ctaid_x(k), y = cptx_ctaid_y(k);
	gemm_at at = gemm_at_ctaid(&g, x, y);
	cptx_tmem acc;

	CPTX_IF(k, first) {
		for (int i = 0; i < 3; i++)
			cptx_mbarrier_init(k, cptx_offset(bars, 8 * i), 1, .space = CPTX_SHARED);
		cptx_fence_mbarrier_init(k); /* the copies arrive by the async proxy */
	}
	CPTX_TMEM(k, &acc, .columns = o->n, .warp = gemm_is(&g, g.warp, 1)) {
		cptx_val parity = cptx_var(k, CPTX_U32, 0), at_k = cptx_var(k, CPTX_U32, 0);

		CPTX_IF(k, first) {
			CPTX_FOR(k, at_k, g.K, o->k) {
				cptx_mbarrier_arrive_expect_tx(k, loaded, g.stage_bytes, .space = CPTX_SHARED_CTA, .into = cptx_sink());
				gemm_load(&g, &at, at_k, stage, loaded);
				gemm_wait(&g, loaded, parity);
				gemm_mma(&g, acc.address, stage, cptx_setp(k, at_k, 0, .cmp = CPTX_NE));
				gemm_commit(&g, used);
				gemm_wait(&g, used, parity);
				cptx_xor(k, parity, 1, .into = parity);
			}
			gemm_commit(&g, done);
		}
		gemm_wait(&g, done, cptx_imm(0)); /* once: who waits phase by phase may come two phases late */
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		gemm_epilogue(&g, acc.address, &at, NULL);
	}
}
