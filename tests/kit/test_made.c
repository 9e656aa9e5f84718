/* SPDX-License-Identifier: MIT */
/*
 * Structs that calls of the kit make: each call refuses those that nobody made (zeros, bytes of something else), whose
 * making failed, and that are of another kernel, of the same module or of another, with the line of the call.
 */
#include "on_emu.h"

#include <cptx/cptx.h>
#include <cptx/epilogue.h>
#include <cptx/operand.h>
#include <cptx/params.h>
#include <cptx/roles.h>
#include <cptx/scheduler.h>
#include <cptx/softmax.h>
#include <cptx/timeline.h>
#include <cptx/tmem.h>
#include <cptx/vector.h>

/* A kernel, and one of each noun, made in it. */
typedef struct things {
	cptx_module *m;
	cptx_kernel *k;
	cptx_val u32, u64, f32, pred;
	cptx_tiled_mma mma, sync, tcgen05;
	cptx_acc acc, of_sync, in_tmem, part;
	cptx_mma_frags frags;
	cptx_operand operand, by_threads;
	cptx_operand_src src;
	cptx_params params;
	cptx_pipe pipe;
	cptx_pipe_at pipe_at;
	cptx_reduce reduce;
	cptx_roles roles;
	cptx_row row;
	cptx_row_at row_at;
	cptx_softmax softmax;
	cptx_tiles tiles;
	cptx_tiles_at tiles_at;
	cptx_tile_groups tile_groups;
	cptx_tile_group tile_group;
	cptx_timeline timeline;
	cptx_tmem tmem;
	cptx_epilogue epilogue;
	cptx_epilogue_ring ring, ring_of_acc;
	cptx_epilogue_deferred deferred;
} things;

struct args {
	uint32_t n;
};
static const cptx_param_row rows[] = { CPTX_PARAM_ROW(struct args, CPTX_U32, n) };

static void begin_values(things *x, cptx_module *m, const char *name)
{
	*x = (things){ .m = m };
	x->k = cptx_kernel_begin(m, name, .block = { 128 }, .min_ctas = 1);
	x->u32 = cptx_var(x->k, CPTX_U32, 0);
	x->u64 = cptx_var(x->k, CPTX_U64, 0);
	x->f32 = cptx_var(x->k, CPTX_F32, 0);
	x->pred = cptx_setp(x->k, x->u32, 1, .cmp = CPTX_EQ);
}

static void make_products(things *x)
{
	const cptx_tile t = { 64, 64, .elem.bits = 16, .swizzle = CPTX_SWIZZLE_128B };
	cptx_tile tall = t;
	cptx_kernel *k = x->k;

	tall.rows = 128;
	cptx_tiled_mma_new(k, &x->mma, .by = CPTX_BY_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .m = 64, .n = 64, .a_tile = t,
	                   .b_tile = t);
	cptx_tiled_mma_new(k, &x->sync, .a = CPTX_BF16, .b = CPTX_BF16, .m = 64, .n = 64, .a_tile = t, .b_tile = t);
	cptx_tiled_mma_new(k, &x->tcgen05, .by = CPTX_BY_TCGEN05, .a = CPTX_BF16, .b = CPTX_BF16, .m = 128, .n = 64,
	                   .a_tile = tall, .b_tile = t);
	cptx_acc_new(k, &x->mma, &x->acc);
	cptx_acc_new(k, &x->sync, &x->of_sync);
	cptx_acc_in_tmem(k, &x->tcgen05, &x->in_tmem, x->u32);
	cptx_acc_load(k, &x->in_tmem, 0, 32, &x->part);
	cptx_mma_frags_new(k, &x->sync, &x->frags, false);
	cptx_softmax_new(k, &x->softmax, x->acc.rows, 1.0f);
	cptx_epilogue_new(k, &x->epilogue, .vec = 2);
	cptx_epilogue_run(k, &x->epilogue, &x->acc, .row = x->u32);
	cptx_epilogue_ring_new(k, &x->ring, .type = CPTX_BF16, .tile = cptx_epilogue_tile(CPTX_BF16, 64, 64), .map = x->u64,
	                       .barrier = cptx_imm(1));
	cptx_epilogue_ring_new(k, &x->ring_of_acc, .type = CPTX_BF16, .tile = cptx_epilogue_tile(CPTX_BF16, 64, 64),
	                       .map = x->u64, .barrier = cptx_imm(1), .acc = &x->acc);
	cptx_epilogue_deferred_new(k, &x->deferred, .ring = &x->ring_of_acc);
}

