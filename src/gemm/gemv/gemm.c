/* SPDX-License-Identifier: MIT */
/*
 * GEMM for few rows of A: D^T = B * A^T, of which B is read once, at the speed of memory.
 *
 * Rows of B are the first operand of mma.sync.m16n8k16, 16 at a time, rows of A its second one, 8 at a time.  Both go
 * straight from global memory to registers: which element along K has which place in the fragments does not matter as long
 * as both operands agree, so that a lane takes 16 neighbouring bytes of a row of B, and the elements of A that belong to
 * them.  B stored as rows of N: a lane takes neighbours of eight such rows, and makes pairs along K of two (prmt).  A is
 * small, and stays in L1.
 *
 * The warps of a CTA share its rows of B along K, turn by turn; a turn's loads are all under way at once, of weights of few
 * bits, which take long to unpack, beside the products of the turn before.  The sums of the warps meet in shared memory.  A
 * turn that sticks out of K loads under predicates, and of a chunk that the end cuts each element.
 *
 * B whose rows are no multiples of 16 bytes: every eighth row begins equally far behind one, so those are the rows of a CTA.
 * A lane loads the aligned 16 bytes, and A is read that much earlier: K is counted from the aligned address on (`first`).
 */
#include "gemm/gemv/gemm.h"

#include <cptx/cptx.h>

typedef struct gemv {
	cptx_kernel *k;
	const cptx_gemm_opt *o;
	const tma_gemm *t;
	gemv_shape s;
	tma_gemm_work w;
	cptx_val tid, warp, lane, row, quad; /* row, quad: of the lane in fragments, lane / 4 and lane % 4 */
	cptx_val m0, n0;                     /* where the CTA's part of D begins */
	cptx_val b[16], a[8],
		scale[16];       /* .u64: the lane's rows of B (n_major: its chunk of two rows), of A; columns of factors */
	cptx_val first, end; /* .u32: where K begins and ends as the loop counts it; first NONE: at 0 */
	cptx_val k0;         /* where the warp's turn begins */
	cptx_val k_load;     /* of few bits: where the turn begins whose loads are next */
	cptx_val acc, part;  /* sums; of a group of elements that share a factor, NONE: acc */
	cptx_val none;       /* four zeros, which the sums of a group begin with */
	cptx_val of_a, ones; /* of biased weights: the sums of A of a group, and the first operand that makes them */
	cptx_val all_rows;   /* predicate: all rows of the CTA's part of B are there */
} gemv;

/* The registers of a turn. */
typedef struct turn {
	cptx_val b[16][16][4]; /* by step, row, word; n_major: by row along K, half, word */
	/* of few bits: 16 bytes, by step and row; factors and zero points of groups and rows as they were loaded, .b16 */
	cptx_val words[16][16], raw_scale[16][16], raw_zero[16][16];
	cptx_val scale[16][16], zero[16][16]; /* as they are used */
} turn;

static cptx_val wide(cptx_kernel *k, cptx_val v) { return cptx_cvt(k, v, .dtype = CPTX_U64); }
static bool a_by_elements(const gemv *g) { return g->o->unaligned & CPTX_GEMM_A || g->s.apart > 1; }
/* Elements of 16 bits of a lane's chunk of A, eight at a time. */
static uint32_t eights(const gemv *g) { return g->s.each / 8; }

/* ---- places ---- */

static void find_tile(gemv *g)
{
	cptx_kernel *k = g->k;
	const tma_gemm_params *p = &g->w.p;
	const uint32_t side = g->o->bn * g->s.apart;
	const cptx_val tiles_m = cptx_div(k, cptx_add(k, p->M, g->o->bm - 1), g->o->bm);
	cptx_val tiles_n = cptx_div(k, cptx_add(k, p->N, side - 1), side), id = cptx_ctaid_x(k);

	if (g->s.apart > 1)
		tiles_n = cptx_mul(k, tiles_n, g->s.apart, .mode = CPTX_LO);
	const cptx_val rest = cptx_div(k, id, tiles_n), n = cptx_rem(k, id, tiles_n);
	g->m0 = cptx_mul(k, cptx_rem(k, rest, tiles_m), g->o->bm, .mode = CPTX_LO);
	if (g->t->o->batched)
		g->w.z = cptx_as(cptx_div(k, rest, tiles_m), CPTX_S32);
	if (g->s.apart == 1) {
		g->n0 = cptx_mul(k, n, g->o->bn, .mode = CPTX_LO);
		return;
	}
	const cptx_val block = cptx_div(k, n, g->s.apart);
	g->n0 = cptx_mad(k, block, side, cptx_rem(k, n, g->s.apart), .mode = CPTX_LO);
}

