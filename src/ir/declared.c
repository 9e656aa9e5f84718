/* SPDX-License-Identifier: MIT */
/*
 * Checks of an edited module: whatever is used must be declared where it is used, and its name must mean it there.
 * Registers and variables must be declared above, in the same scope or one around it; labels anywhere in such a scope;
 * functions and variables of the module above.
 */
#include "ir/ir.h"

#include <stdio.h>

/* A register declaration, variable or label whose name is visible at some place of the body. */
enum live_kind { LIVE_REGS, LIVE_VAR, LIVE_LABEL };
typedef struct live {
	uint32_t id;
	enum live_kind kind;
} live;

typedef struct scope_state {
	cptx_kernel *k;
	uint32_t top;         /* the body's place in the module */
	uint32_t *func, *var; /* the place in the module of the first declaration of each function and variable; IR_NONE: none */
	uint32_t *regs, *sym; /* of the body's registers and symbols: place in `stack` + 1 while declared, else 0 */
	uint32_t *label, *outer; /* label: scope + 1 of each label; outer: the scope around each scope */
	unsigned char *open;     /* which scopes are open */
	live *stack;             /* all visible declarations, innermost last */
	hash_table names;        /* their names, by place in the stack */
	buf name;                /* the name that is looked up */
	size_t nstack, *mark;    /* mark: height of the stack where each open scope began */
	const ir_item *it;       /* the item that is checked */
	bool no_memory;
} scope_state;

static bool undeclared(scope_state *w, const cptx_val *v, const char *why)
{
	const ir_item *it = w->it;
	cptx_site at = it->file ? (cptx_site){ w->k->m->file[it->file - 1], it->line } : w->k->at;
	char name[256];

	cptx_body_name_of(w->k, *v, name, sizeof name);
	return ir_error(w->k, CPTX_E_STATE, at, "'%.200s' %s", name, why);
}

/* The hash of a kind of name.  Registers of a range are found by the text in front of their digits. */
static uint32_t hash_of(enum live_kind kind, bool range)
{
	return TABLE_HASH ^ (uint32_t)(kind == LIVE_REGS && range ? LIVE_LABEL + 1 : kind) * 0x9e3779b9u;
}

static uint32_t hash_of_live(const cptx_kernel *k, const live *l)
{
	const char *name = l->kind == LIVE_REGS  ? k->decl[l->id].name
	                   : l->kind == LIVE_VAR ? k->sym[l->id]->name
	                                         : k->label[l->id].name;

	return table_hash(hash_of(l->kind, l->kind == LIVE_REGS && k->decl[l->id].form == DECL_RANGE), name ? name : "");
}

/* Whether the first n characters of `name`, with the digits behind them, name `l`. */
static bool same_name(const cptx_kernel *k, const live *l, const char *name, size_t n)
{
	if (l->kind == LIVE_LABEL)
		return k->label[l->id].name && !strcmp(k->label[l->id].name, name);
	const ir_decl *d = l->kind == LIVE_REGS ? &k->decl[l->id] : NULL;
	const char *has = d ? d->name : k->sym[l->id]->name, *digits = name + n;
	if (strncmp(has, name, n) != 0 || has[n])
		return false;
	uint64_t number = 0;
	for (const char *p = digits; *p && p < digits + 10; p++)
		number = number * 10 + (uint64_t)(*p - '0');
	return !d || d->form != DECL_RANGE || (strlen(digits) < 10 && (*digits != '0' || !digits[1]) && number < d->count);
}

static bool is_live(const scope_state *w, uint32_t hash, const char *name, size_t n, size_t from)
{
	TABLE_EACH(&w->names, hash, place)
	{
		if (place >= from && same_name(w->k, &w->stack[place], name, n))
			return true;
	}
	return false;
}

