/* SPDX-License-Identifier: MIT */
/* Variables: shared memory, static and laid out dynamically; globals and constants of the module. */
#include "base/options.h"
#include "ir/ir.h"

#include <stdio.h>

enum { MOST_SHARED = 227 * 1024 }; /* most of any target; emit checks the printed target's own limit */
enum { MOST_CONST = 64 * 1024 };

static bool is_power_of_two(uint32_t v) { return v && !(v & (v - 1)); }

const ir_sym *ir_symbol(const cptx_kernel *k, uint32_t id)
{
	return id >= MODULE_SYM ? k->m->sym[id - MODULE_SYM] : k->sym[id];
}

cptx_val ir_symbol_value(const cptx_module *m, const cptx_kernel *k, uint32_t id)
{
	const ir_sym *s = id >= MODULE_SYM ? m->sym[id - MODULE_SYM] : k->sym[id];
	cptx_val v = cptx_val_int_(0);

	v.kind = CPTX_VAL_SYM;
	v.type = s->elem;
	v.space = s->space;
	v.owner = id >= MODULE_SYM ? m->tag : k->owner;
	v.id = id;
	return v;
}

uint32_t ir_add_symbol(cptx_module *m, cptx_kernel *k, const ir_sym *s)
{
	ir_sym *copy = ARENA_COPY(&m->a, ir_sym, s, 1);

	if (!copy)
		return IR_NONE;
	if (k) {
		if (k->nsym == MODULE_SYM || !arena_push(&m->a, &k->sym, k->nsym, &k->cap_sym, sizeof *k->sym))
			return IR_NONE;
		k->sym[k->nsym] = copy;
		k->nshared += s->space == CPTX_SHARED;
		k->has_extern_shared |= s->space == CPTX_SHARED && s->linkage == LINK_EXTERN;
		ir_index_local(k, NAMED_VAR, (uint32_t)k->nsym++);
		return (uint32_t)k->nsym - 1;
	}
	if (m->nsym == MODULE_SYM || !arena_push(&m->a, &m->sym, m->nsym, &m->cap_sym, sizeof *m->sym))
		return IR_NONE;
	m->sym[m->nsym++] = copy;
	if (*copy->name && !ir_index_global(m, NAMED_GLOBAL, (uint32_t)m->nsym - 1)) /* a parsed module enters the name later */
		return IR_NONE;
	return MODULE_SYM + (uint32_t)m->nsym - 1;
}

bool ir_param_symbol(cptx_kernel *k, const char *name, unsigned type, cptx_val *v)
{
	ir_sym s = { .name = arena_strdup(&k->m->a, name), .space = CPTX_PARAM, .elem = (uint8_t)type };

	s.type = ir_classes[ir_class_of(type)].type;
	s.size = arch_types[s.type].bits / 8; /* registers of 8 bits are declared with 16, variables are not */
	s.align = (uint32_t)s.size;
	uint32_t id = s.name ? ir_add_symbol(k->m, k, &s) : IR_NONE;
	if (id == IR_NONE)
		return false;
	*v = ir_symbol_value(k->m, k, id);
	return true;
}

static bool new_symbol(cptx_module *m, cptx_site at, const char *name, unsigned space, unsigned type, uint32_t n,
                       uint32_t align, ir_sym *s)
{
	uint64_t size = (uint64_t)n * (cptx_type_bits((enum cptx_type)type) / 8);

	if (cptx_type_bits((enum cptx_type)type) < 8 || !n || size > (space == CPTX_SHARED ? MOST_SHARED : INT32_MAX) ||
	    !is_power_of_two(align) || align > 1024) {
		error_set(&m->err, CPTX_E_ARG, at,
		          "variable '%s': %u elements of .%s, aligned to %u: it must have at least one element of 8 bits or more, "
		          "at most %u bytes, and a "
		          "power of two up to 1024 as alignment",
		          name, n, cptx_type_name((enum cptx_type)type), align,
		          space == CPTX_SHARED ? MOST_SHARED : (unsigned)INT32_MAX);
		return false;
	}
	uint32_t *dim = ARENA_ARRAY(&m->a, uint32_t, 1);
	const char *copy = arena_strdup(&m->a, name);
	if (!dim || !copy)
		return ir_no_memory(m, at);
	*dim = (uint32_t)size;
	*s = (ir_sym){ .name = copy,
		           .dim = dim,
		           .size = size,
		           .align = MAX(align, cptx_type_bits((enum cptx_type)type) / 8),
		           .space = (uint8_t)space,
		           .type = CPTX_B8,
		           .elem = (uint8_t)type,
		           .ndim = 1,
		           .align_given = 1 };
	return true;
}

