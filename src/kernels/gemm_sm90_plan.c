/* What the options and sizes of the sm_90a GEMM must obey, and how it is launched. */
#include "kernels/gemm_sm90.h"

cptx_gemm_sm90_opt gemm_sm90_inner(const cptx_gemm_sm90_opt *o)
{
	cptx_gemm_sm90_opt in = *o;

	if (o->swap) {
		in.a = o->b, in.b = o->a;
		in.a_m_major = o->b_n_major, in.b_n_major = o->a_m_major;
	}
	return in;
}

cptx_gemm_problem gemm_sm90_inner_problem(const cptx_gemm_sm90_opt *o, const cptx_gemm_problem *p)
{
	cptx_gemm_problem in = *p;

	if (o->swap) {
		in.m = p->n, in.n = p->m;
		in.a = p->b, in.b = p->a;
	}
	return in;
}

static uint32_t shared_bytes(const cptx_gemm_sm90_opt *o, const gemm_shape *s)
{
	return o->stages * (s->a_bytes + s->b_bytes) + s->consumers * s->store_buffers * cptx_tile_bytes(&s->d);
}

/* Parts of a tile that CTAs share: one for each if these can be described. */
static uint32_t parts(uint32_t rows, uint32_t sharers, bool mn_major)
{
	return rows % (sharers * (mn_major ? BLOCK_M : 8)) ? 1 : sharers;
}

/* Pieces of so many columns at most. */
static void set_pieces(gemm_shape *s, const cptx_gemm_sm90_opt *o, uint32_t cols, uint32_t buffers)
{
	uint8_t bits = (uint8_t)(8 * s->out_bytes);
	uint32_t span = o->swap ? SPAN : cols * s->out_bytes;
	enum cptx_swizzle swizzle = span == 128  ? CPTX_SWIZZLE_128B
	                            : span == 64 ? CPTX_SWIZZLE_64B
	                            : span == 32 ? CPTX_SWIZZLE_32B
	                                         : CPTX_SWIZZLE_NONE;

	s->out_cols = MIN(cols, o->bn), s->rest_cols = o->bn % s->out_cols;
	s->store_buffers = o->bn * s->blocks > s->out_cols ? buffers : 1;
	s->maps = s->rest_cols ? 4 : 3;
	s->d = (cptx_tile){ BLOCK_M, s->out_cols, { bits, o->swap, false }, swizzle, o->swap ? 0 : span, 0 };
	s->rest = s->d, s->rest.cols = s->rest_cols;
}

/* The largest pieces that have room behind the stages; two of them, so that one is written while TMA reads the other. */
static void choose_pieces(gemm_shape *s, const cptx_gemm_sm90_opt *o)
{
	static const uint8_t by_choice[][2] = { { 64, 2 }, { 32, 2 }, { 64, 1 }, { 16, 2 }, { 32, 1 }, { 16, 1 }, { 8, 1 } };
	uint32_t most = (s->per_sm == 2 ? SMEM_HALF : SMEM_MOST) - STATIC_SMEM;

	for (size_t i = 0; i < sizeof by_choice / sizeof *by_choice; i++) {
		uint32_t cols = by_choice[i][0];
		if (!o->swap && cols * s->out_bytes > SPAN)
			continue;
		set_pieces(s, o, cols, by_choice[i][1]);
		if (shared_bytes(o, s) <= most)
			return;
	}
}

gemm_shape gemm_sm90_shape(const cptx_gemm_sm90_opt *opt)
{
	const cptx_gemm_sm90_opt in = gemm_sm90_inner(opt), *o = &in;
	gemm_shape s = { .in_bytes = cptx_type_bits(o->a) / 8, .out_bytes = cptx_type_bits(o->out) / 8 };

	s.bk = SPAN / s.in_bytes;
	s.consumers = o->bm == 4 * BLOCK_M ? 2 : o->bm / BLOCK_M;
	s.blocks = o->bm / BLOCK_M / s.consumers;
	s.cluster_m = given(o->cluster_m), s.cluster_n = given(o->cluster_n);
	s.cluster = s.cluster_m * s.cluster_n;
	s.per_sm = given(o->per_sm);
	s.a_bytes = o->bm * SPAN, s.b_bytes = o->bn * SPAN;
	s.a_parts = parts(o->bm, s.cluster_n, o->a_m_major), s.b_parts = parts(o->bn, s.cluster_m, o->b_n_major);
	s.acc = s.blocks * o->bn / 2;
	uint8_t in_bits = (uint8_t)(8 * s.in_bytes);
	s.a = (cptx_tile){ o->bm, s.bk, { in_bits, o->a_m_major, false }, CPTX_SWIZZLE_128B, 0, 0 };
	s.b = (cptx_tile){ o->bn, s.bk, { in_bits, o->b_n_major, false }, CPTX_SWIZZLE_128B, 0, 0 };
	choose_pieces(&s, o);
	return s;
}

/* A cluster lies in one GPC.  Those of the H100 and H200 have 16 or 18 multiprocessors, some fewer, so clusters of 4 leave
 * some idle; a persistent grid of more clusters than fit would take twice the time. */
