/* SPDX-License-Identifier: MIT */
/*
 * Matrices to elements of 8 bits and f32 factors for blocks, as gemm/tma/scaled.c multiplies them.
 *
 * Blocks of 1 x 128: a warp has four of them, neighbours along K, a lane four elements of each.  Blocks of 128 x 128: a CTA
 * has one, a warp every eighth row of it.
 */
#include "base/options.h"
#include "gemm/tma/tma.h"

#include <cptx/cptx.h>
#include <cptx/params.h>
#include <cptx/reduce.h>

enum { BLOCK = 128, WARPS = 8, EACH = 4 /* neighbours of a lane */, ALONG = 4 /* blocks of a warp */, ROWS = BLOCK / WARPS };

#define RULE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "quantize: " __VA_ARGS__);                                           \
	while (0)

/* ---- parameters ---- */

typedef struct quantize_args {
	uint64_t x, q, scale;
	uint32_t rows, k, pitch;
} quantize_args;
enum { X, Q, SCALE, OF_ROWS, OF_K, PITCH, PARAMS };
static const cptx_param_row params[PARAMS] = {
	CPTX_PARAM_ROW(quantize_args, CPTX_PTR, x),     CPTX_PARAM_ROW(quantize_args, CPTX_PTR, q),
	CPTX_PARAM_ROW(quantize_args, CPTX_PTR, scale), CPTX_PARAM_ROW(quantize_args, CPTX_U32, rows),
	CPTX_PARAM_ROW(quantize_args, CPTX_U32, k),     CPTX_PARAM_ROW(quantize_args, CPTX_U32, pitch),
};

static const char *name_of(const cptx_gemm_quantize_opt *o) { return o->name ? o->name : "quantize"; }

static bool check(const cptx_gemm_quantize_opt *o, cptx_error *err)
{
	RULE(o->in == CPTX_F32 || is_16_bits(o->in), "in is .%s; it is f32, bf16 or f16", cptx_type_name(o->in));
	RULE(o->out == CPTX_E4M3 || o->out == CPTX_E5M2, "out is .%s; it is e4m3 or e5m2", cptx_type_name(o->out));
	return !o->name || cptx_name_check("kernel", o->name, err);
}

/* ---- the kernel ---- */

typedef struct quantizer {
	cptx_kernel *k;
	const cptx_gemm_quantize_opt *o;
	cptx_params p;
	cptx_val lane, col; /* .u32: of the warp; the lane's first column in a block */
} quantizer;

/* EACH neighbours in f32; zeros, and nothing is read, where the predicate does not hold. */
static cptx_val load_neighbours(cptx_kernel *k, enum cptx_type type, cptx_val at, cptx_val inside)
{
	const bool wide = type == CPTX_F32;
	const cptx_val v = cptx_regs(k, CPTX_F32, EACH), words = wide ? v : cptx_regs(k, CPTX_B16, EACH);

	for (uint32_t e = 0; e < EACH; e++)
		cptx_mov(k, 0, .type = wide ? CPTX_B32 : CPTX_B16, .into = cptx_as(cptx_elem(words, e), wide ? CPTX_B32 : CPTX_B16));
	cptx_ld(k, at, .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = wide ? CPTX_F32 : CPTX_B16, .into = words, .when = inside);
	for (uint32_t e = 0; !wide && e < EACH; e++) {
		const cptx_val half = cptx_elem(words, e);
		if (type == CPTX_F16)
			cptx_cvt(k, cptx_as(half, CPTX_F16), .dtype = CPTX_F32, .into = cptx_elem(v, e));
		else
			cptx_shl(k, cptx_cvt(k, cptx_as(half, CPTX_U16), .dtype = CPTX_U32), 16, .type = CPTX_B32,
			         .into = cptx_as(cptx_elem(v, e), CPTX_B32));
	}
	return v;
}

/* The elements of a lane from a row and column on.  To *at: how many elements are in front of them. */
static cptx_val load(const quantizer *g, cptx_val row, cptx_val col, cptx_val inside, cptx_val *at)
{
	cptx_kernel *k = g->k;
	const cptx_val first = cptx_mad_wide(k, row, g->p.val[OF_K], cptx_cvt(k, col, .dtype = CPTX_U64));

	*at = first;
	return load_neighbours(k, g->o->in, cptx_mad(k, first, cptx_type_bits(g->o->in) / 8, g->p.val[X], .mode = CPTX_LO),
	                       inside);
}

static void widen(const quantizer *g, cptx_val amax, cptx_val v)
{
	for (uint32_t e = 0; e < EACH; e++)
		cptx_max(g->k, amax, cptx_abs(g->k, cptx_elem(v, e)), .into = amax);
}

/* The scale factor of a block, from its largest magnitude; amax becomes the number that the elements are multiplied by. */
static cptx_val factor_of(const quantizer *g, cptx_val amax)
{
	return cptx_quantize_factor(g->k, amax, (double)tma_gemm_largest(g->o->out), g->o->pow2);
}

