/* SPDX-License-Identifier: MIT */
/*
 * The second kernel: a warp adds up the results of the chunks for columns of one row, in their order.  Where there are many,
 * some warps of the CTA share them, and the first of these adds their sums, in their order too.
 */
#include "attention/decode/decode.h"

#include <cptx/cptx.h>

#include <math.h>

enum { AT_ONCE = DECODE_COMBINED /* for each load takes about as long as all */ };

typedef struct combine {
	cptx_kernel *k;
	const cptx_attention_decode_opt *o;
	decode_in in;
	cptx_val lane, row, plane, r, batch, kv_head; /* .u32; row: of all */
	cptx_val col;                                 /* .u32, the lane's first column */
	cptx_val all, chunks;                         /* .u32: rows of all heads and sequences; chunks of the sequence */
	cptx_val warp, mine;                          /* .u32: of the CTA; of those that share the row */
	cptx_val there;                               /* predicate: there is such a row */
} combine;

static void locate(combine *c)
{
	cptx_kernel *k = c->k;
	const decode_in *in = &c->in;

	c->plane = cptx_div(k, c->row, in->rows);
	c->r = cptx_sub(k, c->row, cptx_mul(k, c->plane, in->rows, .mode = CPTX_LO));
	c->batch = cptx_div(k, c->plane, in->kv_heads);
	c->kv_head = cptx_sub(k, c->plane, cptx_mul(k, c->batch, in->kv_heads, .mode = CPTX_LO));
	const decode_range range = decode_range_of(k, in, c->batch);
	const cptx_val up = cptx_add(k, cptx_sub(k, range.length, range.first), cptx_sub(k, in->chunk, 1));
	c->chunks = cptx_div(k, up, in->chunk);
}

/* Chunk i's LSE of the row, minus infinity where there is no such chunk. */
static cptx_val lse_of(combine *c, cptx_val i, cptx_val there)
{
	cptx_kernel *k = c->k;
	const cptx_val n = cptx_mad_wide(k, i, c->all, cptx_cvt(k, c->row, .dtype = CPTX_U64));
	const cptx_val lse = cptx_var(k, CPTX_F32, -INFINITY);

	cptx_ld(k, cptx_mad(k, n, 4, c->in.lse_part, .mode = CPTX_LO), .space = CPTX_GLOBAL, .type = CPTX_F32, .into = lse,
	        .when = there);
	return lse;
}

/* e^(lse - max) */
static cptx_val weight_of(combine *c, cptx_val lse, cptx_val max)
{
	return cptx_ex2(c->k, cptx_mul(c->k, cptx_sub(c->k, lse, max), (float)ATTENTION_LOG2E), .ftz = true);
}

/* The largest LSE of the chunks, 0 where nothing counted, and the sum of their weights; each lane looks at some of them, and
 * asks for all at once. */
static void find_total(combine *c, cptx_val max, cptx_val sum)
{
	cptx_kernel *k = c->k;
	cptx_val lse[DECODE_MOST_SPLITS / CPTX_WARP];

	for (uint32_t j = 0; j < ARRAY_LEN(lse); j++) {
		const cptx_val i = cptx_add(k, c->lane, j * CPTX_WARP);
		lse[j] = lse_of(c, i, cptx_setp(k, i, c->chunks, .cmp = CPTX_LT));
	}
	for (uint32_t j = 0; j < ARRAY_LEN(lse); j++)
		cptx_max(k, max, lse[j], .into = max);
	cptx_reduce_warp(k, max, CPTX_REDUCE_MAX);
	cptx_mov(k, 0.0f, .type = CPTX_F32, .into = max, .when = cptx_setp(k, max, -INFINITY, .cmp = CPTX_EQ));
	for (uint32_t j = 0; j < ARRAY_LEN(lse); j++)
		cptx_add(k, sum, weight_of(c, lse[j], max), .into = sum);
	cptx_reduce_warp(k, sum, CPTX_REDUCE_SUM);
}

