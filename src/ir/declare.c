/* SPDX-License-Identifier: MIT */
/* Declarations in full: variables of any shape, signatures of any kind, directives as text. */
#include "base/options.h"
#include "ir/ir.h"

/* ---- variables ---- */

/* Checks the options of a variable and fills in *s; `what` is "variable" or "parameter" in messages. */
static bool fill_symbol(cptx_module *m, cptx_site at, const char *what, enum cptx_type type, const char *name,
                        const cptx_variable_opt *o, ir_sym *s)
{
	bool opaque = ir_is_opaque(o->space);
	unsigned bits = opaque ? 64 : cptx_type_bits(type), n = 0, element;
	uint32_t dim[CPTX_DIMS + 1] = { 0 };

	*s = (ir_sym){ .attribute = o->attribute, .space = (uint8_t)o->space, .is_ptr = o->pointer };
	if (bits < 8 || (o->align & (o->align - 1)) || (o->ptr_align & (o->ptr_align - 1)) ||
	    (o->vec && o->vec != 2 && o->vec != 4 && o->vec != 8) || (unsigned)o->linkage > CPTX_LINK_COMMON)
		return error_set(&m->err, CPTX_E_ARG, at,
		                 "%s '%s': it needs a type of 8 bits or more, alignments that are powers of two, a linkage of enum "
		                 "cptx_linkage, and .vec 0, 2, 4 or 8",
		                 what, name);
	if (!o->pointer && (o->ptr_space || o->ptr_align))
		return error_set(&m->err, CPTX_E_ARG, at,
		                 "%s '%s': .ptr_space and .ptr_align say what a pointer points to; say .pointer too", what, name);
	s->elem = s->type = (uint8_t)(opaque ? CPTX_B64 : type == CPTX_PTR ? CPTX_U64 : type);
	s->vec = (uint8_t)o->vec;
	element = bits / 8 * (o->vec ? o->vec : 1);
	s->size = o->unsized ? 0 : element;
	if (o->unsized)
		dim[n++] = 0;
	for (unsigned i = 0; i < CPTX_DIMS && o->dim[i]; i++) {
		dim[n++] = o->dim[i];
		s->size *= o->dim[i];
		if (s->size > (uint64_t)1 << 40)
			return error_set(&m->err, CPTX_E_LIMIT, at, "%s '%s' is larger than any memory", what, name);
	}
	s->ndim = (uint8_t)n;
	s->align_given = o->align != 0;
	s->align = o->align ? o->align : element;
	s->ptr_space = (uint8_t)o->ptr_space;
	s->ptr_align = o->ptr_align;
	s->name = arena_strdup(&m->a, name);
	s->dim = n ? ARENA_COPY(&m->a, uint32_t, dim, n) : NULL;
	s->attribute = o->attribute ? arena_strdup(&m->a, o->attribute) : NULL;
	if (!s->name || (n && !s->dim) || (o->attribute && !s->attribute))
		return ir_no_memory(m, at);
	return true;
}

static bool check_address(cptx_module *m, cptx_site at, const ir_sym *s, const cptx_address *a, uint32_t i, uint32_t n)
{
	bool var = a->to.kind == CPTX_VAL_SYM && a->to.id >= MODULE_SYM && a->to.id - MODULE_SYM < m->nsym;
	bool func = a->to.kind == CPTX_VAL_FUNC && a->to.id - 1 < m->nbody;

	if (!(var || func) || a->to.owner != m->tag || a->index >= n || (i && a[-1].index >= a->index))
		return error_set(&m->err, CPTX_E_ARG, at,
		                 "variable '%s': address %u must be of a variable or function of the module, for an element below "
		                 "ninit, behind that of the address before it",
		                 s->name, i);
	if (s->type != CPTX_U64 && s->type != CPTX_U32 && !(a->mask && s->type == CPTX_U8))
		return error_set(&m->err, CPTX_E_ARG, at,
		                 "variable '%s' is .%s: an address is .u64 or .u32; one byte of it, by .mask, is .u8", s->name,
		                 arch_mods[s->type].name);
	return true;
}

