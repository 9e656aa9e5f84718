/* SPDX-License-Identifier: MIT */
/* What the options and sizes of the sm_100a GEMM must obey, and how it is launched. */
#include "gemm/sm100/gemm.h"

#define TARGET "sm_100a"
#define RULE(ok, ...) TMA_RULE(ok, TARGET ": " __VA_ARGS__)

/* ---- shapes ---- */

static bool is_fp4(const cptx_gemm_opt *o) { return o->kind == CPTX_TCGEN05_MXF4 || o->kind == CPTX_TCGEN05_MXF4NVF4; }

static cptx_tile operand(const cptx_gemm_opt *o, enum cptx_type t, uint32_t rows, uint32_t cols, bool mn_major)
{
	uint32_t bits = tma_gemm_bits(t);

	return (cptx_tile){ .rows = rows,
		                .cols = cols,
		                .elem = { (uint8_t)bits, mn_major, bits < 8 && !is_fp4(o) },
		                .swizzle = bits == 32 && mn_major ? CPTX_SWIZZLE_128B_ATOM_32B : CPTX_SWIZZLE_128B };
}

/* Columns of tensor memory.  A set of what a stage brings there for each stage, so that no copy waits for products; where
 * these do not fit, one: tcgen05.cp stays behind the products that the thread has started before. */
static void place_in_tmem(const cptx_gemm_opt *o, gemm100_shape *s)
{
	const uint32_t most = CPTX_TMEM_COLUMNS / s->per_sm;

	s->slot = (o->a_tmem ? SPAN_BYTES / 4 : 0) + s->scales.along_k * (1 + s->scales.rows[1]) * CPTX_SCALE_COLUMNS;
	s->accs = 2 * o->bn + s->slot <= most ? 2 : 1;
	s->slots = s->accs * o->bn + s->slot * o->stages <= most ? o->stages : 1;
	s->columns = s->accs * o->bn + s->slot * s->slots;
}

/* What an epilogue warp stores at once.  With swap its 32 rows are neighbours in a row of D, whose threads meet no bank
 * twice without a swizzle. */
static cptx_tile store_tile(const cptx_gemm_opt *o)
{
	const uint32_t bits = cptx_type_bits(o->out), most = o->bn & -o->bn; /* the largest power of two that divides it */

	if (!o->swap)
		return cptx_epilogue_tile(o->out, CPTX_WARP, o->bn);
	return (cptx_tile){
		.rows = CPTX_WARP, .cols = MIN(most, 32u), .elem = { (uint8_t)bits, true, false }, .pitch = CPTX_WARP * bits / 8
	};
}

gemm100_shape gemm_sm100_shape(const cptx_gemm_opt *opt)
{
	const cptx_gemm_opt in = tma_gemm_inner(opt), *o = &in;
	gemm100_shape s = { .ctas = o->bm / ROWS, .per_sm = or_one(o->per_sm) };

	s.bk =
		SPAN_BYTES * 8 / (is_fp4(o) ? 4 : MAX(tma_gemm_bits(o->a), 8)); /* elements of 4 and 6 bits are padded but there */
	s.cluster_m = or_one(o->cluster_m), s.cluster_n = or_one(o->cluster_n);
	s.tiles = s.cluster_m * s.cluster_n;
	if (gemm_sm100_scaled(o))
		s.scales = tma_gemm_scales_of(o, s.bk, (o->bn + ROWS - 1) / ROWS);
	s.a = operand(o, o->a, ROWS, s.bk, o->a_m_major);
	s.b = operand(o, o->b, o->bn / s.ctas, s.bk, o->b_n_major);
	s.sum_bytes = CPTX_WARP * o->bn * 4;
	s.d = store_tile(o);
	place_in_tmem(o, &s);
	return s;
}

static tma_gemm describe(const cptx_gemm_opt *o)
{
	const gemm100_shape s = gemm_sm100_shape(o);

	return (tma_gemm){ .a = s.a,
		               .b = s.b,
		               .parts = { s.cluster_n, s.cluster_m },
		               .d = s.d,
		               .scales = s.scales,
		               .pointers = o->unaligned & CPTX_GEMM_D ? MAP(CPTX_GEMM_MAP_D) : 0,
		               .any_row_of_d = o->unaligned & CPTX_GEMM_D,
		               .pair = s.ctas > 1 ? ROWS : 0,
		               .bk = s.bk,
		               .sums = o->stream_k ? EPILOGUE_WARPS * (s.sum_bytes + 4) : 0 };
}

/* Is there an instruction of that kind, shape and types?  What it says of A holds of B alike. */
static bool is_possible(const cptx_gemm_opt *o, const gemm100_shape *s, cptx_error *err)
{
	const cptx_insn_desc d = { .kind = o->kind,
		                       .m = (uint16_t)o->bm,
		                       .n = (uint16_t)o->bn,
		                       .a = o->a,
		                       .b = o->b,
		                       .d = o->kind == CPTX_TCGEN05_I8 ? CPTX_S32 : CPTX_F32,
		                       .scale = o->scale,
		                       .a_mn_major = o->a_m_major,
		                       .b_mn_major = o->b_n_major,
		                       .ctas = (uint8_t)s->ctas };
	uint32_t word;

	return cptx_insn_desc_encode(&d, &word, err);
}