/* A row that exists, in place of one behind the last: what it gives is not stored. */
static cptx_val clamped(cptx_kernel *k, cptx_val row, cptx_val rows) { return cptx_min(k, row, cptx_sub(k, rows, 1)); }

static cptx_val row_at(const gemv *g, bool of_b, cptx_val row)
{
	cptx_kernel *k = g->k;
	const cptx_val matrix = tma_gemm_matrix(k, g->t, &g->w, of_b ? CPTX_GEMM_MAP_B : CPTX_GEMM_MAP_A);

	return cptx_mad(k, wide(k, row), g->w.p.of[of_b].pitch, matrix, .mode = CPTX_LO);
}

/* Rows of B of this lane: number i of the warp's is row / 8 + 8 i. */
static void find_rows(gemv *g, cptx_val across)
{
	cptx_kernel *k = g->k;
	const uint32_t of_warp = g->s.atoms_n * GEMV_ROWS;
	const cptx_val lane_byte = cptx_shl(k, g->quad, 4);

	for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++) {
		cptx_val at = cptx_mad(k, across, of_warp, cptx_add(k, g->row, 8 * i), .mode = CPTX_LO);
		at = cptx_mad(k, at, g->s.apart, g->n0, .mode = CPTX_LO);
		const cptx_val n = clamped(k, at, g->w.p.N);
		cptx_val from = row_at(g, true, n);
		if (g->s.apart > 1) {
			/* the last rows stand for those that are not there, and begin elsewhere */
			const cptx_val there = cptx_setp(k, at, g->w.p.N, .cmp = CPTX_LT);
			const cptx_val zeroth = row_at(g, true, clamped(k, g->n0, g->w.p.N));
			from = cptx_selp(k, from, zeroth, there, .type = CPTX_U64);
			if (!i)
				g->first = cptx_shr(k, cptx_and(k, cptx_cvt(k, zeroth, .dtype = CPTX_U32), GEMV_CHUNK - 1), 1);
			from = cptx_as(cptx_and(k, from, ~UINT64_C(15), .type = CPTX_B64), CPTX_U64);
		}
		g->b[i] = cptx_var(k, CPTX_U64, cptx_add(k, from, wide(k, lane_byte)));
		if (g->o->scale != CPTX_TYPE_NONE)
			g->scale[i] = cptx_mul_wide(k, n, 2);
	}
}

/* B stored as rows of N: two chunks of eight rows along K. */
static void find_columns(gemv *g, cptx_val across)
{
	cptx_kernel *k = g->k;
	const cptx_val along = cptx_mul(k, g->quad, g->s.each, .mode = CPTX_LO);
	const cptx_val matrix = tma_gemm_matrix(k, g->t, &g->w, CPTX_GEMM_MAP_B);

	for (uint32_t half = 0; half < 2; half++) {
		cptx_val n = cptx_mad(k, across, g->s.vec * GEMV_ROWS, g->n0, .mode = CPTX_LO);
		n = cptx_add(k, cptx_mad(k, g->row, g->s.vec, n, .mode = CPTX_LO), half * 8 * g->s.vec);
		n = cptx_min(k, n, cptx_sub(k, g->w.p.N, g->s.vec));
		const cptx_val from = cptx_add(k, matrix, cptx_mul_wide(k, n, 2));
		g->b[half] = cptx_var(k, CPTX_U64, cptx_mad(k, wide(k, along), g->w.p.of[1].pitch, from, .mode = CPTX_LO));
	}
}

static void find_operands(gemv *g)
{
	cptx_kernel *k = g->k;
	const cptx_val along = cptx_rem(k, g->warp, g->s.along_k), across = cptx_div(k, g->warp, g->s.along_k);
	const cptx_val start = cptx_mul(k, along, g->o->bk, .mode = CPTX_LO),
				   lane_first = cptx_mul(k, g->quad, g->s.each, .mode = CPTX_LO);

	if (g->s.vec)
		find_columns(g, across);
	else
		find_rows(g, across);
	for (uint32_t i = 0; i < g->s.atoms_m; i++) {
		const cptx_val m = clamped(k, cptx_add(k, cptx_add(k, g->m0, g->row), i * GEMV_COLS), g->w.p.M);
		cptx_val at = row_at(g, false, m);
		if (g->s.apart > 1)
			at = cptx_sub(k, at, cptx_mul_wide(k, g->first, 2));
		at = cptx_add(k, at, cptx_mul_wide(k, lane_first, 2));
		g->a[i] = cptx_var(k, CPTX_U64, cptx_add(k, at, cptx_mul_wide(k, start, 2)));
	}
	g->end = g->s.apart > 1 ? cptx_add(k, g->w.p.K, g->first) : g->w.p.K;
	g->k0 = cptx_var(k, CPTX_U32, start);
	if (g->s.vec)
		for (uint32_t half = 0; half < 2; half++)
			cptx_mad(k, wide(k, start), g->w.p.of[1].pitch, g->b[half], .mode = CPTX_LO, .into = g->b[half]);
	else
		for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++)
			cptx_add(k, g->b[i], cptx_shr(k, cptx_mul_wide(k, start, g->s.bits), 3), .into = g->b[i]);
}

