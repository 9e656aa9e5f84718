/* SPDX-License-Identifier: MIT */
/* Tensor memory: allocation as a block, loads and stores of any width. */
#include "base/options.h"
#include <cptx/cptx.h>
#include <cptx/tmem.h>

#include "kit/made.h"

enum { LEAST_COLUMNS = 32, MOST_NUM = 128 };

static uint16_t group_of(const cptx_tmem_opt *o) { return o->ctas == 2 ? CPTX_CTA_GROUP_2 : CPTX_CTA_GROUP_1; }

/* Columns that are allocated where the body ends for now. */
static int64_t open_columns(cptx_kernel *k)
{
	int64_t n = 0;

	for (cptx_item *it = cptx_item_first(k); it; it = cptx_item_next(it)) {
		cptx_item_info info;
		if (!cptx_item_look(k, it, &info) || info.kind != CPTX_ITEM_INSN)
			continue;
		if (info.op == CPTX_OP_TCGEN05_ALLOC)
			n += cptx_item_operand(it, cptx_item_slot(it, "n")).i;
		else if (info.op == CPTX_OP_TCGEN05_DEALLOC)
			n -= cptx_item_operand(it, cptx_item_slot(it, "n")).i;
	}
	return n;
}

static void barrier(cptx_kernel *k, cptx_site at, const cptx_tmem *t)
{
	if (t->opt.ctas == 2 || t->opt.cluster) {
		CALL(barrier_cluster_arrive, .aligned = true);
		CALL(barrier_cluster_wait, .aligned = true);
	} else {
		CALL(bar_sync, .a = cptx_imm(0));
	}
}

static bool check(cptx_kernel *k, cptx_site at, const cptx_tmem_opt *o)
{
	int64_t others = open_columns(k);

	if (!o->columns || o->columns > CPTX_TMEM_COLUMNS)
		cptx_fail_(k, at, "%u columns of tensor memory; there are 1 to %d", o->columns, CPTX_TMEM_COLUMNS);
	else if (o->ctas > 2)
		cptx_fail_(k, at, "tensor memory of %u CTAs; it is of 1, or of a pair", o->ctas);
	else if (o->warp.kind != CPTX_VAL_REG)
		cptx_fail_(k, at, "no warp that allocates tensor memory: say .warp, a predicate that holds in one whole warp");
	else if (others + o->columns > CPTX_TMEM_COLUMNS)
		cptx_fail_(
			k, at,
			"%u columns of tensor memory, where %lld are allocated already; an SM has %d, and tcgen05.alloc would wait "
			"for ever",
			o->columns, (long long)others, CPTX_TMEM_COLUMNS);
	else
		return true;
	return false;
}

int cptx_tmem_begin_(cptx_kernel *k, cptx_site at, cptx_tmem *t, const cptx_tmem_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, t, "allocation"))
		return 1;
	*t = (cptx_tmem){ .slot = { 0 } };
	cptx_tmem_opt o;
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_tmem_opt, &o, opt, at, k))
		return 1;
	opt = &o;
	t->opt = *opt;
	for (t->opt.columns = LEAST_COLUMNS; t->opt.columns < opt->columns && t->opt.columns < CPTX_TMEM_COLUMNS;)
		t->opt.columns *= 2;
	if (opt->columns - 1 >= CPTX_TMEM_COLUMNS)
		t->opt.columns = opt->columns;
	if (!check(k, at, &t->opt))
		return 1;
	t->made = kit_made(k, KIT_cptx_tmem);
	cptx_region_begin_(k, at, "CPTX_TMEM");
	t->slot = cptx_shared_(k, at, CPTX_B32, 1, 16, NULL);
	t->before = cptx_item_last(k);
	cptx_if_begin_(k, at, opt->warp);
	CALL(tcgen05_alloc, .a = t->slot, .n = cptx_imm(t->opt.columns), .cta_group = group_of(&t->opt),
	     .space = CPTX_SHARED_CTA);
	if (!opt->more)
		CALL(tcgen05_relinquish_alloc_permit, .cta_group = group_of(&t->opt));
	cptx_block_end_(k, at);
	barrier(k, at, t);
	t->address = CALL(ld, .a = t->slot, .space = CPTX_SHARED, .type = CPTX_U32);
	return 1;
}

