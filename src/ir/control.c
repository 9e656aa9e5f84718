/*
 * Structured control flow.  Loops test at the bottom, with one test in front of the first turn: a turn costs one branch.
 *
 *   for:    @!(i < end) bra END; TOP: body; NEXT: i += step; @(i < end) bra TOP; END:
 *   while:  TOP: condition; @!p bra END; body; bra TOP; END:
 *   if:     @!p bra END; body; END:         with else: @!p bra ELSE; body; bra END; ELSE: other; END:
 */
#include "ir/ir.h"

static const cptx_val none;

cptx_val cptx_label(cptx_kernel *k)
{
	cptx_val v = { 0 };

	if (!ir_open(k, NOWHERE))
		return v;
	if (!arena_push(&k->m->a, &k->label, k->nlabel, &k->cap_label, sizeof *k->label) || !ir_prepare_names(k)) {
		ir_no_memory(k->m, NOWHERE);
		return v;
	}
	k->label[k->nlabel] = (ir_label){ 0 };
	v.kind = CPTX_VAL_LABEL;
	v.count = 1;
	v.owner = k->owner;
	v.id = (uint32_t)k->nlabel++;
	return v;
}

void cptx_place_(cptx_kernel *k, cptx_site at, cptx_val label)
{
	if (!ir_open(k, at))
		return;
	if (label.kind != CPTX_VAL_LABEL || label.owner != k->owner || !ir_is_ours(k, &label)) {
		ir_error(k, CPTX_E_ARG, at, "cptx_place: that is no label of this kernel");
		return;
	}
	if (k->label[label.id].placed) {
		ir_error(k, CPTX_E_STATE, at, "cptx_place: the label stands somewhere already");
		return;
	}
	ir_item *it = ir_append(k, at, ITEM_LABEL, 1, 0);
	if (!it)
		return;
	ir_operands(it)[0] = label;
	k->label[label.id].placed = 1;
}

static void branch(cptx_kernel *k, cptx_site at, cptx_val to, cptx_val when)
{
	ir_insn(k, at, CPTX_OP_BRA, none, when, &to, 1, "");
}

static ir_block *push_block(cptx_kernel *k, cptx_site at, enum ir_block_kind kind)
{
	ir_block *b = arena_zalloc(&k->m->a, sizeof *b);

	if (!b) {
		ir_no_memory(k->m, at);
		return NULL;
	}
	b->outer = k->block;
	b->kind = kind;
	b->at = at;
	b->end = cptx_label(k);
	k->block = b;
	return b;
}

static bool is_predicate(cptx_kernel *k, cptx_site at, cptx_val p, const char *where)
{
	if (k->m->err.code != CPTX_OK)
		return false;
	if (p.kind != CPTX_VAL_REG || p.type != CPTX_PRED || p.count != 1)
		return ir_error(k, CPTX_E_ARG, at, "the condition of %s must be a predicate register (cptx_setp makes one)", where);
	return ir_owned(k, at, &p, "the condition");
}

/* The C block behind each begin is built even after an error, so that its calls are harmless and its side effects happen. */

int cptx_if_begin_(cptx_kernel *k, cptx_site at, cptx_val predicate)
{
	if (!ir_open(k, at) || !is_predicate(k, at, predicate, "CPTX_IF"))
		return 1;
	ir_block *b = push_block(k, at, BLOCK_IF);
	if (b)
		branch(k, at, b->end, cptx_negated(predicate));
	return 1;
}

int cptx_else_begin_(cptx_kernel *k, cptx_site at)
{
	if (!ir_open(k, at))
		return 1;
	ir_block *before = k->closed_if;
	if (!before) {
		ir_error(k, CPTX_E_STATE, at, "CPTX_ELSE must follow the closing brace of a CPTX_IF");
		return 1;
	}
	ir_item *label = k->closed_if_item; /* where the condition branches to: goes behind a branch over the else part */
	ir_unlink(k, label);
	ir_block *b = push_block(k, at, BLOCK_ELSE);
	if (!b)
		return 1;
	branch(k, at, b->end, none);
	k->label[before->end.id].placed = 0;
	cptx_place_(k, at, before->end);
	return 1;
}

