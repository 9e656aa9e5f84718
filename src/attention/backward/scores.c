/* SPDX-License-Identifier: MIT */
/* Scores of attention backward: from products to probabilities, and from their gradients to those of the products. */
#include "attention/backward/backward.h"

#include <cptx/cptx.h>

#include <math.h>

bool backward_keeps_scores(const cptx_attention_backward_opt *o)
{
	return o->softcap || (o->score && o->score_grad != cptx_attention_grad_one);
}

cptx_acc backward_probabilities_of(cptx_kernel *k, const backward_in *in, const cptx_tiled_mma *mma, const cptx_acc *s)
{
	cptx_acc p = *s;

	if (backward_keeps_scores(in->opt))
		cptx_acc_new(k, mma, &p);
	return p;
}

/* ---- the user's functions ---- */

static cptx_attention_score score_at(cptx_kernel *k, const backward_scores *b, const cptx_acc_elem *e, cptx_val value)
{
	const cptx_val row = cptx_acc_row(k, b->s, e, b->by_keys ? b->key : b->query);
	const cptx_val col = cptx_acc_col(k, b->s, e, b->by_keys ? b->query : b->key);

	return (cptx_attention_score){
		.value = value, .batch = b->batch, .head = b->head, .query = b->by_keys ? col : row, .key = b->by_keys ? row : col
	};
}

/* Of a kept score the number that the user's function is given. */
static cptx_val value_of(cptx_kernel *k, const backward_in *in, const cptx_acc_elem *e)
{
	return in->opt->softcap ? cptx_mul(k, e->value, in->cap) : e->value;
}

static cptx_val does_not_count(cptx_kernel *k, cptx_val score)
{
	return cptx_setp(k, score, -INFINITY, .cmp = CPTX_EQ, .type = CPTX_F32);
}

cptx_val backward_counts(cptx_kernel *k, const backward_in *in, const backward_scores *b, uint32_t queries, uint32_t keys)
{
	const cptx_attention_block block = {
		.batch = b->batch, .head = b->head, .query = b->query, .key = b->key, .queries = queries, .keys = keys
	};

	return in->opt->blocks(k, in->opt->user, &block);
}

/* ---- cursors ---- */

backward_cursor backward_cursor_queries(cptx_kernel *k, const backward_in *in, const backward_tile *t, const cptx_acc *s)
{
	const cptx_val head = cptx_var(k, CPTX_U32, t->head0), query = cptx_var(k, CPTX_U32, t->first);

	return (backward_cursor){
		.block = { .s = s, .by_keys = true, .batch = t->batch, .head = head, .query = query, .key = t->key0 },
		.queries = in->opt->bq,
		.keys = in->opt->bk,
		.head0 = t->head0,
		.first = t->first,
		.end = t->end
	};
}

cptx_val backward_cursor_is_there(cptx_kernel *k, const backward_in *in, const backward_cursor *c)
{
	if (!c->block.by_keys)
		return cptx_setp(k, c->block.key, c->end, .cmp = CPTX_LT);
	return cptx_setp(k, c->block.head, cptx_add(k, c->head0, in->group), .cmp = CPTX_LT);
}

cptx_val backward_cursor_counts(cptx_kernel *k, const backward_in *in, const backward_cursor *c)
{
	return backward_counts(k, in, &c->block, c->queries, c->keys);
}

void backward_cursor_advance(cptx_kernel *k, const backward_cursor *c)
{
	const backward_scores *b = &c->block;

	if (!b->by_keys) {
		cptx_add(k, b->key, c->keys, .into = b->key);
		return;
	}
	cptx_add(k, b->query, c->queries, .into = b->query);
	const cptx_val last = cptx_setp(k, b->query, c->end, .cmp = CPTX_GE);
	cptx_mov(k, c->first, .type = CPTX_U32, .into = b->query, .when = last);
	cptx_add(k, b->head, 1, .into = b->head, .when = last);
}

void backward_cursor_skip(cptx_kernel *k, const backward_in *in, const backward_cursor *c)
{
	if (!in->opt->blocks)
		return;
	CPTX_DO(k)
	{
		cptx_break_when(k, cptx_not(k, backward_cursor_is_there(k, in, c), .type = CPTX_PRED));
		cptx_break_when(k, backward_cursor_counts(k, in, c));
		backward_cursor_advance(k, c);
		cptx_continue(k);
	}
}

/* ---- elements ---- */

void backward_begin_scores(cptx_kernel *k, const backward_in *in, const backward_scores *b)
{
	const cptx_attention_backward_opt *o = in->opt;

	CPTX_ACC_EACH(b->s, e)
	{
		if (o->softcap || o->score)
			cptx_mul(k, e.value, in->before, .into = e.value);
		if (o->softcap)
			cptx_tanh(k, e.value, .into = e.value);
		if (!o->mask)
			continue;
		const cptx_attention_score score = score_at(k, b, &e, (cptx_val){ 0 });
		cptx_mov(k, -INFINITY, .type = CPTX_F32, .into = e.value, .unless = o->mask(k, o->user, &score));
	}
}

