/*
 * Third rung: the tensor memory accelerator reads A and B.
 *
 * One thread of a warp of its own names a box of the matrix, and TMA brings the whole tile, swizzled as ldmatrix wants it,
 * with zeros for what lies outside of the matrix.  The computing warps are rid of addresses, of the registers that hold them
 * and of the instructions that copy.  TMA writes rows of at most 128 bytes with its swizzle, so B, whose rows run along N,
 * comes in boxes of 64 columns; a tile in cptx/layout.h without a pitch lies so by itself.
 *
 * Nor is there a barrier of the CTA in the loop: each stage has an mbarrier that counts the bytes that arrived and one that
 * counts the warps that let it go (cptx/pipeline.h), so warps may be up to a ring apart.  Where shared memory has room for C
 * beside the ring (opt.stay), CTAs are worth keeping: there are as many as the GPU holds, each takes tile after tile, and
 * while its warps store one, the producer is already filling the ring with the next.
 */
#include "hgemm_parts.h"

/* Tile after tile, or the one of this CTA. */
static void consume(hgemm *h, const cptx_pipe *p, cptx_val to)
{
	cptx_kernel *k = h->k;
	cptx_val releases = cptx_setp(k, h->lane, 0, .cmp = CPTX_EQ), id = cptx_var(k, CPTX_U32, cptx_ctaid_x(k));
	cptx_pipe_at at = cptx_pipe_consumer(k, p);

	hgemm_fragments(h);
	if (!h->o->stay) {
		hgemm_tile(h, id);
		hgemm_consume(h, p, &at, releases);
		hgemm_finish(h, to);
		return;
	}
	cptx_val c = cptx_shared_dyn(k, h->t.warps * h->t.c_bytes, 1024, "c");
	cptx_val from = cptx_mad(k, h->warp, h->t.c_bytes, cptx_mov(k, c, .type = CPTX_U32), .mode = CPTX_LO);
	CPTX_WHILE(k, hgemm_has_tile(h, id)) {
		hgemm_tile(h, id);
		hgemm_consume(h, p, &at, releases);
		hgemm_write(h, from, to);
		hgemm_next_tile(h, id);
	}
}

cptx_kernel *hgemm_tma_r_k_stages(cptx_module *m, const hgemm_opt *o)
{
	hgemm h;
	cptx_pipe p;

	hgemm_begin(&h, m, HGEMM_TMA_R, o, hgemm_producers(o));
	cptx_kernel *k = h.k;
	cptx_val map_a = hgemm_map(&h, "map_a"), map_b = hgemm_map(&h, "map_b"), to = cptx_param(k, CPTX_PTR, "C");
	hgemm_sizes(&h, HGEMM_TMA_R);
	cptx_pipe_new(k, &p, .stages = o->stages, .consumers = h.t.warps);
	cptx_pipe_init(k, &p, cptx_setp(k, h.tid, 0, .cmp = CPTX_EQ));

	CPTX_IF(k, hgemm_is_producer(&h)) {
		hgemm_take_registers(&h, true);
		CPTX_IF(k, hgemm_produces(&h))
			hgemm_produce_all(&h, &p, map_a, map_b);
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
