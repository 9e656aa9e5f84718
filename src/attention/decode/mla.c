/* SPDX-License-Identifier: MIT */
/*
 * The kernel of multi-head latent attention, where V is the first columns of K: TMA, wgmma, sm_90a.  A CTA has a chunk of
 * the keys of one sequence and 64 packed rows.  A producer thread brings blocks of 64 keys; each block serves both products,
 * as K with keys along N, and as V with keys along K.
 *
 * 64 rows of O of 512 columns are more than the registers of a warpgroup: two have half of the columns each.  A step has
 * two blocks.  Each warpgroup makes the scores of one; both tell one another their maxima, so that their probabilities have
 * the same scale, and then these, by shared memory, since each needs the probabilities of both blocks for its columns of O.
 *
 * A block comes in parts with barriers of their own: the halves that are V of the one and the other warpgroup, and the rest.
 * The rest is let go behind the scores, and a half by the warpgroup whose V it is, so that the next block comes meanwhile.
 */
#include "attention/decode/decode.h"

#include <cptx/cptx.h>
#include <cptx/pipeline.h>
#include <cptx/roles.h>

/* Numbered barriers, the first of both warpgroups; the others have one for each: its P is there; its threads meet. */
enum { MEET = 1, P_READY = 2, GROUP = 4 };
enum { GROUP_THREADS = 128, SPAN = 128 /* bytes */, BLOCKS = DECODE_MLA_GROUPS /* of a step */ };
enum { THREADS = DECODE_MLA_GROUPS * GROUP_THREADS, CHUNKS = SPAN / ATTENTION_CHUNK };
enum { REST = DECODE_MLA_GROUPS /* the part of a block behind the halves */ };

typedef struct mla {
	cptx_kernel *k;
	const cptx_attention_decode_opt *o;
	decode_in in;
	const decode_shape *s;
	cptx_roles roles;
	decode_work w;
	cptx_val q, q_rest, p, rows; /* .u32, shared memory: Q, what of its rest is there, P of both warpgroups, numbers that
	                                threads exchange */
	cptx_operand half, rest;     /* parts of a block: a half has two stages of the ring for each block */
	cptx_pipe pipe;              /* of parts */
	cptx_pipe_at at;             /* the role's: .parity is that of all parts of a step */
	cptx_val slot;               /* .u32, the stage of the step's first block */
	cptx_val last;               /* .u32, the first key of the chunk's last block */

	/* of an MMA warpgroup */
	cptx_val group, other, thread, tid, releases; /* tid: among the threads of both */
	cptx_val q_regs;                              /* the last columns of Q as an A */
	cptx_tiled_mma qk, qk_rest, qk_last;          /* of qk_last A is in registers */
	cptx_tiled_mma pv, pv_other;                  /* of pv A is in registers, of pv_other in shared memory */
	cptx_acc sums, results;
	cptx_softmax soft;
	decode_limits limits;
} mla;

static uint32_t parts_of(const mla *x) { return DECODE_MLA_GROUPS + (x->s->rest != 0); }

