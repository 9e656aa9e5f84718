/* SPDX-License-Identifier: MIT */
/*
 * Weights of 4 and 8 bits times activations of 16, by wgmma: the weights are the first operand, which comes from registers,
 * so the tile is swapped; activations are the second one, in shared memory, as always.
 *
 * A stage has 128 elements along K of each row of weights, or half of that.  A thread needs elements 2 q, 2 q + 1, 2 q + 8
 * and 2 q + 9 of each 16 (q: its place in the quad), which are pair q of two times 8 weights, one word of 4 bits each
 * (cptx_gemm_pack_weights) or two of 8: so all four threads of a quad read the same words, which shared memory gives to all
 * at once, and each takes its own pair out of them.
 *
 * Sums of a group are multiplied by its factors in f32.  Factors and zero points come with each stage.
 *
 * Of a tile with 64 rows of weights two or four warpgroups take the K tiles in turns, so that while some wait others unpack.
 */
#include "gemm/gemv/gemm.h"
#include "gemm/sm90/gemm.h"

#include <cptx/cptx.h>

enum { CHUNK = 16, WORDS = 4 /* of a chunk */, MOST_CHUNKS = 8, NARROW = 64, WIDE = 128 /* elements along K of a stage */ };

#define RULE(ok, ...) TMA_RULE(ok, "sm_90a: " __VA_ARGS__)

uint32_t gemm_sm90_weights_bk(const cptx_gemm_opt *o)
{
	return o->bk == NARROW || (!o->bk && o->scale_k % WIDE) ? NARROW : WIDE;
}

bool gemm_sm90_weights_check(const cptx_gemm_opt *o, cptx_error *err)
{
	const uint32_t bk = gemm_sm90_weights_bk(o);

	if (!tma_gemm_has_weights(o)) {
		RULE(!o->scale_k && !o->zeros, "scale_k or zeros with A of .%s and B of .%s; B of few bits has these",
		     cptx_type_name(o->a), cptx_type_name(o->b));
		return true;
	}
	RULE(is_16_bits(o->a) && (o->b == CPTX_U4 || o->b == CPTX_E2M1 || is_fp8(o->b)),
	     "A of .%s and B of .%s; weights of few bits are a B of u4, e2m1, e4m3 or e5m2, A is bf16 or f16",
	     cptx_type_name(o->a), cptx_type_name(o->b));
	RULE(o->swap, "B of .%s without swap; weights are the first operand of wgmma, which comes from registers",
	     cptx_type_name(o->b));
	RULE(o->scale != CPTX_TYPE_NONE,
	     "B of .%s without scale factors; by wgmma it has these, of the type of A (.scale = .%s)", cptx_type_name(o->b),
	     cptx_type_name(o->a));
	RULE(o->scale == o->a, "B of .%s with scale factors of .%s; they are of the type of A, .%s", cptx_type_name(o->b),
	     cptx_type_name(o->scale), cptx_type_name(o->a));
	RULE(!o->scale_rows,
	     "scale_rows with B of .%s; f32 factors of 1 x 128 elements are of B of e4m3 and e5m2 with such an A",
	     cptx_type_name(o->b));
	RULE(!o->bk || o->bk == NARROW || o->bk == WIDE, "tile K = %u; with weights of few bits it is %d or %d", o->bk, NARROW,
	     WIDE);
	RULE(o->scale_k % bk == 0, "scale_k = %u; it is 0 (one factor for all of K) or a multiple of %u%s", o->scale_k, bk,
	     bk == WIDE ? ", which tile K is; that may be 64, too" : "");
	RULE(!o->zeros || o->b == CPTX_U4, "zero points are of u4, not of .%s", cptx_type_name(o->b));
	RULE(!o->b_n_major && !o->a_m_major, "%s; weights of few bits, and what they multiply, lie along K",
	     o->b_n_major ? "B stored as rows of N" : "A stored as rows of M");
	RULE(!o->batched && !o->grouped && !o->experts && !o->sparse,
	     "B of .%s with matrices of a batch, a list or experts, or a sparse A; weights of few bits are one matrix",
	     cptx_type_name(o->b));
	RULE(!(o->unaligned & CPTX_GEMM_B),
	     "B of .%s is unaligned; rows of weights of few bits have whole 16 bytes, so K is a multiple of %u",
	     cptx_type_name(o->b), CHUNK * 8 / tma_gemm_bits(o->b));
	RULE(!(o->unaligned & CPTX_GEMM_A),
	     "A is unaligned, and beside weights of few bits its rows have whole 16 bytes; gemv reads others, "
	     "where K is a multiple of %u",
	     CHUNK * 8 / tma_gemm_bits(o->b));
	const uint32_t most = o->bm < 192 ? 128 : o->bm < 256 ? 96 : 64; /* by registers, as ptxas 13.0 takes them */
	RULE(o->bn <= most, "tile %ux%u of weights; with %u of their rows %u of A have room in registers", o->bm, o->bn, o->bm,
	     most);
	RULE(or_one(o->per_sm) == 1 || (o->bm == 128 && o->bn <= 16),
	     "tile %ux%u of weights; two CTAs on a multiprocessor have registers for 128 of their rows and 16 of A", o->bm,
	     o->bn);
	return true;
}

