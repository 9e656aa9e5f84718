/* SPDX-License-Identifier: MIT */
/*
 * The producer of a GEMM by wgmma whose rows of A are gathered (cptx_gemm_opt.gather): TMA of sm_90 copies rows that lie
 * beside one another, so the threads of a warpgroup copy those of A, by cp.async, and one of them has TMA load B.
 *
 * A stage is full when the bytes of B have come and each warp has arrived.  A warp arrives when the copies of all its
 * threads are there and have been made visible to wgmma, which reads by the async proxy.  To have the copies of as many
 * stages under way as there are, it arrives at a stage where it has begun the one that is `behind` stages further: all but
 * two, since MMA warpgroups give a stage back when they have begun the next one.
 */
#include "gemm/tma/tma.h"

#include <cptx/cptx.h>

/* A producer's threads, and what they have begun. */
typedef struct gatherer {
	tma_gemm_producer *p;
	cptx_pipe_at at, full; /* the stage to copy to; the one to arrive at */
	cptx_val begun;        /* .u32, stages from `full` on that were begun */
	cptx_val first, lane0; /* predicates: of one thread, of one of each warp */
} gatherer;

/* The copies of stage g->full are there. */
static void arrive(cptx_kernel *k, gatherer *g)
{
	cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_warp_sync(k, -1);
	CPTX_IF(k, g->lane0)
		cptx_pipe_filled(k, g->p->pipe, &g->full);
	cptx_pipe_next(k, g->p->pipe, &g->full);
	cptx_sub(k, g->begun, 1, .into = g->begun);
}

static void load_b(cptx_kernel *k, const gatherer *g, cptx_val k0)
{
	const tma_gemm_producer *p = g->p;
	const cptx_operand *b = &p->operand[1];

	cptx_pipe_expect(k, p->pipe, &g->at, b->bytes);
	cptx_operand_load(k, b, g->at.stage, p->w->n0, k0, .barrier = cptx_pipe_full(&g->at), .z = p->w->z,
	                  .map = p->w->in.map[CPTX_GEMM_MAP_B]);
}

static void gather_tile(cptx_kernel *k, gatherer *g, cptx_val k0)
{
	tma_gemm_producer *p = g->p;
	const tma_gemm *t = p->t;
	const uint32_t behind = t->o->stages - 2;

	tma_gemm_locate(k, t, p->w, MAP(CPTX_GEMM_MAP_B));
	cptx_mov(k, cptx_as(p->w->expert.row_end, CPTX_U32), .into = p->rows);
	cptx_operand_seek(k, &p->operand[0], &p->from[0], p->w->m0, 0);
	cptx_mov(k, 0, .into = k0);
	CPTX_FOR(k, k0, tma_gemm_k_end(k, t, p->w), t->bk) {
		cptx_timeline_stamp_when(k, p->line, CPTX_GEMM_WAIT_ROOM, g->lane0);
		cptx_pipe_wait_empty(k, p->pipe, &g->at);
		cptx_timeline_stamp_when(k, p->line, CPTX_GEMM_LOAD, g->lane0);
		CPTX_IF(k, g->first)
			load_b(k, g, k0);
		cptx_operand_load_from(k, &p->operand[0], g->at.stage, &p->from[0]);
		cptx_cp_async_commit_group(k);
		cptx_operand_advance(k, &p->operand[0], &p->from[0], 0, t->bk);
		cptx_pipe_next(k, p->pipe, &g->at);
		cptx_add(k, g->begun, 1, .into = g->begun);
		cptx_cp_async_wait_group(k, behind);
		CPTX_IF(k, cptx_setp(k, g->begun, behind, .cmp = CPTX_GT))
			arrive(k, g);
	}
}

cptx_pipe_at tma_gemm_gather(cptx_kernel *k, tma_gemm_producer *p)
{
	gatherer g = { .p = p, .at = cptx_pipe_producer(k, p->pipe), .full = cptx_pipe_producer(k, p->pipe) };
	const cptx_val k0 = cptx_reg(k, CPTX_S32);

	tma_gemm_producer_operands(k, p);
	p->from[0] = cptx_operand_source(k, &p->operand[0], 0, 0);
	g.begun = cptx_var(k, CPTX_U32, 0);
	g.first = cptx_setp(k, p->thread, 0, .cmp = CPTX_EQ);
	g.lane0 = cptx_setp(k, cptx_and(k, p->thread, CPTX_WARP - 1), 0, .cmp = CPTX_EQ);
	CPTX_FOR(k, p->w->at, p->w->end, p->w->step)
		gather_tile(k, &g, k0);
	cptx_cp_async_wait_group(k, 0);
	CPTX_WHILE(k, cptx_setp(k, g.begun, 0, .cmp = CPTX_GT))
		arrive(k, &g);
	cptx_timeline_stamp_when(k, p->line, CPTX_TIMELINE_END, g.lane0);
	return g.at;
}
