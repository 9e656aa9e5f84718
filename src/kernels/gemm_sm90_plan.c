/* What the options and sizes of the sm_90a GEMM must obey, and how it is launched. */
#include "kernels/gemm_sm90.h"

#include <stdio.h>

static uint32_t given(uint32_t v) { return v ? v : 1; }

gemm_shape gemm_sm90_shape(const cptx_gemm_sm90_opt *o)
{
	gemm_shape s = { .in_bytes = cptx_type_bits(o->a) / 8, .out_bytes = cptx_type_bits(o->out) / 8 };

	s.bk = SPAN / s.in_bytes;
	s.consumers = o->bm == 4 * BLOCK_M ? 2 : o->bm / BLOCK_M;
	s.blocks = o->bm / BLOCK_M / s.consumers;
	s.cluster_m = given(o->cluster_m), s.cluster_n = given(o->cluster_n);
	s.cluster = s.cluster_m * s.cluster_n;
	s.a_bytes = o->bm * SPAN, s.b_bytes = o->bn * SPAN;
	s.acc = s.blocks * o->bn / 2;
	uint32_t row = o->bn * s.out_bytes, span = row & -row; /* the largest power of two that divides it */
	span = MIN(span, (uint32_t)SPAN);
	s.out_cols = span / s.out_bytes;
	s.store_buffers = o->bn / s.out_cols * s.blocks % 2 ? 1 : 2;
	uint8_t in_bits = (uint8_t)(8 * s.in_bytes);
	s.a = (cptx_tile){ o->bm, s.bk, { in_bits, o->a_m_major, false }, CPTX_SWIZZLE_128B, 0, 0 };
	s.b = (cptx_tile){ o->bn, s.bk, { in_bits, o->b_n_major, false }, CPTX_SWIZZLE_128B, 0, 0 };
	s.d = (cptx_tile){ BLOCK_M,
		               s.out_cols,
		               { (uint8_t)(8 * s.out_bytes), false, false },
		               span == 128  ? CPTX_SWIZZLE_128B
		               : span == 64 ? CPTX_SWIZZLE_64B
		                            : CPTX_SWIZZLE_32B,
		               0,
		               0 };
	return s;
}

/* A cluster lies in one GPC.  Those of the H100 and H200 have 16 or 18 multiprocessors, some fewer, so clusters of 4 leave
 * some idle; a persistent grid of more clusters than fit would take twice the time. */
uint32_t gemm_sm90_resident(uint32_t ctas, uint32_t cluster)
{
	return MAX((cluster == 4 ? ctas * 10 / 11 : ctas) / cluster, 1u);
}

uint64_t gemm_sm90_tiles(const cptx_gemm_sm90_opt *o, const gemm_shape *s, const cptx_gemm_problem *p)
{
	uint64_t m_side = o->bm * s->cluster_m, n_side = o->bn * s->cluster_n;

	return (p->m + m_side - 1) / m_side * ((p->n + n_side - 1) / n_side);
}

static uint32_t shared_bytes(const cptx_gemm_sm90_opt *o, const gemm_shape *s)
{
	return o->stages * (s->a_bytes + s->b_bytes) + s->consumers * s->store_buffers * cptx_tile_bytes(&s->d);
}

/* ---- rules ---- */

#define RULE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "gemm for sm_90a: " __VA_ARGS__);                                    \
	while (0)

static bool is_fp8(enum cptx_type t) { return t == CPTX_E4M3 || t == CPTX_E5M2; }
static bool is_16(enum cptx_type t) { return t == CPTX_BF16 || t == CPTX_F16; }

static bool check_types(const cptx_gemm_sm90_opt *o, cptx_error *err)
{
	RULE((is_16(o->a) && o->a == o->b) || (is_fp8(o->a) && is_fp8(o->b)),
	     "A is .%s and B .%s; both must be bf16, both f16, or each e4m3 or e5m2", cptx_type_name(o->a),
	     cptx_type_name(o->b));
	RULE(o->out == CPTX_F32 || is_16(o->out), "output type .%s; it must be f32, bf16 or f16", cptx_type_name(o->out));
	RULE(is_16(o->a) || (!o->a_m_major && !o->b_n_major),
	     "wgmma reads .%s along K only: store A as M rows, B as N rows of K", cptx_type_name(o->a));
	return true;
}

static bool check_cluster(const cptx_gemm_sm90_opt *o, const gemm_shape *s, cptx_error *err)
{
	uint32_t shared = s->cluster_m > 1 ? o->bn : o->bm; /* the side that the CTAs load parts of */
	bool mn_major = s->cluster_m > 1 ? o->b_n_major : o->a_m_major;
	uint32_t unit = mn_major ? BLOCK_M : 8;

	RULE(s->cluster == 1 || s->cluster == 2 || s->cluster == 4, "a cluster of %ux%u CTAs; 1, 2 or 4 are possible",
	     s->cluster_m, s->cluster_n);
	RULE(s->cluster_m == 1 || s->cluster_n == 1, "a cluster of %ux%u CTAs; one side must be 1", s->cluster_m, s->cluster_n);
	RULE(shared % (s->cluster * unit) == 0, "%u CTAs of a cluster cannot share %u %s in parts of a multiple of %u",
	     s->cluster, shared, s->cluster_m > 1 ? "columns" : "rows", unit);
	return true;
}