static void setup(mla *x)
{
	cptx_kernel *k = x->k;
	const decode_shape *s = x->s;
	cptx_operand_opt part = { .size = CPTX_OPT_SIZE(cptx_operand_opt),
		                      .type = x->o->in,
		                      .tile = s->k,
		                      .stages = DECODE_MLA_GROUPS * x->o->stages,
		                      .batched = true,
		                      .name = "keys_ring",
		                      .batch_dims = 2 };

	cptx_params_declare(k, &x->in.params, decode_map_params, DECODE_MAPS);
	part.map = cptx_params_get(k, &x->in.params, "k_map");
	x->q = cptx_mov(k, cptx_shared_dyn(k, s->q_bytes, 1024, "queries_tile"), .type = CPTX_U32);
	x->p =
		cptx_mov(k, cptx_shared_dyn(k, DECODE_MLA_GROUPS * cptx_tile_bytes(&s->p), 1024, "probabilities"), .type = CPTX_U32);
	cptx_operand_make(k, &x->half, &part);
	if (s->rest) {
		part.tile = s->rest_block, part.stages = x->o->stages, part.name = "rest_ring";
		cptx_operand_make(k, &x->rest, &part);
	}
	if (s->q_rest.cols)
		x->q_rest = cptx_add(k, x->q, DECODE_MLA_GROUPS * cptx_tile_bytes(&s->q));
	x->rows = cptx_mov(k, cptx_shared_dyn(k, THREADS * DECODE_MLA_EXCHANGED, 16, "row_numbers"), .type = CPTX_U32);
	cptx_roles_begin(k, &x->roles, .threads = s->threads);
	const cptx_val first = cptx_setp(k, x->roles.tid, 0, .cmp = CPTX_EQ);
	cptx_params_prefetch(k, &x->in.params, first);
	cptx_pipe_new(k, &x->pipe, .stages = parts_of(x) * x->o->stages);
	cptx_pipe_init(k, &x->pipe, first);
	const cptx_val keys = cptx_sub(k, cptx_sub(k, x->w.end, x->w.first), 1);
	x->last = cptx_add(k, x->w.first, cptx_and(k, keys, ~(x->o->bk - 1)));
}

/* ---- parts of blocks: block 0 or 1 of the step ---- */

static cptx_val stage_of(mla *x, cptx_val block)
{
	return x->slot.kind == CPTX_VAL_INT ? block : cptx_add(x->k, x->slot, block);
}

/* Number `part` of `parts` of a block, among those of all stages. */
static cptx_val number_of(mla *x, cptx_val block, uint32_t parts, cptx_val part)
{
	const cptx_val stage = stage_of(x, block);

	if (stage.kind == CPTX_VAL_INT && part.kind == CPTX_VAL_INT)
		return cptx_mov(x->k, stage.i * parts + part.i, .type = CPTX_U32);
	return cptx_mad(x->k, stage, parts, part, .mode = CPTX_LO, .type = CPTX_U32);
}

static cptx_pipe_at part_at(mla *x, cptx_val block, cptx_val part)
{
	cptx_pipe_at at = x->at;

	at.stage = number_of(x, block, parts_of(x), part);
	at.barrier = cptx_mad(x->k, at.stage, 8, x->at.first, .mode = CPTX_LO);
	return at;
}

static cptx_val half_stage(mla *x, cptx_val block, cptx_val half) { return number_of(x, block, DECODE_MLA_GROUPS, half); }

static cptx_val half_at(mla *x, cptx_val block, cptx_val half)
{
	return cptx_operand_at(x->k, &x->half, half_stage(x, block, half));
}

static void begin_steps(mla *x, cptx_pipe_at at)
{
	x->at = at;
	x->slot = x->o->stages == BLOCKS ? cptx_imm(0) : cptx_var(x->k, CPTX_U32, 0);
}

static void next_step(mla *x)
{
	cptx_kernel *k = x->k;

	if (x->o->stages == BLOCKS) {
		cptx_xor(k, x->at.parity, 1, .into = x->at.parity);
		return;
	}
	cptx_add(k, x->slot, BLOCKS, .into = x->slot);
	const cptx_val around = cptx_setp(k, x->slot, x->o->stages, .cmp = CPTX_EQ);
	cptx_mov(k, 0, .into = x->slot, .when = around);
	cptx_xor(k, x->at.parity, 1, .into = x->at.parity, .when = around);
}

/* ---- the producer: one thread ---- */

/* Where a block's keys are. */
typedef struct place {
	cptx_val row, batch;
} place;

static place place_of(mla *x, cptx_val key)
{
	cptx_kernel *k = x->k;

	if (!x->o->paged)
		return (place){ cptx_as(key, CPTX_S32), x->w.batch };
	const cptx_val page = cptx_div(k, key, x->in.page);
	const cptx_val row = cptx_sub(k, key, cptx_mul(k, page, x->in.page, .mode = CPTX_LO));
	const cptx_val entry = cptx_mad(k, x->w.batch, x->in.page_pitch, page, .mode = CPTX_LO);
	return (place){ cptx_as(row, CPTX_S32), attention_entry(k, x->in.pages, entry, 0) };
}

