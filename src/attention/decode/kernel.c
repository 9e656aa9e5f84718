/* SPDX-License-Identifier: MIT */
/* What the kernels of decoding share: parameters, the keys of a sequence, where rows are. */
#include "attention/decode/decode.h"

#include <cptx/cptx.h>

const cptx_param_row decode_params[] = {
#define DECODE_PARAM(type, name) CPTX_PARAM_ROW(decode_args, type, name),
#include "attention/decode/params.def"
};

const cptx_param_row decode_map_params[DECODE_MAPS] = { CPTX_PARAM_MAP(decode_maps, k_map) };

void decode_declare(cptx_kernel *k, decode_in *in, const cptx_attention_decode_opt *o)
{
	in->opt = o;
	in->s = decode_shape_of(o, NULL);
	cptx_params_declare(k, &in->params, decode_params, DECODE_PARAMS);
#define DECODE_PARAM(type, name) in->name = in->params.val[DECODE_PARAM_##name];
#include "attention/decode/params.def"
	if (!o->overlap)
		return;
	cptx_griddepcontrol(k, .op = CPTX_WAIT);
	cptx_griddepcontrol(k, .op = CPTX_LAUNCH_DEPENDENTS);
}

decode_range decode_range_of(cptx_kernel *k, const decode_in *in, cptx_val batch)
{
	const cptx_val is_told = cptx_setp(k, in->lengths, 0, .cmp = CPTX_NE);
	const cptx_val there = cptx_add(k, in->lengths, cptx_mul_wide(k, batch, 4));
	decode_range r = { .length = cptx_var(k, CPTX_U32, in->keys) };

	cptx_ld(k, there, .space = CPTX_GLOBAL, .type = CPTX_U32, .into = r.length, .when = is_told);
	cptx_min(k, r.length, in->keys, .into = r.length);
	r.first = cptx_imm(0);
	if (!in->opt->window)
		return r;
	/* the first query is the one that sees furthest back */
	const cptx_val behind = cptx_add(k, in->queries, in->left);
	const cptx_val some = cptx_sub(k, cptx_max(k, r.length, behind), behind);
	r.first = cptx_as(cptx_and(k, some, -(int64_t)in->opt->bk, .type = CPTX_B32), CPTX_U32);
	return r;
}

/* The query and the head of packed row r. */
static void unpack(cptx_kernel *k, const decode_in *in, cptx_val kv_head, cptx_val r, cptx_val *query, cptx_val *head)
{
	*query = cptx_div(k, r, in->group);
	const cptx_val member = cptx_sub(k, r, cptx_mul(k, *query, in->group, .mode = CPTX_LO));
	*head = cptx_mad(k, kv_head, in->group, member, .mode = CPTX_LO);
}

static cptx_val wide(cptx_kernel *k, cptx_val v) { return cptx_cvt(k, v, .dtype = CPTX_U64); }

cptx_val decode_row_of(cptx_kernel *k, const decode_in *in, cptx_val batch, cptx_val kv_head, cptx_val r, cptx_val base,
                       cptx_val batch_stride, cptx_val head_stride, cptx_val row_stride)
{
	cptx_val query, head, at;

	unpack(k, in, kv_head, r, &query, &head);
	at = cptx_mad(k, wide(k, batch), batch_stride, base, .mode = CPTX_LO);
	at = cptx_mad(k, wide(k, head), head_stride, at, .mode = CPTX_LO);
	return cptx_mad(k, wide(k, query), row_stride, at, .mode = CPTX_LO);
}

cptx_val decode_lse_of(cptx_kernel *k, const decode_in *in, cptx_val batch, cptx_val kv_head, cptx_val r)
{
	const cptx_val heads = cptx_mul(k, in->kv_heads, in->group, .mode = CPTX_LO);
	cptx_val query, head;

	unpack(k, in, kv_head, r, &query, &head);
	const cptx_val plane = cptx_mad(k, batch, heads, head, .mode = CPTX_LO);
	const cptx_val i = cptx_mad_wide(k, plane, in->queries, wide(k, query));
	return cptx_mad(k, i, 4, in->lse, .mode = CPTX_LO);
}
