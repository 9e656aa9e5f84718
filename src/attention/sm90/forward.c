/* SPDX-License-Identifier: MIT */
/*
 * Attention forward for sm_90a: TMA -> shared memory -> wgmma -> softmax in registers -> wgmma -> shared memory -> TMA.
 *
 * A CTA has a producer warpgroup and one to three MMA warpgroups of 64 queries each.  One thread of the producer brings Q of
 * each tile, and K and V block by block, each to a ring of its own, for K is let go half a step earlier.  CTAs are
 * persistent, so the next tile's Q and K come while results are stored.
 *
 * A warpgroup goes over the blocks of keys from the last one down.  In a step it issues S = Q * K of block n and then
 * O += P * V of block n + 1, whose P it has, so that tensor cores have work while it waits for S and makes P of it: the row
 * maxima, the exponentials and the sums.  Two warpgroups (or three) issue their products by turns, told by named barriers,
 * so that the softmax of one runs under the products of another.  Steps whose block needs a mask and those that do not have
 * loops of their own.  A thread's part of a row's sum meets the others' once, behind the last block.
 */
#include "attention/sm90/forward.h"

#include <cptx/cptx.h>
#include <cptx/epilogue.h>
#include <cptx/pipeline.h>
#include <cptx/roles.h>
#include <cptx/scheduler.h>

/* Numbered barriers; 0 is the CTA's. */
enum { TURN = 1 /* and those behind it: a warpgroup's turn to issue products */, STORE = 4 /* of its threads, for O */ };

typedef struct forward90 {
	cptx_kernel *k;
	const cptx_attention_opt *o;
	shape90 s;
	attention_in in;
	cptx_roles roles;
	cptx_tiles tiles;
	attention_kv q, key, v;
	cptx_pipe q_pipe, k_pipe, v_pipe;
	cptx_pipe turned_pipe;         /* of V that was turned around */
	cptx_val turned;               /* the address of its stages */
	cptx_pipe_at q_at, k_at, v_at; /* the role's places; v_at of an MMA warpgroup: where it reads V */
	attention_tile tile;           /* the role's */

	/* of an MMA warpgroup */
	cptx_val group, thread, releases;
	cptx_val turn, next_turn; /* barriers */
	cptx_tiled_mma qk, pv;
	cptx_acc sums, results; /* S, O */
	cptx_softmax soft;
	attention_rows rows;
	cptx_val p;           /* P of the block before, as the A of the next product */
	cptx_val block, key0; /* .s32: number of the step, from the last block down; the first key of its block */
	cptx_epilogue_ring ring;
} forward90;

static void setup(forward90 *f)
{
	cptx_kernel *k = f->k;
	attention_operands ops = attention_sm90.operands(f->o);

	attention_declare(k, &f->in, f->o);
	attention_make_operands(k, &f->in, &ops, &f->q, &f->key, &f->v);
	cptx_roles_begin(k, &f->roles, .threads = f->s.threads);
	const cptx_val first = cptx_setp(k, f->roles.tid, 0, .cmp = CPTX_EQ);
	cptx_params_prefetch(k, &f->in.params, first);
	cptx_pipe_new(k, &f->q_pipe, .stages = 1, .consumers = f->s.groups);
	cptx_pipe_new(k, &f->k_pipe, .stages = f->o->stages, .consumers = f->s.groups);
	cptx_pipe_new(k, &f->v_pipe, .stages = f->o->stages, .consumers = f->s.turners ? f->s.turners : f->s.groups);
	if (f->s.turners) {
		f->turned = cptx_mov(
			k, cptx_shared_dyn(k, f->o->stages * cptx_tile_bytes(&f->s.turned), cptx_tile_align(&f->s.turned), "turned"),
			.type = CPTX_U32);
		cptx_pipe_new(k, &f->turned_pipe, .stages = f->o->stages, .producers = f->s.turners, .consumers = f->s.groups);
		cptx_pipe_prepare(k, &f->turned_pipe, first);
	}
	cptx_pipe_prepare(k, &f->q_pipe, first);
	cptx_pipe_prepare(k, &f->k_pipe, first);
	cptx_pipe_init(k, &f->v_pipe, first);
	cptx_tiles_new(k, &f->tiles, .schedule = CPTX_TILES_PERSISTENT, .all = f->in.slots);
	/* what stands in front of this may overlap with the launch before, cptx_launch_opt.overlap */
	cptx_griddepcontrol(k, .op = CPTX_WAIT);
	cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
}

