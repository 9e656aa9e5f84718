/* SPDX-License-Identifier: MIT */
/* Editing bodies: the place where builder calls insert, removing items, changing operands, modifiers and guards. */
#include "base/options.h"
#include "ir/ir.h"

/* ---- what may be edited ---- */

static bool may_edit(cptx_kernel *k, cptx_site at)
{
	if (!k || k->m->err.code != CPTX_OK)
		return false;
	if (k->m->frozen)
		return ir_error(k, CPTX_E_STATE, at, "the module is frozen; edit it before it is printed, checked or loaded");
	if (k->removed || !k->has_body)
		return ir_error(k, CPTX_E_STATE, at, k->removed ? "it was removed" : "it has no body here");
	if (k->block)
		return ir_error(k, CPTX_E_STATE, at, "a CPTX_IF or loop is open; edit when it is closed");
	return true;
}

static bool may_edit_item(cptx_kernel *k, cptx_site at, const ir_item *it)
{
	if (!may_edit(k, at))
		return false;
	if (!it)
		return ir_error(k, CPTX_E_ARG, at, "the item is NULL");
	if (it->owner != k->owner)
		return ir_error(k, CPTX_E_ARG, at, "the item belongs to another kernel or function");
	if (it->flags & ITEM_REMOVED)
		return ir_error(k, CPTX_E_STATE, at, "the item was removed");
	return true;
}

void ir_touch(cptx_kernel *k)
{
	k->touched = k->m->touched = true;
	k->closed_if = NULL;
}

/* ---- what the text has and the body no longer ---- */

bool ir_note_gone(cptx_module *m, cptx_kernel *k, uint32_t src, uint32_t len)
{
	ir_span **list = k ? &k->gone : &m->gone;
	size_t *n = k ? &k->ngone : &m->ngone;

	if (!arena_push(&m->a, list, *n, k ? &k->cap_gone : &m->cap_gone, sizeof **list))
		return ir_no_memory(m, NOWHERE);
	if (*n && (*list)[*n - 1].src > src)
		*(k ? &k->gone_unsorted : &m->gone_unsorted) = true;
	(*list)[(*n)++] = (ir_span){ src, len };
	return true;
}

static int by_place(const void *a, const void *b)
{
	const ir_span *x = (const ir_span *)a, *y = (const ir_span *)b;

	return x->src < y->src ? -1 : x->src > y->src;
}

void ir_sort_gone(cptx_module *m)
{
	if (m->gone_unsorted)
		qsort(m->gone, m->ngone, sizeof *m->gone, by_place);
	m->gone_unsorted = false;
	for (cptx_kernel *k = m->first; k; k = k->next) {
		if (k->gone_unsorted)
			qsort(k->gone, k->ngone, sizeof *k->gone, by_place);
		k->gone_unsorted = false;
	}
}

/* The neighbour that comes from the same statement of the text, or NULL; comments inside of the statement may stand between.
 */
static ir_item *same_statement(const ir_item *it, bool before)
{
	ir_item *next = before ? it->prev : it->next;

	while (next && ir_src(next) == IR_NONE)
		next = before ? next->prev : next->next;
	return next && ir_src_len(next) && next->src == ir_src(it) ? next : NULL;
}

/* Only the first item keeps the place of the statement in the text. */
void ir_split(ir_item *it)
{
	uint32_t src = ir_src(it);

	if (!ir_src_len(it) || (!same_statement(it, true) && !same_statement(it, false)))
		return;
	while (same_statement(it, true))
		it = same_statement(it, true);
	it->flags |= ITEM_EDITED;
	for (it = it->next; it && (ir_src(it) == IR_NONE || (ir_src(it) == src && ir_src_len(it))); it = it->next)
		it->src = it->src_len = 0;
}

