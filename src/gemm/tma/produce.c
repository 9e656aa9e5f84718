/* SPDX-License-Identifier: MIT */
/* The producers of the GEMMs: one thread by TMA, or all threads by cp.async. */
#include "gemm/tma/tma.h"

#include <cptx/cptx.h>

void tma_gemm_next_offset(cptx_kernel *k, cptx_val offset, uint32_t apart, uint32_t stages)
{
	const cptx_val next = cptx_add(k, offset, apart), at_end = cptx_setp(k, next, apart * stages, .cmp = CPTX_EQ);

	cptx_selp(k, 0, next, at_end, .type = CPTX_U32, .into = offset);
}

tma_gemm_producer tma_gemm_producer_of(const tma_gemm *t, tma_gemm_work *w, const cptx_pipe *pipe, const cptx_timeline *line,
                                       tma_gemm_ring stages, uint32_t a_bytes)
{
	tma_gemm_producer p = { .t = t, .w = w, .pipe = pipe, .line = line, .ring = { stages, stages } };

	p.ring[1].at += a_bytes;
	return p;
}

/* Parts of a tile lie behind one another: its columns are one span. */
static cptx_val part_smem(cptx_kernel *k, const tma_gemm_producer *p, const cptx_tile *part, bool of_b)
{
	const tma_gemm_ring *r = &p->ring[of_b];
	cptx_val smem = r->smem;

	if (or_one(p->t->parts[of_b]) > 1)
		smem = cptx_mad(k, p->w->tile_rank, cptx_tile_bytes(part), smem, .mode = CPTX_LO);
	return cptx_offset(smem, r->at);
}

/* Bytes from row to row of an operand by cp.async; NONE: rows are dense. */
static cptx_val pitch_of(cptx_kernel *k, const tma_gemm_producer *p, bool of_b)
{
	if (tma_gemm_is_copied(p->t, of_b ? GEMM_B : GEMM_A))
		return tma_gemm_copy_pitch(k, p->t, p->w, of_b);
	return tma_gemm_is_strided(p->t) ? p->w->p.of[of_b].pitch : (cptx_val){ 0 };
}

void tma_gemm_producer_operands(cptx_kernel *k, tma_gemm_producer *p)
{
	const cptx_gemm_opt *o = &p->t->in;
	const tma_gemm_params *in = &p->w->p;
	const bool some_by_tma = tma_gemm_is_map(p->t, CPTX_GEMM_MAP_B);

	cptx_val rows_of_a = in->M;
	if (o->gather)
		rows_of_a = p->rows = cptx_var(k, CPTX_U32, 1);
	else if (!some_by_tma && o->experts == CPTX_GEMM_EXPERTS_MASKED) /* those of all experts */
		rows_of_a = cptx_mul(k, in->M, in->batch, .mode = CPTX_LO);
	for (int b = 0; b < 2; b++) {
		const cptx_tile part = tma_gemm_part(p->t, b != o->swap);
		const bool by_tma = some_by_tma && (b || !o->gather);
		const cptx_val smem = part_smem(k, p, &part, b);
		cptx_operand_new(k, &p->operand[b], .by = by_tma ? CPTX_OPERAND_TMA : CPTX_OPERAND_CP_ASYNC,
		                 .type = or_one(p->t->packed) > 1 || (!b && tma_gemm_has_weights(o)) ? CPTX_U8
		                         : b                                                         ? o->b
		                                                                                     : o->a,
		                 .tile = part, .stages = o->stages, .smem = smem, .apart = p->ring[b].apart,
		                 .batched = by_tma && tma_gemm_has_matrices(p->t, b != o->swap ? CPTX_GEMM_MAP_B : CPTX_GEMM_MAP_A),
		                 .alone = !p->clusters, .address = by_tma ? (cptx_val){ 0 } : in->map[b],
		                 .rows = b ? in->N : rows_of_a, .cols = b ? in->K : tma_gemm_cols_of_a(k, p->t, p->w),
		                 .pitch = by_tma ? (cptx_val){ 0 } : pitch_of(k, p, b), .threads = by_tma ? 0 : p->threads,
		                 .thread = p->thread, .whole = !by_tma && !tma_gemm_is_strided(p->t),
		                 .clamp = !by_tma && !part.elem.mn_major, .gather = b ? (cptx_val){ 0 } : in->gather);
	}
}