/* ---- the producer ---- */

static void load_kv(forward90 *f, const attention_kv *kv, const cptx_pipe *pipe, cptx_pipe_at *at, cptx_val key)
{
	cptx_kernel *k = f->k;

	cptx_pipe_wait_empty(k, pipe, at);
	cptx_pipe_expect(k, pipe, at, kv->op.bytes);
	attention_load_kv(k, &f->in, &f->tile, kv, at->stage, key, cptx_pipe_full(at));
	cptx_pipe_next(k, pipe, at);
}

static void load_k(forward90 *f, cptx_val key) { load_kv(f, &f->key, &f->k_pipe, &f->k_at, key); }
static void load_v(forward90 *f, cptx_val key) { load_kv(f, &f->v, &f->v_pipe, &f->v_at, key); }

/* In the order in which warpgroups wait for them: K of a block, then V of the one before. */
static void load_blocks(forward90 *f, cptx_val key)
{
	cptx_kernel *k = f->k;
	cptx_val i = cptx_var(k, CPTX_S32, 1);

	CPTX_FOR(k, i, f->tile.blocks, 1) {
		const cptx_val before = cptx_mov(k, key);
		cptx_sub(k, key, f->o->bk, .into = key);
		load_k(f, key);
		load_v(f, before);
	}
}

static void load_skipping(forward90 *f, cptx_val key)
{
	cptx_kernel *k = f->k;
	cptx_val next = cptx_var(k, CPTX_S32, key);

	CPTX_DO(k)
	{
		cptx_sub(k, next, f->o->bk, .into = next);
		cptx_break_when(k, attention_skip(k, &f->in, &f->tile, next));
		load_k(f, next);
		load_v(f, key);
		cptx_mov(k, next, .into = key);
		cptx_continue(k);
	}
}

static void load_tile(forward90 *f)
{
	cptx_kernel *k = f->k;
	cptx_val key = cptx_var(k, CPTX_S32, f->tile.last_key);

	cptx_pipe_wait_empty(k, &f->q_pipe, &f->q_at);
	cptx_pipe_expect(k, &f->q_pipe, &f->q_at, f->q.op.bytes);
	attention_load_q(k, &f->in, &f->tile, &f->q, 0, cptx_pipe_full(&f->q_at));
	cptx_pipe_next(k, &f->q_pipe, &f->q_at);
	load_k(f, key);
	if (f->o->blocks)
		load_skipping(f, key);
	else
		load_blocks(f, key);
	load_v(f, key);
}

/* Whether a tile is there and has keys that count. */
static cptx_val has_blocks(cptx_kernel *k, const attention_tile *t)
{
	const cptx_val some = cptx_setp(k, t->blocks, 0, .cmp = CPTX_GT);

	return t->there.kind == CPTX_VAL_NONE ? some : cptx_and(k, some, t->there, .type = CPTX_PRED);
}

/* By one thread. */
static void produce(forward90 *f)
{
	cptx_kernel *k = f->k;
	cptx_tiles_at t;

	f->q_at = cptx_pipe_producer(k, &f->q_pipe);
	f->k_at = cptx_pipe_producer(k, &f->k_pipe);
	f->v_at = cptx_pipe_producer(k, &f->v_pipe);
	CPTX_TILES(k, &f->tiles, &t)
	{
		attention_locate(k, &f->in, t.id, &f->tile);
		CPTX_IF(k, has_blocks(k, &f->tile))
			load_tile(f);
	}
}

/* ---- warps that turn V around ---- */

static void turn_block(forward90 *f, cptx_pipe_at *to, cptx_val warp)
{
	cptx_kernel *k = f->k;
	const cptx_val lane = f->roles.lane, tells = cptx_setp(k, lane, 0, .cmp = CPTX_EQ);
	const cptx_val at = cptx_mad(k, to->stage, cptx_tile_bytes(&f->s.turned), f->turned, .mode = CPTX_LO);

	cptx_pipe_wait_full(k, &f->v_pipe, &f->v_at);
	cptx_pipe_wait_empty(k, &f->turned_pipe, to);
	attention_sm90_turn(k, &f->s, warp, lane, cptx_operand_at(k, &f->v.op, f->v_at.stage), at);
	CPTX_IF(k, tells)
		cptx_pipe_filled(k, &f->turned_pipe, to);
	cptx_pipe_release(k, &f->v_pipe, &f->v_at, tells);
	cptx_pipe_next(k, &f->turned_pipe, to);
	cptx_pipe_next(k, &f->v_pipe, &f->v_at);
}

