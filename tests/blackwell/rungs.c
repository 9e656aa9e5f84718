/* SPDX-License-Identifier: MIT */
#include "rungs.h"

#include <stdlib.h>

const ladder_rung *const rungs[RUNGS] = { &rung_v1a, &rung_v1b, &rung_v2a, &rung_v2b, &rung_v3,
	                                      &rung_v4,  &rung_v5,  &rung_v6,  &rung_v7 };

ladder_opt rung_small(const ladder_rung *rung, enum cptx_type in, enum cptx_type out)
{
	ladder_opt o = rung->tile;

	o.in = in, o.out = out;
	o.n = rung->store_map ? 64 : 32;
	o.k = rung->swizzle ? 64 : 32;
	o.stages = 2;
	return o;
}

unsigned rung_seeds(unsigned otherwise)
{
	const char *s = getenv("CPTX_SEEDS");

	return s ? (unsigned)atoi(s) : otherwise;
}
