/* SPDX-License-Identifier: MIT */
/*
 * v2b: the tiles of v2a by one copy each, however many spans of 128 bytes they have: 3-D tensor maps as in v1b.  From here
 * on tiles are one span wide, for which both are the same; v3 to v7 take the 2-D map, which leaves K free.
 */
#include "ladder.h"

const ladder_rung rung_v2b = {
	.name = "v2b",
	.about = "3-D boxes of 128 bytes, 128-byte swizzle",
	.tile = { .m = ROWS, .n = 128, .k = 128 },
	.swizzle = CPTX_SWIZZLE_128B,
	.whole = true,
	.mainloop = serial_mainloop,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v2b, argc, argv); }
#endif