/* ---- by TMA ---- */

/* Which run of `each` elements, a power of two, k0 is in: ptxas 13.0 divides by a constant in 15 instructions here. */
static cptx_val run_of(cptx_kernel *k, cptx_val k0, uint32_t each)
{
	uint32_t bits = 0;

	while (each >> bits > 1)
		bits++;
	return cptx_shr(k, k0, bits);
}

/* Where an element along K of B is in A or B as it is stored: of a sparse A, and of weights of 4 bits, at half of that. */
static cptx_val k0_of(cptx_kernel *k, const tma_gemm_producer *p, bool of_b, cptx_val k0)
{
	const uint64_t each = tma_gemm_along_a(&p->t->in, 2); /* for two elements of B */

	if (of_b || each == 2)
		return k0;
	return k0.kind == CPTX_VAL_INT ? cptx_imm(k0.i / 2) : cptx_shr(k, k0, 1);
}

/* What this CTA loads of A or B of a tile into each stage. */
typedef struct source {
	bool of_b;
	cptx_val map, row;
	cptx_val z;              /* the matrix of a batch */
	cptx_val when;           /* NONE: always */
	cptx_val bytes;          /* that come, from all CTAs that load parts */
	uint32_t sharers, parts; /* CTAs; of an operand without parts these load whole tiles by turns */
	cptx_val mask;           /* of the CTAs that get it */
} source;

/*
 * Rows beyond the end are not asked for: TMA took up to three times as long for one as for a row that is there, on an H200.
 * So the residue rows have a map of their own, and what the stage has behind them stays as it was: it makes sums that are
 * not stored.
 */
static void leave_out_rows(cptx_kernel *k, const tma_gemm_producer *p, source *x)
{
	const tma_gemm_params *in = &p->w->in;
	const cptx_operand *op = &p->operand[x->of_b];
	const uint32_t rows = op->opt.tile.rows, tile = rows * x->parts;
	cptx_val all = cptx_sub(k, cptx_as(x->of_b ? in->N : in->M, CPTX_S32), x->of_b ? p->w->n0 : p->w->m0), left = all;

	if (rows < tile)
		left = cptx_sub(k, all, cptx_mul(k, cptx_as(p->w->rank, CPTX_S32), rows, .mode = CPTX_LO));
	x->when = cptx_setp(k, left, 0, .cmp = CPTX_GT);
	x->map = cptx_selp(k, x->map, in->map[x->of_b ? CPTX_GEMM_MAP_LAST_B : CPTX_GEMM_MAP_LAST_A],
	                   cptx_setp(k, left, rows, .cmp = CPTX_GE), .type = CPTX_U64);
	all = cptx_max(k, cptx_min(k, all, tile), 0);
	cptx_val even = cptx_and(k, cptx_add(k, cptx_as(all, CPTX_U32), 1), ~1);
	x->bytes = cptx_mul(k, even, op->bytes / rows, .mode = CPTX_LO);
}

static source source_of(cptx_kernel *k, const tma_gemm_producer *p, bool of_b, cptx_val mask)
{
	const tma_gemm_work *w = p->w;
	const cptx_gemm_opt *o = &p->t->in;
	const uint32_t rows = p->operand[of_b].opt.tile.rows;
	source x = { .of_b = of_b,
		         .map = w->in.map[of_b ? CPTX_GEMM_MAP_B : CPTX_GEMM_MAP_A],
		         .row = of_b ? w->n0 : w->m0,
		         .z = tma_gemm_z_of(k, p->t, w, &w->in.of[of_b]),
		         .sharers = or_one(of_b ? o->cluster_m : o->cluster_n),
		         .parts = or_one(p->t->parts[of_b]) };

	x.bytes = cptx_imm(x.parts * p->operand[of_b].bytes);
	if (x.sharers > 1)
		x.mask = mask;
	if (p->t->maps & MAP(CPTX_GEMM_MAP_LAST_A))
		leave_out_rows(k, p, &x);
	if (of_b && p->t->pair) /* half of B each */
		x.row = cptx_mad(k, cptx_as(w->in_pair, CPTX_S32), p->t->b.rows, x.row, .mode = CPTX_LO);
	if (x.parts > 1)
		x.row = cptx_mad(k, cptx_as(w->tile_rank, CPTX_S32), rows, x.row, .mode = CPTX_LO);
	return x;
}

