/* SPDX-License-Identifier: MIT */
/* The kernel of the rungs v1a to v2b, which differ in how tiles lie in shared memory and how they get there. */
#ifndef BLACKWELL_SERIAL_H
#define BLACKWELL_SERIAL_H

#include "ladder.h"

void serial_build(cptx_module *m, const ladder_rung *rung, const ladder_opt *o);

#endif