/* ---- loads ---- */

/* Words, 1, 2 or 4, to these registers: of A, which stays in L1, or of B, which nobody reads again, and of which a row's
 * next 16 bytes are asked for next.  when: a predicate, without which they are 0, or NONE. */
static void load_into(cptx_kernel *k, cptx_val from, bool stays, cptx_val when, cptx_val v)
{
	const uint32_t n = v.count;

	for (uint32_t i = 0; i < n && when.kind != CPTX_VAL_NONE; i++)
		cptx_mov(k, 0, .into = cptx_elem(v, i));
	cptx_ld(k, from, .space = CPTX_GLOBAL, .nc = CPTX_NC, .l1 = stays ? 0 : CPTX_L1_NO_ALLOCATE,
	        .l2 = stays ? 0 : CPTX_L2_256B, .type = CPTX_B32,
	        .vec = n == 4   ? CPTX_V4
	               : n == 2 ? CPTX_V2
	                        : 0,
	        .into = n > 1 ? v : cptx_elem(v, 0), .when = when);
}

/* Loads n words from an address into new registers, word[0] to word[n - 1]. */
static void load_words(cptx_kernel *k, cptx_val from, uint32_t n, bool stays, cptx_val when, cptx_val *word)
{
	const cptx_val v = cptx_regs(k, CPTX_B32, n);

	for (uint32_t i = 0; i < n; i++)
		word[i] = cptx_elem(v, i);
	load_into(k, from, stays, when, v);
}

/* Eight elements of 16 bits one by one to four words; at: where the first is along K, as the loop counts; NONE: all are
 * inside. */
static void load_elements(const gemv *g, cptx_val from, cptx_val at, cptx_val *word)
{
	cptx_kernel *k = g->k;

	for (uint32_t i = 0; i < 4; i++) {
		cptx_val half[2];
		for (uint32_t j = 0; j < 2; j++) {
			cptx_val ok = { 0 };
			half[j] = cptx_reg(k, CPTX_B16);
			if (at.kind != CPTX_VAL_NONE) {
				const cptx_val place = cptx_add(k, at, 2 * i + j);
				ok = cptx_setp(k, place, g->end, .cmp = CPTX_LT);
				if (g->first.kind != CPTX_VAL_NONE)
					ok = cptx_and(k, ok, cptx_setp(k, place, g->first, .cmp = CPTX_GE), .type = CPTX_PRED);
				cptx_mov(k, 0, .into = half[j]);
			}
			cptx_ld(k, cptx_offset(from, 4 * i + 2 * j), .space = CPTX_GLOBAL, .nc = CPTX_NC, .type = CPTX_B16,
			        .into = half[j], .when = ok);
		}
		cptx_mov(k, cptx_pack(k, 2, half), .type = CPTX_B32, .into = word[i]);
	}
}

/* The first element of the lane's chunk of a step of the turn that begins at k0, as the loop counts. */
static cptx_val place_in(const gemv *g, cptx_val k0, uint32_t step)
{
	const cptx_val lane = cptx_mul(g->k, g->quad, g->s.each, .mode = CPTX_LO);

	return cptx_add(g->k, cptx_add(g->k, k0, lane), step * g->s.depth);
}

static cptx_val place_of(const gemv *g, uint32_t step) { return place_in(g, g->k0, step); }

/* Chunks of `n` elements from `at` on: whether all are inside; whether some are. */
static cptx_val is_whole(const gemv *g, cptx_val at, uint32_t n)
{
	cptx_kernel *k = g->k;
	const cptx_val ok = cptx_setp(k, cptx_add(k, at, n), g->end, .cmp = CPTX_LE);

	return g->first.kind == CPTX_VAL_NONE ? ok
	                                      : cptx_and(k, ok, cptx_setp(k, at, g->first, .cmp = CPTX_GE), .type = CPTX_PRED);
}

static cptx_val is_cut(const gemv *g, cptx_val at, cptx_val whole)
{
	cptx_kernel *k = g->k;
	const cptx_val some = cptx_setp(k, at, g->end, .cmp = CPTX_LT);

	return cptx_and(k, some, cptx_not(k, whole, .type = CPTX_PRED), .type = CPTX_PRED);
}

