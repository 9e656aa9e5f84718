/* SPDX-License-Identifier: MIT */
/*
 * GEMM for sm_80 and later: D = A * B^T, A and B K-major, cp.async -> shared memory -> ldmatrix -> mma.sync.
 *
 * Shared memory is a ring of stages; a stage holds bm rows of A, then bn rows of B, bk elements each.  Rows are cut into
 * 16-byte chunks, and chunk c of row r lies at chunk position c ^ key(r), so that neither the copies nor ldmatrix meet a
 * bank twice.  For A the key is the row within its group of eight (counted in 128-byte lines where rows are shorter).  B's
 * rows are handed to ldmatrix in another order: a lane of mma holds columns 2t and 2t + 1 of each 8-column tile, and by
 * giving tile 2j the rows {0,1,4,5,8,9,12,13} and tile 2j + 1 the rest of a group of sixteen, the lane ends up with four
 * neighbouring columns 4t .. 4t + 3, which it stores at once, without going through shared memory.  B's key follows that
 * order.
 *
 * CTAs are persistent: each walks over tiles, and the loader runs `stages - 1` steps ahead of the tensor cores, across tile
 * borders.  A tile that would stick out of the matrix is moved inwards as a whole for loading (so every row that is read
 * exists and offsets within a tile never change) and masked when storing; where the matrix is smaller than a tile, rows are
 * read modulo its size.  Past the end of K, cp.async fills with zeros (src-size 0).
 *
 * Fragments are double-buffered: while the mma of one 16-deep step run, ldmatrix fetches the next step, also across the
 * border of two stages: the wait and barrier for the next stage stand in front of the last step's mma.  The order of mma is
 * serpentine with N outside, so that each shares a fragment with its neighbour.  Measured on an H200, see bench/RESULTS.md.
 */
#include "gemm/tma/tma.h"

enum { FRAG_ROWS = 16, CHUNK = 16 /* bytes */, MMA_K = 16 };

typedef struct gemm {
	cptx_kernel *k;
	const cptx_gemm_opt *o;
	uint32_t threads, row_bytes, chunks, pass_rows /* rows that one cp.async of all threads covers */, na, nb;
	uint32_t stage_bytes, b_offset, mi, nj, steps;
	cptx_val A, B, D, M, N, K;
	cptx_val tile, tiles, tiles_m, tiles_n;
	cptx_val lane, warp_m, warp_n; /* warp's first row and column in the tile */
	/* loader */
	cptx_val pa, pb, off_a, off_b, dst_a, dst_b, k_left, k_step0, load_tile, load_count, k_tiles, write;
	/* compute */
	cptx_val base_a, base_b, read, acc, fa[2], fb[2];
	cptx_val m0, n0; /* first row and column of the tile, before it is moved inwards */
} gemm;

/* ---- options ---- */

static gemm derive(const cptx_gemm_opt *o)
{
	gemm g = { .o = o };
	g.threads = o->warps_m * o->warps_n * CPTX_WARP;
	g.row_bytes = o->bk * 2;
	g.chunks = g.row_bytes / CHUNK;
	g.pass_rows = g.threads / g.chunks;
	g.na = o->bm / MAX(g.pass_rows, 1u);
	g.nb = o->bn / MAX(g.pass_rows, 1u);
	g.stage_bytes = (o->bm + o->bn) * g.row_bytes;
	g.b_offset = o->bm * g.row_bytes;
	g.mi = o->bm / o->warps_m / FRAG_ROWS;
	g.nj = o->bn / o->warps_n / FRAG_ROWS;
	g.steps = o->bk / MMA_K;
	return g;
}

/* Accumulators, two sets of fragments, copy offsets, and what addresses and loop counters took in the shapes tried; two more
 * where 1024 threads leave 64 for each, of which ptxas spills some when all are needed. */
static uint32_t estimate_regs(const gemm *g)
{
	return g->mi * g->nj * 8 + 2 * (g->mi + g->nj) * 4 + g->na + g->nb + 36 + (g->threads == CPTX_THREADS_PER_CTA ? 2 : 0);
}