void backward_probability(cptx_kernel *k, const backward_in *in, const backward_scores *b, const cptx_acc_elem *e,
                          cptx_val stat, cptx_val into)
{
	const cptx_attention_backward_opt *o = in->opt;
	cptx_val exponent = e->value, none = { 0 };

	if (o->score) { /* a function may make a number of minus infinity */
		const cptx_attention_score score = score_at(k, b, e, value_of(k, in, e));
		none = does_not_count(k, e->value);
		exponent = o->score(k, o->user, &score);
	}
	cptx_fma(k, exponent, in->scale2, stat, .rnd = CPTX_RN, .into = into);
	cptx_ex2(k, into, .ftz = true, .into = into);
	if (o->score)
		cptx_mov(k, 0.0f, .type = CPTX_F32, .into = into, .when = none);
}

void backward_derive(cptx_kernel *k, const backward_in *in, const backward_scores *b, const cptx_acc_elem *e, cptx_val of,
                     cptx_val p)
{
	const cptx_attention_backward_opt *o = in->opt;

	cptx_mul(k, of, p, .into = of);
	if (o->softcap) {
		const cptx_val t = cptx_max(k, e->value, -1.0f), n = cptx_neg(k, t); /* minus infinity where nothing counts */
		cptx_mul(k, of, cptx_fma(k, n, t, 1.0f, .rnd = CPTX_RN), .into = of);
	}
	if (!o->score || o->score_grad == cptx_attention_grad_one)
		return;
	const cptx_attention_score score = score_at(k, b, e, value_of(k, in, e));
	cptx_mul(k, of, o->score_grad(k, o->user, &score), .into = of);
	cptx_mov(k, 0.0f, .type = CPTX_F32, .into = of, .when = does_not_count(k, e->value));
}

/* ---- transposed scores ---- */

static void mask_block(cptx_kernel *k, const backward_in *in, const backward_scores *b)
{
	const cptx_attention_backward_opt *o = in->opt;
	const cptx_val key = cptx_as(b->key, CPTX_S32), first = cptx_as(b->query, CPTX_S32);
	backward_place p = { .by_keys = true };

	CPTX_IF(k, backward_is_masked(k, in, first, o->bq, key, o->bk)) {
		const cptx_val mine = cptx_add(k, key, cptx_as(b->s->row, CPTX_S32));
		p.keys = cptx_sub(k, cptx_as(in->keys, CPTX_S32), mine);
		if (o->causal || o->window) {
			const cptx_val place = cptx_add(k, cptx_add(k, first, in->shift), cptx_as(b->s->col, CPTX_S32));
			p.apart = cptx_sub(k, place, mine);
		}
		backward_mask(k, in, b->s, &p);
	}
}

/* Element i of the statistics' pairs: those of two neighbouring columns are loaded together, for elements that stand
 * together; loading them again later costs less than the registers. */
static cptx_val stat_of(cptx_kernel *k, const cptx_acc_elem *e, cptx_val mine, cptx_val *of, uint32_t which)
{
	if (e->i % 4 == 0)
		*of = cptx_ld(k, cptx_offset(mine, e->col * 8), .space = CPTX_SHARED, .type = CPTX_F32, .vec = CPTX_V4);
	return cptx_elem(*of, e->col % 2 * 2 + which);
}

void backward_probabilities(cptx_kernel *k, const backward_in *in, const backward_scores *b, const cptx_acc *p,
                            cptx_val mine)
{
	cptx_val of = { 0 };

	backward_begin_scores(k, in, b);
	mask_block(k, in, b);
	CPTX_ACC_EACH(b->s, e)
	backward_probability(k, in, b, &e, stat_of(k, &e, mine, &of, 0), cptx_acc_at(p, e.i).value);
}

void backward_differentiate(cptx_kernel *k, const backward_in *in, const backward_scores *b, const cptx_acc *dp,
                            cptx_val mine)
{
	cptx_val of = { 0 };

	CPTX_ACC_EACH(dp, e)
	{
		const cptx_acc_elem score = cptx_acc_at(b->s, e.i);
		cptx_val p = score.value;
		cptx_sub(k, e.value, stat_of(k, &e, mine, &of, 1), .into = e.value);
		if (backward_keeps_scores(in->opt)) /* once more, for fewer registers */
			backward_probability(k, in, b, &score, cptx_elem(of, e.col % 2 * 2), p = cptx_reg(k, CPTX_F32));
		backward_derive(k, in, b, &score, e.value, p);
	}
}
