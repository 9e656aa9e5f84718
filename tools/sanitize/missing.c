/* SPDX-License-Identifier: MIT */
/* Calls of CUDA 13 that are not there: each says so once, and returns cudaErrorNotSupported. */
#include "san.h"

#include <string.h>

#define MISSING(name)                                                                                                       \
	SAN_API int name(void);                                                                                                 \
	SAN_API int name(void) { return san_missing(#name); }
#include "missing.def"
#undef MISSING

bool san_is_missing(const char *name)
{
	static const char *const names[] = {
#define MISSING(name) #name,
#include "missing.def"
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}