void ir_split_top(ir_top *t)
{
	uint32_t src = t->src, len = t->src_len;
	bool shared =
		(t->prev && t->prev->src_len && t->prev->src == src) || (t->next && t->next->src_len && t->next->src == src);

	if (!len || !shared)
		return;
	while (t->prev && t->prev->src_len && t->prev->src == src)
		t = t->prev;
	t->edited = true;
	for (t = t->next; t && t->src_len && t->src == src; t = t->next)
		t->src = t->src_len = 0;
}

void ir_mark(cptx_kernel *k, ir_item *it)
{
	ir_touch(k);
	ir_split(it);
	it->flags |= ir_src_len(it) ? ITEM_EDITED : 0;
}

/* ---- where calls go ---- */

static void open_at(cptx_kernel *k, ir_item *next)
{
	if (next && same_statement(next, true)) /* the cursor stands between two items of one statement */
		ir_split(next);
	ir_touch(k);
	k->closed = false;
	k->cursor = next;
}

void cptx_edit_before_(cptx_kernel *k, cptx_site at, cptx_item *it)
{
	if (may_edit_item(k, at, it))
		open_at(k, it);
}

void cptx_edit_after_(cptx_kernel *k, cptx_site at, cptx_item *it)
{
	if (may_edit_item(k, at, it))
		open_at(k, it->next);
}

void cptx_edit_end_(cptx_kernel *k, cptx_site at)
{
	if (may_edit(k, at))
		open_at(k, NULL);
}

/* ---- removing ---- */

void ir_count_shared(cptx_kernel *k)
{
	uint64_t bytes = 0;

	if (!k->recount)
		return;
	k->recount = false;
	for (const ir_item *it = k->first; it; it = it->next) {
		const ir_sym *s = it->kind == ITEM_VAR ? ir_symbol(k, ir_operand(k, it, 0).id) : NULL;
		if (s && s->space == CPTX_SHARED && s->linkage != LINK_EXTERN)
			bytes = (bytes + MAX(s->align, 1u) - 1) / MAX(s->align, 1u) * MAX(s->align, 1u) + s->size;
	}
	k->static_smem = (uint32_t)MIN(bytes, (uint64_t)UINT32_MAX);
}

/* Whether a section of debug information names a label, which then cannot be removed; sets an error. */
static bool section_names(cptx_kernel *k, cptx_site at, const ir_item *it)
{
	const char *name = it->kind == ITEM_LABEL ? k->label[ir_operand(k, it, 0).id].name : NULL;

	for (const ir_top *t = name && ir_text_may_name(k->m, name) ? k->m->text_first : NULL; t; t = t->next_text)
		if (ir_find_word(t->text, name))
			return !ir_error(k, CPTX_E_STATE, at, "label '%s' is named outside of the body: %.60s", name, t->text);
	return false;
}

static bool remove_one(cptx_kernel *k, cptx_site at, ir_item *it)
{
	uint32_t id = it->noperand ? ir_operand(k, it, 0).id : 0;

	if (section_names(k, at, it))
		return false;
	ir_split(it);
	if (ir_src_len(it) && !ir_note_gone(k->m, k, it->src, it->src_len))
		return false;
	ir_unlink(k, it);
	it->flags |= ITEM_REMOVED;
	switch ((enum ir_item_kind)it->kind) {
	case ITEM_INSN: k->ninsn--; break;
	case ITEM_LABEL:
	case ITEM_TARGETS:
	case ITEM_PROTO:
		k->label[id].placed = 0;
		k->label[id].at = at;
		break;
	case ITEM_VAR:
		k->sym[id]->removed = 1;
		k->recount = true;
		break;
	default: break;
	}
	return true;
}

bool ir_remove(cptx_kernel *k, ir_item *it)
{
	if (k->m->parsed)
		ir_touch(k);
	return remove_one(k, NOWHERE, it);
}