#define RULE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "gemm: " __VA_ARGS__);                                               \
	while (0)

static bool check_shape(const cptx_gemm_opt *o, cptx_error *err)
{
	RULE(is_16_bits(o->a), "input type .%s; it must be bf16 or f16", cptx_type_name(o->a));
	RULE(o->a == o->b, "A is .%s and B .%s; with mma.sync both are bf16, or both f16", cptx_type_name(o->a),
	     cptx_type_name(o->b));
	RULE(o->out == CPTX_F32 || is_16_bits(o->out), "output type .%s; it must be f32, bf16 or f16", cptx_type_name(o->out));
	RULE(o->bk == 32 || o->bk == 64 || o->bk == 128, "tile K = %u; the swizzle is made for 32, 64 and 128", o->bk);
	RULE(o->stages >= 2 && o->stages <= 16, "%u stages; 2 to 16 are possible", o->stages);
	RULE(o->warps_m && o->warps_n && o->warps_m <= 32 && o->warps_n <= 32 && o->warps_m * o->warps_n <= 32,
	     "%ux%u warps; a CTA has 1 to 32", o->warps_m, o->warps_n);
	RULE(o->bm <= 1024 && o->bn <= 1024, "tile %ux%u; each side is at most 1024", o->bm, o->bn);
	RULE(o->bm && o->bm % (o->warps_m * FRAG_ROWS) == 0,
	     "tile M = %u is not divisible into %u warps of a multiple of 16 rows (try %u)", o->bm, o->warps_m,
	     MAX(o->bm / (o->warps_m * FRAG_ROWS), 1u) * o->warps_m * FRAG_ROWS);
	RULE(o->bn && o->bn % (o->warps_n * FRAG_ROWS) == 0,
	     "tile N = %u is not divisible into %u warps of a multiple of 16 columns (try %u)", o->bn, o->warps_n,
	     MAX(o->bn / (o->warps_n * FRAG_ROWS), 1u) * o->warps_n * FRAG_ROWS);
	RULE(o->group <= 1024, "group = %u; at most 1024 rows of tiles", o->group);
	return true;
}

static bool check(const cptx_gemm_opt *o, const cptx_target *target, cptx_gemm_plan *plan, cptx_error *err)
{
	if (target && target->number < 80)
		return error_set(err, CPTX_E_TARGET, NOWHERE,
		                 "gemm: cp.async and mma.sync.m16n8k16 are not available on %s; targets from sm_80 on have them",
		                 target->name);
	if (!check_shape(o, err))
		return false;
	gemm g = derive(o);
	uint32_t smem = o->stages * g.stage_bytes, regs = estimate_regs(&g), most = CPTX_REGS_PER_SM / g.threads / 8 * 8;
	RULE(g.pass_rows % 16 == 0,
	     "%u threads copy %u rows of %u bytes at once; that must be a multiple of 16 rows for the swizzle: take more warps "
	     "or a smaller tile K",
	     g.threads, g.pass_rows, g.row_bytes);
	RULE(o->bm % g.pass_rows == 0 && o->bn % g.pass_rows == 0,
	     "tile %ux%u is not divisible by the %u rows that %u threads copy at once (16 bytes each): take fewer warps or a "
	     "larger tile",
	     o->bm, o->bn, g.pass_rows, g.threads);
	RULE(regs <= MIN(most, (uint32_t)CPTX_REGS_PER_THREAD),
	     "about %u registers per thread are needed, %u threads can have %u each: take more warps or a smaller tile", regs,
	     g.threads, MIN(most, (uint32_t)CPTX_REGS_PER_THREAD));
	RULE(!target || smem <= target->smem_per_cta,
	     "%u stages of %ux%ux%u need %u bytes of shared memory; a CTA of %s has at most %u (%u stages fit)", o->stages,
	     o->bm, o->bn, o->bk, smem, target->name, target->smem_per_cta, target->smem_per_cta / g.stage_bytes);
	RULE(smem <= 227 * 1024, "%u bytes of shared memory; no target has more than %u", smem, 227 * 1024);
	*plan = (cptx_gemm_plan){ .threads = g.threads, .smem = smem, .bk = o->bk, .regs = regs };
	return true;
}

