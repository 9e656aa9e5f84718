/* SPDX-License-Identifier: MIT */
/* Which queries a tile has, and which blocks of keys count for them. */
#include "attention/attention.h"

#include <cptx/cptx.h>

static cptx_val clamp(cptx_kernel *k, cptx_val v, cptx_val most) { return cptx_max(k, cptx_min(k, v, most), 0); }

/* Blocks of keys that v keys fill, or begin (up); v is not negative. */
static cptx_val blocks_of(cptx_kernel *k, const attention_in *in, cptx_val v, bool up)
{
	const uint32_t bk = in->o->bk;

	if (up)
		v = cptx_add(k, v, bk - 1);
	v = cptx_as(v, CPTX_U32);
	for (uint32_t bit = 4; bit < 9; bit++) /* ptxas makes a division of what could be a shift */
		if (bk == 1u << bit)
			return cptx_as(cptx_shr(k, v, bit), CPTX_S32);
	return cptx_as(cptx_div(k, v, bk), CPTX_S32);
}

/* The keys behind the last one that counts for a query: at most `keys`. */
static cptx_val end_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, cptx_val query)
{
	const cptx_val keys = cptx_as(t->keys, CPTX_S32);
	cptx_val end;

	if (!in->o->causal && !in->o->window)
		return keys;
	end = cptx_add(k, cptx_add(k, query, t->shift), 1);
	if (in->o->window)
		end = cptx_add(k, end, in->right);
	return clamp(k, end, keys);
}

/* The first one. */
static cptx_val first_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, cptx_val query)
{
	return cptx_max(k, cptx_sub(k, cptx_add(k, query, t->shift), in->left), 0);
}

static void find_blocks(cptx_kernel *k, const attention_in *in, attention_tile *t)
{
	const cptx_val behind = cptx_min(k, cptx_add(k, t->row0, attention_tile_queries(in->o)), cptx_as(t->queries, CPTX_S32));
	const cptx_val last = cptx_sub(k, behind, 1);
	const cptx_val end = blocks_of(k, in, end_of(k, in, t, last), true);

	t->last_key = cptx_mul(k, cptx_sub(k, end, 1), in->o->bk, .mode = CPTX_LO);
	t->blocks = end;
	if (in->o->window)
		t->blocks = cptx_sub(k, end, blocks_of(k, in, first_of(k, in, t, t->row0), false));
	t->edge = cptx_sub(k, end, blocks_of(k, in, end_of(k, in, t, t->row0), false));
	t->edge = cptx_min(k, t->edge, t->blocks);
	t->plain = t->blocks;
	if (in->o->window)
		t->plain = cptx_sub(k, end, blocks_of(k, in, first_of(k, in, t, last), true));
}

/*
 * Causal: the tiles of a section are dealt to CTAs round by round, longest first, and every other round backwards: then each
 * gets about the same work without asking anybody.  Sections take turns too, for the last round of one is not a whole one.
 */
static void deal(cptx_kernel *k, const attention_in *in, cptx_val slot, cptx_val *section, cptx_val *rest)
{
	const cptx_val ctas = cptx_nctaid_x(k), all = cptx_div(k, slot, ctas);
	const cptx_val number = cptx_sub(k, slot, cptx_mul(k, all, ctas, .mode = CPTX_LO));

	*section = cptx_div(k, all, in->rounds);
	const cptx_val round = cptx_sub(k, all, cptx_mul(k, *section, in->rounds, .mode = CPTX_LO));
	const cptx_val turn = cptx_and(k, cptx_add(k, round, *section), 1);
	const cptx_val back = cptx_sub(k, cptx_sub(k, ctas, 1), number);
	const cptx_val place = cptx_selp(k, back, number, cptx_setp(k, turn, 1, .cmp = CPTX_EQ), .type = CPTX_U32);
	*rest = cptx_mad(k, round, ctas, place, .mode = CPTX_LO);
}

/* Tiles that are all as long: in order. */
static void number(cptx_kernel *k, const attention_in *in, cptx_val slot, cptx_val *section, cptx_val *rest)
{
	const cptx_val of_section = cptx_mul(k, in->section, in->row_tiles, .mode = CPTX_LO);

	*section = cptx_div(k, slot, of_section);
	*rest = cptx_sub(k, slot, cptx_mul(k, *section, of_section, .mode = CPTX_LO));
}

