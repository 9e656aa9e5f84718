/* SPDX-License-Identifier: MIT */
/* Reductions over a warp, a CTA, a cluster and the grid. */
#ifndef CPTX_REDUCE_H
#define CPTX_REDUCE_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
