/* SPDX-License-Identifier: MIT */
/*
 * Attention forward for sm_100a with two tiles of 128 queries in a CTA, which share K and V: while the softmax of one runs,
 * tensor cores make the products of the other.  16 warps: four of the softmax for each tile, four that correct O, one whose
 * thread starts products, one whose thread copies, and two that have nothing to do.
 *
 * Tensor memory: S of both tiles, P over the second half of S, and O of both.  The order of products is
 * O0 += P0 V, S0 = Q0 K of the next block, O1 += P1 V, S1 = Q1 K.  They run in order, and so S full tells that the P * V in
 * front of it is complete, too: P may be written, and O corrected.
 *
 * For each tile, of one stage: S is full when its product is complete.  `factors` is full when the softmax has written what
 * O is to be multiplied by; P when three quarters of it are written and O is corrected; `late` when all of it is; O when all
 * products are complete and the last factor is written.  Nobody waits for any of these to be empty: who fills one again has
 * waited for something that comes behind its use.
 */
#include "attention/sm100/forward.h"

#include "base/base.h"

#include <cptx/cptx.h>

enum { TILES = 2, WARPS = 4, GROUP = 128 /* threads of four warps */, QUARTERS = 4 };

typedef struct pair100 {
	forward100 f; /* the tile has the queries of both; q_pipe, s_pipe, p_pipe have a stage for each */
	cptx_pipe late_pipe, factor_pipe, o_pipe;
	cptx_acc sums[TILES], results[TILES];
	cptx_val p[TILES];
	cptx_val factors; /* shared memory: of each row what O is multiplied by; then what it is at the end; f32 */
	cptx_roles *roles;

	/* of a role */
	cptx_pipe_at q_at[TILES], s_at[TILES], p_at[TILES], late_at[TILES], factor_at[TILES], o_at[TILES];
	cptx_val tile;       /* .u32, of the softmax */
	attention_tile half; /* the tile of the role's warps, or of one step */
	cptx_val at_factor;  /* .u32, of the thread's row of tile 0, or of its own */
	attention_rows rows;
	softmax100 soft;
	cptx_epilogue_ring ring;
	cptx_val last; /* .f32, what O is multiplied by at the end */
} pair100;

/* The place in the stage of a tile, a constant or .u32; it stays in that stage. */
static cptx_pipe_at place_of(cptx_kernel *k, const cptx_pipe *pipe, bool producer, cptx_val tile)
{
	cptx_pipe_at at = producer ? cptx_pipe_producer(k, pipe) : cptx_pipe_consumer(k, pipe);

	cptx_mov(k, tile, .into = at.stage);
	cptx_mad(k, at.stage, 8, at.first, .mode = CPTX_LO, .into = at.barrier);
	return at;
}

static void turn(cptx_kernel *k, cptx_pipe_at *at) { cptx_xor(k, at->parity, 1, .into = at->parity); }

static void wait_full(cptx_kernel *k, const cptx_pipe *pipe, cptx_pipe_at *at)
{
	cptx_pipe_wait_full(k, pipe, at);
	turn(k, at);
}