/* All nouns, with no block open. */
static void begin(things *x, cptx_module *m, const char *name)
{
	const cptx_tile t = { 64, 64, .elem.bits = 16, .swizzle = CPTX_SWIZZLE_128B };

	begin_values(x, m, name);
	cptx_kernel *k = x->k;
	make_products(x);
	cptx_operand_new(k, &x->operand, .type = CPTX_BF16, .tile = t, .map = x->u64);
	cptx_operand_new(k, &x->by_threads, .by = CPTX_OPERAND_CP_ASYNC, .type = CPTX_BF16, .tile = t, .address = x->u64,
	                 .cols = cptx_imm(64), .threads = 128);
	x->src = cptx_operand_source(k, &x->operand, x->u32, x->u32);
	cptx_params_declare(k, &x->params, rows, 1);
	cptx_pipe_new(k, &x->pipe, .stages = 2);
	x->pipe_at = cptx_pipe_producer(k, &x->pipe);
	cptx_reduce_new(k, &x->reduce, .threads = 128);
	cptx_roles_begin(k, &x->roles, .threads = 128);
	cptx_row_new(k, &x->row, .type = CPTX_F32, .n = 1024, .threads = 128);
	cptx_row_each_(k, CPTX_HERE, &x->row, &x->row_at, false);
	cptx_tiles_new(k, &x->tiles, .schedule = CPTX_TILES_STREAM_K, .tiles_m = cptx_imm(8), .tiles_n = cptx_imm(8),
	               .k_tiles = cptx_imm(8));
	cptx_tiles_first(k, &x->tiles, &x->tiles_at);
	cptx_tiles_take(k, &x->tiles, &x->tiles_at);
	cptx_tile_groups_new(k, &x->tile_groups, .counts = x->u64, .groups = cptx_imm(2), .rows = cptx_imm(8),
	                     .tiles = cptx_imm(3));
	cptx_tile_groups_first(k, &x->tile_groups, &x->tile_group);
	cptx_timeline_begin(k, &x->timeline, .buffer = x->u64, .warps = 4, .events = 8);
	cptx_tmem_begin_(k, CPTX_HERE, &x->tmem, CPTX_OPT(cptx_tmem_opt, .columns = 32, .warp = x->pred));
	cptx_tmem_end_(k, CPTX_HERE, &x->tmem);
}

/* Makes all nouns by calls that fail, each call in a module of its own, as the first error closes a module. */
static void fail_all(things *x)
{
	enum { CALLS = 16 };
	const cptx_tile none = { 0 };

	for (int i = 0; i < CALLS; i++) {
		things y;
		begin_values(&y, cptx_module_new(NULL), "failed");
		cptx_kernel *k = y.k;
		switch (i) {
		case 0: cptx_tiled_mma_new(k, &x->mma, .m = 7); break;
		case 1: cptx_acc_new(k, NULL, &x->acc); break;
		case 2: cptx_mma_frags_new(k, NULL, &x->frags, true); break;
		case 3: cptx_softmax_new(k, &x->softmax, 0, 1.0f); break;
		case 4: cptx_epilogue_new(k, &x->epilogue, .vec = 3); break;
		case 5: cptx_epilogue_ring_new(k, &x->ring, .tile = none); break;
		case 6: cptx_operand_new(k, &x->operand, .stages = 100); break;
		case 7: x->src = cptx_operand_source(k, NULL, y.u32, y.u32); break;
		case 8: cptx_pipe_new(k, &x->pipe, .stages = 0); break;
		case 9: cptx_reduce_new(k, &x->reduce, .threads = 7); break;
		case 10: cptx_roles_begin(k, &x->roles, .threads = 7); break;
		case 11: cptx_row_new(k, &x->row, .n = 7); break;
		case 12: cptx_tiles_new(k, &x->tiles, .tiles_m = y.pred); break;
		case 13: cptx_epilogue_deferred_new(k, &x->deferred, .ring = NULL); break;
		case 14: cptx_tile_groups_new(k, &x->tile_groups, .counts = y.u32); break;
		default: cptx_timeline_begin(k, &x->timeline, .buffer = y.u64); break;
		}
		ck_assert_msg(cptx_module_error(y.m) != NULL, "making number %d does not fail", i);
		cptx_module_destroy(y.m);
	}
	{
		things y;
		begin_values(&y, cptx_module_new(NULL), "failed");
		cptx_tmem_begin_(y.k, CPTX_HERE, &x->tmem, CPTX_OPT(cptx_tmem_opt, .columns = 1000));
		x->pipe_at = cptx_pipe_consumer(y.k, NULL);
		cptx_tiles_first(y.k, NULL, &x->tiles_at);
		cptx_tile_groups_first(y.k, NULL, &x->tile_group);
		cptx_acc_load(y.k, NULL, 0, 2, &x->part);
		cptx_module_destroy(y.m);
	}
	x->sync = x->tcgen05 = x->mma, x->of_sync = x->in_tmem = x->acc, x->by_threads = x->operand;
}

