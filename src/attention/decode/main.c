/* SPDX-License-Identifier: MIT */
/*
 * The kernel that reads the cache.  A CTA has a chunk of the keys of one sequence and head; warp w of it takes blocks w, w +
 * warps and so on.  Each warp has a ring of stages of its own, which its lanes fill by cp.async, and an online softmax of
 * its own, so no barrier of the CTA stands in the loop.  Q stays in registers, as the A of the first product.  In the end
 * the warps' O meet in shared memory, where the rings were, and are added up in the order of warps.
 */
#include "attention/decode/decode.h"

#include <cptx/cptx.h>
#include <cptx/pipeline.h>
#include <cptx/softmax.h>

#include <math.h>

typedef struct decode {
	cptx_kernel *k;
	const cptx_attention_decode_opt *o;
	decode_in in;
	const decode_shape *s;
	cptx_val tid, warp, lane, ring; /* ring: .u32, of the warp */
	decode_work w;

	cptx_operand key, v;
	cptx_pipe pipe;
	cptx_pipe_at to, at;
	cptx_val next, left, page; /* .u32: first key of the block to copy next, keys from there on, its page */
	cptx_val k_base, v_base;   /* .u64: of the head; without pages of the sequence */

	cptx_tiled_mma qk, pv;
	cptx_acc sums, results;
	cptx_softmax soft;
	decode_limits limits;
	cptx_val q; /* the A of the first product */
} decode;

/* ---- copies ---- */

static cptx_val head_at(decode *d, cptx_val base, cptx_val batch_stride, cptx_val head_stride)
{
	cptx_kernel *k = d->k;

	if (!d->o->paged)
		base = cptx_mad(k, cptx_cvt(k, d->w.batch, .dtype = CPTX_U64), batch_stride, base, .mode = CPTX_LO);
	return cptx_mad(k, cptx_cvt(k, d->w.kv_head, .dtype = CPTX_U64), head_stride, base, .mode = CPTX_LO);
}

/* The number of the page of the block to copy next, a block ahead, since copies wait for it. */
static void find_page(decode *d)
{
	cptx_kernel *k = d->k;
	const cptx_val i = cptx_mad(k, d->w.batch, d->in.page_pitch, cptx_div(k, d->next, d->in.page), .mode = CPTX_LO);
	const cptx_val at = cptx_add(k, d->in.pages, cptx_mul_wide(k, i, 4));

	cptx_ld(k, at, .space = CPTX_GLOBAL, .type = CPTX_U32, .into = d->page,
	        .when = cptx_setp(k, d->next, d->w.end, .cmp = CPTX_LT));
}

static void copy(decode *d, const cptx_operand *op, cptx_val base, cptx_val key, cptx_val page_stride, cptx_val row)
{
	cptx_kernel *k = d->k;

	if (d->o->paged)
		base = cptx_mad(k, cptx_cvt(k, d->page, .dtype = CPTX_U64), page_stride, base, .mode = CPTX_LO);
	cptx_operand_rebase(k, op, cptx_mad_wide(k, key, row, base));
	cptx_operand_load(k, op, d->to.stage, 0, 0);
}

/* Starts the copies of the warp's next block, where there is one. */
static void load(decode *d)
{
	cptx_kernel *k = d->k;

	CPTX_IF(k, cptx_setp(k, d->next, d->w.end, .cmp = CPTX_LT)) {
		cptx_val key = d->next;
		if (d->o->paged)
			key = cptx_rem(k, key, d->in.page);
		cptx_sub(k, d->w.range.length, d->next, .into = d->left);
		copy(d, &d->key, d->k_base, key, d->in.k_batch, d->in.k_row);
		copy(d, &d->v, d->v_base, key, d->in.v_batch, d->in.v_row);
		cptx_add(k, d->next, d->o->bk * d->o->warps, .into = d->next);
		if (d->o->paged)
			find_page(d);
	}
	cptx_pipe_filled(k, &d->pipe, &d->to);
	cptx_pipe_next(k, &d->pipe, &d->to);
}