/* As many blocks as load_tile brings. */
static void turn_tile(forward90 *f, cptx_pipe_at *to, cptx_val warp)
{
	cptx_kernel *k = f->k;
	cptx_val i = cptx_var(k, CPTX_S32, f->o->blocks ? f->tile.last_key : cptx_imm(0));

	if (!f->o->blocks) {
		CPTX_FOR(k, i, f->tile.blocks, 1)
			turn_block(f, to, warp);
		return;
	}
	CPTX_DO(k)
	{
		turn_block(f, to, warp);
		cptx_sub(k, i, f->o->bk, .into = i);
		cptx_break_when(k, attention_skip(k, &f->in, &f->tile, i));
		cptx_continue(k);
	}
}

static void turn(forward90 *f)
{
	cptx_kernel *k = f->k;
	const cptx_val warp = cptx_sub(k, cptx_role_warp(k, &f->roles), 1);
	cptx_pipe_at to = cptx_pipe_producer(k, &f->turned_pipe);
	cptx_tiles_at t;

	f->v_at = cptx_pipe_consumer(k, &f->v_pipe);
	CPTX_TILES(k, &f->tiles, &t)
	{
		attention_locate(k, &f->in, t.id, &f->tile);
		CPTX_IF(k, has_blocks(k, &f->tile))
			turn_tile(f, &to, warp);
	}
}

static void produce_and_turn(forward90 *f)
{
	cptx_kernel *k = f->k;

	CPTX_IF(k, cptx_setp(k, cptx_role_warp(k, &f->roles), 0, .cmp = CPTX_EQ)) {
		CPTX_IF(k, cptx_setp(k, f->roles.lane, 0, .cmp = CPTX_EQ))
			produce(f);
	}
	CPTX_ELSE(k)
		turn(f);
}

/* ---- the MMA warpgroups ---- */

static const cptx_pipe *pipe_of_v(const forward90 *f) { return f->s.turners ? &f->turned_pipe : &f->v_pipe; }

static void issue_qk(forward90 *f)
{
	cptx_kernel *k = f->k;
	const cptx_val q = cptx_operand_at(k, &f->q.op, 0), key = cptx_operand_at(k, &f->key.op, f->k_at.stage);

	cptx_mma_tile(k, &f->qk, &f->sums, q, key, .fresh = true);
}

static void issue_pv(forward90 *f)
{
	cptx_kernel *k = f->k;
	const cptx_val v = f->s.turners ? cptx_mad(k, f->v_at.stage, cptx_tile_bytes(&f->s.turned), f->turned, .mode = CPTX_LO)
	                                : cptx_operand_at(k, &f->v.op, f->v_at.stage);

	cptx_pipe_wait_full(k, pipe_of_v(f), &f->v_at);
	cptx_mma_tile(k, &f->pv, &f->results, f->p, v);
}

static void release(forward90 *f, const cptx_pipe *pipe, cptx_pipe_at *at)
{
	cptx_pipe_release(f->k, pipe, at, f->releases);
	cptx_pipe_next(f->k, pipe, at);
}

static void round_p(forward90 *f)
{
	const cptx_val p = cptx_acc_as_a(f->k, &f->sums, &f->pv);

	for (uint32_t i = 0; i < f->p.count; i++)
		cptx_mov(f->k, cptx_elem(p, i), .into = cptx_elem(f->p, i));
}

/* The last block, which is the first to be computed: S alone. */
static void first_block(forward90 *f)
{
	cptx_kernel *k = f->k;

	cptx_pipe_wait_full(k, &f->q_pipe, &f->q_at);
	cptx_pipe_wait_full(k, &f->k_pipe, &f->k_at);
	issue_qk(f);
	cptx_mma_wait(k, &f->qk, 0);
	release(f, &f->k_pipe, &f->k_at);
	attention_scores_of(k, &f->in, &f->tile, &f->rows, &f->sums, f->key0, true);
	cptx_softmax_step(k, &f->soft, &f->sums);
	round_p(f);
}

