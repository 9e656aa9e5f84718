/* SPDX-License-Identifier: MIT */
/*
 * v7: the hardware schedules tiles while the kernel runs.  There are as many pairs as tiles, but a pair that runs asks the
 * hardware to cancel a pair that has not begun, and computes its tile instead (clusterlaunchcontrol.try_cancel): SMs that
 * other work holds, or that are slower, get fewer tiles, and the kernel still pays for its setup once for each SM.
 *
 * The producer asks for the next tile before it copies this one, as <cptx/scheduler.h> does with CPTX_TILES_CANCEL: the
 * answer comes to both CTAs, and the last of their warps to read it makes room for the next question.
 *
 * D is stored as A and B were loaded: warps write rounded sums to shared memory, swizzled so that banks do not collide, and
 * a tensor map stores 32 rows at once, cut off at the edges of D.  One tile is written while TMA reads the other.
 */
#include "ladder.h"

const ladder_rung rung_v7 = {
	.name = "v7",
	.about = "tiles scheduled by the hardware, D stored by a tensor map",
	.tile = { .m = 2 * ROWS, .n = 256, .k = 64, .stages = 6 },
	.swizzle = CPTX_SWIZZLE_128B,
	.pair = true,
	.schedule = CPTX_TILES_CANCEL,
	.store_map = true,
	.staged = true,
};

#ifndef EXAMPLES_NO_MAIN
int main(int argc, char **argv) { return ladder_main(&rung_v7, argc, argv); }
#endif