static cptx_operand operand(decode *d, const cptx_tile *tile, cptx_val smem, cptx_val base, cptx_val row, uint32_t dim)
{
	const bool along_k = tile->elem.mn_major;
	const uint32_t padded = along_k ? tile->rows : tile->cols;
	const cptx_val elements = padded == dim ? (cptx_val){ 0 } : cptx_imm(dim);
	cptx_operand op;

	cptx_operand_new(d->k, &op, .by = CPTX_OPERAND_CP_ASYNC, .type = d->o->in, .tile = *tile, .stages = d->o->stages,
	                 .smem = smem, .address = base, .rows = along_k ? elements : d->left,
	                 .cols = along_k ? d->left : elements, .pitch = row, .threads = CPTX_WARP, .thread = d->lane,
	                 .whole = true);
	return op;
}

static void begin_copies(decode *d)
{
	cptx_kernel *k = d->k;
	const cptx_val smem = cptx_shared_dyn(k, d->s->smem, 1024, "rings");

	d->ring = cptx_mad(k, d->warp, d->s->ring, cptx_mov(k, smem, .type = CPTX_U32), .mode = CPTX_LO);
	d->left = cptx_var(k, CPTX_U32, 0), d->page = cptx_var(k, CPTX_U32, 0);
	d->k_base = head_at(d, d->in.k, d->in.k_batch, d->in.k_head);
	d->v_base = head_at(d, d->in.v, d->in.v_batch, d->in.v_head);
	d->key = operand(d, &d->s->k, d->ring, d->k_base, d->in.k_row, d->o->dim);
	d->v =
		operand(d, &d->s->v, cptx_add(k, d->ring, d->o->stages * d->s->k_bytes), d->v_base, d->in.v_row, decode_dim_v(d->o));
	cptx_pipe_new(k, &d->pipe, .stages = d->o->stages, .by = CPTX_PIPE_CP_ASYNC_GROUPS, .threads = CPTX_WARP);
	d->to = cptx_pipe_producer(k, &d->pipe), d->at = cptx_pipe_consumer(k, &d->pipe);
	if (d->o->paged)
		find_page(d);
	for (uint32_t i = 0; i + 1 < d->o->stages; i++)
		load(d);
}

/* ---- products ---- */

/* Q as fragments straight from memory: a thread has two neighbours of a row at a time.  Rows that are not there are 0. */
static void load_q(decode *d)
{
	cptx_kernel *k = d->k;
	const cptx_frag_map *map = &d->qk.a_map;
	const uint32_t atoms = d->o->rows / map->rows;
	const cptx_val row = cptx_add(k, cptx_frag_lane_row(k, map, d->lane), d->w.row0);
	const cptx_val col = cptx_mul_wide(k, cptx_frag_lane_col(k, map, d->lane), 2);

	d->q = cptx_regs(k, CPTX_B32, d->qk.steps * atoms * map->regs);
	for (uint32_t i = 0; i < d->q.count; i++)
		cptx_mov(k, 0, .into = cptx_elem(d->q, i));
	for (uint32_t m = 0; m < atoms; m++)
		for (uint32_t r = 0; r < map->regs; r++) {
			cptx_cell c;
			cptx_frag_cell(map, (cptx_place){ .reg = (uint16_t)r }, &c);
			if (c.col) /* those of the first columns of a row load all of it */
				continue;
			const cptx_val number = cptx_add(k, row, m * map->rows + c.row);
			const cptx_val there = cptx_setp(k, number, d->in.rows, .cmp = CPTX_LT);
			const cptx_val at = cptx_add(k,
			                             decode_row_of(k, &d->in, d->w.batch, d->w.kv_head, number, d->in.q, d->in.q_batch,
			                                           d->in.q_head, d->in.q_row),
			                             col);
			for (uint32_t step = 0; step < d->qk.steps; step++)
				for (uint32_t x = 0; x < map->regs; x++) {
					cptx_cell to;
					cptx_frag_cell(map, (cptx_place){ .reg = (uint16_t)x }, &to);
					const uint32_t first = step * d->qk.depth + to.col;
					if (to.row == c.row && first < d->o->dim)
						cptx_ld(k, cptx_offset(at, 2 * first), .space = CPTX_GLOBAL, .type = CPTX_B32,
						        .into = cptx_elem(d->q, (step * atoms + m) * map->regs + x), .when = there);
				}
		}
}

