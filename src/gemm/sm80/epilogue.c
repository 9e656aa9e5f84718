/* SPDX-License-Identifier: MIT */
/*
 * From the accumulators of a warp to D.
 *
 * With TMA a warp rounds a slab of its part, its rows and up to 128 bytes of each, into shared memory of its own and has TMA
 * store it: no barrier of the CTA, no masks at the edges, and the stores of one tile run beside the mma.sync of the next.
 * Without, each thread stores its elements, two neighbours at a time where rows of D are so aligned.
 */
#include "gemm/sm80/gemm.h"
#include "gemm/walk.h"

enum { LINE = 128 /* bytes: what swizzles exchange lies in these */ };

/* ---- values ---- */

/* Eight rows of a warp's part: number i has this thread's elements of row 8i. */
typedef struct row_place {
	cptx_val row, inside; /* .u32; with beta, or where threads store: is it in D? */
	cptx_val c;           /* with beta: the address of C at the thread's first column */
	uint32_t i;
} row_place;

static cptx_val plus(cptx_kernel *k, cptx_val a, uint32_t b) { return b ? cptx_add(k, a, b) : a; }

static row_place find_row(const gemm80 *g, cptx_val first_row, cptx_val col, uint32_t i)
{
	cptx_kernel *k = g->k;
	row_place p = { .i = i };

	if (g->o->tma && !g->o->beta && !g->o->epilogue)
		return p;
	p.row = plus(k, first_row, i * 8);
	if (g->o->beta || !g->o->tma)
		p.inside = cptx_setp(k, p.row, g->w.p.M, .cmp = CPTX_LT);
	if (g->o->beta)
		p.c = tma_gemm_c_at(k, &g->t, &g->w.p, p.row, col, g->w.z);
	return p;
}

/* The two elements in columns 8j and 8j + 1 behind the thread's first.  together: both are in D, or none. */
static void values(const gemm80 *g, const row_place *p, cptx_val first_col, uint32_t j, bool together, cptx_val v[2])
{
	cptx_kernel *k = g->k;
	const cptx_gemm_opt *o = g->o;
	const uint32_t at = (p->i / 2 * g->acc.atoms_n + j) * 4 + p->i % 2 * 2;
	cptx_val c[2] = { { 0 } }, bias[2] = { { 0 } };

	for (uint32_t e = 0; e < 2; e++) {
		const uint32_t n = together ? 2 : 1;
		cptx_val col = { 0 }, col_ok = { 0 };
		if (o->beta || o->bias || o->epilogue)
			col = plus(k, first_col, 8 * j + e);
		if ((o->beta || o->bias) && (!e || !together))
			col_ok = cptx_setp(k, col, g->w.p.N, .cmp = CPTX_LT);
		if (o->beta && (!e || !together)) {
			cptx_val from = cptx_offset(p->c, (8 * j + e) * (int64_t)g->s.out_bytes), ok = cptx_and(k, col_ok, p->inside);
			if (together)
				tma_gemm_load_row(k, from, o->out, n, ok, c);
			else
				c[e] = tma_gemm_load_one(k, from, o->out, ok);
		}
		if (o->bias && (!e || !together)) {
			cptx_val from = cptx_add(k, g->w.p.bias, cptx_mul_wide(k, col, 4));
			if (together)
				tma_gemm_load_row(k, from, CPTX_F32, n, col_ok, bias);
			else
				bias[e] = tma_gemm_load_one(k, from, CPTX_F32, col_ok);
		}
		v[e] = tma_gemm_value(k, &g->t, &g->w.p, cptx_elem(g->acc.regs, at + e), c[e], bias[e], p->row, col);
	}
}

/* ---- by threads ---- */