static void setup(pair100 *x)
{
	forward100 *f = &x->f;
	cptx_kernel *k = f->k;
	const cptx_val first = cptx_setp(k, x->roles->tid, 0, .cmp = CPTX_EQ);
	const cptx_val warp = cptx_and(k, x->roles->warp, WARPS - 1);
	const enum cptx_type in = f->o->in;

	cptx_params_prefetch(k, &f->in.params, first);
	cptx_pipe_new(k, &f->q_pipe, .stages = TILES);
	cptx_pipe_new(k, &f->k_pipe, .stages = f->o->stages);
	cptx_pipe_new(k, &f->v_pipe, .stages = f->o->stages);
	cptx_pipe_new(k, &f->s_pipe, .stages = TILES);
	cptx_pipe_new(k, &f->p_pipe, .stages = TILES, .producers = 2 * GROUP);
	cptx_pipe_new(k, &x->late_pipe, .stages = TILES, .producers = GROUP);
	cptx_pipe_new(k, &x->factor_pipe, .stages = TILES, .producers = GROUP);
	cptx_pipe_new(k, &x->o_pipe, .stages = TILES, .producers = 1 + GROUP);
	const cptx_pipe *const all[] = { &f->q_pipe, &f->k_pipe,    &f->v_pipe,      &f->s_pipe,
		                             &f->p_pipe, &x->late_pipe, &x->factor_pipe, &x->o_pipe };
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		cptx_pipe_prepare(k, all[i], first);
	x->factors = cptx_shared(k, CPTX_F32, 2 * f->o->bq);
	cptx_tiled_mma_new(k, &f->qk, .by = CPTX_BY_TCGEN05, .a = in, .b = in, .m = TILE_ROWS, .n = f->o->bk, .a_tile = f->s.q,
	                   .b_tile = f->s.k, .warp = warp);
	cptx_tiled_mma_new(k, &f->pv, .by = CPTX_BY_TCGEN05, .a = in, .b = in, .m = TILE_ROWS, .n = f->s.dim_v,
	                   .a_from = CPTX_A_TMEM, .b_tile = f->s.v, .warp = warp);
}

/* The tile of number `tile`, a constant or .u32. */
static attention_tile half_of(const pair100 *x, cptx_val tile)
{
	cptx_kernel *k = x->f.k;
	attention_tile t = x->f.tile;

	if (tile.kind == CPTX_VAL_INT)
		t.row0 = tile.i ? cptx_add(k, t.row0, tile.i * TILE_ROWS) : t.row0;
	else
		t.row0 = cptx_mad(k, cptx_as(tile, CPTX_S32), TILE_ROWS, t.row0, .mode = CPTX_LO);
	return t;
}

static cptx_val factor_at(const pair100 *x, cptx_val row)
{
	return cptx_mad(x->f.k, row, 4, cptx_mov(x->f.k, x->factors, .type = CPTX_U32), .mode = CPTX_LO);
}

/* Of the last factor of a tile that is `tiles` behind that of x->at_factor. */
static cptx_val last_at(const pair100 *x, uint32_t tiles)
{
	return cptx_offset(x->at_factor, 4 * (x->f.o->bq + TILE_ROWS * tiles));
}

/* ---- the thread that copies ---- */

static void produce(pair100 *x)
{
	forward100 *f = &x->f;
	cptx_kernel *k = f->k;

	for (uint32_t i = 0; i < TILES; i++) {
		const cptx_pipe_at at = place_of(k, &f->q_pipe, true, cptx_imm(i));
		const attention_tile t = half_of(x, cptx_imm(i));
		cptx_pipe_expect(k, &f->q_pipe, &at, f->q.op.bytes);
		attention_load_q(k, &f->in, &t, &f->q, i, cptx_pipe_full(&at));
	}
	attention_sm100_load_blocks(f);
}

/* ---- the thread that starts products ---- */

static void issue_qk(pair100 *x, uint32_t i)
{
	forward100 *f = &x->f;
	cptx_kernel *k = f->k;
	const cptx_val q = cptx_operand_at(k, &f->q.op, i), key = cptx_operand_at(k, &f->key.op, f->k_at.stage);

	/* who reads S has told of P behind it: the fence behind that stands in front of this */
	cptx_mma_tile(k, &f->qk, &x->sums[i], q, key, .fresh = true, .fenced = true);
	cptx_mma_commit(k, &f->qk, cptx_pipe_full(&x->s_at[i]));
}

/* The products with the first three quarters of P in front of the last one's arrival. */
static void issue_pv(pair100 *x, uint32_t i, cptx_val fresh)
{
	forward100 *f = &x->f;
	cptx_kernel *k = f->k;
	const uint32_t early = f->pv.steps * (QUARTERS - 1) / QUARTERS;
	const cptx_val v = cptx_operand_at(k, &f->v.op, f->v_at.stage);

	wait_full(k, &f->p_pipe, &x->p_at[i]);
	cptx_mma_tile(k, &f->pv, &x->results[i], x->p[i], v, .fresh_when = fresh, .steps = early);
	wait_full(k, &x->late_pipe, &x->late_at[i]);
	cptx_mma_tile(k, &f->pv, &x->results[i], x->p[i], v, .first = early);
}

