/* SPDX-License-Identifier: MIT */
/* The machine: its memory, findings and counters; programs, whose variables lie in that memory. */
#include "emu/core/machine.h"
#include "emu/exec/system.h"
#include "emu/memory/place.h"
#include "emu/memory/texture.h"

#include <stdlib.h>

void emu_wishes_drop(emu_machine *m)
{
	for (size_t i = 0; i < m->nwish; i++)
		free(m->wish[i].name);
	m->nwish = 0;
}

bool emu_wish_add(emu_machine *m, const char *variable, uint64_t at)
{
	char *name = array_room(&m->wish, m->nwish, &m->cap_wish, sizeof *m->wish, 16) ? strdup(variable) : NULL;

	if (name)
		m->wish[m->nwish++] = (emu_wish){ name, at };
	return name != NULL;
}

emu_machine *emu_machine_new(const cptx_target *target, const cptx_emu_opt *opt)
{
	static const cptx_emu_opt defaults = { 0 };
	emu_machine *m = NEW(emu_machine);

	if (!m)
		return NULL;
	m->target = target;
	m->opt = opt ? *opt : defaults;
	m->sms = m->opt.sms ? m->opt.sms : target->compute_capability / 10 == 9 ? 132 : 148;
	if (!m->opt.step_limit)
		m->opt.step_limit = UINT64_C(100000000000);
	if (!m->opt.most_findings)
		m->opt.most_findings = 100;
	arena_init(&m->text, NULL);
	m->profile_since = 1;
	emu_memory_init(m);
	return m;
}

void emu_machine_free(emu_machine *m)
{
	if (!m)
		return;
	emu_children_drop(m);
	emu_memory_free(m);
	emu_textures_free(m);
	emu_wishes_drop(m);
	free(m->wish);
	free(m->finding);
	free(m->profile);
	arena_free(&m->text);
	free(m);
}

/* ---- variables of a program ---- */

static uint64_t address_of(const emu_program *p, const cptx_val *v)
{
	if (v->kind == CPTX_VAL_FUNC)
		return emu_function_at(p->module->body[v->id - 1]);
	return v->id >= MODULE_SYM ? p->sym_at[v->id - MODULE_SYM] + (uint64_t)(int64_t)v->offset : 0;
}

static uint64_t masked(uint64_t address, uint64_t mask)
{
	return mask ? (address & mask) >> __builtin_ctzll(mask) : address;
}

static bool defined_nowhere(const emu_program *p, uint32_t sym, const char *what, const char *user, cptx_site at,
                            cptx_error *err)
{
	char shown[2][NAME_SHOWN + 1];

	return error_set(err, CPTX_E_COMPILE, at, "%s %s: variable '%s' is .extern, and nothing that was loaded defines it",
	                 what, name_shown(user, shown[0]), name_shown(p->module->sym[sym]->name, shown[1]));
}

static bool initialise(const emu_program *p, const ir_sym *s, uint64_t at, cptx_site site, cptx_error *err)
{
	emu_alloc *a = emu_alloc_find(p->machine, at);
	size_t each = arch_types[s->elem].bits / 8;

	if (a->shared) /* the host may have written it meanwhile */
		return true;
	if (s->init)
		memcpy(a->p, s->init, MIN((size_t)s->ninit * each, (size_t)s->size));
	for (uint32_t i = 0; i < s->nreloc; i++) {
		const cptx_val *to = &s->reloc[i].to;
		if (to->kind != CPTX_VAL_FUNC && to->id >= MODULE_SYM && p->def[to->id - MODULE_SYM] == IR_NONE)
			return defined_nowhere(p, to->id - MODULE_SYM, "variable", s->name, site, err);
		uint64_t v = masked(address_of(p, to), s->reloc[i].mask);
		if ((s->reloc[i].index + 1) * each <= s->size)
			memcpy(a->p + s->reloc[i].index * each, &v, each);
	}
	a->is_const = s->space == CPTX_CONST;
	return true;
}

static bool in_memory(const ir_sym *s)
{
	return (s->space == CPTX_GLOBAL || s->space == CPTX_CONST) && !s->is_param && !s->removed;
}

/* The first of the wishes for a variable of that name, which is granted now; 0: it may lie anywhere. */
static uint64_t wished(emu_machine *m, const char *name)
{
	for (size_t i = 0; i < m->nwish; i++)
		if (m->wish[i].at && !strcmp(m->wish[i].name, name)) {
			uint64_t at = m->wish[i].at;
			m->wish[i].at = 0;
			return at;
		}
	return 0;
}