bool cptx_gemm_sm90_check(const cptx_gemm_sm90_opt *o, cptx_gemm_sm90_plan *plan, cptx_error *err)
{
	if (err)
		*err = (cptx_error){ 0 };
	RULE(o, "no options were given (NULL)");
	if (!check_types(o, err))
		return false;
	RULE(o->bm == 64 || o->bm == 128 || o->bm == 192 || o->bm == 256, "tile M = %u; 64, 128, 192 and 256 are possible",
	     o->bm);
	RULE(o->bn >= 16 && o->bn <= 256 && o->bn % 16 == 0, "tile N = %u; multiples of 16 from 16 to 256 are possible", o->bn);
	RULE(o->bm < 192 || o->bn <= 192, "tile %ux%u; with %u rows at most 192 columns have room in registers", o->bm, o->bn,
	     o->bm);
	RULE(!o->b_n_major || o->bn % 64 == 0, "tile N = %u; of a B stored as rows of N it must be a multiple of 64", o->bn);
	RULE(o->stages >= 2 && o->stages <= 16, "%u stages; 2 to 16 are possible", o->stages);
	RULE(o->group <= 1024, "group = %u; at most 1024 rows of tiles", o->group);
	gemm_shape s = gemm_sm90_shape(o);
	if (!check_cluster(o, &s, err))
		return false;
	uint32_t smem = shared_bytes(o, &s), most = SMEM_MOST - STATIC_SMEM;
	RULE(smem <= most, "%u stages of %ux%ux%u take %u bytes of shared memory, of %u that there are (%u stages fit)",
	     o->stages, o->bm, o->bn, s.bk, smem, most,
	     (most - (smem - o->stages * (s.a_bytes + s.b_bytes))) / (s.a_bytes + s.b_bytes));
	if (plan)
		*plan = (cptx_gemm_sm90_plan){ .threads = (s.consumers + 1) * WARPGROUP, .smem = smem, .bk = s.bk };
	return true;
}

static unsigned long long padded(uint64_t row, uint32_t unit) { return (row + unit - 1) / unit * unit; }
static bool aligned(uint64_t row, uint32_t bytes) { return row * bytes % 16 == 0; }