/* Rounds the elements of a lane and stores them. */
static void store(const quantizer *g, cptx_val at, cptx_val v, cptx_val by, cptx_val inside)
{
	cptx_kernel *k = g->k;
	const enum cptx_type pair = g->o->out == CPTX_E4M3 ? CPTX_E4M3X2 : CPTX_E5M2X2;
	const cptx_val halves = cptx_regs(k, CPTX_B16, EACH / 2), word = cptx_reg(k, CPTX_B32);
	cptx_val scaled[EACH];

	for (uint32_t e = 0; e < EACH; e++)
		scaled[e] = cptx_mul(k, cptx_elem(v, e), by);
	for (uint32_t h = 0; h < EACH / 2; h++) /* the first one is the lower half */
		cptx_cvt(k, scaled[2 * h + 1], .b = scaled[2 * h], .rnd = CPTX_RN, .satfinite = CPTX_SATFINITE, .dtype = pair,
		         .into = cptx_as(cptx_elem(halves, h), pair));
	cptx_mov(k, halves, .into = word);
	cptx_st(k, cptx_add(k, g->p.val[Q], at), word, .space = CPTX_GLOBAL, .type = CPTX_B32, .when = inside);
}

static void store_factor(const quantizer *g, cptx_val index, cptx_val factor, cptx_val when)
{
	cptx_st(g->k, cptx_mad(g->k, index, 4, g->p.val[SCALE], .mode = CPTX_LO), factor, .space = CPTX_GLOBAL, .when = when);
}

static cptx_val blocks_of(cptx_kernel *k, cptx_val n, uint32_t each) { return cptx_div(k, cptx_add(k, n, each - 1), each); }

/* Blocks of 1 x 128; a scale of [block along K][row]. */
static void by_rows(const quantizer *g)
{
	cptx_kernel *k = g->k;
	const cptx_val warp = cptx_mad(k, cptx_ctaid_x(k), WARPS, cptx_shr(k, cptx_tid_x(k), 5), .mode = CPTX_LO);
	const cptx_val groups = blocks_of(k, g->p.val[OF_K], BLOCK * ALONG), row = cptx_div(k, warp, groups);
	const cptx_val group = cptx_sub(k, warp, cptx_mul(k, row, groups, .mode = CPTX_LO)),
				   first = cptx_setp(k, g->lane, 0, .cmp = CPTX_EQ);
	cptx_val v[ALONG], at[ALONG], inside[ALONG];

	cptx_exit(k, .when = cptx_setp(k, row, g->p.val[OF_ROWS], .cmp = CPTX_GE));
	for (uint32_t i = 0; i < ALONG; i++) {
		const cptx_val col = cptx_mad(k, group, BLOCK * ALONG, cptx_add(k, g->col, i * BLOCK), .mode = CPTX_LO);
		inside[i] = cptx_setp(k, col, g->p.val[OF_K], .cmp = CPTX_LT);
		v[i] = load(g, row, col, inside[i], &at[i]);
	}
	for (uint32_t i = 0; i < ALONG; i++) {
		const cptx_val amax = cptx_var(k, CPTX_F32, 0.0f);
		widen(g, amax, v[i]);
		cptx_reduce_warp(k, amax, CPTX_REDUCE_MAX);
		const cptx_val factor = factor_of(g, amax), block = cptx_mad(k, group, ALONG, i, .mode = CPTX_LO);
		store(g, at[i], v[i], amax, inside[i]);
		const cptx_val row_64 = cptx_cvt(k, row, .dtype = CPTX_U64);
		const cptx_val index = cptx_mad_wide(k, block, g->p.val[PITCH], row_64), one = cptx_and(k, first, inside[i]);
		store_factor(g, index, factor, one);
	}
}

/* Blocks of 128 x 128 of matrices behind one another; a scale of [matrix][block of rows][block along K]. */
static void by_blocks(const quantizer *g)
{
	cptx_kernel *k = g->k;
	const cptx_val tid = cptx_tid_x(k), id = cptx_ctaid_x(k), warp = cptx_shr(k, tid, 5);
	const cptx_val along = blocks_of(k, g->p.val[OF_K], BLOCK), down = blocks_of(k, g->p.val[OF_ROWS], BLOCK);
	const cptx_val line = cptx_div(k, id, along), block = cptx_sub(k, id, cptx_mul(k, line, along, .mode = CPTX_LO));
	const cptx_val z = cptx_div(k, line, down), nth = cptx_sub(k, line, cptx_mul(k, z, down, .mode = CPTX_LO));
	const cptx_val col = cptx_mad(k, block, BLOCK, g->col, .mode = CPTX_LO), amax = cptx_var(k, CPTX_F32, 0.0f);
	const cptx_val in_k = cptx_setp(k, col, g->p.val[OF_K], .cmp = CPTX_LT);
	cptx_val v[ROWS], at[ROWS], inside[ROWS];
	cptx_reduce all;

	cptx_reduce_new(k, &all, .threads = WARPS * CPTX_WARP);
	for (uint32_t i = 0; i < ROWS; i++) {
		const cptx_val row = cptx_mad(k, nth, BLOCK, cptx_add(k, warp, i * WARPS), .mode = CPTX_LO);
		inside[i] = cptx_and(k, in_k, cptx_setp(k, row, g->p.val[OF_ROWS], .cmp = CPTX_LT));
		v[i] = load(g, cptx_mad(k, z, g->p.val[OF_ROWS], row, .mode = CPTX_LO), col, inside[i], &at[i]);
		widen(g, amax, v[i]);
	}
	cptx_reduce_cta(k, &all, amax, CPTX_REDUCE_MAX);
	const cptx_val factor = factor_of(g, amax);
	for (uint32_t i = 0; i < ROWS; i++)
		store(g, at[i], v[i], amax, inside[i]);
	const cptx_val index = cptx_cvt(k, id, .dtype = CPTX_U64), one = cptx_setp(k, tid, 0, .cmp = CPTX_EQ);
	store_factor(g, index, factor, one);
}

