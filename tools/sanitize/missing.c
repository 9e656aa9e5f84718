/* SPDX-License-Identifier: MIT */
/* Calls of CUDA 13 that are not there: each says so once, and returns cudaErrorNotSupported. */
#include "san.h"

#define MISSING(name)                                                                                                       \
	SAN_API int name(void);                                                                                                 \
	SAN_API int name(void) { return san_missing(#name); }
#include "missing.def"
#undef MISSING