static void release_v(forward100 *f)
{
	cptx_mma_commit(f->k, &f->pv, cptx_pipe_empty(&f->v_at));
	cptx_pipe_next(f->k, &f->v_pipe, &f->v_at);
}

static void multiply_step(forward100 *f, bool masked)
{
	pair100 *x = (pair100 *)f;
	cptx_kernel *k = f->k;
	const cptx_val later = cptx_setp(k, f->block, 0, .cmp = CPTX_GT), fresh = cptx_setp(k, f->block, 1, .cmp = CPTX_EQ);

	(void)masked;
	cptx_pipe_wait_full(k, &f->k_pipe, &f->k_at);
	CPTX_IF(k, later) {
		cptx_pipe_wait_full(k, &f->v_pipe, &f->v_at);
		issue_pv(x, 0, fresh);
	}
	CPTX_ELSE(k)
		cptx_pipe_wait_full(k, &f->q_pipe, &x->q_at[0]);
	issue_qk(x, 0);
	CPTX_IF(k, later) {
		issue_pv(x, 1, fresh);
		release_v(f);
	}
	CPTX_ELSE(k)
		cptx_pipe_wait_full(k, &f->q_pipe, &x->q_at[1]);
	issue_qk(x, 1);
	cptx_mma_commit(k, &f->qk, cptx_pipe_empty(&f->k_at));
	cptx_pipe_next(k, &f->k_pipe, &f->k_at);
}

static void multiply(pair100 *x)
{
	forward100 *f = &x->f;
	cptx_kernel *k = f->k;

	f->k_at = cptx_pipe_consumer(k, &f->k_pipe);
	f->v_at = cptx_pipe_consumer(k, &f->v_pipe);
	for (uint32_t i = 0; i < TILES; i++) {
		x->q_at[i] = place_of(k, &f->q_pipe, false, cptx_imm(i));
		x->s_at[i] = place_of(k, &f->s_pipe, true, cptx_imm(i));
		x->p_at[i] = place_of(k, &f->p_pipe, false, cptx_imm(i));
		x->late_at[i] = place_of(k, &x->late_pipe, false, cptx_imm(i));
		x->o_at[i] = place_of(k, &x->o_pipe, true, cptx_imm(i));
	}
	attention_sm100_each_block(f, multiply_step, false);
	const cptx_val fresh = cptx_setp(k, f->block, 1, .cmp = CPTX_EQ);
	cptx_pipe_wait_full(k, &f->v_pipe, &f->v_at);
	for (uint32_t i = 0; i < TILES; i++) {
		issue_pv(x, i, fresh);
		cptx_mma_commit(k, &f->pv, cptx_pipe_full(&x->o_at[i]));
	}
}

/* ---- the warps of the softmax: a tile's, which is known at run time ---- */

static void store_p(pair100 *x, uint32_t first, uint32_t n, bool last)
{
	forward100 *f = &x->f;
	cptx_kernel *k = f->k;
	const cptx_val words = attention_sm100_softmax_exp(k, &x->soft, &f->part, first, n, last);

	cptx_tmem_store(k, cptx_offset(f->p, first * words.count / n), words, .num = words.count);
}

/* Behind what was stored of P. */
static void tell_of_p(cptx_kernel *k, const cptx_pipe *pipe, const cptx_pipe_at *at)
{
	cptx_tcgen05_wait(k, .op = CPTX_WAIT_ST);
	cptx_tcgen05_fence(k, .op = CPTX_FENCE_BEFORE_THREAD_SYNC);
	cptx_pipe_filled(k, pipe, at);
}

/* Whether a function of the user's asks for the keys; else rows' bounds are kept relative to the block, and no key is: a
 * register less. */
static bool knows_keys(const cptx_attention_opt *o) { return o->score || o->mask || o->blocks; }

