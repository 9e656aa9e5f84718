/* SPDX-License-Identifier: MIT */
/* Setting up of v6 and v7, and the handing over of accumulators. */
#include "persistent.h"

persistent persistent_begin(cptx_module *m, const ladder_rung *rung, const ladder_opt *o)
{
	persistent p = { .g = gemm_begin(m, rung, o, WARPS * WARP_THREADS) };
	cptx_kernel *k = p.g.k;

	p.first = gemm_is(&p.g, p.g.tid, 0);
	cptx_pipe_new(k, &p.stages, .stages = o->stages);
	/* the readers of both CTAs give accumulators back to the first */
	cptx_pipe_new(k, &p.accs, .stages = BUFFERS, .consumers = READERS, .multicast = 2);
	cptx_pipe_prepare(k, &p.stages, p.first);
	cptx_pipe_prepare(k, &p.accs, p.first);
	return p;
}

void persistent_run(persistent *p, const roles *r)
{
	const gemm *g = &p->g;
	cptx_kernel *k = g->k;

	CPTX_TMEM(k, &p->tmem, .columns = BUFFERS * g->o->n, .ctas = 2, .warp = gemm_is(g, g->warp, MULTIPLIER)) {
		CPTX_IF(k, gemm_is(g, g->warp, LOADER))
			CPTX_IF(k, gemm_elect(g))
				r->load(p);
		CPTX_IF(k, gemm_is(g, cptx_mad(k, g->rank, WARPS, g->warp, .mode = CPTX_LO), MULTIPLIER))
			CPTX_IF(k, gemm_elect(g))
				r->multiply(p);
		CPTX_IF(k, cptx_setp(k, g->warp, READERS, .cmp = CPTX_LT))
			r->bring_out(p);
	}
}

cptx_val first_tile(const persistent *p) { return cptx_var(p->g.k, CPTX_U32, cptx_clusterid_x(p->g.k)); }

static cptx_val accumulator(const persistent *p, const cptx_pipe_at *acc)
{
	return cptx_mad(p->g.k, acc->stage, p->g.o->n, p->tmem.address, .mode = CPTX_LO);
}

void multiply_tile(const persistent *p, cptx_pipe_at *here, cptx_pipe_at *acc)
{
	cptx_kernel *k = p->g.k;

	cptx_timeline_stamp(k, &p->g.line, CPTX_GEMM_WAIT_ROOM);
	cptx_pipe_wait_empty(k, &p->accs, acc);
	cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
	gemm_mma_all(&p->g, accumulator(p, acc), &p->stages, here);
	gemm_commit(&p->g, cptx_pipe_full(acc));
	cptx_pipe_next(k, &p->accs, acc);
	cptx_timeline_stamp(k, &p->g.line, CPTX_TIMELINE_END);
}

cptx_val take_accumulator(const persistent *p, const cptx_pipe_at *acc, cptx_val elected)
{
	cptx_kernel *k = p->g.k;

	cptx_timeline_stamp_when(k, &p->g.line, CPTX_GEMM_WAIT_SUMS, elected);
	cptx_pipe_wait_full(k, &p->accs, acc);
	cptx_timeline_stamp_when(k, &p->g.line, CPTX_GEMM_BRING_OUT, elected);
	cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
	return accumulator(p, acc);
}
