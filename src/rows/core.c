/* SPDX-License-Identifier: MIT */
/*
 * The frame around a body: which rows and columns a thread has, passes over them, reductions.
 *
 * A row of registers is one cptx_row for each operand.  A row in memory is a loop over turns: the same cptx_rows, with a
 * count that changes from turn to turn, are loaded and stored in each.  A row in shared memory that registers do not keep
 * has turns, too, but these are unrolled, so that sums of columns stand in registers.  Threads of a warp that hold several
 * rows, the last of which may not exist, go on with a count of 0, so that all take part in the shuffles.
 */
#include "base/options.h"
#include "rows/core.h"

#include <cptx/cptx.h>

const cptx_rows_opt *cptx_rows_options(const cptx_rows_row *r) { return r ? r->o : NULL; }
bool cptx_rows_keeps(const cptx_rows_row *r) { return r && r->s.keeps; }

/* ---- where the CTA's rows and columns are ---- */

static cptx_val quotient(cptx_kernel *k, cptx_val v, uint32_t n)
{
	uint32_t log = 0;

	if (n == 1)
		return v;
	if (n & (n - 1))
		return cptx_div(k, v, n);
	while (1u << log < n)
		log++;
	return cptx_shr(k, v, log);
}

void rows_declare(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;
	cptx_param_row table[ROWS_PARAMS];
	const size_t n = rows_table(&r->s, table);

	cptx_params_declare(k, &r->params, table, n);
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		if (!rows_has(r->s.reads | r->s.writes, i) || rows_has(R_SUMS & r->s.writes, i))
			continue;
		r->at[i] = cptx_params_get(k, &r->params, rows_operands[i].name);
		if (rows_operands[i].kind == ROWS_MATRIX)
			r->stride[i] = cptx_params_get(k, &r->params, rows_operands[i].stride_name);
	}
	r->rows = cptx_params_get(k, &r->params, "row_count");
	if (r->s.parts)
		r->workspace = cptx_params_get(k, &r->params, "workspace");
}

/* Which rows and columns are this thread's. */
static void place(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;
	const cptx_rows_opt *o = r->o;
	cptx_val cta = cptx_ctaid_x(k), tid = cptx_tid_x(k);

	r->unit = quotient(k, cta, o->split);
	r->thread = tid;
	if (r->s.rows > 1) {
		r->group = quotient(k, tid, o->per_row);
		r->thread = cptx_and(k, tid, o->per_row - 1);
	}
	if (o->split > 1) {
		r->part = cptx_and(k, cta, o->split - 1);
		r->first = cptx_mul(k, r->part, r->s.part, .mode = CPTX_LO);
		if (!r->s.even)
			r->count = cptx_min(k, cptx_sub(k, o->n, r->first), r->s.part);
	}
}

/* The address of a row's part in an operand. */
static cptx_val begin_of(const cptx_rows_row *r, unsigned operand)
{
	cptx_kernel *k = r->k;
	const uint32_t size = rows_bytes(rows_type_of(r->o, (enum cptx_rows_operand)operand));
	cptx_val row = r->row, at = r->at[operand];

	if (rows_operands[operand].kind == ROWS_MATRIX) {
		if (operand == CPTX_ROWS_COS || operand == CPTX_ROWS_SIN)
			row = quotient(k, row, r->o->heads);
		at = cptx_add(k, at, cptx_mul_wide(k, row, r->stride[operand]));
	}
	return rows_none(r->first) ? at : cptx_add(k, at, cptx_mul_wide(k, r->first, size));
}

/* Partial sums of the columns, f32: of an operand those of all groups stand together. */
static cptx_val sums_of(const cptx_rows_row *r, unsigned operand)
{
	cptx_kernel *k = r->k;
	cptx_val at = cptx_params_get(k, &r->params, "workspace"), part = r->unit, all = r->units;

	if (r->s.rows > 1) {
		part = cptx_mad(k, r->unit, r->s.rows, r->group, .mode = CPTX_LO);
		all = cptx_mul(k, all, r->s.rows, .mode = CPTX_LO);
	}
	if (operand == CPTX_ROWS_DB && rows_has(r->s.writes, CPTX_ROWS_DW))
		part = cptx_add(k, part, all);
	at = cptx_add(k, at, cptx_mul_wide(k, part, r->s.sum_pitch * 4));
	return rows_none(r->first) ? at : cptx_add(k, at, cptx_mul_wide(k, r->first, 4));
}

