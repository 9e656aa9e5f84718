/* SPDX-License-Identifier: MIT */
/*
 * Fourth kernel of the ladder: TMA writes C too, and the pipeline never drains.
 *
 * Each warp rounds its part of C into shared memory of its own, and TMA stores it in boxes of 64 columns: no barrier of the
 * CTA, no addresses, no masks at the edges, and the stores of one tile run beside the mma of the next.  Its CTAs are always
 * persistent.
 *
 * Ordinary stores to shared memory use the generic proxy, TMA reads by the asynchronous one: a fence stands between them.
 * The buffer may be written again when the bulk group has read it, not only when the group has written C.
 */
#include "hgemm_parts.h"

/* Stores the warp's part of C; `from`: its place in shared memory. */
static void store(const hgemm *h, cptx_val map_c, cptx_val from)
{
	cptx_kernel *k = h->k;
	cptx_val x = cptx_add(k, h->n0, h->warp_n), y = cptx_add(k, h->m0, h->warp_m);

	CPTX_IF(k, hgemm_elected(h))
		cptx_cp_async_bulk_wait_group(k, 0, .read = CPTX_READ);
	cptx_bar_warp_sync(k, -1);
	hgemm_round(h, from);
	cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_warp_sync(k, -1);
	CPTX_IF(k, hgemm_elected(h)) {
		for (uint32_t j = 0; j < h->t.c.cols; j += HGEMM_SPAN) {
			cptx_val corner = cptx_vec(k, cptx_as(cptx_add(k, x, j), CPTX_S32), cptx_as(y, CPTX_S32));
			cptx_cp_async_bulk_tensor_store(k, map_c, corner, cptx_offset(from, cptx_tile_at(&h->t.c, 0, j).byte),
			                                .dim = CPTX_DIM_2D);
		}
		cptx_cp_async_bulk_commit_group(k);
	}
}

static void consume(hgemm *h, const cptx_pipe *p, cptx_val map_c)
{
	cptx_kernel *k = h->k;
	cptx_val from = hgemm_part_of(h, hgemm_own_c(h), h->warp), id = cptx_var(k, CPTX_U32, cptx_ctaid_x(k));
	cptx_val releases = cptx_setp(k, h->lane, 0, .cmp = CPTX_EQ);
	cptx_pipe_at at = cptx_pipe_consumer(k, p);

	hgemm_fragments(h);
	CPTX_IF(k, hgemm_has_tile(h, id))
		hgemm_consume_first(h, p, &at);
	CPTX_WHILE(k, hgemm_has_tile(h, id)) {
		hgemm_tile(h, id);
		hgemm_next_tile(h, id);
		hgemm_consume(h, p, &at, releases, hgemm_has_tile(h, id));
		store(h, map_c, from);
	}
	CPTX_IF(k, hgemm_elected(h))
		cptx_cp_async_bulk_wait_group(k, 0);
}

cptx_kernel *hgemm_tma_rw_k_stages(cptx_module *m, const hgemm_opt *o)
{
	hgemm h;
	cptx_pipe p;

	hgemm_begin(&h, m, HGEMM_TMA_RW, o, hgemm_producers(o));
	cptx_kernel *k = h.k;
	cptx_val map_a = hgemm_map(&h, "map_a"), map_b = hgemm_map(&h, "map_b"), map_c = hgemm_map(&h, "map_c");
	hgemm_sizes(&h, HGEMM_TMA_RW);
	cptx_pipe_new(k, &p, .stages = o->stages, .consumers = h.t.warps);
	cptx_pipe_init(k, &p, cptx_setp(k, h.tid, 0, .cmp = CPTX_EQ));

	CPTX_IF(k, hgemm_is_producer(&h)) {
		hgemm_take_registers(&h, true);
		CPTX_IF(k, hgemm_produces(&h))
			hgemm_produce_all(&h, &p, map_a, map_b);
	}
	CPTX_ELSE(k) {
		hgemm_take_registers(&h, false);
		consume(&h, &p, map_c);
	}
	return k;
}

#ifndef EXAMPLES_NO_MAIN
#include "hgemm_run.h"

int main(int argc, char **argv) { return hgemm_main(HGEMM_TMA_RW, argc, argv); }
#endif