/* Loads the rows of B of all steps, of 16 bits.  Of a chunk that the end cuts, each element. */
static void load_rows(const gemv *g, turn *x, bool inside)
{
	cptx_kernel *k = g->k;

	for (uint32_t s = 0; s < g->s.steps; s++) {
		const cptx_val at = inside ? (cptx_val){ 0 } : place_of(g, s), whole = inside ? at : is_whole(g, at, g->s.each);
		for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++)
			load_words(k, cptx_offset(g->b[i], s * GEMV_LANES * GEMV_CHUNK), 4, false, whole, x->b[s][i]);
		if (inside)
			continue;
		CPTX_IF(k, is_cut(g, at, whole))
			for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++)
				load_elements(g, cptx_offset(g->b[i], s * GEMV_LANES * GEMV_CHUNK), at, x->b[s][i]);
	}
}

/* Loads eight rows along K of one step. */
static void load_columns(const gemv *g, turn *x, uint32_t step, bool inside)
{
	cptx_kernel *k = g->k;
	const cptx_val pitch = g->w.p.of[1].pitch;

	for (uint32_t half = 0; half < 2; half++) {
		cptx_val from = step ? cptx_mad(k, pitch, step * g->s.depth, g->b[half], .mode = CPTX_LO) : g->b[half];
		for (uint32_t i = 0; i < g->s.each; i++) {
			cptx_val when = { 0 };
			if (!inside)
				when = cptx_setp(k, cptx_add(k, place_of(g, step), i), g->end, .cmp = CPTX_LT);
			load_words(k, from, g->s.vec / 2, false, when, x->b[i][half]);
			if (i + 1 < g->s.each)
				from = cptx_add(k, from, pitch);
		}
	}
}

/* Numbers of the turn's groups, and of the last one; without groups there is one of all of K. */
static cptx_val group_of(const gemv *g, uint32_t n)
{
	cptx_kernel *k = g->k;

	if (!g->s.group)
		return cptx_imm(0);
	const cptx_val last = cptx_div(k, cptx_sub(k, g->w.p.K, 1), g->s.group);
	return cptx_min(k, cptx_add(k, cptx_div(k, g->k_load, g->s.group), n), last);
}

/* Loads factors or zero points of a turn's groups; together: all rows of the CTA exist, so that the lane's rows, and their
 * factors, are eight apart. */
static void load_scales_of(const gemv *g, turn *x, bool together)
{
	cptx_kernel *k = g->k;
	const tma_gemm_params *p = &g->w.p;
	const cptx_val in[] = { p->weights, p->zeros };

	for (uint32_t n = 0; n < g->s.groups; n++) {
		const cptx_val group = group_of(g, n), each = cptx_shl(k, p->N, 1);
		for (int zero = !g->s.group; zero < (g->o->zeros ? 2 : 1); zero++) {
			cptx_val at = { 0 };
			for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++) {
				if (!together || !i)
					at = cptx_add(k, in[zero], g->s.group ? cptx_mad_wide(k, group, each, g->scale[i]) : g->scale[i]);
				cptx_ld(k, together ? cptx_offset(at, 16 * (int64_t)i) : at, .space = CPTX_GLOBAL, .nc = CPTX_NC,
				        .type = CPTX_B16, .into = zero ? x->raw_zero[n][i] : x->raw_scale[n][i]);
			}
		}
	}
}

/* The factors and zero points of the turn's groups, if there are any: one for each row of B. */
static void load_scales(const gemv *g, turn *x)
{
	if (!g->s.group && !g->o->zeros)
		return;
	CPTX_IF(g->k, g->all_rows)
		load_scales_of(g, x, true);
	CPTX_ELSE(g->k)
		load_scales_of(g, x, false);
}

/* Eight elements of a row of A: number `eight` of the lane's chunk of a step. */
static void load_a(const gemv *g, uint32_t atom, uint32_t step, uint32_t eight, bool inside, cptx_val word[4])
{
	cptx_kernel *k = g->k;
	const cptx_val from = cptx_offset(g->a[atom], 2 * ((int64_t)step * g->s.depth + eight * 8));
	cptx_val at = { 0 }, whole = { 0 };

	if (a_by_elements(g)) {
		for (uint32_t i = 0; i < 4; i++)
			word[i] = cptx_reg(k, CPTX_B32);
		load_elements(g, from, inside ? at : cptx_add(k, place_of(g, step), eight * 8), word);
		return;
	}
	if (!inside)
		at = cptx_add(k, place_of(g, step), eight * 8), whole = is_whole(g, at, 8);
	load_words(k, from, 4, true, whole, word);
	if (!inside)
		CPTX_IF(k, is_cut(g, at, whole))
			load_elements(g, from, at, word);
}

