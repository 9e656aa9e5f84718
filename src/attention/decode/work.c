/* SPDX-License-Identifier: MIT */
/* What the kernels that read the cache share: the work of a CTA, which keys count, where results of chunks go. */
#include "attention/decode/decode.h"

#include <cptx/cptx.h>

decode_work decode_locate(cptx_kernel *k, const decode_in *in)
{
	cptx_val id = cptx_ctaid_x(k), rest;
	decode_work w;

	/* tiles of the same keys run side by side, so that one of them reads from L2 */
	rest = cptx_div(k, id, in->tiles);
	w.tile = cptx_sub(k, id, cptx_mul(k, rest, in->tiles, .mode = CPTX_LO));
	id = rest, rest = cptx_div(k, id, in->splits);
	w.split = cptx_sub(k, id, cptx_mul(k, rest, in->splits, .mode = CPTX_LO));
	w.batch = cptx_div(k, rest, in->kv_heads);
	w.kv_head = cptx_sub(k, rest, cptx_mul(k, w.batch, in->kv_heads, .mode = CPTX_LO));
	w.row0 = cptx_mul(k, w.tile, in->opt->rows, .mode = CPTX_LO);
	w.range = decode_range_of(k, in, w.batch);
	w.first = cptx_mad(k, w.split, in->chunk, w.range.first, .mode = CPTX_LO);
	w.end = cptx_min(k, cptx_add(k, w.first, in->chunk), w.range.length);
	return w;
}

cptx_val decode_has_work(cptx_kernel *k, const decode_in *in, const decode_work *w)
{
	const cptx_val some = cptx_setp(k, w->first, w->end, .cmp = CPTX_LT);

	return cptx_or(k, some, cptx_setp(k, in->splits, 1, .cmp = CPTX_EQ), .type = CPTX_PRED);
}

decode_limits decode_limits_of(cptx_kernel *k, const decode_in *in, const decode_work *w, const cptx_acc *sums)
{
	const cptx_attention_decode_opt *o = in->opt;
	const cptx_val length = cptx_as(w->range.length, CPTX_S32), left = cptx_as(in->left, CPTX_S32);
	const cptx_val ahead = cptx_sub(k, length, cptx_as(in->queries, CPTX_S32)); /* of query 0: its place */
	decode_limits l = { .rows = { .end = cptx_regs(k, CPTX_S32, sums->rows) } };
	uint32_t found = 0;

	if (o->window)
		l.rows.first = cptx_regs(k, CPTX_S32, sums->rows);
	l.masked_from = length;
	if (o->causal)
		l.masked_from = cptx_add(k, ahead, 1);
	if (o->window)
		l.masked_to = cptx_sub(k, cptx_sub(k, length, 1), left);
	CPTX_ACC_EACH(sums, e)
	{
		if (e.at_row != found)
			continue;
		const cptx_val end = cptx_elem(l.rows.end, found);
		cptx_mov(k, length, .into = end);
		if (o->causal) {
			const cptx_val query = cptx_div(k, cptx_acc_row(k, sums, &e, w->row0), in->group);
			cptx_min(k, cptx_add(k, l.masked_from, cptx_as(query, CPTX_S32)), length, .into = end);
		}
		if (o->window)
			cptx_sub(k, cptx_sub(k, end, 1), left, .into = cptx_elem(l.rows.first, found));
		found++;
	}
	return l;
}

void decode_scores_of(cptx_kernel *k, const decode_in *in, const decode_limits *l, const cptx_acc *sums, cptx_val key)
{
	/* the forward kernels' code, of options that ask for nothing else: what is done to scores, and the mask alone */
	const cptx_attention_opt scores = { .softcap = in->opt->softcap }, plain = { .softcap = false };
	const attention_in of_scores = { .o = &scores, .before = in->before }, of_mask = { .o = &plain };
	cptx_val some = cptx_setp(k, cptx_add(k, key, in->opt->bk), l->masked_from, .cmp = CPTX_GT);

	if (in->opt->window)
		some = cptx_or(k, some, cptx_setp(k, key, l->masked_to, .cmp = CPTX_LT), .type = CPTX_PRED);
	attention_scores_of(k, &of_scores, NULL, &l->rows, sums, key, false);
	CPTX_IF(k, some)
		attention_scores_of(k, &of_mask, NULL, &l->rows, sums, key, true);
}

cptx_val decode_part_of(cptx_kernel *k, const decode_in *in, const decode_work *w, cptx_val parts, cptx_val r,
                        uint32_t bytes)
{
	const cptx_val all = cptx_mul(k, in->planes, in->rows, .mode = CPTX_LO);
	const cptx_val plane = cptx_mad(k, w->batch, in->kv_heads, w->kv_head, .mode = CPTX_LO);
	const cptx_val row = cptx_mad(k, plane, in->rows, r, .mode = CPTX_LO);
	const cptx_val i = cptx_mad_wide(k, w->split, all, cptx_cvt(k, row, .dtype = CPTX_U64));

	return cptx_mad(k, i, bytes, parts, .mode = CPTX_LO);
}
