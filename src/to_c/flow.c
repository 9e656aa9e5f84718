/* SPDX-License-Identifier: MIT */
/*
 * Finds blocks.  A block is a range of items: those of a scope, of an if up to the target of its branch, of the else behind
 * it, of a loop from the label at its head to the last branch back.  Blocks that would overlap others are not taken;
 * branches that belong to no block stay branches.
 */
#include "to_c/to_c.h"

#include <stdlib.h>

enum { MOST_DEPTH = 24 };

/* ---- items ---- */

/* Finds the scopes that are printed: those that declare variables; others only kept names of registers apart. */
static uint8_t *kept_scopes(to_c_body *b, size_t n)
{
	uint8_t *kept = TO_C_ARRAY(b->t, uint8_t, n);
	uint32_t *open = TO_C_ARRAY(b->t, uint32_t, n);
	size_t nopen = 0, i = 0;

	for (const ir_item *it = kept && open ? b->k->first : NULL; it; it = it->next, i++) {
		if (it->kind == ITEM_SCOPE) {
			open[nopen++] = (uint32_t)i;
		} else if (it->kind == ITEM_END && nopen) {
			kept[i] = kept[open[--nopen]];
		} else if (it->kind == ITEM_VAR && nopen) {
			kept[open[nopen - 1]] = 1;
		}
	}
	return open ? kept : NULL;
}

/* Finds lists of targets and prototypes that are named before they stand: they are printed in front of all. */
static bool lists_first(to_c_body *b)
{
	uint8_t *named = TO_C_ARRAY(b->t, uint8_t, b->k->nlabel);

	b->early = TO_C_ARRAY(b->t, uint8_t, b->k->nlabel);
	for (const ir_item *it = named && b->early ? b->k->first : NULL; it; it = it->next) {
		for (unsigned i = 0; it->kind == ITEM_INSN && i < it->noperand; i++) {
			cptx_val v = ir_operand(b->k, it, i);
			if (v.kind == CPTX_VAL_TARGETS || v.kind == CPTX_VAL_PROTO)
				named[v.id] = 1;
		}
		if ((it->kind == ITEM_TARGETS || it->kind == ITEM_PROTO) && named[ir_operand(b->k, it, 0).id]) {
			b->early[ir_operand(b->k, it, 0).id] = 1;
			b->item[b->nitem++] = (to_c_item){ .it = it, .vars = IR_NONE };
		}
	}
	return named && b->early;
}

static bool is_early(const to_c_body *b, const ir_item *it)
{
	return (it->kind == ITEM_TARGETS || it->kind == ITEM_PROTO) && b->early[ir_operand(b->k, it, 0).id];
}

bool flow_items(to_c_body *b)
{
	size_t n = 1, i = 0;

	for (const ir_item *it = b->k->first; it; it = it->next)
		n++;
	if (n > UINT32_MAX / 4)
		return to_c_no_memory(b->t);
	const uint8_t *kept = kept_scopes(b, n);
	b->item = TO_C_ARRAY(b->t, to_c_item, n);
	if (!kept || !b->item)
		return false;
	if (!lists_first(b))
		return false;
	const ir_item *comment = NULL;
	for (const ir_item *it = b->k->first; it; it = it->next, i++) {
		if (is_early(b, it))
			continue;
		if (it->kind == ITEM_COMMENT && !comment)
			comment = it;
		if (it->kind == ITEM_COMMENT || it->kind == ITEM_REGS ||
		    ((it->kind == ITEM_SCOPE || it->kind == ITEM_END) && !kept[i]))
			continue;
		b->item[b->nitem++] = (to_c_item){ .it = it, .comment = comment, .vars = IR_NONE };
		comment = NULL;
	}
	b->item[b->nitem] = (to_c_item){ .comment = comment, .vars = IR_NONE };
	return true;
}

/* ---- branches ---- */

static cptx_val operand(const to_c_body *b, uint32_t i, unsigned n) { return ir_operand(b->k, b->item[i].it, n); }

static bool is_op(const to_c_body *b, uint32_t i, unsigned op)
{
	return i < b->nitem && b->item[i].it->kind == ITEM_INSN && arch_forms[b->item[i].it->form].op == op;
}

static bool is_uniform(const ir_item *it) { return it->nmod && ir_mods(it)[0]; }

/* Whether item i is a branch that blocks can print: bra without .uni, or unconditional with it (there .uni tells nothing
 * new). */
static bool is_branch(const to_c_body *b, uint32_t i, bool conditional)
{
	if (!is_op(b, i, CPTX_OP_BRA))
		return false;
	const ir_item *it = b->item[i].it;
	return conditional ? it->guard && !is_uniform(it) : !it->guard;
}

static uint32_t target(const to_c_body *b, uint32_t i) { return b->label_at[operand(b, i, 0).id]; }

/* The first of the labels at one place. */
static uint32_t place(const to_c_body *b, uint32_t at) { return at == IR_NONE ? at : b->place[at]; }

