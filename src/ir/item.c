/* SPDX-License-Identifier: MIT */
/* Items of a body: appending items, making registers and values, and checking which body values belong to. */
#include "ir/ir.h"

/* Registers are declared as plain bits, so that cptx_as needs no instruction: ptxas takes .b32 for every 32-bit operand, but
 * .f32 only for some. */
const ir_class_info ir_classes[CLASS_COUNT] = {
	[CLASS_PRED] = { CPTX_PRED, "%p" }, [CLASS_B8] = { CPTX_B8, "%c" },      [CLASS_B16] = { CPTX_B16, "%h" },
	[CLASS_B32] = { CPTX_B32, "%r" },   [CLASS_F32] = { CPTX_B32, "%f" },    [CLASS_B64] = { CPTX_B64, "%rd" },
	[CLASS_F64] = { CPTX_B64, "%fd" },  [CLASS_B128] = { CPTX_B128, "%rq" },
};

const uint8_t ir_class_of_log[8] = { CLASS_PRED + 1, 0, 0, CLASS_B8 + 1, CLASS_B16 + 1, CLASS_B32 + 1, CLASS_B64 + 1,
	                                 CLASS_B128 + 1 };

/* The number of a source file by its name, for a pointer other than that of the last call. */
uint16_t ir_find_file(cptx_module *m, const char *file)
{
	if (!file)
		return 0;
	uint32_t i = ir_global_named(m, NAMED_FILE, file, NULL, NULL);
	if (i == IR_NONE) {
		i = (uint32_t)m->nfile;
		if (i >= UINT16_MAX - 1)
			return 0;
		char *copy = arena_strdup(&m->a, file);
		if (!copy || !arena_push(&m->a, &m->file, m->nfile, &m->cap_file, sizeof *m->file)) {
			ir_no_memory(m, NOWHERE);
			return 0;
		}
		m->file[m->nfile++] = copy;
		if (!ir_index_global(m, NAMED_FILE, i)) {
			ir_no_memory(m, NOWHERE);
			return 0;
		}
	}
	m->last_file = file;
	m->last_file_number = (uint16_t)(i + 1);
	return m->last_file_number;
}

ir_item *ir_append_match(cptx_kernel *k, cptx_site at, const arch_match *m, cptx_val guard)
{
	char why[160];

	if (!ir_fits(k, m, why)) {
		ir_error(k, CPTX_E_ARG, at, "%s: %s", ir_op_name(arch_forms[m->form].op), why);
		return NULL;
	}
	ir_item *it = ir_append(k, at, ITEM_INSN, m->operand, m->noperand, m->mod, m->ngroup);

	if (!it)
		return NULL;
	it->form = m->form;
	if (guard.kind)
		ir_guard(it, guard);
	for (unsigned i = 0; m->labels && i < m->noperand; i++) {
		const cptx_val *v = &m->operand[i];
		if (ir_is_label(v)) {
			k->label[v->id].used = 1;
			k->label[v->id].at = at;
		}
	}
	k->ninsn++;
	return it;
}

/* ---- values ---- */

bool ir_names_ours(const cptx_kernel *k, const cptx_val *v)
{
	switch ((enum cptx_val_kind)v->kind) {
	case CPTX_VAL_VEC:
	case CPTX_VAL_LIST: return v->id <= k->nvec && v->count <= k->nvec - v->id;
	case CPTX_VAL_TARGETS:
	case CPTX_VAL_PROTO:
	case CPTX_VAL_LABEL: return v->id < k->nlabel;
	case CPTX_VAL_SYM: return v->id >= MODULE_SYM ? v->id - MODULE_SYM < k->m->nsym : v->id < k->nsym;
	case CPTX_VAL_SREG: return v->id < arch_nsreg;
	default: return v->kind <= CPTX_VAL_PROTO;
	}
}

