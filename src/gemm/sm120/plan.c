/* SPDX-License-Identifier: MIT */
/* What the options and sizes of the sm_120a GEMM must obey, and how it is launched. */
#include "gemm/sm120/gemm.h"

#define TARGET "sm_120a"
#define RULE(ok, ...) TMA_RULE(ok, TARGET ": " __VA_ARGS__)

/* ---- shapes ---- */

gemm120_shape gemm_sm120_shape(const cptx_gemm_opt *o)
{
	gemm120_shape s = { .bk = gemm_sm120_packed(o) ? 2 * SM120_SPAN : SM120_SPAN };

	s.scales = tma_gemm_scales_of(o, s.bk, 1);
	s.a_bytes = o->bm * SM120_SPAN, s.b_bytes = o->bn * SM120_SPAN, s.sf_bytes = tma_gemm_scale_bytes(&s.scales, false);
	s.stage = s.a_bytes + s.b_bytes + 2 * s.sf_bytes;
	s.warps = o->warps_m * o->warps_n, s.per_sm = or_one(o->per_sm);
	s.wm = o->warps_m ? o->bm / o->warps_m : 0, s.wn = o->warps_n ? o->bn / o->warps_n : 0;
	return s;
}

/* A or B as TMA sees it: two e2m1 that lie together are a byte; other elements below 8 bits are padded.  64 bytes that lie
 * behind one another are a span of their own. */
static cptx_tile operand(const cptx_gemm_opt *o, bool of_b)
{
	const uint32_t rows = of_b ? o->bn : o->bm, bits = tma_gemm_bits(of_b ? o->b : o->a);
	const bool mn_major = of_b ? o->b_n_major : o->a_m_major, padded = !gemm_sm120_packed(o) && bits < 8;

	return (cptx_tile){ .rows = rows,
		                .cols = SM120_SPAN,
		                .elem = { (uint8_t)(padded ? bits : 8), mn_major, padded },
		                .swizzle = mn_major && rows < SM120_SPAN ? CPTX_SWIZZLE_64B : CPTX_SWIZZLE_128B };
}

static tma_gemm describe(const cptx_gemm_opt *o)
{
	const gemm120_shape s = gemm_sm120_shape(o);

	return (tma_gemm){ .a = operand(o, false),
		               .b = operand(o, true),
		               .d = { .rows = o->bm, .cols = o->bn, .elem = { .bits = (uint8_t)cptx_type_bits(o->out) } },
		               .packed = gemm_sm120_packed(o) ? 2 : 1,
		               .scales = s.scales,
		               .pointers = MAP(CPTX_GEMM_MAP_D),
		               .any_row_of_d = o->unaligned & CPTX_GEMM_D,
		               .bk = s.bk,
		               .sums = o->stream_k ? s.warps * (gemm_sm120_sum_bytes(&s) + 4) : 0 };
}

/* ---- rules ---- */

static bool is_small_float(enum cptx_type t)
{
	return t == CPTX_E4M3 || t == CPTX_E5M2 || t == CPTX_E2M3 || t == CPTX_E3M2 || t == CPTX_E2M1;
}

static enum cptx_tcgen05_kind kind_of(const cptx_gemm_opt *o)
{
	return !gemm_sm120_packed(o)    ? CPTX_TCGEN05_MXF8F6F4
	       : o->scale == CPTX_UE4M3 ? CPTX_TCGEN05_MXF4NVF4
	                                : CPTX_TCGEN05_MXF4;
}

static bool check_types(const cptx_gemm_opt *o, cptx_error *err)
{
	RULE(is_small_float(o->a) && is_small_float(o->b), "A is .%s and B .%s; each must be e4m3, e5m2, e2m3, e3m2 or e2m1",
	     cptx_type_name(o->a), cptx_type_name(o->b));
	RULE(o->scale == CPTX_UE8M0 || (o->scale == CPTX_UE4M3 && gemm_sm120_packed(o)),
	     "scale factors of .%s; with .%s and .%s they are ue8m0%s", cptx_type_name(o->scale), cptx_type_name(o->a),
	     cptx_type_name(o->b), gemm_sm120_packed(o) ? " or ue4m3" : "");
	RULE(!o->kind || o->kind == kind_of(o), "kind %s of mma.sync does not take .%s and .%s by .%s; these are kind %s",
	     cptx_tcgen05_kind_name(o->kind), cptx_type_name(o->a), cptx_type_name(o->b), cptx_type_name(o->scale),
	     cptx_tcgen05_kind_name(kind_of(o)));
	return tma_gemm_check_out(TARGET, o, err);
}

