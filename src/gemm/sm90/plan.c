/* SPDX-License-Identifier: MIT */
/* What the options and sizes of the sm_90a GEMM must obey, and how it is launched. */
#include "gemm/sm90/gemm.h"

#define TARGET "sm_90a"
enum {
	CHUNK = 16 /* bytes, the least that TMA copies of a row */,
	USUAL_SMS = 132 /* of an H100 and an H200 */,
	SCALED_PER_SM = 4096
};
/*
 * Registers of a computing thread: 240 with two warpgroups, 160 with three, 255 with one (gemm/sm90/gemm.c).  What does not
 * fit beside its accumulators spills, or costs a wait for all wgmma.  These bounds are where ptxas 13.0 does not spill,
 * found by trying; tests/kernels (ptxas_neither_warns_nor_spills) holds the shapes at their edges.
 */
enum {
	ACC_DEFERRED = 128,       /* accumulators beside which a rounded tile has room, two elements in a word: 64 more */
	ACC_DEFERRED_VALUES = 80, /* the same, where C, bias or an epilogue need some, too */
	ACC_WIDE = 160            /* beside which those of a subtile of 64 columns have room; with three warpgroups 80 */
};

#define RULE(ok, ...) TMA_RULE(ok, TARGET ": " __VA_ARGS__)

/* Shared memory of the stages, and with the subtiles of D, which are aligned. */
static uint32_t stage_bytes(const cptx_gemm_opt *o, const gemm_shape *s)
{
	const uint32_t align = CPTX_EPILOGUE_RING_ALIGN;

	return o->stages * (s->a_bytes + s->b_bytes) + (o->stages * s->scale_bytes + align - 1) / align * align +
	       gemm_sm90_slices_bytes(s, o->bn);
}

static uint32_t shared_bytes(const cptx_gemm_opt *o, const gemm_shape *s)
{
	return stage_bytes(o, s) + s->units * s->out.buffers * cptx_epilogue_ring_bytes(&s->out.tile);
}

/* Parts of a tile that CTAs share: one for each if these can be described. */
static uint32_t parts(uint32_t rows, uint32_t sharers, bool mn_major)
{
	return rows % (sharers * (mn_major ? BLOCK_M : 8)) ? 1 : sharers;
}

/* The subtiles that have room behind the stages. */
static tma_gemm_subtiles subtiles_of(const cptx_gemm_opt *o, const gemm_shape *s)
{
	const uint32_t acc = s->acc * (s->scale_bytes ? 2 : 1);
	const bool narrow = tma_gemm_has_chain(o) && acc > ACC_WIDE / (s->consumers > 2 ? 2 : 1);

	return tma_gemm_subtiles_of(o, BLOCK_M, s->blocks, narrow ? 32 : 64, s->units,
	                            (int64_t)tma_gemm_smem(TARGET, s->per_sm) - stage_bytes(o, s));
}

gemm_shape gemm_sm90_shape(const cptx_gemm_opt *opt)
{
	const cptx_gemm_opt in = tma_gemm_inner(opt), *o = &in;
	gemm_shape s = { .in_bytes = tma_gemm_bits(o->b) / 8,
		             .weights = tma_gemm_has_weights(o),
		             .out_bytes = cptx_type_bits(o->out) / 8 };

	s.bk = s.weights ? gemm_sm90_weights_bk(opt) : SPAN / s.in_bytes;
	s.units = o->bm == 4 * BLOCK_M ? 2 : o->bm / BLOCK_M;
	s.blocks = o->bm / BLOCK_M / s.units;
	s.slices = s.weights && o->bm == BLOCK_M ? gemm_sm90_slices(o->bn, o->stages) : 1;
	s.consumers = s.units * s.slices;
	s.cluster_m = or_one(o->cluster_m), s.cluster_n = or_one(o->cluster_n);
	s.cluster = s.cluster_m * s.cluster_n;
	s.per_sm = or_one(o->per_sm);
	s.a_bytes = (uint32_t)tma_gemm_along_a(o, s.bk) * o->bm * (s.weights ? 1 : s.in_bytes),
	s.b_bytes = o->bn * s.bk * s.in_bytes;
	s.a_parts = parts(o->bm, s.cluster_n, o->a_m_major),
	s.b_parts = s.bk * s.in_bytes > SPAN ? 1 : parts(o->bn, s.cluster_m, o->b_n_major);
	s.acc = s.blocks * o->bn / 2;
	s.scale_bytes = (tma_gemm_scaled_rows(o) * 4 + 127) / 128 * 128 + (o->scale_rows ? (o->bn * 4 + 127) / 128 * 128 : 0);
	if (s.weights)
		s.scale_bytes = tma_gemm_weight_scale_bytes(o->bm) * (o->zeros ? 2 : 1);
	s.a = tma_gemm_tile(o, false, s.bk, o->bm), s.b = tma_gemm_tile(o, true, s.bk, o->bn);
	s.out = subtiles_of(o, &s);
	s.by_rows = o->unaligned & CPTX_GEMM_D && !o->scatter && !o->swap;
	s.by_threads = (o->scatter || o->unaligned & CPTX_GEMM_D) && !s.by_rows;
	if (s.by_threads)
		s.out.buffers = 0, s.out.rest.cols = 0;
	s.deferred = !s.by_threads && !s.by_rows && !o->stream_k && !o->scale && !o->swiglu && s.per_sm == 1 &&
	             s.out_bytes == 2 && s.consumers <= 2 &&
	             s.acc <= (tma_gemm_has_chain(o) ? ACC_DEFERRED_VALUES : ACC_DEFERRED);
	return s;
}