static bool place(emu_program *p, const ir_sym *s, uint64_t *where, cptx_site at, cptx_error *err)
{
	if (!in_memory(s))
		return true;
	const uint64_t wish = wished(p->machine, s->name), size = MAX(s->size, 1u);
	emu_alloc *there = wish ? emu_alloc_find(p->machine, wish) : NULL;
	if (there && there->at == wish && there->is_unified && there->name && !strcmp(there->name, s->name) &&
	    there->size == size) {
		there->shared = true; /* of another program with the same managed variable */
		*where = wish;
		return true;
	}
	const char *bar = wish ? emu_alloc_bars(p->machine, wish, size) : NULL;
	if (bar)
		return error_set(err, CPTX_E_ARG, at, "variable %s cannot lie at 0x%llx: %s", s->name, (unsigned long long)wish,
		                 bar);
	if (wish) {
		*where = emu_alloc_at(p->machine, wish, size, s->name, true);
		return *where || error_set(err, CPTX_E_MEMORY, at, "no %llu bytes of memory for variable %s",
		                           (unsigned long long)s->size, s->name);
	}
	bool managed = s->attribute && strstr(s->attribute, ".managed"); /* the host program has it, too */
	*where = managed ? emu_alloc_unified(p->machine, MAX(s->size, 1u), s->name)
	                 : emu_alloc_new(p->machine, MAX(s->size, 1u), s->align, s->name, true);
	return *where || error_set(err, CPTX_E_MEMORY, at, "no %llu bytes of memory for variable %s",
	                           (unsigned long long)s->size, s->name);
}

static bool defines(const cptx_module *m, uint32_t sym, const void *strong)
{
	const ir_sym *s = m->sym[sym];

	return !s->removed && s->linkage != LINK_EXTERN && s->linkage != LINK_NONE &&
	       (!*(const bool *)strong || s->linkage == LINK_VISIBLE);
}

/* The variable that defines the one of that number.  Arrays of dynamic shared memory are defined nowhere. */
static uint32_t definition(const cptx_module *m, uint32_t sym)
{
	const ir_sym *s = m->sym[sym];
	bool strong = true;

	if (s->linkage == LINK_NONE || s->linkage == LINK_VISIBLE || s->removed || (s->space == CPTX_SHARED && !s->size))
		return sym;
	uint32_t def = ir_global_named(m, NAMED_GLOBAL, s->name, defines, &strong);
	strong = false;
	return def == IR_NONE ? ir_global_named(m, NAMED_GLOBAL, s->name, defines, &strong) : def;
}

uint32_t emu_program_definition(const emu_program *p, uint32_t sym, const char *kernel, cptx_site at, cptx_error *err,
                                bool *ok)
{
	if (p->def[sym] != IR_NONE)
		return p->def[sym];
	*ok = defined_nowhere(p, sym, "kernel", kernel, at, err);
	return sym;
}

static bool find_definitions(emu_program *p, cptx_site site, cptx_error *err)
{
	const cptx_module *m = p->module;

	p->def = ARENA_ARRAY(&p->a, uint32_t, m->nsym + 1);
	if (!p->def)
		return error_set(err, CPTX_E_MEMORY, site, "out of memory");
	for (uint32_t i = 0; i < m->nsym; i++)
		p->def[i] = definition(m, i);
	return true;
}

/* Addresses first: initialisers name variables behind them. */
static bool place_variables(emu_program *p, cptx_site site, cptx_error *err)
{
	const cptx_module *m = p->module;

	p->sym_at = ARENA_ZEROED(&p->a, uint64_t, m->nsym + 1);
	p->own_at = ARENA_ZEROED(&p->a, uint64_t *, m->nbody + 1);
	if (!p->sym_at || !p->own_at)
		return error_set(err, CPTX_E_MEMORY, site, "out of memory");
	for (size_t i = 0; i < m->nsym; i++)
		if (p->def[i] == i && !place(p, m->sym[i], &p->sym_at[i], site, err))
			return false;
	for (size_t i = 0; i < m->nsym; i++)
		if (p->def[i] != i && p->def[i] != IR_NONE)
			p->sym_at[i] = p->sym_at[p->def[i]];
	for (const cptx_kernel *k = m->first; k; k = k->next) {
		uint64_t *at = p->own_at[k->number - 1] = ARENA_ZEROED(&p->a, uint64_t, k->nsym + 1);
		if (!at)
			return error_set(err, CPTX_E_MEMORY, site, "out of memory");
		for (size_t i = 0; i < k->nsym; i++)
			if (!place(p, k->sym[i], &at[i], site, err))
				return false;
	}
	return true;
}

