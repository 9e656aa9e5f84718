/* What the options and sizes of the sm_120a GEMM must obey, and how it is launched. */
#include "kernels/gemm_sm120.h"

#define TARGET "sm_120a"
#define RULE(ok, ...) TMA_RULE(ok, TARGET ": " __VA_ARGS__)

/* ---- shapes ---- */

gemm120_shape gemm_sm120_shape(const cptx_gemm_sm120_opt *o)
{
	gemm120_shape s = { .bk = gemm_sm120_packed(o) ? 2 * SM120_SPAN : SM120_SPAN, .vec = o->scale == CPTX_UE4M3 ? 16 : 32 };

	s.blocks = s.bk / (s.vec * FACTORS);
	s.a_bytes = o->bm * SM120_SPAN, s.b_bytes = o->bn * SM120_SPAN, s.sf_bytes = s.blocks * FACTOR_BYTES;
	s.stage = s.a_bytes + s.b_bytes + 2 * s.sf_bytes;
	s.warps = o->warps_m * o->warps_n;
	s.wm = o->warps_m ? o->bm / o->warps_m : 0, s.wn = o->warps_n ? o->bn / o->warps_n : 0;
	return s;
}

cptx_tile gemm_sm120_bytes(uint32_t rows)
{
	return (cptx_tile){ .rows = rows, .cols = SM120_SPAN, .elem.bits = 8, .swizzle = CPTX_SWIZZLE_128B };
}

/* As TMA sees it: elements below 8 bits that do not lie together in shared memory are padded there. */
static cptx_tile operand(const cptx_gemm_sm120_opt *o, enum cptx_type type, uint32_t rows)
{
	cptx_tile t = gemm_sm120_bytes(rows);

	if (!gemm_sm120_packed(o) && tma_gemm_bits(type) < 8)
		t.elem.bits = (uint8_t)tma_gemm_bits(type), t.elem.padded = true;
	return t;
}

tma_gemm gemm_sm120_common(const cptx_gemm_sm120_opt *o)
{
	return (tma_gemm){ .target = TARGET,
		               .name = o->name ? o->name : "gemm",
		               .a_type = o->a,
		               .b_type = o->b,
		               .out = o->out,
		               .a = operand(o, o->a, o->bm),
		               .b = operand(o, o->b, o->bn),
		               .d = { .rows = o->bm, .cols = o->bn, .elem.bits = (uint8_t)cptx_type_bits(o->out) },
		               .batched = o->batched,
		               .alpha = o->alpha,
		               .beta = o->beta,
		               .bias = o->bias,
		               .d_pointer = true,
		               .epilogue = o->epilogue,
		               .user = o->user };
}

/* ---- rules ---- */

static bool is_small_float(enum cptx_type t)
{
	return t == CPTX_E4M3 || t == CPTX_E5M2 || t == CPTX_E2M3 || t == CPTX_E3M2 || t == CPTX_E2M1;
}

static bool check_types(const cptx_gemm_sm120_opt *o, const cptx_target *target, cptx_error *err)
{
	RULE(!target || cptx_form_on_target(CPTX_OP_MMA_BLOCK_SCALE, 0, target),
	     "%s has no mma.sync with scale factors; sm_120a and sm_121a have. Instead: %s", target->name,
	     target->number == 100 || target->number == 103 ? "cptx_gemm_sm100_build, by tcgen05"
	     : target->number == 90                         ? "cptx_gemm_sm90_build with e4m3 or e5m2"
	                                                    : "cptx_gemm_build with bf16 or f16");
	RULE(is_small_float(o->a) && is_small_float(o->b), "A is .%s and B .%s; each must be e4m3, e5m2, e2m3, e3m2 or e2m1",
	     cptx_type_name(o->a), cptx_type_name(o->b));
	RULE(o->scale == CPTX_UE8M0 || (o->scale == CPTX_UE4M3 && gemm_sm120_packed(o)),
	     "scale factors of .%s; with .%s and .%s they are ue8m0%s", cptx_type_name(o->scale), cptx_type_name(o->a),
	     cptx_type_name(o->b), gemm_sm120_packed(o) ? " or ue4m3" : "");
	return tma_gemm_check_out(TARGET, o->out, "", err);
}