/* Adds the results of some chunks from number i on to a vector of the row. */
static void add_chunks(combine *c, cptx_val i, cptx_val col, cptx_val inside, cptx_val max, cptx_val sums)
{
	cptx_kernel *k = c->k;
	const uint32_t bytes = decode_dim_v(c->o) * 4;
	cptx_val part[AT_ONCE], weight[AT_ONCE];

	for (uint32_t j = 0; j < AT_ONCE; j++) {
		const cptx_val number = cptx_add(k, i, j);
		const cptx_val there = cptx_and(k, inside, cptx_setp(k, number, c->chunks, .cmp = CPTX_LT), .type = CPTX_PRED);
		const cptx_val n = cptx_mad_wide(k, number, c->all, cptx_cvt(k, c->row, .dtype = CPTX_U64));
		const cptx_val at = cptx_add(k, cptx_mad(k, n, bytes, c->in.o_part, .mode = CPTX_LO), cptx_mul_wide(k, col, 4));
		part[j] = cptx_regs(k, CPTX_F32, DECODE_VECTOR);
		for (uint32_t x = 0; x < DECODE_VECTOR; x++)
			cptx_mov(k, 0.0f, .type = CPTX_F32, .into = cptx_elem(part[j], x));
		cptx_ld(k, at, .space = CPTX_GLOBAL, .type = CPTX_F32, .vec = CPTX_V4, .into = part[j], .when = there);
		weight[j] = lse_of(c, number, there);
	}
	for (uint32_t j = 0; j < AT_ONCE; j++) {
		const cptx_val w = weight_of(c, weight[j], max);
		for (uint32_t x = 0; x < DECODE_VECTOR; x++)
			cptx_fma(k, cptx_elem(part[j], x), w, cptx_elem(sums, x), .rnd = CPTX_RN, .into = cptx_elem(sums, x));
	}
}

/* The warp's part of the sums of its columns. */
static void add_columns(combine *c, cptx_val max, cptx_val sums)
{
	cptx_kernel *k = c->k;
	const cptx_val inside = cptx_setp(k, c->col, decode_dim_v(c->o), .cmp = CPTX_LT);
	const cptx_val i = cptx_var(k, CPTX_U32, cptx_mul(k, c->mine, AT_ONCE, .mode = CPTX_LO));

	CPTX_FOR(k, i, c->chunks, cptx_mul(k, c->in.sharers, AT_ONCE, .mode = CPTX_LO))
		add_chunks(c, i, c->col, inside, max, sums);
}

static cptx_val exchanged_at(combine *c, cptx_val smem, cptx_val warp)
{
	const cptx_val lane = cptx_mad(c->k, warp, CPTX_WARP, c->lane, .mode = CPTX_LO);

	return cptx_mad(c->k, lane, DECODE_VECTOR * 4, smem, .mode = CPTX_LO);
}

/* By all threads: the sums of warps that share a row go to the first of them. */
static void add_shares(combine *c, cptx_val sums)
{
	cptx_kernel *k = c->k;
	const cptx_val smem =
		cptx_mov(k, cptx_shared(k, CPTX_F32, DECODE_COMBINE_WARPS * DECODE_COMBINE_COLS), .type = CPTX_U32);
	const cptx_val other = cptx_var(k, CPTX_U32, 1),
				   end = cptx_selp(k, c->in.sharers, 0, cptx_setp(k, c->mine, 0, .cmp = CPTX_EQ), .type = CPTX_U32);
	const cptx_val theirs = cptx_regs(k, CPTX_F32, DECODE_VECTOR);

	cptx_st(k, exchanged_at(c, smem, c->warp), sums, .space = CPTX_SHARED, .vec = CPTX_V4);
	cptx_bar_sync(k, 0);
	CPTX_FOR(k, other, end, 1) {
		cptx_ld(k, exchanged_at(c, smem, cptx_add(k, c->warp, other)), .space = CPTX_SHARED, .type = CPTX_F32,
		        .vec = CPTX_V4, .into = theirs);
		for (uint32_t x = 0; x < DECODE_VECTOR; x++)
			cptx_add(k, cptx_elem(sums, x), cptx_elem(theirs, x), .into = cptx_elem(sums, x));
	}
}

