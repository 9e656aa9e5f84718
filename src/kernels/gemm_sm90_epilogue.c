/*
 * From the accumulators of a warpgroup to D.
 *
 * The 64 x bn accumulators (twice, with bm 256) leave in pieces of 64 rows and up to 128 bytes of columns.  A piece is
 * rounded, stored to shared memory where the tensor map of D expects it (swizzled, so that the stores meet no bank twice
 * but with f32), and stored by TMA, which clips what is outside of D.  A ring of pieces lets one be written while TMA reads
 * the others.
 */
#include "kernels/gemm_sm90.h"

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
	cptx_val c_at[2];   /* address of C there */
} place;

static place find_place(const gemm90 *g, uint32_t block)
{
	cptx_kernel *k = g->k;
	const gemm_shape *s = &g->s;
	place p = { .row = { 0 } };
	cptx_val warp = cptx_shr(k, g->lane, 5), in_warp = cptx_and(k, g->lane, 31);

	if (!g->o->beta && !g->o->bias && !g->o->epilogue)
		return p;
	p.row = cptx_mad(k, g->wg, s->blocks * BLOCK_M, cptx_as(g->m0, CPTX_U32), .mode = CPTX_LO);
	p.row = cptx_add(k, cptx_mad(k, warp, 16, p.row, .mode = CPTX_LO), cptx_shr(k, in_warp, 2));
	p.row = block ? cptx_add(k, p.row, block * BLOCK_M) : p.row;
	p.col = cptx_mad(k, cptx_and(k, in_warp, 3), 2, cptx_as(g->n0, CPTX_U32), .mode = CPTX_LO);
	for (uint32_t half = 0; g->o->beta && half < 2; half++) {
		cptx_val row = cptx_add(k, p.row, half * 8), line = row;
		p.row_ok[half] = cptx_setp(k, row, g->M, .cmp = CPTX_LT);
		if (g->o->batched)
			line = cptx_mad(k, cptx_as(g->z, CPTX_U32), g->M, row, .mode = CPTX_LO);
		cptx_val at = cptx_add(k, cptx_mul_wide(k, line, g->N), cptx_cvt(k, p.col, .dtype = CPTX_U64));
		p.c_at[half] = cptx_mad(k, at, s->out_bytes, g->C, .mode = CPTX_LO);
	}
	return p;
}

/* Two neighbours of C, or of bias, as f32; 0 where there are none. */
static void load_two(const gemm90 *g, cptx_val at, enum cptx_type type, cptx_val inside, cptx_val two[2])
{
	cptx_kernel *k = g->k;

	if (type == CPTX_F32) {
		cptx_val v = cptx_regs(k, CPTX_F32, 2);
		for (uint32_t i = 0; i < 2; i++)
			cptx_mov(k, 0.0f, .into = cptx_elem(v, i));
		cptx_ld(k, at, .space = CPTX_GLOBAL, .vec = CPTX_V2, .type = CPTX_F32, .into = v, .when = inside);
		two[0] = cptx_elem(v, 0), two[1] = cptx_elem(v, 1);
		return;
	}
	cptx_val pair = cptx_var(k, CPTX_B32, 0), halves = cptx_regs(k, CPTX_B16, 2);
	cptx_ld(k, at, .space = CPTX_GLOBAL, .type = CPTX_B32, .into = pair, .when = inside);
	cptx_mov(k, pair, .into = halves);
	for (uint32_t i = 0; i < 2; i++)
		two[i] = cptx_cvt(k, cptx_as(cptx_elem(halves, i), type), .dtype = CPTX_F32);
}