static void load_part(mla *x, const place *of, uint32_t block, uint32_t part)
{
	cptx_kernel *k = x->k;
	const bool rest = part == REST;
	const cptx_operand *op = rest ? &x->rest : &x->half;
	const cptx_pipe_at at = part_at(x, cptx_imm(block), cptx_imm(part));
	const cptx_val stage = rest ? stage_of(x, cptx_imm(block)) : half_stage(x, cptx_imm(block), cptx_imm(part));

	cptx_pipe_wait_empty(k, &x->pipe, &at);
	cptx_pipe_expect(k, &x->pipe, &at, op->bytes);
	cptx_operand_load(k, op, stage, of[block].row, part * x->s->half, .barrier = cptx_pipe_full(&at), .z = x->w.kv_head,
	                  .z2 = of[block].batch);
}

/* In the order in which parts are let go.  Where the second block would lie behind the keys, the last one comes again: no
 * score of it counts, and its memory is there. */
static void produce(mla *x)
{
	cptx_kernel *k = x->k;
	const cptx_val key = cptx_var(k, CPTX_U32, x->w.first);

	begin_steps(x, cptx_pipe_producer(k, &x->pipe));
	CPTX_FOR(k, key, x->w.end, BLOCKS * x->o->bk) {
		const place first = place_of(x, key);
		const place of[BLOCKS] = { first, place_of(x, cptx_min(k, cptx_add(k, key, x->o->bk), x->last)) };
		for (uint32_t block = 0; block < BLOCKS && x->s->rest; block++)
			load_part(x, of, block, REST);
		for (uint32_t block = 0; block < BLOCKS; block++)
			load_part(x, of, block, block);
		for (uint32_t block = 0; block < BLOCKS; block++)
			load_part(x, of, 1 - block, block);
		next_step(x);
	}
}

/* ---- the MMA warpgroups ---- */

static void fence(mla *x) { cptx_fence_proxy(x->k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA); }
static void meet(mla *x) { cptx_bar_sync(x->k, MEET, .b = cptx_imm(THREADS)); }

/* The tile's packed rows of Q, which lie anywhere; rows that are not there are 0.  The last columns, those for registers,
 * pass by where P will be. */
static void load_q(mla *x)
{
	cptx_kernel *k = x->k;
	const decode_in *in = &x->in;
	const uint32_t rows = THREADS / CHUNKS, span_bytes = x->o->rows * SPAN, spans = x->s->dim_v * 2 / SPAN,
				   behind = spans + x->s->q_rest.cols * 2 / SPAN;
	const cptx_val chunk = cptx_and(k, x->tid, CHUNKS - 1), first = cptx_div(k, x->tid, CHUNKS);
	const cptx_val swizzled = cptx_xor(k, chunk, cptx_and(k, first, CHUNKS - 1)); /* rows are a multiple of 8 apart */
	const cptx_val in_span =
		cptx_mad(k, first, SPAN, cptx_mul(k, swizzled, ATTENTION_CHUNK, .mode = CPTX_LO), .mode = CPTX_LO);
	const cptx_val to = cptx_add(k, x->q, in_span);
	const cptx_val to_last = x->s->rest ? cptx_add(k, x->p, in_span) : to;
	const cptx_val to_rest = x->s->q_rest.cols ? cptx_add(k, x->q_rest, in_span) : to;

	for (uint32_t row = 0; row < x->o->rows; row += rows) {
		const cptx_val r = cptx_add(k, cptx_add(k, first, row), x->w.row0),
					   there = cptx_setp(k, r, in->rows, .cmp = CPTX_LT);
		const cptx_val bytes = cptx_selp(k, ATTENTION_CHUNK, 0, there, .type = CPTX_U32);
		const cptx_val safe = cptx_selp(k, r, 0, there, .type = CPTX_U32);
		const cptx_val at = decode_row_of(k, in, x->w.batch, x->w.kv_head, safe, in->q, in->q_batch, in->q_head, in->q_row);
		const cptx_val from = cptx_add(k, at, cptx_mul_wide(k, chunk, ATTENTION_CHUNK));
		for (uint32_t span = 0; span < x->s->dim * 2 / SPAN; span++) {
			const cptx_val base = span < spans ? to : span < behind ? to_rest : to_last;
			const uint32_t first_span = span < spans ? 0 : span < behind ? spans : behind;
			cptx_cp_async(k, cptx_offset(base, (span - first_span) * span_bytes + row * SPAN),
			              cptx_offset(from, span * SPAN), ATTENTION_CHUNK, .cop = CPTX_CG, .src_size = bytes);
		}
	}
	cptx_cp_async_wait_all(k);
	fence(x);
	meet(x);
}