bool gemm_sm80_check_problem(const cptx_gemm_opt *o, const cptx_gemm_problem *p, uint32_t sms, cptx_gemm_plan *plan,
                             cptx_error *err)
{
	uint64_t m = p->m, n = p->n, k = p->k, tiles = up(m, o->bm) * up(n, o->bn), most = p->ctas ? p->ctas : given(sms);

	RULE(given(p->batch) == 1, "%u matrices; the kernel by mma.sync is made for one", p->batch);
	RULE(m && n && k && m <= INT32_MAX - 1024 && n <= INT32_MAX - 1024,
	     "M = %llu, N = %llu, K = %llu; each must be at least 1, M and N below 2^31", (unsigned long long)m,
	     (unsigned long long)n, (unsigned long long)k);
	RULE(k % 8 == 0,
	     "K = %llu is not a multiple of 8: rows of A and B would not be aligned to the 16 bytes of a copy (pad K to %llu)",
	     (unsigned long long)k, (unsigned long long)(k + 7) / 8 * 8);
	RULE(k * 2 * MAX(o->bm, o->bn) <= UINT32_MAX && k <= INT32_MAX / 4, "K = %llu; a tile's rows must span less than 4 GiB",
	     (unsigned long long)k);
	RULE(tiles <= INT32_MAX / 2, "M = %llu, N = %llu: too many tiles", (unsigned long long)m, (unsigned long long)n);
	plan->grid = (uint32_t)MIN(tiles, most);
	return true;
}

static bool check_address(const char *what, uint64_t at, cptx_error *err)
{
	RULE(at, "the address of %s is 0", what);
	RULE(at % CHUNK == 0, "the address of %s, 0x%llx, is no multiple of %d", what, (unsigned long long)at, CHUNK);
	return true;
}

/* As many CTAs as the device holds at once. */
cptx_launch *gemm_sm80_launch(const cptx_gemm_opt *o, const cptx_gemm_plan *plan, const cptx_program *program,
                              cptx_device *dev, const cptx_gemm_problem *p, cptx_error *err)
{
	cptx_resources fits;
	cptx_gemm_plan all;

	if (!check_address("A", p->a, err) || !check_address("B", p->b, err) || !check_address("D", p->d, err) ||
	    !cptx_program_resources(program, o->name, plan->threads, plan->smem, &fits, err) ||
	    !gemm_sm80_check_problem(o, p, cptx_device_get_info(dev)->sms * fits.ctas_per_sm, &all, err))
		return NULL;
	return cptx_launch_new_(NOWHERE, program, o->name,
	                        CPTX_OPT(cptx_launch_opt, .grid = { all.grid }, .block = { plan->threads },
	                                  .dyn_smem = plan->smem,
	                                  CPTX_ARGS(p->a, p->b, p->d, (uint32_t)p->m, (uint32_t)p->n, (uint32_t)p->k)),
	                        err);
}

/* ---- set-up ---- */

static cptx_val ceil_div(cptx_kernel *k, cptx_val a, uint32_t b) { return cptx_div(k, cptx_add(k, a, b - 1), b); }

/* Row r of an operand has its chunks permuted by XOR with this; `order` gives r's place among the rows that ldmatrix reads
 * at once. */
static cptx_val swizzle_key(const gemm *g, cptx_val order)
{
	uint32_t rows_per_line = MAX(128 / g->row_bytes, 1u), mask = MIN(g->chunks, 8u) - 1;
	return cptx_and(g->k, rows_per_line > 1 ? cptx_shr(g->k, order, 1) : order, mask);
}

