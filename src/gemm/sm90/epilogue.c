/* SPDX-License-Identifier: MIT */
/*
 * From the accumulators of a warpgroup to D.
 *
 * The 64 x bn accumulators (twice, with bm 256) leave in pieces of 64 rows and up to 64 columns, the last one of what is
 * left (with a tensor map of its own).  A piece is
 * rounded, stored to shared memory where the tensor map of D expects it (swizzled, so that the stores meet no bank twice
 * but with f32), and stored by TMA, which clips what is outside of D.  A ring of pieces lets one be written while TMA reads
 * the others.  With swap the piece is stored by columns, which are rows of D (stmatrix.trans).
 *
 * Where registers have room for the rounded tile beside the accumulators (gemm_shape.later) only rounding keeps the tensor
 * cores waiting: the pieces leave one by one behind the wgmma of the next tile's first stages.
 */
#include "gemm/sm90/gemm.h"

/* Accumulator e (0 to 3) of a thread in columns 8j to 8j + 7: row + 8 * (e / 2), column + 8j + e % 2. */
static cptx_val accumulator(const gemm90 *g, uint32_t block, uint32_t j, uint32_t e)
{
	return cptx_elem(g->acc, block * (g->o->bn / 2) + 4 * j + e);
}

/* ---- values ---- */

/* What is needed to compute elements beside the accumulators. */
typedef struct place {
	cptx_val row, col;  /* .u32, of accumulator 0 */
	cptx_val row_ok[2]; /* with beta: the row is inside, for e / 2 */
	cptx_val c_at[2];   /* address of C there; with swap [0] alone */
	cptx_val c_pitch;   /* with swap: bytes of a row of C */
	cptx_val bias[2];   /* with swap, for e / 2 */
} place;

/* With swap neighbours of an accumulator are in other rows: C and bias beside accumulator 0, whose row and column, of D^T,
 * are known. */
static void find_swapped(const gemm90 *g, place *p)
{
	cptx_kernel *k = g->k;

	for (uint32_t e = 0; e < 2; e++) {
		cptx_val here = e ? cptx_add(k, p->row, 8) : p->row;
		p->row_ok[e] = cptx_setp(k, here, g->w.in.M, .cmp = CPTX_LT);
		if (g->o->bias)
			p->bias[e] = tma_gemm_load_one(k, cptx_add(k, g->w.p.bias, cptx_mul_wide(k, here, 4)), CPTX_F32, p->row_ok[e]);
	}
	if (g->o->beta) {
		p->c_at[0] = tma_gemm_c_at(k, &g->t, &g->w.p, p->col, p->row, g->w.z);
		p->c_pitch = cptx_mul_wide(k, g->w.in.M, g->s.out_bytes);
	}
}

static place find_place(const gemm90 *g, uint32_t block)
{
	cptx_kernel *k = g->k;
	const gemm_shape *s = &g->s;
	place p = { .row = { 0 } };
	cptx_val warp = cptx_shr(k, g->lane, 5), in_warp = cptx_and(k, g->lane, 31);

	if (!g->o->beta && !g->o->bias && !g->o->epilogue)
		return p;
	p.row = cptx_mad(k, g->wg, s->blocks * BLOCK_M, cptx_as(g->w.m0, CPTX_U32), .mode = CPTX_LO);
	p.row = cptx_add(k, cptx_mad(k, warp, 16, p.row, .mode = CPTX_LO), cptx_shr(k, in_warp, 2));
	p.row = block ? cptx_add(k, p.row, block * BLOCK_M) : p.row;
	p.col = cptx_mad(k, cptx_and(k, in_warp, 3), 2, cptx_as(g->w.n0, CPTX_U32), .mode = CPTX_LO);
	if (g->o->swap) {
		find_swapped(g, &p);
		return p;
	}
	for (uint32_t half = 0; g->o->beta && half < 2; half++) {
		cptx_val row = cptx_add(k, p.row, half * 8);
		p.row_ok[half] = cptx_setp(k, row, g->w.in.M, .cmp = CPTX_LT);
		p.c_at[half] = tma_gemm_c_at(k, &g->t, &g->w.p, row, p.col, g->w.z);
	}
	return p;
}

