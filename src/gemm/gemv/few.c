/* SPDX-License-Identifier: MIT */
/*
 * Weights of few bits of the GEMM for few rows: a ring of turns in shared memory, by cp.async.
 *
 * Unpacking takes long, and what is under way meanwhile would take registers that hold a second CTA.  So each thread copies
 * the 16 bytes that it will unpack itself, and no barrier is needed: it waits for its own copies only.  Factors and zero
 * points are in registers a turn before they are used.
 */
#include "gemm/gemv/gemm.h"

#include <cptx/cptx.h>

/* ---- scale factors ---- */

/* The number of group n of the turn at k0, at most that of the last one; without groups there is one of all of K. */
static cptx_val group_of(const gemv *g, cptx_val k0, uint32_t n)
{
	cptx_kernel *k = g->k;

	if (!g->s.group)
		return cptx_imm(0);
	const cptx_val last = cptx_div(k, cptx_sub(k, g->w.p.K, 1), g->s.group);
	return cptx_min(k, cptx_add(k, cptx_div(k, k0, g->s.group), n), last);
}

/* together: all rows of the CTA are there, so those of the lane are eight apart, and so are their factors. */
static void load_scales_of(const gemv *g, gemv_turn *x, cptx_val k0, bool together)
{
	cptx_kernel *k = g->k;
	const tma_gemm_params *p = &g->w.p;
	const cptx_val in[] = { p->weights, p->zeros };

	for (uint32_t n = 0; n < g->s.groups; n++) {
		const cptx_val group = group_of(g, k0, n), each = cptx_shl(k, p->N, 1);
		for (int zero = !g->s.group; zero < (g->o->zeros ? 2 : 1); zero++) {
			cptx_val at = { 0 };
			for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++) {
				if (!together || !i)
					at = cptx_add(k, in[zero], g->s.group ? cptx_mad_wide(k, group, each, g->scale[i]) : g->scale[i]);
				cptx_ld(k, together ? cptx_offset(at, 16 * (int64_t)i) : at, .space = CPTX_GLOBAL, .nc = CPTX_NC,
				        .type = CPTX_B16, .into = zero ? x->raw_zero[n][i] : x->raw_scale[n][i]);
			}
		}
	}
}

/* The factors and zero points of the groups of the turn at k0, if there are any: one for each row of B. */
static void load_scales(const gemv *g, gemv_turn *x, cptx_val k0)
{
	if (!g->s.group && !g->o->zeros)
		return;
	CPTX_IF(g->k, g->all_rows)
		load_scales_of(g, x, k0, true);
	CPTX_ELSE(g->k)
		load_scales_of(g, x, k0, false);
}

/* The .f32 that takes the bias of a weight away, to be added to it: of a zero point of 8 where there is none. */
static cptx_val minus_bias(const gemv *g, cptx_val zero)
{
	cptx_kernel *k = g->k;

	if (!g->o->zeros)
		return cptx_mov(k, -8.0f - GEMV_BIAS, .type = CPTX_F32);
	return cptx_sub(k, -1.0f * GEMV_BIAS, cptx_cvt(k, cptx_as(zero, CPTX_BF16), .dtype = CPTX_F32));
}

/* Factors and zero points as products take them. */
static void ready_scales(const gemv *g, gemv_turn *x)
{
	cptx_kernel *k = g->k;
	const bool centred = g->o->b == CPTX_U4 && !g->o->zeros;
	const cptx_val none = centred ? gemv_zero(k, g->o, (cptx_val){ 0 }) : (cptx_val){ 0 };

	for (uint32_t n = 0; n < g->s.groups; n++)
		for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++) {
			if (g->s.group)
				x->scale[n][i] = cptx_cvt(k, cptx_as(x->raw_scale[n][i], g->o->a), .dtype = CPTX_F32);
			x->zero[n][i] = gemv_is_biased(g->o) ? minus_bias(g, x->raw_zero[n][i])
			                : g->o->zeros        ? gemv_zero(k, g->o, x->raw_zero[n][i])
			                                     : none;
		}
}

/* ---- the ring ---- */

/* Where the thread's chunk of a step and row is in its stage. */
static int64_t chunk_at(const gemv *g, uint32_t step, uint32_t row)
{
	return (int64_t)(step * 2 * g->s.atoms_n + row) * g->s.warps * CPTX_WARP * GEMV_CHUNK;
}

