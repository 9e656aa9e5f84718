/* SPDX-License-Identifier: MIT */
/* Tiles of whole numbers in shared memory, for the tests of products. */
#ifndef KIT_TILES_H
#define KIT_TILES_H

#include "on_emu.h"
#include "reference/number.h"

#include <cptx/cptx.h>
#include <cptx/mma.h>

enum { MOST = 256 * 256 };

/* Whole numbers from -4 to 4 (u8: 0 to 8), in that type. */
static inline uint32_t encode(enum cptx_type t, int v) { return (uint32_t)number_bits(t, v + (t == CPTX_U8 ? 4 : 0)); }

typedef struct matrix {
	cptx_tile tile;
	enum cptx_type type;
	int8_t v[MOST];
	uint8_t image[MOST * 2];
} matrix;

static inline int whole_number(const matrix *x, uint32_t r, uint32_t c)
{
	return x->v[r * x->tile.cols + c] + (x->type == CPTX_U8 ? 4 : 0);
}

/* Fills a tile with whole numbers from -most to most, as numbers and as shared memory has it. */
static inline void draw(matrix *x, cptx_tile tile, enum cptx_type type, int most, unsigned seed)
{
	x->tile = tile, x->type = type;
	ck_assert_uint_le(cptx_tile_bytes(&tile), sizeof x->image);
	memset(x->image, 0, cptx_tile_bytes(&tile));
	for (uint32_t r = 0; r < tile.rows; r++)
		for (uint32_t c = 0; c < tile.cols; c++) {
			seed = seed * 1103515245 + 12345;
			x->v[r * tile.cols + c] = (int8_t)((int)(seed >> 16) % (2 * most + 1) - most);
			const cptx_smem_place at = cptx_tile_at(&tile, r, c);
			const uint64_t word = (uint64_t)encode(type, x->v[r * tile.cols + c]) << at.bit;
			for (uint32_t i = 0; 8 * i < at.bit + number_packed_bits(type); i++) /* those of less than 8 bits share bytes */
				x->image[at.byte + i] |= (uint8_t)(word >> 8 * i);
		}
}

/* The dynamic shared memory of a tile, filled from global memory by all threads. */
static inline cptx_val filled(cptx_kernel *k, const cptx_tile *tile, cptx_val from, uint32_t threads, const char *name)
{
	cptx_val to = cptx_mov(k, cptx_shared_dyn(k, cptx_tile_bytes(tile), 1024, name), .type = CPTX_U32);
	cptx_val i = cptx_var(k, CPTX_U32, cptx_mul(k, cptx_tid_x(k), 4, .mode = CPTX_LO));

	CPTX_FOR(k, i, cptx_tile_bytes(tile), threads * 4) {
		cptx_val w =
			cptx_ld(k, cptx_add(k, from, cptx_cvt(k, i, .dtype = CPTX_U64)), .space = CPTX_GLOBAL, .type = CPTX_U32);
		cptx_st(k, cptx_add(k, to, i), w, .space = CPTX_SHARED);
	}
	return to;
}

#endif
