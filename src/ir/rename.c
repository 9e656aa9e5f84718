/* SPDX-License-Identifier: MIT */
/* Renaming and removing what has a name, with everything that mentions it. */
#include "ir/ir.h"

/* ---- who mentions what ---- */

bool ir_any_value(const cptx_kernel *k, const ir_item *it, ir_value_fn fn, void *user)
{
	bool insn = it->kind == ITEM_INSN, declares = it->kind == ITEM_LABEL || it->kind == ITEM_VAR;

	if (insn && it->guard) {
		cptx_val guard = { .kind = CPTX_VAL_REG, .type = CPTX_PRED, .count = 1, .owner = k->owner, .id = it->guard - 1 };
		if (fn(k, &guard, user))
			return true;
	}
	for (unsigned i = 0; (insn || declares || it->kind == ITEM_TARGETS || it->kind == ITEM_PROTO) && i < it->noperand; i++) {
		const cptx_val value = ir_operand(k, it, i), *v = &value;
		if (fn(k, v, user))
			return true;
		for (unsigned j = 0; (v->kind == CPTX_VAL_VEC || v->kind == CPTX_VAL_LIST) && j < v->count; j++)
			if (fn(k, &k->vec[v->id + j], user))
				return true;
	}
	return false;
}

/*
 * Items that mention a renamed thing are marked when the module is frozen, all in one pass: until then the things lie in the
 * tables `renamed`, by kind and number.
 */
static uint32_t key_of(enum ir_named kind, uint32_t id) { return (id * 8 + (uint32_t)kind) * 0x9e3779b9u; }

static bool is_noted(const hash_table *t, enum ir_named kind, uint32_t id)
{
	uint32_t key = key_of(kind, id);

	TABLE_EACH(t, key, known)
	{
		if (known == id * 8 + (uint32_t)kind)
			return true;
	}
	return false;
}

static bool note(cptx_module *m, hash_table *t, enum ir_named kind, uint32_t id)
{
	return is_noted(t, kind, id) || table_add(t, &m->a.hook, key_of(kind, id), id * 8 + (uint32_t)kind) ||
	       ir_no_memory(m, NOWHERE);
}

static bool is_renamed(const cptx_kernel *k, const cptx_val *v, void *user)
{
	const cptx_module *m = k->m;

	(void)user;
	if (v->kind == CPTX_VAL_FUNC)
		return is_noted(&m->renamed, NAMED_BODY, v->id - 1);
	if (v->kind == CPTX_VAL_SYM && v->id >= MODULE_SYM)
		return is_noted(&m->renamed, NAMED_GLOBAL, v->id - MODULE_SYM);
	if (v->kind == CPTX_VAL_SYM)
		return is_noted(&k->renamed, NAMED_VAR, v->id);
	if (ir_is_label(v))
		return is_noted(&k->renamed, NAMED_LABEL, v->id);
	for (uint32_t i = 0; v->kind == CPTX_VAL_REG && i < v->count; i++)
		if (is_noted(&k->renamed, NAMED_REG, ir_decl_of(k, v->id + i)))
			return true;
	return false;
}

static bool declares_renamed(const cptx_kernel *k, const ir_item *it)
{
	const cptx_val regs = it->kind == ITEM_REGS ? ir_operand(k, it, 0) : (cptx_val){ 0 };

	for (uint32_t i = 0; i < (uint32_t)regs.offset; i++)
		if (is_noted(&k->renamed, NAMED_REG, regs.id + i))
			return true;
	return false;
}

void ir_mark_renamed(cptx_module *m)
{
	for (cptx_kernel *k = m->first; k; k = k->next) {
		for (ir_item *it = m->renamed.n || k->renamed.n ? k->first : NULL; it; it = it->next)
			if (declares_renamed(k, it) || ir_any_value(k, it, is_renamed, NULL))
				ir_mark(k, it);
		table_free(&k->renamed, &m->a.hook);
	}
	for (ir_top *t = m->renamed.n ? m->top_first : NULL; t; t = t->next) {
		const ir_sym *s = t->kind == TOP_VAR ? m->sym[t->sym - MODULE_SYM] : NULL;
		bool mentions = s && is_noted(&m->renamed, NAMED_GLOBAL, t->sym - MODULE_SYM);
		for (uint32_t i = 0; s && i < s->nreloc && !mentions; i++) {
			const cptx_val *to = &s->reloc[i].to;
			mentions = to->kind == CPTX_VAL_FUNC ? is_noted(&m->renamed, NAMED_BODY, to->id - 1)
			                                     : is_noted(&m->renamed, NAMED_GLOBAL, to->id - MODULE_SYM);
		}
		if (mentions) {
			ir_split_top(t);
			t->edited = true;
		}
	}
	table_free(&m->renamed, &m->a.hook);
}

