/* SPDX-License-Identifier: MIT */
#include "hgemm_parts.h"

static cptx_val times(cptx_kernel *k, cptx_val a, uint32_t b) { return cptx_mul(k, a, b, .mode = CPTX_LO); }

/* ---- what host and kernel agree on ---- */

bool hgemm_reads_by_tma(enum hgemm_rung rung) { return rung == HGEMM_TMA_R || rung == HGEMM_TMA_RW; }

bool hgemm_stays(enum hgemm_rung rung, const hgemm_opt *o)
{
	return rung == HGEMM_TMA_RW || (rung == HGEMM_TMA_R && o->stay);
}

uint32_t hgemm_ring_bytes(enum hgemm_rung rung, const hgemm_opt *o)
{
	hgemm_tiles t = hgemm_tiles_of(o);
	uint32_t ring = o->stages * t.stage_bytes, c = t.warps * t.c_bytes;

	return !hgemm_stays(rung, o) && c > ring ? c : ring;
}

/*
 * The register file of a quarter of a multiprocessor is dealt out to its warps: a ninth warp would leave each of eight that
 * compute only a third of it.  So the producer's warpgroup leaves its registers to the others.
 */
uint32_t hgemm_producers(const hgemm_opt *o) { return o->consumer_regs ? 4 : 1; }

hgemm_tiles hgemm_tiles_of(const hgemm_opt *o)
{
	hgemm_tiles t = { .warps = o->warps_m * o->warps_n };
	cptx_smem_elem half = { .bits = 16 }, half_n = { .bits = 16, .mn_major = true };

	t.a = (cptx_tile){
		.rows = o->bm, .cols = o->bk, .elem = half, .swizzle = o->bk == 32 ? CPTX_SWIZZLE_64B : CPTX_SWIZZLE_128B
	};
	t.b = (cptx_tile){ .rows = o->bn, .cols = o->bk, .elem = half_n, .swizzle = CPTX_SWIZZLE_128B };
	t.c = (cptx_tile){ .rows = o->bm / o->warps_m, .cols = o->bn / o->warps_n, .elem = half, .swizzle = CPTX_SWIZZLE_128B };
	t.a_bytes = cptx_tile_bytes(&t.a);
	t.stage_bytes = t.a_bytes + cptx_tile_bytes(&t.b);
	t.c_bytes = cptx_tile_bytes(&t.c);
	return t;
}

void hgemm_params(enum hgemm_rung rung, const hgemm_args *args, cptx_params_part part[HGEMM_PARTS])
{
	static const cptx_param_row maps[] = { CPTX_PARAM_MAP(hgemm_args, map_a), CPTX_PARAM_MAP(hgemm_args, map_b) };
	static const cptx_param_row pointers[] = { CPTX_PARAM_ROW(hgemm_args, CPTX_PTR, A),
		                                       CPTX_PARAM_ROW(hgemm_args, CPTX_PTR, B) };
	static const cptx_param_row map_c[] = { CPTX_PARAM_MAP(hgemm_args, map_c) };
	static const cptx_param_row pointer_c[] = { CPTX_PARAM_ROW(hgemm_args, CPTX_PTR, C) };
	static const cptx_param_row sizes[] = { CPTX_PARAM_ROW(hgemm_args, CPTX_U32, M), CPTX_PARAM_ROW(hgemm_args, CPTX_U32, N),
		                                    CPTX_PARAM_ROW(hgemm_args, CPTX_U32, K) };

	part[0] = (cptx_params_part){ hgemm_reads_by_tma(rung) ? maps : pointers, 2, args };
	part[1] = (cptx_params_part){ rung == HGEMM_TMA_RW ? map_c : pointer_c, 1, args };
	part[2] = (cptx_params_part){ sizes, CPTX_PARAM_COUNT(sizes), args };
}

/* ---- setup ---- */

static void operand(hgemm *h, bool by_tma, bool of_b)
{
	const cptx_val from = cptx_params_get(h->k, &h->params, by_tma ? (of_b ? "map_b" : "map_a") : of_b ? "B" : "A");

	/* .alone: for .shared::cluster ptxas calls a function on sm_12x */
	cptx_operand_new(h->k, of_b ? &h->b : &h->a, .by = by_tma ? CPTX_OPERAND_TMA : CPTX_OPERAND_CP_ASYNC, .type = h->o->type,
	                 .tile = of_b ? h->t.b : h->t.a, .stages = h->o->stages,
	                 .smem = cptx_offset(h->ring, of_b ? h->t.a_bytes : 0), .apart = h->t.stage_bytes, .map = from,
	                 .alone = by_tma, .address = from, .rows = of_b ? h->N : h->M, .cols = h->K,
	                 .threads = by_tma ? 0 : h->roles.threads, .thread = h->roles.tid, .whole = !by_tma);
}