static bool fill_initial(cptx_module *m, cptx_site at, const cptx_variable_opt *o, ir_sym *s)
{
	size_t element = arch_types[s->type].bits / 8;
	uint64_t room = o->unsized ? UINT32_MAX : s->size / element;

	if (!o->init && (o->ninit || (o->naddress && !o->address)))
		return error_set(&m->err, CPTX_E_ARG, at, "variable '%s': %s, but .%s is NULL", s->name,
		                 o->ninit ? ".ninit is given" : ".naddress is given", o->ninit ? "init" : "address");
	if (!o->init && !o->naddress)
		return true;
	uint32_t ninit = o->init ? o->ninit : o->address[o->naddress - 1].index + 1;
	if (!ninit || ninit > room || (o->naddress && !o->address) || (s->space != CPTX_GLOBAL && s->space != CPTX_CONST) ||
	    o->linkage == CPTX_LINK_EXTERN)
		return error_set(
			&m->err, CPTX_E_ARG, at,
			"variable '%s': initial values belong to .global and .const variables that are not extern; 1 to %llu "
			"of them, %u were given",
			s->name, (unsigned long long)room, (unsigned)ninit);
	ir_reloc *reloc = ARENA_ARRAY(&m->a, ir_reloc, o->naddress + 1);
	s->init = o->init ? ARENA_COPY(&m->a, unsigned char, o->init, element *ninit)
	                  : ARENA_ZEROED(&m->a, unsigned char, element *ninit);
	if (!s->init || !reloc)
		return ir_no_memory(m, at);
	for (uint32_t i = 0; i < o->naddress; i++) {
		const cptx_address *a = &o->address[i];
		if (!check_address(m, at, s, a, i, ninit))
			return false;
		reloc[i] = (ir_reloc){ a->to, a->mask, a->index, a->generic };
	}
	s->ninit = ninit;
	s->nreloc = o->naddress;
	s->reloc = o->naddress ? reloc : NULL;
	if (o->unsized)
		s->size = ninit * element;
	return true;
}

static uint8_t linkage_of(enum cptx_linkage l) { return l == CPTX_LINK_DEFAULT ? LINK_NONE : (uint8_t)(l - CPTX_LINK_NONE); }

cptx_val cptx_variable_(cptx_module *m, cptx_site at, enum cptx_type type, const char *name, const cptx_variable_opt *opt)
{
	cptx_variable_opt o;
	cptx_val none = { 0 };
	ir_sym s;

	if (!m || m->err.code != CPTX_OK || !OPTIONS_READ(cptx_variable_opt, &o, opt, at, &m->err))
		return none;
	o.space = o.space ? o.space : CPTX_GLOBAL;
	if (m->frozen || (!ir_is_opaque(o.space) && o.space != CPTX_GLOBAL && o.space != CPTX_CONST && o.space != CPTX_SHARED &&
	                  o.space != CPTX_LOCAL)) {
		error_set(&m->err, m->frozen ? CPTX_E_STATE : CPTX_E_ARG, at, "variable '%s': %s", name ? name : "(null)",
		          m->frozen ? "the module is frozen"
		                    : ".space must be CPTX_GLOBAL, CPTX_CONST, CPTX_SHARED, CPTX_LOCAL or "
		                      "CPTX_TEXREF, CPTX_SAMPLERREF, CPTX_SURFREF");
		return none;
	}
	if (!ir_name_ok(m, at, "variable", name) ||
	    !ir_module_name_free(m, at, name, m->last && !m->last->closed ? m->last : NULL) ||
	    !fill_symbol(m, at, "variable", type, name, &o, &s) || !fill_initial(m, at, &o, &s))
		return none;
	s.linkage = linkage_of(o.linkage);
	uint32_t id = ir_add_symbol(m, NULL, &s);
	ir_top *t = id == IR_NONE ? NULL : ir_top_add_late(m, TOP_VAR);
	if (!t) {
		ir_no_memory(m, at);
		return none;
	}
	ir_top_var(m, t, id);
	return ir_symbol_value(m, NULL, id);
}

