/* SPDX-License-Identifier: MIT */
/* What the tests of the ladder share. */
#ifndef TEST_RUNGS_H
#define TEST_RUNGS_H

#include "ladder.h"

#include <cptx/emu.h>

enum { RUNGS = 9 };
extern const ladder_rung *const rungs[RUNGS];

/* A tile that is small for the emulator: every stage is used several times by a small problem. */
ladder_opt rung_small(const ladder_rung *rung, enum cptx_type in, enum cptx_type out);

/* $CPTX_SEEDS, or so many. */
unsigned rung_seeds(unsigned otherwise);

#endif