/* ---- products ---- */

static cptx_val sums_of(const gemv *g, uint32_t n, uint32_t m)
{
	return cptx_slice(g->part.kind == CPTX_VAL_NONE ? g->acc : g->part, (n * g->s.atoms_m + m) * 4, 4);
}

/* Eight elements along K of 16 rows of B, four words of each of two, by eight of A; fresh: d is not added to. */
static void multiply(const gemv *g, cptx_val d, const cptx_val low[4], const cptx_val high[4], const cptx_val a[4],
                     bool fresh)
{
	cptx_kernel *k = g->k;

	for (uint32_t h = 0; h < 4; h += 2) {
		const cptx_val rows[] = { low[h], high[h], low[h + 1], high[h + 1] }, cols[] = { a[h], a[h + 1] };
		cptx_mma(k, cptx_pack(k, 4, rows), cptx_pack(k, 2, cols), fresh && !h ? g->none : d, .into = d,
		         .shape = CPTX_M16N8K16, .dtype = CPTX_F32, .atype = (uint16_t)g->o->a);
	}
}

/* Adds the sums of a group, times the factor of each row of B, to those of all. */
static void fold(const gemv *g, const turn *x, uint32_t group)
{
	cptx_kernel *k = g->k;

	for (uint32_t n = 0; n < g->s.atoms_n; n++)
		for (uint32_t i = 0; i < g->s.atoms_m * 4; i++) {
			const uint32_t at = n * g->s.atoms_m * 4 + i, row = 2 * n + (i % 4 > 1);
			const cptx_val sum = cptx_elem(g->acc, at);
			cptx_val part = cptx_elem(g->part, at);
			if (gemv_is_biased(g->o)) /* all rows of the product with ones are the sums of A */
				part = cptx_fma(k, cptx_elem(g->of_a, i), x->zero[group][row], part, .rnd = CPTX_RN);
			cptx_fma(k, part, x->scale[group][row], sum, .rnd = CPTX_RN, .into = sum);
		}
}

static void multiply_rows(const gemv *g, const turn *x, uint32_t step, bool inside)
{
	cptx_kernel *k = g->k;
	const uint32_t group = g->s.group && g->o->bk > g->s.group ? step * g->s.depth / g->s.group : 0;
	const uint32_t words = g->s.bits / 4; /* of eight elements */
	const bool begins = g->s.group && (step == 0 || step * g->s.depth % g->s.group == 0);
	const cptx_val ones[4] = { g->ones, g->ones, g->ones, g->ones };

	for (uint32_t e = 0; e < eights(g); e++) {
		cptx_val pair[16][4], a[8][4];
		for (uint32_t m = 0; m < g->s.atoms_m; m++)
			load_a(g, m, step, e, inside, a[m]);
		for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++)
			if (gemv_is_quantized(g->o))
				gemv_unpack(k, g->o, &x->b[step][i][e * words], x->zero[group][i], pair[i]);
			else
				memcpy(pair[i], x->b[step][i], sizeof pair[i]);
		for (uint32_t n = 0; n < g->s.atoms_n; n++)
			for (uint32_t m = 0; m < g->s.atoms_m; m++)
				multiply(g, sums_of(g, n, m), pair[2 * n], pair[2 * n + 1], a[m], begins && !e);
		for (uint32_t m = 0; m < g->s.atoms_m && gemv_is_biased(g->o); m++)
			multiply(g, cptx_slice(g->of_a, 4 * m, 4), ones, ones, a[m], begins && !e);
	}
	if (g->s.group && ((step + 1) * g->s.depth % g->s.group == 0 || step + 1 == g->s.steps))
		fold(g, x, group);
}

/* Pairs along K of two rows each: element i of the lane's chunks. */
static void multiply_columns(const gemv *g, const turn *x, uint32_t step, bool inside)
{
	cptx_kernel *k = g->k;
	cptx_val a[8][4];

	for (uint32_t m = 0; m < g->s.atoms_m; m++)
		load_a(g, m, step, 0, inside, a[m]);
	for (uint32_t i = 0; i < g->s.vec; i++) {
		cptx_val pair[2][4];
		for (uint32_t half = 0; half < 2; half++)
			for (uint32_t r = 0; r < 4; r++)
				pair[half][r] =
					cptx_prmt(k, x->b[2 * r][half][i / 2], x->b[2 * r + 1][half][i / 2], i % 2 ? 0x7632 : 0x5410);
		for (uint32_t m = 0; m < g->s.atoms_m; m++)
			multiply(g, sums_of(g, i, m), pair[0], pair[1], a[m], false);
	}
}

