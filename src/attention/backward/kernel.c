/* SPDX-License-Identifier: MIT */
/* What the kernels of attention backward share: parameters, heads, blocks that are copied, masks. */
#include "attention/backward/backward.h"

#include <cptx/cptx.h>

#include <math.h>

const cptx_param_row backward_params[] = {
#define BACKWARD_PARAM(type, name) CPTX_PARAM_ROW(backward_args, type, name),
#include "attention/backward/params.def"
};

void backward_declare(cptx_kernel *k, backward_in *in, const cptx_attention_backward_opt *o)
{
	in->opt = o;
	in->s = backward_shape_of(o);
	cptx_params_declare(k, &in->params, backward_params, BACKWARD_PARAMS);
#define BACKWARD_PARAM(type, name) in->name = in->params.val[BACKWARD_PARAM_##name];
#include "attention/backward/params.def"
	if (!o->sm90)
		return;
	cptx_griddepcontrol(k, .op = CPTX_WAIT);
	cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
}

static cptx_val wide(cptx_kernel *k, cptx_val v) { return cptx_cvt(k, v, .dtype = CPTX_U64); }

cptx_val backward_head(cptx_kernel *k, cptx_val base, cptx_val batch, cptx_val batch_stride, cptx_val head,
                       cptx_val head_stride)
{
	if (batch_stride.kind != CPTX_VAL_NONE)
		base = cptx_mad(k, wide(k, batch), batch_stride, base, .mode = CPTX_LO);
	return cptx_mad(k, wide(k, head), head_stride, base, .mode = CPTX_LO);
}

void backward_find_sequence(cptx_kernel *k, backward_in *in, cptx_val batch)
{
	const struct {
		cptx_val *at, *batch, row, *first;
	} all[] = { { &in->q, &in->q_batch, in->q_row, &in->q0 },     { &in->o, &in->o_batch, in->o_row, &in->q0 },
		        { &in->d_o, &in->do_batch, in->do_row, &in->q0 }, { &in->dq, &in->dq_batch, in->dq_row, &in->q0 },
		        { &in->k, &in->k_batch, in->k_row, &in->k0 },     { &in->v, &in->v_batch, in->v_row, &in->k0 },
		        { &in->dk, &in->dk_batch, in->dk_row, &in->k0 },  { &in->dv, &in->dv_batch, in->dv_row, &in->k0 } };

	if (!in->opt->varlen)
		return;
	in->q0 = attention_entry(k, in->cu_queries, batch, 0), in->k0 = attention_entry(k, in->cu_keys, batch, 0);
	in->queries = cptx_sub(k, attention_entry(k, in->cu_queries, batch, 1), in->q0);
	in->keys = cptx_sub(k, attention_entry(k, in->cu_keys, batch, 1), in->k0);
	in->shift = cptx_imm(0);
	if (!in->opt->top_left)
		in->shift = cptx_sub(k, cptx_as(in->keys, CPTX_S32), cptx_as(in->queries, CPTX_S32));
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		*all[i].at = cptx_mad_wide(k, *all[i].first, all[i].row, *all[i].at);
		*all[i].batch = (cptx_val){ 0 };
	}
	const cptx_val whole = cptx_and(k, in->q0, -(int64_t)BACKWARD_PAD, .type = CPTX_B32);
	in->work0 = cptx_mad_wide(k, batch, BACKWARD_PAD, wide(k, cptx_as(whole, CPTX_U32)));
}

cptx_val backward_plane(cptx_kernel *k, const backward_in *in, cptx_val batch, cptx_val head)
{
	return in->opt->varlen ? head : cptx_mad(k, batch, in->heads, head, .mode = CPTX_LO);
}

cptx_val backward_work_row(cptx_kernel *k, const backward_in *in, cptx_val plane, cptx_val row)
{
	const cptx_val here = wide(k, row);

	return in->opt->varlen ? cptx_mad_wide(k, plane, in->work_rows, cptx_add(k, here, in->work0))
	                       : cptx_mad_wide(k, plane, in->pad, here);
}

cptx_val backward_stats(cptx_kernel *k, const backward_in *in, cptx_val plane, cptx_val row)
{
	return cptx_mad(k, backward_work_row(k, in, plane, row), 8, in->stats, .mode = CPTX_LO);
}

