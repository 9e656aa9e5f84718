/* SPDX-License-Identifier: MIT */
/* Scores between the first product and the softmax: scale, soft cap, the user's function and the mask; and the store of LSE.
 */
#include "attention/attention.h"

#include <cptx/cptx.h>
#include <cptx/epilogue.h>

#include <math.h>

cptx_val attention_leads(cptx_kernel *k, const cptx_acc *s)
{
	return s->col.kind == CPTX_VAL_REG ? cptx_setp(k, s->col, 0, .cmp = CPTX_EQ) : (cptx_val){ 0 };
}

static cptx_acc_elem first_of_row(const cptx_acc *s, uint32_t row)
{
	cptx_acc_elem first = cptx_acc_at(s, 0);

	while (first.at_row != row)
		first = cptx_acc_at(s, first.i + 1);
	return first;
}

static cptx_val both(cptx_kernel *k, cptx_val p, cptx_val q)
{
	return q.kind == CPTX_VAL_NONE ? p : cptx_and(k, p, q, .type = CPTX_PRED);
}

/* A head's sink as a score, and what it adds to the sum of a row, in the lane that leads; others add theirs behind the last
 * block. */
static cptx_val sink_of(cptx_kernel *k, const attention_in *in, cptx_val head, cptx_val leads, cptx_val *sum)
{
	const cptx_val at = cptx_add(k, in->sinks, cptx_mul_wide(k, head, 4));
	const cptx_val max = cptx_mul(k, cptx_ld(k, at, .space = CPTX_GLOBAL, .type = CPTX_F32), in->sink_scale);
	const cptx_val some = both(k, cptx_setp(k, max, -INFINITY, .cmp = CPTX_GT), leads);

	*sum = cptx_selp(k, exp2(attention_raise(in->o)), 0.0f, some, .type = CPTX_F32);
	return max;
}

void attention_scale_grown(cptx_kernel *k, const cptx_acc *o, cptx_val factors)
{
	cptx_val grown = { 0 };

	for (uint32_t r = 0; r < factors.count; r++) {
		const cptx_val here = cptx_setp(k, cptx_elem(factors, r), 1.0f, .cmp = CPTX_NEU);
		grown = r ? cptx_or(k, grown, here, .type = CPTX_PRED) : here;
	}
	CPTX_IF(k, cptx_vote_sync(k, grown, -1, .mode = CPTX_ANY))
		cptx_acc_scale_rows(k, o, factors);
}

void attention_begin_softmax(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s,
                             cptx_softmax *soft)
{
	const uint32_t rows = s ? s->rows : 1;
	cptx_val max, sum;

	cptx_softmax_new(k, soft, rows, in->scale);
	soft->raise = attention_raise(in->o);
	if (!in->o->sinks)
		return;
	const cptx_val leads = s ? attention_leads(k, s) : (cptx_val){ 0 };
	max = sink_of(k, in, t->head, leads, &sum);
	for (uint32_t r = 0; r < rows; r++) {
		if (in->o->pack > 1) {
			const cptx_acc_elem e = first_of_row(s, r);
			max = sink_of(k, in, attention_head_of(k, in, t, s, &e), leads, &sum);
		}
		cptx_mov(k, max, .into = cptx_elem(soft->max, r));
		cptx_mov(k, sum, .into = cptx_elem(soft->sum, r));
	}
}

/* What the user's functions are told of a score. */
static cptx_attention_score score_at(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s,
                                     const cptx_acc_elem *e, cptx_val key)
{
	return (cptx_attention_score){ .value = e->value,
		                           .batch = t->batch,
		                           .head = attention_head_of(k, in, t, s, e),
		                           .query = attention_query_of(k, in, t, s, e),
		                           .key = cptx_acc_col(k, s, e, key) };
}

static void call_score(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s,
                       const cptx_acc_elem *e, cptx_val key)
{
	const cptx_attention_score score = score_at(k, in, t, s, e, key);

	cptx_mov(k, in->o->score(k, in->o->user, &score), .into = e->value);
}

static void call_mask(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s, cptx_val key)
{
	CPTX_ACC_EACH(s, e)
	{
		cptx_attention_score score = score_at(k, in, t, s, &e, key);
		score.value = (cptx_val){ 0 };
		cptx_mov(k, -INFINITY, .type = CPTX_F32, .into = e.value, .unless = in->o->mask(k, in->o->user, &score));
	}
}

static void modify(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s, cptx_val key)
{
	CPTX_ACC_EACH(s, e)
	{
		cptx_mul(k, e.value, in->before, .into = e.value);
		if (in->o->softcap)
			cptx_tanh(k, e.value, .into = e.value);
		if (in->o->softcap && in->o->score)
			cptx_mul(k, e.value, in->cap, .into = e.value);
		if (in->o->score)
			call_score(k, in, t, s, &e, key);
	}
}

