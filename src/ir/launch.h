/* SPDX-License-Identifier: MIT */
/* The rules of launches, by the host program and by kernels. */
#ifndef CPTX_IR_LAUNCH_H
#define CPTX_IR_LAUNCH_H

#include "base/base.h"
#include <cptx/edit.h>

typedef struct launch_shape {
	uint32_t grid[3], block[3], cluster[3] /* [0] 0: no cluster */;
	uint32_t dyn_smem; /* bytes */
	bool cooperative;  /* all CTAs are there at once, and may wait for one another */
} launch_shape;

/* What a kernel and a device allow. */
typedef struct launch_limits {
	const cptx_kernel_info *kernel;
	const char *device; /* its name, for messages */
	bool clusters;
	uint32_t smem_per_cta, static_smem; /* bytes */
	uint32_t max_threads, regs;         /* max_threads 0: not known */
} launch_limits;

/* Sets an error about a kernel; returns false. */
bool launch_reject(const char *kernel, enum cptx_code code, cptx_site at, cptx_error *err, const char *format, ...)
	CPTX_PRINTF_(5, 6);
uint64_t launch_volume(const uint32_t d[3]); /* UINT64_MAX: that or more */
/* Takes the wanted shape, in which 0 stands for what the kernel says, or 1; false with an error: it cannot be launched so.
 */
bool launch_set_shape(launch_shape *s, const launch_shape *want, const launch_limits *l, cptx_site at, cptx_error *err);
/* Takes another grid. */
bool launch_set_grid(launch_shape *s, const uint32_t grid[3], const cptx_kernel_info *k, cptx_site at, cptx_error *err);

#endif
