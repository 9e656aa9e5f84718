/*
 * v2a: rows of 128 bytes.  A box of the tensor maps is 64 elements along K, so memory is read by whole lines, and a tile of
 * 64 takes one copy.  Rows that lie 128 bytes apart would have the same banks at the same place; the 128-byte swizzle, which
 * the copy applies and the descriptor names, spreads 8 rows over all of them.
 */
#include "serial.h"

const ladder_rung rung_v2a = {
	.name = "v2a",
	.about = "2-D boxes of 128 bytes, 128-byte swizzle",
	.tile = { .m = ROWS, .n = 128, .k = 128 },
	.swizzle = CPTX_SWIZZLE_128B,
	.build = serial_build,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v2a, argc, argv); }
#endif
