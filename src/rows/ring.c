/* SPDX-License-Identifier: MIT */
/*
 * Rows in shared memory: bulk copies bring them there, .stages rows ahead of the one that is worked on, so that memory has
 * requests to serve while threads reduce and store.
 *
 * A thread of the last warp copies, or the first warp where the CTA works on several rows at once, a lane for each of them.
 * Its warp also works on rows.  It asks for a later row as soon as all warps have read a stage, for which it waits: where
 * registers keep the row that is behind the first reduction, so that the next row comes while this one is written.
 *
 * With .chunks a stage is a turn of a row, not a row: the first pass waits for one after another, the one that writes the
 * row is the last that reads them, and asks for later ones behind each.  So a row may fill nearly all of shared memory, and
 * the next one comes while this one is written.
 */
#include "rows/core.h"

#include <cptx/cptx.h>

static uint32_t part_bytes(const cptx_rows_row *r, unsigned operand)
{
	return r->s.part * rows_bytes(rows_type_of(r->o, (enum cptx_rows_operand)operand));
}

/* Columns of a row that a stage holds. */
static uint32_t stage_columns(const rows_shape *s) { return s->flows ? s->turn : s->part; }

static uint32_t stages_of(const cptx_rows_opt *o, const rows_shape *s) { return s->flows ? o->chunks : o->stages; }

uint32_t rows_stage_bytes(const cptx_rows_opt *o, const rows_shape *s)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(s->copied, i))
			bytes += s->rows * stage_columns(s) * rows_bytes(rows_type_of(o, (enum cptx_rows_operand)i));
	return (bytes + ROWS_STAGE_ALIGN - 1) / ROWS_STAGE_ALIGN * ROWS_STAGE_ALIGN;
}

uint64_t rows_smem(const cptx_rows_opt *o, const rows_shape *s)
{
	uint64_t bytes = (uint64_t)rows_stage_bytes(o, s) * stages_of(o, s);

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(s->shared_vectors, i))
			bytes += (uint64_t)s->part * rows_bytes(rows_type_of(o, (enum cptx_rows_operand)i));
	return s->ring ? bytes : 0;
}

/* Bytes from the first stage to a vector, or from a stage to an operand. */
static uint32_t offset_of(const cptx_rows_row *r, unsigned operand)
{
	const bool vector = rows_has(r->s.shared_vectors, operand);
	const uint32_t columns = vector ? r->s.part : stage_columns(&r->s) * r->s.rows;
	uint32_t bytes = vector ? rows_stage_bytes(r->o, &r->s) * stages_of(r->o, &r->s) : 0;

	for (unsigned i = 0; i < operand; i++)
		if (rows_has(vector ? r->s.shared_vectors : r->s.copied, i))
			bytes += columns * rows_bytes(rows_type_of(r->o, (enum cptx_rows_operand)i));
	return bytes;
}

cptx_val rows_ring_address(const cptx_rows_row *r, unsigned operand)
{
	cptx_kernel *k = r->k;
	const uint32_t offset = offset_of(r, operand);

	if (rows_has(r->s.shared_vectors, operand))
		return cptx_add(k, r->ring.at, offset);
	if (r->s.rows == 1)
		return cptx_add(k, r->ring.stage, offset);
	return cptx_add(k, cptx_mad(k, r->group, part_bytes(r, operand), r->ring.stage, .mode = CPTX_LO), offset);
}

/* Bytes of the CTA's columns in a row of an operand. */
static cptx_val bytes_here(const cptx_rows_row *r, unsigned operand)
{
	if (rows_none(r->count))
		return cptx_imm(part_bytes(r, operand));
	return cptx_mul(r->k, r->count, rows_bytes(rows_type_of(r->o, (enum cptx_rows_operand)operand)), .mode = CPTX_LO);
}

/* From the CTA's columns in a row of an operand, from column `first` of these on, to `to`, a shared address. */
static void copy(const cptx_rows_row *r, unsigned operand, cptx_val row, uint32_t first, cptx_val bytes, cptx_val to,
                 cptx_val bar)
{
	cptx_kernel *k = r->k;
	const uint32_t size = rows_bytes(rows_type_of(r->o, (enum cptx_rows_operand)operand));
	cptx_val from = r->at[operand];

	if (rows_operands[operand].kind == ROWS_MATRIX)
		from = cptx_add(k, from, cptx_mul_wide(k, row, r->stride[operand]));
	if (!rows_none(r->first))
		from = cptx_add(k, from, cptx_mul_wide(k, r->first, size));
	if (first)
		from = cptx_add(k, from, (int64_t)first * size);
	/* L2 need not keep it.  Beside sums of columns that is slower, as was seen. */
	const bool once = rows_operands[operand].kind == ROWS_MATRIX && !r->s.sums;
	cptx_cp_async_bulk_load(k, to, from, bytes, bar, .dst = CPTX_SHARED_CLUSTER, .l2hint = once,
	                        .policy = once ? r->ring.policy : CPTX_NONE_);
}

