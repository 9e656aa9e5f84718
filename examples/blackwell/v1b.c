/* SPDX-License-Identifier: MIT */
/*
 * v1b: the tiles of v1a by one copy each.  The tensor maps have three dimensions: 8 elements, rows, and groups of 8 elements
 * along K; a box of them is a whole tile, in the order in which it lies in shared memory.  Fewer instructions, the same 16
 * bytes at a time from global memory; and K must be made of whole groups.
 */
#include "ladder.h"

const ladder_rung rung_v1b = {
	.name = "v1b",
	.about = "3-D boxes of 16 bytes, no swizzle",
	.tile = { .m = ROWS, .n = 128, .k = 64 },
	.swizzle = CPTX_SWIZZLE_NONE,
	.whole = true,
	.mainloop = serial_mainloop,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v1b, argc, argv); }
#endif
