/* SPDX-License-Identifier: MIT */
/* State spaces, their addresses, and what an address leads to. */
#ifndef CPTX_EMU_MEMORY_PLACE_H
#define CPTX_EMU_MEMORY_PLACE_H

#include "emu/memory/alloc.h"

enum emu_space {
	SPACE_GENERIC,
	SPACE_GLOBAL,
	SPACE_CONST,
	SPACE_SHARED /* of the CTA */,
	SPACE_CLUSTER,
	SPACE_LOCAL,
	SPACE_PARAM,
	SPACE_COUNT
};

/* Generic addresses of the windows.  Shared addresses of 32 bits: rank of the CTA << 24 | offset, from SHARED_FIRST on. */
#define WINDOW_SHARED (UINT64_C(0x7f00) << 32)
#define WINDOW_LOCAL (UINT64_C(0x7f01) << 32)
#define WINDOW_PARAM (UINT64_C(0x7f02) << 32)
#define GLOBAL_FIRST (UINT64_C(0x7e00) << 32)
#define FUNC_FIRST (UINT64_C(0x7f03) << 32)         /* addresses of functions: 16 bytes apart */
#define FUNC_END (FUNC_FIRST + (UINT64_C(1) << 32)) /* nothing is allocated in front of it */
/* The address of a function, by what declares or defines it. */
static inline uint64_t emu_function_at(const cptx_kernel *k)
{
	return FUNC_FIRST + (k->def ? k->def : k)->number * UINT64_C(16);
}
enum { EMU_LOCAL_LIMIT = 512 * 1024 /* bytes of local memory of a thread */ };
enum { SHARED_FIRST = 1024, SHARED_RANK = 24, SHARED_MASK = 0xffffff };

enum emu_access {
	ACCESS_READ = 1,
	ACCESS_WRITE = 2,
	ACCESS_ATOMIC = 4, /* strong too */
	ACCESS_STRONG = 8,
	ACCESS_ASYNC = 16, /* proxy */
	ACCESS_ACQUIRE = 32,
	ACCESS_RELEASE = 64,
	ACCESS_NARROW = 128,     /* of scope .cta or .cluster */
	ACCESS_SILENT = 256,     /* a write of what is there already */
	ACCESS_VALUE = 512,      /* the place has got what is written by now */
	ACCESS_TENSORMAP = 1024, /* by the proxy of tensor maps */
	ACCESS_ANSWER = 2048     /* by the async proxy; threads that read what was there must have fenced that */
};

/* What an address leads to. */
typedef struct emu_place {
	unsigned char *p;
	uint8_t space;         /* never generic */
	emu_cta *cta;          /* SPACE_SHARED, SPACE_CLUSTER: whose */
	emu_alloc *alloc;      /* global and constant memory */
	uint64_t offset;       /* in the space, or the allocation */
	uint8_t *defined;      /* local memory, parameters: a bit per byte of the space; NULL: all are defined */
	struct emu_page *view; /* the cluster's own page that p lies in; NULL: none */
} emu_place;

#endif