static bool initialise_variables(const emu_program *p, cptx_site site, cptx_error *err)
{
	const cptx_module *m = p->module;

	for (size_t i = 0; i < m->nsym; i++)
		if (p->sym_at[i] && p->def[i] == i && !initialise(p, m->sym[i], p->sym_at[i], site, err))
			return false;
	for (const cptx_kernel *k = m->first; k; k = k->next)
		for (size_t i = 0; i < k->nsym; i++)
			if (p->own_at[k->number - 1][i] && !initialise(p, k->sym[i], p->own_at[k->number - 1][i], site, err))
				return false;
	return true;
}

emu_program *emu_program_new(emu_machine *m, cptx_module *parsed, cptx_ptx *ptx, cptx_site at, cptx_error *err)
{
	emu_program *p = NEW(emu_program);

	if (!p) {
		error_set(err, CPTX_E_MEMORY, at, "out of memory");
		cptx_module_destroy(parsed);
		cptx_ptx_destroy(ptx);
		return NULL;
	}
	*p = (emu_program){ .machine = m, .module = parsed, .ptx = ptx };
	arena_init(&p->a, NULL);
	bool ok = find_definitions(p, at, err) && place_variables(p, at, err) && initialise_variables(p, at, err);
	emu_wishes_drop(m);
	if (ok)
		return p;
	emu_program_free(p);
	return NULL;
}

void emu_program_free(emu_program *p)
{
	if (!p)
		return;
	for (size_t b = 0; p->own_at && b < p->module->nbody; b++)
		for (size_t i = 0; p->own_at[b] && i < p->module->body[b]->nsym; i++)
			if (p->own_at[b][i])
				emu_alloc_free(p->machine, p->own_at[b][i]);
	for (size_t i = 0; p->sym_at && i < p->module->nsym; i++)
		if (p->sym_at[i] && p->def[i] == i)
			emu_alloc_free(p->machine, p->sym_at[i]);
	cptx_module_destroy(p->module);
	cptx_ptx_destroy(p->ptx);
	arena_free(&p->a);
	free(p);
}

static bool has_address(const cptx_module *m, uint32_t sym, const void *program)
{
	(void)m;
	return ((const emu_program *)program)->sym_at[sym] != 0;
}

uint64_t emu_program_variable(const emu_program *p, const char *name, uint64_t *size)
{
	uint32_t i = ir_global_named(p->module, NAMED_GLOBAL, name, has_address, p);

	if (i == IR_NONE)
		return 0;
	*size = p->module->sym[i]->size;
	return p->sym_at[i];
}

uint64_t emu_program_variable_at(const emu_program *p, size_t i, const char **name, uint64_t *size)
{
	const cptx_module *m = p->module;

	for (size_t k = 0; k < m->nsym; k++)
		if (p->def[k] == k && p->sym_at[k] && !i--) {
			*name = m->sym[k]->name, *size = MAX(m->sym[k]->size, 1u);
			return p->sym_at[k];
		}
	for (const cptx_kernel *b = m->first; b; b = b->next)
		for (size_t k = 0; k < b->nsym; k++)
			if (p->own_at[b->number - 1][k] && !i--) {
				*name = b->sym[k]->name, *size = MAX(b->sym[k]->size, 1u);
				return p->own_at[b->number - 1][k];
			}
	return 0;
}

typedef struct named {
	unsigned n, exported;
	uint32_t last, last_exported;
} named;

static bool count_kernel(const cptx_module *m, uint32_t body, const void *user)
{
	named *c = *(named *const *)user;
	const cptx_kernel *k = m->body[body];

	if (k->is_func || !k->has_body || k->removed)
		return false;
	c->n++;
	c->last = body;
	if (k->linkage != LINK_NONE) {
		c->exported++;
		c->last_exported = body;
	}
	return false;
}

const cptx_kernel *emu_program_kernel(const emu_program *p, const char *name, cptx_site at, cptx_error *err)
{
	char shown[NAME_SHOWN + 1];
	named c = { .n = 0 }, *to = &c;

	ir_global_named(p->module, NAMED_BODY, name, count_kernel, &to);
	if (c.exported)
		return p->module->body[c.last_exported];
	if (c.n == 1)
		return p->module->body[c.last];
	if (c.n)
		error_set(err, CPTX_E_ARG, at, "%u texts have a kernel \"%s\" of their own; make the one to launch .visible", c.n,
		          name_shown(name, shown));
	else
		error_set(err, CPTX_E_ARG, at, "the program has no kernel \"%s\"", name_shown(name, shown));
	return NULL;
}