static uint32_t row_bytes(const gemm90 *g) { return (uint32_t)tma_gemm_along_a(g->o, g->s.bk); }

/* The rows of the thread from its first one on: two in each 64. */
static uint32_t row_of(const gemm90 *g, uint32_t i) { return i / 2 * BLOCK_M + g->acc.atom_row[i % 2]; }

void gemm_sm90_weights_new(gemm90 *g)
{
	cptx_kernel *k = g->k;
	gemm_weights *x = &g->weights;

	if (!g->s.weights)
		return;
	x->rows = 2 * g->s.blocks, x->per_group = g->o->scale_k / g->s.bk;
	cptx_acc_new(k, &g->mma, &x->part);
	x->chunks = row_bytes(g) / CHUNK;
	/* the swizzle: the number of 128 bytes that a row is in, modulo the chunks, is exclusive-ored with that of a chunk */
	const cptx_val lines =
		cptx_and(k, x->chunks < 8 ? cptx_shr(k, g->acc.row, x->chunks == 2 ? 2 : 1) : g->acc.row, x->chunks - 1);
	const cptx_val row = cptx_mad(k, g->acc.row, row_bytes(g), g->producer.ring[0].smem, .mode = CPTX_LO);
	x->chunk = cptx_mad(k, lines, CHUNK, row, .mode = CPTX_LO);
	x->scale = cptx_mad(k, g->acc.row, 2, g->producer.scales[0].smem, .mode = CPTX_LO);
	x->place = gemv_pair_place(k, g->t.o, cptx_and(k, g->lane, 3));
	x->a = cptx_regs(k, CPTX_B32, g->mma.steps * g->s.blocks * g->mma.a_map.regs);
	x->factor = cptx_regs(k, CPTX_F32, x->rows);
	x->left = cptx_reg(k, CPTX_U32);
	g->left = cptx_pipe_left_none(k, &g->pipe, &g->at);
	if (g->s.slices == 1)
		return;
	x->turn = cptx_var(k, CPTX_U32, g->wg);
	x->sums = cptx_mov(k, cptx_shared_dyn(k, gemm_sm90_slices_bytes(&g->s, g->o->bn), 16, "sums"), .type = CPTX_U32);
	CPTX_FOR(k, cptx_var(k, CPTX_U32, 0), g->wg, 1)
		cptx_pipe_next(k, &g->pipe, &g->at);
}

uint32_t gemm_sm90_slices(uint32_t bn, uint32_t stages)
{
	const uint32_t most = bn <= 32 ? 4 : 2;

	return stages % most == 0 ? most : stages % 2 == 0 ? 2 : 1;
}

uint32_t gemm_sm90_slices_bytes(const gemm_shape *s, uint32_t bn) { return (s->slices - 1) * BLOCK_M * bn * 4; }

void gemm_sm90_weights_begin(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const gemm_weights *x = &g->weights;

	if (!g->s.weights)
		return;
	cptx_acc_clear(k, &g->acc);
	if (x->per_group)
		cptx_mov(k, x->per_group, .into = x->left);
	if (x->per_group && g->o->stream_k)
		cptx_sub(k, x->left, cptx_rem(k, g->w.k_first, x->per_group, .type = CPTX_U32), .into = x->left);
}