cptx_val cptx_local_(cptx_kernel *k, cptx_site at, enum cptx_type type, const char *name, const cptx_variable_opt *opt)
{
	cptx_variable_opt o;
	cptx_val none = { 0 };
	ir_sym s;

	if (!ir_open(k, at) || !OPTIONS_READ(cptx_variable_opt, &o, opt, at, &k->m->err))
		return none;
	o.space = o.space ? o.space : CPTX_LOCAL;
	if (o.init || ((o.space != CPTX_LOCAL && o.space != CPTX_SHARED && o.space != CPTX_PARAM) &&
	               (k->is_func || (o.space != CPTX_GLOBAL && o.space != CPTX_CONST)))) {
		ir_error(k, CPTX_E_ARG, at, "variable '%s': .space must be CPTX_LOCAL, CPTX_SHARED or CPTX_PARAM, without .init",
		         name ? name : "(null)");
		return none;
	}
	if (!ir_name_ok(k->m, at, "variable", name) || !ir_local_name_free(k, at, name) ||
	    !fill_symbol(k->m, at, "variable", type, name, &o, &s))
		return none;
	s.linkage = linkage_of(o.linkage);
	s.here = 1;
	uint32_t id = ir_add_symbol(k->m, k, &s);
	cptx_val v = id == IR_NONE ? none : ir_symbol_value(k->m, k, id);
	if (!v.kind || !ir_append(k, at, ITEM_VAR, &v, 1, NULL, 0)) {
		ir_no_memory(k->m, at);
		return none;
	}
	if (s.space == CPTX_SHARED && s.linkage != LINK_EXTERN)
		ir_count_shared(k),
			k->static_smem =
				(uint32_t)MIN((k->static_smem + (uint64_t)s.align - 1) / s.align * s.align + s.size, UINT32_MAX);
	return v;
}

/* ---- signatures ---- */

bool ir_publish_param(cptx_kernel *k, const ir_sym *s)
{
	uint32_t align = MAX(s->align, 1u);

	if (!arena_push(&k->m->a, &k->param, k->nparam, &k->cap_param, sizeof *k->param))
		return false;
	k->param_bytes = (k->param_bytes + align - 1) / align * align + (uint32_t)s->size;
	k->param[k->nparam++] = (cptx_param_info){ s->name,
		                                       s->is_ptr             ? CPTX_PTR
		                                       : (s->ndim || s->vec) ? CPTX_B8
		                                                             : (enum cptx_type)s->type,
		                                       (uint32_t)s->size, align };
	return true;
}

/* Whether parameters and results may still be added to a signature; if not, sets an error. */
static bool signature_open(cptx_kernel *k, cptx_site at, const char *name)
{
	if (!ir_open(k, at))
		return false;
	if (k->is_proto)
		return true; /* a prototype prints _ for all names */
	if (k->called)
		return ir_error(k, CPTX_E_STATE, at, "parameter '%s': the function was called already, with fewer",
		                name ? name : "(null)");
	if (k->src_len)
		return ir_error(k, CPTX_E_STATE, at,
		                "parameter '%s': a kernel of parsed text gets more by cptx_param and cptx_param_bytes",
		                name ? name : "(null)");
	return ir_name_ok(k->m, at, "parameter", name) && ir_local_name_free(k, at, name);
}

static bool add_arg(cptx_kernel *k, cptx_site at, bool result, ir_arg a)
{
	arena *mem = &k->m->a;
	bool ok = result ? arena_push(mem, &k->result, k->nresult, &k->cap_result, sizeof *k->result)
	                 : arena_push(mem, &k->arg, k->narg, &k->cap_arg, sizeof *k->arg);
	if (!ok)
		return ir_no_memory(k->m, at);
	if (result)
		k->result[k->nresult++] = a;
	else
		k->arg[k->narg++] = a;
	return true;
}

cptx_val cptx_param_var_(cptx_kernel *k, cptx_site at, enum cptx_type type, const char *name, bool result,
                         const cptx_variable_opt *opt)
{
	enum { MOST_PARAM = 32764 };
	cptx_variable_opt o;
	cptx_val none = { 0 };
	ir_sym s;

	if (!signature_open(k, at, name) || !OPTIONS_READ(cptx_variable_opt, &o, opt, at, &k->m->err))
		return none;
	bool opaque = ir_is_opaque(o.space);
	o.space = opaque ? o.space : CPTX_PARAM;
	if ((result && !k->is_func) || o.init || o.linkage || (o.space && !opaque && o.space != CPTX_PARAM)) {
		ir_error(k, CPTX_E_ARG, at, "parameter '%s': only functions have results, and parameters no .init or .linkage",
		         name ? name : "_");
		return none;
	}
	if (!fill_symbol(k->m, at, "parameter", type, k->is_proto ? "_" : name, &o, &s))
		return none;
	s.is_param = result ? PARAM_OUT : PARAM_IN;
	if (s.size > MOST_PARAM) {
		ir_error(k, CPTX_E_LIMIT, at, "parameter '%s' has %llu bytes; a kernel has at most %d", s.name,
		         (unsigned long long)s.size, MOST_PARAM);
		return none;
	}
	uint32_t id = ir_add_symbol(k->m, k, &s);
	if (id == IR_NONE || (!k->is_func && !ir_publish_param(k, &s))) {
		ir_no_memory(k->m, at);
		return none;
	}
	return add_arg(k, at, result, (ir_arg){ id, 0 }) ? ir_symbol_value(k->m, k, id) : none;
}