enum how { ZEROS, BYTES, FAILED, SAME_MODULE, OTHER_MODULE, HOWS };
static const char *const hows[] = { "zeros", "other bytes", "of a failed call", "of another kernel", "of another module" };

/* A set of what cannot be used, in place of the things of x. */
static things spoilt(enum how how, things *same, things *other)
{
	things y;

	memset(&y, how == BYTES ? 0xa5 : 0, sizeof y);
	if (how == FAILED) {
		memset(&y, 0xa5, sizeof y);
		fail_all(&y);
		y.row_at = (cptx_row_at){ .i = 0 }, y.params = (cptx_params){ .n = 1 };
	}
	return how == SAME_MODULE ? *same : how == OTHER_MODULE ? *other : y;
}

/* One call, of a number; which noun is wrong in it; the line that the error must name. */
typedef struct one_call {
	int n, at;
	uint32_t line;
	const char *noun;
	things *x;
	const things *wrong;
} one_call;

/* Whether call number c->n is this one; then x->noun is wrong. */
#define CALL_WITH(noun_, ...)                                                                                               \
	do                                                                                                                      \
		if (c->at++ == c->n) {                                                                                              \
			x->noun_ = c->wrong->noun_;                                                                                     \
			c->noun = #noun_, c->line = __LINE__;                                                                           \
			__VA_ARGS__;                                                                                                    \
			return true;                                                                                                    \
		}                                                                                                                   \
	while (0)

static bool call_mma(one_call *c)
{
	things *x = c->x;
	cptx_kernel *k = x->k;
	cptx_acc fresh;
	cptx_mma_frags frags;

	CALL_WITH(mma, cptx_acc_new(k, &x->mma, &fresh));
	CALL_WITH(mma, cptx_mma_tile(k, &x->mma, &x->acc, x->u32, x->u32));
	CALL_WITH(mma, cptx_mma_stage(k, &x->mma, &x->acc, x->u32));
	CALL_WITH(mma, cptx_mma_wait(k, &x->mma, 0));
	CALL_WITH(mma, cptx_acc_as_a(k, &x->acc, &x->mma));
	CALL_WITH(sync, cptx_mma_frags_new(k, &x->sync, &frags, false));
	CALL_WITH(sync, cptx_mma_fetch(k, &x->sync, &x->frags, x->u32, x->u32));
	CALL_WITH(sync, cptx_mma_load_a(k, &x->sync, x->u32));
	CALL_WITH(tcgen05, cptx_mma_commit(k, &x->tcgen05, x->u32));
	CALL_WITH(tcgen05, cptx_mma_copy_a(k, &x->tcgen05, x->u32, x->u32));
	CALL_WITH(tcgen05, cptx_mma_copy_scale_b(k, &x->tcgen05, x->u32, x->u32));
	CALL_WITH(tcgen05, cptx_acc_in_tmem(k, &x->tcgen05, &fresh, x->u32));
	CALL_WITH(frags, cptx_mma_fetch(k, &x->sync, &x->frags, x->u32, x->u32));
	CALL_WITH(frags, cptx_mma_tile(k, &x->sync, &x->of_sync, x->u32, x->u32, .frags = &x->frags));
	return false;
}