/* Bytes of one row of all operands of a set, in this CTA. */
static cptx_val bytes_of(const cptx_rows_row *r, uint32_t set)
{
	uint32_t size = 0;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		size += rows_has(set, i) ? rows_bytes(rows_type_of(r->o, (enum cptx_rows_operand)i)) : 0;
	if (rows_none(r->count))
		return cptx_imm(r->s.part * size);
	return cptx_mul(r->k, r->count, size, .mode = CPTX_LO);
}

/* All operands of a row into the stage `to` stands at; group: of the CTA's threads, NONE: there is one. */
static void copy_row(cptx_rows_row *r, cptx_val row, cptx_val group)
{
	cptx_kernel *k = r->k;
	cptx_val stage = cptx_mad(k, r->ring.to.stage, rows_stage_bytes(r->o, &r->s), r->ring.at, .mode = CPTX_LO);

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		if (!rows_has(r->s.copied, i))
			continue;
		cptx_val to = cptx_add(k, stage, offset_of(r, i));
		if (!rows_none(group))
			to = cptx_mad(k, group, part_bytes(r, i), to, .mode = CPTX_LO);
		copy(r, i, row, 0, bytes_here(r, i), to, cptx_pipe_full(&r->ring.to));
	}
}

/*
 * Who copies.  All threads of the warp wait for a free stage, and then one copies: while one waits alone, the others pass
 * the place where they should meet it (ptxas 13.0 yields in such a loop), and overwrite uniform registers that it needs
 * behind the wait.  The shuffle tells ptxas that all threads of a warp have the same number.
 */
static void choose_warp(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;
	/* the first warp sends what a cluster reduces, and shall not wait */
	const uint32_t warp = r->s.rows > 1 ? 0 : r->o->threads / CPTX_WARP - 1;
	cptx_val tid = cptx_tid_x(k), mine = cptx_shfl_sync(k, cptx_shr(k, tid, 5), 0, CPTX_WARP - 1, -1, .mode = CPTX_IDX);

	r->ring.copies = cptx_setp(k, mine, warp, .cmp = CPTX_EQ);
	r->ring.leads = cptx_setp(k, tid, warp * CPTX_WARP, .cmp = CPTX_EQ);
}

/* The CTA's next rows into the next stage, where there are any: a thread copies one, the lanes of a warp several. */
static void fill(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;
	rows_ring *g = &r->ring;
	cptx_val tid = cptx_tid_x(k), is_there = cptx_setp(k, g->next, r->rows, .cmp = CPTX_LT);

	CPTX_IF(k, cptx_and(k, g->copies, is_there)) {
		cptx_pipe_wait_empty(k, &g->pipe, &g->to);
		if (r->s.rows == 1) {
			CPTX_IF(k, g->leads) {
				cptx_pipe_expect(k, &g->pipe, &g->to, bytes_of(r, r->s.copied));
				copy_row(r, g->next, CPTX_NONE_);
			}
		} else {
			cptx_val row = cptx_add(k, g->next, tid), left = cptx_sub(k, r->rows, g->next);
			cptx_val n = cptx_min(k, left, r->s.rows), bytes = cptx_mul(k, n, bytes_of(r, r->s.copied), .mode = CPTX_LO);
			CPTX_IF(k, g->leads)
				cptx_pipe_expect(k, &g->pipe, &g->to, bytes);
			cptx_bar_warp_sync(k, 0xffffffffu);
			CPTX_IF(k, cptx_setp(k, tid, n, .cmp = CPTX_LT)) {
				copy_row(r, row, tid);
			}
		}
		cptx_pipe_next(k, &g->pipe, &g->to);
	}
	cptx_add(k, g->next, r->step, .into = g->next);
}