const char *ir_stranger(const cptx_val *v)
{
	bool made = v->type < arch_ntype && v->kind <= CPTX_VAL_PROTO && (v->kind != CPTX_VAL_SREG || v->id < arch_nsreg);

	return made ? "belongs to another kernel or function of the module"
	            : "is no value that a call of the library gave: there is no such kind or type";
}

bool ir_owned(cptx_kernel *k, cptx_site at, const cptx_val *v, const char *what)
{
	if (ir_is_ours(k, v))
		return true;
	return ir_error(k, CPTX_E_ARG, at, "%s %s", what, ir_stranger(v));
}

bool ir_guard_ok(cptx_kernel *k, cptx_site at, cptx_val *guard, cptx_val when, cptx_val unless)
{
	*guard = when.kind ? when : unless;
	if (!guard->kind)
		return true;
	if (when.kind && unless.kind)
		return ir_error(k, CPTX_E_ARG, at, "give .when or .unless, not both");
	if (guard->kind != CPTX_VAL_REG || guard->type != CPTX_PRED || guard->count != 1 || guard->offset)
		return ir_error(k, CPTX_E_ARG, at, ".%s must be a predicate register", when.kind ? "when" : "unless");
	guard->negated ^= unless.kind != 0;
	return ir_owned(k, at, guard, "the guard");
}

/* Makes the declarations of the registers that builder calls make, in front of those of text. */
static bool builder_classes(cptx_kernel *k)
{
	if (k->ndecl)
		return true;
	if (!arena_reserve(&k->m->a, &k->decl, 0, &k->cap_decl, sizeof *k->decl, CLASS_COUNT))
		return false;
	for (; k->ndecl < CLASS_COUNT; k->ndecl++) {
		k->decl[k->ndecl] = (ir_decl){ .name = ir_classes[k->ndecl].prefix };
		k->decl[k->ndecl].type = ir_classes[k->ndecl].type & 63;
	}
	return true;
}

/* Prepares a body for new registers and labels: in a parsed body it picks names that nothing there has. */
bool ir_prepare_names(cptx_kernel *k) { return builder_classes(k) && (!k->m->parsed || k->made || ir_made_names(k)); }

uint32_t ir_declare(cptx_kernel *k, const ir_decl *d)
{
	arena *a = &k->m->a;

	if (!builder_classes(k) || k->ndecl == IR_MOST_DECLS || d->count > IR_MOST_REGS - k->nreg ||
	    !arena_push(a, &k->decl, k->ndecl, &k->cap_decl, sizeof *k->decl) ||
	    !arena_reserve(a, &k->reg, k->nreg, &k->cap_reg, sizeof *k->reg, k->nreg + d->count))
		return IR_NONE;
	k->decl[k->ndecl] = *d;
	k->decl[k->ndecl].first = (uint32_t)k->nreg;
	for (uint32_t i = 0; i < d->count; i++)
		k->reg[k->nreg++] = (ir_reg){ .type = d->type, .at = (uint32_t)k->ndecl & (IR_MOST_DECLS - 1) };
	ir_index_local(k, d->form == DECL_RANGE ? NAMED_RANGE : NAMED_REG, (uint32_t)k->ndecl++);
	return (uint32_t)k->ndecl - 1;
}