/* The two elements of D in row half `half` and columns 8j + 0 and 1. */
static void values(const gemm90 *g, const place *p, uint32_t block, uint32_t j, uint32_t half, cptx_val v[2])
{
	cptx_kernel *k = g->k;
	const cptx_gemm_sm90_opt *o = g->o;
	cptx_val col = { 0 }, col_ok = { 0 }, more[2];

	for (uint32_t i = 0; i < 2; i++) {
		v[i] = accumulator(g, block, j, 2 * half + i);
		if (o->alpha)
			v[i] = cptx_mul(k, v[i], g->alpha);
	}
	if (o->beta || o->bias || o->epilogue)
		col = cptx_add(k, p->col, 8 * j);
	if (o->beta || o->bias) /* N is even, as rows are aligned: both are inside or none */
		col_ok = cptx_setp(k, col, g->N, .cmp = CPTX_LT);
	if (o->beta) {
		load_two(g, cptx_offset(p->c_at[half], 8 * j * g->s.out_bytes), o->out, cptx_and(k, col_ok, p->row_ok[half]), more);
		for (uint32_t i = 0; i < 2; i++)
			v[i] = cptx_fma(k, g->beta, more[i], v[i], .rnd = CPTX_RN);
	}
	if (o->bias) {
		load_two(g, cptx_add(k, g->bias, cptx_mul_wide(k, col, 4)), CPTX_F32, col_ok, more);
		for (uint32_t i = 0; i < 2; i++)
			v[i] = cptx_add(k, v[i], more[i]);
	}
	for (uint32_t i = 0; o->epilogue && i < 2; i++)
		v[i] = o->epilogue(k, o->user, v[i], half ? cptx_add(k, p->row, 8) : p->row, i ? cptx_add(k, col, 1) : col);
}

/* ---- pieces ---- */

/* 16-bit results: stmatrix. */
static void piece_16(const gemm90 *g, const place *p, uint32_t block, uint32_t col, uint32_t buffer, cptx_lane_lines *to)
{
	cptx_kernel *k = g->k;
	enum cptx_type pair = g->o->out == CPTX_BF16 ? CPTX_BF16X2 : CPTX_F16X2;
	cptx_val words = cptx_regs(k, CPTX_B32, g->s.out_cols / 4);

	for (uint32_t j = 0; j < g->s.out_cols / 8; j++)
		for (uint32_t half = 0; half < 2; half++) {
			cptx_val v[2];
			values(g, p, block, col / 8 + j, half, v);
			cptx_cvt(k, v[1], .rnd = CPTX_RN, .dtype = pair, .b = v[0],
			         .into = cptx_as(cptx_elem(words, 2 * j + half), pair));
		}
	for (uint32_t i = 0; i < to->lines->count; i++)
		cptx_lines_store(k, to->lines, i, cptx_offset(cptx_lane_lines_at(k, to, i, 0, 0), buffer * cptx_tile_bytes(&g->s.d)),
		                 words);
}

/* f32: two at a time. */
static void piece_32(const gemm90 *g, const place *p, uint32_t block, uint32_t col, uint32_t buffer, cptx_val at)
{
	cptx_kernel *k = g->k;
	const cptx_tile *t = &g->s.d;

	for (uint32_t j = 0; j < g->s.out_cols / 8; j++) {
		cptx_val here = j ? cptx_xor(k, at, cptx_tile_at(t, 0, 8 * j).byte) : at;
		for (uint32_t half = 0; half < 2; half++) {
			cptx_val v[2];
			values(g, p, block, col / 8 + j, half, v);
			cptx_st(k, cptx_offset(here, buffer * cptx_tile_bytes(t) + cptx_tile_at(t, 8 * half, 0).byte),
			        cptx_pack(k, 2, v), .space = CPTX_SHARED, .vec = CPTX_V2, .type = CPTX_F32);
		}
	}
}