cptx_val attention_entry(cptx_kernel *k, cptx_val table, cptx_val i, uint32_t behind)
{
	const cptx_val at = cptx_add(k, table, cptx_mul_wide(k, i, 4));

	return cptx_ld(k, cptx_offset(at, 4 * (int64_t)behind), .space = CPTX_GLOBAL, .type = CPTX_U32);
}

/* The rows of the tile's batch, and whether the tile is among them. */
static void find_sequence(cptx_kernel *k, const attention_in *in, attention_tile *t)
{
	const cptx_attention_opt *o = in->o;

	t->queries = in->queries, t->keys = in->keys;
	if (o->varlen) {
		const cptx_val q0 = attention_entry(k, in->cu_queries, t->batch, 0),
					   k0 = attention_entry(k, in->cu_keys, t->batch, 0);
		const cptx_val q_end = attention_entry(k, in->cu_queries, t->batch, 1),
					   k_end = attention_entry(k, in->cu_keys, t->batch, 1);
		t->queries = cptx_sub(k, q_end, q0), t->keys = cptx_sub(k, k_end, k0);
		t->q0 = cptx_as(q0, CPTX_S32);
		if (!o->page)
			t->k0 = cptx_as(k0, CPTX_S32);
		const cptx_val there = cptx_setp(k, cptx_as(t->row0, CPTX_U32), t->queries, .cmp = CPTX_LT);
		t->there = t->there.kind == CPTX_VAL_NONE ? there : cptx_and(k, t->there, there, .type = CPTX_PRED);
	}
	if (!o->causal && !o->window)
		return;
	t->shift = cptx_imm(0);
	if (!o->top_left)
		t->shift = cptx_sub(k, cptx_as(t->keys, CPTX_S32), cptx_as(t->queries, CPTX_S32));
}

/* Blocks in which nothing counts by the mask are left out at the end. */
static void find_last(cptx_kernel *k, const attention_in *in, attention_tile *t)
{
	const cptx_val span = cptx_mul(k, cptx_sub(k, t->blocks, 1), in->o->bk, .mode = CPTX_LO);
	const cptx_val key = cptx_var(k, CPTX_S32, t->last_key);

	t->first_key = cptx_sub(k, t->last_key, span);
	const cptx_val none = attention_skip(k, in, t, key);
	t->last_key = key;
	t->blocks = cptx_selp(k, 0, t->blocks, none, .type = CPTX_S32);
}

cptx_val attention_skip(cptx_kernel *k, const attention_in *in, const attention_tile *t, cptx_val key)
{
	cptx_attention_block block = { .batch = t->batch,
		                           .head = t->head,
		                           .query = cptx_as(t->row0, CPTX_U32),
		                           .key = cptx_as(key, CPTX_U32),
		                           .queries = attention_tile_queries(in->o),
		                           .keys = in->o->bk };

	CPTX_DO(k)
	{
		cptx_break_when(k, cptx_setp(k, key, t->first_key, .cmp = CPTX_LT));
		cptx_break_when(k, in->o->blocks(k, in->o->user, &block));
		for (uint32_t i = 1; i < in->o->pack; i++) { /* of the other heads of the tile */
			block.head = cptx_add(k, t->head, i);
			cptx_break_when(k, in->o->blocks(k, in->o->user, &block));
		}
		block.head = t->head;
		cptx_sub(k, key, in->o->bk, .into = key);
		cptx_continue(k);
	}
	return cptx_setp(k, key, t->first_key, .cmp = CPTX_LT);
}

cptx_val attention_rows_at(cptx_kernel *k, const attention_place *p, const attention_tile *t, cptx_val first, cptx_val head)
{
	const bool packed = first.kind != CPTX_VAL_NONE;
	const cptx_val before = cptx_cvt(k, packed ? cptx_as(first, CPTX_U32) : t->batch, .dtype = CPTX_U64);
	const cptx_val at = cptx_mad(k, before, packed ? p->row : p->batch, p->at, .mode = CPTX_LO);

	return cptx_mad(k, cptx_cvt(k, head, .dtype = CPTX_U64), p->head, at, .mode = CPTX_LO);
}

