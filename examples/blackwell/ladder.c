/* SPDX-License-Identifier: MIT */
/*
 * What the rungs share: the setup of a kernel, a step along K of the producer and of the thread that starts products, and
 * the epilogue.
 */
#include "ladder.h"

#include <cptx/cptx.h>

enum { ACCS = 2 /* accumulators of persistent rungs */, CHUNK = 32 /* columns of an accumulator that are read at once */ };

/* ---- what host and kernel agree on ---- */

static uint32_t ctas_of(const ladder_rung *rung) { return rung->pair ? 2 : 1; }

static bool stays(const ladder_rung *rung) { return rung->schedule != CPTX_TILES_GRID; }

uint32_t ladder_threads(const ladder_rung *rung) { return (stays(rung) ? EPILOGUE_WARPS + 2 : EPILOGUE_WARPS) * CPTX_WARP; }

uint32_t ladder_params(const ladder_rung *rung, const ladder_opt *o, const ladder_args *args,
                       cptx_params_part part[LADDER_PARTS])
{
	static const cptx_param_row in[] = { CPTX_PARAM_MAP(ladder_args, A), CPTX_PARAM_MAP(ladder_args, B) };
	static const cptx_param_row map[] = { CPTX_PARAM_MAP(ladder_args, D_map) };
	static const cptx_param_row pointer[] = { CPTX_PARAM_ROW(ladder_args, CPTX_PTR, D) };
	static const cptx_param_row sizes[] = { CPTX_PARAM_ROW(ladder_args, CPTX_U32, M),
		                                    CPTX_PARAM_ROW(ladder_args, CPTX_U32, N),
		                                    CPTX_PARAM_ROW(ladder_args, CPTX_U32, K) };
	static const cptx_param_row stamps[] = { CPTX_PARAM_ROW(ladder_args, CPTX_PTR, timeline) };

	part[0] = (cptx_params_part){ in, CPTX_PARAM_COUNT(in), args };
	part[1] = (cptx_params_part){ rung->store_map ? map : pointer, 1, args };
	part[2] = (cptx_params_part){ sizes, CPTX_PARAM_COUNT(sizes), args };
	part[3] = (cptx_params_part){ stamps, 1, args };
	return o->timeline ? 4 : 3;
}

cptx_operand_opt ladder_operand(const ladder_rung *rung, const ladder_opt *o, bool of_b)
{
	return (cptx_operand_opt){
		.type = o->in,
		.tile = { .rows = of_b ? o->n / ctas_of(rung) : ROWS, .cols = o->k, .elem.bits = 16, .swizzle = rung->swizzle },
		.stages = rung->staged ? o->stages : 1,
		.spans = rung->whole
	};
}

cptx_tile ladder_d_tile(const ladder_opt *o) { return cptx_epilogue_tile(o->out, CPTX_WARP, STORE_COLS / STORE_STAGES); }

/* ---- setup ---- */

static cptx_operand operand(gemm *g, bool of_b, cptx_val *word)
{
	cptx_operand_opt opt = ladder_operand(g->rung, g->o, of_b);
	cptx_operand op;

	opt.map = cptx_params_get(g->k, &g->params, of_b ? "B" : "A");
	cptx_operand_make(g->k, &op, &opt);
	*word = cptx_tile_word(g->k, &op.opt.tile, CPTX_DESC_TCGEN05, op.smem);
	return op;
}

static cptx_val tiles_along(cptx_kernel *k, cptx_val n, uint32_t each)
{
	return cptx_div(k, cptx_add(k, n, each - 1), each);
}

static void declare(gemm *g, cptx_module *m)
{
	uint32_t ctas = ctas_of(g->rung);
	cptx_params_part part[LADDER_PARTS];

	g->k = cptx_kernel_begin(m, "gemm", .block = { ladder_threads(g->rung) }, .min_ctas = 1,
	                         .cluster = { ctas > 1 ? ctas : 0, ctas > 1, ctas > 1 });
	for (uint32_t i = 0, n = ladder_params(g->rung, g->o, NULL, part); i < n; i++)
		cptx_params_declare(g->k, &g->params, part[i].rows, part[i].n);
	cptx_val timeline = { 0 }; /* none: off */
	if (g->o->timeline)
		timeline = cptx_params_get(g->k, &g->params, "timeline");
	cptx_timeline_begin(g->k, &g->line, .buffer = timeline, .warps = ladder_threads(g->rung) / CPTX_WARP,
	                    .events = g->o->timeline);
}