static tma_gemm describe(const cptx_gemm_opt *o)
{
	const gemm_shape s = gemm_sm90_shape(o);
	/* sums that are left for others must not have in them what nobody loaded */
	const bool last_rows = !o->a_m_major && !o->b_n_major && !o->stream_k && !o->experts && !o->scale;

	return (tma_gemm){ .a = s.a,
		               .b = s.b,
		               .parts = { s.a_parts, s.b_parts },
		               .d = s.out.tile,
		               .rest = s.out.rest,
		               .row_scales = tma_gemm_scaled_rows(o),
		               .weight_rows = s.weights ? o->bm : 0,
		               .col_scales = o->scale_rows ? o->bn : 0,
		               .maps = (s.out.rest.cols && !s.by_rows ? MAP(CPTX_GEMM_MAP_END_D) : 0) |
		                       (last_rows ? MAP(CPTX_GEMM_MAP_LAST_A) | MAP(CPTX_GEMM_MAP_LAST_B) : 0),
		               .pointers = (s.by_threads || s.by_rows ? MAP(CPTX_GEMM_MAP_D) : 0) |
		                           (o->scale && !o->scale_rows && !s.weights ? MAP(CPTX_GEMM_MAP_SCALE_B) : 0) |
		                           (o->gather ? MAP(CPTX_GEMM_MAP_A) : 0),
		               .any_row_of_d = o->unaligned & CPTX_GEMM_D,
		               .unit_k = s.weights ? CHUNK * 8 / tma_gemm_bits(o->b) : 1,
		               .unit_n = tma_gemm_unit_n(o),
		               .order = gemm_order_of(o, USUAL_SMS),
		               .counts_k_tiles = true,
		               .whole_k_tiles = true,
		               .bk = s.bk,
		               .sums = o->stream_k ? s.units * (s.acc * WARPGROUP + 1) * 4 : 0 };
}

/* ---- rules ---- */

static bool check(const cptx_gemm_opt *o, const cptx_target *target, cptx_gemm_plan *plan, cptx_error *err)
{
	(void)target;
	if (!tma_gemm_check_in(TARGET, o, err) || !tma_gemm_check_out(TARGET, o, err))
		return false;
	RULE(o->bm == 64 || o->bm == 128 || o->bm == 192 || o->bm == 256, "tile %c = %u; 64, 128, 192 and 256 are possible",
	     o->swap ? 'N' : 'M', o->bm);
	RULE(o->bn >= 8 && o->bn <= 256 && o->bn % 8 == 0, "tile %c = %u; multiples of 8 from 8 to 256 are possible",
	     o->swap ? 'M' : 'N', o->bn);
	RULE(!is_int8(o->a) || o->bn <= 32 || o->bn % 16 == 0, "tile %c = %u; of .%s it is 8, 16, 24, 32 or a multiple of 16",
	     o->swap ? 'M' : 'N', o->bn, cptx_type_name(o->a));
	if (!tma_gemm_check_results(TARGET, o, err))
		return false;
	RULE(o->bm < 192 || o->bn <= 192, "tile %ux%u; with %u %s at most 192 %s have room in registers", o->bm, o->bn, o->bm,
	     o->swap ? "columns" : "rows", o->swap ? "rows" : "columns");
	RULE(!tma_gemm_inner(o).b_n_major || o->bn % 64 == 0,
	     "tile %c = %u; of %s stored as rows of %c it must be a multiple of 64", o->swap ? 'M' : 'N', o->bn,
	     o->swap ? "an A" : "a B", o->swap ? 'M' : 'N');
	if (!gemm_sm90_weights_check(o, err) || !tma_gemm_scaled_check(TARGET, o, err) ||
	    !tma_gemm_sparse_check(TARGET, o, SPAN * 8 / tma_gemm_bits(o->a), err))
		return false;
	if (!tma_gemm_check_numbers(TARGET, o, err) ||
	    !tma_gemm_check_cluster(TARGET, or_one(o->cluster_m), or_one(o->cluster_n), 1, err))
		return false;
	gemm_shape s = gemm_sm90_shape(o);
	RULE(s.per_sm == 1 || (o->bm * o->bn <= 8192 && o->bm != 192),
	     "tile %ux%u; two CTAs on a multiprocessor have registers for 64x128, 128x64 and 256x32", o->bm, o->bn);
	RULE(s.per_sm == 1 || !o->scale || o->bm * o->bn <= SCALED_PER_SM,
	     "tile %ux%u; two CTAs on a multiprocessor have registers for 64x64 and 128x32 with scale factors", o->bm, o->bn);
	uint32_t smem = shared_bytes(o, &s);
	if (!tma_gemm_check_room(TARGET, o, s.bk, s.per_sm, s.a_bytes + s.b_bytes + s.scale_bytes, smem, err))
		return false;
	*plan = (cptx_gemm_plan){ .threads = (s.consumers + 1) * WARPGROUP,
		                      .smem = smem,
		                      .bk = s.bk,
		                      .vec = s.weights  ? o->scale_k
		                             : o->scale ? GEMM_SCALE_BLOCK
		                                        : 0 };
	return true;
}

const gemm_generator gemm_sm90 = { .target = TARGET,
	                               .by = "wgmma",
	                               .where = "sm_90a has",
	                               .op = CPTX_OP_WGMMA_MMA_ASYNC,
	                               .check = check,
	                               .build = gemm_sm90_build,
	                               .describe = describe,
	                               .model = &gemm_sm90_model };