/* Whether a label is placed behind `first`. */
static bool is_inside(cptx_kernel *k, cptx_item *first, cptx_val label)
{
	for (cptx_item *it = first; it; it = cptx_item_next(it)) {
		cptx_item_info info;
		if (cptx_item_look(k, it, &info) && info.kind == CPTX_ITEM_LABEL && cptx_item_operand(it, 0).id == label.id)
			return true;
	}
	return false;
}

/* The first instruction of the block that leaves it; NULL: none does. */
static cptx_item *way_out(cptx_kernel *k, const cptx_tmem *t, cptx_item_info *info)
{
	cptx_item *first = t->before ? cptx_item_next(t->before) : cptx_item_first(k);

	for (cptx_item *it = first; it; it = cptx_item_next(it)) {
		if (!cptx_item_look(k, it, info) || info->kind != CPTX_ITEM_INSN)
			continue;
		if (info->op == CPTX_OP_RET || info->op == CPTX_OP_EXIT)
			return it;
		cptx_val to = info->op == CPTX_OP_BRA ? cptx_item_operand(it, 0) : (cptx_val){ 0 };
		if (to.kind == CPTX_VAL_LABEL && !is_inside(k, first, to))
			return it;
	}
	return NULL;
}

int cptx_tmem_end_(cptx_kernel *k, cptx_site at, cptx_tmem *t)
{
	cptx_item_info info;
	char name[64];

	if (!KIT_IS_MADE(cptx_tmem, k, at, t))
		return 0;
	cptx_region_end_(k, at);
	cptx_item *out = way_out(k, t, &info);
	if (out) {
		cptx_item_spelling(out, name, sizeof name);
		cptx_fail_(k, info.at.file ? info.at : at,
		           "%s leaves a block of tensor memory, whose %u columns would never be freed; go on to the block's end",
		           name, t->opt.columns);
		return 0;
	}
	CALL(tcgen05_fence, .op = CPTX_FENCE_BEFORE_THREAD_SYNC);
	barrier(k, at, t);
	cptx_if_begin_(k, at, t->opt.warp);
	CALL(tcgen05_fence, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
	CALL(tcgen05_dealloc, .a = t->address, .n = cptx_imm(t->opt.columns), .cta_group = group_of(&t->opt));
	return cptx_block_end_(k, at);
}

/* The modifier .x<num>; 0 with an error. */
static uint16_t times(cptx_kernel *k, cptx_site at, uint32_t num)
{
	static const uint16_t mods[] = { CPTX_X1, CPTX_X2, CPTX_X4, CPTX_X8, CPTX_X16, CPTX_X32, CPTX_X64, CPTX_X128 };

	for (uint32_t i = 0; i < sizeof mods / sizeof *mods; i++)
		if (num == 1u << i)
			return mods[i];
	cptx_fail_(k, at, "tensor memory by %u; it is moved by 1, 2, 4, 8, 16, 32, 64 or %d times the shape", num, MOST_NUM);
	return 0;
}

static uint16_t shape_of(const cptx_tmem_move *m) { return m->shape ? (uint16_t)m->shape : CPTX_SHAPE_32X32B; }

/* The operand of 16x32bx2. */
static cptx_val split_of(const cptx_tmem_move *m)
{
	return m->shape == CPTX_SHAPE_16X32BX2 ? cptx_imm(m->split) : (cptx_val){ 0 };
}

cptx_val cptx_tmem_load_(cptx_kernel *k, cptx_site at, cptx_val address, const cptx_tmem_move *opt)
{
	cptx_tmem_move given, *m = &given;

	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_tmem_move, m, opt, at, k))
		return (cptx_val){ 0 };
	const uint16_t num = times(k, at, m->num);
	return !num ? (cptx_val){ 0 }
	            : CALL(tcgen05_ld, .a = address, .split = split_of(m), .shape = shape_of(m), .num = num,
	                   .pack = m->halves ? CPTX_PACK_16B : 0);
}

void cptx_tmem_store_(cptx_kernel *k, cptx_site at, cptx_val address, cptx_val regs, const cptx_tmem_move *opt)
{
	cptx_tmem_move given, *m = &given;

	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_tmem_move, m, opt, at, k))
		return;
	uint32_t each = m->shape == CPTX_SHAPE_16X256B ? 4 : m->shape == CPTX_SHAPE_16X128B ? 2 : 1;
	uint16_t num = times(k, at, m->num ? m->num : regs.count / each);

	if (num)
		CALL(tcgen05_st, .a = address, .b = regs, .split = split_of(m), .shape = shape_of(m), .num = num,
		     .unpack = m->halves ? CPTX_UNPACK_16B : 0);
}
