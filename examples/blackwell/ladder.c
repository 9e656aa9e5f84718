/* SPDX-License-Identifier: MIT */
/* What the rungs are made of: parameters, copies, products, the way out. */
#include "ladder.h"

enum { STEP_K = 16 /* elements along K of one tcgen05.mma of 16-bit types */, CHUNK = 32 /* columns read at once */ };

static uint32_t ctas(const ladder_rung *rung) { return rung->pair ? 2 : 1; }

cptx_tile ladder_staged(const ladder_opt *o)
{
	uint32_t bits = cptx_type_bits(o->out);

	return (
		cptx_tile){ .rows = WARP_THREADS, .cols = 128 * 8 / bits, .elem.bits = (uint8_t)bits, .swizzle = CPTX_SWIZZLE_128B };
}

static uint32_t idesc_of(cptx_kernel *k, const ladder_rung *rung, const ladder_opt *o)
{
	cptx_insn_desc d = { .kind = CPTX_TCGEN05_F16,
		                 .m = (uint16_t)o->m,
		                 .n = (uint16_t)o->n,
		                 .a = o->in,
		                 .b = o->in,
		                 .d = CPTX_F32,
		                 .ctas = (uint8_t)ctas(rung) };
	cptx_error err = { 0 };
	uint32_t word = 0;

	if (!cptx_insn_desc_encode(&d, &word, &err))
		cptx_fail(k, "%s", err.text);
	return word;
}

static cptx_val map_param(cptx_kernel *k, const char *name)
{
	cptx_val at = cptx_param_bytes(k, CPTX_TENSOR_MAP_BYTES, CPTX_TENSOR_MAP_ALIGN, name);

	return cptx_cvta(k, cptx_mov(k, at, .type = CPTX_U64), .space = CPTX_PARAM);
}

gemm gemm_begin(cptx_module *m, const ladder_rung *rung, const ladder_opt *o, uint32_t threads)
{
	const cptx_smem_elem elem = { .bits = 16 };
	uint32_t stages = rung->staged ? o->stages : 1;
	gemm g = { .rung = rung, .o = o };

	cptx_kernel *k = g.k = cptx_kernel_begin(m, "gemm", .block = { threads }, .min_ctas = 1,
	                                         .cluster = { rung->pair ? 2 : 0, rung->pair, rung->pair });
	g.a = (cptx_tile){ .rows = ROWS, .cols = o->k, .elem = elem, .swizzle = rung->swizzle };
	g.b = (cptx_tile){ .rows = o->n / ctas(rung), .cols = o->k, .elem = elem, .swizzle = rung->swizzle };
	g.stage_bytes = cptx_tile_bytes(&g.a) + cptx_tile_bytes(&g.b);
	g.idesc = idesc_of(k, rung, o);
	g.map_a = map_param(k, "A"), g.map_b = map_param(k, "B");
	if (rung->store_map)
		g.map_d = map_param(k, "D");
	else
		g.d = cptx_param(k, CPTX_PTR, "D");
	g.M = cptx_param(k, CPTX_U32, "M"), g.N = cptx_param(k, CPTX_U32, "N"), g.K = cptx_param(k, CPTX_U32, "K");
	cptx_val timeline = { 0 }; /* none: off */
	if (o->timeline)
		timeline = cptx_param(k, CPTX_PTR, "timeline");
	cptx_timeline_begin(k, &g.line, .buffer = timeline, .warps = threads / WARP_THREADS, .events = o->timeline);
	g.tid = cptx_tid_x(k), g.warp = cptx_shr(k, g.tid, 5);
	if (rung->pair)
		g.rank = cptx_cluster_ctarank(k);
	g.smem_a = cptx_mov(k, cptx_shared_dyn(k, stages * cptx_tile_bytes(&g.a), 1024, "smem_a"), .type = CPTX_U32);
	g.smem_b = cptx_mov(k, cptx_shared_dyn(k, stages * cptx_tile_bytes(&g.b), 1024, "smem_b"), .type = CPTX_U32);
	g.word_a = cptx_tile_word(k, &g.a, CPTX_DESC_TCGEN05, g.smem_a);
	g.word_b = cptx_tile_word(k, &g.b, CPTX_DESC_TCGEN05, g.smem_b);
	return g;
}