/* ptxas has no short form of a division by a constant. */
static cptx_val ceil_div(cptx_kernel *k, cptx_val a, uint32_t b)
{
	uint32_t bits = 0;

	while (1u << bits < b)
		bits++;
	a = cptx_add(k, a, b - 1);
	return 1u << bits == b ? cptx_shr(k, a, bits) : cptx_div(k, a, b);
}

static void declare(hgemm *h, enum hgemm_rung rung)
{
	cptx_params_part part[HGEMM_PARTS];

	hgemm_params(rung, NULL, part);
	for (int i = 0; i < HGEMM_PARTS; i++)
		cptx_params_declare(h->k, &h->params, part[i].rows, part[i].n);
	h->M = cptx_params_get(h->k, &h->params, "M"), h->N = cptx_params_get(h->k, &h->params, "N");
	h->K = cptx_params_get(h->k, &h->params, "K");
}

void hgemm_begin(hgemm *h, cptx_module *m, enum hgemm_rung rung, const hgemm_opt *o)
{
	const bool by_tma = hgemm_reads_by_tma(rung);

	*h = (hgemm){ .o = o, .t = hgemm_tiles_of(o), .stays = hgemm_stays(rung, o) };
	const uint32_t threads = (h->t.warps + (by_tma ? hgemm_producers(o) : 0)) * CPTX_WARP;
	cptx_kernel *k = h->k =
		cptx_kernel_begin(m, hgemm_name(rung), .block = { threads }, .min_ctas = 1, .max_regs = o->most_regs);
	declare(h, rung);
	cptx_roles_begin(k, &h->roles, .threads = threads, .keep_regs = !o->consumer_regs);
	cptx_val first = cptx_setp(k, h->roles.tid, 0, .cmp = CPTX_EQ);
	h->lane_0 = cptx_setp(k, h->roles.lane, 0, .cmp = CPTX_EQ);
	if (by_tma)
		cptx_params_prefetch(k, &h->params, first);
	h->ring = cptx_mov(k, cptx_shared_dyn(k, hgemm_ring_bytes(rung, o), 1024, "ring"), .type = CPTX_U32);
	operand(h, by_tma, false);
	operand(h, by_tma, true);
	cptx_pipe_new(k, &h->pipe, .stages = o->stages, .consumers = by_tma ? h->t.warps : 0,
	              .by = by_tma ? CPTX_PIPE_MBARRIER : CPTX_PIPE_CP_ASYNC_GROUPS);
	cptx_pipe_init(k, &h->pipe, first);
}

/* A role has a scheduler of its own: what roles shared in front of setmaxnreg ptxas would keep in local memory. */
void hgemm_schedule(hgemm *h)
{
	cptx_kernel *k = h->k;
	const uint32_t group = h->o->group ? h->o->group : 8;
	cptx_val tiles_m = ceil_div(k, h->M, h->o->bm), tiles_n = ceil_div(k, h->N, h->o->bn);

	cptx_tiles_new(k, &h->tiles, .schedule = h->stays ? CPTX_TILES_PERSISTENT : CPTX_TILES_GRID, .tiles_m = tiles_m,
	               .tiles_n = tiles_n, .group = cptx_imm(group));
}

/* Computed anew for each tile: registers are dearer than an instruction or two. */
cptx_val hgemm_k_tiles(const hgemm *h) { return ceil_div(h->k, h->K, h->o->bk); }

cptx_val hgemm_row(const hgemm *h, const cptx_tiles_at *t) { return times(h->k, t->m, h->o->bm); }

cptx_val hgemm_col(const hgemm *h, const cptx_tiles_at *t) { return times(h->k, t->n, h->o->bn); }

cptx_val hgemm_has_another(const hgemm *h, const cptx_tiles_at *t)
{
	return cptx_setp(h->k, cptx_add(h->k, t->at, t->step), t->end, .cmp = CPTX_LT);
}

/* ---- products ---- */

void hgemm_fragments(hgemm *h)
{
	cptx_kernel *k = h->k;
	const hgemm_opt *o = h->o;

	cptx_tiled_mma_new(k, &h->mma, .by = CPTX_BY_MMA_SYNC, .a = o->type, .b = o->type, .m = h->t.c.rows, .n = h->t.c.cols,
	                   .units_m = o->warps_m, .units_n = o->warps_n, .a_tile = h->t.a, .b_tile = h->t.b,
	                   .unit = h->roles.warp, .thread = h->roles.lane, .a_base = h->ring,
	                   .b_base = cptx_offset(h->ring, h->t.a_bytes), .few_regs = o->most_regs);
	cptx_acc_new(k, &h->mma, &h->acc);
	cptx_mma_frags_new(k, &h->mma, &h->frags, o->rolling);
	h->offset = cptx_var(k, CPTX_U32, 0);
}