static void store_two(const gemm80 *g, const row_place *p, cptx_val first_col, cptx_val line, uint32_t j, bool together)
{
	cptx_kernel *k = g->k;
	const bool f32 = g->o->out == CPTX_F32;
	cptx_val v[2], to = cptx_offset(line, 8 * j * (int64_t)g->s.out_bytes);

	values(g, p, first_col, j, together, v);
	for (uint32_t e = 0; e < (together ? 1 : 2); e++) {
		cptx_val ok = cptx_setp(k, plus(k, first_col, 8 * j + e), g->w.p.N, .cmp = CPTX_LT);
		ok = cptx_and(k, ok, p->inside);
		if (together && f32)
			cptx_st(k, to, cptx_pack(k, 2, v), .space = CPTX_GLOBAL, .vec = CPTX_V2, .type = CPTX_F32, .when = ok);
		else if (together)
			cptx_st(k, to, tma_gemm_narrow(k, g->o->out, v[0], v[1], (cptx_val){ 0 }), .space = CPTX_GLOBAL,
			        .type = CPTX_B32, .when = ok);
		else
			cptx_st(k, cptx_offset(to, e * (int64_t)g->s.out_bytes),
			        f32 ? v[e] : cptx_cvt(k, v[e], .rnd = CPTX_RN, .dtype = g->o->out), .space = CPTX_GLOBAL,
			        .type = f32 ? CPTX_F32 : CPTX_B16, .when = ok);
	}
}

static void store_by_threads(const gemm80 *g, cptx_val row, cptx_val col, bool together)
{
	cptx_kernel *k = g->k;
	const walk_matrices d = { .at = g->w.p.map[CPTX_GEMM_MAP_D], .M = g->w.p.M, .N = g->w.p.N, .bytes = g->s.out_bytes };

	for (uint32_t i = 0; i < g->acc.atoms_m * 2; i++) {
		const row_place p = find_row(g, row, col, i);
		cptx_val line = walk_element(k, &d, g->o->batched ? cptx_as(g->w.z, CPTX_U32) : (cptx_val){ 0 }, p.row, col);
		for (uint32_t j = 0; j < g->acc.atoms_n; j++)
			store_two(g, &p, col, line, j, together);
	}
}

/* ---- by TMA ---- */

/* 16-bit results: stmatrix of 16 x 16 elements. */
static void write_16(const gemm80 *g, cptx_val to, cptx_val row, cptx_val col, uint32_t first)
{
	const cptx_tile *t = &g->t.d;
	const cptx_frag f = { .kind = CPTX_FRAG_MMA_C, .m = 16, .n = 8, .k = 16, .bits = 16, .beside = 2 };
	cptx_kernel *k = g->k;
	cptx_lines lines;
	cptx_lane_lines at;
	cptx_error err = { .code = CPTX_OK };

	if (!cptx_tile_lines(t, &f, 0, 0, &lines, &err)) {
		cptx_fail(k, "%s", err.text);
		return;
	}
	cptx_lane_lines_begin(k, &at, &lines, g->lane, to);
	for (uint32_t i = 0; i < g->acc.atoms_m; i++) {
		row_place p[2];
		for (uint32_t half = 0; half < 2; half++)
			p[half] = find_row(g, row, col, 2 * i + half);
		for (uint32_t j = 0; j < t->cols / 8; j += 2) {
			cptx_val words = cptx_regs(k, CPTX_B32, 4), v[2];
			for (uint32_t e = 0; e < 4; e++) {
				values(g, &p[e % 2], col, first / 8 + j + e / 2, true, v);
				tma_gemm_narrow(k, g->o->out, v[0], v[1], cptx_elem(words, e));
			}
			cptx_lines_store(k, &lines, 0, cptx_lane_lines_at(k, &at, 0, i * 16, j * 8), words);
		}
	}
}