/* Declares a variable at the start of the body. */
static bool kernel_symbol(cptx_kernel *k, cptx_site at, const ir_sym *s, cptx_val *v)
{
	if (!ir_local_name_free(k, at, s->name))
		return false;
	uint32_t id = ir_add_symbol(k->m, k, s);
	if (id == IR_NONE)
		return ir_no_memory(k->m, at);
	*v = ir_symbol_value(k->m, k, id);
	ir_item *cursor = k->cursor, *if_item = k->closed_if_item, *first = k->last_var ? k->last_var->next : k->first;
	ir_block *closed_if = k->closed_if;
	for (; first && first->kind == ITEM_VAR; first = first->next)
		k->last_var = first;
	k->cursor = first;
	ir_item *it = ir_append(k, NOWHERE, ITEM_VAR, v, 1, NULL, 0);
	k->cursor = cursor;
	k->closed_if = closed_if;
	k->closed_if_item = if_item;
	return it != NULL;
}

cptx_val cptx_shared_(cptx_kernel *k, cptx_site at, enum cptx_type type, uint32_t n, uint32_t align, const char *name)
{
	char made[32];
	cptx_val v = { 0 };

	if (!ir_open(k, at))
		return v;
	for (uint32_t i = k->nshared; !name; i++) {
		snprintf(made, sizeof made, "shared_%u", (unsigned)i);
		if (!ir_local_name_taken(k, made))
			name = made;
	}
	ir_sym s;
	if (!ir_name_ok(k->m, at, "variable", name) || !new_symbol(k->m, at, name, CPTX_SHARED, type, n, align, &s) ||
	    !kernel_symbol(k, at, &s, &v))
		return (cptx_val){ 0 };
	ir_count_shared(k);
	k->static_smem = (k->static_smem + s.align - 1) / s.align * s.align + (uint32_t)s.size;
	return v;
}

/* The module's extern array that holds all dynamic shared memory; the launch gives its size. */
static ir_sym *dynamic_shared(cptx_module *m, cptx_site at)
{
	static const uint32_t unsized[1] = { 0 };
	ir_sym s = { .name = IR_PREFIX "_smem",
		         .dim = unsized,
		         .align = 16,
		         .space = CPTX_SHARED,
		         .type = CPTX_B8,
		         .elem = CPTX_B8,
		         .ndim = 1,
		         .linkage = LINK_EXTERN,
		         .align_given = 1 };

	for (size_t i = 0; !m->dyn_sym && i < m->nsym; i++)
		if (m->sym[i]->space == CPTX_SHARED && !m->sym[i]->removed) {
			error_set(&m->err, CPTX_E_STATE, at,
			          "the text declares '%s' in shared memory of the module, which dynamic shared memory might overlap",
			          m->sym[i]->name);
			return NULL;
		}
	if (!m->dyn_sym) {
		uint32_t id = ir_add_symbol(m, NULL, &s);
		ir_top *t = id == IR_NONE ? NULL : ir_top_add(m, TOP_VAR);
		if (!t) {
			ir_no_memory(m, at);
			return NULL;
		}
		ir_top_var(m, t, m->dyn_sym = id);
	}
	return m->sym[m->dyn_sym - MODULE_SYM];
}

