/* SPDX-License-Identifier: MIT */
/*
 * V of 8 bits turned around in shared memory: wgmma reads such a B only with its K, which are V's keys, contiguous.
 *
 * A block is 32 keys of 16 columns.  ldmatrix.trans takes pairs of columns for elements of 16 bits: a thread gets both
 * columns of a pair for two keys beside one another, and again for those 8, 16 and 24 further.  prmt parts the columns, and
 * stmatrix stores 16 keys of a column as one row.  So key 8 h + 2 t + b of each 16 comes to place 4 t + 2 h + b, which is
 * where cptx_acc_as_a has its probability.
 */
#include "attention/sm90/forward.h"

#include <cptx/cptx.h>

enum { KEYS = 32, COLUMNS = 16, CHUNK = 16, EVEN_BYTES = 0x6420, ODD_BYTES = 0x7531, BATCH = 2 /* loads on their way */ };

static uint32_t span_of(const cptx_tile *tile) { return cptx_swizzle_get(tile->swizzle)->span; }
/* The bits of an address that the swizzle of spans changes. */
static uint32_t swizzled(uint32_t span) { return span - CHUNK; }

/* Bytes from a span's start to a row of it, of which a chunk is to be taken by exclusive or: its number, times 16. */
static cptx_val row_at(cptx_kernel *k, cptx_val row, uint32_t span)
{
	const cptx_val at = cptx_mul(k, row, span, .mode = CPTX_LO);

	return cptx_or(k, at, cptx_and(k, cptx_shr(k, at, 3), swizzled(span)));
}

/* Pieces of the same keys: from, the row of V's first span that the lane reads; to, where it stores of the first columns. */
static void turn_keys(cptx_kernel *k, const shape90 *s, cptx_val from, cptx_val to)
{
	const uint32_t span = span_of(&s->v), blocks = s->dim_v / COLUMNS, each = span / COLUMNS;

	for (uint32_t first = 0; first < blocks; first += BATCH) {
		const uint32_t n = MIN(BATCH, blocks - first);
		cptx_val in[BATCH], out = { 0 };
		for (uint32_t i = 0; i < n; i++) {
			const uint32_t at = first + i;
			const cptx_val chunk = at % each ? cptx_xor(k, from, at % each * CHUNK) : from;
			in[i] = cptx_ldmatrix(k, cptx_offset(chunk, at / each * s->v.cols * span), .num = CPTX_X4, .trans = true,
			                      .space = CPTX_SHARED);
		}
		for (uint32_t i = 0; i < n; i++) {
			out = cptx_regs(k, CPTX_B32, 4);
			for (uint32_t r = 0; r < 4; r++)
				cptx_prmt(k, cptx_elem(in[i], r / 2 * 2), cptx_elem(in[i], r / 2 * 2 + 1), r % 2 ? ODD_BYTES : EVEN_BYTES,
				          .into = cptx_elem(out, r));
			cptx_stmatrix(k, cptx_offset(to, (first + i) * COLUMNS * span_of(&s->turned)), out, .num = CPTX_X4,
			              .space = CPTX_SHARED);
		}
	}
}

void attention_sm90_turn(cptx_kernel *k, const shape90 *s, cptx_val warp, cptx_val lane, cptx_val from, cptx_val to)
{
	const uint32_t span = span_of(&s->turned), halves = span / CHUNK;
	const cptx_val keys = cptx_var(k, CPTX_U32, warp);
	const cptx_val reads = cptx_add(k, from, row_at(k, lane, span_of(&s->v)));
	/* lane i has the address of row i % 8 of matrix i / 8: the even columns of the first 16 keys, the odd ones, and so on */
	const cptx_val pair = cptx_mul(k, cptx_and(k, lane, 7), 2, .mode = CPTX_LO), odd = cptx_and(k, cptx_shr(k, lane, 3), 1);
	const cptx_val writes = cptx_add(k, to, row_at(k, cptx_add(k, pair, odd), span));

	CPTX_FOR(k, keys, s->v.cols / KEYS, s->turners) {
		const cptx_val half = cptx_mad(k, keys, KEYS / CHUNK, cptx_shr(k, lane, 4), .mode = CPTX_LO);
		const cptx_val chunk = cptx_mul(k, cptx_and(k, half, halves - 1), CHUNK, .mode = CPTX_LO);
		const cptx_val in_span = cptx_mad(k, cptx_div(k, half, halves), s->dim_v * span, writes, .mode = CPTX_LO);
		const cptx_val row = cptx_mad(k, keys, KEYS * span_of(&s->v), reads, .mode = CPTX_LO);
		turn_keys(k, s, row, cptx_xor(k, in_span, chunk));
	}
	cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_warp_sync(k, -1);
}