/* f32: two at a time.  Bits of the lane's number move a place by these rows and columns. */
static void write_32(const gemm80 *g, cptx_val to, cptx_val row, cptx_val col, uint32_t first)
{
	static const uint8_t lane_row[] = { 0, 0, 1, 2, 4 }, lane_col[] = { 2, 4, 0, 0, 0 };
	const cptx_tile *t = &g->t.d;
	cptx_kernel *k = g->k;
	uint32_t value[5];

	for (uint32_t b = 0; b < 5; b++)
		value[b] = cptx_tile_at(t, lane_row[b], lane_col[b]).byte;
	cptx_val at = cptx_lane_bits(k, g->lane, 5, value, false, to);
	for (uint32_t i = 0; i < g->acc.atoms_m * 2; i++) {
		const row_place p = find_row(g, row, col, i);
		for (uint32_t j = 0; j < t->cols / 8; j++) {
			const uint32_t byte = cptx_tile_at(t, 8 * i, 8 * j).byte, flip = byte % LINE;
			cptx_val v[2];
			values(g, &p, col, first / 8 + j, true, v);
			cptx_st(k, cptx_offset(flip ? cptx_xor(k, at, flip) : at, byte - flip), cptx_pack(k, 2, v), .space = CPTX_SHARED,
			        .vec = CPTX_V2, .type = CPTX_F32);
		}
	}
}

/* Where the warp's part begins in D: the tile's place, and that of the warp in it, which may be a constant. */
static cptx_val begin_of(cptx_kernel *k, cptx_val tile, cptx_val warp)
{
	return cptx_add(k, tile, warp.kind == CPTX_VAL_REG ? cptx_as(warp, CPTX_S32) : warp);
}

static void store_slab(const gemm80 *g, cptx_val from, uint32_t first)
{
	cptx_kernel *k = g->k;
	cptx_val c[3] = { plus(k, begin_of(k, g->w.n0, g->mma.col), first) };

	c[1] = begin_of(k, g->w.m0, g->mma.row), c[2] = g->w.z;
	cptx_cp_async_bulk_tensor_store(k, g->w.p.map[CPTX_GEMM_MAP_D], cptx_pack(k, g->o->batched ? 3 : 2, c), from,
	                                .dim = g->o->batched ? CPTX_DIM_3D : CPTX_DIM_2D);
	cptx_cp_async_bulk_commit_group(k);
}

static void store_by_tma(const gemm80 *g, cptx_val row, cptx_val col)
{
	cptx_kernel *k = g->k;
	cptx_val from = cptx_mad(k, g->roles.warp, g->s.slab_bytes, g->slabs, .mode = CPTX_LO);

	for (uint32_t first = 0; first < g->s.wn; first += g->t.d.cols) {
		CPTX_IF(k, g->first_lane)
			cptx_cp_async_bulk_wait_group(k, 0, .read = CPTX_READ);
		cptx_bar_warp_sync(k, -1);
		if (g->s.out_bytes == 4)
			write_32(g, from, row, col, first);
		else
			write_16(g, from, row, col, first);
		cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
		cptx_bar_warp_sync(k, -1);
		CPTX_IF(k, g->first_lane)
			store_slab(g, from, first);
	}
}

void gemm_sm80_epilogue(gemm80 *g)
{
	cptx_kernel *k = g->k;
	const cptx_val lane = g->lane;
	cptx_val row = cptx_add(k, cptx_as(begin_of(k, g->w.m0, g->mma.row), CPTX_U32), cptx_shr(k, lane, 2));
	cptx_val col = cptx_as(begin_of(k, g->w.n0, g->mma.col), CPTX_U32);

	col = cptx_mad(k, cptx_and(k, lane, 3), 2, col, .mode = CPTX_LO);
	if (g->o->tma) {
		store_by_tma(g, row, col);
		return;
	}
	CPTX_IF(k, cptx_setp(k, cptx_and(k, g->w.p.N, 1), 0, .cmp = CPTX_EQ))
		store_by_threads(g, row, col, true);
	CPTX_ELSE(k)
		store_by_threads(g, row, col, false);
}