/* Columns of a block are compared as constants: each row's bounds are taken relative to the thread's first column. */
static cptx_val relative(cptx_kernel *k, cptx_val bounds, cptx_val column)
{
	cptx_val r = cptx_regs(k, CPTX_S32, bounds.count);

	for (uint32_t i = 0; i < bounds.count; i++)
		cptx_sub(k, cptx_elem(bounds, i), column, .into = cptx_elem(r, i));
	return r;
}

static void mask(cptx_kernel *k, const attention_rows *rows, const cptx_acc *s, cptx_val key)
{
	const bool lanes_share = s->col.kind == CPTX_VAL_REG; /* else the thread has all of a row, from column 0 on */
	const cptx_val column = lanes_share ? cptx_add(k, key, cptx_as(s->col, CPTX_S32)) : key;
	const cptx_val end = relative(k, rows->end, column);
	const bool below = rows->first.kind != CPTX_VAL_NONE;
	const cptx_val first = below ? relative(k, rows->first, column) : rows->first;

	CPTX_ACC_EACH(s, e)
	{
		cptx_val outside = cptx_setp(k, cptx_elem(end, e.at_row), e.col, .cmp = CPTX_LE);
		cptx_mov(k, -INFINITY, .type = CPTX_F32, .into = e.value, .when = outside);
		if (below) {
			outside = cptx_setp(k, cptx_elem(first, e.at_row), e.col, .cmp = CPTX_GT);
			cptx_mov(k, -INFINITY, .type = CPTX_F32, .into = e.value, .when = outside);
		}
	}
}

void attention_scores_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, const attention_rows *rows,
                         const cptx_acc *s, cptx_val key, bool masked)
{
	if (in->o->softcap || in->o->score)
		modify(k, in, t, s, key);
	if (in->o->mask)
		call_mask(k, in, t, s, key);
	if (masked)
		mask(k, rows, s, key);
}

static cptx_val rounded(cptx_kernel *k, enum cptx_type type, cptx_val low, cptx_val high)
{
	const enum cptx_type pair = type == CPTX_BF16 ? CPTX_BF16X2 : CPTX_F16X2;
	const cptx_val word = cptx_regs(k, CPTX_B32, 1);

	cptx_cvt(k, high, .b = low, .rnd = CPTX_RN, .dtype = pair, .into = cptx_as(word, pair));
	return word;
}

void attention_store(cptx_kernel *k, enum cptx_type type, const cptx_val *v, uint32_t n, cptx_val to, cptx_val when)
{
	cptx_val words[ATTENTION_VECTOR];
	uint32_t many = 0;

	for (uint32_t i = 0; i < n; i += type == CPTX_F32 ? 1 : 2)
		words[many++] = type == CPTX_F32 ? cptx_as(v[i], CPTX_B32) : rounded(k, type, v[i], v[i + 1]);
	if (many == 1)
		cptx_st(k, to, words[0], .space = CPTX_GLOBAL, .type = CPTX_B32, .when = when);
	else
		cptx_st(k, to, cptx_pack_(k, CPTX_HERE, words, many), .space = CPTX_GLOBAL, .type = CPTX_B32,
		        .vec = many == 4 ? CPTX_V4 : CPTX_V2, .when = when);
}

void attention_store_pairs(cptx_kernel *k, enum cptx_type type, const cptx_acc *o, uint32_t cols, attention_row_fn *find,
                           const void *user)
{
	const uint32_t bytes = cptx_type_bits(type) / 8;
	const cptx_val col = cptx_mul_wide(k, o->col, bytes);
	const cptx_val left = cols ? cptx_sub(k, cols, cptx_as(o->col, CPTX_S32)) : (cptx_val){ 0 };

	for (uint32_t row = 0; row < o->rows; row++) {
		cptx_val there = { 0 }, to = { 0 }, inside = { 0 };
		for (uint32_t i = 0; i < o->count; i += 2) {
			const cptx_acc_elem e = cptx_acc_at(o, i);
			if (e.at_row != row)
				continue;
			if (to.kind == CPTX_VAL_NONE)
				to = cptx_add(k, find(k, user, o, &e, &there), col);
			const cptx_val v[2] = { e.value, cptx_acc_at(o, i + 1).value };
			if (cols)
				inside = e.col + 8 > cols ? cptx_setp(k, left, e.col, .cmp = CPTX_GT) : (cptx_val){ 0 };
			attention_store(k, type, v, 2, cptx_offset(to, e.col * bytes), both(k, there, inside));
		}
	}
}

/* O's rows of heads that lie apart. */
typedef struct packed_rows {
	const attention_in *in;
	const attention_tile *t;
} packed_rows;

