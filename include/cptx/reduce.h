/* SPDX-License-Identifier: MIT */
/* Reductions over a warp, a CTA, a cluster and the grid. */
#ifndef CPTX_REDUCE_H
#define CPTX_REDUCE_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How two values become one. */
enum cptx_reduce_op {
	CPTX_REDUCE_SUM, /**< a + b */
	CPTX_REDUCE_MAX, /**< the larger */
	CPTX_REDUCE_MIN  /**< the smaller */
};

#ifdef __cplusplus
}
#endif
#endif