static bool call_acc(one_call *c)
{
	things *x = c->x;
	cptx_kernel *k = x->k;
	cptx_acc fresh;
	cptx_val v;

	CALL_WITH(acc, cptx_mma_tile(k, &x->mma, &x->acc, x->u32, x->u32));
	CALL_WITH(acc, cptx_acc_clear(k, &x->acc));
	CALL_WITH(acc, cptx_acc_row_vector(k, &x->acc, 0.0f));
	CALL_WITH(acc, v = cptx_regs(k, CPTX_F32, 2); cptx_acc_row_reduce(k, &x->acc, CPTX_REDUCE_MAX, v));
	CALL_WITH(acc, v = cptx_regs(k, CPTX_F32, 2); cptx_acc_row_combine(k, &x->acc, CPTX_REDUCE_MAX, v));
	CALL_WITH(acc, v = cptx_regs(k, CPTX_F32, 2); cptx_acc_scale_rows(k, &x->acc, v));
	CALL_WITH(acc, cptx_acc_narrow(k, &x->acc, CPTX_BF16));
	CALL_WITH(acc, cptx_acc_as_a(k, &x->acc, &x->mma));
	CALL_WITH(acc, cptx_acc_store(k, &x->acc, &(cptx_acc_matrix){ .address = x->u64, .type = CPTX_F32 }));
	CALL_WITH(acc, cptx_softmax_mask(k, &x->acc, .cols = x->u32));
	CALL_WITH(acc, cptx_softmax_step(k, &x->softmax, &x->acc));
	CALL_WITH(acc, cptx_softmax_max(k, &x->softmax, &x->acc));
	CALL_WITH(acc, v = cptx_regs(k, CPTX_F32, 2); cptx_softmax_step_to(k, &x->softmax, &x->acc, v));
	CALL_WITH(acc, cptx_softmax_step_lazily(k, &x->softmax, &x->acc, &x->acc, 8));
	CALL_WITH(acc, cptx_softmax_end(k, &x->softmax, &x->acc));
	CALL_WITH(acc, cptx_softmax_lse(k, &x->softmax, &x->acc));
	CALL_WITH(acc, cptx_epilogue_run(k, &x->epilogue, &x->acc, .row = x->u32));
	CALL_WITH(acc, cptx_epilogue_ring_drain(k, &x->ring, &x->acc));
	CALL_WITH(in_tmem, cptx_acc_load(k, &x->in_tmem, 0, 32, &fresh));
	CALL_WITH(in_tmem, cptx_acc_save(k, &x->in_tmem, 0, &x->part));
	CALL_WITH(part, cptx_acc_save(k, &x->in_tmem, 0, &x->part));
	CALL_WITH(part, cptx_acc_put_a(k, &x->part, CPTX_BF16, x->u32, 0));
	CALL_WITH(softmax, cptx_softmax_step(k, &x->softmax, &x->acc));
	CALL_WITH(softmax, cptx_softmax_max(k, &x->softmax, &x->acc));
	CALL_WITH(softmax, v = cptx_regs(k, CPTX_F32, 2); cptx_softmax_step_to(k, &x->softmax, &x->acc, v));
	CALL_WITH(softmax, cptx_softmax_step_lazily(k, &x->softmax, &x->acc, &x->acc, 8));
	CALL_WITH(softmax, cptx_softmax_end(k, &x->softmax, &x->acc));
	CALL_WITH(softmax, cptx_softmax_lse(k, &x->softmax, &x->acc));
	CALL_WITH(epilogue, cptx_epilogue_add(k, &x->epilogue, CPTX_VISIT_RELU, .type = CPTX_F32));
	CALL_WITH(epilogue, cptx_epilogue_run(k, &x->epilogue, &x->acc, .row = x->u32));
	CALL_WITH(epilogue, cptx_epilogue_store(k, &x->epilogue, .address = x->u64, .type = CPTX_F32, .pitch = cptx_imm(64)));
	CALL_WITH(epilogue, cptx_epilogue_store_tma(k, &x->epilogue, &x->ring));
	CALL_WITH(ring, cptx_epilogue_store_tma(k, &x->epilogue, &x->ring));
	CALL_WITH(ring, cptx_epilogue_ring_drain(k, &x->ring, &x->acc));
	CALL_WITH(deferred, cptx_epilogue_defer(k, &x->epilogue, &x->deferred));
	CALL_WITH(deferred, cptx_epilogue_deferred_store(k, &x->deferred, 0, 1));
	CALL_WITH(deferred, cptx_epilogue_deferred_rest(k, &x->deferred, 0));
	return false;
}