/* The CTAs that get what this one loads of an operand that tiles share: those at its place in all tiles of the cluster. */
static cptx_val sharers(cptx_kernel *k, const tma_gemm_producer *p)
{
	const uint32_t all = (1u << p->t->cluster) - 1;

	if (!p->t->pair || p->t->cluster == 2)
		return cptx_imm(all);
	return cptx_cvt(k, cptx_shl(k, cptx_mov(k, all & 0x5555, .type = CPTX_U32), p->w->in_pair), .dtype = CPTX_U16);
}

static void load_operand(cptx_kernel *k, const tma_gemm_producer *p, const cptx_pipe_at *at, const source *x, cptx_val k0,
                         cptx_val full)
{
	const bool along_k = p->t->o->experts == CPTX_GEMM_EXPERTS_K;
	cptx_val when = x->when;

	if (x->sharers != x->parts) {
		cptx_val turn = cptx_and(k, run_of(k, cptx_as(k0, CPTX_U32), p->t->bk), x->sharers - 1);
		cptx_val mine = cptx_setp(k, turn, p->w->rank, .cmp = CPTX_EQ);
		when = when.kind == CPTX_VAL_NONE ? mine : cptx_and(k, when, mine, .type = CPTX_PRED);
	}
	cptx_operand_load(k, &p->operand[x->of_b], at->stage, x->row, k0_of(k, p, x->of_b, k0), .barrier = full, .z = x->z,
	                  .mask = x->mask, .map = x->map, .ctas = p->t->pair ? 2 : 0, .when = when,
	                  .col_end = along_k ? p->w->expert.row_end : (cptx_val){ 0 });
}

/* Blocks of the rows where the tile begins, and of K from k0 on. */
static void load_scales(cptx_kernel *k, const tma_gemm_producer *p, const cptx_pipe_at *at, const source *x, cptx_val k0,
                        cptx_val full)
{
	const tma_gemm *t = p->t;
	const tma_gemm_work *w = p->w;
	const cptx_val block = run_of(k, k0, t->scales.vec * CPTX_SCALE_FACTORS / or_one(t->packed));
	cptx_val to = { 0 };

	for (int b = 0; b < 2; b++) {
		const tma_gemm_ring *r = &p->scales[b];
		if (!b || r->smem.id != p->scales[0].smem.id)
			to = cptx_mad(k, at->stage, r->apart, r->smem, .mode = CPTX_LO);
		cptx_val c[4] = { cptx_mov(k, 0, .type = CPTX_S32), block, cptx_shr(k, b ? w->n0 : w->m0, 7), x[b].z };
		cptx_cp_async_bulk_tensor_load(
			k, cptx_offset(to, r->at), w->in.map[b ? CPTX_GEMM_MAP_SCALE_B : CPTX_GEMM_MAP_SCALE_A],
			cptx_pack(k, t->o->batched ? 4 : 3, c), full, .dim = t->o->batched ? CPTX_DIM_4D : CPTX_DIM_3D,
			.dst = p->clusters ? CPTX_SHARED_CLUSTER : CPTX_SHARED_CTA, .cta_group = t->pair ? CPTX_CTA_GROUP_2 : 0);
	}
}

/* f32 factors of the columns of B, behind those of A. */
static void load_col_scales(cptx_kernel *k, const tma_gemm_producer *p, const cptx_pipe_at *at, cptx_val k0, cptx_val full)
{
	const tma_gemm *t = p->t;
	const tma_gemm_work *w = p->w;
	const tma_gemm_ring *r = &p->scales[0];
	const bool some = tma_gemm_has_matrices(t, CPTX_GEMM_MAP_B);
	const cptx_val to = cptx_mad(k, at->stage, r->apart, r->smem, .mode = CPTX_LO);
	const cptx_val c[3] = { w->n0, run_of(k, k0, t->bk), tma_gemm_z_of(k, t, w, &w->in.of[1]) };

	cptx_cp_async_bulk_tensor_load(k, cptx_offset(to, r->at + tma_gemm_row_scale_bytes(t)), w->in.map[CPTX_GEMM_MAP_SCALE_B],
	                               cptx_pack(k, some ? 3 : 2, c), full, .dim = some ? CPTX_DIM_3D : CPTX_DIM_2D,
	                               .dst = p->clusters ? CPTX_SHARED_CLUSTER : CPTX_SHARED_CTA);
}