static void declare(gemm *g, cptx_module *m)
{
	g->k = cptx_kernel_begin(m, g->o->name ? g->o->name : "gemm", .max_block = { g->threads }, .min_ctas = 1);
	g->A = cptx_param(g->k, CPTX_PTR, "A");
	g->B = cptx_param(g->k, CPTX_PTR, "B");
	g->D = cptx_param(g->k, CPTX_PTR, "D");
	g->M = cptx_param(g->k, CPTX_U32, "M");
	g->N = cptx_param(g->k, CPTX_U32, "N");
	g->K = cptx_param(g->k, CPTX_U32, "K");
}

/* Where this thread copies: chunk tid % chunks of rows tid / chunks + i * pass_rows. */
static void setup_loader(gemm *g, cptx_val smem, cptx_val tid)
{
	cptx_kernel *k = g->k;
	cptx_val chunk = cptx_and(k, tid, g->chunks - 1), row = cptx_div(k, tid, g->chunks);
	cptx_val key_a = swizzle_key(g, row);
	/* B: place of row r in ldmatrix's order: bits (r3 r2 r0) for 128-byte rows; see the head of the file. */
	cptx_val order_b = cptx_or(k, cptx_and(k, row, 1), cptx_and(k, cptx_shr(k, row, 1), 6));
	cptx_val key_b = swizzle_key(g, order_b);
	cptx_val row_at = cptx_mad(k, row, g->row_bytes, smem, .mode = CPTX_LO);
	cptx_val pitch = cptx_mul(k, g->K, 2, .mode = CPTX_LO), byte = cptx_shl(k, chunk, 4);

	g->dst_a = cptx_add(k, row_at, cptx_shl(k, cptx_xor(k, chunk, key_a), 4));
	g->dst_b = cptx_add(k, row_at, cptx_shl(k, cptx_xor(k, chunk, key_b), 4));
	g->k_step0 = cptx_sub(k, cptx_as(g->K, CPTX_S32), cptx_as(cptx_shl(k, chunk, 3), CPTX_S32));
	g->off_a = cptx_regs(k, CPTX_U32, g->na);
	g->off_b = cptx_regs(k, CPTX_U32, g->nb);
	cptx_val rows_a = cptx_min(k, g->M, g->o->bm), rows_b = cptx_min(k, g->N, g->o->bn);
	for (uint32_t i = 0; i < g->na + g->nb; i++) {
		bool is_a = i < g->na;
		uint32_t pass = is_a ? i : i - g->na;
		cptx_val r = cptx_rem(k, cptx_add(k, row, pass * g->pass_rows), is_a ? rows_a : rows_b);
		cptx_mad(k, r, pitch, byte, .mode = CPTX_LO, .into = is_a ? cptx_elem(g->off_a, pass) : cptx_elem(g->off_b, pass));
	}
}

/* Where this lane's ldmatrix reads, before stage, step and fragment are added. */
static void setup_fragments(gemm *g, cptx_val smem)
{
	cptx_kernel *k = g->k;
	cptx_val eighth = cptx_shr(k, g->lane, 3), i = cptx_and(k, g->lane, 7);
	cptx_val row_a = cptx_add(k, g->warp_m, cptx_and(k, g->lane, 15));
	cptx_val chunk_a = cptx_xor(k, cptx_shr(k, g->lane, 4), swizzle_key(g, i));
	cptx_val row_b = cptx_add(k, g->warp_n, cptx_shl(k, cptx_shr(k, i, 1), 2));
	cptx_val chunk_b = cptx_xor(k, cptx_and(k, eighth, 1), swizzle_key(g, i));

	cptx_add(k, row_b, cptx_and(k, eighth, 2), .into = row_b);
	cptx_add(k, row_b, cptx_and(k, i, 1), .into = row_b);
	g->base_a = cptx_add(k, cptx_mad(k, row_a, g->row_bytes, smem, .mode = CPTX_LO), cptx_shl(k, chunk_a, 4));
	g->base_b = cptx_add(k, cptx_mad(k, row_b, g->row_bytes, smem, .mode = CPTX_LO), cptx_shl(k, chunk_b, 4));
	cptx_add(k, g->base_b, g->b_offset, .into = g->base_b);
	g->acc = cptx_regs(k, CPTX_F32, g->mi * g->nj * 8);
	for (int b = 0; b < 2; b++) {
		g->fa[b] = cptx_regs(k, CPTX_B32, g->mi * 4);
		g->fb[b] = cptx_regs(k, CPTX_B32, g->nj * 4);
	}
}