bool cptx_gemm_sm120_check(const cptx_gemm_sm120_opt *o, const cptx_target *target, cptx_gemm_sm120_plan *plan,
                           cptx_error *err)
{
	if (err)
		*err = (cptx_error){ 0 };
	RULE(o, "no options were given (NULL)");
	if (!check_types(o, target, err))
		return false;
	RULE(o->bm == 64 || o->bm == 128, "tile M = %u; 64 and 128 are possible", o->bm);
	RULE(o->bn == 64 || o->bn == 128, "tile N = %u; 64 and 128 are possible", o->bn);
	gemm120_shape s = gemm_sm120_shape(o);
	RULE(o->warps_m && o->warps_n && s.wm % 32 == 0 && s.wn % 32 == 0 && s.wm && s.wn && s.wm * o->warps_m == o->bm &&
	         s.wn * o->warps_n == o->bn,
	     "%ux%u warps for a tile of %ux%u; each must have a multiple of 32 rows and of 32 columns", o->warps_m, o->warps_n,
	     o->bm, o->bn);
	/* found with ptxas for all shapes: others spill registers */
	RULE(s.wm * s.wn <= 64 * 64 && (s.wn <= 64 || gemm_sm120_packed(o)),
	     "%ux%u warps for a tile of %ux%u; the %u rows of %u columns of one have no room in registers, at most 64x64, "
	     "128x32%s have",
	     o->warps_m, o->warps_n, o->bm, o->bn, s.wm, s.wn, gemm_sm120_packed(o) ? " and 32x128" : "");
	tma_gemm_cta c = { TARGET, o->bm, o->bn, s.bk, o->stages, s.stage, .group = o->group };
	if (!tma_gemm_check_numbers(&c, err) || !tma_gemm_check_room(&c, err))
		return false;
	if (plan)
		*plan = (cptx_gemm_sm120_plan){
			.threads = (s.warps + 1) * SM120_WARP, .smem = o->stages * s.stage, .bk = s.bk, .vec = s.vec
		};
	return true;
}

/* TMA sees rows of bytes. */
static cptx_gemm_problem in_bytes(const cptx_gemm_sm120_opt *o, const cptx_gemm_problem *p)
{
	cptx_gemm_problem b = *p;

	b.k = gemm_sm120_packed(o) ? (p->k + 1) / 2 : p->k;
	return b;
}

bool cptx_gemm_sm120_check_problem(const cptx_gemm_sm120_opt *o, const cptx_gemm_problem *p, uint32_t sms,
                                   cptx_gemm_sm120_plan *plan, cptx_error *err)
{
	cptx_gemm_sm120_plan here;

	if (!cptx_gemm_sm120_check(o, NULL, &here, err))
		return false;
	if (!p)
		return tma_gemm_check_problem(&(tma_gemm){ .target = TARGET }, NULL, err);
	cptx_gemm_problem bytes = in_bytes(o, p);
	tma_gemm t = gemm_sm120_common(o);
	RULE(!gemm_sm120_packed(o) || p->k % 32 == 0, "K = %llu; rows of e2m1 are of whole 16 bytes, 32 elements (pad to %llu)",
	     (unsigned long long)p->k, (unsigned long long)((p->k + 31) / 32 * 32));
	if (!tma_gemm_check_problem(&t, &bytes, err))
		return false;
	gemm120_shape s = gemm_sm120_shape(o);
	uint64_t tiles = (p->m + o->bm - 1) / o->bm * ((p->n + o->bn - 1) / o->bn), workspace;
	tma_gemm_work w = { TARGET, tiles, (p->k + s.bk - 1) / s.bk, 1, 1, 0 };
	if (!tma_gemm_fit(&w, p, sms, &here.grid, &workspace, err))
		return false;
	if (plan)
		*plan = here;
	return true;
}

cptx_launch *cptx_gemm_sm120_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm120_opt *o,
                                    const cptx_gemm_problem *p, cptx_error *err)
{
	cptx_gemm_sm120_plan plan;
	cptx_tensor_map_opt map[TMA_GEMM_MAPS] = { { 0 } };

	if (!tma_gemm_has_device("sm_120a", program, dev, err))
		return NULL;
	if (!cptx_gemm_sm120_check_problem(o, p, cptx_device_get_info(dev)->sms, &plan, err))
		return NULL;
	gemm120_shape s = gemm_sm120_shape(o);
	tma_gemm t = gemm_sm120_common(o);
	cptx_gemm_problem bytes = in_bytes(o, p);
	tma_gemm_factors f = { s.vec, s.blocks, 1 };
	for (int i = 0; i < 2; i++)
		if (!tma_gemm_map(&t, &bytes, i, &map[i], err) || !tma_gemm_map_factors(&t, p, i, &f, &map[3 + i], err))
			return NULL;
	return tma_gemm_prepare(&(tma_gemm_launch){ &t, p, map, TMA_GEMM_MAPS, plan.grid, plan.threads, plan.smem, 0 }, program,
	                        dev, err);
}