/* f32 factors of the rows of A, for 128 along K; from a multiple of 16 bytes on, since a tile of an expert begins anywhere.
 */
static void load_row_scales(cptx_kernel *k, const tma_gemm_producer *p, const cptx_pipe_at *at, cptx_val k0, cptx_val full)
{
	const tma_gemm *t = p->t;
	const tma_gemm_work *w = p->w;
	const tma_gemm_ring *r = &p->scales[0];
	const cptx_val to = cptx_mad(k, at->stage, r->apart, r->smem, .mode = CPTX_LO);
	const cptx_val row = t->o->experts ? cptx_as(cptx_and(k, cptx_as(w->m0, CPTX_U32), ~3), CPTX_S32) : w->m0;
	const cptx_val block = run_of(k, k0, t->bk), c[3] = { row, block, tma_gemm_z_of(k, t, w, &w->in.of[0]) };

	cptx_cp_async_bulk_tensor_load(
		k, cptx_offset(to, r->at), w->in.map[CPTX_GEMM_MAP_SCALE_A], cptx_pack(k, t->o->batched ? 3 : 2, c), full,
		.dim = t->o->batched ? CPTX_DIM_3D : CPTX_DIM_2D, .dst = p->clusters ? CPTX_SHARED_CLUSTER : CPTX_SHARED_CTA);
}

/* Factors of weights, and their zero points behind them, of the group that k0 is in. */
static void load_weight_scales(cptx_kernel *k, const tma_gemm_producer *p, const cptx_pipe_at *at, cptx_val k0,
                               cptx_val full)
{
	const tma_gemm *t = p->t;
	const tma_gemm_work *w = p->w;
	const tma_gemm_ring *r = &p->scales[0];
	const uint32_t each = t->o->scale_k, after = tma_gemm_weight_scale_bytes(t->weight_rows);
	const cptx_val to = cptx_mad(k, at->stage, r->apart, r->smem, .mode = CPTX_LO);
	cptx_val group = cptx_mov(k, 0, .type = CPTX_S32);

	if (each)
		group = each & (each - 1) ? cptx_div(k, k0, each) : run_of(k, k0, each);
	const cptx_val c[2] = { w->m0, group };
	for (uint32_t zeros = 0; zeros < (t->o->zeros ? 2u : 1u); zeros++)
		cptx_cp_async_bulk_tensor_load(k, cptx_offset(to, r->at + zeros * after),
		                               w->in.map[zeros ? CPTX_GEMM_MAP_SCALE_B : CPTX_GEMM_MAP_SCALE_A], cptx_pack(k, 2, c),
		                               full, .dim = CPTX_DIM_2D, .dst = p->clusters ? CPTX_SHARED_CLUSTER : CPTX_SHARED_CTA);
}

/* Copies a stage.  What the cluster shares goes first: others wait for it, too. */
static void load_stage(cptx_kernel *k, const tma_gemm_producer *p, const cptx_pipe_at *at, const source *x, cptx_val k0)
{
	const bool b_first = x[1].sharers > 1;
	const cptx_val full = cptx_pipe_full_of(k, at);

	load_operand(k, p, at, &x[b_first], k0, full);
	load_operand(k, p, at, &x[!b_first], k0, full);
	if (p->t->scales.vec)
		load_scales(k, p, at, x, k0, full);
	if (p->t->row_scales)
		load_row_scales(k, p, at, k0, full);
	if (p->t->col_scales)
		load_col_scales(k, p, at, k0, full);
	if (p->t->weight_rows)
		load_weight_scales(k, p, at, k0, full);
}

/* Bytes of a stage, of a pair those of both CTAs. */
static cptx_val stage_bytes(cptx_kernel *k, const tma_gemm *t, const source *x)
{
	const uint32_t scales = tma_gemm_all_scale_bytes(&t->scales) + 4 * (t->row_scales + t->col_scales) +
	                        2 * t->weight_rows * (t->o->zeros ? 2 : 1);

	if (x[0].bytes.kind == CPTX_VAL_INT)
		return cptx_imm((x[0].bytes.i + x[1].bytes.i + scales) * (t->pair ? 2 : 1));
	return cptx_add(k, x[0].bytes, x[1].bytes);
}