/* The last columns of Q in registers: the 16 rows of a warp are an A of mma.sync, too. */
static void load_last(mla *x)
{
	cptx_kernel *k = x->k;
	const decode_shape *s = x->s;
	cptx_tiled_mma by_warp;

	cptx_tiled_mma_new(k, &by_warp, .by = CPTX_BY_MMA_SYNC, .a = x->o->in, .b = x->o->in, .m = 16, .n = x->o->bk,
	                   .units_m = 4, .a_tile = s->q_last, .b_tile = s->k_last,
	                   .unit = cptx_and(k, cptx_role_warp(k, &x->roles), 3), .thread = x->roles.lane);
	x->q_regs = cptx_mma_load_a(k, &by_warp, x->p);
}

static void begin_group(mla *x)
{
	cptx_kernel *k = x->k;
	const enum cptx_type in = x->o->in;
	const decode_shape *s = x->s;

	x->group = cptx_shr(k, cptx_role_warp(k, &x->roles), 2), x->other = cptx_xor(k, x->group, 1);
	x->thread = cptx_and(k, x->roles.tid, GROUP_THREADS - 1);
	x->tid = cptx_mad(k, x->group, GROUP_THREADS, x->thread, .mode = CPTX_LO);
	x->releases = cptx_setp(k, x->thread, 0, .cmp = CPTX_EQ);
	begin_steps(x, cptx_pipe_consumer(k, &x->pipe));
	load_q(x);
	cptx_tiled_mma_new(k, &x->qk, .by = CPTX_BY_WGMMA, .a = in, .b = in, .m = x->o->rows, .n = x->o->bk, .a_tile = s->q,
	                   .b_tile = s->k, .thread = x->thread);
	cptx_tiled_mma_new(k, &x->pv, .by = CPTX_BY_WGMMA, .a = in, .b = in, .m = x->o->rows, .n = s->half,
	                   .a_from = CPTX_A_REGS, .b_tile = s->v, .thread = x->thread);
	cptx_tiled_mma_new(k, &x->pv_other, .by = CPTX_BY_WGMMA, .a = in, .b = in, .m = x->o->rows, .n = s->half, .a_tile = s->p,
	                   .b_tile = s->v, .thread = x->thread);
	if (s->q_rest.cols)
		cptx_tiled_mma_new(k, &x->qk_rest, .by = CPTX_BY_WGMMA, .a = in, .b = in, .m = x->o->rows, .n = x->o->bk,
		                   .a_tile = s->q_rest, .b_tile = s->k_rest, .thread = x->thread);
	if (s->rest) {
		cptx_tiled_mma_new(k, &x->qk_last, .by = CPTX_BY_WGMMA, .a = in, .b = in, .m = x->o->rows, .n = x->o->bk,
		                   .a_from = CPTX_A_REGS, .a_tile = s->q_last, .b_tile = s->k_last, .thread = x->thread);
		load_last(x);
	}
	cptx_acc_new(k, &x->qk, &x->sums);
	cptx_acc_new(k, &x->pv, &x->results);
	cptx_acc_clear(k, &x->results);
	cptx_softmax_new(k, &x->soft, x->sums.rows, x->in.scale);
	x->limits = decode_limits_of(k, &x->in, &x->w, &x->sums);
}