static void begin_products(decode *d)
{
	cptx_kernel *k = d->k;
	const enum cptx_type in = d->o->in;

	cptx_tiled_mma_new(k, &d->qk, .a = in, .b = in, .m = d->o->rows, .n = d->o->bk, .a_from = CPTX_A_REGS, .b_tile = d->s->k,
	                   .thread = d->lane);
	cptx_tiled_mma_new(k, &d->pv, .a = in, .b = in, .m = d->o->rows, .n = d->s->dim_v, .a_from = CPTX_A_REGS,
	                   .b_tile = d->s->v, .thread = d->lane);
	cptx_acc_new(k, &d->qk, &d->sums);
	cptx_acc_new(k, &d->pv, &d->results);
	cptx_acc_clear(k, &d->results);
	cptx_softmax_new(k, &d->soft, d->sums.rows, d->in.scale);
	load_q(d);
	d->limits = decode_limits_of(k, &d->in, &d->w, &d->sums);
}

static void multiply(decode *d, cptx_val key)
{
	cptx_kernel *k = d->k;

	cptx_pipe_wait_full(k, &d->pipe, &d->at);
	load(d);
	cptx_mma_tile(k, &d->qk, &d->sums, d->q, cptx_operand_at(k, &d->key, d->at.stage), .fresh = true);
	decode_scores_of(k, &d->in, &d->limits, &d->sums, cptx_as(key, CPTX_S32));
	cptx_acc_scale_rows(k, &d->results, cptx_softmax_step(k, &d->soft, &d->sums));
	const cptx_val p = cptx_acc_as_a(k, &d->sums, &d->pv);
	cptx_mma_tile(k, &d->pv, &d->results, p, cptx_operand_at(k, &d->v, d->at.stage));
	cptx_pipe_next(k, &d->pipe, &d->at);
}

/* ---- the warps' results ---- */

/* Of one row, over all warps: the largest score, and the sum relative to it. */
typedef struct row_total {
	cptx_val max, sum;
} row_total;

static cptx_val weight_of(decode *d, cptx_val max, cptx_val top)
{
	return cptx_ex2(d->k, cptx_mul(d->k, cptx_sub(d->k, max, top), d->in.scale), .ftz = true);
}

/* stats: where the row's first warp has its pair.  top: the maximum, 0 where nothing counts. */
static row_total total_of(decode *d, cptx_val stats)
{
	cptx_kernel *k = d->k;
	const uint32_t apart = d->o->rows * 8;
	cptx_val pair[8];
	row_total t = { .max = cptx_var(k, CPTX_F32, -INFINITY), .sum = cptx_var(k, CPTX_F32, 0.0f) };

	for (uint32_t w = 0; w < d->o->warps; w++) {
		pair[w] = cptx_ld(k, cptx_offset(stats, w * apart), .space = CPTX_SHARED, .type = CPTX_F32, .vec = CPTX_V2);
		cptx_max(k, t.max, cptx_elem(pair[w], 0), .into = t.max);
	}
	cptx_mov(k, 0.0f, .type = CPTX_F32, .into = t.max, .when = cptx_setp(k, t.max, -INFINITY, .cmp = CPTX_EQ));
	for (uint32_t w = 0; w < d->o->warps; w++)
		cptx_fma(k, cptx_elem(pair[w], 1), weight_of(d, cptx_elem(pair[w], 0), t.max), t.sum, .rnd = CPTX_RN, .into = t.sum);
	return t;
}

/* What the warp's rows are multiplied by to be parts of the CTA's. */
static cptx_val factors(decode *d, cptx_val stats)
{
	cptx_kernel *k = d->k;
	const cptx_val row = cptx_regs(k, CPTX_F32, d->sums.rows);
	uint32_t found = 0;

	CPTX_ACC_EACH(&d->sums, e)
	{
		if (e.at_row != found)
			continue;
		const row_total t =
			total_of(d, cptx_mad(k, cptx_acc_row(k, &d->sums, &e, (cptx_val){ 0 }), 8, stats, .mode = CPTX_LO));
		const cptx_val some = cptx_setp(k, t.sum, 0.0f, .cmp = CPTX_GT), inverse = cptx_rcp(k, t.sum, .rnd = CPTX_RN);
		const cptx_val part = cptx_selp(k, inverse, 0.0f, some, .type = CPTX_F32);
		cptx_mul(k, part, weight_of(d, cptx_elem(d->soft.max, found), t.max), .into = cptx_elem(row, found));
		found++;
	}
	return row;
}