static bool is_label(const to_c_body *b, uint32_t i) { return i < b->nitem && b->item[i].it->kind == ITEM_LABEL; }

/* ---- loops that wait ---- */

static bool is_wait(unsigned op)
{
	return op == CPTX_OP_MBARRIER_TEST_WAIT || op == CPTX_OP_MBARRIER_TEST_WAIT_PARITY || op == CPTX_OP_MBARRIER_TRY_WAIT ||
	       op == CPTX_OP_MBARRIER_TRY_WAIT_PARITY;
}

static void find_waits(to_c_body *b)
{
	for (uint32_t i = 1; i + 1 < b->nitem; i++) {
		to_c_item *t = &b->item[i];
		if (t->it->kind != ITEM_INSN || !is_wait(arch_forms[t->it->form].op) || t->it->guard || !is_label(b, i - 1) ||
		    !is_op(b, i + 1, CPTX_OP_BRA))
			continue;
		const ir_item *branch = b->item[i + 1].it;
		cptx_val p = operand(b, i, 0);
		if (p.kind != CPTX_VAL_REG || branch->guard != p.id + 1)
			continue;
		if (branch->flags & ITEM_NEGATED && target(b, i + 1) == i - 1) {
			t->wait = is_uniform(branch) ? CPTX_WAIT_UNIFORM : CPTX_WAIT_LOOP;
		} else if (!(branch->flags & ITEM_NEGATED) && !is_uniform(branch) && is_branch(b, i + 2, false) &&
		           target(b, i + 2) == i - 1 && is_label(b, i + 3) && place(b, target(b, i + 1)) == i + 3) {
			t->wait = CPTX_WAIT_DONE;
			b->item[i + 2].role = ROLE_GONE;
		} else {
			continue;
		}
		t->role = ROLE_WAIT;
		b->item[i + 1].role = ROLE_GONE;
	}
}

/* ---- blocks ---- */

/* Whether every other block lies inside of this one, around it, or beside it. */
static bool nests(const to_c_body *b, uint32_t start, uint32_t end, bool is_if)
{
	return !blocks_cross(b, start, end) && blocks_around(b, start) < MOST_DEPTH &&
	       /* the last branch of the if leads around an else; else it would print as a break */
	       !(is_if && MIN(b->ends[end].loop, b->ends[end].pair) < start);
}

static bool find_scopes(to_c_body *b)
{
	uint32_t *open = TO_C_ARRAY(b->t, uint32_t, b->nitem);
	size_t nopen = 0;

	for (uint32_t i = 0; open && i < b->nitem; i++) {
		if (b->item[i].it->kind == ITEM_SCOPE)
			open[nopen++] = i;
		else if (b->item[i].it->kind == ITEM_END && nopen && !blocks_add(b, TO_C_SCOPE, open[--nopen], i + 1))
			return false;
		else if (b->item[i].it->kind != ITEM_END)
			continue;
		b->item[i].role = ROLE_GONE;
	}
	return open != NULL;
}

static bool find_loops(to_c_body *b)
{
	uint32_t *back = TO_C_ARRAY(b->t, uint32_t, b->nitem + 1); /* of each place: behind the last branch back to it */

	for (uint32_t i = 0; back && i < b->nitem; i++)
		if (b->item[i].role == ROLE_PLAIN && (is_branch(b, i, true) || is_branch(b, i, false)) && target(b, i) < i)
			back[place(b, target(b, i))] = i + 1;
	for (uint32_t i = 0; back && i < b->nitem; i++)
		if (back[i] && nests(b, i, back[i], false) && !blocks_add(b, TO_C_DO, i, back[i]))
			return false;
	return back != NULL;
}

/* Finds the else of the if [i, end), which the last branch of the if leads around. */
static bool find_else(to_c_body *b, uint32_t i, uint32_t end)
{
	uint32_t around = end - 1;

	if (around <= i || b->item[around].role != ROLE_PLAIN || !is_branch(b, around, false))
		return true;
	uint32_t behind = target(b, around);
	if (behind == IR_NONE || (behind = place(b, behind)) <= end || !nests(b, i, behind, false) ||
	    !nests(b, end, behind, false))
		return true;
	/* the branch must stand in the if itself; the break of a loop stays one */
	if (b->ends[end].last > i || b->ends[behind].loop <= i)
		return true;
	uint32_t mine = (uint32_t)b->nblock - 1;
	if (!blocks_add(b, TO_C_ELSE, end, behind))
		return false;
	b->block[mine].pair = mine + 1;
	b->block[mine + 1].pair = mine;
	b->ends[end].pair = MIN(b->ends[end].pair, i);
	b->ends[behind].pair = MIN(b->ends[behind].pair, end);
	b->item[around].role = ROLE_GONE;
	return true;
}