cptx_val gemm_is(const gemm *g, cptx_val value, uint32_t n) { return cptx_setp(g->k, value, n, .cmp = CPTX_EQ); }

cptx_val gemm_elect(const gemm *g)
{
	cptx_val p = cptx_reg(g->k, CPTX_PRED);

	cptx_elect_sync(g->k, 0xffffffffu, .p = p, .into = cptx_sink());
	return p;
}

void gemm_wait(const gemm *g, cptx_val mbar, cptx_val parity)
{
	cptx_kernel *k = g->k;

	cptx_mbarrier_wait(k, CPTX_WAIT_DONE, cptx_mbarrier_try_wait_parity(k, mbar, parity, .space = CPTX_SHARED_CTA));
}

gemm_at gemm_at_ctaid(const gemm *g, cptx_val x, cptx_val y)
{
	cptx_kernel *k = g->k;
	cptx_val col = cptx_mul(k, y, g->o->n, .mode = CPTX_LO);
	gemm_at at = { .row = cptx_mul(k, x, ROWS, .mode = CPTX_LO), .col = col, .col_b = col };

	if (g->rung->pair)
		at.col_b = cptx_mad(k, g->rank, g->b.rows, col, .mode = CPTX_LO);
	return at;
}

/* The same for tile number (m, n) of D. */
static gemm_at at_pair(const gemm *g, cptx_val m, cptx_val n)
{
	cptx_kernel *k = g->k;

	return gemm_at_ctaid(g, g->rung->pair ? cptx_mad(k, m, 2, g->rank, .mode = CPTX_LO) : m, n);
}

static cptx_val tiles_along(const gemm *g, cptx_val n, uint32_t each)
{
	return cptx_div(g->k, cptx_add(g->k, n, each - 1), each);
}

gemm_at gemm_at_tile(const gemm *g, cptx_val tile)
{
	cptx_val m, n;

	cptx_tiles_raster(g->k, tile, tiles_along(g, g->M, g->o->m), CPTX_NONE_, CPTX_NONE_, &m, &n);
	return at_pair(g, m, n);
}

cptx_val gemm_tiles(const gemm *g)
{
	return cptx_mul(g->k, tiles_along(g, g->M, g->o->m), tiles_along(g, g->N, g->o->n), .mode = CPTX_LO);
}

/* One tile of an operand; boxes of a 2-D map lie behind one another, a 3-D map brings them at once. */
static void load_tile(const gemm *g, const cptx_tile *t, cptx_val map, cptx_val smem, cptx_val at_k, cptx_val row,
                      cptx_val mbar)
{
	cptx_kernel *k = g->k;
	cptx_tile_boxes b;
	cptx_error err = { 0 };
	uint16_t dim = g->rung->whole ? CPTX_DIM_3D : CPTX_DIM_2D, group = g->rung->pair ? CPTX_CTA_GROUP_2 : 0;

	if (!cptx_tile_get_boxes(t, &b, &err))
		cptx_fail(k, "%s", err.text);
	for (uint32_t i = 0; i < (g->rung->whole ? 1 : b.count[0]); i++) {
		cptx_val from = i ? cptx_add(k, at_k, i * b.box[0]) : at_k;
		cptx_val coord =
			!g->rung->whole ? cptx_vec(k, from, row) : cptx_vec(k, cptx_imm(0), row, cptx_div(k, at_k, b.box[0]));
		cptx_cp_async_bulk_tensor_load(k, cptx_offset(smem, i * b.bytes), map, coord, mbar, .dim = dim,
		                               .dst = CPTX_SHARED_CLUSTER, .cta_group = group);
	}
}

