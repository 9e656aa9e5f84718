/* What the options and sizes of the sm_100a GEMM must obey, and how it is launched. */
#include "kernels/gemm_sm100.h"

#define TARGET "sm_100a"
#define RULE(ok, ...) TMA_RULE(ok, TARGET ": " __VA_ARGS__)

/* ---- shapes ---- */

static bool is_fp4(const cptx_gemm_sm100_opt *o) { return o->kind == CPTX_TCGEN05_MXF4 || o->kind == CPTX_TCGEN05_MXF4NVF4; }

static cptx_tile operand(const cptx_gemm_sm100_opt *o, enum cptx_type t, uint32_t rows, uint32_t cols, bool mn_major)
{
	uint32_t bits = tma_gemm_bits(t);

	return (cptx_tile){ .rows = rows,
		                .cols = cols,
		                .elem = { (uint8_t)bits, mn_major, bits < 8 && !is_fp4(o) },
		                .swizzle = bits == 32 && mn_major ? CPTX_SWIZZLE_128B_ATOM_32B : CPTX_SWIZZLE_128B };
}

static uint32_t tile_k(const cptx_gemm_sm100_opt *o)
{
	return is_fp4(o)                      ? 8 * SPAN_BYTES / 4
	       : o->kind == CPTX_TCGEN05_F16  ? SPAN_BYTES / 2
	       : o->kind == CPTX_TCGEN05_TF32 ? SPAN_BYTES / 4
	                                      : SPAN_BYTES;
}

/* Columns of tensor memory.  A set of what a stage brings there for each stage, so that no copy waits for products; where
 * these do not fit, one: tcgen05.cp stays behind the products that the thread has started before. */
static void place_in_tmem(const cptx_gemm_sm100_opt *o, gemm100_shape *s)
{
	s->at_sa = o->a_tmem ? SPAN_BYTES / 4 : 0;
	s->at_sb = s->at_sa + s->blocks * FACTOR_COLUMNS;
	s->slot = s->at_sb + s->blocks * s->b_blocks * FACTOR_COLUMNS;
	s->accs = 2 * o->bn + s->slot <= CPTX_TMEM_COLUMNS ? 2 : 1;
	s->slots = s->accs * o->bn + s->slot * o->stages <= CPTX_TMEM_COLUMNS ? o->stages : 1;
	s->columns = s->accs * o->bn + s->slot * s->slots;
}

gemm100_shape gemm_sm100_shape(const cptx_gemm_sm100_opt *o)
{
	gemm100_shape s = { .ctas = o->bm / ROWS, .bk = tile_k(o), .out_bytes = cptx_type_bits(o->out) / 8 };

	s.cluster_m = given(o->cluster_m), s.cluster_n = given(o->cluster_n);
	s.tiles = s.cluster_m * s.cluster_n, s.cluster = s.tiles * s.ctas;
	if (gemm_sm100_scaled(o)) {
		s.vec = o->scale == CPTX_UE4M3 ? 16 : 32;
		s.blocks = s.bk / (s.vec * FACTORS);
		s.b_blocks = (o->bn + ROWS - 1) / ROWS;
	}
	s.a = operand(o, o->a, ROWS, s.bk, o->a_m_major);
	s.b = operand(o, o->b, o->bn / s.ctas, s.bk, o->b_n_major);
	s.a_bytes = ROWS * SPAN_BYTES, s.b_bytes = o->bn / s.ctas * SPAN_BYTES;
	s.sa_bytes = s.blocks * FACTOR_BYTES, s.sb_bytes = s.blocks * s.b_blocks * FACTOR_BYTES;
	uint32_t row = o->bn * s.out_bytes, span = row & -row; /* the largest power of two that divides it */
	span = MIN(span, (uint32_t)SPAN_BYTES);
	s.out_cols = span / s.out_bytes;
	s.d = (cptx_tile){ .rows = 32,
		               .cols = s.out_cols,
		               .elem.bits = (uint8_t)(8 * s.out_bytes),
		               .swizzle = span == 128  ? CPTX_SWIZZLE_128B
		                          : span == 64 ? CPTX_SWIZZLE_64B
		                                       : CPTX_SWIZZLE_32B };
	s.sum_bytes = 32 * o->bn * 4;
	place_in_tmem(o, &s);
	return s;
}

