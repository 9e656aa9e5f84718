/* SPDX-License-Identifier: MIT */
/* Tiled matrix products and their accumulators. */
#ifndef CPTX_MMA_H
#define CPTX_MMA_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