static void produce_tile(cptx_kernel *k, const tma_gemm_producer *p, cptx_pipe_at *at, cptx_val k0, cptx_val mask)
{
	const tma_gemm *t = p->t;
	tma_gemm_work *w = p->w;

	tma_gemm_locate(k, t, w, ~MAPS_OF_D);
	cptx_mov(k, tma_gemm_k_first(k, t, w), .into = k0);
	const cptx_val end = tma_gemm_k_end(k, t, w);
	source x[2];
	for (int b = 0; b < 2; b++)
		x[b] = source_of(k, p, b, mask);
	const cptx_val bytes = stage_bytes(k, t, x);
	CPTX_FOR(k, k0, end, t->bk / or_one(t->packed)) {
		cptx_timeline_stamp(k, p->line, CPTX_GEMM_WAIT_ROOM);
		cptx_pipe_wait_empty(k, p->pipe, at);
		cptx_timeline_stamp(k, p->line, CPTX_GEMM_LOAD);
		if (t->pair) {
			CPTX_IF(k, cptx_setp(k, w->in_pair, 0, .cmp = CPTX_EQ))
				cptx_pipe_expect(k, p->pipe, at, bytes);
		} else {
			cptx_pipe_expect(k, p->pipe, at, bytes);
		}
		load_stage(k, p, at, x, k0);
		cptx_pipe_next(k, p->pipe, at);
	}
}

void tma_gemm_wait_for_stage(cptx_kernel *k, const cptx_pipe *pipe, const cptx_pipe_at *at, const cptx_timeline *line,
                             cptx_val stamps)
{
	cptx_timeline_stamp_when(k, line, CPTX_GEMM_WAIT_DATA, stamps);
	cptx_pipe_wait_full(k, pipe, at);
	cptx_timeline_stamp_when(k, line, CPTX_GEMM_MULTIPLY, stamps);
}

cptx_pipe_at tma_gemm_produce(cptx_kernel *k, tma_gemm_producer *p)
{
	tma_gemm_work *w = p->w;

	if (p->t->o->gather)
		return tma_gemm_gather(k, p);
	if (!p->operand[0].bytes)
		tma_gemm_producer_operands(k, p);
	cptx_pipe_at at = p->t->pair ? cptx_pipe_producer_of(k, p->pipe, w->leader) : cptx_pipe_producer(k, p->pipe);
	const cptx_val k0 = cptx_reg(k, CPTX_S32), mask = sharers(k, p);

	CPTX_FOR(k, w->at, w->end, w->step)
		produce_tile(k, p, &at, k0, mask);
	cptx_timeline_stamp(k, p->line, CPTX_TIMELINE_END);
	return at;
}

/* ---- by cp.async ---- */

/* A thread's columns of A and of B are the same, where its rows are of one span in both, and so is the number of bytes to
 * the end of K, which one register holds. */
static bool ends_together(const tma_gemm_producer *p)
{
	return !p->operand[0].opt.tile.elem.mn_major && !p->operand[1].opt.tile.elem.mn_major &&
	       p->operand[0].span_step == p->operand[1].span_step && !p->t->o->sparse;
}

/* A or B of the problem, or of the matrix of a batch, that the copies are of. */
static void find_matrix(cptx_kernel *k, tma_gemm_producer *p, int b)
{
	const bool of_b = (b == 1) != p->t->o->swap;

	if (p->t->o->grouped || tma_gemm_has_matrices(p->t, of_b ? CPTX_GEMM_MAP_B : CPTX_GEMM_MAP_A))
		cptx_operand_rebase(k, &p->operand[b], tma_gemm_matrix(k, p->t, p->w, b ? CPTX_GEMM_MAP_B : CPTX_GEMM_MAP_A));
}

