/* SPDX-License-Identifier: MIT */
/* The kernels whose text the golden files keep, and that ptxas must take on every target. */
#ifndef GOLDEN_KERNELS_H
#define GOLDEN_KERNELS_H

#include <cptx/gemm.h>

/* Control flow, functions and variables; its calls stand at lines of "flow.c", whatever the build is called. */
void build_flow(cptx_module *m);

#endif