static cptx_val columns_of_part(const cptx_rows_row *r) { return rows_none(r->count) ? cptx_imm(r->s.part) : r->count; }

/* A row of registers for so many columns in all threads. */
static void new_row(cptx_rows_row *r, cptx_row *row, uint32_t columns, cptx_val count)
{
	const bool varies = !rows_none(count);

	cptx_row_new(r->k, row, .type = r->o->in, .n = varies ? 0 : columns, .count = count, .most = varies ? columns : 0,
	             .whole = varies && r->o->n % r->s.each == 0, .threads = r->o->per_row, .thread = r->thread,
	             .align = rows_align_of(r->o));
}

/* The rows of registers that the others are like.  Their length is a register where it may differ: in the last CTA of a row,
 * for a row that does not exist, from turn to turn. */
static void shape(cptx_rows_row *r)
{
	const rows_shape *s = &r->s;
	cptx_val count = r->count;

	if (!s->resident || !rows_none(r->there) || (s->turns > 1 && !rows_none(count)))
		count = r->here = cptx_var(r->k, CPTX_U32, 0);
	new_row(r, &r->base, s->turn, count);
	if (s->turns > 1 && s->sums)
		new_row(r, &r->sums, s->part, r->count);
}

/* Registers of an operand.  Sums of columns that stay in registers have all columns, what else has turns those of one. */
static cptx_row *row_of(cptx_rows_row *r, cptx_site at, unsigned operand)
{
	if (!rows_has(r->made, operand)) {
		const bool sums = r->s.turns > 1 && rows_has(R_SUMS & r->s.writes, operand);
		cptx_row_like_(r->k, at, sums ? &r->sums : &r->base, &r->have[operand]);
		r->made |= 1u << operand;
	}
	return &r->have[operand];
}

/* Of chunks: registers that keep an operand's turn, or those of all turns that none keep. */
static void take_row(cptx_rows_row *r, cptx_site at, unsigned operand)
{
	const uint32_t turn = r->turn_at < r->s.held ? r->turn_at : ROWS_MOST_HELD;

	if (!rows_has(r->made_kept[turn], operand))
		cptx_row_like_(r->k, at, &r->base, &r->kept[turn][operand]);
	r->made_kept[turn] |= 1u << operand, r->made |= 1u << operand;
	r->have[operand] = r->kept[turn][operand];
}

/* ---- passes ---- */

static enum cptx_type type_here(const cptx_rows_row *r, unsigned operand)
{
	return rows_has(R_SUMS & r->s.writes, operand) ? CPTX_F32 : rows_type_of(r->o, (enum cptx_rows_operand)operand);
}

/* Where the turn's columns of an operand begin: a global address, or `shared` of a stage. */
static cptx_val here_of(const cptx_rows_row *r, cptx_site at, unsigned operand, bool shared)
{
	cptx_kernel *k = r->k;
	const uint32_t size = rows_bytes(type_here(r, operand));
	const bool sums = rows_has(R_SUMS & r->s.writes, operand);
	cptx_val begin = shared ? rows_ring_address(r, operand) : r->begin[operand];

	if (r->s.flows && rows_has(r->s.copied, operand))
		return begin;
	if (r->s.resident)
		return r->turn_at && !sums ? CALL(add, .a = begin, .b = cptx_imm((int64_t)r->turn_at * r->s.turn * size)) : begin;
	return CALL(add, .a = begin, .b = CALL(mul_wide, .a = r->turn, .b = cptx_imm(size)));
}

static void load(cptx_rows_row *r, cptx_site at, unsigned operand, float fill)
{
	const enum cptx_type type = type_here(r, operand);
	const bool vector = rows_operands[operand].kind == ROWS_VECTOR, sums = rows_has(R_SUMS & r->s.writes, operand);
	const bool shared = rows_has(r->s.copied | r->s.shared_vectors, operand);
	const cptx_row *row = row_of(r, at, operand);

	cptx_row_load_(r->k, at, row, here_of(r, at, operand, shared),
	               CPTX_OPT(cptx_row_access, .fill = vector ? 0 : fill, .type = type, .align = vector ? r->s.each : 0,
	                        .cop = vector || !r->s.resident || shared ? (enum cptx_mod)0 : CPTX_CS,
	                        .nc = vector && !sums && !shared, .shared = shared));
}