/* Renames in sections and .alias, which are kept as text, but not in their strings. */
static bool rename_in_text(cptx_module *m, ir_top *t, const char *old, const char *name)
{
	buf b;
	bool quoted = false;

	if (strncmp(t->text, ".section", 8) != 0 && strncmp(t->text, ".alias", 6) != 0)
		return true;
	if (!ir_find_word(t->text, old))
		return true;
	buf_init(&b, &m->a.hook);
	for (const char *p = t->text, *word = ir_find_word(p, old); *p; p++) {
		quoted ^= *p == '"';
		if (p == word && !quoted) {
			buf_str(&b, name);
			p += strlen(old) - 1;
		} else {
			buf_put(&b, p, 1);
		}
		if (word && p >= word)
			word = ir_find_word(p + 1, old);
	}
	buf_put(&b, "", 1);
	t->text = b.failed ? NULL : ARENA_COPY(&m->a, char, b.p, b.n);
	t->edited = true;
	buf_free(&b);
	if (!t->text)
		t->text = "";
	return *t->text || ir_no_memory(m, NOWHERE);
}

static bool rename_in_texts(cptx_module *m, const char *old, const char *name)
{
	if (!ir_text_may_name(m, old))
		return true;
	for (ir_top *t = m->text_first; t; t = t->next_text)
		if (!rename_in_text(m, t, old, name))
			return false;
	ir_text_changed(m);
	return true;
}

/* ---- names that text may have ---- */

static bool is_identifier(const char *s) { return ir_is_identifier(s, "_$%"); }

static bool is_reserved(const char *name)
{
	static const char *const begin[] = { IR_PREFIX, "%cptx", "$cptx" };

	for (size_t i = 0; i < ARRAY_LEN(begin); i++)
		if (!strncmp(name, begin[i], strlen(begin[i])))
			return true;
	for (unsigned i = 0; i < arch_nsreg; i++) { /* %tid must not be mistaken for %tid.x, nor %envreg for %envreg7 */
		size_t n = strcspn(arch_sregs[i].text, ".0123456789");
		if (strlen(name) >= n && !strncmp(name, arch_sregs[i].text, n) && strspn(name + n, "0123456789") == strlen(name + n))
			return true;
	}
	return !strcmp(name, "WARP_SZ");
}

#define IN_RANGE(name) (!strncmp((name), prefix, n) && strspn((name) + n, "0123456789") == strlen((name) + n))

/* Whether a name of the body, or of the module, would fall into the range.  The index finds the few names that begin so. */
static bool local_in_range(const cptx_kernel *k, const char *prefix)
{
	size_t n = strlen(prefix);

	for (size_t i = CLASS_COUNT; i < k->ndecl; i++) {
		const char *name = k->decl[i].name;
		size_t len = strlen(name);
		if (IN_RANGE(name) || (k->decl[i].form == DECL_RANGE && !strncmp(prefix, name, len) &&
		                       strspn(prefix + len, "0123456789") == strlen(prefix + len)))
			return true;
	}
	for (size_t i = 0; i < k->nsym; i++)
		if (IN_RANGE(k->sym[i]->name))
			return true;
	for (size_t i = 0; i < k->nlabel; i++)
		if (k->label[i].name && IN_RANGE(k->label[i].name))
			return true;
	return false;
}

static bool global_in_range(const cptx_module *m, const char *prefix)
{
	size_t n = strlen(prefix);

	for (size_t i = 0; i < m->nsym; i++)
		if (IN_RANGE(m->sym[i]->name))
			return true;
	for (size_t i = 0; i < m->nbody; i++)
		if (IN_RANGE(m->body[i]->name))
			return true;
	return false;
}
#undef IN_RANGE

static bool range_taken(const cptx_kernel *k, const char *prefix)
{
	return (ir_local_begins(k, prefix) && local_in_range(k, prefix)) ||
	       (ir_global_begins(k->m, prefix) && global_in_range(k->m, prefix));
}

/* Copies a new name for a register or label of the body; NULL, with an error, if the name cannot be used. */
static const char *free_name(cptx_kernel *k, cptx_site at, const char *name, bool range)
{
	if (!name) {
		ir_error(k, CPTX_E_ARG, at, "the new name is NULL");
		return NULL;
	}
	bool built = !k->m->parsed && strchr("%$", *name);
	if (!is_identifier(name) || is_reserved(name) || built) {
		ir_error(k, CPTX_E_ARG, at, "'%.64s' %s", name,
		         is_identifier(name)
		             ? "is reserved"
		             : "is no PTX identifier (a letter, or one of _ $ % and more, then letters, digits, _ $)");
		return NULL;
	}
	if (ir_body_has_name(k, name) || ir_module_has_name(k->m, name) || (range && range_taken(k, name))) {
		ir_error(k, CPTX_E_ARG, at, "the name '%.64s' is taken%s", name,
		         range ? ", or that of one of its registers is" : "");
		return NULL;
	}
	const char *copy = arena_strdup(&k->m->a, name);
	if (!copy)
		ir_no_memory(k->m, at);
	return copy;
}