/* Whether a declaration in an inner scope, from place `from` of the stack on, hides the name. */
static bool means_more(const scope_state *w, const char *name, size_t from)
{
	size_t len = strlen(name), stem = len, dot = strcspn(name, ".");
	uint32_t range = hash_of(LIVE_REGS, true), single = hash_of(LIVE_REGS, false);

	while (stem && name[stem - 1] >= '0' && name[stem - 1] <= '9')
		stem--;
	for (size_t i = 0; i < len; i++) {
		if (i && i >= stem && is_live(w, range, name, i, from))
			return true;
		range = table_hash_char(range, name[i]);
		single = i < dot ? table_hash_char(single, name[i]) : single;
	}
	return is_live(w, single, name, dot, from) || is_live(w, table_hash(hash_of(LIVE_VAR, false), name), name, len, from) ||
	       is_live(w, table_hash(hash_of(LIVE_LABEL, false), name), name, len, from);
}

static bool hidden(scope_state *w, const cptx_val *v, size_t from)
{
	if (from == w->nstack || (ir_src_len(w->it) && !(w->it->flags & ITEM_EDITED)))
		return false; /* the name stood there in the parsed text already */
	size_t n = cptx_body_name_of(w->k, *v, NULL, 0);
	w->name.n = 0;
	if (!buf_reserve(&w->name, n + 1))
		return !ir_no_memory(w->k->m, w->k->at);
	cptx_body_name_of(w->k, *v, w->name.p, n + 1);
	return means_more(w, w->name.p, from);
}

static bool check_register(scope_state *w, const cptx_val *v)
{
	for (uint32_t i = 0; i < v->count; i++) {
		uint32_t d = ir_decl_of(w->k, v->id + i);
		cptx_val one = cptx_elem(*v, i);
		if (d < CLASS_COUNT)
			continue;
		if (!w->regs[d])
			return undeclared(w, &one,
			                  "is not declared where this uses it; its .reg was removed, or stands further down or in "
			                  "another scope");
		if (hidden(w, &one, w->regs[d]))
			return undeclared(w, &one, "means something else in this scope");
	}
	return true;
}

static bool check_symbol(scope_state *w, const cptx_val *v)
{
	uint32_t id = v->id;

	if (id >= MODULE_SYM ? w->var[id - MODULE_SYM] == IR_NONE : !w->sym[id])
		return undeclared(w, v,
		                  "is not declared where this uses it; it was removed, or stands further down or in another "
		                  "scope");
	if (id >= MODULE_SYM && w->var[id - MODULE_SYM] > w->top)
		return undeclared(w, v, "is declared further down in the module");
	return !hidden(w, v, id >= MODULE_SYM ? 0 : w->sym[id]) || undeclared(w, v, "means something else in this scope");
}

static bool check_label(scope_state *w, const cptx_val *v)
{
	uint32_t scope = w->label[v->id];

	w->k->label[v->id].used = 1;
	if (!scope || !w->open[scope - 1])
		return undeclared(w, v,
		                  scope ? "is a label of another scope" : "is a label that stands nowhere; cptx_place puts it");
	return true;
}

/* A function that is defined below its use is declared in front of all bodies. */
static bool check_function(scope_state *w, const cptx_val *v)
{
	cptx_module *m = w->k->m;
	cptx_kernel *f = m->body[v->id - 1];

	if (f->removed || w->func[v->id - 1] == IR_NONE)
		return undeclared(w, v, "was removed");
	if (w->func[v->id - 1] > w->top) {
		ir_top *t = ir_top_add(m, TOP_PROTO);
		if (!t)
			return ir_no_memory(m, w->k->at);
		ir_top_body(t, f);
		w->func[v->id - 1] = 0;
	}
	return !hidden(w, v, 0) || undeclared(w, v, "means something else in this scope");
}

/* A callback of ir_any_value: returns true, with an error, for a value that is not declared. */
static bool wrong(const cptx_kernel *k, const cptx_val *v, void *user)
{
	scope_state *w = (scope_state *)user;

	(void)k;
	switch ((enum cptx_val_kind)v->kind) {
	case CPTX_VAL_REG: return !check_register(w, v);
	case CPTX_VAL_SYM: return !check_symbol(w, v);
	case CPTX_VAL_LABEL:
	case CPTX_VAL_TARGETS:
	case CPTX_VAL_PROTO: return !check_label(w, v);
	case CPTX_VAL_FUNC: return !check_function(w, v);
	default: return false;
	}
}