static void store(cptx_rows_row *r, cptx_site at, unsigned operand)
{
	const bool sums = rows_has(R_SUMS & r->s.writes, operand);

	if (rows_packed(r->o, operand)) {
		rows_store_packed(r, operand);
		return;
	}
	cptx_row_store_(r->k, at, &r->have[operand], here_of(r, at, operand, false),
	                CPTX_OPT(cptx_row_access, .type = type_here(r, operand), .align = sums ? r->s.each : 0,
	                         .cop = sums ? (enum cptx_mod)0 : CPTX_CS));
}

/* Begins the loop over turns of rows in memory. */
static void begin_turns(cptx_rows_row *r, cptx_site at)
{
	cptx_kernel *k = r->k;
	cptx_val end = columns_of_part(r);

	r->turn = cptx_var_(k, at, CPTX_U32, cptx_imm(0));
	cptx_for_begin_(k, at, r->turn, end, cptx_imm(r->s.turn));
	CALL(min, .a = CALL(sub, .a = end, .b = r->turn), .b = cptx_imm(r->s.turn), .type = CPTX_U32, .into = r->here);
}

/* The element where the pass stands, among an operand's registers. */
static cptx_val element_here(const cptx_rows_row *r, unsigned operand)
{
	const bool sums = rows_has(R_SUMS & r->s.writes, operand);
	const uint32_t before = sums ? r->turn_at * rows_elements(r->o, &r->s) : 0;

	return cptx_elem(r->have[operand].v, before + r->it.i);
}

/* The elements that the pass reads, of the element where it stands; what it writes is to be given. */
static void show(cptx_rows_row *r, cptx_rows_at *e)
{
	const uint32_t sums = r->pass.writes & R_SUMS;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		e->v[i] = rows_has(r->pass.reads | sums, i) ? element_here(r, i) : (cptx_val){ 0 };
}

/* What has turns has so many columns in this one. */
static void set_columns(cptx_rows_row *r, uint32_t n)
{
	const uint32_t vectors = (n + r->s.each - 1) / r->s.each, own = (vectors + r->o->per_row - 1) / r->o->per_row;
	const bool varies = !rows_none(r->here);

	r->base.vectors = own, r->base.opt.n = varies ? 0 : n;
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(r->made & ~(r->s.writes & R_SUMS), i))
			r->have[i].vectors = own, r->have[i].opt.n = r->base.opt.n;
}

/* Columns of an unrolled turn, in the part: fewer in the last one. */
static void set_turn(cptx_rows_row *r, cptx_site at, uint32_t turn)
{
	cptx_kernel *k = r->k;
	const rows_shape *s = &r->s;
	const uint32_t before = turn * s->turn, left = s->part - before, n = MIN(left, s->turn);

	r->turn_at = turn;
	for (unsigned i = 0; s->held && i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(s->copied, i))
			take_row(r, at, i);
	if (s->turns == 1)
		return;
	set_columns(r, n);
	if (rows_none(r->here))
		return;
	cptx_val all = columns_of_part(r);
	if (!rows_none(r->there)) /* none of a row that does not exist */
		all = CALL(selp, .a = all, .b = cptx_imm(0), .c = r->there, .type = CPTX_U32);
	cptx_val rest = CALL(sub, .a = CALL(max, .a = all, .b = cptx_imm(before), .type = CPTX_U32), .b = cptx_imm(before));
	CALL(min, .a = rest, .b = cptx_imm(s->turn), .type = CPTX_U32, .into = r->here);
}

static bool check_pass(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, const cptx_rows_pass *p)
{
	const uint32_t wrong = (p->reads & ~r->s.reads) | (p->writes & ~r->s.writes);

	if (r->open) {
		cptx_fail_(k, at, "a pass inside of another; passes over a row follow one another");
		return false;
	}
	if (r->s.flows && r->ring.released && p->reads & r->s.copied) {
		cptx_fail_(k, at,
		           "a pass that reads the row behind the one that wrote it, with whose chunks shared memory is done: "
		           ".chunks = 0");
		return false;
	}
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		if (rows_has(wrong, i))
			cptx_fail_(k, at, "the pass %s %s, which the kernel's options do not say: .reads, .writes, .with",
			           rows_has(p->reads & ~r->s.reads, i) ? "reads" : "writes", rows_operands[i].name);
		else if (rows_has(p->reads | p->writes, i) && rows_operands[i].kind == ROWS_SCALAR)
			cptx_fail_(k, at, "the pass names %s, of which a row has one: cptx_rows_get, cptx_rows_put",
			           rows_operands[i].name);
		else
			continue;
		return false;
	}
	return true;
}

