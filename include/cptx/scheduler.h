/* SPDX-License-Identifier: MIT */
/* Tile schedulers: which tiles a CTA computes, in which order. */
#ifndef CPTX_SCHEDULER_H
#define CPTX_SCHEDULER_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