/* Each warp's maxima and sums, for all to see. */
static cptx_val share_stats(decode *d)
{
	cptx_kernel *k = d->k;
	const cptx_val stats = cptx_mov(k, cptx_shared(k, CPTX_F32, d->o->warps * d->o->rows * 2), .type = CPTX_U32);
	const cptx_val leads = cptx_setp(k, d->sums.col, 0, .cmp = CPTX_EQ);
	const cptx_val first = cptx_mad(k, d->warp, d->o->rows * 8, stats, .mode = CPTX_LO);
	uint32_t found = 0;

	cptx_acc_row_combine(k, &d->sums, CPTX_REDUCE_SUM, d->soft.sum);
	CPTX_ACC_EACH(&d->sums, e)
	{
		if (e.at_row != found)
			continue;
		const cptx_val at = cptx_mad(k, cptx_acc_row(k, &d->sums, &e, (cptx_val){ 0 }), 8, first, .mode = CPTX_LO);
		const cptx_val pair[] = { cptx_elem(d->soft.max, found), cptx_elem(d->soft.sum, found) };
		cptx_st(k, at, cptx_pack_(k, CPTX_HERE, pair, 2), .space = CPTX_SHARED, .vec = CPTX_V2, .when = leads);
		found++;
	}
	cptx_bar_sync(k, 0); /* behind it the rings are nobody's any more */
	return stats;
}

/* Each warp's O, scaled, to a place of its own. */
static void share_results(decode *d, cptx_val smem)
{
	cptx_kernel *k = d->k;
	const uint32_t row_bytes = d->s->pitch * 4;
	const cptx_val base = cptx_mad(k, d->warp, d->o->rows * row_bytes, smem, .mode = CPTX_LO);
	const cptx_val mine =
		cptx_mad(k, d->results.row, row_bytes, cptx_mad(k, d->results.col, 4, base, .mode = CPTX_LO), .mode = CPTX_LO);

	for (uint32_t i = 0; i < d->results.count; i += 2) {
		const cptx_acc_elem e = cptx_acc_at(&d->results, i);
		cptx_st(k, cptx_offset(mine, e.row * row_bytes + e.col * 4), cptx_slice(d->results.regs, i, 2), .space = CPTX_SHARED,
		        .vec = CPTX_V2);
	}
	cptx_bar_sync(k, 0);
}

static void store_vector(decode *d, cptx_val at, cptx_val row, cptx_val col, cptx_val alone, cptx_val inside)
{
	cptx_kernel *k = d->k;
	const uint32_t dim_v = decode_dim_v(d->o), row_bytes = d->s->pitch * 4;
	const enum cptx_type out = decode_out(d->o);
	cptx_val v[DECODE_VECTOR], sum = cptx_regs(k, CPTX_F32, DECODE_VECTOR);

	for (uint32_t i = 0; i < DECODE_VECTOR; i++)
		cptx_mov(k, 0.0f, .type = CPTX_F32, .into = v[i] = cptx_elem(sum, i));
	for (uint32_t w = 0; w < d->o->warps; w++) {
		const cptx_val part =
			cptx_ld(k, cptx_offset(at, w * d->o->rows * row_bytes), .space = CPTX_SHARED, .type = CPTX_F32, .vec = CPTX_V4);
		for (uint32_t i = 0; i < DECODE_VECTOR; i++)
			cptx_add(k, v[i], cptx_elem(part, i), .into = v[i]);
	}
	const cptx_val r = cptx_add(k, row, d->w.row0);
	CPTX_IF(k, alone) {
		const cptx_val to =
			decode_row_of(k, &d->in, d->w.batch, d->w.kv_head, r, d->in.o, d->in.o_batch, d->in.o_head, d->in.o_row);
		attention_store(k, out, v, DECODE_VECTOR, cptx_add(k, to, cptx_mul_wide(k, col, cptx_type_bits(out) / 8)), inside);
	}
	CPTX_ELSE(k)
		attention_store(k, CPTX_F32, v, DECODE_VECTOR,
		                cptx_add(k, decode_part_of(k, &d->in, &d->w, d->in.o_part, r, dim_v * 4), cptx_mul_wide(k, col, 4)),
		                inside);
}

