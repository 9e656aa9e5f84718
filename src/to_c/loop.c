/* SPDX-License-Identifier: MIT */
/* Finds the loops that CPTX_WHILE and CPTX_FOR print, among those of flow.c. */
#include "to_c/to_c.h"

static const ir_item *insn(const to_c_body *b, uint32_t i, unsigned op)
{
	const ir_item *it = i < b->nitem ? b->item[i].it : NULL;
	return it && it->kind == ITEM_INSN && arch_forms[it->form].op == op ? it : NULL;
}

/* ---- how many items name a register ---- */

typedef struct tally {
	to_c_body *b;
	uint32_t *last; /* of each register the last item that named it, plus 1 */
	uint32_t item;
} tally;

static void count_register(tally *t, uint32_t reg)
{
	if (t->last[reg] != t->item + 1 && t->b->named[reg] < 3)
		t->b->named[reg]++;
	t->last[reg] = t->item + 1;
}

static void count_value(tally *t, const cptx_val *v)
{
	for (uint32_t e = 0; v->kind == CPTX_VAL_REG && e < v->count; e++)
		count_register(t, v->id + e);
	for (uint32_t e = 0; (v->kind == CPTX_VAL_VEC || v->kind == CPTX_VAL_LIST) && e < v->count; e++)
		count_value(t, &t->b->k->vec[v->id + e]);
}

static bool count_named(to_c_body *b)
{
	tally t = { .b = b, .last = TO_C_ARRAY(b->t, uint32_t, b->k->nreg) };

	b->named = TO_C_ARRAY(b->t, uint8_t, b->k->nreg);
	for (; !b->t->failed && t.item < b->nitem; t.item++) {
		const ir_item *it = b->item[t.item].it;
		if (it->kind != ITEM_INSN)
			continue;
		if (it->guard)
			count_register(&t, it->guard - 1);
		for (unsigned i = 0; i < it->noperand; i++) {
			cptx_val v = ir_operand(b->k, it, i);
			count_value(&t, &v);
		}
	}
	return !b->t->failed;
}

/* ---- loops ---- */

/* Whether item i is a comparison into one predicate that only the branch behind it reads; *p gets the predicate. */
static bool is_test(const to_c_body *b, uint32_t i, uint32_t *p)
{
	const ir_item *it = insn(b, i, CPTX_OP_SETP);

	if (!it || it->guard || b->item[i].role != ROLE_PLAIN || i + 1 >= b->nitem)
		return false;
	cptx_val v[ARCH_OPERANDS];
	ir_operands(b->k, it, v);
	if (v[0].kind != CPTX_VAL_REG || b->item[i + 1].it->guard != v[0].id + 1)
		return false;
	*p = v[0].id;
	if (b->named[*p] != 2)
		return false;
	for (unsigned n = 1; n < it->noperand; n++)
		if (v[n].kind == CPTX_VAL_REG && v[n].id == *p)
			return false;
	return true;
}

/* The first item of a loop that is no label; NITEM if a branch that is not its own goes to one of these labels. */
static uint32_t behind_head(const to_c_body *b, uint32_t i)
{
	for (; i < b->nitem && b->item[i].it->kind == ITEM_LABEL; i++)
		if (b->item[i].role != ROLE_GONE)
			return b->nitem;
	return i;
}

/* Finds TOP: setp p; @p bra END; ... bra TOP; END: */
static void find_while(to_c_body *b, uint32_t id)
{
	to_c_block *loop = &b->block[id];
	uint32_t i = behind_head(b, loop->start), last = loop->end - 1, p;

	if (i + 1 >= last || !is_test(b, i, &p) || b->item[i + 1].role != ROLE_BREAK || b->item[i + 1].block != id ||
	    b->item[i].block != id || b->item[last].role != ROLE_CONTINUE || b->item[last].it->guard ||
	    b->item[last].block != id)
		return;
	loop->kind = TO_C_WHILE;
	b->item[i].role = ROLE_WHILE;
	b->item[i].block = loop->outer; /* the operands of the condition are declared in front of the loop */
	b->item[i + 1].role = b->item[last].role = ROLE_GONE;
	b->item[loop->start].loop = i;
}