cptx_kernel *cptx_gemm_quantize_build(cptx_module *m, const cptx_gemm_quantize_opt *opt, cptx_error *err)
{
	cptx_gemm_quantize_opt o;
	quantizer g = { .o = &o };

	if (!IS_GIVEN(opt, "options struct", NOWHERE, err) || !OPTIONS_READ(cptx_gemm_quantize_opt, &o, opt, NOWHERE, err) ||
	    !check(&o, err))
		return NULL;
	cptx_kernel *k = g.k = cptx_kernel_begin(m, name_of(&o), .block = { WARPS * CPTX_WARP });
	cptx_params_declare(k, &g.p, params, PARAMS);
	g.lane = cptx_and(k, cptx_tid_x(k), CPTX_WARP - 1), g.col = cptx_mul(k, g.lane, EACH, .mode = CPTX_LO);
	if (o.blocks)
		by_blocks(&g);
	else
		by_rows(&g);
	const cptx_error *e = cptx_module_error(m);
	if (e && err)
		*err = *e;
	return e ? NULL : k;
}

/* ---- launches ---- */

static bool check_problem(const cptx_gemm_quantize_opt *o, const cptx_gemm_quantize_problem *p, uint64_t ctas,
                          cptx_error *err)
{
	const uint64_t of_x[] = { p->x, p->q, p->scale };
	static const char *const names[] = { "x", "q", "the factors" };

	RULE(
		p->rows && p->k && p->rows < 1u << 31 && p->k < 1u << 31 && p->rows * or_one(p->batch) < 1u << 31 &&
			ctas <= INT32_MAX,
		"%llu rows of %llu elements, %u matrices; each is from 1 to 2^31 - 1, and so are all rows together and their blocks",
		(unsigned long long)p->rows, (unsigned long long)p->k, or_one(p->batch));
	RULE(p->k % 16 == 0, "rows of %llu elements; they are a multiple of 16, as those of 8-bit matrices (pad to %llu)",
	     (unsigned long long)p->k, (unsigned long long)(p->k + 15) / 16 * 16);
	RULE(o->blocks || or_one(p->batch) == 1, "%u matrices; of blocks of 1 x 128 all rows are one matrix", p->batch);
	for (size_t i = 0; i < ARRAY_LEN(of_x); i++)
		RULE(of_x[i] && of_x[i] % 16 == 0, "the address of %s, 0x%llx, is 0 or no multiple of 16", names[i],
		     (unsigned long long)of_x[i]);
	return true;
}

cptx_launch *cptx_gemm_quantize_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_quantize_opt *opt,
                                       const cptx_gemm_quantize_problem *problem, cptx_error *err)
{
	cptx_gemm_quantize_opt o;
	cptx_gemm_quantize_problem p;

	if (!IS_GIVEN(program, "program", NOWHERE, err) || !IS_GIVEN(dev, "device", NOWHERE, err) ||
	    !IS_GIVEN(opt, "options struct", NOWHERE, err) || !IS_GIVEN(problem, "problem", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_gemm_quantize_opt, &o, opt, NOWHERE, err) ||
	    !OPTIONS_READ(cptx_gemm_quantize_problem, &p, problem, NOWHERE, err) || !check(&o, err))
		return NULL;
	const uint64_t ctas = o.blocks ? or_one(p.batch) * divide_up(p.rows, BLOCK) * divide_up(p.k, BLOCK)
	                               : divide_up(p.rows * divide_up(p.k, (uint64_t)BLOCK * ALONG), WARPS);
	if (!check_problem(&o, &p, ctas, err))
		return NULL;
	const quantize_args args = {
		p.x, p.q, p.scale, (uint32_t)p.rows, (uint32_t)p.k, (uint32_t)cptx_gemm_scale_pitch(p.rows)
	};
	const cptx_params_part part = { params, PARAMS, &args };
	return cptx_params_launch_(NOWHERE, program, dev, name_of(&o), &part, 1,
	                           CPTX_OPT(cptx_launch_opt, .grid = { (uint32_t)ctas }, .block = { WARPS * CPTX_WARP }), err);
}