static void move_bounds(pair100 *x, cptx_val by)
{
	const cptx_val bounds[] = { x->rows.end, x->rows.first };

	for (size_t i = 0; i < ARRAY_LEN(bounds) && !knows_keys(x->f.o); i++)
		if (bounds[i].kind != CPTX_VAL_NONE)
			cptx_add(x->f.k, cptx_elem(bounds[i], 0), by, .into = cptx_elem(bounds[i], 0));
}

static void softmax_step(forward100 *f, bool masked)
{
	pair100 *x = (pair100 *)f;
	cptx_kernel *k = f->k;
	const uint32_t n = f->o->bk / QUARTERS;

	wait_full(k, &f->s_pipe, &f->s_at);
	cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
	cptx_acc_load(k, &f->sums, 0, f->o->bk, &f->part);
	attention_scores_of(k, &f->in, &x->half, &x->rows, &f->part, knows_keys(f->o) ? f->key0 : cptx_imm(0), masked);
	move_bounds(x, cptx_imm(f->o->bk));
	const cptx_val factor = attention_sm100_softmax_max(k, &x->soft, &f->part);
	cptx_st(k, x->at_factor, factor, .space = CPTX_SHARED);
	cptx_pipe_filled(k, &x->factor_pipe, &x->factor_at[0]);
	for (uint32_t i = 0; i < QUARTERS - 1; i++)
		store_p(x, i * n, n, false);
	tell_of_p(k, &f->p_pipe, &f->p_at);
	store_p(x, (QUARTERS - 1) * n, n, true);
	tell_of_p(k, &x->late_pipe, &x->late_at[0]);
	attention_sm100_softmax_sum(k, &x->soft, &f->part);
}

/* What O is divided by, and LSE; part: any accumulator of the row. */
static void end_softmax(pair100 *x, cptx_val some)
{
	forward100 *f = &x->f;
	cptx_kernel *k = f->k;
	const cptx_val last = cptx_softmax_end(k, &x->soft.soft, &f->part);

	CPTX_IF(k, some) {
		const cptx_pipe_at at = place_of(k, &x->o_pipe, true, x->tile);
		if (attention_is_fp8(f->o))
			cptx_mul(k, last, f->in.v_scale, .into = last);
		cptx_st(k, last_at(x, 0), last, .space = CPTX_SHARED);
		cptx_pipe_filled(k, &x->o_pipe, &at);
	}
	if (f->o->lse)
		attention_store_lse(k, &f->in, &x->half, &f->part, cptx_softmax_lse(k, &x->soft.soft, &f->part));
}

static void soften(pair100 *x, cptx_val some)
{
	forward100 *f = &x->f;
	cptx_kernel *k = f->k;
	const cptx_val tile = x->tile = cptx_shr(k, cptx_role_warp(k, x->roles), 2), row = cptx_role_thread(k, x->roles);
	const cptx_val lanes = cptx_shl(k, cptx_and(k, x->roles->warp, WARPS - 1), 21);

	x->half = half_of(x, tile);
	x->at_factor = factor_at(x, row);
	f->s_at = place_of(k, &f->s_pipe, false, tile);
	f->p_at = place_of(k, &f->p_pipe, true, tile);
	x->late_at[0] = place_of(k, &x->late_pipe, true, tile);
	x->factor_at[0] = place_of(k, &x->factor_pipe, true, tile);
	const cptx_val s = cptx_mad(k, tile, f->s.s_apart, x->sums[0].tmem, .mode = CPTX_LO);
	cptx_acc_in_tmem(k, &f->qk, &f->sums, s);
	f->sums.fenced = true; /* P is stored behind its load, and then comes the fence */
	f->p = cptx_offset(cptx_add(k, s, lanes), f->s.p - f->s.s);
	const cptx_val in_tile = cptx_as(cptx_and(k, row, TILE_ROWS - 1), CPTX_S32);
	x->rows = attention_row_of(k, &f->in, &x->half, cptx_add(k, x->half.row0, in_tile));
	move_bounds(x, cptx_neg(k, f->tile.last_key));
	attention_begin_softmax(k, &f->in, &x->half, NULL, &x->soft.soft);
	attention_sm100_softmax_begin(k, &x->soft, &f->in);
	CPTX_IF(k, some)
		attention_sm100_each_block(f, softmax_step, true);
	end_softmax(x, some);
}