/* A chunk into the next stage, where it is of a row that there is: `number` chunks behind the first one of r->row. */
static void fill_chunk(cptx_rows_row *r, uint32_t number)
{
	cptx_kernel *k = r->k;
	rows_ring *g = &r->ring;
	if (r->o->rows_each == 1 && number >= r->s.turns)
		return;
	const uint32_t rows = number / r->s.turns, first = number % r->s.turns * r->s.turn;
	const uint32_t columns = MIN(r->s.turn, r->s.part - first), stage_bytes = rows_stage_bytes(r->o, &r->s);
	cptx_val row = rows ? cptx_add(k, r->row, cptx_mul(k, r->step, rows, .mode = CPTX_LO)) : r->row;
	uint32_t all = 0;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		all += rows_has(r->s.copied, i) ? columns * rows_bytes(rows_type_of(r->o, (enum cptx_rows_operand)i)) : 0;
	CPTX_IF(k, cptx_and(k, g->copies, cptx_setp(k, row, r->rows, .cmp = CPTX_LT))) {
		cptx_pipe_wait_empty(k, &g->pipe, &g->to);
		CPTX_IF(k, g->leads) {
			cptx_pipe_expect(k, &g->pipe, &g->to, all);
			cptx_val stage = cptx_mad(k, g->to.stage, stage_bytes, g->at, .mode = CPTX_LO);
			for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
				if (rows_has(r->s.copied, i))
					copy(r, i, row, first, cptx_imm(columns * rows_bytes(rows_type_of(r->o, (enum cptx_rows_operand)i))),
					     cptx_add(k, stage, offset_of(r, i)), cptx_pipe_full(&g->to));
		}
		cptx_pipe_next(k, &g->pipe, &g->to);
	}
}

/* The vectors that all rows share, once. */
static void fill_vectors(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;
	rows_ring *g = &r->ring;

	CPTX_IF(k, cptx_setp(k, cptx_tid_x(k), 0, .cmp = CPTX_EQ)) {
		cptx_pipe_at to = cptx_pipe_producer(k, &g->vectors);
		cptx_pipe_expect(k, &g->vectors, &to, bytes_of(r, r->s.shared_vectors));
		for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
			if (rows_has(r->s.shared_vectors, i)) {
				cptx_val place = rows_ring_address(r, i), bytes = bytes_here(r, i);
				copy(r, i, CPTX_NONE_, 0, bytes, place, cptx_pipe_full(&to));
			}
	}
}

/*
 * CTAs of one long row each begin together, and would load together, reduce together while memory stands still, and store
 * together.  The first one of each multiprocessor begins a little later than the one before, so that some load while others
 * store.
 */
static void stagger(cptx_rows_row *r)
{
	enum { EACH = 30 /* ns, of 15 to 45 as good as the others on an H200 */, WAVES = 4 /* of fewer it would be a loss */ };
	cptx_kernel *k = r->k;
	cptx_val cta = cptx_ctaid_x(k), sms = cptx_nsmid(k), is_first = cptx_setp(k, cta, sms, .cmp = CPTX_LT);
	cptx_val least = cptx_mul(k, sms, WAVES, .mode = CPTX_LO);

	CPTX_IF(k, cptx_and(k, is_first, cptx_setp(k, cptx_nctaid_x(k), least, .cmp = CPTX_GE))) {
		cptx_nanosleep(k, cptx_mul(k, cta, EACH, .mode = CPTX_LO));
	}
}

void rows_ring_begin(cptx_rows_row *r, cptx_val first)
{
	cptx_kernel *k = r->k;
	rows_ring *g = &r->ring;
	const uint32_t warps = r->o->threads / CPTX_WARP;
	cptx_val one = cptx_setp(k, cptx_tid_x(k), 0, .cmp = CPTX_EQ);

	if (r->s.flows && r->o->rows_each == 1 && !r->s.cluster)
		stagger(r);
	g->at =
		cptx_mov(k, cptx_shared_dyn(k, (uint32_t)rows_smem(r->o, &r->s), ROWS_STAGE_ALIGN, "rows_stages"), .type = CPTX_U32);
	g->policy = cptx_createpolicy_fractional(k, .primary = CPTX_L2_EVICT_FIRST);
	cptx_pipe_new(k, &g->pipe, .stages = stages_of(r->o, &r->s), .consumers = warps);
	if (r->s.shared_vectors) {
		cptx_pipe_new(k, &g->vectors, .stages = 1);
		cptx_pipe_prepare(k, &g->vectors, one);
	}
	cptx_pipe_init(k, &g->pipe, one);
	g->to = cptx_pipe_producer(k, &g->pipe), g->from = cptx_pipe_consumer(k, &g->pipe);
	g->next = cptx_var(k, CPTX_U32, first), g->stage = cptx_reg(k, CPTX_U32);
	choose_warp(r);
	for (uint32_t i = 0; i < stages_of(r->o, &r->s); i++)
		if (r->s.flows)
			fill_chunk(r, i);
		else
			fill(r);
	if (r->s.flows) {
		g->cursor = g->from;
		g->cursor.stage = cptx_reg(k, CPTX_U32), g->cursor.parity = cptx_reg(k, CPTX_U32);
		g->cursor.barrier = cptx_reg(k, CPTX_U32);
	}
	if (!r->s.shared_vectors)
		return;
	fill_vectors(r);
	cptx_pipe_at from = cptx_pipe_consumer(k, &g->vectors);
	cptx_pipe_wait_full(k, &g->vectors, &from);
}

