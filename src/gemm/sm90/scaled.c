/* SPDX-License-Identifier: MIT */
/*
 * Scale factors of blocks, f32: of A for 1 x 128 elements, of B for 128 x 128.
 *
 * Tensor cores of sm_90 keep 13 bits of sums of 8-bit floats, and know no factors.  So a K tile, 128 elements, makes sums of
 * its own, which are multiplied by both factors and added to those of the tile in f32.  A warpgroup waits for its wgmma
 * before it does that; with two of them the tensor cores have the products of the other one meanwhile.
 *
 * The factors of A come with each stage, by TMA.  Those of B are few: each thread loads them itself, of the next K tile
 * while this one is multiplied.
 */
#include "gemm/sm90/gemm.h"

enum { BLOCK = 128, FACTOR = 4 /* bytes */ };

static uint32_t width_of(const gemm90 *g) { return g->o->bn / g->s.scale_parts; }

void gemm_sm90_scales_new(gemm90 *g)
{
	cptx_kernel *k = g->k;

	cptx_acc_new(k, &g->mma, &g->part);
	g->of_b = cptx_regs(k, CPTX_F32, g->s.scale_parts);
	for (uint32_t i = 0; i < g->s.scale_parts; i++)
		g->of_b_at[i] = cptx_reg(k, CPTX_U64);
	g->of_a_at = cptx_var(k, CPTX_U32, cptx_mad(k, g->acc.row, FACTOR, g->producer.scales[0].smem, .mode = CPTX_LO));
}

/* Loads the factors of B of the K tile that the addresses are of, and goes on to the next one. */
static void load_of_b(gemm90 *g, cptx_val when)
{
	cptx_kernel *k = g->k;

	for (uint32_t i = 0; i < g->s.scale_parts; i++) {
		cptx_ld(k, g->of_b_at[i], .space = CPTX_GLOBAL, .nc = CPTX_NC, .type = CPTX_F32, .into = cptx_elem(g->of_b, i),
		        .when = when);
		cptx_add(k, g->of_b_at[i], FACTOR, .into = g->of_b_at[i]);
	}
}

/* Columns behind the last one have the scale factors of the last block: nobody stores them. */
void gemm_sm90_scales_begin(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const tma_gemm_work *w = &g->w;
	const cptx_val blocks = cptx_div(k, cptx_add(k, w->in.N, BLOCK - 1), BLOCK), last = cptx_sub(k, blocks, 1);

	const cptx_val z = tma_gemm_z_of(k, &g->t, w, &w->in.of[1]); /* a broadcast B has one set of factors */

	for (uint32_t i = 0; i < g->s.scale_parts; i++) {
		cptx_val block = cptx_shr(k, cptx_add(k, cptx_as(w->n0, CPTX_U32), i * width_of(g)), 7);
		block = cptx_min(k, block, last);
		if (w->z.kind != CPTX_VAL_NONE)
			block = cptx_mad(k, cptx_as(z, CPTX_U32), blocks, block, .mode = CPTX_LO);
		cptx_val index = cptx_mul_wide(k, block, w->k_tiles);
		if (g->o->stream_k)
			index = cptx_add(k, index, cptx_cvt(k, w->k_first, .dtype = CPTX_U64));
		cptx_mad(k, index, FACTOR, w->in.map[CPTX_GEMM_MAP_SCALE_B], .into = g->of_b_at[i], .mode = CPTX_LO);
	}
	if (g->o->experts) { /* copies begin at a multiple of four rows */
		const cptx_val more = cptx_and(k, cptx_as(w->m0, CPTX_U32), 3), row = cptx_add(k, g->acc.row, more);
		cptx_mad(k, row, FACTOR, g->producer.scales[0].smem, .into = g->of_a_at, .mode = CPTX_LO);
	}
	load_of_b(g, (cptx_val){ 0 });
}

/* The products of both scale factors, for each part of the columns and each row of the thread. */
static cptx_val factors(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const uint32_t rows = g->part.rows;
	const cptx_val both = cptx_regs(k, CPTX_F32, g->s.scale_parts * rows);
	const cptx_val at = cptx_mad(k, g->at.stage, g->producer.scales[0].apart, g->of_a_at, .mode = CPTX_LO);

	for (uint32_t r = 0; r < rows; r++) {
		const cptx_val of_a =
			cptx_ld(k, cptx_offset(at, (int64_t)g->part.atom_row[r] * FACTOR), .space = CPTX_SHARED, .type = CPTX_F32);
		for (uint32_t i = 0; i < g->s.scale_parts; i++)
			cptx_mul(k, of_a, cptx_elem(g->of_b, i), .into = cptx_elem(both, i * rows + r));
	}
	return both;
}

void gemm_sm90_scaled_stage(gemm90 *g, cptx_val k_tile, bool fresh)
{
	cptx_kernel *k = g->k;

	cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_WAIT_DATA, g->stamps);
	cptx_pipe_wait_full(k, &g->pipe, &g->at);
	cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_MULTIPLY, g->stamps);
	cptx_mma_stage(k, &g->mma, &g->part, g->at.stage, .fresh = true);
	const cptx_val both = factors(g);
	load_of_b(g, cptx_setp(k, cptx_add(k, k_tile, 1, .type = CPTX_U32), g->w.k_end, .cmp = CPTX_LT));
	cptx_mma_wait(k, &g->mma, 0);
	cptx_bar_warp_sync(k, 0xffffffffu); /* all lanes have read their factors */
	cptx_pipe_release(k, &g->pipe, &g->at, g->releases);
	CPTX_ACC_EACH(&g->part, e)
	{
		const cptx_val factor = cptx_elem(both, e.col / width_of(g) * g->part.rows + e.at_row);
		const cptx_val sum = cptx_elem(g->acc.regs, e.i);
		if (fresh)
			cptx_mul(k, e.value, factor, .into = sum);
		else
			cptx_fma(k, e.value, factor, sum, .rnd = CPTX_RN, .into = sum);
	}
	cptx_pipe_next(k, &g->pipe, &g->at);
}
