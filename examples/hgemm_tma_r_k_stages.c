/* SPDX-License-Identifier: MIT */
/*
 * Third kernel of the ladder: the tensor memory accelerator reads A and B.
 *
 * One thread of a producer warp names a box of the matrix, and TMA copies the whole tile, swizzled as ldmatrix needs it,
 * with zeros for elements outside of the matrix.  The MMA warps need no addresses, no registers that hold them, and no
 * instructions that copy.  TMA writes rows of at most 128 bytes with its swizzle, so B, whose rows run along N, comes in
 * boxes of 64 columns; a tile of cptx/layout.h without a pitch has that layout.
 *
 * The loop has no barrier of the CTA either: each stage has an mbarrier that counts the bytes that arrived, and one that
 * counts the warps that have released it (cptx/pipeline.h), so warps may be up to a ring apart.
 *
 * Where shared memory has room for C beside the ring (opt.stay), CTAs are persistent: each computes tile after tile, and the
 * producer fills the ring with the next one early.  With setmaxnreg the producer is one of four warps, and the other three
 * are epilogue warps: they store a tile, which they get through a pipeline of one stage, while the next is computed.  The
 * MMA warps store the last tile themselves: they are more, and have nothing else to do.
 */
#include "hgemm_parts.h"

typedef struct pipes {
	cptx_pipe ab, c; /* ab: stages of A and B; c: C, from the MMA warps to the epilogue warps */
	cptx_val own_c;
} pipes;

static uint32_t storing_warps(const hgemm *h) { return h->o->stay ? hgemm_producers(h->o) - 1 : 0; }

static void pipes_new(const hgemm *h, pipes *p)
{
	cptx_kernel *k = h->k;
	cptx_val first = cptx_setp(k, h->tid, 0, .cmp = CPTX_EQ);

	cptx_pipe_new(k, &p->ab, .stages = h->o->stages, .consumers = h->t.warps);
	if (h->o->stay)
		p->own_c = hgemm_own_c(h);
	if (storing_warps(h)) {
		cptx_pipe_new(k, &p->c, .stages = 1, .producers = h->t.warps, .consumers = storing_warps(h));
		cptx_pipe_prepare(k, &p->c, first);
	}
	cptx_pipe_init(k, &p->ab, first);
}

/* Rounds a tile into shared memory, for the epilogue warps, or to be stored by this warp.  `leads`: true in one lane. */
static void round_tile(const hgemm *h, const pipes *p, cptx_pipe_at *at, cptx_val part, cptx_val leads, cptx_val to)
{
	cptx_kernel *k = h->k;
	bool others = storing_warps(h);

	if (others)
		cptx_pipe_wait_empty(k, &p->c, at);
	else
		cptx_bar_warp_sync(k, -1); /* all lanes have read the tile before */
	hgemm_round(h, part);
	cptx_bar_warp_sync(k, -1);
	if (!others) {
		hgemm_write(h, part, to);
		return;
	}
	CPTX_IF(k, leads)
		cptx_pipe_filled(k, &p->c, at);
	cptx_pipe_next(k, &p->c, at);
}

static void consume_all(hgemm *h, const pipes *p, cptx_pipe_at *at, cptx_val leads, cptx_val to)
{
	cptx_kernel *k = h->k;
	cptx_val id = cptx_var(k, CPTX_U32, cptx_ctaid_x(k)), part = hgemm_part_of(h, p->own_c, h->warp);
	cptx_pipe_at c_at = { 0 };

	if (storing_warps(h))
		c_at = cptx_pipe_producer(k, &p->c);
	CPTX_WHILE(k, hgemm_has_tile(h, id)) {
		if (!storing_warps(h))
			hgemm_tile(h, id);
		hgemm_next_tile(h, id);
		hgemm_consume(h, &p->ab, at, leads, hgemm_has_tile(h, id));
		round_tile(h, p, &c_at, part, leads, to);
	}
	if (storing_warps(h)) {
		hgemm_tile(h, cptx_sub(k, id, cptx_nctaid_x(k)));
		hgemm_write(h, part, to);
	}
}

/* The MMA warps: compute tile after tile, or the one tile of this CTA. */
static void consume(hgemm *h, const pipes *p, cptx_val to)
{
	cptx_val leads = cptx_setp(h->k, h->lane, 0, .cmp = CPTX_EQ);
	cptx_pipe_at at = cptx_pipe_consumer(h->k, &p->ab);

	hgemm_fragments(h);
	hgemm_consume_first(h, &p->ab, &at);
	if (h->o->stay) {
		consume_all(h, p, &at, leads, to);
		return;
	}
	hgemm_tile(h, cptx_ctaid_x(h->k));
	hgemm_consume(h, &p->ab, &at, leads, (cptx_val){ 0 });
	hgemm_finish(h, to);
}

/* The epilogue warps: store all tiles but the last of this CTA; each warp stores some parts of each. */
static void store(hgemm *h, const pipes *p, cptx_val to)
{
	cptx_kernel *k = h->k;
	cptx_val id = cptx_var(k, CPTX_U32, cptx_ctaid_x(k)), next = cptx_var(k, CPTX_U32, id), part = cptx_reg(k, CPTX_U32);
	cptx_val leads = cptx_setp(k, h->lane, 0, .cmp = CPTX_EQ);
	cptx_pipe_at at = cptx_pipe_consumer(k, &p->c);

	hgemm_next_tile(h, next);
	CPTX_WHILE(k, hgemm_has_tile(h, next)) {
		hgemm_tile(h, id);
		cptx_pipe_wait_full(k, &p->c, &at);
		cptx_sub(k, h->warp, h->t.warps + 1, .into = part);
		CPTX_FOR(k, part, h->t.warps, storing_warps(h)) {
			hgemm_warp_part(h, part);
			hgemm_write(h, hgemm_part_of(h, p->own_c, part), to);
		}
		cptx_bar_warp_sync(k, -1);
		cptx_pipe_release(k, &p->c, &at, leads);
		cptx_pipe_next(k, &p->c, &at);
		cptx_mov(k, next, .into = id);
		hgemm_next_tile(h, next);
	}
}

cptx_kernel *hgemm_tma_r_k_stages(cptx_module *m, const hgemm_opt *o)
{
	hgemm h;
	pipes p;

	hgemm_begin(&h, m, HGEMM_TMA_R, o, hgemm_producers(o));
	cptx_kernel *k = h.k;
	cptx_val map_a = hgemm_map(&h, "map_a"), map_b = hgemm_map(&h, "map_b"), to = cptx_param(k, CPTX_PTR, "C");
	hgemm_sizes(&h, HGEMM_TMA_R);
	pipes_new(&h, &p);

	CPTX_IF(k, hgemm_is_producer(&h)) {
		hgemm_take_registers(&h, true);
		CPTX_IF(k, cptx_setp(k, h.warp, h.t.warps, .cmp = CPTX_EQ)) {
			CPTX_IF(k, hgemm_elected(&h))
				hgemm_produce_all(&h, &p.ab, map_a, map_b);
		}
		if (storing_warps(&h))
			CPTX_ELSE(k)
				store(&h, &p, to);
	}
	CPTX_ELSE(k) {
		hgemm_take_registers(&h, false);
		consume(&h, &p, to);
	}
	return k;
}

#ifndef EXAMPLES_NO_MAIN
#include "hgemm_run.h"

int main(int argc, char **argv) { return hgemm_main(HGEMM_TMA_R, argc, argv); }
#endif
