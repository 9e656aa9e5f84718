/* SPDX-License-Identifier: MIT */
/*
 * v2a: rows of 128 bytes.  A box of the tensor maps is 64 elements along K, so memory is read by whole lines, and a tile
 * takes one copy for each 64 of them.  Rows that lie 128 bytes apart have the same 16 bytes in the same banks; the 128-byte
 * swizzle, which the copy applies and the descriptor names, spreads those of 8 rows over all banks.
 */
#include "ladder.h"

const ladder_rung rung_v2a = {
	.name = "v2a",
	.about = "2-D boxes of 128 bytes, 128-byte swizzle",
	.tile = { .m = ROWS, .n = 128, .k = 128 },
	.swizzle = CPTX_SWIZZLE_128B,
	.mainloop = serial_mainloop,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v2a, argc, argv); }
#endif