void rows_ring_wait(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;
	rows_ring *g = &r->ring;

	g->released = g->there = false;
	if (r->s.flows)
		return;
	cptx_mad(k, g->from.stage, rows_stage_bytes(r->o, &r->s), g->at, .mode = CPTX_LO, .into = g->stage);
	cptx_pipe_wait_full(k, &g->pipe, &g->from);
}

/* All lanes of the warp have read the stage.  mbarrier.arrive does not wait for loads, and ptxas 13.0 puts it in front of
 * what takes their values: so it stands behind stores of results, a reduction or a fence. */
static void release(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;

	cptx_bar_warp_sync(k, 0xffffffffu);
	cptx_val lane = cptx_and(k, cptx_tid_x(k), CPTX_WARP - 1);
	cptx_pipe_release(k, &r->ring.pipe, &r->ring.from, cptx_setp(k, lane, 0, .cmp = CPTX_EQ));
}

/* Whether the pass is the last one that reads chunks. */
static bool leaves(const cptx_rows_row *r) { return rows_count(r->pass.writes, ROWS_MATRIX) && r->pass.reads & r->s.copied; }

/* Whether the pass is done with the stage of this turn: because it is the last one, or because registers keep it. */
static bool lets_go(const cptx_rows_row *r) { return leaves(r) || r->turn_at < r->s.held; }

void rows_ring_turn_begin(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;
	rows_ring *g = &r->ring;
	const cptx_pipe_at *here = lets_go(r) ? &g->from : &g->cursor;

	if (g->there && r->turn_at < r->s.held)
		return;
	if (!leaves(r) && r->turn_at == r->s.held) {
		cptx_mov(k, g->from.stage, .into = g->cursor.stage);
		cptx_mov(k, g->from.parity, .into = g->cursor.parity);
		cptx_mov(k, g->from.barrier, .into = g->cursor.barrier);
	}
	cptx_mad(k, here->stage, rows_stage_bytes(r->o, &r->s), g->at, .mode = CPTX_LO, .into = g->stage);
	if (!g->there)
		cptx_pipe_wait_full(k, &g->pipe, here);
}

/* The chunk that is asked for takes the place of the one before, which all warps have read or are about to: the one that
 * asks waits for the others. */
void rows_ring_turn_end(cptx_rows_row *r)
{
	rows_ring *g = &r->ring;
	const uint32_t first = g->there ? r->s.held : 0; /* of those that this pass reads */

	if (r->turn_at < first)
		return;
	if (!lets_go(r)) {
		cptx_pipe_next(r->k, &g->pipe, &g->cursor);
		return;
	}
	if (!leaves(r))
		cptx_fence_proxy(r->k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	release(r);
	cptx_pipe_next(r->k, &g->pipe, &g->from);
	if (!leaves(r))
		fill_chunk(r, r->turn_at + r->o->chunks);
	else if (r->turn_at > first)
		fill_chunk(r, r->turn_at - 1 + r->o->chunks);
}

void rows_ring_pass_end(cptx_rows_row *r)
{
	r->ring.there = true;
	if (!leaves(r))
		return;
	fill_chunk(r, r->s.turns - 1 + r->o->chunks);
	r->ring.released = true;
}

/* Chunks of a row that no pass has let go. */
static void release_chunks(cptx_rows_row *r)
{
	rows_ring *g = &r->ring;

	for (uint32_t i = g->there ? r->s.held : 0; i < r->s.turns; i++) {
		if (!g->there)
			cptx_pipe_wait_full(r->k, &g->pipe, &g->from);
		release(r);
		cptx_pipe_next(r->k, &g->pipe, &g->from);
		fill_chunk(r, i + r->o->chunks);
	}
}

static void release_row(cptx_rows_row *r)
{
	release(r);
	fill(r);
	r->ring.released = true;
}

void rows_ring_reduced(cptx_rows_row *r)
{
	if (r->s.ring && r->s.keeps && !r->ring.released && !(r->s.copied & ~r->loaded))
		release_row(r);
}

void rows_ring_next(cptx_rows_row *r)
{
	if (r->s.flows) {
		if (!r->ring.released)
			release_chunks(r);
		return;
	}
	if (!r->ring.released)
		release_row(r);
	cptx_pipe_next(r->k, &r->ring.pipe, &r->ring.from);
}
