/* SPDX-License-Identifier: MIT */
/*
 * Tensor maps as instructions use them: read and checked, and the box that one takes at given coordinates as spans of a bulk
 * copy.
 */
#ifndef CPTX_EMU_ASYNC_TMA_H
#define CPTX_EMU_ASYNC_TMA_H

#include "emu/async/bulk.h"

#include <cptx/tensor_map.h>

enum tma_mode { TMA_TILE, TMA_ROWS /* gather4, scatter4 */, TMA_IM2COL, TMA_IM2COL_W, TMA_IM2COL_W_128 };
enum tma_direction { TMA_LOAD, TMA_STORE, TMA_REDUCE, TMA_PREFETCH };

/* A use of a map by a thread. */
typedef struct tma_use {
	emu_warp *w;
	const emu_op *op;
	unsigned lane;
	enum tma_mode mode;
	enum tma_direction direction;
	uint32_t dims; /* that the instruction names */
	int32_t coord[5];
	uint32_t offset[3];                /* im2col: W, H, D; along W: halo and offset */
	cptx_tensor_map_opt map;           /* tma_fetch fills it in */
	uint64_t stride[CPTX_TENSOR_RANK]; /* bytes */
	emu_place at;                      /* of the map */
} tma_use;

/* Reads the map at a generic address and checks it, and that it fits the instruction; false with a finding. */
bool tma_fetch(tma_use *u, const emu_arg *map);
/* The box as spans, and all else that follows from the map; false with a finding. */
bool tma_box(const tma_use *u, bulk_copy *b);
/* The type of the map as an operand of arithmetic; NONE: there is none. */
unsigned tma_arithmetic(enum cptx_tensor_type type);
/* Makes a finding about the map; false. */
bool tma_wrong(const tma_use *u, const char *format, ...) CPTX_PRINTF_(2, 3);

/* tensormap.c: whether what threads have made of the map at the address is visible to this one; false with a finding. */
bool tensormap_visible(const tma_use *u, const emu_place *p);
void emu_tensormaps_free(struct emu_tensormaps *t);

#endif
