/* SPDX-License-Identifier: MIT */
/*
 * NVRTC compiles for a machine (sm_90) or to PTX (compute_90).  Programs that ask for the machine code get the PTX that it
 * was made of: cuModuleLoadData here takes either for an image, and only the latter can be emulated.
 */
#include "san.h"

#include <dlfcn.h>

/* The function of NVRTC itself; NULL: it is not loaded. */
static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

SAN_API int nvrtcGetCUBINSize(void *program, size_t *size);
SAN_API int nvrtcGetCUBIN(void *program, char *code);

enum { INVALID_INPUT = 3 /* nvrtcResult */ };

SAN_API int nvrtcGetCUBINSize(void *program, size_t *size)
{
	int (*get)(void *program, size_t *size);

	*(void **)&get = next("nvrtcGetPTXSize");
	return get ? get(program, size) : INVALID_INPUT;
}

SAN_API int nvrtcGetCUBIN(void *program, char *code)
{
	int (*get)(void *program, char *code);

	*(void **)&get = next("nvrtcGetPTX");
	return get ? get(program, code) : INVALID_INPUT;
}
