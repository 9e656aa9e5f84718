/* SPDX-License-Identifier: MIT */
/* Q, K and V by TMA: of batches, of packed sequences, of pages. */
#include "attention/attention.h"

#include <cptx/cptx.h>

uint32_t attention_part_rows(const cptx_attention_opt *o) { return o->page && o->page < o->bk ? o->page : o->bk; }

/* A span of `rows` of `all` rows: TMA writes it where it lies in the block's tile, whose spans stand behind one another. */
static cptx_operand_opt part_of(const cptx_operand_opt *op, uint32_t rows, uint32_t all)
{
	const bool along_k = op->tile.elem.mn_major;
	const uint32_t dim = along_k ? op->tile.rows : op->tile.cols;
	const uint32_t span = cptx_swizzle_get(op->tile.swizzle)->span * 8 / op->tile.elem.bits;
	cptx_operand_opt part = *op;

	part.tile.rows = along_k ? span : rows, part.tile.cols = along_k ? rows : span;
	part.apart = cptx_tile_bytes(&part.tile);
	part.stages = op->stages * (dim / span) * (all / rows);
	return part;
}

attention_operands attention_operands_of(const cptx_attention_opt *o, const cptx_tile *q, const cptx_tile *k,
                                         const cptx_tile *v)
{
	const cptx_operand_opt all = {
		.size = CPTX_OPT_SIZE(cptx_operand_opt), .type = o->in, .batched = true, .batch_dims = 2
	};
	attention_operands ops = { .q = all, .k = all, .v = all };

	ops.q.tile = *q, ops.k.tile = *k, ops.v.tile = *v;
	ops.k.stages = ops.v.stages = o->stages;
	ops.k_part = ops.k, ops.v_part = ops.v, ops.q_part = ops.q;
	if (o->page)
		ops.k_part = part_of(&ops.k, attention_part_rows(o), o->bk),
		ops.v_part = part_of(&ops.v, attention_part_rows(o), o->bk);
	ops.q.stages = 1;
	if (o->pack > 1)
		ops.q_part = part_of(&ops.q, attention_tile_queries(o), o->bq);
	return ops;
}

static void make_kv(cptx_kernel *k, bool in_parts, const cptx_operand_opt *all, cptx_operand_opt *part, cptx_val map,
                    const char *name, attention_kv *kv)
{
	cptx_operand_opt block = *all;

	block.map = map, block.name = name;
	cptx_operand_make(k, &kv->op, &block);
	kv->part = kv->op;
	if (!in_parts)
		return;
	part->map = map, part->smem = kv->op.smem;
	cptx_operand_make(k, &kv->part, part);
}

void attention_make_operands(cptx_kernel *k, const attention_in *in, attention_operands *ops, attention_kv *q,
                             attention_kv *key, attention_kv *v)
{
	make_kv(k, in->o->pack > 1, &ops->q, &ops->q_part, in->map_q, "q", q);
	make_kv(k, in->o->page, &ops->k, &ops->k_part, in->map_k, "k", key);
	make_kv(k, in->o->page, &ops->v, &ops->v_part, in->map_v, "v", v);
}

/* The place of a row of a sequence, and the number of its batch in the tensor map. */
static cptx_val row_of(cptx_kernel *k, cptx_val first, cptx_val row)
{
	return first.kind == CPTX_VAL_NONE ? row : cptx_add(k, first, row);
}

static cptx_val batch_of(const attention_tile *t, cptx_val first)
{
	return first.kind == CPTX_VAL_NONE ? t->batch : cptx_imm(0);
}

void attention_load_q(cptx_kernel *k, const attention_in *in, const attention_tile *t, const attention_kv *q, uint32_t stage,
                      cptx_val barrier)
{
	const cptx_val row = row_of(k, t->q0, t->row0), batch = batch_of(t, t->q0);
	const uint32_t pack = in->o->pack, span = q->part.opt.tile.cols;

	if (pack < 2) {
		cptx_operand_load(k, &q->op, stage, row, 0, .barrier = barrier, .z = t->head, .z2 = batch);
		return;
	}
	const cptx_val i = cptx_var(k, CPTX_U32, 0);
	CPTX_FOR(k, i, pack, 1) {
		cptx_pragma(k, "nounroll"); /* a thread that copies has few registers */
		for (uint32_t s = 0; s < q->op.opt.tile.cols / span; s++) {
			const cptx_val part = cptx_add(k, i, s * pack);
			cptx_operand_load(k, &q->part, part, row, cptx_imm(s * span), .barrier = barrier, .z = cptx_add(k, t->head, i),
			                  .z2 = batch);
		}
	}
}

/* Part after part, each of one page, and of each part span after span. */
static void load_parts(cptx_kernel *k, const attention_in *in, const attention_tile *t, const attention_kv *kv,
                       cptx_val stage, cptx_val key, cptx_val barrier)
{
	const cptx_tile *all = &kv->op.opt.tile, *tile = &kv->part.opt.tile;
	const bool along_k = all->elem.mn_major;
	const uint32_t rows = attention_part_rows(in->o), parts = in->o->bk / rows;
	const uint32_t span = along_k ? tile->rows : tile->cols, spans = (along_k ? all->rows : all->cols) / span;
	const cptx_val first = cptx_mul(k, stage, parts * spans, .mode = CPTX_LO), i = cptx_var(k, CPTX_U32, 0);

	CPTX_FOR(k, i, parts, 1) {
		cptx_pragma(k, "nounroll"); /* a thread that copies has few registers */
		const cptx_val at = cptx_add(k, key, cptx_as(cptx_mul(k, i, rows, .mode = CPTX_LO), CPTX_S32));
		const cptx_val page = attention_page_of(k, in, t, at), row = cptx_as(cptx_and(k, at, in->o->page - 1), CPTX_S32);
		for (uint32_t s = 0; s < spans; s++) {
			const cptx_val to = cptx_add(k, cptx_add(k, first, i), s * parts), col = cptx_imm(s * span);
			cptx_operand_load(k, &kv->part, to, along_k ? col : row, along_k ? row : col, .barrier = barrier,
			                  .z = t->kv_head, .z2 = page);
		}
	}
}

void attention_load_kv(cptx_kernel *k, const attention_in *in, const attention_tile *t, const attention_kv *kv,
                       cptx_val stage, cptx_val key, cptx_val barrier)
{
	const bool along_k = kv->op.opt.tile.elem.mn_major;
	const cptx_val zero = cptx_imm(0);

	if (in->o->page) {
		load_parts(k, in, t, kv, stage, key, barrier);
		return;
	}
	const cptx_val row = row_of(k, t->k0, key);
	cptx_operand_load(k, &kv->op, stage, along_k ? zero : row, along_k ? row : zero, .barrier = barrier, .z = t->kv_head,
	                  .z2 = batch_of(t, t->k0));
}