cptx_val ir_regs(cptx_kernel *k, cptx_site at, unsigned type, uint32_t n)
{
	cptx_val v = { 0 };
	enum ir_class cls = ir_class_of(type);

	if (cls == CLASS_COUNT || n == 0 || n > UINT16_MAX) {
		ir_error(k, CPTX_E_ARG, at, "cannot make %u registers of type number %u (1 to 65535 of a type of isa.h)", n, type);
		return v;
	}
	if (!ir_prepare_names(k)) {
		ir_no_memory(k->m, at);
		return v;
	}
	if (n > (uint32_t)IR_MOST_MADE - k->decl[cls].count) {
		ir_error(k, CPTX_E_LIMIT, at, "more than %d registers of .%s; calls make no more in one body", IR_MOST_MADE,
		         arch_mods[ir_classes[cls].type].name);
		return v;
	}
	if (!arena_reserve(&k->m->a, &k->reg, k->nreg, &k->cap_reg, sizeof *k->reg, k->nreg + n)) {
		ir_no_memory(k->m, at);
		return v;
	}
	for (uint32_t i = 0; i < n; i++)
		k->reg[k->nreg++] = (ir_reg){ .type = type & UINT8_MAX, .made = 1, .at = ++k->decl[cls].count & IR_MOST_MADE };
	v.kind = CPTX_VAL_REG;
	v.type = (uint8_t)type;
	v.count = (uint16_t)n;
	v.owner = k->owner;
	v.id = (uint32_t)(k->nreg - n);
	return v;
}

cptx_val cptx_regs_(cptx_kernel *k, cptx_site at, enum cptx_type type, uint32_t n)
{
	if (!ir_open(k, at))
		return (cptx_val){ 0 };
	if (type == CPTX_PTR)
		type = CPTX_U64;
	else if (type == CPTX_U8 || type == CPTX_S8) /* loads and conversions widen these to 16 bits */
		type = CPTX_B16;
	return ir_regs(k, at, type, n);
}

/* Unlike NONE, which stands for "left out", BAD is refused wherever it is used. */
static const cptx_val bad = { .kind = CPTX_VAL_BAD };

cptx_val cptx_elem(cptx_val array, uint32_t i) { return cptx_slice(array, i, 1); }

cptx_val cptx_slice(cptx_val array, uint32_t first, uint32_t n)
{
	if (array.kind != CPTX_VAL_REG || !n || first >= array.count || n > array.count - first)
		return bad;
	array.id += first;
	array.count = (uint16_t)n;
	return array;
}

cptx_val cptx_offset(cptx_val address, int64_t bytes)
{
	if (address.kind != CPTX_VAL_REG && address.kind != CPTX_VAL_SYM)
		return bad;
	int64_t offset = bytes > INT32_MAX || bytes < INT32_MIN ? INT64_MAX : address.offset + bytes;
	if (offset > INT32_MAX || offset < INT32_MIN)
		return bad;
	address.offset = (int32_t)offset;
	return address;
}

cptx_val cptx_as(cptx_val v, enum cptx_type type)
{
	bool reg = v.kind == CPTX_VAL_REG || v.kind == CPTX_VAL_VEC;
	if (type == CPTX_PTR)
		type = CPTX_U64;
	if (!reg || cptx_type_bits(type) != cptx_type_bits((enum cptx_type)v.type))
		return bad;
	v.type = (uint8_t)type;
	return v;
}

cptx_val cptx_negated(cptx_val predicate)
{
	char cls = predicate.type && predicate.type < arch_ntype ? arch_types[predicate.type].cls : ' ';
	if (predicate.kind != CPTX_VAL_REG || (predicate.offset && !predicate.space) ||
	    !(cls == 'P' || cls == 'S' || cls == 'U' || cls == 'B'))
		return bad;
	predicate.negated ^= 1;
	return predicate;
}

cptx_val cptx_select(cptx_val reg, const char *selector)
{
	size_t n = selector ? strlen(selector) : 0;
	bool half = n && *selector == 'h';

	if (reg.kind != CPTX_VAL_REG || reg.count != 1 || reg.offset || reg.space || n < 2 || n > 5 ||
	    (!half && *selector != 'b') || strspn(selector + 1, "01234567") != n - 1)
		return bad;
	reg.space = (uint8_t)(SELECTED | (half ? SELECTED_H : 0) | (n - 1));
	for (size_t i = 1; i < n; i++)
		reg.offset |= (selector[i] - '0') << 3 * (i - 1);
	return reg;
}

