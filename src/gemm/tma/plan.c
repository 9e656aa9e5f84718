/* SPDX-License-Identifier: MIT */
/* Rules that are the same for all GEMMs that are fed by TMA: what a CTA may ask for, clusters, and grids. */
#include "gemm/options.h"
#include "gemm/tma/tma.h"

enum {
	STATIC_SMEM = 1024 /* for mbarriers */,
	MOST_SIDE = 1 << 30,
	MEMORY_BOUND = 200,
	ROW_BYTES = 128 /* of a swizzled row */,
	CHUNK = 16 /* bytes, the least that TMA copies of a row */
};
enum { MOST_EXPERT_ROWS = 1 << 26 /* of cptx_tile_groups */ };

#define MOST_STRIDE (1ull << 40) /* bytes, of a tensor map */

#define RULE(ok, ...) TMA_RULE(ok, "%s: " __VA_ARGS__)

uint32_t tma_gemm_bits(enum cptx_type t)
{
	switch (t) {
	case CPTX_TF32: return 32;
	case CPTX_E2M1: return 4;
	case CPTX_E2M3:
	case CPTX_E3M2: return 6;
	default: return cptx_type_bits(t);
	}
}

uint32_t tma_gemm_smem(const char *target, uint32_t per_sm)
{
	const cptx_target *t = cptx_target_find(target);
	uint32_t share = t->smem_per_sm / or_one(per_sm) - t->smem_reserved;

	return MIN(share, t->smem_per_cta) - STATIC_SMEM;
}

/* Subtiles of D of so many columns at most; with swap their rows are contiguous. */
static tma_gemm_subtiles subtiles(const cptx_gemm_opt *o, uint32_t rows, uint32_t blocks, uint32_t cols, uint32_t buffers)
{
	tma_gemm_subtiles s = { .tile = cptx_epilogue_tile(o->out, rows, cols) };

	const uint32_t bits = cptx_type_bits(o->out), out_bn = (uint32_t)tma_gemm_columns(o, o->bn);

	s.tile.cols = MIN(cols, out_bn), s.tile.pitch = o->swap ? 0 : cols * bits / 8;
	s.tile.elem.mn_major = o->swap;
	if (o->swap)
		s.tile.swizzle = bits == 8 ? CPTX_SWIZZLE_64B : CPTX_SWIZZLE_128B;
	s.rest = s.tile, s.rest.cols = out_bn % s.tile.cols;
	s.buffers = out_bn * blocks > s.tile.cols ? buffers : 1;
	return s;
}

tma_gemm_subtiles tma_gemm_subtiles_of(const cptx_gemm_opt *o, uint32_t rows, uint32_t blocks, uint32_t widest,
                                       uint32_t units, int64_t room)
{
	static const uint8_t by_choice[][2] = { { 64, 2 }, { 32, 2 }, { 64, 1 }, { 16, 2 }, { 32, 1 }, { 16, 1 }, { 8, 1 } };
	tma_gemm_subtiles s = { .buffers = 0 };

	for (size_t i = 0; i < ARRAY_LEN(by_choice); i++) {
		const uint32_t cols = by_choice[i][0];
		const uint32_t row = cols * cptx_type_bits(o->out) / 8;
		if (cols > widest || (!o->swap && (row > ROW_BYTES || row < CHUNK)))
			continue;
		s = subtiles(o, rows, blocks, cols, by_choice[i][1]);
		if ((int64_t)(units * s.buffers * cptx_epilogue_ring_bytes(&s.tile)) <= room)
			break;
	}
	return s;
}