/* The same as values() of D^T: rows and columns change places for what is outside of this file. */
static void values_swapped(const gemm90 *g, const place *p, uint32_t block, uint32_t j, uint32_t half, cptx_val v[2])
{
	cptx_kernel *k = g->k;
	const cptx_gemm_opt *o = g->o;
	cptx_val row = half && o->epilogue ? cptx_add(k, p->row, 8) : p->row;

	for (uint32_t i = 0; i < 2; i++) {
		cptx_val col = { 0 }, c = { 0 };
		if (o->beta || o->epilogue)
			col = cptx_add(k, p->col, 8 * j + i);
		if (o->beta) {
			cptx_val inside = cptx_and(k, cptx_setp(k, col, g->w.in.N, .cmp = CPTX_LT), p->row_ok[half]);
			cptx_val at = cptx_mad(k, p->c_pitch, 8 * j + i, p->c_at[0], .mode = CPTX_LO);
			c = tma_gemm_load_one(k, cptx_offset(at, 8 * half * g->s.out_bytes), o->out, inside);
		}
		v[i] = tma_gemm_value(k, &g->t, &g->w.p, accumulator(g, block, j, 2 * half + i), c, p->bias[half], col, row);
	}
}

/* The two elements of D in row half `half` and columns 8j + 0 and 1. */
static void values(const gemm90 *g, const place *p, uint32_t block, uint32_t j, uint32_t half, cptx_val v[2])
{
	cptx_kernel *k = g->k;
	const cptx_gemm_opt *o = g->o;
	cptx_val col = { 0 }, col_ok = { 0 }, row = { 0 }, c[2] = { { 0 } }, bias[2] = { { 0 } };

	if (o->swap) {
		values_swapped(g, p, block, j, half, v);
		return;
	}
	if (o->beta || o->bias || o->epilogue)
		col = cptx_add(k, p->col, 8 * j);
	if (o->beta || o->bias) /* N is even, as rows are aligned: both are inside or none */
		col_ok = cptx_setp(k, col, g->w.in.N, .cmp = CPTX_LT);
	if (o->beta)
		tma_gemm_load_row(k, cptx_offset(p->c_at[half], 8 * j * g->s.out_bytes), o->out, 2,
		                  cptx_and(k, col_ok, p->row_ok[half]), c);
	if (o->bias)
		tma_gemm_load_row(k, cptx_add(k, g->w.p.bias, cptx_mul_wide(k, col, 4)), CPTX_F32, 2, col_ok, bias);
	if (o->epilogue)
		row = half ? cptx_add(k, p->row, 8) : p->row;
	for (uint32_t i = 0; i < 2; i++)
		v[i] = tma_gemm_value(k, &g->t, &g->w.p, accumulator(g, block, j, 2 * half + i), c[i], bias[i], row,
		                      i && o->epilogue ? cptx_add(k, col, 1) : col);
}

/* ---- pieces ---- */

typedef struct piece {
	uint32_t block, col, cols, buffer;
	bool first_of_odd; /* takes the buffer of the last one of the tile before */
} piece;

/* Of a tile that is stored while the next one is multiplied: one with each stage. */
enum { PARTS_MOST = 4 };

static uint32_t pieces_of(const gemm90 *g) { return g->s.blocks * ((g->o->bn + g->s.out_cols - 1) / g->s.out_cols); }

static uint32_t parts_of(const gemm90 *g) { return MIN(pieces_of(g), PARTS_MOST); }

static piece piece_of(const gemm90 *g, uint32_t i)
{
	const gemm_shape *s = &g->s;
	uint32_t all = pieces_of(g), in_block = all / s->blocks, col = i % in_block * s->out_cols;

	return (piece){ .block = i / in_block,
		            .col = col,
		            .cols = MIN(s->out_cols, g->o->bn - col),
		            .buffer = i % s->store_buffers,
		            .first_of_odd = i == 0 && all % s->store_buffers };
}