tma_gemm gemm_sm100_common(const cptx_gemm_sm100_opt *o, const gemm100_shape *s)
{
	tma_gemm t = { .target = TARGET,
		           .name = o->name ? o->name : "gemm",
		           .a_type = o->a,
		           .b_type = o->b,
		           .out = o->out,
		           .a = s->a,
		           .b = s->b,
		           .d = s->d,
		           .batched = o->batched,
		           .alpha = o->alpha,
		           .beta = o->beta,
		           .bias = o->bias,
		           .timeline = o->timeline,
		           .epilogue = o->epilogue,
		           .user = o->user };

	t.a.rows /= s->cluster_n, t.b.rows /= s->cluster_m;
	return t;
}

bool gemm_sm100_idesc(const cptx_gemm_sm100_opt *o, const gemm100_shape *s, uint32_t i, uint32_t *word, cptx_error *err)
{
	cptx_insn_desc d = { .kind = o->kind,
		                 .m = (uint16_t)o->bm,
		                 .n = (uint16_t)o->bn,
		                 .a = o->a,
		                 .b = o->b,
		                 .d = o->kind == CPTX_TCGEN05_I8 ? CPTX_S32 : CPTX_F32,
		                 .scale = o->scale,
		                 .a_mn_major = o->a_m_major,
		                 .b_mn_major = o->b_n_major,
		                 .ctas = (uint8_t)s->ctas };
	uint32_t first = i * s->blocks * FACTORS / STEPS % FACTORS; /* of the factors in a block */

	d.a_scale_id = d.b_scale_id = (uint8_t)first;
	return cptx_insn_desc_encode(&d, word, err);
}

static uint32_t stage_bytes(const gemm100_shape *s) { return s->a_bytes + s->b_bytes + s->sa_bytes + s->sb_bytes; }

static uint32_t shared_bytes(const cptx_gemm_sm100_opt *o, const gemm100_shape *s)
{
	return o->stages * stage_bytes(s) + READERS * PIECES * cptx_tile_bytes(&s->d);
}

/* ---- rules ---- */

static bool check_types(const cptx_gemm_sm100_opt *o, const cptx_target *target, cptx_error *err)
{
	bool i8 = o->kind == CPTX_TCGEN05_I8, behind = o->alpha || o->beta || o->bias || o->epilogue;

	RULE((unsigned)o->kind < CPTX_TCGEN05_KINDS, "there is no kind %u of tcgen05.mma", (unsigned)o->kind);
	RULE(!target || cptx_form_on_target(CPTX_OP_TCGEN05_MMA, 0, target),
	     "%s has no tcgen05 and no tensor memory; sm_100a and sm_103a have. Instead: %s", target->name,
	     target->number == 90 ? "cptx_gemm_sm90_build, by wgmma" : "cptx_gemm_build, by mma.sync");
	RULE(!i8 || !target || target->number != 103,
	     "%s has no tcgen05.mma of kind i8; sm_100a has. Instead: kind f8f6f4, or mma.sync with s8", target->name);
	RULE(o->kind != CPTX_TCGEN05_F16 || o->a == o->b, "A is .%s and B .%s; both must be bf16, or both f16",
	     cptx_type_name(o->a), cptx_type_name(o->b));
	if ((!i8 || o->out != CPTX_S32) && !tma_gemm_check_out(TARGET, o->out, i8 ? ", or s32" : "", err))
		return false;
	RULE(o->out != CPTX_S32 || !behind,
	     "output type .s32 with alpha, beta, bias or an epilogue; these are in f32: take f32");
	RULE(tma_gemm_bits(o->a) >= 8 || !o->a_m_major, "A of .%s stored as rows of M; elements of 4 and 6 bits lie along K",
	     cptx_type_name(o->a));
	RULE(tma_gemm_bits(o->b) >= 8 || !o->b_n_major, "B of .%s stored as rows of N; elements of 4 and 6 bits lie along K",
	     cptx_type_name(o->b));
	RULE(!o->a_tmem || !o->a_m_major, "A stored as rows of M cannot come from tensor memory, whose lanes are rows along K");
	return true;
}