static void take_turn(const gemv *g, bool inside)
{
	turn x = { .b = { { { { 0 } } } } };

	if (g->s.vec) {
		for (uint32_t s = 0; s < g->s.steps; s++) {
			load_columns(g, &x, s, inside);
			multiply_columns(g, &x, s, inside);
		}
		return;
	}
	load_rows(g, &x, inside);
	for (uint32_t s = 0; s < g->s.steps; s++)
		multiply_rows(g, &x, s, inside);
}

/* ---- weights of few bits: the loads of a turn stand in front of the products of the one before ---- */

/* Loads the turn at g->k_load, zeros behind the end of K, and goes on to the one behind it. */
static void load_ahead(const gemv *g, turn *x)
{
	cptx_kernel *k = g->k;
	const uint32_t by = g->o->bk * g->s.along_k;

	for (uint32_t s = 0; s < g->s.steps; s++) {
		const cptx_val whole = is_whole(g, place_in(g, g->k_load, s), g->s.each);
		for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++)
			load_into(k, cptx_offset(g->b[i], s * GEMV_LANES * GEMV_CHUNK), false, whole, x->words[s][i]);
	}
	load_scales(g, x);
	for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++)
		cptx_add(k, g->b[i], by / 8 * g->s.bits, .into = g->b[i]);
	cptx_add(k, g->k_load, by, .into = g->k_load);
}

/* The registers of a turn: two take turns, so that none is moved. */
static turn new_turn(const gemv *g)
{
	turn x = { .words = { { { 0 } } } };

	for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++) {
		for (uint32_t s = 0; s < g->s.steps; s++)
			x.words[s][i] = cptx_regs(g->k, CPTX_B32, 4);
		for (uint32_t n = 0; n < g->s.groups; n++)
			x.raw_scale[n][i] = cptx_reg(g->k, CPTX_B16), x.raw_zero[n][i] = cptx_reg(g->k, CPTX_B16);
	}
	return x;
}

/* The .f32 that takes the bias of a weight away, to be added to it: of a zero point of 8 where there is none. */
static cptx_val minus_bias(const gemv *g, cptx_val zero)
{
	cptx_kernel *k = g->k;

	if (!g->o->zeros)
		return cptx_mov(k, -8.0f - GEMV_BIAS, .type = CPTX_F32);
	return cptx_sub(k, -1.0f * GEMV_BIAS, cptx_cvt(k, cptx_as(zero, CPTX_BF16), .dtype = CPTX_F32));
}

/* Factors and zero points as products take them. */
static void ready_scales(const gemv *g, turn *x)
{
	cptx_kernel *k = g->k;
	const bool centred = g->o->b == CPTX_U4 && !g->o->zeros;
	const cptx_val none = centred ? gemv_zero(k, g->o, (cptx_val){ 0 }) : (cptx_val){ 0 };

	for (uint32_t n = 0; n < g->s.groups; n++)
		for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++) {
			if (g->s.group)
				x->scale[n][i] = cptx_cvt(k, cptx_as(x->raw_scale[n][i], g->o->a), .dtype = CPTX_F32);
			x->zero[n][i] = gemv_is_biased(g->o) ? minus_bias(g, x->raw_zero[n][i])
			                : g->o->zeros        ? gemv_zero(k, g->o, x->raw_zero[n][i])
			                                     : none;
		}
}

static void multiply_turn(const gemv *g, const turn *x, bool inside)
{
	turn here = *x;

	for (uint32_t i = 0; i < 2 * g->s.atoms_n; i++)
		for (uint32_t s = 0; s < g->s.steps; s++)
			for (uint32_t w = 0; w < 4; w++)
				here.b[s][i][w] = cptx_elem(x->words[s][i], w);
	ready_scales(g, &here);
	for (uint32_t s = 0; s < g->s.steps; s++)
		multiply_rows(g, &here, s, inside);
}

static void take_turns_ahead(const gemv *g)
{
	cptx_kernel *k = g->k;
	const uint32_t by = g->o->bk * g->s.along_k;
	turn x[2];

	for (int i = 0; i < 2; i++)
		x[i] = new_turn(g);
	load_ahead(g, &x[0]);
	CPTX_FOR(k, g->k0, g->end, by) { /* and by in the middle of a turn */
		for (int i = 0; i < 2; i++) {
			load_ahead(g, &x[!i]);
			CPTX_IF(k, is_whole(g, g->k0, g->o->bk))
				multiply_turn(g, &x[i], true);
			CPTX_ELSE(k)
				multiply_turn(g, &x[i], false);
			for (uint32_t m = 0; m < g->s.atoms_m; m++)
				cptx_add(k, g->a[m], 2 * by, .into = g->a[m]);
			if (!i)
				cptx_add(k, g->k0, by, .into = g->k0);
		}
	}
}