const cptx_param_row backward_map_params[BACKWARD_MAPS] = {
	CPTX_PARAM_MAP(backward_maps, q_map),
	CPTX_PARAM_MAP(backward_maps, k_map),
	CPTX_PARAM_MAP(backward_maps, v_map),
	CPTX_PARAM_MAP(backward_maps, do_map),
};

/* ---- blocks of keys ---- */

/* The blocks of queries for which any key of the CTA counts. */
static void find_queries(cptx_kernel *k, const backward_in *in, backward_tile *t)
{
	const cptx_attention_backward_opt *o = in->opt;
	const cptx_val queries = cptx_as(in->queries, CPTX_S32), key = cptx_as(t->key0, CPTX_S32);
	cptx_val first = cptx_imm(0), end = queries;

	if (o->causal || o->window) { /* query + shift + right >= key */
		first = cptx_sub(k, key, in->shift);
		if (o->window)
			first = cptx_sub(k, first, in->right);
		first = cptx_min(k, cptx_max(k, first, 0), queries);
	}
	if (o->window) { /* query + shift - left <= last key */
		end = cptx_add(k, cptx_add(k, cptx_sub(k, key, in->shift), in->left), o->bk);
		end = cptx_max(k, cptx_min(k, end, queries), first);
	}
	t->end = cptx_as(end, CPTX_U32);
	t->first = cptx_imm(0);
	if (o->causal || o->window)
		t->first = cptx_as(cptx_and(k, first, -(int64_t)o->bq, .type = CPTX_B32), CPTX_U32);
}

/*
 * The blocks of one head stand side by side, so that CTAs share its Q and dO in L2.  With a causal mask the first blocks
 * have the most queries: those of a section of heads, as many as L2 holds, come block by block, so that the longest are
 * first.
 */
backward_tile backward_locate(cptx_kernel *k, backward_in *in)
{
	const cptx_val id = cptx_ctaid_x(k), each = cptx_mul(k, in->section, in->tiles, .mode = CPTX_LO);
	const cptx_val section = cptx_div(k, id, each), rest = cptx_sub(k, id, cptx_mul(k, section, each, .mode = CPTX_LO));
	const cptx_val first = cptx_mul(k, section, in->section, .mode = CPTX_LO);
	const cptx_val heads = cptx_min(k, in->section, cptx_sub(k, in->kv_planes, first)); /* the last section may have fewer */
	const cptx_val tile = cptx_div(k, rest, heads);
	const cptx_val plane = cptx_add(k, first, cptx_sub(k, rest, cptx_mul(k, tile, heads, .mode = CPTX_LO)));
	backward_tile t = { .batch = cptx_div(k, plane, in->kv_heads) };

	t.kv_head = cptx_sub(k, plane, cptx_mul(k, t.batch, in->kv_heads, .mode = CPTX_LO));
	t.head0 = cptx_mul(k, t.kv_head, in->group, .mode = CPTX_LO);
	t.key0 = cptx_mul(k, tile, in->opt->bk, .mode = CPTX_LO);
	backward_find_sequence(k, in, t.batch);
	if (in->opt->varlen)
		cptx_exit(k, .when = cptx_setp(k, t.key0, in->keys, .cmp = CPTX_GE));
	find_queries(k, in, &t);
	return t;
}

void backward_store(cptx_kernel *k, const backward_in *in, const backward_tile *t, const cptx_acc *sum, cptx_val base,
                    cptx_val batch_stride, cptx_val head_stride, cptx_val row)
{
	const cptx_val head = backward_head(k, base, t->batch, batch_stride, t->kv_head, head_stride);
	const cptx_val address = cptx_mad_wide(k, t->key0, row, head), pitch = cptx_shr(k, row, 1);
	const cptx_val rows = cptx_sub(k, in->keys, t->key0);
	const cptx_val cols = in->opt->dim == in->s.dim ? (cptx_val){ 0 } : cptx_imm(in->opt->dim);

	cptx_acc_store(
		k, sum,
		CPTX_OPT(cptx_acc_matrix, .address = address, .type = in->opt->in, .pitch = pitch, .rows = rows, .cols = cols));
}