static void correct_o(forward90 *f, cptx_val factors)
{
	if (f->s.corrects_few)
		attention_scale_grown(f->k, &f->results, factors);
	else
		cptx_acc_scale_rows(f->k, &f->results, factors);
}

static void step(forward90 *f, bool masked)
{
	cptx_kernel *k = f->k;

	cptx_pipe_wait_full(k, &f->k_pipe, &f->k_at);
	if (f->s.ping_pong)
		cptx_bar_sync(k, f->turn, .b = cptx_imm(2 * GROUP_THREADS));
	issue_qk(f);
	issue_pv(f);
	if (f->s.ping_pong)
		cptx_bar_arrive(k, f->next_turn, 2 * GROUP_THREADS);
	cptx_mma_wait(k, &f->qk, 1);
	release(f, &f->k_pipe, &f->k_at);
	attention_scores_of(k, &f->in, &f->tile, &f->rows, &f->sums, f->key0, masked);
	const cptx_val correct = cptx_softmax_step(k, &f->soft, &f->sums);
	cptx_mma_wait(k, &f->pv, 0);
	release(f, pipe_of_v(f), &f->v_at);
	round_p(f);
	correct_o(f, correct);
}

static void steps(forward90 *f, cptx_val end, bool masked)
{
	CPTX_FOR(f->k, f->block, end, 1) {
		cptx_sub(f->k, f->key0, f->o->bk, .into = f->key0);
		step(f, masked);
	}
}

/* With .blocks: from block to block that counts. */
static void skipping_steps(forward90 *f)
{
	cptx_kernel *k = f->k;

	CPTX_DO(k)
	{
		cptx_sub(k, f->key0, f->o->bk, .into = f->key0);
		cptx_break_when(k, attention_skip(k, &f->in, &f->tile, f->key0));
		step(f, true);
		cptx_continue(k);
	}
}

static void plain_steps(forward90 *f)
{
	const attention_tile *t = &f->tile;

	f->block = cptx_var(f->k, CPTX_S32, 1);
	if (f->o->causal || f->o->window)
		steps(f, t->edge, true);
	steps(f, t->plain, false);
	if (f->o->window)
		steps(f, t->blocks, true);
}

static void multiply_blocks(forward90 *f)
{
	cptx_kernel *k = f->k;
	const attention_tile *t = &f->tile;

	f->rows = attention_rows_of(k, &f->in, t, &f->sums);
	f->key0 = cptx_var(k, CPTX_S32, t->last_key);
	first_block(f);
	if (f->o->blocks)
		skipping_steps(f);
	else
		plain_steps(f);
	release(f, &f->q_pipe, &f->q_at);
	issue_pv(f);
	cptx_mma_wait(k, &f->pv, 0);
	release(f, pipe_of_v(f), &f->v_at);
}

static void store(forward90 *f)
{
	cptx_kernel *k = f->k;
	cptx_epilogue e;

	const cptx_val part = cptx_softmax_end(k, &f->soft, &f->sums);
	for (uint32_t r = 0; r < part.count && attention_is_fp8(f->o); r++)
		cptx_mul(k, cptx_elem(part, r), f->in.v_scale, .into = cptx_elem(part, r));
	cptx_acc_scale_rows(k, &f->results, part);
	if (f->o->lse)
		attention_store_lse(k, &f->in, &f->tile, &f->sums, cptx_softmax_lse(k, &f->soft, &f->sums));
	if (!attention_stores_by_tma(f->o)) {
		attention_store_o(k, &f->in, &f->tile, &f->results);
		return;
	}
	cptx_epilogue_new(k, &e, .vec = 2);
	cptx_epilogue_run(k, &e, &f->results, .row = f->tile.row0);
	cptx_epilogue_store_tma(k, &e, &f->ring, .z = cptx_as(f->tile.head, CPTX_S32), .z2 = cptx_as(f->tile.batch, CPTX_S32));
}