/* First row and column of tile number `id`. */
static void tile_origin(const gemm *g, cptx_val id, cptx_val m0, cptx_val n0)
{
	cptx_kernel *k = g->k;
	cptx_val row, column;

	cptx_tiles_raster(k, id, g->tiles_m, g->tiles_n, cptx_imm(g->o->group ? g->o->group : 16), &row, &column);
	cptx_mul(k, row, g->o->bm, .mode = CPTX_LO, .into = m0);
	cptx_mul(k, column, g->o->bn, .mode = CPTX_LO, .into = n0);
}

/* min(start, max(size, tile) - tile): the tile moved inwards. */
static cptx_val inwards(const gemm *g, cptx_val start, cptx_val size, uint32_t tile)
{
	return cptx_min(g->k, start, cptx_sub(g->k, cptx_max(g->k, size, tile), tile));
}

static void loader_to_tile(gemm *g)
{
	cptx_kernel *k = g->k;
	cptx_val m0 = cptx_reg(k, CPTX_U32), n0 = cptx_reg(k, CPTX_U32), pitch = cptx_mul(k, g->K, 2, .mode = CPTX_LO);

	tile_origin(g, g->load_tile, m0, n0);
	cptx_mad_wide(k, inwards(g, m0, g->M, g->o->bm), pitch, g->A, .into = g->pa);
	cptx_mad_wide(k, inwards(g, n0, g->N, g->o->bn), pitch, g->B, .into = g->pb);
	cptx_mov(k, g->k_step0, .into = g->k_left);
	cptx_mov(k, g->k_tiles, .into = g->load_count);
}

/* ---- the pipeline ---- */

/* Copies [from, to) of a stage's na + nb pieces into the stage at offset `write`. */
static void issue_copies(const gemm *g, uint32_t from, uint32_t to)
{
	cptx_kernel *k = g->k;
	cptx_val bytes = cptx_selp(k, 16, 0, cptx_setp(k, g->k_left, 0, .cmp = CPTX_GT), .type = CPTX_U32);
	cptx_val to_a = cptx_add(k, g->dst_a, g->write), to_b = cptx_add(k, g->dst_b, g->write);

	for (uint32_t i = from; i < to; i++) {
		bool is_a = i < g->na;
		uint32_t pass = is_a ? i : i - g->na, at = pass * g->pass_rows * g->row_bytes + (is_a ? 0 : g->b_offset);
		cptx_val offset = cptx_cvt(k, cptx_elem(is_a ? g->off_a : g->off_b, pass), .dtype = CPTX_U64);
		cptx_cp_async(k, cptx_offset(is_a ? to_a : to_b, at), cptx_add(k, is_a ? g->pa : g->pb, offset), CHUNK,
		              .cop = CPTX_CG, .l2 = CPTX_L2_128B, .src_size = bytes);
	}
}

/* One k-tile on; at the end of a tile, to the next one of this CTA.  Behind the last, every copy is of zero bytes. */
static void advance_loader(gemm *g)
{
	cptx_kernel *k = g->k;

	cptx_add(k, g->pa, g->row_bytes, .into = g->pa);
	cptx_add(k, g->pb, g->row_bytes, .into = g->pb);
	cptx_sub(k, g->k_left, g->o->bk, .into = g->k_left);
	cptx_sub(k, g->load_count, 1, .into = g->load_count);
	CPTX_IF(k, cptx_setp(k, g->load_count, 0, .cmp = CPTX_EQ)) {
		cptx_add(k, g->load_tile, cptx_nctaid_x(k), .into = g->load_tile);
		cptx_mov(k, 0, .into = g->k_left);
		CPTX_IF(k, cptx_setp(k, g->load_tile, g->tiles, .cmp = CPTX_LT))
			loader_to_tile(g);
	}
}