/* The innermost loop around an item. */
static uint32_t loop_of(const to_c_body *b, uint32_t i)
{
	uint32_t id = b->item[i].block;
	while (id && b->block[id].kind != TO_C_DO && b->block[id].kind != TO_C_WHILE)
		id = b->block[id].outer;
	return id;
}

static bool same(const cptx_val *a, const cptx_val *b)
{
	return a->kind == b->kind &&
	       (a->kind == CPTX_VAL_INT ? a->i == b->i : a->kind == CPTX_VAL_REG && a->id == b->id && a->count == 1);
}

/* Finds setp p, i, end; @!p bra END; TOP: ... add i, i, step; setp q, i, end; @q bra TOP; END: */
static void find_for(to_c_body *b, uint32_t id)
{
	const to_c_block *loop = &b->block[id], *around = &b->block[loop->outer];
	uint32_t first = around->start - 1, last = loop->end - 1, p, q;

	if (around->kind != TO_C_IF || around->pair != IR_NONE || around->start + 1 != loop->start || around->end != loop->end ||
	    !around->start || loop->end - loop->start < 5 || behind_head(b, loop->start) >= b->nitem || !is_test(b, first, &p) ||
	    !is_test(b, last - 1, &q) || p == q)
		return;
	const ir_item *add = insn(b, last - 2, CPTX_OP_ADD), *enter = b->item[around->start].it, *again = b->item[last].it;
	cptx_val test[ARCH_OPERANDS], test2[ARCH_OPERANDS], v[ARCH_OPERANDS];
	if (!add || add->guard || b->item[last - 2].block != id || b->item[last].role != ROLE_CONTINUE ||
	    b->item[first].block != around->outer || !(enter->flags & ITEM_NEGATED) || again->flags & ITEM_NEGATED ||
	    b->item[first].it->form != b->item[last - 1].it->form ||
	    b->item[first].it->noperand != b->item[last - 1].it->noperand)
		return;
	ir_operands(b->k, b->item[first].it, test);
	ir_operands(b->k, b->item[last - 1].it, test2);
	ir_operands(b->k, add, v);
	unsigned n = b->item[first].it->noperand;
	const cptx_val *i = NULL, *end = NULL;
	for (unsigned o = 1; o < n; o++) { /* registers p (and perhaps q), i, end */
		if (test[o].kind && !i)
			i = &test[o];
		else if (test[o].kind && !end)
			end = &test[o];
		if (!same(&test[o], &test2[o]) && (test[o].kind || test2[o].kind))
			return;
	}
	if (!i || !end || i->kind != CPTX_VAL_REG || i->count != 1 || add->noperand < 3 || !same(&v[0], i) || !same(&v[1], i) ||
	    (v[2].kind != CPTX_VAL_REG && v[2].kind != CPTX_VAL_INT))
		return;
	for (uint32_t j = loop->start; j < last; j++)
		if (b->item[j].role == ROLE_CONTINUE && loop_of(b, j) == id)
			return; /* the branch goes to the head, not to where the counter is raised */
	b->item[first].role = ROLE_FOR;
	b->item[first].loop = id;
}

bool loops_find(to_c_body *b)
{
	if (!count_named(b))
		return false;
	for (uint32_t id = 1; id < b->nblock; id++) {
		if (b->block[id].kind != TO_C_DO)
			continue;
		find_for(b, id);
		find_while(b, id);
	}
	return true;
}

bool put_for(to_c_body *b, uint32_t i)
{
	uint32_t id = b->item[i].loop, last = b->block[id].end - 1;
	const ir_item *test = b->item[i].it, *add = b->item[last - 2].it;
	cptx_val v[ARCH_OPERANDS], step = ir_operand(b->k, add, 2);

	if (!call_makes(b, test, true, CPTX_LT) || !call_makes(b, add, false, 0))
		return false;
	ir_operands(b->k, test, v);
	put(b, "CPTX_FOR (k");
	for (unsigned n = 1; n < test->noperand; n++)
		if (v[n].kind) {
			put(b, ", ");
			put_argument(b, &v[n], 0, false, false);
		}
	put(b, ", ");
	put_argument(b, &step, 0, false, false);
	put(b, ") {");
	b->block[b->block[id].outer].kind = b->block[id].kind = TO_C_FOR;
	b->item[i + 1].role = b->item[last].role = b->item[last - 1].role = b->item[last - 2].role = ROLE_GONE;
	return true;
}