void hgemm_steps(const hgemm *h, uint32_t first, uint32_t end)
{
	if (first < end)
		cptx_mma_tile(h->k, &h->mma, &h->acc, h->offset, h->offset, .frags = &h->frags, .first = first, .steps = end - first,
		              .along_m = h->o->along_m);
}

void hgemm_last_step(const hgemm *h, bool fetch)
{
	const cptx_val next = fetch ? h->offset : CPTX_NONE_;

	cptx_mma_tile(h->k, &h->mma, &h->acc, h->offset, h->offset, .frags = &h->frags, .first = h->mma.steps - 1,
	              .next_a = next, .next_b = next, .along_m = h->o->along_m);
}

/* Counted along, not stage * bytes: ptxas then keeps it in a uniform register, which ldmatrix adds for nothing. */
void hgemm_next_offset(const hgemm *h)
{
	cptx_val next = cptx_add(h->k, h->offset, h->t.stage_bytes);
	uint32_t end = h->o->stages * h->t.stage_bytes;

	cptx_selp(h->k, 0, next, cptx_setp(h->k, next, end, .cmp = CPTX_EQ), .type = CPTX_U32, .into = h->offset);
}

/* Where registers move between roles, ptxas has the stage in a uniform register too, and a product is two instructions less;
 * elsewhere it takes a register more. */
static void next_offset_of(const hgemm *h, const cptx_pipe_at *at)
{
	if (h->o->consumer_regs)
		cptx_mul(h->k, at->stage, h->t.stage_bytes, .mode = CPTX_LO, .into = h->offset);
	else
		hgemm_next_offset(h);
}

/* ---- cp.async ---- */

void hgemm_copy(const hgemm *h, const cptx_pipe_at *to, uint32_t part, uint32_t parts)
{
	const uint32_t a = h->a.copies, all = a + h->b.copies, from = all * part / parts, end = all * (part + 1) / parts;
	const uint32_t split = a < from ? from : a < end ? a : end;

	if (from < split)
		cptx_operand_load_from(h->k, &h->a, to->stage, &h->from_a, .first = from, .copies = split - from);
	if (split < end)
		cptx_operand_load_from(h->k, &h->b, to->stage, &h->from_b, .first = split - a, .copies = end - split);
}

void hgemm_copied(hgemm *h, cptx_pipe_at *to)
{
	cptx_pipe_filled(h->k, &h->pipe, to);
	cptx_pipe_next(h->k, &h->pipe, to);
	cptx_operand_advance(h->k, &h->a, &h->from_a, 0, h->o->bk);
	cptx_operand_advance(h->k, &h->b, &h->from_b, 0, h->o->bk);
}

/* ---- TMA ---- */

void hgemm_produce(hgemm *h)
{
	cptx_kernel *k = h->k;
	cptx_pipe_at at = cptx_pipe_producer(k, &h->pipe);
	cptx_val at_k = cptx_var(k, CPTX_U32, 0);
	cptx_tiles_at t;

	hgemm_schedule(h);
	CPTX_TILES(k, &h->tiles, &t)
	{
		cptx_val row = hgemm_row(h, &t), col = hgemm_col(h, &t);
		cptx_mov(k, 0, .into = at_k);
		CPTX_FOR(k, at_k, h->K, h->o->bk) {
			cptx_pipe_wait_empty(k, &h->pipe, &at);
			cptx_pipe_expect(k, &h->pipe, &at, h->a.bytes + h->b.bytes);
			cptx_operand_load(k, &h->a, at.stage, row, at_k, .barrier = cptx_pipe_full(&at));
			cptx_operand_load(k, &h->b, at.stage, col, at_k, .barrier = cptx_pipe_full(&at));
			cptx_pipe_next(k, &h->pipe, &at);
		}
	}
}

cptx_pipe_at hgemm_consumer(hgemm *h)
{
	cptx_pipe_at at = cptx_pipe_consumer(h->k, &h->pipe);

	h->left = cptx_pipe_left_none(h->k, &h->pipe, &at);
	return at;
}

void hgemm_consume_first(const hgemm *h, const cptx_pipe_at *at)
{
	cptx_pipe_wait_full(h->k, &h->pipe, at);
	cptx_mma_fetch(h->k, &h->mma, &h->frags, h->offset, h->offset);
}

/*
 * The first fragments of a K tile are there already; in its last step those of the next one are fetched, of the same tile or
 * of the next.  Whether that K tile is there is asked a step earlier, so that the answer is not waited for.  A stage is
 * released behind its products: mbarrier.arrive does not wait for ldmatrix, and TMA was ahead of that now and then.
 */