static cptx_val next_stage(const gemm *g, cptx_val offset)
{
	cptx_kernel *k = g->k;
	cptx_val next = cptx_add(k, offset, g->stage_bytes);
	return cptx_selp(k, 0, next, cptx_setp(k, next, g->stage_bytes * g->o->stages, .cmp = CPTX_EQ));
}

/* Fragments of step `step` of the stage at offset `stage`, into buffer `to`. */
static void load_fragments(const gemm *g, uint32_t step, cptx_val stage, int to)
{
	cptx_kernel *k = g->k;
	cptx_val a = cptx_add(k, step ? cptx_xor(k, g->base_a, step * 2 * CHUNK) : g->base_a, stage);
	cptx_val b = cptx_add(k, step ? cptx_xor(k, g->base_b, step * 2 * CHUNK) : g->base_b, stage);

	for (uint32_t i = 0; i < g->mi; i++)
		cptx_ldmatrix(k, cptx_offset(a, i * FRAG_ROWS * g->row_bytes), .space = CPTX_SHARED,
		              .into = cptx_slice(g->fa[to], i * 4, 4));
	for (uint32_t j = 0; j < g->nj; j++)
		cptx_ldmatrix(k, cptx_offset(b, j * FRAG_ROWS * g->row_bytes), .space = CPTX_SHARED,
		              .into = cptx_slice(g->fb[to], j * 4, 4));
}

static void multiply(const gemm *g, int from)
{
	uint32_t columns = g->nj * 2;

	for (uint32_t n = 0; n < columns; n++)
		for (uint32_t x = 0; x < g->mi; x++) {
			uint32_t m = n % 2 ? g->mi - 1 - x : x;
			cptx_val d = cptx_slice(g->acc, (m * columns + n) * 4, 4);
			cptx_mma(g->k, cptx_slice(g->fa[from], m * 4, 4), cptx_slice(g->fb[from], n * 2, 2), d, .shape = CPTX_M16N8K16,
			         .dtype = CPTX_F32, .atype = g->o->a, .into = d);
		}
}

/* Fill the ring: all stages but one, and the fragments of the first step. */
static void fill_pipeline(gemm *g)
{
	cptx_kernel *k = g->k;

	for (uint32_t s = 0; s + 1 < g->o->stages; s++) {
		cptx_mov(k, s * g->stage_bytes, .into = g->write);
		issue_copies(g, 0, g->na + g->nb);
		cptx_cp_async_commit_group(k);
		advance_loader(g);
	}
	cptx_mov(k, (g->o->stages - 1) * g->stage_bytes, .into = g->write);
	cptx_mov(k, 0, .into = g->read);
	cptx_cp_async_wait_group(k, g->o->stages - 2);
	cptx_bar_sync(k, 0);
	load_fragments(g, 0, g->read, 0);
}

static void k_tile(gemm *g)
{
	cptx_kernel *k = g->k;
	uint32_t pieces = g->na + g->nb, copy_steps = g->steps - 1;

	for (uint32_t step = 0; step < g->steps; step++) {
		bool last = step + 1 == g->steps;
		if (last) {
			cptx_cp_async_wait_group(k, g->o->stages - 2);
			cptx_bar_sync(k, 0);
			cptx_mov(k, next_stage(g, g->read), .into = g->read);
		}
		load_fragments(g, last ? 0 : step + 1, g->read, (step + 1) % 2);
		if (!last) {
			issue_copies(g, pieces * step / copy_steps, pieces * (step + 1) / copy_steps);
			if (step + 1 == copy_steps)
				cptx_cp_async_commit_group(k);
		}
		multiply(g, step % 2);
	}
	cptx_mov(k, next_stage(g, g->write), .into = g->write);
	advance_loader(g); /* at the end: its branch would otherwise split the block that ptxas schedules */
}