static bool reads_chunks(const cptx_rows_row *r) { return r->s.flows && r->pass.reads & r->s.copied; }

/* What the pass reads of the turn and registers do not have yet. */
static void load_turn(cptx_rows_row *r, cptx_site at)
{
	const uint32_t sums = r->s.resident ? 0 : r->pass.writes & R_SUMS;
	const bool chunk = reads_chunks(r);

	if (chunk)
		rows_ring_turn_begin(r);
	const bool kept = chunk && r->turn_at < r->s.held;
	/* those that registers keep are loaded for all passes by the first one */
	const uint32_t now = (kept && !r->ring.there ? r->s.copied : 0) | r->pass.reads | sums;
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		if (!rows_has(now, i) || rows_has(r->loaded | (kept && r->ring.there ? r->s.copied : 0), i))
			continue;
		load(r, at, i, r->pass.fill);
		r->loaded |= r->s.keeps ? 1u << i : 0;
	}
}

bool cptx_rows_each_(cptx_kernel *k, cptx_site at, cptx_rows_row *r, cptx_rows_at *e, const cptx_rows_pass *opt)
{
	cptx_rows_pass pass;

	if (!IS_GIVEN_TO(k, at, r, "row") || !IS_GIVEN_TO(k, at, e, "place in the row") ||
	    !IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_rows_pass, &pass, opt, at, k) ||
	    !check_pass(k, at, r, &pass) || r->combines)
		return false;
	r->pass = pass, r->open = true;
	if (r->set)
		*r->set |= pass.writes;
	set_turn(r, at, 0); /* in front of new rows, which are like those of the first turn */
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(pass.reads | pass.writes, i))
			row_of(r, at, i);
	if (!r->s.resident)
		begin_turns(r, at);
	load_turn(r, at);
	if (!cptx_row_each_(k, at, &r->base, &r->it, false)) {
		r->open = false;
		return false;
	}
	show(r, e);
	return true;
}

/* The results of the element into the rows' registers. */
static bool keep(cptx_kernel *k, cptx_site at, cptx_rows_row *r, const cptx_rows_at *e)
{
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		if (!rows_has(r->pass.writes & ~(uint32_t)R_SUMS, i))
			continue;
		if (e->v[i].kind == CPTX_VAL_NONE) {
			cptx_fail_(k, at, "the pass writes %s, and its body sets no v[CPTX_ROWS_...] of that", rows_operands[i].name);
			return false;
		}
		CALL(mov, .a = e->v[i], .into = element_here(r, i));
	}
	return true;
}

bool cptx_rows_next_(cptx_kernel *k, cptx_site at, cptx_rows_row *r, cptx_rows_at *e)
{
	if (!IS_GIVEN_TO(k, at, r, "row") || !IS_GIVEN_TO(k, at, e, "place in the row") || !r->open)
		return false;
	const bool kept = keep(k, at, r, e);
	if (kept && cptx_row_each_(k, at, &r->base, &r->it, true)) {
		show(r, e);
		return true;
	}
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(r->pass.writes & (r->s.resident ? ~(uint32_t)R_SUMS : ~0u), i))
			store(r, at, i);
	if (reads_chunks(r))
		rows_ring_turn_end(r);
	if (kept && r->turn_at + 1 < r->s.turns) {
		set_turn(r, at, r->turn_at + 1);
		load_turn(r, at);
		if (cptx_row_each_(k, at, &r->base, &r->it, false)) {
			show(r, e);
			return true;
		}
	}
	if (!r->s.resident)
		cptx_block_end_(k, at);
	if (reads_chunks(r))
		rows_ring_pass_end(r);
	r->open = false;
	return false;
}

/* The sum of n registers, a power of two, each times `part`: by halves, so that the mean of equal elements is one of them.
 */
static cptx_val sum_of_parts(cptx_kernel *k, cptx_val v, uint32_t first, uint32_t n, float part)
{
	if (n > 2)
		return cptx_add(k, sum_of_parts(k, v, first, n / 2, part), sum_of_parts(k, v, first + n / 2, n / 2, part));
	cptx_val one = cptx_mul(k, cptx_elem(v, first), part);
	return n == 1 ? one : cptx_fma(k, cptx_elem(v, first + 1), part, one, .rnd = CPTX_RN);
}

