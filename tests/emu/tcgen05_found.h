/* SPDX-License-Identifier: MIT */
/* Kernels with mistakes around tcgen05, which must be found, and without, which must not. */
#ifndef CPTX_TEST_TCGEN05_FOUND_H
#define CPTX_TEST_TCGEN05_FOUND_H

#include "trial.h"

void tcgen05_findings(void);

#endif