/* ---- of a body ---- */

static bool is_argument(const cptx_kernel *k, const ir_arg *list, size_t n, const cptx_val *v)
{
	for (size_t i = 0; i < n; i++)
		if (v->kind == CPTX_VAL_SYM ? list[i].sym == v->id
		                            : list[i].sym == IR_NONE && ir_decl_of(k, list[i].reg) == ir_decl_of(k, v->id))
			return true;
	return false;
}

static void rename_symbol(cptx_kernel *k, cptx_site at, cptx_val v, const char *name)
{
	ir_sym *s = k->sym[v.id];
	bool own = !strcmp(s->name, name ? name : "");

	const char *old = s->name;

	if (own || !ir_name_ok(k->m, at, s->space == CPTX_PARAM ? "parameter" : "variable", name) ||
	    !ir_local_name_free(k, at, name))
		return;
	const char *copy = arena_strdup(&k->m->a, name);
	if (!copy) {
		ir_no_memory(k->m, at);
		return;
	}
	for (size_t i = 0; s->is_param && i < k->nparam; i++)
		if (k->param[i].name == s->name)
			k->param[i].name = copy;
	s->name = copy;
	ir_index_renamed_local(k, s->ended ? NAMED_ENDED : NAMED_VAR, v.id, old);
	note(k->m, &k->renamed, NAMED_VAR, v.id);
}

static void rename_register(cptx_kernel *k, cptx_site at, cptx_val v, const char *name)
{
	uint32_t decl = ir_decl_of(k, v.id);
	ir_decl *d = &k->decl[decl];

	if (decl < CLASS_COUNT) {
		ir_error(k, CPTX_E_ARG, at, "registers that calls made have no name to change; those that text declares have");
		return;
	}
	const char *copy = strcmp(d->name, name ? name : "") ? free_name(k, at, name, d->form == DECL_RANGE) : NULL;
	const char *old = d->name;
	if (!copy)
		return;
	d->name = copy;
	ir_index_renamed_local(k, d->form == DECL_RANGE ? NAMED_RANGE : NAMED_REG, decl, old);
	note(k->m, &k->renamed, NAMED_REG, decl);
}

static void rename_label(cptx_kernel *k, cptx_site at, cptx_val v, const char *name)
{
	ir_label *l = &k->label[v.id];
	const char *copy = l->name && !strcmp(l->name, name ? name : "") ? NULL : free_name(k, at, name, false);

	const char *old = l->name;

	if (!copy || (old && !rename_in_texts(k->m, old, copy)))
		return;
	l->name = copy;
	ir_index_renamed_local(k, NAMED_LABEL, v.id, old);
	note(k->m, &k->renamed, NAMED_LABEL, v.id);
}

static bool may_rename(cptx_module *m, cptx_site at)
{
	if (!m || m->err.code != CPTX_OK)
		return false;
	if (m->frozen)
		return error_set(&m->err, CPTX_E_STATE, at, "the module is frozen; edit it before it is printed, checked or loaded");
	return true;
}

void cptx_edit_rename_(cptx_kernel *k, cptx_site at, cptx_val what, const char *name)
{
	if (!k || !may_rename(k->m, at) || !ir_owned(k, at, &what, "what is to be renamed"))
		return;
	if (k->removed) {
		ir_error(k, CPTX_E_STATE, at, "it was removed");
		return;
	}
	if (what.kind == CPTX_VAL_FUNC && what.id - 1 < k->m->nbody) {
		cptx_edit_rename_global_(k->m, at, k->m->body[what.id - 1]->name, name);
		return;
	}
	if (what.kind == CPTX_VAL_SYM && what.id >= MODULE_SYM) {
		cptx_edit_rename_global_(k->m, at, k->m->sym[what.id - MODULE_SYM]->name, name);
		return;
	}
	if (what.kind == CPTX_VAL_SYM)
		rename_symbol(k, at, what, name);
	else if (what.kind == CPTX_VAL_REG)
		rename_register(k, at, what, name);
	else if (ir_is_label(&what))
		rename_label(k, at, what, name);
	else
		ir_error(k, CPTX_E_ARG, at, "only registers, variables, parameters, labels and functions have a name to change");
	if (k->m->err.code != CPTX_OK)
		return;
	if (!ir_is_label(&what) && (is_argument(k, k->arg, k->narg, &what) || is_argument(k, k->result, k->nresult, &what)))
		k->edited = true;
	ir_touch(k);
}

