/* SPDX-License-Identifier: MIT */
/* Attention and the tuning database. */
#ifndef CPTX_ATTENTION_TUNED_H
#define CPTX_ATTENTION_TUNED_H

#include "kit/runner.h"

#include <cptx/attention.h>

/* The options with the best shape that was measured for a problem or near it; those that were given, where the shape is
 * given or none is known.  What was found is kept in *choices, a list of the runner's, whose lock the caller holds. */
const cptx_attention_opt *attention_tuned_choose(kit_runner *r, kit_kept **choices, const cptx_attention_opt *o,
                                                 const cptx_attention_problem *p);

#endif