static void setup(gemm *g)
{
	cptx_kernel *k = g->k;
	const ladder_opt *o = g->o;
	const uint32_t ctas = ctas_of(g->rung), size = cptx_type_bits(o->out) / 8;
	cptx_val M = cptx_params_get(k, &g->params, "M"), N = cptx_params_get(k, &g->params, "N");

	g->K = cptx_params_get(k, &g->params, "K");
	if (!g->rung->store_map)
		g->D = cptx_params_get(k, &g->params, "D");
	cptx_roles_begin(k, &g->roles, .threads = ladder_threads(g->rung));
	g->lane_0 = cptx_setp(k, g->roles.lane, 0, .cmp = CPTX_EQ);
	if (g->rung->pair)
		g->rank = cptx_cluster_ctarank(k), g->pair = cptx_mov(k, 3, .type = CPTX_U16);
	g->a = operand(g, false, &g->word_a);
	g->b = operand(g, true, &g->word_b);
	cptx_tiled_mma_new(k, &g->mma, .by = CPTX_BY_TCGEN05, .a = o->in, .b = o->in, .m = o->m, .n = o->n, .ctas = ctas,
	                   .a_tile = g->a.opt.tile, .b_tile = g->b.opt.tile, .thread = g->roles.tid);
	cptx_epilogue_new(k, &g->epilogue, .rows = M, .cols = N, .vec = 16 / size);
	if (g->rung->store_map)
		cptx_epilogue_ring_new(k, &g->ring, .type = o->out, .tile = ladder_d_tile(o), .stages = STORE_STAGES,
		                       .map = cptx_params_get(k, &g->params, "D_map"), .units = EPILOGUE_WARPS,
		                       .unit = g->roles.warp);
	cptx_val tiles_m = tiles_along(k, M, o->m), tiles_n = tiles_along(k, N, o->n);
	/* CANCEL: 4 warps in each CTA release an answer, the MMA warp in the first, and the producer in the other */
	cptx_tiles_new(k, &g->tiles, .schedule = g->rung->schedule, .tiles_m = tiles_m, .tiles_n = tiles_n, .cluster = ctas,
	               .consumers = g->cancels ? EPILOGUE_WARPS + 1 : 0);
}

static void prepare_pipes(gemm *g)
{
	cptx_kernel *k = g->k;
	cptx_val first = cptx_setp(k, g->roles.tid, 0, .cmp = CPTX_EQ);

	cptx_pipe_new(k, &g->stages, .stages = g->a.opt.stages);
	/* the epilogue warps of both CTAs release accumulators to the first */
	cptx_pipe_new(k, &g->accs, .stages = g->stays ? ACCS : 1, .consumers = EPILOGUE_WARPS, .multicast = g->stays ? 2 : 1);
	cptx_pipe_prepare(k, &g->stages, first);
	cptx_pipe_prepare(k, &g->accs, first);
	cptx_tiles_prepare(k, &g->tiles, first);
}

/* ---- a step along K ---- */

gemm_at gemm_place(const gemm *g, const cptx_tiles_at *t)
{
	cptx_kernel *k = g->k;
	cptx_val m = g->rung->pair ? cptx_mad(k, t->m, 2, g->rank, .mode = CPTX_LO) : t->m;
	cptx_val col = cptx_mul(k, t->n, g->o->n, .mode = CPTX_LO);
	gemm_at at = { .row = cptx_mul(k, m, ROWS, .mode = CPTX_LO), .col = col, .col_b = col };

	if (g->rung->pair)
		at.col_b = cptx_mad(k, g->rank, g->b.opt.tile.rows, col, .mode = CPTX_LO);
	return at;
}

cptx_pipe_at gemm_producer(const gemm *g)
{
	return g->rung->pair ? cptx_pipe_producer_of(g->k, &g->stages, cptx_imm(0)) : cptx_pipe_producer(g->k, &g->stages);
}

void gemm_load(const gemm *g, const gemm_at *at, cptx_val at_k, cptx_pipe_at *here)
{
	cptx_kernel *k = g->k;
	const uint32_t ctas = ctas_of(g->rung), bytes = ctas * (g->a.bytes + g->b.bytes);

	cptx_timeline_stamp(k, &g->line, CPTX_GEMM_WAIT_ROOM);
	cptx_pipe_wait_empty(k, &g->stages, here);
	cptx_timeline_stamp(k, &g->line, CPTX_GEMM_LOAD);
	if (g->rung->pair)
		CPTX_IF(k, cptx_setp(k, g->rank, 0, .cmp = CPTX_EQ))
			cptx_pipe_expect(k, &g->stages, here, bytes);
	else
		cptx_pipe_expect(k, &g->stages, here, bytes);
	cptx_val full = cptx_pipe_full_of(k, here);
	cptx_operand_load(k, &g->a, here->stage, at->row, at_k, .barrier = full, .ctas = ctas);
	cptx_operand_load(k, &g->b, here->stage, at->col_b, at_k, .barrier = full, .ctas = ctas);
	cptx_pipe_next(k, &g->stages, here);
}

