/*
 * Third rung: the tensor memory accelerator reads A and B.
 *
 * One thread of a warp of its own names a box of the matrix, and TMA brings the whole tile, swizzled as ldmatrix wants it,
 * with zeros for what lies outside of the matrix.  The computing warps are rid of addresses, of the registers that hold them
 * and of the instructions that copy.  TMA writes rows of at most 128 bytes with its swizzle, so B, whose rows run along N,
 * comes in boxes of 64 columns; a tile in cptx/layout.h without a pitch lies so by itself.
 *
 * Nor is there a barrier of the CTA in the loop: each stage has an mbarrier that counts the bytes that arrived and one that
 * counts the warps that let it go (cptx/pipeline.h), so warps may be up to a ring apart.
 */
#include "hgemm_parts.h"

cptx_kernel *hgemm_tma_r_k_stages(cptx_module *m, const hgemm_opt *o)
{
	hgemm h;
	cptx_pipe p;

	hgemm_begin(&h, m, HGEMM_TMA_R, o, hgemm_producers(o));
	cptx_kernel *k = h.k;
	cptx_val map_a = hgemm_map(&h, "map_a"), map_b = hgemm_map(&h, "map_b"), to = cptx_param(k, CPTX_PTR, "C");
	hgemm_sizes(&h, HGEMM_TMA_R);
	hgemm_tile(&h, cptx_ctaid_x(k));
	cptx_pipe_new(k, &p, .stages = o->stages, .consumers = h.t.warps);
	cptx_pipe_init(k, &p, cptx_setp(k, h.tid, 0, .cmp = CPTX_EQ));

	CPTX_IF(k, hgemm_is_producer(&h)) {
		hgemm_take_registers(&h, true);
		CPTX_IF(k, hgemm_produces(&h)) {
			cptx_pipe_at at = cptx_pipe_producer(k, &p);
			hgemm_produce(&h, &p, &at, map_a, map_b);
		}
	}
	CPTX_ELSE(k) {
		hgemm_take_registers(&h, false);
		cptx_pipe_at at = cptx_pipe_consumer(k, &p);
		hgemm_fragments(&h);
		hgemm_consume(&h, &p, &at, cptx_setp(k, h.lane, 0, .cmp = CPTX_EQ));
		hgemm_finish(&h, to);
	}
	return k;
}

#ifndef EXAMPLES_NO_MAIN
#include "hgemm_run.h"

int main(int argc, char **argv) { return hgemm_main(HGEMM_TMA_R, argc, argv); }
#endif
