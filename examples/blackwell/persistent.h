/* SPDX-License-Identifier: MIT */
/* What the rungs v6 and v7 have in common: pairs of CTAs that make one tile after the other, six warps each, by their roles.
 */
#ifndef BLACKWELL_PERSISTENT_H
#define BLACKWELL_PERSISTENT_H

#include "ladder.h"

enum { READERS = 4 /* warps */, LOADER = READERS, MULTIPLIER, WARPS, BUFFERS = 2 };

typedef struct persistent {
	gemm g;
	cptx_val first; /* predicate: thread 0 */
	cptx_pipe stages, accs;
	cptx_tmem tmem;
	/* of v7: */
	cptx_tiles tiles;
	cptx_val pieces; /* address */
} persistent;

/* One thread that loads, one of the first CTA that multiplies, and four warps. */
typedef struct roles {
	void (*load)(const persistent *p), (*multiply)(const persistent *p), (*bring_out)(const persistent *p);
} roles;

persistent persistent_begin(cptx_module *m, const ladder_rung *rung, const ladder_opt *o);
void persistent_run(persistent *p, const roles *r);

/* The tile that a cluster makes first, as a variable. */
cptx_val first_tile(const persistent *p);
/* The products of a tile: waits for room, and hands the accumulator over. */
void multiply_tile(const persistent *p, cptx_pipe_at *here, cptx_pipe_at *acc);
/* Waits for an accumulator; its address.  elected: the thread that stamps for its warp. */
cptx_val take_accumulator(const persistent *p, const cptx_pipe_at *acc, cptx_val elected);

#endif