static cptx_val register_value(const cptx_kernel *k, uint32_t id)
{
	cptx_val v = { .kind = CPTX_VAL_REG, .type = k->reg[id].type, .count = 1, .owner = k->owner };
	v.id = id;
	return v;
}

cptx_val cptx_param_reg_(cptx_kernel *f, cptx_site at, enum cptx_type type, const char *name, bool result)
{
	cptx_val none = { 0 };

	if (!signature_open(f, at, name))
		return none;
	if (!f->is_func || !cptx_type_bits(type)) {
		ir_error(f, CPTX_E_ARG, at, "parameter '%s': only device functions have parameters in registers, of a type of isa.h",
		         name ? name : "_");
		return none;
	}
	ir_decl d = { .name = arena_strdup(&f->m->a, f->is_proto ? "_" : name),
		          .count = 1,
		          .type = (uint8_t)(type == CPTX_PTR ? CPTX_U64 : type),
		          .form = DECL_SINGLE };
	uint32_t id = (uint32_t)f->nreg;
	if (!d.name || ir_declare(f, &d) == IR_NONE) {
		ir_no_memory(f->m, at);
		return none;
	}
	return add_arg(f, at, result, (ir_arg){ IR_NONE, id }) ? register_value(f, id) : none;
}

static cptx_val arg_value(const cptx_kernel *k, const ir_arg *list, size_t n, uint32_t i)
{
	if (!k || i >= n)
		return (cptx_val){ .kind = CPTX_VAL_BAD };
	return list[i].sym == IR_NONE ? register_value(k, list[i].reg) : ir_symbol_value(k->m, k, list[i].sym);
}

cptx_val cptx_param_at(const cptx_kernel *k, uint32_t i) { return arg_value(k, k ? k->arg : NULL, k ? k->narg : 0, i); }
cptx_val cptx_result_at(const cptx_kernel *k, uint32_t i)
{
	return arg_value(k, k ? k->result : NULL, k ? k->nresult : 0, i);
}

cptx_kernel *cptx_func_declare_(cptx_module *m, cptx_site at, const char *name)
{
	cptx_kernel *f = ir_body_named(m, at, "function", name);
	ir_top *t = f ? ir_top_add(m, TOP_PROTO) : NULL;

	if (!t) {
		if (f)
			ir_no_memory(m, at);
		return NULL;
	}
	f->is_func = true;
	ir_top_body(t, f);
	return f;
}

static bool lacks_body(const cptx_module *m, uint32_t i, const void *user)
{
	const cptx_kernel *f = m->body[i];

	(void)user;
	return f->is_func && !f->is_proto && !f->has_body && !f->closed && !f->aliased;
}

cptx_kernel *cptx_func_define_(cptx_module *m, cptx_site at, const char *name)
{
	if (!m || m->err.code != CPTX_OK)
		return NULL;
	uint32_t i = name ? ir_global_named(m, NAMED_BODY, name, lacks_body, NULL) : IR_NONE;
	if (i != IR_NONE)
		return ir_body_open(m->body[i], at) ? m->body[i] : NULL;
	if (!name)
		error_null(__func__, "name", at, &m->err);
	else
		error_set(&m->err, CPTX_E_STATE, at, "cptx_func_define: no function '%.64s' was declared that lacks a body", name);
	return NULL;
}

void cptx_set_linkage_(cptx_kernel *k, cptx_site at, enum cptx_linkage linkage)
{
	if (!ir_open(k, at))
		return;
	if ((unsigned)linkage > CPTX_LINK_WEAK || (linkage == CPTX_LINK_EXTERN && k->has_body))
		ir_error(k, CPTX_E_ARG, at, "its linkage is none, visible or weak, or extern where it has no body");
	else
		k->linkage = linkage == CPTX_LINK_DEFAULT && !k->is_func ? LINK_VISIBLE : linkage_of(linkage), k->edited = true;
}