cptx_val cptx_shared_dyn_(cptx_kernel *k, cptx_site at, uint32_t bytes, uint32_t align, const char *name)
{
	cptx_val v = { 0 };

	if (!ir_open(k, at) || !ir_name_ok(k->m, at, "variable", name))
		return v;
	if (k->is_func) {
		ir_error(k, CPTX_E_STATE, at, "dynamic shared memory '%s' belongs to kernels; pass its address to the function",
		         name);
		return v;
	}
	if (!bytes || bytes > MOST_SHARED || !is_power_of_two(align) || align > 1024) {
		ir_error(k, CPTX_E_ARG, at,
		         "dynamic shared memory '%s': %u bytes aligned to %u; it takes 1 to %d bytes and a power of two up to 1024",
		         name, bytes, align, MOST_SHARED);
		return v;
	}
	for (size_t i = 0; k->has_extern_shared && i < k->nsym; i++)
		if (k->sym[i]->space == CPTX_SHARED && k->sym[i]->linkage == LINK_EXTERN) {
			ir_error(k, CPTX_E_STATE, at, "the text declares '%s' of its own, which dynamic shared memory would overlap",
			         k->sym[i]->name);
			return v;
		}
	ir_sym *whole = dynamic_shared(k->m, at);
	if (!whole)
		return v;
	uint32_t start = (k->dyn_smem + align - 1) / align * align;
	if ((uint64_t)start + bytes > MOST_SHARED) {
		ir_error(k, CPTX_E_LIMIT, at, "dynamic shared memory '%s' would end at byte %llu; no target has more than %d", name,
		         (unsigned long long)start + bytes, MOST_SHARED);
		return v;
	}
	whole->align = MAX(whole->align, align);
	k->dyn_smem = start + bytes;
	return cptx_offset(ir_symbol_value(k->m, k, k->m->dyn_sym), start);
}

uint32_t cptx_kernel_dyn_smem(const cptx_kernel *k) { return k ? k->dyn_smem : 0; }

uint32_t cptx_kernel_block(const cptx_kernel *k, uint32_t axis) { return k && axis < 3 ? k->opt.block[axis] : 0; }

bool cptx_kernel_fixes_regs(const cptx_kernel *k) { return k && (k->opt.max_regs || k->opt.min_ctas); }

cptx_val cptx_global_(cptx_module *m, cptx_site at, enum cptx_type type, uint32_t n, const char *name,
                      const cptx_global_opt *opt)
{
	cptx_val none = { 0 };
	cptx_global_opt o;

	if (!m || m->err.code != CPTX_OK || !OPTIONS_READ(cptx_global_opt, &o, opt, at, &m->err))
		return none;
	opt = &o;
	unsigned space = opt->space ? opt->space : CPTX_GLOBAL;
	bool opaque = ir_is_opaque(space);
	if (m->frozen || (space != CPTX_GLOBAL && space != CPTX_CONST && !opaque)) {
		error_set(&m->err, m->frozen ? CPTX_E_STATE : CPTX_E_ARG, at, "variable '%s': %s", name ? name : "(null)",
		          m->frozen ? "the module is frozen"
		                    : ".space must be CPTX_GLOBAL, CPTX_CONST, or CPTX_TEXREF, CPTX_SAMPLERREF, CPTX_SURFREF");
		return none;
	}
	if (!ir_name_ok(m, at, "variable", name) ||
	    !ir_module_name_free(m, at, name, m->last && !m->last->closed ? m->last : NULL))
		return none;
	ir_sym s;
	if (!new_symbol(m, at, name, space, type == CPTX_PTR ? CPTX_U64 : type, n, opt->align ? opt->align : 16, &s))
		return none;
	if (opaque) { /* a texture, sampler or surface reference: one element, whose size does not matter */
		s.ndim = s.align_given = 0;
		s.dim = NULL;
	}
	uint64_t const_end = ((uint64_t)m->const_bytes + s.align - 1) / s.align * s.align + s.size;
	if (space == CPTX_CONST && const_end > MOST_CONST) {
		error_set(&m->err, CPTX_E_LIMIT, at, "variable '%s': %llu bytes of constant memory; a module has at most %d", name,
		          (unsigned long long)const_end, MOST_CONST);
		return none;
	}
	if (opaque)
		s.type = CPTX_B64, s.ndim = s.align_given = 0;
	s.linkage = opt && opt->export_ ? LINK_VISIBLE : LINK_NONE;
	if (opt && opt->init) {
		s.init = ARENA_COPY(&m->a, unsigned char, opt->init, (size_t)s.size);
		s.ninit = (uint32_t)s.size;
	}
	uint32_t id = opt && opt->init && !s.init ? IR_NONE : ir_add_symbol(m, NULL, &s);
	ir_top *t = id == IR_NONE ? NULL : ir_top_add(m, TOP_VAR);
	if (!t) {
		ir_no_memory(m, at);
		return none;
	}
	ir_top_var(m, t, id);
	if (space == CPTX_CONST)
		m->const_bytes = (uint32_t)const_end;
	return ir_symbol_value(m, NULL, id);
}