void gemm_load(const gemm *g, const gemm_at *at, cptx_val at_k, cptx_val stage, cptx_val mbar)
{
	cptx_kernel *k = g->k;
	cptx_val a = cptx_mad(k, stage, cptx_tile_bytes(&g->a), g->smem_a, .mode = CPTX_LO);
	cptx_val b = cptx_mad(k, stage, cptx_tile_bytes(&g->b), g->smem_b, .mode = CPTX_LO);

	load_tile(g, &g->a, g->map_a, a, at_k, at->row, mbar);
	load_tile(g, &g->b, g->map_b, b, at_k, at->col_b, mbar);
}

void gemm_mma(const gemm *g, cptx_val acc, cptx_val stage, cptx_val adds)
{
	cptx_kernel *k = g->k;
	uint16_t group = g->rung->pair ? CPTX_CTA_GROUP_2 : CPTX_CTA_GROUP_1;
	cptx_val a = cptx_mad_wide(k, stage, cptx_tile_word_bytes(cptx_tile_bytes(&g->a)), g->word_a);
	cptx_val b = cptx_mad_wide(k, stage, cptx_tile_word_bytes(cptx_tile_bytes(&g->b)), g->word_b);
	cptx_val always = cptx_setp(k, g->K, 0, .cmp = CPTX_NE);

	for (uint32_t i = 0; i < g->o->k; i += STEP_K) {
		cptx_val ai = i ? cptx_add(k, a, cptx_tile_word_step(&g->a, 0, i)) : a;
		cptx_val bi = i ? cptx_add(k, b, cptx_tile_word_step(&g->b, 0, i)) : b;
		cptx_tcgen05_mma(k, acc, ai, bi, cptx_imm(g->idesc), i ? always : adds, .kind = CPTX_KIND_F16, .cta_group = group);
	}
}

void gemm_commit(const gemm *g, cptx_val mbar)
{
	cptx_kernel *k = g->k;

	if (g->rung->pair)
		cptx_tcgen05_commit(k, mbar, .cta_group = CPTX_CTA_GROUP_2, .space = CPTX_SHARED_CLUSTER,
		                    .multicast = CPTX_MULTICAST_CLUSTER, .mask = cptx_mov(k, 3, .type = CPTX_U16));
	else
		cptx_tcgen05_commit(k, mbar, .cta_group = CPTX_CTA_GROUP_1, .space = CPTX_SHARED_CLUSTER);
}

void gemm_load_all(const gemm *g, const gemm_at *at, const cptx_pipe *pipe, cptx_pipe_at *here)
{
	cptx_kernel *k = g->k;
	cptx_val at_k = cptx_var(k, CPTX_U32, 0);

	CPTX_FOR(k, at_k, g->K, g->o->k) {
		cptx_timeline_stamp(k, &g->line, CPTX_GEMM_WAIT_ROOM);
		cptx_pipe_wait_empty(k, pipe, here);
		cptx_timeline_stamp(k, &g->line, CPTX_GEMM_LOAD);
		if (g->rung->pair)
			CPTX_IF(k, gemm_is(g, g->rank, 0))
				cptx_pipe_expect(k, pipe, here, 2 * g->stage_bytes);
		else
			cptx_pipe_expect(k, pipe, here, g->stage_bytes);
		gemm_load(g, at, at_k, here->stage, cptx_pipe_full_of(k, here));
		cptx_pipe_next(k, pipe, here);
	}
	cptx_timeline_stamp(k, &g->line, CPTX_TIMELINE_END);
}

