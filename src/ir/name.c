/* SPDX-License-Identifier: MIT */
/* Names that users choose: what they may be, and whether they are free where they will stand. */
#include "ir/ir.h"

#include <stdio.h>

bool ir_is_identifier(const char *name, const char *front)
{
	bool letter = (*name | 32) >= 'a' && (*name | 32) <= 'z';

	if (!*name || !(letter || (strchr(front, *name) && name[1])))
		return false;
	for (const char *p = name + 1; *p; p++)
		if (!((*p | 32) >= 'a' && (*p | 32) <= 'z') && !(*p >= '0' && *p <= '9') && *p != '_' && *p != '$')
			return false;
	return true;
}

static bool check(const char *what, const char *name, cptx_site at, cptx_error *err)
{
	if (!name)
		return error_set(err, CPTX_E_ARG, at, "the %s name is NULL", what);
	if (!ir_is_identifier(name, "_$"))
		return error_set(err, CPTX_E_ARG, at,
		                 "%s name '%.64s' is no PTX identifier (a letter, then letters, digits, _ and $)", what, name);
	if (!strncmp(name, IR_PREFIX, strlen(IR_PREFIX)) || !strncmp(name, "$L", 2) || !strcmp(name, "WARP_SZ"))
		return error_set(err, CPTX_E_ARG, at, "%s name '%.64s' is reserved (as are all that begin with " IR_PREFIX " or $L)",
		                 what, name);
	return true;
}

bool ir_name_ok(cptx_module *m, cptx_site at, const char *what, const char *name) { return check(what, name, at, &m->err); }

bool cptx_name_check(const char *what, const char *name, cptx_error *err)
{
	return may_go(err) && check(what && *what ? what : "kernel", name, NOWHERE, err);
}

static bool is_parameter(const cptx_kernel *k, uint32_t sym)
{
	for (size_t i = 0; i < k->narg; i++)
		if (k->arg[i].sym == sym)
			return true;
	return false;
}

static bool is_variable(const cptx_kernel *k, uint32_t id, const void *user)
{
	(void)user;
	return !k->sym[id]->removed && !is_parameter(k, id);
}

static bool is_living_parameter(const cptx_kernel *k, uint32_t id, const void *user)
{
	(void)user;
	return !k->sym[id]->removed && is_parameter(k, id);
}

static bool has_variable(const cptx_kernel *k, const char *name)
{
	return ir_local_named(k, NAMED_VAR, name, is_variable, NULL) != IR_NONE;
}

static bool has_parameter(const cptx_kernel *k, const char *name)
{
	return ir_local_named(k, NAMED_VAR, name, is_living_parameter, NULL) != IR_NONE;
}

static bool module_has_variable(const cptx_module *m, const char *name)
{
	return ir_global_named(m, NAMED_GLOBAL, name, ir_variable_is_there, NULL) != IR_NONE;
}

static bool is_body(const cptx_module *m, uint32_t i, const void *user)
{
	(void)user;
	return !m->body[i]->removed;
}

static const cptx_kernel *body_named(const cptx_module *m, const char *name)
{
	uint32_t i = ir_global_named(m, NAMED_BODY, name, is_body, NULL);

	return i == IR_NONE ? NULL : m->body[i];
}

/* Whether a text is digits alone, as behind the prefix of a register range. */
static bool is_number(const char *s) { return *s && s[strspn(s, "0123456789")] == 0; }

static bool has_register_or_label(const cptx_kernel *k, const char *name)
{
	for (size_t i = 0; i < k->ndecl && i < CLASS_COUNT; i++) { /* the first declarations are the builder's */
		const ir_decl *d = &k->decl[i];
		size_t n = strlen(d->name);
		if (d->count && !strncmp(d->name, name, n) && is_number(name + n))
			return true;
	}
	return ir_local_named(k, NAMED_REG, name, NULL, NULL) != IR_NONE || ir_range_named(k, name, NULL) != IR_NONE ||
	       ir_local_named(k, NAMED_LABEL, name, NULL, NULL) != IR_NONE;
}

bool ir_body_has_name(const cptx_kernel *k, const char *name)
{
	return has_variable(k, name) || has_parameter(k, name) || has_register_or_label(k, name);
}

bool ir_module_has_name(const cptx_module *m, const char *name)
{
	return module_has_variable(m, name) || body_named(m, name);
}

bool ir_local_name_taken(const cptx_kernel *k, const char *name)
{
	const cptx_kernel *f = body_named(k->m, name);
	return has_variable(k, name) || has_parameter(k, name) || module_has_variable(k->m, name) || (f && f->is_func) ||
	       (k->m->parsed && has_register_or_label(k, name));
}

bool ir_local_name_free(cptx_kernel *k, cptx_site at, const char *name)
{
	if (!ir_local_name_taken(k, name))
		return true;
	if (has_variable(k, name))
		return ir_error(k, CPTX_E_ARG, at, "it already has a variable named '%s'", name);
	if (has_parameter(k, name))
		return ir_error(k, CPTX_E_ARG, at, "it already has a parameter named '%s'", name);
	if (k->m->parsed && has_register_or_label(k, name))
		return ir_error(k, CPTX_E_ARG, at, "it already has a register or label named '%s'", name);
	return ir_error(k, CPTX_E_ARG, at, "the module already has a %s named '%s', which this one would hide",
	                module_has_variable(k->m, name) ? "variable" : "function", name);
}