static cptx_val packed_row(cptx_kernel *k, const void *user, const cptx_acc *o, const cptx_acc_elem *e, cptx_val *there)
{
	const packed_rows *x = (const packed_rows *)user;
	const cptx_val query = attention_query_of(k, x->in, x->t, o, e);
	const cptx_val head = attention_rows_at(k, &x->in->out, x->t, x->t->q0, attention_head_of(k, x->in, x->t, o, e));

	*there = cptx_setp(k, query, x->t->queries, .cmp = CPTX_LT);
	return cptx_mad(k, cptx_cvt(k, query, .dtype = CPTX_U64), x->in->out.row, head, .mode = CPTX_LO);
}

void attention_store_o(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *o)
{
	const packed_rows apart = { in, t };

	if (in->o->pack > 1) {
		attention_store_pairs(k, attention_out(in->o), o, attention_dim_v(in->o), packed_row, &apart);
		return;
	}
	const uint32_t before = o->unit_col.kind == CPTX_VAL_INT ? (uint32_t)o->unit_col.i : 0, all = before + o->n;
	const uint32_t dim_v = attention_dim_v(in->o), bytes = cptx_type_bits(attention_out(in->o)) / 8;
	/* in elements: bytes may take more than 32 bits */
	const cptx_val pitch = cptx_cvt(k, cptx_shr(k, in->out.row, bytes == 4 ? 2 : 1), .dtype = CPTX_U32);
	const cptx_val address = attention_rows_at(k, &in->out, t, t->q0, t->head);
	cptx_epilogue e;

	cptx_epilogue_new(k, &e, .rows = t->queries, .cols = all > dim_v ? cptx_imm(dim_v) : (cptx_val){ 0 },
	                  .vec = ATTENTION_CHUNK / bytes);
	cptx_epilogue_run(k, &e, o, .row = t->row0);
	cptx_epilogue_store(k, &e, .address = address, .type = attention_out(in->o), .pitch = pitch);
}

/* The element's place among those of its head. */
static void store_packed_lse(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s,
                             cptx_val lse)
{
	const cptx_val heads = cptx_mul(k, in->heads, in->o->pack, .mode = CPTX_LO), leads = attention_leads(k, s);
	uint32_t next = 0;

	CPTX_ACC_EACH(s, e)
	{
		if (e.at_row != next)
			continue;
		const cptx_val query = attention_query_of(k, in, t, s, &e), head = attention_head_of(k, in, t, s, &e);
		const cptx_val there = cptx_setp(k, query, t->queries, .cmp = CPTX_LT);
		const cptx_val plane = in->o->varlen ? head : cptx_mad(k, t->batch, heads, head, .mode = CPTX_LO);
		const cptx_val row = in->o->varlen ? cptx_add(k, query, cptx_as(t->q0, CPTX_U32)) : query;
		const cptx_val i =
			cptx_mad_wide(k, plane, in->o->varlen ? in->total_queries : in->queries, cptx_cvt(k, row, .dtype = CPTX_U64));
		cptx_st(k, cptx_mad(k, i, 4, in->lse, .mode = CPTX_LO), cptx_elem(lse, next), .space = CPTX_GLOBAL,
		        .when = both(k, there, leads));
		next++;
	}
}

void attention_store_lse(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s, cptx_val lse)
{
	const cptx_val row0 = t->q0.kind == CPTX_VAL_NONE ? t->row0 : cptx_add(k, t->q0, t->row0);
	const cptx_val plane = in->o->varlen ? t->head : t->plane, rows = in->o->varlen ? in->total_queries : in->queries;
	const cptx_val first = cptx_mad_wide(k, plane, rows, cptx_cvt(k, cptx_as(row0, CPTX_U32), .dtype = CPTX_U64));
	const cptx_val at = cptx_mad(k, first, 4, in->lse, .mode = CPTX_LO);
	const cptx_val leads = attention_leads(k, s);
	uint32_t next = 0;

	if (in->o->pack > 1) {
		store_packed_lse(k, in, t, s, lse);
		return;
	}
	CPTX_ACC_EACH(s, e)
	{
		if (e.at_row != next)
			continue;
		const cptx_val row = cptx_acc_row(k, s, &e, (cptx_val){ 0 });
		const cptx_val query = cptx_add(k, row, cptx_as(t->row0, CPTX_U32));
		const cptx_val inside = cptx_setp(k, query, t->queries, .cmp = CPTX_LT);
		const cptx_val address = cptx_add(k, at, cptx_mul_wide(k, row, 4));
		cptx_st(k, address, cptx_elem(lse, next), .space = CPTX_GLOBAL, .when = both(k, inside, leads));
		next++;
	}
}