static bool call_copies(one_call *c)
{
	things *x = c->x;
	cptx_kernel *k = x->k;

	CALL_WITH(by_threads, cptx_operand_rebase(k, &x->by_threads, x->u64));
	CALL_WITH(operand, cptx_operand_at(k, &x->operand, x->u32));
	CALL_WITH(operand, cptx_operand_source(k, &x->operand, x->u32, x->u32));
	CALL_WITH(operand, cptx_operand_seek(k, &x->operand, &x->src, x->u32, x->u32));
	CALL_WITH(operand, cptx_operand_advance(k, &x->operand, &x->src, 64, 0));
	CALL_WITH(operand, cptx_operand_load_from(k, &x->operand, 0, &x->src, .barrier = x->u32));
	CALL_WITH(operand, cptx_operand_load(k, &x->operand, 0, 0, 0, .barrier = x->u32));
	CALL_WITH(by_threads, cptx_operand_load(k, &x->by_threads, 0, 0, 0, .first = 0));
	CALL_WITH(src, cptx_operand_seek(k, &x->operand, &x->src, x->u32, x->u32));
	CALL_WITH(src, cptx_operand_advance(k, &x->operand, &x->src, 64, 0));
	CALL_WITH(src, cptx_operand_load_from(k, &x->operand, 0, &x->src, .barrier = x->u32));
	CALL_WITH(pipe, cptx_pipe_prepare(k, &x->pipe, x->pred));
	CALL_WITH(pipe, cptx_pipe_init(k, &x->pipe, x->pred));
	CALL_WITH(pipe, cptx_pipe_producer(k, &x->pipe));
	CALL_WITH(pipe, cptx_pipe_consumer_of(k, &x->pipe, x->u32));
	CALL_WITH(pipe, cptx_pipe_next(k, &x->pipe, &x->pipe_at));
	CALL_WITH(pipe, cptx_pipe_ahead(k, &x->pipe, &x->pipe_at));
	CALL_WITH(pipe, cptx_pipe_wait_full(k, &x->pipe, &x->pipe_at));
	CALL_WITH(pipe, cptx_pipe_release(k, &x->pipe, &x->pipe_at, x->pred));
	CALL_WITH(pipe, cptx_pipe_left_none(k, &x->pipe, &x->pipe_at));
	CALL_WITH(pipe, cptx_pipe_left left = { .at = x->pipe_at }; cptx_pipe_leave(k, &x->pipe, &left, &x->pipe_at, x->pred));
	CALL_WITH(pipe, cptx_pipe_drain(k, &x->pipe, &x->pipe_at));
	CALL_WITH(pipe_at, cptx_pipe_next(k, &x->pipe, &x->pipe_at));
	CALL_WITH(pipe_at, cptx_pipe_ahead(k, &x->pipe, &x->pipe_at));
	CALL_WITH(pipe_at, cptx_pipe_at ahead = x->pipe_at; cptx_pipe_go(k, &x->pipe_at, &ahead));
	CALL_WITH(pipe_at, cptx_pipe_full_of(k, &x->pipe_at));
	CALL_WITH(pipe_at, cptx_pipe_is_full(k, &x->pipe_at));
	CALL_WITH(pipe_at, cptx_pipe_wait_empty(k, &x->pipe, &x->pipe_at));
	CALL_WITH(pipe_at, cptx_pipe_expect(k, &x->pipe, &x->pipe_at, 16));
	CALL_WITH(pipe_at, cptx_pipe_filled(k, &x->pipe, &x->pipe_at));
	CALL_WITH(pipe_at, cptx_pipe_copied(k, &x->pipe, &x->pipe_at));
	CALL_WITH(pipe_at, cptx_pipe_release(k, &x->pipe, &x->pipe_at, x->pred));
	CALL_WITH(pipe_at, cptx_pipe_left_none(k, &x->pipe, &x->pipe_at));
	CALL_WITH(pipe_at, cptx_pipe_left left = { .at = x->pipe_at };
	          cptx_pipe_leave(k, &x->pipe, &left, &x->pipe_at, x->pred));
	CALL_WITH(pipe_at, cptx_pipe_drain(k, &x->pipe, &x->pipe_at));
	return false;
}