bool tma_gemm_check_numbers(const char *target, const cptx_gemm_opt *o, cptx_error *err)
{
	RULE(o->stages >= GEMM_LEAST_stages && o->stages <= GEMM_MOST_stages, "%u stages; %d to %d are possible", target,
	     o->stages, GEMM_LEAST_stages, GEMM_MOST_stages);
	RULE(o->timeline <= GEMM_MOST_timeline, "%u stamps of a timeline for a warp; at most %d", target, o->timeline,
	     GEMM_MOST_timeline);
	RULE(o->group <= GEMM_MOST_group, "group = %u; at most %d rows of tiles", target, o->group, GEMM_MOST_group);
	RULE(o->per_sm <= GEMM_MOST_per_sm, "per_sm = %u; 1 or %d CTAs on a multiprocessor are possible", target, o->per_sm,
	     GEMM_MOST_per_sm);
	RULE(!o->grouped || (!o->batched && !o->stream_k), "a list of problems cannot be %s", target,
	     o->batched ? "batched" : "shared along K (stream_k)");
	RULE(!o->experts || (!o->batched && !o->grouped && !o->stream_k), "experts cannot be %s", target,
	     o->batched   ? "batched"
	     : o->grouped ? "a list of problems (grouped)"
	                  : "shared along K (stream_k)");
	const bool along_k = o->experts == CPTX_GEMM_EXPERTS_K;
	RULE(!along_k || (o->a_m_major && o->b_n_major),
	     "experts whose rows lie along K; A and B have a row for each of these: store them as K rows of M and of N", target);
	RULE(!along_k || o->mma != CPTX_GEMM_SYNC || o->tma,
	     "experts whose rows lie along K by cp.async; TMA (.tma) cuts its copies", target);
	RULE(!o->experts || along_k || !o->a_m_major,
	     "experts with A as K rows of M; their rows are rows of A: store it as M rows of K", target);
	RULE(!o->experts || o->mma == CPTX_GEMM_WGMMA || o->scale == CPTX_TYPE_NONE,
	     "experts with scale factors of .%s, whose blocks have 128 rows, and their rows begin anywhere", target,
	     cptx_type_name(o->scale));
	RULE(!o->gather || !(o->unaligned & CPTX_GEMM_A),
	     "rows of A that are gathered and unaligned; they are copied in whole 16 bytes from a matrix whose number of rows "
	     "the kernel does not know: store A with rows that are (.lda)",
	     target);
	RULE((!o->gather && !o->scatter) || (o->experts && !along_k),
	     "rows that are %s without experts; these are rows of contiguous or masked ones", target,
	     o->gather ? "gathered" : "scattered");
	RULE((!o->gather && !o->scatter) || o->mma == CPTX_GEMM_WGMMA || !o->tma,
	     "rows that are %s by TMA, which copies rows beside one another: without .tma", target,
	     o->gather ? "gathered" : "scattered");
	RULE(!o->scatter || (o->out == CPTX_F32 && !o->beta),
	     "rows that are scattered, to D of .%s%s; they are added to what is there, in f32", target, cptx_type_name(o->out),
	     o->beta ? " with beta" : "");
	RULE(!o->grouped || !o->timeline, "a list of problems has no timeline", target);
	RULE(!o->grouped || (!o->strided && !o->unaligned), "a list of problems has dense, aligned rows, not .%s", target,
	     o->strided ? "strided" : "unaligned");
	RULE(o->unaligned <= GEMM_MOST_unaligned, "unaligned = %u; it is a set of CPTX_GEMM_A, CPTX_GEMM_B and CPTX_GEMM_D",
	     target, o->unaligned);
	for (int b = 0; b < 2; b++)
		RULE(!(o->unaligned >> b & 1) || tma_gemm_bits(b ? o->b : o->a) >= 8,
		     "%s of .%s is unaligned; that is for types from 8 bits on", target, b ? "B" : "A",
		     cptx_type_name(b ? o->b : o->a));
	return true;
}

bool tma_gemm_check_smem(const char *target, const cptx_gemm_opt *o, const gemm_smem *m, cptx_error *err)
{
	const uint32_t other = m->all - o->stages * m->stage;

	RULE(m->all <= m->most,
	     "%u stages of %ux%ux%u need %u bytes of shared memory; a CTA of %s has at most %u (%u stages fit)", target,
	     o->stages, o->bm, o->bn, m->bk, m->all, m->of, m->most, other < m->most ? (m->most - other) / m->stage : 0);
	return true;
}

bool tma_gemm_check_room(const char *target, const cptx_gemm_opt *o, uint32_t bk, uint32_t per_sm, uint32_t stage,
                         uint32_t smem, cptx_error *err)
{
	const gemm_smem m = { target, tma_gemm_smem(target, per_sm), bk, stage, smem };

	return tma_gemm_check_smem(target, o, &m, err);
}

bool tma_gemm_check_in(const char *target, const cptx_gemm_opt *o, cptx_error *err)
{
	const enum cptx_type a = o->a, b = o->b;
	const bool f64 = o->mma == CPTX_GEMM_SYNC; /* which alone has it */
	const bool alike = (is_16_bits(a) || a == CPTX_TF32 || (f64 && a == CPTX_F64)) && a == b;

	if (tma_gemm_has_weights(o) && o->mma == CPTX_GEMM_WGMMA)
		return true; /* the generator has rules of its own */
	RULE(alike || (is_fp8(a) && is_fp8(b)) || (is_int8(a) && is_int8(b)),
	     "A is .%s and B .%s; both must be bf16, both f16, both tf32%s, or each e4m3 or e5m2, or each s8 or u8", target,
	     cptx_type_name(a), cptx_type_name(b), f64 ? ", both f64" : "");
	RULE(is_16_bits(a) || (!o->a_m_major && !o->b_n_major),
	     "elements of .%s are multiplied along K only: store A as M rows, B as N rows of K", target, cptx_type_name(a));
	return true;
}