void gemm_load_all(const gemm *g, const gemm_at *at, cptx_pipe_at *here)
{
	cptx_val at_k = cptx_var(g->k, CPTX_U32, 0);

	CPTX_FOR(g->k, at_k, g->K, g->o->k)
		gemm_load(g, at, at_k, here);
	cptx_timeline_stamp(g->k, &g->line, CPTX_TIMELINE_END);
}

/* ---- accumulators ---- */

cptx_acc gemm_acc(const gemm *g, const cptx_pipe_at *here)
{
	cptx_acc acc;

	cptx_acc_in_tmem(g->k, &g->mma, &acc, cptx_mad(g->k, here->stage, g->o->n, g->tmem.address, .mode = CPTX_LO));
	return acc;
}

void gemm_multiply(const gemm *g, const cptx_acc *acc, cptx_val at_k, cptx_pipe_at *here)
{
	cptx_kernel *k = g->k;
	cptx_val fresh = cptx_setp(k, at_k, 0, .cmp = CPTX_EQ);

	cptx_timeline_stamp(k, &g->line, CPTX_GEMM_WAIT_DATA);
	cptx_pipe_wait_full(k, &g->stages, here);
	cptx_timeline_stamp(k, &g->line, CPTX_GEMM_MULTIPLY);
	cptx_val a = cptx_mad_wide(k, here->stage, cptx_tile_word_bytes(g->a.apart), g->word_a);
	cptx_val b = cptx_mad_wide(k, here->stage, cptx_tile_word_bytes(g->b.apart), g->word_b);
	cptx_mma_tile(k, &g->mma, acc, a, b, .fresh_when = fresh, .fenced = true);
	cptx_mma_commit_to(k, &g->mma, cptx_pipe_empty(here), g->pair);
	cptx_pipe_next(k, &g->stages, here);
}

void gemm_multiply_all(const gemm *g, cptx_pipe_at *here, cptx_pipe_at *accs)
{
	cptx_kernel *k = g->k;
	cptx_val at_k = cptx_var(k, CPTX_U32, 0);
	cptx_acc acc = gemm_acc(g, accs);

	CPTX_FOR(k, at_k, g->K, g->o->k)
		gemm_multiply(g, &acc, at_k, here);
	gemm_commit(g, accs);
}

void gemm_commit(const gemm *g, cptx_pipe_at *accs)
{
	cptx_mma_commit_to(g->k, &g->mma, cptx_pipe_full(accs), g->pair);
	cptx_pipe_next(g->k, &g->accs, accs);
}

void gemm_store(gemm *g, const gemm_at *at, cptx_pipe_at *accs)
{
	cptx_kernel *k = g->k;
	const uint32_t n = g->o->n, chunk = g->rung->store_map ? STORE_COLS : n % CHUNK ? CHUNK / 2 : CHUNK;
	cptx_acc part;

	cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_WAIT_SUMS, g->lane_0);
	cptx_pipe_wait_full(k, &g->accs, accs);
	cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_EPILOGUE, g->lane_0);
	cptx_acc acc = gemm_acc(g, accs);
	for (uint32_t c = 0; c < n; c += chunk) {
		cptx_acc_load(k, &acc, c, chunk, &part);
		if (g->stays && c + chunk == n)
			cptx_pipe_release(k, &g->accs, accs, g->lane_0);
		cptx_epilogue_run(k, &g->epilogue, &part, .row = at->row, .col = at->col);
		if (g->rung->store_map)
			cptx_epilogue_store_tma(k, &g->epilogue, &g->ring, CPTX_NONE_);
		else
			cptx_epilogue_store(k, &g->epilogue, .address = g->D, .type = g->o->out, .pitch = g->epilogue.opt.cols);
	}
	cptx_pipe_next(k, &g->accs, accs);
}

/* ---- a rung with a tile for each CTA, or pair ---- */

static void one_tile(gemm *g)
{
	cptx_kernel *k = g->k;
	cptx_tiles_at t;

	CPTX_TILES(k, &g->tiles, &t)
	{
		cptx_pipe_at acc = cptx_pipe_consumer(k, &g->accs);
		gemm_at at = gemm_place(g, &t);
		g->rung->mainloop(g, &at);
		gemm_store(g, &at, &acc);
	}
}

void ladder_build(cptx_module *m, const ladder_rung *rung, const ladder_opt *o)
{
	gemm g = { .rung = rung, .o = o, .stays = stays(rung), .cancels = rung->schedule == CPTX_TILES_CANCEL };

	declare(&g, m);
	setup(&g);
	prepare_pipes(&g);
	cptx_val allocates = cptx_setp(g.k, g.roles.warp, g.stays ? EPILOGUE_WARPS + 1 : 1, .cmp = CPTX_EQ); /* the MMA warp */
	CPTX_TMEM(g.k, &g.tmem, .columns = g.accs.opt.stages * o->n, .ctas = ctas_of(rung), .warp = allocates) {
		if (g.stays)
			persistent_build(&g);
		else
			one_tile(&g);
	}
}