void cptx_edit_remove_(cptx_kernel *k, cptx_site at, cptx_item *it)
{
	size_t depth = 0;

	if (!may_edit_item(k, at, it))
		return;
	if (it->kind == ITEM_END) {
		ir_error(k, CPTX_E_ARG, at, "a } is removed together with its {");
		return;
	}
	ir_touch(k);
	for (ir_item *next; it; it = next) {
		next = it->next;
		depth += it->kind == ITEM_SCOPE;
		depth -= it->kind == ITEM_END;
		if (!remove_one(k, at, it) || !depth)
			return;
	}
}

void cptx_edit_replace_(cptx_kernel *k, cptx_site at, cptx_item *it)
{
	cptx_edit_before_(k, at, it);
	if (k && k->m->err.code == CPTX_OK)
		cptx_edit_remove_(k, at, it);
}

/* ---- instructions ---- */

static bool may_edit_insn(cptx_kernel *k, cptx_site at, const ir_item *it)
{
	if (!may_edit_item(k, at, it))
		return false;
	return it->kind == ITEM_INSN || ir_error(k, CPTX_E_ARG, at, "the item is no instruction");
}

/* The values of a call that would make an instruction of this form with these operands. */
static void call_of(unsigned form, const cptx_val *operands, cptx_val vals[3 + ARCH_SLOTS])
{
	const arch_form *f = &arch_forms[form];

	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		vals[o->slot ? 2 + o->slot : 0] = o->kind == OPERAND_NOWHERE ? (cptx_val){ 0 } : operands[i];
	}
}

bool ir_match_as(const cptx_kernel *k, const ir_item *it, const cptx_val *operands, arch_match *m)
{
	cptx_val vals[3 + ARCH_SLOTS] = { 0 };

	call_of(it->form, operands, vals);
	return arch_match_form(it->form, vals, ir_mods(it), k->vec, false, m) && !m->dest_type;
}

/* Finds the form that fits changed operands and modifiers of an instruction; tries its present form first. */
static bool rematch(cptx_kernel *k, cptx_site at, unsigned form, const cptx_val *operands, const uint16_t *mods,
                    arch_match *m)
{
	const arch_form *f = &arch_forms[form];
	cptx_val vals[3 + ARCH_SLOTS] = { 0 };
	uint16_t fields[ARCH_FIELDS] = { 0 };

	call_of(form, operands, vals);
	for (unsigned i = 0; i < f->ngroup; i++)
		if (arch_groups[f->group + i].kind != GROUP_REPEAT)
			fields[arch_groups[f->group + i].field] = mods[i];
	if ((!arch_match_form(form, vals, mods, k->vec, false, m) || m->dest_type) &&
	    (!arch_match_op(&k->m->memo, f->op, vals, fields, k->vec, m) || m->dest_type)) {
		if (m->dest_type)
			return ir_error(k, CPTX_E_ARG, at, "%s: the destination is missing", arch_ops[f->op].name);
		ir_report_no_form(k, at, f->op, vals, fields);
		return false;
	}
	char why[160];
	return !ir_is_call(f->op) || ir_call_fits(k, m, why) || ir_error(k, CPTX_E_ARG, at, "call: %s", why);
}

ir_item *ir_become(cptx_kernel *k, ir_item *it, const arch_match *m)
{
	if (k->m->parsed)
		ir_mark(k, it);
	if (!ir_refill(k, it, m->operand, m->noperand, m->mod, m->ngroup))
		return NULL;
	it->form = m->form;
	return it;
}

static ir_item *edited(cptx_kernel *k, ir_item *it, const arch_match *m)
{
	ir_mark(k, it);
	return ir_become(k, it, m);
}

cptx_item *cptx_edit_operand_(cptx_kernel *k, cptx_site at, cptx_item *it, size_t i, cptx_val v)
{
	cptx_val operand[ARCH_OPERANDS];
	arch_match m;

	if (!may_edit_insn(k, at, it) || !ir_owned(k, at, &v, "the operand"))
		return NULL;
	if (i >= it->noperand) {
		ir_error(k, CPTX_E_ARG, at, "%s: there is no operand %zu; it has %u", arch_ops[arch_forms[it->form].op].name, i,
		         it->noperand);
		return NULL;
	}
	ir_operands(k, it, operand);
	operand[i] = v;
	return rematch(k, at, it->form, operand, ir_mods(it), &m) ? edited(k, it, &m) : NULL;
}

