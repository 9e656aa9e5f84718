/* SPDX-License-Identifier: MIT */
/* What the options of the GEMM by mma.sync must obey, and what follows from them. */
#include "gemm/sm80/gemm.h"

enum { STATIC_SMEM = 1024 /* for mbarriers and alignment */, MOST_SMEM = 227 * 1024, WARPS_MOST = 32, TMA_ROWS = 256 };
enum { FP8_FROM = 89 /* the least target with e4m3 and e5m2 */ };

#define RULE(ok, ...) TMA_RULE(ok, "%s: " __VA_ARGS__)

/* The least target that has the kernel, which messages name. */
static const char *target_of(const cptx_gemm_opt *o) { return o->tma ? "sm_90" : "sm_80"; }

/* ---- shapes ---- */

/* Registers that each thread of so many warps can have: a quarter of the file for every fourth of them. */
static uint32_t regs_of(uint32_t warps)
{
	return MIN(CPTX_REGS_PER_SM / 4 / CPTX_WARP / ((warps + 3) / 4) / 8 * 8, (uint32_t)CPTX_REGS_PER_THREAD);
}

/* Accumulators, two sets of fragments, addresses of ldmatrix, and what the rest took in shapes tried: of threads that copy
 * and store, places of the copies and predicates of the columns. */
static uint32_t estimate(const cptx_gemm_opt *o, const gemm80_shape *s)
{
	const uint32_t words = s->in_bytes == 8 ? 2 : 1; /* of a sum, and of what is fetched of 16 rows */
	const uint32_t meta = o->sparse ? 2 * s->wm / SM80_MMA * (o->bk / GEMM_SPARSE_K) + s->wn / 2 : 0;

	return words * (s->wm * s->wn / CPTX_WARP + (s->wm + s->wn) / 2) + 28 + (o->tma ? 0 : 16 + s->wn / 4) + meta;
}

/* What a warp stores of D at once by TMA: all its rows, and up to 128 bytes of each. */
static cptx_tile slab(const cptx_gemm_opt *o, const gemm80_shape *s) { return cptx_epilogue_tile(o->out, s->wm, s->wn); }

gemm80_shape gemm_sm80_shape(const cptx_gemm_opt *o)
{
	gemm80_shape s = { .warps = o->warps_m * o->warps_n, .out_bytes = cptx_type_bits(o->out) / 8 };

	s.wm = o->bm / MAX(o->warps_m, 1u), s.wn = o->bn / MAX(o->warps_n, 1u);
	s.in_bytes = tma_gemm_bits(o->a) / 8;
	s.a_bytes = o->bm * (uint32_t)tma_gemm_along_a(o, o->bk) * s.in_bytes, s.stage = s.a_bytes + o->bn * o->bk * s.in_bytes;
	s.estimate = estimate(o, &s);
	if (o->tma) {
		const bool stores = !(o->unaligned & CPTX_GEMM_D) && o->out != CPTX_F64;
		/* one more warp would leave each of eight that compute two thirds of its registers: then a warpgroup gives them.  Of
		 * other numbers that are no multiple of four nothing is gained. */
		s.producers = s.estimate > regs_of(s.warps + 1) && s.warps % 4 == 0 ? 4 : 1;
		const cptx_tile d = slab(o, &s);
		s.slab_bytes = stores ? cptx_epilogue_ring_bytes(&d) : 0;
	}
	s.threads = (s.warps + s.producers) * CPTX_WARP;
	if (s.producers > 1) {
		const uint32_t all = regs_of(s.warps + s.producers) * s.threads,
					   theirs = s.producers * CPTX_WARP * SM80_PRODUCER_REGS;
		s.regs = MIN((all - theirs) / (s.warps * CPTX_WARP) / 8 * 8, 232u);
	}
	return s;
}

static tma_gemm describe(const cptx_gemm_opt *o)
{
	enum { AB = MAP(CPTX_GEMM_MAP_A) | MAP(CPTX_GEMM_MAP_B) };
	const gemm80_shape s = gemm_sm80_shape(o);

	return (tma_gemm){ .target = target_of(o),
		               .a = tma_gemm_tile(o, false, o->bk, s.wm),
		               .b = tma_gemm_tile(o, true, o->bk, s.wn),
		               .d = slab(o, &s),
		               .pointers = !o->tma                                            ? AB | MAP(CPTX_GEMM_MAP_D)
		                           : o->unaligned & CPTX_GEMM_D || o->out == CPTX_F64 ? MAP(CPTX_GEMM_MAP_D)
		                                                                              : 0,
		               .any_row_of_d = !o->scatter && (!o->tma || o->unaligned & CPTX_GEMM_D || o->out == CPTX_F64),
		               .counts_k_tiles = true,
		               .bk = o->bk,
		               .sums = o->stream_k ? s.warps * (s.wm * s.wn * 4 + 4) : 0 };
}

/* ---- rules ---- */

