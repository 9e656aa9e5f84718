/* SPDX-License-Identifier: MIT */
/*
 * v1a: the least that is a GEMM on tcgen05.  Tiles lie in shared memory without a swizzle: as columns of chunks of 16 bytes,
 * 8 elements along K, each chunk behind the one of the row above.  A box of a 2-D tensor map is one such column, so a tile
 * of 64 elements along K takes 8 copies, of 16 bytes in each row of the matrix.  Nothing overlaps within a CTA: it copies,
 * multiplies, and waits for each; other CTAs of the SM fill the gaps.
 */
#include "ladder.h"

const ladder_rung rung_v1a = {
	.name = "v1a",
	.about = "2-D boxes of 16 bytes, no swizzle",
	.tile = { .m = ROWS, .n = 128, .k = 64 },
	.swizzle = CPTX_SWIZZLE_NONE,
	.mainloop = serial_mainloop,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v1a, argc, argv); }
#endif