/* Stores a piece that all threads have written. */
static void send(const gemm90 *g, cptx_val first, cptx_val row, uint32_t col, uint32_t buffer)
{
	cptx_kernel *k = g->k;

	cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_sync(k, g->barrier, .b = cptx_imm(WARPGROUP));
	CPTX_IF(k, first) {
		cptx_val c[3] = { col ? cptx_add(k, g->n0, col) : g->n0, row, g->z };
		cptx_val from = cptx_mad(k, g->wg, g->s.store_buffers * cptx_tile_bytes(&g->s.d), g->stores, .mode = CPTX_LO);
		cptx_cp_async_bulk_tensor_store(k, g->map_d, cptx_pack(k, g->o->batched ? 3 : 2, c),
		                                cptx_offset(from, buffer * cptx_tile_bytes(&g->s.d)),
		                                .dim = g->o->batched ? CPTX_DIM_3D : CPTX_DIM_2D);
		cptx_cp_async_bulk_commit_group(k);
	}
}

static cptx_frag fragment(const gemm90 *g)
{
	return (cptx_frag){ .kind = CPTX_FRAG_WGMMA_D,
		                .m = BLOCK_M,
		                .n = (uint16_t)g->s.out_cols,
		                .k = (uint16_t)(32 / g->s.in_bytes),
		                .bits = (uint8_t)(8 * g->s.out_bytes) };
}

/* The address of a thread's first two f32 in piece 0. */
static cptx_val first_f32(const gemm90 *g, cptx_val start)
{
	cptx_frag_map map;
	cptx_frag f = fragment(g);
	cptx_error err;
	uint32_t value[7];

	if (!cptx_frag_resolve(&f, &map, &err))
		return cptx_fail(g->k, "%s", err.text);
	for (uint32_t bit = 0; bit < 7; bit++)
		value[bit] = cptx_tile_at(&g->s.d, map.lane[bit].row, map.lane[bit].col).byte;
	return cptx_add(g->k, start, cptx_lane_bits(g->k, g->lane, 7, value, false, (cptx_val){ 0 }));
}

void gemm_sm90_epilogue_begin(gemm90 *g)
{
	cptx_kernel *k = g->k;
	cptx_frag f = fragment(g);
	cptx_error err;
	cptx_val start = cptx_mad(k, g->wg, g->s.store_buffers * cptx_tile_bytes(&g->s.d), g->stores, .mode = CPTX_LO);

	if (g->s.out_bytes == 4) {
		g->store_at = first_f32(g, start);
		return;
	}
	if (!cptx_tile_lines(&g->s.d, &f, 0, 0, &g->lines, &err)) {
		cptx_fail(k, "%s", err.text);
		return;
	}
	cptx_lane_lines_begin(k, &g->lane_lines, &g->lines, g->lane, start);
	for (uint32_t i = 0; i < g->lines.count; i++) /* computed here, in front of the loop */
		cptx_lane_lines_at(k, &g->lane_lines, i, 0, 0);
}

void gemm_sm90_epilogue(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const gemm_shape *s = &g->s;
	cptx_val first = cptx_setp(k, g->lane, 0, .cmp = CPTX_EQ);
	cptx_val row0 = cptx_mad(k, cptx_as(g->wg, CPTX_S32), s->blocks * BLOCK_M, g->m0, .mode = CPTX_LO);
	uint32_t buffer = 0;

	for (uint32_t block = 0; block < s->blocks; block++) {
		place p = find_place(g, block);
		cptx_val row = block ? cptx_add(k, row0, block * BLOCK_M) : row0;
		for (uint32_t col = 0; col < g->o->bn; col += s->out_cols) {
			CPTX_IF(k, first)
				cptx_cp_async_bulk_wait_group(k, s->store_buffers - 1, .read = CPTX_READ);
			cptx_bar_sync(k, g->barrier, .b = cptx_imm(WARPGROUP));
			if (s->out_bytes == 4)
				piece_32(g, &p, block, col, buffer, g->store_at);
			else
				piece_16(g, &p, block, col, buffer, &g->lane_lines);
			send(g, first, row, col, buffer);
			buffer = (buffer + 1) % s->store_buffers;
		}
	}
}
