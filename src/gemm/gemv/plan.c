/* SPDX-License-Identifier: MIT */
/* What the options and sizes of the GEMM for few rows must obey, and what follows from them. */
#include "gemm/gemv/gemm.h"
#include "gemm/options.h"

#define TARGET "sm_80"
#define RULE(ok, ...) TMA_RULE(ok, TARGET " by gemv: " __VA_ARGS__)

enum { WARPS_MOST = 16, REGS = 200 /* for accumulators and loads of a thread */, SMEM = 48 * 1024 };

gemv_shape gemv_shape_of(const cptx_gemm_opt *o)
{
	gemv_shape s = { .along_k = or_one(o->warps_m), .bits = MAX(tma_gemm_bits(o->b), 1u), .apart = 1 };

	s.warps = s.along_k * or_one(o->warps_n);
	s.atoms_m = o->bm / GEMV_COLS;
	s.each = GEMV_CHUNK * 8 / s.bits, s.depth = s.each * GEMV_LANES;
	s.atoms_n = o->bn / or_one(o->warps_n) / GEMV_ROWS;
	if (o->b_n_major)
		s.vec = s.atoms_n, s.depth = GEMV_SIDE, s.each = GEMV_SIDE / GEMV_LANES;
	s.steps = o->bk / s.depth;
	s.group = o->scale_k;
	s.groups = s.group && o->bk > s.group ? o->bk / s.group : 1;
	/* rows that begin equally far behind a multiple of 16 bytes: of 16 bits each eighth one */
	if (o->unaligned & CPTX_GEMM_B && !o->b_n_major)
		s.apart = GEMV_CHUNK * 8 / 16;
	return s;
}

uint32_t gemv_resident(const gemv_shape *s)
{
	const bool few = s->bits < 16; /* loads of two turns, and what unpacks them */
	const uint32_t sums = s->atoms_n * s->atoms_m * (s->group ? 8 : 4);
	const uint32_t loads = s->vec ? 8 * s->vec : 8 * s->atoms_n * s->steps * (few ? 2 : 1);
	const uint32_t regs = MIN((few ? 62 : 40) + sums + loads, (uint32_t)CPTX_REGS_PER_THREAD);
	const uint32_t threads = s->warps * CPTX_WARP;

	return MAX(MIN(CPTX_REGS_PER_SM / (regs * threads), 2048 / threads), 1u);
}

static tma_gemm describe(const cptx_gemm_opt *o)
{
	const gemv_shape s = gemv_shape_of(o);

	return (tma_gemm){ .a = { .rows = o->bm, .cols = o->bk, .elem = { .bits = 16, .mn_major = o->a_m_major } },
		               .b = { .rows = o->bn, .cols = o->bk, .elem = { .bits = (uint8_t)s.bits, .mn_major = o->b_n_major } },
		               .d = { .rows = o->bm, .cols = o->bn, .elem = { .bits = (uint8_t)cptx_type_bits(o->out) } },
		               .pointers = MAP(CPTX_GEMM_MAP_A) | MAP(CPTX_GEMM_MAP_B) | MAP(CPTX_GEMM_MAP_D),
		               .any_row_of_d = true,
		               .any_rows = true,
		               .interleave = s.apart,
		               .unit_k = gemv_is_quantized(o) ? s.each : 1,
		               .unit_n = s.vec ? s.vec : 1,
		               .bk = o->bk,
		               /* else ptxas 13.0 fetches so much of A early that half of the warps have registers */
		               .per_sm = gemv_is_quantized(o) ? gemv_resident(&s) : 0 };
}

/* ---- rules ---- */

static bool check_types(const cptx_gemm_opt *o, cptx_error *err)
{
	const bool few = o->b == CPTX_U4 || o->b == CPTX_E2M1 || is_fp8(o->b);

	RULE(is_16_bits(o->a), "input type .%s; A is bf16 or f16", cptx_type_name(o->a));
	RULE(o->a == o->b || few, "B of .%s; it is as A, .%s, or u4, e2m1, e4m3 or e5m2", cptx_type_name(o->b),
	     cptx_type_name(o->a));
	RULE(o->scale == CPTX_TYPE_NONE || (few && o->scale == o->a),
	     "scale factors of .%s; those of weights of few bits are of the type of A, .%s", cptx_type_name(o->scale),
	     cptx_type_name(o->a));
	RULE(!o->scale_k || o->scale != CPTX_TYPE_NONE, "scale_k = %u without scale factors: say their type, .scale",
	     o->scale_k);
	RULE(!o->zeros || (o->b == CPTX_U4 && o->scale != CPTX_TYPE_NONE),
	     "zero points are of u4 with scale factors, not of .%s%s", cptx_type_name(o->b),
	     o->scale != CPTX_TYPE_NONE ? "" : " without");
	RULE(!few || !o->b_n_major, "B of .%s stored as rows of N; weights of few bits lie along K", cptx_type_name(o->b));
	RULE(!few || !(o->unaligned & CPTX_GEMM_B),
	     "B of .%s is unaligned; rows of weights of few bits have whole 16 bytes, so K is a multiple of %u",
	     cptx_type_name(o->b), GEMV_CHUNK * 8 / tma_gemm_bits(o->b));
	RULE(!o->b_n_major || !(o->unaligned & CPTX_GEMM_B),
	     "B is stored as rows of N and unaligned: mma.sync, wgmma and tcgen05 copy it first");
	RULE(!few || !o->batched, "B of .%s, batched; weights of few bits are one matrix", cptx_type_name(o->b));
	RULE(!o->a_m_major, "A is stored as rows of M; here it lies along K");
	RULE(o->out == CPTX_F32 || is_16_bits(o->out), "output type .%s; it must be f32, bf16 or f16", cptx_type_name(o->out));
	return true;
}

