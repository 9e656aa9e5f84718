/* SPDX-License-Identifier: MIT */
/* How a kernel copies by the tensor maps among its parameters: noted while it is built, compared at a launch. */
#ifndef CPTX_IR_MAP_USE_H
#define CPTX_IR_MAP_USE_H

#include <cptx/edit.h>
#include <cptx/tensor_map.h>

/* The register that has the address of a parameter which is a tensor map. */
typedef struct ir_map_param {
	uint32_t reg, param; /* the parameter's place in the list that launches see */
} ir_map_param;

/* A copy by such a map. */
typedef struct ir_map_use {
	uint32_t param;
	bool stores;
	cptx_tensor_map_opt map; /* what the copy needs: mode, type, rank, swizzle, and the box, or channels and pixels */
} ir_map_use;

/* Notes that `address` is that of the latest parameter of the kernel. */
void ir_map_param_note(cptx_kernel *k, cptx_site at, cptx_val address);
/* Notes a copy by the map at `address`; nothing where that is no parameter's. */
void ir_map_use_note(cptx_kernel *k, cptx_site at, cptx_val address, const cptx_tensor_map_opt *map, bool stores);
/* The copies of a kernel of the module, which has them as long as it lives. */
const ir_map_use *ir_map_uses(const cptx_module *m, const char *name, size_t *n);

#endif