cptx_val rows_mean_of_vector(const cptx_rows_row *r, enum cptx_rows_operand operand)
{
	/* times 1 / each before they are added: the sum of large elements has no end */
	return sum_of_parts(r->k, r->have[operand].v, r->it.i - r->it.i % r->s.each, r->s.each, 1.0f / (float)r->s.each);
}

cptx_val rows_other_of_pair(const cptx_rows_row *r, enum cptx_rows_operand operand)
{
	return cptx_elem(r->have[operand].v, r->it.i ^ 1); /* vectors begin at even columns */
}

static bool is_open(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, const cptx_rows_at *e)
{
	if (!IS_GIVEN_TO(k, at, r, "row") || !IS_GIVEN_TO(k, at, e, "place in the row"))
		return false;
	if (!r->open)
		cptx_fail_(k, at, "an element of a row outside of a pass: CPTX_ROWS_EACH");
	return r->open;
}

/* In the part: .u32. */
static cptx_val column_in_part(cptx_kernel *k, cptx_site at, const cptx_rows_row *r)
{
	cptx_val column = cptx_as(cptx_row_column_(k, at, &r->base, &r->it), CPTX_U32);

	if (r->turn_at)
		column = CALL(add, .a = column, .b = cptx_imm((int64_t)r->turn_at * r->s.turn));
	return r->s.resident ? column : CALL(add, .a = column, .b = r->turn);
}

cptx_val cptx_rows_column_(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, const cptx_rows_at *e)
{
	if (!is_open(k, at, r, e))
		return (cptx_val){ 0 };
	cptx_val column = column_in_part(k, at, r);
	return rows_none(r->first) ? column : CALL(add, .a = column, .b = r->first);
}

cptx_val cptx_rows_inside_(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, const cptx_rows_at *e)
{
	if (!is_open(k, at, r, e))
		return (cptx_val){ 0 };
	return cptx_row_inside_(k, at, &r->base, &r->it);
}

/* ---- reductions ---- */

/* Elements that threads read beside their own are read in front of what is stored behind the next reduction, perhaps in
 * their place: a CTA's barriers order that, but neither shuffles nor st.async do. */
static void order(cptx_kernel *k, cptx_site at, cptx_rows_row *r)
{
	r->read_alone = false;
	if (r->s.rows > 1)
		CALL(bar_warp_sync, .mask = cptx_imm(0xffffffffu));
	if (!r->s.cluster || !(r->s.writes & (R_Y | R_Y2 | R_DX | R_DX2)))
		return;
	CALL(barrier_cluster_arrive, .aligned = true);
	CALL(barrier_cluster_wait, .aligned = true);
}

void cptx_rows_reduce_(cptx_kernel *k, cptx_site at, cptx_rows_row *r, cptx_val v, enum cptx_reduce_op op)
{
	if (!IS_GIVEN_TO(k, at, r, "row"))
		return;
	if (r->s.local) {
		cptx_fail_(k, at, "a reduction in a kernel whose options say .local: its elements do not depend on one another");
		return;
	}
	if (r->read_alone)
		order(k, at, r);
	if (r->s.parts)
		rows_part_reduce(k, at, r, v, op);
	else if (r->s.rows > 1)
		cptx_reduce_lanes_(k, at, v, op, r->o->per_row);
	else if (r->s.cluster)
		cptx_reduce_cluster_(k, at, &r->all, v, op);
	else
		cptx_reduce_cta_(k, at, &r->all, v, op);
	rows_ring_reduced(r);
}

/* ---- the kernel ---- */

/* Has L2 ask memory for the part of the next row, while this one is worked on: where all of it is there and is aligned. */
static void prefetch(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;
	const rows_shape *s = &r->s;
	cptx_val next = cptx_add(k, r->row, r->step), one = cptx_setp(k, r->thread, 0, .cmp = CPTX_EQ);
	cptx_val is_there = cptx_setp(k, next, r->rows, .cmp = CPTX_LT);

	CPTX_IF(k, cptx_and(k, one, is_there)) {
		for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
			if (!rows_has(s->reads, i) || rows_operands[i].kind != ROWS_MATRIX)
				continue;
			const uint32_t size = rows_bytes(rows_type_of(r->o, (enum cptx_rows_operand)i));
			if (s->each * size % 16 || s->part * size % 16) /* what a bulk prefetch takes */
				continue;
			cptx_val ahead = cptx_mul_wide(k, r->step, r->stride[i]);
			cptx_cp_async_bulk_prefetch(k, cptx_add(k, r->begin[i], ahead), cptx_imm(s->part * size));
		}
	}
}

