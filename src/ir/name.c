/* Names of the user: what they may be, and whether they are free where they will stand. */
#include "ir/ir.h"

bool ir_name_ok(cptx_module *m, cptx_site at, const char *what, const char *name)
{
	size_t n = name ? strlen(name) : 0;
	const char *letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", *more = "0123456789_$";
	bool ok = n && n < 1024 && (strchr(letters, name[0]) || (strchr("_$", name[0]) && n > 1));

	for (size_t i = 1; ok && i < n; i++)
		ok = strchr(letters, name[i]) || strchr(more, name[i]);
	if (!ok)
		return error_set(&m->err, CPTX_E_ARG, at,
		                 "%s name '%.64s' is no PTX identifier (a letter, then letters, digits, _ and $)", what,
		                 name ? name : "(null)");
	if (!strncmp(name, IR_PREFIX, strlen(IR_PREFIX)) || !strncmp(name, "$L", 2) || !strcmp(name, "WARP_SZ"))
		return error_set(&m->err, CPTX_E_ARG, at,
		                 "%s name '%.64s' is reserved (as are all that begin with " IR_PREFIX " or $L)", what, name);
	return true;
}

static bool is_parameter(const cptx_kernel *k, uint32_t sym)
{
	for (size_t i = 0; i < k->narg; i++)
		if (k->arg[i].sym == sym)
			return true;
	return false;
}

/* A parameter of it, or another variable. */
static bool has_name(const cptx_kernel *k, const char *name, bool parameter)
{
	for (size_t i = 0; i < k->nsym; i++)
		if (!k->sym[i]->ended && !strcmp(k->sym[i]->name, name) && is_parameter(k, (uint32_t)i) == parameter)
			return true;
	return false;
}

static bool has_variable(const cptx_kernel *k, const char *name) { return has_name(k, name, false); }

static bool has_parameter(const cptx_kernel *k, const char *name) { return has_name(k, name, true); }

static bool module_has_variable(const cptx_module *m, const char *name)
{
	for (size_t i = 0; i < m->nsym; i++)
		if (!strcmp(m->sym[i]->name, name))
			return true;
	return false;
}

static const cptx_kernel *body_named(const cptx_module *m, const char *name)
{
	for (size_t i = 0; i < m->nbody; i++)
		if (m->body[i]->name && !strcmp(m->body[i]->name, name))
			return m->body[i];
	return NULL;
}

bool ir_local_name_taken(const cptx_kernel *k, const char *name)
{
	const cptx_kernel *f = body_named(k->m, name);
	return has_variable(k, name) || has_parameter(k, name) || module_has_variable(k->m, name) || (f && f->is_func);
}

bool ir_local_name_free(cptx_kernel *k, cptx_site at, const char *name)
{
	if (!ir_local_name_taken(k, name))
		return true;
	if (has_variable(k, name))
		return ir_error(k, CPTX_E_ARG, at, "it already has a variable named '%s'", name);
	if (has_parameter(k, name))
		return ir_error(k, CPTX_E_ARG, at, "it already has a parameter named '%s'", name);
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
	if (open && (has_variable(open, name) || has_parameter(open, name)))
		return error_set(&m->err, CPTX_E_ARG, at, "%s %s, which is still open, has a %s named '%s' that would hide it",
		                 open->is_func ? "function" : "kernel", open->name,
		                 has_variable(open, name) ? "variable" : "parameter", name);
	return true;
}