/* ---- the warps that correct O, and store it ---- */

static void correct(pair100 *x, uint32_t i)
{
	forward100 *f = &x->f;
	cptx_kernel *k = f->k;
	const cptx_val at = cptx_offset(x->at_factor, 4 * TILE_ROWS * i);
	cptx_acc fenced = x->results[i];

	fenced.fenced = true; /* what is loaded is stored, and then comes the fence */

	wait_full(k, &x->factor_pipe, &x->factor_at[i]);
	const cptx_val factor = cptx_ld(k, at, .space = CPTX_SHARED, .type = CPTX_F32);
	const cptx_val grown = cptx_setp(k, factor, 1.0f, .cmp = CPTX_NEU);
	const cptx_val some = cptx_and(k, cptx_vote_sync(k, grown, -1, .mode = CPTX_ANY),
	                               cptx_setp(k, f->block, 0, .cmp = CPTX_GT), .type = CPTX_PRED);
	CPTX_IF(k, some) {
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		for (uint32_t col = 0; col < f->s.dim_v; col += CHUNK) {
			cptx_acc_load(k, &fenced, col, CHUNK, &f->part);
			cptx_acc_scale_rows(k, &f->part, factor);
			cptx_acc_save(k, &x->results[i], col, &f->part);
		}
	}
	cptx_pipe_filled(k, &f->p_pipe, &x->p_at[i]);
}

static void correct_step(forward100 *f, bool masked)
{
	(void)masked;
	for (uint32_t i = 0; i < TILES; i++)
		correct((pair100 *)f, i);
}

/* Of a tile in which nothing counts there is no O in tensor memory yet. */
static void clear(pair100 *x, uint32_t i)
{
	forward100 *f = &x->f;
	cptx_acc part = x->results[i];

	part.n = part.count = CHUNK, part.rows = 1, part.tmem = (cptx_val){ 0 };
	part.regs = cptx_regs(f->k, CPTX_F32, CHUNK);
	cptx_acc_clear(f->k, &part);
	for (uint32_t col = 0; col < f->s.dim_v; col += CHUNK)
		cptx_acc_save(f->k, &x->results[i], col, &part);
}

static void divide(cptx_kernel *k, void *user, uint32_t first, const cptx_acc *part)
{
	(void)first;
	cptx_acc_scale_rows(k, part, ((const pair100 *)user)->last);
}

static void store(pair100 *x, uint32_t i)
{
	forward100 *f = &x->f;
	cptx_kernel *k = f->k;
	const attention_tile t = half_of(x, cptx_imm(i));
	cptx_epilogue e;

	if (attention_stores_by_tma(f->o)) {
		cptx_epilogue_new(k, &e, .vec = 2);
		cptx_epilogue_run(k, &e, &x->results[i], .row = t.row0, .at_store = true);
		cptx_epilogue_store_tma(k, &e, &x->ring, .z = cptx_as(t.head, CPTX_S32), .loaded = divide, .user = x,
		                        .z2 = cptx_as(t.batch, CPTX_S32));
		return;
	}
	for (uint32_t col = 0; col < f->s.dim_v; col += CHUNK) {
		cptx_acc_load(k, &x->results[i], col, CHUNK, &f->part);
		divide(k, x, col, &f->part);
		attention_store_o(k, &f->in, &t, &f->part);
	}
}

static void finish(pair100 *x, cptx_val some)
{
	forward100 *f = &x->f;
	cptx_kernel *k = f->k;

	x->last = cptx_var(k, CPTX_F32, 0.0f);
	for (uint32_t i = 0; i < TILES; i++) {
		CPTX_IF(k, some) {
			wait_full(k, &x->o_pipe, &x->o_at[i]);
			cptx_ld(k, last_at(x, i), .space = CPTX_SHARED, .type = CPTX_F32, .into = x->last);
		}
		CPTX_ELSE(k)
			clear(x, i);
		store(x, i);
	}
}