bool tma_gemm_check_out(const char *target, const cptx_gemm_opt *o, cptx_error *err)
{
	const bool integers = is_int8(o->a) && is_int8(o->b);
	const enum cptx_type out = o->out;

	if (!tma_gemm_f64_check(target, o, err))
		return false;
	RULE(out == CPTX_F32 || out == CPTX_F64 || is_16_bits(out) || is_fp8(out) || (out == CPTX_S32 && integers),
	     "output type .%s; it must be f32, bf16, f16, e4m3 or e5m2%s", target, cptx_type_name(out),
	     integers ? ", or s32" : "");
	RULE(out != CPTX_S32 || !tma_gemm_has_chain(o),
	     "output type .s32 with alpha, beta, bias or an epilogue; these are in f32: take f32", target);
	RULE(!is_fp8(out) || !o->beta, "output type .%s with beta; C would have that type too: take bf16 or f16", target,
	     cptx_type_name(out));
	return true;
}

bool tma_gemm_check_results(const char *target, const cptx_gemm_opt *o, cptx_error *err)
{
	const uint32_t some = (is_fp8(o->out) ? 16 : 8) * (o->swiglu ? 2 : 1);

	RULE(o->swap || o->bn % some == 0,
	     "tile N = %u with output type .%s%s; TMA stores whole 16 bytes: it must be a multiple of %u", target, o->bn,
	     cptx_type_name(o->out), o->swiglu ? " and gated columns" : "", some);
	RULE(!o->swiglu || (!o->swap && !o->beta), "gated columns (.swiglu) with %s", target, o->swap ? "swap" : "beta");
	RULE(!o->scale_out || (o->scale_out == CPTX_F32 && is_fp8(o->out) && !o->swap),
	     "factors of D of type .%s, and output type .%s%s; these are f32, and D e4m3 or e5m2, without swap", target,
	     cptx_type_name(o->scale_out), cptx_type_name(o->out), o->swap ? ", with swap" : "");
	RULE(!o->scale_out || tma_gemm_columns(o, o->bn) % GEMM_SCALE_BLOCK == 0,
	     "tile N = %u with factors of D; these are for 128 columns of it: it must be %s", target, o->bn,
	     o->swiglu ? "256" : "128 or 256");
	RULE(!o->scale_out || !o->grouped,
	     "factors of D (.scale_out) of a list (.grouped), whose problems have D's of their own; "
	     "launch one after the other",
	     target);
	RULE(!o->scale_out || !o->swiglu || !o->scale,
	     "scale factors of A and B (.scale) with gated columns (.swiglu) and factors of D (.scale_out); these two need a "
	     "tile of 256 columns, and with .scale 192 have room in registers: leave one of the three away",
	     target);
	RULE(!o->gather || (!o->swap && o->bm <= 128 && or_one(o->cluster_m) * or_one(o->cluster_n) == 1 && !o->scale),
	     "rows that are gathered, of a tile of %u rows%s, a cluster of %ux%u%s; 64 and 128 rows are gathered, without swap, "
	     "clusters and scale factors",
	     target, o->bm, o->swap ? " swapped" : "", or_one(o->cluster_m), or_one(o->cluster_n),
	     o->scale ? ", with scale factors" : "");
	RULE(!o->scatter || !o->swap, "rows that are scattered, of tiles whose sides are swapped", target);
	return true;
}

bool tma_gemm_check_cluster(const char *target, uint32_t m, uint32_t n, uint32_t each, cptx_error *err)
{
	uint32_t most = cptx_target_find(target)->cluster / each, side = MAX(m, n);
	const char *what = each > 1 ? "pairs of CTAs" : "CTAs";

	RULE(m == 1 || n == 1 || m > most || n > most, "a cluster of %ux%u %s; one side must be 1", target, m, n, what);
	RULE(side <= most && !(side & (side - 1)), "a cluster of %ux%u %s; 1, 2%s %u are possible", target, m, n, what,
	     most > 4 ? ", 4 or" : " or", most);
	return true;
}

