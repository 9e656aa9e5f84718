/* SPDX-License-Identifier: MIT */
/*
 * Structured control flow.  Loops test at the bottom, with one test in front of the first iteration, so that an iteration
 * costs one branch.
 *
 *   for:    @!(i < end) bra END; TOP: body; NEXT: i += step; @(i < end) bra TOP; END:
 *   while:  TOP: condition; @!p bra END; body; bra TOP; END:
 *   do:     TOP: body; END:             with @p bra TOP and @p bra END in the body, where it says so
 *   if:     @!p bra END; body; END:         with else: @!p bra ELSE; body; bra END; ELSE: other; END:
 */
#include "ir/ir.h"

static const cptx_val none = { 0 };

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

cptx_val cptx_label_named_(cptx_kernel *k, cptx_site at, const char *name)
{
	if (!ir_open(k, at))
		return none;
	if (!name) {
		error_null_in(__func__, "name", at, k);
		return none;
	}
	bool ok = ir_is_identifier(name, "_$");
	for (const char *p = ok && !strncmp(name, "$L", 2) ? name + 2 : ""; *p >= '0' && *p <= '9';)
		ok = *++p != 0; /* $L and a number is the printed name of an unnamed label */
	ok = ok && ir_local_named(k, NAMED_LABEL, name, NULL, NULL) == IR_NONE;
	if (k->m->parsed) /* in a parsed body nothing else may have that name */
		ok = ok && strncmp(name, "$cptx", 5) != 0 && !ir_body_has_name(k, name) && !ir_module_has_name(k->m, name);
	if (!ok) {
		ir_error(k, CPTX_E_ARG, at, "label name '%.64s' is no identifier, taken, or of the form $L1", name);
		return none;
	}
	char *copy = arena_strdup(&k->m->a, name);
	cptx_val v = copy ? cptx_label(k) : none;
	if (v.kind) {
		k->label[v.id].name = copy;
		ir_index_local(k, NAMED_LABEL, v.id);
	} else {
		ir_no_memory(k->m, at);
	}
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
	k->label_runs |= k->last && k->last->kind == ITEM_LABEL;
	if (ir_append(k, at, ITEM_LABEL, &label, 1, NULL, 0))
		k->label[label.id].placed = 1;
}

void ir_merge_labels(cptx_kernel *k)
{
	uint32_t *as = k->label_runs ? ARENA_ARRAY(&k->m->a, uint32_t, k->nlabel) : NULL;

	if (!k->label_runs)
		return;
	if (!as) {
		ir_no_memory(k->m, k->at);
		return;
	}
	for (uint32_t i = 0; i < k->nlabel; i++)
		as[i] = i;
	uint32_t first = IR_NONE; /* the first of the labels at this place that are printed */
	for (ir_item *it = k->first; it; it = it->next) {
		if (it->kind != ITEM_LABEL) {
			first = IR_NONE;
			continue;
		}
		uint32_t id = ir_operand(k, it, 0).id;
		if (first != IR_NONE && !k->label[id].name) {
			as[id] = first;
			k->label[id].used = 0;
		} else if (k->label[id].used || k->label[id].name) {
			first = id;
			k->label[id].used = 1;
		}
	}
	ir_relabel(k, as);
}

static void branch(cptx_kernel *k, cptx_site at, cptx_val to, cptx_val when)
{
	ir_insn(k, at, CPTX_OP_BRA, none, when, &to, 1, "");
}