static void declare(scope_state *w, uint32_t id, enum live_kind kind)
{
	w->stack[w->nstack] = (live){ id, kind };
	w->no_memory |= !table_add(&w->names, &w->k->m->a.hook, hash_of_live(w->k, &w->stack[w->nstack]), (uint32_t)w->nstack);
	w->nstack++;
	if (kind == LIVE_REGS)
		w->regs[id] = (uint32_t)w->nstack;
	else if (kind == LIVE_VAR)
		w->sym[id] = (uint32_t)w->nstack;
}

static void leave_scope(scope_state *w, uint32_t scope)
{
	while (w->nstack > w->mark[scope]) {
		const live *l = &w->stack[--w->nstack];
		table_drop(&w->names, hash_of_live(w->k, l), (uint32_t)w->nstack);
		if (l->kind == LIVE_REGS)
			w->regs[l->id] = 0;
		else if (l->kind == LIVE_VAR)
			w->sym[l->id] = 0;
	}
	w->open[scope] = 0;
}

static bool is_label_item(const ir_item *it)
{
	return it->kind == ITEM_LABEL || it->kind == ITEM_TARGETS || it->kind == ITEM_PROTO;
}

/* Enters all labels, because a label is visible in all of its scope. */
static void place_labels(scope_state *w)
{
	uint32_t scope = 0, n = 0;

	for (const ir_item *it = w->k->first; it; it = it->next) {
		if (it->kind == ITEM_SCOPE)
			w->outer[++n] = scope, scope = n;
		else if (it->kind == ITEM_END)
			scope = w->outer[scope];
		else if (is_label_item(it))
			w->label[ir_operand(w->k, it, 0).id] = scope + 1;
	}
	for (size_t i = 0; i < w->k->nlabel; i++)
		w->k->label[i].used = 0;
}

static void declare_arguments(scope_state *w, const ir_arg *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		declare(w, list[i].sym == IR_NONE ? ir_decl_of(w->k, list[i].reg) : list[i].sym,
		        list[i].sym == IR_NONE ? LIVE_REGS : LIVE_VAR);
}

static bool check_items(scope_state *w)
{
	uint32_t scope = 0, n = 0;

	w->open[0] = 1;
	declare_arguments(w, w->k->arg, w->k->narg);
	declare_arguments(w, w->k->result, w->k->nresult);
	for (const ir_item *it = w->it = w->k->first; it; w->it = it = it->next) {
		cptx_val v[ARCH_OPERANDS];
		ir_operands(w->k, it, v);
		switch ((enum ir_item_kind)it->kind) {
		case ITEM_SCOPE:
			scope = ++n;
			w->open[scope] = 1;
			w->mark[scope] = w->nstack;
			break;
		case ITEM_END:
			leave_scope(w, scope);
			scope = w->outer[scope];
			break;
		case ITEM_REGS:
			for (uint32_t i = 0; i < (uint32_t)v->offset; i++)
				declare(w, v->id + i, LIVE_REGS);
			break;
		case ITEM_VAR: declare(w, v->id, LIVE_VAR); break;
		case ITEM_LABEL: declare(w, v->id, LIVE_LABEL); break;
		case ITEM_INSN:
			if (ir_any_value(w->k, it, wrong, w))
				return false;
			break;
		case ITEM_TARGETS:
			for (uint32_t i = 0; i < v[1].count; i++)
				if (wrong(w->k, &w->k->vec[v[1].id + i], w))
					return false;
			break;
		default: break;
		}
	}
	return true;
}

static void *zeroed(cptx_module *m, size_t n, size_t size, bool *ok)
{
	void *p = *ok ? heap_realloc(&m->a.hook, NULL, (n + 1) * size) : NULL;

	*ok = p != NULL;
	return p ? memset(p, 0, (n + 1) * size) : NULL;
}
#define ZEROED(m, type, n, ok) ((type *)zeroed((m), (n), sizeof(type), (ok)))

static void release(cptx_module *m, void *p)
{
	if (p)
		heap_realloc(&m->a.hook, p, 0);
}