/* 16-bit results of a piece, rounded, in the order of its fragment. */
static cptx_val round_16(const gemm90 *g, const place *p, const piece *x, cptx_val words)
{
	for (uint32_t j = 0; j < x->cols / 8; j++)
		for (uint32_t half = 0; half < 2; half++) {
			cptx_val v[2];
			values(g, p, x->block, x->col / 8 + j, half, v);
			tma_gemm_narrow(g->k, g->o->out, v[0], v[1], cptx_elem(words, 2 * j + half));
		}
	return words;
}

static void store_16(gemm90 *g, const piece *x, cptx_val words)
{
	cptx_lane_lines *to = &g->lane_lines[x->cols < g->s.out_cols];

	for (uint32_t i = 0; i < to->lines->count; i++)
		cptx_lines_store(g->k, to->lines, i,
		                 cptx_offset(cptx_lane_lines_at(g->k, to, i, 0, 0), x->buffer * cptx_tile_bytes(&g->s.d)), words);
}

/* Of all rounded words of the tile those of a piece. */
static cptx_val rounded(const gemm90 *g, const piece *x)
{
	return cptx_slice(g->words, (x->block * g->o->bn + x->col) / 4, x->cols / 4);
}

/* f32: two at a time. */
static void piece_32(const gemm90 *g, const place *p, const piece *x)
{
	cptx_kernel *k = g->k;
	const cptx_tile *t = &g->s.d;

	for (uint32_t j = 0; j < x->cols / 8; j++) {
		cptx_val at = g->store_at[0][0][0], here = j ? cptx_xor(k, at, cptx_tile_at(t, 0, 8 * j).byte) : at;
		for (uint32_t half = 0; half < 2; half++) {
			cptx_val v[2];
			values(g, p, x->block, x->col / 8 + j, half, v);
			cptx_st(k, cptx_offset(here, x->buffer * cptx_tile_bytes(t) + cptx_tile_at(t, 8 * half, 0).byte),
			        cptx_pack(k, 2, v), .space = CPTX_SHARED, .vec = CPTX_V2, .type = CPTX_F32);
		}
	}
}

/* f32 with swap: the two rows of D lie 128 bytes apart. */
static void piece_32_swapped(const gemm90 *g, const place *p, const piece *x)
{
	cptx_kernel *k = g->k;
	const bool last = x->cols < g->s.out_cols; /* its second half lies elsewhere */
	uint32_t buffer = x->buffer * cptx_tile_bytes(&g->s.d);

	for (uint32_t j = 0; j < x->cols / 8; j++)
		for (uint32_t half = 0; half < 2; half++) {
			cptx_val v[2];
			values(g, p, x->block, x->col / 8 + j, half, v);
			for (uint32_t i = 0; i < 2; i++)
				cptx_st(k, cptx_offset(g->store_at[last][half][i], buffer + cptx_tile_at(&g->s.d, 0, 8 * j).byte), v[i],
				        .space = CPTX_SHARED, .type = CPTX_F32);
		}
}

/* So that all threads may write to its buffer. */
static void await_buffer(const gemm90 *g, const piece *x)
{
	cptx_kernel *k = g->k;

	CPTX_IF(k, g->first)
		cptx_cp_async_bulk_wait_group(k, x->first_of_odd ? 0 : g->s.store_buffers - 1, .read = CPTX_READ);
	cptx_bar_sync(k, g->barrier, .b = cptx_imm(WARPGROUP));
}

/* Stores a piece that all threads have written. */
static void send(const gemm90 *g, const gemm90_place *at, const piece *x)
{
	cptx_kernel *k = g->k;
	const bool last = x->cols < g->s.out_cols;
	const cptx_tile *t = last ? &g->s.rest : &g->s.d;

	cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_sync(k, g->barrier, .b = cptx_imm(WARPGROUP));
	CPTX_IF(k, g->first) {
		uint32_t bytes = cptx_tile_bytes(&g->s.d);
		uint32_t boxes = g->o->swap ? BLOCK_M * g->s.out_bytes / SPAN : 1;
		cptx_val from = cptx_mad(k, g->wg, g->s.store_buffers * bytes, g->stores, .mode = CPTX_LO);
		cptx_val col = x->col ? cptx_add(k, at->n0, x->col) : at->n0;
		cptx_val row = cptx_mad(k, cptx_as(g->wg, CPTX_S32), g->s.blocks * BLOCK_M, at->m0, .mode = CPTX_LO);
		row = x->block ? cptx_add(k, row, x->block * BLOCK_M) : row;
		for (uint32_t i = 0; i < boxes; i++) {
			cptx_val along = i ? cptx_add(k, row, i * SPAN / g->s.out_bytes) : row;
			cptx_val c[3] = { g->o->swap ? along : col, g->o->swap ? col : row, at->z };
			cptx_cp_async_bulk_tensor_store(k, at->map[last], cptx_pack(k, g->o->batched ? 3 : 2, c),
			                                cptx_offset(from, x->buffer * bytes + i * cptx_tile_bytes(t) / boxes),
			                                .dim = g->o->batched ? CPTX_DIM_3D : CPTX_DIM_2D);
		}
		cptx_cp_async_bulk_commit_group(k);
	}
}