bool ir_module_name_free(cptx_module *m, cptx_site at, const char *name, const cptx_kernel *open)
{
	const cptx_kernel *k = body_named(m, name);

	if (k)
		return error_set(&m->err, CPTX_E_ARG, at, "the module already has a %s named '%s'",
		                 k->is_func ? "function" : "kernel", name);
	if (module_has_variable(m, name))
		return error_set(&m->err, CPTX_E_ARG, at, "the module already has a variable named '%s'", name);
	const cptx_kernel *f = m->parsed ? ir_any_body_with(m, name) : NULL;
	if (f)
		return error_set(&m->err, CPTX_E_ARG, at, "%s %s has something named '%s', which would hide it there",
		                 f->is_func ? "function" : "kernel", f->name, name);
	if (open && (has_variable(open, name) || has_parameter(open, name)))
		return error_set(&m->err, CPTX_E_ARG, at, "%s %s, which is still open, has a %s named '%s' that would hide it",
		                 open->is_func ? "function" : "kernel", open->name,
		                 has_variable(open, name) ? "variable" : "parameter", name);
	return true;
}

/* ---- names that are made ---- */

char *ir_reg_name(const cptx_kernel *k, char *p, uint32_t id)
{
	const ir_decl *d = &k->decl[ir_decl_of(k, id)];
	size_t n = strlen(d->name);

	memcpy(p, d->name, n);
	p += n;
	if (d->form == DECL_RANGE)
		return text_u64(p, ir_number_of(k, id));
	if (d->form == DECL_VECTOR)
		*p++ = '.', *p++ = "xyzw"[ir_number_of(k, id) & 3];
	return p;
}

size_t ir_label_name(const cptx_kernel *k, char *p, uint32_t id)
{
	const char *name = k->label[id].name;

	if (name) {
		size_t n = strlen(name);
		memcpy(p, name, n);
		return n;
	}
	size_t n = k->made ? strlen(k->made) : 0;
	*p = '$';
	if (n)
		memcpy(p + 1, k->made, n);
	p[1 + n] = 'L';
	return (size_t)(text_u64(p + n + 2, id) - p);
}

static bool begins(const char *name, char mark, const char *with)
{
	return name && *name == mark && !strncmp(name + 1, with, strlen(with));
}

/* Whether a name that the body may refer to begins with % or $, followed by this text. */
static bool in_use(const cptx_kernel *k, const char *with)
{
	const cptx_module *m = k->m;
	bool used = false;

	for (size_t i = CLASS_COUNT; i < k->ndecl && !used; i++)
		used = begins(k->decl[i].name, '%', with) || begins(k->decl[i].name, '$', with);
	for (size_t i = 0; i < k->nsym && !used; i++)
		used = begins(k->sym[i]->name, '%', with) || begins(k->sym[i]->name, '$', with);
	for (size_t i = 0; i < k->nlabel && !used; i++)
		used = begins(k->label[i].name, '$', with) || begins(k->label[i].name, '%', with);
	for (size_t i = 0; m->odd_names && i < m->nsym && !used; i++)
		used = begins(m->sym[i]->name, '%', with) || begins(m->sym[i]->name, '$', with);
	for (size_t i = 0; m->odd_names && i < m->nbody && !used; i++)
		used = begins(m->body[i]->name, '%', with) || begins(m->body[i]->name, '$', with);
	return used;
}

bool ir_made_names(cptx_kernel *k)
{
	char tag[32] = "";

	if (!k->m->parsed || k->made)
		return true;
	if (k->src_len || in_use(k, tag)) /* names in a parsed body begin with % and $ anyway */
		for (unsigned n = 1; n == 1 || in_use(k, tag); n++)
			snprintf(tag, sizeof tag, n == 1 ? "cptx_" : "cptx%u_", n);
	const char *copy = arena_strdup(&k->m->a, tag);
	for (unsigned c = 0; copy && c < CLASS_COUNT && k->ndecl; c++) {
		size_t n = strlen(tag) + strlen(ir_classes[c].prefix) + 1;
		char *name = ARENA_ARRAY(&k->m->a, char, n);
		if (!name)
			return false;
		snprintf(name, n, "%%%s%s", tag, ir_classes[c].prefix + 1);
		k->decl[c].name = name;
	}
	if (copy && k->ndecl)
		k->made = copy;
	return copy && k->ndecl;
}

const char *ir_find_word(const char *text, const char *name)
{
	const char *letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$%";
	size_t n = strlen(name);

	for (const char *p = text; (p = strstr(p, name)); p++)
		if ((p == text || !strchr(letters, p[-1])) && (!p[n] || !strchr(letters, p[n])))
			return p;
	return NULL;
}