static ir_block *push_block(cptx_kernel *k, cptx_site at, enum ir_block_kind kind)
{
	ir_block *b = ARENA_NEW(&k->m->a, ir_block);

	if (!b) {
		ir_no_memory(k->m, at);
		return NULL;
	}
	b->outer = k->block;
	b->kind = kind;
	b->at = at;
	b->end = kind == BLOCK_REGION ? none : cptx_label(k);
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

/* Opens a loop without a test of its own. */
static ir_block *push_loop(cptx_kernel *k, cptx_site at, enum ir_block_kind kind)
{
	ir_block *b = push_block(k, at, kind);

	if (!b)
		return NULL;
	b->top = b->next = cptx_label(k);
	cptx_place_(k, at, b->top);
	return b;
}

int cptx_do_begin_(cptx_kernel *k, cptx_site at)
{
	if (ir_open(k, at))
		push_loop(k, at, BLOCK_DO);
	return 1;
}

int cptx_scope_begin_(cptx_kernel *k, cptx_site at)
{
	ir_block *b = ir_open(k, at) ? push_block(k, at, BLOCK_SCOPE) : NULL;

	if (b) {
		b->nsym = k->nsym;
		ir_append(k, at, ITEM_SCOPE, NULL, 0, NULL, 0);
	}
	return 1;
}

static void end_scope(cptx_kernel *k, const ir_block *b)
{
	ir_append(k, b->at, ITEM_END, NULL, 0, NULL, 0);
	for (size_t i = b->nsym; i < k->nsym; i++)
		if (k->sym[i]->here && !k->sym[i]->ended) {
			k->sym[i]->ended = 1;
			ir_index_ended(k, (uint32_t)i);
		}
}

int cptx_region_begin_(cptx_kernel *k, cptx_site at, const char *name)
{
	ir_block *b = ir_open(k, at) ? push_block(k, at, BLOCK_REGION) : NULL;

	if (b)
		b->name = name;
	return 1;
}

int cptx_region_end_(cptx_kernel *k, cptx_site at)
{
	ir_block *b = k ? k->block : NULL;

	if (!ir_open(k, at))
		return 0;
	if (!b || b->kind != BLOCK_REGION) {
		ir_error(k, CPTX_E_STATE, b ? b->at : at, "%s is never closed (left by break, goto or return?)", ir_block_name(b));
		return 0;
	}
	k->block = b->outer;
	return 0;
}

const char *ir_block_name(const ir_block *b)
{
	static const char *const names[] = { "CPTX_IF", "CPTX_ELSE",  "CPTX_FOR",          "CPTX_WHILE",
		                                 "CPTX_DO", "CPTX_SCOPE", "cptx_mbarrier_wait" };

	return !b ? "a block" : b->kind == BLOCK_REGION ? b->name : names[b->kind];
}

void cptx_wait_begin_(cptx_kernel *k, cptx_site at)
{
	if (ir_open(k, at))
		push_loop(k, at, BLOCK_WAIT);
}

void cptx_wait_end_(cptx_kernel *k, cptx_site at, enum cptx_wait_shape shape, cptx_val predicate)
{
	ir_block *b = k ? k->block : NULL;

	if (!ir_open(k, at) || !is_predicate(k, at, predicate, "cptx_mbarrier_wait"))
		return;
	if (!b || b->kind != BLOCK_WAIT || (unsigned)shape > CPTX_WAIT_DONE) {
		ir_error(k, CPTX_E_ARG, at,
		         b && b->kind == BLOCK_WAIT ? "cptx_mbarrier_wait: shape %u is none of enum cptx_wait_shape"
		                                    : "the test of cptx_mbarrier_wait (shape %u) leaves a block open",
		         (unsigned)shape);
		return;
	}
	k->block = b->outer;
	if (shape == CPTX_WAIT_UNIFORM) {
		ir_insn(k, at, CPTX_OP_BRA, none, cptx_negated(predicate), &b->top, 1, "uni", CPTX_ON);
	} else if (shape == CPTX_WAIT_LOOP) {
		branch(k, at, b->top, cptx_negated(predicate));
	} else {
		branch(k, at, b->end, predicate);
		branch(k, at, b->top, none);
	}
	cptx_place_(k, at, b->end);
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
	if (b->kind == BLOCK_SCOPE) {
		end_scope(k, b);
	} else if (b->kind == BLOCK_FOR) {
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

/* Emits a branch out of a loop or to its next iteration.  `how`: bit 0 next iteration, bit 1 in all threads. */
void cptx_leave_(cptx_kernel *k, cptx_site at, int how, cptx_val when)
{
	bool again = how & 1, all = how & 2;

	if (!ir_open(k, at) || (!all && !is_predicate(k, at, when, again ? "cptx_continue_when" : "cptx_break_when")))
		return;
	ir_block *b = k->block;
	while (b && b->kind != BLOCK_FOR && b->kind != BLOCK_WHILE && b->kind != BLOCK_DO)
		b = b->outer;
	if (!b) {
		ir_error(k, CPTX_E_STATE, at, "%s%s stands in no loop", again ? "cptx_continue" : "cptx_break", all ? "" : "_when");
		return;
	}
	branch(k, at, again ? b->next : b->end, all ? none : when);
}