static void store_results(decode *d, cptx_val smem, cptx_val alone)
{
	cptx_kernel *k = d->k;
	const uint32_t dim_v = decode_dim_v(d->o), vectors = d->s->dim_v / DECODE_VECTOR;
	const cptx_val i = cptx_var(k, CPTX_U32, d->tid);

	CPTX_FOR(k, i, d->o->rows * vectors, d->s->threads) {
		const cptx_val row = cptx_div(k, i, vectors),
					   col = cptx_mul(k, cptx_rem(k, i, vectors), DECODE_VECTOR, .mode = CPTX_LO);
		const cptx_val at = cptx_mad(k, row, d->s->pitch * 4, cptx_mad(k, col, 4, smem, .mode = CPTX_LO), .mode = CPTX_LO);
		cptx_val inside = cptx_setp(k, cptx_add(k, row, d->w.row0), d->in.rows, .cmp = CPTX_LT);
		if (dim_v != d->s->dim_v)
			inside = cptx_and(k, inside, cptx_setp(k, col, dim_v, .cmp = CPTX_LT), .type = CPTX_PRED);
		store_vector(d, at, row, col, alone, inside);
	}
}

static void store_lse(decode *d, cptx_val stats, cptx_val alone)
{
	cptx_kernel *k = d->k;
	const cptx_val r = cptx_add(k, d->tid, d->w.row0);
	const cptx_val mine = cptx_and(k, cptx_setp(k, d->tid, d->o->rows, .cmp = CPTX_LT),
	                               cptx_setp(k, r, d->in.rows, .cmp = CPTX_LT), .type = CPTX_PRED);

	CPTX_IF(k, mine) {
		const row_total t = total_of(d, cptx_mad(k, d->tid, 8, stats, .mode = CPTX_LO));
		/* of a row where nothing counted lg2 gives minus infinity */
		cptx_val lse = cptx_fma(k, t.max, d->in.scale, cptx_lg2(k, t.sum), .rnd = CPTX_RN);
		lse = cptx_mul(k, lse, (float)(1 / ATTENTION_LOG2E));
		if (d->o->lse) {
			CPTX_IF(k, alone)
				cptx_st(k, decode_lse_of(k, &d->in, d->w.batch, d->w.kv_head, r), lse, .space = CPTX_GLOBAL);
		}
		CPTX_IF(k, cptx_negated(alone))
			cptx_st(k, decode_part_of(k, &d->in, &d->w, d->in.lse_part, r, 4), lse, .space = CPTX_GLOBAL);
	}
}

static void finish(decode *d)
{
	cptx_kernel *k = d->k;
	const cptx_val smem = cptx_sub(k, d->ring, cptx_mul(k, d->warp, d->s->ring, .mode = CPTX_LO));
	const cptx_val alone = cptx_setp(k, d->in.splits, 1, .cmp = CPTX_EQ);
	const cptx_val stats = share_stats(d);

	cptx_acc_scale_rows(k, &d->results, factors(d, stats));
	share_results(d, smem);
	store_results(d, smem, alone);
	store_lse(d, stats, alone);
}

/* ---- the kernel ---- */

static void attend(decode *d)
{
	cptx_kernel *k = d->k;
	const cptx_val key = cptx_var(k, CPTX_U32, d->next);

	begin_copies(d);
	begin_products(d);
	CPTX_FOR(k, key, d->w.end, d->o->bk * d->o->warps)
		multiply(d, key);
	finish(d);
}

cptx_kernel *decode_build_main(cptx_module *m, const cptx_attention_decode_opt *o)
{
	decode d = { .k = NULL, .o = o };
	cptx_kernel *k = d.k = cptx_kernel_begin(m, o->name, .block = { o->warps * CPTX_WARP }, .min_ctas = 1);

	decode_declare(k, &d.in, o);
	d.s = &d.in.s;
	d.tid = cptx_tid_x(k);
	d.warp = cptx_shr(k, d.tid, 5), d.lane = cptx_and(k, d.tid, CPTX_WARP - 1);
	d.w = decode_locate(k, &d.in);
	d.next = cptx_var(k, CPTX_U32, cptx_mad(k, d.warp, o->bk, d.w.first, .mode = CPTX_LO));
	CPTX_IF(k, decode_has_work(k, &d.in, &d.w))
		attend(&d);
	return k;
}