static cptx_frag fragment(const gemm90 *g, uint32_t cols)
{
	return (cptx_frag){ .kind = CPTX_FRAG_WGMMA_D,
		                .m = BLOCK_M,
		                .n = (uint16_t)cols,
		                .k = (uint16_t)(32 / g->s.in_bytes),
		                .bits = (uint8_t)(8 * g->s.out_bytes) };
}

/* The address of a thread's first two f32 in a piece. */
static cptx_val first_f32(const gemm90 *g, const cptx_tile *t, cptx_val start)
{
	cptx_frag_map map;
	cptx_frag f = fragment(g, t->cols);
	cptx_error err;
	uint32_t value[7];

	if (!cptx_frag_resolve(&f, &map, &err))
		return cptx_fail(g->k, "%s", err.text);
	for (uint32_t bit = 0; bit < 7; bit++)
		value[bit] = cptx_tile_at(t, map.lane[bit].row, map.lane[bit].col).byte;
	return cptx_add(g->k, start, cptx_lane_bits(g->k, g->lane, 7, value, false, (cptx_val){ 0 }));
}

/*
 * A thread's other f32 are a row 8 further down and, with swap, in the next column (of D^T).  The swizzle exchanges bits of
 * an address by XOR, so the way there is the same for all threads: an XOR within a span, and whole spans to be added.
 */
static void begin_f32(gemm90 *g, cptx_val start)
{
	cptx_kernel *k = g->k;

	for (uint32_t last = 0; last < (g->s.rest_cols && g->o->swap ? 2 : 1); last++) {
		cptx_val first = first_f32(g, last ? &g->s.rest : &g->s.d, start);
		for (uint32_t i = 0; i < (g->o->swap ? 4 : 1); i++) {
			uint32_t change = cptx_tile_at(&g->s.d, i / 2 * 8, i % 2).byte;
			cptx_val here = change % SPAN ? cptx_xor(k, first, change % SPAN) : first;
			g->store_at[last][i / 2][i % 2] = cptx_offset(here, change / SPAN * SPAN);
		}
	}
}

static void begin_kept(gemm90 *g)
{
	cptx_kernel *k = g->k;

	g->words = cptx_regs(k, CPTX_B32, g->s.acc / 2);
	g->stored = cptx_var(k, CPTX_U32, parts_of(g));
	g->kept = (gemm90_place){ .m0 = cptx_reg(k, CPTX_S32), .n0 = cptx_reg(k, CPTX_S32) };
	if (g->o->batched)
		g->kept.z = cptx_reg(k, CPTX_S32);
	for (uint32_t i = 0; i < 2; i++)
		g->kept.map[i] = g->o->grouped ? cptx_reg(k, CPTX_U64) : g->w.in.map[i ? CPTX_GEMM_MAP_END_D : CPTX_GEMM_MAP_D];
}