static void seek_tile(cptx_kernel *k, tma_gemm_producer *p)
{
	const bool shared = p->t->o->stream_k;
	tma_gemm_work *w = p->w;

	tma_gemm_locate(k, p->t, w, 0);
	for (int b = 0; b < 2; b++)
		find_matrix(k, p, b);
	if (p->t->o->gather)
		cptx_mov(k, cptx_as(w->expert.row_end, CPTX_U32), .into = p->rows);
	cptx_val k0 = shared ? cptx_mul(k, w->k_first, p->t->bk, .mode = CPTX_LO) : cptx_imm(0);
	for (int b = 0; b < 2; b++)
		cptx_operand_seek(k, &p->operand[b], &p->from[b], b ? w->n0 : w->m0, k0_of(k, p, b, k0));
	cptx_mov(k, shared ? cptx_sub(k, w->k_end, w->k_first) : w->k_end, .into = p->left);
}

/* Behind the last tile, copies are of no bytes: zeros. */
static void seek_next(cptx_kernel *k, tma_gemm_producer *p)
{
	for (int b = 0; b < 2; b++) {
		cptx_mov(k, 0, .into = p->from[b].bytes);
		if (p->from[b].rows.kind == CPTX_VAL_REG)
			cptx_mov(k, 0, .into = p->from[b].rows);
	}
	CPTX_IF(k, cptx_setp(k, p->w->at, p->w->end, .cmp = CPTX_LT))
		seek_tile(k, p);
}

/* Copies of B follow those of A. */
void tma_gemm_copy(cptx_kernel *k, const tma_gemm_producer *p, uint32_t part, uint32_t parts)
{
	const uint32_t all = p->operand[0].copies + p->operand[1].copies;
	uint32_t from = all * part / parts, end = all * (part + 1) / parts;

	for (int b = 0; b < 2; b++) {
		const uint32_t n = p->operand[b].copies, last = MIN(end, n);
		if (from < last)
			cptx_operand_load_from(k, &p->operand[b], 0, &p->from[b], .first = from, .copies = last - from,
			                       .at = p->to_bytes);
		from = MAX(from, n) - n, end = MAX(end, n) - n;
	}
}

void tma_gemm_copied(cptx_kernel *k, tma_gemm_producer *p)
{
	cptx_pipe_filled(k, p->pipe, &p->to);
	cptx_pipe_next(k, p->pipe, &p->to);
	tma_gemm_next_offset(k, p->to_bytes, p->ring[0].apart, p->t->o->stages);
}

/* The branch to the next tile stands at the end of a K tile: elsewhere it would split the block that ptxas schedules. */
void tma_gemm_copies_advance(cptx_kernel *k, tma_gemm_producer *p)
{
	for (int b = 0; b < 2; b++) {
		cptx_operand_src from = p->from[b];
		if (b && ends_together(p))
			from.bytes = (cptx_val){ 0 };
		cptx_operand_advance(k, &p->operand[b], &from, 0, b ? p->t->bk : (uint32_t)tma_gemm_along_a(p->t->o, p->t->bk));
	}
	cptx_sub(k, p->left, 1, .into = p->left);
	CPTX_IF(k, cptx_setp(k, p->left, 0, .cmp = CPTX_EQ)) {
		cptx_add(k, p->w->at, p->w->step, .into = p->w->at);
		seek_next(k, p);
	}
}

void tma_gemm_copies_begin(cptx_kernel *k, tma_gemm_producer *p)
{
	tma_gemm_params *in = &p->w->p;
	cptx_val *const unknown[] = { &in->M, &in->N, &in->K, &in->map[CPTX_GEMM_MAP_A], &in->map[CPTX_GEMM_MAP_B] };

	tma_gemm_work_begin(k, p->t, p->w);
	for (size_t i = 0; p->t->o->grouped && i < ARRAY_LEN(unknown); i++) /* until the first problem is found */
		cptx_mov(k, 0, .into = *unknown[i]);
	tma_gemm_producer_operands(k, p);
	for (int b = 0; b < 2; b++)
		p->from[b] = cptx_operand_source(k, &p->operand[b], 0, 0);
	if (ends_together(p))
		p->from[1].bytes = p->from[0].bytes;
	p->left = cptx_var(k, CPTX_U32, 0);
	seek_next(k, p);
	p->to = cptx_pipe_producer(k, p->pipe);
	p->to_bytes = cptx_var(k, CPTX_U32, 0);
	for (uint32_t s = 0; s + 1 < p->t->o->stages; s++) {
		tma_gemm_copy(k, p, 0, 1);
		tma_gemm_copied(k, p);
		tma_gemm_copies_advance(k, p);
	}
}
