/* SPDX-License-Identifier: MIT */
/*
 * V of 8 bits turned around in shared memory: wgmma reads such a B only with its K, which are V's keys, contiguous.
 *
 * A piece is 32 keys of 16 columns.  ldmatrix.trans takes pairs of columns for elements of 16 bits: a thread gets both
 * columns of a pair for two keys beside one another, and again for those 8, 16 and 24 further.  prmt parts the columns, and
 * stmatrix stores 16 keys of a column as one row.  So key 8 h + 2 t + b of each 16 comes to place 4 t + 2 h + b, which is
 * where cptx_acc_as_a has its probability.
 */
#include "attention/sm90/forward.h"

enum { KEYS = 32, COLUMNS = 16, CHUNK = 16, EVEN_BYTES = 0x6420, ODD_BYTES = 0x7531 };

/* The address of a chunk of 16 bytes of a row of a tile of bytes: spans stand behind one another, swizzled. */
static cptx_val chunk_at(cptx_kernel *k, const cptx_tile *tile, bool mn_major, cptx_val start, cptx_val row, cptx_val chunk)
{
	const uint32_t span = cptx_swizzle_get(tile->swizzle)->span, chunks = span / CHUNK,
				   rows = mn_major ? tile->cols : tile->rows;
	const cptx_val in_span =
		cptx_mad(k, cptx_and(k, chunk, chunks - 1), CHUNK, cptx_mul(k, row, span, .mode = CPTX_LO), .mode = CPTX_LO);
	const cptx_val at = cptx_mad(k, cptx_div(k, chunk, chunks), rows * span, in_span, .mode = CPTX_LO);

	return cptx_add(k, start, cptx_xor(k, at, cptx_and(k, cptx_shr(k, at, 3), (chunks - 1) * CHUNK)));
}

static void turn_piece(cptx_kernel *k, const shape90 *s, cptx_val piece, cptx_val lane, cptx_val from, cptx_val to)
{
	const uint32_t across = s->v.cols / KEYS;
	const cptx_val keys = cptx_rem(k, piece, across), columns = cptx_div(k, piece, across);
	const cptx_val key = cptx_mad(k, keys, KEYS, lane, .mode = CPTX_LO);
	const cptx_val in =
		cptx_ldmatrix(k, chunk_at(k, &s->v, true, from, key, columns), .num = CPTX_X4, .trans = true, .space = CPTX_SHARED);
	const cptx_val out = cptx_regs(k, CPTX_B32, 4);

	for (uint32_t i = 0; i < 4; i++)
		cptx_prmt(k, cptx_elem(in, i / 2 * 2), cptx_elem(in, i / 2 * 2 + 1), i % 2 ? ODD_BYTES : EVEN_BYTES,
		          .into = cptx_elem(out, i));
	/* lane i has the address of row i % 8 of matrix i / 8: the even columns of the first 16 keys, the odd ones, and so on */
	const cptx_val pair = cptx_mul(k, cptx_and(k, lane, 7), 2, .mode = CPTX_LO), odd = cptx_and(k, cptx_shr(k, lane, 3), 1);
	const cptx_val column = cptx_mad(k, columns, COLUMNS, cptx_add(k, pair, odd), .mode = CPTX_LO);
	const cptx_val half = cptx_mad(k, keys, KEYS / CHUNK, cptx_shr(k, lane, 4), .mode = CPTX_LO);
	cptx_stmatrix(k, chunk_at(k, &s->turned, false, to, column, half), out, .num = CPTX_X4, .space = CPTX_SHARED);
}

void attention_sm90_turn(cptx_kernel *k, const shape90 *s, cptx_val warp, cptx_val lane, cptx_val from, cptx_val to)
{
	const uint32_t pieces = s->v.cols / KEYS * (s->dim_v / COLUMNS);
	const cptx_val piece = cptx_var(k, CPTX_U32, warp);

	CPTX_FOR(k, piece, pieces, s->turners)
		turn_piece(k, s, piece, lane, from, to);
	cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_warp_sync(k, -1);
}