static bool call_rest(one_call *c)
{
	things *x = c->x;
	cptx_kernel *k = x->k;
	cptx_row fresh;

	CALL_WITH(params, cptx_params_declare(k, &x->params, rows, 1));
	CALL_WITH(params, cptx_params_get(k, &x->params, "n"));
	CALL_WITH(params, cptx_params_prefetch(k, &x->params, x->pred));
	CALL_WITH(reduce, cptx_reduce_cta(k, &x->reduce, x->f32, CPTX_REDUCE_SUM));
	CALL_WITH(reduce, cptx_reduce_cluster(k, &x->reduce, x->f32, CPTX_REDUCE_SUM));
	CALL_WITH(reduce, cptx_reduce_grid(k, &x->reduce, x->f32, CPTX_REDUCE_SUM, x->u64));
	CALL_WITH(reduce, cptx_scan_cta(k, &x->reduce, x->f32, CPTX_REDUCE_SUM, false));
	CALL_WITH(roles, CPTX_ROLE(k, &x->roles, .warps = 1) cptx_nanosleep(k, 1));
	CALL_WITH(roles, cptx_role_end_(k, CPTX_HERE, &x->roles));
	CALL_WITH(roles, cptx_role_warp(k, &x->roles));
	CALL_WITH(roles, cptx_role_thread(k, &x->roles));
	CALL_WITH(row, cptx_row_like(k, &x->row, &fresh));
	CALL_WITH(row, cptx_row_begin(k, &x->row, x->u64));
	CALL_WITH(row, cptx_row_load(k, &x->row, x->u64, .fill = 0));
	CALL_WITH(row, cptx_row_store(k, &x->row, x->u64, .cop = CPTX_CS));
	CALL_WITH(row, CPTX_ROW_EACH(k, &x->row, &x->row_at) cptx_nanosleep(k, 1));
	CALL_WITH(row, cptx_row_column(k, &x->row, &x->row_at));
	CALL_WITH(row, cptx_row_inside(k, &x->row, &x->row_at));
	CALL_WITH(row_at, cptx_row_inside(k, &x->row, &x->row_at));
	CALL_WITH(row_at, cptx_row_each_(k, CPTX_HERE, &x->row, &x->row_at, true));
	CALL_WITH(row_at, cptx_row_column(k, &x->row, &x->row_at));
	CALL_WITH(tiles, cptx_tiles_prepare(k, &x->tiles, x->pred));
	CALL_WITH(tiles, CPTX_TILES(k, &x->tiles, &x->tiles_at) cptx_nanosleep(k, x->tiles_at.m));
	CALL_WITH(tiles, cptx_tiles_first(k, &x->tiles, &x->tiles_at));
	CALL_WITH(tiles, cptx_tiles_take(k, &x->tiles, &x->tiles_at));
	CALL_WITH(tiles, cptx_tiles_matrix(k, &x->tiles, &x->tiles_at));
	CALL_WITH(tiles, cptx_tiles_locate(k, &x->tiles, &x->tiles_at));
	CALL_WITH(tiles_at, cptx_tiles_end_(k, CPTX_HERE, &x->tiles, &x->tiles_at));
	CALL_WITH(tiles_at, cptx_tiles_take(k, &x->tiles, &x->tiles_at));
	CALL_WITH(tiles_at, cptx_tiles_matrix(k, &x->tiles, &x->tiles_at));
	CALL_WITH(tiles_at, cptx_tiles_locate(k, &x->tiles, &x->tiles_at));
	CALL_WITH(tiles_at, cptx_tiles_is_whole(k, &x->tiles, &x->tiles_at));
	CALL_WITH(tiles_at, cptx_tiles_finishes(k, &x->tiles, &x->tiles_at));
	CALL_WITH(tiles_at, cptx_tiles_share_end(k, &x->tiles, &x->tiles_at));
	CALL_WITH(tile_groups, cptx_tile_groups_first(k, &x->tile_groups, &x->tile_group));
	CALL_WITH(tile_groups, cptx_tile_groups_find(k, &x->tile_groups, &x->tile_group, x->u32));
	CALL_WITH(tile_group, cptx_tile_groups_find(k, &x->tile_groups, &x->tile_group, x->u32));
	CALL_WITH(timeline, cptx_timeline_stamp(k, &x->timeline, 0));
	CALL_WITH(tmem, cptx_tmem_end_(k, CPTX_HERE, &x->tmem));
	return false;
}