cptx_val attention_page_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, cptx_val key)
{
	uint32_t bits = 0;

	while (in->o->page >> (bits + 1))
		bits++;
	const cptx_val at = cptx_min(k, cptx_as(key, CPTX_U32), cptx_sub(k, t->keys, 1)), number = cptx_shr(k, at, bits);
	return attention_entry(k, in->page_table, cptx_mad(k, t->batch, in->table_pitch, number, .mode = CPTX_LO), 0);
}

/*
 * Heads and batches ("planes") are divided into sections whose K and V fit L2.  In a section all planes come for one row of
 * tiles, then for the row above it: causal tiles get shorter that way.
 */
void attention_locate(cptx_kernel *k, const attention_in *in, cptx_val slot, attention_tile *t)
{
	cptx_val section, rest;

	if (in->dealt)
		deal(k, in, slot, &section, &rest);
	else
		number(k, in, slot, &section, &rest);
	const cptx_val first = cptx_mul(k, section, in->section, .mode = CPTX_LO);
	const cptx_val planes = cptx_min(k, cptx_sub(k, in->planes, first), in->section);
	*t = (attention_tile){ .row0 = { 0 } };
	if (in->dealt)
		t->there = cptx_setp(k, rest, cptx_mul(k, planes, in->row_tiles, .mode = CPTX_LO), .cmp = CPTX_LT);
	const cptx_val row = cptx_div(k, rest, planes);
	const cptx_val row_tile = cptx_sub(k, cptx_sub(k, in->row_tiles, 1), row);

	t->plane = cptx_add(k, first, cptx_sub(k, rest, cptx_mul(k, row, planes, .mode = CPTX_LO)));
	t->batch = cptx_div(k, t->plane, in->heads);
	t->head = cptx_sub(k, t->plane, cptx_mul(k, t->batch, in->heads, .mode = CPTX_LO));
	if (in->o->pack > 1)
		t->head = cptx_mul(k, t->head, in->o->pack, .mode = CPTX_LO);
	t->kv_head = cptx_div(k, t->head, in->group);
	t->row0 = cptx_as(cptx_mul(k, row_tile, attention_tile_queries(in->o), .mode = CPTX_LO), CPTX_S32);
	find_sequence(k, in, t);
	find_blocks(k, in, t);
	if (in->o->blocks)
		find_last(k, in, t);
}

/* ---- rows ---- */

cptx_val attention_query_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s,
                            const cptx_acc_elem *e)
{
	if (in->o->pack < 2)
		return cptx_acc_row(k, s, e, t->row0);
	const cptx_val row = cptx_acc_row(k, s, e, (cptx_val){ 0 });
	return cptx_add(k, cptx_as(cptx_and(k, row, attention_tile_queries(in->o) - 1), CPTX_U32), cptx_as(t->row0, CPTX_U32));
}

cptx_val attention_head_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s,
                           const cptx_acc_elem *e)
{
	if (in->o->pack < 2)
		return t->head;
	const cptx_val row = cptx_acc_row(k, s, e, (cptx_val){ 0 });
	return cptx_add(k, cptx_div(k, row, attention_tile_queries(in->o)), t->head);
}

static attention_rows new_rows(cptx_kernel *k, const attention_in *in, uint32_t n)
{
	const cptx_val none = { 0 };

	return (attention_rows){ .first = in->o->window ? cptx_regs(k, CPTX_S32, n) : none, .end = cptx_regs(k, CPTX_S32, n) };
}

static void set_row(cptx_kernel *k, const attention_in *in, const attention_tile *t, cptx_val query, uint32_t i,
                    const attention_rows *rows)
{
	cptx_mov(k, end_of(k, in, t, query), .into = cptx_elem(rows->end, i));
	if (in->o->window)
		cptx_mov(k, first_of(k, in, t, query), .into = cptx_elem(rows->first, i));
}

attention_rows attention_row_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, cptx_val query)
{
	const attention_rows rows = new_rows(k, in, 1);

	set_row(k, in, t, query, 0, &rows);
	return rows;
}

attention_rows attention_rows_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s)
{
	const attention_rows rows = new_rows(k, in, s->rows);
	uint32_t next = 0;

	CPTX_ACC_EACH(s, e)
	{
		if (e.at_row != next)
			continue;
		const cptx_val query = cptx_as(attention_query_of(k, in, t, s, &e), CPTX_S32);
		set_row(k, in, t, query, next++, &rows);
	}
	return rows;
}