uint32_t gemm_sm90_resident(uint32_t sms, const gemm_shape *s)
{
	uint32_t ctas = sms * s->per_sm;

	return MAX((s->cluster >= 4 ? ctas * 10 / 11 : ctas) / s->cluster, 1u);
}

uint64_t gemm_sm90_tiles(const cptx_gemm_sm90_opt *o, const gemm_shape *s, const cptx_gemm_problem *p)
{
	cptx_gemm_problem in = gemm_sm90_inner_problem(o, p);
	uint64_t m_side = o->bm * s->cluster_m, n_side = o->bn * s->cluster_n;

	return (in.m + m_side - 1) / m_side * ((in.n + n_side - 1) / n_side);
}

tma_gemm gemm_sm90_common(const cptx_gemm_sm90_opt *o, const gemm_shape *s)
{
	tma_gemm t = { .target = "sm_90a",
		           .name = o->name ? o->name : "gemm",
		           .a_type = o->a,
		           .b_type = o->b,
		           .out = o->out,
		           .a = o->swap ? s->b : s->a,
		           .b = o->swap ? s->a : s->b,
		           .d = s->d,
		           .rest = s->rest,
		           .batched = o->batched,
		           .alpha = o->alpha,
		           .beta = o->beta,
		           .bias = o->bias,
		           .timeline = o->timeline,
		           .epilogue = o->epilogue,
		           .user = o->user };

	t.a.rows /= o->swap ? s->b_parts : s->a_parts, t.b.rows /= o->swap ? s->a_parts : s->b_parts;
	return t;
}

/* ---- rules ---- */

#define RULE(ok, ...) TMA_RULE("sm_90a", ok, __VA_ARGS__)

static bool is_fp8(enum cptx_type t) { return t == CPTX_E4M3 || t == CPTX_E5M2; }

static bool check_types(const cptx_gemm_sm90_opt *o, cptx_error *err)
{
	RULE((is_16_bits(o->a) && o->a == o->b) || (is_fp8(o->a) && is_fp8(o->b)),
	     "A is .%s and B .%s; both must be bf16, both f16, or each e4m3 or e5m2", cptx_type_name(o->a),
	     cptx_type_name(o->b));
	RULE(o->out == CPTX_F32 || is_16_bits(o->out), "output type .%s; it must be f32, bf16 or f16", cptx_type_name(o->out));
	RULE(is_16_bits(o->a) || (!o->a_m_major && !o->b_n_major),
	     "wgmma reads .%s along K only: store A as M rows, B as N rows of K", cptx_type_name(o->a));
	return true;
}

static bool check_cluster(const gemm_shape *s, cptx_error *err)
{
	RULE(s->cluster == 1 || s->cluster == 2 || s->cluster == 4 || s->cluster == 8,
	     "a cluster of %ux%u CTAs; 1, 2, 4 or 8 are possible", s->cluster_m, s->cluster_n);
	RULE(s->cluster_m == 1 || s->cluster_n == 1, "a cluster of %ux%u CTAs; one side must be 1", s->cluster_m, s->cluster_n);
	return true;
}

bool cptx_gemm_sm90_check(const cptx_gemm_sm90_opt *o, cptx_gemm_sm90_plan *plan, cptx_error *err)
{
	if (err)
		*err = (cptx_error){ 0 };
	RULE(o, "no options were given (NULL)");
	if (!check_types(o, err))
		return false;
	RULE(o->bm == 64 || o->bm == 128 || o->bm == 192 || o->bm == 256, "tile %c = %u; 64, 128, 192 and 256 are possible",
	     o->swap ? 'N' : 'M', o->bm);
	RULE(o->bn >= 8 && o->bn <= 256 && o->bn % 8 == 0, "tile %c = %u; multiples of 8 from 8 to 256 are possible",
	     o->swap ? 'M' : 'N', o->bn);
	RULE(o->bm < 192 || o->bn <= 192, "tile %ux%u; with %u %s at most 192 %s have room in registers", o->bm, o->bn, o->bm,
	     o->swap ? "columns" : "rows", o->swap ? "rows" : "columns");
	RULE(!gemm_sm90_inner(o).b_n_major || o->bn % 64 == 0,
	     "tile %c = %u; of %s stored as rows of %c it must be a multiple of 64", o->swap ? 'M' : 'N', o->bn,
	     o->swap ? "an A" : "a B", o->swap ? 'M' : 'N');
	RULE(o->stages >= 2 && o->stages <= 16, "%u stages; 2 to 16 are possible", o->stages);
	RULE(o->timeline <= 1 << 20, "%u stamps of a timeline for a warp; at most 2^20", o->timeline);
	RULE(!o->grouped || (!o->batched && !o->stream_k), "a list of problems cannot be %s",
	     o->batched ? "batched" : "shared along K (stream_k)");
	RULE(!o->grouped || !o->timeline, "a list of problems has no timeline");
	RULE(o->group <= 1024, "group = %u; at most 1024 rows of tiles", o->group);
	RULE(o->cluster_m <= 8 && o->cluster_n <= 8, "a cluster of %ux%u CTAs; 1, 2, 4 or 8 are possible", o->cluster_m,
	     o->cluster_n);
	gemm_shape s = gemm_sm90_shape(o);
	if (!check_cluster(&s, err))
		return false;
	RULE(s.per_sm <= 2, "per_sm = %u; 1 or 2 CTAs on a multiprocessor are possible", s.per_sm);
	RULE(s.per_sm == 1 || (o->bm * o->bn <= 8192 && o->bm != 192),
	     "tile %ux%u; two CTAs on a multiprocessor have registers for 64x128, 128x64 and 256x32", o->bm, o->bn);
	uint32_t smem = shared_bytes(o, &s), most = (s.per_sm == 2 ? SMEM_HALF : SMEM_MOST) - STATIC_SMEM;
	RULE(smem <= most, "%u stages of %ux%ux%u take %u bytes of shared memory, of %u that there are (%u stages fit)",
	     o->stages, o->bm, o->bn, s.bk, smem, most,
	     (most - (smem - o->stages * (s.a_bytes + s.b_bytes))) / (s.a_bytes + s.b_bytes));
	if (plan)
		*plan = (cptx_gemm_sm90_plan){ .threads = (s.consumers + 1) * WARPGROUP, .smem = smem, .bk = s.bk, .maps = s.maps };
	return true;
}