/* An operand that a body of one's own says that it writes, and does not. */
static void check_results(const cptx_rows_row *r)
{
	const uint32_t missing = r->o->kernel == CPTX_ROWS_OWN ? r->s.writes & ~*r->set : 0;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(missing, i))
			cptx_fail(r->k, "the body writes no %s, which is among .writes: %s", rows_operands[i].name,
			          rows_operands[i].kind == ROWS_SCALAR ? "cptx_rows_put" : "CPTX_ROWS_EACH with it in .writes");
}

/* The code of one row. */
static void row(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;
	uint32_t set = 0;

	r->loaded = 0, r->reductions = 0;
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has((r->s.reads | r->s.writes) & ~(r->s.writes & R_SUMS), i) && rows_operands[i].kind != ROWS_SCALAR)
			r->begin[i] = begin_of(r, i);
	if (r->prefetches && !rows_none(r->step))
		prefetch(r);
	if (r->s.ring)
		rows_ring_wait(r);
	r->set = &set;
	r->o->body(k, r, r->o->user);
	check_results(r);
	r->set = NULL;
	if (r->s.ring)
		rows_ring_next(r);
	if (r->open)
		cptx_fail(k, "the body left a pass before its end");
}

/* Whether sums in registers are added to those in memory from time to time: one that grows over hundreds of rows errs more
 * than one of a few.  Where the weights have 16 bits that is not to be seen. */
static bool adds_in_blocks(const cptx_rows_row *r) { return r->s.sums && r->s.resident && r->o->weight == CPTX_F32; }

/* Adds the sums in registers to those in memory, and begins with zeros again. */
static void add_block(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		if (!rows_has(r->s.writes & R_SUMS, i))
			continue;
		cptx_row before, *have = &r->have[i];
		cptx_row_like(k, have, &before);
		cptx_row_load(k, &before, r->begin[i], .type = CPTX_F32, .align = r->s.each);
		for (uint32_t j = 0; j < have->v.count; j++) {
			cptx_add(k, cptx_elem(before.v, j), cptx_elem(have->v, j), .into = cptx_elem(before.v, j));
			cptx_mov(k, 0.0f, .into = cptx_elem(have->v, j));
		}
		cptx_row_store(k, &before, r->begin[i], .type = CPTX_F32, .align = r->s.each);
	}
}

/* A kernel with sums begins with zeros: in registers, or in memory.  They have all columns, also of a row that does not
 * exist. */
static void begin_sums(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		if (!rows_has(r->s.writes & R_SUMS, i))
			continue;
		r->begin[i] = sums_of(r, i);
		cptx_row *have = row_of(r, CPTX_HERE, i);
		for (uint32_t j = 0; j < have->v.count; j++)
			cptx_mov(k, 0.0f, .into = cptx_elem(have->v, j));
		if (r->s.rows > 1)
			have->opt.n = r->s.part, have->opt.count = CPTX_NONE_;
		if (adds_in_blocks(r))
			store(r, CPTX_HERE, i);
		if (r->s.resident)
			continue;
		begin_turns(r, CPTX_HERE);
		store(r, CPTX_HERE, i);
		cptx_block_end_(k, CPTX_HERE);
	}
}

/* Where the threads of a warp hold several rows: which one is this thread's, and is it there? */
static void settle(cptx_rows_row *r, cptx_val of_warp, cptx_val in_warp)
{
	cptx_kernel *k = r->k;

	if (rows_none(in_warp))
		return;
	cptx_add(k, of_warp, in_warp, .into = r->row);
	cptx_setp(k, r->row, r->rows, .cmp = CPTX_LT, .into = r->there);
	cptx_selp(k, r->s.part, 0, r->there, .type = CPTX_U32, .into = r->here);
}

/* The first row of the warp, which is all that its threads agree on. */
static cptx_val row_of_warp(const cptx_rows_row *r, cptx_val tid)
{
	cptx_kernel *k = r->k;

	if (r->s.rows == 1)
		return r->unit;
	cptx_val in_cta = quotient(k, cptx_and(k, tid, ~31u), r->o->per_row);
	return cptx_mad(k, r->unit, r->s.rows, in_cta, .mode = CPTX_LO);
}