/* ---- the result ---- */

/* Four accumulators as stored: one vector of four floats, or two registers of two halves each. */
static cptx_val convert(const gemm *g, cptx_val c[4])
{
	cptx_kernel *k = g->k;

	if (g->o->out == CPTX_F32)
		return cptx_pack(k, 4, c);
	enum cptx_type pair = g->o->out == CPTX_BF16 ? CPTX_BF16X2 : CPTX_F16X2;
	cptx_val lo = cptx_cvt(k, c[1], .rnd = CPTX_RN, .dtype = pair, .b = c[0]);
	cptx_val hi = cptx_cvt(k, c[3], .rnd = CPTX_RN, .dtype = pair, .b = c[2]);
	return cptx_vec(k, cptx_as(lo, CPTX_B32), cptx_as(hi, CPTX_B32));
}

static void store_scalar(const gemm *g, cptx_val at, cptx_val c, cptx_val when)
{
	cptx_kernel *k = g->k;

	if (g->o->out == CPTX_F32)
		cptx_st(k, at, c, .space = CPTX_GLOBAL, .when = when);
	else
		cptx_st(k, at, cptx_cvt(k, c, .rnd = CPTX_RN, .dtype = g->o->out), .space = CPTX_GLOBAL, .type = CPTX_B16,
		        .when = when);
}

/* One row of a fragment: per 16 columns this lane holds four neighbours, all stored at once or one by one. */
static void store_row(const gemm *g, cptx_val at, uint32_t i, uint32_t half, const cptx_val *column_ok, bool vector)
{
	uint32_t size = cptx_type_bits(g->o->out) / 8, columns = g->nj * 2;

	for (uint32_t j = 0; j < g->nj; j++) {
		cptx_val c[4], here = cptx_offset(at, j * FRAG_ROWS * size);
		for (uint32_t e = 0; e < 4; e++)
			c[e] = cptx_elem(g->acc, (i * columns + 2 * j + e / 2) * 4 + half * 2 + e % 2);
		if (vector)
			cptx_st(g->k, here, convert(g, c), .space = CPTX_GLOBAL, .type = g->o->out == CPTX_F32 ? CPTX_F32 : CPTX_B32,
			        .when = column_ok[j]);
		for (uint32_t e = 0; e < 4 && !vector; e++)
			store_scalar(g, cptx_offset(here, e * size), c[e], column_ok[j * 4 + e]);
	}
}

/* Stores what of the tile lies at or behind its unmoved origin (m0, n0) and inside D: the rest is another tile's, or
 * nowhere. */
static void store_tile(const gemm *g, cptx_val row0, cptx_val column, bool vector)
{
	enum { MOST_COLUMNS = 1024 / FRAG_ROWS * 4 };
	cptx_kernel *k = g->k;
	uint32_t size = cptx_type_bits(g->o->out) / 8, lanes = vector ? 1 : 4;
	cptx_val at = cptx_add(k, g->D, cptx_mul_wide(k, column, size)), pitch = cptx_mul_wide(k, g->N, size);
	cptx_val rows = cptx_sub(k, g->M, g->m0), columns = cptx_sub(k, g->N, g->n0), behind = cptx_sub(k, column, g->n0);
	cptx_val column_ok[MOST_COLUMNS];

	/* first <= x < end is one unsigned comparison: x - first < end - first */
	for (uint32_t j = 0; j < g->nj * lanes; j++)
		column_ok[j] = cptx_setp(k, cptx_add(k, behind, j / lanes * FRAG_ROWS + j % lanes), columns, .cmp = CPTX_LT);
	for (uint32_t i = 0; i < g->mi; i++)
		for (uint32_t half = 0; half < 2; half++) {
			cptx_val row = cptx_add(k, row0, i * FRAG_ROWS + half * 8);
			CPTX_IF(k, cptx_setp(k, cptx_sub(k, row, g->m0), rows, .cmp = CPTX_LT))
				store_row(g, cptx_mad(k, cptx_cvt(k, row, .dtype = CPTX_U64), pitch, at, .mode = CPTX_LO), i, half,
				          column_ok, vector);
		}
}