static void wait_part(mla *x, cptx_val block, cptx_val part)
{
	const cptx_pipe_at at = part_at(x, block, part);

	cptx_pipe_wait_full(x->k, &x->pipe, &at);
}

static void release_part(mla *x, cptx_val block, cptx_val part)
{
	const cptx_pipe_at at = part_at(x, block, part);

	cptx_pipe_release(x->k, &x->pipe, &at, x->releases);
}

/* Rows of the warpgroup's block behind the sequence's last key become 0 in V: memory may have anything there, and 0 *
 * infinity is not 0. */
static void clear_tail(mla *x, cptx_val key)
{
	cptx_kernel *k = x->k;
	const uint32_t span_bytes = x->o->bk * SPAN, all = DECODE_MLA_GROUPS * cptx_tile_bytes(&x->s->k);

	CPTX_IF(k, cptx_setp(k, cptx_add(k, key, x->o->bk), x->w.range.length, .cmp = CPTX_GT)) {
		const cptx_val first = cptx_mul(k, cptx_sub(k, x->w.range.length, key), SPAN, .mode = CPTX_LO);
		const cptx_val i = cptx_var(k, CPTX_U32, cptx_mul(k, x->thread, ATTENTION_CHUNK, .mode = CPTX_LO));
		const cptx_val at = half_at(x, x->group, cptx_imm(0)), zero = cptx_regs(k, CPTX_B32, 4);
		for (uint32_t part = 0; part < REST; part++)
			wait_part(x, x->group, cptx_imm(part));
		for (uint32_t j = 0; j < 4; j++)
			cptx_mov(k, 0, .into = cptx_elem(zero, j));
		CPTX_FOR(k, i, all, GROUP_THREADS * ATTENTION_CHUNK)
			cptx_st(k, cptx_add(k, at, i), zero, .space = CPTX_SHARED, .type = CPTX_B32, .vec = CPTX_V4,
			        .when = cptx_setp(k, cptx_and(k, i, span_bytes - 1), first, .cmp = CPTX_GE));
		fence(x);
		cptx_bar_sync(k, cptx_add(k, x->group, GROUP), .b = cptx_imm(GROUP_THREADS));
	}
}

/* S of the warpgroup's block, the half first that is let go first. */
static void multiply_qk(mla *x)
{
	cptx_kernel *k = x->k;
	const cptx_val half[DECODE_MLA_GROUPS] = { x->group, x->other };

	if (x->s->rest) {
		wait_part(x, x->group, cptx_imm(REST));
		const cptx_val keys = cptx_operand_at(k, &x->rest, stage_of(x, x->group));
		const uint32_t others = x->s->q_rest.cols;
		if (others)
			cptx_mma_tile(k, &x->qk_rest, &x->sums, x->q_rest, keys, .fresh = true);
		const cptx_val last = cptx_offset(keys, others ? cptx_tile_bytes(&x->s->k_rest) : 0);
		cptx_mma_tile(k, &x->qk_last, &x->sums, x->q_regs, last, .fresh = !others);
	}
	for (uint32_t i = 0; i < DECODE_MLA_GROUPS; i++) {
		wait_part(x, x->group, half[i]);
		const cptx_val q = cptx_mad(k, half[i], cptx_tile_bytes(&x->s->q), x->q, .mode = CPTX_LO);
		const cptx_val keys = half_at(x, x->group, half[i]);
		cptx_mma_tile(k, &x->qk, &x->sums, q, keys, .fresh = !i && !x->s->rest);
	}
	cptx_mma_wait(k, &x->qk, 0);
	if (x->s->rest)
		release_part(x, x->group, cptx_imm(REST));
}