void gemm_sm90_epilogue_begin(gemm90 *g)
{
	cptx_kernel *k = g->k;
	cptx_error err;
	cptx_val start = cptx_mad(k, g->wg, g->s.store_buffers * cptx_tile_bytes(&g->s.d), g->stores, .mode = CPTX_LO);

	g->first = cptx_setp(k, g->lane, 0, .cmp = CPTX_EQ);
	if (g->s.out_bytes == 4) {
		begin_f32(g, start);
		return;
	}
	for (uint32_t last = 0; last < (g->s.rest_cols ? 2 : 1); last++) {
		cptx_frag f = fragment(g, last ? g->s.rest_cols : g->s.out_cols);
		if (!cptx_tile_lines(last ? &g->s.rest : &g->s.d, &f, 0, 0, &g->lines[last], &err)) {
			cptx_fail(k, "%s", err.text);
			return;
		}
		cptx_lane_lines_begin(k, &g->lane_lines[last], &g->lines[last], g->lane, start);
		for (uint32_t i = 0; i < g->lines[last].count; i++) /* computed here, in front of the loop */
			cptx_lane_lines_at(k, &g->lane_lines[last], i, 0, 0);
	}
	if (g->s.later)
		begin_kept(g);
}

static gemm90_place place_now(const gemm90 *g)
{
	return (gemm90_place){
		.m0 = g->w.m0, .n0 = g->w.n0, .z = g->w.z, .map = { g->w.in.map[CPTX_GEMM_MAP_D], g->w.in.map[CPTX_GEMM_MAP_END_D] }
	};
}

void gemm_sm90_epilogue(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const gemm_shape *s = &g->s;
	const gemm90_place at = place_now(g);
	place p = { .row = { 0 } };

	for (uint32_t i = 0; i < pieces_of(g); i++) {
		const piece x = piece_of(g, i);
		if (!x.col)
			p = find_place(g, x.block);
		await_buffer(g, &x);
		if (s->out_bytes == 4 && g->o->swap)
			piece_32_swapped(g, &p, &x);
		else if (s->out_bytes == 4)
			piece_32(g, &p, &x);
		else
			store_16(g, &x, round_16(g, &p, &x, cptx_regs(k, CPTX_B32, x.cols / 4)));
		send(g, &at, &x);
	}
}

/* ---- of the tile before ---- */

void gemm_sm90_round(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const gemm90_place now = place_now(g);
	place p = { .row = { 0 } };

	for (uint32_t i = 0; i < pieces_of(g); i++) {
		const piece x = piece_of(g, i);
		if (!x.col)
			p = find_place(g, x.block);
		round_16(g, &p, &x, rounded(g, &x));
	}
	cptx_mov(k, 0, .into = g->stored);
	cptx_mov(k, now.m0, .into = g->kept.m0);
	cptx_mov(k, now.n0, .into = g->kept.n0);
	if (g->o->batched)
		cptx_mov(k, now.z, .into = g->kept.z);
	for (uint32_t i = 0; g->o->grouped && i < (g->s.rest_cols ? 2 : 1); i++)
		cptx_mov(k, now.map[i], .into = g->kept.map[i]);
}

/* A part of the tile before. */
static void store_part(gemm90 *g, uint32_t part)
{
	const uint32_t all = pieces_of(g), parts = parts_of(g);

	for (uint32_t i = part * all / parts; i < (part + 1) * all / parts; i++) {
		const piece x = piece_of(g, i);
		await_buffer(g, &x);
		store_16(g, &x, rounded(g, &x));
		send(g, &g->kept, &x);
	}
}

void gemm_sm90_store_some(gemm90 *g, bool first)
{
	cptx_kernel *k = g->k;
	const uint32_t begin = first ? 0 : 1, end = first ? 1 : parts_of(g);

	CPTX_IF(k, cptx_setp(k, g->stored, end, .cmp = CPTX_LT)) {
		cptx_val next = cptx_var(k, CPTX_U32, g->stored);
		for (uint32_t i = begin; i < end; i++)
			CPTX_IF(k, cptx_setp(k, next, i, .cmp = CPTX_EQ))
				store_part(g, i);
		cptx_add(k, next, 1, .into = g->stored);
	}
}

void gemm_sm90_store_rest(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const uint32_t parts = parts_of(g);

	CPTX_IF(k, cptx_setp(k, g->stored, parts, .cmp = CPTX_LT)) {
		for (uint32_t i = 1; i < parts; i++) /* each tile has a stage, and the first was stored with that */
			CPTX_IF(k, cptx_setp(k, g->stored, i, .cmp = CPTX_LE))
				store_part(g, i);
		cptx_mov(k, parts, .into = g->stored);
	}
}
