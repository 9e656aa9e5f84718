/* SPDX-License-Identifier: MIT */
/* A module that uses everything, with every call's memory; shared by the tests of allocators and of threads. */
#ifndef VERIFY_SHAPES_H
#define VERIFY_SHAPES_H

#include <cptx/gemm.h>

/* Fills `m` (which may be NULL) with a function, variables, control flow, packs, text and a small GEMM. */
void build_everything(cptx_module *m);

#endif