static cptx_val loop_test(cptx_kernel *k, cptx_site at, const ir_block *b)
{
	cptx_val vals[] = { none, b->i, b->limit }; /* slots of setp: q, a, b */
	return ir_insn(k, at, CPTX_OP_SETP, none, none, vals, ARRAY_LEN(vals), "cmp", CPTX_LT);
}

int cptx_for_begin_(cptx_kernel *k, cptx_site at, cptx_val i, cptx_val end, cptx_val step)
{
	if (!ir_open(k, at))
		return 1;
	if (i.kind != CPTX_VAL_REG || i.count != 1) {
		ir_error(k, CPTX_E_ARG, at,
		         "the counter of CPTX_FOR must be a single register, set before the loop (cptx_var makes one)");
		return 1;
	}
	ir_block *b = push_block(k, at, BLOCK_FOR);
	if (!b)
		return 1;
	b->top = cptx_label(k);
	b->next = cptx_label(k);
	b->i = i;
	b->limit = end;
	b->step = step;
	cptx_val go = loop_test(k, at, b);
	branch(k, at, b->end, cptx_negated(go));
	cptx_place_(k, at, b->top);
	return 1;
}

int cptx_while_begin_(cptx_kernel *k, cptx_site at)
{
	if (!ir_open(k, at))
		return 1;
	ir_block *b = push_block(k, at, BLOCK_WHILE);
	if (!b)
		return 1;
	b->top = b->next = cptx_label(k);
	cptx_place_(k, at, b->top);
	return 1;
}

int cptx_while_test_(cptx_kernel *k, cptx_site at, cptx_val predicate)
{
	if (!ir_open(k, at) || !is_predicate(k, at, predicate, "CPTX_WHILE"))
		return 1;
	if (k->block && k->block->kind == BLOCK_WHILE)
		branch(k, at, k->block->end, cptx_negated(predicate));
	else
		ir_error(k, CPTX_E_STATE, at, "the condition of CPTX_WHILE leaves a block open, or stands in no loop");
	return 1;
}

int cptx_block_end_(cptx_kernel *k, cptx_site at)
{
	if (!ir_open(k, at))
		return 0;
	ir_block *b = k->block;
	if (!b) {
		ir_error(k, CPTX_E_STATE, at, "a block ends that was never begun");
		return 0;
	}
	k->block = b->outer;
	if (b->kind == BLOCK_FOR) {
		cptx_val add[] = { b->i, b->step };
		cptx_place_(k, b->at, b->next);
		ir_insn(k, b->at, CPTX_OP_ADD, b->i, none, add, ARRAY_LEN(add), "");
		branch(k, b->at, b->top, loop_test(k, b->at, b));
	} else if (b->kind == BLOCK_WHILE) {
		branch(k, b->at, b->top, none);
	}
	cptx_place_(k, b->at, b->end);
	if (b->kind == BLOCK_IF && k->m->err.code == CPTX_OK) {
		k->closed_if = b;
		k->closed_if_item = k->cursor ? k->cursor->prev : k->last;
	}
	return 0;
}

void cptx_leave_(cptx_kernel *k, cptx_site at, int again, cptx_val when)
{
	if (!ir_open(k, at) || !is_predicate(k, at, when, again ? "cptx_continue_when" : "cptx_break_when"))
		return;
	ir_block *b = k->block;
	while (b && b->kind != BLOCK_FOR && b->kind != BLOCK_WHILE)
		b = b->outer;
	if (!b) {
		ir_error(k, CPTX_E_STATE, at, "%s stands in no loop", again ? "cptx_continue_when" : "cptx_break_when");
		return;
	}
	branch(k, at, again ? b->next : b->end, when);
}
