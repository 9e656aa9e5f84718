/* SPDX-License-Identifier: MIT */
/* What the GEMM takes from the list options.def: sets of kernels, ranges, whether an option is asked for. */
#ifndef CPTX_GEMM_OPTIONS_H
#define CPTX_GEMM_OPTIONS_H

#include <cptx/gemm.h>

/* GEMM_BY_TMA and so on: bit i is kernel i, in the order mma.sync, mma.sync with scale factors, wgmma, tcgen05,
 * gemv. */
enum {
#define GEMM_SET(set, kernels, bits) GEMM_##set = (bits),
#include "gemm/options.def"
};

/* GEMM_LEAST_stages, GEMM_MOST_stages and so on. */
enum {
#define GEMM_FIELD(id, field, type, set, none, least, most, why, about)                                                     \
	GEMM_LEAST_##field = (least), GEMM_MOST_##field = (most),
#include "gemm/options.def"
};
_Static_assert((int)GEMM_MOST_nparams == (int)CPTX_PARAMS_MOST, "as <cptx/params.h> says");

/* Rows of A up to which gemv is tried beside the kernel that was asked for. */
enum { GEMM_GEMV_ROWS_MOST = 16 };

/* Whether a field of that type asks for something. */
#define GEMM_ASKED_NUMBER(value, none) ((value) > (none))
#define GEMM_ASKED_BOOL(value, none) (value)
#define GEMM_ASKED_TYPE(value, none) ((value) != CPTX_TYPE_NONE)
#define GEMM_ASKED_MMA(value, none) ((value) != 0)
#define GEMM_ASKED_KIND(value, none) ((value) != 0)
#define GEMM_ASKED_EXPERTS(value, none) ((value) != 0)
#define GEMM_ASKED_POINTER(value, none) ((value) != NULL)

#endif