/* The CTA's rows one behind the other.  Those of a ring begin at the same row in all warps, which fill it together. */
static void many_rows(cptx_rows_row *r, cptx_val of_warp, cptx_val in_warp)
{
	cptx_kernel *k = r->k;
	cptx_val first = of_warp;

	if (r->s.ring && r->s.rows > 1)
		first = cptx_mul(k, r->unit, r->s.rows, .mode = CPTX_LO), in_warp = r->group;
	begin_sums(r);
	cptx_val next = cptx_var(k, CPTX_U32, first);
	r->step = cptx_mul(k, r->units, r->s.rows, .mode = CPTX_LO);
	if (rows_none(in_warp))
		r->row = next;
	const bool ahead = rows_count(r->s.reads, ROWS_SCALAR) && !(r->o->rows_each == 1 && r->s.ring);
	cptx_val mine = rows_none(in_warp) ? first : cptx_add(k, first, in_warp);
	CPTX_IF(k, cptx_setp(k, first, r->rows, .cmp = CPTX_LT)) {
		if (ahead)
			rows_load_scalars(r, mine, true);
	}
	if (r->s.ring)
		rows_ring_begin(r, first);
	cptx_val added = adds_in_blocks(r) ? cptx_var(k, CPTX_U32, 0) : CPTX_NONE_;
	CPTX_FOR(k, next, r->rows, r->step) {
		settle(r, next, in_warp);
		if (ahead)
			rows_load_scalars(r, cptx_add(k, r->row, r->step), false);
		row(r);
		if (!rows_none(added)) {
			cptx_add(k, added, 1, .into = added);
			CPTX_IF(k, cptx_setp(k, cptx_and(k, added, ROWS_BLOCK - 1), 0, .cmp = CPTX_EQ)) {
				add_block(r);
			}
		}
	}
	if (!rows_none(added))
		add_block(r);
	for (unsigned i = 0; r->s.resident && rows_none(added) && i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(r->s.writes & R_SUMS, i))
			store(r, CPTX_HERE, i);
}

static void rows(cptx_rows_row *r)
{
	cptx_kernel *k = r->k;
	const uint32_t per_warp = r->s.rows > 1 ? 32 / r->o->per_row : 1;
	cptx_val of_warp = row_of_warp(r, cptx_tid_x(k)), in_warp = { 0 };

	r->row = of_warp;
	if (per_warp > 1)
		in_warp = cptx_and(k, r->group, per_warp - 1);
	if (per_warp > 1 || (r->s.ring && r->s.rows > 1))
		r->row = cptx_reg(k, CPTX_U32), r->there = cptx_reg(k, CPTX_PRED);
	shape(r);
	if (r->s.sums || r->s.ring) {
		many_rows(r, of_warp, in_warp);
		return;
	}
	if (r->s.rows > 1)
		cptx_exit(k, .when = cptx_setp(k, of_warp, r->rows, .cmp = CPTX_GE));
	settle(r, of_warp, in_warp);
	row(r);
}

cptx_kernel *rows_build(cptx_module *m, const cptx_rows_opt *o)
{
	cptx_rows_row r = { .k = NULL };

	r.o = o, r.s = rows_shape_of(o);
	r.k = cptx_kernel_begin(m, o->name, .block = { o->threads }, .min_ctas = o->min_ctas,
	                        .cluster = { r.s.cluster ? o->split : 0 });
	if (!r.k)
		return NULL;
	rows_declare(&r);
	if (o->kernel == CPTX_ROWS_TRANSPOSE) { /* of tiles, not of rows */
		o->body(r.k, &r, o->user);
		return r.k;
	}
	place(&r);
	r.prefetches = o->prefetch && r.s.sums && o->place == CPTX_ROWS_REGISTERS && r.s.rows == 1 && r.s.even &&
	               rows_align_of(o) == r.s.each && !(r.s.reads & (R_COS | R_SIN));
	if (r.s.sums || r.s.ring)
		r.units = quotient(r.k, cptx_nctaid_x(r.k), o->split);
	if (!r.s.local && r.s.rows == 1)
		cptx_reduce_new(r.k, &r.all, .threads = o->threads, .cluster = r.s.cluster ? o->split : 0, .words = 4);
	rows(&r);
	if (r.s.cluster) { /* others tell this CTA what they have read */
		cptx_barrier_cluster_arrive(r.k, .aligned = true);
		cptx_barrier_cluster_wait(r.k, .aligned = true);
	}
	return r.k;
}
