/* SPDX-License-Identifier: MIT */
/*
 * v6: as many pairs of CTAs as the GPU has room for, and each makes one tile after the other.  Setting up is paid for once.
 * Tensor memory holds two accumulators, so the products of the next tile run while four warps of their own bring this one
 * out; a second pipeline, of accumulators, ties the two together as the first ties copies and products.
 *
 * Accumulators are handed over by the commit, to both CTAs, and handed back by the 8 warps that read them, 4 in each CTA, to
 * the first.  Which tiles a pair makes is fixed: its own number, and on by the number of pairs.
 */
#include "persistent.h"

static void load(const persistent *p)
{
	cptx_kernel *k = p->g.k;
	cptx_pipe_at here = cptx_pipe_producer_of(k, &p->stages, cptx_imm(0));
	cptx_val tile = first_tile(p), tiles = gemm_tiles(&p->g);

	CPTX_FOR(k, tile, tiles, cptx_nclusterid_x(k)) {
		gemm_at at = gemm_at_tile(&p->g, tile);
		gemm_load_all(&p->g, &at, &p->stages, &here);
	}
}

static void multiply(const persistent *p)
{
	cptx_kernel *k = p->g.k;
	cptx_pipe_at here = cptx_pipe_consumer(k, &p->stages), acc = cptx_pipe_producer(k, &p->accs);
	cptx_val tile = first_tile(p), tiles = gemm_tiles(&p->g);

	CPTX_FOR(k, tile, tiles, cptx_nclusterid_x(k))
		multiply_tile(p, &here, &acc);
}

static void bring_out(const persistent *p)
{
	cptx_kernel *k = p->g.k;
	cptx_pipe_at acc = cptx_pipe_consumer_of(k, &p->accs, cptx_imm(0));
	gemm_reader reader = { &p->accs, &acc, gemm_elect(&p->g) };
	cptx_val tile = first_tile(p), tiles = gemm_tiles(&p->g);

	CPTX_FOR(k, tile, tiles, cptx_nclusterid_x(k)) {
		gemm_at at = gemm_at_tile(&p->g, tile);
		gemm_epilogue(&p->g, take_accumulator(p, &acc, reader.lane), &at, &reader);
		cptx_pipe_next(k, &p->accs, &acc);
	}
	cptx_timeline_stamp_when(k, &p->g.line, CPTX_TIMELINE_END, reader.lane);
}

static void build(cptx_module *m, const ladder_rung *rung, const ladder_opt *o)
{
	persistent p = persistent_begin(m, rung, o);

	persistent_run(&p, &(roles){ load, multiply, bring_out });
}

const ladder_rung rung_v6 = {
	.name = "v6",
	.about = "persistent, two accumulators",
	.tile = { .m = 2 * ROWS, .n = 256, .k = 64, .stages = 6 },
	.swizzle = CPTX_SWIZZLE_128B,
	.pair = true,
	.persistent = true,
	.staged = true,
	.build = build,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v6, argc, argv); }
#endif