/* ---- the loop ---- */

static void advance(const gemv *g)
{
	cptx_kernel *k = g->k;
	const uint32_t by = g->o->bk * g->s.along_k;

	for (uint32_t i = 0; i < g->s.atoms_m; i++)
		cptx_add(k, g->a[i], 2 * by, .into = g->a[i]);
	for (uint32_t i = 0; i < (g->s.vec ? 2 : 2 * g->s.atoms_n); i++)
		if (g->s.vec)
			cptx_mad(k, g->w.p.of[1].pitch, by, g->b[i], .mode = CPTX_LO, .into = g->b[i]);
		else
			cptx_add(k, g->b[i], by / 8 * g->s.bits, .into = g->b[i]);
}

static cptx_val zeros(cptx_kernel *k, uint32_t n)
{
	const cptx_val v = cptx_regs(k, CPTX_F32, n);

	for (uint32_t i = 0; i < n; i++)
		cptx_mov(k, 0.0f, .into = cptx_elem(v, i));
	return v;
}

static void mainloop(gemv *g)
{
	cptx_kernel *k = g->k;
	const uint32_t sums = g->s.atoms_n * g->s.atoms_m * 4;

	g->acc = zeros(k, sums);
	if (g->s.group)
		g->part = cptx_regs(k, CPTX_F32, sums), g->none = zeros(k, 4);
	if (gemv_is_biased(g->o))
		g->of_a = cptx_regs(k, CPTX_F32, 4 * g->s.atoms_m), g->ones = cptx_mov(k, 0x3f803f80, .type = CPTX_B32);
	if (gemv_is_quantized(g->o)) {
		g->k_load = cptx_var(k, CPTX_U32, g->k0);
		take_turns_ahead(g);
		return;
	}
	CPTX_FOR(k, g->k0, g->end, g->o->bk * g->s.along_k) {
		CPTX_IF(k, is_whole(g, g->k0, g->o->bk))
			take_turn(g, true);
		CPTX_ELSE(k)
			take_turn(g, false);
		advance(g);
	}
}

/* ---- results ---- */

/* Number of a row of the CTA's part of B, by number of the mma.sync and half of its rows. */
static uint32_t row_of(const gemv *g, uint32_t n, uint32_t half)
{
	return g->s.vec ? half * 8 * g->s.vec + n : n * GEMV_ROWS + half * 8;
}

/* The sums of each warp to shared memory: [warp along K][row of A][row of B]. */
static void put_sums(const gemv *g, cptx_val smem)
{
	cptx_kernel *k = g->k;
	const uint32_t bn = g->o->bn, of_warp = g->s.atoms_n * GEMV_ROWS;
	const cptx_val along = cptx_rem(k, g->warp, g->s.along_k), across = cptx_div(k, g->warp, g->s.along_k);
	cptx_val at = cptx_mad(k, along, g->o->bm, cptx_shl(k, g->quad, 1), .mode = CPTX_LO);

	at = cptx_mad(k, at, bn, cptx_mul(k, across, of_warp, .mode = CPTX_LO), .mode = CPTX_LO);
	at = cptx_mad(k, g->row, g->s.vec ? g->s.vec : 1, at, .mode = CPTX_LO);
	at = cptx_mad(k, at, 4, smem, .mode = CPTX_LO);
	for (uint32_t n = 0; n < g->s.atoms_n; n++)
		for (uint32_t m = 0; m < g->s.atoms_m; m++)
			for (uint32_t i = 0; i < 4; i++)
				cptx_st(k, cptx_offset(at, 4 * (int64_t)((m * GEMV_COLS + i % 2) * bn + row_of(g, n, i / 2))),
				        cptx_elem(g->acc, (n * g->s.atoms_m + m) * 4 + i), .space = CPTX_SHARED);
}

static cptx_val load_value(cptx_kernel *k, cptx_val from, enum cptx_type type)
{
	if (type == CPTX_F32)
		return cptx_ld(k, from, .space = CPTX_GLOBAL, .type = CPTX_F32);
	return cptx_cvt(k, cptx_as(cptx_ld(k, from, .space = CPTX_GLOBAL, .type = CPTX_B16), type), .dtype = CPTX_F32);
}

