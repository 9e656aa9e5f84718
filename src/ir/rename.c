/* Renaming and removing what has a name; all that mentions it follows. */
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

/* What is renamed: of one body, or (k NULL) all of the module that has this name, by the pointer. */
typedef struct target {
	cptx_val v;
	const char *name;
} target;

static bool is_local(const cptx_kernel *k, const cptx_val *v, void *user)
{
	const cptx_val *what = &((const target *)user)->v;

	if (ir_is_label(what))
		return ir_is_label(v) && v->id == what->id;
	if (v->kind != what->kind)
		return false;
	if (v->kind == CPTX_VAL_SYM)
		return v->id == what->id;
	for (uint32_t i = 0; v->kind == CPTX_VAL_REG && i < v->count; i++)
		if (ir_decl_of(k, v->id + i) == ir_decl_of(k, what->id))
			return true;
	return false;
}

static bool is_global(const cptx_kernel *k, const cptx_val *v, void *user)
{
	const char *name = ((const target *)user)->name;

	if (v->kind == CPTX_VAL_FUNC)
		return k->m->body[v->id - 1]->name == name;
	return v->kind == CPTX_VAL_SYM && v->id >= MODULE_SYM && k->m->sym[v->id - MODULE_SYM]->name == name;
}

/* Declarations `regs.id` up to `regs.id` + `regs.offset`. */
static bool declares(cptx_val regs, uint32_t decl) { return decl >= regs.id && decl - regs.id < (uint32_t)regs.offset; }

static void mark_all(cptx_kernel *k, ir_value_fn fn, target *t)
{
	for (ir_item *it = k->first; it; it = it->next) {
		bool regs =
			it->kind == ITEM_REGS && t->v.kind == CPTX_VAL_REG && declares(ir_operand(k, it, 0), ir_decl_of(k, t->v.id));
		if (regs || ir_any_value(k, it, fn, t))
			ir_mark(k, it);
	}
}

/* Sections and .alias, which are kept as text; strings in them stay. */
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
	for (ir_top *t = m->top_first; t; t = t->next)
		if (t->kind == TOP_TEXT && !rename_in_text(m, t, old, name))
			return false;
	return true;
}

/* ---- names that text may have ---- */

static bool is_identifier(const char *s)
{
	const char *letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", *more = "0123456789_$";
	size_t n = s ? strlen(s) : 0;
	bool ok = n && n < 1024 && (strchr(letters, *s) || (strchr("_$%", *s) && n > 1));

	for (size_t i = 1; ok && i < n; i++)
		ok = strchr(letters, s[i]) || strchr(more, s[i]);
	return ok;
}

static bool is_reserved(const char *name)
{
	static const char *const begin[] = { IR_PREFIX, "%cptx", "$cptx" };

	for (size_t i = 0; i < ARRAY_LEN(begin); i++)
		if (!strncmp(name, begin[i], strlen(begin[i])))
			return true;
	for (unsigned i = 0; i < arch_nsreg; i++) { /* %tid of %tid.x, %envreg of %envreg7 */
		size_t n = strcspn(arch_sregs[i].text, ".0123456789");
		if (strlen(name) >= n && !strncmp(name, arch_sregs[i].text, n) && strspn(name + n, "0123456789") == strlen(name + n))
			return true;
	}
	return !strcmp(name, "WARP_SZ");
}

/* Is some name of the body, or of the module, one of the range's? */
static bool range_taken(const cptx_kernel *k, const char *prefix)
{
	const cptx_module *m = k->m;
	size_t n = strlen(prefix);
#define IN_RANGE(name) (!strncmp((name), prefix, n) && strspn((name) + n, "0123456789") == strlen((name) + n))

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
	for (size_t i = 0; i < m->nsym; i++)
		if (IN_RANGE(m->sym[i]->name))
			return true;
	for (size_t i = 0; i < m->nbody; i++)
		if (IN_RANGE(m->body[i]->name))
			return true;
	return false;
#undef IN_RANGE
}

/* The copy of a name that a register or label of the body may get; NULL, with an error. */
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

	if (own || !ir_name_ok(k->m, at, s->space == CPTX_PARAM ? "parameter" : "variable", name) ||
	    !ir_local_name_free(k, at, name))
		return;
	const char *copy = arena_strdup(&k->m->a, name);
	if (!copy) {
		ir_no_memory(k->m, at);
		return;
	}
	for (size_t i = 0; i < k->nparam; i++)
		if (k->param[i].name == s->name)
			k->param[i].name = copy;
	s->name = copy;
}

static void rename_register(cptx_kernel *k, cptx_site at, cptx_val v, const char *name)
{
	ir_decl *d = &k->decl[ir_decl_of(k, v.id)];

	if (ir_decl_of(k, v.id) < CLASS_COUNT) {
		ir_error(k, CPTX_E_ARG, at, "registers that calls made have no name to change; those that text declares have");
		return;
	}
	const char *copy = strcmp(d->name, name ? name : "") ? free_name(k, at, name, d->form == DECL_RANGE) : NULL;
	if (copy)
		d->name = copy;
}

