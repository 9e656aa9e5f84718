/* SPDX-License-Identifier: MIT */
/*
 * Fragments of A and B of the sm_120a GEMM.
 *
 * Where K is contiguous, ldmatrix of 16-bit elements fetches the 32 bytes along K of 16 rows that an mma.sync takes.  Where
 * M or N is, ldmatrix.m16n16.trans does, which turns 16 rows of 16 bytes around as it loads them: of bytes only, so that two
 * e2m1 that share one cannot be turned.
 */
#include "gemm/sm120/gemm.h"

static uint32_t bits_of(const gemm120 *g, bool of_b) { return tma_gemm_bits(of_b ? g->o->b : g->o->a); }
static cptx_tile tile_of(const gemm120 *g, bool of_b)
{
	return gemm_sm120_bytes(of_b ? g->o->bn : g->o->bm, of_b ? g->o->b_n_major : g->o->a_m_major);
}

/* A lane has the address of 16 bytes of row `lane` along K; rows of the warp's part of the tile are flipped bits of it. */
static void begin_turned(gemm120 *g, bool of_b, const cptx_tile *t, cptx_val base, sm120_operand *to)
{
	cptx_kernel *k = g->k;
	uint32_t value[5];

	for (uint32_t b = 0; b < 5; b++)
		value[b] = cptx_tile_at(t, 0, 1u << b).byte;
	cptx_val first = cptx_lane_bits(k, g->lane, 5, value, false, (cptx_val){ 0 });
	first = cptx_xor(k, first, of_b ? g->warp_n : g->warp_m);
	for (uint32_t i = 0; i < (of_b ? g->s.wn : g->s.wm) / 16; i++)
		to->at[i] = cptx_add(k, i ? cptx_xor(k, first, cptx_tile_at(t, i * 16, 0).byte) : first, base);
}

void gemm_sm120_begin_operand(gemm120 *g, bool of_b)
{
	cptx_kernel *k = g->k;
	sm120_operand *to = of_b ? &g->b : &g->a;
	cptx_tile t = tile_of(g, of_b);
	cptx_frag f = {
		.kind = of_b ? CPTX_FRAG_MMA_B : CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 32, .bits = 8, .beside = of_b ? 2 : 0
	};
	cptx_val base = of_b ? cptx_add(k, g->ring, g->s.a_bytes) : g->ring;
	cptx_error err;

	if (t.elem.mn_major) {
		begin_turned(g, of_b, &t, base, to);
		return;
	}
	if (!cptx_tile_lines(&t, &f, 0, 0, &to->lines, &err)) {
		cptx_fail(k, "%s", err.text);
		return;
	}
	cptx_lane_lines_begin(k, &to->lanes, &to->lines, g->lane,
	                      cptx_mad(k, of_b ? g->warp_n : g->warp_m, SM120_SPAN, base, .mode = CPTX_LO));
	for (uint32_t step = 0; step < SM120_STEPS; step++) /* computed here, in front of the loop */
		cptx_lane_lines_at(k, &to->lanes, 0, 0, step * SM120_STEP);
}

sm120_operand gemm_sm120_operand_moved(const gemm120 *g, bool of_b, cptx_val by)
{
	const sm120_operand *from = of_b ? &g->b : &g->a;
	sm120_operand to = { .lines = from->lines };

	if (!tile_of(g, of_b).elem.mn_major)
		to.lanes = cptx_lane_lines_moved(g->k, &from->lanes, by);
	for (uint32_t i = 0; i < SM120_MOST_16 && from->at[i].kind != CPTX_VAL_NONE; i++)
		to.at[i] = cptx_add(g->k, from->at[i], by);
	return to;
}

/* 16 bytes of a row are 16 elements; those of 4 and 6 bits come packed and padded, and get a byte each. */
static void load_turned(const gemm120 *g, bool of_b, cptx_val at, cptx_val to)
{
	uint32_t bits = bits_of(g, of_b);
	/* of B the first two are the first 16 along K, of 8 columns each */
	cptx_val r[4] = { cptx_elem(to, 0), cptx_elem(to, of_b ? 2 : 1), cptx_elem(to, of_b ? 1 : 2), cptx_elem(to, 3) };

	cptx_ldmatrix_b8(g->k, at, .shape = CPTX_M16N16, .num = CPTX_X2, .trans = true, .space = CPTX_SHARED,
	                 .dtype = bits == 8 ? CPTX_B8 : CPTX_B8X16,
	                 .src = bits == 8   ? 0
	                        : bits == 4 ? CPTX_B4X16_P64
	                                    : CPTX_B6X16_P32,
	                 .into = cptx_pack(g->k, 4, r));
}

void gemm_sm120_load_fragment(const gemm120 *g, bool of_b, sm120_operand *from, uint32_t row, uint32_t step, cptx_val to)
{
	cptx_kernel *k = g->k;
	cptx_tile t = tile_of(g, of_b);
	uint32_t bits = bits_of(g, of_b);
	bool padded = bits < 8 && !gemm_sm120_packed(g->o);

	if (t.elem.mn_major) {
		load_turned(g, of_b, cptx_offset(from->at[row / 16], cptx_tile_at(&t, 0, step * SM120_STEP).byte), to);
	} else {
		cptx_val at = cptx_lane_lines_at(k, &from->lanes, 0, row, step * SM120_STEP);
		if (padded)
			cptx_ldmatrix_b8(k, at, .shape = CPTX_M8N16, .num = CPTX_X4, .space = CPTX_SHARED, .dtype = CPTX_B8X16,
			                 .src = bits == 4 ? CPTX_B4X16_P64 : CPTX_B6X16_P32, .into = to);
		else
			cptx_lines_load(k, &from->lines, 0, at, to);
	}
	/* e2m1 must stand in bits 2 to 5 of its byte, and ldmatrix leaves it in the lowest */
	for (uint32_t i = 0; i < 4 && bits == 4 && padded; i++)
		cptx_shl(k, cptx_elem(to, i), 2, .into = cptx_elem(to, i));
}