/* A side of `rows` that CTAs load in parts: whole swizzle patterns, or whole spans of what is contiguous. */
static bool check_parts(char which, const cptx_tile *t, uint32_t parts, cptx_error *err)
{
	uint32_t unit = t->elem.mn_major ? SPAN_BYTES * 8u / t->elem.bits : 8;

	RULE(t->rows % (unit * parts) == 0, "%u %s of %c in a CTA, in %u part%s; each part must be a multiple of %u", t->rows,
	     which == 'A' ? "rows" : "columns", which, parts, parts > 1 ? "s" : "", unit);
	return true;
}

static bool check_tile(const cptx_gemm_sm100_opt *o, cptx_error *err)
{
	uint32_t step = gemm_sm100_scaled(o) ? 64 : o->bm == 2 * ROWS ? 32 : 16;
	tma_gemm_cta c = { TARGET, o->bm, o->bn, .stages = o->stages, .group = o->group, .timeline = o->timeline };

	RULE(o->bm == ROWS || o->bm == 2 * ROWS, "tile M = %u; 128 (one CTA) and 256 (two) are possible", o->bm);
	RULE(o->bn >= step && o->bn <= 256 && o->bn % step == 0,
	     "tile N = %u; multiples of %u up to 256 are possible with %u rows%s", o->bn, step, o->bm,
	     gemm_sm100_scaled(o) ? " and scale factors" : "");
	RULE(!o->grouped || (!o->batched && !o->stream_k), "a list of problems cannot be %s",
	     o->batched ? "batched" : "shared along K (stream_k)");
	RULE(!o->grouped || !o->timeline, "a list of problems has no timeline");
	return tma_gemm_check_numbers(&c, err) &&
	       tma_gemm_check_cluster(TARGET, given(o->cluster_m), given(o->cluster_n), o->bm / ROWS, err);
}

bool cptx_gemm_sm100_check(const cptx_gemm_sm100_opt *o, const cptx_target *target, cptx_gemm_sm100_plan *plan,
                           cptx_error *err)
{
	uint32_t word;
	cptx_error why = { 0 };

	if (err)
		*err = (cptx_error){ 0 };
	RULE(o, "no options were given (NULL)");
	if (!check_types(o, target, err) || !check_tile(o, err))
		return false;
	gemm100_shape s = gemm_sm100_shape(o);
	for (uint32_t i = 0; i < STEPS; i++)
		RULE(gemm_sm100_idesc(o, &s, i, &word, &why), "kind %s: %s", cptx_tcgen05_kind_name(o->kind), why.text);
	if (!check_parts('A', &s.a, s.cluster_n, err) || !check_parts('B', &s.b, s.cluster_m, err))
		return false;
	uint32_t smem = shared_bytes(o, &s);
	tma_gemm_cta c = {
		TARGET, o->bm, o->bn, s.bk, o->stages, stage_bytes(&s), .other_bytes = smem - o->stages * stage_bytes(&s)
	};
	if (!tma_gemm_check_room(&c, err))
		return false;
	RULE(s.columns <= CPTX_TMEM_COLUMNS, "%u columns of tensor memory, of %d that there are", s.columns, CPTX_TMEM_COLUMNS);
	if (plan)
		*plan = (cptx_gemm_sm100_plan){
			.threads = WARPS * 32, .smem = smem, .bk = s.bk, .vec = s.vec, .accumulators = s.accs, .columns = s.columns
		};
	return true;
}

uint64_t gemm_sm100_tiles(const cptx_gemm_sm100_opt *o, const gemm100_shape *s, const cptx_gemm_problem *p)
{
	uint64_t m = o->bm * s->cluster_m, n = o->bn * s->cluster_n;

	return (p->m + m - 1) / m * ((p->n + n - 1) / n);
}

bool cptx_gemm_sm100_check_problem(const cptx_gemm_sm100_opt *o, const cptx_gemm_problem *p, uint32_t sms,
                                   cptx_gemm_sm100_plan *plan, cptx_error *err)
{
	cptx_gemm_sm100_plan here;

	if (!cptx_gemm_sm100_check(o, NULL, &here, err))
		return false;
	gemm100_shape s = gemm_sm100_shape(o);
	tma_gemm t = gemm_sm100_common(o, &s);
	if (!tma_gemm_check_problem(&t, p, err))
		return false;
	tma_gemm_work w = { TARGET,
		                gemm_sm100_tiles(o, &s, p),
		                (p->k + s.bk - 1) / s.bk,
		                s.cluster,
		                1,
		                o->stream_k ? READERS * (s.sum_bytes + 4) : 0 };
	if (!tma_gemm_fit(&w, p, sms, &here.grid, &here.workspace, err))
		return false;
	if (plan)
		*plan = here;
	return true;
}