static void rename_label(cptx_kernel *k, cptx_site at, cptx_val v, const char *name)
{
	ir_label *l = &k->label[v.id];
	const char *copy = l->name && !strcmp(l->name, name ? name : "") ? NULL : free_name(k, at, name, false);

	if (copy && (!l->name || rename_in_texts(k->m, l->name, copy)))
		l->name = copy;
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
	target t = { .v = what };

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
	mark_all(k, is_local, &t);
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
	for (const cptx_kernel *k = m->first; k; k = k->next)
		if (ir_body_has_name(k, name))
			return error_set(&m->err, CPTX_E_ARG, at, "%s %s has something named '%s', which would hide it there",
			                 k->is_func ? "function" : "kernel", k->name, name);
	return true;
}

static bool refers(const cptx_module *m, const ir_sym *s, const char *name)
{
	for (uint32_t i = 0; i < s->nreloc; i++) {
		const cptx_val *to = &s->reloc[i].to;
		if ((to->kind == CPTX_VAL_FUNC ? m->body[to->id - 1]->name : m->sym[to->id - MODULE_SYM]->name) == name)
			return true;
	}
	return false;
}

void cptx_edit_rename_global_(cptx_module *m, cptx_site at, const char *old, const char *name)
{
	target t = { .name = NULL };

	if (!may_rename(m, at) || !there_is(m, at, old) || (name && !strcmp(old, name)) || !ir_name_ok(m, at, "new", name) ||
	    !ir_module_name_free(m, at, name, NULL) || !free_in_bodies(m, at, name))
		return;
	t.name = arena_strdup(&m->a, name);
	old = arena_strdup(&m->a, old);
	if (!t.name || !old || !rename_in_texts(m, old, name)) {
		ir_no_memory(m, at);
		return;
	}
	for (size_t i = 0; i < m->nsym; i++)
		if (!m->sym[i]->removed && !strcmp(m->sym[i]->name, old))
			m->sym[i]->name = t.name;
	for (size_t i = 0; i < m->nbody; i++)
		if (!m->body[i]->is_proto && !m->body[i]->removed && !strcmp(m->body[i]->name, old)) {
			m->body[i]->name = t.name;
			m->body[i]->edited = true;
		}
	for (ir_top *top = m->top_first; top; top = top->next) {
		const ir_sym *s = top->kind == TOP_VAR ? m->sym[top->sym - MODULE_SYM] : NULL;
		if (!s || (s->name != t.name && !refers(m, s, t.name)))
			continue;
		ir_split_top(top);
		top->edited = true;
	}
	m->touched = true;
	for (cptx_kernel *k = m->first; k; k = k->next)
		mark_all(k, is_global, &t);
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

static void remove_body(cptx_module *m, cptx_kernel *k)
{
	size_t i = 0;

	k->removed = k->closed = true;
	if (!k->has_body)
		return;
	while (m->placed[i] != k)
		i++;
	m->nplaced--;
	memmove(m->placed + i, m->placed + i + 1, (m->nplaced - i) * sizeof *m->placed);
	if (k->prev)
		k->prev->next = k->next;
	else
		m->first = k->next;
	if (k->next)
		k->next->prev = k->prev;
	else
		m->last = k->prev;
}

void cptx_edit_remove_global_(cptx_module *m, cptx_site at, const char *name)
{
	if (!may_rename(m, at) || !there_is(m, at, name))
		return;
	for (const ir_top *t = m->top_first; t; t = t->next)
		if (t->kind == TOP_TEXT && strncmp(t->text, ".file", 5) != 0 && ir_find_word(t->text, name)) {
			error_set(&m->err, CPTX_E_STATE, at, "'%.64s' is still named in text: %.60s", name, t->text);
			return;
		}
	m->touched = true;
	for (ir_top *t = m->top_first, *next; t; t = next) {
		ir_sym *s = t->kind == TOP_VAR ? m->sym[t->sym - MODULE_SYM] : NULL;
		bool body = t->kind == TOP_BODY || t->kind == TOP_PROTO;
		next = t->next;
		if (body ? strcmp(t->k->name, name) != 0 : !s || strcmp(s->name, name) != 0)
			continue;
		if (!remove_top(m, t))
			return;
		if (s) {
			s->removed = 1;
			m->const_bytes -= s->space == CPTX_CONST ? (uint32_t)MIN(s->size, m->const_bytes) : 0;
			m->dyn_sym = m->dyn_sym == t->sym ? 0 : m->dyn_sym;
		} else if (!t->k->removed) {
			remove_body(m, t->k);
		}
	}
}