static bool check_body(scope_state *w)
{
	cptx_kernel *k = w->k;
	size_t scopes = 0, labels = 0;
	bool ok = true;

	for (const ir_item *it = k->first; it; it = it->next) {
		scopes += it->kind == ITEM_SCOPE;
		labels += it->kind == ITEM_LABEL;
	}
	w->nstack = 0;
	buf_init(&w->name, &k->m->a.hook);
	w->regs = ZEROED(k->m, uint32_t, k->ndecl, &ok);
	w->sym = ZEROED(k->m, uint32_t, k->nsym, &ok);
	w->label = ZEROED(k->m, uint32_t, k->nlabel, &ok);
	w->outer = ZEROED(k->m, uint32_t, scopes, &ok);
	w->open = ZEROED(k->m, unsigned char, scopes, &ok);
	w->mark = ZEROED(k->m, size_t, scopes, &ok);
	w->stack = ZEROED(k->m, live, k->ndecl + k->nsym + labels, &ok);
	if (ok) {
		place_labels(w);
		ok = check_items(w);
	}
	if (w->no_memory || !w->stack)
		ok = ir_no_memory(k->m, k->at);
	table_free(&w->names, &k->m->a.hook);
	buf_free(&w->name);
	release(k->m, w->regs);
	release(k->m, w->sym);
	release(k->m, w->label);
	release(k->m, w->outer);
	release(k->m, w->open);
	release(k->m, w->mark);
	release(k->m, w->stack);
	return ok;
}

/* Finds the first declarations of functions and variables of the module. */
static void place_globals(cptx_module *m, scope_state *w)
{
	uint32_t i = 1;

	memset(w->func, 0xff, m->nbody * sizeof *w->func);
	memset(w->var, 0xff, m->nsym * sizeof *w->var);
	for (const ir_top *t = m->top_first; t; t = t->next, i++) {
		uint32_t *at = t->kind == TOP_VAR                            ? &w->var[t->sym - MODULE_SYM]
		               : t->kind == TOP_BODY || t->kind == TOP_PROTO ? &w->func[t->k->number - 1]
		                                                             : NULL;
		if (at)
			*at = MIN(*at, i);
	}
	/* a declaration also stands for its definition, and a definition for its declarations */
	for (size_t b = 0; b < m->nbody; b++) {
		const cptx_kernel *def = m->body[b]->def;
		if (!def || def->removed)
			continue;
		uint32_t first = MIN(w->func[b], w->func[def->number - 1]);
		w->func[b] = w->func[def->number - 1] = first;
	}
}

static bool check_initialisers(cptx_module *m, const scope_state *w)
{
	for (size_t i = 0; i < m->nsym; i++)
		for (uint32_t r = 0; !m->sym[i]->removed && r < m->sym[i]->nreloc; r++) {
			const cptx_val *to = &m->sym[i]->reloc[r].to;
			bool gone = to->kind == CPTX_VAL_FUNC ? w->func[to->id - 1] == IR_NONE : w->var[to->id - MODULE_SYM] == IR_NONE;
			if (gone)
				return error_set(&m->err, CPTX_E_STATE, NOWHERE, "variable '%s': '%s', whose address it holds, was removed",
				                 m->sym[i]->name,
				                 to->kind == CPTX_VAL_FUNC ? m->body[to->id - 1]->name : m->sym[to->id - MODULE_SYM]->name);
		}
	return true;
}

bool ir_check_declared(cptx_module *m)
{
	scope_state w = { 0 };
	bool ok = true;
	uint32_t i = 1;

	w.func = ZEROED(m, uint32_t, m->nbody, &ok);
	w.var = ZEROED(m, uint32_t, m->nsym, &ok);
	if (ok) {
		place_globals(m, &w);
		ok = check_initialisers(m, &w);
	} else {
		ir_no_memory(m, NOWHERE);
	}
	for (const ir_top *t = m->top_first, *next; ok && t; t = next, i++) {
		next = t->next;
		w.k = t->k;
		w.top = i;
		ok = t->kind != TOP_BODY || check_body(&w);
	}
	release(m, w.func);
	release(m, w.var);
	return ok;
}
