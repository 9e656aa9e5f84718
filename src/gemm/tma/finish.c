/* SPDX-License-Identifier: MIT */
/* D of the GEMMs by mma.sync: from the accumulators of each warp, by the chain and the stores of <cptx/epilogue.h>. */
#include "gemm/tma/tma.h"

#include <cptx/cptx.h>

/* By TMA a warp rounds a slab of its part into shared memory of its own: no barrier of the CTA, no masks at the edges, and
 * the stores of one tile run beside the mma.sync of the next. */
static void store_by_tma(cptx_kernel *k, const tma_gemm_consumer *c, cptx_epilogue *e)
{
	const cptx_epilogue_dst to = tma_gemm_dst(c->t, c->w);
	cptx_epilogue_ring ring;

	cptx_epilogue_ring_new(k, &ring, .type = c->t->o->out, .tile = c->t->d, .stages = 1, .units = c->warps, .unit = c->warp,
	                       .smem = c->slabs);
	cptx_epilogue_store_tma_(k, CPTX_HERE, e, &ring, &to);
}

/* The rows of one mma.sync after the other: addresses of all rows of D and C at once would take too many registers. */
static void store_by_threads(cptx_kernel *k, const tma_gemm_consumer *c, cptx_epilogue *e, const cptx_acc *acc)
{
	cptx_val d = tma_gemm_matrix(k, c->t, c->w, CPTX_GEMM_MAP_D);
	cptx_acc rows = *acc;

	rows.m = acc->map.rows, rows.atoms_m = 1, rows.rows = acc->atom_rows,
	rows.count = acc->count / or_one(acc->atoms_m); /* none in a kernel with errors */
	for (uint32_t i = 0; i < acc->atoms_m; i++) {
		rows.regs = cptx_slice(acc->regs, i * rows.count, rows.count);
		cptx_val row = i ? cptx_add(k, c->w->m0, i * rows.m) : c->w->m0;
		cptx_epilogue_run(k, e, &rows, .row = row, .col = c->w->n0, .at_store = true);
		tma_gemm_store(k, c->t, c->w, e, d);
	}
}

/* Whether all rows of C and D begin at even elements, and none ends in the midst of a pair. */
static cptx_val begins_even(cptx_kernel *k, const tma_gemm_consumer *c)
{
	const tma_gemm_params *p = &c->w->p;
	const bool some = c->t->o->batched, beta = c->t->o->beta;
	const cptx_val more[] = { p->N, beta ? p->ldc : (cptx_val){ 0 }, some ? p->step_d : (cptx_val){ 0 },
		                      some && beta ? p->step_c : (cptx_val){ 0 } };
	cptx_val all = tma_gemm_ld(k, c->t, c->w, GEMM_D);

	for (size_t i = 0; i < ARRAY_LEN(more) && tma_gemm_is_strided(c->t); i++)
		if (more[i].kind != CPTX_VAL_NONE)
			all = cptx_as(cptx_or(k, all, i > 1 ? cptx_cvt(k, more[i], .dtype = CPTX_U32) : more[i], .type = CPTX_B32),
			              CPTX_U32);
	return cptx_setp(k, cptx_and(k, all, 1), 0, .cmp = CPTX_EQ);
}

/* The mainloop leaves no registers for what follows from the number of the lane, so it is computed here. */
static void store_tile(cptx_kernel *k, const tma_gemm_consumer *c, cptx_val lane)
{
	cptx_epilogue e;
	cptx_acc acc = *c->acc;

	acc.thread = lane;
	acc.row = cptx_add(k, cptx_as(cptx_frag_lane_row(k, &acc.map, lane), CPTX_U32), c->mma->row);
	acc.col = cptx_add(k, cptx_as(cptx_frag_lane_col(k, &acc.map, lane), CPTX_U32), c->mma->col);
	tma_gemm_chain_new(k, c->t, c->w, &e);
	if (tma_gemm_is_map(c->t, CPTX_GEMM_MAP_D)) {
		cptx_epilogue_run(k, &e, &acc, .row = c->w->m0, .col = c->w->n0, .at_store = true);
		store_by_tma(k, c, &e);
	} else if (!c->t->any_row_of_d || c->t->o->unaligned & CPTX_GEMM_D) {
		store_by_threads(k, c, &e, &acc);
	} else { /* two neighbours at once where rows are so aligned */
		cptx_val even = begins_even(k, c);
		for (e.opt.vec = 2; e.opt.vec; e.opt.vec--)
			CPTX_IF(k, e.opt.vec == 2 ? even : cptx_negated(even))
				store_by_threads(k, c, &e, &acc);
	}
}

/* A consumer, and the number of the thread in its warp. */
typedef struct whole_tile {
	const tma_gemm_consumer *c;
	cptx_val lane;
} whole_tile;

static void store_whole(cptx_kernel *k, void *user)
{
	const whole_tile *x = (const whole_tile *)user;

	store_tile(k, x->c, x->lane);
}

void tma_gemm_finish(cptx_kernel *k, const tma_gemm_consumer *c)
{
	whole_tile x = { c, c->lane.kind == CPTX_VAL_NONE ? cptx_laneid(k) : c->lane };

	if (!c->t->o->stream_k) {
		store_whole(k, &x);
		return;
	}
	const tma_gemm_sums sums = tma_gemm_sums_of(k, c->t, c->w, c->warps, CPTX_WARP, c->warp, x.lane);
	tma_gemm_finish_sums(k, c->w, &sums, c->acc->regs, c->first_lane, store_whole, &x);
}