/* A cluster lies in one GPC.  Those of the H100 and H200 have 16 or 18 multiprocessors, some fewer, so clusters of 4 leave
 * some idle; a persistent grid of more clusters than fit would take twice the time. */
uint32_t tma_gemm_resident(uint32_t sms, uint32_t cluster, uint32_t per_sm)
{
	uint64_t ctas = (uint64_t)sms * per_sm;

	return MAX((uint32_t)((cluster >= 4 ? ctas * 10 / 11 : ctas) / cluster), 1u);
}

/*
 * Clusters of `most` that compute so many tiles.  512 tiles take four rounds of 128 as of 132, and fewer leave the others a
 * higher clock (4096 cubed on an H200: 0.5 %).  Where global memory is the limit fewer draw less from it.
 */
static uint64_t at_once(const cptx_gemm_problem *p, uint64_t tiles, uint64_t most)
{
	const double products = (double)p->m * (double)p->n / (double)(p->m + p->n); /* for each element of A and B */

	return products < MEMORY_BOUND ? MIN(tiles, most) : divide_up(tiles, divide_up(tiles, most));
}

/* Cluster tiles of all matrices; of experts as many as there may be, whatever the counts: each may end in the midst of one.
 */
static uint64_t most_tiles(const tma_gemm *t, const cptx_gemm_problem *p)
{
	const uint64_t batch = or_one(p->batch);

	if (t->o->experts != CPTX_GEMM_EXPERTS_CONTIGUOUS)
		return tma_gemm_tiles(t, p) * batch;
	return MIN(p->m / t->side_m + batch, p->m) * divide_up(p->n, t->side_n);
}

/* CTAs to launch, and bytes of the workspace. */
static bool fit(const tma_gemm *t, const cptx_gemm_problem *p, uint32_t sms, cptx_gemm_plan *plan, cptx_error *err)
{
	uint64_t in_one = tma_gemm_tiles(t, p), batch = or_one(p->batch), clusters = most_tiles(t, p),
			 k_tiles = divide_up(p->k, t->bk);
	uint64_t most = p->ctas ? MAX(p->ctas / t->cluster, 1u) : tma_gemm_resident(sms, t->cluster, or_one(t->per_sm));

	RULE(in_one <= INT32_MAX && clusters <= INT32_MAX / t->cluster,
	     "%llu tiles of %llu matrices are too many; with clusters of %u CTAs %u are possible in all", t->target,
	     (unsigned long long)in_one, (unsigned long long)batch, t->cluster, INT32_MAX / t->cluster);
	uint64_t run = t->any_rows ? clusters : t->sums ? MIN(clusters * k_tiles, most) : at_once(p, clusters, most);
	uint64_t shared = clusters < 2 * run ? clusters : run + clusters % run;
	RULE(!t->sums || (shared + 1) * k_tiles <= UINT32_MAX / run,
	     "%llu tiles of %llu steps along K are too many to be shared", t->target, (unsigned long long)clusters,
	     (unsigned long long)k_tiles);
	plan->grid = (uint32_t)run * t->cluster;
	plan->workspace = tma_gemm_sums_begin(t, p) + (uint64_t)plan->grid * t->sums;
	return true;
}

/* The distance of the matrices of a batch is a stride of their tensor map. */
static bool check_matrix(const tma_gemm *t, const cptx_gemm_problem *p, enum gemm_which which, cptx_error *err)
{
	const gemm_stored s = tma_gemm_read(t, p, which);
	const uint64_t bytes = gemm_stored_bytes(&s, s.stride);

	RULE(!(t->o->batched || (t->o->experts && which == (t->o->experts == CPTX_GEMM_EXPERTS_K ? GEMM_D : GEMM_B))) ||
	         bytes < MOST_STRIDE,
	     "%c has %llu bytes; matrices of a batch must be less than 2^40 bytes apart", t->target, "ABCD"[which],
	     (unsigned long long)bytes);
	return true;
}

static uint64_t pitch_bytes(const tma_gemm *t, const cptx_gemm_problem *p, enum gemm_which which)
{
	const gemm_stored s = tma_gemm_read(t, p, which);

	return gemm_stored_bytes(&s, s.ld);
}