static void begin_group(forward90 *f)
{
	cptx_kernel *k = f->k;
	const enum cptx_type in = f->o->in;

	f->group = cptx_shr(k, cptx_role_warp(k, &f->roles), 2);
	f->thread = cptx_and(k, f->roles.tid, GROUP_THREADS - 1);
	f->releases = cptx_setp(k, f->thread, 0, .cmp = CPTX_EQ);
	f->q_at = cptx_pipe_consumer(k, &f->q_pipe);
	f->k_at = cptx_pipe_consumer(k, &f->k_pipe);
	f->v_at = cptx_pipe_consumer(k, pipe_of_v(f));
	cptx_tiled_mma_new(k, &f->qk, .by = CPTX_BY_WGMMA, .a = in, .b = in, .m = GROUP_ROWS, .n = f->o->bk,
	                   .units_m = f->s.groups, .a_tile = f->s.q, .b_tile = f->s.k, .unit = f->group, .thread = f->thread);
	cptx_tiled_mma_new(k, &f->pv, .by = CPTX_BY_WGMMA, .a = in, .b = in, .m = GROUP_ROWS, .n = f->s.dim_v,
	                   .units_m = f->s.groups, .a_from = CPTX_A_REGS, .b_tile = f->s.turners ? f->s.turned : f->s.v,
	                   .unit = f->group, .thread = f->thread);
	cptx_acc_new(k, &f->qk, &f->sums);
	cptx_acc_new(k, &f->pv, &f->results);
	f->p = cptx_regs(k, CPTX_B32, f->sums.count * cptx_type_bits(in) / 32);
	if (!attention_stores_by_tma(f->o))
		return;
	cptx_epilogue_ring_new(k, &f->ring, .type = attention_out(f->o), .tile = f->s.o, .map = f->in.map_o,
	                       .stages = f->s.o_stages, .units = f->s.groups, .unit = f->group,
	                       .barrier = cptx_add(k, f->group, STORE), .acc = &f->results);
}

/* Warpgroup 0 has the first turn; the last one's arrival for it at the end of all is taken there. */
static void begin_turns(forward90 *f)
{
	cptx_kernel *k = f->k;
	const cptx_val last = cptx_setp(k, f->group, f->s.groups - 1, .cmp = CPTX_EQ);

	f->turn = cptx_add(k, f->group, TURN);
	f->next_turn = cptx_selp(k, TURN, cptx_add(k, f->turn, 1), last, .type = CPTX_U32);
	CPTX_IF(k, last)
		cptx_bar_arrive(k, f->next_turn, 2 * GROUP_THREADS);
}

static void end_turns(forward90 *f)
{
	cptx_kernel *k = f->k;

	CPTX_IF(k, cptx_setp(k, f->group, 0, .cmp = CPTX_EQ))
		cptx_bar_sync(k, f->turn, .b = cptx_imm(2 * GROUP_THREADS));
}

static void multiply_tile(forward90 *f)
{
	cptx_kernel *k = f->k;

	cptx_acc_clear(k, &f->results);
	attention_begin_softmax(k, &f->in, &f->tile, &f->sums, &f->soft);
	CPTX_IF(k, cptx_setp(k, f->tile.blocks, 0, .cmp = CPTX_GT))
		multiply_blocks(f);
	store(f);
}

static void multiply(forward90 *f)
{
	cptx_kernel *k = f->k;
	cptx_tiles_at t;

	begin_group(f);
	if (f->s.ping_pong)
		begin_turns(f);
	CPTX_TILES(k, &f->tiles, &t)
	{
		attention_locate(k, &f->in, t.id, &f->tile);
		if (f->tile.there.kind != CPTX_VAL_NONE) {
			CPTX_IF(k, f->tile.there)
				multiply_tile(f);
		} else {
			multiply_tile(f);
		}
	}
	if (f->s.ping_pong)
		end_turns(f);
	if (attention_stores_by_tma(f->o))
		cptx_epilogue_ring_drain(k, &f->ring, &f->results);
}

cptx_kernel *attention_sm90_build(cptx_module *m, const cptx_attention_opt *o)
{
	forward90 f = { .o = o, .s = attention_sm90_shape(o) };

	f.k = cptx_kernel_begin(m, o->name, .block = { f.s.threads }, .min_ctas = 1);
	setup(&f);
	if (f.s.turners) {
		CPTX_ROLE(f.k, &f.roles, .warps = 4, .regs = f.s.regs[0], .exits = true)
			produce_and_turn(&f);
	} else {
		CPTX_ROLE(f.k, &f.roles, .warps = 4, .regs = f.s.regs[0], .elect = true, .exits = true)
			produce(&f);
	}
	CPTX_ROLE(f.k, &f.roles, .warps = 4 * f.s.groups, .regs = f.s.regs[1])
		multiply(&f);
	return f.k;
}