/* Rules of an operand by its layout; mn_major: M, or of B N, is contiguous. */
static bool check_major(const cptx_gemm_opt *o, char which, enum cptx_type type, uint32_t rows, bool mn_major,
                        cptx_error *err)
{
	RULE(!mn_major || !gemm_sm120_packed(o),
	     "%c is %c-major; with e2m1 twice two neighbours along K share a byte in registers, and ldmatrix turns bytes only: "
	     "it "
	     "must be K-major",
	     which, which == 'A' ? 'M' : 'N');
	RULE(!mn_major || tma_gemm_bits(type) == 8 || rows == SM120_SPAN,
	     "%c is %c-major, and tile %c = %u; of .%s it must be %d, as tensor maps pad rows of whole 128 elements", which,
	     which == 'A' ? 'M' : 'N', which == 'A' ? 'M' : 'N', rows, cptx_type_name(type), SM120_SPAN);
	return true;
}

static bool check(const cptx_gemm_opt *o, const cptx_target *target, cptx_gemm_plan *plan, cptx_error *err)
{
	(void)target;
	if (!check_types(o, err))
		return false;
	RULE(o->bm == 64 || o->bm == 128, "tile M = %u; 64 and 128 are possible", o->bm);
	RULE(o->bn == 64 || o->bn == 128, "tile N = %u; 64 and 128 are possible", o->bn);
	gemm120_shape s = gemm_sm120_shape(o);
	RULE(o->warps_m && o->warps_n && s.wm % 32 == 0 && s.wn % 32 == 0 && s.wm && s.wn && s.wm * o->warps_m == o->bm &&
	         s.wn * o->warps_n == o->bn,
	     "%ux%u warps for a tile of %ux%u; each must have a multiple of 32 rows and of 32 columns", o->warps_m, o->warps_n,
	     o->bm, o->bn);
	/* found with ptxas for all shapes: others spill registers */
	bool more = o->stream_k || o->grouped;
	RULE(s.wm * s.wn <= (more ? 32u : 64u) * 64 && (s.wn <= 64 || gemm_sm120_packed(o)),
	     "%ux%u warps for a tile of %ux%u; the %u rows of %u columns of one have no room in registers, at most %s%s have",
	     o->warps_m, o->warps_n, o->bm, o->bn, s.wm, s.wn,
	     more ? "64x32 and 32x64 of a kernel for lists or with stream_k" : "64x64, 128x32",
	     !more && gemm_sm120_packed(o) ? " and 32x128" : "");
	if (!check_major(o, 'A', o->a, o->bm, o->a_m_major, err) || !check_major(o, 'B', o->b, o->bn, o->b_n_major, err) ||
	    !tma_gemm_check_numbers(TARGET, o, err) ||
	    !tma_gemm_check_room(TARGET, o, s.bk, s.per_sm, s.stage, o->stages * s.stage, err))
		return false;
	*plan = (cptx_gemm_plan){ .threads = (s.warps + 1) * SM120_WARP,
		                      .smem = o->stages * s.stage,
		                      .bk = s.bk,
		                      .vec = s.scales.vec,
		                      .kind = kind_of(o) };
	return true;
}

const gemm_generator gemm_sm120 = { .target = TARGET,
	                                .by = "mma.sync with scale factors",
	                                .where = "sm_120a and sm_121a have",
	                                .op = CPTX_OP_MMA_BLOCK_SCALE,
	                                .check = check,
	                                .build = gemm_sm120_build,
	                                .describe = describe,
	                                .model = &gemm_sm120_model };