void backward_dq_product(cptx_kernel *k, const backward_in *in, cptx_val group, cptx_val thread, cptx_tiled_mma *mma,
                         cptx_acc *part)
{
	const enum cptx_type type = in->opt->in;
	const backward_shape *s = &in->s;

	cptx_tiled_mma_new(k, mma, .by = CPTX_BY_WGMMA, .a = type, .b = type, .m = 64, .n = s->part_cols,
	                   .units_n = s->dq_groups, .a_tile = s->p_t, .b_tile = s->k_t,
	                   .unit = s->dq_groups > 1 ? group : (cptx_val){ 0 }, .thread = thread);
	cptx_acc_new(k, mma, part);
}

/* ---- blocks that threads copy ---- */

backward_source backward_source_new(cptx_kernel *k, const backward_in *in, const cptx_tile *tile, uint32_t stages,
                                    cptx_val head, cptx_val row, uint32_t threads, const char *name)
{
	backward_source s = { .left = cptx_var(k, CPTX_U32, 0), .row = row };

	cptx_operand_new(k, &s.op, .by = CPTX_OPERAND_CP_ASYNC, .type = in->opt->in, .tile = *tile, .stages = stages,
	                 .address = head, .rows = s.left,
	                 .cols = in->opt->dim == tile->cols ? (cptx_val){ 0 } : cptx_imm(in->opt->dim), .pitch = row,
	                 .threads = threads, .whole = true, .name = name);
	return s;
}

void backward_copy(cptx_kernel *k, const backward_source *s, cptx_val stage, cptx_val head, cptx_val first, cptx_val rows)
{
	/* a block behind the last row, of a range that ends in the middle of one, has none */
	cptx_sub(k, cptx_max(k, rows, first), first, .into = s->left);
	cptx_operand_rebase(k, &s->op, cptx_mad_wide(k, first, s->row, head));
	cptx_operand_load(k, &s->op, stage, 0, 0);
}

/* ---- masks ---- */

/* d + first >= at_least, .s32, where `first` is known now; in its place the constant moves to the other side. */
static void cut(cptx_kernel *k, cptx_val value, cptx_val d, cptx_val bound, enum cptx_mod cmp)
{
	cptx_mov(k, -INFINITY, .type = CPTX_F32, .into = value, .when = cptx_setp(k, d, bound, .cmp = cmp));
}

void backward_mask(cptx_kernel *k, const backward_in *in, const cptx_acc *s, const backward_place *p)
{
	const cptx_attention_backward_opt *o = in->opt;
	cptx_val behind = { 0 }, in_front = { 0 };

	if (o->causal || o->window)
		behind = o->causal ? p->apart : cptx_add(k, p->apart, in->right); /* + what the element adds: not negative */
	if (o->window)
		in_front = cptx_sub(k, p->apart, in->left); /* not above 0 */
	CPTX_ACC_EACH(s, e)
	{
		const int64_t key = p->by_keys ? e.row : e.col, query = p->by_keys ? e.col : e.row;
		cut(k, e.value, p->keys, cptx_imm(key), CPTX_LE);
		if (behind.kind != CPTX_VAL_NONE)
			cut(k, e.value, behind, cptx_imm(key - query), CPTX_LT);
		if (in_front.kind != CPTX_VAL_NONE)
			cut(k, e.value, in_front, cptx_imm(key - query), CPTX_GT);
	}
}

cptx_val backward_is_masked(cptx_kernel *k, const backward_in *in, cptx_val query, uint32_t queries, cptx_val key,
                            uint32_t keys)
{
	const cptx_attention_backward_opt *o = in->opt;
	cptx_val some = cptx_setp(k, cptx_add(k, key, keys), cptx_as(in->keys, CPTX_S32), .cmp = CPTX_GT);

	if (!o->causal && !o->window)
		return some;
	/* of the first query and the last key, which is the furthest behind it */
	const cptx_val place = cptx_add(k, query, in->shift), apart = cptx_sub(k, place, key);
	cptx_val reach = apart;
	if (o->window)
		reach = cptx_add(k, apart, in->right);
	some = cptx_or(k, some, cptx_setp(k, reach, keys - 1, .cmp = CPTX_LT), .type = CPTX_PRED);
	if (o->window) /* of the last query and the first key */
		some = cptx_or(k, some, cptx_setp(k, cptx_add(k, apart, queries - 1), in->left, .cmp = CPTX_GT), .type = CPTX_PRED);
	return some;
}