/* The factor of a row, from the stage; gives its zero point as gemv_zero makes it. */
static cptx_val load_factor(gemm90 *g, uint32_t i)
{
	cptx_kernel *k = g->k;
	const gemm_weights *x = &g->weights;
	const tma_gemm_ring *ring = &g->producer.scales[0];
	const float times = gemv_weight_factor(g->t.o);
	const cptx_val at = cptx_offset(cptx_mad(k, g->at.stage, ring->apart, x->scale, .mode = CPTX_LO), 2 * row_of(g, i));
	const cptx_val scale = cptx_ld(k, at, .space = CPTX_SHARED, .type = CPTX_B16), factor = cptx_elem(x->factor, i);
	cptx_val zero = { 0 };

	cptx_cvt(k, cptx_as(scale, g->t.o->scale), .dtype = CPTX_F32, .into = factor);
	if (times > 1)
		cptx_mul(k, factor, times, .into = factor);
	if (g->o->zeros)
		zero = cptx_ld(k, cptx_offset(at, tma_gemm_weight_scale_bytes(g->o->bm)), .space = CPTX_SHARED, .type = CPTX_B16);
	return g->t.o->b == CPTX_U4 ? gemv_zero(k, g->t.o, zero) : zero;
}

/* The words of a row of the stage; at: of the thread's first row, where its chunks are. */
static void load_words(gemm90 *g, const cptx_val at[MOST_CHUNKS], uint32_t row, cptx_val word[MOST_CHUNKS * WORDS])
{
	cptx_kernel *k = g->k;

	for (uint32_t c = 0; c < g->weights.chunks; c++) {
		const cptx_val v = cptx_ld(k, cptx_offset(at[c], (int64_t)row * row_bytes(g)), .space = CPTX_SHARED, .vec = CPTX_V4,
		                           .type = CPTX_B32);
		for (uint32_t i = 0; i < WORDS; i++)
			word[c * WORDS + i] = cptx_elem(v, i);
	}
}

/* The fragments of a stage: those of a step have rows r and r + 8 of elements 2 q and following, then of 2 q + 8. */
static void unpack(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const gemm_weights *x = &g->weights;
	const uint32_t regs = g->mma.a_map.regs, words = tma_gemm_bits(g->t.o->b) / 4; /* of 8 weights */
	cptx_val at[MOST_CHUNKS];

	at[0] = cptx_mad(k, g->at.stage, g->producer.ring[0].apart, x->chunk, .mode = CPTX_LO);
	for (uint32_t c = 1; c < x->chunks; c++)
		at[c] = cptx_xor(k, at[0], c * CHUNK, .type = CPTX_B32);
	for (uint32_t i = 0; i < x->rows; i++) {
		cptx_val word[MOST_CHUNKS * WORDS];
		load_words(g, at, row_of(g, i), word);
		const cptx_val zero = load_factor(g, i);
		for (uint32_t s = 0; s < g->mma.steps; s++)
			for (uint32_t half = 0; half < 2; half++) {
				const cptx_val pair = gemv_unpack_pair(k, g->t.o, &word[(2 * s + half) * words], x->place, zero);
				cptx_mov(k, pair, .type = CPTX_B32,
				         .into = cptx_elem(x->a, (s * g->s.blocks + i / 2) * regs + half * 2 + i % 2));
			}
	}
}

/* Adds the sums of the group at hand, times its factors, to those of the tile. */
static void add_group(gemm90 *g)
{
	const gemm_weights *x = &g->weights;

	CPTX_ACC_EACH(&x->part, e)
	cptx_fma(g->k, e.value, cptx_elem(x->factor, e.at_row), cptx_elem(g->acc.regs, e.i), .rnd = CPTX_RN,
	         .into = cptx_elem(g->acc.regs, e.i));
}

/* Products of the fragments; the first ones of a group, or without groups of the tile, begin its sums. */
static void multiply(gemm90 *g, bool first)
{
	cptx_kernel *k = g->k;
	gemm_weights *x = &g->weights;
	const tma_gemm_ring *ring = &g->producer.ring[1];
	const cptx_val b = cptx_offset(cptx_mad(k, g->at.stage, ring->apart, ring->smem, .mode = CPTX_LO), ring->at);

	if (first || !x->per_group || g->s.slices > 1) {
		cptx_mma_tile(k, &g->mma, &x->part, x->a, b, .fresh = first);
		return;
	}
	const cptx_val begins = cptx_setp(k, x->left, x->per_group, .cmp = CPTX_EQ);
	cptx_mma_tile(k, &g->mma, &x->part, x->a, b, .fresh_when = begins);
}

/* Gives back the stage of the turn before. */
static void release_left(gemm90 *g) { cptx_pipe_release(g->k, &g->pipe, &g->left.at, g->left.when); }