/* ---- of the module ---- */

static bool there_is(cptx_module *m, cptx_site at, const char *name)
{
	if (name && *name && ir_module_has_name(m, name))
		return true;
	if (!name)
		return error_set(&m->err, CPTX_E_ARG, at, "the name is NULL");
	return error_set(&m->err, CPTX_E_ARG, at, "the module has no kernel, function or variable named '%.64s'", name);
}

static bool free_in_bodies(cptx_module *m, cptx_site at, const char *name)
{
	const cptx_kernel *k = ir_any_body_with(m, name);

	return !k || error_set(&m->err, CPTX_E_ARG, at, "%s %s has something named '%s', which would hide it there",
	                       k->is_func ? "function" : "kernel", k->name, name);
}

static bool is_declared(const cptx_module *m, uint32_t sym, const void *user)
{
	(void)user;
	return !m->sym[sym]->removed;
}

static bool is_there(const cptx_module *m, uint32_t i, const void *user)
{
	(void)user;
	return !m->body[i]->removed;
}

void cptx_edit_rename_global_(cptx_module *m, cptx_site at, const char *old, const char *name)
{
	uint32_t i;

	if (!may_rename(m, at) || !there_is(m, at, old) || (name && !strcmp(old, name)) || !ir_name_ok(m, at, "new", name) ||
	    !ir_module_name_free(m, at, name, NULL) || !free_in_bodies(m, at, name))
		return;
	const char *copy = arena_strdup(&m->a, name);
	old = arena_strdup(&m->a, old);
	bool ok = copy && old && rename_in_texts(m, old, name);
	while (ok && (i = ir_global_named(m, NAMED_GLOBAL, old, is_declared, NULL)) != IR_NONE) {
		m->sym[i]->name = copy;
		ok = ir_index_renamed(m, NAMED_GLOBAL, i, old) && note(m, &m->renamed, NAMED_GLOBAL, i);
	}
	while (ok && (i = ir_global_named(m, NAMED_BODY, old, is_there, NULL)) != IR_NONE) {
		m->body[i]->name = copy;
		m->body[i]->edited = true;
		ok = ir_index_renamed(m, NAMED_BODY, i, old) && note(m, &m->renamed, NAMED_BODY, i);
	}
	if (!ok)
		ir_no_memory(m, at);
	m->touched = true;
}

/* ---- removing from the module ---- */

static bool remove_top(cptx_module *m, ir_top *t)
{
	ir_split_top(t);
	if (t->src_len && !ir_note_gone(m, NULL, t->src, t->src_len))
		return false;
	ir_unlink_top(m, t);
	return true;
}

static bool remove_body(cptx_module *m, cptx_kernel *k)
{
	k->removed = k->closed = true;
	if (!k->has_body)
		return true;
	if (k->prev)
		k->prev->next = k->next;
	else
		m->first = k->next;
	if (k->next)
		k->next->prev = k->prev;
	else
		m->last = k->prev;
	return ir_unplace(m, k) || ir_no_memory(m, NOWHERE);
}

static bool remove_variable(cptx_module *m, uint32_t i)
{
	ir_sym *s = m->sym[i];

	s->removed = 1;
	if (!s->top)
		return true;
	m->const_bytes -= s->space == CPTX_CONST ? (uint32_t)MIN(s->size, m->const_bytes) : 0;
	m->dyn_sym = m->dyn_sym == MODULE_SYM + i ? 0 : m->dyn_sym;
	return remove_top(m, s->top);
}

static bool remove_function(cptx_module *m, cptx_kernel *k)
{
	for (ir_top *t = k->tops; t; t = t->same)
		if (!remove_top(m, t))
			return false;
	k->tops = NULL;
	return remove_body(m, k);
}

void cptx_edit_remove_global_(cptx_module *m, cptx_site at, const char *name)
{
	uint32_t i;
	bool ok = true;

	if (!may_rename(m, at) || !there_is(m, at, name))
		return;
	for (const ir_top *t = ir_text_may_name(m, name) ? m->text_first : NULL; t; t = t->next_text)
		if (strncmp(t->text, ".file", 5) != 0 && ir_find_word(t->text, name)) {
			error_set(&m->err, CPTX_E_STATE, at, "'%.64s' is still named in text: %.60s", name, t->text);
			return;
		}
	m->touched = true;
	while (ok && (i = ir_global_named(m, NAMED_GLOBAL, name, is_declared, NULL)) != IR_NONE)
		ok = remove_variable(m, i);
	while (ok && (i = ir_global_named(m, NAMED_BODY, name, is_there, NULL)) != IR_NONE)
		ok = remove_function(m, m->body[i]);
}