static bool check_types(const cptx_gemm_opt *o, const cptx_target *target, cptx_error *err)
{
	const bool bytes = is_fp8(o->a) || is_fp8(o->out);

	if (!tma_gemm_check_in(target_of(o), o, err) || !tma_gemm_check_out(target_of(o), o, err))
		return false;
	if (bytes && target && target->number < FP8_FROM)
		return error_set(err, CPTX_E_TARGET, NOWHERE, "gemm for %s: %s has no .%s; targets from sm_%d on have it",
		                 target_of(o), target->name, cptx_type_name(is_fp8(o->a) ? o->a : o->out), FP8_FROM);
	return true;
}

static bool check_tile(const cptx_gemm_opt *o, cptx_error *err)
{
	const char *t = target_of(o);
	const uint32_t bytes = tma_gemm_bits(o->a) / 8, along = o->bk * bytes;
	const uint32_t most = o->tma ? TMA_ROWS : 1024, m = o->warps_m * SM80_MMA, n = o->warps_n * SM80_MMA;

	RULE(along == 64 || along == 128 || along == 256, "tile K = %u; the swizzle is made for %u, %u and %u of .%s", t, o->bk,
	     64 / bytes, 128 / bytes, 256 / bytes, cptx_type_name(o->a));
	RULE(o->warps_m && o->warps_n && o->warps_m <= WARPS_MOST && o->warps_n <= WARPS_MOST &&
	         o->warps_m * o->warps_n <= WARPS_MOST,
	     "%ux%u warps; a CTA has 1 to 32", t, o->warps_m, o->warps_n);
	RULE(o->bm <= most && o->bn <= most, "tile %ux%u; each side is at most %u%s", t, o->bm, o->bn, most,
	     o->tma ? " by TMA" : "");
	RULE(o->bm && o->bm % m == 0, "tile M = %u is not divisible into %u warps of a multiple of 16 rows (try %u)", t, o->bm,
	     o->warps_m, MAX(o->bm / m, 1u) * m);
	RULE(o->bn && o->bn % n == 0, "tile N = %u is not divisible into %u warps of a multiple of 16 columns (try %u)", t,
	     o->bn, o->warps_n, MAX(o->bn / n, 1u) * n);
	return true;
}

static bool check_threads(const cptx_gemm_opt *o, const gemm80_shape *s, const cptx_target *target, cptx_error *err)
{
	const char *t = target_of(o);
	const uint32_t most = s->regs ? s->regs : regs_of(s->warps + s->producers),
				   chunks = MAX(o->bm, o->bn) * o->bk * s->in_bytes / 16;

	RULE(s->threads <= CPTX_THREADS_PER_CTA, "%u warps that compute and %u beside them; a CTA has at most %d", t, s->warps,
	     s->producers, WARPS_MOST);
	RULE(s->estimate <= most,
	     "about %u registers per thread are needed, %u threads can have %u each: take more warps or a "
	     "smaller tile",
	     t, s->estimate, s->threads, most);
	RULE(!s->regs || !target || cptx_form_on_target(CPTX_OP_SETMAXNREG, 0, target),
	     "%u warps of about %u registers and one for TMA need setmaxnreg, which %s has not: take a smaller tile, or .tma "
	     "away",
	     t, s->warps, s->estimate, target ? target->name : "");
	RULE(o->tma || chunks <= CPTX_OPERAND_COPIES * s->threads,
	     "tile %ux%ux%u; %u threads copy at most %d times 16 bytes each of A and of B: take more warps or a smaller tile", t,
	     o->bm, o->bn, o->bk, s->threads, CPTX_OPERAND_COPIES);
	return true;
}

static bool check(const cptx_gemm_opt *o, const cptx_target *target, cptx_gemm_plan *plan, cptx_error *err)
{
	if (target && target->number < (o->tma ? 90u : 80u))
		return error_set(err, CPTX_E_TARGET, NOWHERE, "gemm for %s: %s not available on %s; targets from %s on have %s",
		                 target_of(o), o->tma ? "TMA is" : "cp.async and mma.sync.m16n8k16 are", target->name, target_of(o),
		                 o->tma ? "it" : "them");
	if (!check_types(o, target, err) || !check_tile(o, err) || !tma_gemm_sparse_check(target_of(o), o, o->bk, err) ||
	    !tma_gemm_check_numbers(target_of(o), o, err))
		return false;
	const gemm80_shape s = gemm_sm80_shape(o);
	const gemm_smem smem = { .of = target ? target->name : "any target",
		                     .most = (target ? target->smem_per_cta : (uint32_t)MOST_SMEM) - (o->tma ? STATIC_SMEM : 0),
		                     .bk = o->bk,
		                     .stage = s.stage,
		                     .all = o->stages * s.stage + s.warps * s.slab_bytes };
	if (!check_threads(o, &s, target, err) || !tma_gemm_check_smem(target_of(o), o, &smem, err))
		return false;
	*plan = (cptx_gemm_plan){ .threads = s.threads, .smem = smem.all, .bk = o->bk, .regs = s.estimate };
	return true;
}

const gemm_generator gemm_sm80 = { .target = "sm_80",
	                               .by = "mma.sync",
	                               .check = check,
	                               .build = gemm_sm80_build,
	                               .describe = describe,
	                               .model = &gemm_sm80_model };