cptx_val cptx_find_(cptx_module *m, cptx_site at, const char *name)
{
	cptx_val none = { 0 };

	if (!m || m->err.code != CPTX_OK)
		return none;
	uint32_t i = name ? ir_global_named(m, NAMED_GLOBAL, name, NULL, NULL) : IR_NONE;
	if (i != IR_NONE)
		return ir_symbol_value(m, NULL, MODULE_SYM + i);
	i = name ? ir_global_named(m, NAMED_BODY, name, NULL, NULL) : IR_NONE;
	if (i != IR_NONE)
		return ir_func_value(m->body[i]);
	if (!name)
		error_null(__func__, "name", at, &m->err);
	else
		error_set(&m->err, CPTX_E_ARG, at, "cptx_find: the module has no variable, function or kernel '%.64s'", name);
	return none;
}

/* ---- prototypes ---- */

cptx_kernel *cptx_prototype_begin_(cptx_kernel *k, cptx_site at)
{
	cptx_kernel *f = ir_open(k, at) ? ir_body_new(k->m, at, "_") : NULL;

	if (f)
		f->is_func = f->is_proto = true;
	else if (k)
		ir_no_memory(k->m, at);
	return f;
}

cptx_val cptx_prototype_place_(cptx_kernel *k, cptx_site at, cptx_kernel *f)
{
	cptx_val none = { 0 };

	if (!ir_open(k, at))
		return none;
	if (!f || f->m != k->m || !f->is_proto || f->closed) {
		ir_error(k, CPTX_E_ARG, at, "cptx_prototype_place takes what cptx_prototype_begin gave, once");
		return none;
	}
	cptx_val v[2] = { ir_own_label(k, CPTX_VAL_PROTO), ir_func_value(f) };
	if (!v[0].kind || !ir_append(k, at, ITEM_PROTO, v, 2, NULL, 0))
		return none;
	f->closed = true;
	k->label[v[0].id].proto = f->number;
	return v[0];
}

/* ---- directives as text ---- */

static bool same_argument(const cptx_kernel *f, const ir_arg *a, const cptx_kernel *g, const ir_arg *b)
{
	if ((a->sym == IR_NONE) != (b->sym == IR_NONE))
		return false;
	if (a->sym == IR_NONE)
		return f->reg[a->reg].type == g->reg[b->reg].type;
	const ir_sym *s = f->sym[a->sym], *t = g->sym[b->sym];
	return s->type == t->type && s->space == t->space && s->ndim == t->ndim && s->size == t->size && s->align == t->align;
}

bool ir_same_signature(const cptx_kernel *f, const cptx_kernel *g)
{
	if (f->is_func != g->is_func || f->narg != g->narg || f->nresult != g->nresult)
		return false;
	for (size_t i = 0; i < f->narg; i++)
		if (!same_argument(f, &f->arg[i], g, &g->arg[i]))
			return false;
	for (size_t i = 0; i < f->nresult; i++)
		if (!same_argument(f, &f->result[i], g, &g->result[i]))
			return false;
	return true;
}

/* The function that a word of .alias names, up to `end`, the character behind it; NULL: there is none. */
static cptx_kernel *alias_word(cptx_module *m, const char **p, char end)
{
	const char *from = *p + strspn(*p, " \t");
	size_t n = strcspn(from, " \t,;");
	const char *behind = from + n + strspn(from + n, " \t");
	char *name = n && *behind == end ? ARENA_COPY(&m->a, char, from, n + 1) : NULL;

	if (!name)
		return NULL;
	name[n] = 0;
	*p = behind + 1;
	uint32_t i = ir_global_named(m, NAMED_BODY, name, NULL, NULL);
	return i == IR_NONE || !m->body[i]->is_func ? NULL : m->body[i];
}

/* Checks .alias name, function; and notes that the name needs no body. */
static bool check_alias(cptx_module *m, cptx_site at, const char *text)
{
	const char *p = text + strlen(".alias");
	cptx_kernel *name = alias_word(m, &p, ','), *f = name ? alias_word(m, &p, ';') : NULL;

	if (!f || p[strspn(p, " \t\n")] || f == name || name->has_body || !ir_same_signature(name, f))
		return error_set(
			&m->err, CPTX_E_ARG, at,
			"cptx_module_text(\"%.100s\"): .alias NAME, FUNCTION; names two functions that were declared, with the "
			"same parameters and results, the first of them without a body",
			text);
	name->aliased = true;
	return true;
}