static void next_stage(const gemv *g, cptx_val offset) { tma_gemm_next_offset(g->k, offset, g->s.turn_bytes, g->s.stages); }

/* Begins the copies of the turn at g->k_copy, zeros behind the end of K, and goes on to the one behind it. */
static void copy_turn(const gemv *g)
{
	cptx_kernel *k = g->k;
	const uint32_t by = g->o->bk * g->s.along_k;
	const cptx_val to = cptx_add(k, g->ring, g->to);

	for (uint32_t s = 0; s < g->s.steps; s++) {
		const cptx_val whole = gemv_is_whole(g, gemv_place_in(g, g->k_copy, s), g->s.each);
		const cptx_val bytes = cptx_selp(k, GEMV_CHUNK, 0, whole, .type = CPTX_U32);
		for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++)
			cptx_cp_async(k, cptx_offset(to, chunk_at(g, s, i)), cptx_offset(g->b[i], s * GEMV_LANES * GEMV_CHUNK),
			              GEMV_CHUNK, .src_size = bytes, .cop = CPTX_CG, .l2 = CPTX_L2_256B);
	}
	cptx_cp_async_commit_group(k);
	for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++)
		cptx_add(k, g->b[i], by / 8 * g->s.bits, .into = g->b[i]);
	cptx_add(k, g->k_copy, by, .into = g->k_copy);
	next_stage(g, g->to);
}

static void read_turn(const gemv *g, gemv_turn *x)
{
	cptx_kernel *k = g->k;
	const cptx_val from = cptx_add(k, g->ring, g->from);

	for (uint32_t s = 0; s < g->s.steps; s++)
		for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++) {
			const cptx_val v =
				cptx_ld(k, cptx_offset(from, chunk_at(g, s, i)), .space = CPTX_SHARED, .vec = CPTX_V4, .type = CPTX_B32);
			for (uint32_t w = 0; w < 4; w++)
				x->b[s][i][w] = cptx_elem(v, w);
		}
	next_stage(g, g->from);
}

/* ---- the loop ---- */

static gemv_turn new_turn(const gemv *g)
{
	gemv_turn x = { .b = { { { { 0 } } } } };

	for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++)
		for (uint32_t n = 0; n < g->s.groups; n++)
			x.raw_scale[n][i] = cptx_reg(g->k, CPTX_B16), x.raw_zero[n][i] = cptx_reg(g->k, CPTX_B16);
	return x;
}

static void multiply_turn(const gemv *g, const gemv_turn *x, bool inside)
{
	gemv_turn here = *x;

	ready_scales(g, &here);
	for (uint32_t s = 0; s < g->s.steps; s++)
		gemv_multiply_rows(g, &here, s, inside);
}

/* The oldest turn: it is read, and its stage's predecessor, which was read a turn before, is filled anew. */
static void take_turn(const gemv *g, gemv_turn *x)
{
	cptx_kernel *k = g->k;

	cptx_cp_async_wait_group(k, g->s.stages - 2);
	read_turn(g, x);
	copy_turn(g);
	CPTX_IF(k, gemv_is_whole(g, g->k0, g->o->bk))
		multiply_turn(g, x, true);
	CPTX_ELSE(k)
		multiply_turn(g, x, false);
	gemv_advance_a(g);
}

void gemv_take_few(gemv *g, cptx_val smem)
{
	cptx_kernel *k = g->k;
	const uint32_t by = g->o->bk * g->s.along_k;
	gemv_turn x[2];

	g->ring = cptx_mad(k, g->tid, GEMV_CHUNK, smem, .mode = CPTX_LO);
	g->to = cptx_var(k, CPTX_U32, 0), g->from = cptx_var(k, CPTX_U32, 0);
	g->k_copy = cptx_var(k, CPTX_U32, g->k0);
	for (int i = 0; i < 2; i++) /* they take turns, so that none is moved */
		x[i] = new_turn(g);
	for (uint32_t i = 0; i + 1 < g->s.stages; i++)
		copy_turn(g);
	load_scales(g, &x[0], g->k0);
	CPTX_FOR(k, g->k0, g->end, by) { /* and by in the middle of a turn */
		for (int i = 0; i < 2; i++) {
			load_scales(g, &x[!i], cptx_add(k, g->k0, by));
			take_turn(g, &x[i]);
			if (!i)
				cptx_add(k, g->k0, by, .into = g->k0);
		}
	}
	cptx_cp_async_wait_all(k);
}