/* Bytes from the first row of a tile to its last, of operands that threads copy by rows of K (cptx_operand_opt.clamp). */
static uint64_t rows_span(const tma_gemm *t, const cptx_gemm_problem *p)
{
	uint64_t most = 0;

	for (int b = 0; b < 2; b++) {
		const cptx_tile tile = tma_gemm_part(t, b);
		if (!tma_gemm_is_map(t, b ? CPTX_GEMM_MAP_B : CPTX_GEMM_MAP_A) && !tile.elem.mn_major)
			most = MAX(most, pitch_bytes(t, p, b ? GEMM_B : GEMM_A) * tile.rows);
	}
	return most;
}

bool tma_gemm_check_problem(const tma_gemm *t, const cptx_gemm_problem *p, uint32_t sms, cptx_gemm_plan *plan,
                            cptx_error *err)
{
	RULE(p->m && p->n && p->k && p->m <= MOST_SIDE && p->n <= MOST_SIDE && p->k <= MOST_SIDE,
	     "M = %llu, N = %llu, K = %llu; each must be from 1 to 2^30", t->target, (unsigned long long)p->m,
	     (unsigned long long)p->n, (unsigned long long)p->k);
	RULE(tma_gemm_is_map(t, CPTX_GEMM_MAP_A) || MAX(MAX(p->m, p->n), p->k) < MOST_SIDE,
	     "M = %llu, N = %llu, K = %llu; rows that threads copy have less than 2^31 bytes, 2^30 elements", t->target,
	     (unsigned long long)p->m, (unsigned long long)p->n, (unsigned long long)p->k);
	RULE(rows_span(t, p) <= UINT32_MAX, "K = %llu; the rows of a tile of A or B that threads copy span less than 4 GiB",
	     t->target, (unsigned long long)p->k);
	RULE(t->cluster <= 2 || !(tma_gemm_is_copied(t, GEMM_A) || tma_gemm_is_copied(t, GEMM_B)),
	     "clusters of %u CTAs; where A or B is unaligned all CTAs are resident at once, of which clusters of 2 are sure",
	     t->target, t->cluster);
	const bool along_k = t->o->experts == CPTX_GEMM_EXPERTS_K;
	const uint64_t rows = along_k ? p->k : p->m;
	RULE(!t->o->experts || (rows <= MOST_EXPERT_ROWS && tma_gemm_rows(t->o, p) <= MOST_SIDE),
	     "%c = %llu rows of %u experts (%s); they are up to 2^26, and 2^30 of all", t->target, along_k ? 'K' : 'M',
	     (unsigned long long)rows, or_one(p->batch), cptx_gemm_experts_name(t->o->experts));
	RULE(or_one(p->batch) == 1 || t->o->batched || t->o->experts, "%u matrices; the kernel is made for one (.batched)",
	     t->target, p->batch);
	if (!tma_gemm_sparse_check_rows(t, p, err))
		return false;
	RULE(p->k % or_one(t->unit_k) == 0, "K = %llu; with B of .%s it is a multiple of %u", t->target,
	     (unsigned long long)p->k, cptx_type_name(t->o->b), or_one(t->unit_k));
	RULE(p->n % or_one(t->unit_n) == 0 || (!t->o->swiglu && !t->o->scale_out),
	     "N = %llu; with %s%s%s it is a multiple of %u", t->target, (unsigned long long)p->n,
	     t->o->swiglu ? "gated columns (.swiglu)" : "", t->o->swiglu && t->o->scale_out ? " and " : "",
	     t->o->scale_out ? "factors of D (.scale_out)" : "", or_one(t->unit_n));
	RULE(p->n % 8 == 0 || !t->weight_rows,
	     "N = %llu; with weights of few bits, whose factors TMA loads, it is a multiple of 8 (gemv takes any)", t->target,
	     (unsigned long long)p->n);
	RULE(p->n % or_one(t->unit_n) == 0, "N = %llu; with B stored as rows of N it is a multiple of %u", t->target,
	     (unsigned long long)p->n, or_one(t->unit_n));
	const cptx_tile a = tma_gemm_part(t, false), b = tma_gemm_part(t, true);
	return tma_gemm_check_stored(t, p, err) && check_matrix(t, p, GEMM_A, err) && check_matrix(t, p, GEMM_B, err) &&
	       check_matrix(t, p, GEMM_D, err) && tma_gemm_check_rows(t, p, GEMM_A, &a, err) &&
	       tma_gemm_check_rows(t, p, GEMM_B, &b, err) &&
	       (t->any_row_of_d || (tma_gemm_check_rows(t, p, GEMM_D, &t->d, err) &&
	                            (!t->o->beta || tma_gemm_check_rows(t, p, GEMM_C, &t->d, err)))) &&
	       fit(t, p, sms, plan, err);
}