/* Whether a text begins with one of these words, and is printable and one line (several if `lines`). */
static bool text_ok(const char *text, const char *const *words, bool lines)
{
	bool known = false;

	for (; text && *words; words++) {
		size_t n = strlen(*words);
		known |= !strncmp(text, *words, n) && (text[n] == ' ' || text[n] == '\t' || !text[n]);
	}
	for (const char *p = known ? text : ""; *p; p++)
		known &= ((unsigned char)*p >= ' ' && *p != 127) || *p == '\t' || (lines && *p == '\n');
	return known;
}

void cptx_directive_(cptx_kernel *k, cptx_site at, const char *text)
{
	bool ok = text && *text == '.' && !strpbrk(text, "{}\n\r") && (!strchr(text, ';') || !strncmp(text, ".pragma ", 8));

	if (!ir_open(k, at))
		return;
	if (!ok) {
		ir_error(k, CPTX_E_ARG, at, "cptx_directive takes one directive of a head, such as \".noreturn\"");
		return;
	}
	const char *copy = arena_strdup(&k->m->a, text);
	if (copy && arena_push(&k->m->a, &k->extra, k->nextra, &k->cap_extra, sizeof *k->extra))
		k->extra[k->nextra++] = copy, k->edited = true;
	else
		ir_no_memory(k->m, at);
}

void cptx_set_target_(cptx_module *m, cptx_site at, const char *target, unsigned version, const char *options)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_, ";
	const cptx_target *t = target ? arch_target_any(target) : NULL;
	size_t n = options ? strlen(options) : 0;

	if (!m || m->err.code != CPTX_OK)
		return;
	if (m->frozen || !t || (version && (!arch_is_version(version) || version < t->ptx)) ||
	    (n && (strspn(options, letters) != n || *options == ','))) {
		error_set(&m->err, m->frozen ? CPTX_E_STATE : CPTX_E_ARG, at,
		          m->frozen
		              ? "the module is frozen"
		              : "cptx_set_target takes a target, a .version times ten that has it (or 0), and NULL or words of "
		                ".target, such as \"debug\"; '%.32s', %u, '%.64s' were given",
		          target ? target : "", version, options ? options : "");
		return;
	}
	m->target = t;
	m->version = (uint16_t)version;
	m->target_more = "";
	char *more = n ? ARENA_ARRAY(&m->a, char, n + 3) : NULL;
	if (n && !more) {
		ir_no_memory(m, at);
	} else if (n) {
		memcpy(more, ", ", 2);
		memcpy(more + 2, options, n + 1);
		m->target_more = more;
	}
}

void cptx_module_text_(cptx_module *m, cptx_site at, const char *text)
{
	static const char *const words[] = { ".file", ".section", ".alias", ".pragma", NULL };

	if (!m || m->err.code != CPTX_OK)
		return;
	if (m->frozen || !text_ok(text, words, true)) {
		error_set(&m->err, m->frozen ? CPTX_E_STATE : CPTX_E_ARG, at,
		          m->frozen ? "the module is frozen"
		                    : "cptx_module_text takes one .file, .section, .alias or .pragma directive");
		return;
	}
	if (!strncmp(text, ".alias", 6) && !check_alias(m, at, text))
		return;
	const char *copy = arena_strdup(&m->a, text);
	ir_top *t = copy ? ir_top_append(m, TOP_TEXT) : NULL;
	if (t)
		t->text = copy;
	else
		ir_no_memory(m, at);
}

void cptx_text_(cptx_kernel *k, cptx_site at, const char *text)
{
	static const char *const words[] = { ".loc", ".pragma", NULL };

	if (!ir_open(k, at))
		return;
	if (!text_ok(text, words, false)) {
		ir_error(k, CPTX_E_ARG, at, "cptx_text takes one .loc or .pragma directive, on one line");
		return;
	}
	const char *copy = arena_strdup(&k->m->a, text);
	uint32_t id = copy ? ir_add_text(k, copy) : IR_NONE;
	cptx_val v = cptx_val_int_((int64_t)id);
	if (id == IR_NONE || !ir_append(k, at, ITEM_TEXT, &v, 1, NULL, 0))
		ir_no_memory(k->m, at);
}

/* ---- constants ---- */

cptx_val cptx_f32_bits(uint32_t bits) { return cptx_val_float_(text_f32_as_f64(bits)); }

cptx_val cptx_f64_bits(uint64_t bits)
{
	double d;
	memcpy(&d, &bits, sizeof d);
	return cptx_val_float_(d);
}
