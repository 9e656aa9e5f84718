/* SPDX-License-Identifier: MIT */
/*
 * v6: as many pairs of CTAs as the GPU has room for, and each computes one tile after the other.  The setup is paid for
 * once. Tensor memory holds two accumulators, so the products of the next tile run while four epilogue warps store this one;
 * a second pipeline, of accumulators, ties the two together as the first ties copies and products.
 *
 * The commit fills an accumulator, in both CTAs; the 8 warps that read it, 4 in each CTA, release it to the first CTA.
 * Which tiles a pair computes is fixed: its own number, and on by the number of pairs.
 */
#include "ladder.h"

const ladder_rung rung_v6 = {
	.name = "v6",
	.about = "persistent, two accumulators",
	.tile = { .m = 2 * ROWS, .n = 256, .k = 64, .stages = 6 },
	.swizzle = CPTX_SWIZZLE_128B,
	.pair = true,
	.schedule = CPTX_TILES_PERSISTENT,
	.staged = true,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v6, argc, argv); }
#endif