/* An element of D, from the sum of products. */
static void finish(const gemv *g, cptx_val v, cptx_val m, cptx_val n)
{
	cptx_kernel *k = g->k;
	const cptx_gemm_opt *o = g->o;
	const tma_gemm_params *p = &g->w.p;
	const uint32_t bytes = cptx_type_bits(o->out) / 8;
	const float factor = gemv_weight_factor(o);

	if (factor > 1)
		v = cptx_mul(k, v, factor);
	if (o->scale != CPTX_TYPE_NONE && !g->s.group)
		v = cptx_mul(k, v, load_value(k, cptx_add(k, p->weights, cptx_mul_wide(k, n, 2)), o->scale));
	if (o->alpha)
		v = cptx_mul(k, v, p->alpha);
	if (o->beta) {
		const cptx_val c = o->batched
		                       ? cptx_mad(k, cptx_mul(k, wide(k, cptx_as(g->w.z, CPTX_U32)), p->step_c, .mode = CPTX_LO),
		                                  bytes, p->C, .mode = CPTX_LO)
		                       : p->C;
		const cptx_val at = cptx_add(k, cptx_mul_wide(k, m, p->ldc), wide(k, n));
		v = cptx_fma(k, load_value(k, cptx_mad(k, at, bytes, c, .mode = CPTX_LO), o->out), p->beta, v, .rnd = CPTX_RN);
	}
	if (o->bias)
		v = cptx_add(k, v, cptx_ld(k, cptx_add(k, p->bias, cptx_mul_wide(k, n, 4)), .space = CPTX_GLOBAL, .type = CPTX_F32));
	if (o->epilogue)
		v = o->epilogue(k, o->user, v, m, n);
	const cptx_val d = tma_gemm_matrix(k, g->t, &g->w, CPTX_GEMM_MAP_D);
	const cptx_val at = cptx_add(k, cptx_mul_wide(k, m, p->ldd), wide(k, n));
	if (o->out != CPTX_F32)
		v = cptx_as(cptx_cvt(k, v, .dtype = (uint16_t)o->out, .rnd = CPTX_RN), CPTX_B16);
	cptx_st(k, cptx_mad(k, at, bytes, d, .mode = CPTX_LO), v, .space = CPTX_GLOBAL);
}

/* Sums of the warps that share rows, in the order of K, by one thread for each element of D. */
static void store(const gemv *g, cptx_val smem)
{
	cptx_kernel *k = g->k;
	const uint32_t of_tile = g->o->bm * g->o->bn;
	const cptx_val i = cptx_var(k, CPTX_U32, g->tid);

	CPTX_FOR(k, i, of_tile, g->s.warps * CPTX_WARP) {
		const cptx_val at = cptx_mad(k, i, 4, smem, .mode = CPTX_LO);
		cptx_val v = cptx_ld(k, at, .space = CPTX_SHARED, .type = CPTX_F32);
		for (uint32_t w = 1; w < g->s.along_k; w++)
			v = cptx_add(k, v,
			             cptx_ld(k, cptx_offset(at, 4 * (int64_t)(w * of_tile)), .space = CPTX_SHARED, .type = CPTX_F32));
		const cptx_val m = cptx_add(k, cptx_div(k, i, g->o->bn), g->m0);
		const cptx_val n = cptx_mad(k, cptx_rem(k, i, g->o->bn), g->s.apart, g->n0, .mode = CPTX_LO);
		const cptx_val rows = cptx_setp(k, m, g->w.p.M, .cmp = CPTX_LT), cols = cptx_setp(k, n, g->w.p.N, .cmp = CPTX_LT);
		CPTX_IF(k, cptx_and(k, rows, cols, .type = CPTX_PRED))
			finish(g, v, m, n);
	}
}

void gemv_build(cptx_kernel *k, const tma_gemm *t)
{
	gemv g = { .k = k, .o = t->o, .t = t, .s = gemv_shape_of(t->o) };

	tma_gemm_declare(k, t, &g.w);
	const cptx_val smem = cptx_mov(k, cptx_shared_dyn(k, g.s.along_k * g.o->bm * g.o->bn * 4, 16, "sums"), .type = CPTX_U32);
	g.tid = cptx_tid_x(k);
	g.warp = cptx_shr(k, g.tid, 5), g.lane = cptx_and(k, g.tid, CPTX_WARP - 1);
	g.row = cptx_shr(k, g.lane, 2), g.quad = cptx_and(k, g.lane, GEMV_LANES - 1);
	find_tile(&g);
	if (g.o->scale != CPTX_TYPE_NONE)
		g.all_rows = cptx_setp(k, cptx_add(k, g.n0, g.o->bn), g.w.p.N, .cmp = CPTX_LE);
	find_operands(&g);
	mainloop(&g);
	put_sums(&g, smem);
	cptx_bar_sync(k, 0);
	store(&g, smem);
}