bool cptx_gemm_sm90_check_problem(const cptx_gemm_sm90_opt *o, const cptx_gemm_problem *p, uint32_t sms,
                                  cptx_gemm_sm90_plan *plan, cptx_error *err)
{
	cptx_gemm_sm90_plan here;

	if (!cptx_gemm_sm90_check(o, &here, err))
		return false;
	gemm_shape s = gemm_sm90_shape(o);
	RULE(p && p->m && p->n && p->k && p->m <= INT32_MAX / 2 && p->n <= INT32_MAX / 2 && p->k <= INT32_MAX / 2,
	     "M = %llu, N = %llu, K = %llu; each must be from 1 to 2^30", (unsigned long long)(p ? p->m : 0),
	     (unsigned long long)(p ? p->n : 0), (unsigned long long)(p ? p->k : 0));
	uint64_t row_a = o->a_m_major ? p->m : p->k, row_b = o->b_n_major ? p->n : p->k;
	RULE(aligned(row_a, s.in_bytes),
	     "rows of A have %llu elements of %u bytes; they must be a multiple of 16 bytes (pad to %llu)",
	     (unsigned long long)row_a, s.in_bytes, padded(row_a, 16 / s.in_bytes));
	RULE(aligned(row_b, s.in_bytes),
	     "rows of B have %llu elements of %u bytes; they must be a multiple of 16 bytes (pad to %llu)",
	     (unsigned long long)row_b, s.in_bytes, padded(row_b, 16 / s.in_bytes));
	RULE(aligned(p->n, s.out_bytes),
	     "rows of D have %llu elements of %u bytes; they must be a multiple of 16 bytes (pad N to %llu)",
	     (unsigned long long)p->n, s.out_bytes, padded(p->n, 16 / s.out_bytes));
	uint64_t k_tiles = (p->k + s.bk - 1) / s.bk, batch = given(p->batch);
	RULE(batch == 1 || o->batched, "%llu matrices; the kernel is made for one (.batched)", (unsigned long long)batch);
	uint64_t in_one = gemm_sm90_tiles(o, &s, p), clusters = in_one * batch;
	RULE(in_one <= INT32_MAX && clusters * s.cluster <= INT32_MAX, "%llu tiles of %llu matrices are too many",
	     (unsigned long long)in_one, (unsigned long long)batch);
	uint64_t most = p->ctas ? MAX(p->ctas / s.cluster, 1u) : gemm_sm90_resident(sms, s.cluster);
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

static enum cptx_tensor_type tensor_type(enum cptx_type t)
{
	return t == CPTX_BF16  ? CPTX_TENSOR_BF16
	       : t == CPTX_F16 ? CPTX_TENSOR_F16
	       : t == CPTX_F32 ? CPTX_TENSOR_F32
	                       : CPTX_TENSOR_U8;
}

/* A map of rows x cols (cols contiguous) for boxes of a tile, of `batch` matrices behind one another. */
static bool map_of(const cptx_gemm_sm90_opt *o, const gemm_shape *s, const cptx_gemm_problem *p, int which,
                   cptx_tensor_map_opt *map, cptx_error *err)
{
	bool is_a = which == 0, is_d = which == 2;
	cptx_tile part = is_d ? s->d : is_a ? s->a : s->b;
	enum cptx_type type = is_d ? o->out : is_a ? o->a : o->b;

	if (!is_d)
		part.rows /= is_a ? s->cluster_n : s->cluster_m;
	uint64_t rows = is_d || is_a ? p->m : p->n, cols = is_d ? p->n : p->k, address = is_d ? p->d : is_a ? p->a : p->b;
	if (!cptx_tile_tensor_map(&part, tensor_type(type), address, rows, cols, 0, map, err))
		return false;
	map->l2 = 256;
	if (o->batched) {
		map->rank = 3;
		map->dim[2] = given(p->batch);
		map->stride[2] = rows * cols * (cptx_type_bits(type) / 8);
		map->box[2] = 1;
	}
	return true;
}

bool cptx_gemm_sm90_maps(const cptx_gemm_sm90_opt *o, const cptx_gemm_problem *p, cptx_tensor_map_opt map[3],
                         cptx_error *err)
{
	if (!cptx_gemm_sm90_check_problem(o, p, 1, NULL, err))
		return false;
	RULE(map, "no room for the maps was given (NULL)");
	gemm_shape s = gemm_sm90_shape(o);
	for (int i = 0; i < 3; i++)
		if (!map_of(o, &s, p, i, &map[i], err))
			return false;
	return true;
}

static bool all_there(const cptx_gemm_sm90_opt *o, const cptx_gemm_problem *p, cptx_error *err)
{
	RULE(p->a && p->b && p->d && (p->c || !o->beta) && (p->bias || !o->bias) && (p->workspace || !o->stream_k),
	     "the address of %s is 0",
	     !p->a                 ? "A"
	     : !p->b               ? "B"
	     : !p->d               ? "D"
	     : o->beta && !p->c    ? "C"
	     : o->bias && !p->bias ? "the bias"
	                           : "the workspace");
	return true;
}

cptx_launch *cptx_gemm_sm90_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm90_opt *o,
                                   const cptx_gemm_problem *p, cptx_error *err)
{
	cptx_gemm_sm90_plan plan;
	cptx_tensor_map_opt opt[3];
	cptx_tensor_map map[3];
	cptx_arg arg[12];
	size_t n = 0;

	if (!dev || !program) {
		error_set(err, CPTX_E_ARG, NOWHERE, "gemm for sm_90a: the %s is NULL", dev ? "program" : "device");
		return NULL;
	}
	if (!cptx_gemm_sm90_check_problem(o, p, cptx_device_get_info(dev)->sms, &plan, err) ||
	    !cptx_gemm_sm90_maps(o, p, opt, err) || !all_there(o, p, err))
		return NULL;
	for (int i = 0; i < 3; i++) {
		if (!cptx_tensor_map_make(dev, &opt[i], &map[i], err))
			return NULL;
		arg[n++] = CPTX_ARG_BYTES(&map[i], sizeof map[i]);
	}
	arg[n++] = CPTX_ARG((uint32_t)p->m);
	arg[n++] = CPTX_ARG((uint32_t)p->n);
	arg[n++] = CPTX_ARG((uint32_t)p->k);
	if (o->batched)
		arg[n++] = CPTX_ARG(given(p->batch));
	if (o->alpha)
		arg[n++] = CPTX_ARG(p->alpha);
	if (o->beta) {
		arg[n++] = CPTX_ARG(p->beta);
		arg[n++] = CPTX_ARG(p->c);
	}
	if (o->bias)
		arg[n++] = CPTX_ARG(p->bias);
	if (o->stream_k)
		arg[n++] = CPTX_ARG(p->workspace);
	return cptx_launch_new(program, o->name ? o->name : "gemm",
	                       &(cptx_launch_opt){ .grid = { plan.grid },
	                                           .block = { plan.threads },
	                                           .dyn_smem = plan.smem,
	                                           .args = arg,
	                                           .nargs = n,
	                                           .overlap = true },
	                       err);
}