bool cptx_gemm_sm90_check_problem(const cptx_gemm_sm90_opt *o, const cptx_gemm_problem *p, uint32_t sms,
                                  cptx_gemm_sm90_plan *plan, cptx_error *err)
{
	cptx_gemm_sm90_plan here;

	if (!cptx_gemm_sm90_check(o, &here, err))
		return false;
	gemm_shape s = gemm_sm90_shape(o);
	tma_gemm t = gemm_sm90_common(o, &s);
	if (!tma_gemm_check_problem(&t, p, err))
		return false;
	uint64_t k_tiles = (p->k + s.bk - 1) / s.bk, batch = given(p->batch);
	uint64_t in_one = gemm_sm90_tiles(o, &s, p), clusters = in_one * batch;
	RULE(in_one <= INT32_MAX && clusters <= INT32_MAX / s.cluster, "%llu tiles of %llu matrices are too many",
	     (unsigned long long)in_one, (unsigned long long)batch);
	uint64_t most = p->ctas ? MAX(p->ctas / s.cluster, 1u) : gemm_sm90_resident(sms, &s);
	here.grid = (uint32_t)MIN(o->stream_k ? clusters * k_tiles : clusters, most) * s.cluster;
	uint64_t at_once = here.grid / s.cluster, shared = clusters < 2 * at_once ? clusters : at_once + clusters % at_once;
	RULE(!o->stream_k || (shared + 1) * k_tiles <= UINT32_MAX / at_once,
	     "%llu tiles of %llu steps along K are too many to be shared", (unsigned long long)clusters,
	     (unsigned long long)k_tiles);
	if (o->stream_k)
		here.workspace = here.grid * s.consumers * ((uint64_t)s.acc * WARPGROUP + 1) * 4;
	if (plan)
		*plan = here;
	return true;
}

/* ---- launches ---- */

bool cptx_gemm_sm90_maps(const cptx_gemm_sm90_opt *o, const cptx_gemm_problem *p,
                         cptx_tensor_map_opt map[CPTX_GEMM_SM90_MAPS], cptx_error *err)
{
	if (!cptx_gemm_sm90_check_problem(o, p, 1, NULL, err))
		return false;
	RULE(map, "no room for the maps was given (NULL)");
	gemm_shape s = gemm_sm90_shape(o);
	tma_gemm t = gemm_sm90_common(o, &s);
	for (int i = 0; i < (int)s.maps; i++)
		if (!tma_gemm_map(&t, p, i, &map[i], err))
			return false;
	return true;
}

cptx_launch *cptx_gemm_sm90_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm90_opt *o,
                                   const cptx_gemm_problem *p, cptx_error *err)
{
	cptx_gemm_sm90_plan plan;
	cptx_tensor_map_opt map[CPTX_GEMM_SM90_MAPS];

	if (!dev || !program) {
		error_set(err, CPTX_E_ARG, NOWHERE, "gemm for sm_90a: the %s is NULL", dev ? "program" : "device");
		return NULL;
	}
	if (o && o->grouped) {
		error_set(err, CPTX_E_ARG, NOWHERE,
		          "gemm for sm_90a: the kernel takes a list of problems: cptx_gemm_sm90_launch_grouped");
		return NULL;
	}
	if (!cptx_gemm_sm90_check_problem(o, p, cptx_device_get_info(dev)->sms, &plan, err) ||
	    !cptx_gemm_sm90_maps(o, p, map, err))
		return NULL;
	gemm_shape s = gemm_sm90_shape(o);
	tma_gemm t = gemm_sm90_common(o, &s);
	return tma_gemm_prepare(&(tma_gemm_launch){ &t, p, map, plan.maps, plan.grid, plan.threads, plan.smem, plan.workspace },
	                        program, dev, err);
}