static void correct_all(pair100 *x, cptx_val some)
{
	forward100 *f = &x->f;
	cptx_kernel *k = f->k;
	const cptx_val row = cptx_role_thread(k, x->roles);
	const bool by_tma = attention_stores_by_tma(f->o);

	x->at_factor = factor_at(x, row);
	for (uint32_t i = 0; i < TILES; i++) {
		x->factor_at[i] = place_of(k, &x->factor_pipe, false, cptx_imm(i));
		x->p_at[i] = place_of(k, &f->p_pipe, true, cptx_imm(i));
		x->o_at[i] = place_of(k, &x->o_pipe, false, cptx_imm(i));
	}
	CPTX_IF(k, some)
		attention_sm100_each_block(f, correct_step, false);
	if (by_tma) /* its addresses take no registers in the loop */
		cptx_epilogue_ring_new(k, &x->ring, .type = attention_out(f->o), .tile = f->s.out, .map = f->in.map_o,
		                       .stages = RING_STAGES, .units = WARPS, .unit = cptx_role_warp(k, x->roles),
		                       .acc = &x->results[0]);
	finish(x, some);
	if (by_tma)
		cptx_epilogue_ring_drain(k, &x->ring, &x->results[0]);
}

/* ---- a CTA ---- */

/* One thread of a warp among those that have few registers. */
static cptx_val elected(pair100 *x, uint32_t warp, cptx_val some)
{
	cptx_kernel *k = x->f.k;
	const cptx_val one = cptx_regs(k, CPTX_PRED, 1), is = cptx_setp(k, cptx_role_warp(k, x->roles), warp, .cmp = CPTX_EQ);

	cptx_elect_sync(k, -1, .p = one, .into = cptx_sink());
	return cptx_and(k, cptx_and(k, one, is, .type = CPTX_PRED), some, .type = CPTX_PRED);
}

static void run_rest(pair100 *x, cptx_val some)
{
	cptx_kernel *k = x->f.k;

	CPTX_ROLE(k, x->roles, .warps = WARPS, .regs = x->f.s.correct_regs)
		correct_all(x, some);
	CPTX_ROLE(k, x->roles, .warps = WARPS, .regs = x->f.s.rest_regs) {
		const cptx_val multiplies = elected(x, 0, some), copies = elected(x, 1, some);
		CPTX_IF(k, multiplies)
			multiply(x);
		CPTX_ELSE(k)
			CPTX_IF(k, copies)
				produce(x);
	}
}

static void run_roles(pair100 *x)
{
	forward100 *f = &x->f;
	cptx_kernel *k = f->k;
	const cptx_val some = cptx_setp(k, f->tile.blocks, 0, .cmp = CPTX_GT);

	/* one or the other: what the others need takes no registers beside the softmax then */
	CPTX_IF(k, cptx_setp(k, x->roles->warp, TILES * WARPS, .cmp = CPTX_LT)) {
		CPTX_ROLE(k, x->roles, .warps = TILES * WARPS, .regs = f->s.softmax_regs)
			soften(x, some);
	}
	CPTX_ELSE(k)
		run_rest(x, some);
}

void attention_sm100_run_pair(forward100 *f, cptx_roles *roles)
{
	cptx_kernel *k = f->k;
	pair100 x = { .f = *f, .roles = roles };
	attention_operands ops = attention_sm100.operands(f->o);
	cptx_tmem t;

	attention_make_operands(k, &f->in, &ops, &x.f.q, &x.f.key, &x.f.v);
	setup(&x);
	CPTX_TMEM(k, &t, .columns = f->s.columns, .warp = cptx_setp(k, roles->warp, 0, .cmp = CPTX_EQ)) {
		for (uint32_t i = 0; i < TILES; i++) {
			cptx_acc_in_tmem(k, &x.f.qk, &x.sums[i], cptx_offset(t.address, f->s.s + i * f->s.s_apart));
			cptx_acc_in_tmem(k, &x.f.pv, &x.results[i], cptx_offset(t.address, f->s.o + i * f->s.o_apart));
			x.p[i] = cptx_offset(t.address, f->s.p + i * f->s.s_apart);
		}
		run_roles(&x);
	}
}