/* Appends the elements of a vector or list to k->vec; sets *first to the index of the first. */
static bool add_elements(cptx_kernel *k, cptx_site at, const cptx_val *vals, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!ir_owned(k, at, &vals[i], "an element"))
			return false;
		if (!arena_push(&k->m->a, &k->vec, k->nvec, &k->cap_vec, sizeof *k->vec))
			return ir_no_memory(k->m, at);
		k->vec[k->nvec++] = vals[i];
	}
	return true;
}

static bool is_constant(const cptx_val *v) { return v->kind == CPTX_VAL_INT || v->kind == CPTX_VAL_FLOAT; }
static bool is_single(const cptx_val *v)
{
	return v->kind == CPTX_VAL_REG && v->count == 1 && !v->offset && !v->negated && !v->space;
}

/* Computes the common type of a vector's elements, and checks constants and sinks among them. */
static bool vector_of(cptx_kernel *k, cptx_site at, const cptx_val *regs, size_t n, cptx_val *v)
{
	const cptx_val *before = NULL;

	*v = (cptx_val){ .kind = CPTX_VAL_VEC };
	for (size_t i = 0; i < n; i++) {
		const cptx_val *e = &regs[i];
		if (is_constant(e)) {
			v->space |= VEC_CONSTANTS;
		} else if (e->kind == CPTX_VAL_SINK) {
			v->space |= VEC_SINKS;
		} else if (!is_single(e)) {
			return ir_error(k, CPTX_E_ARG, at, "cptx_pack: value %zu is not a single register", i);
		} else if (!v->type) {
			v->type = e->type;
		} else if (cptx_type_bits((enum cptx_type)e->type) != cptx_type_bits((enum cptx_type)v->type)) {
			return ir_error(k, CPTX_E_ARG, at, "cptx_pack: value %zu is .%s; those before it have another width", i,
			                cptx_type_name((enum cptx_type)e->type));
		}
		if (e->kind == CPTX_VAL_INT) /* a constant takes the type that the instruction wants */
			continue;
		if (before && e->kind != CPTX_VAL_SINK)
			v->space |= (uint8_t)arch_mixed(before, e, i == 1);
		before = e->kind == CPTX_VAL_SINK ? before : e;
	}
	return true;
}

cptx_val cptx_pack_(cptx_kernel *k, cptx_site at, const cptx_val *regs, size_t n)
{
	cptx_val v, none = { 0 };

	if (!ir_open(k, at))
		return none;
	if (!regs || n < 1 || n > UINT16_MAX) {
		ir_error(k, CPTX_E_ARG, at, "cptx_pack takes 1 to 65535 registers");
		return none;
	}
	size_t first = k->nvec;
	if (!vector_of(k, at, regs, n, &v) || !add_elements(k, at, regs, n))
		return none;
	v.owner = k->owner;
	v.count = (uint16_t)n;
	v.id = (uint32_t)first;
	return v;
}

cptx_val cptx_list_(cptx_kernel *k, cptx_site at, const cptx_val *vals, size_t n)
{
	cptx_val v = { .kind = CPTX_VAL_LIST }, none = { 0 };

	if (!ir_open(k, at))
		return none;
	if ((n && !vals) || n > UINT16_MAX) {
		ir_error(k, CPTX_E_ARG, at, "cptx_list takes up to 65535 values");
		return none;
	}
	for (size_t i = 0; i < n; i++)
		if (!is_single(&vals[i]) && !is_constant(&vals[i]) && vals[i].kind != CPTX_VAL_SYM &&
		    vals[i].kind != CPTX_VAL_SINK) {
			ir_error(k, CPTX_E_ARG, at, "cptx_list: value %zu is neither a single register nor a constant or parameter", i);
			return none;
		}
	size_t first = k->nvec;
	if (!add_elements(k, at, vals, n))
		return none;
	v.owner = k->owner;
	v.count = (uint16_t)n;
	v.id = (uint32_t)first;
	return v;
}