static void k_tile(hgemm *h, cptx_pipe_at *at, bool last, cptx_val another)
{
	cptx_kernel *k = h->k;
	const uint32_t steps = h->mma.steps;
	cptx_val there = CPTX_NONE_;

	cptx_pipe_release(k, &h->pipe, &h->left.at, h->left.when);
	hgemm_steps(h, 0, steps - 2);
	cptx_pipe_at ahead = cptx_pipe_ahead(k, &h->pipe, at);
	if (!last)
		there = cptx_pipe_is_full(k, &ahead);
	hgemm_steps(h, steps - 2, steps - 1);
	cptx_bar_warp_sync(k, -1); /* in front of the branch: ptxas moves no ldmatrix across it */
	cptx_pipe_leave(k, &h->pipe, &h->left, at, h->lane_0);
	cptx_pipe_go(k, at, &ahead);
	next_offset_of(h, at);
	if (!last) {
		CPTX_IF(k, cptx_negated(there))
			cptx_pipe_wait_full(k, &h->pipe, at);
	} else if (another.kind) {
		CPTX_IF(k, another)
			hgemm_consume_first(h, at);
	}
	hgemm_last_step(h, !last);
}

void hgemm_consume(hgemm *h, cptx_pipe_at *at, cptx_val another)
{
	cptx_val i = cptx_var(h->k, CPTX_U32, 1);

	cptx_acc_clear(h->k, &h->acc);
	cptx_val k_tiles = hgemm_k_tiles(h);
	CPTX_FOR(h->k, i, k_tiles, 1)
		k_tile(h, at, false, another);
	k_tile(h, at, true, another);
}

/* ---- C in whole rows ---- */

cptx_val hgemm_part(const hgemm *h, cptx_val c, cptx_val warp)
{
	return cptx_mad(h->k, warp, h->t.c_bytes, c, .mode = CPTX_LO);
}

void hgemm_round(const hgemm *h, cptx_val part)
{
	if (h->o->stmatrix)
		cptx_acc_put_tile_matrix(h->k, &h->acc, h->o->type, &h->t.c, part);
	else
		cptx_acc_put_tile(h->k, &h->acc, h->o->type, &h->t.c, part);
}

void hgemm_write(const hgemm *h, cptx_val part, cptx_val warp, const cptx_tiles_at *t)
{
	cptx_kernel *k = h->k;
	cptx_val m = cptx_div(k, warp, h->o->warps_n), n = cptx_rem(k, warp, h->o->warps_n);
	cptx_val row = cptx_mad(k, m, h->t.c.rows, hgemm_row(h, t), .mode = CPTX_LO);
	cptx_val col = cptx_mad(k, n, h->t.c.cols, hgemm_col(h, t), .mode = CPTX_LO);

	cptx_epilogue_store_rows(k, .tile = h->t.c, .smem = part, .lane = h->roles.lane,
	                         .address = cptx_params_get(k, &h->params, "C"), .pitch = h->N, .row = row, .col = col,
	                         .rows = h->M, .cols = h->N);
}

void hgemm_finish(const hgemm *h, const cptx_tiles_at *t)
{
	cptx_kernel *k = h->k;
	cptx_val part = hgemm_part(h, h->ring, h->roles.warp);

	cptx_bar_sync(k, 1, .b = cptx_imm(h->t.warps * CPTX_WARP));
	hgemm_round(h, part);
	cptx_bar_warp_sync(k, -1);
	hgemm_write(h, part, h->roles.warp, t);
}

/* ---- rungs whose threads copy ---- */

cptx_kernel *hgemm_by_threads(cptx_module *m, enum hgemm_rung rung, const hgemm_opt *o,
                              void (*body)(hgemm *h, cptx_pipe_at *at, cptx_pipe_at *to))
{
	hgemm h;
	cptx_tiles_at t;

	hgemm_begin(&h, m, rung, o);
	hgemm_schedule(&h);
	CPTX_TILES(h.k, &h.tiles, &t)
	{
		cptx_pipe_at to = cptx_pipe_producer(h.k, &h.pipe), at = cptx_pipe_consumer(h.k, &h.pipe);
		cptx_val i = cptx_var(h.k, CPTX_U32, 0), k_tiles = hgemm_k_tiles(&h);
		hgemm_fragments(&h);
		cptx_acc_clear(h.k, &h.acc);
		h.from_a = cptx_operand_source(h.k, &h.a, hgemm_row(&h, &t), 0);
		h.from_b = cptx_operand_source(h.k, &h.b, hgemm_col(&h, &t), 0);
		for (uint32_t s = 0; s + 1 < o->stages; s++) {
			hgemm_copy(&h, &to, 0, 1);
			hgemm_copied(&h, &to);
		}
		hgemm_consume_first(&h, &at);
		CPTX_FOR(h.k, i, k_tiles, 1)
			body(&h, &at, &to);
		cptx_cp_async_wait_all(h.k);
		hgemm_finish(&h, &t);
	}
	return h.k;
}