/* Behind the last K tile of a tile: no stage is left while the tile is stored. */
static void release_last(gemm90 *g)
{
	release_left(g);
	cptx_mov(g->k, 0, .into = g->left.when);
}

/* The products of a stage, complete; goes on to the next one of this warpgroup.  mbarrier.arrive does not wait for ld of
 * shared memory, and ptxas 13.0 puts it in front of what takes the factors: so a stage is given back in the next turn. */
static void take_stage(gemm90 *g, bool first)
{
	cptx_kernel *k = g->k;

	release_left(g);
	tma_gemm_wait_for_stage(k, &g->pipe, &g->at, &g->line, g->stamps);
	unpack(g);
	multiply(g, first);
	cptx_mma_wait(k, &g->mma, 0);
	cptx_bar_warp_sync(k, 0xffffffffu); /* all lanes have read their words */
	cptx_pipe_leave(k, &g->pipe, &g->left, &g->at, g->releases);
	cptx_pipe_skip(k, &g->pipe, &g->at, g->s.slices);
}

void gemm_sm90_weights_stage(gemm90 *g, bool first)
{
	cptx_kernel *k = g->k;
	gemm_weights *x = &g->weights;

	take_stage(g, first);
	if (!x->per_group)
		return;
	cptx_sub(k, x->left, 1, .into = x->left);
	CPTX_IF(k, cptx_setp(k, x->left, 0, .cmp = CPTX_EQ)) {
		add_group(g);
		cptx_mov(k, x->per_group, .into = x->left);
	}
}

void gemm_sm90_weights_end(gemm90 *g)
{
	cptx_kernel *k = g->k;
	gemm_weights *x = &g->weights;

	release_last(g);
	if (!x->per_group)
		add_group(g);
	else
		CPTX_IF(k, cptx_setp(k, x->left, x->per_group, .cmp = CPTX_NE))
			add_group(g);
}

/* ---- slices: warpgroups that share rows ---- */

/* The sums of all meet in the first one: [slice from 1 on][element][thread]. */
static void add_slices(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const uint32_t of_slice = BLOCK_M * g->o->bn * 4, threads = g->s.consumers * WARPGROUP;
	const cptx_val at = cptx_mad(k, g->lane, 4, g->weights.sums, .mode = CPTX_LO);
	const cptx_val barrier = cptx_mov(k, g->s.consumers + 1, .type = CPTX_U32),
				   is_first = cptx_setp(k, g->wg, 0, .cmp = CPTX_EQ);

	CPTX_IF(k, cptx_negated(is_first)) {
		const cptx_val mine = cptx_mad(k, cptx_sub(k, g->wg, 1), of_slice, at, .mode = CPTX_LO);
		for (uint32_t i = 0; i < g->acc.count; i++)
			cptx_st(k, cptx_offset(mine, (int64_t)i * WARPGROUP * 4), cptx_elem(g->acc.regs, i), .space = CPTX_SHARED);
	}
	cptx_bar_sync(k, barrier, .b = cptx_imm(threads));
	CPTX_IF(k, is_first)
		for (uint32_t i = 0; i < g->acc.count; i++)
			for (uint32_t s = 0; s + 1 < g->s.slices; s++) {
				const cptx_val sum = cptx_elem(g->acc.regs, i);
				const cptx_val more = cptx_ld(k, cptx_offset(at, (int64_t)(s * of_slice + i * WARPGROUP * 4)),
				                              .space = CPTX_SHARED, .type = CPTX_F32);
				cptx_add(k, sum, more, .into = sum);
			}
	cptx_bar_sync(k, barrier, .b = cptx_imm(threads)); /* before the next tile's sums */
}

void gemm_sm90_weights_slice(gemm90 *g)
{
	cptx_kernel *k = g->k;
	gemm_weights *x = &g->weights;

	gemm_sm90_weights_begin(g);
	if (g->o->stream_k)
		cptx_add(k, x->turn, g->w.k_first, .type = CPTX_U32, .into = x->turn);
	CPTX_FOR(k, x->turn, g->w.k_end, g->s.slices) {
		take_stage(g, true);
		add_group(g);
	}
	release_last(g);
	cptx_sub(k, x->turn, g->w.k_end, .type = CPTX_U32, .into = x->turn); /* in the next tile this is its first K tile */
	add_slices(g);
}