static uint32_t stage_bytes(const gemm100_shape *s)
{
	return cptx_tile_bytes(&s->a) + cptx_tile_bytes(&s->b) + tma_gemm_all_scale_bytes(&s->scales);
}

static uint32_t shared_bytes(const cptx_gemm_opt *o, const gemm100_shape *s)
{
	return o->stages * stage_bytes(s) + EPILOGUE_WARPS * STORE_STAGES * cptx_epilogue_ring_bytes(&s->d);
}

/* ---- rules ---- */

static bool check_types(const cptx_gemm_opt *o, const cptx_target *target, cptx_error *err)
{
	bool i8 = o->kind == CPTX_TCGEN05_I8;

	RULE((unsigned)o->kind < CPTX_TCGEN05_KINDS, "there is no kind %u of tcgen05.mma", (unsigned)o->kind);
	RULE(o->kind != CPTX_TCGEN05_TF32 || o->a == CPTX_TF32,
	     ".kind is not given, or tf32, which does not multiply .%s; say .kind = CPTX_TCGEN05_F16 for bf16 and f16, F8F6F4 "
	     "for "
	     "types of 8 to 4 bits, I8 for integers, MXF8F6F4, MXF4 or MXF4NVF4 with scale factors",
	     cptx_type_name(o->a));
	RULE(!i8 || !target || target->number != 103,
	     "%s has no tcgen05.mma of kind i8; sm_100a has. Instead: kind f8f6f4, or mma.sync with s8", target->name);
	RULE(o->kind != CPTX_TCGEN05_F16 || o->a == o->b, "A is .%s and B .%s; both must be bf16, or both f16",
	     cptx_type_name(o->a), cptx_type_name(o->b));
	if (!tma_gemm_check_out(TARGET, o, err))
		return false;
	RULE(tma_gemm_bits(o->a) >= 8 || !o->a_m_major, "A of .%s stored as rows of M; elements of 4 and 6 bits lie along K",
	     cptx_type_name(o->a));
	RULE(tma_gemm_bits(o->b) >= 8 || !o->b_n_major, "B of .%s stored as rows of N; elements of 4 and 6 bits lie along K",
	     cptx_type_name(o->b));
	RULE(!o->a_tmem || !tma_gemm_inner(o).a_m_major, "%s cannot come from tensor memory, whose lanes are rows along K",
	     o->swap ? "B stored as rows of N" : "A stored as rows of M");
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

static bool check_tile(const cptx_gemm_opt *o, cptx_error *err)
{
	uint32_t step = gemm_sm100_scaled(o) ? 64 : o->bm == 2 * ROWS ? 32 : 16;
	const char first = o->swap ? 'N' : 'M', second = o->swap ? 'M' : 'N';

	RULE(o->bm == ROWS || o->bm == 2 * ROWS, "tile %c = %u; 128 (one CTA) and 256 (two) are possible", first, o->bm);
	RULE(o->bn >= step && o->bn <= 256 && o->bn % step == 0,
	     "tile %c = %u; multiples of %u up to 256 are possible with %u %s%s", second, o->bn, step, o->bm,
	     o->swap ? "columns" : "rows", gemm_sm100_scaled(o) ? " and scale factors" : "");
	return tma_gemm_check_numbers(TARGET, o, err) &&
	       tma_gemm_check_cluster(TARGET, or_one(o->cluster_m), or_one(o->cluster_n), o->bm / ROWS, err);
}

static bool check(const cptx_gemm_opt *o, const cptx_target *target, cptx_gemm_plan *plan, cptx_error *err)
{
	cptx_error why = { .code = CPTX_OK };

	if (!check_types(o, target, err) || !check_tile(o, err))
		return false;
	const gemm100_shape s = gemm_sm100_shape(o);
	RULE(is_possible(o, &s, &why), "kind %s: %s", cptx_tcgen05_kind_name(o->kind), why.text);
	if (!check_parts(o->swap ? 'B' : 'A', &s.a, s.cluster_n, err) ||
	    !check_parts(o->swap ? 'A' : 'B', &s.b, s.cluster_m, err))
		return false;
	uint32_t smem = shared_bytes(o, &s);
	if (!tma_gemm_check_room(TARGET, o, s.bk, s.per_sm, stage_bytes(&s), smem, err))
		return false;
	uint32_t columns = CPTX_TMEM_COLUMNS / s.per_sm;
	RULE(s.columns <= columns, "%u columns of tensor memory, of %u that %s", s.columns, columns,
	     s.per_sm > 1 ? "each of two CTAs on a multiprocessor has" : "there are");
	*plan = (cptx_gemm_plan){ .threads = WARPS * 32,
		                      .smem = smem,
		                      .bk = s.bk,
		                      .vec = s.scales.vec,
		                      .kind = o->kind,
		                      .accumulators = s.accs,
		                      .columns = s.columns };
	return true;
}

const gemm_generator gemm_sm100 = { .target = TARGET,
	                                .by = "tcgen05",
	                                .where = "sm_100a and sm_103a have",
	                                .op = CPTX_OP_TCGEN05_MMA,
	                                .check = check,
	                                .build = gemm_sm100_build,
	                                .describe = describe,
	                                .model = &gemm_sm100_model };