/* By the first of the warps that share the row. */
static void store_row(combine *c, cptx_val max, cptx_val sum, cptx_val sums)
{
	cptx_kernel *k = c->k;
	const enum cptx_type out = decode_out(c->o);
	const cptx_val some = cptx_setp(k, sum, 0.0f, .cmp = CPTX_GT), inverse = cptx_rcp(k, sum, .rnd = CPTX_RN);
	const cptx_val factor = cptx_selp(k, inverse, 0.0f, some, .type = CPTX_F32);
	const cptx_val inside = cptx_setp(k, c->col, decode_dim_v(c->o), .cmp = CPTX_LT);
	const cptx_val to =
		decode_row_of(k, &c->in, c->batch, c->kv_head, c->r, c->in.o, c->in.o_batch, c->in.o_head, c->in.o_row);
	cptx_val v[DECODE_VECTOR];

	for (uint32_t x = 0; x < DECODE_VECTOR; x++)
		v[x] = cptx_mul(k, cptx_elem(sums, x), factor);
	attention_store(k, out, v, DECODE_VECTOR, cptx_add(k, to, cptx_mul_wide(k, c->col, cptx_type_bits(out) / 8)), inside);
	if (!c->o->lse)
		return;
	const cptx_val lse = cptx_fma(k, cptx_lg2(k, sum), (float)(1 / ATTENTION_LOG2E), max, .rnd = CPTX_RN);
	cptx_st(k, decode_lse_of(k, &c->in, c->batch, c->kv_head, c->r), lse, .space = CPTX_GLOBAL,
	        .when = cptx_setp(k, c->col, 0, .cmp = CPTX_EQ));
}

static void combine_row(combine *c)
{
	cptx_kernel *k = c->k;
	const cptx_val max = cptx_var(k, CPTX_F32, -INFINITY), sum = cptx_var(k, CPTX_F32, 0.0f);
	const cptx_val sums = cptx_regs(k, CPTX_F32, DECODE_VECTOR);

	for (uint32_t x = 0; x < DECODE_VECTOR; x++)
		cptx_mov(k, 0.0f, .type = CPTX_F32, .into = cptx_elem(sums, x));
	CPTX_IF(k, c->there) {
		locate(c);
		find_total(c, max, sum);
		add_columns(c, max, sums);
	}
	CPTX_IF(k, cptx_setp(k, c->in.sharers, 1, .cmp = CPTX_GT))
		add_shares(c, sums);
	CPTX_IF(k, cptx_and(k, c->there, cptx_setp(k, c->mine, 0, .cmp = CPTX_EQ), .type = CPTX_PRED))
		store_row(c, max, sum, sums);
}

void decode_build_combine(cptx_module *m, const cptx_attention_decode_opt *o, const char *name)
{
	combine c = { .o = o };
	cptx_kernel *k = c.k = cptx_kernel_begin(m, name, .block = { DECODE_COMBINE_WARPS * CPTX_WARP }, .min_ctas = 1);

	decode_declare(k, &c.in, o);
	const cptx_val tid = cptx_tid_x(k);
	c.lane = cptx_and(k, tid, CPTX_WARP - 1), c.warp = cptx_shr(k, tid, 5);
	const cptx_val all = cptx_mad(k, cptx_ctaid_x(k), DECODE_COMBINE_WARPS, c.warp, .mode = CPTX_LO);
	c.row = cptx_div(k, all, c.in.sharers);
	c.mine = cptx_sub(k, all, cptx_mul(k, c.row, c.in.sharers, .mode = CPTX_LO));
	c.col = cptx_mul(k, c.lane, DECODE_VECTOR, .mode = CPTX_LO);
	const uint32_t parts = decode_combine_parts(o);
	if (parts > 1) {
		const cptx_val row = cptx_div(k, c.row, parts), part = cptx_sub(k, c.row, cptx_mul(k, row, parts, .mode = CPTX_LO));
		c.col = cptx_mad(k, part, DECODE_COMBINE_COLS, c.col, .mode = CPTX_LO);
		c.row = row;
	}
	c.all = cptx_mul(k, c.in.planes, c.in.rows, .mode = CPTX_LO);
	c.there = cptx_setp(k, c.row, c.all, .cmp = CPTX_LT);
	combine_row(&c);
}
