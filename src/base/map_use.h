/* SPDX-License-Identifier: MIT */
/* How a kernel copies by the tensor maps among its parameters: noted while it is built, compared at a launch. */
#ifndef CPTX_BASE_MAP_USE_H
#define CPTX_BASE_MAP_USE_H

#include <cptx/edit.h>

/* The register that has the address of a parameter which is a tensor map. */
typedef struct ir_map_param {
	uint32_t reg, param; /* the parameter's place in the list that launches see */
} ir_map_param;

/* A copy by such a map, and what it needs of it, as fields of cptx_tensor_map_opt. */
typedef struct ir_map_use {
	uint32_t param;
	bool stores;
	uint32_t mode, type, rank, swizzle, box[5], channels, pixels;
} ir_map_use;

/* Notes that `address` is that of the latest parameter of the kernel. */
void ir_map_param_note(cptx_kernel *k, cptx_site at, cptx_val address);
/* Notes a copy by the map at `address`; nothing where that is no parameter's. */
void ir_map_use_note(cptx_kernel *k, cptx_site at, cptx_val address, const ir_map_use *needed);
/* The copies of a kernel, which has them as long as its module lives. */
const ir_map_use *ir_map_uses(const cptx_kernel *k, size_t *n);

#endif