void gemm_mma_all(const gemm *g, cptx_val acc, const cptx_pipe *pipe, cptx_pipe_at *here)
{
	cptx_kernel *k = g->k;
	cptx_val at_k = cptx_var(k, CPTX_U32, 0);

	CPTX_FOR(k, at_k, g->K, g->o->k) {
		cptx_timeline_stamp(k, &g->line, CPTX_GEMM_WAIT_DATA);
		cptx_pipe_wait_full(k, pipe, here);
		cptx_timeline_stamp(k, &g->line, CPTX_GEMM_MULTIPLY);
		gemm_mma(g, acc, here->stage, cptx_setp(k, at_k, 0, .cmp = CPTX_NE));
		gemm_commit(g, cptx_pipe_empty(here));
		cptx_pipe_next(k, pipe, here);
	}
}

/* Two neighbours as one register of D's type; f32 stays as it is. */
static cptx_val narrowed(const gemm *g, cptx_val v, uint32_t i)
{
	cptx_val low = cptx_as(cptx_elem(v, 2 * i), CPTX_F32), high = cptx_as(cptx_elem(v, 2 * i + 1), CPTX_F32);

	return cptx_cvt(g->k, high, .b = low, .rnd = CPTX_RN, .dtype = g->o->out == CPTX_BF16 ? CPTX_BF16X2 : CPTX_F16X2);
}

cptx_val gemm_packed(const gemm *g, cptx_val v, uint32_t first)
{
	cptx_val r[4];

	if (g->o->out == CPTX_F32)
		return cptx_slice(v, first, 4);
	for (uint32_t i = 0; i < 4; i++)
		r[i] = cptx_as(narrowed(g, v, first / 2 + i), CPTX_B32);
	return cptx_pack(g->k, 4, r);
}

cptx_val gemm_read(const gemm *g, cptx_val acc, uint32_t c, uint32_t num, const gemm_reader *reader)
{
	cptx_kernel *k = g->k;
	cptx_val v = cptx_tmem_load(k, cptx_offset(acc, c), .shape = CPTX_SHAPE_32X32B, .num = num);

	cptx_tcgen05_wait(k, .op = CPTX_WAIT_LD);
	if (reader && c + num == g->o->n) {
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_BEFORE_THREAD_SYNC);
		cptx_pipe_release(k, reader->pipe, reader->here, reader->lane);
	}
	return v;
}

void gemm_epilogue(const gemm *g, cptx_val acc, const gemm_at *at, const gemm_reader *reader)
{
	cptx_kernel *k = g->k;
	uint32_t size = cptx_type_bits(g->o->out) / 8, each = 16 / size, n = g->o->n, chunk = n % CHUNK ? CHUNK / 2 : CHUNK;
	/* warp w may touch lanes 32 * (w % 4) and following only; lane l holds row l of the tile */
	cptx_val quarter = cptx_and(k, g->warp, 3), lane = cptx_and(k, g->tid, WARP_THREADS - 1);
	cptx_val row = cptx_add(k, at->row, cptx_mad(k, quarter, WARP_THREADS, lane, .mode = CPTX_LO));
	cptx_val from = cptx_mad(k, quarter, WARP_THREADS << 16, acc, .mode = CPTX_LO);
	cptx_val to = cptx_mad_wide(k, row, cptx_mul(k, g->N, size, .mode = CPTX_LO), cptx_mad_wide(k, at->col, size, g->d));
	/* columns that are there; none of a row that is not */
	cptx_val limit = cptx_selp(k, g->N, 0, cptx_setp(k, row, g->M, .cmp = CPTX_LT));

	for (uint32_t c = 0; c < n; c += chunk) {
		cptx_val v = gemm_read(g, from, c, chunk, reader);
		for (uint32_t i = 0; i < chunk; i += each) {
			cptx_val there = cptx_setp(k, cptx_add(k, at->col, c + i), limit, .cmp = CPTX_LT);
			cptx_st(k, cptx_offset(to, (c + i) * size), gemm_packed(g, v, i), .space = CPTX_GLOBAL, .type = CPTX_B32,
			        .when = there);
		}
	}
}