static void epilogue(gemm *g)
{
	cptx_kernel *k = g->k;
	cptx_val row = cptx_add(k, cptx_add(k, inwards(g, g->m0, g->M, g->o->bm), g->warp_m), cptx_shr(k, g->lane, 2));
	cptx_val column = cptx_add(k, inwards(g, g->n0, g->N, g->o->bn), g->warp_n);

	cptx_add(k, column, cptx_shl(k, cptx_and(k, g->lane, 3), 2), .into = column);
	/* Rows of D are aligned for vectors of four only if N is a multiple of four. */
	CPTX_IF(k, cptx_setp(k, cptx_and(k, g->N, 3), 0, .cmp = CPTX_EQ))
		store_tile(g, row, column, true);
	CPTX_ELSE(k)
		store_tile(g, row, column, false);
}

static void walk_tiles(gemm *g)
{
	cptx_kernel *k = g->k;
	cptx_val kt = cptx_reg(k, CPTX_U32);

	CPTX_FOR(k, g->tile, g->tiles, cptx_nctaid_x(k)) {
		for (uint32_t i = 0; i < g->acc.count; i++)
			cptx_mov(k, 0.0f, .into = cptx_elem(g->acc, i));
		tile_origin(g, g->tile, g->m0, g->n0);
		cptx_mov(k, 0, .into = kt);
		CPTX_FOR(k, kt, g->k_tiles, 1)
			k_tile(g);
		epilogue(g);
	}
	cptx_cp_async_wait_all(k);
}

static void build_body(gemm *g)
{
	cptx_kernel *k = g->k;
	cptx_val smem = cptx_mov(k, cptx_shared_dyn(k, g->o->stages * g->stage_bytes, 1024, "ring")), tid = cptx_tid_x(k);
	cptx_val warp = cptx_shr(k, tid, 5);

	g->lane = cptx_and(k, tid, 31);
	g->warp_m = cptx_mul(k, cptx_rem(k, warp, g->o->warps_m), g->o->bm / g->o->warps_m, .mode = CPTX_LO);
	g->warp_n = cptx_mul(k, cptx_div(k, warp, g->o->warps_m), g->o->bn / g->o->warps_n, .mode = CPTX_LO);
	g->tiles_m = ceil_div(k, g->M, g->o->bm);
	g->tiles_n = ceil_div(k, g->N, g->o->bn);
	g->k_tiles = ceil_div(k, g->K, g->o->bk);
	g->tiles = cptx_mul(k, g->tiles_m, g->tiles_n, .mode = CPTX_LO);
	g->tile = cptx_var(k, CPTX_U32, cptx_ctaid_x(k));
	g->load_tile = cptx_var(k, CPTX_U32, g->tile);
	g->load_count = cptx_reg(k, CPTX_U32);
	g->k_left = cptx_reg(k, CPTX_S32);
	g->pa = cptx_reg(k, CPTX_U64);
	g->pb = cptx_reg(k, CPTX_U64);
	g->write = cptx_reg(k, CPTX_U32);
	g->read = cptx_reg(k, CPTX_U32);
	g->m0 = cptx_reg(k, CPTX_U32);
	g->n0 = cptx_reg(k, CPTX_U32);
	setup_loader(g, smem, tid);
	setup_fragments(g, smem);
	loader_to_tile(g);
	fill_pipeline(g);
	walk_tiles(g);
}

static cptx_kernel *build(cptx_module *m, const cptx_gemm_opt *opt)
{
	gemm g = derive(opt);

	declare(&g, m);
	build_body(&g);
	return g.k;
}

const gemm_generator gemm_sm80 = { .target = "sm_80", .by = "mma.sync", .check = check, .build = build };