/* ---- launches ---- */

bool cptx_gemm_sm100_maps(const cptx_gemm_sm100_opt *o, const cptx_gemm_problem *p, cptx_tensor_map_opt map[5],
                          cptx_error *err)
{
	if (!cptx_gemm_sm100_check_problem(o, p, 1, NULL, err))
		return false;
	RULE(map, "no room for the maps was given (NULL)");
	gemm100_shape s = gemm_sm100_shape(o);
	tma_gemm t = gemm_sm100_common(o, &s);
	tma_gemm_factors f = { s.vec, s.blocks, s.b_blocks };
	for (int i = 0; i < 3; i++)
		if (!tma_gemm_map(&t, p, i, &map[i], err))
			return false;
	return !gemm_sm100_scaled(o) ||
	       (tma_gemm_map_factors(&t, p, false, &f, &map[3], err) && tma_gemm_map_factors(&t, p, true, &f, &map[4], err));
}

cptx_launch *cptx_gemm_sm100_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm100_opt *o,
                                    const cptx_gemm_problem *p, cptx_error *err)
{
	cptx_gemm_sm100_plan plan;
	cptx_tensor_map_opt map[5];

	if (!tma_gemm_has_device("sm_100a", program, dev, err))
		return NULL;
	if (o && o->grouped) {
		error_set(err, CPTX_E_ARG, NOWHERE,
		          "gemm for sm_100a: the kernel takes a list of problems: cptx_gemm_sm100_launch_grouped");
		return NULL;
	}
	if (!cptx_gemm_sm100_check_problem(o, p, cptx_device_get_info(dev)->sms, &plan, err) ||
	    !cptx_gemm_sm100_maps(o, p, map, err))
		return NULL;
	gemm100_shape s = gemm_sm100_shape(o);
	tma_gemm t = gemm_sm100_common(o, &s);
	return tma_gemm_prepare(
		&(tma_gemm_launch){ &t, p, map, gemm_sm100_maps(o), plan.grid, plan.threads, plan.smem, plan.workspace }, program,
		dev, err);
}

/* ---- lists ---- */

_Static_assert(TMA_GEMM_RECORD(TMA_GEMM_MAPS) == CPTX_GEMM_SM100_GROUP_BYTES, "as the header says");

static bool check_one(const void *opt, const cptx_gemm_problem *p, uint64_t *tiles, cptx_error *err)
{
	gemm100_shape s;

	*tiles = 0;
	if (!cptx_gemm_sm100_check_problem(opt, p, 1, NULL, err))
		return false;
	s = gemm_sm100_shape(opt);
	*tiles = gemm_sm100_tiles(opt, &s, p);
	return true;
}

static bool describe(const void *opt, const cptx_gemm_problem *p, cptx_tensor_map_opt *map, cptx_error *err)
{
	return cptx_gemm_sm100_maps(opt, p, map, err);
}

cptx_launch *cptx_gemm_sm100_launch_grouped(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm100_opt *o,
                                            const cptx_gemm_problem *p, size_t n, uint64_t table, cptx_error *err)
{
	cptx_gemm_sm100_plan plan;

	if (!tma_gemm_check_list(TARGET, dev, program, p, n, table, err) || !cptx_gemm_sm100_check(o, NULL, &plan, err))
		return NULL;
	if (!o->grouped) {
		error_set(err, CPTX_E_ARG, NOWHERE, "gemm for sm_100a: the kernel takes one problem; .grouped makes it take a list");
		return NULL;
	}
	gemm100_shape s = gemm_sm100_shape(o);
	tma_gemm t = gemm_sm100_common(o, &s);
	tma_gemm_list l = { .t = &t,
		                .opt = o,
		                .check = check_one,
		                .describe = describe,
		                .maps = TMA_GEMM_MAPS,
		                .has = (1u << gemm_sm100_maps(o)) - 1,
		                .cluster = s.cluster,
		                .per_sm = 1,
		                .threads = plan.threads,
		                .smem = plan.smem };
	return tma_gemm_launch_list(&l, program, dev, p, n, table, err);
}