static bool check_shape(const cptx_gemm_opt *o, const gemv_shape *s, cptx_error *err)
{
	const uint32_t most = MIN(16 * s->depth, (uint32_t)GEMM_MOST_bk), warps_n = or_one(o->warps_n),
				   at_once = s->steps * (s->vec ? s->each * s->vec : 8 * s->atoms_n),
				   loads = at_once * (gemv_is_quantized(o) ? 2 : 1);

	RULE(o->bm == 8 || o->bm == 16 || o->bm == 32 || o->bm == 64, "tile M = %u; 8, 16, 32 and 64 are possible", o->bm);
	RULE(s->warps <= WARPS_MOST, "%ux%u warps; a CTA has 1 to %d", s->along_k, warps_n, WARPS_MOST);
	RULE(o->bn && o->bn % (GEMV_ROWS * warps_n) == 0 && s->atoms_n <= 8 && !(s->atoms_n & (s->atoms_n - 1)) &&
	         (!s->vec || s->vec >= 4),
	     "tile N = %u of %u warps; each has %s 128 rows of B, a power of two", o->bn, warps_n, s->vec ? "64 or" : "16 to");
	RULE(o->bk && o->bk % s->depth == 0 && o->bk <= most, "tile K = %u; multiples of %u to %u are possible with B of .%s",
	     o->bk, s->depth, most, cptx_type_name(o->b));
	RULE(!s->group || (s->group % s->depth == 0 && (o->bk % s->group == 0 || s->group % o->bk == 0)),
	     "scale_k = %u; it is 0 (one factor for all of K) or a multiple of %u that divides tile K = %u or is divided by it",
	     s->group, s->depth, o->bk);
	RULE(s->atoms_n * s->atoms_m * (s->group ? 8 : 4) + loads <= REGS,
	     "tile %ux%ux%u takes about %u registers of a thread for sums and loads; at most %d have room", o->bm, o->bn, o->bk,
	     s->atoms_n * s->atoms_m * (s->group ? 8 : 4) + loads, REGS);
	RULE(s->along_k * o->bm * o->bn * 4 <= SMEM,
	     "tile %ux%u of %u warps along K needs %u bytes of shared memory; there are %d", o->bm, o->bn, s->along_k,
	     s->along_k * o->bm * o->bn * 4, SMEM);
	RULE(s->apart == 1 || warps_n == 1, "B is unaligned, and %u warps along N; then all are along K", warps_n);
	return true;
}

static bool check(const cptx_gemm_opt *o, const cptx_target *target, cptx_gemm_plan *plan, cptx_error *err)
{
	const gemv_shape s = gemv_shape_of(o);

	if (target && target->number < 80)
		return error_set(err, CPTX_E_TARGET, NOWHERE,
		                 "gemm for " TARGET " by gemv: mma.sync.m16n8k16 is not available on %s", target->name);
	RULE(o->unaligned <= 7, "unaligned = %u; it is a set of CPTX_GEMM_A, CPTX_GEMM_B and CPTX_GEMM_D", o->unaligned);
	if (!check_types(o, err) || !check_shape(o, &s, err))
		return false;
	*plan = (cptx_gemm_plan){ .threads = s.warps * CPTX_WARP,
		                      .smem = s.along_k * o->bm * o->bn * 4,
		                      .bk = o->bk,
		                      .vec = o->scale == CPTX_TYPE_NONE ? 0 : s.group };
	return true;
}

const gemm_generator gemm_gemv = {
	.target = TARGET, .by = "gemv", .check = check, .build = gemv_build, .describe = describe, .model = &gemm_gemv_model
};