/* The numbers that the thread of the other warpgroup has for the same rows.  Between two exchanges both meet. */
static cptx_val exchange(mla *x, cptx_val mine)
{
	cptx_kernel *k = x->k;
	const cptx_val at = cptx_mad(k, x->tid, DECODE_MLA_EXCHANGED, x->rows, .mode = CPTX_LO);
	const cptx_val theirs = cptx_xor(k, x->tid, GROUP_THREADS), got = cptx_regs(k, CPTX_F32, mine.count);

	cptx_st(k, at, mine, .space = CPTX_SHARED, .vec = CPTX_V2);
	meet(x);
	cptx_ld(k, cptx_mad(k, theirs, DECODE_MLA_EXCHANGED, x->rows, .mode = CPTX_LO), .space = CPTX_SHARED, .vec = CPTX_V2,
	        .type = CPTX_F32, .into = got);
	return got;
}

/* P of the warpgroup's block, for the other one too. */
static cptx_val make_p(mla *x)
{
	cptx_kernel *k = x->k;
	const cptx_val top = cptx_softmax_max(k, &x->soft, &x->sums), theirs = exchange(x, top);

	for (uint32_t r = 0; r < top.count; r++)
		cptx_max(k, cptx_elem(top, r), cptx_elem(theirs, r), .into = cptx_elem(top, r));
	const cptx_val correct = cptx_softmax_step_to(k, &x->soft, &x->sums, top);
	const cptx_val mine = cptx_mad(k, x->group, cptx_tile_bytes(&x->s->p), x->p, .mode = CPTX_LO);
	cptx_acc_put_tile(k, &x->sums, x->o->in, &x->s->p, mine);
	fence(x);
	cptx_bar_arrive(k, cptx_add(k, x->group, P_READY), THREADS);
	attention_scale_grown(k, &x->results, correct);
	return cptx_acc_as_a(k, &x->sums, &x->pv);
}

static void multiply(mla *x, cptx_val key)
{
	cptx_kernel *k = x->k;
	const cptx_val mine = cptx_mad(k, x->group, x->o->bk, key, .mode = CPTX_LO);

	clear_tail(x, cptx_min(k, mine, x->last));
	multiply_qk(x);
	decode_scores_of(k, &x->in, &x->limits, &x->sums, cptx_as(mine, CPTX_S32));
	const cptx_val p = make_p(x);
	cptx_mma_tile(k, &x->pv, &x->results, p, half_at(x, x->group, x->group));
	cptx_bar_sync(k, cptx_add(k, x->other, P_READY), .b = cptx_imm(THREADS));
	/* the half of that block is there: the other warpgroup waited for it in front of its scores */
	const cptx_val theirs = cptx_mad(k, x->other, cptx_tile_bytes(&x->s->p), x->p, .mode = CPTX_LO);
	cptx_mma_tile(k, &x->pv_other, &x->results, theirs, half_at(x, x->other, x->group));
	cptx_mma_wait(k, &x->pv_other, 1);
	release_part(x, x->group, x->group);
	cptx_mma_wait(k, &x->pv_other, 0);
	release_part(x, x->other, x->group);
	next_step(x);
}

/* Bytes from the start of a row of O to the warpgroup's columns. */
static cptx_val columns_at(const mla *x, cptx_val row, enum cptx_type type)
{
	return cptx_add(x->k, row, cptx_mul_wide(x->k, x->group, x->s->half * cptx_type_bits(type) / 8));
}

/* The rows of O where they belong, or of f32 among the results of chunks. */
static cptx_val own_row(cptx_kernel *k, const void *user, const cptx_acc *o, const cptx_acc_elem *e, cptx_val *there)
{
	const mla *x = (const mla *)user;
	const decode_in *in = &x->in;
	const cptx_val r = cptx_acc_row(k, o, e, x->w.row0);

	*there = cptx_setp(k, r, in->rows, .cmp = CPTX_LT);
	const cptx_val row = decode_row_of(k, in, x->w.batch, x->w.kv_head, r, in->o, in->o_batch, in->o_head, in->o_row);
	return columns_at(x, row, decode_out(x->o));
}