static bool find_ifs(to_c_body *b)
{
	for (uint32_t i = 0; i < b->nitem; i++) {
		if (b->item[i].role != ROLE_PLAIN || !is_branch(b, i, true))
			continue;
		uint32_t end = target(b, i);
		if (end == IR_NONE || (end = place(b, end)) <= i + 1 || !nests(b, i, end, true))
			continue;
		b->item[i].role = ROLE_IF;
		if (!blocks_add(b, TO_C_IF, i, end) || !find_else(b, i, end))
			return false;
	}
	return true;
}

static int by_start(const void *x, const void *y)
{
	const to_c_block *a = (const to_c_block *)x, *b = (const to_c_block *)y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return (int)a->kind - (int)b->kind;
}

/* Sorts the blocks, and finds their outer blocks and pairs, and the block of each item. */
static void nest(to_c_body *b)
{
	uint32_t now = 0;
	size_t next = 1;

	qsort(b->block + 1, b->nblock - 1, sizeof *b->block, by_start);
	for (uint32_t i = 0; i <= b->nitem; i++) {
		while (now && b->block[now].end <= i)
			now = b->block[now].outer;
		b->item[i].block = now;
		for (; next < b->nblock && b->block[next].start == i; next++) {
			b->block[next].outer = now;
			b->block[next].depth = b->block[now].depth + 1;
			now = (uint32_t)next;
			if (b->block[next].kind != TO_C_IF)
				b->item[i].block = now;
		}
	}
	for (size_t i = 1; i < b->nblock; i++) {
		to_c_block *e = &b->block[i];
		if (e->kind != TO_C_ELSE)
			continue;
		for (size_t j = i; j-- > 1;) /* its if ends where the else starts, in the same outer block */
			if (b->block[j].kind == TO_C_IF && b->block[j].end == e->start && b->block[j].outer == e->outer &&
			    b->block[j].pair != IR_NONE) {
				e->pair = (uint32_t)j;
				b->block[j].pair = (uint32_t)i;
				break;
			}
	}
}

/* ---- roles ---- */

static void name_leaves(to_c_body *b)
{
	for (uint32_t i = 0; i < b->nitem; i++) {
		if (b->item[i].role != ROLE_PLAIN || (!is_branch(b, i, true) && !is_branch(b, i, false)) || target(b, i) == IR_NONE)
			continue;
		uint32_t loop = b->item[i].block, to = place(b, target(b, i));
		while (loop && b->block[loop].kind != TO_C_DO)
			loop = b->block[loop].outer;
		if (loop && to == b->block[loop].start)
			b->item[i].role = ROLE_CONTINUE;
		else if (loop && to == b->block[loop].end)
			b->item[i].role = ROLE_BREAK;
	}
}

static bool is_mentioned(const to_c_body *b, const char *name) { return name && names_has(&b->t->words, name); }

/* Drops the labels that no branch goes to. */
static bool drop_labels(to_c_body *b)
{
	uint8_t *used = TO_C_ARRAY(b->t, uint8_t, b->k->nlabel);

	for (uint32_t i = 0; used && i < b->nitem; i++) {
		const to_c_item *t = &b->item[i];
		for (unsigned o = 0; t->role == ROLE_PLAIN && t->it->kind == ITEM_INSN && o < t->it->noperand; o++) {
			cptx_val v = operand(b, i, o);
			if (v.kind == CPTX_VAL_LABEL)
				used[v.id] = 1;
		}
		cptx_val list = t->it->kind == ITEM_TARGETS ? operand(b, i, 1) : (cptx_val){ 0 };
		for (unsigned o = 0; o < list.count; o++)
			if (b->k->vec[list.id + o].kind == CPTX_VAL_LABEL)
				used[b->k->vec[list.id + o].id] = 1;
	}
	for (uint32_t i = 0; used && i < b->nitem; i++)
		if (is_label(b, i) && !used[operand(b, i, 0).id] && !is_mentioned(b, b->k->label[operand(b, i, 0).id].name))
			b->item[i].role = ROLE_GONE;
	return used != NULL;
}

bool flow_blocks(to_c_body *b)
{
	b->label_at = to_c_nones(b->t, b->k->nlabel);
	b->place = TO_C_ARRAY(b->t, uint32_t, b->nitem + 1);
	if (!b->label_at || !b->place || !blocks_begin(b))
		return false;
	for (uint32_t i = 0; i < b->nitem; i++)
		if (is_label(b, i))
			b->label_at[operand(b, i, 0).id] = i;
	for (uint32_t i = 1; i <= b->nitem; i++)
		b->place[i] = is_label(b, i - 1) ? b->place[i - 1] : i;
	find_waits(b);
	if (!blocks_add(b, TO_C_BODY, 0, b->nitem + 1) || !find_scopes(b) || !find_loops(b) || !find_ifs(b))
		return false;
	nest(b);
	name_leaves(b);
	return drop_labels(b) && loops_find(b);
}
