/* SPDX-License-Identifier: MIT */
/* Tiles of whole numbers in shared memory, for the tests of products. */
#ifndef KIT_TILES_H
#define KIT_TILES_H

#include "on_emu.h"

#include <cptx/mma.h>

enum { MOST = 256 * 256 };

static inline uint32_t bits_of(enum cptx_type t) { return t == CPTX_TF32 ? 32 : t == CPTX_BF16 || t == CPTX_F16 ? 16 : 8; }

/* Whole numbers from -4 to 4 (u8: 0 to 8), in that type. */
static inline uint32_t encode(enum cptx_type t, int v)
{
	static const uint8_t e4m3[] = { 0, 0x38, 0x40, 0x44, 0x48 }, e5m2[] = { 0, 0x3c, 0x40, 0x42, 0x44 };
	static const uint16_t f16[] = { 0, 0x3c00, 0x4000, 0x4200, 0x4400 };
	const uint32_t sign = v < 0, size = (uint32_t)abs(v);
	float f = (float)v;
	uint32_t word;

	memcpy(&word, &f, 4);
	switch (t) {
	case CPTX_BF16: return word >> 16;
	case CPTX_F16: return f16[size] | sign << 15;
	case CPTX_TF32: return word;
	case CPTX_E4M3: return e4m3[size] | sign << 7;
	case CPTX_E5M2: return e5m2[size] | sign << 7;
	case CPTX_U8: return (uint32_t)(v + 4);
	default: return (uint8_t)v;
	}
}

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
	const uint32_t bytes = bits_of(type) / 8;

	x->tile = tile, x->type = type;
	ck_assert_uint_le(cptx_tile_bytes(&tile), sizeof x->image);
	for (uint32_t r = 0; r < tile.rows; r++)
		for (uint32_t c = 0; c < tile.cols; c++) {
			seed = seed * 1103515245 + 12345;
			x->v[r * tile.cols + c] = (int8_t)((int)(seed >> 16) % (2 * most + 1) - most);
			uint32_t word = encode(type, x->v[r * tile.cols + c]);
			memcpy(x->image + cptx_tile_at(&tile, r, c).byte, &word, bytes);
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
