/* Variables: shared memory, static and laid out dynamically; globals and constants of the module. */
#include "ir/ir.h"

#include <stdio.h>

enum { MOST_SHARED = 227 * 1024 }; /* of any target; the target's own limit is checked when it is known */
enum { MOST_CONST = 64 * 1024 };

static bool is_power_of_two(uint32_t v) { return v && !(v & (v - 1)); }

const ir_sym *ir_symbol(const cptx_kernel *k, uint32_t id)
{
	return id >= MODULE_SYM ? k->m->sym[id - MODULE_SYM] : k->sym[id];
}

static cptx_val symbol_value(const ir_sym *s, uint32_t id, uint16_t owner)
{
	cptx_val v = cptx_val_int_(0);
	v.kind = CPTX_VAL_SYM;
	v.type = s->type;
	v.space = s->space;
	v.owner = owner;
	v.id = id;
	return v;
}

static ir_sym *new_symbol(cptx_module *m, cptx_site at, const char *name, unsigned space, unsigned type, uint32_t n,
                          uint32_t align)
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
		return NULL;
	}
	ir_sym *s = arena_zalloc(&m->a, sizeof *s);
	if (!s || !(s->name = arena_strdup(&m->a, name))) {
		ir_no_memory(m, at);
		return NULL;
	}
	s->space = (uint8_t)space;
	s->type = (uint8_t)type;
	s->size = (uint32_t)size;
	s->align = MAX(align, cptx_type_bits((enum cptx_type)type) / 8);
	return s;
}

static bool kernel_symbol(cptx_kernel *k, cptx_site at, ir_sym *s, cptx_val *v)
{
	if (!ir_local_name_free(k, at, s->name))
		return false;
	if (!arena_push(&k->m->a, &k->sym, k->nsym, &k->cap_sym, sizeof *k->sym))
		return ir_no_memory(k->m, at);
	*v = symbol_value(s, (uint32_t)k->nsym, k->owner);
	k->sym[k->nsym++] = s;
	return true;
}

cptx_val cptx_shared_(cptx_kernel *k, cptx_site at, enum cptx_type type, uint32_t n, uint32_t align, const char *name)
{
	char made[32];
	cptx_val v = { 0 };

	if (!ir_open(k, at))
		return v;
	for (size_t i = k->nsym; !name; i++) {
		snprintf(made, sizeof made, "shared_%zu", i);
		if (!ir_local_name_taken(k, made))
			name = made;
	}
	ir_sym *s = ir_name_ok(k->m, at, "variable", name) ? new_symbol(k->m, at, name, CPTX_SHARED, type, n, align) : NULL;
	if (!s || !kernel_symbol(k, at, s, &v))
		return (cptx_val){ 0 };
	k->static_smem = (k->static_smem + s->align - 1) / s->align * s->align + s->size;
	return v;
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
	if (k->dyn_sym < 0) {
		ir_sym *s = new_symbol(k->m, at, IR_PREFIX "_smem", CPTX_SHARED, CPTX_B8, 1, 16);
		if (!s || !kernel_symbol(k, at, s, &v))
			return (cptx_val){ 0 };
		s->size = 0; /* extern: the launch sizes it */
		k->dyn_sym = (int)v.id;
	}
	ir_sym *whole = k->sym[k->dyn_sym];
	uint32_t start = (k->dyn_smem + align - 1) / align * align;
	if ((uint64_t)start + bytes > MOST_SHARED) {
		ir_error(k, CPTX_E_LIMIT, at, "dynamic shared memory '%s' would end at byte %llu; no target has more than %d", name,
		         (unsigned long long)start + bytes, MOST_SHARED);
		return (cptx_val){ 0 };
	}
	whole->align = MAX(whole->align, align);
	k->dyn_smem = start + bytes;
	return cptx_offset(symbol_value(whole, (uint32_t)k->dyn_sym, k->owner), start);
}

uint32_t cptx_kernel_dyn_smem(const cptx_kernel *k) { return k ? k->dyn_smem : 0; }

cptx_val cptx_global_(cptx_module *m, cptx_site at, enum cptx_type type, uint32_t n, const char *name,
                      const cptx_global_opt *opt)
{
	cptx_val none = { 0 };

	if (!m || m->err.code != CPTX_OK)
		return none;
	unsigned space = opt && opt->space ? opt->space : CPTX_GLOBAL;
	bool opaque = space == CPTX_TEXREF || space == CPTX_SAMPLERREF || space == CPTX_SURFREF;
	if (m->frozen || (space != CPTX_GLOBAL && space != CPTX_CONST && !opaque)) {
		error_set(&m->err, m->frozen ? CPTX_E_STATE : CPTX_E_ARG, at, "variable '%s': %s", name ? name : "(null)",
		          m->frozen ? "the module is frozen"
		                    : ".space must be CPTX_GLOBAL, CPTX_CONST, or CPTX_TEXREF, CPTX_SAMPLERREF, CPTX_SURFREF");
		return none;
	}
	if (!ir_name_ok(m, at, "variable", name) ||
	    !ir_module_name_free(m, at, name, m->last && !m->last->closed ? m->last : NULL))
		return none;
	ir_sym *s = new_symbol(m, at, name, space, type == CPTX_PTR ? CPTX_U64 : type, n, opt && opt->align ? opt->align : 16);
	if (!s)
		return none;
	uint64_t const_end = ((uint64_t)m->const_bytes + s->align - 1) / s->align * s->align + s->size;
	if (space == CPTX_CONST && const_end > MOST_CONST) {
		error_set(&m->err, CPTX_E_LIMIT, at, "variable '%s': %llu bytes of constant memory; a module has at most %d", name,
		          (unsigned long long)const_end, MOST_CONST);
		return none;
	}
	s->exported = opt && opt->export_;
	if (opt && opt->init && !(s->init = arena_memdup(&m->a, opt->init, s->size))) {
		ir_no_memory(m, at);
		return none;
	}
	if (!arena_push(&m->a, &m->sym, m->nsym, &m->cap_sym, sizeof *m->sym)) {
		ir_no_memory(m, at);
		return none;
	}
	if (space == CPTX_CONST)
		m->const_bytes = (uint32_t)const_end;
	m->sym[m->nsym++] = s;
	return symbol_value(s, MODULE_SYM + (uint32_t)m->nsym - 1, m->tag);
}