static cptx_val part_row(cptx_kernel *k, const void *user, const cptx_acc *o, const cptx_acc_elem *e, cptx_val *there)
{
	const mla *x = (const mla *)user;
	const cptx_val r = cptx_acc_row(k, o, e, x->w.row0);

	*there = cptx_setp(k, r, x->in.rows, .cmp = CPTX_LT);
	return columns_at(x, decode_part_of(k, &x->in, &x->w, x->in.o_part, r, x->s->dim_v * 4), CPTX_F32);
}

static void store_lse(mla *x, cptx_val alone)
{
	cptx_kernel *k = x->k;
	const decode_in *in = &x->in;
	const cptx_val lse = cptx_softmax_lse(k, &x->soft, &x->sums);
	uint32_t found = 0;

	CPTX_ACC_EACH(&x->sums, e)
	{
		if (e.at_row != found)
			continue;
		const cptx_val r = cptx_acc_row(k, &x->sums, &e, x->w.row0), v = cptx_elem(lse, found++);
		CPTX_IF(k, cptx_setp(k, r, in->rows, .cmp = CPTX_LT)) {
			if (x->o->lse) {
				CPTX_IF(k, alone)
					cptx_st(k, decode_lse_of(k, in, x->w.batch, x->w.kv_head, r), v, .space = CPTX_GLOBAL);
			}
			CPTX_IF(k, cptx_negated(alone))
				cptx_st(k, decode_part_of(k, in, &x->w, in->lse_part, r, 4), v, .space = CPTX_GLOBAL);
		}
	}
}

static void work(mla *x)
{
	cptx_kernel *k = x->k;

	begin_group(x);
	const cptx_val key = cptx_var(k, CPTX_U32, x->w.first), alone = cptx_setp(k, x->in.splits, 1, .cmp = CPTX_EQ);
	CPTX_FOR(k, key, x->w.end, BLOCKS * x->o->bk)
		multiply(x, key);
	const cptx_val theirs = exchange(x, x->soft.sum);
	for (uint32_t r = 0; r < theirs.count; r++)
		cptx_add(k, cptx_elem(x->soft.sum, r), cptx_elem(theirs, r), .into = cptx_elem(x->soft.sum, r));
	cptx_acc_scale_rows(k, &x->results, cptx_softmax_end(k, &x->soft, &x->sums));
	CPTX_IF(k, alone)
		attention_store_pairs(k, decode_out(x->o), &x->results, 0, own_row, x);
	CPTX_ELSE(k)
		attention_store_pairs(k, CPTX_F32, &x->results, 0, part_row, x);
	/* one thread of the four that share a row */
	const cptx_val leads = cptx_setp(k, cptx_or(k, x->sums.col, x->group), 0, .cmp = CPTX_EQ);
	CPTX_IF(k, leads)
		store_lse(x, alone);
}

cptx_kernel *decode_build_mla(cptx_module *m, const cptx_attention_decode_opt *o)
{
	const decode_shape s = decode_shape_of(o, NULL);
	mla x = { .o = o };
	cptx_kernel *k = x.k = cptx_kernel_begin(m, o->name, .block = { s.threads }, .min_ctas = 1);

	decode_declare(k, &x.in, o);
	x.s = &x.in.s;
	x.w = decode_locate(k, &x.in);
	cptx_exit(k, .unless = decode_has_work(k, &x.in, &x.w));
	setup(&x);
	CPTX_ROLE(k, &x.roles, .warps = 4, .regs = 24, .elect = true, .exits = true)
		produce(&x);
	CPTX_ROLE(k, &x.roles, .warps = 4 * DECODE_MLA_GROUPS, .regs = 240)
		work(&x);
	return k;
}