/* Runs call n with what is wrong; false: there are no more. */
static bool refuses(int n, enum how how)
{
	things same, other, x, wrong;
	cptx_module *m = cptx_module_new(NULL), *far = cptx_module_new(NULL);
	one_call c = { .n = n, .x = &x, .wrong = &wrong };
	char where[64];

	begin(&same, m, "first"), begin(&x, m, "second"), begin(&other, far, "second");
	SURE(!cptx_module_error(m) && !cptx_module_error(far), "%s",
	     cptx_module_error(m) ? cptx_module_error(m)->text : "the other module");
	wrong = spoilt(how, &same, &other);
	const size_t before = cptx_module_size(m);
	const bool there = call_mma(&c) || call_acc(&c) || call_copies(&c) || call_rest(&c);
	const cptx_error *e = cptx_module_error(m);
	const bool empty = there && how == ZEROS && !strcmp(c.noun, "params"); /* none is declared yet */
	if (there && !empty) {
		snprintf(where, sizeof where, "test_made.c:%u: ", c.line);
		SURE(e, "line %u: %s: no error", c.line, hows[how]);
		SURE(strstr(e->text, where), "%s\nis not of line %u", e->text, c.line);
		SURE(strstr(e->text, how >= SAME_MODULE ? "of another kernel; each kernel makes its own: " : " did not make"),
		     "line %u: %s: %s", c.line, hows[how], e->text);
		SURE(cptx_module_size(m) <= before + 2, "line %u: %zu instructions of a call that failed", c.line,
		     cptx_module_size(m) - before);
	}
	cptx_module_destroy(m), cptx_module_destroy(far);
	return there;
}

START_TEST(calls_refuse_what_is_not_made)
{
	int n = 0;

	while (refuses(n, (enum how)_i))
		n++;
	ck_assert_int_gt(n, 100);
}
END_TEST

/* A loop over an accumulator's elements has no kernel to tell: it is short, and what uses its element is told. */
START_TEST(loops_over_garbage_end)
{
	cptx_module *m = cptx_module_new(NULL);
	things x, wrong;
	int turns = 0;

	begin_values(&x, m, "k");
	memset(&wrong, 0xa5, sizeof wrong);
	CPTX_ACC_EACH(&wrong.acc, e)
	{
		cptx_mul(x.k, e.value, 0.5f, .into = e.value);
		turns++;
	}
	ck_assert_int_eq(turns, 1);
	ck_assert_ptr_nonnull(cptx_module_error(m));
	cptx_module_destroy(m);
}
END_TEST

/* The calls above go over all structs that the kit makes. */
START_TEST(all_structs_are_here)
{
	static const char here[] = ""
#define NOUN(type, bytes, what, by) #type " "
#include "kit/nouns.def"
		;
	static const char *const tried[] = {
		"cptx_tiled_mma",   "cptx_acc",       "cptx_mma_frags",     "cptx_operand",  "cptx_operand_src",
		"cptx_params",      "cptx_pipe",      "cptx_pipe_at",       "cptx_reduce",   "cptx_roles",
		"cptx_row",         "cptx_row_at",    "cptx_softmax",       "cptx_tiles",    "cptx_tiles_at",
		"cptx_timeline",    "cptx_tmem",      "cptx_epilogue_ring", "cptx_epilogue", "cptx_epilogue_deferred",
		"cptx_tile_groups", "cptx_tile_group"
	};
	size_t length = 0;

	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
		char word[40];
		snprintf(word, sizeof word, "%s ", tried[i]);
		SURE(strstr(here, word), "%s is no struct of the kit", tried[i]);
		length += strlen(word);
	}
	SURE(length == sizeof here - 1, "a struct of src/kit/nouns.def is not tried: %s", here);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *t = test_case(s, "made");

	tcase_add_loop_test(t, calls_refuse_what_is_not_made, 0, HOWS);
	tcase_add_test(t, loops_over_garbage_end);
	tcase_add_test(t, all_structs_are_here);
	return test_main("kit made", s);
}