cptx_item *cptx_edit_modifier_(cptx_kernel *k, cptx_site at, cptx_item *it, const char *group, enum cptx_mod mod)
{
	uint16_t mods[ARCH_GROUPS] = { 0 };
	cptx_val operand[ARCH_OPERANDS];
	bool found = false;
	arch_match m;

	if (!may_edit_insn(k, at, it))
		return NULL;
	const arch_form *f = &arch_forms[it->form];
	memcpy(mods, ir_mods(it), it->nmod * sizeof *mods);
	for (unsigned i = 0; group && i < f->ngroup && !found; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		found = g->kind != GROUP_REPEAT && !strcmp(arch_ops[f->op].field[g->field], group);
		if (found)
			mods[i] = (uint16_t)mod;
	}
	if (!found) {
		ir_error(k, CPTX_E_ARG, at, "%s has no modifier .%.64s here; its form is \"%s\"", arch_ops[f->op].name,
		         group ? group : "", f->text);
		return NULL;
	}
	ir_operands(k, it, operand);
	return rematch(k, at, it->form, operand, mods, &m) ? edited(k, it, &m) : NULL;
}

void cptx_edit_guard_(cptx_kernel *k, cptx_site at, cptx_item *it, cptx_val when)
{
	cptx_val guard;

	if (!may_edit_insn(k, at, it) || !ir_guard_ok(k, at, &guard, when, (cptx_val){ 0 }))
		return;
	ir_mark(k, it);
	it->flags &= (uint16_t)~ITEM_NEGATED & 7;
	it->guard = 0;
	if (guard.kind)
		ir_guard(it, guard);
}

/* ---- heads ---- */

void cptx_edit_bounds_(cptx_kernel *k, cptx_site at, const cptx_kernel_opt *opt)
{
	if (!may_edit(k, at))
		return;
	cptx_kernel draft = *k;
	if (k->is_func) {
		ir_error(k, CPTX_E_ARG, at, "only kernels have launch bounds");
		return;
	}
	if (!OPTIONS_READ(cptx_kernel_opt, &draft.opt, opt, at, &k->m->err) || !ir_check_bounds(&draft, at))
		return;
	if (ir_grid_of_clusters(k) && !(draft.opt.block[0] && draft.opt.cluster[0])) {
		ir_error(k, CPTX_E_ARG, at, "launch bounds: .blocksareclusters of the text needs .block and .cluster");
		return;
	}
	ir_touch(k);
	k->opt = draft.opt;
	k->edited = true;
}

void cptx_edit_target_(cptx_module *m, cptx_site at, const char *target, unsigned version)
{
	if (!m || m->err.code != CPTX_OK)
		return;
	const cptx_target *t = target ? cptx_target_find(target) : NULL;
	if (m->frozen)
		error_set(&m->err, CPTX_E_STATE, at, "the module is frozen; set its target before it is printed");
	else if (!target)
		error_null(__func__, "target", at, &m->err);
	else if (!t)
		error_set(&m->err, CPTX_E_TARGET, at, "there is no target '%.64s'; `cptx arch` lists them", target);
	else if (version && (version > 999 || !arch_is_version(version)))
		error_set(&m->err, CPTX_E_ARG, at, "there is no PTX version %u (they are given times ten: 78 for 7.8)", version);
	else if (version && version < t->ptx)
		error_set(&m->err, CPTX_E_TARGET, at, ".target %s needs .version %u.%u or later; %u.%u was asked for", t->name,
		          t->ptx / 10u, t->ptx % 10u, version / 10, version % 10);
	else
		m->target = t, m->version = version ? (uint16_t)version : m->version, m->touched = true;
}
